//! The simulated models behave as declared, and in no other way.

use polity_kernel::ask::{
    Asker, ChatMessage, Effect, EffectId, Hidden, Outcome, Part, PlannedCall, Request, ResponseFormat, Role, Task,
    Value,
};
use polity_kernel::digest::{Kind, RowHash};
use polity_kernel::method::same_answer;
use polity_kernel::tool::{Arguments, ToolCall};
use polity_models::models::sim::{MODELS, Sim};
use polity_models::models::{Exchange, Provider, ProviderError, Providers};
use serde_json::{Value as Json, json};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

const GOLD: &str = "42";

fn try_ask(sim: &Sim, effect: &Effect, seed: u64) -> Result<Exchange, ProviderError> {
    match pin!(sim.answer(effect, seed)).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(exchange) => exchange,
        Poll::Pending => panic!("a simulated model waits for nothing"),
    }
}

fn ask(sim: &Sim, effect: &Effect) -> Exchange {
    try_ask(sim, effect, 1).unwrap()
}

fn wanted() -> ResponseFormat {
    ResponseFormat::Record(vec![("answer".into(), ResponseFormat::Text), ("reasons".into(), ResponseFormat::Text)])
}

fn effect(model: &str, item: u32, actor: u32, difficulty: f64) -> Effect {
    Effect {
        id: EffectId { item, round: 0, actor, asker: Asker::Agent, n: 0 },
        request: Request {
            sample: actor,
            ..Request::new(model, vec![ChatMessage::text(Role::User, format!("question {item}"))], wanted())
        },
        hidden: Some(Hidden { gold: GOLD.into(), difficulty, ..Hidden::default() }),
        default: None,
    }
}

/// The model said `own` before and is now shown `others`.
fn shown(model: &str, item: u32, own: &str, others: &[&str], argued: bool) -> Effect {
    let mut effect = effect(model, item, 0, 0.0);
    let said =
        |answer: &str, reasons: &str| Part::Said { by: "X".into(), answer: answer.into(), reasons: reasons.into() };
    let why = if argued { "because" } else { "" };
    Arc::make_mut(&mut effect.request.messages).extend([
        ChatMessage { role: Role::Assistant, parts: vec![said(own, "mine")] },
        ChatMessage { role: Role::User, parts: others.iter().map(|answer| said(answer, why)).collect() },
    ]);
    effect
}

/// The answer, where the reply has one.
fn answer(exchange: &Exchange) -> Option<String> {
    match &exchange.outcome {
        Outcome::Reply { value, .. } => Some(value.field(0).unwrap().as_text().unwrap().to_owned()),
        _ => None,
    }
}

/// `sim/medium` with other parameters, as `sim/x`.
fn medium_but(changes: Json) -> Sim {
    let mut model = serde_json::from_str::<Json>(MODELS).unwrap()["medium"].clone();
    for (key, value) in changes.as_object().unwrap() {
        model[key] = value.clone();
    }
    Sim::from_json(&json!({ "x": model }).to_string()).unwrap()
}

/// A count of independent events is within 4 standard deviations of its expectation.
fn as_declared(what: &str, count: usize, probabilities: impl Iterator<Item = f64>) {
    let (mean, variance) = probabilities.fold((0.0, 0.0), |(m, v), p| (m + p, v + p * (1.0 - p)));
    let off = (count as f64 - mean).abs();
    assert!(off <= 4.0 * f64::sqrt(variance), "{what}: {count}, declared {mean:.1} ± {:.1}", f64::sqrt(variance));
}

/// How many of `n` calls give `to`.
fn switches(sim: &Sim, n: u32, own: &str, others: &[&str], argued: bool, to: &str) -> usize {
    (0..n).filter(|i| answer(&ask(sim, &shown("sim/x", *i, own, others, argued))).is_some_and(|a| a == to)).count()
}

