//! Checks claims: runs every arm of a claim with every seed, several at once; runs shared by claims are made once.
//!
//! A run's folder is named by what determines the run, so that a killed check continues where it was, and a check of other claims in the
//! same folder reuses its runs. No result depends on which run ended first.

use super::outcome::{self, BenchRun, DERIVED, FOLDERS_NAME, RANKED, Runs, Values};
use super::plan::{CheckPlan, below, is_check};
use super::{Entry, FILE, shown};
use crate::run::claim_shared;
use crate::run::{Engine, Extent, Prepared, RunStatus, prepare};
use crate::sweep::WatchSweep;
use crate::systems::entry::{Arm, Claim, DecidedBy, Finding, Over};
use crate::workers::{
    PlannedRun, PlannedRuns, Planning, Progress, Task, WorkSummary, planned, planned_otherwise, sharing,
};
use polity_kernel::scenario::Scenario;
use polity_kernel::tree::{Node, Origin, TreeError, Value};
use polity_stats::{FEW, holm};
use polity_store::DriveError;
use polity_store::digest_of;
use polity_store::disk::write_atomically;
use polity_store::files::{self, Reach};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Additional draws of the simulated models' parameters with which a claim is checked.
pub const DRAWS: u32 = 3;
/// The fraction of items in a quick check (one in this many).
const QUICK: u32 = 4;

/// Regions of the simulated models' parameters in which a claim is also checked, from what is known of real models: judges that tell
/// nothing (LLMBar's adversarial pairs: d' of -0.4 to 1.4), arguments that persuade as much when they are wrong (DyLAN's logs), and
/// errors as correlated as those of real models (0.64 to 0.87).
pub const REGION: [(&str, &str); 4] = [
    ("judges that see nothing", "critic.sensitivity=0"),
    ("arguments that persuade right or wrong", "discernment=0"),
    ("errors correlated by 0.75", "correlation=0.75"),
    ("all of these", "critic.sensitivity=0&discernment=0&correlation=0.75"),
];

/// The options of a check.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// Systems.
    pub entries: &'a [&'a Entry],
    /// Fewer seeds and items, and no other draws: shows only clear results.
    pub quick: bool,
    /// Whether mechanisms are also broken.
    pub breaks: bool,
    /// Whether to run nothing, and only check that everything could run.
    pub dry: bool,
    /// The folder that holds the runs.
    pub out: &'a Path,
    /// Runs at once.
    pub jobs: usize,
    /// Additional folders whose files their scenarios may read.
    pub allowed: &'a [PathBuf],
}

/// How many calls a placebo may make for each call of the mechanism that it stands for.
const AS_OFTEN: std::ops::RangeInclusive<f64> = 0.8..=1.25;

/// The file in a check's folder that holds its results.
pub const CLAIMS_FILE: &str = "claims.json";

/// The result of a check: the object of `--json`.
#[derive(Clone, Debug, Serialize)]
pub struct Checked {
    /// [`RunStatus::Done`], [`RunStatus::Stopped`], or [`RunStatus::NotRun`] if only the arms were checked.
    pub status: RunStatus,
    /// The folder that holds the runs.
    pub out: String,
    /// Whether it was a quick check.
    pub quick: bool,
    /// Runs of all arms, each counted once.
    pub runs: usize,
    /// Those that other processes were working on.
    pub held: usize,
    /// The result of every claim; empty unless all runs have ended.
    pub claims: Vec<ClaimReport>,
    /// Number of claims with unexpected results.
    pub failed: usize,
}

