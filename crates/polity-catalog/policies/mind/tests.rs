//! Tests of minds: prompts in every world, errors in prompts, reactions to answers of every kind.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::testing::open;
use polity_kernel::ask::{Answer, Effect, Outcome, Part, Request, ResponseFormat, Role, Usage, Value};
use polity_kernel::machine::{Machine, Then};
use polity_kernel::registry::Registry;
use polity_kernel::scenario::Inputs;
use polity_kernel::society::Society;
use serde_json::{Value as Json, json};

fn registry() -> Registry {
    crate::testing::registry()
}

fn mind(changes: Json) -> Json {
    let mut policy = json!({"kind": "mind", "model": "sim/medium"});
    policy.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    policy
}

fn scenario(world: &str, policy: Json) -> Json {
    json!({"rounds": 3, "agents": 12, "world": {"kind": world}, "topology": {"kind": "complete"},
        "cohorts": [{"policy": policy}]})
}

/// A world in a small town: enough people for its default parameters.
fn small(world: &str, policy: Json) -> Json {
    let mut scenario = scenario(world, policy);
    match world {
        "schelling" => scenario["topology"] = json!({"kind": "none"}),
        "epidemic" => scenario["world"]["initial"] = json!(0.1),
        _ => {}
    }
    scenario["agents"] = json!(crate::testing::whole_episodes(&scenario, 60));
    scenario
}

fn shown(request: &Request) -> String {
    request.messages.iter().map(|m| format!("[{:?}]\n{}\n", m.role, m.rendered())).collect()
}

fn reply(effect: &Effect, outcome: Outcome) -> Answer {
    Answer { id: effect.id, request: effect.request.clone(), outcome, usage: Usage::default(), reasoning: None }
}

fn says(value: Value) -> Outcome {
    Outcome::Reply { value, raw: String::new(), repaired: false }
}

/// Runs a society with scripted model answers; returns all questions.
fn play(scenario: &Json, mut answer: impl FnMut(&Effect) -> Outcome) -> (Society, Vec<Request>) {
    let mut society = open(scenario, &Inputs::default(), 1).unwrap_or_else(|error| panic!("{error}"));
    let (mut ready, mut asked) = (Vec::new(), Vec::new());
    loop {
        let step = society.poll(std::mem::take(&mut ready)).unwrap();
        for effect in step.start {
            ready.push(reply(&effect, answer(&effect)));
            asked.push(effect.request);
        }
        if matches!(step.then, Then::Done(_)) {
            return (society, asked);
        }
    }
}

fn first_fit(response_format: &ResponseFormat) -> Value {
    match response_format {
        ResponseFormat::Text => Value::Text("words".into()),
        ResponseFormat::Choice(_) => Value::Choice(0),
        ResponseFormat::Number { low, high, .. } => Value::Number(low.max(-1.0).min(*high)),
        ResponseFormat::List { of, least, .. } => Value::List(vec![first_fit(of); *least as usize]),
        ResponseFormat::Record(fields) => {
            Value::Record(fields.iter().map(|(_, response_format)| first_fit(response_format)).collect())
        }
        ResponseFormat::Vector => Value::Vector(vec![1.0]),
        ResponseFormat::Calls(_) => Value::Calls { text: "so".into(), calls: Vec::new() },
    }
}

#[test]
fn every_world_has_words_for_minds() {
    for card in registry().worlds() {
        let names: Vec<&str> = card.files.prompts.iter().map(|(name, _)| *name).collect();
        if names.is_empty() {
            // Where nobody acts, nobody is asked.
            let why = open(&small(card.name, mind(json!({}))), &Inputs::default(), 1).err().map(|why| why.to_string());
            assert!(
                why.is_some_and(|why| why.contains("nothing to decide")),
                "worlds/{} has no words for minds",
                card.name
            );
            continue;
        }
        for name in ["rules", "observation", "question"] {
            assert!(names.contains(&name), "worlds/{} has no mind/{name}.md", card.name);
        }
        let (_, asked) = play(&small(card.name, mind(json!({"think": "in-reply"}))), |effect| {
            says(first_fit(&effect.request.response_format))
        });
        assert!(!asked.is_empty(), "{}", card.name);
        let last = asked.last().unwrap();
        println!("== {}: {:?}\n{}", card.name, last.response_format, shown(last));
        for request in &asked {
            let words = shown(request);
            assert!(!words.contains("{{") && !words.contains("{%"), "{}: {words}", card.name);
            assert_eq!(request.messages[0].role, Role::System);
        }
    }
}

