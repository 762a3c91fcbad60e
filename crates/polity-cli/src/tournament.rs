//! `polity tournament`: strategies of a repeated game play each other, and may evolve.

use super::args::{Evolving, Playing};
use super::failure::{Exit, Failure};
use super::output::{json, note, print_line, print_text, table};
use super::solve::{Read, game};
use polity_games::iterated::evolution::{Moran, replicator};
use polity_games::iterated::lattice::{Lattice, Neighbourhood};
use polity_games::iterated::{Conditions, Length, Payoffs, Results, Strategy, Tournament, all, parse};
use serde::Serialize;

/// The maximum number of moves in the JSON: they are held in memory.
const MOVES: u64 = 100_000_000;
/// Steps of the replicator equation, and their length times the range of payoffs: the result does not depend on the unit of payoffs.
const STEPS: usize = 2000;
const STEP: f64 = 0.5;
/// The intensity of selection in a Moran process times the range of payoffs, likewise.
const SELECTION: f64 = 5.0;
/// Individuals of each strategy at the beginning of a Moran process, and the maximum number of births.
const EACH: u64 = 10;
const BIRTHS: u64 = 200_000;
/// Rows and columns of a lattice, and generations on it.
const SIDE: usize = 50;
const GENERATIONS: usize = 200;

/// All that the command prints as JSON.
#[derive(Debug, Serialize)]
struct Page<'a> {
    game: &'a str,
    payoffs: Payoffs,
    #[serde(flatten)]
    results: &'a Results,
    /// Strategies that are not defined for these payoffs, and why.
    left_out: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    evolution: Option<Evolution>,
}

/// How a population of the strategies ended.
#[derive(Debug, Serialize)]
struct Evolution {
    kind: &'static str,
    /// Steps, births or generations.
    steps: u64,
    /// The strategies' shares of the population, the greatest first.
    shares: Vec<Share>,
}

#[derive(Debug, Serialize)]
struct Share {
    name: String,
    share: f64,
}

pub fn tournament(asked: &Playing) -> Result<Exit, Failure> {
    let wrong = |message: String| Failure::new(Exit::Input, message);
    let payoffs = payoffs(&asked.game)?;
    let length = match asked.continuation {
        Some(probability) => Length::Continues { probability, most: asked.turns },
        None => Length::Turns(asked.turns),
    };
    let conditions = Conditions { payoffs, length, noise: asked.noise };
    conditions.check().map_err(wrong)?;
    let (strategies, left_out) = strategies(&asked.strategies, &payoffs)?;
    let n = strategies.len() as u64;
    let pairs = n * (n + 1) / 2;
    let moves = pairs.saturating_mul(2 * u64::from(asked.turns));
    if asked.json && moves > MOVES {
        return Err(wrong(format!(
            "--json prints all moves, here up to {moves}; the maximum is {MOVES}: use fewer turns or strategies, or omit --json"
        )));
    }
    for message in &left_out {
        note(&format!("left out: {message}"));
    }
    let repetitions = asked.repetitions.get();
    let tournament =
        Tournament { strategies, conditions, repetitions, self_play: !asked.no_self_play, seed: asked.seed };
    let results = tournament.run(asked.json);
    let evolution = asked.evolve.map(|kind| evolve(kind, &results, &tournament)).transpose();
    let evolution = evolution.map_err(wrong)?;
    if asked.json {
        let page = Page { game: &asked.game, payoffs, results: &results, left_out: &left_out, evolution };
        print_line(&json(&page));
    } else {
        print_text(&shown(&results, evolution.as_ref()));
    }
    Ok(Exit::Done)
}

/// Returns the payoffs of a game by name, or from a file.
fn payoffs(name: &str) -> Result<Payoffs, Failure> {
    let wrong = |message: String| Failure::new(Exit::Input, format!("{name}: {message}"));
    match game(name)? {
        Read::Normal(game) => Payoffs::of(&game).map_err(|error| wrong(error.to_string())),
        Read::Extensive(_) => Err(wrong("the game is in extensive form; strategies play games in normal form".into())),
    }
}

/// Returns the strategies of a list, and for `all` what was left out.
fn strategies(list: &str, payoffs: &Payoffs) -> Result<(Vec<Strategy>, Vec<String>), Failure> {
    if list == "all" {
        let (found, missing) = all(payoffs);
        return Ok((found, missing.iter().map(ToString::to_string).collect()));
    }
    let names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
    let found: Result<Vec<Strategy>, _> = names.map(|name| parse(name, payoffs)).collect();
    let found = found.map_err(|error| Failure::new(Exit::Input, error.to_string()))?;
    if found.is_empty() {
        return Err(Failure::new(Exit::Input, "a tournament needs at least one strategy"));
    }
    Ok((found, Vec::new()))
}

