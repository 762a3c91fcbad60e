//! A play of a game: its state, and how a step changes it.

use super::game::{Assign, Game, Step};
use super::names::{Fixed, Meaning, Of, Sort};
use super::params::{Order, Take};
use polity_kernel::environment::Move;
use polity_kernel::formula::Formula;
use polity_kernel::rng::Draws;
use serde::{Deserialize, Serialize};

/// A number that may be missing (NaN). Equal if the bits are.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Cell(pub f64);

impl PartialEq for Cell {
    fn eq(&self, other: &Cell) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

const MISSING: Cell = Cell(f64::NAN);

/// The numbers of the rounds so far, for a measure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Measured {
    rounds: u32,
    sum: f64,
    low: f64,
    high: f64,
    last: f64,
}

impl Measured {
    fn add(&mut self, value: f64) {
        if !value.is_finite() {
            return;
        }
        self.low = if self.rounds == 0 { value } else { self.low.min(value) };
        self.high = if self.rounds == 0 { value } else { self.high.max(value) };
        self.rounds += 1;
        self.sum += value;
        self.last = value;
    }

    /// Returns the one number; 0 without any.
    pub fn value(&self, take: Take) -> f64 {
        match take {
            Take::Mean => self.sum / f64::from(self.rounds.max(1)),
            Take::Sum => self.sum,
            Take::Min => self.low,
            Take::Max => self.high,
            Take::Last => self.last,
        }
    }
}

/// A play of a game.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Play {
    /// Rounds that are over.
    pub(super) round: u32,
    pub(super) phase: u32,
    /// How often the phase has come in this round, and how often it comes.
    pub(super) turn: u32,
    repeats: u32,
    /// The next seat, if players act in turn.
    place: u32,
    /// Who acts now.
    pub(super) acting: Vec<bool>,
    pub(super) roles: Vec<u16>,
    /// All quantities of all players: by quantity, then by seat; in this round and in the last.
    pub(super) now: Vec<Cell>,
    pub(super) last: Vec<Cell>,
    /// What players see besides what all games show: by sight, then by seat.
    pub(super) seen: Vec<f64>,
    /// The best acts, for simulated models: by action, then by seat.
    pub(super) right: Vec<f64>,
    /// Payoffs of the last round, and of all.
    pub(super) payoffs: Vec<f64>,
    pub(super) gains: Vec<f64>,
    /// The sum of the largest possible totals.
    pub(super) best: f64,
    pub(super) measured: Vec<Measured>,
    pub(super) over: bool,
    /// Payoffs that had no finite value.
    pub(super) without_value: u32,
}

/// Values of the group that a formula reads, worked out once for all players.
struct Cache(Vec<(u32, f64)>);

/// The quantities of a moment.
struct View<'a> {
    game: &'a Game,
    play: &'a Play,
    acting: &'a [bool],
}

