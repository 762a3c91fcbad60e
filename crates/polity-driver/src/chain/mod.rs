//! A method as a chain of conditional probabilities, and its degrees of freedom: derived from the record of a run.
//!
//! Every call is a factor: the probability of its reply, given what its request shows. The chain multiplies the factors of an item, and
//! ends in the team's answer, which code derives from replies. Calls of the same form are one line with their count.

mod capacity;
mod freedoms;
mod shown;

pub use capacity::{Component, weakest};
pub use freedoms::Freedom;

use crate::run::{self, Manifest};
use polity_kernel::ask::{Answer, Asker, EffectId, Resolution, TargetKind};
use polity_kernel::event::Event;
use polity_store::DriveError;
use polity_store::disk::Disk;
use polity_store::journal::JournalReader;
use polity_store::tables::{ColumnData, Reader, TableError};
use serde::Serialize;
use serde_json::Value as Json;
use shown::{Replied, Shown, shown};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Maximum number of items that are read: the first ones.
pub const MOST_ITEMS: usize = 200;

/// The chain of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Chain {
    /// Finished items from which it is derived.
    pub items: usize,
    /// All finished items.
    pub of: usize,
    /// Rows of the table `calls` about these items.
    pub calls: u64,
    /// How many of them ask a question again whose reply did not fit.
    pub again: u64,
    /// How many of them score the answer, which is no part of the method.
    pub scoring: u64,
    /// The factors, in order of their rounds; those of the team's answer come last.
    pub factors: Vec<Factor>,
    /// The degrees of freedom.
    pub freedoms: Vec<Freedom>,
}

/// Calls of one form.
#[derive(Clone, Debug, Serialize)]
pub struct Factor {
    /// The conditional: `p(reconsider[1] | question, own solve[0], 2 others' solve[0])`.
    pub conditional: String,
    /// How the value comes about.
    pub drawn: Drawn,
    /// `provider/model`; empty for code.
    pub model: String,
    /// The temperature, if it is set.
    pub temperature: Option<f64>,
    /// Number of calls; for the team's answer, of items.
    pub calls: u64,
}

/// How the value of a factor comes about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Drawn {
    /// A model samples it.
    Sampled,
    /// A model gives its likeliest reply (temperature 0).
    Greedy,
    /// A program of a model is run.
    Tool,
    /// A person gives it.
    Person,
    /// Code of the method derives it from its conditions.
    Code,
}

impl Factor {
    /// Whether it is the team's answer, which is no call.
    #[must_use]
    pub fn is_answer(&self) -> bool {
        self.drawn == Drawn::Code
    }
}

impl Drawn {
    /// The word for people and tables.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Drawn::Sampled => "sampled",
            Drawn::Greedy => "temperature 0",
            Drawn::Tool => "tool",
            Drawn::Person => "person",
            Drawn::Code => "code",
        }
    }
}

/// Whose reply is shown to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Whose {
    /// The member's that is asked.
    Own,
    /// Another member's.
    Others,
    /// The result of a tool, or a reply shown to a tool.
    Anybody,
}

/// What calls of one form have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Form {
    round: u32,
    kind: String,
    question: bool,
    given: BTreeMap<(u32, String, Whose), usize>,
    unknown: usize,
    drawn: Drawn,
    model: String,
    /// As bits, so that forms can be compared.
    temperature: Option<u64>,
}

/// A call in the chain of an item.
struct Link {
    form: Form,
    /// The length of the longest series of calls, each shown the reply of the one before, that ends in it.
    depth: usize,
    actor: u32,
    n: u32,
    shown: Shown,
    /// How many of the replies shown are another member's.
    others: usize,
}

/// The calls on an item.
struct ItemChain {
    links: Vec<Link>,
    /// What the team's answer was derived from: kinds of call with their numbers; `None` for an item without an answer.
    inputs: Option<BTreeMap<(u32, String), usize>>,
}

