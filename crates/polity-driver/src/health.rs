//! Health: signs that a run is uninformative. Each alarm has a figure and a threshold.
//!
//! | alarm | figure | alarm when |
//! |---|---|---|
//! | `no-participation` | acts of a cohort (in an evaluation: of a member) in the whole run | none |
//! | `no-variance` | rounds in which two acts of a cohort differ (in an evaluation: two of a team on an item) | none |
//! | `stuck` | rounds at the end over which no metric has changed | [`STUCK`] or more |
//! | `defaults` | share of questions that ended in their declared default, or in nothing | above [`DEFAULTS`] |
//! | `parroting` | share of texts that another agent gave word for word in the same round (and on the same item) | [`PARROTING`] or more |
//!
//! [`Health`] watches round by round and keeps a few flags. Its findings go to the table `health`: a row whenever something happens for
//! the first time, two rows for each round with texts, and two for each round that completes turns with requests. [`alarms`] evaluates
//! that table and the metrics. Nothing here depends on clocks or threads, and a resumed run restores its findings from its own table.

use polity_kernel::interface::{ActionArgument, Actions};
use polity_kernel::scenario::Assembled;
use polity_kernel::society::Society;
use polity_store::tables::{ColumnData, Reader, TableError};
use serde::Serialize;
use std::collections::BTreeMap;

/// Number of rounds without a change of any metric that raises an alarm.
pub const STUCK: u32 = 10;
/// Share of repeated texts that raises an alarm.
pub const PARROTING: f64 = 0.5;
/// Share of requests without a reply of their own above which an alarm is raised.
pub const DEFAULTS: f64 = 0.01;
/// Shorter texts do not count as repeated: two agents who answer "12" agree rather than copy.
pub const LEAST_WORDS: usize = 4;

/// Subject of rows about the team as a whole.
const TEAM: &str = "team";
/// Subject of rows about all agents.
const ALL: &str = "all";

/// A row of the table `health`.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// A cohort, a member, or all.
    pub subject: String,
    /// `agents` (at the start), `acted`, `compared`, `varied` (for the first time), `texts`, `repeated` (in the round),
    /// `questions`, `unanswered` (of the turns that the round completes).
    pub measure: &'static str,
    /// Its value; 1 for a first occurrence.
    pub value: f64,
}

#[derive(Debug, Default)]
struct Group {
    name: String,
    acted: bool,
    /// Whether a round had two acts to compare, and whether some differed.
    compared: bool,
    varied: bool,
}

/// Watches a run.
#[derive(Debug)]
pub struct Health {
    /// Cohorts; in an evaluation the members, then the team.
    groups: Vec<Group>,
    texts: bool,
    /// Whether acts can differ at all.
    choice: bool,
    /// Cohort of each agent born so far.
    cohorts: Vec<u16>,
}

impl Health {
    /// Before the first round: the watch, and the first rows of its table.
    #[must_use]
    pub fn new(machine: &Assembled) -> (Self, Vec<Finding>) {
        let (names, sizes): (Vec<String>, Vec<u32>) = match machine {
            Assembled::Society(society) => {
                let mut sizes = vec![0; society.cohorts().len()];
                society.cohort_of_each().iter().for_each(|cohort| sizes[usize::from(*cohort)] += 1);
                (society.cohorts().to_vec(), sizes)
            }
            Assembled::Evaluation(evaluation) => {
                let team = evaluation.team();
                let names = team.iter().map(|member| member.name.clone()).chain([TEAM.to_string()]);
                (names.collect(), team.iter().map(|_| 1).chain([team.len() as u32]).collect())
            }
        };
        let first = names.iter().zip(sizes).map(|(name, size)| Finding {
            subject: name.clone(),
            measure: "agents",
            value: f64::from(size),
        });
        let first = first.collect();
        let (texts, choice) = match machine.society() {
            Some(society) => {
                let acts = &society.interface().acts;
                let any = |is: fn(&ActionArgument) -> bool| acts.iter().any(|act| is(&act.argument));
                (
                    any(ActionArgument::has_words),
                    acts.len() > 1 || !any(|argument| *argument == ActionArgument::Nothing),
                )
            }
            None => (true, true),
        };
        let groups = names.into_iter().map(|name| Group { name, ..Group::default() }).collect();
        (Health { groups, texts, choice, cohorts: Vec::new() }, first)
    }

