//! Embedding models from folders in the sentence-transformers format: a BERT, and how its token vectors are pooled into one.

use super::header::first_line;
use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::bert::{BertModel, Config, HiddenAct};
use serde_json::Value as Json;
use std::io::ErrorKind;
use std::path::Path;
use tokenizers::normalizers::{Lowercase, NormalizerWrapper, Sequence};
use tokenizers::{PostProcessor, Tokenizer, TruncationParams};

const CONFIG: &str = "config.json";
const TOKENIZER: &str = "tokenizer.json";
const WEIGHTS: &str = "model.safetensors";
/// The modules after the model, in order.
const MODULES: &str = "modules.json";
const POOLING: &str = "1_Pooling/config.json";
/// The maximum length of a text: older folders use the first file, newer ones the second.
const LENGTH: &str = "sentence_bert_config.json";
const TOKENIZER_LENGTH: &str = "tokenizer_config.json";
/// The prefix of each text.
const PROMPTS: &str = "config_sentence_transformers.json";
/// All files that affect an answer. The first three are required.
pub(super) const FILES: [&str; 8] = [CONFIG, TOKENIZER, WEIGHTS, MODULES, POOLING, LENGTH, TOKENIZER_LENGTH, PROMPTS];

/// The only supported kind of model.
const KIND: &str = "bert";
/// Minimum norm for division, as in torch.
const SHORTEST: f64 = 1e-12;

/// A folder's description of its model: everything but the weights.
pub(super) struct Layout {
    config: Config,
    tokenizer: Tokenizer,
    /// Maximum tokens of a text; longer ones are cut.
    pub longest: usize,
    pooling: Pooling,
    /// Whether vectors are normalised to length 1.
    normalized: bool,
}

/// How the token vectors of a text are pooled.
#[derive(Clone, Copy)]
enum Pooling {
    Mean,
    /// The vector of the first token, which represents the whole text.
    First,
}

/// A model in memory. It is immutable: equal texts have equal vectors, whatever else runs at the same time.
pub(super) struct Sentences {
    layout: Layout,
    bert: BertModel,
}

impl Layout {
    /// Reads a folder's description. The error says what is wrong and what to do.
    pub fn open(folder: &Path) -> Result<Self, String> {
        let shown = folder.display();
        for name in [CONFIG, TOKENIZER, WEIGHTS] {
            if !folder.join(name).is_file() {
                return Err(format!(
                    "{shown} has no {name}: a folder must hold an embedding model, with {CONFIG}, {TOKENIZER} and \
                     {WEIGHTS}, as sentence-transformers saves it (`model.save(folder)`). A language model is a GGUF \
                     file: name the file itself"
                ));
            }
        }
        let told = json(folder, CONFIG)?;
        if told["model_type"] != KIND {
            return Err(format!(
                "{shown} is a model of the type `{}`, but only `{KIND}` is supported here (all-MiniLM-L6-v2, \
                 bge-small-en-v1.5). A server may support it: `openai/...` with OPENAI_BASE_URL",
                told["model_type"].as_str().unwrap_or("unknown")
            ));
        }
        let wrong = |name: &'static str| move |why: String| format!("{}: {why}", folder.join(name).display());
        let config = config(&told).map_err(wrong(CONFIG))?;
        let normalized = normalized(&json(folder, MODULES)?).map_err(wrong(MODULES))?;
        let pooling = Pooling::of(&json(folder, POOLING)?).map_err(wrong(POOLING))?;
        let prompts = json(folder, PROMPTS)?;
        if let Some(name) = prompts["default_prompt_name"].as_str() {
            let why = format!(
                "it puts its prompt `{name}` before every text, which is not supported here: set `default_prompt_name` \
                 to null, and write the prompt into the texts"
            );
            return Err(wrong(PROMPTS)(why));
        }
        let length = json(folder, LENGTH)?;
        let most = config.max_position_embeddings;
        let told = size(&json(folder, TOKENIZER_LENGTH)?, "model_max_length", most).map_err(wrong(TOKENIZER_LENGTH))?;
        let longest = size(&length, "max_seq_length", told).map_err(wrong(LENGTH))?.min(most);
        let lowered = length["do_lower_case"] == true;
        if let Some(mark) = unknown_mark(&json(folder, TOKENIZER)?) {
            return Err(wrong(TOKENIZER)(format!(
                "it is damaged: it puts {mark} around a text, but does not define it"
            )));
        }
        let tokenizer = tokenizer(&folder.join(TOKENIZER), longest, config.vocab_size, lowered);
        let tokenizer = tokenizer.map_err(wrong(TOKENIZER))?;
        Ok(Layout { config, tokenizer, longest, pooling, normalized })
    }

    /// The tokens of a text and their types. Special tokens in it are parsed as such.
    fn tokens(&self, text: &str) -> Result<(Vec<u32>, Vec<u32>), String> {
        let encoding = self.tokenizer.encode_fast(text, true).map_err(|why| why.to_string())?;
        Ok((encoding.get_ids().to_vec(), encoding.get_type_ids().to_vec()))
    }
}

