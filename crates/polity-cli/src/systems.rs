//! `polity systems`: published systems, implemented and planned, and whether their claims hold.

use super::args::{Answering, Common, SweepLimits, Systems};
use super::engine::with_engine;
use super::failure::{Exit, Failure};
use super::output::{self, json, note, print_line};
use super::sweep::RunsBar;
use super::workers::tell_plan;
use polity_driver::run::{Engine, RunStatus, new_folder};
use polity_driver::systems::entry::{
    self as system, CONSENT, Clause, ClauseOrigin, DecidedBy, Feature, Finding, Over, Standing, Status, System,
};
use polity_driver::systems::{Asked, Catalogue, CheckPlan, Checked, ClaimReport, DRAWS, Entry, Row};
use polity_driver::workers::{Progress, Task, WorkSummary};
use polity_kernel::registry::Registry;
use polity_stats::CONFIDENCE;
use polity_store::disk::Disk;
use polity_store::printable::counted;
use serde_json::{Value, json as object};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The default folder of systems, in the current folder or a parent.
const FOLDER: &str = "systems";

pub fn systems(verb: Systems, registry: &Registry) -> Result<Exit, Failure> {
    match verb {
        Systems::List { group, systems, json } => list(&catalogue(systems.systems, registry)?, group.as_deref(), json),
        Systems::Show { names, all, systems, json } => {
            let catalogue = catalogue(systems.systems, registry)?;
            if all {
                catalogue.entries.iter().for_each(|entry| show(&catalogue, entry, json));
            }
            // A planned system is only a row of the index. Nothing is printed if one of the names is unknown.
            let named = names.iter().map(|name| match (catalogue.find(name), catalogue.row(name)) {
                (Ok(entry), _) => Ok(Ok(entry)),
                (Err(_), Some(row)) => Ok(Err(row)),
                (Err(error), None) => Err(Failure::from(error)),
            });
            for entry_or_row in named.collect::<Result<Vec<_>, Failure>>()? {
                match entry_or_row {
                    Ok(entry) => show(&catalogue, entry, json),
                    Err(row) => show_planned(row, json),
                }
            }
            Ok(Exit::Done)
        }
        Systems::Check {
            names,
            all,
            quick,
            breaks,
            without,
            allow_tools,
            dry_run,
            plan,
            out,
            limits,
            systems,
            access,
            common,
        } => {
            let folder_of_systems = folder_of_systems(systems.systems)?;
            let catalogue = Catalogue::read(&folder_of_systems, registry)?;
            let entries: Vec<&Entry> = match all {
                true => without_some(&catalogue, &without)?,
                false => with_examples(&catalogue, &names)?,
            };
            let answering = Answering { allow_tools, ..Answering::default() };
            with_engine(&common, &answering, registry, |engine, _| {
                let out = folder(engine.disk.as_ref(), out)?;
                let jobs = limits.limits(&common).jobs.get();
                let allowed = &access.allowed;
                let asked = Asked { entries: &entries, quick, breaks, dry: dry_run, out: &out, jobs, allowed };
                if plan {
                    let planned = asked.plan(engine, &folder_of_systems)?;
                    return Ok(tell_plan("check", &out, planned, &common));
                }
                check(engine, &asked, common.json)
            })
        }
        Systems::Schema => {
            print_line(&serde_json::to_string_pretty(&system::schema()).unwrap_or_default());
            Ok(Exit::Done)
        }
    }
}

/// Opens the named folder, else the nearest one in the parents.
pub(super) fn catalogue(named: Option<PathBuf>, registry: &Registry) -> Result<Catalogue, Failure> {
    Ok(Catalogue::read(&folder_of_systems(named)?, registry)?)
}