impl View<'_> {
    fn cell(&self, last: bool, place: usize, seat: usize) -> f64 {
        let of = if last { &self.play.last } else { &self.play.now };
        of[place * self.game.seats() + seat].0
    }

    /// Returns a value of the group.
    fn whole(&self, last: bool, place: usize, of: Of, argument: u32) -> f64 {
        let seats = self.game.seats();
        let values = || (0..seats).map(|seat| self.cell(last, place, seat)).filter(|value| !value.is_nan());
        let least = || values().fold(f64::NAN, f64::min);
        let most = || values().fold(f64::NAN, f64::max);
        let count = |test: &dyn Fn(f64) -> bool| values().filter(|value| test(*value)).count() as f64;
        match of {
            Of::Mean => values().sum::<f64>() / values().count() as f64,
            Of::Sum => values().fold(0.0, |sum, value| sum + value),
            Of::Min => least(),
            Of::Max => most(),
            Of::Second => {
                let (mut first, mut second) = (f64::NAN, f64::NAN);
                for value in values() {
                    if first.is_nan() || value > first {
                        (first, second) = (value, first);
                    } else {
                        second = second.max(value);
                    }
                }
                second
            }
            Of::Count => values().count() as f64,
            Of::Highest => {
                let most = most();
                count(&|value| value == most)
            }
            Of::Lowest => {
                let least = least();
                count(&|value| value == least)
            }
            Of::Option => count(&|value| value == f64::from(argument)),
            Of::Player => self.as_read(place, self.cell(last, place, argument as usize)),
            Of::Own | Of::Named | Of::Rank => f64::NAN,
        }
    }

    /// A missing option has no place in the list of options.
    fn as_read(&self, place: usize, value: f64) -> f64 {
        match self.game.vocabulary.quantities[place].1 {
            Sort::Options(_) if value.is_nan() => f64::from(u32::MAX),
            _ => value,
        }
    }

    fn read(&self, code: u32, seat: usize, cache: &Cache) -> f64 {
        let Game { vocabulary, rounds, .. } = self.game;
        match Meaning::of(code) {
            Meaning::Constant(place) => vocabulary.constants[place].1,
            Meaning::Measure(place) => self.play.measured[place].value(self.game.measures[place].1),
            Meaning::Fixed(fixed) => match fixed {
                Fixed::Round => f64::from(self.play.round),
                Fixed::Rounds => f64::from(*rounds),
                Fixed::Players => self.game.seats() as f64,
                Fixed::Turn => f64::from(self.play.turn),
                Fixed::Seat => (seat + 1) as f64,
                Fixed::Role => f64::from(self.play.roles[seat]),
                Fixed::Acting => f64::from(u8::from(self.acting[seat])),
                Fixed::Total => self.play.gains[seat],
            },
            Meaning::Quantity { last, place, of, .. } => match of {
                Of::Own => self.as_read(place, self.cell(last, place, seat)),
                Of::Named => {
                    let named = |other: &usize| self.cell(last, place, *other) == (seat + 1) as f64;
                    (0..self.game.seats()).filter(named).count() as f64
                }
                Of::Rank => {
                    let own = self.cell(last, place, seat);
                    let above = |other: &usize| self.cell(last, place, *other) > own;
                    if own.is_nan() { own } else { 1.0 + (0..self.game.seats()).filter(above).count() as f64 }
                }
                _ => cache.0.iter().find(|(known, _)| *known == code).map_or(f64::NAN, |(_, value)| *value),
            },
        }
    }

    fn cache(&self, formula: &Formula) -> Cache {
        let whole = |code: u32| match Meaning::of(code) {
            Meaning::Quantity { last, place, of, argument } if of.is_of_group() => {
                Some((code, self.whole(last, place, of, argument)))
            }
            _ => None,
        };
        Cache(formula.names().into_iter().filter_map(whole).collect())
    }

    /// Returns the value of a formula for every player.
    fn each(&self, formula: &Formula, draws: &mut Draws) -> Vec<f64> {
        let cache = self.cache(formula);
        (0..self.game.seats()).map(|seat| formula.value(&|code| self.read(code, seat, &cache), Some(draws))).collect()
    }

    /// Returns the value of a formula of the group.
    fn one(&self, formula: &Formula, draws: &mut Draws) -> f64 {
        let cache = self.cache(formula);
        formula.value(&|code| self.read(code, 0, &cache), Some(draws))
    }
}

impl Play {
    /// Begins a game.
    pub(super) fn begin(game: &Game, draws: &mut Draws) -> Play {
        let seats = game.seats();
        let mut roles: Vec<u16> = game.roles.clone();
        if game.lot {
            draws.shuffle(&mut roles);
        }
        let cells = game.vocabulary.quantities.len() * seats;
        let mut play = Play {
            round: 0,
            phase: 0,
            turn: 0,
            repeats: 1,
            place: 0,
            acting: vec![false; seats],
            roles,
            now: vec![MISSING; cells],
            last: vec![MISSING; cells],
            seen: vec![0.0; game.sights.len() * seats],
            right: vec![0.0; game.rights.len() * seats],
            payoffs: vec![0.0; seats],
            gains: vec![0.0; seats],
            best: 0.0,
            measured: vec![Measured::default(); game.measures.len()],
            over: false,
            without_value: 0,
        };
        for (place, start, _) in &game.lasting {
            if let Some(start) = start {
                play.assign(game, *place, start, &vec![false; seats], draws);
            }
        }
        play.begin_round(game, draws);
        play.wait(game, &mut vec![0.0; seats], draws);
        play
    }