impl Sentences {
    /// Reads a folder.
    pub fn read(folder: &Path) -> Result<Self, String> {
        let layout = Layout::open(folder)?;
        let path = folder.join(WEIGHTS);
        let shown = path.display();
        let bytes = std::fs::read(&path).map_err(|error| format!("{shown} cannot be read: {error}"))?;
        let load =
            || BertModel::load(VarBuilder::from_buffered_safetensors(bytes, DType::F32, &Device::Cpu)?, &layout.config);
        let bert = load().map_err(|error| {
            let why = error.to_string();
            format!(
                "{shown} is damaged, or does not match its {CONFIG}: {}. Download the folder again",
                first_line(&why)
            )
        })?;
        Ok(Sentences { layout, bert })
    }

    /// The vector of a text, and the number of tokens read.
    pub fn vector(&self, text: &str) -> Result<(Vec<f32>, usize), String> {
        let (tokens, types) = self.layout.tokens(text)?;
        if tokens.is_empty() {
            return Err("the text has no tokens, so it has no vector".into());
        }
        let forward = || {
            let row = |ids: &[u32]| Tensor::new(ids, &Device::Cpu)?.unsqueeze(0);
            self.bert.forward(&row(&tokens)?, &row(&types)?, None)?.squeeze(0)?.to_vec2::<f32>()
        };
        let last = forward().map_err(|error| first_line(&error.to_string()).to_owned())?;
        let mut vector = self.layout.pooling.pooled(&last);
        if self.layout.normalized {
            let length = vector.iter().map(|x| x * x).sum::<f64>().sqrt().max(SHORTEST);
            vector.iter_mut().for_each(|x| *x /= length);
        }
        Ok((vector.into_iter().map(|x| x as f32).collect(), tokens.len()))
    }
}

impl Pooling {
    /// As configured in a folder; the mean by default.
    fn of(told: &Json) -> Result<Self, String> {
        let ways: Vec<&str> = match &told["pooling_mode"] {
            // Older folders have one flag per mode.
            Json::Null => {
                let flags = told.as_object().into_iter().flatten().filter(|(_, flag)| **flag == true);
                flags.filter_map(|(key, _)| key.strip_prefix("pooling_mode_")).collect()
            }
            Json::Array(several) => several.iter().filter_map(Json::as_str).collect(),
            one => one.as_str().into_iter().collect(),
        };
        match ways[..] {
            [] | ["mean" | "mean_tokens"] => Ok(Pooling::Mean),
            ["cls" | "cls_token"] => Ok(Pooling::First),
            _ => Err(format!(
                "the vectors of tokens are combined by `{}`, but only `mean_tokens` or `cls_token` alone is supported \
                 here",
                ways.join(", ")
            )),
        }
    }

    /// Pools all token vectors into one.
    fn pooled(self, tokens: &[Vec<f32>]) -> Vec<f64> {
        let counted = match self {
            Pooling::Mean => tokens,
            Pooling::First => tokens.get(..1).unwrap_or_default(),
        };
        let mut sums = vec![0.0; counted.first().map_or(0, Vec::len)];
        for token in counted {
            sums.iter_mut().zip(token).for_each(|(sum, x)| *sum += f64::from(*x));
        }
        sums.iter_mut().for_each(|sum| *sum /= counted.len() as f64);
        sums
    }
}

/// A JSON file of a folder; null if missing.
fn json(folder: &Path, name: &str) -> Result<Json, String> {
    let path = folder.join(name);
    let shown = path.display();
    match std::fs::read(&path) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map_err(|error| format!("{shown} is not JSON, or is damaged: {error}. Download the folder again")),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Json::Null),
        Err(error) => Err(format!("{shown} cannot be read: {error}")),
    }
}

/// A size, at least 1.
fn size(told: &Json, key: &str, default: usize) -> Result<usize, String> {
    match &told[key] {
        Json::Null => Ok(default),
        // As a float: unlimited sizes are given as numbers of thirty digits.
        size => match size.as_f64() {
            Some(size) if size >= 1.0 && size.fract() == 0.0 => Ok(size.min(f64::from(u32::MAX)) as usize),
            _ => Err(format!("{key} must be a whole number of at least 1, but is {size}")),
        },
    }
}

