//! Learning equilibria of games that change: a learner for games that stay the same, and wrappers that restart it.
//!
//! After Jiang, Cui, Xiong, Fazel and Du, "A black-box approach for non-stationary multi-agent reinforcement learning" (ICLR 2024). The
//! wrappers know of a learner only what it wants to play and what it has learned. With a known drift it is restarted at regular times; with an
//! unknown one, when a test finds that a player would gain by another strategy. Players see only the rewards of what they play.

use crate::correlated::{self, Aim};
use crate::equilibrium::Play;
use crate::learn::{Ftrl, Learner as _, Step, hedge};
use crate::nash;
use crate::normal::Game;
use polity_base::rng::Draws;
use serde::{Deserialize, Serialize};

/// The kind of equilibrium that is sought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Concept {
    /// Nash: the players choose independently.
    #[default]
    Nash,
    /// Correlated.
    Correlated,
    /// Coarse correlated.
    Coarse,
}

/// The most that a player gains against a joint distribution, in the order of [`Game::profiles`]: by a fixed strategy, or, for
/// correlated equilibria, by the best replacement of each of its strategies.
#[must_use]
pub fn gap(game: &Game, joint: &[f64], concept: Concept) -> f64 {
    correlated::regret(game, joint, concept != Concept::Correlated)
}

/// An equilibrium of a game of two players, as a joint distribution in the order of [`Game::profiles`].
///
/// # Errors
/// Those of the solvers.
pub fn equilibrium(game: &Game, concept: Concept) -> Result<Vec<f64>, String> {
    let found = match concept {
        Concept::Nash => nash::lemke_howson(game, 0),
        Concept::Correlated => correlated::correlated(game, Aim::Welfare),
        Concept::Coarse => correlated::coarse(game, Aim::Welfare),
    }?;
    Ok(match &found.play {
        Play::Strategies(_) => game.profiles().map(|profile| found.probability(&profile)).collect(),
        Play::Joint(outcomes) => {
            let place = |profile: &[usize]| profile[0] + profile[1] * game.sizes()[0];
            let mut joint = vec![0.0; game.size()];
            outcomes.iter().for_each(|one| joint[place(&one.profile)] += one.probability);
            joint
        }
    })
}

/// A learner of equilibria of games that stay the same.
trait StationaryLearner {
    /// The joint distribution that is played in the next round of learning.
    fn plays(&self) -> Vec<f64>;
    /// Sees the rewards of a profile, given by its place.
    fn sees(&mut self, place: usize, rewards: [f64; 2]);
    /// What it has learned, as a joint distribution.
    fn learned(&self, concept: Concept) -> Result<Vec<f64>, String>;
}

/// Which learner is wrapped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Plays all profiles alike often, and solves the game of the mean rewards.
    #[default]
    Explore,
    /// Two players without regret (Exp3 with a little uniform play) meet; the mean of their play is nearly coarse correlated.
    SelfPlay,
}

/// Plays all profiles in turn.
struct Explore {
    sizes: [usize; 2],
    sums: Vec<[f64; 2]>,
    counts: Vec<f64>,
    next: usize,
}

impl StationaryLearner for Explore {
    fn plays(&self) -> Vec<f64> {
        let mut joint = vec![0.0; self.counts.len()];
        joint[self.next] = 1.0;
        joint
    }

    fn sees(&mut self, place: usize, rewards: [f64; 2]) {
        self.counts[place] += 1.0;
        [0, 1].iter().for_each(|i| self.sums[place][*i] += rewards[*i]);
        self.next = (self.next + 1) % self.counts.len();
    }

    fn learned(&self, concept: Concept) -> Result<Vec<f64>, String> {
        let sizes = self.sizes;
        let names = |size: usize| (0..size).map(|i| format!("s{i}")).collect::<Vec<_>>();
        let players = names(2);
        let game = Game::from_fn("estimated", players, vec![names(sizes[0]), names(sizes[1])], |profile| {
            let place = profile[0] + profile[1] * sizes[0];
            self.sums[place].map(|sum| sum / self.counts[place].max(1.0)).to_vec()
        })?;
        equilibrium(&game, concept)
    }
}

/// Two players without regret.
struct SelfPlay {
    sizes: [usize; 2],
    players: [Ftrl; 2],
    uniform: f64,
    sum: Vec<f64>,
}

impl SelfPlay {
    fn strategy(&self, player: usize) -> Vec<f64> {
        let even = self.uniform / self.sizes[player] as f64;
        self.players[player].probabilities().iter().map(|p| (1.0 - self.uniform) * p + even).collect()
    }
}

impl StationaryLearner for SelfPlay {
    fn plays(&self) -> Vec<f64> {
        let (first, second) = (self.strategy(0), self.strategy(1));
        second.iter().flat_map(|q| first.iter().map(move |p| p * q)).collect()
    }

