//! `polity eval` and `polity compare METHOD ... --task FILE`: run methods on the items of a file.

use super::args::{Answering, Common, Edits, Equal, Spending, Trying};
use super::failure::{Exit, Failure, failure};
use super::flags::edits as read_edits;
use super::output::{self, note, print_line};
use super::{progress, story};
use comfy_table::{ContentArrangement, Table, presets};
use polity_arena::arena::{
    self, Arena, ArenaObserver, ArenaRequest, COORDINATION, Entrant, Grid, Halt, Score, Spent, Task, Unit, tables,
};
use polity_driver::drive::{Stop, Watch};
use polity_driver::results::Run;
use polity_driver::run::{Engine, RunStatus, Summary, new_folder};
use polity_kernel::registry::Registry;
use polity_store::DriveError;
use serde_json::json;
use std::path::{Path, PathBuf};

/// In place of a method's name: all methods that can work on the items.
const ALL: &str = "all";

/// Maximum rows of a table on the terminal.
const MOST_ROWS: usize = 60;

/// The request of a command line, for all methods.
pub struct Wished<'a> {
    pub task: &'a Path,
    pub trying: Trying,
    /// Items of the pilot.
    pub pilot: Option<u32>,
    /// Whether each run is replayed before it counts.
    pub replay: bool,
    pub edits: &'a Edits,
    pub spending: Spending,
    pub out: Option<PathBuf>,
}

impl Wished<'_> {
    fn wish(&self, answering: &Answering) -> Result<ArenaRequest, Failure> {
        let input = |message: &str| Failure::new(Exit::Input, message);
        let Edits { model, seed, set, .. } = self.edits;
        let model = model.clone().ok_or_else(|| {
            input("no model is given; for instance --model sim/medium (`polity list models` lists them)")
        })?;
        if self.trying.repeats > 1 && answering.cache.is_some() {
            // A repeat asks the same words again, and would get the first one's answers.
            return Err(input(
                "--repeats with --cache would count the cached answers of one run several times; use only one of the two",
            ));
        }
        let mut edits = read_edits(set)?;
        edits.extend(answering.flags()?);
        let Trying { limit, repeats } = self.trying;
        let pilot = self.pilot;
        Ok(ArenaRequest {
            model,
            limit,
            repeats,
            pilot,
            replay: self.replay,
            seed: seed.unwrap_or(1),
            edits,
            budget: self.spending.budget(),
        })
    }

    fn entrant(&self, word: &str, registry: &Registry) -> Result<Entrant, Failure> {
        Ok(Entrant::read(word, self.edits.agents, self.edits.rounds, registry)?)
    }

    fn folder(&self, engine: &Engine<'_>, name: &str, seed: u64) -> Result<PathBuf, Failure> {
        match &self.out {
            Some(out) => Ok(out.clone()),
            None => Ok(new_folder(engine.disk.as_ref(), name, seed)?),
        }
    }
}

/// Shows runs as they are made.
struct Teller<'a> {
    stop: Stop,
    /// Where each run gets its own report.
    reports: Option<&'a Engine<'a>>,
}

impl ArenaObserver for Teller<'_> {
    fn see(
        &mut self,
        what: &str,
        run: &mut dyn FnMut(&mut dyn Watch) -> Result<Summary, DriveError>,
    ) -> Result<Summary, DriveError> {
        note(what);
        let mut bar = progress::Bar::new(self.stop.clone());
        let summary = run(&mut bar)?;
        bar.finish();
        Ok(summary)
    }

    fn ended(&mut self, run: &Run<'_>) -> Result<(), DriveError> {
        let Some(engine) = self.reports else { return Ok(()) };
        let metrics = story::metrics(&run.tables)?;
        let written = story::write_report(engine.disk.as_ref(), run, &metrics, engine.registry);
        written.map(drop).map_err(|failure| DriveError::Folder(failure.message))
    }
}

fn halted(halt: Halt, out: &Path, common: &Common) -> Result<Exit, Failure> {
    let how = format!("the same command with --out {} continues", out.display());
    let summary = match halt {
        Halt::Stopped(summary) => summary,
        Halt::Failed(error) => {
            let mut failure = failure(&error, None);
            if failure.exit != Exit::Input {
                failure.message.push_str(&format!("\neverything recorded so far is kept; {how}"));
            }
            return Err(failure);
        }
    };
    let reason = summary.reason.as_ref().map_or(String::new(), |reason| format!(": {reason}"));
    note(&format!("{}{reason}; {how}", summary.status));
    if common.json {
        let object = json!({ "status": summary.status, "folder": out.display().to_string(), "run": summary.run, "reason": summary.reason });
        print_line(&output::json(&object));
    }
    Ok(if summary.status == RunStatus::Budget { Exit::Budget } else { Exit::Stopped })
}

