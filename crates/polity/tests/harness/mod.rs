//! What the tests of crashes share: scenarios, leaves that only tests have, and ways to compare runs.
use polity_driver::disk::{Disk, RealDisk};
use polity_driver::drive::{Progress, Stop, Unwatched, Watch};
use polity_driver::journal::{JournalError, read_all};
use polity_driver::models::Providers;
use polity_driver::results;
use polity_driver::run::{Engine, Prepared, prepare};
use polity_driver::source::Faults;
use polity_driver::tables::ColumnData;
use polity_driver::{DriveError, run::Summary};
use polity_kernel::Invalid;
use polity_kernel::ask::{Answer, EffectId, Message, Request, Role, Settings, Value, Want};
use polity_kernel::declare::{DeclareSplit, DeclareWorld};
use polity_kernel::event::{Event, Part};
use polity_kernel::ladder::{Question, Settled};
use polity_kernel::method::{Brief, Desk, Method, Records, Verdict};
use polity_kernel::policy::{Binding, Fault, Person, Policy, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::sight::{ActArgument, NumberSlot};
use polity_kernel::tree::Node;
use polity_kernel::world::{Activation, Deeds, Future, Setup, SplitWorld, World};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};

/// An empty folder of this name, in which a test works.
pub fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// A number from the environment, which makes a campaign longer than the suite.
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
    let messages = vec![Message::text(Role::User, text)];
    Request { sample: turn.who, ..Request::new("sim/medium", messages, Want::number(low, high)) }
}

impl Policy for Oracle {
    const NAME: &'static str = "oracle";
    const SUMMARY: &'static str = "Ask a model for a number";
    type Params = Nothing;
    /// Turns taken, and the sum of what was heard.
    type State = (u32, f64);

    fn open(_: Nothing, binding: &Binding<'_>) -> Result<Self, Invalid> {
        let (act, low, high) = binding.number_act()?;
        Ok(Oracle { act, low, high })
    }

    fn born(&self, _: Person<'_>, draws: &mut Draws) -> (u32, f64) {
        (0, draws.unit())
    }

    async fn act(&self, state: &mut (u32, f64), turn: &mut Turn<'_>) -> Result<(), Fault> {
        let first = question(turn, self.high, self.low, format!("Agent {} guesses in round {}.", turn.who, turn.round));
        let mut heard = number(&turn.ask(first, None).await.ok());
        if turn.who.is_multiple_of(3) {
            let again = question(turn, self.high, self.low, format!("You said {heard}, after {}. Again?", state.1));
            heard += number(&turn.ask(again, None).await.ok());
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

/// The options of a [`Chooser`]: with signs that grammars and schemas have a use for.
pub const OPTIONS: [&str; 5] = ["left", "right", "neither \"of\" them", "back \\ forth | both", "später"];

/// A policy that asks the scenario's model for a choice, again where the reply does not fit, and does what comes of it.
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

    fn open(_: Nothing, binding: &Binding<'_>) -> Result<Self, Invalid> {
        let (act, ..) = binding.number_act()?;
        Ok(Chooser { act, model: binding.model.unwrap_or_default().to_owned(), settings: binding.settings })
    }

    fn models(&self) -> Vec<String> {
        vec![self.model.clone()]
    }

    fn born(&self, _: Person<'_>, _: &mut Draws) -> u32 {
        0
    }

    async fn act(&self, state: &mut u32, turn: &mut Turn<'_>) -> Result<(), Fault> {
        let text = format!("Agent {}, round {}: where to?", turn.who, turn.round);
        let messages = vec![Message::text(Role::User, text)];
        let want = Want::Choice(OPTIONS.map(String::from).to_vec());
        let request = Request { settings: self.settings, ..Request::new(self.model.clone(), messages, want) };
        let question = Question { request, hidden: None, again: 2, default: Value::Choice(0) };
        for settled in turn.settle_all(vec![question]).await {
            if let Value::Choice(i) = settled.value {
                *state = i;
            }
        }
        turn.act(self.act, f64::from(*state));
        Ok(())
    }
}

/// A thousand decisions: so many agents, five rounds.
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
    /// Whether all ask the same.
    alike: bool,
}

/// Asks a model for a number, twice if it is an even agent.
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

    fn open(params: Asking, binding: &Binding<'_>) -> Result<Self, Invalid> {
        let (act, ..) = binding.number_act()?;
        let Asking { model, alike } = params;
        Ok(Asker { alike, act, model, settings: binding.settings })
    }

    fn models(&self) -> Vec<String> {
        vec![self.model.clone()]
    }

    fn born(&self, _: Person<'_>, _: &mut Draws) -> f64 {
        0.0
    }