    /// Restores the findings from before an interruption.
    ///
    /// # Errors
    /// As [`Reader::closed`].
    pub fn recall(&mut self, tables: &Reader<'_>) -> Result<(), TableError> {
        for (subject, measure, value) in rows(tables)? {
            let Some(group) = self.groups.iter_mut().find(|group| group.name == subject) else { continue };
            match measure.as_str() {
                "acted" => group.acted = value > 0.0,
                "compared" => group.compared = value > 0.0,
                "varied" => group.varied = value > 0.0,
                _ => {}
            }
        }
        Ok(())
    }

    /// Counts how requests were resolved in the turns completed by a round.
    #[must_use]
    pub fn questions(all: usize, unanswered: usize) -> Vec<Finding> {
        let finding = |measure, n: usize| Finding { subject: ALL.into(), measure, value: n as f64 };
        vec![finding("questions", all), finding("unanswered", unanswered)]
    }

    /// First occurrences in the round that has just ended, and its texts.
    pub fn round(&mut self, machine: &Assembled) -> Vec<Finding> {
        let mut found = Vec::new();
        match machine {
            Assembled::Society(society) => self.society(society, &mut found),
            Assembled::Evaluation(evaluation) => {
                let mut texts = Texts::default();
                let team = self.groups.len() - 1;
                for (_, acts) in evaluation.acts() {
                    for act in &acts.rows {
                        if let Some(group) = self.groups.get_mut(act.who as usize) {
                            group.note(1, false, false, &mut found);
                        }
                    }
                    let differ = (1..acts.rows.len()).any(|i| !alike(acts, 0, acts, i));
                    self.groups[team].note(acts.rows.len(), true, differ, &mut found);
                    texts.count(std::iter::once(acts));
                }
                texts.report(&mut found);
            }
        }
        found
    }

    /// Whether nothing is left to be noticed about the acts of cohorts.
    fn has_seen_all(&self) -> bool {
        self.groups.iter().all(|group| group.acted && (group.varied || !self.choice))
    }

    /// Whether it looks at the acts of the next round.
    #[must_use]
    pub fn needs_acts(&self) -> bool {
        self.texts || !self.has_seen_all()
    }

    fn society(&mut self, society: &Society, found: &mut Vec<Finding>) {
        if self.texts {
            let mut texts = Texts::default();
            texts.count(society.acts());
            texts.report(found);
        }
        if self.has_seen_all() {
            return;
        }
        if self.cohorts.len() != society.ids_assigned() as usize {
            self.cohorts = society.cohort_of_each();
        }
        let mut seen: Vec<Seen<'_>> = self.groups.iter().map(|_| Seen::default()).collect();
        for acts in society.acts() {
            for (i, act) in acts.rows.iter().enumerate() {
                let cohort = self.cohorts.get(act.who as usize);
                if let Some(seen) = cohort.and_then(|cohort| seen.get_mut(usize::from(*cohort))) {
                    seen.see(acts, i);
                }
            }
        }
        for (group, seen) in self.groups.iter_mut().zip(seen) {
            group.note(seen.acts, self.choice, seen.differ, found);
        }
    }
}

/// The acts of a cohort in a round.
#[derive(Default)]
struct Seen<'a> {
    acts: usize,
    first: Option<(&'a Actions, usize)>,
    /// Whether one differs from the first.
    differ: bool,
}

impl<'a> Seen<'a> {
    fn see(&mut self, acts: &'a Actions, i: usize) {
        self.acts += 1;
        match self.first {
            None => self.first = Some((acts, i)),
            Some((other, j)) => self.differ = self.differ || !alike(other, j, acts, i),
        }
    }
}

