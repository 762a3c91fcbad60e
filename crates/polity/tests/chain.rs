//! Methods as chains of conditional probabilities, derived from the record: a debate against samples, what a placebo leaves of a chain,
//! choice points, every method of the catalogue.

use crate::harness::{answers, arg, engine, events, polity, prepared, registry, run, scratch, team};
use polity_driver::chain::{Chain, Drawn, Record, weakest};
use polity_kernel::ask::Outcome;
use polity_kernel::event::Event;
use polity_store::disk::RealDisk;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// Runs a scenario in a new folder; returns its chain.
fn chain(folder: &Path, name: &str, scenario: &Value) -> Chain {
    let out = folder.join(name);
    run(&engine(Arc::new(RealDisk), 1, None), &prepared(scenario, folder), &out).unwrap();
    read(&out)
}

/// The chain of a run. Its numbers add up to the answers in the journal.
fn read(out: &Path) -> Chain {
    let chain = Chain::read(&RealDisk, out).unwrap().unwrap();
    let (events, _) = events(Arc::new(RealDisk), out).unwrap();
    let answers: usize =
        events.iter().map(|event| if let Event::Answers(answers) = event { answers.len() } else { 0 }).sum();
    assert_eq!(chain.items, chain.of, "all items are read");
    assert_eq!(chain.calls, answers as u64, "{}: calls", out.display());
    let of_factors: u64 = chain.factors.iter().filter(|factor| !factor.is_answer()).map(|factor| factor.calls).sum();
    assert_eq!(of_factors + chain.again + chain.scoring, chain.calls, "{}: sum", out.display());
    let of_answers: u64 = chain.factors.iter().filter(|factor| factor.is_answer()).map(|factor| factor.calls).sum();
    assert_eq!(of_answers, chain.items as u64, "{}: every item has one answer", out.display());
    chain
}

fn conditionals(chain: &Chain) -> Vec<(&str, u64)> {
    chain.factors.iter().map(|factor| (factor.conditional.as_str(), factor.calls)).collect()
}

fn freedoms(chain: &Chain, names: &[&str]) -> Vec<f64> {
    names.iter().map(|name| chain.freedom(name).unwrap_or_else(|| panic!("no {name}"))).collect()
}

#[test]
fn the_second_round_of_a_debate_is_conditioned_on_the_others_and_samples_are_on_nobody() {
    let folder = scratch("chain-debate");
    let debate = chain(&folder, "debate", &team(&folder, "debate", 6, 2));
    assert_eq!(
        conditionals(&debate),
        [
            ("p(solve[0] | question)", 18),
            ("p(reconsider[1] | question, own solve[0], 2 × others' solve[0])", 18),
            ("answer = f(3 × reconsider[1])", 6),
        ]
    );
    assert!(debate.factors[..2].iter().all(|factor| factor.drawn == Drawn::Sampled && factor.model == "sim/medium"));
    let names = ["calls", "factors", "sampled", "conditions", "others", "depth", "choice-points", "rounds", "members"];
    assert_eq!(freedoms(&debate, &names), [6.0, 2.0, 2.0, 9.0, 6.0, 2.0, 0.0, 2.0, 3.0]);
    assert_eq!(freedoms(&debate, &["models", "temperatures", "prompts"]), [1.0, 1.0, 2.0]);

    let mut samples = team(&folder, "self-consistency", 6, 1);
    samples["agents"] = 6.into();
    let samples = chain(&folder, "samples", &samples);
    assert_eq!(conditionals(&samples), [("p(solve[0] | question)", 36), ("answer = f(6 × solve[0])", 6)]);
    // As many calls as the debate, but none knows another.
    assert_eq!(freedoms(&samples, &names), [6.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 6.0]);

    // The placebo shows nobody what others said: a member still knows its own answer.
    let mut deaf = team(&folder, "debate", 6, 2);
    deaf["placebo"] = json!(["said"]);
    let deaf = chain(&folder, "deaf", &deaf);
    assert_eq!(conditionals(&deaf)[1], ("p(reconsider[1] | question, own solve[0])", 18));
    assert_eq!(freedoms(&deaf, &["calls", "conditions", "others"]), [6.0, 3.0, 0.0]);

    // In a third round each member is given the second, although many repeat their answer, and itself.
    let long = chain(&folder, "long", &team(&folder, "debate", 6, 3));
    assert_eq!(
        conditionals(&long)[2],
        ("p(reconsider[2] | question, own reconsider[1], 2 × others' reconsider[1])", 18)
    );
    assert_eq!(freedoms(&long, &["depth"]), [3.0]);
}

