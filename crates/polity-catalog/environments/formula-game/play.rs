//! A game in progress: its state, and how a step changes it.

use super::game::{Assign, Game, Step};
use super::names::{Fixed, Meaning, Of, Sort};
use super::params::{Aggregate, Order};
use polity_kernel::environment::Move;
use polity_kernel::formula::Formula;
use polity_kernel::rng::Draws;
use serde::{Deserialize, Serialize};

/// A number that may be missing (NaN). Two cells are equal if their bits are.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Cell(pub f64);

impl PartialEq for Cell {
    fn eq(&self, other: &Cell) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

const MISSING: Cell = Cell(f64::NAN);

/// The values of a measure in the rounds so far.
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

    /// Returns the values combined; 0 if there are none.
    pub fn value(&self, aggregate: Aggregate) -> f64 {
        match aggregate {
            Aggregate::Mean => self.sum / f64::from(self.rounds.max(1)),
            Aggregate::Sum => self.sum,
            Aggregate::Min => self.low,
            Aggregate::Max => self.high,
            Aggregate::Last => self.last,
        }
    }
}

/// A game in progress.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Play {
    /// Rounds that are over.
    pub(super) round: u32,
    pub(super) phase: u32,
    /// How many times the phase has been played in this round, and how many times it will be.
    pub(super) iteration: u32,
    repeats: u32,
    /// The next seat, if players move sequentially.
    place: u32,
    /// By seat: whether the player may act now.
    pub(super) active: Vec<bool>,
    pub(super) roles: Vec<u16>,
    /// The quantities of all players, by quantity, then by seat: in this round, and in the last.
    pub(super) now: Vec<Cell>,
    pub(super) last: Vec<Cell>,
    /// The values of `observations`, by observation, then by seat; then what the last step gave of each objective, in the same way.
    pub(super) observed: Vec<f64>,
    /// The best choices, for simulated models, by action, then by seat.
    pub(super) right: Vec<f64>,
    /// Payoffs of the last round, and of all rounds so far.
    pub(super) payoffs: Vec<f64>,
    pub(super) gains: Vec<f64>,
    /// The largest possible welfare of all rounds so far.
    pub(super) max_welfare: f64,
    pub(super) measured: Vec<Measured>,
    pub(super) over: bool,
    /// Number of payoffs that were not finite.
    pub(super) without_value: u32,
}

/// Values of the group that a formula reads, computed once for all players.
struct Cache(Vec<(u32, f64)>);

