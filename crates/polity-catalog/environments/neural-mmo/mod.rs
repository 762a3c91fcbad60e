//! A tile world of hunger, thirst and combat in which agents die and are born, as in Neural MMO. See README.md.

mod map;
#[cfg(test)]
mod tests;

use crate::grid::{Cell, EAST, NORTH, SOUTH, Size, WEST, Way, declare_cells};
use map::Tile;
use polity_kernel::Invalid;
use polity_kernel::environment::{DeclareEnvironment, Environment, Move, Seat, StepResult};
use polity_kernel::interface::{ActionArgument, NumberSlot, TextSlot};
use polity_kernel::items::Item;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::world::{ObservationRow, WorldSetup};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.environment::<NeuralMmo>(files);
}

/// The ways, in the order of the actions after `stay`.
const WAYS: [Way; 4] = [NORTH, SOUTH, WEST, EAST];
const MOVES: [(&str, &str); 5] =
    [("stay", "stay"), ("up", "go up"), ("down", "go down"), ("left", "go to the left"), ("right", "go to the right")];
const ATTACKS: [Attack; 3] = [
    Attack {
        name: "melee",
        range: 1,
        damage: 10,
        freezes: false,
        doc: "attack an agent at most 1 cell away: 10 damage",
    },
    Attack {
        name: "throw",
        range: 2,
        damage: 2,
        freezes: false,
        doc: "attack an agent at most 2 cells away: 2 damage",
    },
    Attack {
        name: "freeze",
        range: 3,
        damage: 1,
        freezes: true,
        doc: "attack an agent at most 3 cells away: 1 damage, and it cannot move for 2 steps",
    },
];
/// The most food and water, and what a tile yields.
const FULL: u8 = 32;
const YIELD: u8 = 5;
const HEALTHY: u8 = 10;
/// Steps of a life in which attacks do no damage.
const IMMUNE: u32 = 15;
/// The value of `frozen` after an attack that freezes.
const FREEZE: u8 = 3;
/// The probability that food grows again in a step.
const GROWTH: f64 = 0.025;
/// Rows and columns of the regions that a metric counts.
const REGIONS: u8 = 4;

/// A kind of attack.
struct Attack {
    name: &'static str,
    /// The most columns, and the most rows, between the attacker and its target.
    range: u8,
    damage: u8,
    freezes: bool,
    doc: &'static str,
}

/// Parameters of an episode.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// The rows of the map, 3 to 64 of 3 to 64 characters: `.` for grass, `o` for grass on which lives begin, `f` for a forest with food, `w`
    /// for water, `s` for stone, `x` for lava, which kills. Empty: a map is drawn for each episode.
    map: Vec<String>,
    /// Rows and columns of a drawn map, with a border of lava; 8 to 64.
    size: u8,
    /// Agents of an episode; 1 to 256.
    players: u16,
    /// Populations of equal size, which follow each other in the order of seats. Agents see who is of their own.
    populations: u16,
    /// How many agents share each copy of the map, in the order of seats. They meet no others. Empty: all share one.
    servers: Vec<u16>,
    /// How many lives begin in a step on each server, if as many wait; 1 to 256.
    births: u16,
    /// The step after which all lives end, and all agents share one copy of the map from then on. 0: never.
    merge: u32,
    /// Whether agents can attack.
    combat: bool,
    /// How many columns and rows away an agent sees; 1 to 7.
    sight: u8,
    /// Steps after which an episode is cut; 1 to 10,000,000.
    steps: u32,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            map: Vec::new(),
            size: 20,
            players: 16,
            populations: 1,
            servers: Vec::new(),
            births: 1,
            merge: 0,
            combat: true,
            sight: 3,
            steps: 1_000,
        }
    }
}

/// A tile world.
pub struct NeuralMmo {
    params: Params,
    size: Size,
    /// The map, if it is always the same.
    tiles: Option<Vec<Tile>>,
    /// The numbers about the cells in sight, channel by channel, each column by column.
    window: Vec<NumberSlot>,
    /// The server of each seat, before servers merge.
    servers: Vec<usize>,
    view: TextSlot,
}