    fn assign(&mut self, game: &Game, place: usize, to: &Formula, acting: &[bool], draws: &mut Draws) {
        let values = View { game, play: self, acting }.each(to, draws);
        let seats = game.seats();
        for (cell, value) in self.now[place * seats..].iter_mut().zip(values) {
            *cell = if value.is_nan() { MISSING } else { Cell(value) };
        }
    }

    fn begin_round(&mut self, game: &Game, draws: &mut Draws) {
        let seats = game.seats();
        let lasts = |place: usize| game.lasting.iter().any(|(known, ..)| *known == place);
        for place in (0..game.vocabulary.quantities.len()).filter(|place| !lasts(*place)) {
            self.now[place * seats..(place + 1) * seats].fill(MISSING);
        }
        for (place, _, each_round) in &game.lasting {
            if let Some(each_round) = each_round {
                self.assign(game, *place, each_round, &vec![false; seats], draws);
            }
        }
    }

    /// Takes a step. Returns what each player gets.
    pub(super) fn step(&mut self, game: &Game, moves: &[Move], draws: &mut Draws) -> Vec<f64> {
        let seats = game.seats();
        let mut rewards = vec![0.0; seats];
        let Some(phase) = game.phases.get(self.phase as usize).filter(|_| !self.over) else { return rewards };
        for made in moves {
            let place = usize::from(made.action) * seats + made.seat as usize;
            self.now[place] = Cell(game.choice(made));
        }
        let acting = std::mem::replace(&mut self.acting, vec![false; seats]);
        self.work_out(game, &phase.then, &acting, draws);
        match phase.order {
            Order::Together => self.turn += 1,
            Order::InTurn => self.place += 1,
        }
        self.wait(game, &mut rewards, draws);
        rewards
    }

    fn work_out(&mut self, game: &Game, then: &[Assign], acting: &[bool], draws: &mut Draws) {
        for Assign { place, to } in then {
            self.assign(game, *place, to, acting, draws);
        }
        if let Some(end) = &game.end {
            self.over = View { game, play: self, acting }.one(end, draws) == 1.0;
        }
    }

    /// Goes on to the next moment at which somebody acts, or to the end of the game.
    fn wait(&mut self, game: &Game, rewards: &mut [f64], draws: &mut Draws) {
        let nobody = vec![false; game.seats()];
        loop {
            if self.over || self.phase as usize >= game.phases.len() {
                self.close_round(game, rewards, draws);
                if self.over {
                    break;
                }
                self.begin_round(game, draws);
            }
            let Some(phase) = game.phases.get(self.phase as usize) else { break };
            if self.finds_actors(game, phase, draws) {
                break;
            }
            if phase.acts.is_empty() {
                self.work_out(game, &phase.then, &nobody, draws);
            }
            self.phase += 1;
            (self.turn, self.place) = (0, 0);
        }
        self.look(game);
    }

