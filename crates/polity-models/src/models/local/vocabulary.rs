//! Tokens by the vocabulary of a GGUF file (ggml, `docs/gguf.md`): SentencePiece (`llama`) and byte-level BPE (`gpt2`), converted to a
//! `tokenizer.json` for Hugging Face's `tokenizers`.

use super::header::Metadata;
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use tokenizers::Tokenizer;

/// Replaces spaces in SentencePiece tokens.
const SPACE: &str = "\u{2581}";
/// Token kinds in `tokenizer.ggml.token_type`.
const NORMAL: u32 = 1;
const USER_DEFINED: u32 = 4;
const BYTE: u32 = 6;

/// The name in files for Llama 3's word splitting.
const LLAMA_BPE: &str = "llama-bpe";
/// Its words, within which tokens are merged.
const LLAMA_3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// The tokens of a model.
pub(super) struct Vocabulary {
    tokenizer: Tokenizer,
    /// The bytes of each token; empty for special tokens.
    pub bytes: Vec<Vec<u8>>,
    /// The begin mark, if any.
    pub bos: Option<u32>,
    /// Whether prompts start with it.
    pub begins: bool,
    /// The mark that ends a reply.
    pub eos: u32,
    /// All marks that end a reply.
    pub ends: BTreeSet<u32>,
}

impl Vocabulary {
    /// Reads the vocabulary of a file. The error says what is missing.
    pub fn of(metadata: &Metadata) -> Result<Self, String> {
        let kind = metadata.text("tokenizer.ggml.model").ok_or("it has no vocabulary (tokenizer.ggml.model)")?;
        let texts = metadata.texts("tokenizer.ggml.tokens").ok_or("it has no vocabulary (tokenizer.ggml.tokens)")?;
        let kinds = metadata.numbers("tokenizer.ggml.token_type").unwrap_or_default();
        let id = |key: &str| metadata.number(key).map(|id| id as u32).filter(|id| (*id as usize) < texts.len());
        let flag = |key: &str, default: bool| metadata.flag(key).unwrap_or(default);
        let tokens: Vec<Token<'_>> = (0..)
            .zip(&texts)
            .map(|(id, text)| Token { id, text, kind: kinds.get(id as usize).map_or(NORMAL, |kind| *kind as u32) })
            .collect();
        let unknown = id("tokenizer.ggml.unknown_token_id").and_then(|id| texts.get(id as usize).copied());
        let (layout, letters) = match kind {
            "llama" => {
                let scores = metadata.numbers("tokenizer.ggml.scores").unwrap_or_default();
                if scores.len() != texts.len() {
                    return Err(format!("its vocabulary has {} tokens, but {} scores", texts.len(), scores.len()));
                }
                let space_first = flag("tokenizer.ggml.add_space_prefix", true);
                (sentence_piece(&tokens, &scores, unknown, space_first), None)
            }
            "gpt2" => {
                let merges = metadata.texts("tokenizer.ggml.merges").ok_or("its vocabulary has no merges")?;
                (byte_level(&tokens, &merges, metadata.text("tokenizer.ggml.pre"))?, Some(letters()))
            }
            other => {
                return Err(format!(
                    "its vocabulary is of the kind `{other}`, which is not supported here (`llama` and `gpt2` are)"
                ));
            }
        };
        let bytes = |token: &Token<'_>| match (token.kind, &letters) {
            (NORMAL, None) => token.text.replace(SPACE, " ").into_bytes(),
            (NORMAL, Some(letters)) => token.text.chars().filter_map(|letter| letters.get(&letter).copied()).collect(),
            (USER_DEFINED, _) => token.text.as_bytes().to_vec(),
            (BYTE, _) => byte(token.text).into_iter().collect(),
            _ => Vec::new(),
        };
        let tokenizer = Tokenizer::from_bytes(layout.to_string()).map_err(|why| format!("its vocabulary: {why}"))?;
        let eos =
            id("tokenizer.ggml.eos_token_id").ok_or("its vocabulary defines no end-of-text token (eos_token_id)")?;
        // Marks that end a turn; files may not declare them.
        let named = ["<|eot_id|>", "<|im_end|>", "<|end_of_text|>", "<|endoftext|>"];
        let named = named.iter().filter_map(|name| tokenizer.token_to_id(name));
        let ends = named.chain([eos]).chain(id("tokenizer.ggml.eot_token_id")).collect();
        let bos = id("tokenizer.ggml.bos_token_id");
        // Default of llama.cpp (`src/llama-vocab.cpp`).
        let usual = kind == "llama" || metadata.text("tokenizer.ggml.pre") == Some(LLAMA_BPE);
        let begins = flag("tokenizer.ggml.add_bos_token", usual);
        Ok(Vocabulary { bytes: tokens.iter().map(bytes).collect(), tokenizer, bos, begins, eos, ends })
    }

    /// The spelling of a token.
    pub fn written(&self, id: u32) -> String {
        self.tokenizer.id_to_token(id).unwrap_or_default()
    }

    /// The text of a reply, without special tokens.
    pub fn text(&self, tokens: &[u32]) -> Result<String, String> {
        self.tokenizer.decode(tokens, true).map_err(|why| why.to_string())
    }

    /// The tokens of a text. Special tokens in it are parsed as such.
    pub fn tokens(&self, text: &str) -> Result<Vec<u32>, String> {
        let encoding = self.tokenizer.encode_fast(text, false).map_err(|why| why.to_string())?;
        Ok(encoding.get_ids().to_vec())
    }
}

