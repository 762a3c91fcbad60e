#!/usr/bin/env python3
"""Makes systems/livemcpbench/{servers.json,catalogue.jsonl,tasks.jsonl}: twenty servers with ten tools each, a page on every tool for the
router's search, and 40 tasks of one or two calls.

Half of the tasks ask in the words of the tools, half in other words, so that a search by words finds some tools late or not at all.
"""

import json
import random
from pathlib import Path

OUT = Path(__file__).resolve().parent.parent / "systems" / "livemcpbench"
TOWNS = "Altau Birkfeld Dornhafen Eichbruck Felsmund Goldau Hochfeld Ivenstadt".split()
PEOPLE = "Ada Abram,Bela Corvin,Cato Dorn,Dora Falk,Egon Grote,Fina Holm,Ivo Kerr,Jana Lund".split(",")

# Server: what its arguments are, their names, what it is about, and its tools: what each returns, the values, and for some another way to ask.
# Values: `lo-hi unit`, `town`, `person`, or words with slashes between them.
SERVERS = {
    "weather": ("town", TOWNS, "Forecast of the weather in towns", {
        "wind_speed": ("Wind speed in a town", "5-90 km/h", "How hard does it blow in {}?"), "rainfall": ("Rainfall in a town", "0-40 mm", "How wet is it going to be in {}?"),
        "temperature": ("Temperature in a town", "1-35 degrees", "How warm is it in {}?"), "humidity": ("Humidity of the air in a town", "20-99 %", None), "sunrise": ("Hour of sunrise in a town", "4-8 o'clock", None),
        "sunset": ("Hour of sunset in a town", "16-22 o'clock", "When does it get dark in {}?"), "air_pressure": ("Air pressure in a town", "980-1040 hPa", None), "snow_depth": ("Depth of snow in a town", "0-80 cm", None),
        "visibility": ("Visibility in a town", "1-30 km", None), "pollen": ("Pollen count in a town", "0-9 of ten", None)}),
    "parking": ("town", TOWNS, "Car parks in towns", {
        "free_spaces": ("Free parking spaces in a town", "3-400 spaces", "Can I leave my car in {}; for how many is there room?"), "parking_fee": ("Parking fee for an hour in a town", "1-9 crowns", "What does an hour for the car cost in {}?"), "longest_stay": ("Longest stay in a car park of a town", "2-48 hours", None),
        "height_limit": ("Height limit of the car park of a town", "180-260 cm", None), "charging_points": ("Charging points for electric cars in a town", "1-60 points", None), "closing_hour": ("Closing hour of the car park of a town", "18-24 o'clock", None),
        "disabled_spaces": ("Parking spaces for disabled people in a town", "1-30 spaces", None), "bicycle_stands": ("Bicycle stands in a town", "10-300 stands", None), "residents_permit": ("Price of a resident's parking permit in a town", "20-200 crowns", None), "coach_spaces": ("Parking spaces for coaches in a town", "0-20 spaces", None)}),
    "water": ("town", TOWNS, "Water supply of towns", {
        "hardness": ("Hardness of the tap water in a town", "2-25 degrees", "Will my kettle fur up in {}; how hard is it?"), "reservoir_level": ("Level of the reservoir of a town", "20-100 %", None), "water_price": ("Price of a cubic metre of water in a town", "1-9 crowns", None), "nitrate": ("Nitrate in the water of a town", "1-40 mg", None),
        "pipe_length": ("Length of the water pipes of a town", "30-900 km", None), "leakage": ("Share of water lost by leakage in a town", "2-30 %", None), "source_depth": ("Depth of the wells of a town", "10-200 m", None), "water_use": ("Water use a head in a town", "80-180 litres", None),
        "fluoride": ("Fluoride in the water of a town", "0-2 mg", None), "water_pressure": ("Pressure of the tap water in a town", "2-8 bar", None)}),
    "council": ("town", TOWNS, "Councils and mayors of towns", {
        "mayor": ("Mayor of a town", "person", "Who is at the head of {}?"), "inhabitants": ("Number of inhabitants of a town", "2000-90000 people", "How many live in {}?"), "council_seats": ("Seats of the council of a town", "11-60 seats", None), "debt": ("Debt of a town", "1-90 millions", None),
        "founded": ("Year in which a town was founded", "900-1700 AD", "How old is {}; since when does it exist?"), "area": ("Area of a town", "10-300 square km", None), "twin_town": ("Twin town of a town", "town", None), "dog_tax": ("Dog tax in a town", "20-150 crowns", None),
        "turnout": ("Turnout of the last election in a town", "30-90 %", None), "town_hall_hours": ("Opening hours of the town hall of a town, a week", "15-45 hours", None)}),
    "hotels": ("hotel", "Blue Anchor,Old Mill,Golden Pear,Seven Lamps,White Stag,Harbour View,Linden Court,Red Lion".split(","), "Hotels and their rooms", {
        "hotel_town": ("Town of a hotel", "town", "Where is the hotel {}?"), "room_price": ("Price of a room in a hotel", "40-300 crowns", "What do I pay for a night at the {}?"), "free_rooms": ("Free rooms of a hotel", "0-40 rooms", None), "stars": ("Stars of a hotel", "1-5 stars", None),
        "breakfast_hour": ("Hour at which breakfast begins in a hotel", "5-9 o'clock", None), "pool_length": ("Length of the pool of a hotel", "8-50 m", None), "pets_fee": ("Fee for pets in a hotel", "0-30 crowns", "May my dog come along to the {}, and for how much?"), "hotel_owner": ("Owner of a hotel", "person", None),
        "sauna": ("Kind of the sauna of a hotel", "dry/steam/none", None), "checkout": ("Hour of departure from a hotel", "9-13 o'clock", None)}),
    "museums": ("museum", "Clock Museum,Salt Museum,Ship Museum,Lamp Museum,Toy Museum,Moor Museum,Glass Museum,Mill Museum".split(","), "Museums and exhibitions", {
        "museum_town": ("Town of a museum", "town", "Where do I find the {}?"), "ticket_price": ("Price of a ticket of a museum", "2-20 crowns", "What does it cost to get into the {}?"), "visitors": ("Visitors of a museum in a year", "2000-90000 people", None), "objects": ("Objects in the collection of a museum", "200-30000 objects", None),
        "director": ("Director of a museum", "person", "Who runs the {}?"), "closed_day": ("Day on which a museum is closed", "Monday/Tuesday/Wednesday", None), "guided_tours": ("Guided tours of a museum in a week", "2-30 tours", None), "exhibition_end": ("Day of May on which the exhibition of a museum ends", "1-31 May", None),
        "floor_space": ("Floor space of a museum", "200-4000 square metres", None), "audio_guide": ("Languages of the audio guide of a museum", "1-9 languages", None)}),
    "schools": ("school", "Elm School,Larch School,Rowan School,Maple School,Birch School,Cedar School,Aspen School,Willow School".split(","), "Schools and lessons", {
        "school_town": ("Town of a school", "town", None), "pupils": ("Number of pupils of a school", "90-1200 pupils", "How many children go to {}?"), "head_teacher": ("Head teacher of a school", "person", "Who leads {}?"), "class_size": ("Average size of a class of a school", "14-32 pupils", None),
        "languages": ("Languages taught at a school", "1-6 languages", None), "first_bell": ("Hour of the first lesson at a school", "7-9 o'clock", None), "school_fee": ("Yearly fee of a school", "0-4000 crowns", None), "sports_hall": ("Size of the sports hall of a school", "200-1500 square metres", None),
        "lunch_price": ("Price of a lunch at a school", "2-8 crowns", None), "founding_year": ("Founding year of a school", "1850-2010 AD", None)}),
    "trains": ("line", "N1,N2,N3,S1,S2,S3,X1,X2".split(","), "Trains and railway lines", {
        "train_delay": ("Delay of the trains of a line", "0-50 minutes", "How late are the trains on {}?"), "fare": ("Fare of a line", "3-60 crowns", None), "terminus": ("Terminus of a line", "town", "Where does {} end?"), "top_speed": ("Top speed of the trains of a line", "80-250 km/h", None),
        "train_stops": ("Stops of a line", "4-40 stops", None), "platform": ("Platform of a line", "1-12 platform", None), "seats": ("Seats in the trains of a line", "60-500 seats", None), "first_train": ("Hour of the first train of a line", "4-7 o'clock", None),
        "bicycle_places": ("Places for bicycles in the trains of a line", "2-30 places", None), "driver": ("Driver on duty on a line", "person", None)}),
    "ferries": ("ship", "Aurora,Borea,Cormorant,Dunlin,Eider,Fulmar,Gannet,Heron".split(","), "Ferries and their crossings", {
        "home_port": ("Home port of a ship", "town", "Where does the {} belong?"), "captain": ("Captain of a ship", "person", "Who commands the {}?"), "cars_on_board": ("Cars that a ship takes on board", "5-200 cars", "For how many cars is there room on the {}?"), "crossing_time": ("Time that the crossing of a ship takes", "20-400 minutes", None),
        "ship_length": ("Length of a ship", "20-180 m", None), "crew": ("Crew of a ship", "3-60 people", None), "launch_year": ("Year in which a ship was launched", "1960-2022 AD", None), "ship_fuel": ("Fuel of a ship", "diesel/gas/battery", None),
        "wave_limit": ("Highest waves in which a ship sails", "1-6 m", None), "dock_date": ("Day of June on which a ship goes into the dock", "1-30 June", None)}),
    "library": ("book", "Salt Road,Last Ferry,Moor Light,Glass Winter,Two Harbours,Night Mill,Paper Kite,Stone Orchard".split(","), "Library: books and loans", {
        "author": ("Author of a book", "person", "Who wrote {}?"), "pages": ("Pages of a book", "90-900 pages", "How long is {}?"), "copies": ("Copies of a book in the library", "1-12 copies", None), "on_loan": ("Copies of a book that are on loan", "0-12 copies", None), "shelf": ("Shelf of a book", "1-80 shelf", None),
        "published": ("Year in which a book was published", "1890-2024 AD", None), "loan_period": ("Loan period of a book", "7-42 days", "How long may I keep {}?"), "reservations": ("Reservations of a book", "0-30 people", None), "age_limit": ("Age from which a book is lent", "0-16 years", None), "late_fee": ("Fee a day for a book returned late", "1-5 crowns", None)}),
    "recipes": ("dish", "Plum Soup,Barley Bread,Trout Pie,Leek Tart,Pear Cake,Bean Stew,Nettle Broth,Apple Roll".split(","), "Recipes and cooking", {
        "cooking_time": ("Cooking time of a dish", "10-180 minutes", "When will the {} be done?"), "oven_heat": ("Heat of the oven for a dish", "120-240 degrees", "How hot should it be for the {}?"), "servings": ("Servings of a dish", "2-12 people", None), "calories": ("Calories in a serving of a dish", "120-900 kcal", None), "salt": ("Salt for a dish", "1-20 g", None),
        "flour": ("Flour for a dish", "0-600 g", None), "butter": ("Butter for a dish", "0-250 g", None), "cook": ("Cook who wrote the recipe of a dish", "person", None), "season": ("Season of a dish", "spring/summer/autumn/winter", None), "price_a_head": ("Price a head of a dish", "1-14 crowns", None)}),
    "sports": ("club", "Rovers,Wanderers,Harriers,Rangers,Comets,Falcons,Mariners,Miners".split(","), "Sports clubs and matches", {
        "coach": ("Coach of a club", "person", "Who trains the {}?"), "points": ("Points of a club in the league", "3-80 points", None), "next_match": ("Day of April of the next match of a club", "1-30 April", "When do the {} play again?"), "goals": ("Goals that a club has scored", "4-90 goals", None), "stadium_seats": ("Seats in the stadium of a club", "400-20000 seats", None),
        "ground": ("Town of the ground of a club", "town", "Where do the {} play at home?"), "members": ("Members of a club", "80-9000 people", None), "season_ticket": ("Price of a season ticket of a club", "30-400 crowns", None), "colours": ("Colour of the shirts of a club", "red/blue/green/white", None), "club_founded": ("Year in which a club was founded", "1880-1990 AD", None)}),
    "hospital": ("ward", "Ward A,Ward B,Ward C,Ward D,Ward E,Ward F,Ward G,Ward H".split(","), "Hospital wards", {
        "beds": ("Free beds of a ward", "0-30 beds", "Is there room for patients in {}, and for how many?"), "visiting_hour": ("Hour at which visits to a ward begin", "13-18 o'clock", "From when may I see somebody in {}?"), "chief": ("Chief physician of a ward", "person", None), "nurses": ("Nurses of a ward", "4-40 people", None), "floor": ("Floor of a ward", "0-9 floor", None),
        "waiting_time": ("Waiting time in a ward", "5-240 minutes", None), "operations": ("Operations of a ward in a week", "0-60 operations", None), "phone": ("Phone extension of a ward", "100-999 extension", None), "meal_hour": ("Hour of the evening meal in a ward", "16-19 o'clock", None), "oxygen": ("Oxygen left in a ward", "10-100 %", None)}),
    "bank": ("account", "Basic Account,Garden Account,River Account,Summit Account,Junior Account,Harbour Account,Oak Account,Star Account".split(","), "Bank accounts and interest", {
        "interest": ("Interest of an account", "1-9 %", "What does the bank give me on the {}?"), "account_fee": ("Yearly fee of an account", "0-90 crowns", None), "overdraft": ("Overdraft limit of an account", "0-9000 crowns", "How far into the red may I go with the {}?"), "notice": ("Notice period of an account", "0-90 days", None), "card_limit": ("Limit of the card of an account", "200-9000 crowns", None),
        "opening_bonus": ("Bonus for opening an account", "0-120 crowns", None), "adviser": ("Adviser for an account", "person", None), "least_deposit": ("Least deposit of an account", "1-900 crowns", None), "transfer_fee": ("Fee of a transfer from an account", "0-9 crowns", None), "holder_age": ("Least age of the holder of an account", "0-25 years", None)}),
    "shop": ("article", "Copper Lamp,Oak Table,Wool Rug,Iron Stove,Linen Sheet,Clay Jug,Brass Clock,Birch Chair".split(","), "Shop: articles and stock", {
        "price": ("Price of an article", "5-900 crowns", "What must I pay for the {}?"), "stock": ("Stock of an article", "0-200 pieces", "Do you still have the {}; how many are left?"), "weight": ("Weight of an article", "1-90 kg", None), "delivery": ("Delivery time of an article", "1-40 days", "How soon would the {} be at my door?"), "warranty": ("Warranty of an article", "1-10 years", None),
        "maker_town": ("Town in which an article is made", "town", None), "rating": ("Rating of an article", "1-5 stars", None), "returns": ("Share of an article that is returned", "0-20 %", None), "discount": ("Discount on an article", "0-50 %", None), "designer": ("Designer of an article", "person", None)}),
    "parcels": ("parcel", "P100,P101,P102,P103,P104,P105,P106,P107".split(","), "Parcels on their way", {
        "parcel_place": ("Town in which a parcel is", "town", "Where has {} got to?"), "arrival_day": ("Day of March on which a parcel arrives", "1-31 March", "When will I have {}?"), "parcel_weight": ("Weight of a parcel", "1-30 kg", None), "postage": ("Postage of a parcel", "3-40 crowns", None), "sender": ("Sender of a parcel", "person", "Who has sent {}?"),
        "parcel_insurance": ("Insured value of a parcel", "0-900 crowns", None), "attempts": ("Attempts to deliver a parcel", "0-3 attempts", None), "locker": ("Locker of a parcel", "1-60 locker", None), "customs": ("Customs duty on a parcel", "0-90 crowns", None), "courier": ("Courier of a parcel", "person", None)}),
    "cinema": ("film", "Blue Ferry,Silent Mill,Harbour Snow,Nine Bells,Far Meadow,Glass Sky,Old Signal,Winter Line".split(","), "Cinema programme", {
        "show_hour": ("Hour of the show of a film", "14-23 o'clock", "When is {} on?"), "film_length": ("Length of a film", "70-210 minutes", None), "free_seats": ("Free seats for a film", "0-300 seats", None), "film_director": ("Director of a film", "person", "Who made {}?"), "seat_price": ("Price of a seat for a film", "6-20 crowns", None),
        "hall": ("Hall in which a film is shown", "1-9 hall", None), "film_age": ("Age from which a film is allowed", "0-18 years", None), "subtitles": ("Language of the subtitles of a film", "Dutch/Polish/Greek/none", None), "last_day": ("Day of August on which a film is shown last", "1-31 August", None), "prizes": ("Prizes that a film has won", "0-12 prizes", None)}),
    "energy": ("plant", "North Plant,South Plant,Ridge Plant,Bay Plant,Valley Plant,Moor Plant,Coast Plant,Hill Plant".split(","), "Power plants and energy", {
        "output": ("Output of a power plant", "5-900 MW", "How much does {} produce?"), "plant_fuel": ("Fuel of a power plant", "wind/water/gas/sun", "On what does {} run?"), "efficiency": ("Efficiency of a power plant", "15-60 %", None), "staff": ("Staff of a power plant", "2-300 people", None), "outage": ("Day of July of the next outage of a power plant", "1-31 July", None),
        "emissions": ("Emissions of a power plant", "0-900 tons", None), "plant_town": ("Town next to a power plant", "town", None), "engineer": ("Engineer on duty in a power plant", "person", None), "cost": ("Cost of a unit from a power plant", "3-30 cents", None), "operating_since": ("Year since which a power plant operates", "1950-2022 AD", None)}),
    "birds": ("bird", "Heron,Plover,Dunlin,Wren,Kestrel,Siskin,Avocet,Bittern".split(","), "Birds and sightings", {
        "sightings": ("Sightings of a bird this week", "0-400 sightings", "How often was the {} seen this week?"), "wingspan": ("Wingspan of a bird", "12-220 cm", None), "nest_height": ("Height of the nests of a bird", "0-20 m", None), "eggs": ("Eggs in a nest of a bird", "1-12 eggs", None), "arrival": ("Day of April on which a bird arrives", "1-30 April", "When does the {} come back?"),
        "bird_weight": ("Weight of a bird", "8-2000 g", None), "seen_last": ("Town near which a bird was seen last", "town", "Where was the {} last spotted?"), "ring_number": ("Ring number of a bird", "1000-9999 ring", None), "observer": ("Observer who reported a bird last", "person", None), "diet": ("Main food of a bird", "fish/insects/seeds/snails", None)}),
    "law": ("rule", "Rule 4,Rule 7,Rule 12,Rule 19,Rule 23,Rule 31,Rule 38,Rule 44".split(","), "Rules and fines", {
        "fine": ("Fine for breaking a rule", "10-900 crowns", "What does it cost me to break {}?"), "in_force": ("Year since which a rule is in force", "1950-2025 AD", None), "appeals": ("Appeals against a rule", "0-90 appeals", None), "judge": ("Judge for a rule", "person", "Before whom do I come because of {}?"), "exemptions": ("Exemptions from a rule", "0-20 exemptions", None),
        "court_town": ("Town of the court for a rule", "town", None), "objection_period": ("Period for an objection to a rule", "7-60 days", "How long can I fight a decision by {}?"), "last_change": ("Year in which a rule was changed last", "1960-2025 AD", None), "paragraphs": ("Paragraphs of a rule", "1-40 paragraphs", None), "offences": ("Offences against a rule in a year", "0-900 offences", None)}),
}


