//! `polity solve`: equilibria of games, from files or of the library.

use super::failure::{Exit, Failure};
use super::output::{json, note, print_line, print_text, table};
use clap::ValueEnum;
use polity_games::correlated::{Aim, coarse, correlated};
use polity_games::equilibrium::{Equilibrium, Play};
use polity_games::extensive::{self, Profile, Tree};
use polity_games::normal::{self, Game};
use polity_games::{backward, cfr, library, nash, quantal, risk, stackelberg};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// The largest file of a game, in bytes.
const LARGEST: u64 = 64 << 20;

/// What to look for in a game.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Concept {
    /// Nash equilibria: all of two players if the game is small, else one.
    Nash,
    /// The correlated equilibrium with the greatest sum of payoffs.
    Correlated,
    /// The coarse-correlated equilibrium with the greatest sum of payoffs.
    CoarseCorrelated,
    /// The logit quantal-response equilibrium at --lambda.
    Quantal,
    /// The best mixed strategy to which the first of two players can commit itself.
    Stackelberg,
    /// The equilibrium of players who avoid variance.
    RiskAverse,
    /// The subgame-perfect equilibrium of a game in extensive form with perfect information.
    SubgamePerfect,
    /// An approximate Nash equilibrium of a game in extensive form, by counterfactual regret minimisation (CFR+).
    Cfr,
}

impl Concept {
    fn name(self) -> String {
        self.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned())
    }
}

