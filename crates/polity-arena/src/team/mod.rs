//! A method that answers single questions: what `polity ask` and `polity serve --method` do.
//!
//! Every question is an ordinary run with one item, in a folder of its own, so that it can be replayed, verified and viewed like any
//! other. All runs share one hard budget.

mod purse;

use crate::arena::{Entrant, Sheet, Spent, scenario_on};
use polity_driver::drive::Unwatched;
use polity_driver::results;
use polity_driver::run::{Engine, Extent, Prepared, RunStatus, SetKey, claim_shared, prepare_with_file};
use polity_kernel::ask::Settings;
use polity_kernel::scenario::{Budget, Scenario};
use polity_kernel::tree::{Node, Value};
use polity_store::DriveError;
use polity_store::files::Reach;
use purse::{Purse, Stage};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The file of a run's item.
const FILE: &str = "question.jsonl";
/// A run folder's name begins with this, as the ids of OpenAI's answers do.
const PREFIX: &str = "chatcmpl-";
/// A question with which a team is checked before anybody asks one.
const SAMPLE: &str = "How many legs do three spiders have?";

/// How a team works.
#[derive(Clone, Debug)]
pub struct TeamRequest {
    /// `provider/model` of all members.
    pub model: String,
    /// Seed of runs whose question names none.
    pub seed: u64,
    /// Changes of the scenario.
    pub edits: Vec<(String, Node)>,
    /// The budget of all runs together.
    pub budget: Budget,
}

/// A question to a team.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// Its text, with everything that the members are to know.
    pub text: String,
    /// The seed of its run; if `None`, the team's.
    pub seed: Option<u64>,
    /// Sampling settings of members that have none of their own.
    pub settings: Settings,
}

/// A team's answer.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The name of the run folder.
    pub id: String,
    /// The run folder.
    pub run: PathBuf,
    /// The answer.
    pub text: String,
    /// The run's digest.
    pub digest: String,
    /// What the members' calls used.
    pub spent: Spent,
}

/// Why a team gives no answer.
#[derive(Debug)]
pub enum Unanswered {
    /// The budget of all questions is used up; why.
    Budget(String),
    /// The run was stopped by a person; its folder.
    Stopped(PathBuf),
    /// The members came to no answer; the run folder.
    Silent(PathBuf),
    /// An error.
    Failed(DriveError),
}

impl From<DriveError> for Unanswered {
    fn from(error: DriveError) -> Self {
        Unanswered::Failed(error)
    }
}

/// A method with a team that answers questions, also several at the same time.
pub struct Team<'a> {
    engine: &'a Engine<'a>,
    entrant: Entrant,
    wish: TeamRequest,
    folder: PathBuf,
    purse: Purse,
    /// The number of the next run.
    next: AtomicU64,
}

impl<'a> Team<'a> {
    /// Opens a team whose runs go below `folder`.
    ///
    /// # Errors
    /// [`DriveError::Input`] for a method that cannot answer a question in text, and for limits in the scenario; those of scenarios and
    /// models.
    pub fn open(
        engine: &'a Engine<'a>,
        entrant: Entrant,
        wish: TeamRequest,
        folder: &Path,
    ) -> Result<Self, DriveError> {
        if wish.edits.iter().any(|(path, _)| path == "budget" || path.starts_with("budget.")) {
            let what =
                "-P budget: one budget holds for all requests; set it with --max-calls, --max-tokens or --max-cost";
            return Err(DriveError::Input(what.into()));
        }
        let purse = Purse::new(wish.budget.clone());
        let team = Team { engine, entrant, wish, folder: folder.to_path_buf(), purse, next: AtomicU64::new(1) };
        let sample = Query { text: SAMPLE.into(), ..Query::default() };
        let refused =
            |error: DriveError| DriveError::Input(format!("`{}` cannot answer questions: {error}", team.entrant.label));
        // The same check as at the first question.
        let whole = Engine { budget: team.wish.budget.clone(), ..engine.clone() };
        match whole.validate(&team.prepared(&sample)?, Extent::Whole) {
            Err(error @ DriveError::Scenario(_)) => return Err(refused(error)),
            checked => checked?,
        }
        claim_shared(engine.disk.as_ref(), folder)?;
        let names = engine.disk.list(folder).map_err(DriveError::disk(folder))?;
        let number = |name: &String| name.strip_prefix(PREFIX)?.parse::<u64>().ok();
        let last = names.iter().filter_map(number).max().unwrap_or(0);
        team.next.store(last.saturating_add(1), Ordering::Relaxed);
        Ok(team)
    }

