//! Populations that meet shares, graphs by attribute, validation and health: whole runs, and messages on wrong requests.

use crate::harness;

use crate::harness::{
    Nothing, StopAfter, arg, assert_same_tables, engine, polity, prepared, replay, resume, rules, run, scratch, tables,
};
use polity_driver::health::{Alarm, PARROTING, STUCK};
use polity_driver::run::{Engine, RunStatus};
use polity_kernel::Invalid;
use polity_kernel::interface::ActionArgument;
use polity_kernel::policy::{Fault, Person, Policy, PolicySetup, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::world::{AgentActions, DeclareSplit, Future, SplitWorld, WorldSetup};
use polity_store::disk::{RealDisk, SimDisk};
use polity_store::tables::ColumnData;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::sync::{Arc, OnceLock};

// ------------------------------------------------------------------ populations

/// 60 people of two sexes, three parties and ages from 18 on, and further data of the scenarios.
fn write_data(folder: &Path) {
    let mut people = String::from("sex,party,age,ties,weight\n");
    for i in 0..60 {
        let (sex, party) = (["f", "m"][i % 2], ["green", "red", "none"][i / 2 % 3]);
        people.push_str(&format!("{sex},{party},{},{},{}\n", 18 + i, 1 + i % 4, 1 + i % 3));
    }
    fs::write(folder.join("people.csv"), people).unwrap();
    fs::write(folder.join("targets.csv"), "column,level,share\nsex,f,0.6\nsex,m,0.4\nage,..40,0.5\nage,40..,0.5\n")
        .unwrap();
    fs::write(
        folder.join("quotas.csv"),
        "sex,party,share\nf,green,0.3\nm,green,0.2\nf,red,0.1\nm,red,0.1\nf,none,0.15\nm,none,0.15\n",
    )
    .unwrap();
    fs::write(folder.join("observed.csv"), "value,word\n10,green\n20,red\n30,red\n").unwrap();
}

fn society(population: Value) -> Value {
    json!({
        "name": "people", "seed": 3, "rounds": 5, "agents": 400,
        "population": population,
        "world": {"kind": "opinion", "low": 0, "high": 100, "initial": {"column": "age"}},
        "cohorts": [{"policy": {"kind": "degroot"}}],
        "topology": {"kind": "homophily", "by": "sex", "mean_degree": 6, "same": 0.75},
        "metrics": [{"kind": "mean", "of": "opinion"}],
        "snapshot": {"rounds": 2},
    })
}

fn marginals() -> Value {
    json!({
        "file": "people.csv", "weight": "weight",
        "marginals": [{"file": "targets.csv"}, {"column": "party", "shares": {"red": 0.5, "green": 0.3, "none": 0.2}}],
        "persona": "You are {age} and vote {party}.",
    })
}

fn texts(data: &ColumnData) -> Vec<String> {
    match data {
        ColumnData::Text(texts) => texts.iter().map(|text| text.clone().unwrap()).collect(),
        _ => panic!("no texts"),
    }
}

fn numbers(data: &ColumnData) -> Vec<f64> {
    match data {
        ColumnData::F64(values) => values.iter().map(|x| x.unwrap()).collect(),
        ColumnData::U64(values) => values.iter().map(|x| x.unwrap() as f64).collect(),
        ColumnData::U32(values) => values.iter().map(|x| f64::from(x.unwrap())).collect(),
        _ => panic!("no numbers"),
    }
}

fn column<'a>(tables: &'a harness::Tables, table: &str, name: &str) -> &'a ColumnData {
    &tables[table].iter().find(|(column, _)| column == name).unwrap().1
}

