//! `polity validate` creates neither people nor ties, and gives the same result as `polity validate --full`, which creates both.

use crate::harness::{Nothing, engine, prepared, scratch};
use polity_driver::run::{Engine, Extent, Prepared, prepare};
use polity_kernel::Invalid;
use polity_kernel::interface::ActionArgument;
use polity_kernel::policy::Person;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::scenario::{MemoryBudget, outline_within};
use polity_kernel::topology::Topology;
use polity_kernel::tree::{Node, Value as TreeValue};
use polity_kernel::world::{AgentActions, DeclareSplit, Future, SplitWorld, WorldSetup};
use polity_store::DriveError;
use polity_store::disk::SimDisk;
use polity_store::files::{Reach, read_file};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn files_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files_below(&path, found);
        } else if path.extension().is_some_and(|end| end == "yaml") {
            found.push(path);
        }
    }
}

/// A scenario of the repository, with this many agents.
fn of_file(path: &Path, agents: Option<i64>) -> Result<Prepared, DriveError> {
    let (_, tree) = read_file(path).unwrap();
    let edits = agents.map(|agents| ("agents".to_string(), Node::built(TreeValue::Int(agents))));
    let reach = Reach::of(path.parent().unwrap(), &[root()]);
    prepare(tree, "test.yaml", reach, "test", edits.into_iter().collect())
}

/// Returns the errors of a scenario found both ways, or the sizes found with its people and ties.
fn both(engine: &Engine<'_>, prepared: &Prepared) -> [Result<usize, String>; 2] {
    [Extent::Outline, Extent::Whole].map(|extent| {
        let checked = engine.validate(prepared, extent);
        let arms = checked.and_then(|()| polity_driver::sweep::check(engine, prepared, extent));
        // All of it: place, message, help and exit code.
        arms.map_err(|error| format!("{error:?}"))
    })
}

#[test]
fn every_scenario_of_the_repository_is_valid_or_wrong_either_way() {
    let registry = polity::registry();
    let engine = Engine { registry: &registry, ..engine(Arc::new(SimDisk::default()), 1, None) };
    let mut files = Vec::new();
    for folder in ["scenarios", "systems", "crates/polity-catalog"] {
        files_below(&root().join(folder), &mut files);
    }
    let mut valid = 0;
    for path in files {
        let many = path.ends_with("city.yaml").then_some(50_000);
        // A file that is not a scenario, such as the description of a system, is reported before anything is created.
        let Ok(prepared) = of_file(&path, many) else { continue };
        let [quick, full] = both(&engine, &prepared);
        assert_eq!(quick, full, "{}", path.display());
        valid += usize::from(quick.is_ok());
    }
    assert!(valid > 60, "{valid}");
}

#[test]
fn a_city_is_checked_without_its_people() {
    let registry = polity::registry();
    let prepared = of_file(&root().join("scenarios/city.yaml"), None).unwrap();
    let mut memory = MemoryBudget::unlimited();
    let draft = outline_within(
        &prepared.tree,
        &registry,
        &prepared.inputs,
        polity_kernel::layout::Layout::default(),
        &mut memory,
    )
    .unwrap();
    let shared_context = draft.shared_context().unwrap();
    assert_eq!((draft.agents(), shared_context.population.len()), (8_400_000, 8_400_000));
    // Five ages and five boroughs: a new row starts when one of the two changes.
    assert_eq!(shared_context.population.table().rows(), 9);
    assert!(matches!(shared_context.topology, Topology::Outline { n: 8_400_000, arcs: 84_000_000, .. }));
    // Memory is that of the full society.
    assert!((1_500_000_000..8_000_000_000).contains(&memory.reserved()), "{}", memory.reserved());
    let engine = Engine { registry: &registry, memory: Some(1000), ..engine(Arc::new(SimDisk::default()), 1, None) };
    let refused = engine.validate(&prepared, Extent::Outline).unwrap_err().to_string();
    assert!(refused.contains("1.0 GB is available"), "{refused}");
}

/// A society with one key changed; `null` removes it.
fn with(changes: &[(&str, Value)]) -> Value {
    let mut scenario = json!({
        "name": "wrong", "seed": 3, "rounds": 5, "agents": 20_000, "model": "sim/medium",
        "population": {"marginals": [
            {"column": "age", "shares": {"20": 0.25, "40": 0.5, "60": 0.25}},
            {"column": "sex", "shares": {"f": 0.5, "m": 0.5}},
        ]},
        "world": {"kind": "opinion", "low": 0, "high": 100, "initial": {"column": "age"}},
        "cohorts": [{"policy": {"kind": "degroot"}}],
        "topology": {"kind": "erdos-renyi", "mean_degree": 6},
    });
    for (key, value) in changes {
        scenario[*key] = value.clone();
        if value.is_null() {
            scenario.as_object_mut().unwrap().remove(*key);
        }
    }
    scenario
}

