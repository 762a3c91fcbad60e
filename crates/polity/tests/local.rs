//! Tiny random models inside the process: a society of minds, a thousand decisions, and a platform with embedded posts; on several
//! shards, and replayed without the models' files.

use crate::bert::Bert;
use crate::gguf::Tiny;
use crate::harness::{OPTIONS, answers, choosers, engine, events, prepared, replay, run, scratch};
use polity_driver::run::RunStatus;
use polity_kernel::ask::{Outcome, Value};
use polity_store::disk::{Disk, SimDisk};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

const OUT: &str = "run";

#[test]
fn a_thousand_decisions_are_valid_and_the_same_by_any_shards_and_without_the_file() {
    let folder = scratch("local-society");
    let path = folder.join("tiny.gguf");
    let said = ["User: Agent", "round", "where to?", "Assistant:", "Reply with one of these, and with nothing else:"];
    let words: Vec<&str> = OPTIONS.into_iter().chain(said).collect();
    Tiny::new(&words, 3).write(&path, "llama", true);
    let model = format!("local/{}", path.display());
    let of = |settings: Json| prepared(&choosers(&model, settings), &folder);
    let warm = of(json!({"temperature": 1.0}));
    let mut digests = Vec::new();
    for shards in [1, 4] {
        let disk: Arc<dyn Disk> = Arc::new(SimDisk::default());
        let summary = run(&engine(disk.clone(), shards, None), &warm, Path::new(OUT)).unwrap();
        let totals = &summary.totals;
        assert_eq!((totals.resolutions.fit, totals.answers, totals.cost_usd), (1000, 1000, 0.0), "{totals:?}");
        assert!(totals.tokens_in > 0 && totals.tokens_out > 0 && !summary.simulated);
        digests.push(summary.digest);
        if shards == 4 {
            // Every option is chosen by somebody, each as its own index.
            let mut chosen: BTreeMap<u32, u32> = BTreeMap::new();
            for answer in answers(&events(disk.clone(), Path::new(OUT)).unwrap().0).values().flatten() {
                match &answer.outcome {
                    Outcome::Reply { value: Value::Choice(i), .. } => *chosen.entry(*i).or_default() += 1,
                    other => panic!("{other:?}"),
                }
            }
            assert_eq!(chosen.len(), OPTIONS.len(), "{chosen:?}");
            let manifest: Json =
                serde_json::from_slice(&disk.read(&Path::new(OUT).join("manifest.json")).unwrap()).unwrap();
            let weights = manifest["capabilities"][&model]["weights"].as_str().unwrap();
            let sum = Command::new("sha256sum").arg(&path).output().unwrap().stdout;
            assert!(String::from_utf8(sum).unwrap().starts_with(&format!("{weights} ")), "{manifest}");
            assert_eq!(manifest["prices"][&model]["output"], 0.0, "{manifest}");
            // No model is available.
            std::fs::remove_file(&path).unwrap();
            assert_eq!(replay(&engine(disk, 2, None), Path::new(OUT)).unwrap().status, RunStatus::Same);
        }
    }
    assert_eq!(digests[0], digests[1]);
}

/// Control for the test above: prompted in words alone, the same model says nothing that fits.
#[test]
fn the_same_model_held_by_words_alone_says_nothing_that_fits() {
    let folder = scratch("local-words");
    let path = folder.join("tiny.gguf");
    Tiny::new(&OPTIONS, 3).write(&path, "llama", true);
    let mut scenario = choosers(&format!("local/{}", path.display()), json!({"constrain": "words", "max_tokens": 8}));
    scenario["agents"] = 10.into();
    scenario["rounds"] = 1.into();
    let disk: Arc<dyn Disk> = Arc::new(SimDisk::default());
    let summary = run(&engine(disk, 1, None), &prepared(&scenario, &folder), Path::new(OUT)).unwrap();
    assert_eq!(summary.totals.resolutions.default, 10, "{:?}", summary.totals.resolutions);
}

#[test]
fn posts_on_the_platform_have_vectors_by_a_folder_and_without_it_when_replayed() {
    let folder = scratch("local-vectors");
    let model = folder.join("bert");
    std::fs::create_dir(&model).unwrap();
    Bert::new(5).write(&model);
    let of = |embedding: Option<String>| {
        let texts = ["The dogs bark.", "A red house!", "dogs", "Who sees the house?"];
        let seed = |i: usize| json!({"author": i, "at": i / 2, "stance": 0.3, "topic": i, "text": texts[i % 4]});
        let scenario = json!({
            "polity": 2, "name": "vectors", "seed": 2, "rounds": 8, "agents": 5000, "topology": {"kind": "barabasi-albert", "links": 4},
            "world": {"kind": "platform", "hours": vec![0.3; 24], "embedding": embedding, "seeds": (0..12).map(seed).collect::<Vec<_>>()},
            "cohorts": [{"policy": {"kind": "user"}}],
        });
        prepared(&scenario, &folder)
    };
    let name = format!("local/{}", model.display());
    let mut digests = Vec::new();
    for shards in [1, 2] {
        let disk: Arc<dyn Disk> = Arc::new(SimDisk::default());
        let summary = run(&engine(disk.clone(), shards, None), &of(Some(name.clone())), Path::new(OUT)).unwrap();
        assert_eq!((summary.totals.answers, summary.totals.resolutions.fit, summary.totals.cost_usd), (12, 12, 0.0));
        digests.push(summary.digest);
        if shards == 2 {
            std::fs::remove_dir_all(&model).unwrap();
            assert_eq!(replay(&engine(disk, 1, None), Path::new(OUT)).unwrap().status, RunStatus::Same);
        }
    }
    assert_eq!(digests[0], digests[1]);
    let disk: Arc<dyn Disk> = Arc::new(SimDisk::default());
    assert_ne!(run(&engine(disk, 1, None), &of(None), Path::new(OUT)).unwrap().digest, digests[0]);
}
