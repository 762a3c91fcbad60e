//! Attributes that steer: cohorts by condition, parameters that differ by agent, metrics by group, and data as they are.

use crate::harness::{
    StopAfter, Tables, arg, assert_same_tables, engine, polity, prepared, replay, resume, run, scratch, tables,
};
use polity_driver::drive::Stop;
use polity_driver::run::{Engine, Extent, RunStatus};
use polity_store::disk::SimDisk;
use polity_store::tables::ColumnData;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// 120 respondents as Excel saves them in Europe, sorted by school; some ages and some trust are missing.
fn write_survey(folder: &Path) {
    let mut text = String::from("id;party;age;school;trust;openness\n");
    for i in 0..120u32 {
        let party = ["green", "red", "none"][(i * 7 % 3) as usize];
        let age = if i % 17 == 3 { String::new() } else { (18 + i * 13 % 60).to_string() };
        let trust = if i % 20 == 7 { "NA".to_owned() } else { format!("{},{}", i * 11 % 10, i % 10) };
        let school = 1 + i / 60;
        text.push_str(&format!("{};{party};{age};{school};{trust};{}\n", 5_000 + i, school * 2));
    }
    fs::write(folder.join("survey.csv"), text).unwrap();
}

fn scenario(population: Value, cohorts: Value) -> Value {
    json!({
        "name": "attributes", "seed": 5, "rounds": 6,
        "population": population,
        "world": {"kind": "opinion", "low": 0, "high": 10, "initial": {"column": "trust"}},
        "topology": {"kind": "homophily", "by": ["party", "school"], "mean_degree": 6, "same": 0.7},
        "cohorts": cohorts,
        "metrics": [
            {"kind": "mean", "of": "opinion", "by": "party"},
            {"kind": "mean", "of": "opinion", "by": ["party", "school"]},
            {"kind": "mean", "of": "age"},
            {"kind": "mean", "of": "opinion"},
        ],
        "snapshot": {"rounds": 2},
    })
}

fn deffuant(epsilon: Value) -> Value {
    json!({"kind": "deffuant-weisbuch", "epsilon": epsilon, "mu": 0.4})
}

fn complete() -> Value {
    json!({"file": "survey.csv", "missing": "drop"})
}

fn column<'a>(tables: &'a Tables, table: &str, name: &str) -> &'a ColumnData {
    &tables[table].iter().find(|(column, _)| column == name).unwrap_or_else(|| panic!("{table} has no {name}")).1
}

fn words(tables: &Tables, table: &str, name: &str) -> Vec<String> {
    column(tables, table, name).texts().into_iter().map(Option::unwrap).collect()
}

fn numbers(tables: &Tables, table: &str, name: &str) -> Vec<Option<f64>> {
    column(tables, table, name).numbers()
}

fn tables_of(scenario: &Value, folder: &Path, shards: usize) -> (Tables, String) {
    let disk = SimDisk::default();
    let out = Path::new("runs/a");
    let prepared = prepared(scenario, folder);
    let engine = engine(Arc::new(disk.clone()), shards, None);
    engine.validate(&prepared, Extent::Outline).unwrap();
    let summary = run(&engine, &prepared, out).unwrap();
    (tables(&disk, out), summary.digest)
}