/// The named folder, else the nearest one in the parents.
fn folder_of_systems(named: Option<PathBuf>) -> Result<PathBuf, Failure> {
    let here = std::env::current_dir().unwrap_or_default();
    let above = || here.ancestors().map(|folder| folder.join(FOLDER)).find(|folder| folder.join("index.tsv").is_file());
    let folder = named.or_else(above).ok_or_else(|| {
        let what = "there is no folder `systems` with an index.tsv in this folder or a parent; name one with --systems \
                    (Polity's repository has one)";
        Failure::new(Exit::Input, what)
    })?;
    // Shown relative to the current folder, if possible.
    Ok(match folder.strip_prefix(&here) {
        Ok(shorter) if !shorter.as_os_str().is_empty() => shorter.to_path_buf(),
        _ => folder,
    })
}

/// The planned check in a folder, and its systems.
fn planned_check(disk: &dyn Disk, dir: &Path, registry: &Registry) -> Result<(CheckPlan, Catalogue), Failure> {
    let plan = CheckPlan::read(disk, dir)?;
    let catalogue = Catalogue::read(&plan.systems(dir), registry)?;
    Ok((plan, catalogue))
}

/// The systems of a planned check.
fn entries_of<'a>(plan: &CheckPlan, catalogue: &'a Catalogue) -> Result<Vec<&'a Entry>, Failure> {
    plan.names.iter().map(|name| Ok(catalogue.find(name)?)).collect()
}

/// `polity work` in the folder of a planned check.
pub(super) fn work(
    engine: &Engine<'_>,
    dir: &Path,
    task: Task,
    progress: &mut Progress<'_>,
) -> Result<WorkSummary, Failure> {
    let (plan, catalogue) = planned_check(engine.disk.as_ref(), dir, engine.registry)?;
    let (entries, allowed) = (entries_of(&plan, &catalogue)?, plan.allowed(dir));
    let (quick, breaks, jobs) = (plan.quick, plan.breaks, task.jobs);
    let asked = Asked { entries: &entries, quick, breaks, dry: false, out: dir, jobs, allowed: &allowed };
    Ok(asked.work(engine, task, progress)?)
}

/// `polity resume` of the folder of a planned check.
pub(super) fn resume(engine: &Engine<'_>, dir: &Path, limits: SweepLimits, common: &Common) -> Result<Exit, Failure> {
    let (plan, catalogue) = planned_check(engine.disk.as_ref(), dir, engine.registry)?;
    let (entries, allowed) = (entries_of(&plan, &catalogue)?, plan.allowed(dir));
    let (quick, breaks, jobs) = (plan.quick, plan.breaks, limits.limits(common).jobs.get());
    let asked = Asked { entries: &entries, quick, breaks, dry: false, out: dir, jobs, allowed: &allowed };
    check(engine, &asked, common.json)
}

/// All systems except those left out: by name, or by what they need or use.
fn without_some<'a>(catalogue: &'a Catalogue, without: &[String]) -> Result<Vec<&'a Entry>, Failure> {
    let mut entries: Vec<&Entry> = catalogue.entries.iter().collect();
    for name in without {
        // A leaf or a tool, or consent; an entry need not use it.
        if name.contains('/') || name == CONSENT {
            entries.retain(|Entry { system, .. }| !system.needs.contains(name) && !system.leaves.contains(name));
        } else {
            let left_out = &catalogue.find(name)?.name;
            entries.retain(|entry| entry.name != *left_out);
        }
    }
    Ok(entries)
}

/// The named systems, each followed by the examples on its map.
fn with_examples<'a>(catalogue: &'a Catalogue, names: &[String]) -> Result<Vec<&'a Entry>, Failure> {
    let mut entries: Vec<&Entry> = Vec::new();
    for name in names {
        let entry = catalogue.find(name)?;
        let examples = entry.system.map.iter().flat_map(|feature| &feature.systems);
        for name in std::iter::once(&entry.name).chain(examples) {
            if !entries.iter().any(|known| known.name == *name) {
                entries.push(catalogue.find(name)?);
            }
        }
    }
    Ok(entries)
}

/// Returns the folder of a check: a new one, so that runs of another build are not mistaken for this one's.
fn folder(disk: &dyn Disk, named: Option<PathBuf>) -> Result<PathBuf, Failure> {
    match named {
        Some(folder) => Ok(folder),
        None => Ok(new_folder(disk, "systems", 1)?),
    }
}

