//! A tiny random BERT embedding model: written as a sentence-transformers folder, and computed independently in plain loops, without
//! candle, in double precision.

#![allow(clippy::unwrap_used)]

use polity_kernel::rng::{Draws, Stream};
use serde_json::{Value as Json, json};
use std::path::Path;

/// Sizes of the model.
pub const WIDTH: usize = 32;
const HEADS: usize = 4;
const HEAD: usize = WIDTH / HEADS;
const WIDE: usize = 64;
const LAYERS: usize = 2;
const EPSILON: f64 = 1e-12;
/// Maximum tokens of a text, by its positions.
pub const POSITIONS: usize = 24;

/// All tokens, by id.
const TOKENS: [&str; 32] = [
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "a", "red", "house", "car", "dog", "##s", "run", "##ning",
    "walk", "##ed", "in", "on", ",", ".", "!", "?", "u", "##n", "##i", "1", "##2", "##3", "good", "bad", "city",
    "##es",
];

/// A matrix by rows, and its name in the file. A vector has one row.
struct Matrix {
    name: String,
    rows: usize,
    columns: usize,
    data: Vec<f32>,
}

/// A model.
pub struct Bert {
    matrices: Vec<Matrix>,
    /// Whether matrices are stored in sixteen bits.
    rounded: bool,
}

impl Bert {
    pub fn new(seed: u64) -> Self {
        let mut draws = Draws::new(seed, Stream::World, 0, 0);
        let mut matrices = Vec::new();
        let mut matrix = |name: String, rows: usize, columns: usize, mean: f64, scale: f64| {
            let data = (0..rows * columns).map(|_| (mean + draws.normal() * scale) as f32).collect();
            matrices.push(Matrix { name, rows, columns, data });
        };
        for (name, rows) in [("word", TOKENS.len()), ("position", POSITIONS), ("token_type", 2)] {
            matrix(format!("embeddings.{name}_embeddings.weight"), rows, WIDTH, 0.0, 1.0);
        }
        matrix("embeddings.LayerNorm.weight".into(), 1, WIDTH, 1.0, 0.5);
        matrix("embeddings.LayerNorm.bias".into(), 1, WIDTH, 0.0, 0.5);
        for layer in 0..LAYERS {
            for (name, rows, columns) in [
                ("attention.self.query", WIDTH, WIDTH),
                ("attention.self.key", WIDTH, WIDTH),
                ("attention.self.value", WIDTH, WIDTH),
                ("attention.output.dense", WIDTH, WIDTH),
                ("intermediate.dense", WIDE, WIDTH),
                ("output.dense", WIDTH, WIDE),
            ] {
                matrix(format!("encoder.layer.{layer}.{name}.weight"), rows, columns, 0.0, 0.3);
                matrix(format!("encoder.layer.{layer}.{name}.bias"), 1, rows, 0.0, 0.3);
            }
            for name in ["attention.output.LayerNorm", "output.LayerNorm"] {
                matrix(format!("encoder.layer.{layer}.{name}.weight"), 1, WIDTH, 1.0, 0.5);
                matrix(format!("encoder.layer.{layer}.{name}.bias"), 1, WIDTH, 0.0, 0.5);
            }
        }
        Bert { matrices, rounded: false }
    }

    /// The same with matrices of sixteen bits (`BF16`), and rounded to them.
    pub fn rounded(mut self) -> Self {
        let short = |x: &mut f32| *x = f32::from_bits(x.to_bits() & 0xFFFF_0000);
        self.matrices.iter_mut().flat_map(|matrix| &mut matrix.data).for_each(short);
        Bert { rounded: true, ..self }
    }

    /// Writes the required files of a folder.
    pub fn write(&self, folder: &Path) {
        std::fs::create_dir_all(folder).unwrap();
        put(folder, "config.json", &config());
        put(folder, "tokenizer.json", &tokenizer());
        let (mut head, mut data) = (serde_json::Map::new(), Vec::new());
        for matrix in &self.matrices {
            let begin = data.len();
            let kept = if self.rounded { 2.. } else { 0.. };
            data.extend(matrix.data.iter().flat_map(|x| x.to_le_bytes()[kept.clone()].to_vec()));
            let shape = if matrix.rows == 1 { vec![matrix.columns] } else { vec![matrix.rows, matrix.columns] };
            let entry = json!({"dtype": if self.rounded { "BF16" } else { "F32" }, "shape": shape, "data_offsets": [begin, data.len()]});
            head.insert(matrix.name.clone(), entry);
        }
        let head = Json::from(head).to_string();
        let bytes = [&(head.len() as u64).to_le_bytes(), head.as_bytes(), &data].concat();
        std::fs::write(folder.join("model.safetensors"), bytes).unwrap();
    }