/// Scenarios with a mistake, each with words of the error.
type Wrong = Vec<(Value, &'static str)>;

fn platform(key: &str, value: Value) -> Value {
    let mut world = json!({"kind": "platform"});
    world[key] = value;
    with(&[("world", world), ("cohorts", json!([{"policy": {"kind": "user"}}]))])
}

fn wrong_numbers_and_leaves() -> Wrong {
    let policy = |policy: Value| with(&[("cohorts", json!([{"policy": policy}]))]);
    vec![
        // Numbers, cohorts, budgets.
        (with(&[("agents", json!(0))]), "at least one agent"),
        (with(&[("agents", json!(200_000_000))]), "at most 100000000 agents"),
        (with(&[("agents", Value::Null)]), "the number of agents is missing"),
        (with(&[("budget", json!({"cost_usd": -1}))]), "budget"),
        (with(&[("answers", json!({"lag": 2000}))]), "a lag must be 1 to 1000"),
        (with(&[("changes", json!([{"at": 0, "set": {"world.high": 90}}]))]), "a change cannot be at round 0"),
        (with(&[("changes", json!([{"at": 2, "set": {"world.high": -1}}]))]), "greater than low"),
        (with(&[("activation", json!("random-order"))]), "their order makes no difference"),
        // Leaves and their parameters.
        (with(&[("world", json!({"kind": "opinions"}))]), "opinion"),
        (with(&[("world", json!({"kind": "opinion", "low": 5, "high": 1}))]), "greater than low"),
        (with(&[("world", json!({"kind": "opinion", "initial": {"column": "agee"}}))]), "did you mean `age`?"),
        (with(&[("world", json!({"kind": "schelling", "radius": 80}))]), "1..=10"),
        (with(&[("world", json!({"kind": "flock", "density": 0}))]), "greater than 0"),
        (policy(json!({"kind": "degroots"})), "degroot"),
        (policy(json!({"kind": "degroot", "no": 1})), "no"),
        (policy(json!({"kind": "archetype", "by": [{"column": "agee"}]})), "agee"),
        (with(&[("metrics", json!([{"kind": "mean", "of": "opinions"}]))]), "did you mean `opinion`?"),
        (with(&[("metrics", json!([{"kind": "meen", "of": "opinion"}]))]), "meen"),
        (platform("stance", json!("income")), "income"),
        (platform("banned", json!([20_000])), "there is no agent 20000"),
    ]
}

fn wrong_attributes_and_prompts() -> Wrong {
    let people = || json!({"file": "people.csv"});
    let policy = |policy: Value| with(&[("cohorts", json!([{"policy": policy}]))]);
    let mind = |question: &str| policy(json!({"kind": "mind", "prompts": {"question": question}}));
    vec![
        // Attributes: an outline has the same values.
        (with(&[("world", json!({"kind": "opinion", "low": 0, "high": 50, "initial": {"column": "age"}}))]), "has 60"),
        (
            with(&[
                ("population", people()),
                ("world", json!({"kind": "opinion", "low": 0, "high": 100, "initial": {"column": "age"}})),
            ]),
            "has 120",
        ),
        (platform("stance", json!("age")), "must lie in -1..=1"),
        // Prompts and models.
        (mind("{{ agent"), "question"),
        (mind("How old are you, {{ persn.age }}?"), "persn"),
        (mind("{{ 1 / (person.age - person.age) }}"), "question"),
        (with(&[("model", json!("nowhere/model")), ("cohorts", json!([{"policy": {"kind": "mind"}}]))]), "nowhere"),
        (with(&[("model", Value::Null), ("cohorts", json!([{"policy": {"kind": "mind"}}]))]), "model"),
    ]
}

fn wrong_topologies() -> Wrong {
    let topology = |topology: Value| with(&[("topology", topology)]);
    let by_file = |topology: Value| with(&[("population", json!({"file": "people.csv"})), ("topology", topology)]);
    vec![
        (topology(json!({"kind": "rings"})), "ring"),
        (topology(json!({"kind": "ring", "neighbours": 3})), "an even number"),
        (topology(json!({"kind": "grid", "width": 7})), "a divisor of the number of agents"),
        (topology(json!({"kind": "erdos-renyi"})), "give either"),
        (topology(json!({"kind": "erdos-renyi", "mean_degree": 20_000})), "with 20000 agents"),
        (topology(json!({"kind": "erdos-renyi", "probability": 1.5})), "probability"),
        (topology(json!({"kind": "barabasi-albert", "links": 0})), "1 to 19999"),
        (topology(json!({"kind": "watts-strogatz", "neighbours": 4, "rewire": 2})), "rewire"),
        (topology(json!({"kind": "stochastic-block", "by": "agee", "within": 4, "between": 1})), "did you mean `age`?"),
        (topology(json!({"kind": "stochastic-block", "by": "age", "matrix": [[1]]})), "3 rows of 3"),
        (
            topology(json!({"kind": "homophily", "by": "sex", "mean_degree": 12_000, "same": 1})),
            "are possible on average",
        ),
        (topology(json!({"kind": "configuration", "distribution": {"2": 0.5}})), "add up to 0.5"),
        (topology(json!({"kind": "configuration", "distribution": {"20000": 1}})), "should have 20000 ties"),
        (by_file(json!({"kind": "configuration", "by": "ties"})), "has 2.5"),
        (with(&[("agents", json!(4)), ("topology", json!({"kind": "file", "file": "ties.csv"}))]), "a tie from 2 to 4"),
        (topology(json!({"kind": "core-ordinary", "core": 30_000})), "0 to 20000"),
        (
            with(&[("topology", json!({"kind": "complete"})), ("agents", json!(100_000))]),
            "every agent would send a message to every other",
        ),
    ]
}

fn wrong_comparisons() -> Wrong {
    vec![
        (
            with(&[("validate", json!([{"of": "opinions", "against": {"file": "people.csv", "column": "age"}}]))]),
            "did you mean `opinion`?",
        ),
        (
            with(&[("validate", json!([{"of": "sex", "against": {"file": "people.csv", "column": "age"}}]))]),
            "holds numbers, but `sex` holds words",
        ),
        (
            with(&[
                (
                    "population",
                    json!({"marginals": [{"column": "sex", "shares": {"f": 0.5, "m": 0.5}}], "persona": "{sex}", "labels": {"sex": {"f": "a woman"}}}),
                ),
                ("world", json!({"kind": "opinion"})),
            ]),
            "has no label",
        ),
    ]
}

#[test]
fn mistakes_are_told_alike_either_way() {
    let folder = scratch("validation-wrong");
    fs::write(folder.join("people.csv"), "age,sex,ties\n30,f,2\n41,m,3\n22,f,1\n120,m,2.5\n").unwrap();
    fs::write(folder.join("ties.csv"), "from,to\n0,1\n2,4\n").unwrap();
    let engine = engine(Arc::new(SimDisk::default()), 1, None);
    let wrong =
        [wrong_numbers_and_leaves(), wrong_attributes_and_prompts(), wrong_topologies(), wrong_comparisons()].concat();
    for (scenario, words) in wrong {
        let [quick, full] = both(&engine, &prepared(&scenario, &folder));
        assert_eq!(quick, full, "{scenario}");
        let told = quick.expect_err(&scenario.to_string());
        assert!(told.contains(words), "{words} is not in {told}");
    }
    // Errors that only --full finds.
    let star = with(&[("topology", json!({"kind": "configuration", "distribution": {"19000": 0.5, "1": 0.5}}))]);
    let [quick, full] = both(&engine, &prepared(&star, &folder));
    assert!(quick.is_ok() && full.clone().unwrap_err().contains("no graph has these numbers"), "{full:?}");
}

/// A world that at its opening asks for something that an outline does not have.
struct Strict;

impl SplitWorld for Strict {
    const NAME: &'static str = "strict";
    const SUMMARY: &'static str = "Refuses people in order and agents without ties";
    type Params = Nothing;
    type Row = f64;
    type Common = f64;
    type Tally = ();

    fn open(_: Nothing, setup: &WorldSetup<'_>, declare: &mut DeclareSplit<Self>) -> Result<Self, Invalid> {
        let wrong = |message: &str| Err(Invalid { key: String::new(), message: message.into() });
        let people = setup.population;
        if (1..setup.agents).all(|who| people.row(who - 1) <= people.row(who))
            && people.len() != people.table().rows() as u32
        {
            return wrong("people stand in order");
        }
        if (0..setup.agents).all(|who| setup.topology.degree(who) == 0) {
            return wrong("nobody has a tie");
        }
        declare.action("say", ActionArgument::Number { low: 0.0, high: 1.0 }, "say a number");
        Ok(Strict)
    }

    fn init_common(&self) -> f64 {
        0.0
    }

    fn init_row(&self, _: Person<'_>, _: &mut Draws) -> f64 {
        0.0
    }

    fn tally(&self) {}

    fn apply(&self, _: &f64, _: &mut f64, _: &AgentActions<'_>, _: &mut (), _: &mut Future) {}

    fn merge(&self, (): (), (): ()) {}

    fn end_round(&self, _: &mut f64, (): (), _: &mut Draws) -> Option<String> {
        None
    }
}

#[test]
fn an_error_that_rests_on_a_guess_is_confirmed() {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    let registry = REGISTRY.get_or_init(|| {
        let mut registry = polity::registry();
        registry.split_world::<Strict>(LeafFiles::default());
        registry
    });
    let folder = scratch("validation-strict");
    let engine = Engine { registry, ..engine(Arc::new(SimDisk::default()), 1, None) };
    let strict = |topology: Value| {
        let cohorts = json!([{"policy": {"kind": "noise"}}]);
        with(&[("world", json!({"kind": "strict"})), ("cohorts", cohorts), ("topology", topology)])
    };
    let valid = strict(json!({"kind": "ring", "neighbours": 2}));
    let of_leaf = both(&engine, &prepared(&valid, &folder));
    assert_eq!(of_leaf, [Ok(0), Ok(0)]);
    let [quick, full] = both(&engine, &prepared(&strict(json!({"kind": "none"})), &folder));
    assert!(quick == full && quick.clone().unwrap_err().contains("nobody has a tie"), "{quick:?}");
}