/// What is recorded of the finished items of an evaluation.
pub struct Record {
    dir: PathBuf,
    manifest: Manifest,
    items: BTreeMap<u32, Finished>,
    /// All finished items, also those that are not read.
    of: usize,
    /// The answers by item, in the order of the journal.
    answers: BTreeMap<u32, Vec<Answer>>,
}

impl Record {
    /// Reads a run from its journal and its table of items; `None` for a society, and for a run without a finished item.
    ///
    /// # Errors
    /// [`DriveError::Folder`] for a folder without a run, [`DriveError::Journal`] for a damaged one.
    pub fn read(disk: &dyn Disk, dir: &Path) -> Result<Option<Record>, DriveError> {
        let (manifest, inventory) = run::inventory(disk, dir)?;
        if manifest.scenario.get("method").is_none_or(Json::is_null) {
            return Ok(None);
        }
        let wrong = |error: TableError| DriveError::Folder(error.to_string());
        let items = items(&inventory.results(disk, dir)).map_err(wrong)?;
        let of = items.len();
        let items: BTreeMap<u32, Finished> = items.into_iter().take(MOST_ITEMS).collect();
        if items.is_empty() {
            return Ok(None);
        }
        let answers = answers(disk, dir, &items)?;
        Ok(Some(Record { dir: dir.to_path_buf(), manifest, items, of, answers }))
    }

    /// Derives the chain.
    #[must_use]
    pub fn chain(&self) -> Chain {
        let all = || self.answers.values().flatten();
        let again = |answer: &&Answer| !is_scoring(answer) && answer.resolution() == Resolution::Again;
        let of_item = |(item, finished): (&u32, &Finished)| {
            item_chain(self.answers.get(item).map_or(&[][..], Vec::as_slice), finished, &self.manifest.scenario)
        };
        let chains: Vec<ItemChain> = self.items.iter().map(of_item).collect();
        Chain {
            items: self.items.len(),
            of: self.of,
            calls: all().count() as u64,
            again: all().filter(again).count() as u64,
            scoring: all().filter(|answer| is_scoring(answer)).count() as u64,
            factors: factors(&chains),
            freedoms: freedoms::of(&chains),
        }
    }
}

impl Chain {
    /// Derives the chain of a run; `None` as for [`Record::read`].
    ///
    /// # Errors
    /// As [`Record::read`].
    pub fn read(disk: &dyn Disk, dir: &Path) -> Result<Option<Chain>, DriveError> {
        Ok(Record::read(disk, dir)?.map(|record| record.chain()))
    }

    /// Returns a degree of freedom by name.
    #[must_use]
    pub fn freedom(&self, name: &str) -> Option<f64> {
        self.freedoms.iter().find(|freedom| freedom.name == name).map(|freedom| freedom.value)
    }
}

/// An item with the team's answer.
struct Finished {
    question: String,
    answer: Option<String>,
}

/// The finished items.
fn items(tables: &Reader<'_>) -> Result<BTreeMap<u32, Finished>, TableError> {
    let data = tables.closed("items", &["item", "question", "answer"], usize::MAX)?;
    let column = |name: &str| data.iter().find(|(column, _)| column == name).map(|(_, data)| data);
    let texts = |name: &str| column(name).map_or(Vec::new(), ColumnData::texts).into_iter();
    let numbers = column("item").map_or(Vec::new(), ColumnData::numbers).into_iter().flatten();
    let rows = numbers.zip(texts("question")).zip(texts("answer"));
    Ok(rows
        .map(|((item, question), answer)| (item as u32, Finished { question: question.unwrap_or_default(), answer }))
        .collect())
}

