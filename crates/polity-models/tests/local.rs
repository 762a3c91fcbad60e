//! Compares in-process models with plain loops, and checks the errors for broken files.

use crate::bert;
use crate::gguf;

use crate::bert::{Bert, POSITIONS, WIDTH};
use crate::gguf::{BEGIN, CONTEXT, Tiny};
use polity_kernel::ask::{
    Asker, ChatMessage, Constrain, Effect, EffectId, Outcome, Request, ResponseFormat, Role, Settings, Value,
};
use polity_models::models::{Exchange, ProviderError, Providers};
use serde_json::{Value as Json, json};
use std::path::{Path, PathBuf};
use std::process::Command;

const WORDS: [&str; 8] = ["left", "right", "neither", "User:", "Assistant:", "where to?", "one of these", "Reply"];
const QUESTION: &str = "where to? Ünï";

fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn model(path: &Path) -> String {
    format!("local/{}", path.display())
}

/// The model of a test, in a file.
fn tiny(name: &str) -> (Tiny, String) {
    let tiny = Tiny::new(&WORDS, 7);
    let path = scratch(name).join("tiny.gguf");
    tiny.write(&path, "llama", true);
    (tiny, model(&path))
}

fn effect(model: &str, response_format: ResponseFormat, settings: Settings) -> Effect {
    let messages = vec![ChatMessage::text(Role::User, QUESTION)];
    Effect {
        id: EffectId { item: 0, round: 0, actor: 0, asker: Asker::Agent, n: 0 },
        request: Request { settings, ..Request::new(model, messages, response_format) },
        hidden: None,
        default: None,
    }
}

fn ask(effect: &Effect) -> Result<Exchange, ProviderError> {
    let providers = Providers::standard();
    let provider = providers.for_model(&effect.request.model).unwrap();
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(provider.answer(effect, 1))
}

fn options() -> Vec<String> {
    ["left", "right", "neither", "back"].map(String::from).to_vec()
}

/// The question, with its options.
fn listed() -> String {
    format!("{QUESTION}\n\nReply with one of these, and with nothing else: {}", options().join(" | "))
}

/// The prompt of a question, in the plain form.
fn prompt(tiny: &Tiny, question: &str) -> Vec<u32> {
    let mut tokens = vec![BEGIN];
    tokens.extend(tiny.tokenized(&format!("User: {question}\n\nAssistant:")));
    tokens
}