#[test]
fn surveys_are_read_as_they_are() {
    let folder = scratch("attributes-data");
    write_survey(&folder);
    let cohorts = json!([{"policy": deffuant(json!(2))}]);
    let (found, _) = tables_of(&scenario(complete(), cohorts.clone()), &folder, 1);
    // By hand: rows with an age and a trust.
    let complete_rows = |i: &u32| i % 17 != 3 && i % 20 != 7;
    let expected: Vec<Option<f64>> = (0..120).filter(complete_rows).map(|i| Some(f64::from(5_000 + i))).collect();
    assert_eq!(numbers(&found, "agents", "id"), expected);
    assert!(matches!(column(&found, "agents", "id"), ColumnData::U64(_)), "ids stay whole numbers");
    assert!(matches!(column(&found, "agents", "trust"), ColumnData::F64(_)));
    let trust: Vec<Option<f64>> =
        (0..120).filter(complete_rows).map(|i| Some(f64::from(i * 11 % 10) + f64::from(i % 10) / 10.0)).collect();
    assert_eq!(numbers(&found, "agents", "trust"), trust);
    let missing = |skip: u32, of: u32| (0..120).filter(|i| i % skip == of).count() as f64;
    let census: Vec<(String, Option<f64>)> =
        words(&found, "census", "quantity").into_iter().zip(numbers(&found, "census", "value")).collect();
    let n = expected.len() as f64;
    let rows = [
        ("rows", 120.0),
        ("missing", missing(17, 3)),
        ("missing", missing(20, 7)),
        ("eligible", n),
        ("used", n),
        ("most-agents-of-a-row", 1.0),
        ("effective-sample-size", n),
    ];
    assert_eq!(census, rows.map(|(quantity, value)| (quantity.to_owned(), Some(value))));
    // What is missing in a column that nobody uses disturbs nobody, and is missing in the table, too.
    let keep = json!({"file": "survey.csv", "missing": {"trust": "drop"}});
    let (found, _) = tables_of(&scenario(keep, cohorts.clone()), &folder, 1);
    let expected: Vec<Option<f64>> =
        (0..120u32).filter(|i| i % 20 != 7).map(|i| (i % 17 != 3).then(|| f64::from(18 + i * 13 % 60))).collect();
    assert_eq!(numbers(&found, "agents", "age"), expected);
    let part = json!({"file": "survey.csv", "columns": ["party", "school", "trust", "age"], "na_values": [1.0, "none"], "missing": "drop"});
    let (found, _) = tables_of(&scenario(part, cohorts), &folder, 1);
    assert!(words(&found, "agents", "party").iter().all(|party| party != "none"));
    assert!(!found["agents"].iter().any(|(name, _)| name == "openness"));
}

#[test]
fn what_depends_on_a_missing_value_is_missing_and_a_condition_must_be_known() {
    let folder = scratch("attributes-unknown");
    write_survey(&folder);
    let population = json!({
        "file": "survey.csv", "missing": {"trust": "drop"}, "na_values": ["none"],
        "derive": {
            "generation": "'young' if age < 40 else 'old'", "retired": "age >= 65", "party2": "party",
            "known": "'unknown' if missing(party) else party", "green": "1 if party == 'green' else 0",
        },
    });
    let with = |condition: &str| {
        scenario(
            population.clone(),
            json!([{"where": condition, "policy": deffuant(json!(1))}, {"policy": deffuant(json!(2))}]),
        )
    };
    let (found, _) = tables_of(&with("age < 40 or missing(age)"), &folder, 1);
    let age = numbers(&found, "agents", "age");
    let expected: Vec<[&str; 2]> = age
        .iter()
        .map(|age| match age {
            None => ["NA", "NA"],
            Some(age) => [["old", "young"][usize::from(*age < 40.0)], ["false", "true"][usize::from(*age >= 65.0)]],
        })
        .collect();
    let (generation, retired) = (words(&found, "agents", "generation"), words(&found, "agents", "retired"));
    let got: Vec<[&str; 2]> = generation.iter().zip(&retired).map(|(a, b)| [a.as_str(), b.as_str()]).collect();
    assert_eq!(got, expected);
    assert!(age.contains(&None));
    let (party, party2, known) =
        (words(&found, "agents", "party"), words(&found, "agents", "party2"), words(&found, "agents", "known"));
    assert_eq!(party, party2);
    assert!(party.iter().zip(&known).all(|(party, known)| known == if party == "NA" { "unknown" } else { party }));
    assert!(party.iter().any(|party| party == "NA"));
    let green = numbers(&found, "agents", "green");
    assert!(party.iter().zip(&green).all(|(party, green)| green.is_none() == (party == "NA")));
    // Agents whose age is missing come first, with the young.
    let first = age.iter().take_while(|age| age.is_none_or(|age| age < 40.0)).count();
    assert!(age[first..].iter().all(|age| age.is_some_and(|age| age >= 40.0)));
    let file = folder.join("unknown.json");
    for (condition, parts) in [
        ("age < 40", ["unknown whether 7 agents meet this", "(age = missing)"]),
        ("party != 'green'", ["unknown whether", "(party = NA)"]),
    ] {
        fs::write(&file, with(condition).to_string()).unwrap();
        let said = polity(&["run", arg(&file), "--out", arg(&folder.join("run"))]);
        let plain = said.notes.replace("\n  │ ", " ");
        for part in ["cohorts[0].where", "missing(age)"].into_iter().chain(parts) {
            assert!(plain.contains(part), "`{part}` is not in\n{}", said.notes);
        }
        assert_eq!(said.code, Some(2), "{}", said.notes);
    }
}