/// The sizes of a BERT. Missing values default to the original BERT, as in transformers.
fn config(told: &Json) -> Result<Config, String> {
    let usual = Config::default();
    let size = |key: &str, default: usize| size(told, key, default);
    let hidden_act = match told["hidden_act"].as_str() {
        None | Some("gelu") => HiddenAct::Gelu,
        Some("gelu_new" | "gelu_pytorch_tanh") => HiddenAct::GeluApproximate,
        Some("relu") => HiddenAct::Relu,
        Some(other) => {
            return Err(format!("hidden_act is `{other}`, but only gelu, gelu_new and relu are supported here"));
        }
    };
    if let Some(other) = told["position_embedding_type"].as_str().filter(|kind| *kind != "absolute") {
        return Err(format!("position_embedding_type is `{other}`, but only `absolute` is supported here"));
    }
    if told["is_decoder"] == true {
        return Err("is_decoder is true, but only models whose tokens see the whole text are supported here".into());
    }
    let config = Config {
        vocab_size: size("vocab_size", usual.vocab_size)?,
        hidden_size: size("hidden_size", usual.hidden_size)?,
        num_hidden_layers: size("num_hidden_layers", usual.num_hidden_layers)?,
        num_attention_heads: size("num_attention_heads", usual.num_attention_heads)?,
        intermediate_size: size("intermediate_size", usual.intermediate_size)?,
        hidden_act,
        max_position_embeddings: size("max_position_embeddings", usual.max_position_embeddings)?,
        type_vocab_size: size("type_vocab_size", usual.type_vocab_size)?,
        layer_norm_eps: told["layer_norm_eps"].as_f64().unwrap_or(usual.layer_norm_eps),
        ..usual
    };
    let (width, heads) = (config.hidden_size, config.num_attention_heads);
    if !width.is_multiple_of(heads) {
        return Err(format!("hidden_size is {width}, but must be a multiple of num_attention_heads ({heads})"));
    }
    Ok(config)
}

/// Whether vectors are normalised to length 1, by the modules after the model.
fn normalized(modules: &Json) -> Result<bool, String> {
    let module = |module: &Json| {
        let text = |key: &str| module[key].as_str().unwrap_or_default().to_owned();
        let kind = text("type");
        (kind.rsplit('.').next().unwrap_or_default().to_owned(), text("path"))
    };
    let all: Vec<(String, String)> = modules.as_array().into_iter().flatten().map(module).collect();
    let names: Vec<(&str, &str)> = all.iter().map(|(kind, path)| (kind.as_str(), path.as_str())).collect();
    match names[..] {
        [] if modules.is_null() => Ok(false),
        [("Transformer", ""), ("Pooling", "1_Pooling")] => Ok(false),
        [("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", _)] => Ok(true),
        _ => Err(format!(
            "its modules are `{}`, but only Transformer (in the folder itself), Pooling (in 1_Pooling) and optionally \
             Normalize are supported here",
            names.iter().map(|(kind, path)| format!("{kind} {path}").trim().to_owned()).collect::<Vec<_>>().join(", ")
        )),
    }
}

/// A mark that a tokenizer adds to texts but does not know. The library does not check, and would panic.
fn unknown_mark(told: &Json) -> Option<&Json> {
    let whole = &told["post_processor"];
    let all = whole["processors"].as_array().into_iter().flatten().chain([whole]);
    let pieces = all.flat_map(|marks| {
        let pieces = marks["single"].as_array().into_iter().flatten();
        pieces.map(|piece| (piece, &marks["special_tokens"]))
    });
    let known = |piece: &Json, marks: &Json| {
        let is_mark = piece["SpecialToken"]["id"].as_str().is_some_and(|id| marks.get(id).is_some());
        is_mark || piece["Sequence"]["id"] == "A"
    };
    pieces.filter(|(piece, marks)| !known(piece, marks)).map(|(piece, _)| piece).next()
}

/// Splits texts into at most `longest` tokens with ids below `known`; in lower case if `lowered`.
fn tokenizer(path: &Path, longest: usize, known: usize, lowered: bool) -> Result<Tokenizer, String> {
    let mut tokenizer =
        Tokenizer::from_file(path).map_err(|why| format!("it is not a tokenizer, or is damaged: {why}"))?;
    let last = tokenizer.get_vocab(true).into_values().max().unwrap_or(0);
    if last as usize >= known {
        return Err(format!(
            "it has a token {last}, but by {CONFIG} the model knows only 0 to {}: the two files do not match",
            known - 1
        ));
    }
    // The library subtracts one from the other.
    let marks = tokenizer.get_post_processor().map_or(0, |marks| marks.added_tokens(false));
    if marks >= longest {
        return Err(format!(
            "it puts {marks} marks around a text, but max_seq_length allows {longest} tokens including the marks"
        ));
    }
    if lowered {
        let steps = [NormalizerWrapper::from(Lowercase)].into_iter().chain(tokenizer.get_normalizer().cloned());
        tokenizer.with_normalizer(Some(Sequence::new(steps.collect()))).map_err(|why| why.to_string())?;
    }
    // Texts are read one at a time: no padding.
    tokenizer.with_padding(None);
    let cut = TruncationParams { max_length: longest, ..TruncationParams::default() };
    tokenizer.with_truncation(Some(cut)).map_err(|why| why.to_string())?;
    Ok(tokenizer)
}