    fn sees(&mut self, place: usize, rewards: [f64; 2]) {
        let played = self.plays();
        self.sum.iter_mut().zip(&played).for_each(|(sum, p)| *sum += p);
        let moves = [place % self.sizes[0], place / self.sizes[0]];
        for player in 0..2 {
            let mut losses = vec![0.0; self.sizes[player]];
            losses[moves[player]] = (1.0 - rewards[player]) / self.strategy(player)[moves[player]];
            self.players[player].update(&losses);
        }
    }

    fn learned(&self, _: Concept) -> Result<Vec<f64>, String> {
        let rounds: f64 = self.sum.iter().sum();
        if rounds == 0.0 {
            return Ok(self.plays());
        }
        Ok(self.sum.iter().map(|sum| sum / rounds).collect())
    }
}

fn learner(kind: Kind, sizes: [usize; 2], rounds: u32) -> Box<dyn StationaryLearner> {
    let size = sizes[0] * sizes[1];
    match kind {
        Kind::Explore => Box::new(Explore { sizes, sums: vec![[0.0; 2]; size], counts: vec![0.0; size], next: 0 }),
        Kind::SelfPlay => {
            let step = |moves: usize| {
                let moves_ = moves as f64;
                Step::Fixed((libm::log(moves_.max(2.0)) / (moves_ * f64::from(rounds.max(1)))).sqrt())
            };
            let players = sizes.map(|moves| hedge(moves, step(moves)));
            Box::new(SelfPlay { sizes, players, uniform: 0.05, sum: vec![0.0; size] })
        }
    }
}

/// When the learner is restarted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Restarts {
    /// Never: the learner alone.
    Never,
    /// At regular times, which follow from the drift.
    Known,
    /// When a test fails.
    #[default]
    Tested,
    /// Tests are made, and as often as a test would have failed it is restarted, at times drawn at random.
    Random,
    /// Tests are made and change nothing.
    Ignored,
}

/// A game that changes at some rounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Drifting {
    /// The games, one after the other; all of two players with as many strategies, and payoffs from 0 to 1.
    pub games: Vec<Game>,
    /// The round in which each game begins; the first begins in round 0.
    pub begins: Vec<u32>,
    /// The number of rounds.
    pub rounds: u32,
}

impl Drifting {
    /// Returns the drift: the sum, over all changes, of the greatest change of a payoff.
    #[must_use]
    pub fn variation(&self) -> f64 {
        let change = |two: &[Game]| {
            let all = two[0].profiles().flat_map(|profile| {
                [0, 1].map(|player| (two[0].payoff(&profile, player) - two[1].payoff(&profile, player)).abs())
            });
            all.fold(0.0, f64::max)
        };
        self.games.windows(2).map(change).sum()
    }
}

/// How a wrapped learner did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The sum over rounds of the gap of what was played, in the game of that round.
    pub regret: f64,
    /// How often the learner was restarted.
    pub restarts: u32,
    /// Rounds in which it was learning.
    pub learning: u32,
    /// Rounds in which a test was made.
    pub testing: u32,
}

/// The shortest window of a test, in rounds.
const WINDOW: u32 = 128;
/// The probability of a round of a test while the learner's policy is played.
const PROBES: f64 = 0.1;
/// The probability with which a test may fail by chance.
const CHANCE: f64 = 0.001;

/// What the tests of one window length have seen: for each player's strategies the sum of its rewards and their number, and last for the
/// policy itself.
#[derive(Clone, Debug)]
struct Window {
    length: u32,
    rounds: u32,
    seen: [Vec<[f64; 2]>; 2],
}

impl Window {
    fn new(length: u32, sizes: [usize; 2]) -> Self {
        Window { length, rounds: 0, seen: sizes.map(|size| vec![[0.0; 2]; size + 1]) }
    }

    /// Whether a player gains more by a strategy than chance explains.
    fn fails(&self) -> bool {
        self.seen.iter().any(|own| {
            let policy = own.last().copied().unwrap_or_default();
            own[..own.len() - 1].iter().any(|other| {
                if policy[1] < 1.0 || other[1] < 1.0 {
                    return false;
                }
                let bound = (libm::log(1.0 / CHANCE) * (1.0 / policy[1] + 1.0 / other[1]) / 2.0).sqrt();
                other[0] / other[1] - policy[0] / policy[1] > bound + 0.1
            })
        })
    }
}

