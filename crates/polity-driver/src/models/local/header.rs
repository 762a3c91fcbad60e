//! What a GGUF file says of itself.

use candle_core::quantized::gguf_file::{Content, Value};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// The only architecture that is known here; Llama, Mistral, TinyLlama and SmolLM have it.
const ARCHITECTURE: &str = "llama";
/// Tokens that candle's rotary tables reach.
const LONGEST: usize = candle_transformers::models::quantized_llama::MAX_SEQ_LEN;

/// Facts by name.
pub(super) struct Metadata(Content);

#[cfg(test)]
impl<const N: usize> From<[(&str, Value); N]> for Metadata {
    fn from(facts: [(&str, Value); N]) -> Self {
        let metadata = facts.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        Metadata(Content {
            magic: candle_core::quantized::gguf_file::VersionedMagic::GgufV3,
            metadata,
            tensor_infos: Default::default(),
            tensor_data_offset: 0,
        })
    }
}

impl Metadata {
    /// Opens a file and reads its facts. The error says what is wrong with it, and what to do.
    pub fn open(path: &Path) -> Result<(Metadata, BufReader<File>), String> {
        let shown = path.display();
        let file = File::open(path).map_err(|error| {
            format!(
                "{shown} can not be read: {error}. A model inside the process is `local/` and the path of a GGUF file"
            )
        })?;
        let mut file = BufReader::new(file);
        let content = Content::read(&mut file)
            .map_err(|error| format!("{shown} is no GGUF file, or damaged: {}", first_line(&error.to_string())))?;
        let metadata = Metadata(content);
        match metadata.text("general.architecture") {
            Some(ARCHITECTURE) => Ok((metadata, file)),
            other => Err(format!(
                "{shown} is a model of the architecture `{}`, and only `{ARCHITECTURE}` is known here (Llama, Mistral, TinyLlama, SmolLM). \
                 A server on this machine may know it: `ollama/...`, or `openai/...` with OPENAI_BASE_URL",
                other.unwrap_or("unknown")
            )),
        }
    }

    /// All of them, for candle.
    pub fn into_content(self) -> Content {
        self.0
    }

    pub fn text(&self, key: &str) -> Option<&str> {
        match self.0.metadata.get(key)? {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    pub fn flag(&self, key: &str) -> Option<bool> {
        self.0.metadata.get(key)?.to_bool().ok()
    }

    pub fn number(&self, key: &str) -> Option<f64> {
        number(self.0.metadata.get(key)?)
    }

    pub fn texts(&self, key: &str) -> Option<Vec<&str>> {
        let text = |value: &'_ Value| matches!(value, Value::String(_));
        let all = self.0.metadata.get(key)?.to_vec().ok()?;
        all.iter()
            .all(text)
            .then(|| all.iter().filter_map(|value| value.to_string().ok()).map(String::as_str).collect())
    }

    pub fn numbers(&self, key: &str) -> Option<Vec<f64>> {
        self.0.metadata.get(key)?.to_vec().ok()?.iter().map(number).collect()
    }

    /// Tokens of a prompt and its reply together, at most.
    pub fn context(&self) -> usize {
        let declared = self.number("llama.context_length").filter(|length| *length >= 1.0);
        declared.map_or(LONGEST, |length| LONGEST.min(length as usize))
    }
}

fn number(value: &Value) -> Option<f64> {
    Some(match value {
        Value::U8(x) => f64::from(*x),
        Value::I8(x) => f64::from(*x),
        Value::U16(x) => f64::from(*x),
        Value::I16(x) => f64::from(*x),
        Value::U32(x) => f64::from(*x),
        Value::I32(x) => f64::from(*x),
        Value::U64(x) => *x as f64,
        Value::I64(x) => *x as f64,
        Value::F32(x) => f64::from(*x),
        Value::F64(x) => *x,
        Value::Bool(_) | Value::String(_) | Value::Array(_) => return None,
    })
}

/// Errors of candle may bring a backtrace along.
pub(super) fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
