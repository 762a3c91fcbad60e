//! Logs, joined: the items, the answers and a scenario, and how far the items' own scoring agrees with the logs.

use super::{Log, MeanOf, Question, Reply, Said};
use csv::WriterBuilder;
use polity_kernel::items::{Item, RECORDED, Recording, Scorer, Shape, read as read_items};
use polity_kernel::population::Table;
use polity_kernel::scenario::ItemSource;
use polity_store::DriveError;
use polity_store::files::{table_from_bytes, texts_from_bytes};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// The file of items.
pub const ITEMS: &str = "items.jsonl";
/// The table of answers.
pub const ANSWERS: &str = "answers.tsv";
/// The scenario.
pub const SCENARIO: &str = "scenario.yaml";

/// The longest question that an error shows, in characters.
const SHOWN: usize = 60;
/// Two accuracies that differ by less are the same.
const ROUNDING: f64 = 1e-9;

/// Files that play the answers of logs, and an account of each log.
#[derive(Debug)]
pub struct Bundle {
    /// The files: their names and their contents.
    pub files: Vec<(&'static str, String)>,
    /// Number of items.
    pub items: usize,
    /// The models, in order of appearance.
    pub models: Vec<String>,
    /// The shape of the items, and the rule by which they are scored.
    pub shape: Shape,
    /// The rule by which they are scored.
    pub rule: Scorer,
    /// An account of each log, in order.
    pub accounts: Vec<Account>,
}

/// What became of a log.
#[derive(Debug, Serialize)]
pub struct Account {
    /// Its file or folder.
    pub log: String,
    /// The program that wrote it.
    pub format: &'static str,
    /// Its task.
    pub task: String,
    /// The scorer or the filter whose answers were taken; empty if there is none.
    pub scorer: String,
    /// Answers that were taken over.
    pub answers: usize,
    /// How many of them are empty, because no answer could be read.
    pub unread: usize,
    /// The accuracy that the log states.
    pub accuracy: Option<f64>,
    /// The same accuracy by the items' own scoring; `None` if they have no right answers.
    pub recomputed: Option<f64>,
    /// Answers that the log marks right or wrong.
    pub marks: usize,
    /// How many marks differ from the items' own scoring.
    pub differing: usize,
    /// What was not taken over: why, and how many.
    pub left_out: BTreeMap<&'static str, usize>,
    /// What else to know about it.
    pub notes: Vec<String>,
}

impl Account {
    /// Whether the items' own scoring agrees with the log, in every mark and in the accuracy.
    #[must_use]
    pub fn agrees(&self) -> bool {
        let same = match (self.accuracy, self.recomputed) {
            (Some(stated), Some(recomputed)) => (stated - recomputed).abs() < ROUNDING,
            _ => true,
        };
        self.differing == 0 && same
    }
}

/// An answer of one of the logs, as it is played.
struct Row {
    log: usize,
    reply: Reply,
    /// The answer alone; empty if it could not be read.
    answer: String,
    /// By the item's own rule.
    right: Option<bool>,
}

impl Bundle {
    /// Joins logs.
    ///
    /// # Errors
    /// [`DriveError::Input`] for logs whose questions do not fit together.
    pub fn of(logs: Vec<Log>) -> Result<Bundle, DriveError> {
        let mut accounts: Vec<Account> = logs.iter().map(Account::of).collect();
        let stated: Vec<Option<MeanOf>> = logs.iter().map(|log| Some(log.accuracy?.1)).collect();
        let rule = logs.iter().find_map(|log| log.rule);
        let name = logs.first().map_or(String::new(), |log| log.task.clone());
        let (questions, replies) = joined(logs, &mut accounts)?;
        let file = items_file(&questions)?;
        let (source, items) = scored(&questions, &file, rule, &replies)?;
        let rows: Vec<Row> = replies.into_iter().filter_map(|(log, reply)| Row::of(log, reply, &items)).collect();
        let answers = answers_file(&rows)?;
        playable(&answers)?;
        for (log, account) in accounts.iter_mut().enumerate() {
            account.count(rows.iter().filter(|row| row.log == log), stated.get(log).copied().flatten());
        }
        let mut models: Vec<String> = Vec::new();
        for row in &rows {
            if !models.contains(&row.reply.model) {
                models.push(row.reply.model.clone());
            }
        }
        let scenario = scenario(&name, &models, &rows, &source, &accounts);
        Ok(Bundle {
            files: vec![(ITEMS, file), (ANSWERS, answers), (SCENARIO, scenario)],
            items: questions.len(),
            models,
            shape: source.shape,
            rule: items.values().next().map(|item| item.scorer).unwrap_or_default(),
            accounts,
        })
    }
}

impl Account {
    fn of(log: &Log) -> Account {
        Account {
            log: log.path.clone(),
            format: log.format,
            task: log.task.clone(),
            scorer: log.scorer.clone(),
            answers: 0,
            unread: 0,
            accuracy: log.accuracy.map(|(value, _)| value),
            recomputed: None,
            marks: 0,
            differing: 0,
            left_out: log.left_out.clone(),
            notes: log.notes.clone(),
        }
    }