/// The answers to questions about these items, in the order of the journal.
fn answers(
    disk: &dyn Disk,
    dir: &Path,
    items: &BTreeMap<u32, Finished>,
) -> Result<BTreeMap<u32, Vec<Answer>>, DriveError> {
    let mut found: BTreeMap<u32, Vec<Answer>> = BTreeMap::new();
    let mut seen: BTreeSet<EffectId> = BTreeSet::new();
    let mut reader = JournalReader::open(disk, &dir.join("journal"))?;
    while let Some(segment) = reader.next_segment()? {
        for record in segment.records() {
            let event = Event::decode(record.kind, record.payload).map_err(run::unreadable)?;
            let Event::Answers(answers) = event else { continue };
            for answer in answers {
                if items.contains_key(&answer.id.item) && seen.insert(answer.id) {
                    found.entry(answer.id.item).or_default().push(answer);
                }
            }
        }
    }
    Ok(found)
}

fn is_scoring(answer: &Answer) -> bool {
    answer.id.asker == Asker::Scorer
}

/// The names of members as others see them. Members beyond the list of a scenario repeat it.
fn names(scenario: &Json, members: u32) -> Vec<String> {
    let team = scenario.get("team").and_then(Json::as_array).map_or(&[][..], Vec::as_slice);
    let name = |i: usize| {
        let named = team.get(i % team.len().max(1)).and_then(|member| member.get("name")?.as_str());
        match (named, i / team.len().max(1)) {
            (Some(name), 0) => name.to_owned(),
            (Some(name), time) => format!("{name} {}", time + 1),
            (None, _) => format!("Agent {}", i + 1),
        }
    };
    (0..members as usize).map(name).collect()
}

/// The kind of a call: its purpose, after the role of the member.
fn kind(answer: &Answer, scenario: &Json) -> String {
    let team = scenario.get("team").and_then(Json::as_array).filter(|team| !team.is_empty());
    let member = team.and_then(|team| team.get(answer.id.actor as usize % team.len()));
    let role = member.filter(|_| answer.id.asker == Asker::Member).and_then(|member| member.get("role")?.as_str());
    let purpose = if answer.request.purpose.is_empty() { "ask" } else { answer.request.purpose.as_str() };
    role.map_or_else(|| purpose.to_owned(), |role| format!("{role}.{purpose}"))
}

fn drawn(answer: &Answer) -> Drawn {
    match answer.request.model.kind() {
        TargetKind::Tool => Drawn::Tool,
        TargetKind::Human => Drawn::Person,
        TargetKind::Model if answer.request.settings.temperature == Some(0.0) => Drawn::Greedy,
        TargetKind::Model => Drawn::Sampled,
    }
}

/// Builds the chain of an item from its answers.
fn item_chain(answers: &[Answer], item: &Finished, scenario: &Json) -> ItemChain {
    let ended = |answer: &&Answer| !is_scoring(answer) && answer.resolution() != Resolution::Again;
    let replied: Vec<Replied<'_>> = answers.iter().filter(ended).map(Replied::of).collect();
    let members = replied.iter().map(|replied| replied.answer.id.actor + 1).max().unwrap_or(0);
    let names = names(scenario, members);
    let mut links: Vec<Link> = Vec::new();
    for (at, Replied { answer, .. }) in replied.iter().enumerate() {
        let shown = shown(&replied, at, &names, item.question.trim());
        let (mut given, mut depth) = (BTreeMap::new(), 1);
        for (link, other) in shown.replies.iter().filter_map(|at| Some((links.get(*at)?, replied.get(*at)?.answer))) {
            let whose = match (answer.id.asker, other.id.asker) {
                (Asker::Member, Asker::Member) if answer.id.actor == other.id.actor => Whose::Own,
                (Asker::Member, Asker::Member) => Whose::Others,
                _ => Whose::Anybody,
            };
            *given.entry((link.form.round, link.form.kind.clone(), whose)).or_default() += 1;
            depth = depth.max(link.depth + 1);
        }
        let others = given.iter().filter(|((_, _, whose), _)| *whose == Whose::Others).map(|(_, n)| *n).sum();
        let form = Form {
            round: answer.id.round,
            kind: kind(answer, scenario),
            question: shown.question,
            given,
            unknown: shown.unknown,
            drawn: drawn(answer),
            model: answer.request.model.to_string(),
            temperature: answer.request.settings.temperature.map(f64::to_bits),
        };
        links.push(Link { form, depth, actor: answer.id.actor, n: answer.id.n, shown, others });
    }
    let inputs = item.answer.as_deref().map(|answer| inputs(&links, &replied, answer));
    ItemChain { links, inputs }
}