#[test]
fn skill_and_difficulty_are_as_declared() {
    let sim = Sim::standard();
    assert!(sim.models().len() >= 7);
    for name in sim.models() {
        let difficulty = |i: u32| f64::from(i % 9) / 2.0 - 2.0;
        let answers: Vec<(u32, String)> =
            (0..20_000).filter_map(|i| Some((i, answer(&ask(&sim, &effect(&name, i, 0, difficulty(i))))?))).collect();
        assert!(answers.len() > 14_000, "{name} fails too often");
        let right = answers.iter().filter(|(_, a)| a == GOLD).count();
        // The closed form, written independently.
        let model = sim.model(&name).unwrap();
        let logit = |i: u32| model.skill - model.difficulty_response * difficulty(i);
        as_declared(&name, right, answers.iter().map(|(i, _)| 1.0 - 1.0 / (1.0 + logit(*i).exp())));
    }
}

#[test]
fn errors_of_two_calls_on_an_item_correlate_as_declared() {
    for rho in [0.0, 0.3, 0.8] {
        let sim = medium_but(json!({"correlation": rho}));
        let model = sim.model("x").unwrap();
        // At even odds both are right with probability 1/4 + asin(rho) / 2 pi (Sheppard 1899).
        let even = model.skill / model.difficulty_response;
        let right = |item, actor| answer(&ask(&sim, &effect("sim/x", item, actor, even))).unwrap() == GOLD;
        let both = (0..20_000).filter(|item| right(*item, 0) && right(*item, 1)).count();
        let p = 0.25 + f64::asin(rho) / std::f64::consts::TAU;
        as_declared(&format!("both right at {rho}"), both, (0..20_000).map(|_| p));
    }
}

#[test]
fn a_wrong_answer_is_the_tempting_one_as_often_as_declared() {
    let sim = medium_but(json!({"skill": -1000.0, "lure": 0.4}));
    let tempted = (0..5_000)
        .filter(|item| {
            let mut effect = effect("sim/x", *item, 0, 0.0);
            effect.hidden.as_mut().unwrap().distractor = Some("43".into());
            answer(&ask(&sim, &effect)).unwrap() == "43"
        })
        .count();
    as_declared("tempted", tempted, (0..5_000).map(|_| 0.4));
    // If the data name none, each item still has one shared by calls: 0.4² of pairs by it, the rest by chance.
    let answers = |actor| (0..5_000).map(move |item| (item, actor));
    let given = |(item, actor)| answer(&ask(&sim, &effect("sim/x", item, actor, 0.0))).unwrap();
    let same = answers(0).zip(answers(1)).filter(|(a, b)| given(*a) == given(*b)).count();
    as_declared("the same mistake", same, (0..5_000).map(|_| 0.16 + 0.36 / 19.0));
}

#[test]
fn conformity_follows_the_majority_right_or_wrong() {
    let n = 4_000;
    let at = |c: f64| medium_but(json!({"conformity": c, "persuadability": 0.0}));
    for (own, others) in [(GOLD, ["7", "7"]), ("7", [GOLD, GOLD])] {
        assert_eq!(switches(&at(0.0), n, own, &others, true, others[0]), 0);
        for c in [0.3, 0.8] {
            as_declared("follows all", switches(&at(c), n, own, &others, true, others[0]), (0..n).map(|_| c));
        }
    }
    let split = switches(&at(0.8), n, "7", &["8", "9", "8"], true, "8");
    as_declared("follows two of three", split, (0..n).map(|_| 0.8 * 2.0 / 3.0));
    assert_eq!(switches(&at(1.0), n, "7", &["8", "9"], true, "7"), n as usize, "half is no majority");
}