#[test]
fn shares_are_met_and_told_whatever_interrupts_the_run() {
    let folder = scratch("people-shares");
    write_data(&folder);
    let mut scenario = society(marginals());
    scenario["validate"] = json!([
        {"of": "opinion", "at": "first", "against": {"file": "observed.csv", "column": "value"}},
        {"of": "opinion", "at": 1, "against": {"file": "observed.csv", "column": "value"}, "distances": ["ks"]},
        {"of": "party", "against": {"file": "observed.csv", "column": "word"}},
        {"of": "opinion", "against": {"file": "observed.csv", "column": "value"}, "bins": 4, "distances": ["total-variation"]},
    ]);
    let prepared = prepared(&scenario, &folder);
    let disk = SimDisk::default();
    let whole = Path::new("runs/whole");
    let summary = run(&engine(Arc::new(disk.clone()), 1, None), &prepared, whole).unwrap();
    let expected = tables(&disk, whole);
    // 9 levels of three columns, each within 1% at 400 agents.
    let (asked, obtained) = (column(&expected, "marginals", "asked"), column(&expected, "marginals", "obtained"));
    let (asked, obtained) = (numbers(asked), numbers(obtained));
    assert_eq!(asked.len(), 7);
    assert!(asked.iter().zip(&obtained).all(|(a, o)| (a - o).abs() < 0.01), "{asked:?} {obtained:?}");
    assert_eq!(texts(column(&expected, "marginals", "level")), ["f", "m", "..40", "40..", "red", "green", "none"]);
    // The agents match the table.
    let parties = texts(column(&expected, "agents", "party"));
    let red = parties.iter().filter(|party| *party == "red").count();
    assert_eq!(red as f64 / 400.0, obtained[4]);
    let ages = numbers(column(&expected, "agents", "age"));
    for ((persona, age), party) in texts(column(&expected, "agents", "persona")).iter().zip(&ages).zip(&parties) {
        assert_eq!(*persona, format!("You are {age} and vote {party}."));
    }
    // Validation: words by hand, numbers by a second implementation.
    let value = numbers(column(&expected, "validation", "value"));
    assert_eq!(texts(column(&expected, "validation", "at")), ["1", "first", "first", "last", "last"]);
    let share = |word: &str| parties.iter().filter(|party| *party == word).count() as f64 / 400.0;
    let variation = ((share("green") - 1.0 / 3.0).abs() + (share("red") - 2.0 / 3.0).abs() + share("none")) / 2.0;
    assert!((value[3] - variation).abs() < 1e-12, "{value:?} {variation}");
    let moved: f64 = (0..1200)
        .map(|i| {
            let mut sorted = ages.clone();
            sorted.sort_by(f64::total_cmp);
            (sorted[i / 3] - [10.0, 20.0, 30.0][i / 400]).abs()
        })
        .sum::<f64>()
        / 1200.0;
    assert!((value[2] - moved).abs() < 1e-9, "{value:?} {moved}");
    // By shards, replayed, and interrupted after any round.
    let sharded = Path::new("runs/sharded");
    assert_eq!(run(&engine(Arc::new(disk.clone()), 3, None), &prepared, sharded).unwrap().digest, summary.digest);
    assert_same_tables(&tables(&disk, sharded), &expected, "shards");
    assert_eq!(replay(&engine(Arc::new(disk.clone()), 2, None), whole).unwrap().status, RunStatus::Same);
    for rounds in 1..5 {
        let out = format!("runs/after-{rounds}");
        let stopping = engine(Arc::new(disk.clone()), 1, None);
        let mut watch = StopAfter(rounds, stopping.stop.clone());
        assert_eq!(stopping.run(&prepared, Path::new(&out), &mut watch).unwrap().status, RunStatus::Stopped);
        let resumed = resume(&engine(Arc::new(disk.clone()), 2, None), Path::new(&out)).unwrap();
        assert_eq!((resumed.digest, resumed.health), (summary.digest.clone(), summary.health.clone()));
        assert_same_tables(&tables(&disk, Path::new(&out)), &expected, &out);
    }
}