/// What is seen of each cell.
const CHANNELS: [(&str, &str); 6] = [
    ("food", "1 if there is food in this cell"),
    ("water", "1 if this cell is water"),
    ("stone", "1 if this cell is stone"),
    ("lava", "1 if this cell is lava, or beyond the map"),
    ("agents", "other agents in this cell"),
    ("kin", "other agents of the agent's population in this cell"),
];

/// An agent who is alive.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Player {
    at: Cell,
    food: u8,
    water: u8,
    health: u8,
    /// Steps of its life so far.
    age: u32,
    /// Counts down to 0 with each step. The agent cannot move in the next step if it is above 1.
    frozen: u8,
}

/// Random outcomes of the next step on a server: the indices of the cells where lives begin, and of the forests where food grows if there is none,
/// in order.
type Luck = (Vec<u16>, Vec<u16>);

/// The state of an episode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Realm {
    tiles: Vec<Tile>,
    /// For each server the forests without food, in order.
    bare: Vec<Vec<u16>>,
    /// The agents who are alive, by seat.
    players: Vec<Option<Player>>,
    /// The seats of those who are alive, the oldest first. They act in this order.
    order: Vec<u16>,
    /// The seats of the others, in the order in which they will live again.
    waiting: Vec<u16>,
    /// Whether the last step ended the life of each.
    died: Vec<bool>,
    /// How many lives each has begun, and its steps in them, since the start or the merging of servers.
    lives: Vec<u32>,
    lived: Vec<u32>,
    luck: Vec<Luck>,
    steps: u32,
}

impl Realm {
    fn player(&self, seat: Seat) -> Option<&Player> {
        self.players[seat as usize].as_ref()
    }
}

impl NeuralMmo {
    /// Returns whether all agents share one server.
    fn is_merged(&self, realm: &Realm) -> bool {
        self.params.merge > 0 && realm.steps >= self.params.merge
    }

    /// Returns the number of servers.
    fn servers(&self) -> usize {
        self.params.servers.len().max(1)
    }

    /// Returns the server of a seat.
    fn server(&self, realm: &Realm, seat: u16) -> usize {
        if self.is_merged(realm) { 0 } else { self.servers[usize::from(seat)] }
    }

    fn population(&self, seat: u16) -> u16 {
        seat / (self.params.players / self.params.populations)
    }

    fn tile(&self, realm: &Realm, cell: Cell) -> Tile {
        realm.tiles[self.size.index(cell)]
    }

    fn luck(&self, tiles: &[Tile], draws: &mut Draws) -> Vec<Luck> {
        let of = |tile: Tile| (0u16..).zip(tiles).filter(move |(_, found)| **found == tile).map(|(index, _)| index);
        let (starts, forests): (Vec<u16>, Vec<u16>) = (of(Tile::Start).collect(), of(Tile::Forest).collect());
        let on_server = |_| {
            let begin = (0..self.params.births).map(|_| starts[draws.below(starts.len() as u64) as usize]).collect();
            // Skips those that do not grow.
            let mut skip = || (draws.exponential(-libm::log1p(-GROWTH)) as usize).min(forests.len());
            let (mut grow, mut next) = (Vec::new(), skip());
            while let Some(forest) = forests.get(next) {
                grow.push(*forest);
                next += 1 + skip();
            }
            (begin, grow)
        };
        (0..self.servers()).map(on_server).collect()
    }

    /// Returns all seats in a random order.
    fn shuffled(&self, draws: &mut Draws) -> Vec<u16> {
        let mut seats: Vec<u16> = (0..self.params.players).collect();
        draws.shuffle(&mut seats);
        seats
    }

    /// Begins lives on each server that has someone who waits.
    fn spawn(&self, realm: &mut Realm) {
        for (server, (starts, _)) in std::mem::take(&mut realm.luck).into_iter().enumerate() {
            for start in starts {
                let Some(first) = realm.waiting.iter().position(|seat| self.server(realm, *seat) == server) else {
                    break;
                };
                let seat = realm.waiting.remove(first);
                let at = self.size.cell(usize::from(start));
                let new = Player { at, food: FULL, water: FULL, health: HEALTHY, age: 0, frozen: 0 };
                realm.players[usize::from(seat)] = Some(new);
                realm.lives[usize::from(seat)] += 1;
                realm.order.push(seat);
            }
        }
    }

    fn grow(realm: &mut Realm) {
        for (bare, (_, grow)) in realm.bare.iter_mut().zip(&realm.luck) {
            bare.retain(|forest| grow.binary_search(forest).is_err());
        }
    }

