//! Logs of Inspect AI: archives (`.eval`) and JSON (`.json`), as its versions since format 2 write them.

use super::{Choice, Log, MeanOf, Question, Reply, Said, right_option, wrong};
use polity_store::DriveError;
use polity_store::files::MAX_DATA_BYTES;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{Cursor, Read};
use std::path::Path;
use zip::ZipArchive;

/// The prefix of a text that is kept apart from its sample, before its key.
const ATTACHMENT: &str = "attachment://";

/// The log without its samples: `header.json` of an archive.
#[derive(Deserialize)]
struct Header {
    #[serde(default)]
    status: String,
    eval: Eval,
    results: Option<Results>,
}

/// A whole log in JSON.
#[derive(Deserialize)]
struct Whole {
    #[serde(flatten)]
    header: Header,
    samples: Option<Vec<Sample>>,
}

#[derive(Deserialize)]
struct Eval {
    #[serde(default)]
    eval_id: String,
    task: String,
    model: String,
    #[serde(default)]
    dataset: Dataset,
}

#[derive(Default, Deserialize)]
struct Dataset {
    sample_ids: Option<Vec<Value>>,
}

#[derive(Deserialize)]
struct Results {
    #[serde(default)]
    scores: Vec<Figures>,
}

/// The figures of a scorer.
#[derive(Deserialize)]
struct Figures {
    name: String,
    #[serde(default)]
    metrics: BTreeMap<String, Metric>,
}

#[derive(Deserialize)]
struct Metric {
    value: Value,
}

#[derive(Deserialize)]
struct Sample {
    id: Option<Value>,
    #[serde(default)]
    epoch: u32,
    #[serde(default)]
    input: Value,
    choices: Option<Vec<String>>,
    #[serde(default)]
    target: Value,
    #[serde(default)]
    output: Output,
    scores: Option<serde_json::Map<String, Value>>,
    #[serde(default)]
    attachments: BTreeMap<String, String>,
    error: Option<Value>,
    uuid: Option<String>,
}

