//! A tiny random model of the llama architecture: written as a GGUF file, and computed independently in plain loops, without candle or a
//! key-value cache, in double precision.

#![allow(dead_code, clippy::unwrap_used)]

use polity_kernel::rng::{Draws, Stream};
use std::path::Path;

/// Sizes of the model.
const WIDTH: usize = 32;
const HEADS: usize = 4;
const SHARED_HEADS: usize = 2;
const HEAD: usize = WIDTH / HEADS;
const WIDE: usize = 64;
const LAYERS: usize = 2;
const EPSILON: f64 = 1e-5;
/// Tokens of a prompt and its reply.
pub const CONTEXT: u32 = 1024;
/// Ids of special tokens.
pub const BEGIN: u32 = 1;
pub const END: u32 = 2;

/// Numbers that share a scale in eight bits (`Q8_0`).
const BLOCK: usize = 32;

/// A matrix by rows, and its name in the file.
struct Matrix {
    name: String,
    rows: usize,
    columns: usize,
    data: Vec<f32>,
}

/// A model with these words (and all their prefixes) as tokens, besides single bytes.
pub struct Tiny {
    pub tokens: Vec<String>,
    scores: Vec<f32>,
    kinds: Vec<i32>,
    matrices: Vec<Matrix>,
    /// Jinja, if it has a template.
    pub template: Option<String>,
    /// Whether matrices are stored in eight bits.
    rounded: bool,
}

impl Tiny {
    pub fn new(words: &[&str], seed: u64) -> Self {
        let mut tokens: Vec<(String, f32, i32)> =
            vec![("<unk>".into(), 0.0, 2), ("<s>".into(), 0.0, 3), ("</s>".into(), 0.0, 3)];
        tokens.extend((0..=255u8).map(|byte| (format!("<0x{byte:02X}>"), 0.0, 6)));
        for word in words {
            let word = format!("\u{2581}{}", word.replace(' ', "\u{2581}"));
            for (at, letter) in word.char_indices() {
                let begin = &word[..at + letter.len_utf8()];
                // Each prefix is a shorter one plus a character, which must exist, too.
                for piece in [letter.to_string(), begin.to_string()] {
                    if tokens.iter().all(|(other, ..)| *other != piece) {
                        tokens.push((piece, -(tokens.len() as f32), 1));
                    }
                }
            }
        }
        let mut draws = Draws::new(seed, Stream::World, 0, 0);
        let mut matrix = |name: String, rows: usize, columns: usize, scale: f64| {
            let data = (0..rows * columns).map(|_| (draws.normal() * scale) as f32).collect();
            Matrix { name, rows, columns, data }
        };
        let mut matrices = vec![
            matrix("token_embd.weight".into(), tokens.len(), WIDTH, 1.0),
            matrix("output_norm.weight".into(), 1, WIDTH, 1.0),
            matrix("output.weight".into(), tokens.len(), WIDTH, 0.4),
        ];
        let shared = SHARED_HEADS * HEAD;
        for layer in 0..LAYERS {
            for (name, rows, columns, scale) in [
                ("attn_norm", 1, WIDTH, 1.0),
                ("attn_q", WIDTH, WIDTH, 0.3),
                ("attn_k", shared, WIDTH, 0.3),
                ("attn_v", shared, WIDTH, 0.3),
                ("attn_output", WIDTH, WIDTH, 0.3),
                ("ffn_norm", 1, WIDTH, 1.0),
                ("ffn_gate", WIDE, WIDTH, 0.3),
                ("ffn_up", WIDE, WIDTH, 0.3),
                ("ffn_down", WIDTH, WIDE, 0.3),
            ] {
                matrices.push(matrix(format!("blk.{layer}.{name}.weight"), rows, columns, scale));
            }
        }
        let (mut texts, mut scores, mut kinds) = (Vec::new(), Vec::new(), Vec::new());
        for (text, score, kind) in tokens {
            texts.push(text);
            scores.push(score);
            kinds.push(kind);
        }
        Tiny { tokens: texts, scores, kinds, matrices, template: None, rounded: false }
    }