/// What the command is given.
#[derive(Debug, clap::Args)]
pub struct Solving {
    /// A game: a file in Gambit's format .nfg or .efg, or the name of a game of the library (for instance prisoners-dilemma, kuhn).
    #[arg(value_name = "GAME")]
    game: PathBuf,
    /// What to look for [default: nash; of a game in extensive form subgame-perfect, or cfr if players do not see all moves].
    #[arg(long, value_enum, value_name = "CONCEPT")]
    concept: Option<Concept>,
    /// The precision of quantal responses, per unit of payoff: 0 is chance [default: 1].
    #[arg(long, value_name = "X", value_parser = super::numbers::decimal, allow_negative_numbers = true)]
    lambda: Option<f64>,
    /// Iterations of cfr [default: 1000].
    #[arg(long, value_name = "N", value_parser = super::numbers::whole::<u32>, allow_negative_numbers = true)]
    iterations: Option<u32>,
    /// Use cfr with sampled moves (external sampling) and this seed.
    #[arg(long, value_name = "SEED", value_parser = super::numbers::whole::<u64>, allow_negative_numbers = true)]
    seed: Option<u64>,
    /// The weight of the variance for risk-averse players, per unit of payoff [default: 1].
    #[arg(long, value_name = "X", value_parser = super::numbers::decimal, allow_negative_numbers = true)]
    aversion: Option<f64>,
    /// The probability with which risk-averse players expect any move of the others [default: 0.1].
    #[arg(long, value_name = "P", value_parser = super::numbers::decimal, allow_negative_numbers = true)]
    tremble: Option<f64>,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// A game of either form.
enum Either {
    Normal(Game),
    Extensive(Tree),
}

pub fn solve(asked: &Solving) -> Result<Exit, Failure> {
    let input = |message: String| Failure::new(Exit::Input, message);
    let solved = match read(&asked.game)? {
        Either::Normal(game) => {
            let concept = asked.concept.unwrap_or(Concept::Nash);
            check_flags(asked, concept)?;
            of_normal(&game, concept, asked).map_err(input)?
        }
        Either::Extensive(tree) => {
            let usual = if tree.perfect_information() { Concept::SubgamePerfect } else { Concept::Cfr };
            let concept = asked.concept.unwrap_or(usual);
            check_flags(asked, concept)?;
            of_extensive(&tree, concept, asked).map_err(input)?
        }
    };
    if asked.json {
        print_line(&json(&solved.object));
    } else {
        print_text(&solved.text);
        solved.notes.iter().for_each(|text| note(text));
    }
    Ok(Exit::Done)
}

/// What is printed: for programs, or for people.
struct Solved {
    object: Map<String, Value>,
    text: String,
    notes: Vec<String>,
}

/// Reads a file, or finds a game of the library.
fn read(name: &Path) -> Result<Either, Failure> {
    let input = |message: String| Failure::new(Exit::Input, message);
    let shown = name.display();
    if !name.exists() {
        let name = name.to_string_lossy();
        if let Some(tree) = extensive::game(&name) {
            return Ok(Either::Extensive(tree));
        }
        if name.contains(['/', '.']) {
            return Err(input(format!("there is no file `{shown}`")));
        }
        let trees = extensive::NAMES.join(", ");
        return library::named(&name)
            .map(Either::Normal)
            .map_err(|error| input(format!("{error}; in extensive form {trees}; and no file has that name")));
    }
    let size = std::fs::metadata(name).map_or(0, |facts| facts.len());
    if size > LARGEST {
        return Err(input(format!("`{shown}` has {size} bytes; a game has at most {LARGEST}")));
    }
    let text = std::fs::read_to_string(name).map_err(|error| input(format!("`{shown}` cannot be read: {error}")))?;
    let game = match text.split_whitespace().next() {
        Some("NFG") => normal::read(&text).map(Either::Normal),
        Some("EFG") => extensive::read(&text).map(Either::Extensive),
        _ => Err("a game in normal form begins with `NFG`, one in extensive form with `EFG` (Gambit's formats)".into()),
    };
    game.map_err(|error| input(format!("`{shown}`: {error}")))
}

/// Refuses flags that have no effect with a concept.
fn check_flags(asked: &Solving, concept: Concept) -> Result<(), Failure> {
    let given = [
        ("--lambda", asked.lambda.is_some(), &[Concept::Quantal][..]),
        ("--iterations", asked.iterations.is_some(), &[Concept::Cfr]),
        ("--seed", asked.seed.is_some(), &[Concept::Cfr]),
        ("--aversion", asked.aversion.is_some(), &[Concept::RiskAverse]),
        ("--tremble", asked.tremble.is_some(), &[Concept::RiskAverse]),
    ];
    match given.iter().find(|(_, given, of)| *given && !of.contains(&concept)) {
        None => Ok(()),
        Some((flag, _, of)) => {
            let of: Vec<String> = of.iter().map(|concept| concept.name()).collect();
            let message = format!("{flag} is for --concept {}; this is --concept {}", of.join(", "), concept.name());
            Err(Failure::new(Exit::Input, message))
        }
    }
}

fn of_normal(game: &Game, concept: Concept, asked: &Solving) -> Result<Solved, String> {
    let mut more = Map::new();
    let mut notes = Vec::new();
    let equilibria = match concept {
        Concept::Nash => {
            let solved = nash::solve(game)?;
            if solved.continuum {
                notes.push(
                    "the game is degenerate: mixtures of some of these equilibria are equilibria, too".to_owned(),
                );
            }
            if !solved.complete {
                notes.push(format!("there may be more equilibria; method: {}", solved.method));
            }
            more.insert("method".into(), solved.method.into());
            more.insert("complete".into(), solved.complete.into());
            more.insert("continuum".into(), solved.continuum.into());
            solved.equilibria
        }
        Concept::Correlated => vec![correlated(game, Aim::Welfare)?],
        Concept::CoarseCorrelated => vec![coarse(game, Aim::Welfare)?],
        Concept::Quantal => {
            let found = quantal::logit(game, asked.lambda.unwrap_or(1.0))?;
            more.insert("lambda".into(), found.lambda.into());
            more.insert("residual".into(), found.residual.into());
            vec![found.equilibrium]
        }
        Concept::Stackelberg => {
            let found = stackelberg::strong(game, 0)?;
            let [leader, follower] = [&game.players[0], &game.players[1]];
            let reply = &game.strategies[1][found.reply];
            notes.push(format!("{leader} commits first; {follower} replies with {reply}"));
            more.insert("leader".into(), leader.as_str().into());
            more.insert("reply".into(), reply.as_str().into());
            vec![found.equilibrium]
        }
        Concept::RiskAverse => {
            let attitude =
                risk::Attitude { aversion: asked.aversion.unwrap_or(1.0), tremble: asked.tremble.unwrap_or(0.1) };
            let found = risk::equilibrium(game, attitude)?;
            more.insert("variances".into(), found.variances.into());
            more.insert("neutral_regret".into(), found.neutral_regret.into());
            vec![found.equilibrium]
        }
        Concept::SubgamePerfect | Concept::Cfr => {
            let name = concept.name();
            return Err(format!("--concept {name} is for games in extensive form (.efg); this one is in normal form"));
        }
    };
    let mut object = head(&game.title, &game.players, concept);
    object.insert("strategies".into(), game.strategies.clone().into());
    object.append(&mut more);
    object.insert("equilibria".into(), value(&equilibria)?);
    let text = equilibria.iter().enumerate().map(|(i, one)| shown(game, i + 1, one)).collect();
    Ok(Solved { object, text, notes })
}

fn head(title: &str, players: &[String], concept: Concept) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("game".into(), title.into());
    object.insert("concept".into(), concept.name().into());
    object.insert("players".into(), players.to_vec().into());
    object
}