#[test]
fn persuadability_follows_arguments_and_discernment_the_right_ones() {
    let n = 4_000;
    let at = |p: f64, d: f64| medium_but(json!({"conformity": 0.0, "persuadability": p, "discernment": d}));
    assert_eq!(switches(&at(0.0, 0.5), n, "7", &[GOLD, GOLD], true, "7"), n as usize, "zero means none");
    assert_eq!(switches(&at(1.0, 0.0), n, "7", &[GOLD], false, "7"), n as usize, "no argument, no effect");
    let mastery = 1.0 / (1.0 + f64::exp(-0.8));
    as_declared("a right argument", switches(&at(0.4, 0.6), n, "7", &[GOLD], true, GOLD), (0..n).map(|_| 0.4));
    let wrong = switches(&at(0.4, 0.6), n, GOLD, &["7"], true, "7");
    as_declared("a wrong argument", wrong, (0..n).map(|_| 0.4 * (1.0 - 0.6 * mastery)));
    let two = switches(&at(0.4, 0.6), n, "7", &[GOLD, GOLD], true, GOLD);
    as_declared("two right arguments", two, (0..n).map(|_| 1.0 - 0.6 * 0.6));
    assert_eq!(switches(&at(0.0, 0.0), n, "7", &["7", "7"], true, "7"), n as usize, "agreement changes nothing");
}

#[test]
fn failures_happen_as_often_as_declared() {
    let sim = Sim::standard();
    let n = 10_000;
    let (mut refused, mut cut, mut tool, mut broken) = (0, 0, 0, 0);
    for item in 0..n {
        match ask(&sim, &effect("sim/faulty", item, 0, 0.0)).outcome {
            // JSON broken in these ways can be repaired.
            Outcome::Reply { repaired: true, .. } => broken += 1,
            Outcome::Reply { .. } => {}
            Outcome::Refused { .. } => refused += 1,
            Outcome::Invalid { why, .. } if why.contains("cut off") => cut += 1,
            Outcome::Invalid { why, .. } if why.contains("tool") => tool += 1,
            other => panic!("{other:?}"),
        }
    }
    let declared = sim.model("sim/faulty").unwrap().failures.clone();
    let rates = [declared.refusal, declared.truncation, declared.wrong_tool, declared.broken_json];
    for (count, rate) in [refused, cut, tool, broken].into_iter().zip(rates) {
        assert!(rate > 0.0);
        as_declared("failures", count, (0..n).map(|_| rate));
    }
    for name in sim.models().iter().filter(|name| *name != "sim/faulty") {
        assert!((0..300).all(|i| answer(&ask(&sim, &effect(name, i, 0, 0.0))).is_some()), "{name}");
    }
}

#[test]
fn an_answer_is_a_function_of_seed_and_effect() {
    let (one, other) = (Sim::standard(), Sim::standard());
    let effects: Vec<Effect> =
        (0..200).flat_map(|item| (0..3).map(move |actor| effect("sim/faulty", item, actor, 0.3))).collect();
    let forth: Vec<Exchange> = effects.iter().map(|effect| ask(&one, effect)).collect();
    let mut back: Vec<Exchange> = effects.iter().rev().map(|effect| ask(&other, effect)).collect();
    back.reverse();
    assert_eq!(forth, back);
    // Everything that identifies a call matters, and so does the seed.
    let base = effect("sim/medium", 5, 0, 0.8);
    let mut others = vec![base.clone(); 6];
    others[0].id.item = 6;
    others[1].id.round = 1;
    others[2].id.actor = 1;
    others[3].id.n = 1;
    others[4].request.sample = 1;
    others[5].request.model = "sim/stubborn".into();
    let said = |effect: &Effect, seed| (0..40u64).map(|i| try_ask(&one, effect, seed + i).unwrap()).collect::<Vec<_>>();
    assert!(others.iter().all(|other| said(other, 1) != said(&base, 1)));
    assert_ne!(said(&base, 1), said(&base, 1000));
}

