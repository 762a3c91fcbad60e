//! Suites: games of a published system that together score a model, under one budget.
//!
//! Each game with each seed is an ordinary run in a folder of its own: started if its folder has none, continued if it was interrupted, read
//! if it has ended. The runs follow each other, so that what is left of the budget is known before each. A game in which the budget denied
//! calls is played anew, so that the scores do not depend on where a budget ended.

use crate::arena::{ArenaObserver, Halt, differs, remaining};
use polity_driver::drive::Totals;
use polity_driver::results;
use polity_driver::run::{Engine, Extent, Folder, Prepared, RunStatus, claim_shared};
use polity_kernel::scenario::{Budget, Scenario};
use polity_kernel::tree::{Node, Value, nearest};
use polity_stats::{Estimate, student};
use polity_store::DriveError;
use polity_store::disk::write_atomically;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The file in a suite's folder that holds its scores.
pub const SCORES_FILE: &str = "scores.json";

/// A game of a suite.
#[derive(Clone, Debug)]
pub struct Game {
    /// Its name in the suite.
    pub name: String,
    /// Its scenario, with the players.
    pub prepared: Prepared,
    /// The metric whose last value is the score.
    pub score: String,
}

/// A suite to be played.
#[derive(Clone, Debug)]
pub struct Suite<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its games, in order.
    pub games: &'a [Game],
    /// Runs of each game, each with its own seed, from the scenario's on.
    pub repeats: u32,
    /// The limits of all runs together.
    pub budget: Budget,
    /// The folder of all runs.
    pub out: &'a Path,
}

/// The scores of a game.
#[derive(Clone, Debug, Serialize)]
pub struct GameScore {
    /// Its name in the suite.
    pub game: String,
    /// The metric that is the score.
    pub metric: String,
    /// The score of each run, in order of seed.
    pub scores: Vec<f64>,
    /// Their mean, with a 95 % interval (Student) if there are at least two.
    #[serde(flatten)]
    pub mean: Mean,
    /// Calls of all its runs.
    pub calls: u64,
    /// What all its runs cost in US dollars; `None` if a price is unknown.
    pub cost_usd: Option<f64>,
    /// The run folders.
    pub runs: Vec<PathBuf>,
}

/// A mean with its interval.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Mean {
    /// The mean; `None` without values.
    pub mean: Option<f64>,
    /// Lower end of the interval; `None` with fewer than two values.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
}

impl From<Estimate> for Mean {
    fn from(estimate: Estimate) -> Self {
        Mean { mean: estimate.mean, low: estimate.low, high: estimate.high }
    }
}

/// The scores of a suite.
#[derive(Clone, Debug, Serialize)]
pub struct SuiteScore {
    /// The suite.
    pub suite: String,
    /// Its games, in order.
    pub games: Vec<GameScore>,
    /// The mean of the games' scores, seed by seed, with its interval over seeds.
    pub all: Mean,
    /// Whether simulated models answered.
    pub simulated: bool,
}

