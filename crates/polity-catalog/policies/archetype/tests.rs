//! Tests of archetypes and sampled minds: questions, and every agent's act against a plain second computation.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::testing::{open, refused, round};
use polity_kernel::Invalid;
use polity_kernel::ask::{Asker, Effect, Outcome, Question, Request, ResponseFormat, Value};
use polity_kernel::cohort::{CohortContext, CohortPolicy};
use polity_kernel::interface::Observation;
use polity_kernel::layout::Layout;
use polity_kernel::machine::{Machine, Then};
use polity_kernel::policy::{Fault, Person, Policy, PolicySetup, Turn};
use polity_kernel::population::Cell;
use polity_kernel::registry::LeafFiles;
use polity_kernel::rng::{Draws, Stream};
use polity_kernel::scenario::{Assembled, Inputs, assemble};
use polity_kernel::society::Society;
use polity_kernel::tree::Node;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;

fn with(mut base: Json, changes: Json) -> Json {
    base.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    base
}

fn archetype(changes: Json) -> Json {
    let by = json!([{"column": "age", "bins": [18, 65]}, {"observation": "health", "bins": [2, 3], "labels": ["well", "ill", "recovered"]}]);
    with(json!({"kind": "archetype", "model": "sim/medium", "by": by}), changes)
}

fn epidemic(agents: u32, policy: Json) -> Json {
    json!({"seed": 3, "rounds": 6, "agents": agents, "topology": {"kind": "watts-strogatz", "neighbours": 10, "rewire": 0.1},
        "population": {"marginals": [{"column": "age", "shares": {"10": 0.3, "40": 0.5, "70": 0.2}}]},
        "world": {"kind": "epidemic", "rate": 0.1, "latent": 2.0, "infectious": 3.0, "initial": 0.1},
        "cohorts": [{"policy": policy}]})
}

fn guessing(policy: Json) -> Json {
    json!({"seed": 5, "rounds": 3, "agents": 500, "world": {"kind": "guess-average"}, "cohorts": [{"policy": policy}]})
}

fn says(value: Value) -> Outcome {
    Outcome::Reply { value, raw: String::new(), repaired: false }
}

fn shown(effect: &Effect) -> String {
    effect.request.rendered()
}

/// A round of a run.
struct Played {
    asked: Vec<Effect>,
    /// (agent, value) of each act.
    acts: Vec<(u32, f64)>,
    /// The agents' observed health before the round.
    health: Vec<f64>,
    metrics: BTreeMap<String, f64>,
}

/// Runs a society with scripted model answers.
fn play(scenario: &Json, shards: usize, mut answer: impl FnMut(&Effect) -> Outcome) -> (Society, Vec<Played>, String) {
    let mut society = open(scenario, &Inputs::default(), shards).unwrap_or_else(|error| panic!("{error}"));
    let (mut rounds, mut health) = (Vec::new(), society.column(0));
    loop {
        let (asked, report) = match round(&mut society, &mut answer) {
            Ok(ended) => ended,
            Err(outcome) => return (society, rounds, outcome.digest.to_string()),
        };
        rounds.push(Played {
            asked,
            acts: society.acts().flat_map(|acts| acts.rows.iter().map(|act| (act.who, act.value))).collect(),
            health: std::mem::replace(&mut health, society.column(0)),
            metrics: report.metrics.into_iter().collect(),
        });
    }
}

/// A plain computation of an agent's group: age below 18, from 65 on or between; well, ill or recovered.
fn group(society: &Society, who: u32, health: f64) -> usize {
    let age = match society.shared_context().population.cell(0, who) {
        Cell::Number(age) => usize::from(age >= 18.0) + usize::from(age >= 65.0),
        Cell::Text(text) => panic!("{text}"),
    };
    age + 3 * (health as usize).saturating_sub(1)
}

