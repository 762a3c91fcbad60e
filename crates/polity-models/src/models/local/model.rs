//! A loaded model: reads prompts, weighs options, writes replies. Pure: the same prompt gives the same numbers, whatever else runs at the
//! same time.

use super::chat::Chat;
use super::header::{Metadata, first_line};
use super::vocabulary::Vocabulary;
use crate::models::wire::Turn;
use candle_core::{Device, Tensor};
use candle_transformers::models::quantized_llama::ModelWeights;
use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::{ApproximateTokEnv, TokEnv, TokRxInfo, TokTrie};
use llguidance::{Matcher, ParserFactory};
use polity_kernel::rng::Draws;
use serde_json::Value as Json;
use std::path::Path;
use std::sync::Arc;

/// A model in memory. Sessions share its weights and own only what they have read.
pub(super) struct Model {
    weights: ModelWeights,
    pub vocabulary: Vocabulary,
    chat: Chat,
    /// Maximum tokens of a prompt and its reply together.
    context: usize,
    grammars: ParserFactory,
}

/// How tokens are chosen.
#[derive(Clone, Copy)]
pub(super) struct Sampling {
    /// 0: always the likeliest token.
    pub temperature: f64,
    /// Samples from the likeliest tokens with this total probability.
    pub top_p: f64,
}

/// A reply, as far as it was written.
pub(super) struct Written {
    pub tokens: Vec<u32>,
    /// Whether it ended by itself.
    pub whole: bool,
}

impl Model {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, String> {
        let (metadata, mut file) = Metadata::open(path)?;
        let wrong = |why: String| format!("{} cannot be used: {}", path.display(), first_line(&why));
        let vocabulary = Vocabulary::of(&metadata).map_err(wrong)?;
        let chat = Chat {
            template: metadata.text("tokenizer.chat_template").map(str::to_owned),
            bos: vocabulary.bos.map(|bos| vocabulary.written(bos)).unwrap_or_default(),
            eos: vocabulary.written(vocabulary.eos),
        };
        let context = metadata.context();
        let grammars = grammars(&vocabulary).map_err(wrong)?;
        let weights = ModelWeights::from_gguf(metadata.into_content(), &mut file, &Device::Cpu);
        let weights = weights.map_err(|error| wrong(error.to_string()))?;
        Ok(Model { weights, vocabulary, chat, context, grammars })
    }

    /// The tokens of a conversation.
    pub fn prompt(&self, turns: &[Turn]) -> Result<Vec<u32>, String> {
        let mut tokens = self.vocabulary.tokens(&self.chat.prompt(turns)?)?;
        // A template may already have written it.
        if let Some(bos) = self.vocabulary.bos.filter(|bos| self.vocabulary.begins && tokens.first() != Some(bos)) {
            tokens.insert(0, bos);
        }
        Ok(tokens)
    }

    /// For each option, the natural log-probability that it is the reply to a prompt: the sum over its tokens and the end mark, not
    /// divided by their number. Also returns the number of weighed tokens.
    pub fn weigh(&self, prompt: &[u32], options: &[String]) -> Result<(Vec<f64>, usize), String> {
        let options: Vec<Vec<u32>> =
            options.iter().map(|option| self.vocabulary.tokens(option.trim())).collect::<Result<_, _>>()?;
        self.room(prompt.len() + options.iter().map(Vec::len).max().unwrap_or(0))?;
        let mut session = self.session();
        let after = session.feed(prompt)?;
        let weight = |tokens: &Vec<u32>| {
            let mut session = session.clone();
            let mut after = after.clone();
            let mut sum = 0.0;
            for token in tokens {
                sum += logit(&after, *token) - log_sum(&after);
                after = session.feed(&[*token])?;
            }
            let ends: Vec<f64> = self.vocabulary.ends.iter().map(|end| logit(&after, *end)).collect();
            Ok(sum + log_sum(&ends) - log_sum(&after))
        };
        let weights = options.iter().map(weight).collect::<Result<_, String>>()?;
        Ok((weights, options.iter().map(|tokens| tokens.len() + 1).sum()))
    }

    /// Writes a reply within a token limit, in the form of a JSON Schema if given.
    pub fn write(
        &self,
        prompt: &[u32],
        schema: Option<&Json>,
        longest: usize,
        sampling: Sampling,
        draws: &mut Draws,
    ) -> Result<Written, String> {
        self.room(prompt.len() + 1)?;
        let mut form = schema.map(|schema| self.form(schema)).transpose()?;
        let mut session = self.session();
        let mut after = session.feed(prompt)?;
        let mut tokens = Vec::new();
        let longest = longest.min(self.context.saturating_sub(prompt.len()));
        while tokens.len() < longest {
            if let Some(form) = &mut form {
                let allowed = form.compute_mask_or_eos().map_err(|error| error.to_string())?;
                // Some models have more rows than tokens.
                after.truncate(self.vocabulary.bytes.len());
                for (id, logit) in (0..).zip(&mut after) {
                    if !allowed.is_allowed(id) {
                        *logit = f64::NEG_INFINITY;
                    }
                }
            }
            let Some(token) = pick(&after, sampling, draws) else {
                return Err("no token of the model's vocabulary fits the form of the reply".into());
            };
            if self.vocabulary.ends.contains(&token) {
                return Ok(Written { tokens, whole: true });
            }
            tokens.push(token);
            if let Some(form) = &mut form {
                form.consume_token(token).map_err(|error| error.to_string())?;
                if form.is_stopped() {
                    return Ok(Written { tokens, whole: true });
                }
            }
            if tokens.len() < longest {
                after = session.feed(&[token])?;
            }
        }
        Ok(Written { tokens, whole: false })
    }

