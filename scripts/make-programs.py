#!/usr/bin/env python3
"""Makes data/programs: small programs of several files whose interfaces only a design fixes, with tests and planted wrong files.

A file is a template. `<%key:right||otherwise%>` is a decision. A key of the design (an interface) decides names, order of arguments
or units; any choice works if all files make the same. A key of a test (e1, e2) is an edge case that is handled or not. So a wrong file is
the right one with other decisions. Every program is run here before it is written.
"""

import importlib.util
import itertools
import json
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

OUT = Path(__file__).resolve().parent.parent / "data" / "programs"
TAIL = '\n\nif __name__ == "__main__":\n    main(sys.argv[1:])\n'

PROGRAMS = [
    {
        "id": "bill",
        "asks": "`main.py 10.00 3` prints what each of 3 people pays of a bill of 10.00.",
        "requirements": ["No cent of a bill is lost: who comes first pays the cents that are left."],
        "design": {
            "p": "money.parse(text) -> whole cents",
            "s": "money.show(cents) -> text with two decimals, of whole cents",
            "d": "share.split(cents, people) -> list of cents, larger shares first",
        },
        "malformed": True,
        "files": {
            "money.py": """
def parse(text):
    <%e1:if "." not in text:
        text += ".00"
    %%>units, cents = text.split(".") if "." in text else ("0", text)
    return <%p:int(units) * 100 + int(cents)||int(units) + int(cents) / 100%>


def show(<%s:cents||amount%>):
    return <%s:f"{cents // 100}.{cents % 100:02d}"||f"{amount:.2f}"%>
""",
            "share.py": """
def split(<%d:cents, people||people, cents%>):
    <%e2:if people == 0:
        return []
    %%>each, left = divmod(cents, people)
    return [each + 1 if place < left else each for place in range(people)]
""",
            "main.py": """
import sys

import money
import share


def main(argv):
    cents = <%p:money.parse(argv[0])||round(money.parse(argv[0]) * 100)%>
    parts = share.split(<%d:cents, int(argv[1])||int(argv[1]), cents%>)
    print(" ".join(money.show(<%s:part||part / 100%>) for part in parts) or "nobody")
""",
        },
        "edges": {"e1": "main.py 10 4 -> 2.50 2.50 2.50 2.50", "e2": "main.py 7.00 0 -> nobody"},
        "tests": ["main.py 10.00 3 -> 3.34 3.33 3.33"],
        "hidden": ["main.py 0.05 2 -> 0.03 0.02", "main.py 12 5 -> 2.40 2.40 2.40 2.40 2.40", "main.py 100.00 3 -> 33.34 33.33 33.33",
                   "main.py 1 0 -> nobody", "main.py 3.10 1 -> 3.10"],
    },
    {
        "id": "rooms",
        "asks": "`main.py hall:21.5 attic:25.0` prints the warmest room and its temperature.",
        "requirements": ["Of rooms that are equally warm, the first counts."],
        "design": {
            "r": "readings.read(argument) -> (room, tenths of a degree)",
            "w": "stats.warmest(readings) -> (room, tenths of a degree)",
        },
        "files": {
            "readings.py": """
def read(argument):
    room, degrees = argument.split(":")
    tenths = round(float(degrees) * 10)
    return <%r:room, tenths||tenths, room%>
""",
            "stats.py": """
def warmest(readings):
    best = readings[0]
    for reading in readings[1:]:
        if reading[<%r:1||0%>] > best[<%r:1||0%>]:
            best = reading
    room, tenths = best[<%r:0||1%>], best[<%r:1||0%>]
    return <%w:room, tenths||tenths, room%>
""",
            "main.py": """
import sys

import readings
import stats


def main(argv):
    found = [readings.read(argument) for argument in argv]
    <%w:room, tenths||tenths, room%> = stats.warmest(found)
    print(room, tenths / 10)
""",
        },
        "tests": ["main.py hall:21.5 attic:25.0 -> attic 25.0"],
        "hidden": ["main.py a:1.0 b:1.0 -> a 1.0", "main.py cellar:9.5 -> cellar 9.5", "main.py zoo:2.0 bar:17.3 car:17.2 -> bar 17.3",
                   "main.py z:30.0 y:31.5 x:1.0 -> y 31.5"],
        "whole": True,
    },
    {
        "id": "parking",
        "asks": "`main.py 08:00 10:05 city` prints the fee for parking from 08:00 to 10:05 in the zone `city` (2.40 an hour) or `edge` (1.20 an hour).",
        "requirements": ["A quarter of an hour that has begun is paid in full."],
        "design": {
            "m": "clock.between(start, end) -> whole minutes",
            "f": "tariff.fee(minutes, zone) -> whole cents",
        },
        "malformed": True,
        "files": {
            "clock.py": """
def between(start, end):
    def minutes(text):
        hours, rest = text.split(":")
        return int(hours) * 60 + int(rest)

    passed = minutes(end) - minutes(start)
    <%e1:if passed < 0:
        passed += 24 * 60
    %%>return <%m:passed||passed / 60%>
""",
            "tariff.py": """
PRICE = {"city": 60, "edge": 30}


def fee(<%f:minutes, zone||zone, minutes%>):
    <%e2:if minutes <= 15:
        return 0
    %%>return -(-minutes // 15) * PRICE[zone]
""",
            "main.py": """
import sys

import clock
import tariff


def main(argv):
    minutes = <%m:clock.between(argv[0], argv[1])||round(clock.between(argv[0], argv[1]) * 60)%>
    cents = tariff.fee(<%f:minutes, argv[2]||argv[2], minutes%>)
    print(f"{cents // 100}.{cents % 100:02d}")
""",
        },
        "edges": {"e1": "main.py 23:00 01:00 city -> 4.80", "e2": "main.py 08:00 08:10 city -> 0.00"},
        "tests": ["main.py 08:00 10:05 city -> 5.40"],
        "hidden": ["main.py 09:00 10:00 edge -> 1.20", "main.py 22:30 00:30 edge -> 2.40", "main.py 12:00 12:15 edge -> 0.00",
                   "main.py 12:00 12:16 city -> 1.20", "main.py 00:00 23:59 edge -> 28.80"],
    },
    {
        "id": "words",
        "asks": "`main.py a b a` prints every word with its number, most frequent first: `a 2`, `b 1`. words.clean(word) gives a word in small letters, count.of(words) a dictionary.",
        "requirements": ["Words that are equally frequent are in order of the alphabet."],
        "design": {"c": "words.clean(word) -> word in small letters", "o": "count.of(words) -> dictionary of numbers"},
        "files": {
            "words.py": """
def clean(word):
    return word.strip(".,").lower()
""",
            "count.py": """
def of(words):
    found = {}
    for word in words:
        found[word] = found.get(word, 0) + 1
    return found
""",
            "main.py": """
import sys

import count
import words


def main(argv):
    found = count.of([words.clean(word) for word in argv])
    for word in sorted(found, key=lambda word: (-found[word], word)):
        print(word, found[word])
""",
        },
        "free": True,
        "tests": ["main.py a b a -> a 2 / b 1"],
        "hidden": ["main.py B a. b, A -> a 2 / b 2", "main.py one -> one 1", "main.py z y x -> x 1 / y 1 / z 1"],
    },
    {
        "id": "route",
        "asks": "`main.py a c a-b:2 b-c:3 a-c:9` prints the shortest way from a to c and its length: `a b c 5`. Roads go both ways.",
        "requirements": ["If no way leads there, the program prints `none`."],
        "design": {
            "r": "roads.read(arguments) -> dictionary of dictionaries, town to neighbour to kilometres",
            "s": "route.shortest(roads, start, goal) -> (kilometres, towns), or None",
        },
        "malformed": True,
        "files": {
            "roads.py": """
def read(arguments):
    <%r:roads = {}||roads = []%>
    for argument in arguments:
        ends, length = argument.split(":")
        one, other = ends.split("-")
        <%r:roads.setdefault(one, {})[other] = int(length)
        roads.setdefault(other, {})[one] = int(length)||roads.append((one, other, int(length)))%>
    return roads
""",
            "route.py": """
import heapq


def shortest(<%s:roads, start, goal||start, goal, roads%>):
    ahead, seen = [(0, [start])], set()
    while ahead:
        length, way = heapq.heappop(ahead)
        if way[-1] == goal:
            return <%s:length, way||way, length%>
        if way[-1] in seen:
            continue
        seen.add(way[-1])
        <%r:near = roads.get(way[-1], {}).items()||near = [(b, n) for a, b, n in roads if a == way[-1]] + [(a, n) for a, b, n in roads if b == way[-1]]%>
        for town, more in near:
            heapq.heappush(ahead, (length + more, way + [town]))
    return None
""",
            "main.py": """
import sys

import roads
import route


def main(argv):
    known = roads.read(argv[2:])
    found = route.shortest(<%s:known, argv[0], argv[1]||argv[0], argv[1], known%>)
    if found is None:
        print("none")
    else:
        <%s:length, way||way, length%> = found
        print(" ".join(way), length)
""",
        },
        "tests": ["main.py a c a-b:2 b-c:3 a-c:9 -> a b c 5", "main.py a d a-b:2 -> none"],
        "hidden": ["main.py c a a-b:2 b-c:3 a-c:4 -> c a 4", "main.py x y -> none", "main.py a a a-b:1 -> a 0",
                   "main.py a e a-b:1 b-c:1 c-d:1 d-e:1 a-e:5 -> a b c d e 4"],
    },
    {
        "id": "store",
        "asks": "`main.py +apple:3 -apple:1 +pear:2` books goods in and out and prints what is left: `apple 2`, `pear 2`.",
        "requirements": ["Goods are printed in order of the alphabet."],
        "design": {
            "o": "orders.read(argument) -> (item, change), change below 0 for goods that go out",
            "a": "stock.apply(stock, item, change) -> the new stock, a dictionary",
        },
        "files": {
            "orders.py": """
def read(argument):
    <%e1:if ":" not in argument:
        argument += ":1"
    %%>item, number = (argument[1:].split(":") + ["0"])[:2]
    change = int(number) if argument[0] == "+" else -int(number)
    return <%o:item, change||change, item%>
""",
            "stock.py": """
def apply(<%a:stock, item, change||item, change, stock%>):
    left = dict(stock)
    left[item] = <%e2:max(0, left.get(item, 0) + change)||left.get(item, 0) + change%>
    return left
""",
            "main.py": """
import sys

import orders
import stock


def main(argv):
    left = {}
    for argument in argv:
        <%o:item, change||change, item%> = orders.read(argument)
        left = stock.apply(<%a:left, item, change||item, change, left%>)
    for item in sorted(left):
        print(item, left[item])
""",
        },
        "edges": {"e1": "main.py +fig -> fig 1", "e2": "main.py +fig:1 -fig:3 -> fig 0"},
        "tests": ["main.py +apple:3 -apple:1 +pear:2 -> apple 2 / pear 2"],
        "hidden": ["main.py +b:1 +a:5 -> a 5 / b 1", "main.py -a:1 +a:2 -> a 2", "main.py +a +a -a -> a 1", "main.py -q -> q 0",
                   "main.py +z:10 -z:4 -> z 6"],
        "blind": "e2",
    },
    {
        "id": "roman",
        "asks": "`main.py XIV + II` adds or subtracts Roman numbers and prints `XVI`. roman.value(text) gives the number, roman.text(number) its Roman form, calc.work(left, sign, right) the result.",
        "requirements": ["Signs are + and -."],
        "design": {
            "v": "roman.value(text) -> number",
            "t": "roman.text(number) -> Roman form",
            "c": "calc.work(left, sign, right) -> number",
        },
        "files": {
            "roman.py": """
SIGNS = [(100, "C"), (90, "XC"), (50, "L"), (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")]


def value(text):
    <%e1:text = text.upper()
    %%>total = 0
    for number, sign in SIGNS:
        while text.startswith(sign):
            total, text = total + number, text[len(sign):]
    return total


def text(number):
    <%e2:if number < 1:
        return "none"
    %%>said = ""
    for size, sign in SIGNS:
        while number >= size:
            said, number = said + sign, number - size
    return said
""",
            "calc.py": """
def work(left, sign, right):
    return left + right if sign == "+" else left - right
""",
            "main.py": """
import sys

import calc
import roman


def main(argv):
    print(roman.text(calc.work(roman.value(argv[0]), argv[1], roman.value(argv[2]))))
""",
        },
        "free": True,
        "edges": {"e1": "main.py xiv + II -> XVI", "e2": "main.py II - V -> none"},
        "tests": ["main.py XIV + II -> XVI"],
        "hidden": ["main.py XC - I -> LXXXIX", "main.py I + I -> II", "main.py v - V -> none", "main.py l + x -> LX", "main.py CXL + IX -> CXLIX"],
    },
    {
        "id": "weekday",
        "asks": "`main.py 2024-03-01` prints the day of the week: `Friday`. 1 January 1900 was a Monday.",
        "requirements": ["Days from 1900 on are known."],
        "design": {
            "d": "dates.days(year, month, day) -> days since 1 January 1900",
            "n": "week.name(days) -> name of the day that is so many days after a Monday",
        },
        "files": {
            "dates.py": """
LENGTH = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]


def leap(year):
    return year % 4 == 0<%e1: and (year % 100 != 0 or year % 400 == 0)||%>


def days(<%d:year, month, day||day, month, year%>):
    <%e2:if month < 1 or month > 12:
        return None
    %%>whole = sum(366 if leap(past) else 365 for past in range(1900, year))
    return whole + sum(LENGTH[:month - 1]) + (leap(year) and month > 2) + day - 1
""",
            "week.py": """
NAMES = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()


def name(<%n:days||number%>):
    return NAMES[<%n:days % 7||number - 1%>]
""",
            "main.py": """
import sys

import dates
import week


def main(argv):
    year, month, day = (int(part) for part in argv[0].split("-"))
    days = dates.days(<%d:year, month, day||day, month, year%>)
    print("no such day" if days is None else week.name(<%n:days||days % 7 + 1%>))
""",
        },
        "edges": {"e1": "main.py 1900-03-01 -> Thursday", "e2": "main.py 2024-13-01 -> no such day"},
        "tests": ["main.py 2024-03-01 -> Friday"],
        "hidden": ["main.py 1900-01-01 -> Monday", "main.py 2000-02-29 -> Tuesday", "main.py 2100-03-01 -> Monday", "main.py 1999-00-10 -> no such day",
                   "main.py 2026-11-27 -> Friday"],
    },
    {
        "id": "cipher",
        "asks": "`main.py 3 hello` prints every letter of the words shifted by 3 places of the alphabet: `khoor`.",
        "requirements": ["Other signs than small letters stay as they are."],
        "design": {
            "l": "shift.letter(letter, places) -> letter",
            "t": "words.through(word, step) -> word, where step(letter) gives a letter",
        },
        "files": {
            "shift.py": """
def letter(<%l:letter, places||places, letter%>):
    if not "a" <= letter <= "z":
        return letter
    return chr((ord(letter) - ord("a") + places) % 26 + ord("a"))
""",
            "words.py": """
def through(<%t:word, step||step, word%>):
    return "".join(step(letter) for letter in word)
""",
            "main.py": """
import sys

import shift
import words


def main(argv):
    places = int(argv[0])

    def step(letter):
        return shift.letter(<%l:letter, places||places, letter%>)

    print(" ".join(words.through(<%t:word, step||step, word%>) for word in argv[1:]))
""",
        },
        "tests": ["main.py 3 hello -> khoor"],
        "hidden": ["main.py 1 xyz -> yza", "main.py -1 abc -> zab", "main.py 26 same -> same", "main.py 2 A-b c! -> A-d e!"],
        "blind": "t",
    },
    {
        "id": "grades",
        "asks": "`main.py ann:1,2,3 bob:2` prints the mean mark of every pupil with one decimal: `ann 2.0`, `bob 2.0`.",
        "requirements": ["Means are rounded to tenths, half up."],
        "design": {
            "r": "marks.read(argument) -> (name, list of marks)",
            "m": "mean.tenths(marks) -> whole tenths, or None without marks",
        },
        "malformed": True,
        "files": {
            "marks.py": """
def read(argument):
    name, marks = argument.split(":")
    numbers = [int(mark) for mark in marks.split(",")<%e2: if mark.strip("x")||%>]
    return <%r:name, numbers||numbers, name%>
""",
            "mean.py": """
def tenths(marks):
    <%e1:if not marks:
        return None
    %%>found = (sum(marks) * 20 + len(marks)) // (2 * len(marks))
    return <%m:found||found / 10%>
""",
            "main.py": """
import sys

import marks
import mean


def main(argv):
    for argument in argv:
        <%r:name, found||found, name%> = marks.read(argument)
        tenths = mean.tenths(found)
        print(name, "none" if tenths is None else <%m:f"{tenths // 10}.{tenths % 10}"||f"{tenths:.1f}"%>)
""",
        },
        "edges": {"e1": "main.py eve:x -> eve none", "e2": "main.py fay:1,x,3 -> fay 2.0"},
        "tests": ["main.py ann:1,2,3 bob:2 -> ann 2.0 / bob 2.0"],
        "hidden": ["main.py a:1,2 -> a 1.5", "main.py a:1,1,2 -> a 1.3", "main.py a:x,x b:4 -> a none / b 4.0", "main.py c:x,5 -> c 5.0",
                   "main.py d:1,2,2 -> d 1.7"],
    },
    {
        "id": "tickets",
        "asks": "`main.py adult:2 child:3` prints the price of tickets in a basket: `26.00` (adults 8.50, children 3.00).",
        "requirements": ["Prices are worked out without rounding."],
        "design": {
            "o": "prices.of(kind) -> whole cents",
            "b": "basket.read(arguments) -> list of (number, kind)",
            "t": "basket.total(basket, price) -> the sum of number times price(kind)",
        },
        "malformed": True,
        "files": {
            "prices.py": """
def of(kind):
    return {"adult": <%o:850||8.5%>, "child": <%o:300||3.0%>}[kind]
""",
            "basket.py": """
def read(arguments):
    found = []
    for argument in arguments:
        kind, number = argument.split(":")
        found.append((int(number), kind))
    return found


def total(<%t:basket, price||price, basket%>):
    return sum(number * price(kind) for number, kind in basket)
""",
            "text.py": """
def amount(<%o:cents||euros%>):
    return <%o:f"{cents // 100}.{cents % 100:02d}"||f"{euros:.2f}"%>
""",
            "main.py": """
import sys

import basket
import prices
import text


def main(argv):
    found = basket.read(argv)
    print(text.amount(basket.total(<%t:found, prices.of||prices.of, found%>)))
""",
        },
        "tests": ["main.py adult:2 child:3 -> 26.00"],
        "hidden": ["main.py adult:1 -> 8.50", "main.py child:1 child:1 -> 6.00", "main.py adult:0 -> 0.00", "main.py child:10 adult:10 -> 115.00"],
        "whole": True,
    },
    {
        "id": "table",
        "asks": "`main.py a,b 1,22` prints a table with columns of equal width, joined by `|`: `a|b_`, `1|22`, filled with `_`. cells.read(argument) gives a list of cells, width.of(rows) a list of widths.",
        "requirements": ["Every row has the same number of cells."],
        "design": {"r": "cells.read(argument) -> list of cells", "w": "width.of(rows) -> list of widths"},
        "files": {
            "cells.py": """
def read(argument):
    return argument.split(",")
""",
            "width.py": """
def of(rows):
    return [max(len(cell) for cell in column) for column in zip(*rows)]
""",
            "main.py": """
import sys

import cells
import width


def main(argv):
    rows = [cells.read(argument) for argument in argv]
    widths = width.of(rows)
    for row in rows:
        print("|".join(cell.ljust(size, "_") for cell, size in zip(row, widths)))
""",
        },
        "free": True,
        "tests": ["main.py a,b 1,22 -> a|b_ / 1|22"],
        "hidden": ["main.py one -> one", "main.py x,yy,z 1,2,333 -> x|yy|z__ / 1|2_|333", "main.py ab a b -> ab / a_ / b_"],
    },
    {
        "id": "league",
        "asks": "`main.py reds-blues:2-1 blues-greens:3-0` prints the table of a league, the best first, with points: `blues 3`, `reds 3`, `greens 0`. A win counts 3 points.",
        "requirements": ["Teams with as many points are in order of the alphabet."],
        "design": {
            "r": "results.read(argument) -> (home, away, goals home, goals away)",
            "p": "points.of(results) -> dictionary of points, team to number",
        },
        "files": {
            "results.py": """
def read(argument):
    teams, goals = argument.split(":")
    home, away = teams.split("-")
    first, second = (int(number) for number in goals.split("-"))
    return <%r:home, away, first, second||(home, first), (away, second)%>
""",
            "points.py": """
def of(results):
    found = {}
    for result in results:
        <%r:home, away, first, second||(home, first), (away, second)%> = result
        for team, own, other in [(home, first, second), (away, second, first)]:
            found[team] = found.get(team, 0) + (3 if own > other else <%e1:own == other||0%>)
    return <%p:found||sorted((number, team) for team, number in found.items())%>
""",
            "main.py": """
import sys

import points
import results


def main(argv):
    found = points.of([results.read(argument) for argument in argv])
    <%p:rows = [(-number, team) for team, number in found.items()]||rows = [(-number, team) for number, team in found]%>
    for number, team in sorted(rows):
        print(team, -number)
""",
        },
        "edges": {"e1": "main.py a-b:1-1 -> a 1 / b 1"},
        "untested": True,
        "tests": ["main.py reds-blues:2-1 blues-greens:3-0 -> blues 3 / reds 3 / greens 0"],
        "hidden": ["main.py z-a:0-0 a-z:1-0 -> a 4 / z 1", "main.py x-y:0-4 -> y 3 / x 0", "main.py a-b:1-0 b-a:1-0 -> a 3 / b 3"],
    },
    {
        "id": "bank",
        "asks": "`main.py ann:100 bob:50 ann>bob:30` opens accounts, moves money and prints them: `ann 70`, `bob 80`.",
        "requirements": ["Accounts are printed in order of the alphabet."],
        "design": {
            "r": "moves.read(argument) -> (giver or None, taker, amount)",
            "m": "accounts.move(accounts, giver, taker, amount) -> the new accounts, a dictionary",
        },
        "files": {
            "moves.py": """
def read(argument):
    who, amount = argument.split(":")
    giver, taker = who.split(">") if ">" in who else (None, who)
    return <%r:giver, taker, int(amount)||int(amount), taker, giver%>
""",
            "accounts.py": """
def move(<%m:accounts, giver, taker, amount||amount, giver, taker, accounts%>):
    new = dict(accounts)
    <%e1:if giver is not None and new.get(giver, 0) < amount:
        return new
    %%>if giver is not None:
        new[giver] = new.get(giver, 0) - amount
    new[taker] = new.get(taker, 0) + amount
    return new
""",
            "main.py": """
import sys

import accounts
import moves


def main(argv):
    known = {}
    for argument in argv:
        <%r:giver, taker, amount||amount, taker, giver%> = moves.read(argument)
        known = accounts.move(<%m:known, giver, taker, amount||amount, giver, taker, known%>)
    for name in sorted(known):
        print(name, known[name])
""",
        },
        "edges": {"e1": "main.py ann:10 bob:0 ann>bob:30 -> ann 10 / bob 0"},
        "untested": True,
        "tests": ["main.py ann:100 bob:50 ann>bob:30 -> ann 70 / bob 80"],
        "hidden": ["main.py b:1 a:1 b>a:1 -> a 2 / b 0", "main.py a:5 b:5 a>b:6 b>a:5 -> a 10 / b 0", "main.py q:3 -> q 3"],
        "blind": "e1",
    },
]