    /// Answers a question by a run of the method.
    ///
    /// # Errors
    /// See [`Unanswered`].
    pub fn ask(&self, query: &Query) -> Result<Reply, Unanswered> {
        if let Some(why) = self.purse.is_empty() {
            return Err(Unanswered::Budget(why.into()));
        }
        let prepared = self.prepared(query)?;
        let (id, run) = self.new_run()?;
        let step = |stage: Stage, budget| {
            let engine = Engine { budget, ..self.engine.clone() };
            match stage {
                Stage::Begin => engine.run(&prepared, &run, &mut Unwatched),
                Stage::GoOn => engine.resume(&run, &mut Unwatched),
            }
        };
        let summary = self.purse.spend(step, || self.engine.summed_up(&run).ok().map(|summary| summary.totals))?;
        match summary.status {
            RunStatus::Done => {}
            RunStatus::Budget => return Err(Unanswered::Budget("what is left is not enough for this question".into())),
            _ => return Err(Unanswered::Stopped(run)),
        }
        let disk = self.engine.disk.as_ref();
        let results = results::of_run(disk, &run)?;
        let Some((text, spent)) =
            answer_of(&results, &summary.digest, &|model| self.engine.knows_price(&results.manifest, model))?
        else {
            return Err(Unanswered::Silent(run));
        };
        Ok(Reply { id, run, text, digest: summary.digest, spent })
    }

    /// Returns a name and a folder that no run has yet.
    fn new_run(&self) -> Result<(String, PathBuf), DriveError> {
        loop {
            let id = format!("{PREFIX}{:06}", self.next.fetch_add(1, Ordering::Relaxed));
            let run = self.folder.join(&id);
            if !self.engine.disk.exists(&run).map_err(DriveError::disk(&run))? {
                return Ok((id, run));
            }
        }
    }

    /// Returns the scenario in which the method works on a question.
    fn prepared(&self, query: &Query) -> Result<Prepared, DriveError> {
        let seed = query.seed.unwrap_or(self.wish.seed);
        let mut edits = self.wish.edits.clone();
        let Settings { temperature, top_p, .. } = query.settings;
        let settings = [("settings.temperature", temperature), ("settings.top_p", top_p)];
        let set = settings.into_iter().filter_map(|(path, value)| Some((path, value?)));
        edits.extend(set.map(|(path, value)| (path.to_owned(), Node::built(Value::Float(value)))));
        edits.extend(self.entrant.set.iter().cloned());
        let wish = TeamRequest { edits, seed, ..self.wish.clone() };
        with_question(scenario_of(&self.entrant, &wish)?, &query.text, Path::new("."), wish.edits)
    }
}

/// Returns the scenario in which a method works on a single question, which [`with_question`] puts in.
///
/// # Errors
/// Edits that do not fit.
pub fn scenario_of(entrant: &Entrant, wish: &TeamRequest) -> Result<Node, DriveError> {
    scenario_on(entrant, &wish.model, &wish.edits, "a question", items(), wish.seed)
}

fn items() -> serde_json::Value {
    json!({ "file": FILE, "shape": "plain", "count": 1 })
}

/// Makes a question the only item of a scenario with a method, and prepares it for a run. `reach`: the files that the scenario may read.
///
/// # Errors
/// Those of scenarios; [`DriveError::Input`] for edits that name other items.
pub fn with_question(
    mut tree: Node,
    text: &str,
    reach: impl Into<Reach>,
    edits: Vec<SetKey>,
) -> Result<Prepared, DriveError> {
    tree.edit("items", Node::from_json(&items()))?;
    let line = format!("{}\n", json!({ "question": text }));
    let mut prepared = prepare_with_file(tree, "a question", reach, "question", edits, (FILE, line.as_bytes()))?;
    // They are part of the scenario stored with the run.
    prepared.edits.clear();
    let items = Scenario::read(&prepared.tree)?.items;
    if items.is_none_or(|items| items.file != FILE || items.count != Some(1)) {
        let what =
            "-P items: the only item is the question of the request; `items.file` and `items.count` cannot be set";
        return Err(DriveError::Input(what.into()));
    }
    Ok(prepared)
}

/// Returns the answer to the only question of a run, and what the calls used; `None` if the members came to no answer, or if there are more
/// questions. `priced`: whether the price of a model is known.
///
/// # Errors
/// A damaged run folder.
pub fn answer_of(
    run: &results::Run<'_>,
    digest: &str,
    priced: &dyn Fn(&str) -> bool,
) -> Result<Option<(String, Spent)>, DriveError> {
    let sheet = Sheet::read(&run.tables, digest, &run.manifest, &[], priced)?;
    let is_one = sheet.rows.len() == 1;
    let row = sheet.rows.into_iter().next().filter(|_| is_one);
    Ok(row.and_then(|row| Some((row.answer?, row.spent))))
}
