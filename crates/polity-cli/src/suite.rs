//! `polity eval --suite`: a model plays the games of a published system, and gets their scores.

use super::arena::{Teller, halted};
use super::args::{FileAccess, Work};
use super::engine::with_engine;
use super::failure::{Exit, Failure};
use super::flags::{load, no_model};
use super::output::{self, json, note, print_line};
use super::systems::catalogue;
use comfy_table::{Table, presets};
use polity_arena::suite::{Game, Mean, Suite, SuiteScore};
use polity_driver::run::new_folder;
use polity_kernel::registry::Registry;
use std::path::PathBuf;

pub fn eval(
    name: &str,
    systems: Option<PathBuf>,
    repeats: u32,
    out: Option<PathBuf>,
    work: &Work,
    registry: &Registry,
) -> Result<Exit, Failure> {
    let Work { edits, spending, answering, common } = work;
    let catalogue = catalogue(systems, registry)?;
    let entry = catalogue.find(name)?;
    if entry.system.suite.is_empty() {
        let suites = catalogue.entries.iter().filter(|entry| !entry.system.suite.is_empty());
        let names: Vec<&str> = suites.map(|entry| entry.name.as_str()).collect();
        let what =
            format!("--suite {name}: this system has no games that score a model; suites are: {}", names.join(", "));
        return Err(Failure::new(Exit::Input, what));
    }
    if edits.model.is_none() {
        return Err(no_model());
    }
    if repeats > 1 && answering.cache.is_some() {
        // A repeat asks the same words again, and would get the first one's answers.
        let what =
            "--repeats with --cache would count the cached answers of one run several times; use only one of the two";
        return Err(Failure::new(Exit::Input, what));
    }
    let mut games = Vec::new();
    for game in &entry.system.suite {
        let flags = game.set.iter().map(|(key, value)| (key.clone(), value.clone()));
        let flags = flags.chain(edits.flags()).chain(answering.flags()?).collect();
        let file = entry.folder.join(&game.scenario);
        let (prepared, _) = load(&file, &FileAccess::default(), &edits.keys.set, flags, registry)?;
        games.push(Game { name: game.name.clone(), prepared, score: game.score.clone() });
    }
    with_engine(common, answering, registry, |engine, stop| {
        let out = match &out {
            Some(out) => out.clone(),
            None => new_folder(engine.disk.as_ref(), &format!("eval-{}", entry.name), edits.keys.seed.unwrap_or(1))?,
        };
        output::works_on("suite", &out);
        let suite = Suite { name: &entry.name, games: &games, repeats, budget: spending.budget(), out: &out };
        let mut teller = Teller { stop, reports: None };
        match suite.play(engine, &mut teller) {
            Ok(scores) => {
                show(&scores);
                note(&format!("the scores are also in {}", out.join(polity_arena::suite::SCORES_FILE).display()));
                if common.json {
                    print_line(&json(&scores));
                }
                Ok(Exit::Done)
            }
            Err(halt) => {
                let how = format!("the same command with --out {} continues", out.display());
                halted(halt, &how, &out, common)
            }
        }
    })
}

fn figures(mean: Mean) -> [String; 2] {
    let interval = mean.low.zip(mean.high).map_or(String::new(), |(low, high)| format!("{low:.1} to {high:.1}"));
    [mean.mean.map_or(String::new(), |mean| format!("{mean:.1}")), interval]
}

fn show(scores: &SuiteScore) {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(["game", "score", "95 % interval", "runs", "calls", "US dollars"]);
    for game in &scores.games {
        let [mean, interval] = figures(game.mean);
        let cost = game.cost_usd.map_or("unknown".into(), |usd| format!("{usd:.4}"));
        table.add_row([game.game.clone(), mean, interval, game.scores.len().to_string(), game.calls.to_string(), cost]);
    }
    let [mean, interval] = figures(scores.all);
    let calls: u64 = scores.games.iter().map(|game| game.calls).sum();
    table.add_row(["all".into(), mean, interval, String::new(), calls.to_string(), String::new()]);
    note(&table.to_string());
    if scores.simulated {
        note("answers come from simulated models");
    }
}
