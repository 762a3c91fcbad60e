//! Shared code of the crash tests: scenarios, leaves for tests only, and comparisons of runs.
use polity_driver::drive::{Progress, Stop, Unwatched, Watch};
use polity_driver::results;
use polity_driver::run::{Engine, Prepared, Summary, prepare};
use polity_driver::source::Faults;
use polity_kernel::Invalid;
use polity_kernel::ask::{
    Answer, Ask, ChatMessage, Effect, EffectId, Outcome, Question, Reply, Request, ResponseFormat, Role, Settings,
    Usage, Value,
};
use polity_kernel::event::{Event, Part};
use polity_kernel::interface::{ActionArgument, NumberSlot};
use polity_kernel::method::{Brief, Method, Records, TeamContext, Verdict};
use polity_kernel::policy::{Fault, Person, Policy, PolicySetup, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::tree::Node;
use polity_kernel::world::{
    AgentActions, AskingWorld, DeclareSplit, DeclareWorld, Future, SplitWorld, World, WorldSetup,
};
use polity_models::models::{Answering, Exchange, Provider, Providers};
use polity_store::DriveError;
use polity_store::disk::{Disk, RealDisk};
use polity_store::journal::{JournalError, read_all};
use polity_store::tables::ColumnData;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};

/// Returns an empty folder of this name for a test.
pub fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Returns a number from the environment, which makes a campaign longer than the suite.
pub fn from_env(name: &str, default: u32) -> u32 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

// ------------------------------------------------------------------ leaves

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

/// A policy that asks a model for a number; every third agent asks again once it has heard.
struct Oracle {
    act: u16,
    low: f64,
    high: f64,
}

fn question(turn: &Turn<'_>, high: f64, low: f64, text: String) -> Request {
    let messages = vec![ChatMessage::text(Role::User, text)];
    Request { sample: turn.who, ..Request::new("sim/medium", messages, ResponseFormat::number(low, high)) }
}

impl Policy for Oracle {
    const NAME: &'static str = "oracle";
    const SUMMARY: &'static str = "Ask a model for a number";
    type Params = Nothing;
    /// Turns taken, and the sum of the numbers heard.
    type State = (u32, f64);

    fn open(_: Nothing, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        let (act, low, high) = setup.number_act()?;
        Ok(Oracle { act, low, high })
    }

    fn init_state(&self, _: Person<'_>, draws: &mut Draws) -> (u32, f64) {
        (0, draws.unit())
    }

    async fn act(&self, state: &mut (u32, f64), turn: &mut Turn<'_>) -> Result<(), Fault> {
        let first = question(turn, self.high, self.low, format!("Agent {} guesses in round {}.", turn.who, turn.round));
        let mut heard = number(&turn.ask(first).await.ok());
        if turn.who.is_multiple_of(3) {
            let again = question(turn, self.high, self.low, format!("You said {heard}, after {}. Again?", state.1));
            heard += number(&turn.ask(again).await.ok());
        }
        state.0 += 1;
        state.1 += heard;
        let value = turn.draws.range(self.low, self.high) * 0.5 + heard * 0.25;
        turn.act(self.act, value.clamp(self.low, self.high));
        turn.tell_neighbours(0, heard);
        Ok(())
    }
}

fn number(value: &Option<Value>) -> f64 {
    match value {
        Some(Value::Number(x)) => *x,
        _ => 0.0,
    }
}

/// The options of a [`Chooser`], with characters that are special in grammars and schemas.
pub const OPTIONS: [&str; 5] = ["left", "right", "neither \"of\" them", "back \\ forth | both", "später"];

/// A policy that asks the scenario's model for a choice, retries if the reply does not fit, and performs it.
struct Chooser {
    act: u16,
    model: String,
    settings: Settings,
}

impl Policy for Chooser {
    const NAME: &'static str = "chooser";
    const SUMMARY: &'static str = "Ask a model for a choice";
    type Params = Nothing;
    type State = u32;

