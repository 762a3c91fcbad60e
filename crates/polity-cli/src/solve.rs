//! `polity solve`: equilibria of a game, from a file or by name.

use super::args::{Concept, Solving};
use super::failure::{Exit, Failure, Source};
use super::output::{json, note, print_line, print_text, table};
use clap::ValueEnum;
use polity_games::correlated::{self, Aim};
use polity_games::equilibrium::{Equilibrium, Play};
use polity_games::extensive::{self, Profile, Tree};
use polity_games::normal::{self, Game};
use polity_games::written::{self, Written};
use polity_games::{backward, cfr, library, nash, quantal, risk, stackelberg};
use polity_store::files::yaml;
use serde_json::{Value, json as object};
use std::fmt::Write as _;
use std::num::NonZeroU32;
use std::path::Path;

/// The largest file of a game, in bytes.
const LARGEST: u64 = 64 << 20;

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
    let read = game(&asked.game)?;
    let concept = asked.concept.unwrap_or(match &read {
        Read::Normal(_) => Concept::Nash,
        Read::Extensive(tree) if tree.perfect_information() => Concept::SubgamePerfect,
        Read::Extensive(_) => Concept::Cfr,
    });
    without_effect(asked, concept).map_err(wrong)?;
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
pub fn game(name: &str) -> Result<Read, Failure> {
    let wrong = |message: String| Failure::new(Exit::Input, message);
    let is_file = Path::new(name).exists() || [".nfg", ".efg", ".yaml"].iter().any(|end| name.ends_with(end));
    if !is_file {
        return match extensive::game(name) {
            Some(tree) => Ok(Read::Extensive(tree)),
            None => library::named(name).map(Read::Normal).map_err(|error| {
                let trees = extensive::GAMES.map(|(name, _)| name).join(", ");
                wrong(format!("{error}; in extensive form: {trees}; or a file that ends in .nfg, .efg or .yaml"))
            }),
        };
    }
    let blame = |error: String| wrong(format!("{name}: {error}"));
    let bytes = std::fs::metadata(name).map_err(|error| blame(error.to_string()))?.len();
    if bytes > LARGEST {
        return Err(blame(format!("the file has {bytes} bytes, and a game at most {LARGEST}")));
    }
    let text = std::fs::read_to_string(name).map_err(|error| blame(error.to_string()))?;
    match text.split_whitespace().next() {
        Some("EFG") => extensive::read(&text).map(Read::Extensive).map_err(blame),
        Some("NFG") => normal::read(&text).map(Read::Normal).map_err(blame),
        _ if name.ends_with(".yaml") => {
            let read = yaml::parse(&text).and_then(|data| written::read(&data));
            match read.map_err(|error| Source { name: name.into(), text }.failure(&error))? {
                Written::Normal(game) => Ok(Read::Normal(game)),
                Written::Extensive(tree) => Ok(Read::Extensive(tree)),
            }
        }
        _ => Err(blame(
            "a game begins with `NFG` (normal form) or `EFG` (extensive form), as in Gambit's formats; or its file ends in .yaml"
                .into(),
        )),
    }
}

/// Refuses flags that have no effect on a concept.
fn without_effect(asked: &Solving, concept: Concept) -> Result<(), String> {
    let flags = [
        ("--lambda", asked.lambda.is_some(), Concept::Quantal),
        ("--leader", asked.leader.is_some(), Concept::Stackelberg),
        ("--aversion", asked.aversion.is_some(), Concept::RiskAverse),
        ("--tremble", asked.tremble.is_some(), Concept::RiskAverse),
        ("--iterations", asked.iterations.is_some(), Concept::Cfr),
        ("--seed", asked.seed.is_some(), Concept::Cfr),
    ];
    let name =
        |concept: Concept| concept.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned());
    match flags.into_iter().find(|(_, given, of)| *given && *of != concept) {
        Some((flag, _, of)) => Err(format!("{flag} is for --concept {}, and this is {}", name(of), name(concept))),
        None => Ok(()),
    }
}

fn of_normal(game: &Game, concept: Concept, asked: &Solving) -> Result<Answer, String> {
    let mut page = object!({"players": game.players, "moves": game.strategies});
    let mut said = String::new();
    let equilibria = match concept {
        Concept::Nash => {
            let solved = nash::solve(game)?;
            let all = match (solved.complete, solved.continuum) {
                (true, false) => "these are all",
                (true, true) => "the game is degenerate: mixtures of some of these are equilibria, too",
                (false, _) => "there may be others",
            };
            said = format!("found by {}; {all}\n", solved.method);
            page["method"] = solved.method.into();
            page["complete"] = solved.complete.into();
            page["continuum"] = solved.continuum.into();
            solved.equilibria
        }
        Concept::Correlated => vec![correlated::correlated(game, Aim::Welfare)?],
        Concept::CoarseCorrelated => vec![correlated::coarse(game, Aim::Welfare)?],
        Concept::Quantal => {
            let found = quantal::logit(game, asked.lambda.unwrap_or(1.0))?;
            page["lambda"] = found.lambda.into();
            page["residual"] = found.residual.into();
            vec![found.equilibrium]
        }
        Concept::Stackelberg => {
            let found = stackelberg::strong(game, asked.leader.map_or(0, |leader| leader.get() - 1))?;
            said = format!("{} commits, and the other replies\n", game.players[found.leader]);
            page["leader"] = found.leader.into();
            page["reply"] = found.reply.into();
            vec![found.equilibrium]
        }
        Concept::RiskAverse => {
            let attitude =
                risk::Attitude { aversion: asked.aversion.unwrap_or(1.0), tremble: asked.tremble.unwrap_or(0.1) };
            let found = risk::equilibrium(game, attitude)?;
            said = format!("variances of the payoffs {}\n", numbers(&found.variances));
            page["variances"] = found.variances.into();
            page["neutral_regret"] = found.neutral_regret.into();
            vec![found.equilibrium]
        }
        Concept::SubgamePerfect | Concept::Cfr => {
            return Err("the game is in normal form; subgame-perfect and cfr need one in extensive form (.efg, or a tree in .yaml)".into());
        }
    };
    let text = shown(game, &equilibria) + &said;
    page["equilibria"] = object!(equilibria);
    Ok(Answer { page, text })
}