impl Suite<'_> {
    /// Plays all games that have not been played, and returns the scores. Nothing is paid before all games are known to be playable.
    ///
    /// # Errors
    /// [`Halt::Stopped`] if a person or the budget stopped a run: the same suite in the same folder continues. Errors of scenarios, models
    /// and folders; [`DriveError::Input`] for a score that is no metric of its game.
    pub fn play(&self, engine: &Engine<'_>, observer: &mut dyn ArenaObserver) -> Result<SuiteScore, Halt> {
        for game in self.games {
            engine.validate(&game.prepared, Extent::Whole).map_err(|error| named(&game.name, error))?;
        }
        claim_shared(engine.disk.as_ref(), self.out)?;
        let began = Instant::now();
        let (mut paid, mut simulated) = (Totals::default(), false);
        let mut games = Vec::new();
        for game in self.games {
            let mut of_game = GameScore {
                game: game.name.clone(),
                metric: game.score.clone(),
                scores: Vec::new(),
                mean: Mean { mean: None, low: None, high: None },
                calls: 0,
                cost_usd: Some(0.0),
                runs: Vec::new(),
            };
            let first = Scenario::read(&game.prepared.tree)?.seed;
            for seed in first..first + u64::from(self.repeats) {
                let run = self.out.join(format!("{}-{seed}", game.name));
                let mut prepared = game.prepared.clone();
                prepared.tree.edit("seed", Node::built(Value::Int(seed as i64)))?;
                paid.add(&set_aside(engine, &run)?);
                let begun = has_run(engine, &run, &prepared)?;
                let engine = Engine { budget: remaining(&self.budget, &paid, began), ..engine.clone() };
                let summary = observer
                    .see(&format!("{}, seed {seed}", game.name), &mut |watch| match begun {
                        true => engine.resume(&run, watch),
                        false => engine.run(&prepared, &run, watch),
                    })
                    .map_err(|error| named(&game.name, error))?;
                paid.add(&summary.totals);
                if summary.status != RunStatus::Done {
                    return Err(Halt::Stopped(Box::new(summary)));
                }
                let results = results::of_run(engine.disk.as_ref(), &run)?;
                observer.ended(&results)?;
                simulated |= summary.simulated;
                of_game.scores.push(score(&results, game)?);
                of_game.calls += summary.totals.calls;
                let cost = summary.totals.known_usd(summary.is_priced);
                of_game.cost_usd = of_game.cost_usd.zip(cost).map(|(sum, more)| sum + more);
                of_game.runs.push(run);
            }
            of_game.mean = student(&of_game.scores).into();
            games.push(of_game);
        }
        let by_seed: Vec<f64> = (0..self.repeats as usize)
            .map(|i| games.iter().filter_map(|game| game.scores.get(i)).sum::<f64>() / games.len() as f64)
            .collect();
        let scores = SuiteScore { suite: self.name.into(), games, all: student(&by_seed).into(), simulated };
        let text = serde_json::to_string_pretty(&scores).map_err(|error| DriveError::Folder(error.to_string()))?;
        let path = self.out.join(SCORES_FILE);
        write_atomically(engine.disk.as_ref(), &path, text.as_bytes()).map_err(DriveError::disk(&path))?;
        Ok(scores)
    }
}

/// Moves a run aside in which the budget denied calls: its players did not get all answers, so the game is played anew. Returns what all
/// runs of this game that were moved have paid.
fn set_aside(engine: &Engine<'_>, run: &Path) -> Result<Totals, DriveError> {
    let exists = |path: &Path| engine.disk.exists(path).map_err(DriveError::disk(path));
    let mut paid = Totals::default();
    let mut aside = PathBuf::new();
    for n in 1.. {
        aside = PathBuf::from(format!("{}-denied-{n}", run.display()));
        if !exists(&aside)? {
            break;
        }
        paid.add(&engine.summed_up(&aside)?.totals);
    }
    if exists(&run.join("manifest.json"))? {
        let totals = engine.summed_up(run)?.totals;
        if totals.denied > 0 {
            engine.disk.rename(run, &aside).map_err(DriveError::disk(run))?;
            paid.add(&totals);
        }
    }
    Ok(paid)
}

/// Whether a folder has a run of this very scenario.
fn has_run(engine: &Engine<'_>, run: &Path, prepared: &Prepared) -> Result<bool, DriveError> {
    let path = run.join("manifest.json");
    if !engine.disk.exists(&path).map_err(DriveError::disk(&path))? {
        return Ok(false);
    }
    let manifest = Folder::read(engine.disk.clone(), run)?.manifest()?;
    match differs(&manifest, prepared) {
        None => Ok(true),
        Some(why) => {
            let message = format!("{} holds another game: {why}. Choose another --out", run.display());
            Err(DriveError::Input(message))
        }
    }
}

fn score(run: &results::Run<'_>, game: &Game) -> Result<f64, DriveError> {
    let metrics = run.tables.metrics()?;
    if let Some((_, value)) = metrics.get(&game.score).and_then(|values| values.last()) {
        return Ok(*value);
    }
    let meant = nearest(&game.score, metrics.keys().map(String::as_str))
        .map_or(String::new(), |near| format!(", did you mean `{near}`?"));
    Err(DriveError::Input(format!("the game `{}` has no metric `{}` to score it{meant}", game.name, game.score)))
}

/// Adds the game's name to an error that names no place.
fn named(game: &str, error: DriveError) -> DriveError {
    match error {
        DriveError::Scenario(tree) => DriveError::Input(format!("the game `{game}`: {tree}")),
        DriveError::Model(why) => DriveError::Model(format!("the game `{game}`: {why}")),
        other => other,
    }
}