    fn open(_: Nothing, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        let (act, ..) = setup.number_act()?;
        Ok(Chooser { act, model: setup.model.unwrap_or_default().to_owned(), settings: setup.settings })
    }

    fn models(&self) -> Vec<String> {
        vec![self.model.clone()]
    }

    fn init_state(&self, _: Person<'_>, _: &mut Draws) -> u32 {
        0
    }

    async fn act(&self, state: &mut u32, turn: &mut Turn<'_>) -> Result<(), Fault> {
        let text = format!("Agent {}, round {}: where to?", turn.who, turn.round);
        let messages = vec![ChatMessage::text(Role::User, text)];
        let response_format = ResponseFormat::Choice(OPTIONS.map(String::from).to_vec());
        let request =
            Request { settings: self.settings, ..Request::new(self.model.clone(), messages, response_format) };
        let question = Question::new(request).retries(2).default(Value::Choice(0));
        *state = match turn.ask(question).await {
            Ok(Value::Choice(i)) => i,
            _ => 0,
        };
        turn.act(self.act, f64::from(*state));
        Ok(())
    }
}

/// A thousand decisions: this many agents, five rounds.
pub fn choosers(model: &str, settings: serde_json::Value) -> serde_json::Value {
    json!({
        "name": "choosers", "seed": 5, "rounds": 5, "agents": 200,
        "world": {"kind": "guess-average"},
        "cohorts": [{"name": "all", "share": 1.0, "policy": {"kind": "chooser"}}],
        "model": model,
        "settings": settings,
    })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Asking {
    model: String,
    /// Whether all ask the same question.
    alike: bool,
}

/// Asks a model for a number; even agents ask twice.
struct Asker {
    alike: bool,
    act: u16,
    model: String,
    settings: Settings,
}

impl Policy for Asker {
    const NAME: &'static str = "asker";
    const SUMMARY: &'static str = "Ask a model for a number";
    type Params = Asking;
    type State = f64;

    fn open(params: Asking, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        let (act, ..) = setup.number_act()?;
        let Asking { model, alike } = params;
        Ok(Asker { alike, act, model, settings: setup.settings })
    }

    fn models(&self) -> Vec<String> {
        vec![self.model.clone()]
    }

    fn init_state(&self, _: Person<'_>, _: &mut Draws) -> f64 {
        0.0
    }

    async fn act(&self, state: &mut f64, turn: &mut Turn<'_>) -> Result<(), Fault> {
        let who = if self.alike { 0 } else { turn.who };
        for n in 0..=u32::from(turn.who.is_multiple_of(2)) {
            let text = format!("Agent {who} guesses in round {} for the time {n}.", turn.round);
            let messages = vec![ChatMessage::text(Role::User, text)];
            let request = Request::new(self.model.clone(), messages, ResponseFormat::number(0.0, 100.0));
            let heard = turn.ask(Request { settings: self.settings, ..request }).await;
            if let Ok(Value::Number(x)) = heard {
                *state = x;
            }
        }
        turn.act(self.act, *state);
        Ok(())
    }
}

/// A world with births and deaths.
struct Village;

impl SplitWorld for Village {
    const NAME: &'static str = "village";
    const SUMMARY: &'static str = "Agents are born and die";
    type Params = Nothing;
    type Row = f64;
    type Common = f64;
    type Tally = f64;

    fn open(_: Nothing, _: &WorldSetup<'_>, declare: &mut DeclareSplit<Self>) -> Result<Self, Invalid> {
        declare.shared_number("sum", "sum of all acts", |_, sum| *sum);
        declare.action("work", ActionArgument::Number { low: 0.0, high: 1.0 }, "work");
        declare.column("wealth", "what the agent has earned", None, |_, _, wealth| *wealth);
        declare.scalar("sum", "sum of all acts", |_, sum| *sum);
        Ok(Village)
    }

    fn init_common(&self) -> f64 {
        0.0
    }

    fn init_row(&self, _: Person<'_>, draws: &mut Draws) -> f64 {
        draws.unit()
    }

    fn tally(&self) -> f64 {
        0.0
    }

    fn apply(&self, _: &f64, row: &mut f64, actions: &AgentActions<'_>, tally: &mut f64, future: &mut Future) {
        for act in actions.acts() {
            *row += act.value;
            *tally += act.value;
        }
        let fate = actions.draws().unit();
        if fate < 0.05 {
            future.death(actions.person.id);
        } else if fate < 0.15 {
            future.birth(actions.person.id);
        }
    }

    fn merge(&self, left: f64, right: f64) -> f64 {
        left + right
    }

    fn end_round(&self, common: &mut f64, tally: f64, _: &mut Draws) -> Option<String> {
        *common += tally;
        // Ends before the planned number of rounds, as a world may.
        (*common > 150.0).then(|| "the village is rich".into())
    }
}

/// A world whose agents see how many acted before them in the round: shared state in one place.
struct Counter;

impl World for Counter {
    const NAME: &'static str = "counter";
    const SUMMARY: &'static str = "How many acted before";
    type Params = Nothing;
    /// Number of agents that have acted in this round, the values of all acts so far, and each agent's last one.
    type State = (u32, f64, Vec<f64>);

    fn open(_: Nothing, _: &WorldSetup<'_>, declare: &mut DeclareWorld<Self>) -> Result<Self, Invalid> {
        let doc = "agents that acted before in this round";
        declare.number("before", doc, |_, state, _| f64::from(state.0));
        declare.action("say", ActionArgument::Number { low: 0.0, high: 1e9 }, "say");
        declare.column("said", "what the agent said last", None, |_, state, who| state.2[*who as usize]);
        declare.scalar("sum", "sum of all acts", |_, state| state.1);
        declare.random_order();
        Ok(Counter)
    }

    fn init_state(&self, setup: &WorldSetup<'_>, _: &mut Draws) -> (u32, f64, Vec<f64>) {
        (0, 0.0, vec![0.0; setup.agents as usize])
    }

    fn apply(&self, state: &mut (u32, f64, Vec<f64>), actions: &AgentActions<'_>, _: &mut Future) {
        state.0 += 1;
        for act in actions.acts() {
            // Depends on the order.
            state.1 = (state.1 + act.value) * 0.5;
            state.2[actions.person.id as usize] = act.value;
        }
    }

    fn end_round(&self, state: &mut (u32, f64, Vec<f64>), _: &mut Draws) -> Option<String> {
        state.0 = 0;
        None
    }
}

/// A world that asks models itself: an agent sees the answer to the question in its name.
struct Curious;

/// Rounds so far, the last answer in the name of each agent, and the sum of all acts.
type Told = (u32, Vec<f64>, f64);

impl World for Curious {
    const NAME: &'static str = "curious";
    const SUMMARY: &'static str = "A world that asks";
    type Params = Nothing;
    type State = Told;

    fn open(_: Nothing, _: &WorldSetup<'_>, declare: &mut DeclareWorld<Self>) -> Result<Self, Invalid> {
        declare.number("before", "what was told last", |_, state, who| state.1[*who as usize]);
        declare.action("say", ActionArgument::Number { low: 0.0, high: 1e9 }, "say");
        declare.column("told", "what was told last", None, |_, state, who| state.1[*who as usize]);
        declare.scalar("sum", "sum of all acts", |_, state| state.2);
        Ok(Curious)
    }

    fn init_state(&self, setup: &WorldSetup<'_>, _: &mut Draws) -> Told {
        (0, vec![0.0; setup.agents as usize], 0.0)
    }

    fn apply(&self, state: &mut Told, actions: &AgentActions<'_>, _: &mut Future) {
        for act in actions.acts() {
            state.2 = (state.2 + act.value) * 0.5;
        }
    }

    fn end_round(&self, state: &mut Told, _: &mut Draws) -> Option<String> {
        state.0 += 1;
        None
    }
}

impl AskingWorld for Curious {
    type Learnt = Vec<Reply>;

    fn models(&self) -> Vec<(String, ResponseFormat)> {
        vec![("sim/medium".into(), ResponseFormat::number(0.0, 100.0)), ("sim/medium".into(), ResponseFormat::Vector)]
    }

    /// In the names of every second agent and once more of the first, with a vector among the numbers; in every fourth round nothing.
    async fn query(&self, state: &Told, ask: &mut Ask<'_>) -> Vec<Reply> {
        let (round, told, sum) = state;
        let question = |(i, who): (usize, u32)| {
            let response_format = if i == 2 { ResponseFormat::Vector } else { ResponseFormat::number(0.0, 100.0) };
            let text = format!("round {round}, agent {who}, question {i}, sum {sum}, told {}", told[who as usize]);
            let request = Request::new("sim/medium", vec![ChatMessage::text(Role::User, text)], response_format);
            (who, Question::new(request).retries(1).default(Value::Number(0.5)))
        };
        let whom = (0..told.len() as u32).step_by(2).chain([0]);
        if round % 4 == 3 { Vec::new() } else { ask.ask_all(whom.enumerate().map(question).collect()).await }
    }

    fn on_answers(&self, state: &mut Told, heard: Vec<Reply>) {
        if heard.is_empty() {
            return;
        }
        assert_eq!(heard.len(), state.1.len().div_ceil(2) + 1, "every question ends");
        for (i, heard) in heard.into_iter().enumerate() {
            let who = if 2 * i < state.1.len() { 2 * i } else { 0 };
            state.1[who] = match heard.unwrap_or(Value::Number(0.5)) {
                Value::Number(x) => x,
                Value::Vector(vector) => f64::from(vector.iter().map(|x| x.abs()).sum::<f32>()),
                other => panic!("{other:?} was not asked for"),
            };
        }
    }
}

/// A policy that repeats what it sees.
struct Echo {
    before: NumberSlot,
    act: u16,
}

impl Policy for Echo {
    const NAME: &'static str = "echo";
    const SUMMARY: &'static str = "Say how many acted before";
    type Params = Nothing;
    type State = ();

    fn open(_: Nothing, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        Ok(Echo { before: setup.number("before")?, act: setup.number_act()?.0 })
    }

    fn init_state(&self, _: Person<'_>, _: &mut Draws) {}

    async fn act(&self, _: &mut (), turn: &mut Turn<'_>) -> Result<(), Fault> {
        let before = turn.observation.number(self.before);
        turn.act(self.act, before);
        Ok(())
    }
}

/// A method: everybody answers, hears the others, and answers again.
struct CohortPolicy {
    rounds: u32,
    loud: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CouncilParams {
    /// Whether members are told to be confident.
    loud: bool,
}

impl Default for CouncilParams {
    fn default() -> Self {
        CouncilParams { loud: true }
    }
}

impl Method for CohortPolicy {
    const NAME: &'static str = "council";
    const SUMMARY: &'static str = "Answer, listen, answer again";
    const RECORDS: &'static [Records] = &[Records { name: "answer", doc: "a member's answer" }];
    type Params = CouncilParams;

    fn open(params: CouncilParams, _: usize, rounds: u32) -> Result<Self, Invalid> {
        Ok(CohortPolicy { rounds, loud: params.loud })
    }

    async fn run(&self, context: &mut TeamContext<'_>) -> Result<Verdict, Fault> {
        let mut standing: Vec<String> = context.restore()?.unwrap_or_default();
        let mood = if self.loud { "Be sure." } else { "Be careful." };
        while context.round() < self.rounds {
            let asks = (0..context.team.len())
                .map(|member| {
                    let text = format!("{} {mood} So far: {}", context.item.question, standing.join(", "));
                    Brief::new(member, vec![ChatMessage::text(Role::User, text)], ResponseFormat::Text)
                })
                .collect();
            let heard = context.ask_all(asks).await;
            standing =
                heard.iter().map(|h| h.as_ref().ok().and_then(Value::as_text).unwrap_or("?").to_string()).collect();
            for (member, answer) in standing.iter().enumerate() {
                context.record(member, 0, answer.clone());
                context.tell(member, (member + 1) % standing.len(), answer.clone());
            }
            context.end_round(&standing).await?;
        }
        Ok(Verdict { answer: standing.first().cloned() })
    }
}

/// The catalogue and the leaves above.
pub fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(leaves)
}

/// The same, for a test that adds its own leaves.
pub fn leaves() -> Registry {
    let mut registry = polity::registry();
    registry.policy::<Chooser>(LeafFiles::default());
    registry.policy::<Oracle>(LeafFiles::default());
    registry.policy::<Asker>(LeafFiles::default());
    registry.split_world::<Village>(LeafFiles::default());
    registry.world::<Counter>(LeafFiles::default());
    registry.asking_world::<Curious>(LeafFiles::default());
    registry.policy::<Echo>(LeafFiles::default());
    registry.method::<CohortPolicy>(LeafFiles::default());
    registry
}

// ------------------------------------------------------------------ scenarios

/// Rules only. Also YAML, since JSON is YAML.
pub fn rules(agents: u32, rounds: u32) -> serde_json::Value {
    json!({
        "name": "rules", "seed": 7, "rounds": rounds, "agents": agents,
        "world": {"kind": "guess-average", "fraction": 0.6},
        "cohorts": [
            {"name": "thinkers", "share": 0.7, "policy": {"kind": "level-k", "noise": 0.02}},
            {"name": "learners", "share": 0.3, "policy": {"kind": "adaptive"}},
        ],
        "metrics": [{"kind": "mean", "of": "guess"}],
        "snapshot": {"rounds": 2},
    })
}

/// A society that asks; `lag` 0: answers hold the barrier.
pub fn oracles(agents: u32, rounds: u32, lag: u32) -> serde_json::Value {
    let mut scenario = json!({
        "name": "oracles", "seed": 3, "rounds": rounds, "agents": agents,
        "world": {"kind": "guess-average"},
        "cohorts": [
            {"name": "askers", "share": 0.6, "policy": {"kind": "oracle"}},
            {"name": "guessers", "share": 0.4, "policy": {"kind": "noise"}},
        ],
        "topology": {"kind": "ring", "neighbours": 2},
        "record": {"messages": true},
        "snapshot": {"rounds": 2},
    });
    if lag > 0 {
        scenario["answers"] = json!({"lag": lag});
    }
    scenario
}

/// Agents that act one after the other; most ask a model first.
pub fn in_order(agents: u32, rounds: u32) -> serde_json::Value {
    json!({
        "name": "in-order", "seed": 13, "rounds": rounds, "agents": agents,
        "world": {"kind": "counter"},
        "cohorts": [
            {"name": "askers", "share": 0.6, "policy": {"kind": "oracle"}},
            {"name": "counters", "share": 0.4, "policy": {"kind": "echo"}},
        ],
        "topology": {"kind": "ring", "neighbours": 2},
        "record": {"messages": true},
        "snapshot": {"rounds": 2},
    })
}

/// A world that asks before its agents do.
pub fn curious(agents: u32, rounds: u32) -> serde_json::Value {
    json!({
        "name": "curious", "seed": 21, "rounds": rounds, "agents": agents,
        "world": {"kind": "curious"},
        "cohorts": [
            {"name": "askers", "share": 0.4, "policy": {"kind": "oracle"}},
            {"name": "echoes", "share": 0.6, "policy": {"kind": "echo"}},
        ],
        "topology": {"kind": "ring", "neighbours": 2},
        "record": {"messages": true},
        "snapshot": {"rounds": 2},
    })
}

/// A society that asks a model with a declared price.
pub fn askers(model: &str, agents: u32, rounds: u32, alike: bool) -> serde_json::Value {
    json!({
        "name": "askers", "seed": 3, "rounds": rounds, "agents": agents,
        "world": {"kind": "guess-average"},
        "cohorts": [{"name": "all", "share": 1.0, "policy": {"kind": "asker", "model": model, "alike": alike}}],
        "settings": {"max_tokens": 40},
        "model": model,
        // The mock server's own prices.
        "prices": {model: {"input": 0.15, "output": 0.6}},
        "snapshot": {"rounds": 1},
    })
}

/// Births, deaths, and an end before the planned one.
pub fn village(agents: u32, rounds: u32) -> serde_json::Value {
    json!({
        "name": "village", "seed": 5, "rounds": rounds, "agents": agents,
        "world": {"kind": "village"},
        "cohorts": [{"name": "all", "share": 1.0, "policy": {"kind": "noise"}}],
        "snapshot": {"rounds": 2},
    })
}

/// A platform whose posts are live for a few rounds, with long posts from outside: most of its state is unchanged between snapshots.
pub fn platform(agents: u32, rounds: u32) -> serde_json::Value {
    let text = |i: u32| (0..900).map(|n| format!("{}", n * 7919 * (i + 1) % 100_003)).collect::<Vec<_>>().join(" ");
    let seed = |i: u32| json!({"author": i, "at": i % rounds, "text": text(i)});
    json!({
        "name": "platform", "seed": 8, "rounds": rounds, "agents": agents,
        "topology": {"kind": "erdos-renyi", "mean_degree": 8},
        "world": {
            "kind": "platform", "live": agents / 2, "candidates": 30, "feed": 8, "hours": vec![0.2; 24], "influence": true,
            "seeds": (0..4 * rounds).map(seed).collect::<Vec<_>>(),
        },
        "cohorts": [{"policy": {"kind": "user", "share": 0.05}}],
        "snapshot": {"rounds": 2},
    })
}

/// A team on a data set, with this method; the data set is written into `folder`.
pub fn team(folder: &Path, method: &str, items: u32, rounds: u32) -> serde_json::Value {
    let mut lines = String::new();
    for i in 0..items {
        let difficulty = f64::from(i % 5) * 0.5 - 1.0;
        let row = json!({"question": format!("What is {i} plus {i}?"), "answer": format!("{}", 2 * i), "difficulty": difficulty});
        writeln!(lines, "{row}").unwrap();
    }
    std::fs::write(folder.join("items.jsonl"), lines).unwrap();
    json!({
        "name": "team", "seed": 11, "rounds": rounds, "agents": 3, "model": "sim/medium",
        "method": {"kind": method},
        "items": {"file": "items.jsonl", "answer": "answer", "difficulty": "difficulty"},
        "max_concurrent": 4,
        "record": {"messages": true},
        "snapshot": {"rounds": 1},
    })
}

/// A scenario with its inputs from `folder`.
pub fn prepared(scenario: &serde_json::Value, folder: &Path) -> Prepared {
    prepare(Node::from_json(scenario), "test.yaml", folder, "test", Vec::new()).unwrap()
}

/// A provider without price or latency. Its replies are a function of the effect and the seed of the run.
pub struct Scripted<F> {
    pub name: &'static str,
    pub answer: F,
}

impl<F: Fn(&Effect, u64) -> Exchange + Send + Sync> Provider for Scripted<F> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn models(&self) -> Vec<String> {
        vec![format!("{}/one", self.name)]
    }

    fn check(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn most(&self, _: &Request) -> Usage {
        Usage::default()
    }

    fn simulated(&self) -> bool {
        true
    }

    fn answer<'a>(&'a self, effect: &'a Effect, seed: u64) -> Answering<'a> {
        Box::pin(async move { Ok((self.answer)(effect, seed)) })
    }
}

/// A free reply.
pub fn replied(value: Value, raw: impl Into<String>) -> Exchange {
    Exchange {
        outcome: Outcome::Reply { value, raw: raw.into(), repaired: false },
        usage: Usage::default(),
        reasoning: None,
    }
}

/// An engine on a disk, with the leaves of this file.
pub fn engine(disk: Arc<dyn Disk>, shards: usize, faults: Option<Faults>) -> Engine<'static> {
    Engine {
        registry: registry(),
        providers: Arc::new(Providers::standard()),
        disk,
        spread: None,
        shards,
        connections: 100,
        memory: None,
        budget: Default::default(),
        outside: Default::default(),
        faults,
        stop: Stop::default(),
        asks: true,
    }
}

/// Runs in `out`.
pub fn run(engine: &Engine<'_>, prepared: &Prepared, out: &Path) -> Result<Summary, DriveError> {
    engine.run(prepared, out, &mut Unwatched)
}

/// Asks a run to stop once this many rounds are complete, at a moment when it waits for nobody.
pub struct StopAfter(pub u32, pub Stop);

impl Watch for StopAfter {
    fn progress(&mut self, progress: &Progress) {
        if progress.rounds >= self.0 && progress.waiting.is_none() {
            self.1.ask();
        }
    }
}

/// Resumes `out`.
pub fn resume(engine: &Engine<'_>, out: &Path) -> Result<Summary, DriveError> {
    engine.resume(out, &mut Unwatched)
}

/// Replays `out`.
pub fn replay(engine: &Engine<'_>, out: &Path) -> Result<Summary, DriveError> {
    engine.replay(out, &mut Unwatched)
}

// ------------------------------------------------------------------ comparing

/// Tables by name, columns in order, without those that may differ between runs.
pub type Tables = BTreeMap<String, Vec<(String, ColumnData)>>;

/// All tables of a run.
pub fn tables(disk: &dyn Disk, run: &Path) -> Tables {
    let reader = results::open(disk, run).unwrap_or_else(|error| panic!("{error}"));
    let stable = |name: &str| reader.stable(name).unwrap_or_else(|error| panic!("{error}"));
    reader.names().into_iter().map(|name| (name.clone(), stable(&name))).collect()
}

/// Reports which column differs, instead of all contents.
pub fn assert_same_tables(found: &Tables, expected: &Tables, what: &str) {
    let names = |tables: &Tables| tables.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(found), names(expected), "{what}: the tables");
    for (name, columns) in expected {
        for ((column, values), (other, theirs)) in columns.iter().zip(&found[name]) {
            assert_eq!(column, other, "{what}: columns of {name}");
            assert_eq!(values.rows(), theirs.rows(), "{what}: rows of {name}.{column}");
            assert!(values == theirs, "{what}: {name}.{column} differs");
        }
        assert_eq!(columns.len(), found[name].len(), "{what}: columns of {name}");
    }
}