    fn form(&self, schema: &Json) -> Result<Matcher, String> {
        let mut schema = schema.clone();
        // One spelling per value: an unsure model could otherwise emit spaces forever.
        schema["x-guidance"] = serde_json::json!({"whitespace_flexible": false});
        let matcher = Matcher::new(self.grammars.create_parser(TopLevelGrammar::from_json_schema(schema)));
        match matcher.get_error() {
            Some(why) => Err(why),
            None => Ok(matcher),
        }
    }

    /// Checks that the context has space for this many tokens.
    fn room(&self, tokens: usize) -> Result<(), String> {
        match tokens <= self.context {
            true => Ok(()),
            false => Err(format!(
                "prompt and reply take {tokens} tokens or more, and the model's context holds {}",
                self.context
            )),
        }
    }

    fn session(&self) -> Session {
        Session { weights: self.weights.clone(), at: 0 }
    }
}

/// The state after reading a text: attention keys and values, which copies share until they read on.
#[derive(Clone)]
struct Session {
    weights: ModelWeights,
    at: usize,
}

impl Session {
    /// Reads on; returns the logits of the next token.
    fn feed(&mut self, tokens: &[u32]) -> Result<Vec<f64>, String> {
        let forward = |weights: &mut ModelWeights| {
            let input = Tensor::new(tokens, &Device::Cpu)?.unsqueeze(0)?;
            weights.forward(&input, self.at)?.flatten_all()?.to_vec1::<f32>()
        };
        let logits = forward(&mut self.weights).map_err(|error| first_line(&error.to_string()).to_owned())?;
        self.at += tokens.len();
        Ok(logits.into_iter().map(f64::from).collect())
    }
}

/// The grammar factory of a vocabulary: which tokens may follow.
fn grammars(vocabulary: &Vocabulary) -> Result<ParserFactory, String> {
    let word = |(id, bytes): (usize, &Vec<u8>)| match bytes.is_empty() {
        // Marks are not text; this byte keeps them apart.
        true => [&[TokTrie::SPECIAL_TOKEN_MARKER], format!("<{id}>").as_bytes()].concat(),
        false => bytes.clone(),
    };
    let words: Vec<Vec<u8>> = vocabulary.bytes.iter().enumerate().map(word).collect();
    let info = TokRxInfo::new(words.len() as u32, vocabulary.eos);
    let environment: TokEnv = Arc::new(ApproximateTokEnv::new(TokTrie::from(&info, &words)));
    let mut factory = ParserFactory::new_simple(&environment).map_err(|error| error.to_string())?;
    factory.quiet();
    Ok(factory)
}

/// The logit of a token, which a damaged model may lack.
fn logit(logits: &[f64], token: u32) -> f64 {
    logits.get(token as usize).copied().unwrap_or(f64::NEG_INFINITY)
}

/// Log-sum-exp.
fn log_sum(logits: &[f64]) -> f64 {
    let most = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    most + libm::log(logits.iter().map(|logit| libm::exp(logit - most)).sum())
}

/// An index into logits (or log-probabilities): the highest (ties go to the first), or a draw. `None` if impossible.
pub(super) fn pick(logits: &[f64], sampling: Sampling, draws: &mut Draws) -> Option<u32> {
    let most = logits.iter().copied().filter(|logit| !logit.is_nan()).fold(f64::NEG_INFINITY, f64::max);
    if most == f64::NEG_INFINITY {
        return None;
    }
    if sampling.temperature <= 0.0 {
        return logits.iter().position(|logit| *logit >= most).map(|i| i as u32);
    }
    let weight = |logit: &f64| match logit.is_nan() {
        true => 0.0,
        false => libm::exp((logit - most) / sampling.temperature),
    };
    let mut weights: Vec<f64> = logits.iter().map(weight).collect();
    if sampling.top_p < 1.0 {
        let all: f64 = weights.iter().sum();
        let mut order: Vec<usize> = (0..weights.len()).collect();
        order.sort_by(|a, b| weights[*b].total_cmp(&weights[*a]).then(a.cmp(b)));
        let mut sum = 0.0;
        for i in order {
            if sum >= sampling.top_p * all {
                weights[i] = 0.0;
            }
            sum += weights[i];
        }
    }
    draws.weighted(&weights).map(|i| i as u32)
}