fn claims(entry: &Entry) -> usize {
    entry.system.claims.len() + entry.system.elsewhere.len()
}

/// The rows of a group, or all.
fn of_group<'a>(catalogue: &'a Catalogue, group: Option<&str>) -> Result<Vec<&'a Row>, Failure> {
    let rows: Vec<&Row> = catalogue.rows.iter().filter(|row| group.is_none_or(|group| row.group == group)).collect();
    match (group, rows.is_empty()) {
        (Some(group), true) => {
            let groups: BTreeSet<&str> = catalogue.rows.iter().map(|row| row.group.as_str()).collect();
            let groups: Vec<&str> = groups.into_iter().collect();
            let what = format!("there is no group `{group}`; the groups are {}", groups.join(", "));
            Err(Failure::new(Exit::Input, what))
        }
        _ => Ok(rows),
    }
}

fn list(catalogue: &Catalogue, group: Option<&str>, as_json: bool) -> Result<Exit, Failure> {
    let rows = of_group(catalogue, group)?;
    let row = |row: &Row| {
        let entry = catalogue.of(row.id);
        let status = entry.map_or(Status::Planned, |entry| entry.system.status(row.id)).word();
        let system = entry.map_or("", |entry| entry.name.as_str());
        (status, system.to_string(), entry.map_or(0, claims))
    };
    if as_json {
        let of = |it: &Row| {
            let (status, system, claims) = row(it);
            object!({
                "id": it.id, "name": it.name, "status": status, "claims": claims, "group": it.group, "role": it.role,
                "system": Some(system).filter(|name| !name.is_empty()), "works_when": it.works_when,
                "clauses": catalogue.of(it.id).map(|entry| clauses(&entry.system, it.id)),
            })
        };
        print_line(&json(&rows.iter().copied().map(of).collect::<Vec<Value>>()));
        return Ok(Exit::Done);
    }
    for &it in &rows {
        let (status, system, claims) = row(it);
        let what = match catalogue.of(it.id) {
            None => String::new(),
            Some(entry) => {
                let shown = |origin| {
                    let (shown, of) = entry.system.shown(it.id, origin);
                    format!("{shown}/{of}")
                };
                let (row, paper) = (shown(ClauseOrigin::WorksWhen), shown(ClauseOrigin::Abstract));
                format!("  row {row}, abstract {paper}  polity systems check {system}   ({claims} claims)")
            }
        };
        print_line(format!("{:>4}  {status:7}  {}{what}", it.id, it.name).trim_end());
    }
    let there = rows.iter().filter(|row| catalogue.of(row.id).is_some()).count();
    if let Some(group) = group {
        let planned = rows.len() - there;
        note(&format!("{} systems of the group {group}: {there} are implemented, {planned} are planned", rows.len()));
        return Ok(Exit::Done);
    }
    note(&format!(
        "{} systems: {there} are implemented ({} entries, {} claims), {} are planned",
        catalogue.rows.len(),
        catalogue.entries.len(),
        catalogue.entries.iter().map(claims).sum::<usize>(),
        catalogue.rows.len() - there
    ));
    let met = catalogue.rows.iter().filter(|row| {
        let shown = |entry: &Entry| entry.system.shown(row.id, ClauseOrigin::WorksWhen);
        catalogue.of(row.id).map(shown).is_some_and(|(shown, of)| shown == of && of > 0)
    });
    note(&format!(
        "`row` counts the clauses of the index's `works_when` that are shown, `abstract` those of the abstract; {} rows meet \
         their `works_when`",
        met.count()
    ));
    let of_all = catalogue.entries.iter().flat_map(|entry| entry.system.decided());
    let decided: Vec<DecidedBy> = of_all.collect();
    let count = |by: DecidedBy| decided.iter().filter(|other| **other == by).count();
    let counts: Vec<String> = DecidedBy::ALL.iter().map(|by| format!("{} {}", count(*by), by.word())).collect();
    note(&format!("claims by what decides them: {}", counts.join(", ")));
    let standing = |entry: &Entry| -> Vec<Standing> {
        entry.system.clauses.iter().map(|clause| entry.system.standing(clause)).collect()
    };
    let standings: Vec<Standing> = catalogue.entries.iter().flat_map(standing).collect();
    let count = |standing: Standing| standings.iter().filter(|other| **other == standing).count();
    note(&format!(
        "{} clauses: {} shown, {} do not reproduce, {} missing",
        standings.len(),
        count(Standing::Shown),
        count(Standing::NotReproduced),
        count(Standing::Missing)
    ));
    Ok(Exit::Done)
}