/// A file sorted by sex: taken in order, each cohort would be of one sex.
#[test]
fn cohorts_of_a_sorted_file_are_alike() {
    let folder = scratch("people-sorted");
    let rows = |sex: &str| (0..50).map(|i| format!("{sex},{i}\n")).collect::<String>();
    fs::write(folder.join("sorted.csv"), format!("sex,age\n{}{}", rows("f"), rows("m"))).unwrap();
    fs::write(folder.join("ties.csv"), "follower,followee\n0,1\n").unwrap();
    let mut scenario = society(json!({"file": "sorted.csv"}));
    scenario["agents"] = json!(100);
    scenario["cohorts"] = json!([
        {"share": 0.5, "policy": {"kind": "degroot"}}, {"share": 0.5, "policy": {"kind": "degroot"}}]);
    let first_half = |scenario: &Value, out: &str| {
        let disk = SimDisk::default();
        run(&engine(Arc::new(disk.clone()), 1, None), &prepared(scenario, &folder), Path::new(out)).unwrap();
        let sex = texts(column(&tables(&disk, Path::new(out)), "agents", "sex"));
        sex[..50].iter().filter(|sex| *sex == "f").count()
    };
    let women = first_half(&scenario, "runs/mixed");
    assert!((13..=37).contains(&women), "{women} of 50");
    // Ties given by agent are ties between these rows: they keep their positions.
    scenario["topology"] = json!({"kind": "file", "file": "ties.csv"});
    assert_eq!(first_half(&scenario, "runs/ties"), 50);
    // A single cohort is the unchanged file.
    scenario["topology"] = json!({"kind": "none"});
    scenario["cohorts"] = json!([{"policy": {"kind": "degroot"}}]);
    assert_eq!(first_half(&scenario, "runs/one"), 50);
}

#[test]
fn quotas_and_attributes_without_data() {
    let folder = scratch("people-quotas");
    write_data(&folder);
    let disk = SimDisk::default();
    let quotas = society(json!({"file": "people.csv", "quotas": {"file": "quotas.csv"}}));
    run(&engine(Arc::new(disk.clone()), 1, None), &prepared(&quotas, &folder), Path::new("runs/quotas")).unwrap();
    let of = tables(&disk, Path::new("runs/quotas"));
    assert_eq!(numbers(column(&of, "marginals", "agents")), [120.0, 80.0, 40.0, 40.0, 60.0, 60.0]);
    let mut alone = society(json!({
        "marginals": [
            {"column": "sex", "shares": {"f": 0.5, "m": 0.5}},
            {"column": "age", "shares": {"20": 0.25, "40": 0.5, "60": 0.25}},
        ],
        "labels": {"sex": {"f": "a woman", "m": "a man"}},
        "persona": "{sex} of {age}",
    }));
    let out = Path::new("runs/alone");
    run(&engine(Arc::new(disk.clone()), 1, None), &prepared(&alone, &folder), out).unwrap();
    let of = tables(&disk, out);
    assert_eq!(numbers(column(&of, "marginals", "agents")), [200.0, 200.0, 100.0, 200.0, 100.0]);
    let personas = texts(column(&of, "agents", "persona"));
    assert_eq!(personas.iter().filter(|text| text.ends_with("of 20")).count(), 100);
    assert!(personas.iter().all(|text| text.starts_with("a woman of") || text.starts_with("a man of")));
    // Degrees by a column.
    alone["topology"] = json!({"kind": "configuration", "by": "age"});
    run(&engine(Arc::new(disk.clone()), 1, None), &prepared(&alone, &folder), Path::new("runs/degrees")).unwrap();
}

// ------------------------------------------------------------------ wrong requests

