//! A match: two strategies play the game again and again.

use super::Payoffs;
use super::strategy::{Memory, Move, Strategy};
use polity_base::digest::FileHash;
use polity_base::rng::{Draws, Stream, philox};
use serde::Serialize;

/// How long a match is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Length {
    /// A fixed number of turns. No strategy knows it.
    Turns(u32),
    /// After each turn another one follows with this probability, up to a maximum number of turns.
    Continues {
        /// The probability that another turn follows, 0 to below 1. The mean length is `1 / (1 - probability)`.
        probability: f64,
        /// The maximum number of turns.
        most: u32,
    },
}

/// The conditions of a match.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conditions {
    /// The payoffs of a turn.
    pub payoffs: Payoffs,
    /// The number of turns.
    pub length: Length,
    /// The probability, 0 to 1, that a move is flipped after the strategy has chosen it. Both players see the flipped move.
    pub noise: f64,
}

impl Default for Conditions {
    /// 200 turns of the prisoner's dilemma without noise, as in Axelrod's first tournament.
    fn default() -> Self {
        Conditions { payoffs: Payoffs::PRISONERS_DILEMMA, length: Length::Turns(200), noise: 0.0 }
    }
}

impl Conditions {
    /// Checks the numbers.
    ///
    /// # Errors
    /// No turns, or a probability out of range.
    pub fn check(&self) -> Result<(), String> {
        match self.length {
            Length::Turns(0) | Length::Continues { most: 0, .. } => return Err("a match has at least 1 turn".into()),
            Length::Continues { probability, .. } if !(0.0..1.0).contains(&probability) => {
                return Err(format!("the probability of another turn is at least 0 and below 1, not {probability}"));
            }
            _ => {}
        }
        match (0.0..=1.0).contains(&self.noise) {
            true => Ok(()),
            false => Err(format!("noise is a probability, 0 to 1, not {}", self.noise)),
        }
    }
}

/// How often each outcome occurred in a match, from the first player's point of view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// Both cooperated.
    pub cc: u64,
    /// The first cooperated, the second defected.
    pub cd: u64,
    /// The first defected, the second cooperated.
    pub dc: u64,
    /// Both defected.
    pub dd: u64,
}

impl Outcome {
    /// Returns the number of turns.
    #[must_use]
    pub fn turns(&self) -> u64 {
        self.cc + self.cd + self.dc + self.dd
    }

    /// Returns the sum of payoffs of each player.
    #[must_use]
    pub fn scores(&self, payoffs: &Payoffs) -> [f64; 2] {
        let [cc, cd, dc, dd] = [self.cc, self.cd, self.dc, self.dd].map(|n| n as f64);
        let same = cc * payoffs.cc + dd * payoffs.dd;
        [same + (cd * payoffs.cd + dc * payoffs.dc), same + (dc * payoffs.cd + cd * payoffs.dc)]
    }

    /// Returns the number of cooperations of each player.
    #[must_use]
    pub fn cooperations(&self) -> [u64; 2] {
        [self.cc + self.cd, self.cc + self.dc]
    }

    /// Adds another match of the same players.
    pub fn add(&mut self, other: &Outcome) {
        self.cc += other.cc;
        self.cd += other.cd;
        self.dc += other.dc;
        self.dd += other.dd;
    }
}

/// The streams of draws. Each player has its own draws for moves and for noise.
const MOVES: Stream = Stream::Turn;
const NOISE: Stream = Stream::World;
const LENGTH: Stream = Stream::Episode;

/// The draws of a match. They depend on the seed, the labels of the two strategies and the repetition, and not on who else plays, in
/// which order, or who of the two is first.
struct Keys {
    seed: u64,
    repetition: u32,
    /// The numbers of the two players.
    ids: [u32; 2],
}

impl Keys {
    fn new(labels: [&str; 2], seed: u64, repetition: u32) -> Self {
        let second = labels[0] > labels[1];
        let [low, high] = if second { [labels[1], labels[0]] } else { labels };
        let hash = FileHash::of(format!("{low}\n{high}").as_bytes()).0;
        let [seed, _] = philox([hash as u64, (hash >> 64) as u64], seed);
        Keys { seed, repetition, ids: if second { [1, 0] } else { [0, 1] } }
    }

