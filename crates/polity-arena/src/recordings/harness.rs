//! Samples of lm-evaluation-harness: `samples_TASK_DATE.jsonl`, as `--log_samples` writes them, and `results_DATE.json` beside them.

use super::{Choice, Log, MeanOf, Question, Reply, Said, letter, right_option, wrong};
use polity_store::DriveError;
use polity_store::files::read_bytes;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What a filter writes if it finds no answer.
const INVALID: &str = "[invalid]";
/// The filter that passes replies on as they are.
const NO_FILTER: &str = "none";
/// Usual names of the question in a document.
const QUESTIONS: [&str; 5] = ["question", "problem", "query", "input", "prompt"];

/// A line of the file.
#[derive(Deserialize)]
struct Sample {
    doc_id: Option<Value>,
    #[serde(default)]
    doc: Value,
    #[serde(default)]
    target: Value,
    #[serde(default)]
    arguments: Map<String, Value>,
    filtered_resps: Vec<Value>,
    #[serde(default)]
    filter: String,
    #[serde(default)]
    metrics: Vec<String>,
    #[serde(flatten)]
    values: Map<String, Value>,
}

/// `results_DATE.json`, which names the model and holds the accuracy.
#[derive(Default, Deserialize)]
struct Results {
    model_name: Option<String>,
    #[serde(default)]
    results: BTreeMap<String, Map<String, Value>>,
}

/// Reads the samples of a task.
pub(super) fn read(path: &Path, bytes: &[u8], choice: Choice<'_>) -> Result<Log, DriveError> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        wrong(path, format!("byte {} (counted from 0) is not UTF-8 text; copy the file again", error.valid_up_to()))
    })?;
    let mut samples: Vec<Sample> = Vec::new();
    for (line, text) in (1..).zip(text.lines()).filter(|(_, text)| !text.trim().is_empty()) {
        samples.push(serde_json::from_str(text).map_err(|error| {
            let what = error.to_string();
            let what = what.split(" at line 1 column ").next().unwrap_or_default();
            wrong(path, format!("line {line}: {what}; each line must be a sample of lm-evaluation-harness"))
        })?);
    }
    let (task, date) = named(path);
    let results = results(path, date)?;
    let folder =
        || std::path::absolute(path).ok()?.parent()?.file_name().map(|name| name.to_string_lossy().into_owned());
    let model = choice.model.map(str::to_owned).or_else(|| results.model_name.clone()).or_else(folder);
    let model = model.filter(|name| !name.is_empty()).unwrap_or_else(|| "model".into());
    let filter = filter_of(path, &samples, choice)?;
    let mark = mark_of(&samples, &filter);
    let figures = results.results.get(task);
    let accuracy = mark.as_ref().and_then(|mark| figures?.get(&format!("{mark},{filter}"))?.as_f64());
    let mut log = Log {
        path: path.display().to_string(),
        format: "lm-evaluation-harness",
        task: task.to_owned(),
        scorer: filter,
        accuracy: accuracy.map(|value| (value, MeanOf::Items)),
        ..Log::default()
    };
    let filters: BTreeSet<&str> = samples.iter().map(|sample| sample.filter.as_str()).collect();
    if filters.len() > 1 && choice.scorer.is_none() {
        let all = filters.into_iter().collect::<Vec<_>>().join(", ");
        log.notes.push(format!(
            "the answers of the filter `{}` were taken, out of {all}; --scorer takes another",
            log.scorer
        ));
    }
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for sample in &samples {
        take(&mut log, sample, mark.as_deref(), &model, &mut seen);
    }
    // Lines have no id of their own, but no model is evaluated twice at the same moment.
    if let Some(date) = date {
        for reply in &mut log.replies {
            reply.identity = Some(format!("{date} {model} {} {}", reply.item, reply.sample));
        }
    }
    Ok(log)
}

/// Takes over a line.
fn take(log: &mut Log, sample: &Sample, mark: Option<&str>, model: &str, seen: &mut BTreeSet<String>) {
    if sample.filter != log.scorer {
        return log.leave_out("samples of other filters");
    }
    let Some(number) = sample.doc_id.as_ref().filter(|id| id.is_u64() || id.is_string()) else {
        return log.leave_out("samples without an id");
    };
    // Each task counts its documents from 0.
    let number = number.as_str().map_or_else(|| number.to_string(), str::to_owned);
    let id = format!("{}/{number}", log.task);
    if !seen.insert(id.clone()) {
        return log.leave_out("samples that are there twice");
    }
    let (question, answers) = match sample.question(&id).and_then(|question| {
        let answers = sample.answers(question.choices.len())?;
        Ok((question, answers))
    }) {
        Ok(taken) => taken,
        Err(why) => return log.leave_out(why),
    };
    let value = mark.and_then(|mark| sample.values.get(mark)?.as_f64());
    let mark = match value {
        // One mark for several answers is the mark of none of them.
        Some(1.0) if answers.len() == 1 => Some(true),
        Some(0.0) if answers.len() == 1 => Some(false),
        _ => None,
    };
    for (nth, said) in (0..).zip(answers) {
        let reply = Reply { item: id.clone(), model: model.to_owned(), sample: nth, said, mark, ..Reply::default() };
        log.replies.push(reply);
    }
    log.questions.push(question);
}

/// The task and the date in the name `samples_TASK_DATE.jsonl`.
fn named(path: &Path) -> (&str, Option<&str>) {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("task");
    let stem = stem.strip_prefix("samples_").unwrap_or(stem);
    match stem.rsplit_once('_').filter(|(_, date)| date.starts_with(|c: char| c.is_ascii_digit()) && date.contains('T'))
    {
        Some((task, date)) => (task, Some(date)),
        None => (stem, None),
    }
}