/// Returns the records of a run's journal, and whether its end is torn.
pub fn events(disk: Arc<dyn Disk>, run: &Path) -> Result<(Vec<Event>, bool), JournalError> {
    let (records, end) = read_all(disk, &run.join("journal"))?;
    Ok((records.iter().map(|(kind, payload)| Event::decode(*kind, payload).unwrap()).collect(), end.torn()))
}

/// Removes everything from a run's folder that its journal does not record, after a journal was cut: the folder then looks as if the
/// process had been killed where the journal ends.
pub fn forget_the_unrecorded(run: &Path) {
    let (events, _) = events(Arc::new(RealDisk), run).unwrap();
    let parts = events.iter().flat_map(|event| match event {
        Event::Snapshot { parts, .. } | Event::Ended { parts, .. } => parts.as_slice(),
        _ => &[],
    });
    let named = |part: &Part| format!("{}/part-{:06}-{:06}.parquet", part.table, part.first, part.last);
    let recorded: Vec<String> = parts.map(named).collect();
    for table in RealDisk.list(&run.join("tables")).unwrap() {
        for part in RealDisk.list(&run.join("tables").join(&table)).unwrap() {
            let part = format!("{table}/{part}");
            if !recorded.contains(&part) {
                std::fs::remove_file(run.join("tables").join(part)).unwrap();
            }
        }
    }
}