/// How many clauses of a row are shown, do not reproduce, and are missing.
fn clauses(system: &System, row: u32) -> Value {
    let count =
        |standing: Standing| system.clauses_of(row).filter(|clause| system.standing(clause) == standing).count();
    let of = |origin| {
        let (shown, of) = system.shown(row, origin);
        object!({ "shown": shown, "of": of })
    };
    object!({
        "shown": count(Standing::Shown), "not_reproduced": count(Standing::NotReproduced),
        "missing": count(Standing::Missing), "works_when": of(ClauseOrigin::WorksWhen), "abstract": of(ClauseOrigin::Abstract),
    })
}

fn show(catalogue: &Catalogue, entry: &Entry, as_json: bool) {
    let system = &entry.system;
    if as_json {
        let claims: Vec<Value> = system
            .claims
            .iter()
            .map(|claim| {
                object!({
                    "name": claim.name, "text": claim.text, "source": claim.source, "expected": claim.expected(),
                    "decided_by": claim.decided_by, "paper": claim.paper, "reproduces": claim.reproduces, "found": claim.found, "breaks": claim.breaks.keys().collect::<Vec<_>>(),
                })
            })
            .collect();
        let elsewhere: Vec<Value> = system
            .elsewhere
            .iter()
            .map(|claim| {
                object!({
                    "name": claim.name, "text": claim.text, "source": claim.source, "command": claim.command,
                    "decided_by": claim.decided_by,
                    "measured": claim.measured, "finding": claim.finding,
                })
            })
            .collect();
        let promises: Vec<Value> = system.clauses.iter().map(|clause| promise(system, clause)).collect();
        let status = |row: &u32| object!({"id": row, "status": system.status(*row)});
        print_line(&json(&object!({
            "system": entry.name, "name": system.name, "title": system.title, "paper": system.paper,
            "authors": system.authors, "year": system.year, "ids": system.ids,
            "rows": system.ids.iter().map(status).collect::<Vec<_>>(), "clauses": promises,
            "leaves": system.leaves, "needs": system.needs, "seeds": system.seeds, "items": system.items,
            "simulated": system.simulated, "claims": claims, "elsewhere": elsewhere,
            "map": system.map.iter().map(feature).collect::<Vec<_>>(),
        })));
        return;
    }
    print_line(&format!("{}: {}", entry.name, system.name));
    print_line(&format!("  {}, \"{}\", {}. {}", system.authors, system.title, system.year, system.paper));
    for id in &system.ids {
        if let Some(row) = catalogue.rows.iter().find(|row| row.id == *id) {
            print_line(&format!("  {id}, {} ({}): {}", row.name, system.status(*id).word(), row.works_when));
        }
    }
    print_line(&format!("  composed of {}", system.leaves.join(", ")));
    if !system.needs.is_empty() {
        print_line(&format!("  needs {}", system.needs.join(", ")));
    }
    for claim in &system.claims {
        print_line(&format!("  {}: {} ({})", claim.name, claim.text, claim.source));
        print_line(&format!("    expected: {}; decided by: {}", claim.expected(), claim.decided_by.word()));
        if let Some(paper) = &claim.paper {
            print_line(&format!("    the paper: {paper}"));
        }
        if let Some(found) = claim.found {
            let why = claim.why.as_deref().map_or(String::new(), |why| format!(": {why}"));
            print_line(&format!("    does not reproduce here; {found} was measured{why}"));
        }
        let breaks: Vec<&str> = claim.breaks.keys().map(String::as_str).collect();
        if !breaks.is_empty() {
            print_line(&format!("    must not hold with: {}", breaks.join(", ")));
        }
    }
    for claim in &system.elsewhere {
        print_line(&format!("  {}: {} ({})", claim.name, claim.text, claim.source));
        let finding = claim.finding.map_or("cannot be measured", Finding::words);
        print_line(&format!("    {finding}; measured by `{}`: {}", claim.command, claim.measured));
    }
    if !system.clauses.is_empty() {
        print_line("  what the index and the abstract promise:");
    }
    for clause in &system.clauses {
        let why = match (system.standing(clause), &clause.missing) {
            (Standing::Missing, Some(why)) => format!("missing: {why}"),
            (Standing::Shown, _) => format!("shown by {}", clause.claims.join(", ")),
            _ => format!("does not reproduce: {}", clause.claims.join(", ")),
        };
        print_line(&format!("    {} ({why})", clause.text));
    }
    show_map(&entry.name, &system.map);
}

