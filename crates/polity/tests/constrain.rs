//! Choices constrained by a server: a thousand decisions of a weak simulated model with every constraint that the mock server offers, and
//! with none.

use crate::harness::{choosers, engine, prepared, run, scratch};
use polity_driver::run::{Engine, Summary};
use polity_kernel::ask::Constrain;
use polity_models::mock_server::{MockServer, Options};
use polity_models::models::Providers;
use polity_models::models::anthropic::Anthropic;
use polity_models::models::keys::Secret;
use polity_models::models::openai::OpenAi;
use polity_store::DriveError;
use polity_store::disk::{Disk, SimDisk};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

const MODEL: &str = "openai/weak";
const DECISIONS: u64 = 1000;

fn mock_server(offers: &[Constrain]) -> MockServer {
    MockServer::start(Options { offers: offers.to_vec(), ..Options::default() }).unwrap()
}

fn decided(mock_server: &MockServer, settings: Value) -> (Result<Summary, DriveError>, Arc<dyn Disk>) {
    let folder = scratch("constrain");
    let disk: Arc<dyn Disk> = Arc::new(SimDisk::default());
    let provider = OpenAi::new(&mock_server.url(), Secret::new("a-key-for-tests")).unwrap();
    let providers = Arc::new(Providers::of(vec![Box::new(provider)]));
    let engine = Engine { providers, ..engine(disk.clone(), 1, None) };
    (run(&engine, &prepared(&choosers(MODEL, settings), &folder), Path::new("run")), disk)
}

fn capabilities(disk: &Arc<dyn Disk>) -> Value {
    let manifest = disk.read(Path::new("run/manifest.json")).unwrap();
    serde_json::from_slice::<Value>(&manifest).unwrap()["capabilities"][MODEL].clone()
}

#[test]
fn a_weak_model_decides_validly_in_every_way_that_is_offered() {
    for way in [Constrain::Schema, Constrain::Choice, Constrain::Grammar, Constrain::Logprobs] {
        let mock_server = mock_server(&[way]);
        // Configured, and detected.
        for settings in [json!({"constrain": way.name()}), json!({})] {
            let before = mock_server.stats();
            let (summary, disk) = decided(&mock_server, settings.clone());
            let resolutions = summary.unwrap().totals.resolutions;
            assert_eq!(resolutions.fit, DECISIONS, "{} {settings}: {resolutions:?}", way.name());
            // No request failed.
            let stats = mock_server.stats();
            assert_eq!((stats.calls - before.calls, stats.answered - before.answered), (DECISIONS, DECISIONS));
            let found = capabilities(&disk);
            for other in ["schema", "choice", "grammar", "logprobs"] {
                assert_eq!(found[other], json!(other == way.name()), "{found}");
            }
        }
    }
}

/// Control for the test above.
#[test]
fn the_same_model_held_by_words_alone_is_often_asked_again() {
    for (offers, settings) in [(&Constrain::ALL[..4], json!({"constrain": "words"})), (&[], json!({}))] {
        let (summary, _) = decided(&mock_server(offers), settings);
        let resolutions = summary.unwrap().totals.resolutions;
        // Of 1,000 some 400 are malformed: a third is repaired, the rest retried.
        assert!((80..200).contains(&resolutions.repaired), "{resolutions:?}");
        assert!(
            (200..500).contains(&resolutions.again) && resolutions.reasked > 100 && resolutions.default > 0,
            "{resolutions:?}"
        );
        assert_eq!(
            resolutions.fit + resolutions.repaired + resolutions.reasked + resolutions.default,
            DECISIONS,
            "{resolutions:?}"
        );
    }
}

/// A configured constraint is kept: log-probabilities are not silently replaced by a schema.
#[test]
fn what_a_server_refuses_is_told() {
    for way in ["schema", "choice", "grammar", "logprobs"] {
        let others: Vec<Constrain> = Constrain::ALL[..4].iter().copied().filter(|other| other.name() != way).collect();
        let (ended, _) = decided(&mock_server(&others), json!({"constrain": way}));
        let told = ended.unwrap_err().to_string();
        assert!(told.contains(&format!("does not accept `constrain: {way}`")), "{told}");
    }
}

/// On a wire without constraints, and at a mock server that does not know the name.
#[test]
fn what_is_not_there_is_told() {
    let folder = scratch("constrain-elsewhere");
    let mock_server = mock_server(&Constrain::ALL[..4]);
    let provider = Anthropic::new(&mock_server.root(), Secret::new("a-key-for-tests")).unwrap();
    let providers = Arc::new(Providers::of(vec![Box::new(provider)]));
    let engine = Engine { providers, ..engine(Arc::new(SimDisk::default()), 1, None) };
    let scenario = choosers("anthropic/weak", json!({"constrain": "grammar"}));
    let told = run(&engine, &prepared(&scenario, &folder), Path::new("run")).unwrap_err().to_string();
    assert!(told.contains("`constrain: grammar` is not supported by `anthropic/...`"), "{told}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_polity"));
    let output = command.args(["mock-server", "--offers", "schema,choise"]).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && told.contains("did you mean `choice`?"), "{told}");
}