    /// The same with matrices of eight bits, and rounded to them.
    pub fn rounded(mut self) -> Self {
        for block in self.matrices.iter_mut().filter(|m| m.rows > 1).flat_map(|m| m.data.chunks_mut(BLOCK)) {
            let scale = scale(block);
            block.iter_mut().for_each(|x| *x = (*x / scale).round() * scale);
        }
        Tiny { rounded: true, ..self }
    }

    /// Writes it in version 3 of the format (ggml, `docs/gguf.md`).
    pub fn write(&self, path: &Path, architecture: &str, with_vocabulary: bool) {
        let mut out = File::default();
        let mut facts = File::default();
        let mut count = 0u64;
        let mut fact = |key: &str, kind: u32, value: &dyn Fn(&mut File)| {
            facts.text(key);
            facts.u32(kind);
            value(&mut facts);
            count += 1;
        };
        fact("general.architecture", 8, &|file| file.text(architecture));
        for (key, value) in [
            ("context_length", CONTEXT),
            ("embedding_length", WIDTH as u32),
            ("block_count", LAYERS as u32),
            ("feed_forward_length", WIDE as u32),
            ("rope.dimension_count", HEAD as u32),
            ("attention.head_count", HEADS as u32),
            ("attention.head_count_kv", SHARED_HEADS as u32),
        ] {
            fact(&format!("llama.{key}"), 4, &|file| file.u32(value));
        }
        fact("llama.attention.layer_norm_rms_epsilon", 6, &|file| file.f32(EPSILON as f32));
        if with_vocabulary {
            fact("tokenizer.ggml.model", 8, &|file| file.text("llama"));
            fact("tokenizer.ggml.tokens", 9, &|file| file.list(8, &self.tokens, |file, token| file.text(token)));
            fact("tokenizer.ggml.scores", 9, &|file| file.list(6, &self.scores, |file, score| file.f32(*score)));
            fact("tokenizer.ggml.token_type", 9, &|file| {
                file.list(5, &self.kinds, |file, kind| file.u32(*kind as u32))
            });
            fact("tokenizer.ggml.bos_token_id", 4, &|file| file.u32(BEGIN));
            fact("tokenizer.ggml.eos_token_id", 4, &|file| file.u32(END));
            fact("tokenizer.ggml.unknown_token_id", 4, &|file| file.u32(0));
        }
        if let Some(template) = &self.template {
            fact("tokenizer.chat_template", 8, &|file| file.text(template));
        }
        out.0.extend(b"GGUF");
        out.u32(3);
        out.u64(self.matrices.len() as u64);
        out.u64(count);
        out.0.extend(facts.0);
        let mut at = 0u64;
        for matrix in &self.matrices {
            out.text(&matrix.name);
            // A vector has one size; a matrix lists its columns first.
            let sizes: &[usize] = if matrix.rows == 1 { &[matrix.columns] } else { &[matrix.columns, matrix.rows] };
            out.u32(sizes.len() as u32);
            sizes.iter().for_each(|size| out.u64(*size as u64));
            let (kind, bytes) = match self.rounded && matrix.rows > 1 {
                true => (8, matrix.data.len() / BLOCK * (BLOCK + 2)),
                false => (0, matrix.data.len() * 4),
            };
            out.u32(kind);
            out.u64(at);
            at += bytes.next_multiple_of(32) as u64;
        }
        out.pad();
        for matrix in &self.matrices {
            match self.rounded && matrix.rows > 1 {
                true => matrix.data.chunks(BLOCK).for_each(|block| out.eight_bits(block)),
                false => matrix.data.iter().for_each(|x| out.f32(*x)),
            }
            out.pad();
        }
        std::fs::write(path, out.0).unwrap();
    }