/// Prints the map of a survey: for every feature the command that checks an example, or what is missing.
fn show_map(name: &str, map: &[Feature]) {
    if map.is_empty() {
        return;
    }
    print_line("  the map, with a command for every example:");
    let mut part = "";
    for feature in map {
        if feature.part != part {
            part = &feature.part;
            print_line(&format!("    {part}"));
        }
        let own = (!feature.claims.is_empty())
            .then(|| format!("polity systems check {name} ({})", feature.claims.join(", ")));
        let others = feature.systems.iter().map(|other| format!("polity systems check {other}"));
        let gap = feature.gap.iter().map(|gap| format!("open: {gap}"));
        let examples: Vec<String> = own.into_iter().chain(others).chain(gap).collect();
        print_line(&format!("      {}: {}", feature.feature, examples.join("; ")));
    }
}

fn feature(feature: &Feature) -> Value {
    object!({
        "part": feature.part, "feature": feature.feature, "claims": feature.claims, "systems": feature.systems,
        "gap": feature.gap,
    })
}

fn promise(system: &System, clause: &Clause) -> Value {
    object!({
        "text": clause.text, "row": clause.row, "from": clause.from, "standing": system.standing(clause),
        "claims": clause.claims, "missing": clause.missing,
    })
}

fn show_planned(row: &Row, as_json: bool) {
    match as_json {
        true => print_line(&json(&object!({
            "id": row.id, "name": row.name, "status": Status::Planned.word(), "claims": [], "group": row.group,
            "role": row.role, "works_when": row.works_when,
        }))),
        false => print_line(&format!("{}, {} (planned): {}", row.id, row.name, row.works_when)),
    }
}

fn check(engine: &Engine<'_>, asked: &Asked<'_>, as_json: bool) -> Result<Exit, Failure> {
    let mut bar = RunsBar::new();
    output::works_on("sweep", asked.out);
    let checked = asked.check(engine, &mut bar);
    bar.clear();
    let checked = checked?;
    checked.claims.iter().for_each(tell);
    summary(&checked);
    if as_json {
        print_line(&json(&checked));
    }
    Ok(match (checked.status, checked.failed) {
        (RunStatus::Stopped, _) => Exit::Stopped,
        (_, 0) => Exit::Done,
        _ => Exit::Unmet,
    })
}

fn figure(measured: Option<f64>, low: Option<f64>, high: Option<f64>) -> String {
    match (measured, low.zip(high)) {
        (Some(x), Some((low, high))) => format!("{x:.4} [{low:.4}, {high:.4}]"),
        (Some(x), None) => format!("{x:.4}"),
        _ => "-".into(),
    }
}

/// Whether a claim holds that would not if its p value were corrected for the number of claims.
fn by_chance(claim: &ClaimReport) -> bool {
    claim.verdict == "holds" && claim.p_holm.is_some_and(|p| p >= 1.0 - CONFIDENCE)
}