def keys_of(template):
    return sorted(set(re.findall(r"<%(\w+):", template)))


def render(template, choice):
    """The text with a choice (0 or 1) for each key; `%%>` at a key's end means: otherwise nothing, and the rest of the line goes on."""

    def pick(found):
        right, otherwise = found.group(2), found.group(3) or ""
        return otherwise if choice.get(found.group(1), 0) else right

    return re.sub(r"<%(\w+):(.*?)(?:\|\|(.*?))?%%?>", pick, template, flags=re.S)


def file_text(program, path, choice, notes=True):
    """A file. Its first lines name the edge cases that it handles and, if it is wholly right, the interfaces that it keeps to."""
    template = program["files"][path]
    keys = keys_of(template)
    right = notes and not program.get("free") and not any(choice.get(key, 0) for key in keys)
    known = {**program["design"], **program.get("edges", {})}
    kept = [key for key in keys if not choice.get(key, 0) and (right or key.startswith("e"))]
    text = render(template, choice).strip() + "\n"
    return "".join(f"# {known[key]}\n" for key in kept) + text + (TAIL if path == "main.py" else "")


def joined(files):
    return "\n".join(f"### {path}\n{text}" for path, text in files.items())


def wrong_files(program, path):
    """Planted wrong versions of a file, from right names without a note of it to other interfaces and edge cases that are forgotten."""
    keys = keys_of(program["files"][path])
    edges = [key for key in keys if key.startswith("e")]
    interfaces = [] if program.get("free") else [key for key in keys if not key.startswith("e")]
    found = []
    for forgotten in itertools.product([1, 0], repeat=len(edges)):
        if any(forgotten):
            found.append(file_text(program, path, dict(zip(edges, forgotten))))
    none = dict.fromkeys(edges, 1)
    if interfaces:
        if not edges:
            found.append(file_text(program, path, {}, notes=False))
        found.append(file_text(program, path, {**dict.fromkeys(interfaces, 1), **none}))
        if len(interfaces) > 1:
            found += [file_text(program, path, {key: 1, **none}) for key in interfaces]
    return [text for text in dict.fromkeys(found) if text != file_text(program, path, {})]