    fn draws(&self, stream: Stream) -> [Draws; 2] {
        self.ids.map(|id| Draws::new(self.seed, stream, self.repetition, id))
    }

    fn turns(&self, length: Length) -> u64 {
        match length {
            Length::Turns(turns) => u64::from(turns),
            Length::Continues { probability, most } => {
                let u = Draws::new(self.seed, LENGTH, self.repetition, 0).open_unit();
                let further = if probability > 0.0 { libm::log(u) / libm::log(probability) } else { 0.0 };
                (further as u64).saturating_add(1).min(u64::from(most))
            }
        }
    }
}

/// The players between two turns.
#[derive(Clone, Copy, PartialEq)]
struct Joint {
    memories: [Memory; 2],
    last: [Move; 2],
}

/// Plays a match. `seed` and `repetition` key all draws, together with the labels of the strategies: the same match has the same result
/// wherever it is played. `moves`, if given, receives the moves of each player as they were played, noise included; old contents are
/// removed.
///
/// Without noise, and while neither strategy has drawn a random number, a joint state that recurs starts a cycle. The remaining cycles
/// are then counted instead of played, unless the moves are asked for; the result is the same.
///
/// The conditions must have passed [`Conditions::check`].
#[must_use]
pub fn play(
    players: [&Strategy; 2],
    conditions: &Conditions,
    seed: u64,
    repetition: u32,
    mut moves: Option<&mut [Vec<Move>; 2]>,
) -> Outcome {
    let keys = Keys::new(players.map(Strategy::label), seed, repetition);
    let turns = keys.turns(conditions.length);
    if let Some(moves) = &mut moves {
        for own in moves.iter_mut() {
            own.clear();
            own.reserve(turns as usize);
        }
    }
    let [cc, cd, dc, dd] = run(players, conditions.noise, &keys, turns, moves);
    Outcome { cc, cd, dc, dd }
}

/// Plays turns and counts outcomes: CC, CD, DC, DD.
fn run(
    [first, second]: [&Strategy; 2],
    noise: f64,
    keys: &Keys,
    turns: u64,
    mut moves: Option<&mut [Vec<Move>; 2]>,
) -> [u64; 4] {
    let [mut one, mut two] = keys.draws(MOVES);
    let [mut flips_one, mut flips_two] = keys.draws(NOISE);
    let mut memories = [Memory::default(); 2];
    let mut flip = |made: [Move; 2]| match noise > 0.0 {
        true => {
            let flipped = |made: Move, draws: &mut Draws| if draws.chance(noise) { made.flipped() } else { made };
            [flipped(made[0], &mut flips_one), flipped(made[1], &mut flips_two)]
        }
        false => made,
    };
    let mut last = flip([first.first(&mut memories[0], &mut one), second.first(&mut memories[1], &mut two)]);
    let mut counts = [0; 4];
    let mut seeks = noise == 0.0 && moves.is_none();
    let mut note = |last: [Move; 2], counts: &mut [u64; 4]| {
        counts[(last[0] as usize) << 1 | last[1] as usize] += 1;
        if let Some([own, other]) = &mut moves {
            own.push(last[0]);
            other.push(last[1]);
        }
    };
    note(last, &mut counts);
    // Brent's algorithm: the joint state is compared with the one at the last power of two.
    let mut kept = (Joint { memories, last }, 1, counts);
    let mut turn = 1;
    while turn < turns {
        last = flip([
            first.next(&mut memories[0], last[0], last[1], &mut one),
            second.next(&mut memories[1], last[1], last[0], &mut two),
        ]);
        note(last, &mut counts);
        turn += 1;
        if !seeks {
            continue;
        }
        if one.used() || two.used() {
            seeks = false;
        } else if kept.0 == (Joint { memories, last }) {
            let (period, rounds) = (turn - kept.1, (turns - turn) / (turn - kept.1));
            for (count, before) in counts.iter_mut().zip(kept.2) {
                *count += rounds * (*count - before);
            }
            turn += rounds * period;
            seeks = false;
        } else if turn.is_power_of_two() {
            kept = (Joint { memories, last }, turn, counts);
        }
    }
    counts
}