#[derive(Default, Deserialize)]
struct Output {
    #[serde(default)]
    completion: String,
    #[serde(default)]
    choices: Vec<Value>,
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Usage {
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
}

#[derive(Deserialize)]
struct Score {
    #[serde(default)]
    value: Value,
    answer: Option<String>,
}

/// Reads a log in JSON.
pub(super) fn read_json(path: &Path, bytes: &[u8], choice: Choice<'_>) -> Result<Log, DriveError> {
    let whole: Whole = serde_json::from_slice(bytes).map_err(|error| {
        wrong(path, format!("this is not an Inspect log ({error}); a .json file must be one, with its samples"))
    })?;
    taken(path, whole.header, whole.samples.unwrap_or_default(), choice)
}

/// Reads an archive.
pub(super) fn read_archive(path: &Path, bytes: Vec<u8>, choice: Choice<'_>) -> Result<Log, DriveError> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|error| damaged(path, &error))?;
    let names: Vec<String> = archive.file_names().filter_map(|name| Some(name.ok()?.into_owned())).collect();
    let mut left = MAX_DATA_BYTES;
    // An evaluation that was cut off has no header, but says at its start what it is.
    let header = ["header.json", "_journal/start.json"].into_iter().find(|name| names.iter().any(|own| own == name));
    let Some(header) = header else {
        return Err(wrong(path, "this archive is not an Inspect log: it has no header.json"));
    };
    let header: Header = entry(path, &mut archive, header, &mut left)?;
    let mut samples: Vec<Sample> = Vec::new();
    for name in names.iter().filter(|name| name.starts_with("samples/") && name.ends_with(".json")) {
        samples.push(entry(path, &mut archive, name, &mut left)?);
    }
    taken(path, header, samples, choice)
}

fn damaged(path: &Path, why: &dyn std::fmt::Display) -> DriveError {
    wrong(path, format!("the archive is damaged ({why}); copy it again, or make it again with `inspect log convert`"))
}

/// Reads an entry of an archive. All together may have `left` bytes, whatever the archive says of their sizes.
fn entry<T: DeserializeOwned>(
    path: &Path,
    archive: &mut ZipArchive<Cursor<Vec<u8>>>,
    name: &str,
    left: &mut u64,
) -> Result<T, DriveError> {
    let file = archive.by_name(name).map_err(|error| damaged(path, &format!("{name}: {error}")))?;
    let mut bytes = Vec::new();
    file.take(*left + 1).read_to_end(&mut bytes).map_err(|error| damaged(path, &format!("{name}: {error}")))?;
    *left = left.checked_sub(bytes.len() as u64).ok_or_else(|| {
        wrong(path, format!("its unpacked samples have more than {MAX_DATA_BYTES} bytes; import a part of them"))
    })?;
    serde_json::from_slice(&bytes).map_err(|error| damaged(path, &format!("{name}: {error}")))
}

/// Takes over what a log says.
fn taken(path: &Path, header: Header, mut samples: Vec<Sample>, choice: Choice<'_>) -> Result<Log, DriveError> {
    let Header { status, eval, results } = header;
    let scorer = scorer_of(path, results.as_ref(), &samples, choice)?;
    let figures = results.iter().flat_map(|results| &results.scores).find(|figures| figures.name == scorer);
    let accuracy = figures.and_then(|figures| figures.metrics.get("accuracy")?.value.as_f64());
    let mut log = Log {
        path: path.display().to_string(),
        format: "Inspect",
        task: eval.task,
        scorer,
        accuracy: accuracy.map(|value| (value, MeanOf::Items)),
        ..Log::default()
    };
    if status != "success" {
        let status = if status.is_empty() { "unfinished" } else { &status };
        log.notes.push(format!("the evaluation did not succeed (its status is `{status}`)"));
    }
    // Archives have samples in the order in which they ended.
    let order: BTreeMap<String, usize> = eval.dataset.sample_ids.iter().flatten().map(words).zip(0..).collect();
    let place =
        |sample: &Sample| sample.id.as_ref().and_then(|id| order.get(&words(id)).copied()).unwrap_or(usize::MAX);
    samples.sort_by_key(|sample| (place(sample), sample.epoch));
    let model = choice.model.unwrap_or(&eval.model);
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    let (mut media, mut marks) = (0, 0);
    for sample in samples {
        let Some(id) = sample.id.as_ref().map(words).filter(|id| !id.is_empty()) else {
            log.leave_out("samples without an id");
            continue;
        };
        if sample.error.as_ref().is_some_and(|error| !error.is_null()) {
            log.leave_out("samples that ended in an error");
            continue;
        }
        let question = match sample.question(&id) {
            Ok((question, has_media)) => {
                media += usize::from(has_media);
                question
            }
            Err(why) => {
                log.leave_out(why);
                continue;
            }
        };
        let score: Option<Score> = sample.scores.as_ref().and_then(|all| all.get(&log.scorer)).map(Score::of);
        let mark = score.as_ref().and_then(|score| right_or_wrong(&score.value));
        marks += usize::from(score.is_some() && mark.is_none());
        let extracted = score.and_then(|score| score.answer).map(|answer| Said::Extracted(sample.resolved(&answer)));
        let usage = sample.output.usage.as_ref();
        let nth = counts.entry(id.clone()).or_default();
        log.replies.push(Reply {
            item: id,
            model: model.to_owned(),
            sample: *nth,
            said: extracted.unwrap_or_else(|| Said::Whole(sample.completion())),
            mark,
            tokens: usage.map_or([0, 0], |usage| [usage.input_tokens, usage.output_tokens]),
            identity: Some(
                sample.uuid.clone().unwrap_or_else(|| format!("{} {question:?} {}", eval.eval_id, sample.epoch)),
            ),
            ..Reply::default()
        });
        *nth += 1;
        log.questions.push(question);
    }
    for (count, what) in [
        (media, "questions with images or files, of which only the text was taken"),
        (marks, "marks that are neither right nor wrong"),
    ] {
        if count > 0 {
            log.notes.push(format!("{what}: {count}"));
        }
    }
    Ok(log)
}

/// The scorer whose answers are taken; empty if nothing was scored.
fn scorer_of(
    path: &Path,
    results: Option<&Results>,
    samples: &[Sample],
    choice: Choice<'_>,
) -> Result<String, DriveError> {
    let mut known: Vec<&str> =
        results.iter().flat_map(|results| &results.scores).map(|one| one.name.as_str()).collect();
    for name in samples.iter().filter_map(|sample| sample.scores.as_ref()).flat_map(serde_json::Map::keys) {
        if !known.contains(&name.as_str()) {
            known.push(name);
        }
    }
    match choice.scorer {
        Some(wanted) if known.contains(&wanted) => Ok(wanted.to_owned()),
        Some(wanted) => Err(wrong(path, format!("the log has no scorer `{wanted}` (it has {})", known.join(", ")))),
        None => Ok(known.first().map_or(String::new(), |name| (*name).to_owned())),
    }
}

impl Score {
    /// A score that does not have the usual form has no answer and no mark.
    fn of(value: &Value) -> Score {
        serde_json::from_value(value.clone()).unwrap_or(Score { value: Value::Null, answer: None })
    }
}

impl Sample {
    /// The question, and whether it has more than text. The error says why the sample cannot be taken over.
    fn question(&self, id: &str) -> Result<(Question, bool), &'static str> {
        let (text, has_media) = self.asked();
        let choices = self.choices.clone().unwrap_or_default();
        let targets: Vec<&str> = match &self.target {
            Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
            one => one.as_str().into_iter().collect(),
        };
        let right = match targets.as_slice() {
            [] | [""] => None,
            [one] if choices.is_empty() => Some((*one).to_owned()),
            [one] => Some(right_option(one, &choices).ok_or("samples without a single right option")?),
            _ => return Err("samples with several right answers"),
        };
        Ok((Question { id: id.to_owned(), text, choices, right }, has_media))
    }

