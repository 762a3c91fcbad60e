//! Networks as data: measures against plain counts from the tables, exports in every format and back, files of ties that do not fit.

use crate::harness::{self, scratch, tables, write_scenario};
use crate::mock_server::{polity, text};
use polity_store::disk::RealDisk;
use polity_store::tables::ColumnData;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

fn column<'a>(tables: &'a harness::Tables, table: &str, name: &str) -> &'a ColumnData {
    &tables[table].iter().find(|(column, _)| column == name).unwrap_or_else(|| panic!("no {name}")).1
}

/// 40 people with names, ages and parties.
fn write_people(folder: &Path) {
    let row = |i: u32| format!("person-{i},{},{}\n", 20 + i % 37, ["green", "red", "none"][(i / 3) as usize % 3]);
    let rows: String = (0..40).rev().map(row).collect();
    fs::write(folder.join("people.csv"), format!("name,age,party\n{rows}")).unwrap();
}

fn scenario(topology: Value) -> Value {
    json!({
        "name": "net", "seed": 7, "rounds": 6, "population": {"file": "people.csv"}, "topology": topology,
        "world": {"kind": "opinion", "low": 0, "high": 100, "initial": {"column": "age"}},
        "cohorts": [{"policy": {"kind": "degroot"}}], "metrics": [{"kind": "mean", "of": "opinion"}],
    })
}

fn run(folder: &Path, topology: Value, out: &str) -> (bool, String) {
    let file = write_scenario(folder, &scenario(topology));
    let output = polity(folder, &["run", file.to_str().unwrap(), "--out", out], &[]);
    (output.status.success(), text(&output.stderr))
}

/// The ties of a run: who hears whom.
fn ties(run: &Path) -> Vec<(u32, u32)> {
    let tables = tables(&RealDisk, run);
    let ids = |name: &str| match column(&tables, "ties", name) {
        ColumnData::U32(ids) => ids.iter().map(|id| id.unwrap()).collect::<Vec<_>>(),
        _ => panic!("no ids"),
    };
    ids("agent").into_iter().zip(ids("hears")).collect()
}

fn correlation(pairs: &[(f64, f64)]) -> f64 {
    let n = pairs.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / n;
    let (x, y) = (mean(|pair| pair.0), mean(|pair| pair.1));
    let product = |a: fn(&(f64, f64), f64, f64) -> f64| pairs.iter().map(|pair| a(pair, x, y)).sum::<f64>();
    product(|p, x, y| (p.0 - x) * (p.1 - y))
        / (product(|p, x, _| (p.0 - x).powi(2)) * product(|p, _, y| (p.1 - y).powi(2))).sqrt()
}

