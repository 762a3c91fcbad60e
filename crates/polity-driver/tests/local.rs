//! Models inside the process against the same model in plain loops; what wrong files are told.
#![cfg(feature = "local")]
#![allow(clippy::unwrap_used, clippy::panic)]

mod gguf;

use gguf::{BEGIN, CONTEXT, Tiny};
use polity_driver::models::{Exchange, Providers, Trouble};
use polity_kernel::ask::{Constrain, Effect, EffectId, Message, Outcome, Request, Role, Settings, Value, Want};
use std::path::{Path, PathBuf};

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

fn effect(model: &str, want: Want, settings: Settings) -> Effect {
    let messages = vec![Message::text(Role::User, QUESTION)];
    Effect {
        id: EffectId { item: 0, round: 0, actor: 0, n: 0 },
        request: Request { settings, ..Request::new(model, messages, want) },
        hidden: None,
        default: None,
    }
}

fn ask(effect: &Effect) -> Result<Exchange, Trouble> {
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
    let exchange = ask(&effect(&model, Want::Text, Settings { max_tokens: Some(40), ..Settings::default() })).unwrap();
    assert_eq!(raw(&exchange.outcome), tiny.text(&tokens));
    assert_eq!(matches!(exchange.outcome, Outcome::Reply { .. }), ended, "{exchange:?}");
    assert_eq!((exchange.usage.tokens_in, exchange.usage.tokens_out), (prompt.len() as u64, tokens.len() as u64));
    assert_eq!(exchange.usage.cost_usd, 0.0);
}

/// What was weighed stands in the reply.
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
    let exchange = ask(&effect(&model(&path), Want::Choice(options()), Settings::default())).unwrap();
    let told = told(raw(&exchange.outcome));
    // candle rounds what it multiplies with to eight bits, too.
    assert!(told.iter().zip(&weights).all(|(a, b)| (a - b).abs() < 0.3), "{told:?} {weights:?}");
    assert_eq!(told.len(), weights.len());
}

#[test]
fn options_are_weighed_as_the_plain_model_weighs_them() {
    let (tiny, model) = tiny("local-options");
    let prompt = prompt(&tiny, &listed());
    let weights: Vec<f64> = options().iter().map(|option| tiny.weight(&prompt, option)).collect();
    let exchange = ask(&effect(&model, Want::Choice(options()), Settings::default())).unwrap();
    let best = (0..weights.len()).max_by(|a, b| weights[*a].total_cmp(&weights[*b])).unwrap();
    let Outcome::Reply { value: Value::Choice(chosen), raw, .. } = &exchange.outcome else { panic!("{exchange:?}") };
    assert_eq!(*chosen as usize, best);
    let told = told(raw);
    assert!(told.iter().zip(&weights).all(|(a, b)| (a - b).abs() < 1e-3), "{told:?} {weights:?}");
    assert_eq!(told.len(), weights.len());
    // At a temperature they are drawn by their probabilities.
    let mut counts = [0.0; 4];
    let samples = 400;
    let providers = Providers::standard();
    let provider = providers.for_model(&model).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for sample in 0..samples {
        let settings = Settings { temperature: Some(1.0), ..Settings::default() };
        let mut effect = effect(&model, Want::Choice(options()), settings);
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
    let whole = Want::Number { low: 3.0, high: 40.0, whole: true };
    let list = Want::List { of: Box::new(whole.clone()), least: 2, most: 3 };
    let record = Want::Record(vec![("vote".into(), Want::Choice(options())), ("age".into(), whole.clone())]);
    for want in [whole, list, record, Want::yes_or_no()] {
        for (seed, temperature) in [(1, 0.0), (2, 1.0), (3, 1.5)] {
            let settings = Settings { temperature: Some(temperature), seed: Some(seed), ..Settings::default() };
            let held = ask(&effect(&model, want.clone(), Settings { constrain: Some(Constrain::Schema), ..settings }));
            assert!(matches!(held.as_ref().unwrap().outcome, Outcome::Reply { repaired: false, .. }), "{held:?}");
            let words = Settings { constrain: Some(Constrain::Words), max_tokens: Some(20), ..settings };
            let free = ask(&effect(&model, want.clone(), words));
            assert!(matches!(free.as_ref().unwrap().outcome, Outcome::Invalid { .. }), "{free:?}");
        }
    }
    let other = ask(&effect(
        &model,
        Want::yes_or_no(),
        Settings { constrain: Some(Constrain::Grammar), ..Settings::default() },
    ));
    assert!(matches!(&other, Err(Trouble::Fatal { why }) if why.contains("`constrain: grammar`")), "{other:?}");
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
    let mut effect = effect(&model(&path), Want::Text, Settings { max_tokens: Some(5), ..Settings::default() });
    let messages = vec![Message::text(Role::System, "Be brief."), Message::text(Role::User, " where to? ")];
    effect.request.messages = messages.into();
    // Who refuses a system message hears it from the user.
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
        (folder.join("none.gguf"), "can not be read"),
        (folder.clone(), "is no GGUF file"),
        (folder.join("words.gguf"), "is no GGUF file"),
        (file("bert.gguf", "bert", true), "architecture `bert`"),
        (file("mute.gguf", "llama", false), "has no vocabulary"),
    ] {
        let told = providers.for_model(&model(&path)).err().unwrap();
        assert!(told.contains(part) && told.contains(path.to_str().unwrap()), "{told}");
    }
    // A file whose end is missing shows that when its weights are read.
    let text = |model: &str| effect(model, Want::Text, Settings::default());
    let ended = ask(&text(&model(&folder.join("cut.gguf"))));
    assert!(matches!(&ended, Err(Trouble::Fatal { why }) if why.contains("cut.gguf can not be used")), "{ended:?}");
    let mut long = text(&model(&folder.join("whole.gguf")));
    long.request.messages = vec![Message::text(Role::User, "ä".repeat(CONTEXT as usize))].into();
    let ended = ask(&long);
    assert!(matches!(&ended, Err(Trouble::Never { why }) if why.contains("context holds 1024")), "{ended:?}");
}

/// Whatever stands in a file, somebody is told something.
#[test]
fn damaged_files_are_errors() {
    let path = scratch("local-damaged").join("tiny.gguf");
    Tiny::new(&WORDS, 7).write(&path, "llama", true);
    let whole = std::fs::read(&path).unwrap();
    let settings = Settings { max_tokens: Some(2), ..Settings::default() };
    let mut refused = 0;
    // Among the first bytes are the counts, the architecture and all sizes; then come the vocabulary and what each matrix is.
    let step = std::env::var("POLITY_DAMAGED_STEP").map_or(9, |step| step.parse().unwrap());
    for at in (4..450).step_by(step).chain((450..whole.len().min(16_000)).step_by(120 * step)) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0xFF;
        std::fs::write(&path, bytes).unwrap();
        let providers = Providers::standard();
        let effect = effect(&model(&path), Want::Text, settings);
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