    /// The tokens of a text: repeatedly merges the best pair of neighbours.
    pub fn tokenized(&self, text: &str) -> Vec<u32> {
        let text = format!("\u{2581}{}", text.replace(' ', "\u{2581}"));
        let mut pieces: Vec<String> = text.chars().map(String::from).collect();
        let id = |piece: &str| self.tokens.iter().position(|token| token == piece);
        loop {
            let mut best: Option<(f32, usize)> = None;
            for i in 0..pieces.len().saturating_sub(1) {
                if let Some(id) = id(&format!("{}{}", pieces[i], pieces[i + 1]))
                    && best.is_none_or(|(score, _)| self.scores[id] > score)
                {
                    best = Some((self.scores[id], i));
                }
            }
            let Some((_, i)) = best else { break };
            let right = pieces.remove(i + 1);
            pieces[i].push_str(&right);
        }
        let tokens = pieces.iter().flat_map(|piece| match id(piece) {
            Some(id) => vec![id as u32],
            None => piece.bytes().map(|byte| 3 + u32::from(byte)).collect(),
        });
        tokens.collect()
    }

    /// The logits of the token after these.
    pub fn logits(&self, tokens: &[u32]) -> Vec<f64> {
        let of = |name: &str| self.matrices.iter().find(|matrix| matrix.name == format!("{name}.weight")).unwrap();
        let mut hidden: Vec<Vec<f64>> = tokens.iter().map(|token| of("token_embd").row(*token as usize)).collect();
        for layer in 0..LAYERS {
            let of = |name: &str| of(&format!("blk.{layer}.{name}"));
            let normed: Vec<Vec<f64>> = hidden.iter().map(|x| norm(x, of("attn_norm"))).collect();
            let rotated = |name: &str, normed: &[Vec<f64>]| -> Vec<Vec<f64>> {
                normed.iter().enumerate().map(|(at, x)| rotate(of(name).times(x), at)).collect()
            };
            let (q, k) = (rotated("attn_q", &normed), rotated("attn_k", &normed));
            let v: Vec<Vec<f64>> = normed.iter().map(|x| of("attn_v").times(x)).collect();
            for at in 0..tokens.len() {
                let mut seen = vec![0.0; WIDTH];
                for head in 0..HEADS {
                    let shared = head / (HEADS / SHARED_HEADS) * HEAD;
                    let own = head * HEAD;
                    let score = |other: usize| {
                        let dot: f64 = (0..HEAD).map(|i| q[at][own + i] * k[other][shared + i]).sum();
                        (dot / (HEAD as f64).sqrt()).exp()
                    };
                    let scores: Vec<f64> = (0..=at).map(score).collect();
                    let all: f64 = scores.iter().sum();
                    for i in 0..HEAD {
                        seen[own + i] = (0..=at).map(|other| scores[other] / all * v[other][shared + i]).sum();
                    }
                }
                add(&mut hidden[at], &of("attn_output").times(&seen));
                let normed = norm(&hidden[at], of("ffn_norm"));
                let (gate, up) = (of("ffn_gate").times(&normed), of("ffn_up").times(&normed));
                let wide: Vec<f64> = gate.iter().zip(&up).map(|(g, u)| g / (1.0 + (-g).exp()) * u).collect();
                add(&mut hidden[at], &of("ffn_down").times(&wide));
            }
        }
        of("output").times(&norm(hidden.last().unwrap(), of("output_norm")))
    }

    /// The likeliest reply to a prompt, within a token limit; and whether it ended.
    pub fn greedy(&self, prompt: &[u32], longest: usize) -> (Vec<u32>, bool) {
        let mut tokens = prompt.to_vec();
        for _ in 0..longest {
            let logits = self.logits(&tokens);
            let best = (0..logits.len()).max_by(|a, b| logits[*a].total_cmp(&logits[*b])).unwrap() as u32;
            if best == END {
                return (tokens[prompt.len()..].to_vec(), true);
            }
            tokens.push(best);
        }
        (tokens[prompt.len()..].to_vec(), false)
    }