    fn leave_out(&mut self, why: &'static str) {
        *self.left_out.entry(why).or_default() += 1;
    }

    fn count<'a>(&mut self, rows: impl Iterator<Item = &'a Row>, of: Option<MeanOf>) {
        let mut by_item: BTreeMap<&str, Vec<bool>> = BTreeMap::new();
        for row in rows {
            self.answers += 1;
            self.unread += usize::from(row.answer.is_empty());
            if let (Some(mark), Some(right)) = (row.reply.mark, row.right) {
                self.marks += 1;
                self.differing += usize::from(mark != right);
            }
            let counts = match of {
                Some(MeanOf::ReadableAnswers) => row.reply.round == 0 && !row.answer.is_empty(),
                Some(MeanOf::Items) | None => true,
            };
            if let Some(right) = row.right.filter(|_| counts) {
                by_item.entry(&row.reply.item).or_default().push(right);
            }
        }
        let mean = |all: &[bool]| all.iter().filter(|right| **right).count() as f64 / all.len() as f64;
        let all: Vec<bool> = by_item.values().flatten().copied().collect();
        self.recomputed = (!all.is_empty()).then(|| match of {
            Some(MeanOf::ReadableAnswers) => mean(&all),
            Some(MeanOf::Items) | None => by_item.values().map(|own| mean(own)).sum::<f64>() / by_item.len() as f64,
        });
    }
}

/// The questions of logs, and their answers with the numbers of their logs.
type Joined = (Vec<Question>, Vec<(usize, Reply)>);

/// Joins the questions and the answers of logs. Answers have the number of their log, and further logs have further samples.
fn joined(logs: Vec<Log>, accounts: &mut [Account]) -> Result<Joined, DriveError> {
    // Items without a right answer could not be scored beside the others.
    let open = !logs.iter().flat_map(|log| &log.questions).any(|question| question.right.is_some());
    let mut questions: Vec<Question> = Vec::new();
    let mut known: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut replies: Vec<(usize, Reply)> = Vec::new();
    let mut identities: BTreeSet<String> = BTreeSet::new();
    let mut samples: BTreeMap<(String, String), u32> = BTreeMap::new();
    for (number, (log, account)) in logs.iter().zip(accounts.iter_mut()).enumerate() {
        for question in log.questions.iter().filter(|question| open || question.right.is_some()) {
            match known.get(&question.id) {
                Some((first, place)) if questions.get(*place) != Some(question) => {
                    let other = (logs.get(*first).unwrap_or(log), questions.get(*place).unwrap_or(question));
                    return Err(conflict(other, (log, question)));
                }
                Some(_) => {}
                None => {
                    known.insert(question.id.clone(), (number, questions.len()));
                    questions.push(question.clone());
                }
            }
        }
        let before = samples.clone();
        for reply in &log.replies {
            if !known.contains_key(&reply.item) {
                account.leave_out("samples without a right answer");
                continue;
            }
            if reply.identity.as_ref().is_some_and(|identity| !identities.insert(identity.clone())) {
                account.leave_out("samples that are there twice");
                continue;
            }
            let key = (reply.item.clone(), reply.model.clone());
            let sample = reply.sample + before.get(&key).copied().unwrap_or(0);
            let next = samples.entry(key).or_default();
            *next = (*next).max(sample + 1);
            replies.push((number, Reply { sample, ..reply.clone() }));
        }
    }
    let with_options = questions.iter().filter(|question| !question.choices.is_empty()).count();
    if with_options > 0 && with_options < questions.len() {
        return Err(DriveError::Input(format!(
            "{with_options} of {} items are multiple choice and the others are not; import them into folders of their own",
            questions.len()
        )));
    }
    match replies.is_empty() {
        true => Err(DriveError::Input("no answer is left to take over: no item has a right answer".into())),
        false => Ok((questions, replies)),
    }
}

/// Two questions with one id.
fn conflict((first, one): (&Log, &Question), (second, other): (&Log, &Question)) -> DriveError {
    let about = |question: &Question| {
        let text: String = question.text.split_whitespace().collect::<Vec<_>>().join(" ");
        let right = question.right.as_ref().map_or(String::new(), |right| format!(", right answer `{}`", cut(right)));
        format!("`{}`{right}", cut(&text))
    };
    DriveError::Input(format!(
        "item `{}` is {} in {} (task `{}`), but {} in {} (task `{}`): these logs are of different tasks with the same ids. Import each \
         task into a folder of its own",
        one.id,
        about(one),
        first.path,
        first.task,
        about(other),
        second.path,
        second.task
    ))
}