#[test]
fn answers_decide_where_a_debate_may_stop() {
    let folder = scratch("chain-choice");
    let mut stops = team(&folder, "debate", 30, 3);
    stops["method"]["stop_when_agreed"] = true.into();
    let stops = chain(&folder, "stops", &stops);
    let [points, calls] = freedoms(&stops, &["choice-points", "calls"])[..] else { panic!() };
    assert!(points >= 1.0 && calls < 9.0, "{points} {calls}");
    assert_eq!(
        freedoms(&chain(&folder, "goes-on", &team(&folder, "debate", 30, 3)), &["choice-points", "calls"]),
        [0.0, 9.0]
    );
}

#[test]
fn temperature_and_model_are_part_of_a_factor() {
    let folder = scratch("chain-settings");
    let mut scenario = team(&folder, "self-consistency", 4, 1);
    scenario.as_object_mut().unwrap().remove("agents");
    scenario["team"] = json!([
        {"model": "sim/small", "settings": {"temperature": 0.0}}, {"model": "sim/small", "settings": {"temperature": 0.7}},
        {"model": "sim/large", "settings": {"temperature": 0.7}},
    ]);
    let chain = chain(&folder, "mixed", &scenario);
    assert_eq!(freedoms(&chain, &["factors", "sampled", "models", "temperatures"]), [3.0, 2.0, 2.0, 2.0]);
    let greedy: Vec<&str> = chain
        .factors
        .iter()
        .filter(|factor| factor.drawn == Drawn::Greedy)
        .map(|factor| factor.model.as_str())
        .collect();
    assert_eq!(greedy, ["sim/small"]);
}