    /// Returns the agent that an attack hits: the nearest on the same server, or the oldest of several that are equally near.
    fn target(&self, realm: &Realm, seat: u16, range: u8) -> Option<u16> {
        let own = realm.player(u32::from(seat))?.at;
        let server = self.server(realm, seat);
        let away = |other: &u16| {
            let at = realm.player(u32::from(*other))?.at;
            let far = own.x.abs_diff(at.x).max(own.y.abs_diff(at.y));
            let is_target = *other != seat && far <= range && self.server(realm, *other) == server;
            is_target.then_some((far, *other))
        };
        // Of equals `min_by_key` returns the first.
        realm.order.iter().filter_map(away).min_by_key(|(far, _)| *far).map(|(_, other)| other)
    }

    /// Lets an agent live through a step: it gathers food and water and uses some. Returns whether it is alive then.
    fn live(&self, realm: &mut Realm, seat: u16, server: usize) -> bool {
        let Realm { players, tiles, bare, .. } = realm;
        let Some(player) = &mut players[usize::from(seat)] else { return false };
        if player.health == 0 {
            return false;
        }
        player.frozen = player.frozen.saturating_sub(1);
        let here = self.size.index(player.at);
        if tiles[here] == Tile::Lava {
            return false;
        }
        if tiles[here] == Tile::Forest
            && let Err(place) = bare[server].binary_search(&(here as u16))
        {
            bare[server].insert(place, here as u16);
            player.food = FULL.min(player.food + YIELD);
        }
        if self.size.around(player.at, &WAYS).any(|cell| tiles[self.size.index(cell)] == Tile::Water) {
            player.water = FULL.min(player.water + YIELD);
        }
        if player.food > FULL / 2 && player.water > FULL / 2 {
            player.health = HEALTHY.min(player.health + 1);
        }
        for need in [&mut player.water, &mut player.food] {
            *need = need.saturating_sub(1);
            player.health = player.health.saturating_sub(u8::from(*need == 0));
        }
        player.age += 1;
        player.health > 0
    }

    /// Performs an action of an agent.
    fn act(&self, realm: &mut Realm, seat: u16, action: usize, target: Option<u16>) {
        let Some(mut player) = realm.players[usize::from(seat)] else { return };
        if let Some(way) = action.checked_sub(1).and_then(|way| WAYS.get(way)) {
            let to = self.size.beside(player.at, *way);
            let to = to.filter(|cell| player.frozen == 0 && self.tile(realm, *cell).is_passable());
            player.at = to.unwrap_or(player.at);
        }
        let attack = action.checked_sub(MOVES.len()).and_then(|attack| ATTACKS.get(attack));
        if let Some((attack, target)) = attack.zip(target)
            && let Some(other) = &mut realm.players[usize::from(target)]
        {
            if other.age >= IMMUNE {
                other.health = other.health.saturating_sub(attack.damage);
            }
            for (need, of) in [(&mut player.food, &mut other.food), (&mut player.water, &mut other.water)] {
                *of = of.saturating_sub(attack.damage);
                *need = FULL.min(*need + attack.damage);
            }
            if attack.freezes {
                other.frozen = FREEZE;
            }
        }
        realm.players[usize::from(seat)] = Some(player);
    }

    /// Ends all lives, and gives all agents one server.
    fn merge(&self, realm: &mut Realm, draws: &mut Draws) {
        for (died, player) in realm.died.iter_mut().zip(&mut realm.players) {
            *died |= player.take().is_some();
        }
        realm.order.clear();
        realm.waiting = self.shuffled(draws);
        realm.bare.iter_mut().for_each(Vec::clear);
        realm.lives.fill(0);
        realm.lived.fill(0);
    }