/// Shows a claim on the terminal.
fn tell(claim: &ClaimReport) {
    let simulated = if claim.simulated { ", simulated models" } else { "" };
    let by = claim.decided_by.word();
    note(&format!("{} / {}: {} ({}; {by}{simulated})", claim.system, claim.claim, claim.text, claim.source));
    if let Some(paper) = &claim.paper {
        note(&format!("  paper     {paper}"));
    }
    note(&format!("  expected  {}", claim.expected));
    if claim.n > 0 {
        let what = if claim.over == Over::Items { "items" } else { "seeds" };
        note(&format!("  measured  {} over {} {what}", figure(claim.measured, claim.low, claim.high), claim.n));
        let means: Vec<String> = claim.arms.iter().map(|of| format!("{} {:.4}", of.arm, of.mean)).collect();
        if means.len() > 1 {
            note(&format!("  means     {}", means.join(", ")));
        }
    }
    let red = match (claim.as_expected, claim.reproduces) {
        (true, true) => "",
        (true, false) if claim.verdict == "holds" => {
            ", although it is marked as not reproducing; without --quick this counts as unexpected"
        }
        (true, false) => ", as expected",
        (false, true) => "  <- expected to hold",
        (false, false) => "  <- marked as not reproducing; remove `reproduces: false` if it does reproduce",
    };
    let red = match claim.breaks.iter().any(|broken| broken.verdict == "holds") {
        true => "  <- holds although its mechanism is broken",
        false => red,
    };
    let corrected = match by_chance(claim) {
        true => ", but not if corrected for the number of claims in this check",
        false => "",
    };
    note(&format!("  verdict   {}{corrected}{red}", claim.verdict));
    if let Some(why) = &claim.note {
        note(&format!("  note      {why}"));
    }
    for draw in claim.draws.iter().filter(|draw| draw.verdict != claim.verdict) {
        let measured = figure(draw.measured, draw.low, draw.high);
        note(&format!("  with the models of draw {}: {} ({measured})", draw.name, draw.verdict));
    }
    for (found, what) in [
        ("holds", "holds also with"),
        ("does not hold", "does not hold with"),
        ("not told apart", "is not told apart with"),
    ] {
        let names: Vec<&str> =
            claim.region.iter().filter(|at| at.verdict == found).map(|at| at.name.as_str()).collect();
        if !names.is_empty() {
            note(&format!("  region    {what}: {}", names.join("; ")));
        }
    }
    for broken in &claim.breaks {
        let measured = figure(broken.measured, broken.low, broken.high);
        note(&format!("  with {}: {} ({measured})", broken.name, broken.verdict));
    }
}

fn summary(checked: &Checked) {
    if checked.status == RunStatus::NotRun {
        note(&format!("every arm can be run: {} runs", checked.runs));
        return;
    }
    if checked.status == RunStatus::Stopped {
        if checked.held > 0 {
            note(&format!("{} were being made by other processes", counted(checked.held, "run")));
        }
        note(&format!("stopped; the same command with --out {} continues", checked.out));
        return;
    }
    let count = |verdict: &str| checked.claims.iter().filter(|claim| claim.verdict == verdict).count();
    note(&format!(
        "{} claims: {} hold, {} do not, {} are not told apart, {} not checked; {} are not as expected",
        checked.claims.len(),
        count("holds"),
        count("does not hold"),
        count("not told apart"),
        count("not checked"),
        checked.failed
    ));
    let measured = checked.claims.iter().filter(|claim| claim.verdict == "holds" && claim.p_holm.is_some());
    let (lost, held): (Vec<_>, Vec<_>) = measured.partition(|claim| by_chance(claim));
    note(&format!(
        "corrected for the number of claims (Holm), {} of the {} measured claims that hold still do",
        held.len(),
        held.len() + lost.len()
    ));
    if checked.quick {
        note(&format!(
            "a quick check uses few items and seeds, and no other draws of the simulated models ({DRAWS} without --quick)"
        ));
    }
    note(&format!("{} runs in {}", checked.runs, checked.out));
}