/// Populations or scenarios with a mistake, each with words of the error.
type Wrong = Vec<(Value, Vec<&'static str>)>;

fn wrong_marginals() -> Wrong {
    let with = |marginal: Value| json!({"file": "people.csv", "marginals": [marginal]});
    let sex = |shares: Value| with(json!({"column": "sex", "shares": shares}));
    vec![
        (
            sex(json!({"f": 0.5, "m": 0.6})),
            vec!["population.marginals[0].shares", "the shares add up to 1.1, not to 1"],
        ),
        (
            sex(json!({"f": -0.5, "m": 1.5})),
            vec!["population.marginals[0].shares.f", "a share must be between 0 and 1"],
        ),
        (sex(json!({"f": 0.5, "x": 0.5})), vec!["column `sex` has the value `m`, which has no share"]),
        (
            sex(json!({"f": 0.5, "m": 0.4, "x": 0.1})),
            vec!["population.marginals[0].shares.x", "no row has the level `x` of column `sex` (it has f, m)"],
        ),
        (sex(json!({"f": "half", "m": 0.5})), vec!["shares.f", "a share must be a number, found text `half`"]),
        (sex(json!({"f": "51%", "m": 0.49})), vec!["shares.f", "found text `51%`; write 51% as 0.51"]),
        (sex(json!({})), vec!["population.marginals[0].shares", "write `{LEVEL: SHARE, ...}`"]),
        (
            with(json!({"column": "sexx", "shares": {"f": 1}})),
            vec!["population.marginals[0].column", "did you mean `sex`?"],
        ),
        (
            with(json!({"file": "bad.csv"})),
            vec!["population.marginals[0].file", "column `sex`: the shares add up to 1.2"],
        ),
        (with(json!({"file": "none.csv"})), vec!["population.marginals[0].file", "there is no such file"]),
        (
            with(json!({"file": "people.csv"})),
            vec!["population.marginals[0].file", "column `column`: there is no such column"],
        ),
        (
            json!({"file": "people.csv", "marginals": [
                {"column": "sex", "shares": {"f": 0.5, "m": 0.5}}, {"column": "sex", "shares": {"f": 0.5, "m": 0.5}}]}),
            vec!["population.marginals[1]", "the shares of column `sex` are given twice"],
        ),
        (
            json!({"file": "people.csv", "weight": "sex", "marginals": [{"column": "sex", "shares": {"f": 0.5, "m": 0.5}}]}),
            vec!["population.weight", "holds words (f, m), but numbers are needed"],
        ),
    ]
}

fn wrong_people() -> Wrong {
    let persona = |text: &str| json!({"file": "people.csv", "persona": text});
    vec![
        (
            json!({"file": "people.csv", "quotas": [{"sex": "f", "share": 0.5}, {"sex": "f", "share": 0.5}]}),
            vec!["population.quotas", "which has no share"],
        ),
        (
            json!({"file": "people.csv", "quotas": [{"sex": "f", "share": 0.5}, {"sex": "m"}]}),
            vec!["population.quotas[1]", "the key `share` is missing"],
        ),
        (
            json!({"file": "minus.csv", "weight": "weight", "quotas": [{"sex": "f", "share": 0.5}, {"sex": "m", "share": 0.5}]}),
            vec!["population.weight", "row 0, counted from 0, has the weight -1"],
        ),
        (json!({"file": "people.csv", "quotas": null}), vec!["population.quotas", "the list is empty"]),
        (json!({"quotas": [{"sex": "f", "share": 1}]}), vec!["population.quotas", "add a `file`"]),
        (json!({}), vec!["population", "give a `file` with people, or `marginals`"]),
        (persona("You are {agee}."), vec!["population.persona", "did you mean `age`?"]),
        (persona("You are {age."), vec!["population.persona", "is unmatched"]),
        (
            json!({"file": "people.csv", "persona": "{sex}", "labels": {"sex": {"f": "a woman"}}}),
            vec!["population.labels", "the value `m` of column `sex` has no label"],
        ),
        (
            json!({"file": "mixed.csv", "marginals": [{"column": "age", "shares": {"..30": 0.5, "30..": 0.5}}]}),
            vec!["population.marginals[0].shares", "it mixes numbers and words: line 3 has `old`"],
        ),
        (json!({"file": "mixed.jsonl"}), vec!["population.file", "line 2, column age: words among numbers"]),
        // Party is given by sex in these data: the two marginals contradict each other.
        (
            json!({"file": "tied.csv", "marginals": [
                {"column": "sex", "shares": {"f": 0.5, "m": 0.5}}, {"column": "party", "shares": {"red": 0.3, "green": 0.7}}]}),
            vec!["population.marginals", "the marginals contradict each other", "after 50 sweeps"],
        ),
    ]
}

fn wrong_comparisons() -> Wrong {
    let validate = |check: Value| {
        let mut scenario = society(json!({"file": "people.csv"}));
        scenario["validate"] = json!([check]);
        scenario
    };
    let against = |file: &str, column: &str| json!({"file": file, "column": column});
    let checks = vec![
        (
            json!({"of": "opinions", "against": against("observed.csv", "value")}),
            vec!["validate[0].of", "did you mean `opinion`?"],
        ),
        (
            json!({"of": "opinion", "against": against("observed.csv", "values")}),
            vec!["validate[0].against.column", "did you mean `value`?"],
        ),
        (
            json!({"of": "opinion", "against": against("observed.csv", "word")}),
            vec!["validate[0].against.column", "holds words, but `opinion` holds numbers"],
        ),
        (
            json!({"of": "sex", "against": against("observed.csv", "value")}),
            vec!["validate[0].against.column", "holds numbers, but `sex` holds words"],
        ),
        (
            json!({"of": "sex", "against": against("observed.csv", "word"), "distances": ["ks"]}),
            vec!["validate[0].distances[0]", "words have no order"],
        ),
        (
            json!({"of": "opinion", "against": against("empty.csv", "value")}),
            vec!["validate[0].against.file", "there are no rows below the header"],
        ),
        (
            json!({"of": "opinion", "against": against("mixed.jsonl", "age")}),
            vec!["validate[0].against.file", "words among numbers"],
        ),
        (
            json!({"of": "opinion", "at": 5, "against": against("observed.csv", "value")}),
            vec!["validate[0].at", "round 5 is never reached: the last of 5 rounds is 4"],
        ),
        (
            json!({"of": "opinion", "at": "end", "against": against("observed.csv", "value")}),
            vec!["validate[0].at", "`first`, `last` or the number of a round"],
        ),
        (
            json!({"of": "age", "against": against("observed.csv", "value"), "bins": 4}),
            vec!["validate[0].bins", "`age` has no declared range"],
        ),
        (
            json!({"of": "age", "against": against("observed.csv", "value"), "distances": ["kss"]}),
            vec!["validate[0].distances[0]", "did you mean `ks`?"],
        ),
    ];
    checks.into_iter().map(|(check, words)| (validate(check), words)).collect()
}

fn wrong_networks() -> Wrong {
    let mut scenarios = Vec::new();
    let mut mixed = society(json!({"file": "mixed.csv"}));
    mixed["topology"]["by"] = json!("age");
    scenarios.push((mixed, vec!["topology.by", "it mixes numbers and words: line 3 has `old`"]));
    let mut small = society(json!({"file": "people.csv"}));
    small["topology"] = json!({"kind": "homophily", "by": "age", "mean_degree": 10, "same": 1});
    scenarios.push((small, vec!["topology.same", "each agent should have 10 ties inside its group"]));
    for counts in [[json!(10), json!(20)], [json!({"fixed": 10}), json!({"fixed": 20})]] {
        let mut counted = society(json!({"file": "people.csv"}));
        counted.as_object_mut().unwrap().remove("agents");
        counted["cohorts"] =
            counts.iter().map(|count| json!({"count": count, "policy": {"kind": "degroot"}})).collect();
        scenarios.push((
            counted,
            vec!["cohorts", "the cohorts have 10 + 20, but the population's file has 60 rows", "add `agents`"],
        ));
    }
    let mut lonely = society(json!({"file": "people.csv"}));
    lonely["topology"]["same"] = json!(1.5);
    scenarios.push((lonely, vec!["topology.same", "1.5 is not possible"]));
    scenarios
}

#[test]
fn wrong_requests_are_told_with_their_place() {
    let folder = scratch("people-wrong");
    write_data(&folder);
    fs::write(folder.join("bad.csv"), "column,level,share\nsex,f,0.6\nsex,m,0.6\n").unwrap();
    fs::write(folder.join("mixed.jsonl"), "{\"age\": 3}\n{\"age\": \"old\"}\n").unwrap();
    fs::write(folder.join("mixed.csv"), "age,sex\n30,f\nold,m\n").unwrap();
    fs::write(folder.join("minus.csv"), "sex,weight\nf,-1\nf,3\nm,1\nm,1\n").unwrap();
    fs::write(folder.join("empty.csv"), "value\n").unwrap();
    fs::write(folder.join("tied.csv"), "sex,party,age\nf,red,30\nm,green,40\n").unwrap();
    let populations = wrong_marginals().into_iter().chain(wrong_people());
    let scenarios = populations
        .map(|(population, words)| (society(population), words))
        .chain(wrong_comparisons())
        .chain(wrong_networks());
    for (i, (scenario, words)) in scenarios.enumerate() {
        let file = folder.join(format!("wrong-{i}.yaml"));
        fs::write(&file, serde_json::to_string_pretty(&scenario).unwrap()).unwrap();
        let said = polity(&["run", arg(&file), "--out", arg(&folder.join("run"))]);
        assert_eq!(said.code, Some(2), "{scenario}: {said:?}");
        // Messages are wrapped to the width of a terminal.
        let plain = said.notes.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ");
        for word in words {
            assert!(plain.contains(word), "{word} is not in: {}\n{scenario}", said.notes);
        }
        // The place in the file is shown.
        assert!(said.notes.contains(&format!("wrong-{i}.yaml:")), "{}", said.notes);
        assert!(!folder.join("run/manifest.json").exists());
    }
}

// ------------------------------------------------------------------ health

/// A world in which agents speak.
struct Hall;

impl SplitWorld for Hall {
    const NAME: &'static str = "hall";
    const SUMMARY: &'static str = "Agents speak";
    type Params = Nothing;
    type Row = f64;
    type Common = f64;
    type Tally = ();

    fn open(_: Nothing, _: &WorldSetup<'_>, declare: &mut DeclareSplit<Self>) -> Result<Self, Invalid> {
        declare.action("say", ActionArgument::Text, "speak");
        Ok(Hall)
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

/// Says something of its own, repeats others, or says nothing.
struct Speaker(Speech);

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Speech {
    /// Agents below this id repeat a sentence; the others have one of their own. `None`: nobody speaks.
    parrots: Option<u32>,
}

impl Policy for Speaker {
    const NAME: &'static str = "speaker";
    const SUMMARY: &'static str = "Speak, or not";
    type Params = Speech;
    type State = ();

    fn open(params: Speech, _: &PolicySetup<'_>) -> Result<Self, Invalid> {
        Ok(Speaker(params))
    }

    fn init_state(&self, _: Person<'_>, _: &mut Draws) {}

    async fn act(&self, _: &mut (), turn: &mut Turn<'_>) -> Result<(), Fault> {
        match self.0.parrots {
            None => {}
            Some(parrots) if turn.who < parrots => turn.act_text(0, "what the others say, too"),
            Some(_) => turn.act_text(0, format!("I am number {} in the hall", turn.who)),
        }
        Ok(())
    }
}

fn hall() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(|| {
        let mut registry = polity::registry();
        registry.split_world::<Hall>(LeafFiles::default());
        registry.policy::<Speaker>(LeafFiles::default());
        registry
    })
}

fn health(scenario: &Value, stop_after: Option<u32>) -> Vec<Alarm> {
    let folder = scratch("people-health");
    let disk = Arc::new(SimDisk::default());
    let engine = || Engine { registry: hall(), ..engine(disk.clone(), 1, None) };
    let (prepared, out) = (prepared(scenario, &folder), Path::new("runs/one"));
    match stop_after {
        None => run(&engine(), &prepared, out).unwrap().health,
        Some(rounds) => {
            let first = engine();
            let mut watch = StopAfter(rounds, first.stop.clone());
            first.run(&prepared, out, &mut watch).unwrap();
            resume(&engine(), out).unwrap().health
        }
    }
}

fn kinds(alarms: &[Alarm]) -> Vec<(&str, &str, f64)> {
    alarms.iter().map(|alarm| (alarm.kind, alarm.subject.as_str(), alarm.figure)).collect()
}

#[test]
fn sick_runs_are_told_from_healthy_ones() {
    let speakers = |cohorts: Value| json!({"seed": 1, "rounds": 4, "world": {"kind": "hall"}, "cohorts": cohorts, "snapshot": {"rounds": 1}});
    let mixed = |parrots: u32| {
        speakers(json!([
            {"name": "loud", "count": 10, "policy": {"kind": "speaker", "parrots": parrots}},
            {"name": "mute", "count": 5, "policy": {"kind": "speaker"}},
        ]))
    };
    for stop in [None, Some(1), Some(3)] {
        assert_eq!(kinds(&health(&mixed(1), stop)), [("no-participation", "mute", 0.0)], "{stop:?}");
        assert_eq!(
            kinds(&health(&mixed(6), stop)),
            [("no-participation", "mute", 0.0), ("parroting", "all", 0.6)],
            "{stop:?}"
        );
        assert_eq!(
            kinds(&health(&mixed(10), stop)),
            [("no-variance", "loud", 0.0), ("no-participation", "mute", 0.0), ("parroting", "all", 1.0)]
        );
    }
    let alarm = &health(&mixed(6), None)[1];
    assert_eq!(alarm.threshold, PARROTING);
    assert_eq!(
        alarm.message,
        "60 % of 40 texts repeat another agent's text of the same round word for word (alarm at 50 %)"
    );
    // Everybody has the same opinion from the start: no variance, and no change.
    let calm = |rounds: u32| {
        json!({
            "seed": 1, "rounds": rounds, "agents": 50, "world": {"kind": "opinion", "initial": {"value": 0.5}},
            "cohorts": [{"name": "calm", "policy": {"kind": "degroot"}}], "topology": {"kind": "complete"},
            "metrics": [{"kind": "mean", "of": "opinion"}], "snapshot": {"rounds": 1},
        })
    };
    let alarms = health(&calm(STUCK + 5), Some(4));
    assert_eq!(kinds(&alarms), [("no-variance", "calm", 0.0), ("stuck", "all", f64::from(STUCK + 4))]);
    assert_eq!(kinds(&health(&calm(STUCK), None)), [("no-variance", "calm", 0.0)]);
    assert_eq!(health(&rules(40, 12), None), []);
}

#[test]
fn terminal_report_and_json_tell_the_health() {
    let folder = scratch("people-told");
    write_data(&folder);
    let mut scenario = society(marginals());
    scenario["rounds"] = json!(3);
    scenario["validate"] = json!([{"of": "opinion", "against": {"file": "observed.csv", "column": "value"}}]);
    let file = folder.join("told.yaml");
    fs::write(&file, serde_json::to_string_pretty(&scenario).unwrap()).unwrap();
    let out = folder.join("run");
    let said = polity(&["run", arg(&file), "--out", arg(&out), "--agents", "2000"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(said.json["health"], json!([]));
    for words in ["marginals: ", "validation: opinion (last) against observed.csv:value: ks ", "health: no alarm"] {
        assert!(said.notes.contains(words), "{words} is not in {}", said.notes);
    }
    // A report can be rewritten from the folder alone; `polity` of this file omits it.
    let made = std::process::Command::new(env!("CARGO_BIN_EXE_polity")).args(["report", arg(&out)]).output().unwrap();
    assert!(made.status.success());
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    for words in [
        "<h2>Population</h2>",
        "<h2>Validation</h2>",
        "<h2>Health</h2>",
        "No alarm",
        "iterative proportional fitting",
        "..40",
    ] {
        assert!(page.contains(words), "{words} is not in the report");
    }
    assert_eq!(numbers(column(&tables(&RealDisk, &out), "marginals", "agents")).iter().sum::<f64>(), 6000.0);
}

#[test]
fn edges_of_an_agent_with_itself_are_refused_or_left_out_and_counted() {
    let folder = scratch("self-loops");
    fs::write(folder.join("ties.csv"), "0,1\n1,2\n2,2\n3,3\n2,3\n2,3\n").unwrap();
    let started = |topology: Value, out: &str| {
        let scenario = json!({
            "name": "loops", "rounds": 2, "agents": 4, "world": "opinion", "topology": topology,
            "cohorts": [{"policy": {"kind": "degroot"}}], "record": {"ties": true},
        });
        let file = crate::harness::write_scenario(&folder, &scenario);
        let output = crate::mock_server::polity(&folder, &["run", file.to_str().unwrap(), "--out", out], &[]);
        (output.status.success(), crate::mock_server::text(&output.stderr))
    };
    let (done, words) = started(json!({"kind": "file", "file": "ties.csv"}), "refused");
    assert!(!done && words.contains("2 edges that tie an agent to itself"), "{words}");
    assert!(words.contains("`self_loops: drop`"), "{words}");
    let (done, words) = started(json!({"kind": "file", "file": "ties.csv", "self_loops": "drop"}), "repeated");
    assert!(!done && words.contains("1 edges that repeat another"), "{words}");
    let drop = json!({"kind": "file", "file": "ties.csv", "self_loops": "drop", "duplicates": "drop"});
    let (done, words) = started(drop, "dropped");
    assert!(
        done && words.contains("`ties.csv` that are left out: 2 tie an agent to itself, 1 repeat another"),
        "{words}"
    );
    let ties = crate::mock_server::polity(&folder, &["export", "dropped", "--table", "ties"], &[]);
    // Three undirected ties, a row for each direction, and the header.
    assert_eq!(crate::mock_server::text(&ties.stdout).lines().count(), 7);
    fs::remove_dir_all(&folder).unwrap();
}