    fn declare(declare: &mut DeclareEnvironment<Self>, params: &Params, size: Size) {
        let of = |read: fn(&Player) -> f64| {
            move |_: &NeuralMmo, realm: &Realm, seat: &Seat| realm.player(*seat).map_or(0.0, read)
        };
        declare.number(
            "food",
            "food of the agent as a share of the most, 32",
            of(|it| f64::from(it.food) / f64::from(FULL)),
        );
        declare.number(
            "water",
            "water of the agent as a share of the most, 32",
            of(|it| f64::from(it.water) / f64::from(FULL)),
        );
        declare.number(
            "health",
            "health of the agent as a share of the most, 10",
            of(|it| f64::from(it.health) / f64::from(HEALTHY)),
        );
        declare.number("frozen", "1 if the agent cannot move", of(|it| f64::from(u8::from(it.frozen > 1))));
        declare.number("immune", "1 if attacks do no damage", of(|it| f64::from(u8::from(it.age < IMMUNE))));
        declare.number("age", "steps of the agent's life so far, in hundreds", of(|it| f64::from(it.age) / 100.0));
        for (axis, name) in ["x", "y"].into_iter().enumerate() {
            let doc = ["the agent's column, from 0 to 1", "the agent's row, from 0 to 1"][axis];
            declare.number(name, doc, move |game: &NeuralMmo, realm: &Realm, seat: &Seat| {
                let at = |it: &Player| f64::from([it.at.x, it.at.y][axis]);
                realm.player(*seat).map_or(0.0, at) / f64::from([game.size.width, game.size.height][axis] - 1)
            });
        }
        declare.number("died", "1 if the last step ended the agent's life", |_, realm: &Realm, seat| {
            f64::from(u8::from(realm.died[*seat as usize]))
        });
        for (name, doc) in MOVES {
            declare.action(name, ActionArgument::Nothing, doc);
        }
        if params.combat {
            ATTACKS.iter().for_each(|attack| {
                declare.action(attack.name, ActionArgument::Nothing, attack.doc);
            });
        }
        let corner = Cell { x: 0, y: 0 };
        declare_cells(declare, size, "agent", move |realm: &Realm, seat| realm.player(seat).map_or(corner, |it| it.at));
        declare.column("alive", "1 if the agent is alive", Some((0.0, 1.0)), |_, realm, seat| {
            f64::from(u8::from(realm.player(*seat).is_some()))
        });
        let doc = "mean steps of the agent's lives so far, or since the merging of servers";
        declare.column("lifetime", doc, None, |_, realm: &Realm, seat| {
            f64::from(realm.lived[*seat as usize]) / f64::from(realm.lives[*seat as usize].max(1))
        });
        let doc = "the population of the agent, from 0";
        declare.column("population", doc, None, |game: &NeuralMmo, _, seat| f64::from(game.population(*seat as u16)));
        let doc = "which of 4 times 4 parts of the map the agent is in, from 1; 0 if it is not alive";
        declare.column("region", doc, None, |game: &NeuralMmo, realm, seat| {
            realm.player(*seat).map_or(0.0, |it| {
                let part = |at: u8, of: u8| u16::from(at) * u16::from(REGIONS) / u16::from(of);
                f64::from(1 + part(it.at.y, game.size.height) * u16::from(REGIONS) + part(it.at.x, game.size.width))
            })
        });
        declare.scalar("living", "agents who are alive", |_, realm: &Realm| realm.order.len() as f64);
    }
}

impl Environment for NeuralMmo {
    const NAME: &'static str = "neural-mmo";
    const SUMMARY: &'static str = "Agents forage, fight, die and are born on a map of tiles, as in Neural MMO";
    type Params = Params;
    type State = Realm;

    fn open(params: Params, _: &WorldSetup<'_>, declare: &mut DeclareEnvironment<Self>) -> Result<Self, Invalid> {
        Invalid::within(8..=64, "size", params.size)?;
        Invalid::within(1..=256, "players", params.players)?;
        Invalid::within(1..=7, "sight", params.sight)?;
        Invalid::within(1..=256, "births", params.births)?;
        Invalid::within(1..=10_000_000, "steps", params.steps)?;
        let fits = params.populations > 0 && params.players.is_multiple_of(params.populations);
        Invalid::unless(fits, "populations", format!("must divide the {} players", params.players))?;
        let sum: u32 = params.servers.iter().copied().map(u32::from).sum();
        let fits = params.servers.is_empty() || (sum == u32::from(params.players) && !params.servers.contains(&0));
        Invalid::unless(fits, "servers", format!("must share {} players, and none has 0", params.players))?;
        let (size, tiles) = match params.map.is_empty() {
            true => (Size::square(params.size), None),
            false => map::read(&params.map).map(|(size, tiles)| (size, Some(tiles)))?,
        };
        NeuralMmo::declare(declare, &params, size);
        let channels = if params.populations > 1 { CHANNELS.len() } else { CHANNELS.len() - 1 };
        let side = 0..=2 * params.sight;
        let mut window = Vec::new();
        for (name, doc) in CHANNELS.into_iter().take(channels) {
            for (x, y) in side.clone().flat_map(|x| side.clone().map(move |y| (x, y))) {
                window.push(declare.number_slot(format!("{name}-{x}-{y}"), doc));
            }
        }
        let view = declare.text_slot("view", "what the agent sees, drawn");
        let mut servers: Vec<usize> = Vec::new();
        for (server, agents) in params.servers.iter().enumerate() {
            servers.extend(std::iter::repeat_n(server, usize::from(*agents)));
        }
        servers.resize(usize::from(params.players), 0);
        Ok(NeuralMmo { params, size, tiles, window, servers, view })
    }