def needs(texts):
    return [{"finds": text} for text in texts]


def row_of(program, rng):
    design, edges = program["design"], program.get("edges", {})
    tested = {} if program.get("untested") else edges
    paths = list(program["files"])
    right = {path: file_text(program, path, {}) for path in paths}
    lines = list(design.values())
    first = [line.split(" -> ")[0] for line in lines]
    visible = program["tests"] + list(tested.values())
    part = {
        "requirements": {"gold": "\n".join([program["asks"], *program["requirements"]])},
        "design": {
            "gold": "\n".join(lines),
            "wrong": ["\n".join(first if program.get("malformed") else lines[1:])],
            "plan": needs(program["requirements"] + ([f"{first[0]}: say what it returns"] if program.get("malformed") else [])),
        },
        "files": {"gold": "\n".join(paths)},
        "tests": {"gold": "\n".join(visible), "wrong": ["\n".join(program["tests"])], "plan": needs(program["requirements"])},
    }
    for path in paths:
        keys = keys_of(program["files"][path])
        wanted = [] if program.get("free") else [design[key] for key in keys if key in design]
        part[path] = {"gold": right[path], "wrong": wrong_files(program, path), "plan": needs(wanted + [edges[key] for key in keys if key in edges])}
    # What a team of its own thinks of: some interfaces and some edge cases.
    insights = ([] if program.get("free") else lines) + list(edges.values())
    known = {**design, **edges}
    unthought = known.get(program.get("blind"))
    thought = [line for line in insights if line != unthought]
    rng.shuffle(thought)
    missed = [{thought[(start + step) % len(thought)] for step in range(len(thought) // 2)} for start in range(len(thought))]
    partial = ["\n".join("..." if line in less or line == unthought else line for line in insights) for less in missed] or ["\n".join(lines)]
    if program.get("whole"):
        partial.append("\n".join(insights))
    part["proposal"] = {"gold": "\n".join(lines + list(edges.values())), "wrong": partial, "plan": needs(["all that any team could think of"])}
    part["agreed design"] = {"gold": "\n".join(lines + list(edges.values())), "wrong": partial, "plan": needs(insights)}
    flawed = dict.fromkeys(edges, 1)
    whole = [joined({path: file_text(program, path, flawed) for path in paths})] if edges else []
    for key in edges:
        if len(edges) > 1:
            whole.append(joined({path: file_text(program, path, {key: 1}) for path in paths}))
    interfaces = [] if program.get("free") else list(design)
    for key in interfaces:
        for path in paths:
            if path != "main.py" and key in keys_of(program["files"][path]):
                whole.append(joined({other: file_text(program, other, {key: 1} if other == path else {}) for other in paths}))
    row = {
        "id": program["id"],
        "question": f"Write a program of the files {', '.join(paths)}. {program['asks']} main.py defines main(argv), which prints, and calls it when it is started.",
        "answer": joined(right),
        "wrong": whole,
        "plan": needs(edges.values()),
        "acceptance": "\n".join(program["hidden"]),
        "parts": part,
    }
    return row

# Programs that grow: what is worked out about numbers, with the value for none of them, by the name of the component.
MEASURES = {
    "gap": ("the largest gap between neighbours", "return max((abs(b - a) for a, b in zip(numbers, numbers[1:])), default=0)"),
    "even": ("how many are even", "return sum(1 for number in numbers if number % 2 == 0)"),
    "squares": ("the sum of the squares", "return sum(number * number for number in numbers)"),
    "kinds": ("how many different ones there are", "return len(set(numbers))"),
    "digits": ("the sum of all digits", "return sum(int(digit) for number in numbers for digit in str(number))"),
    "primes": ("how many are prime", "return sum(1 for n in numbers if n > 1 and all(n % d for d in range(2, n)))"),
    "rising": ("how many are above the one before", "return sum(1 for a, b in zip(numbers, numbers[1:]) if b > a)"),
    "waves": ("the sum with changing signs, plus first", "return sum(numbers[::2]) - sum(numbers[1::2])"),
    "large": ("how many are above 9", "return sum(1 for number in numbers if number > 9)"),
    "total": ("the sum", "return sum(numbers)"),
    "odd": ("how many are odd", "return sum(1 for number in numbers if number % 2)"),
    "threes": ("how many can be divided by 3", "return sum(1 for number in numbers if number % 3 == 0)"),
    "fives": ("how many can be divided by 5", "return sum(1 for number in numbers if number % 5 == 0)"),
    "sevens": ("how many can be divided by 7", "return sum(1 for number in numbers if number % 7 == 0)"),
    "small": ("how many are below 5", "return sum(1 for number in numbers if number < 5)"),
    "high": ("how many are above 19", "return sum(1 for number in numbers if number > 19)"),
    "cubes": ("the sum of the cubes", "return sum(number ** 3 for number in numbers)"),
    "falling": ("how many are below the one before", "return sum(1 for a, b in zip(numbers, numbers[1:]) if b < a)"),
    "level": ("how many are equal to the one before", "return sum(1 for a, b in zip(numbers, numbers[1:]) if b == a)"),
    "ones": ("how many digits are 1", "return sum(str(number).count('1') for number in numbers)"),
    "twos": ("how many digits are 2", "return sum(str(number).count('2') for number in numbers)"),
    "long": ("how many have two digits", "return sum(1 for number in numbers if number > 9)"),
    "walk": ("the sum of the gaps between neighbours", "return sum(abs(b - a) for a, b in zip(numbers, numbers[1:]))"),
    "twice": ("how many occur again later", "return sum(1 for at, number in enumerate(numbers) if number in numbers[at + 1 :])"),
    "lone": ("how many occur once", "return sum(1 for number in numbers if numbers.count(number) == 1)"),
    "ends": ("how many end in 0", "return sum(1 for number in numbers if number % 10 == 0)"),
    "halves": ("the sum of the halves, rounded down", "return sum(number // 2 for number in numbers)"),
    "span": ("the largest minus the smallest", "return max(numbers) - min(numbers)"),
    "middle": ("the middle one in order, of two the smaller", "return sorted(numbers)[(len(numbers) - 1) // 2]"),
    "peak": ("the place of the largest, from 1", "return numbers.index(max(numbers)) + 1"),
}
EDGES = ["span", "middle", "peak"]
VERBS = ["of", "work", "find", "take"]


def measure(name, verb, edge=True, inside=""):
    """The function of a component; `edge`: whether it knows what to do without numbers."""
    said, code = MEASURES[name]
    guard = ["    if not numbers:", "        return 0"] if name in EDGES and edge else []
    return "\n".join([f"def {inside}{verb}(numbers):", f'    """Gives {said}."""', *guard, f"    {code}"]) + "\n"


MAIN = "def main(argv):\n    numbers = [int(number) for number in argv]\n"


def growing(level, number, rng):
    """A program of an agent (level 0) that has three children (1), who have three each (2), who have three each (3)."""
    count = 3 ** level
    names = rng.sample([name for name in MEASURES if name not in EDGES], count - 1) + [rng.choice(EDGES)]
    rng.shuffle(names)
    verb = {name: rng.choice(VERBS) for name in names}
    test = "main.py -> " + " / ".join(f"{name} 0" for name in names)
    parts, files = {}, {}

    def component(name, asked):
        """A file of one function; a wrong one has another name or forgets the case without numbers."""
        edge = name in EDGES
        other = VERBS[(VERBS.index(verb[name]) + 1) % len(VERBS)]
        wrong = [measure(name, verb[name], edge=False) if edge else measure(name, other)]
        add(f"{name}.py", measure(name, verb[name]), wrong, [asked] + [test] * edge)

    def add(path, gold, wrong, wanted):
        files[path] = gold
        parts[path] = {"gold": gold, "wrong": wrong, "plan": needs(wanted)}

    def skeleton(path, inner, asked, depth):
        """A file that calls three components, which are then written; it says what each of them must give."""
        if depth == 1:
            called = {name: f"{name}.{verb[name]}(numbers)" for name in inner}
            line = {name: f"{called[name]} -> {MEASURES[name][0]}" for name in inner}
            shown = [f'f"{name} {{{called[name]}}}"' for name in inner]
        else:
            third = len(inner) // 3
            stem = "group" if path == "main.py" else path[:-3] + "_"
            groups = {f"{stem}{at + 1}": inner[at * third : (at + 1) * third] for at in range(3)}
            line = {name: f"{name}.lines(numbers) -> lines `name value` of {', '.join(group)}" for name, group in groups.items()}
            shown = [f"*{name}.lines(numbers)" for name in groups]
        head = "".join(f"# {text}\n" for text in line.values()) + "".join(f"import {name}\n" for name in line)

        def code(name):
            rows = "".join(f"        {text},\n" for text in shown)
            if path != "main.py":
                return f"{head}\n\ndef {name}(numbers):\n    return [\n{rows}    ]\n"
            return f"{head}import sys\n\n\n{MAIN}    for line in [\n{rows}    ]:\n        print(line)\n{TAIL}"

        add(path, code("lines"), [] if path == "main.py" else [code("report")], [asked] if asked else [])
        for name in line:
            if depth == 1:
                component(name, line[name])
            else:
                skeleton(f"{name}.py", groups[name], line[name], depth - 1)

    def alone(edge=True):
        functions = [measure(name, verb[name], edge, f"{name}_") for name in names]
        printed = "".join(f'    print("{name}", {name}_{verb[name]}(numbers))\n' for name in names)
        return "import sys\n\n\n" + "\n\n".join(functions) + "\n\n" + MAIN + printed + TAIL

    if level == 0:
        add("main.py", alone(), [alone(edge=False)], [test])
    else:
        skeleton("main.py", names, None, level)
    parts["whole"] = {"gold": f"### main.py\n{alone()}", "wrong": [f"### main.py\n{alone(edge=False)}"], "plan": needs([test])}
    row = {
        "id": f"{number}-of-{count}",
        "question": "Write a program, main.py, that is given whole numbers as arguments and prints lines `name value`: "
        + "; ".join(f"{name}, {MEASURES[name][0]}" for name in names)
        + ". main.py defines main(argv), which prints, and calls it when it is started.",
        "answer": joined(files),
        "wrong": parts["whole"]["wrong"],
        "plan": needs([test]),
        "parts": parts,
    }
    return row, alone(), test


def grown(level, number, rng, checker):
    """A growing program with its tests, whose right results are those of the two ways to write it."""
    row, alone, test = growing(level, number, rng)
    arguments = [[rng.randint(0, 30) for _ in range(rng.randint(1, 8))] for _ in range(6)] + [[]]
    cases = [([str(one) for one in argv], "") for argv in arguments]
    said, same = checker.printed([checker.files_of(row["answer"]), {"main.py": alone}], cases)
    assert said == same, (row["id"], said, same)
    lines = [f"main.py {' '.join(argv)} -> {result}".replace("  ", " ") for (argv, _), result in zip(cases, said)]
    assert lines[-1] == test, (lines[-1], test)
    row["acceptance"] = "\n".join(lines[1:])
    row["parts"]["tests"] = {"gold": "\n".join([lines[0], test])}
    assert checker.check(row, row["answer"])["passed"] and not checker.check(row, row["wrong"][0])["passed"], row["id"]
    for path in row["parts"]:
        for wrong in row["parts"][path].get("wrong", []) if path.endswith(".py") else []:
            text = joined({**checker.files_of(row["answer"]), path: wrong})
            assert not checker.check(row, text)["passed"], (row["id"], path, wrong)
    return row



def faults_of(program, row):
    """The program with one planted fault each: an edge case that is forgotten, or a file that keeps to another interface than the design says."""
    design, edges = program["design"], program.get("edges", {})
    rows = []

    def add(key, path, line):
        broken = joined({other: file_text(program, other, {key: 1} if other == path else {}, notes=False) for other in program["files"]})
        remark = f"{path} does not keep to this: {line}"
        rows.append({
            "id": f"{program['id']}-{path[:-3]}-{key}",
            "question": f"This program should do the following, but does not always. {program['asks']}",
            "broken": broken,
            "design": "\n".join(design.values()),
            "tests": row["parts"]["tests"]["gold"],
            "answer": row["answer"],
            "wrong": [broken],
            "plan": needs([line]),
            "acceptance": row["acceptance"],
            "parts": {"remark": {"gold": remark, "wrong": ["Nothing to remark."], "plan": needs([line])}},
        })

    places = [(key, path) for path, template in program["files"].items() for key in keys_of(template)]
    for key, path in [(key, path) for key, path in places if key in edges]:
        add(key, path, edges[key])
    for key, path in [(key, path) for key, path in places if key in design and path != "main.py" and not program.get("free")][:2]:
        add(key, path, design[key])
    return rows


def load_checker():
    def execute(files, main, arguments=(), seconds=5):
        with tempfile.TemporaryDirectory() as folder:
            for path, text in files.items():
                (Path(folder) / path).parent.mkdir(exist_ok=True)
                (Path(folder) / path).write_text(text)
            done = subprocess.run([sys.executable, main, *arguments], cwd=folder, capture_output=True, text=True, timeout=seconds)
            return done.returncode, done.stdout + done.stderr

    def files_of(text):
        found = re.split(r"^### (.*)\n", text, flags=re.M)[1:]
        return {path.strip(): body for path, body in zip(found[::2], found[1::2])}

    spec = importlib.util.spec_from_file_location("check", OUT / "check.py")
    checker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(checker)
    checker.execute, checker.files_of = execute, files_of
    return checker


def proof(program, row, checker):
    """The right program passes all tests; so do other interfaces that all files share; each planted wrong decision fails a test that should notice it."""
    name = program["id"]
    assert checker.check(row, row["answer"])["passed"], (name, checker.check(row, row["answer"]))
    passed, said = checker.run_tests(row, row["answer"], row["parts"]["tests"]["gold"])
    assert passed, (name, said)
    if not program.get("free"):
        other = dict.fromkeys(program["design"], 1)
        text = joined({path: file_text(program, path, other) for path in program["files"]})
        assert checker.check(row, text)["passed"], (name, "other interfaces", checker.check(row, text))
    for text in row["wrong"]:
        assert not checker.check(row, text)["passed"], (name, text)
    for key, test in program.get("edges", {}).items():
        text = joined({path: file_text(program, path, {key: 1}) for path in program["files"]})
        passed, said = checker.run_tests(row, text, row["parts"]["tests"]["gold"])
        assert program.get("untested", False) == passed and (passed or test in said), (name, key, said)
        assert not checker.check(row, text)["passed"], (name, key)
    assert checker.form(row, row["parts"]["design"]["gold"])[0], name


def main():
    rng = random.Random(20261127)
    rows = [row_of(program, rng) for program in PROGRAMS]
    checker = load_checker()
    for program, row in zip(PROGRAMS, rows):
        proof(program, row, checker)
    OUT.mkdir(parents=True, exist_ok=True)
    sets = {"programs": rows, "faults": [fault for program, row in zip(PROGRAMS, rows) for fault in faults_of(program, row)]}
    for fault in sets["faults"]:
        assert not checker.check(fault, fault["broken"])["passed"], fault["id"]
    for level, name in [(0, "small"), (1, "middle"), (3, "large")]:
        sets[name] = [grown(level, number, rng, checker) for number in range(1, 6)]
    for name, rows in sets.items():
        (OUT / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


if __name__ == "__main__":
    main()