/// The results of the same date beside the samples, if they are there.
fn results(path: &Path, date: Option<&str>) -> Result<Results, DriveError> {
    let beside = date.map(|date| path.with_file_name(format!("results_{date}.json"))).filter(|beside| beside.exists());
    let Some(beside) = beside else { return Ok(Results::default()) };
    let bytes = read_bytes(&beside).map_err(|error| DriveError::Input(error.to_string()))?;
    serde_json::from_slice(&bytes).map_err(|error| {
        wrong(
            &beside,
            format!("these results cannot be read: {error}; restore the file, or move it away to import without it"),
        )
    })
}

/// The filter whose answers are taken.
fn filter_of(path: &Path, samples: &[Sample], choice: Choice<'_>) -> Result<String, DriveError> {
    let mut known: Vec<&str> = Vec::new();
    for sample in samples {
        if !known.contains(&sample.filter.as_str()) {
            known.push(&sample.filter);
        }
    }
    match choice.scorer {
        Some(wanted) if known.contains(&wanted) => Ok(wanted.to_owned()),
        Some(wanted) => Err(wrong(path, format!("the log has no filter `{wanted}` (it has {})", known.join(", ")))),
        None => Ok(known.first().map_or(String::new(), |name| (*name).to_owned())),
    }
}

/// The metric that is the mark: of those that are 0 or 1 for every sample, `acc` or `exact_match`, else the first.
fn mark_of(samples: &[Sample], filter: &str) -> Option<String> {
    let own = || samples.iter().filter(|sample| sample.filter == filter);
    let marks = |name: &&String| {
        own().all(|sample| {
            sample.values.get(*name).and_then(Value::as_f64).is_some_and(|value| value == 0.0 || value == 1.0)
        })
    };
    let known: Vec<&String> = own().next()?.metrics.iter().filter(marks).collect();
    let usual = ["acc", "exact_match"].iter().find_map(|name| known.iter().find(|own| **own == name));
    usual.or_else(|| known.first()).map(|name| (*name).clone())
}

impl Sample {
    /// The question. The error says why the sample cannot be taken over.
    fn question(&self, id: &str) -> Result<Question, &'static str> {
        let named = QUESTIONS.iter().find_map(|name| self.doc.get(name)?.as_str());
        let text = named.or_else(|| self.argument(0, "arg_0")).unwrap_or_default().to_owned();
        let choices = self.choices();
        let target = self.target.as_str().map_or_else(|| self.target.to_string(), str::to_owned);
        let right = match choices.as_slice() {
            [] => Some(target).filter(|target| !target.trim().is_empty() && target != "null"),
            options => {
                let index = target.parse().ok().filter(|index: &usize| *index < options.len()).and_then(letter);
                let right = index.or_else(|| right_option(&target, options));
                Some(right.ok_or("samples without a single right option")?)
            }
        };
        Ok(Question { id: id.to_owned(), text, choices, right })
    }

    /// The options: those of the document, else the continuations whose likelihoods were compared. Empty if there are none.
    fn choices(&self) -> Vec<String> {
        let compared = self.filtered_resps.len();
        if compared < 2 || self.likelihoods().is_none() {
            return Vec::new();
        }
        let texts = |value: &Value| -> Option<Vec<String>> {
            value.as_array()?.iter().map(|text| text.as_str().map(str::to_owned)).collect()
        };
        let of_doc = self.doc.get("choices").and_then(|choices| texts(choices).or_else(|| texts(choices.get("text")?)));
        let continuations =
            || (0..compared).filter_map(|i| Some(self.argument(i, "arg_1")?.trim().to_owned())).collect();
        of_doc.filter(|choices| choices.len() == compared).unwrap_or_else(continuations)
    }

    /// The answers, by the number of options. The error says why there is none.
    fn answers(&self, options: usize) -> Result<Vec<Said>, &'static str> {
        if let Some(likelihoods) = self.likelihoods() {
            if options != likelihoods.len() {
                return Err("samples with likelihoods, but without options");
            }
            // Of equal ones the first, as the harness takes it.
            let best = likelihoods.iter().enumerate().fold(0, |best, (i, value)| match likelihoods.get(best) {
                Some(most) if value > most => i,
                _ => best,
            });
            return letter(best).map(|letter| vec![Said::Extracted(letter)]).ok_or("samples with more than 26 options");
        }
        let texts: Vec<&str> = match self.filtered_resps.as_slice() {
            [Value::Array(several)] => several.iter().filter_map(Value::as_str).collect(),
            [Value::String(one), ..] => vec![one],
            _ => Vec::new(),
        };
        let said = |text: &str| match text {
            INVALID => Said::default(),
            text if self.filter == NO_FILTER => Said::Whole(text.to_owned()),
            text => Said::Extracted(text.to_owned()),
        };
        let said: Vec<Said> = texts.into_iter().map(said).collect();
        if said.is_empty() { Err("samples without an answer") } else { Ok(said) }
    }

    /// The log-likelihood of each option, if that is what the responses are: pairs with a truth value.
    fn likelihoods(&self) -> Option<Vec<f64>> {
        let one = |response: &Value| match response.as_array()?.as_slice() {
            [value, greedy] if greedy.is_boolean() || matches!(greedy.as_str(), Some("True" | "False")) => {
                value.as_f64().or_else(|| value.as_str()?.parse().ok())
            }
            _ => None,
        };
        let all: Option<Vec<f64>> = self.filtered_resps.iter().map(one).collect();
        all.filter(|all| !all.is_empty())
    }

    /// An argument of a request.
    fn argument(&self, request: usize, name: &str) -> Option<&str> {
        self.arguments.get(&format!("gen_args_{request}"))?.get(name)?.as_str()
    }
}