fn cut(text: &str) -> String {
    let short: String = text.chars().take(SHOWN).collect();
    if short.len() < text.len() { short + " …" } else { short }
}

/// The items as JSON lines, each with the same keys.
fn items_file(questions: &[Question]) -> Result<String, DriveError> {
    let mut out = String::new();
    for Question { id, text, choices, right } in questions {
        let mut item = Map::new();
        item.insert("id".into(), json!(id));
        item.insert("question".into(), json!(text));
        if !choices.is_empty() {
            item.insert("choices".into(), json!(choices));
        }
        if let Some(right) = right {
            item.insert("answer".into(), json!(right));
        }
        out.push_str(&Value::Object(item).to_string());
        out.push('\n');
    }
    Ok(out)
}

/// The items as the kernel reads them, by id, and their source. If the log names no rule of Polity's, the rule is the one that agrees with
/// most of the log's marks; the first of those that agree equally.
fn scored(
    questions: &[Question],
    file: &str,
    rule: Option<Scorer>,
    replies: &[(usize, Reply)],
) -> Result<(ItemSource, BTreeMap<String, Item>), DriveError> {
    let unreadable =
        |error: &dyn std::fmt::Display| DriveError::Input(format!("the items of the log cannot be used: {error}"));
    let table = Arc::new(table_from_bytes(Path::new(ITEMS), file.as_bytes()).map_err(|error| unreadable(&error))?);
    let read = |source: &ItemSource| -> Result<BTreeMap<String, Item>, DriveError> {
        let items = read_items(source, &table, None, None, 1).map_err(|error| unreadable(&error.message))?;
        Ok(questions.iter().map(|question| question.id.clone()).zip(items).collect())
    };
    let mut best: Option<(usize, ItemSource, BTreeMap<String, Item>)> = None;
    for source in sources(&table, questions, rule)? {
        let items = read(&source)?;
        let rows = replies.iter().filter_map(|(log, reply)| Row::of(*log, reply.clone(), &items));
        let differing = rows.filter(|row| matches!((row.reply.mark, row.right), (Some(a), Some(b)) if a != b)).count();
        if best.as_ref().is_none_or(|(fewest, ..)| differing < *fewest) {
            best = Some((differing, source, items));
        }
    }
    best.map(|(_, source, items)| (source, items)).ok_or_else(|| unreadable(&"there is no rule to score them"))
}

/// The ways in which the items may be scored.
fn sources(table: &Table, questions: &[Question], rule: Option<Scorer>) -> Result<Vec<ItemSource>, DriveError> {
    let source = |shape: Shape, scorer: Option<Scorer>| {
        let mut keys = json!({ "file": ITEMS, "shape": shape, "recorded": ANSWERS });
        if questions.iter().any(|question| question.right.is_some()) {
            keys["answer"] = json!("answer");
        }
        if let Some(scorer) = scorer {
            keys["scorer"] = json!(scorer);
        }
        serde_json::from_value(keys).map_err(|error| DriveError::Input(error.to_string()))
    };
    match Shape::of(table) {
        shape @ (Shape::Choice | Shape::Survey) => Ok(vec![source(shape, None)?]),
        Shape::Gsm8k if questions.iter().all(is_gsm8k) => Ok(vec![source(Shape::Gsm8k, None)?]),
        _ => {
            let rules = rule.into_iter().chain([Scorer::Exact, Scorer::Number, Scorer::Math]);
            rules.map(|rule| source(Shape::Plain, Some(rule))).collect()
        }
    }
}

/// Whether the right answer ends in a number after `####`.
fn is_gsm8k(question: &Question) -> bool {
    let end = question.right.as_ref().and_then(|right| right.rsplit_once("####"));
    end.is_some_and(|(_, end)| end.contains(|c: char| c.is_ascii_digit()))
}

impl Row {
    /// Reads an answer by the rule of its item; `None` for an unknown item.
    fn of(log: usize, reply: Reply, items: &BTreeMap<String, Item>) -> Option<Row> {
        let item = items.get(&reply.item)?;
        let answer = match &reply.said {
            // Options are recorded by letter.
            Said::Extracted(answer) if item.scorer == Scorer::Choice => item.extracted(answer).unwrap_or_default(),
            Said::Extracted(answer) => answer.trim().to_owned(),
            Said::Whole(text) => item.extracted(text).unwrap_or_default(),
        };
        let right = match answer.is_empty() {
            true => item.gold.as_ref().map(|_| false),
            false => item.is_right(&answer),
        };
        Some(Row { log, reply, answer, right })
    }
}