#[test]
fn every_agent_draws_its_act_from_the_answer_of_its_group() {
    // Shares that distinguish groups, by the words of the prompt.
    let share = |effect: &Effect| {
        let words = shown(effect);
        let age = ["..18", "18..65", "65.."].iter().position(|age| words.contains(&format!("age: {age}\n"))).unwrap();
        let health =
            ["well", "ill", "recovered"].iter().position(|health| words.contains(&format!("health: {health}\n")));
        5.0 + 10.0 * (age + 3 * health.unwrap()) as f64
    };
    let scenario = epidemic(6000, archetype(json!({})));
    let (society, rounds, digest) = play(&scenario, 1, |effect| says(Value::Number(share(effect))));
    let mut acted = 0;
    for (round, played) in rounds.iter().enumerate() {
        for (who, did) in &played.acts {
            let p = (5.0 + 10.0 * group(&society, *who, played.health[*who as usize]) as f64) / 100.0;
            let draw = Draws::new(3, Stream::Turn, round as u32, *who).unit();
            assert_eq!(*did, f64::from(u8::from(draw >= 1.0 - p)), "agent {who} in round {round}");
        }
        acted += played.acts.len();
        // One question for each non-empty group, in the name of its first agent.
        let mut first: BTreeMap<usize, u32> = BTreeMap::new();
        for (who, health) in played.health.iter().enumerate().rev() {
            first.insert(group(&society, who as u32, *health), who as u32);
        }
        let mut speakers: Vec<u32> = first.into_values().collect();
        speakers.sort_unstable();
        let mut asked: Vec<u32> = played.asked.iter().map(|effect| effect.id.actor).collect();
        asked.sort_unstable();
        assert_eq!(asked, speakers);
        assert!(
            played.asked.iter().all(|effect| effect.id.asker == Asker::Cohort && effect.request.purpose == "isolate")
        );
    }
    assert!(acted > 5000, "{acted}");
    let (_, again, other) = play(&scenario, 3, |effect| says(Value::Number(share(effect))));
    assert_eq!(other, digest, "three shards");
    assert_eq!(again.len(), rounds.len());
}

#[test]
fn the_number_of_questions_is_not_that_of_the_agents() {
    let asked = |agents: u32| -> Vec<usize> {
        let (_, rounds, _) = play(&epidemic(agents, archetype(json!({}))), 1, |_| says(Value::Number(20.0)));
        rounds.iter().map(|played| played.asked.len()).collect()
    };
    let few = asked(3000);
    assert!(few.iter().all(|n| *n <= 9) && few[5] == 9, "{few:?}");
    assert_eq!(few, asked(40_000));
}

#[test]
fn prompts_tell_of_the_wave_and_of_rounds_before() {
    let (_, rounds, _) = play(&epidemic(3000, archetype(json!({"memory": 2}))), 1, |_| says(Value::Number(25.0)));
    for (round, played) in rounds.iter().enumerate().skip(3) {
        let prevalence = 100.0 * rounds[round - 1].metrics["infectious"] / 3000.0;
        let words = shown(&played.asked[0]);
        assert!(
            words.contains(&format!("{} % of all people are ill", (prevalence * 100.0).round() / 100.0)),
            "{words}"
        );
        assert!(
            words.contains(&format!("- Round {}: ", round)) && !words.contains(&format!("- Round {}: ", round - 2))
        );
        assert!(words.contains("Then: isolate: no 75 %, yes 25 %"), "{words}");
        let people = group_size(&words);
        assert!(people > 100, "{words}");
        println!("{words}\n{:?}", played.asked[0].request.response_format);
    }
    // A careful group's choice is passed to simulated models, outside the prompt.
    let hidden = |effect: &Effect| effect.hidden.as_ref().unwrap().gold.clone();
    let ill = rounds[5].asked.iter().find(|effect| shown(effect).contains("health: ill\n")).unwrap();
    assert_eq!(hidden(ill), "100");
    assert!(rounds.iter().flat_map(|played| &played.asked).all(|effect| !shown(effect).contains("right")));
}