#[test]
fn questions_go_out_while_others_are_still_put_into_words_and_early_answers_change_nothing() {
    let mut scenario = scenario("guess-average", mind(json!({"memory": {"tokens": 0}, "max_messages": 0})));
    scenario["topology"] = json!({"kind": "none"});
    // Five blocks, and agents who answer by their number.
    (scenario["agents"], scenario["rounds"]) = (json!(4 * 4096 + 7), json!(2));
    let answer = |effect: &Effect| reply(effect, says(Value::Number(f64::from(effect.id.actor % 100))));
    let run = |early: bool, shards: usize| {
        let mut society = open(&scenario, &Inputs::default(), shards).unwrap_or_else(|error| panic!("{error}"));
        let (mut ready, mut later, mut slices) = (Vec::new(), Vec::new(), 0);
        loop {
            let step = society.poll(std::mem::take(&mut ready)).unwrap();
            let answers = step.start.iter().map(answer);
            if early {
                ready.extend(answers)
            } else {
                later.extend(answers)
            }
            match step.then {
                Then::More => slices += 1,
                Then::Exchange(_) => panic!("one process is alone"),
                Then::Wait => ready.append(&mut later),
                Then::Round(_) => {}
                Then::Done(outcome) => return (outcome.digest, slices),
            }
        }
    };
    let (digest, slices) = run(true, 1);
    // Of one block, of two, and then of the rest, in each of two rounds.
    assert_eq!(slices, 2 * 2);
    assert_eq!(run(false, 1), (digest, slices));
    assert_eq!(run(true, 3).0, digest);
}

#[test]
fn a_right_answer_is_never_in_a_prompt() {
    let mut scenario = scenario("guess-average", mind(json!({"prompts": {"observation": "{{ seen }} {{ obs }}"}})));
    scenario["world"]["fraction"] = json!(0.3554);
    scenario["world"]["announce"] = json!("nothing");
    let mut hidden = Vec::new();
    let (_, asked) = play(&scenario, |effect| {
        hidden.push(effect.hidden.clone().unwrap().gold);
        says(Value::Number(50.0))
    });
    assert!(hidden.iter().all(|gold| gold == "17.77"), "{hidden:?}");
    assert!(asked.iter().all(|request| shown(request).contains("last_mean") && !shown(request).contains("right")));
}

#[test]
fn names_that_are_not_there_are_found_before_the_run() {
    let error = |policy: Json| {
        let mut scenario = scenario("guess-average", policy);
        scenario["population"] = json!({"marginals": [{"column": "age", "shares": {"20": 0.5, "40": 0.5}}]});
        open(&scenario, &Inputs::default(), 1).err().unwrap().to_string()
    };
    let prompts = |name: &str, text: &str| error(mind(json!({"prompts": {name: text}})));
    let cases = [
        (prompts("question", "{{ obs.last_maen }}?"), "did you mean `obs.last_mean`"),
        (prompts("question", "{% if false %}{{ person.aeg }}{% endif %}"), "did you mean `person.age`"),
        (prompts("question", "{{ persn.age }}"), "did you mean `person`"),
        (
            prompts("summary", "{% if old and false %}{{ person.age }}{% endif %}"),
            "uses `person`, which does not exist",
        ),
        (prompts("question", "{{ person['wage'] }}"), "undefined"),
        (prompts("question", "a\nb {{ x "), "line 2"),
        (prompts("questoin", "?"), "did you mean `question`"),
        (prompts("turn", "{% for i in range(100000) %}{% for j in range(100000) %}.{% endfor %}{% endfor %}"), "fuel"),
        (error(mind(json!({"prompts": {"question": {"file": "nowhere.md"}}}))), "nowhere.md"),
        (error(json!({"kind": "mind"})), "no model is given"),
        (error(json!({"kind": "mind", "model": "medium"})), "provider/model"),
        (error(json!({"kind": "mind", "models": [{"model": "sim/small", "share": 0.5}]})), "sum to 0.5"),
        (error(mind(json!({"acts": ["gues"]}))), "did you mean `guess`"),
        (error(mind(json!({"default": {"guess": 200}}))), "0..=100"),
        (error(mind(json!({"default": {"gess": 20}}))), "no such act"),
        (error(mind(json!({"settings": {"temperature": 9}}))), "0..=2"),
        (error(mind(json!({"max_retries": 11}))), "0..=10"),
        (
            error(mind(json!({"questions": [{"name": "guess", "ask": "?", "response_format": "text"}]}))),
            "already in use",
        ),
        (
            error(mind(json!({"questions": [{"name": "x", "ask": "?", "response_format": {"choice": []}}]}))),
            "at least one option",
        ),
    ];
    for (got, expected) in cases {
        assert!(got.contains(expected), "{got}\nnot: {expected}");
    }
}