    async fn act(&self, state: &mut f64, turn: &mut Turn<'_>) -> Result<(), Fault> {
        let who = if self.alike { 0 } else { turn.who };
        for n in 0..=u32::from(turn.who.is_multiple_of(2)) {
            let text = format!("Agent {who} guesses in round {} for the time {n}.", turn.round);
            let messages = vec![Message::text(Role::User, text)];
            let request = Request::new(self.model.clone(), messages, Want::number(0.0, 100.0));
            let heard = turn.ask(Request { settings: self.settings, ..request }, None).await;
            if let Ok(Value::Number(x)) = heard {
                *state = x;
            }
        }
        turn.act(self.act, *state);
        Ok(())
    }
}

/// A world of births and deaths.
struct Village;

impl SplitWorld for Village {
    const NAME: &'static str = "village";
    const SUMMARY: &'static str = "Agents are born and die";
    type Params = Nothing;
    type Row = f64;
    type Common = f64;
    type Tally = f64;

    fn open(_: Nothing, _: &Setup<'_>, declare: &mut DeclareSplit<Self>) -> Result<Self, Invalid> {
        declare.shared_number("sum", "sum of all acts", |_, sum| *sum);
        declare.action("work", ActArgument::Number { low: 0.0, high: 1.0 }, "work");
        declare.column("wealth", "what the agent has earned", None, |_, _, wealth| *wealth);
        declare.scalar("sum", "sum of all acts", |_, sum| *sum);
        Ok(Village)
    }

    fn begin(&self) -> f64 {
        0.0
    }

    fn seat(&self, _: Person<'_>, draws: &mut Draws) -> f64 {
        draws.unit()
    }

    fn tally(&self) -> f64 {
        0.0
    }

    fn apply(&self, _: &f64, row: &mut f64, deeds: &Deeds<'_>, tally: &mut f64, future: &mut Future) {
        for act in deeds.acts() {
            *row += act.value;
            *tally += act.value;
        }
        let fate = deeds.draws().unit();
        if fate < 0.05 {
            future.death(deeds.person.id);
        } else if fate < 0.15 {
            future.birth(deeds.person.id);
        }
    }

    fn merge(&self, left: f64, right: f64) -> f64 {
        left + right
    }

    fn settle(&self, common: &mut f64, tally: f64, _: &mut Draws) -> Option<String> {
        *common += tally;
        // Ends before the planned number of rounds, as a world may.
        (*common > 150.0).then(|| "the village is rich".into())
    }
}

/// A world whose agents see how many acted before them in the round: one place for everybody.
struct Counter;

impl World for Counter {
    const NAME: &'static str = "counter";
    const SUMMARY: &'static str = "How many acted before";
    type Params = Nothing;
    /// Those who have acted in this round, the values of all acts so far, and each agent's last one.
    type State = (u32, f64, Vec<f64>);

    fn open(_: Nothing, _: &Setup<'_>, declare: &mut DeclareWorld<Self>) -> Result<Self, Invalid> {
        let doc = "agents that acted before in this round";
        declare.number("before", doc, |_, state, _| f64::from(state.0));
        declare.action("say", ActArgument::Number { low: 0.0, high: 1e9 }, "say");
        declare.column("said", "what the agent said last", None, |_, state, who| state.2[*who as usize]);
        declare.scalar("sum", "sum of all acts", |_, state| state.1);
        Ok(Counter)
    }

    fn activation(&self) -> Activation {
        Activation::RandomOrder
    }

    fn begin(&self, setup: &Setup<'_>, _: &mut Draws) -> (u32, f64, Vec<f64>) {
        (0, 0.0, vec![0.0; setup.agents as usize])
    }

    fn apply(&self, state: &mut (u32, f64, Vec<f64>), deeds: &Deeds<'_>, _: &mut Future) {
        state.0 += 1;
        for act in deeds.acts() {
            // Depends on the order.
            state.1 = (state.1 + act.value) * 0.5;
            state.2[deeds.person.id as usize] = act.value;
        }
    }

    fn settle(&self, state: &mut (u32, f64, Vec<f64>), _: &mut Draws) -> Option<String> {
        state.0 = 0;
        None
    }
}

/// A world that asks models itself: what it was told in the name of an agent is what that agent sees.
struct Curious;

/// Rounds so far, what was told last in the name of each agent, and the sum of all acts.
type Told = (u32, Vec<f64>, f64);

impl World for Curious {
    const NAME: &'static str = "curious";
    const SUMMARY: &'static str = "A world that asks";
    type Params = Nothing;
    type State = Told;

    fn open(_: Nothing, _: &Setup<'_>, declare: &mut DeclareWorld<Self>) -> Result<Self, Invalid> {
        declare.number("before", "what was told last", |_, state, who| state.1[*who as usize]);
        declare.action("say", ActArgument::Number { low: 0.0, high: 1e9 }, "say");
        declare.column("told", "what was told last", None, |_, state, who| state.1[*who as usize]);
        declare.scalar("sum", "sum of all acts", |_, state| state.2);
        Ok(Curious)
    }