fn group_size(words: &str) -> u64 {
    words.split("a group of ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn what_can_not_be_used_ends_in_the_default_of_the_group() {
    let invalid = || Outcome::Invalid { raw: "many".into(), why: "no number".into() };
    for (default, outcome, asks, acts) in [
        (json!({"isolate": "yes"}), invalid(), 3, Some(1.0)),
        (json!({}), invalid(), 3, None),
        (json!({"isolate": "no"}), Outcome::Denied { why: "budget".into() }, 1, Some(0.0)),
    ] {
        let policy = json!({"kind": "archetype", "model": "sim/medium", "max_retries": 2, "default": default});
        let (_, rounds, _) = play(&epidemic(2000, policy), 1, |_| outcome.clone());
        for played in &rounds {
            assert_eq!(played.asked.len(), asks);
            assert!(played.acts.iter().all(|(_, did)| Some(*did) == acts), "{default}");
        }
        assert_eq!(rounds.iter().any(|played| !played.acts.is_empty()), acts.is_some());
    }
}

#[test]
fn samples_serve_acts_that_carry_numbers() {
    let policy = json!({"kind": "archetype", "model": "sim/medium", "samples": 4, "every": 2});
    let (_, rounds, _) =
        play(&guessing(policy), 1, |effect| says(Value::Number(f64::from(10 * effect.request.sample))));
    assert_eq!(rounds.iter().map(|played| played.asked.len()).collect::<Vec<_>>(), [4, 0, 4]);
    for (round, played) in rounds.iter().enumerate() {
        assert_eq!(played.acts.len(), 500);
        for (who, did) in &played.acts {
            let drawn = Draws::new(5, Stream::Turn, round as u32, *who).below(4);
            assert_eq!(*did, 10.0 * drawn as f64);
        }
    }
    let response_format = ResponseFormat::number(0.0, 100.0);
    assert!(rounds[0].asked.iter().all(|effect| effect.request.response_format == response_format));
}

/// A policy whose agents share the sum of numbers that they were born with; its last digit shows the order of summation.
struct Choir(u16, u32);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ChoirParams {
    /// Questions asked in the name of the first agent.
    #[serde(default)]
    questions: u32,
}

impl Policy for Choir {
    const NAME: &'static str = "choir";
    const SUMMARY: &'static str = "Name a part of the sum of all";
    type Params = ChoirParams;
    type State = f64;

    fn open(params: ChoirParams, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        Ok(Choir(setup.number_act()?.0, params.questions))
    }

    fn init_state(&self, _: Person<'_>, draws: &mut Draws) -> f64 {
        draws.unit()
    }

    async fn act(&self, _: &mut f64, turn: &mut Turn<'_>) -> Result<(), Fault> {
        let sum: &f64 = turn.shared()?;
        turn.act(self.0, sum % 100.0);
        Ok(())
    }
}

impl CohortPolicy for Choir {
    type Tally = f64;
    type Shared = f64;

    fn init_shared(&self) -> f64 {
        0.0
    }

    fn tally(&self) -> f64 {
        0.0
    }

    fn count(&self, tally: &mut f64, round: u32, state: &f64, _: Person<'_>, _: Observation<'_>) {
        *tally += state / f64::from(round + 3);
    }

    fn merge(&self, left: f64, right: f64) -> f64 {
        left + right
    }

    async fn cohort_step(&self, sum: &mut f64, tally: &f64, context: &mut CohortContext<'_>) -> Result<(), Fault> {
        *sum += tally;
        let request = Request::new("sim/medium", Vec::new(), ResponseFormat::Text);
        let question = Question::new(request).default(Value::Text(String::new()));
        context.ask_all((0..self.1).map(|_| (0, question.clone())).collect()).await;
        Ok(())
    }
}

#[test]
fn a_council_that_asks_without_end_is_stopped() {
    let mut registry = crate::testing::registry();
    registry.cohort_policy::<Choir>(LeafFiles::default());
    let first = |questions: u32| {
        let tree = Node::from_json(&json!({"seed": 6, "rounds": 1, "agents": 3, "world": {"kind": "guess-average"},
            "cohorts": [{"policy": {"kind": "choir", "questions": questions}}]}));
        match assemble(&tree, &registry, &Inputs::default(), Layout::default()) {
            Ok(Assembled::Society(mut society)) => society.poll(Vec::new()),
            _ => panic!("a society was asked for"),
        }
    };
    assert_eq!(first(10_000).unwrap().start.len(), 10_000);
    let refused = first(10_001).unwrap_err().to_string();
    assert!(refused.contains("more than 10000 questions"), "{refused}");
}

#[test]
fn tallies_are_merged_in_one_tree_and_shared_with_every_shard() {
    let mut registry = crate::testing::registry();
    registry.cohort_policy::<Choir>(LeafFiles::default());
    let scenario = json!({"seed": 6, "rounds": 6, "agents": 100_000, "world": {"kind": "guess-average"},
        "cohorts": [{"policy": {"kind": "choir"}}]});
    let open = |shards| {
        let tree = Node::from_json(&scenario);
        match assemble(&tree, &registry, &Inputs::default(), Layout::shards(shards)) {
            Ok(Assembled::Society(society)) => *society,
            _ => panic!("a society was asked for"),
        }
    };
    let to_the_end = |society: &mut Society| loop {
        if let Then::Done(outcome) = society.poll(Vec::new()).unwrap().then {
            return outcome.digest;
        }
    };
    let expected = to_the_end(&mut open(1));
    for shards in [2, 3, 7] {
        assert_eq!(to_the_end(&mut open(shards)), expected, "{shards} shards");
    }
    // Shared state is kept in snapshots, for any number of shards on resume.
    let mut first = open(3);
    for _ in 0..3 {
        assert!(matches!(first.poll(Vec::new()).unwrap().then, Then::Round(_)));
    }
    let saved = first.snapshot().unwrap();
    for shards in [1, 4] {
        let mut second = open(shards);
        second.restore(&saved).unwrap();
        assert_eq!(to_the_end(&mut second), expected, "taken up on {shards} shards");
    }
}

#[test]
fn wrong_requests_are_refused_in_words() {
    let error = |changes: Json| refused(&epidemic(100, archetype(changes)));
    let lag = with(epidemic(100, archetype(json!({}))), json!({"answers": {"lag": 2}}));
    for (got, expected) in [
        (error(json!({"by": [{"column": "aeg"}]})), "did you mean `age`"),
        (error(json!({"by": [{"observation": "helth", "bins": [1]}]})), "did you mean `health`"),
        (error(json!({"by": [{"observation": "health"}]})), "give the boundaries of its levels"),
        (error(json!({"by": [{"observation": "right-isolate", "bins": [1]}]})), "right answers"),
        (error(json!({"by": [{"column": "age", "bins": [65, 18]}]})), "in ascending order"),
        (error(json!({"by": [{"column": "age", "labels": ["young"]}]})), "3 levels"),
        (
            error(json!({"by": [{"column": "age", "observation": "health"}]})),
            "either `column: NAME` or `observation: NAME`",
        ),
        (error(json!({"by": (0..7).map(|_| json!({"column": "age"})).collect::<Vec<_>>()})), "at most 1000"),
        (error(json!({"prompts": {"persona": "{{ person.income }}"}})), "`person.income`, which does not exist"),
        (error(json!({"prompts": {"situation": "{{ obs.prevalance }}"}})), "did you mean `obs.prevalence`"),
        (error(json!({"prompts": {"persona": "{{ obs.right_isolate }}"}})), "which does not exist"),
        (error(json!({"default": {"isolate": "perhaps"}})), "not one of no, yes"),
        (error(json!({"every": 0})), "at least 1"),
        (refused(&guessing(json!({"kind": "archetype", "model": "sim/medium"}))), "samples: 5"),
        (refused(&lag), "the cohort step of the same round"),
        (refused(&guessing(json!({"kind": "sampled", "model": "sim/medium"}))), "no options"),
    ] {
        assert!(got.contains(expected), "{got}\nnot: {expected}");
    }
}

#[test]
fn the_rule_of_sampled_minds_is_what_was_answered() {
    let policy = json!({"kind": "sampled", "model": "sim/medium", "share": 0.2, "refit": 2, "smoothing": 3.0, "default": "no",
        "by": [{"observation": "health", "bins": [2]}]});
    let scenario = epidemic(4000, policy);
    // Most of the ill stay at home, few others; some answers are unusable.
    let answer = |effect: &Effect| match (shown(effect).contains("You are ill"), effect.id.actor % 7) {
        (_, 0) => Outcome::Failed { why: "down".into() },
        (true, n) => says(Value::Choice(u32::from(n != 1))),
        (false, n) => says(Value::Choice(u32::from(n == 1))),
    };
    let (_, rounds, digest) = play(&scenario, 1, answer);
    let mut counts = [[0u32; 2]; 2];
    let mut rule: Option<[f64; 2]> = None;
    let (mut followers, mut fits) = (0, 0);
    for (round, played) in rounds.iter().enumerate() {
        if counts.iter().flatten().any(|n| *n > 0) && (rule.is_none() || round % 2 == 0) {
            let n: u32 = counts.iter().flatten().sum();
            let q = |option: usize| (f64::from(counts[0][option] + counts[1][option]) + 1.0) / (f64::from(n) + 2.0);
            let no = |c: [u32; 2]| (f64::from(c[0]) + 3.0 * q(0)) / (f64::from(c[0] + c[1]) + 3.0);
            rule = Some(counts.map(no));
            fits += 1;
        }
        let asked: BTreeMap<u32, &Effect> = played.asked.iter().map(|effect| (effect.id.actor, effect)).collect();
        for (who, did) in &played.acts {
            let ill = usize::from(played.health[*who as usize] >= 2.0);
            let expected = match asked.get(who).map(|effect| answer(effect)) {
                Some(Outcome::Reply { value: Value::Choice(option), .. }) => {
                    counts[ill][option as usize] += 1;
                    option
                }
                Some(_) => 0,
                None => {
                    followers += 1;
                    let draw = Draws::new(3, Stream::Turn, round as u32, *who).unit();
                    rule.map_or(0, |no| u32::from(draw >= no[ill]))
                }
            };
            assert_eq!(*did, f64::from(expected), "agent {who} in round {round}");
        }
    }
    assert!(followers > 1000 && fits == 3, "{followers}, {fits}");
    assert_eq!(play(&scenario, 3, answer).2, digest, "three shards");
}