/// Returns the answers among records; an effect may have several.
pub fn answers(events: &[Event]) -> BTreeMap<EffectId, Vec<Answer>> {
    let mut by_id: BTreeMap<EffectId, Vec<Answer>> = BTreeMap::new();
    for event in events {
        if let Event::Answers(answers) = event {
            answers.iter().for_each(|answer| by_id.entry(answer.id).or_default().push(answer.clone()));
        }
    }
    by_id
}

/// Checks that nothing answered before a resume was asked again, and nothing was asked twice.
pub fn assert_asked_once(before: &[Event], after: &[Event], what: &str) {
    let (before, after) = (answers(before), answers(after));
    for (id, answers) in &after {
        assert_eq!(answers.len(), 1, "{what}: effect {id} was asked {} times", answers.len());
    }
    for (id, answers) in before {
        assert_eq!(Some(&answers), after.get(&id), "{what}: the answer to effect {id} was kept");
    }
}

// ------------------------------------------------------------------ the command

/// The output of a process.
#[derive(Debug)]
pub struct Said {
    /// Its exit code; `None` when it was killed.
    pub code: Option<i32>,
    /// The object on the last line of standard output.
    pub json: serde_json::Value,
    /// Standard error.
    pub notes: String,
}

impl Said {
    /// Returns a text of the object.
    pub fn text(&self, key: &str) -> &str {
        self.json[key].as_str().unwrap_or_else(|| panic!("no {key} in {self:?}"))
    }
}