fn raw(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::Reply { raw, .. } | Outcome::Invalid { raw, .. } | Outcome::Refused { raw } => raw,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_reply_is_that_of_the_plain_model() {
    let (tiny, model) = tiny("local-reply");
    let prompt = prompt(&tiny, QUESTION);
    let (tokens, ended) = tiny.greedy(&prompt, 40);
    let exchange =
        ask(&effect(&model, ResponseFormat::Text, Settings { max_tokens: Some(40), ..Settings::default() })).unwrap();
    assert_eq!(raw(&exchange.outcome), tiny.text(&tokens));
    assert_eq!(matches!(exchange.outcome, Outcome::Reply { .. }), ended, "{exchange:?}");
    assert_eq!((exchange.usage.tokens_in, exchange.usage.tokens_out), (prompt.len() as u64, tokens.len() as u64));
    assert_eq!(exchange.usage.cost_usd, 0.0);
}

/// The weights in the reply.
fn told(raw: &str) -> Vec<f64> {
    raw.split(", ").map(|part| part.rsplit(' ').next().unwrap().parse().unwrap()).collect()
}

#[test]
fn weights_of_eight_bits_are_read_and_computed_as_what_they_are() {
    let tiny = Tiny::new(&WORDS, 7).rounded();
    let path = scratch("local-eight-bits").join("tiny.gguf");
    tiny.write(&path, "llama", true);
    let prompt = prompt(&tiny, &listed());
    let weights: Vec<f64> = options().iter().map(|option| tiny.weight(&prompt, option)).collect();
    let exchange = ask(&effect(&model(&path), ResponseFormat::Choice(options()), Settings::default())).unwrap();
    let told = told(raw(&exchange.outcome));
    // candle rounds its inputs to eight bits, too.
    assert!(told.iter().zip(&weights).all(|(a, b)| (a - b).abs() < 0.3), "{told:?} {weights:?}");
    assert_eq!(told.len(), weights.len());
}

#[test]
fn options_are_weighed_as_the_plain_model_weighs_them() {
    let (tiny, model) = tiny("local-options");
    let prompt = prompt(&tiny, &listed());
    let weights: Vec<f64> = options().iter().map(|option| tiny.weight(&prompt, option)).collect();
    let exchange = ask(&effect(&model, ResponseFormat::Choice(options()), Settings::default())).unwrap();
    let best = (0..weights.len()).max_by(|a, b| weights[*a].total_cmp(&weights[*b])).unwrap();
    let Outcome::Reply { value: Value::Choice(chosen), raw, .. } = &exchange.outcome else { panic!("{exchange:?}") };
    assert_eq!(*chosen as usize, best);
    let told = told(raw);
    assert!(told.iter().zip(&weights).all(|(a, b)| (a - b).abs() < 1e-3), "{told:?} {weights:?}");
    assert_eq!(told.len(), weights.len());
    // At a temperature, options are drawn by probability.
    let mut counts = [0.0; 4];
    let samples = 400;
    let providers = Providers::standard();
    let provider = providers.for_model(&model).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for sample in 0..samples {
        let settings = Settings { temperature: Some(1.0), ..Settings::default() };
        let mut effect = effect(&model, ResponseFormat::Choice(options()), settings);
        effect.request.sample = sample;
        match runtime.block_on(provider.answer(&effect, 1)).unwrap().outcome {
            Outcome::Reply { value: Value::Choice(i), .. } => counts[i as usize] += 1.0 / f64::from(samples),
            other => panic!("{other:?}"),
        }
    }
    let all: f64 = weights.iter().map(|weight| weight.exp()).sum();
    // One standard error is at most 0.025.
    let near = |(share, weight): (&f64, &f64)| (share - weight.exp() / all).abs() < 0.1;
    assert!(counts.iter().zip(&weights).all(near), "{counts:?} {weights:?}");
}

#[test]
fn numbers_and_lists_are_held_to_their_form_and_words_are_not() {
    let (_, model) = tiny("local-forms");
    let whole = ResponseFormat::Number { low: 3.0, high: 40.0, whole: true };
    let list = ResponseFormat::List { of: Box::new(whole.clone()), least: 2, most: 3 };
    let record =
        ResponseFormat::Record(vec![("vote".into(), ResponseFormat::Choice(options())), ("age".into(), whole.clone())]);
    for response_format in [whole, list, record, ResponseFormat::yes_or_no()] {
        for (seed, temperature) in [(1, 0.0), (2, 1.0), (3, 1.5)] {
            let settings = Settings { temperature: Some(temperature), seed: Some(seed), ..Settings::default() };
            let held = ask(&effect(
                &model,
                response_format.clone(),
                Settings { constrain: Some(Constrain::Schema), ..settings },
            ));
            assert!(matches!(held.as_ref().unwrap().outcome, Outcome::Reply { repaired: false, .. }), "{held:?}");
            let words = Settings { constrain: Some(Constrain::Words), max_tokens: Some(20), ..settings };
            let free = ask(&effect(&model, response_format.clone(), words));
            assert!(matches!(free.as_ref().unwrap().outcome, Outcome::Invalid { .. }), "{free:?}");
        }
    }
    let other = ask(&effect(
        &model,
        ResponseFormat::yes_or_no(),
        Settings { constrain: Some(Constrain::Grammar), ..Settings::default() },
    ));
    assert!(matches!(&other, Err(ProviderError::Fatal { why }) if why.contains("`constrain: grammar`")), "{other:?}");
}

#[test]
fn a_template_is_filled_and_its_marks_are_read() {
    let mut tiny = Tiny::new(&WORDS, 7);
    let path = scratch("local-template").join("tiny.gguf");
    tiny.template = Some(
        "{{ bos_token }}{% for m in messages %}\n{% if m['role'] == 'system' %}{{ raise_exception('no system') }}{% endif %}\n\
         [{{ m['role'] }}] {{ m.content.strip() }}</s>{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}"
            .into(),
    );
    tiny.write(&path, "llama", true);
    let mut effect =
        effect(&model(&path), ResponseFormat::Text, Settings { max_tokens: Some(5), ..Settings::default() });
    let messages = vec![ChatMessage::text(Role::System, "Be brief."), ChatMessage::text(Role::User, " where to? ")];
    effect.request.messages = messages.into();
    // If the template refuses a system message, the user message holds it.
    let mut prompt = vec![BEGIN];
    prompt.extend(tiny.tokenized("[user] Be brief.\n\n where to?"));
    prompt.push(gguf::END);
    prompt.extend(tiny.tokenized("[assistant]"));
    let (tokens, _) = tiny.greedy(&prompt, 5);
    let exchange = ask(&effect).unwrap();
    assert_eq!((exchange.usage.tokens_in, raw(&exchange.outcome)), (prompt.len() as u64, tiny.text(&tokens).as_str()));
}

#[test]
fn what_is_wrong_with_a_file_is_told() {
    let folder = scratch("local-wrong");
    let tiny = Tiny::new(&WORDS, 7);
    let file = |name: &str, architecture: &str, with_vocabulary: bool| {
        tiny.write(&folder.join(name), architecture, with_vocabulary);
        folder.join(name)
    };
    std::fs::write(folder.join("words.gguf"), "These are words, and no model.").unwrap();
    let cut = std::fs::read(file("whole.gguf", "llama", true)).unwrap();
    std::fs::write(folder.join("cut.gguf"), &cut[..cut.len() / 2]).unwrap();
    let providers = Providers::standard();
    for (path, part) in [
        (folder.join("none.gguf"), "cannot be read"),
        (folder.clone(), "has no config.json"),
        (folder.join("words.gguf"), "is not a GGUF file"),
        (file("bert.gguf", "bert", true), "architecture `bert`"),
        (file("mute.gguf", "llama", false), "has no vocabulary"),
    ] {
        let told = providers.for_model(&model(&path)).err().unwrap();
        assert!(told.contains(part) && told.contains(path.to_str().unwrap()), "{told}");
    }
    // A truncated file shows when its weights are read.
    let text = |model: &str| effect(model, ResponseFormat::Text, Settings::default());
    let ended = ask(&text(&model(&folder.join("cut.gguf"))));
    assert!(
        matches!(&ended, Err(ProviderError::Fatal { why }) if why.contains("cut.gguf cannot be used")),
        "{ended:?}"
    );
    let mut long = text(&model(&folder.join("whole.gguf")));
    long.request.messages = vec![ChatMessage::text(Role::User, "ä".repeat(CONTEXT as usize))].into();
    let ended = ask(&long);
    assert!(matches!(&ended, Err(ProviderError::Never { why }) if why.contains("context holds 1024")), "{ended:?}");
}

/// Any file content gives a result or an error.
#[test]
fn damaged_files_are_errors() {
    let path = scratch("local-damaged").join("tiny.gguf");
    Tiny::new(&WORDS, 7).write(&path, "llama", true);
    let whole = std::fs::read(&path).unwrap();
    let settings = Settings { max_tokens: Some(2), ..Settings::default() };
    let mut refused = 0;
    // The first bytes hold the counts, the architecture and all sizes; then come the vocabulary and the matrix descriptions.
    let step = std::env::var("POLITY_DAMAGED_STEP").map_or(9, |step| step.parse().unwrap());
    for at in (4..450).step_by(step).chain((450..whole.len().min(16_000)).step_by(120 * step)) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0xFF;
        std::fs::write(&path, bytes).unwrap();
        let providers = Providers::standard();
        let effect = effect(&model(&path), ResponseFormat::Text, settings);
        let ended = match providers.for_model(&effect.request.model) {
            Ok(_) => ask(&effect).map(|_| ()).map_err(|trouble| trouble.to_string()),
            Err(why) => Err(why),
        };
        if let Err(why) = ended {
            assert!(why.contains("tiny.gguf"), "{at}: {why}");
            refused += 1;
        }
    }
    assert!(refused > 10, "{refused}");
}

