//! `polity solve`: equilibria of a game, from a file or by name.

use super::args::{Concept, Solving};
use super::failure::{Exit, Failure};
use super::output::{json, note, print_line, print_text, table};
use polity_games::correlated::{self, Aim};
use polity_games::equilibrium::{Equilibrium, Play};
use polity_games::extensive::{self, Profile, Tree};
use polity_games::normal::{self, Game};
use polity_games::{backward, cfr, library, nash, quantal, stackelberg};
use serde_json::{Value, json as object};
use std::fmt::Write as _;

/// A game that was named.
pub enum Read {
    Normal(Game),
    Extensive(Tree),
}

/// A solution, for programs and for people.
struct Answer {
    page: Value,
    text: String,
}

pub fn solve(asked: &Solving) -> Result<Exit, Failure> {
    let wrong = |message: String| Failure::new(Exit::Input, message);
    let read = game(&asked.game).map_err(wrong)?;
    let concept = asked.concept.unwrap_or(match read {
        Read::Normal(_) => Concept::Nash,
        Read::Extensive(_) => Concept::Cfr,
    });
    let answer = match &read {
        Read::Normal(game) => of_normal(game, concept, asked),
        Read::Extensive(tree) => of_extensive(tree, concept, asked),
    };
    let Answer { mut page, text } = answer.map_err(|error| wrong(format!("{}: {error}", asked.game)))?;
    if asked.json {
        page["game"] = asked.game.as_str().into();
        page["concept"] = object!(concept);
        print_line(&json(&page));
    } else {
        print_text(&text);
    }
    Ok(Exit::Done)
}

/// Reads a game from a file, or finds it by name.
pub fn game(name: &str) -> Result<Read, String> {
    let text = || std::fs::read_to_string(name).map_err(|error| format!("{name}: {error}"));
    let blame = |error: String| format!("{name}: {error}");
    match name {
        file if file.ends_with(".nfg") => normal::read(&text()?).map(Read::Normal).map_err(blame),
        file if file.ends_with(".efg") => extensive::read(&text()?).map(Read::Extensive).map_err(blame),
        name => match extensive::game(name) {
            Some(tree) => Ok(Read::Extensive(tree)),
            None => library::named(name).map(Read::Normal).map_err(|error| {
                let trees = extensive::NAMES.join(", ");
                format!("{error}; in extensive form: {trees}; or a file that ends in .nfg or .efg")
            }),
        },
    }
}

fn of_normal(game: &Game, concept: Concept, asked: &Solving) -> Result<Answer, String> {
    let joint = |found: Equilibrium| Answer { text: shown(game, &[&found]), page: object!(found) };
    Ok(match concept {
        Concept::Nash => {
            let solved = nash::solve(game)?;
            let mut text = shown(game, &solved.equilibria.iter().collect::<Vec<_>>());
            let all = match (solved.complete, solved.continuum) {
                (true, false) => "these are all",
                (true, true) => "the game is degenerate: mixtures of some of these are equilibria, too",
                (false, _) => "there may be others",
            };
            let _ = writeln!(text, "found by {}; {all}", solved.method);
            Answer { text, page: object!(solved) }
        }
        Concept::Correlated => joint(correlated::correlated(game, Aim::Welfare)?),
        Concept::CoarseCorrelated => joint(correlated::coarse(game, Aim::Welfare)?),
        Concept::Quantal => {
            let found = quantal::logit(game, asked.lambda)?;
            Answer { text: shown(game, &[&found.equilibrium]), page: object!(found) }
        }
        Concept::Stackelberg => {
            let leader = asked.leader.map_or(0, |leader| leader.get() - 1);
            let found = stackelberg::strong(game, leader)?;
            let mut text = shown(game, &[&found.equilibrium]);
            let _ = writeln!(text, "{} commits, and the other replies", game.players[found.leader]);
            Answer { text, page: object!(found) }
        }
        Concept::SubgamePerfect | Concept::Cfr => {
            return Err("the game is in normal form; subgame-perfect and cfr need one in extensive form (.efg)".into());
        }
    })
}

fn of_extensive(tree: &Tree, concept: Concept, asked: &Solving) -> Result<Answer, String> {
    match concept {
        Concept::SubgamePerfect => {
            let solution = backward::subgame_perfect(tree)?;
            let mut text = played(tree, &solution.profile, &solution.payoffs);
            let ties = solution.ties.len();
            let _ = match ties {
                0 => writeln!(text, "it is the only one"),
                _ => writeln!(text, "at {ties} of the information sets another move is as good, so there are others"),
            };
            let page = object!({
                "players": tree.players, "strategies": behaviour(tree, &solution.profile), "payoffs": solution.payoffs,
                "unique": solution.is_unique(), "ties": solution.ties,
            });
            Ok(Answer { page, text })
        }
        Concept::Cfr => {
            let solution = cfr::solve(tree, asked.iterations.get(), cfr::Variant::Plus)?;
            let distance = &solution.distance;
            let mut text = played(tree, &solution.profile, &distance.payoffs);
            let _ = writeln!(
                text,
                "{} iterations of CFR+, exploitability {:.6}",
                solution.iterations, distance.exploitability
            );
            let page = object!({
                "players": tree.players, "strategies": behaviour(tree, &solution.profile), "payoffs": distance.payoffs,
                "iterations": solution.iterations, "exploitability": distance.exploitability, "nash_conv": distance.nash_conv,
            });
            if tree.players.len() > 2 || !tree.constant_sum() {
                note(
                    "CFR is known to approach an equilibrium where two players' payoffs add up to a constant; in this game it need not",
                );
            }
            Ok(Answer { page, text })
        }
        _ => Err("the game is in extensive form; subgame-perfect and cfr solve it".into()),
    }
}