def value(rng, form):
    if form == "town":
        return rng.choice(TOWNS)
    if form == "person":
        return rng.choice(PEOPLE)
    if "/" in form and not form[0].isdigit():
        return rng.choice(form.split("/"))
    span, _, unit = form.partition(" ")
    low, high = map(int, span.split("-"))
    return f"{rng.randint(low, high)} {unit}"


def main():
    rng = random.Random(20261127)
    servers, catalogue = {}, []
    for name, (kind, entities, about, tools) in SERVERS.items():
        assert len(tools) == 10, (name, len(tools))
        facts = {tool: {entity: value(rng, form) for entity in entities} for tool, (_, form, _) in tools.items()}
        servers[name] = {"about": about, "kind": kind, "entities": entities, "tools": {tool: what for tool, (what, _, _) in tools.items()}, "facts": facts}
        for tool, (what, _, _) in tools.items():
            catalogue.append({"id": f"{name}.{tool}", "title": f"{name} server: {about}", "text": f"{what}. Argument: {kind}."})

    def step(name, tool, entity):
        kind, what = SERVERS[name][0], SERVERS[name][3][tool][0]
        found = servers[name]["facts"][tool][entity]
        return {"tool": f"{name}_{tool}", "arguments": {kind: entity}, "finds": f"{what}, {entity}: {found}"}, found

    def asked(name, tool, entity, other):
        """The question, in the words of the tool or in others."""
        what, _, way = SERVERS[name][3][tool]
        if other and way:
            return way.format(entity)
        return f"{what}: {entity}?"

    tasks = []

    def task(question, steps, answer, form, words):
        others = sorted({value(rng, form) for _ in range(12)} - {answer})[:3]
        tasks.append({"id": f"m{len(tasks) + 1:02d}", "question": question, "answer": answer, "wrong": others, "words": words, "servers": [one["tool"].split("_")[0] for one in steps],
                      "plan": steps, "difficulty": float(len(steps))})

    single = [(name, tool) for name in SERVERS for tool, (_, form, way) in SERVERS[name][3].items() if way and form != "town"]
    towns = [(name, tool) for name in SERVERS for tool, (_, form, way) in SERVERS[name][3].items() if form == "town" and way]
    of_towns = [(name, tool) for name in ("weather", "parking", "water", "council") for tool, (_, _, way) in SERVERS[name][3].items() if way]
    rng.shuffle(single)
    rng.shuffle(of_towns)
    for turn in range(26):
        name, tool = single[turn]
        entity = rng.choice(SERVERS[name][1])
        one, answer = step(name, tool, entity)
        other = turn % 2 == 1
        task(asked(name, tool, entity, other), [one], answer, SERVERS[name][3][tool][1], "other" if other else "own")
    for turn in range(14):
        (first, where), (second, tool) = towns[turn % len(towns)], of_towns[turn % len(of_towns)]
        entity = rng.choice(SERVERS[first][1])
        one, town = step(first, where, entity)
        two, answer = step(second, tool, town)
        other = turn % 2 == 1
        way = SERVERS[second][3][tool][2].format("that town") if other else f"{SERVERS[second][3][tool][0]}?".replace("a town", "that town")
        task(f"{asked(first, where, entity, other)} And then: {way}", [one, two], answer, SERVERS[second][3][tool][1], "other" if other else "own")
    rng.shuffle(tasks)
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "servers.json").write_text(json.dumps(servers) + "\n", encoding="utf-8")
    for name, rows in [("catalogue.jsonl", catalogue), ("tasks.jsonl", tasks)]:
        with open(OUT / name, "w", encoding="utf-8") as out:
            out.writelines(json.dumps(row) + "\n" for row in rows)


if __name__ == "__main__":
    main()