    fn seats(&self) -> u32 {
        u32::from(self.params.players)
    }

    fn reset(&self, _: &Item, draws: &mut Draws) -> Realm {
        let tiles = self.tiles.clone().unwrap_or_else(|| map::drawn(self.size, draws));
        let n = usize::from(self.params.players);
        let mut realm = Realm {
            bare: vec![Vec::new(); self.servers()],
            players: vec![None; n],
            order: Vec::new(),
            waiting: self.shuffled(draws),
            died: vec![false; n],
            lives: vec![0; n],
            lived: vec![0; n],
            luck: self.luck(&tiles, draws),
            tiles,
            steps: 0,
        };
        self.spawn(&mut realm);
        realm.luck = self.luck(&realm.tiles, draws);
        realm
    }

    fn accepts(&self, realm: &Realm) -> Result<(), String> {
        let n = usize::from(self.params.players);
        let lengths = [realm.players.len(), realm.died.len(), realm.lives.len(), realm.lived.len()];
        let servers = [realm.bare.len(), realm.luck.len()];
        if realm.tiles.len() != self.size.cells() || lengths != [n; 4] || servers != [self.servers(); 2] {
            return Err(format!("there are {} tiles, {n} agents and {} servers", self.size.cells(), self.servers()));
        }
        if !realm.tiles.contains(&Tile::Start) || self.tiles.as_ref().is_some_and(|tiles| *tiles != realm.tiles) {
            return Err("the tiles are those of the map, and lives begin on some of them".into());
        }
        let mut seats: Vec<u16> = realm.order.iter().chain(&realm.waiting).copied().collect();
        seats.sort_unstable();
        let alive =
            (0..self.params.players).all(|seat| realm.order.contains(&seat) == realm.player(u32::from(seat)).is_some());
        if !seats.iter().copied().eq(0..self.params.players) || !alive {
            return Err("`order` has the seats of those who are alive, and `waiting` those of the others".into());
        }
        let is_forest = |index: &u16| realm.tiles.get(usize::from(*index)) == Some(&Tile::Forest);
        let forests = |of: &Vec<u16>| of.is_sorted_by(|a, b| a < b) && of.iter().all(is_forest);
        if !realm.bare.iter().chain(realm.luck.iter().map(|(_, grow)| grow)).all(forests) {
            return Err("`bare` and `luck` have indices of forests in order".into());
        }
        let stands = |cell: Cell| self.size.has(cell) && self.tile(realm, cell).is_passable();
        let begins = |index: &u16| realm.tiles.get(usize::from(*index)).is_some_and(|tile| tile.is_passable());
        let is_player = |it: &Player| {
            it.food <= FULL && it.water <= FULL && it.health <= HEALTHY && it.frozen <= FREEZE && stands(it.at)
        };
        if !realm.players.iter().flatten().all(is_player)
            || !realm
                .luck
                .iter()
                .all(|(starts, _)| starts.len() == usize::from(self.params.births) && starts.iter().all(begins))
        {
            return Err(format!(
                "agents are on passable tiles, with at most {FULL} food and water and {HEALTHY} health, frozen for up to {FREEZE} steps"
            ));
        }
        match realm.steps < self.params.steps {
            true => Ok(()),
            false => Err(format!("fewer than {} steps are over", self.params.steps)),
        }
    }

    fn cut(&self, _: &Realm) -> bool {
        true
    }