    /// Finds out who acts now.
    fn finds_actors(&mut self, game: &Game, phase: &Step, draws: &mut Draws) -> bool {
        if phase.acts.is_empty() {
            return false;
        }
        let seats = game.seats();
        let nobody = vec![false; seats];
        if phase.order == Order::Together && self.turn == 0 {
            let view = View { game, play: self, acting: &nobody };
            let repeats = phase.repeat.as_ref().map_or(1.0, |repeat| view.one(repeat, draws));
            // A number that is missing or below 1 is 0.
            self.repeats = repeats as u32;
        }
        if phase.order == Order::Together && self.turn >= self.repeats {
            return false;
        }
        let able: Vec<bool> = match &phase.who {
            Some(who) => {
                let view = View { game, play: self, acting: &nobody };
                view.each(who, draws).into_iter().map(|value| value == 1.0).collect()
            }
            None => vec![true; seats],
        };
        match phase.order {
            Order::Together => self.acting = able,
            Order::InTurn => {
                let next = (self.place as usize..seats).find(|seat| able[*seat]);
                self.acting = nobody;
                if let Some(seat) = next {
                    self.acting[seat] = true;
                    self.place = seat as u32;
                }
            }
        }
        self.acting.contains(&true)
    }

    fn close_round(&mut self, game: &Game, rewards: &mut [f64], draws: &mut Draws) {
        let nobody = vec![false; game.seats()];
        let view = View { game, play: self, acting: &nobody };
        let mut payoffs = view.each(&game.payoff, draws);
        let best = game.best.as_ref().map(|best| view.one(best, draws));
        for payoff in payoffs.iter_mut().filter(|payoff| !payoff.is_finite()) {
            *payoff = 0.0;
            self.without_value += 1;
        }
        for ((gain, reward), payoff) in self.gains.iter_mut().zip(rewards).zip(&payoffs) {
            *gain += payoff;
            *reward += payoff;
        }
        self.payoffs = payoffs;
        self.best += best.filter(|best| best.is_finite()).unwrap_or_default();
        let view = View { game, play: self, acting: &nobody };
        let values: Vec<f64> = game.measures.iter().map(|(_, _, formula)| view.one(formula, draws)).collect();
        for (measured, value) in self.measured.iter_mut().zip(values) {
            measured.add(value);
        }
        self.round += 1;
        self.over |= self.round >= game.rounds;
        self.last.clone_from(&self.now);
        (self.phase, self.turn, self.place) = (0, 0, 0);
    }

    /// Works out what players see.
    fn look(&mut self, game: &Game) {
        let seats = game.seats();
        let acting = self.acting.clone();
        // Sights draw nothing.
        let mut draws = Draws::new(0, polity_kernel::rng::Stream::Episode, 0, 0);
        for (i, sight) in game.sights.iter().enumerate() {
            let values = View { game, play: self, acting: &acting }.each(&sight.1, &mut draws);
            for (seat, value) in values.into_iter().enumerate() {
                self.seen[i * seats + seat] = if value.is_finite() { value } else { sight.2 };
            }
        }
        for (i, (_, formula)) in game.rights.iter().enumerate() {
            let values = View { game, play: self, acting: &acting }.each(formula, &mut draws);
            for (seat, value) in values.into_iter().enumerate() {
                self.right[i * seats + seat] = if value.is_finite() { value } else { 0.0 };
            }
        }
    }

    /// Returns the score of the game so far; 0 if it has none.
    pub(super) fn score(&self, game: &Game) -> f64 {
        let Some(score) = &game.score else { return 0.0 };
        let view = View { game, play: self, acting: &self.acting };
        let value = score.value(&|code| view.read(code, 0, &Cache(Vec::new())), None);
        if value.is_finite() { value } else { 0.0 }
    }

    /// Returns 1 minus the mean difference of what two players have gained, as a share of the largest difference that such amounts can
    /// have; 1 minus the Gini index if nobody has lost.
    pub(super) fn equality(&self) -> f64 {
        let mut gains = self.gains.clone();
        gains.sort_by(f64::total_cmp);
        let n = gains.len() as f64;
        let total: f64 = gains.iter().map(|gain| gain.abs()).sum();
        // The i-th of n amounts in order is in i differences as the larger one, and in n - 1 - i as the smaller one.
        let weight = |(i, gain): (usize, &f64)| (2.0 * i as f64 + 1.0 - n) * gain;
        let differences: f64 = gains.iter().enumerate().map(weight).sum();
        if total > 0.0 { 1.0 - differences / (n * total) } else { 1.0 }
    }
}