    /// The vectors of these tokens, after the last layer.
    pub fn vectors(&self, tokens: &[&str]) -> Vec<Vec<f64>> {
        let embedded = |(at, token): (usize, &&str)| {
            let id = TOKENS.iter().position(|known| known == token).unwrap();
            let mut x = self.of("embeddings.word_embeddings.weight").row(id);
            add(&mut x, &self.of("embeddings.position_embeddings.weight").row(at));
            add(&mut x, &self.of("embeddings.token_type_embeddings.weight").row(0));
            self.norm("embeddings.LayerNorm", &x)
        };
        let mut hidden: Vec<Vec<f64>> = tokens.iter().enumerate().map(embedded).collect();
        for layer in 0..LAYERS {
            let name = |name: &str| format!("encoder.layer.{layer}.{name}");
            let all = |part: &str| -> Vec<Vec<f64>> {
                hidden.iter().map(|x| self.times(&name(&format!("attention.self.{part}")), x)).collect()
            };
            let (q, k, v) = (all("query"), all("key"), all("value"));
            for at in 0..tokens.len() {
                let mut seen = vec![0.0; WIDTH];
                for own in (0..WIDTH).step_by(HEAD) {
                    let score = |k: &Vec<f64>| {
                        let dot: f64 = (own..own + HEAD).map(|i| q[at][i] * k[i]).sum();
                        (dot / (HEAD as f64).sqrt()).exp()
                    };
                    let scores: Vec<f64> = k.iter().map(score).collect();
                    let sum: f64 = scores.iter().sum();
                    for i in own..own + HEAD {
                        seen[i] = scores.iter().zip(&v).map(|(score, v)| score / sum * v[i]).sum();
                    }
                }
                let mut x = self.times(&name("attention.output.dense"), &seen);
                add(&mut x, &hidden[at]);
                let attended = self.norm(&name("attention.output.LayerNorm"), &x);
                let wide: Vec<f64> = self.times(&name("intermediate.dense"), &attended).into_iter().map(gelu).collect();
                let mut x = self.times(&name("output.dense"), &wide);
                add(&mut x, &attended);
                hidden[at] = self.norm(&name("output.LayerNorm"), &x);
            }
        }
        hidden
    }

    fn of(&self, name: &str) -> &Matrix {
        self.matrices.iter().find(|matrix| matrix.name == name).unwrap()
    }

    fn times(&self, name: &str, x: &[f64]) -> Vec<f64> {
        let matrix = self.of(&format!("{name}.weight"));
        let bias = self.of(&format!("{name}.bias")).row(0);
        (0..matrix.rows).map(|i| matrix.row(i).iter().zip(x).map(|(a, b)| a * b).sum::<f64>() + bias[i]).collect()
    }

    fn norm(&self, name: &str, x: &[f64]) -> Vec<f64> {
        let (weight, bias) = (self.of(&format!("{name}.weight")).row(0), self.of(&format!("{name}.bias")).row(0));
        let mean = x.iter().sum::<f64>() / x.len() as f64;
        let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / x.len() as f64;
        let scaled = x.iter().map(|x| (x - mean) / (variance + EPSILON).sqrt());
        scaled.zip(weight.iter().zip(bias)).map(|(x, (w, b))| x * w + b).collect()
    }
}

impl Matrix {
    fn row(&self, i: usize) -> Vec<f64> {
        self.data[i * self.columns..(i + 1) * self.columns].iter().map(|x| f64::from(*x)).collect()
    }
}

/// The mean of vectors.
pub fn mean(vectors: &[Vec<f64>]) -> Vec<f64> {
    let mut sum = vec![0.0; WIDTH];
    vectors.iter().for_each(|vector| add(&mut sum, vector));
    sum.into_iter().map(|x| x / vectors.len() as f64).collect()
}

/// A vector of length 1 in the same direction.
pub fn normalized(vector: &[f64]) -> Vec<f64> {
    let length = vector.iter().map(|x| x * x).sum::<f64>().sqrt();
    vector.iter().map(|x| x / length).collect()
}

/// Writes a file of a folder.
pub fn put(folder: &Path, name: &str, told: &Json) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, told.to_string()).unwrap();
}

/// As written by transformers.
pub fn config() -> Json {
    json!({
        "architectures": ["BertModel"], "model_type": "bert", "hidden_act": "gelu", "position_embedding_type": "absolute",
        "vocab_size": TOKENS.len(), "hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
        "intermediate_size": WIDE, "max_position_embeddings": POSITIONS, "type_vocab_size": 2, "layer_norm_eps": EPSILON,
        "pad_token_id": 0,
    })
}

/// The modules of a folder: what comes after the model.
pub fn modules(more: &[&str]) -> Json {
    let module = |(i, name): (usize, &&str)| {
        let path = if i == 0 { String::new() } else { format!("{i}_{name}") };
        json!({"idx": i, "name": i.to_string(), "path": path, "type": format!("sentence_transformers.models.{name}")})
    };
    ["Transformer", "Pooling"].iter().chain(more).enumerate().map(module).collect()
}

/// Like the published ones, with a length and a padding that must be ignored.
pub fn tokenizer() -> Json {
    let mark = |id: usize| {
        json!({
            "id": id, "content": TOKENS[id], "special": true, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
        })
    };
    let ids: serde_json::Map<String, Json> = TOKENS.iter().zip(0..).map(|(t, id)| ((*t).into(), id.into())).collect();
    let special = |name: &str, id: usize| json!({"id": name, "ids": [id], "tokens": [name]});
    let put = |name: &str| json!({"SpecialToken": {"id": name, "type_id": 0}});
    let text = |of: &str, kind: u8| json!({"Sequence": {"id": of, "type_id": kind}});
    json!({
        "version": "1.0",
        "truncation": {"max_length": 5, "strategy": "LongestFirst", "stride": 0, "direction": "Right"},
        "padding": {
            "strategy": {"Fixed": 9}, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]",
        },
        "added_tokens": (0..5).map(mark).collect::<Vec<_>>(),
        "normalizer": {
            "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [put("[CLS]"), text("A", 0), put("[SEP]")],
            "pair": [put("[CLS]"), text("A", 0), put("[SEP]"), text("B", 1), put("[SEP]")],
            "special_tokens": {"[CLS]": special("[CLS]", 2), "[SEP]": special("[SEP]", 3)},
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
        "model": {
            "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": ids,
        },
    })
}

fn gelu(x: f64) -> f64 {
    0.5 * x * (1.0 + libm::erf(x / std::f64::consts::SQRT_2))
}

fn add(to: &mut [f64], what: &[f64]) {
    to.iter_mut().zip(what).for_each(|(a, b)| *a += b);
}