/// Plays a changing game with a learner and a wrapper.
///
/// # Errors
/// No games; games that do not fit each other; or a solver that did not end.
pub fn play(
    drifting: &Drifting,
    kind: Kind,
    concept: Concept,
    restarts: Restarts,
    draws: &mut Draws,
) -> Result<Run, String> {
    let first = drifting.games.first().ok_or("a changing game needs at least one game")?;
    let alike = |game: &Game| game.players.len() == 2 && game.sizes() == first.sizes();
    if drifting.begins.len() != drifting.games.len() || !drifting.games.iter().all(alike) {
        return Err(
            "the games must be of two players, with as many strategies, and each needs the round in which it begins"
                .into(),
        );
    }
    let times = match restarts {
        Restarts::Random => {
            let tested = walk(drifting, kind, concept, Restarts::Tested, &[], draws)?;
            let mut times: Vec<u32> =
                (0..tested.restarts).map(|_| draws.below(u64::from(drifting.rounds.max(1))) as u32).collect();
            times.sort_unstable();
            times
        }
        _ => Vec::new(),
    };
    walk(drifting, kind, concept, restarts, &times, draws)
}

fn walk(
    drifting: &Drifting,
    kind: Kind,
    concept: Concept,
    restarts: Restarts,
    times: &[u32],
    draws: &mut Draws,
) -> Result<Run, String> {
    let sizes = [drifting.games[0].sizes()[0], drifting.games[0].sizes()[1]];
    let profiles = (sizes[0] * sizes[1]) as f64;
    let rounds = f64::from(drifting.rounds);
    // Lengths that balance the rounds of learning, the error that they leave, and the drift.
    let epoch = match restarts {
        Restarts::Known => {
            let drift = drifting.variation().max(1e-9);
            (libm::pow(rounds / drift, 0.75) * libm::pow(profiles, 0.25)).min(rounds)
        }
        _ => rounds,
    };
    let learning = match restarts {
        Restarts::Known | Restarts::Never => libm::pow(epoch, 2.0 / 3.0) * libm::cbrt(profiles),
        _ => (profiles * rounds).sqrt(),
    };
    let (epoch, learning) = (epoch.ceil() as u32, learning.ceil().min(epoch.ceil()) as u32);
    let tests = matches!(restarts, Restarts::Tested | Restarts::Random | Restarts::Ignored);
    let windows = || {
        let mut lengths = vec![WINDOW];
        while lengths.last().is_some_and(|last| last * 2 <= drifting.rounds / 4) {
            lengths.push(lengths.last().map_or(WINDOW, |last| last * 2));
        }
        lengths.into_iter().map(|length| Window::new(length, sizes)).collect::<Vec<_>>()
    };
    let mut run = Run { regret: 0.0, restarts: 0, learning: 0, testing: 0 };
    let mut active = learner(kind, sizes, learning);
    let (mut since, mut policy): (u32, Option<Vec<f64>>) = (0, None);
    let mut open = windows();
    let mut known: Option<(usize, f64)> = None;
    let (mut game_number, mut time) = (0, 0);
    for round in 0..drifting.rounds {
        while drifting.begins.get(game_number + 1).is_some_and(|begin| *begin <= round) {
            game_number += 1;
        }
        let game = &drifting.games[game_number];
        let mut restart = restarts == Restarts::Known && since == epoch;
        while times.get(time).is_some_and(|next| *next <= round) {
            time += 1;
            restart = true;
        }
        if restart {
            run.restarts += 1;
            (active, since, policy, known, open) = (learner(kind, sizes, learning), 0, None, None, windows());
        }
        since += 1;
        let Some(committed) = &policy else {
            let joint = active.plays();
            run.learning += 1;
            run.regret += gap(game, &joint, concept);
            let place = draws.weighted(&joint).unwrap_or_default();
            active.sees(place, rewards(game, place, draws));
            if since == learning {
                policy = Some(active.learned(concept)?);
            }
            continue;
        };
        let probe = (tests && draws.chance(PROBES)).then(|| {
            let player = draws.below(2) as usize;
            (player, draws.below(sizes[player] as u64) as usize)
        });
        let place = draws.weighted(committed).unwrap_or_default();
        let mut moves = [place % sizes[0], place / sizes[0]];
        match probe {
            None => {
                let value = match known {
                    Some((number, value)) if number == game_number => value,
                    _ => gap(game, committed, concept),
                };
                known = Some((game_number, value));
                run.regret += value;
            }
            Some((player, instead)) => {
                run.testing += 1;
                run.regret += gap(game, &deviated(committed, sizes, player, instead), concept);
                moves[player] = instead;
            }
        }
        let seen = rewards(game, moves[0] + moves[1] * sizes[0], draws);
        let mut failed = false;
        for window in open.iter_mut().filter(|_| tests) {
            match probe {
                None => {
                    for player in 0..2 {
                        let last = sizes[player];
                        window.seen[player][last][0] += seen[player];
                        window.seen[player][last][1] += 1.0;
                    }
                }
                Some((player, instead)) => {
                    window.seen[player][instead][0] += seen[player];
                    window.seen[player][instead][1] += 1.0;
                }
            }
            window.rounds += 1;
            if window.rounds == window.length {
                failed |= window.fails();
                *window = Window::new(window.length, sizes);
            }
        }
        if failed && restarts == Restarts::Tested {
            run.restarts += 1;
            (active, since, policy, known, open) = (learner(kind, sizes, learning), 0, None, None, windows());
        }
    }
    Ok(run)
}