#[test]
fn bad_replies_are_asked_again_and_end_in_the_declared_default() {
    let bad = || Outcome::Invalid { raw: "<html>oops</html>".into(), why: "no number".into() };
    // With a default, the act has that value; without one it is not performed.
    for (default, expected) in [(json!({"guess": 7}), vec![7.0; 12]), (json!({}), vec![])] {
        let mut scenario = scenario("guess-average", mind(json!({"default": default, "max_retries": 2})));
        scenario["rounds"] = json!(1);
        let (society, asked) = play(&scenario, |_| bad());
        let acts: Vec<f64> = society.acts().flat_map(|acts| acts.rows.iter().map(|act| act.value)).collect();
        assert_eq!(acts, expected);
        assert_eq!(asked.len(), 3 * 12);
        let last = asked.last().unwrap();
        assert_eq!(last.step.map(|step| (step.nth, step.last)), Some((2, true)));
        let words = shown(last);
        assert!(words.contains("<html>oops</html>") && words.contains("cannot be used: no number"), "{words}");
    }
    // A refusal is retried, too; a failure is not.
    for (outcome, asks) in [
        (Outcome::Refused { raw: "no".into() }, 2),
        (Outcome::Failed { why: "down".into() }, 1),
        (Outcome::Denied { why: "budget".into() }, 1),
    ] {
        let mut scenario = scenario("guess-average", mind(json!({})));
        scenario["rounds"] = json!(1);
        let (_, asked) = play(&scenario, |_| outcome.clone());
        assert_eq!(asked.len(), asks * 12, "{outcome:?}");
    }
}

#[test]
fn a_mind_thinks_remembers_sums_up_and_is_asked_more() {
    let policy = mind(json!({"think": "first", "memory": {"tokens": 30, "summary": true},
        "questions": [{"name": "mood", "ask": "How do you feel?", "response_format": {"choice": ["well", "ill"]}}]}));
    let mut scenario = scenario("guess-average", policy);
    scenario["rounds"] = json!(6);
    scenario["agents"] = json!(1);
    let (_, asked) = play(&scenario, |effect| {
        says(match (&effect.request.purpose[..], &effect.request.response_format) {
            ("thoughts", _) => Value::Text("they will say fifty".into()),
            ("summary", _) => Value::Text("it went down".into()),
            (_, response_format) => first_fit(response_format),
        })
    });
    let purposes: Vec<&str> = asked.iter().map(|request| request.purpose.as_str()).collect();
    assert_eq!(purposes[..6], ["thoughts", "guess", "mood", "thoughts", "guess", "mood"]);
    assert!(purposes.contains(&"summary"), "{purposes:?}");
    let guess = asked.iter().rfind(|request| request.purpose == "guess").unwrap();
    let roles: Vec<Role> = guess.messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::System, Role::User, Role::Assistant, Role::User]);
    let words = shown(guess);
    assert!(
        words.contains("they will say fifty")
            && words.contains("it went down")
            && words.contains("the average before it"),
        "{words}"
    );
    let mood = asked.iter().rfind(|request| request.purpose == "mood").unwrap();
    assert!(shown(mood).contains("guess: 0"), "{}", shown(mood));
    println!("{words}");
}

#[test]
fn minds_hear_each_other() {
    let policy = mind(json!({"max_messages": 5}));
    let mut scenario = scenario("opinion", policy);
    scenario["world"]["initial"] = json!({"value": 0.25});
    let (_, asked) = play(&scenario, |_| says(Value::Number(0.75)));
    let heard = |request: &Request| {
        request.messages.iter().flat_map(|m| &m.parts).filter(|part| matches!(part, Part::Said { .. })).count()
    };
    assert!(asked[..12].iter().all(|request| heard(request) == 0));
    assert!(asked[12..].iter().all(|request| heard(request) == 5), "{}", shown(&asked[12]));
    assert!(shown(&asked[12]).contains("answers: 0.75") && shown(&asked[12]).contains("11 people have"));
    // Agents that share a sample send an identical request; others do not.
    assert_eq!(asked[0].sample, 0);
    assert_eq!(asked[1].sample, 1);
}

#[test]
fn each_agent_keeps_the_model_that_it_was_born_with() {
    let models = json!([{"model": "sim/small", "share": 0.25}, {"model": "sim/large", "share": 0.75}]);
    let mut scenario = scenario("guess-average", json!({"kind": "mind", "models": models}));
    scenario["agents"] = json!(4000);
    let (_, asked) = play(&scenario, |_| says(Value::Number(1.0)));
    let of = |round: usize| -> Vec<&str> { asked[round * 4000..][..4000].iter().map(|r| r.model.name()).collect() };
    assert_eq!(of(0), of(2));
    let small = of(0).iter().filter(|model| **model == "sim/small").count();
    assert!((900..1100).contains(&small), "{small}");
}