/// Lets a population evolve that begins with equal shares of all strategies.
fn evolve(kind: Evolving, results: &Results, played: &Tournament) -> Result<Evolution, String> {
    let Tournament { strategies, conditions: Conditions { payoffs, .. }, seed, .. } = played;
    let (game, n, seed) = (&results.payoffs, strategies.len(), *seed);
    let (low, high) = payoffs.range();
    let range = if high > low { high - low } else { 1.0 };
    let (name, steps, shares) = match kind {
        Evolving::Replicator => {
            let mut path = replicator(game, &vec![1.0; n], STEP / range, STEPS)?;
            ("replicator", STEPS as u64, path.pop().unwrap_or_default())
        }
        Evolving::Moran => {
            let moran = Moran { selection: SELECTION / range, steps: BIRTHS };
            let course = moran.run(game, &vec![EACH; n], seed, 0)?;
            let all = (EACH * n as u64) as f64;
            ("moran", course.steps, course.counts.iter().map(|count| *count as f64 / all).collect())
        }
        Evolving::Spatial => {
            let weights = vec![1.0; n];
            let mut lattice = Lattice::random([SIDE, SIDE], &weights, game.clone(), Neighbourhood::Eight, false, seed)?;
            (0..GENERATIONS).for_each(|_| lattice.imitate_best());
            ("spatial", GENERATIONS as u64, lattice.shares())
        }
    };
    let named =
        strategies.iter().zip(shares).map(|(strategy, share)| Share { name: strategy.label().to_owned(), share });
    let mut shares: Vec<Share> = named.collect();
    shares.sort_by(|a, b| b.share.total_cmp(&a.share));
    Ok(Evolution { kind: name, steps, shares })
}

/// The tables for people.
fn shown(results: &Results, evolution: Option<&Evolution>) -> String {
    let words = |words: [&str; 5]| words.map(str::to_owned).to_vec();
    let mut ranking = table(words(["", "strategy", "payoff per turn", "cooperation", "wins"]));
    for (place, rank) in results.ranking.iter().enumerate() {
        let (score, cooperation) = (format!("{:.3}", rank.score), format!("{:.3}", rank.cooperation));
        ranking.add_row([(place + 1).to_string(), rank.name.clone(), score, cooperation, rank.wins.to_string()]);
    }
    let mut text = format!("{ranking}\n");
    if let Some(evolution) = evolution {
        let mut shares =
            table(vec![format!("after {} steps of {}", evolution.steps, evolution.kind), "share".to_owned()]);
        for share in evolution.shares.iter().filter(|share| share.share >= 0.0005) {
            shares.add_row([share.name.clone(), format!("{:.3}", share.share)]);
        }
        text.push_str(&format!("\n{shares}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(game: &str, strategies: &str) -> Playing {
        Playing {
            game: game.into(),
            strategies: strategies.into(),
            turns: 20,
            continuation: None,
            repetitions: std::num::NonZeroU32::MIN,
            noise: 0.0,
            seed: 1,
            no_self_play: false,
            evolve: None,
            json: true,
        }
    }

    #[test]
    fn what_cannot_be_played_is_refused_in_words() {
        for (asked, told) in [
            (asked("prisoners-dilema", "all"), "did you mean `prisoners-dilemma`?"),
            (asked("none.nfg", "all"), "none.nfg: "),
            (asked("matching-pennies", "all"), "not symmetric"),
            (asked("kuhn", "all"), "in extensive form"),
            (asked("chicken", "tit-for-tot"), "did you mean `tit-for-tat`?"),
            (asked("chicken", " , "), "at least one strategy"),
            (Playing { noise: 2.0, ..asked("chicken", "all") }, "0 to 1, not 2"),
            (Playing { turns: 0, ..asked("chicken", "all") }, "at least 1 turn"),
            (Playing { turns: u32::MAX, ..asked("chicken", "defector") }, "up to 8589934590; the maximum is 100000000"),
        ] {
            let failure = tournament(&asked).map(|_| ()).unwrap_err();
            assert!(failure.message().contains(told), "{}", failure.message());
        }
    }

    #[test]
    fn populations_keep_their_size_and_defectors_lose_to_grudgers() {
        for evolve in [Evolving::Replicator, Evolving::Moran, Evolving::Spatial] {
            let payoffs = Payoffs::PRISONERS_DILEMMA;
            let (strategies, _) = strategies("grudger,defector,tit-for-tat", &payoffs).unwrap();
            let tournament =
                Tournament { strategies, conditions: Conditions::default(), repetitions: 1, self_play: true, seed: 3 };
            let evolution = super::evolve(evolve, &tournament.run(false), &tournament).unwrap();
            assert!((evolution.shares.iter().map(|share| share.share).sum::<f64>() - 1.0).abs() < 1e-9);
            let defectors = evolution.shares.iter().find(|share| share.name == "defector").unwrap();
            assert!(defectors.share < 0.001, "{evolution:?}");
            // The same game in a unit a thousand times smaller.
            if let Evolving::Replicator = evolve {
                let Payoffs { cc, cd, dc, dd } = Payoffs::PRISONERS_DILEMMA;
                let [cc, cd, dc, dd] = [cc, cd, dc, dd].map(|payoff| 1000.0 * payoff);
                let conditions = Conditions { payoffs: Payoffs { cc, cd, dc, dd }, ..Conditions::default() };
                let tournament = Tournament { conditions, ..tournament };
                let scaled = super::evolve(evolve, &tournament.run(false), &tournament).unwrap();
                for one in &evolution.shares {
                    let other = scaled.shares.iter().find(|other| other.name == one.name).unwrap();
                    assert!((one.share - other.share).abs() < 1e-9, "{scaled:?}");
                }
            }
        }
    }
}