/// The result of a claim.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClaimReport {
    /// The system's folder.
    pub system: String,
    /// The claim's name.
    pub claim: String,
    /// The paper's statement, in our words.
    pub text: String,
    /// Where in the paper.
    pub source: String,
    /// What decides it.
    pub decided_by: DecidedBy,
    /// The paper's figure, as it states it.
    pub paper: Option<String>,
    /// What the interval is over.
    pub over: Over,
    /// The expectation about the quantity.
    pub expected: String,
    /// The quantity.
    pub measured: Option<f64>,
    /// Lower end of its 95 % interval.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// The means of its arms, from which the quantity is computed.
    pub arms: Vec<ArmMean>,
    /// Seeds or items that the interval is over.
    pub n: usize,
    /// Its p value: below 0.05 exactly if the interval says that it holds.
    pub p: Option<f64>,
    /// The p value, corrected for the number of claims in the check (Holm).
    pub p_holm: Option<f64>,
    /// `holds`, `does not hold`, `not told apart`; `not checked` if the machine lacks what it needs, or it cannot be measured.
    pub verdict: &'static str,
    /// Whether simulated models answered.
    pub simulated: bool,
    /// Whether it is expected to hold here.
    pub reproduces: bool,
    /// The value measured when it was recorded as not reproducing.
    pub found: Option<f64>,
    /// Whether the result is the expected one.
    pub as_expected: bool,
    /// Why it was not checked or does not reproduce, or where it is measured.
    pub note: Option<String>,
    /// The same with other draws of the simulated models' parameters.
    pub draws: Vec<Variant>,
    /// The same in other regions of the simulated models' parameters.
    pub region: Vec<Variant>,
    /// The same with its mechanism broken.
    pub breaks: Vec<Variant>,
}

/// The mean of a claim's metric in an arm, over the same seeds or items as the quantity.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ArmMean {
    /// The arm.
    pub arm: String,
    /// The mean.
    pub mean: f64,
}

/// The result of a claim in another variant: with other parameters of the simulated models, or with its mechanism broken.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Variant {
    /// The draw of parameters (`~2`), the region of parameters, or the break.
    pub name: String,
    /// The quantity.
    pub measured: Option<f64>,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// The result; with a break it must not hold.
    pub verdict: &'static str,
}

/// A variant in which a claim is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Look<'a> {
    Plain,
    Draw(u32),
    Region(usize),
    Broken(&'a str),
}

/// All runs of a check, each once.
struct Bench {
    out: PathBuf,
    runs: Vec<BenchRun>,
    known: BTreeMap<PathBuf, usize>,
    /// Number of arms so far, in all their variants.
    arms: usize,
}

/// A claim with the runs of its variants, whether simulated models answer, and what the machine lacks, if so.
type Planned<'a> = (&'a Entry, &'a Claim, Vec<(Look<'a>, Vec<Runs>)>, bool, Option<String>);

impl Bench {
    /// The folders of all runs, from that of the check.
    fn names(&self) -> Vec<String> {
        self.runs.iter().map(|run| below(&self.out, &run.dir)).collect()
    }

    /// The index of a run, which is added if it is new.
    fn add(&mut self, system: &str, arm: &str, prepared: Prepared, claim: &Claim) -> usize {
        let (by_item, chained) = (claim.over == Over::Items, DERIVED.iter().any(|name| claim.metric.starts_with(name)));
        let ranked = RANKED.iter().any(|(name, _)| claim.metric.starts_with(name));
        let inputs: Vec<&str> = prepared.files.iter().map(|file| file.entry.digest.as_str()).collect();
        let digest = digest_of(format!("{}\n{}", prepared.tree.to_json(), inputs.join("\n")).as_bytes()).to_string();
        // Arms of other names may be the same run: the folder is named after the first.
        let key = PathBuf::from(system).join(&digest);
        if let Some(at) = self.known.get(&key) {
            self.runs[*at].by_item |= by_item;
            self.runs[*at].chained |= chained;
            self.runs[*at].ranked |= ranked;
            return *at;
        }
        let short: String = digest.chars().take(16).collect();
        let dir = self.out.join(system).join(format!("{arm}-{short}"));
        self.runs.push(BenchRun { dir, prepared, by_item, chained, ranked, arm: self.arms });
        self.known.insert(key, self.runs.len() - 1);
        self.runs.len() - 1
    }
}

/// The command-line text of a change, for its errors.
fn said(entry: &Entry, path: &str, value: &Node) -> Node {
    let text = format!("{path}={} of {}", value.to_json(), entry.folder.join(FILE).display());
    let mut value = value.clone();
    value.origin = Origin::Edit(text.into());
    value
}