#[test]
fn combinations_of_columns_have_shares_of_their_own() {
    let folder = scratch("attributes-joint");
    write_survey(&folder);
    let shares = json!({
        "party=green, school=1": 0.3, "party=green, school=2": 0.1, "party=red, school=1": 0.05, "party=red, school=2": 0.25,
        "party=none, school=1": 0.2, "party=none, school=2": 0.1,
    });
    let population = json!({
        "file": "survey.csv", "missing": "drop", "derive": {"cell": ["party", "school"]},
        "marginals": [{"column": "cell", "shares": shares}, {"column": "party", "shares": {"green": 0.4, "red": 0.3, "none": 0.3}}],
    });
    let mut scenario = scenario(population, json!([{"policy": deffuant(json!(2))}]));
    scenario["agents"] = json!(400);
    let (found, _) = tables_of(&scenario, &folder, 1);
    let (party, school) = (words(&found, "agents", "party"), numbers(&found, "agents", "school"));
    let share = |group: &str, level: f64| {
        (0..400).filter(|i| party[*i] == group && school[*i] == Some(level)).count() as f64 / 400.0
    };
    for (cell, expected) in [(("green", 1.0), 0.3), (("red", 2.0), 0.25), (("none", 2.0), 0.1)] {
        assert!((share(cell.0, cell.1) - expected).abs() < 0.01, "{cell:?}");
    }
}

#[test]
fn cohorts_by_condition_take_the_first_that_fits() {
    let folder = scratch("attributes-where");
    write_survey(&folder);
    let derive =
        json!({"file": "survey.csv", "missing": "drop", "derive": {"generation": "'young' if age < 40 else 'old'"}});
    let cohorts = json!([
        {"name": "a", "where": "party == \"green\" and generation == 'young'", "policy": deffuant(json!(1))},
        {"name": "rest", "share": 0.25, "policy": deffuant(json!(2))},
        {"name": "b", "where": "party in (\"green\", \"red\") and openness > 2", "policy": deffuant(json!(3))},
        {"name": "others", "share": 0.75, "policy": deffuant(json!(4))},
    ]);
    let scenario = scenario(derive, cohorts);
    let (found, digest) = tables_of(&scenario, &folder, 1);
    let (party, generation) = (words(&found, "agents", "party"), words(&found, "agents", "generation"));
    let (age, openness) = (numbers(&found, "agents", "age"), numbers(&found, "agents", "openness"));
    let mut sizes: BTreeMap<String, usize> = BTreeMap::new();
    for (i, cohort) in words(&found, "agents", "cohort").into_iter().enumerate() {
        assert_eq!(generation[i] == "young", age[i].unwrap() < 40.0);
        let expected = if party[i] == "green" && age[i].unwrap() < 40.0 {
            "a"
        } else if party[i] != "none" && openness[i].unwrap() > 2.0 {
            "b"
        } else if cohort == "rest" {
            "rest"
        } else {
            "others"
        };
        assert_eq!(cohort, expected, "agent {i}");
        *sizes.entry(cohort).or_default() += 1;
    }
    let left = (sizes["rest"] + sizes["others"]) as f64;
    assert!(sizes["a"] > 5 && sizes["b"] > 5 && (sizes["rest"] as f64 - left / 4.0).abs() < 1.0, "{sizes:?}");
    // Neither shards nor an interruption can change it.
    assert_eq!(tables_of(&scenario, &folder, 3).1, digest);
    let (disk, out) = (SimDisk::default(), Path::new("runs/cut"));
    let prepared = prepared(&scenario, &folder);
    let stop = Stop::default();
    let stoppable = Engine { stop: stop.clone(), ..engine(Arc::new(disk.clone()), 2, None) };
    let cut = stoppable.run(&prepared, out, &mut StopAfter(3, stop)).unwrap();
    assert_eq!(cut.status, RunStatus::Stopped);
    let engine = engine(Arc::new(disk.clone()), 3, None);
    resume(&engine, out).unwrap();
    assert_same_tables(&tables(&disk, out), &found, "resumed");
    replay(&engine, out).unwrap();
}