/// The table of answers. Columns that would be empty are left out.
fn answers_file(rows: &[Row]) -> Result<String, DriveError> {
    let any = |has: fn(&Row) -> bool| rows.iter().any(has);
    let mark = |row: &Row| row.reply.mark.map_or("", |right| if right { "1" } else { "0" }).to_owned();
    type Cell<'a> = (&'static str, Box<dyn Fn(&Row) -> String + 'a>);
    let mut columns: Vec<Cell<'_>> = vec![
        ("item", Box::new(|row| row.reply.item.clone())),
        ("model", Box::new(|row| row.reply.model.clone())),
        ("sample", Box::new(|row| row.reply.sample.to_string())),
    ];
    if any(|row| row.reply.round > 0) {
        columns.push(("round", Box::new(|row| row.reply.round.to_string())));
    }
    if any(|row| row.reply.member.is_some()) {
        columns.push(("member", Box::new(|row| row.reply.member.clone().unwrap_or_default())));
    }
    columns.push(("answer", Box::new(|row| row.answer.clone())));
    columns.push(("mark", Box::new(mark)));
    if any(|row| row.reply.tokens != [0, 0]) {
        columns.push(("tokens_in", Box::new(|row| row.reply.tokens[0].to_string())));
        columns.push(("tokens_out", Box::new(|row| row.reply.tokens[1].to_string())));
    }
    if any(|row| row.reply.cost_usd > 0.0) {
        columns.push(("cost_usd", Box::new(|row| row.reply.cost_usd.to_string())));
    }
    let fail =
        |error: &dyn std::fmt::Display| DriveError::Input(format!("the table of answers cannot be made: {error}"));
    let mut out = WriterBuilder::new().delimiter(b'\t').from_writer(Vec::new());
    out.write_record(columns.iter().map(|(name, _)| *name)).map_err(|error| fail(&error))?;
    for row in rows {
        out.write_record(columns.iter().map(|(_, cell)| cell(row))).map_err(|error| fail(&error))?;
    }
    let bytes = out.into_inner().map_err(|error| fail(&error))?;
    String::from_utf8(bytes).map_err(|error| fail(&error))
}

/// Checks that the kernel can play the table.
fn playable(answers: &str) -> Result<(), DriveError> {
    let fail =
        |error: &dyn std::fmt::Display| DriveError::Input(format!("the answers of the logs cannot be played: {error}"));
    let table = texts_from_bytes(Path::new(ANSWERS), answers.as_bytes()).map_err(|error| fail(&error))?;
    Recording::read(&Arc::new(table)).map(drop).map_err(|error| fail(&error.message))
}

/// A scenario in which every sample of every model votes; a single one answers alone.
fn scenario(name: &str, models: &[String], rows: &[Row], source: &ItemSource, accounts: &[Account]) -> String {
    let quoted = |text: &str| Value::from(text).to_string();
    let mut members = String::new();
    let mut count = 0;
    for model in models {
        let first = rows.iter().filter(|row| row.reply.model == *model && row.reply.round == 0);
        let samples = first.map(|row| row.reply.sample + 1).max().unwrap_or(0);
        for _ in 0..samples {
            members.push_str(&format!("  - {{model: {}}}\n", quoted(&format!("{RECORDED}{model}"))));
            count += 1;
        }
    }
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = name.chars().map(plain).collect();
    let name = name.trim_matches('-');
    let about = accounts.iter().map(|account| account.log.as_str()).collect::<Vec<_>>().join(", ");
    let mut items = format!("  file: {ITEMS}\n  shape: {}\n", word(&source.shape));
    if source.answer.is_some() {
        items.push_str("  answer: answer\n");
    }
    if let Some(scorer) = &source.scorer {
        items.push_str(&format!("  scorer: {}\n", word(scorer)));
    }
    items.push_str(&format!("  recorded: {ANSWERS}\n"));
    format!(
        "# Recorded answers, from logs by `polity import recorded`. A member with the model recorded/NAME gives them.\npolity: 2\n\
         name: {}\ndescription: {}\nseed: 1\nrounds: 1\nteam:\n{members}method: {{kind: {}}}\nitems:\n{items}",
        quoted(if name.is_empty() { "recorded" } else { name }),
        quoted(&format!("recorded answers from {about}")),
        if count > 1 { "self-consistency" } else { "direct" },
    )
}

/// The word for a shape or a scorer in a scenario.
fn word<T: Serialize>(value: &T) -> String {
    serde_json::to_value(value).ok().and_then(|value| Some(value.as_str()?.to_owned())).unwrap_or_default()
}