/// The values that formulas read at one moment.
struct View<'a> {
    game: &'a Game,
    play: &'a Play,
    /// Who has just acted, by seat.
    acted: &'a [bool],
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
            Of::MaxCount => {
                let most = most();
                count(&|value| value == most)
            }
            Of::MinCount => {
                let least = least();
                count(&|value| value == least)
            }
            Of::Option => count(&|value| value == f64::from(argument)),
            Of::Player => self.as_read(place, self.cell(last, place, argument as usize)),
            Of::Own | Of::Received | Of::Rank => f64::NAN,
        }
    }

    /// Returns a value as formulas read it: a missing option is outside of the list of options.
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
                Fixed::Iteration => f64::from(self.play.iteration),
                Fixed::Seat => (seat + 1) as f64,
                Fixed::Role => f64::from(self.play.roles[seat]),
                Fixed::Acted => f64::from(u8::from(self.acted[seat])),
                Fixed::Total => self.play.gains[seat],
            },
            Meaning::Quantity { last, place, of, .. } => match of {
                Of::Own => self.as_read(place, self.cell(last, place, seat)),
                Of::Received => {
                    let chose = |other: &usize| self.cell(last, place, *other) == (seat + 1) as f64;
                    (0..self.game.seats()).filter(chose).count() as f64
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

    /// Returns the value of a formula about the group.
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
        if game.random_roles {
            draws.shuffle(&mut roles);
        }
        let cells = game.vocabulary.quantities.len() * seats;
        let mut play = Play {
            round: 0,
            phase: 0,
            iteration: 0,
            repeats: 1,
            place: 0,
            active: vec![false; seats],
            roles,
            now: vec![MISSING; cells],
            last: vec![MISSING; cells],
            observed: vec![0.0; (game.observations.len() + game.objectives.len()) * seats],
            right: vec![0.0; game.rights.len() * seats],
            payoffs: vec![0.0; seats],
            gains: vec![0.0; seats],
            max_welfare: 0.0,
            measured: vec![Measured::default(); game.measures.len()],
            over: false,
            without_value: 0,
        };
        for (place, initial, _) in &game.variables {
            if let Some(initial) = initial {
                play.assign(game, *place, initial, &vec![false; seats], draws);
            }
        }
        play.begin_round(game, draws);
        play.advance(game, &mut vec![0.0; seats], draws);
        play.observed[game.observations.len() * seats..].fill(0.0);
        play
    }

    fn assign(&mut self, game: &Game, place: usize, to: &Formula, acted: &[bool], draws: &mut Draws) {
        let values = View { game, play: self, acted }.each(to, draws);
        let seats = game.seats();
        for (cell, value) in self.now[place * seats..].iter_mut().zip(values) {
            *cell = if value.is_nan() { MISSING } else { Cell(value) };
        }
    }

    fn begin_round(&mut self, game: &Game, draws: &mut Draws) {
        let seats = game.seats();
        let keeps = |place: usize| game.variables.iter().any(|(known, ..)| *known == place);
        for place in (0..game.vocabulary.quantities.len()).filter(|place| !keeps(*place)) {
            self.now[place * seats..(place + 1) * seats].fill(MISSING);
        }
        for (place, _, each_round) in &game.variables {
            if let Some(each_round) = each_round {
                self.assign(game, *place, each_round, &vec![false; seats], draws);
            }
        }
    }

    /// Takes a step. Returns the payoff of each player.
    pub(super) fn step(&mut self, game: &Game, moves: &[Move], draws: &mut Draws) -> Vec<f64> {
        let seats = game.seats();
        let mut rewards = vec![0.0; seats];
        let Some(phase) = game.phases.get(self.phase as usize).filter(|_| !self.over) else { return rewards };
        for made in moves {
            let place = usize::from(made.action) * seats + made.seat as usize;
            self.now[place] = Cell(game.choice(made));
        }
        self.observed[game.observations.len() * seats..].fill(0.0);
        let acted = std::mem::replace(&mut self.active, vec![false; seats]);
        self.update(game, &phase.update, &acted, draws);
        match phase.order {
            Order::Simultaneous => self.iteration += 1,
            Order::Sequential => self.place += 1,
        }
        self.advance(game, &mut rewards, draws);
        rewards
    }

    fn update(&mut self, game: &Game, update: &[Assign], acted: &[bool], draws: &mut Draws) {
        for Assign { place, to } in update {
            self.assign(game, *place, to, acted, draws);
        }
        if let Some(end_if) = &game.end_if {
            self.over = View { game, play: self, acted }.one(end_if, draws) == 1.0;
        }
    }

    /// Advances to the next move of a player, or to the end of the game.
    fn advance(&mut self, game: &Game, rewards: &mut [f64], draws: &mut Draws) {
        let none = vec![false; game.seats()];
        loop {
            if self.over || self.phase as usize >= game.phases.len() {
                self.close_round(game, rewards, draws);
                if self.over {
                    break;
                }
                self.begin_round(game, draws);
            }
            let Some(phase) = game.phases.get(self.phase as usize) else { break };
            if self.activate(game, phase, draws) {
                break;
            }
            if phase.acts.is_empty() && self.able(game, phase, draws).contains(&true) {
                self.update(game, &phase.update, &none, draws);
            }
            self.phase += 1;
            (self.iteration, self.place) = (0, 0);
        }
        self.observe(game);
    }

    /// Determines which players may act in a phase. Returns whether there are any.
    fn activate(&mut self, game: &Game, phase: &Step, draws: &mut Draws) -> bool {
        if phase.acts.is_empty() {
            return false;
        }
        let seats = game.seats();
        let none = vec![false; seats];
        if phase.order == Order::Simultaneous && self.iteration == 0 {
            let view = View { game, play: self, acted: &none };
            let repeats = phase.repeat.as_ref().map_or(1.0, |repeat| view.one(repeat, draws));
            // A missing number, and one below 1, counts as 0.
            self.repeats = repeats as u32;
        }
        if phase.order == Order::Simultaneous && self.iteration >= self.repeats {
            return false;
        }
        let able = self.able(game, phase, draws);
        match phase.order {
            Order::Simultaneous => self.active = able,
            Order::Sequential => {
                let next = (self.place as usize..seats).find(|seat| able[*seat]);
                self.active = none;
                if let Some(seat) = next {
                    self.active[seat] = true;
                    self.place = seat as u32;
                }
            }
        }
        self.active.contains(&true)
    }

    /// Returns which players may act in a phase by its condition.
    fn able(&self, game: &Game, phase: &Step, draws: &mut Draws) -> Vec<bool> {
        let Some(condition) = &phase.active_players else { return vec![true; game.seats()] };
        let none = vec![false; game.seats()];
        let view = View { game, play: self, acted: &none };
        view.each(condition, draws).into_iter().map(|value| value == 1.0).collect()
    }

    fn close_round(&mut self, game: &Game, rewards: &mut [f64], draws: &mut Draws) {
        let none = vec![false; game.seats()];
        let view = View { game, play: self, acted: &none };
        let mut payoffs = view.each(&game.payoff, draws);
        let objectives: Vec<f64> = game.objectives.iter().flat_map(|value| view.each(value, draws)).collect();
        let max_welfare = game.max_welfare.as_ref().map(|most| view.one(most, draws));
        let gained = self.observed[game.observations.len() * game.seats()..].iter_mut().zip(objectives);
        for (sum, value) in gained {
            *sum += if value.is_finite() { value } else { 0.0 };
            self.without_value += u32::from(!value.is_finite());
        }
        for payoff in payoffs.iter_mut().filter(|payoff| !payoff.is_finite()) {
            *payoff = 0.0;
            self.without_value += 1;
        }
        for ((gain, reward), payoff) in self.gains.iter_mut().zip(rewards).zip(&payoffs) {
            *gain += payoff;
            *reward += payoff;
        }
        self.payoffs = payoffs;
        self.max_welfare += max_welfare.filter(|most| most.is_finite()).unwrap_or_default();
        let view = View { game, play: self, acted: &none };
        let values: Vec<f64> = game.measures.iter().map(|(_, _, formula)| view.one(formula, draws)).collect();
        for (measured, value) in self.measured.iter_mut().zip(values) {
            measured.add(value);
        }
        self.round += 1;
        self.over |= self.round >= game.rounds;
        self.last.clone_from(&self.now);
        (self.phase, self.iteration, self.place) = (0, 0, 0);
    }

    /// Computes what players observe.
    fn observe(&mut self, game: &Game) {
        let seats = game.seats();
        let acted = self.active.clone();
        // These formulas draw no random numbers.
        let mut draws = Draws::new(0, polity_kernel::rng::Stream::Episode, 0, 0);
        for (i, (_, formula, default)) in game.observations.iter().enumerate() {
            let values = View { game, play: self, acted: &acted }.each(formula, &mut draws);
            for (seat, value) in values.into_iter().enumerate() {
                self.observed[i * seats + seat] = if value.is_finite() { value } else { *default };
            }
        }
        for (i, (_, formula)) in game.rights.iter().enumerate() {
            let values = View { game, play: self, acted: &acted }.each(formula, &mut draws);
            for (seat, value) in values.into_iter().enumerate() {
                self.right[i * seats + seat] = if value.is_finite() { value } else { 0.0 };
            }
        }
    }

    /// Returns the score of the game so far; 0 if it has none.
    pub(super) fn score(&self, game: &Game) -> f64 {
        let Some(score) = &game.score else { return 0.0 };
        let view = View { game, play: self, acted: &self.active };
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