/// Changes the name of every simulated model, in values and in keys. A draw that a scenario asks for itself stays.
fn rename(node: &mut Node, new: &dyn Fn(&str) -> String) {
    let change = |name: &mut String| {
        if name.starts_with("sim/") && !name.contains('~') {
            *name = new(name);
        }
    };
    match &mut node.value {
        Value::Text(text) => change(text),
        Value::List(items) => items.iter_mut().for_each(|item| rename(item, new)),
        Value::Map(entries) => entries.iter_mut().for_each(|(key, value)| {
            change(&mut key.name);
            rename(value, new);
        }),
        _ => {}
    }
}

/// Simulated models that have no rates, so that a draw of their parameters is the same model.
const WITHOUT_RATES: [&str; 2] = ["sim/perfect", "sim/reader"];

/// The name of another draw of a simulated model's parameters.
fn drawn(name: &str, n: u32) -> String {
    if WITHOUT_RATES.contains(&name) { name.to_owned() } else { format!("{name}~{n}") }
}

/// The name of a simulated model with other values of some parameters. They replace values that the name gives itself.
fn in_region(name: &str, region: &str) -> String {
    let (model, own) = name.split_once('?').unwrap_or((name, ""));
    let key = |pair: &str| pair.split('=').next().unwrap_or_default().to_owned();
    let set: Vec<String> = region.split('&').map(key).collect();
    let kept = own.split('&').filter(|pair| !pair.is_empty() && !set.contains(&key(pair)));
    format!("{model}?{}", kept.chain([region]).collect::<Vec<&str>>().join("&"))
}