    fn begin(&self, setup: &Setup<'_>, _: &mut Draws) -> Told {
        (0, vec![0.0; setup.agents as usize], 0.0)
    }

    fn models(&self) -> Vec<(String, Want)> {
        vec![("sim/medium".into(), Want::number(0.0, 100.0)), ("sim/medium".into(), Want::Vector)]
    }

    /// In the names of every second agent and once more of the first, a vector among the numbers; in every fourth round nothing.
    fn inquire(&self, state: &Told) -> Vec<(u32, Question)> {
        let (round, told, sum) = state;
        let question = |(i, who): (usize, u32)| {
            let want = if i == 2 { Want::Vector } else { Want::number(0.0, 100.0) };
            let text = format!("round {round}, agent {who}, question {i}, sum {sum}, told {}", told[who as usize]);
            let request = Request::new("sim/medium", vec![Message::text(Role::User, text)], want);
            (who, Question { request, hidden: None, again: 1, default: Value::Number(0.5) })
        };
        let whom = (0..told.len() as u32).step_by(2).chain([0]);
        if round % 4 == 3 { Vec::new() } else { whom.enumerate().map(question).collect() }
    }

    fn learn(&self, state: &mut Told, ends: Vec<Settled>) {
        assert_eq!(ends.len(), state.1.len().div_ceil(2) + 1, "every question ends");
        for (i, end) in ends.into_iter().enumerate() {
            let who = if 2 * i < state.1.len() { 2 * i } else { 0 };
            state.1[who] = match end.value {
                Value::Number(x) => x,
                Value::Vector(vector) => f64::from(vector.iter().map(|x| x.abs()).sum::<f32>()),
                other => panic!("{other:?} was not asked for"),
            };
        }
    }

    fn apply(&self, state: &mut Told, deeds: &Deeds<'_>, _: &mut Future) {
        for act in deeds.acts() {
            state.2 = (state.2 + act.value) * 0.5;
        }
    }

    fn settle(&self, state: &mut Told, _: &mut Draws) -> Option<String> {
        state.0 += 1;
        None
    }
}

/// A policy that says what it sees.
struct Echo {
    before: NumberSlot,
    act: u16,
}

impl Policy for Echo {
    const NAME: &'static str = "echo";
    const SUMMARY: &'static str = "Say how many acted before";
    type Params = Nothing;
    type State = ();

    fn open(_: Nothing, binding: &Binding<'_>) -> Result<Self, Invalid> {
        Ok(Echo { before: binding.number("before")?, act: binding.number_act()?.0 })
    }

    fn born(&self, _: Person<'_>, _: &mut Draws) {}

    async fn act(&self, _: &mut (), turn: &mut Turn<'_>) -> Result<(), Fault> {
        let before = turn.sight.number(self.before);
        turn.act(self.act, before);
        Ok(())
    }
}

/// A method: everybody answers, hears the others, and answers again.
struct Council {
    rounds: u32,
    loud: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CouncilParams {
    /// Whether members are told to be sure of themselves.
    loud: bool,
}

impl Default for CouncilParams {
    fn default() -> Self {
        CouncilParams { loud: true }
    }
}

impl Method for Council {
    const NAME: &'static str = "council";
    const SUMMARY: &'static str = "Answer, listen, answer again";
    const RECORDS: &'static [Records] = &[Records { name: "answer", doc: "a member's answer" }];
    type Params = CouncilParams;

    fn open(params: CouncilParams, _: usize, rounds: u32) -> Result<Self, Invalid> {
        Ok(Council { rounds, loud: params.loud })
    }