    fn observe(&self, realm: &Realm, seat: Seat, observation: &mut ObservationRow<'_>) {
        let Some(player) = realm.player(seat) else { return };
        let seat = seat as u16;
        let (server, side, sight) =
            (self.server(realm, seat), 2 * usize::from(self.params.sight) + 1, i32::from(self.params.sight));
        // How many others, and how many of the own population, are in each cell in sight, column by column.
        let mut others = vec![[0u8; 2]; side * side];
        for other in realm.order.iter().filter(|other| **other != seat) {
            let Some(at) = realm.player(u32::from(*other)).map(|it| it.at) else { continue };
            let way = player.at.offset(at).map(|along| along + sight);
            if way.iter().all(|along| (0..=2 * sight).contains(along)) && self.server(realm, *other) == server {
                let counts = &mut others[way[0] as usize * side + way[1] as usize];
                counts[0] = counts[0].saturating_add(1);
                counts[1] = counts[1].saturating_add(u8::from(self.population(*other) == self.population(seat)));
            }
        }
        let mut view = vec![b'\n'; side * (side + 1) - 1];
        for (i, [agents, kin]) in others.into_iter().enumerate() {
            let way = [(i / side) as i32 - sight, (i % side) as i32 - sight];
            let index = self.size.beyond(player.at, way).map(|cell| self.size.index(cell));
            let tile = index.map_or(Tile::Lava, |index| realm.tiles[index]);
            let is_bare = tile == Tile::Forest
                && index.is_some_and(|index| realm.bare[server].binary_search(&(index as u16)).is_ok());
            let is = |of: Tile| u8::from(tile == of);
            let food = u8::from(tile == Tile::Forest && !is_bare);
            let seen = [food, is(Tile::Water), is(Tile::Stone), is(Tile::Lava), agents, kin];
            for (slots, value) in self.window.chunks(side * side).zip(seen).filter(|(_, value)| *value > 0) {
                observation.number(slots[i], f64::from(value));
            }
            view[i % side * (side + 1) + i / side] = match agents {
                _ if way == [0, 0] => b'@',
                0 => tile.mark(is_bare) as u8,
                _ => b'A',
            };
        }
        observation.text(self.view, String::from_utf8_lossy(&view));
    }

    /// Those who are alive can move. Attacks need someone in their range.
    fn offers(&self, realm: &Realm, seat: Seat, action: u16) -> bool {
        let attack = usize::from(action).checked_sub(MOVES.len()).and_then(|attack| ATTACKS.get(attack));
        let alive = realm.player(seat).is_some();
        alive && attack.is_none_or(|attack| self.target(realm, seat as u16, attack.range).is_some())
    }

    /// An agent without a move stays.
    fn step(&self, realm: &mut Realm, moves: &[Move], draws: &mut Draws) -> StepResult {
        let n = usize::from(self.params.players);
        let mut actions = vec![(0, None); n];
        for Move { seat, action, .. } in moves {
            let attack = usize::from(*action).checked_sub(MOVES.len()).and_then(|attack| ATTACKS.get(attack));
            let target = attack.and_then(|attack| self.target(realm, *seat as u16, attack.range));
            actions[*seat as usize] = (usize::from(*action), target);
        }
        let (order, mut rewards) = (realm.order.clone(), vec![0.0; n]);
        realm.died.fill(false);
        for seat in &order {
            let who = usize::from(*seat);
            if self.live(realm, *seat, self.server(realm, *seat)) {
                let (action, target) = actions[who];
                self.act(realm, *seat, action, target);
                realm.lived[who] += 1;
                rewards[who] = 1.0;
            } else {
                realm.died[who] = true;
                rewards[who] = -1.0;
            }
        }
        for seat in order.iter().filter(|seat| realm.died[usize::from(**seat)]) {
            realm.players[usize::from(*seat)] = None;
            realm.waiting.push(*seat);
        }
        realm.order.retain(|seat| !realm.died[usize::from(*seat)]);
        NeuralMmo::grow(realm);
        self.spawn(realm);
        realm.steps += 1;
        if realm.steps == self.params.merge {
            self.merge(realm, draws);
        }
        realm.luck = self.luck(&realm.tiles, draws);
        StepResult { rewards, results: vec![String::new(); moves.len()], done: realm.steps >= self.params.steps }
    }
}