    /// The text of the input, and whether there is more than text in it.
    fn asked(&self) -> (String, bool) {
        let Value::Array(messages) = &self.input else { return (self.resolved(&words(&self.input)), false) };
        let mut has_media = false;
        let texts: Vec<String> = messages
            .iter()
            .map(|message| {
                let (text, more) = content(message);
                has_media |= more;
                self.resolved(&text)
            })
            .collect();
        (texts.join("\n\n"), has_media)
    }

    /// The whole reply.
    fn completion(&self) -> String {
        let first = || self.output.choices.first().and_then(|choice| choice.get("message")).map(|said| content(said).0);
        let text = Some(self.output.completion.clone()).filter(|text| !text.is_empty()).or_else(first);
        self.resolved(&text.unwrap_or_default())
    }

    /// A text, which may be kept apart.
    fn resolved(&self, text: &str) -> String {
        let kept = text.strip_prefix(ATTACHMENT).and_then(|key| self.attachments.get(key));
        kept.map_or(text, String::as_str).to_owned()
    }
}

/// The text of a message, and whether there is more than text in it.
fn content(message: &Value) -> (String, bool) {
    match message.get("content") {
        Some(Value::Array(parts)) => {
            let texts: Vec<&str> = parts.iter().filter_map(|part| part.get("text")?.as_str()).collect();
            (texts.join("\n"), texts.len() < parts.len())
        }
        Some(text) => (words(text), false),
        None => (String::new(), false),
    }
}

/// A value as a text: ids are numbers or texts.
fn words(value: &Value) -> String {
    match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Inspect marks with `C`, `I` and `N` (no answer), or with numbers.
fn right_or_wrong(value: &Value) -> Option<bool> {
    match value {
        Value::String(word) => match word.as_str() {
            "C" => Some(true),
            "I" | "N" => Some(false),
            _ => None,
        },
        Value::Bool(right) => Some(*right),
        number => match number.as_f64() {
            Some(1.0) => Some(true),
            Some(0.0) => Some(false),
            _ => None,
        },
    }
}