#[test]
fn the_table_of_the_network_is_what_the_other_tables_say() {
    let folder = scratch("network-table");
    write_people(&folder);
    let homophily = json!({"kind": "homophily", "by": "party", "mean_degree": 6, "same": 0.8});
    let (done, words) = run(&folder, homophily, "run");
    assert!(done, "{words}");
    let of = tables(&RealDisk, &folder.join("run"));
    let (quantity, by) = (column(&of, "network", "quantity").texts(), column(&of, "network", "by").texts());
    let value = column(&of, "network", "value").numbers();
    let found: BTreeMap<(String, Option<String>), f64> =
        quantity.into_iter().zip(by).zip(value).map(|((q, by), value)| ((q.unwrap(), by), value.unwrap())).collect();
    let get = |quantity: &str, by: Option<&str>| found[&(quantity.to_owned(), by.map(String::from))];
    let ties = ties(&folder.join("run"));
    assert_eq!(get("ties", None), ties.len() as f64 / 2.0);
    assert_eq!((get("agents", None), get("directed", None)), (40.0, 0.0));
    assert!((get("mean-degree", None) - ties.len() as f64 / 40.0).abs() < 1e-12);
    let party = column(&of, "agents", "party").texts();
    let inside =
        ties.iter().filter(|(a, b)| party[*a as usize] == party[*b as usize]).count() as f64 / ties.len() as f64;
    let share = |word: &Option<String>| {
        ties.iter().filter(|(a, _)| party[*a as usize] == *word).count() as f64 / ties.len() as f64
    };
    let expected: f64 = ["green", "red", "none"].iter().map(|word| share(&Some((*word).into())).powi(2)).sum();
    assert!((get("modularity", Some("party")) - (inside - expected)).abs() < 1e-12);
    assert!((get("same", Some("party")) - inside).abs() < 1e-12);
    assert!((get("assortativity", Some("party")) - (inside - expected) / (1.0 - expected)).abs() < 1e-12);
    for name in ["opinion.first", "opinion.last"] {
        let values = column(&of, "agents", name).numbers();
        let pairs: Vec<(f64, f64)> =
            ties.iter().map(|(a, b)| (values[*a as usize].unwrap(), values[*b as usize].unwrap())).collect();
        assert!((get("numeric-assortativity", Some(name)) - correlation(&pairs)).abs() < 1e-12, "{name}");
    }
    // Averaging makes neighbours alike.
    let alike = |name: &str| get("numeric-assortativity", Some(name));
    assert!(alike("opinion.last") > alike("opinion.first") + 0.2);
    assert!(found.contains_key(&("modularity".into(), Some("age".into()))));
    assert!(!found.keys().any(|(_, by)| by.as_deref() == Some("name")), "every name is a group of one");
    let line = words.lines().find(|line| line.starts_with("network: ")).unwrap();
    assert!(line.starts_with(&format!("network: 40 agents, {} ties; degree ", ties.len() / 2)), "{line}");
    assert!(line.contains(&format!("by party: assortativity {:.3}", get("assortativity", Some("party")))), "{line}");
    // The table of agents is not needed for it.
    let mut silent = scenario(json!({"kind": "homophily", "by": "party", "mean_degree": 6, "same": 0.8}));
    silent["record"] = json!({"agents": false});
    let file = write_scenario(&folder, &silent);
    let output = polity(&folder, &["run", file.to_str().unwrap(), "--out", "silent"], &[]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(tables(&RealDisk, &folder.join("silent"))["network"], of["network"]);
    let page = fs::read_to_string(folder.join("run/report.html")).unwrap();
    assert!(page.contains("<h2>Network</h2>") && page.contains("degree-variance"));
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn networks_that_are_not_measured() {
    let folder = scratch("network-none");
    write_people(&folder);
    for topology in [json!({"kind": "complete"}), json!({"kind": "none"})] {
        let (done, words) = run(&folder, topology, "run");
        assert!(done && !words.contains("network:"), "{words}");
        fs::remove_dir_all(folder.join("run")).unwrap();
    }
    let mut silent = scenario(json!({"kind": "ring", "neighbours": 2}));
    silent["record"] = json!({"network": false, "ties": false});
    let file = write_scenario(&folder, &silent);
    let output = polity(&folder, &["run", file.to_str().unwrap(), "--out", "run"], &[]);
    assert!(output.status.success() && !text(&output.stderr).contains("network:"));
    let output = polity(&folder, &["export", "run", "--network", "graphml"], &[]);
    let words = text(&output.stderr);
    assert!(words.contains("has no table `ties`") && words.contains("`record: {ties: true}` records them"), "{words}");
    let output = polity(&folder, &["export", "run", "--network", "gexf", "--table", "acts"], &[]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    fs::remove_dir_all(&folder).unwrap();
}

/// Every format, and every graph with and without direction, comes back as the same ties.
#[test]
fn what_is_exported_is_read_as_the_same_graph() {
    let folder = scratch("network-back");
    write_people(&folder);
    let ring: String = (0..38).map(|i| format!("{i},{}\n{i},{}\n", i + 1, (i * 7 + 3) % 38)).collect();
    let ring: String = ring
        .lines()
        .filter(|line| line.split_once(',').is_some_and(|(a, b)| a != b))
        .map(|line| format!("{line}\n"))
        .collect();
    fs::write(folder.join("ties.csv"), ring).unwrap();
    for (kind, directed) in [("one-way", true), ("both", false)] {
        let file = json!({"kind": "file", "file": "ties.csv", "directed": directed, "duplicates": "drop"});
        let (done, words) = run(&folder, file, kind);
        assert!(done, "{words}");
        let expected = ties(&folder.join(kind));
        assert!(expected.len() > 70);
        for format in ["graphml", "gexf", "edges"] {
            let name = format!("{kind}.{}", if format == "edges" { "csv" } else { format });
            let output = polity(&folder, &["export", kind, "--network", format, "--out", &name], &[]);
            assert!(output.status.success(), "{output:?}");
            let mut topology = json!({"kind": "file", "file": name});
            if format == "edges" {
                topology["directed"] = json!(directed);
            }
            let out = format!("{kind}-{format}");
            let (done, words) = run(&folder, topology, &out);
            assert!(done, "{words}");
            assert_eq!(ties(&folder.join(&out)), expected, "{out}");
        }
    }
    let page = fs::read_to_string(folder.join("one-way.graphml")).unwrap();
    assert!(page.contains("edgedefault=\"directed\""), "{page}");
    for attribute in ["name", "age", "party", "cohort", "alive", "opinion.first", "opinion.last"] {
        assert!(page.contains(&format!("attr.name=\"{attribute}\"")), "{attribute}");
    }
    assert!(page.contains(">person-39</data>"));
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn agents_are_named_by_a_column_of_the_population() {
    let folder = scratch("network-names");
    write_people(&folder);
    fs::write(folder.join("friends.csv"), "who,whom\nperson-39,person-0\nperson-5,person-39\n").unwrap();
    let node = |i: u32| format!("<node id=\"person-{i}\"/>");
    fs::write(
        folder.join("friends.graphml"),
        format!(
            "<graphml><graph edgedefault=\"undirected\">{}{}{}<edge source=\"person-39\" target=\"person-0\"/>\
             <edge source=\"person-5\" target=\"person-39\"/></graph></graphml>",
            node(0),
            node(5),
            node(39)
        ),
    )
    .unwrap();
    // The file begins with person 39 and ends with person 0.
    for file in ["friends.csv", "friends.graphml"] {
        let (done, words) = run(&folder, json!({"kind": "file", "file": file, "id": "name"}), &format!("run-{file}"));
        assert!(done, "{words}");
        assert_eq!(ties(&folder.join(format!("run-{file}"))), [(0, 34), (0, 39), (34, 0), (39, 0)]);
    }
    let refused = |topology: Value| {
        let (done, words) = run(&folder, topology, "refused");
        assert!(!done, "{words}");
        // Lines of a message are broken to fit.
        words.replace('│', " ").split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let words = refused(json!({"kind": "file", "file": "friends.csv", "id": "nam"}));
    assert!(words.contains("did you mean `name`?"), "{words}");
    let words = refused(json!({"kind": "file", "file": "friends.csv", "id": "party"}));
    assert!(words.contains("so that it does not name one agent"), "{words}");
    let words = refused(json!({"kind": "file", "file": "friends.csv"}));
    assert!(
        words.contains("line 2: `person-39` is not an agent") && words.contains("`id: COLUMN` names them"),
        "{words}"
    );
    fs::write(folder.join("entities.graphml"), "<!DOCTYPE x [<!ENTITY y 'z'>]><graphml/>").unwrap();
    let words = refused(json!({"kind": "file", "file": "entities.graphml"}));
    assert!(words.contains("document types and entities are not read"), "{words}");
    fs::remove_dir_all(&folder).unwrap();
}