fn show(grid: &Grid) {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(&grid.columns);
    table.add_rows(grid.rows.iter().take(MOST_ROWS));
    note(&table.to_string());
    if grid.rows.len() > MOST_ROWS {
        note(&format!(" ... {} more rows", grid.rows.len() - MOST_ROWS));
    }
}

/// Prints the use of the scoring model, if there is one.
fn show_scoring(methods: &[Score]) {
    let mut all = Spent::default();
    methods.iter().filter_map(|score| score.scoring.as_ref()).for_each(|spent| all.add(spent));
    if all.calls > 0 {
        note(&format!(
            "scoring the answers took {} calls, {} tokens and {:.4} USD, which do not count as use of the methods",
            all.calls,
            all.tokens(),
            all.cost_usd
        ));
    }
}

/// `polity eval`.
pub fn eval(
    engine: &Engine<'_>,
    method: &str,
    wished: Wished<'_>,
    answering: &Answering,
    common: &Common,
    stop: Stop,
) -> Result<Exit, Failure> {
    let entrant = wished.entrant(method, engine.registry)?;
    let wish = wished.wish(answering)?;
    let task = Task::read(wished.task)?;
    note(&task.words());
    let out = wished.folder(engine, &format!("eval-{}", entrant.method), wish.seed)?;
    let mut teller = Teller { stop, reports: (!common.no_report).then_some(engine) };
    let (score, _) = match Arena::new(engine, &task, &wish, &mut teller).eval(&entrant, &out) {
        Ok(found) => found,
        Err(halt) => return halted(halt, &out, common),
    };
    show(&tables::methods(std::slice::from_ref(&score)));
    show(&tables::ledger(std::slice::from_ref(&score)));
    show_scoring(std::slice::from_ref(&score));
    if score.simulated {
        note("answers come from simulated models");
    }
    note(&format!("run folder {}", score.run));
    if common.json {
        print_line(&output::json(&score));
    }
    Ok(Exit::Done)
}

/// `polity compare` of methods.
pub fn compare(
    engine: &Engine<'_>,
    methods: &[String],
    equal: Equal,
    wished: Wished<'_>,
    answering: &Answering,
    common: &Common,
    stop: Stop,
) -> Result<Exit, Failure> {
    let unit = match equal {
        Equal::Tokens => Some(Unit::Tokens),
        Equal::Calls => Some(Unit::Calls),
        Equal::Usd => Some(Unit::Usd),
        Equal::None => None,
    };
    let entrants: Option<Vec<Entrant>> = match methods {
        [word] if word == ALL => None,
        words => Some(words.iter().map(|word| wished.entrant(word, engine.registry)).collect::<Result<_, _>>()?),
    };
    let wish = wished.wish(answering)?;
    let task = Task::read(wished.task)?;
    note(&task.words());
    let out = wished.folder(engine, &format!("compare-{}", task.name()), wish.seed)?;
    let mut teller = Teller { stop, reports: (!common.no_report).then_some(engine) };
    let mut arena = Arena::new(engine, &task, &wish, &mut teller);
    let entrants = match entrants {
        Some(entrants) => entrants,
        None => {
            let (suitable, others) = arena.suitable(wished.edits.agents, wished.edits.rounds, &out)?;
            others.iter().for_each(|why| note(&format!("left out: {why}")));
            suitable
        }
    };
    let comparison = match arena.compare(entrants, unit, &out) {
        Ok(found) => found,
        Err(halt) => return halted(halt, &out, common),
    };
    arena::write(&engine.disk, &out, &comparison, engine.registry, !common.no_report)?;
    if let Some(pilot) = &comparison.pilot {
        note(&format!(
            "equal {}: {:.6} per item, which is what {} uses on the first {} items",
            pilot.unit.word(),
            pilot.allowance,
            pilot.set_by,
            pilot.items
        ));
        show(&tables::pilot(&comparison));
        note(&format!(
            "the pilot took {} calls, {} tokens and {:.4} USD, which do not count as use of the methods",
            pilot.spent.calls,
            pilot.spent.tokens(),
            pilot.spent.cost_usd
        ));
    }
    show(&tables::methods(&comparison.methods));
    comparison.warnings().iter().for_each(|warning| output::warn(warning));
    show(&tables::duels(&comparison));
    show(&tables::ledger(&comparison.methods));
    show_scoring(&comparison.methods);
    note(COORDINATION);
    if comparison.simulated {
        note("answers come from simulated models: they are no evidence about any real model");
    }
    note(&format!(
        "folder {}: table.md, table.tex, frontier.svg, methods.parquet, items.jsonl, references.bib, inspect",
        comparison.folder
    ));
    if !common.no_report {
        note(&format!("report {}", out.join("report.html").display()));
    }
    if common.json {
        comparison.methods.iter().for_each(|score| print_line(&output::json(score)));
        print_line(&output::json(&comparison));
    }
    Ok(Exit::Done)
}