fn value<T: serde::Serialize>(of: &T) -> Result<Value, String> {
    serde_json::to_value(of).map_err(|error| error.to_string())
}

/// An equilibrium for people: a line for each player, or for each combination.
fn shown(game: &Game, number: usize, one: &Equilibrium) -> String {
    let mut lines = match &one.play {
        Play::Strategies(all) => {
            let mut lines = table(vec!["player".into(), "payoff".into(), "plays".into()]);
            for (player, own) in all.iter().enumerate() {
                let plays = with_probabilities(&game.strategies[player], own);
                lines.add_row(vec![game.players[player].clone(), format!("{:.6}", one.payoffs[player]), plays]);
            }
            lines.to_string()
        }
        Play::Joint(outcomes) => {
            let header = [&game.players[..], &["probability".to_owned()]].concat();
            let mut lines = table(header);
            for outcome in outcomes {
                let names = outcome.profile.iter().zip(&game.strategies).map(|(i, own)| own[*i].clone());
                lines.add_row(names.chain([format!("{:.6}", outcome.probability)]).collect::<Vec<_>>());
            }
            let payoffs: Vec<String> = one.payoffs.iter().map(|payoff| format!("{payoff:.6}")).collect();
            format!("{lines}\npayoffs {}", payoffs.join(", "))
        }
    };
    lines.push('\n');
    format!("Equilibrium {number} (regret {:.1e})\n{lines}\n", one.regret)
}

/// The moves that are played, with their probabilities where they are not certain.
fn with_probabilities(names: &[String], probabilities: &[f64]) -> String {
    let played = names.iter().zip(probabilities).filter(|(_, p)| **p > 0.0);
    let word = |(name, p): (&String, &f64)| if *p == 1.0 { name.clone() } else { format!("{name} {p:.6}") };
    played.map(word).collect::<Vec<_>>().join(", ")
}

fn of_extensive(tree: &Tree, concept: Concept, asked: &Solving) -> Result<Solved, String> {
    let mut object = head(&tree.title, &tree.players, concept);
    let mut notes = Vec::new();
    let (profile, payoffs) = match concept {
        Concept::SubgamePerfect => {
            let found = backward::subgame_perfect(tree)?;
            if !found.is_unique() {
                notes.push(format!("{} ties: there are other subgame-perfect equilibria", found.ties.len()));
            }
            object.insert("unique".into(), found.is_unique().into());
            (found.profile, found.payoffs)
        }
        Concept::Cfr => {
            let variant = asked.seed.map_or(cfr::Variant::Plus, |seed| cfr::Variant::External { seed });
            let found = cfr::solve(tree, asked.iterations.unwrap_or(1000), variant)?;
            notes.push(format!(
                "exploitability {:.3e} after {} iterations",
                found.distance.exploitability, found.iterations
            ));
            object.insert("iterations".into(), found.iterations.into());
            object.insert("exploitability".into(), found.distance.exploitability.into());
            object.insert("nash_conv".into(), found.distance.nash_conv.into());
            (found.profile, found.distance.payoffs)
        }
        _ => {
            return Err(format!(
                "--concept {} is for games in normal form; this one is in extensive form, which subgame-perfect and cfr solve",
                concept.name()
            ));
        }
    };
    object.insert("payoffs".into(), payoffs.clone().into());
    object.insert("sets".into(), sets(tree, &profile));
    let mut lines = table(vec!["player".into(), "information set".into(), "plays".into()]);
    for (place, set) in tree.sets().iter().enumerate() {
        let plays = with_probabilities(&set.moves, profile.at(place));
        lines.add_row(vec![tree.players[set.player].clone(), set.name.clone(), plays]);
    }
    let payoffs: Vec<String> = payoffs.iter().map(|payoff| format!("{payoff:.6}")).collect();
    Ok(Solved { object, text: format!("{lines}\npayoffs {}\n", payoffs.join(", ")), notes })
}

/// The strategies at all information sets, for programs.
fn sets(tree: &Tree, profile: &Profile) -> Value {
    let of = |(place, set): (usize, &extensive::InformationSet)| {
        serde_json::json!({
            "player": tree.players[set.player],
            "set": set.name,
            "moves": set.moves,
            "probabilities": profile.at(place),
        })
    };
    tree.sets().iter().enumerate().map(of).collect()
}