    async fn run(&self, desk: &mut Desk<'_>) -> Result<Verdict, Fault> {
        let mut standing: Vec<String> = desk.restore()?.unwrap_or_default();
        let mood = if self.loud { "Be sure." } else { "Be careful." };
        while desk.round() < self.rounds {
            let asks = (0..desk.team.len())
                .map(|member| {
                    let text = format!("{} {mood} So far: {}", desk.item.question, standing.join(", "));
                    Brief::new(member, vec![Message::text(Role::User, text)], Want::Text)
                })
                .collect();
            let heard = desk.ask_all(asks).await;
            standing =
                heard.iter().map(|h| h.as_ref().ok().and_then(Value::as_text).unwrap_or("?").to_string()).collect();
            for (member, answer) in standing.iter().enumerate() {
                desk.record(member, 0, answer.clone());
                desk.tell(member, (member + 1) % standing.len(), answer.clone());
            }
            desk.end_round(&standing).await?;
        }
        Ok(Verdict { answer: standing.first().cloned() })
    }
}

/// The catalogue and the leaves above.
pub fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(leaves)
}

/// The same, for a test that adds leaves of its own.
pub fn leaves() -> Registry {
    let mut registry = polity::registry();
    registry.policy::<Chooser>(LeafFiles::default());
    registry.policy::<Oracle>(LeafFiles::default());
    registry.policy::<Asker>(LeafFiles::default());
    registry.split_world::<Village>(LeafFiles::default());
    registry.world::<Counter>(LeafFiles::default());
    registry.world::<Curious>(LeafFiles::default());
    registry.policy::<Echo>(LeafFiles::default());
    registry.method::<Council>(LeafFiles::default());
    registry
}

// ------------------------------------------------------------------ scenarios

/// Rules only. Also YAML: JSON is.
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

/// Agents that act one after the other, most of whom ask a model first.
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

/// A society that asks a model, whose price is declared.
pub fn askers(model: &str, agents: u32, rounds: u32, alike: bool) -> serde_json::Value {
    json!({
        "name": "askers", "seed": 3, "rounds": rounds, "agents": agents,
        "world": {"kind": "guess-average"},
        "cohorts": [{"name": "all", "share": 1.0, "policy": {"kind": "asker", "model": model, "alike": alike}}],
        "settings": {"max_tokens": 40},
        "model": model,
        // What the stand-in itself asks.
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

/// A platform whose posts are live for a few rounds, with posts from outside that have many words: from snapshot to snapshot most of its
/// state stays as it was.
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

/// A team on a data set, by a method of this name; the data set is written into `folder`.
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
        "window": 4,
        "record": {"messages": true},
        "snapshot": {"rounds": 1},
    })
}

/// A scenario with its inputs from `folder`.
pub fn prepared(scenario: &serde_json::Value, folder: &Path) -> Prepared {
    prepare(Node::from_json(scenario), "test.yaml", folder, "test", Vec::new()).unwrap()
}

/// An engine on a disk, with the leaves of this file.
pub fn engine(disk: Arc<dyn Disk>, shards: usize, faults: Option<Faults>) -> Engine<'static> {
    Engine {
        registry: registry(),
        providers: Arc::new(Providers::standard()),
        disk,
        shards,
        connections: 100,
        memory: None,
        budget: Default::default(),
        outside: Default::default(),
        faults,
        stop: Stop::default(),
    }
}

/// Runs in `out`.
pub fn run(engine: &Engine<'_>, prepared: &Prepared, out: &Path) -> Result<Summary, DriveError> {
    engine.run(prepared, out, &mut Unwatched)
}

/// Asks a run to stop once so many rounds are complete, at a moment when it waits for nobody.
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

/// Tables by name, columns in order, without those that may differ from run to run.
pub type Tables = BTreeMap<String, Vec<(String, ColumnData)>>;

/// All tables of a run.
pub fn tables(disk: &dyn Disk, run: &Path) -> Tables {
    let reader = results::open(disk, run).unwrap_or_else(|error| panic!("{error}"));
    let stable = |name: &str| reader.stable(name).unwrap_or_else(|error| panic!("{error}"));
    reader.names().into_iter().map(|name| (name.clone(), stable(&name))).collect()
}

/// Says which column differs, not what all hold.
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

/// The records of a run's journal, and whether its end is torn.
pub fn events(disk: Arc<dyn Disk>, run: &Path) -> Result<(Vec<Event>, bool), JournalError> {
    let (records, end) = read_all(disk, &run.join("journal"))?;
    Ok((records.iter().map(|(kind, payload)| Event::decode(*kind, payload).unwrap()).collect(), end.torn()))
}

/// Removes what a run's folder holds beyond what its journal records, for a journal that was cut: then the folder looks as if the process
/// had been killed where the journal ends.
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

/// The answers among records; some effect may have several.
pub fn answers(events: &[Event]) -> BTreeMap<EffectId, Vec<Answer>> {
    let mut by_id: BTreeMap<EffectId, Vec<Answer>> = BTreeMap::new();
    for event in events {
        if let Event::Answers(answers) = event {
            answers.iter().for_each(|answer| by_id.entry(answer.id).or_default().push(answer.clone()));
        }
    }
    by_id
}

/// What was answered before a resume was not asked again, and nothing was asked twice.
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

/// What a process said.
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
    /// A text of the object.
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

/// What a process that has ended has said.
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

/// Whether a folder is as it was written.
pub fn verify(folder: &Path) -> Said {
    let mut command = Command::new(env!("CARGO_BIN_EXE_polity"));
    said(&command.args(["verify", arg(folder), "--json"]).output().unwrap())
}

/// Copies a folder; what was at the target is gone.
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

/// The files below a folder, and what is in them.
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