#[test]
fn every_kind_of_wish_is_answered() {
    let options = vec!["red".to_string(), "green".into(), "blue".into()];
    let cases = [
        (ResponseFormat::Text, "Paris", Value::Text("Paris".into())),
        (ResponseFormat::Choice(options.clone()), "Green", Value::Choice(1)),
        (ResponseFormat::number(0.0, 1.0), "0.25", Value::Number(0.25)),
        (
            ResponseFormat::Record(vec![
                ("confidence".into(), ResponseFormat::number(0.0, 1.0)),
                ("answer".into(), ResponseFormat::Choice(options)),
            ]),
            "blue",
            Value::Choice(2),
        ),
    ];
    for (response_format, gold, right) in cases {
        let given = |model: &str, hidden: bool, item| {
            let mut effect = effect(model, item, 0, 0.0);
            effect.request.response_format = response_format.clone();
            effect.hidden = hidden.then(|| Hidden { gold: gold.into(), ..Hidden::default() });
            match ask(&Sim::standard(), &effect).outcome {
                Outcome::Reply { value: Value::Record(fields), .. } => fields[1].clone(),
                Outcome::Reply { value, .. } => value,
                other => panic!("{other:?}"),
            }
        };
        let small: Vec<Value> = (0..200).map(|i| given("sim/small", true, i)).collect();
        assert!(small.contains(&right) && small.iter().any(|value| *value != right), "{response_format:?}");
        assert!((0..50).all(|i| given("sim/perfect", true, i) == right));
        // Without a right answer, a placeholder fits and varies.
        let free: Vec<Value> = (0..50).map(|i| given("sim/medium", false, i)).collect();
        assert!(free.iter().any(|value| *value != free[0]), "{response_format:?}");
    }
}