/// Whether two acts are equal except for the agent.
fn alike(a: &Actions, i: usize, b: &Actions, j: usize) -> bool {
    let (x, y) = (&a.rows[i], &b.rows[j]);
    // Texts are compared only if there are any.
    x.kind == y.kind
        && x.value.to_bits() == y.value.to_bits()
        && (a.texts.is_empty() && b.texts.is_empty() || a.text(i) == b.text(j))
}

impl Group {
    /// Raises a round's flags, given its number of acts and whether two differ.
    fn note(&mut self, acts: usize, compare: bool, differ: bool, found: &mut Vec<Finding>) {
        let raised = [
            ("acted", acts > 0, &mut self.acted),
            ("compared", compare && acts > 1, &mut self.compared),
            ("varied", compare && differ, &mut self.varied),
        ];
        for (measure, now, flag) in raised {
            if now && !*flag {
                *flag = true;
                found.push(Finding { subject: self.name.clone(), measure, value: 1.0 });
            }
        }
    }
}

/// Texts of a round.
#[derive(Default)]
struct Texts {
    all: u64,
    repeated: u64,
}

impl Texts {
    /// Counts texts that are compared with each other.
    fn count<'a>(&mut self, acts: impl Iterator<Item = &'a Actions>) {
        // By text: its first author, its count, and whether others gave it too.
        let mut by_text: BTreeMap<&str, (u32, u64, bool)> = BTreeMap::new();
        for acts in acts {
            for (i, text) in &acts.texts {
                if text.split_whitespace().nth(LEAST_WORDS - 1).is_none() {
                    continue;
                }
                let Some(act) = acts.rows.get(*i as usize) else { continue };
                let (first, times, others) = by_text.entry(text).or_insert((act.who, 0, false));
                *times += 1;
                *others |= *first != act.who;
            }
        }
        for (_, times, others) in by_text.into_values() {
            self.all += times;
            self.repeated += if others { times } else { 0 };
        }
    }

    fn report(&self, found: &mut Vec<Finding>) {
        if self.all > 0 {
            let finding = |measure, n: u64| Finding { subject: ALL.into(), measure, value: n as f64 };
            found.extend([finding("texts", self.all), finding("repeated", self.repeated)]);
        }
    }
}

/// A sign that a run is uninformative.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Alarm {
    /// `no-participation`, `no-variance`, `stuck`, `defaults` or `parroting`.
    pub kind: &'static str,
    /// A cohort, a member, the team, or all.
    pub subject: String,
    /// The measured figure.
    pub figure: f64,
    /// The figure to reach, or to stay below.
    pub threshold: f64,
    /// In words.
    pub message: String,
}

/// What an alarm of a kind means, in a few words without its figures.
#[must_use]
pub fn meaning(kind: &str) -> &'static str {
    match kind {
        "no-participation" => "no act in the whole run",
        "no-variance" => "all acts within a round were equal",
        "stuck" => "no metric changed over the last rounds",
        "defaults" => "many questions to models ended in their default or without any answer",
        "parroting" => "many texts repeat another agent's text of the same round word for word",
        _ => "see the reports of the runs",
    }
}

/// A column of a table, if it exists.
fn find<'a>(table: &'a [(String, ColumnData)], name: &str) -> Option<&'a ColumnData> {
    table.iter().find(|(column, _)| column == name).map(|(_, data)| data)
}

/// Rows of the table `health`: (subject, measure, value).
fn rows(tables: &Reader<'_>) -> Result<Vec<(String, String, f64)>, TableError> {
    let table = tables.closed("health", &[], usize::MAX)?;
    let parts = ["subject", "measure", "value"].map(|name| find(&table, name));
    let [Some(ColumnData::Text(subject)), Some(ColumnData::Text(measure)), Some(ColumnData::F64(value))] = parts else {
        return Ok(Vec::new());
    };
    let rows = subject.iter().zip(measure).zip(value);
    Ok(rows.filter_map(|((subject, measure), value)| Some((subject.clone()?, measure.clone()?, (*value)?))).collect())
}