#[test]
fn ties_by_position_need_agents_that_keep_their_positions() {
    let folder = scratch("attributes-positions");
    write_survey(&folder);
    fs::write(folder.join("ties.csv"), "0,1\n1,2\n2,90\n").unwrap();
    let tied = |condition: &str| {
        let cohorts = json!([{"policy": deffuant(json!(2))}, {"where": condition, "policy": deffuant(json!(2))}]);
        let mut scenario = scenario(complete(), cohorts);
        scenario["topology"] = json!({"kind": "file", "file": "ties.csv"});
        scenario
    };
    // The file is sorted by school.
    let (found, _) = tables_of(&tied("school == 2"), &folder, 1);
    let cohorts = words(&found, "agents", "cohort");
    assert!(cohorts.is_sorted() && cohorts.contains(&"cohort-0".into()) && cohorts.contains(&"cohort-1".into()));
    let file = folder.join("moved.json");
    fs::write(&file, tied("school == 1").to_string()).unwrap();
    let said = polity(&["run", arg(&file), "--out", arg(&folder.join("run"))]);
    // Messages are wrapped.
    let plain = said.notes.replace("\n  │ ", " ");
    assert!(plain.contains("conditions bring the agents of a cohort together"), "{}", said.notes);
    assert_eq!(said.code, Some(2), "{}", said.notes);
}

#[test]
fn a_parameter_from_a_column_is_the_same_as_cohorts_by_condition() {
    let folder = scratch("attributes-parameters");
    write_survey(&folder);
    let of = |cohorts: Value| tables_of(&scenario(complete(), cohorts), &folder, 2).1;
    // The file is sorted by school, so both ways number the agents alike.
    let apart = of(json!([
        {"where": "school == 1", "policy": deffuant(json!(2))},
        {"policy": deffuant(json!(4))},
    ]));
    assert_eq!(of(json!([{"policy": deffuant(json!({"column": "openness"}))}])), apart);
    assert_eq!(of(json!([{"policy": deffuant(json!({"formula": "2 * school"}))}])), apart);
    assert_eq!(of(json!([{"policy": deffuant(json!({"formula": "2 if school == 1 else 4"}))}])), apart);
    // Draws of parameters touch no others, and they are the same whatever else is in the scenario.
    assert_eq!(of(json!([{"policy": deffuant(json!({"formula": "openness + uniform(0, 0)"}))}])), apart);
    let drawn = of(json!([{"policy": deffuant(json!({"formula": "normal(3, 0.5)"}))}]));
    assert_ne!(drawn, apart);
    assert_eq!(of(json!([{"policy": deffuant(json!({"formula": "normal(3, 0.5)"}))}])), drawn);
    let other = of(json!([{"policy": deffuant(json!({"formula": "normal(3, 0.6)"}))}]));
    assert_ne!(other, drawn);
}

#[test]
fn metrics_by_group_are_those_of_the_agents_of_the_group() {
    let folder = scratch("attributes-by");
    write_survey(&folder);
    let cohorts = json!([
        {"name": "young", "where": "age < 40", "policy": deffuant(json!(3))},
        {"policy": deffuant(json!(1))},
    ]);
    let mut scenario = scenario(complete(), cohorts);
    scenario["metrics"].as_array_mut().unwrap().push(json!({"kind": "mean", "of": "opinion", "by": "cohort"}));
    let (found, _) = tables_of(&scenario, &folder, 3);
    let last = numbers(&found, "agents", "opinion.last");
    let cohort = words(&found, "agents", "cohort");
    for group in ["young", "cohort-1"] {
        assert!(cohort.iter().any(|name| name == group), "{cohort:?}");
    }
    let (party, school) = (words(&found, "agents", "party"), numbers(&found, "agents", "school"));
    let mean = |of: &dyn Fn(usize) -> bool| {
        let values: Vec<f64> = (0..last.len()).filter(|i| of(*i)).map(|i| last[i].unwrap()).collect();
        values.iter().sum::<f64>() / values.len() as f64
    };
    let rounds = numbers(&found, "metrics", "round");
    let values: BTreeMap<String, f64> = words(&found, "metrics", "name")
        .into_iter()
        .zip(numbers(&found, "metrics", "value"))
        .zip(rounds)
        .filter(|(_, round)| *round == Some(5.0))
        .map(|((name, value), _)| (name, value.unwrap()))
        .collect();
    let close = |name: &str, expected: f64| {
        let value = values.get(name).unwrap_or_else(|| panic!("no {name} in {values:?}"));
        assert!((value - expected).abs() < 1e-12, "{name}: {value} for {expected}");
    };
    for group in ["green", "red", "none"] {
        close(&format!("opinion.mean[party={group}]"), mean(&|i| party[i] == group));
        for level in [1.0, 2.0] {
            let name = format!("opinion.mean[party={group}, school={level}]");
            close(&name, mean(&|i| party[i] == group && school[i] == Some(level)));
        }
    }
    for group in ["young", "cohort-1"] {
        close(&format!("opinion.mean[cohort={group}]"), mean(&|i| cohort[i] == group));
    }
    close("opinion.mean", mean(&|_| true));
    let ages: Vec<f64> = numbers(&found, "agents", "age").into_iter().map(Option::unwrap).collect();
    close("age.mean", ages.iter().sum::<f64>() / ages.len() as f64);
}