    /// The log-probability that this is the reply.
    pub fn weight(&self, prompt: &[u32], option: &str) -> f64 {
        let mut tokens = prompt.to_vec();
        let mut sum = 0.0;
        for token in self.tokenized(option).into_iter().chain([END]) {
            let logits = self.logits(&tokens);
            sum += logits[token as usize] - logits.iter().map(|x| x.exp()).sum::<f64>().ln();
            tokens.push(token);
        }
        sum
    }

    /// The text of tokens, without the leading space of every text. Each run of invalid bytes becomes one sign per byte.
    pub fn text(&self, tokens: &[u32]) -> String {
        let tokens: Vec<u32> = tokens.iter().copied().filter(|id| *id > END).collect();
        let mut text = String::new();
        for run in tokens.chunk_by(|a, b| (3..259).contains(a) && (3..259).contains(b)) {
            match run[0] {
                ..259 => {
                    let bytes: Vec<u8> = run.iter().map(|id| (id - 3) as u8).collect();
                    text += &String::from_utf8(bytes).unwrap_or("\u{FFFD}".repeat(run.len()));
                }
                id => text += &self.tokens[id as usize].replace('\u{2581}', " "),
            }
        }
        text.strip_prefix(' ').map(str::to_owned).unwrap_or(text)
    }
}

impl Matrix {
    fn row(&self, i: usize) -> Vec<f64> {
        self.data[i * self.columns..(i + 1) * self.columns].iter().map(|x| f64::from(*x)).collect()
    }

    fn times(&self, x: &[f64]) -> Vec<f64> {
        (0..self.rows).map(|i| self.row(i).iter().zip(x).map(|(a, b)| a * b).sum()).collect()
    }
}

fn norm(x: &[f64], weight: &Matrix) -> Vec<f64> {
    let mean = x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64;
    x.iter().zip(weight.row(0)).map(|(x, w)| x / (mean + EPSILON).sqrt() * w).collect()
}

/// A power of two that scales a block's numbers to eight-bit integers.
fn scale(block: &[f32]) -> f32 {
    let most = block.iter().fold(0.0f32, |most, x| most.max(x.abs()));
    (most / 127.0).log2().ceil().exp2()
}

/// Rotary positions of neighbouring pairs, in every head.
fn rotate(mut x: Vec<f64>, at: usize) -> Vec<f64> {
    for head in x.chunks_mut(HEAD) {
        for (i, pair) in head.chunks_mut(2).enumerate() {
            let angle = at as f64 / 10_000f64.powf(2.0 * i as f64 / HEAD as f64);
            let (a, b) = (pair[0], pair[1]);
            pair[0] = a * angle.cos() - b * angle.sin();
            pair[1] = a * angle.sin() + b * angle.cos();
        }
    }
    x
}

fn add(to: &mut [f64], what: &[f64]) {
    to.iter_mut().zip(what).for_each(|(a, b)| *a += b);
}

/// Bytes of a file.
#[derive(Default)]
struct File(Vec<u8>);

impl File {
    fn u32(&mut self, x: u32) {
        self.0.extend(x.to_le_bytes());
    }

    fn u64(&mut self, x: u64) {
        self.0.extend(x.to_le_bytes());
    }

    fn f32(&mut self, x: f32) {
        self.0.extend(x.to_le_bytes());
    }

    /// A scale in sixteen bits, and whole numbers.
    fn eight_bits(&mut self, block: &[f32]) {
        let scale = scale(block);
        self.0.extend((((scale.log2() as i32 + 15) as u16) << 10).to_le_bytes());
        self.0.extend(block.iter().map(|x| (*x / scale).round() as i8 as u8));
    }

    fn text(&mut self, text: &str) {
        self.u64(text.len() as u64);
        self.0.extend(text.as_bytes());
    }

    fn list<T>(&mut self, kind: u32, items: &[T], put: fn(&mut File, &T)) {
        self.u32(kind);
        self.u64(items.len() as u64);
        items.iter().for_each(|item| put(self, item));
    }

    fn pad(&mut self) {
        self.0.resize(self.0.len().next_multiple_of(32), 0);
    }
}