/// What the team's answer was derived from: the replies that no later call was shown, and, if none of them holds the answer's words, the
/// last reply that does.
fn inputs(links: &[Link], replied: &[Replied<'_>], answer: &str) -> BTreeMap<(u32, String), usize> {
    let shown: BTreeSet<usize> = links.iter().flat_map(|link| link.shown.replies.iter().copied()).collect();
    let mut last: BTreeSet<usize> = (0..links.len()).filter(|at| !shown.contains(at)).collect();
    let holds =
        |at: &usize| replied.get(*at).is_some_and(|replied| replied.texts.iter().any(|text| text == answer.trim()));
    if !last.iter().any(holds) {
        last.extend((0..links.len()).rev().find(holds));
    }
    let mut kinds = BTreeMap::new();
    for link in last.iter().filter_map(|at| links.get(*at)) {
        *kinds.entry((link.form.round, link.form.kind.clone())).or_default() += 1;
    }
    kinds
}

/// Joins the chains of all items: calls of one form are one factor.
fn factors(chains: &[ItemChain]) -> Vec<Factor> {
    let mut forms: BTreeMap<&Form, (usize, u64)> = BTreeMap::new();
    let mut answers: BTreeMap<String, u64> = BTreeMap::new();
    for chain in chains {
        for link in &chain.links {
            let (depth, calls) = forms.entry(&link.form).or_insert((link.depth, 0));
            (*depth, *calls) = ((*depth).min(link.depth), *calls + 1);
        }
        let answer = match &chain.inputs {
            None => "no answer".to_owned(),
            Some(inputs) => {
                format!("answer = f({})", counted(inputs.iter().map(|((r, kind), n)| (format!("{kind}[{r}]"), *n))))
            }
        };
        *answers.entry(answer).or_default() += 1;
    }
    // In the order in which they can be asked.
    let mut forms: Vec<(&Form, (usize, u64))> = forms.into_iter().collect();
    forms.sort_by_key(|(form, (depth, _))| (form.round, *depth));
    let of_calls = forms.into_iter().map(|(form, (_, calls))| Factor {
        conditional: form.conditional(),
        drawn: form.drawn,
        model: form.model.clone(),
        temperature: form.temperature.map(f64::from_bits),
        calls,
    });
    let of_answers = answers.into_iter().map(|(conditional, calls)| Factor {
        conditional,
        drawn: Drawn::Code,
        model: String::new(),
        temperature: None,
        calls,
    });
    of_calls.chain(of_answers).collect()
}

/// Names with their numbers: `3 × solve[0], choose[0]`.
fn counted(names: impl Iterator<Item = (String, usize)>) -> String {
    let word = |(name, n): (String, usize)| if n == 1 { name } else { format!("{n} × {name}") };
    names.map(word).collect::<Vec<_>>().join(", ")
}

impl Form {
    fn conditional(&self) -> String {
        let mut given: Vec<String> = Vec::new();
        if self.question {
            given.push("question".into());
        }
        given.extend(self.given.iter().map(|((round, kind, whose), n)| {
            let name = match whose {
                Whose::Own => format!("own {kind}[{round}]"),
                Whose::Others => format!("others' {kind}[{round}]"),
                Whose::Anybody => format!("{kind}[{round}]"),
            };
            counted(std::iter::once((name, *n)))
        }));
        if self.unknown > 0 {
            given.push(counted(std::iter::once(("text of unknown origin".to_owned(), self.unknown))));
        }
        let given = if given.is_empty() { "prompt".into() } else { given.join(", ") };
        format!("p({}[{}] | {given})", self.kind, self.round)
    }
}