#[test]
fn wrong_conditions_and_parameters_are_refused_where_they_stand() {
    let folder = scratch("attributes-wrong");
    write_survey(&folder);
    let base = || scenario(complete(), json!([{"name": "all", "policy": deffuant(json!(2))}]));
    let cohort =
        |condition: &str| json!([{"where": condition, "policy": deffuant(json!(1))}, {"policy": deffuant(json!(1))}]);
    let cases: Vec<(&str, Value, &[&str])> = vec![
        ("cohorts", cohort("party == 'gren'"), &["cohorts[0].where", "did you mean `green`?"]),
        ("cohorts", cohort("chance(0.5)"), &["cohorts[0].where", "draws a random number, which is not possible here"]),
        ("cohorts", cohort("age + 1"), &["cohorts[0].where", "gives a number, but true or false is needed"]),
        ("cohorts", cohort("age > 200"), &["cohorts[0].where", "no agent meets this condition"]),
        (
            "cohorts",
            json!([{"where": "age < 30", "policy": deffuant(json!(1))}]),
            &["cohorts", "agents meet no condition, for instance the one in line", "add a cohort without `where`"],
        ),
        (
            "cohorts",
            json!([{"where": "age < 30", "share": 0.5, "policy": deffuant(json!(1))}, {"policy": deffuant(json!(1))}]),
            &["cohorts[0].share", "the condition decides"],
        ),
        (
            "cohorts",
            json!([{"policy": deffuant(json!({"column": "party"}))}]),
            &["cohorts[0].policy.epsilon", "expected a number, found text `green`", "(agent 0, line 2)"],
        ),
        (
            "cohorts",
            json!([{"policy": deffuant(json!({"formula": "1 / (age - 18)"}))}]),
            &["cohorts[0].policy.epsilon", "there is no finite value for line 2 (age = 18)"],
        ),
        (
            "cohorts",
            json!([{"policy": deffuant(json!({"formula": "opennes"}))}]),
            &["cohorts[0].policy.epsilon.formula", "did you mean `openness`?"],
        ),
        (
            "population",
            json!({"file": "survey.csv"}),
            &["world.initial.column", "6 of 120 values are missing, the first in line 9"],
        ),
        (
            "population",
            json!({"file": "survey.csv", "columns": ["partie"]}),
            &["population.columns[0]", "did you mean `party`?"],
        ),
        (
            "population",
            json!({"file": "survey.csv", "missing": "ignore"}),
            &["population.missing", "choices: drop, keep, level"],
        ),
        (
            "population",
            json!({"file": "survey.csv", "missing": {"age": "level"}}),
            &["population.missing.age", "holds numbers"],
        ),
        (
            "population",
            json!({"file": "survey.csv", "missing": "drop", "derive": {"party": "age"}}),
            &["population.derive.party", "the name is used twice"],
        ),
        (
            "population",
            json!({"file": "survey.csv", "missing": "drop", "derive": {"root": "sqrt(age - 40)"}}),
            &["population.derive.root", "the result is not finite for line 2 (age = 18)"],
        ),
        ("metrics", json!([{"kind": "mean", "of": "party"}]), &["metrics[0].of", "holds words", "`by: party`"]),
        (
            "metrics",
            json!([{"kind": "mean", "of": "opinion", "by": "prty"}]),
            &["metrics[0].by", "did you mean `party`?"],
        ),
        (
            "metrics",
            json!([{"kind": "mean", "of": "opinion", "group": "party"}]),
            &["metrics[0].group", "known keys: of, by, every"],
        ),
        (
            "topology",
            json!({"kind": "homophily", "by": ["party", "party"], "mean_degree": 4, "same": 0.5}),
            &["listed twice"],
        ),
    ];
    for (i, (key, value, parts)) in cases.into_iter().enumerate() {
        let mut scenario = base();
        scenario[key] = value;
        let file = folder.join(format!("wrong-{i}.json"));
        fs::write(&file, scenario.to_string()).unwrap();
        let said = polity(&["run", arg(&file), "--out", arg(&folder.join("run"))]);
        // Messages are wrapped.
        let plain = said.notes.replace("\n  │ ", " ");
        for part in parts {
            assert!(plain.contains(part), "{key} {i}: `{part}` is not in\n{}", said.notes);
        }
        assert_eq!(said.code, Some(2), "{}", said.notes);
    }
}
