//! The metadata of a GGUF file.

use candle_core::quantized::gguf_file::{Content, Value};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// The only supported architecture, used by Llama, Mistral, TinyLlama and SmolLM.
const ARCHITECTURE: &str = "llama";
/// Maximum tokens in candle's rotary tables.
const LONGEST: usize = candle_transformers::models::quantized_llama::MAX_SEQ_LEN;

/// Metadata values by name.
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
    /// Opens a file and reads its metadata. The error says what is wrong with it and what to do.
    pub fn open(path: &Path) -> Result<(Metadata, BufReader<File>), String> {
        let shown = path.display();
        let file = File::open(path).map_err(|error| {
            format!(
                "{shown} cannot be read: {error}. A model inside the process is named `local/`, followed by the path \
                 of a GGUF file or of a folder with a sentence-embedding model"
            )
        })?;
        let mut file = BufReader::new(file);
        let content = Content::read(&mut file).map_err(|error| {
            format!("{shown} is not a GGUF file, or is damaged: {}", first_line(&error.to_string()))
        })?;
        let metadata = Metadata(content);
        match metadata.text("general.architecture") {
            Some(ARCHITECTURE) => match metadata.fault() {
                None => Ok((metadata, file)),
                Some(why) => Err(format!("{shown} is damaged: {why}")),
            },
            other => Err(format!(
                "{shown} is a model of the architecture `{}`, but only `{ARCHITECTURE}` is supported here (Llama, \
                 Mistral, TinyLlama, SmolLM). A server on this machine may support it: `ollama/...`, or `openai/...` \
                 with OPENAI_BASE_URL",
                other.unwrap_or("unknown")
            )),
        }
    }

    /// Checks its sizes: candle trusts them and allocates memory for them.
    fn fault(&self) -> Option<String> {
        let Some(embedding) = self.0.tensor_infos.get("token_embd.weight") else {
            return Some("it has no `token_embd.weight`".into());
        };
        let width = embedding.shape.dims().last().copied().unwrap_or(0) as f64;
        let tensors = self.0.tensor_infos.len() as f64;
        let bounds = [
            ("block_count", 1.0, tensors),
            ("expert_count", 0.0, tensors),
            ("embedding_length", width, width),
            ("attention.head_count", 1.0, width),
            ("attention.head_count_kv", 1.0, width),
            ("rope.dimension_count", 1.0, width),
        ];
        bounds.into_iter().find_map(|(name, least, most)| {
            let size = self.number(&format!("{ARCHITECTURE}.{name}"))?;
            (!(least..=most).contains(&size))
                .then(|| format!("{ARCHITECTURE}.{name} is {size}, but must be {least} to {most}"))
        })
    }

    /// All values, for candle.
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

    /// Maximum tokens of a prompt and its reply together.
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

/// Errors of candle may include a backtrace.
pub(super) fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