/// The moves of each information set with their probabilities.
fn behaviour(tree: &Tree, profile: &Profile) -> Vec<Value> {
    let set = |(i, set): (usize, &extensive::InformationSet)| object!({"player": set.player, "set": set.name, "moves": set.moves, "probabilities": profile.at(i)});
    tree.sets().iter().enumerate().map(set).collect()
}

fn numbers(values: &[f64]) -> String {
    // A tiny negative number would be shown as -0.0000.
    let shown = |value: &f64| if value.abs() < 0.000_05 { "0.0000".to_owned() } else { format!("{value:.4}") };
    values.iter().map(shown).collect::<Vec<_>>().join(", ")
}

/// The strategies with a positive probability: `heads 0.5000, tails 0.5000`.
fn mixed(names: &[String], probabilities: &[f64]) -> String {
    let used = names.iter().zip(probabilities).filter(|(_, p)| **p >= 0.000_05);
    used.map(|(name, p)| format!("{name} {p:.4}")).collect::<Vec<_>>().join(", ")
}

/// Equilibria of a game in normal form, for people.
fn shown(game: &Game, found: &[&Equilibrium]) -> String {
    let mut header = game.players.clone();
    if matches!(found.first().map(|one| &one.play), Some(Play::Joint(_))) {
        header.push("probability".into());
    }
    header.extend(["payoffs".into(), "regret".into()]);
    let mut rows = table(header);
    for one in found {
        let ends = [numbers(&one.payoffs), format!("{:.1e}", one.regret)];
        match &one.play {
            Play::Strategies(strategies) => {
                let own = strategies.iter().zip(&game.strategies).map(|(own, names)| mixed(names, own));
                rows.add_row(own.chain(ends).collect::<Vec<_>>());
            }
            Play::Joint(outcomes) => {
                for (i, outcome) in outcomes.iter().enumerate() {
                    let own = outcome.profile.iter().zip(&game.strategies).map(|(i, names)| names[*i].clone());
                    // The whole distribution has one payoff.
                    let ends = if i == 0 { ends.clone() } else { Default::default() };
                    rows.add_row(own.chain([format!("{:.4}", outcome.probability)]).chain(ends).collect::<Vec<_>>());
                }
            }
        }
    }
    format!("{rows}\n")
}

/// A behaviour strategy of a tree, for people.
fn played(tree: &Tree, profile: &Profile, payoffs: &[f64]) -> String {
    const SHOWN: usize = 40;
    let mut rows = table(["player", "information set", "moves"].map(String::from).to_vec());
    for (i, set) in tree.sets().iter().enumerate().take(SHOWN) {
        rows.add_row([tree.players[set.player].clone(), set.name.clone(), mixed(&set.moves, profile.at(i))]);
    }
    let mut text = format!("{rows}\n");
    let sets = tree.sets().len();
    if sets > SHOWN {
        let _ = writeln!(text, "and {} more information sets (--json has all)", sets - SHOWN);
    }
    let _ = writeln!(text, "payoffs {}", numbers(payoffs));
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn asked(game: &str, concept: Option<Concept>) -> Solving {
        let iterations = std::num::NonZeroU32::new(100).unwrap();
        Solving { game: game.into(), concept, lambda: 1.0, leader: None, iterations, json: true }
    }

    #[test]
    fn every_concept_solves_games_of_its_form() {
        for concept in
            [Concept::Nash, Concept::Correlated, Concept::CoarseCorrelated, Concept::Quantal, Concept::Stackelberg]
        {
            solve(&asked("chicken", Some(concept))).unwrap();
        }
        for concept in [Concept::SubgamePerfect, Concept::Cfr] {
            solve(&asked("centipede", Some(concept))).unwrap();
        }
    }

    #[test]
    fn what_cannot_be_solved_is_refused_in_words() {
        for (game, concept, told) in [
            ("chiken", None, "there is no game"),
            ("none.nfg", None, "none.nfg: "),
            ("chicken", Some(Concept::Cfr), "need one in extensive form"),
            ("kuhn", Some(Concept::Nash), "is in extensive form"),
            ("kuhn", Some(Concept::SubgamePerfect), "information set"),
        ] {
            let failure = solve(&asked(game, concept)).map(|_| ()).unwrap_err();
            assert!(failure.message().contains(told), "{}", failure.message());
        }
    }
}