impl Asked<'_> {
    fn seeds(&self, entry: &Entry, claim: &Claim) -> u64 {
        let all = u64::from(entry.system.seeds);
        match claim.over {
            Over::Items => 1,
            Over::Seeds if self.quick => all.min(FEW as u64),
            Over::Seeds => all,
        }
    }

    /// The scenario of an arm with its changes, those of a break, and the check's own.
    fn arm(&self, entry: &Entry, name: &str, arm: &Arm, look: Look<'_>, claim: &Claim) -> Result<Prepared, DriveError> {
        let reach = Reach::of(&entry.folder, self.allowed).with_edits_of_others();
        let path = entry.folder.join(&arm.scenario);
        reach
            .find(&arm.scenario)
            .map_err(|why| DriveError::Input(format!("{}, arm `{name}`: {why}", entry.folder.join(FILE).display())))?;
        let (text, mut tree) =
            files::read_file(&path).map_err(|error| DriveError::Input(error.render(false).trim_end().to_string()))?;
        let blame = |error: DriveError| match error {
            DriveError::Scenario(error) => {
                let error = TreeError { message: format!("in the arm `{name}`: {}", error.message), ..error };
                shown(&error, &path, &text)
            }
            other => other,
        };
        let mut edits: Vec<(String, Node)> = Vec::new();
        // An arm with fewer items than the others names its own number.
        let items = entry.system.items.map(|items| if self.quick { items.div_ceil(QUICK) } else { items });
        if let Some(items) = items
            && claim.over == Over::Seeds
            && tree.get("items").is_some()
        {
            edits.push(("items.count".into(), Node::built(Value::Int(i64::from(items)))));
        }
        edits.extend(arm.set.iter().map(|(key, value)| (key.clone(), said(entry, key, value))));
        if let Look::Broken(broken) = look
            && let Some(broken) =
                claim.breaks.get(broken).filter(|broken| broken.arm.as_ref().is_none_or(|arm| arm == name))
        {
            edits.extend(broken.set.iter().map(|(key, value)| (key.clone(), said(entry, key, value))));
        }
        for (path, value) in edits {
            tree.edit(&path, value).map_err(|error| blame(error.into()))?;
        }
        match look {
            Look::Draw(n) => rename(&mut tree, &|name| drawn(name, n)),
            Look::Region(i) => rename(&mut tree, &|name| in_region(name, REGION[i].1)),
            Look::Plain | Look::Broken(_) => {}
        }
        let mut prepared = prepare(tree, &path.display().to_string(), reach, &entry.name, Vec::new()).map_err(blame)?;
        prepared.record_little()?;
        Ok(prepared)
    }

    /// The runs of a claim's arms in one variant: those it is about, those it is compared with; and whether any calls simulated models.
    fn runs(
        &self,
        engine: &Engine<'_>,
        bench: &mut Bench,
        entry: &Entry,
        claim: &Claim,
        look: Look<'_>,
    ) -> Result<(Vec<Runs>, bool), DriveError> {
        let (mut arms, mut simulated) = (Vec::new(), false);
        for name in claim.arms() {
            let Some(arm) = entry.system.arms.get(name) else { continue };
            let prepared = self.arm(entry, name, arm, look, claim)?;
            let blame = |error: DriveError| match error {
                DriveError::Scenario(error) => DriveError::Input(format!("{}, arm `{name}`: {error}", entry.name)),
                other => other,
            };
            let survey = engine.survey(&prepared, Extent::Whole).map_err(blame)?;
            simulated |= survey.simulated;
            if survey.simulated && !entry.system.simulated {
                return Err(DriveError::Input(format!(
                    "{}: it says `simulated: false`, but its arm `{name}` calls simulated models",
                    entry.folder.join(FILE).display()
                )));
            }
            if survey.simulated && claim.decided_by == DecidedBy::Recorded {
                return Err(DriveError::Input(format!(
                    "{}, claim `{}`: it says `decided_by: recorded`, but its arm `{name}` calls simulated models",
                    entry.folder.join(FILE).display(),
                    claim.name
                )));
            }
            let first = Scenario::read(&prepared.tree)?.seed;
            let mut runs = Runs::new();
            for seed in first..first + self.seeds(entry, claim) {
                let mut prepared = prepared.clone();
                prepared.tree.edit("seed", Node::built(Value::Int(seed as i64)))?;
                runs.push(bench.add(&entry.name, name, prepared, claim));
            }
            bench.arms += 1;
            arms.push(runs);
        }
        Ok((arms, simulated))
    }

    /// The additional variants of a claim. `simulated`: whether its arms call simulated models.
    fn looks<'a>(&self, claim: &'a Claim, simulated: bool) -> impl Iterator<Item = Look<'a>> {
        let draws = (1..=DRAWS).filter(move |_| simulated && !self.quick).map(Look::Draw);
        let by_constants = simulated && !self.quick && claim.decided_by == DecidedBy::Simulated;
        let region = (0..REGION.len()).filter(move |_| by_constants).map(Look::Region);
        let breaks = claim.breaks.keys().filter(|_| self.breaks).map(|name| Look::Broken(name));
        draws.chain(region).chain(breaks)
    }

    /// The runs of all claims, each once. `lacking`: by system, what the machine lacks that planned the check; `None` for this machine.
    fn bench(
        &self,
        engine: &Engine<'_>,
        lacking: Option<&BTreeMap<String, String>>,
    ) -> Result<(Bench, Vec<Planned<'_>>), DriveError> {
        let mut bench = Bench { out: self.out.to_path_buf(), runs: Vec::new(), known: BTreeMap::new(), arms: 0 };
        let mut plans = Vec::new();
        for entry in self.entries {
            let lacks = match lacking {
                Some(lacking) => lacking.get(&entry.name).cloned(),
                None => entry.lacks(engine),
            };
            let mut any = false;
            for claim in &entry.system.claims {
                let (mut looks, mut simulated) = (Vec::new(), entry.system.simulated);
                if lacks.is_none() {
                    let plain = self.runs(engine, &mut bench, entry, claim, Look::Plain)?;
                    simulated = plain.1;
                    looks.push((Look::Plain, plain.0));
                    for look in self.looks(claim, simulated) {
                        let runs = self.runs(engine, &mut bench, entry, claim, look)?.0;
                        if let Look::Broken(name) = look {
                            differs(entry, claim, name, &runs, &looks)?;
                        }
                        looks.push((look, runs));
                    }
                }
                any |= simulated;
                plans.push((*entry, claim, looks, simulated, lacks.clone()));
            }
            if entry.system.simulated && !any && !entry.system.claims.is_empty() {
                return Err(DriveError::Input(format!(
                    "{}: it says `simulated: true`, but none of its arms calls simulated models",
                    entry.folder.join(FILE).display()
                )));
            }
        }
        Ok((bench, plans))
    }

    /// Writes the folder and makes no run: workers make them ([`Asked::work`]). A folder in which the same is planned stays as it is.
    /// `systems`: the folder of all systems.
    ///
    /// # Errors
    /// Errors in a system's files; [`DriveError::Folder`] for a folder with another check.
    pub fn plan(&self, engine: &Engine<'_>, systems: &Path) -> Result<Planning, DriveError> {
        let lacking: BTreeMap<String, String> =
            self.entries.iter().filter_map(|entry| Some((entry.name.clone(), entry.lacks(engine)?))).collect();
        let (bench, _) = self.bench(engine, Some(&lacking))?;
        let plan = CheckPlan::of(self, systems, lacking, bench.names());
        let disk = engine.disk.as_ref();
        let there = || match is_check(disk, self.out) {
            false => Ok(false),
            true => match plan.differs_from(&CheckPlan::read(disk, self.out)?) {
                Some(why) => Err(planned_otherwise(self.out, "check", &why)),
                None => Ok(true),
            },
        };
        let write = || {
            claim_shared(disk, self.out)?;
            plan.write(disk, self.out)
        };
        Ok(Planning { runs: bench.runs.len(), already: planned(&there, &write)? })
    }

    /// Makes the missing runs of one part of a planned check.
    ///
    /// # Errors
    /// [`DriveError::Folder`] if the systems have changed since the plan; those of runs.
    pub fn work(
        &self,
        engine: &Engine<'_>,
        task: Task,
        progress: &mut Progress<'_>,
    ) -> Result<WorkSummary, DriveError> {
        let plan = CheckPlan::read(engine.disk.as_ref(), self.out)?;
        let (bench, _) = self.bench(engine, Some(&plan.lacking))?;
        plan.check(self.out, &bench.names())?;
        let run = |(run, name): (BenchRun, String)| PlannedRun { name, prepared: run.prepared, group: run.arm };
        let names = bench.names();
        let runs: Vec<PlannedRun> = bench.runs.into_iter().zip(names).map(run).collect();
        PlannedRuns { folder: self.out, runs: &runs, allowance: None, says: FOLDERS_NAME }.work(engine, task, progress)
    }

    /// Makes all missing runs, and returns the result of every claim. If the check is planned, its runs are those of the plan.
    ///
    /// # Errors
    /// Errors in a system's files, and errors that stop a run.
    pub fn check(&self, engine: &Engine<'_>, watch: &mut dyn WatchSweep) -> Result<Checked, DriveError> {
        let plan = match is_check(engine.disk.as_ref(), self.out) {
            true => Some(CheckPlan::read(engine.disk.as_ref(), self.out)?).filter(|plan| plan.is_of(self)),
            false => None,
        };
        let (bench, plans) = self.bench(engine, plan.as_ref().map(|plan| &plan.lacking))?;
        let shared = plan.as_ref().map(|_| sharing(engine, self.out));
        let engine = shared.as_ref().unwrap_or(engine);
        if let Some(plan) = &plan {
            plan.check(self.out, &bench.names())?;
        }
        let order: Vec<usize> = (0..bench.runs.len()).collect();
        let mut checked = Checked {
            status: RunStatus::NotRun,
            out: self.out.display().to_string(),
            quick: self.quick,
            runs: order.len(),
            held: 0,
            claims: Vec::new(),
            failed: 0,
        };
        if self.dry {
            return Ok(checked);
        }
        claim_shared(engine.disk.as_ref(), self.out)?;
        checked.status = RunStatus::Stopped;
        let mut values: Vec<Option<Values>> = vec![None; order.len()];
        let mut done = 0;
        let make = |engine: &Engine<'_>, at: usize| outcome::run(engine, &bench.runs[at]);
        checked.held = engine.at_once(&order, self.jobs, &make, &mut |at, of_run| {
            values[at] = Some(of_run);
            done += 1;
            watch.progress(done, order.len());
            Ok(())
        })?;
        let Some(values) = values.into_iter().collect::<Option<Vec<Values>>>() else { return Ok(checked) };
        checked.status = RunStatus::Done;
        for (entry, claim, looks, simulated, lacks) in plans {
            checked.claims.push(self.report(entry, claim, &looks, simulated, lacks, &values)?);
        }
        correct(&mut checked.claims);
        for entry in self.entries {
            checked.claims.extend(entry.system.elsewhere.iter().map(|claim| elsewhere(entry, claim)));
        }
        checked.failed = checked.claims.iter().filter(|claim| !claim.as_expected).count();
        let text = serde_json::to_string_pretty(&checked).map_err(|error| DriveError::Folder(error.to_string()))?;
        let path = self.out.join(CLAIMS_FILE);
        write_atomically(engine.disk.as_ref(), &path, text.as_bytes()).map_err(DriveError::disk(&path))?;
        Ok(checked)
    }

    fn report(
        &self,
        entry: &Entry,
        claim: &Claim,
        looks: &[(Look<'_>, Vec<Runs>)],
        simulated: bool,
        lacks: Option<String>,
        values: &[Values],
    ) -> Result<ClaimReport, DriveError> {
        let mut report = ClaimReport {
            system: entry.name.clone(),
            claim: claim.name.clone(),
            text: claim.text.clone(),
            source: claim.source.clone(),
            decided_by: claim.decided_by,
            paper: claim.paper.clone(),
            over: claim.over,
            expected: claim.expected(),
            measured: None,
            low: None,
            high: None,
            arms: Vec::new(),
            n: 0,
            p: None,
            p_holm: None,
            verdict: "not checked",
            simulated,
            reproduces: claim.reproduces,
            found: claim.found,
            as_expected: true,
            note: lacks.or_else(|| claim.why.clone()),
            draws: Vec::new(),
            region: Vec::new(),
            breaks: Vec::new(),
        };
        let mut plain = None;
        for (look, runs) in looks {
            let (of, others) = outcome::read(entry, claim, runs, values)?;
            let quantity = claim.quantity(&of, others.as_deref());
            let found = claim.finding(&quantity);
            let (measured, low, high, verdict) = (quantity.mean, quantity.low, quantity.high, found.words());
            let variant = |name: &str| Variant { name: name.into(), measured, low, high, verdict };
            match look {
                Look::Plain => {
                    (report.measured, report.low, report.high) = (measured, low, high);
                    (report.n, report.p, report.verdict) = (quantity.n, claim.p(&quantity), verdict);
                    report.arms = means(claim, &of, others.as_deref());
                    plain = Some(found);
                    let doubt = [self.unlike_recorded(claim, low, high), unlike_placebo(claim, runs, values)];
                    if let Some(doubt) = doubt.into_iter().flatten().next() {
                        report.as_expected = false;
                        report.note = Some(doubt);
                    }
                }
                Look::Draw(n) => report.draws.push(variant(&format!("~{n}"))),
                Look::Region(i) => report.region.push(variant(REGION[*i].0)),
                Look::Broken(name) => {
                    report.as_expected &= found != Finding::Holds;
                    if runs.len() == 2 && outcome::same(&runs[0], &runs[1], values) {
                        report.as_expected = false;
                        let what = "both arms give the same digests, so this shows only that a key is read";
                        report.note = Some(format!("the break `{name}` is no placebo: {what}"));
                    }
                    report.breaks.push(variant(name));
                }
            }
        }
        if let Some(found) = plain {
            report.as_expected &= self.is_expected(claim, agreed(&mut report, found));
        }
        Ok(report)
    }

    /// What does not reproduce must fail as it was recorded, not in some other way. A quick check has too few items for that.
    fn unlike_recorded(&self, claim: &Claim, low: Option<f64>, high: Option<f64>) -> Option<String> {
        let recorded = claim.found.filter(|_| !claim.reproduces && !self.quick)?;
        let (low, high) = low.zip(high)?;
        (!(low..=high).contains(&recorded)).then(|| format!("{recorded} is recorded, which is not in the interval"))
    }

    /// Whether a result is the expected one. A quick check has too few items for all differences, and finds some by chance: there only a
    /// claim that clearly fails, and should hold, counts.
    fn is_expected(&self, claim: &Claim, found: Finding) -> bool {
        match (claim.reproduces, found) {
            (true, found) => found == Finding::Holds || self.quick && found == Finding::NotToldApart,
            (false, found) => found != Finding::Holds || self.quick,
        }
    }
}

/// Corrects the p values for the number of claims: one claim in forty would hold by chance.
fn correct(claims: &mut [ClaimReport]) {
    let p: Vec<f64> = claims.iter().filter_map(|claim| claim.p).collect();
    let measured = claims.iter_mut().filter(|claim| claim.p.is_some());
    measured.zip(holm(&p)).for_each(|(claim, p)| claim.p_holm = Some(p));
}

/// A claim that is decided by simulated models has the verdict of all draws of their parameters, or none.
fn agreed(report: &mut ClaimReport, found: Finding) -> Finding {
    let others = report.draws.iter().filter(|draw| draw.verdict != report.verdict).count();
    if report.decided_by != DecidedBy::Simulated || others == 0 {
        return found;
    }
    let what = format!("{} with the declared models, and not in {others} of {DRAWS} draws", report.verdict);
    report.note = Some(report.note.take().map_or(what.clone(), |note| format!("{what}; {note}")));
    report.verdict = Finding::NotToldApart.words();
    Finding::NotToldApart
}

/// The means of a claim's arms.
fn means(claim: &Claim, of: &[f64], against: Option<&[f64]>) -> Vec<ArmMean> {
    let mean = |arm: &String, values: &[f64]| ArmMean {
        arm: arm.clone(),
        mean: values.iter().sum::<f64>() / values.len() as f64,
    };
    let other = claim.against.as_ref().zip(against).map(|(arm, values)| mean(arm, values));
    std::iter::once(mean(&claim.of, of)).chain(other).collect()
}

/// A placebo must make about as many calls as the mechanism that it stands for.
fn unlike_placebo(claim: &Claim, runs: &[Runs], values: &[Values]) -> Option<String> {
    let [of, against] = runs else { return None };
    let ratio = outcome::calls(against, values)? / outcome::calls(of, values)?;
    let unlike = claim.against_placebo && !AS_OFTEN.contains(&ratio);
    unlike.then(|| format!("the placebo makes {ratio:.2} times as many calls, so it is none"))
}

/// Refuses a break that makes both arms the same run, or that changes nothing.
fn differs(
    entry: &Entry,
    claim: &Claim,
    name: &str,
    runs: &[Runs],
    looks: &[(Look<'_>, Vec<Runs>)],
) -> Result<(), DriveError> {
    let wrong = |what: &str| {
        let file = entry.folder.join(FILE);
        Err(DriveError::Input(format!("{}, claim `{}`, break `{name}`: {what}", file.display(), claim.name)))
    };
    if looks.iter().any(|(look, plain)| *look == Look::Plain && plain == runs) {
        return wrong("it changes nothing");
    }
    match runs {
        [of, against] if of == against => {
            wrong("it makes both arms the same run; let the mechanism run without information instead")
        }
        _ => Ok(()),
    }
}

fn elsewhere(entry: &Entry, claim: &crate::systems::entry::Elsewhere) -> ClaimReport {
    ClaimReport {
        system: entry.name.clone(),
        claim: claim.name.clone(),
        text: claim.text.clone(),
        source: claim.source.clone(),
        decided_by: claim.decided_by,
        paper: None,
        over: Over::Seeds,
        expected: claim.measured.clone(),
        measured: None,
        low: None,
        high: None,
        arms: Vec::new(),
        n: 0,
        p: None,
        p_holm: None,
        verdict: claim.finding.map_or("not checked", Finding::words),
        simulated: claim.decided_by == DecidedBy::Simulated,
        reproduces: claim.finding == Some(Finding::Holds),
        found: None,
        as_expected: true,
        note: Some(format!("measured by another command: {}", claim.command)),
        draws: Vec::new(),
        region: Vec::new(),
        breaks: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_replaces_what_a_name_gives_and_keeps_the_rest() {
        assert_eq!(in_region("sim/medium", "discernment=0"), "sim/medium?discernment=0");
        let own = "sim/medium?discernment=1&price=2&correlation=0.5";
        assert_eq!(in_region(own, "critic.sensitivity=0"), format!("{own}&critic.sensitivity=0"));
        assert_eq!(
            in_region(own, "discernment=0&correlation=0.75"),
            "sim/medium?price=2&discernment=0&correlation=0.75"
        );
    }
}