/// How the folders of the tests below pool their vectors.
type Pooled = fn(&[Vec<f64>]) -> Vec<f64>;
/// Files of a folder by name.
type Files = Vec<(&'static str, Json)>;

/// A folder with the model of a test, and additional or changed files.
fn folder(name: &str, more: &[(&str, Json)]) -> (Bert, PathBuf) {
    let (bert, path) = (Bert::new(5), scratch(name));
    bert.write(&path);
    more.iter().for_each(|(name, told)| bert::put(&path, name, told));
    (bert, path)
}

fn of_text(path: &Path, text: &str) -> Effect {
    let mut effect = effect(&model(path), ResponseFormat::Vector, Settings::default());
    effect.request.messages = vec![ChatMessage::text(Role::User, text)].into();
    effect
}

fn vector(outcome: Outcome) -> Vec<f32> {
    match outcome {
        Outcome::Reply { value: Value::Vector(vector), raw, repaired: false } if raw.contains("of 32 numbers") => {
            vector
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn vectors_are_those_of_the_plain_model() {
    let length = json!({"max_seq_length": 12, "do_lower_case": false});
    let cls = json!({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false});
    let unit: Pooled = |vectors| bert::normalized(&bert::mean(vectors));
    let first: Pooled = |vectors| vectors[0].clone();
    let mut cased = bert::tokenizer();
    cased["normalizer"]["lowercase"] = false.into();
    cased["normalizer"]["strip_accents"] = true.into();
    let folders: [(&str, Files, usize, Pooled); 5] = [
        ("bare", vec![], POSITIONS, bert::mean),
        (
            "unit",
            vec![
                ("modules.json", bert::modules(&["Normalize"])),
                ("1_Pooling/config.json", json!({"pooling_mode": "mean", "include_prompt": true})),
                ("tokenizer_config.json", json!({"model_max_length": 1e30})),
                ("config_sentence_transformers.json", json!({"default_prompt_name": null})),
            ],
            POSITIONS,
            unit,
        ),
        (
            "first",
            vec![
                ("modules.json", bert::modules(&[])),
                ("1_Pooling/config.json", cls),
                ("sentence_bert_config.json", length),
                ("tokenizer_config.json", json!({"model_max_length": 20})),
            ],
            12,
            first,
        ),
        (
            "lowered",
            vec![("tokenizer.json", cased), ("sentence_bert_config.json", json!({"do_lower_case": true}))],
            POSITIONS,
            bert::mean,
        ),
        ("short", vec![("tokenizer_config.json", json!({"model_max_length": 9}))], 9, bert::mean),
    ];
    for (name, more, longest, pooled) in folders {
        let (bert, path) = folder(&format!("sentence-{name}"), &more);
        let dogs = vec!["dog"; longest - 2];
        for (text, tokens) in [
            ("The dogs", vec!["the", "dog", "##s"]),
            ("Running, walked!", vec!["run", "##ning", ",", "walk", "##ed", "!"]),
            ("\t\u{dc}n\u{ef}  on\n123?", vec!["u", "##n", "##i", "on", "1", "##2", "##3", "?"]),
            ("good [SEP] zebra", vec!["good", "[SEP]", "[UNK]"]),
            ("", vec![]),
            (&"Dog ".repeat(10_000), dogs.clone()),
            (&"dog".repeat(10_000), vec!["[UNK]"]),
        ] {
            // An overlong text is cut before the place of its end mark.
            let read = tokens.into_iter().take(longest - 2);
            let marked: Vec<&str> = ["[CLS]"].into_iter().chain(read).chain(["[SEP]"]).collect();
            let expected = pooled(&bert.vectors(&marked));
            let effect = of_text(&path, text);
            let Exchange { outcome, usage, .. } = ask(&effect).unwrap();
            assert_eq!((usage.tokens_in, usage.tokens_out), (marked.len() as u64, 0), "{name}: {text:.50}");
            assert_eq!(usage.cost_usd, 0.0);
            let vector = vector(outcome);
            let gap = vector.iter().zip(&expected).map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max);
            assert!(vector.len() == WIDTH && gap < 1e-4, "{name}: {text:.50}: {gap}");
        }
    }
}

#[test]
fn weights_of_sixteen_bits_are_read_as_what_they_are() {
    let (bert, path) = (Bert::new(5).rounded(), scratch("sentence-rounded"));
    bert.write(&path);
    let expected = bert::mean(&bert.vectors(&["[CLS]", "a", "red", "car", "[SEP]"]));
    let vector = vector(ask(&of_text(&path, "a red car")).unwrap().outcome);
    assert!(vector.iter().zip(&expected).all(|(a, b)| (f64::from(*a) - b).abs() < 1e-4), "{vector:?} {expected:?}");
}

#[test]
fn who_speaks_makes_no_vectors_and_who_makes_vectors_does_not_speak() {
    let (_, path) = folder("sentence-words", &[]);
    for response_format in [ResponseFormat::Text, ResponseFormat::Choice(options()), ResponseFormat::yes_or_no()] {
        let ended = ask(&effect(&model(&path), response_format, Settings::default()));
        assert!(
            matches!(&ended, Err(ProviderError::Fatal { why }) if why.contains("makes only embeddings of texts")),
            "{ended:?}"
        );
    }
    let (_, model) = tiny("local-vector");
    let ended = ask(&effect(&model, ResponseFormat::Vector, Settings::default()));
    assert!(matches!(&ended, Err(ProviderError::Fatal { why }) if why.contains("name a folder")), "{ended:?}");
}

/// The error for a model before it is called.
fn refusal(path: &Path) -> String {
    Providers::standard().for_model(&model(path)).err().unwrap()
}

#[test]
fn what_is_wrong_with_a_folder_is_told() {
    let with = |key: &str, value: Json| {
        let mut config = bert::config();
        config[key] = value;
        config
    };
    let mut other_tokens = bert::tokenizer();
    other_tokens["model"]["vocab"]["more"] = 32.into();
    let mut other_marks = bert::tokenizer();
    other_marks["post_processor"]["single"][2]["SpecialToken"]["id"] = "[END]".into();
    let prompt = json!({"prompts": {"query": "query: "}, "default_prompt_name": "query"});
    let refused = [
        ("config.json", with("model_type", "mpnet".into()), "is a model of the type `mpnet`"),
        ("config.json", json!([]), "of the type `unknown`"),
        ("config.json", with("num_attention_heads", 0.into()), "num_attention_heads must be a whole number"),
        ("config.json", with("num_attention_heads", 5.into()), "num_attention_heads (5)"),
        ("config.json", with("hidden_size", json!(32.5)), "hidden_size must be"),
        ("config.json", with("hidden_act", "silu".into()), "hidden_act is `silu`"),
        ("config.json", with("position_embedding_type", "relative_key".into()), "`relative_key`"),
        ("config.json", with("is_decoder", true.into()), "is_decoder"),
        ("tokenizer.json", json!({"model": {}}), "is not a tokenizer"),
        ("tokenizer.json", other_tokens, "has a token 32"),
        ("tokenizer.json", other_marks, "[END]"),
        ("modules.json", bert::modules(&["Dense"]), "Dense 2_Dense"),
        ("modules.json", json!({}), "its modules are"),
        ("1_Pooling/config.json", json!({"pooling_mode_max_tokens": true}), "`max_tokens`"),
        ("1_Pooling/config.json", json!({"pooling_mode": ["mean", "cls"]}), "`mean, cls`"),
        ("sentence_bert_config.json", json!({"max_seq_length": 2}), "puts 2 marks"),
        ("tokenizer_config.json", json!({"model_max_length": "long"}), "model_max_length must be"),
        ("config_sentence_transformers.json", prompt, "its prompt `query`"),
    ];
    for (name, content, part) in refused {
        let (_, path) = folder("sentence-wrong", &[(name, content)]);
        let told = refusal(&path);
        assert!(told.contains(part) && told.contains(path.to_str().unwrap()), "{name}: {told}");
        // Not valid JSON in any file.
        std::fs::write(path.join(name), "{\"model_type\": \"be").unwrap();
        let told = refusal(&path);
        assert!(told.contains("damaged") && told.contains(path.join(name).to_str().unwrap()), "{name}: {told}");
    }
    for name in ["config.json", "tokenizer.json", "model.safetensors"] {
        let (_, path) = folder("sentence-lacks", &[]);
        std::fs::remove_file(path.join(name)).unwrap();
        let told = refusal(&path);
        assert!(told.contains(&format!("has no {name}: ")) && told.contains("model.save(folder)"), "{told}");
    }
}

/// Any content of a folder's files gives a result or an error.
#[test]
fn damaged_folders_are_errors() {
    let (_, path) = folder("sentence-damaged", &[("config.json", bert::config())]);
    let step = std::env::var("POLITY_DAMAGED_STEP").map_or(9, |step| step.parse().unwrap());
    let mut refused = 0;
    let mut ended = |file: &Path, bytes: &[u8], what: &str| {
        std::fs::write(file, bytes).unwrap();
        let providers = Providers::standard();
        let effect = of_text(&path, "The dogs");
        let ended = match providers.for_model(&effect.request.model) {
            Ok(_) => ask(&effect).map(|_| ()).map_err(|trouble| trouble.to_string()),
            Err(why) => Err(why),
        };
        if let Err(why) = ended {
            assert!(why.contains("sentence-damaged") && !why.contains("stopped unexpectedly"), "{what}: {why}");
            refused += 1;
        }
    };
    for name in ["model.safetensors", "config.json", "tokenizer.json"] {
        let file = path.join(name);
        let whole = std::fs::read(&file).unwrap();
        ended(&file, &whole[..whole.len() / 2], name);
        ended(&file, &[], name);
        for at in (0..whole.len().min(4000)).step_by(4 * step) {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x11;
            ended(&file, &bytes, &format!("{name} at {at}"));
        }
        std::fs::write(&file, whole).unwrap();
    }
    assert!(refused > 100, "{refused}");
    // Sizes other than in config.json.
    let mut other = bert::config();
    other["intermediate_size"] = 48.into();
    bert::put(&path, "config.json", &other);
    let ended = ask(&of_text(&path, "The dogs"));
    let says = |why: &str| why.contains("model.safetensors is damaged, or does not match its config.json");
    assert!(matches!(&ended, Err(ProviderError::Fatal { why }) if says(why)), "{ended:?}");
}

#[test]
fn a_text_has_the_same_vector_whatever_else_is_computed() {
    let (_, path) = folder("sentence-same", &[]);
    let providers = Providers::standard();
    let provider = providers.for_model(&model(&path)).unwrap();
    let vector = |text: &str| {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let vector = vector(runtime.block_on(provider.answer(&of_text(&path, text), 1)).unwrap().outcome);
        vector.into_iter().map(f32::to_bits).collect::<Vec<_>>()
    };
    let alone = vector("The dogs walked in.");
    std::thread::scope(|scope| {
        for i in 0..8 {
            let (vector, alone) = (&vector, &alone);
            scope.spawn(move || {
                for n in 0..20 {
                    let text = "a red car ".repeat(i + n);
                    assert_ne!(vector(&text), *alone);
                    assert_eq!(vector("The dogs walked in."), *alone);
                }
            });
        }
    });
}

#[test]
fn a_folder_is_known_by_the_bytes_of_its_files() {
    let pooling = ("1_Pooling/config.json", json!({"pooling_mode": "cls"}));
    let (_, one) = folder("sentence-one", std::slice::from_ref(&pooling));
    let (_, same) = folder("sentence-same-bytes", &[pooling, ("README.md", json!("which counts for nothing"))]);
    let (_, other) = folder("sentence-other", &[("1_Pooling/config.json", json!({"pooling_mode": "mean"}))]);
    let providers = Providers::standard();
    let address = |path: &Path| {
        let model = model(path);
        providers.for_model(&model).unwrap().address(&model).unwrap()
    };
    assert_eq!(address(&one), address(&same));
    assert_ne!(address(&one), address(&other));
    let name = model(&one);
    let provider = providers.for_model(&name).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let known = runtime.block_on(provider.probe(&name)).unwrap();
    assert_eq!((known.context, known.choice, known.schema), (Some(POSITIONS as u64), Some(false), Some(false)));
    let sum = "sha256sum config.json tokenizer.json model.safetensors 1_Pooling/config.json | sha256sum";
    let sum = Command::new("sh").args(["-c", sum]).current_dir(&one).output().unwrap().stdout;
    assert!(String::from_utf8(sum).unwrap().starts_with(&format!("{} ", known.weights.unwrap())));
    let most = provider.most(&of_text(&one, "The dogs").request);
    assert!(most.tokens_in >= 5 && most.tokens_out == 0, "{most:?}");
}