/// A token of a file.
struct Token<'a> {
    id: u32,
    text: &'a str,
    kind: u32,
}

/// The parts shared by both kinds of vocabularies.
fn layout(tokens: &[Token<'_>], model: Json, normalizer: Json, words: Json, decoder: Json) -> Json {
    let marks = tokens.iter().filter(|token| !matches!(token.kind, NORMAL | BYTE)).map(|token| {
        json!({
            "id": token.id, "content": token.text, "special": token.kind != USER_DEFINED,
            "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
        })
    });
    let ids: serde_json::Map<String, Json> =
        tokens.iter().map(|token| (token.text.to_owned(), token.id.into())).collect();
    let mut model = model;
    model["type"] = "BPE".into();
    model["vocab"] = ids.into();
    json!({
        "version": "1.0", "added_tokens": marks.collect::<Vec<_>>(), "model": model,
        "normalizer": normalizer, "pre_tokenizer": words, "decoder": decoder,
    })
}

/// A SentencePiece vocabulary in Hugging Face's form for Llama: neighbours are merged by the score of the result; unknown text becomes
/// bytes.
fn sentence_piece(tokens: &[Token<'_>], scores: &[f64], unknown: Option<&str>, space_first: bool) -> Json {
    let texts: Vec<(&str, f64)> = tokens
        .iter()
        .zip(scores)
        .filter(|(token, _)| token.kind == NORMAL)
        .map(|(t, score)| (t.text, *score))
        .collect();
    let known: BTreeSet<&str> = texts.iter().map(|(text, _)| *text).collect();
    let mut merges: Vec<((&str, &str), f64)> = Vec::new();
    for (whole, score) in texts {
        let pairs = whole.char_indices().skip(1).map(|(at, _)| whole.split_at(at));
        merges.extend(pairs.filter(|(l, r)| known.contains(l) && known.contains(r)).map(|pair| (pair, score)));
    }
    // Stable sort: ties go to the first in the file.
    merges.sort_by(|a, b| b.1.total_cmp(&a.1));
    let merges: Vec<(&str, &str)> = merges.into_iter().map(|(pair, _)| pair).collect();
    let replace = |from: &str, to: &str| json!({"type": "Replace", "pattern": {"String": from}, "content": to});
    let mut normalizers = vec![replace(" ", SPACE)];
    let mut decoders = vec![replace(SPACE, " "), json!({"type": "ByteFallback"}), json!({"type": "Fuse"})];
    if space_first {
        normalizers.insert(0, json!({"type": "Prepend", "prepend": SPACE}));
        decoders.push(json!({"type": "Strip", "content": " ", "start": 1, "stop": 0}));
    }
    layout(
        tokens,
        json!({"merges": merges, "unk_token": unknown, "fuse_unk": true, "byte_fallback": true}),
        json!({"type": "Sequence", "normalizers": normalizers}),
        Json::Null,
        json!({"type": "Sequence", "decoders": decoders}),
    )
}

/// A byte-level BPE vocabulary: tokens are merged by rank, within words.
fn byte_level(tokens: &[Token<'_>], merges: &[&str], words: Option<&str>) -> Result<Json, String> {
    let by = |use_regex: bool| json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": use_regex});
    let (first, then) = match words {
        Some("gpt-2") => (None, by(true)),
        Some("smollm") => (Some(json!({"type": "Digits", "individual_digits": true})), by(true)),
        Some(LLAMA_BPE) => {
            let split =
                json!({"type": "Split", "pattern": {"Regex": LLAMA_3}, "behavior": "Isolated", "invert": false});
            (Some(split), by(false))
        }
        other => {
            return Err(format!(
                "its vocabulary splits texts into words in a way that is not supported here: tokenizer.ggml.pre is {}, \
                 but only gpt-2, smollm and llama-bpe are supported",
                other.unwrap_or("missing")
            ));
        }
    };
    let cut = json!({"type": "Sequence", "pretokenizers": first.into_iter().chain([then]).collect::<Vec<_>>()});
    // Llama 3 keeps words that are tokens whole, regardless of the merges.
    let model = json!({"merges": merges, "ignore_merges": words == Some(LLAMA_BPE)});
    Ok(layout(tokens, model, Json::Null, cut, by(false)))
}

/// The byte that SentencePiece writes as `<0x0A>`.
fn byte(token: &str) -> Option<u8> {
    u8::from_str_radix(token.strip_prefix("<0x")?.strip_suffix('>')?, 16).ok()
}

/// The characters for bytes in byte-level BPE: printable ones are themselves, the others are mapped to characters from U+0100 on (GPT-2's
/// `bytes_to_unicode`).
fn letters() -> BTreeMap<char, u8> {
    let plain = |byte: &u8| matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    let others = ('\u{100}'..).zip((0..=255u8).filter(|byte| !plain(byte)));
    (0..=255u8).filter(plain).map(|byte| (char::from(byte), byte)).chain(others).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use candle_core::quantized::gguf_file::Value;
    use proptest::prelude::*;
    use std::sync::OnceLock;

    fn texts(all: &[&str]) -> Value {
        Value::Array(all.iter().map(|text| Value::String((*text).into())).collect())
    }

    /// Byte-level BPE of all bytes, with these merges and a mark.
    fn bpe(merges: &[&str], words: &str) -> Vocabulary {
        let letters: Vec<String> = letters().into_keys().map(String::from).collect();
        let whole: Vec<String> = merges.iter().map(|pair| pair.replace(' ', "")).collect();
        let mut tokens: Vec<&str> = letters.iter().chain(&whole).map(String::as_str).collect();
        tokens.push("<|im_end|>");
        let last = tokens.len() - 1;
        let kinds = (0..tokens.len()).map(|i| Value::I32(if i == last { 3 } else { 1 })).collect();
        let metadata = Metadata::from([
            ("tokenizer.ggml.model", Value::String("gpt2".into())),
            ("tokenizer.ggml.pre", Value::String(words.into())),
            ("tokenizer.ggml.tokens", texts(&tokens)),
            ("tokenizer.ggml.merges", texts(merges)),
            ("tokenizer.ggml.token_type", Value::Array(kinds)),
            ("tokenizer.ggml.eos_token_id", Value::U32(last as u32)),
            ("tokenizer.ggml.bos_token_id", Value::U32(last as u32)),
        ]);
        Vocabulary::of(&metadata).unwrap()
    }

    /// Merges learnt from the book, and the tokens by tiktoken 0.14.0, for each kind of word splitting.
    #[test]
    fn tiktoken_cuts_texts_the_same() {
        let peer: Json = serde_json::from_str(include_str!("../../../tests/gguf/tiktoken.json")).unwrap();
        let merges: Vec<&str> = peer["merges"].as_array().unwrap().iter().filter_map(Json::as_str).collect();
        for (words, column) in WORDS.into_iter().zip(1..) {
            let vocabulary = bpe(&merges, words);
            for row in peer["texts"].as_array().unwrap() {
                let text = row[0].as_str().unwrap();
                assert_eq!(serde_json::json!(vocabulary.tokens(text).unwrap()), row[column], "{words}: {text:?}");
            }
        }
    }

    #[test]
    fn byte_level_tokens_are_merged_by_rank_within_words() {
        let pieces = |words: &str, text: &str| -> Vec<String> {
            let vocabulary = bpe(&["l o", "lo w", "\u{120} low", "e r", "1 2", "12 3", "123 4"], words);
            vocabulary.tokens(text).unwrap().iter().map(|id| vocabulary.written(*id)).collect()
        };
        assert_eq!(pieces("gpt-2", "low lower<|im_end|>"), ["low", "\u{120}low", "er", "<|im_end|>"]);
        // Merges do not cross word borders.
        assert_eq!(pieces("gpt-2", "l ow"), ["l", "\u{120}", "o", "w"]);
        assert_eq!(pieces("gpt-2", "1234"), ["1234"]);
        assert_eq!(pieces("smollm", "1234"), ["1", "2", "3", "4"]);
        assert_eq!(pieces("llama-bpe", "1234"), ["123", "4"]);
        let vocabulary = bpe(&[], "gpt-2");
        assert_eq!(vocabulary.ends.into_iter().collect::<Vec<_>>(), [vocabulary.eos]);
        assert_eq!(WORDS.map(|words| bpe(&[], words).begins), [false, false, true]);
    }

    /// A SentencePiece 0.2.3 vocabulary, learnt from the book with Llama's settings, and its own tokenization.
    #[test]
    fn sentence_piece_cuts_texts_the_same() {
        let peer: Json = serde_json::from_str(include_str!("../../../tests/gguf/sentencepiece.json")).unwrap();
        let all =
            |key: &str, of: fn(&Json) -> Value| Value::Array(peer[key].as_array().unwrap().iter().map(of).collect());
        let metadata = Metadata::from([
            ("tokenizer.ggml.model", Value::String("llama".into())),
            ("tokenizer.ggml.tokens", all("tokens", |token| Value::String(token.as_str().unwrap().into()))),
            ("tokenizer.ggml.scores", all("scores", |score| Value::F32(score.as_f64().unwrap() as f32))),
            ("tokenizer.ggml.token_type", all("kinds", |kind| Value::I32(kind.as_i64().unwrap() as i32))),
            ("tokenizer.ggml.eos_token_id", Value::U32(2)),
        ]);
        let vocabulary = Vocabulary::of(&metadata).unwrap();
        for pair in peer["texts"].as_array().unwrap() {
            let text = pair[0].as_str().unwrap();
            let tokens = vocabulary.tokens(text).unwrap();
            assert_eq!(serde_json::json!(tokens), pair[1], "{text:?}");
            assert_eq!(vocabulary.text(&tokens).unwrap(), text);
        }
    }

    #[test]
    fn unknown_vocabularies_are_refused() {
        let refused = |facts: [(&str, Value); 2]| {
            let [kind, more] = facts;
            let metadata = Metadata::from([kind, more, ("tokenizer.ggml.tokens", texts(&["a"]))]);
            Vocabulary::of(&metadata).err().unwrap()
        };
        let kind = |kind: &str| ("tokenizer.ggml.model", Value::String(kind.into()));
        let none = ("general.name", Value::String("?".into()));
        assert!(refused([kind("t5"), none.clone()]).contains("`t5`"));
        assert!(refused([kind("llama"), none.clone()]).contains("0 scores"));
        assert!(refused([kind("gpt2"), none]).contains("no merges"));
        assert!(refused([kind("gpt2"), ("tokenizer.ggml.merges", texts(&[]))]).contains("pre is missing"));
    }

    const WORDS: [&str; 3] = ["gpt-2", "smollm", "llama-bpe"];
    static VOCABULARIES: OnceLock<[Vocabulary; 3]> = OnceLock::new();

    proptest! {
        #[test]
        fn texts_come_back_from_their_tokens(text in "\\PC{0,40}[ \n\t]{0,3}\\PC{0,10}") {
            for i in 0..WORDS.len() {
                let vocabulary = &VOCABULARIES.get_or_init(|| WORDS.map(|words| bpe(&["e r", "\u{120} a"], words)))[i];
                let tokens = vocabulary.tokens(&text).unwrap();
                prop_assert_eq!(vocabulary.text(&tokens).unwrap(), text.clone());
                let bytes: Vec<u8> = tokens.iter().flat_map(|id| vocabulary.bytes[*id as usize].clone()).collect();
                prop_assert_eq!(bytes, text.as_bytes());
            }
        }
    }
}