/// The command with arguments; streams are piped.
pub fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_polity"));
    command.args(args).args(["--json", "--no-report", "--threads", "2"]);
    command.env_remove("POLITY_OUT").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Collects the output of an ended process.
pub fn said(output: &std::process::Output) -> Said {
    let text = String::from_utf8_lossy(&output.stdout);
    let last = text.lines().last().unwrap_or_default();
    Said {
        code: output.status.code(),
        json: serde_json::from_str(last).unwrap_or_default(),
        notes: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Runs the command to its end.
pub fn polity(args: &[&str]) -> Said {
    said(&command(args).output().unwrap())
}

/// Runs `polity verify` on a folder.
pub fn verify(folder: &Path) -> Said {
    let mut command = Command::new(env!("CARGO_BIN_EXE_polity"));
    said(&command.args(["verify", arg(folder), "--json"]).output().unwrap())
}

/// Copies a folder, replacing the target.
pub fn copy_folder(from: &Path, to: &Path) {
    let _ = std::fs::remove_dir_all(to);
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy_folder(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).unwrap()),
        }
    }
}

/// Returns the files below a folder with their contents.
pub fn contents(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
        match entry.path().is_dir() {
            true => found.extend(contents(&entry.path())),
            false => drop(found.insert(entry.path(), std::fs::read(entry.path()).unwrap())),
        }
    }
    found
}

/// Writes a scenario as a file.
pub fn write_scenario(folder: &Path, scenario: &serde_json::Value) -> PathBuf {
    let path = folder.join("scenario.yaml");
    std::fs::write(&path, serde_json::to_string_pretty(scenario).unwrap()).unwrap();
    path
}

/// A path as an argument.
pub fn arg(path: &Path) -> &str {
    path.to_str().unwrap()
}