/// The joint distribution in which a player always plays one strategy.
fn deviated(joint: &[f64], sizes: [usize; 2], player: usize, instead: usize) -> Vec<f64> {
    let mut moved = vec![0.0; joint.len()];
    for (place, p) in joint.iter().enumerate() {
        let mut moves = [place % sizes[0], place / sizes[0]];
        moves[player] = instead;
        moved[moves[0] + moves[1] * sizes[0]] += p;
    }
    moved
}

/// Rewards of a profile: 1 with the probability of the payoff, else 0.
fn rewards(game: &Game, place: usize, draws: &mut Draws) -> [f64; 2] {
    [0, 1].map(|player| f64::from(u8::from(draws.chance(game.payoff_at(place, player)))))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{Concept, Drifting, Kind, Restarts, deviated, equilibrium, gap, play};
    use crate::normal::Game;
    use polity_base::rng::{Draws, Stream};

    fn random(draws: &mut Draws) -> Game {
        let names = |i: usize| (0..i).map(|i| format!("s{i}")).collect::<Vec<_>>();
        Game::new("random", names(2), vec![names(2); 2], (0..8).map(|_| draws.unit()).collect()).unwrap()
    }

    fn drifting(seed: u64, games: u32, rounds: u32) -> Drifting {
        let mut draws = Draws::new(seed, Stream::World, 0, 0);
        let games_ = (0..games).map(|_| random(&mut draws)).collect();
        Drifting { games: games_, begins: (0..games).map(|i| i * rounds / games).collect(), rounds }
    }

    fn regret(restarts: Restarts, games: u32, kind: Kind, concept: Concept) -> f64 {
        let of = |seed| {
            let drifting = drifting(seed, games, 40_000);
            play(&drifting, kind, concept, restarts, &mut Draws::new(seed, Stream::World, 1, 0)).unwrap().regret
        };
        (0..8).map(of).sum::<f64>() / 8.0
    }

    #[test]
    fn equilibria_have_no_gap_and_other_play_has() {
        let mut draws = Draws::new(1, Stream::World, 0, 0);
        for _ in 0..20 {
            let game = random(&mut draws);
            for concept in [Concept::Nash, Concept::Correlated, Concept::Coarse] {
                assert!(gap(&game, &equilibrium(&game, concept).unwrap(), concept) < 1e-9);
            }
        }
        assert_eq!(deviated(&[0.25, 0.25, 0.25, 0.25], [2, 2], 1, 0), [0.5, 0.5, 0.0, 0.0]);
    }

    #[test]
    fn restarts_help_in_a_game_that_changes_and_not_in_one_that_stays() {
        let of = |restarts, games| regret(restarts, games, Kind::Explore, Concept::Nash);
        let alone = of(Restarts::Never, 8);
        assert!(of(Restarts::Known, 8) < 0.8 * alone);
        assert!(of(Restarts::Tested, 8) < 0.8 * alone);
        assert!(of(Restarts::Ignored, 8) > 0.9 * alone);
        assert!(of(Restarts::Tested, 8) < of(Restarts::Random, 8));
    }

    /// In a game that stays the same a test fails seldom, and the learner's regret is small.
    #[test]
    fn tests_seldom_fail_without_a_change() {
        let mut restarts = 0;
        for seed in 0..8 {
            let drifting = drifting(seed, 1, 40_000);
            let mut draws = Draws::new(seed, Stream::World, 1, 0);
            restarts += play(&drifting, Kind::Explore, Concept::Nash, Restarts::Tested, &mut draws).unwrap().restarts;
        }
        assert!(restarts <= 4, "{restarts}");
    }

    #[test]
    fn any_learner_is_wrapped() {
        let of = |restarts| regret(restarts, 8, Kind::SelfPlay, Concept::Coarse);
        assert!(of(Restarts::Tested) < of(Restarts::Never));
        assert!(of(Restarts::Known) < of(Restarts::Never));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut wrong = drifting(1, 2, 100);
        wrong.begins.pop();
        let mut draws = Draws::new(1, Stream::World, 1, 0);
        assert!(play(&wrong, Kind::Explore, Concept::Nash, Restarts::Never, &mut draws).is_err());
    }
}