fn of_extensive(tree: &Tree, concept: Concept, asked: &Solving) -> Result<Answer, String> {
    let (profile, payoffs, said, mut page) = match concept {
        Concept::SubgamePerfect => {
            let solution = backward::subgame_perfect(tree)?;
            let said = match solution.ties.len() {
                0 => "it is the only one\n".to_owned(),
                ties => format!("at {ties} of the information sets another move is as good, so there are others\n"),
            };
            let page = object!({"unique": solution.is_unique(), "ties": solution.ties});
            (solution.profile, solution.payoffs, said, page)
        }
        Concept::Cfr => {
            let variant = asked.seed.map_or(cfr::Variant::Plus, |seed| cfr::Variant::External { seed });
            let solution = cfr::solve(tree, asked.iterations.map_or(1000, NonZeroU32::get), variant)?;
            let (distance, iterations) = (solution.distance, solution.iterations);
            let method = if asked.seed.is_some() { "CFR with sampled moves" } else { "CFR+" };
            let said = format!("{iterations} iterations of {method}, exploitability {:.6}\n", distance.exploitability);
            if tree.players.len() > 2 || !tree.constant_sum() {
                note(
                    "CFR is known to approach an equilibrium where the payoffs of two players add up to a constant; in this game it \
                     need not",
                );
            }
            let page = object!({
                "iterations": iterations, "exploitability": distance.exploitability, "nash_conv": distance.nash_conv,
            });
            (solution.profile, distance.payoffs, said, page)
        }
        _ => return Err("the game is in extensive form; subgame-perfect and cfr solve it".into()),
    };
    let text = played(tree, &profile, &payoffs) + &said;
    page["players"] = object!(tree.players);
    page["sets"] = behaviour(tree, &profile).into();
    page["payoffs"] = payoffs.into();
    Ok(Answer { page, text })
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
fn shown(game: &Game, found: &[Equilibrium]) -> String {
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
        Solving {
            game: game.into(),
            concept,
            lambda: None,
            leader: None,
            aversion: None,
            tremble: None,
            iterations: None,
            seed: None,
            json: true,
        }
    }

    #[test]
    fn every_concept_solves_games_of_its_form() {
        use Concept::{Cfr, CoarseCorrelated, Correlated, Nash, Quantal, RiskAverse, Stackelberg, SubgamePerfect};
        for concept in [Nash, Correlated, CoarseCorrelated, Quantal, Stackelberg, RiskAverse] {
            let Read::Normal(game) = game("chicken").unwrap() else { panic!("chicken is in normal form") };
            let Answer { page, text } = of_normal(&game, concept, &asked("chicken", None)).unwrap();
            // The payoffs of an equilibrium stand in both.
            let payoff = page["equilibria"][0]["payoffs"][0].as_f64().unwrap();
            assert!(text.contains(&format!("{payoff:.4}")), "{concept:?}: {text}");
        }
        for (concept, payoffs) in [(SubgamePerfect, "payoffs 4.0000, 1.0000"), (Cfr, "payoffs ")] {
            let Read::Extensive(tree) = game("centipede").unwrap() else { panic!("centipede is in extensive form") };
            let Answer { page, text } = of_extensive(&tree, concept, &asked("centipede", None)).unwrap();
            assert!(text.contains(payoffs) && page["sets"][0]["moves"][0] == "take", "{concept:?}: {text} {page}");
        }
    }

    #[test]
    fn what_cannot_be_solved_is_refused_in_words() {
        let (lambda, seed) = (Some(2.0), Some(1));
        for (asked, told) in [
            (asked("chiken", None), "there is no game"),
            (asked("none.nfg", None), "none.nfg: "),
            (asked("chicken", Some(Concept::Cfr)), "need one in extensive form"),
            (asked("kuhn", Some(Concept::Nash)), "is in extensive form"),
            (asked("kuhn", Some(Concept::SubgamePerfect)), "information set"),
            (Solving { lambda, ..asked("chicken", None) }, "--lambda is for --concept quantal, and this is nash"),
            (Solving { seed, ..asked("centipede", None) }, "--seed is for --concept cfr, and this is subgame-perfect"),
        ] {
            let failure = solve(&asked).map(|_| ()).unwrap_err();
            assert!(failure.message().contains(told), "{}", failure.message());
        }
    }
}