#[test]
fn a_wrong_text_never_holds_the_right_one() {
    let sim = medium_but(json!({"skill": -1000.0}));
    for item in 0..200 {
        let mut effect = effect("sim/x", item, 0, 0.0);
        effect.hidden.as_mut().unwrap().gold = "the secret".into();
        match ask(&sim, &effect).outcome {
            Outcome::Reply { raw, .. } => assert!(!raw.contains("secret"), "{raw}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn usage_is_as_declared() {
    let sim = Sim::standard();
    let exchanges: Vec<Exchange> = (0..4_000).map(|i| ask(&sim, &effect("sim/large", i, 0, 0.0))).collect();
    let model = sim.model("sim/large").unwrap();
    let first = &exchanges[7];
    let Outcome::Reply { raw, .. } = &first.outcome else { panic!() };
    assert_eq!((first.usage.tokens_in, first.usage.tokens_out), (3, raw.len().div_ceil(4) as u64));
    let dollars = (3.0 * model.price.input + first.usage.tokens_out as f64 * model.price.output) / 1e6;
    assert!((first.usage.cost_usd - dollars).abs() < 1e-12);
    let before = |e: &Exchange| e.usage.latency_ms - model.latency_ms.per_token * e.usage.tokens_out as f64;
    let below = exchanges.iter().filter(|e| before(e) < model.latency_ms.median).count();
    as_declared("latency below its median", below, (0..4_000).map(|_| 0.5));
    let tokens: u64 = exchanges.iter().map(|e| e.usage.tokens_out).sum();
    // `{"answer":"42","reasons":""}` itself takes 7 tokens.
    let mean = tokens as f64 / 4_000.0 - 7.0;
    assert!((mean - f64::from(model.verbosity)).abs() < 2.0, "{mean}");
}

#[test]
fn unknown_models_are_named_before_a_run() {
    let providers = Providers::standard();
    let error = |model: &str| providers.for_model(model).map(|p| p.name()).unwrap_err();
    assert_eq!(providers.for_model("sim/medium").map(Provider::name), Ok("sim"));
    assert!(error("sim/medum").contains("did you mean `sim/medium`?"));
    assert!(error("vllm/llama").contains("come with a later version"));
    let without_local =
        Providers::of(vec![Box::new(Sim::standard())]).for_model("local/tiny.gguf").map(|p| p.name()).unwrap_err();
    assert!(without_local.contains("`cargo build --release --features local`"));
    assert!(error("smi/medium").contains("did you mean `sim/...`?"));
    assert!(error("medium").contains("provider/model"));
    assert!(matches!(try_ask(&Sim::standard(), &effect("sim/none", 0, 0, 0.0), 1), Err(ProviderError::Fatal { .. })));
}

#[test]
fn impossible_parameters_are_refused() {
    let refused = |from: &str, to: &str| Sim::from_json(&MODELS.replacen(from, to, 1)).err().unwrap();
    assert!(refused("\"lure\": 0.38", "\"lure\": 1.38").contains("model `small`: lure must lie in 0 to 1, is 1.38"));
    assert!(refused("\"refusal\": 0.05", "\"refusal\": 0.95").contains("the sum of failures"));
    assert!(refused("\"skill\"", "\"skil\"").contains("unknown field `skil`"));
}

/// Another kind of request about answers shown to the model.
fn judging(task: Task, item: u32, shown: &[&str], response_format: ResponseFormat) -> Effect {
    let mut effect = effect("sim/x", item, 0, 0.0);
    effect.hidden.as_mut().unwrap().task = task;
    effect.request.response_format = response_format;
    let said = |(i, answer): (usize, &&str)| Part::Said {
        by: format!("S{i}"),
        answer: (*answer).into(),
        reasons: "because".into(),
    };
    Arc::make_mut(&mut effect.request.messages)
        .push(ChatMessage { role: Role::User, parts: shown.iter().enumerate().map(said).collect() });
    effect
}

fn chosen(sim: &Sim, effect: &Effect) -> u32 {
    match ask(sim, effect).outcome {
        Outcome::Reply { value: Value::Choice(i), .. } => i,
        other => panic!("{other:?}"),
    }
}

/// Standard normal distribution function, by numerical integration: no code shared with the model.
fn phi(x: f64) -> f64 {
    let steps = 20_000;
    let width = (x + 12.0) / f64::from(steps);
    let density = |t: f64| (-t * t / 2.0).exp() / std::f64::consts::TAU.sqrt();
    (0..steps).map(|i| density(-12.0 + (f64::from(i) + 0.5) * width) * width).sum()
}

#[test]
fn judgements_are_those_of_signal_detection() {
    let n = 8_000u32;
    for (sensitivity, leniency, correlation) in [(1.2, 0.4, 0.3), (0.0, 0.0, 0.0), (2.5, -0.5, 0.9)] {
        let critic =
            json!({"sensitivity": sensitivity, "leniency": leniency, "blindness": 0.0, "first_bias": 0.0, "heed": 0.0});
        let sim = medium_but(json!({"critic": critic, "correlation": correlation}));
        // Yes or no.
        let verdict = || ResponseFormat::Choice(vec!["right".into(), "wrong".into()]);
        for (answer, half) in [(GOLD, sensitivity / 2.0), ("7", -sensitivity / 2.0)] {
            let passed = (0..n).filter(|i| chosen(&sim, &judging(Task::Check, *i, &[answer], verdict())) == 0).count();
            let p = phi(half + leniency);
            as_declared(&format!("{answer} passes"), passed, (0..n).map(|_| p));
        }
        // One of two, in either place: with impressions of variance 1 each the better one wins at phi(d' / sqrt 2).
        let names = || ResponseFormat::Choice(vec!["S0".into(), "S1".into()]);
        for (shown, right) in [([GOLD, "7"], 0), (["7", GOLD], 1)] {
            let best = (0..n).filter(|i| chosen(&sim, &judging(Task::Choose, *i, &shown, names())) == right).count();
            let p = phi(sensitivity / std::f64::consts::SQRT_2);
            as_declared("the better of two", best, (0..n).map(|_| p));
        }
    }
}

#[test]
fn judges_lean_to_what_comes_first_and_to_their_own_errors() {
    let n = 4_000u32;
    let critic = |changes: Json| {
        let mut critic = json!({"sensitivity": 1.0, "leniency": 0.0, "blindness": 0.0, "first_bias": 0.0, "heed": 0.0});
        for (key, value) in changes.as_object().unwrap() {
            critic[key] = value.clone();
        }
        critic
    };
    let names = || ResponseFormat::Choice(vec!["S0".into(), "S1".into()]);
    let sim = medium_but(json!({"critic": critic(json!({"first_bias": 0.5})), "correlation": 0.0}));
    let first = (0..n).filter(|i| chosen(&sim, &judging(Task::Choose, *i, &["7", "8"], names())) == 0).count();
    let p = phi(0.5 / std::f64::consts::SQRT_2);
    as_declared("the first of two wrong ones", first, (0..n).map(|_| p));
    // It always gives the tempting answer itself, so it accepts it as often as it is blind.
    let blind = critic(json!({"blindness": 0.6, "sensitivity": 1000.0}));
    let sim = medium_but(json!({"critic": blind, "skill": -1000.0, "lure": 1.0}));
    let passes = |answer: &'static str| {
        let verdict = ResponseFormat::Choice(vec!["right".into(), "wrong".into()]);
        (0..n)
            .filter(|i| {
                let mut effect = judging(Task::Check, *i, &[answer], verdict.clone());
                effect.hidden.as_mut().unwrap().distractor = Some("43".into());
                chosen(&sim, &effect) == 0
            })
            .count()
    };
    as_declared("its own error passes", passes("43"), (0..n).map(|_| 0.6));
    assert_eq!(passes("44"), 0, "another error does not");
}

#[test]
fn marks_follow_impressions_in_the_order_shown() {
    let sim = medium_but(
        json!({"critic": {"sensitivity": 1000.0, "leniency": 0.0, "blindness": 0.0, "first_bias": 0.0, "heed": 0.0}}),
    );
    let mark = ResponseFormat::Number { low: 1.0, high: 5.0, whole: true };
    let marks = ResponseFormat::List { of: Box::new(mark.clone()), least: 3, most: 3 };
    match ask(&sim, &judging(Task::Rate, 1, &["7", GOLD, "9"], marks)).outcome {
        Outcome::Reply { value, .. } => {
            assert_eq!(value, Value::List(vec![Value::Number(1.0), Value::Number(5.0), Value::Number(1.0)]));
        }
        other => panic!("{other:?}"),
    }
    match ask(&sim, &judging(Task::Rate, 1, &["7", GOLD], mark)).outcome {
        Outcome::Reply { value, .. } => assert_eq!(value, Value::Number(5.0), "the last one shown"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn who_is_found_wrong_tries_anew_as_often_as_declared() {
    let n = 4_000u32;
    let critic = json!({"sensitivity": 1.0, "leniency": 0.0, "blindness": 0.0, "first_bias": 0.0, "heed": 0.7});
    // Its next try would always be right.
    let sim = medium_but(json!({"critic": critic, "skill": 1000.0}));
    let mended = |right: bool| {
        (0..n)
            .filter(|item| {
                let mut effect = shown("sim/x", *item, "7", &[], false);
                let finding = Part::Finding { by: "tests".into(), right, words: String::new() };
                Arc::make_mut(&mut effect.request.messages)
                    .push(ChatMessage { role: Role::User, parts: vec![finding] });
                answer(&ask(&sim, &effect)).unwrap() == GOLD
            })
            .count()
    };
    as_declared("tries anew", mended(false), (0..n).map(|_| 0.7));
    assert_eq!(mended(true), 0, "what is found right stays");
}

#[test]
fn topics_add_to_skill_and_misleaders_tempt() {
    let sim = medium_but(json!({"topics": {"math": 2.0, "art": -2.0}}));
    let skill = sim.model("x").unwrap().skill;
    for (topic, added) in [(Some("math"), 2.0), (Some("art"), -2.0), (Some("other"), 0.0), (None, 0.0)] {
        let right = (0..8_000)
            .filter(|item| {
                let mut effect = effect("sim/x", *item, 0, 0.0);
                effect.hidden.as_mut().unwrap().topic = topic.map(str::to_owned);
                answer(&ask(&sim, &effect)).unwrap() == GOLD
            })
            .count();
        let logit: f64 = skill + added;
        as_declared(&format!("{topic:?}"), right, (0..8_000).map(|_| 1.0 - 1.0 / (1.0 + logit.exp())));
    }
    for item in 0..100 {
        let mut effect = effect("sim/medium", item, 0, 0.0);
        let hidden = effect.hidden.as_mut().unwrap();
        (hidden.task, hidden.distractor) = (Task::Mislead, Some("43".into()));
        assert_eq!(answer(&ask(&Sim::standard(), &effect)).unwrap(), "43");
    }
}

#[test]
fn draws_of_parameters_are_models_of_their_own_and_stay_in_range() {
    let sim = Sim::standard();
    for name in sim.models() {
        let drawn: Vec<_> = (1..=3).map(|nth| sim.model(&format!("{name}~{nth}")).unwrap().into_owned()).collect();
        let moved = drawn.iter().all(|model| model.skill != sim.model(&name).unwrap().skill);
        assert!(moved && drawn[0] != drawn[1] && drawn[1] != drawn[2], "{name}");
        for model in drawn {
            let shares = [model.conformity, model.persuadability, model.critic.blindness, model.correlation];
            assert!(shares.iter().all(|p| (0.0..=1.0).contains(p)), "{name}");
        }
    }
    for wrong in ["sim/medium~", "sim/medium~0", "sim/medium~x", "sim/nobody~1"] {
        assert!(sim.model(wrong).is_err(), "{wrong}");
    }
}

/// What a reader needs is a fact of a document, and the message of a failed test.
fn needs(effect: &mut Effect, finds: &[&str]) {
    let step = |finds: &&str| PlannedCall { call: ToolCall::new("", &Arguments::new()), finds: (*finds).into() };
    let wrong = Arc::new(vec!["17".to_owned(), "18".to_owned()]);
    let hidden = Hidden { plan: Arc::new(finds.iter().map(step).collect()), wrong, ..effect.hidden.take().unwrap() };
    effect.hidden = Some(hidden);
}

#[test]
fn an_ideal_reader_is_right_if_and_only_if_it_was_shown_what_it_needs() {
    let sim = Sim::standard();
    let said = |model: &str, item: u32, parts: Vec<Part>, finds: &[&str]| {
        let mut effect = effect(model, item, 0, 2.0);
        needs(&mut effect, finds);
        let message = &mut Arc::make_mut(&mut effect.request.messages)[0];
        message.parts.extend(parts);
        answer(&ask(&sim, &effect)).unwrap()
    };
    let document = || Part::Text("design:\nThe FACTOR is six.".into());
    let finding = || Part::Finding { by: "tests".into(), right: false, words: "expected 42".into() };
    let both = ["factor is six", "expected 42"];
    for item in 0..40 {
        assert_eq!(said("sim/reader", item, vec![document(), finding()], &both), GOLD);
        assert_eq!(said("sim/reader", item, vec![], &[]), GOLD, "nothing is needed");
        for lacking in [vec![], vec![document()], vec![finding()]] {
            assert!(["17", "18"].contains(&said("sim/reader", item, lacking, &both).as_str()));
        }
        // The question itself shows nothing.
        assert_ne!(said("sim/reader", item, vec![], &["question"]), GOLD);
    }
    // Other models may remember what they were not shown.
    let remembered = (0..200).filter(|item| said("sim/large", *item, vec![], &both) == GOLD).count();
    assert!((100..200).contains(&remembered), "{remembered} of 200");
}

#[test]
fn an_ideal_reader_mends_what_a_finding_reveals() {
    let sim = Sim::standard();
    for item in 0..20 {
        let mut effect = shown("sim/reader", item, "17", &[], false);
        needs(&mut effect, &["expected 42"]);
        let found = |words: &str| {
            let mut effect = effect.clone();
            let finding = Part::Finding { by: "tests".into(), right: false, words: words.into() };
            Arc::make_mut(&mut effect.request.messages)[2].parts.push(finding);
            answer(&ask(&sim, &effect)).unwrap()
        };
        assert_eq!(found("expected 42, got 17"), GOLD);
        assert_eq!(found("it failed"), "18", "the same wrong answer is not given again");
    }
}

/// Methods are judged on these models, so the models must not be tuned to a method. Anyone who changes them must explain why in the
/// README, and check every claim again.
#[test]
fn the_parameters_are_frozen() {
    let hash = RowHash::new(Kind::Input, 0).bytes(MODELS.as_bytes()).finish();
    assert_eq!(format!("{hash:032x}"), "2abbcc77710b72f8e76b370dbbc42e38");
}

/// Shares of right answers after each round of a plain debate of three who hear each other, on 4,000 items: (single members, their
/// plurality). An independent loop over the models: no code shared with any method.
fn debate(sim: &Sim, name: &str, difficulty: impl Fn(u32) -> f64) -> Vec<(f64, f64)> {
    let (n, rounds) = (4_000u32, 3);
    let mut right = vec![(0, 0); rounds];
    for item in 0..n {
        let mut stands: Vec<(String, String)> = Vec::new();
        for (round, (members, teams)) in right.iter_mut().enumerate() {
            let answers = (0..3u32).map(|actor| {
                let mut effect = effect(name, item, actor, difficulty(item));
                effect.id.round = round as u32;
                if round > 0 {
                    let said = |member: u32| {
                        let (answer, reasons) = stands[member as usize].clone();
                        Part::Said { by: format!("Agent {member}"), answer, reasons }
                    };
                    let others = (0..3).filter(|other| *other != actor).map(said).collect();
                    Arc::make_mut(&mut effect.request.messages).extend([
                        ChatMessage { role: Role::Assistant, parts: vec![said(actor)] },
                        ChatMessage { role: Role::User, parts: others },
                    ]);
                }
                match ask(sim, &effect).outcome {
                    Outcome::Reply { value, .. } => {
                        let text = |i| value.field(i).and_then(Value::as_text).unwrap().to_owned();
                        (text(0), text(1))
                    }
                    other => panic!("{other:?}"),
                }
            });
            stands = answers.collect();
            let votes = |a: &str| stands.iter().filter(|(b, _)| same_answer(a, b)).count();
            let most = stands.iter().map(|(answer, _)| votes(answer)).max().unwrap();
            let (team, _) = stands.iter().find(|(answer, _)| votes(answer) == most).unwrap();
            *members += votes(GOLD);
            *teams += usize::from(same_answer(team, GOLD));
        }
    }
    let share = |count: usize, of: u32| count as f64 / f64::from(of);
    let shares = right.into_iter().map(|(members, teams)| (share(members, 3 * n), share(teams, n))).collect();
    println!("{name}: (members, plurality) right after each round: {shares:.3?}");
    shares
}

/// Hearing others changes answers only as far as the declared parameters allow.
#[test]
fn hearing_others_helps_those_who_can_tell_right_from_wrong() {
    // One standard error of a share of 4,000 is below 0.008.
    let noise = 0.016;
    let with = |discernment: f64| {
        let sim = medium_but(json!({"skill": 2.0, "discernment": discernment, "conformity": 0.0}));
        debate(&sim, "sim/x", |_| 1.0)
    };
    let (can, can_not) = (with(1.0), with(0.0));
    assert!(can[2].1 > can[0].1 + noise && can[2].0 > can[0].0 + noise, "who can tell gains");
    assert!(
        can_not[2].1 < can_not[0].1 + noise && can_not[2].0 < can_not[0].0 + noise,
        "who cannot tell gains nothing"
    );
}

/// The figures of the README: the effect of a debate on the frozen models, items of difficulty -2 to 2. No claims about models that move;
/// for the others the result is certain.
#[test]
fn the_frozen_models_in_a_debate() {
    let sim = Sim::standard();
    let table = |name: &str| debate(&sim, name, |item| f64::from(item % 9) / 2.0 - 2.0);
    for name in ["sim/small", "sim/medium", "sim/large"] {
        let shares = table(name);
        assert!((0..2).all(|round| shares[round] != shares[round + 1]), "{name} listens");
    }
    for name in ["sim/stubborn", "sim/perfect"] {
        let shares = table(name);
        assert!(shares.iter().all(|share| *share == shares[0]), "{name} hears nobody");
    }
    // Two of three who agree beat the third, and no other majority can arise.
    let shares = table("sim/conformist");
    assert!(
        shares.iter().all(|share| share.1 == shares[0].1) && shares[1].0 != shares[0].0,
        "a conformist adds nothing"
    );
}