/// The report and `polity compare` show what the derivation gives.
#[test]
fn two_methods_stand_side_by_side() {
    let folder = scratch("chain-compare");
    for (name, scenario) in
        [("debate", team(&folder, "debate", 4, 2)), ("samples", team(&folder, "self-consistency", 4, 1))]
    {
        let file = folder.join(format!("{name}.json"));
        std::fs::write(&file, scenario.to_string()).unwrap();
        let args = ["run", arg(&file), "--out", name];
        let output = Command::new(env!("CARGO_BIN_EXE_polity")).current_dir(&folder).args(args).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let (debate, samples) = (folder.join("debate"), folder.join("samples"));
    let report = std::fs::read_to_string(debate.join("report.html")).unwrap();
    for words in [
        "Chain of conditional probabilities",
        "Degrees of freedom",
        "2 × others&#39; solve[0]",
        "answer = f(3 × reconsider[1])",
    ] {
        assert!(report.contains(words) || report.contains(&words.replace("&#39;", "'")), "{words}");
    }
    let said = Command::new(env!("CARGO_BIN_EXE_polity"))
        .args(["compare", arg(&debate), arg(&samples), "--json"])
        .output()
        .unwrap();
    let (table, json) = (String::from_utf8_lossy(&said.stderr), serde_json::from_slice::<Value>(&said.stdout).unwrap());
    assert!(table.contains("p(solve[0] | question)") && table.contains("degree of freedom"), "{table}");
    let row: Vec<&str> =
        table.lines().find(|line| line.trim_start().starts_with("others ")).unwrap().split_whitespace().collect();
    assert_eq!(row, ["others", "6", "0"]);
    let chains = json["chains"].as_array().unwrap();
    assert_eq!(chains.len(), 2);
    assert_eq!(chains[1]["factors"][0]["conditional"], "p(solve[0] | question)");
}

/// Every method of the catalogue that needs no tool: its chain has every call of the journal, and each statement that a request shows is
/// found in an earlier reply, unless the method makes the statement itself.
#[test]
fn every_method_is_a_chain() {
    let methods = Path::new(env!("CARGO_MANIFEST_DIR")).join("../polity-catalog/methods");
    let home = scratch("chain-methods");
    let mut folders: Vec<PathBuf> = std::fs::read_dir(methods).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    let mut seen = 0;
    for folder in folders.iter().filter(|folder| folder.join("scenario.yaml").exists()) {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let out = home.join(&name);
        let said = polity(&["run", arg(&folder.join("scenario.yaml")), "--out", arg(&out)]);
        if said.notes.contains("sandbox") && said.code != Some(0) {
            continue;
        }
        assert_eq!(said.code, Some(0), "{name}: {}", said.notes);
        let chain = read(&out);
        println!(
            "{name} {:?}",
            freedoms(&chain, &["calls", "factors", "conditions", "others", "depth", "choice-points", "prompts"])
        );
        for factor in &chain.factors {
            println!("    {} {} {}", factor.conditional, factor.drawn.word(), factor.calls);
        }
        let unknown: Vec<_> =
            chain.factors.iter().filter(|factor| factor.conditional.contains("unknown origin")).collect();
        assert_eq!(unknown.is_empty(), !OWN_STATEMENTS.contains(&name.as_str()), "{name}: {unknown:?}");
        seen += 1;
    }
    assert!(seen > 20, "{seen}");
}

/// Methods that show statements of no member: documents put together by code, plans, answers of the data set.
const OWN_STATEMENTS: [&str; 3] = ["agentwrite", "autoagents", "judge"];

/// Recounts a component from the journal: the answers that are the right number.
#[test]
fn capacity_is_the_share_of_right_answers_of_each_component() {
    let folder = scratch("chain-capacity");
    let mut scenario = team(&folder, "debate", 20, 2);
    scenario.as_object_mut().unwrap().remove("agents");
    scenario["team"] = json!([{"name": "Ann", "model": "sim/large"}, {"name": "Bob", "model": "sim/small"}]);
    scenario["budget"] = json!({"tokens": 500_000});
    let file = folder.join("team.json");
    std::fs::write(&file, scenario.to_string()).unwrap();
    let out = folder.join("run");
    let args = ["run", arg(&file), "--out", arg(&out)];
    let output = Command::new(env!("CARGO_BIN_EXE_polity")).args(args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let record = Record::read(&RealDisk, &out).unwrap().unwrap();
    let components = record.components(Arc::new(RealDisk), registry()).unwrap();
    let names: Vec<_> = components.iter().map(|part| (part.name.as_str(), part.kind.as_str(), part.calls)).collect();
    assert_eq!(
        names,
        [("Ann", "reconsider", 20), ("Ann", "solve", 20), ("Bob", "reconsider", 20), ("Bob", "solve", 20)]
    );
    let (events, _) = events(Arc::new(RealDisk), &out).unwrap();
    for part in &components {
        let (mut right, mut tokens) = (0, 0);
        for answer in answers(&events).into_values().flatten() {
            if answer.id.actor == part.member && answer.request.purpose == part.kind {
                let Outcome::Reply { raw, .. } = &answer.outcome else { panic!() };
                let reply: Value = serde_json::from_str(raw).unwrap();
                right += u64::from(reply["answer"] == (2 * answer.id.item).to_string().as_str());
                tokens += answer.usage.tokens_in + answer.usage.tokens_out;
            }
        }
        assert_eq!((part.right, part.scored, part.tokens), (right, 20, tokens), "{}", part.name);
    }
    let weak = weakest(&components).unwrap();
    assert_eq!(weak.name, "Bob");
    let report = std::fs::read_to_string(out.join("report.html")).unwrap();
    let words = format!("The weakest is Bob at {}: right on {} of 20 items.", weak.kind, weak.right);
    for words in [words.as_str(), "tokens 500000", "team[1].model=PROVIDER/MODEL"] {
        assert!(report.contains(words), "{words}");
    }
    // Components that are equally good have no weakest.
    let mut same = components.clone();
    same.iter_mut().for_each(|part| part.right = 7);
    assert!(weakest(&same).is_none());
}