/// The alarms of a run, from its tables as far as they are written.
///
/// # Errors
/// As [`Reader::closed`].
pub fn alarms(tables: &Reader<'_>) -> Result<Vec<Alarm>, TableError> {
    let rounds = tables.closed("rounds", &["round"], usize::MAX)?;
    let rounds = find(&rounds, "round").map_or(0, ColumnData::rows) as u32;
    if rounds == 0 {
        return Ok(Vec::new());
    }
    let mut subjects: Vec<String> = Vec::new();
    let mut figures: BTreeMap<(String, String), f64> = BTreeMap::new();
    for (subject, measure, value) in rows(tables)? {
        if measure == "agents" {
            subjects.push(subject.clone());
        }
        *figures.entry((subject, measure)).or_default() += value;
    }
    let figure = |subject: &str, measure: &str| figures.get(&(subject.to_string(), measure.to_string())).copied();
    let mut alarms = Vec::new();
    for subject in &subjects {
        if figure(subject, "acted").is_none() {
            alarms.push(Alarm {
                kind: "no-participation",
                subject: subject.clone(),
                figure: 0.0,
                threshold: 1.0,
                message: format!("{subject} never acted (rounds: {rounds}; at least 1 act is expected)"),
            });
        }
        if figure(subject, "compared").is_some() && figure(subject, "varied").is_none() {
            alarms.push(Alarm {
                kind: "no-variance",
                subject: subject.clone(),
                figure: 0.0,
                threshold: 1.0,
                message: format!(
                    "all acts of {subject} within a round were equal: two acts differed in 0 of {rounds} rounds \
                     (at least 1 is expected)"
                ),
            });
        }
    }
    if let Some(unchanged) = unchanged(tables, rounds)?
        && unchanged >= STUCK
    {
        alarms.push(Alarm {
            kind: "stuck",
            subject: ALL.into(),
            figure: f64::from(unchanged),
            threshold: f64::from(STUCK),
            message: format!(
                "no metric has changed over the last {unchanged} rounds (alarm at {STUCK}): the run has settled, or is stuck"
            ),
        });
    }
    if let (Some(questions), Some(unanswered)) = (figure(ALL, "questions"), figure(ALL, "unanswered"))
        && unanswered / questions > DEFAULTS
    {
        alarms.push(Alarm {
            kind: "defaults",
            subject: ALL.into(),
            figure: unanswered / questions,
            threshold: DEFAULTS,
            message: format!(
                "{unanswered} of {questions} questions to models ({:.1} %) ended in their default or without any \
                 answer (alarm above {:.0} %): what happened there does not come from a model",
                100.0 * unanswered / questions,
                100.0 * DEFAULTS
            ),
        });
    }
    if let (Some(texts), Some(repeated)) = (figure(ALL, "texts"), figure(ALL, "repeated"))
        && repeated / texts >= PARROTING
    {
        alarms.push(Alarm {
            kind: "parroting",
            subject: ALL.into(),
            figure: repeated / texts,
            threshold: PARROTING,
            message: format!(
                "{:.0} % of {texts} texts repeat another agent's text of the same round word for word \
                 (alarm at {:.0} %)",
                100.0 * repeated / texts,
                100.0 * PARROTING
            ),
        });
    }
    Ok(alarms)
}

/// Number of final rounds without a change of any metric; `None` if no metric was measured twice.
fn unchanged(tables: &Reader<'_>, rounds: u32) -> Result<Option<u32>, TableError> {
    let mut change = None;
    for values in tables.metrics()?.values() {
        for pair in values.windows(2) {
            let (round, value) = pair[1];
            // An active run may have saved between the two reads.
            if round < rounds {
                let changed = if pair[0].1.to_bits() == value.to_bits() { 0 } else { round };
                change = change.max(Some(changed));
            }
        }
    }
    Ok(change.map(|change| rounds - 1 - change))
}
