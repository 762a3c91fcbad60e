//! Memory: estimates of scenarios against their actual use, and refusal of those that do not fit before they are created.

use polity_driver::run::prepare;
use polity_kernel::layout::Layout;
use polity_kernel::scenario::{MemoryBudget, assemble_within};
use polity_store::files::yaml;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn root() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Runs the program under limits of the shell (`ulimit -v 3000000`), in kB.
fn under(limits: &str, folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{limits}; exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_polity")]);
    command.args(args).current_dir(folder).env("RAYON_NUM_THREADS", "2").output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn society(agents: u32, topology: &str, policy: &str) -> String {
    format!(
        "rounds: 3\nagents: {agents}\ntopology: {topology}\nworld: {{kind: opinion}}\ncohorts: [{{policy: {{kind: {policy}}}}}]\n"
    )
}

/// Returns the estimated MB of a scenario in the repository's folder of scenarios.
fn estimated(scenario: &str) -> f64 {
    let folder = root().join("scenarios");
    let prepared = prepare(yaml::parse(scenario).unwrap(), "test", folder.as_path(), "test", Vec::new()).unwrap();
    let mut memory = MemoryBudget::unlimited();
    let registry = polity::registry();
    assemble_within(&prepared.tree, &registry, &prepared.inputs, Layout::default(), &mut memory).unwrap();
    memory.reserved() as f64 / 1e6
}

#[test]
fn estimates_are_near_what_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let repository = |name: &str, agents: u32, rounds: u32| {
        let text = std::fs::read_to_string(root().join("scenarios").join(name)).unwrap();
        let text = text.replace("../data", root().join("data").to_str().unwrap());
        let line = |line: &str| !line.starts_with("agents:") && !line.starts_with("rounds:");
        let rest: Vec<&str> = text.lines().filter(|text| line(text)).collect();
        format!("{}\nagents: {agents}\nrounds: {rounds}\n", rest.join("\n"))
    };
    let cases = [
        ("many agents by rules", society(3_000_000, "{kind: none}", "noise")),
        ("everybody tells everybody", society(5_000, "{kind: complete}", "degroot")),
        ("many ties, told", society(300_000, "{kind: erdos-renyi, mean_degree: 40}", "degroot")),
        ("many ties, silent", society(1_000_000, "{kind: ring, neighbours: 50}", "noise")),
        ("a grid", society(1_000_000, "{kind: grid}", "voter")),
        ("an epidemic", repository("epidemic.yaml", 1_000_000, 3)),
        ("a survey", repository("survey.yaml", 500_000, 3)),
        ("a platform", repository("platform.yaml", 300_000, 3)),
        ("minds", repository("guess-average-minds.yaml", 20_000, 2)),
    ];
    for (name, scenario) in cases {
        let estimated = estimated(&scenario);
        let file = folder.path().join("s.yaml");
        std::fs::write(&file, &scenario).unwrap();
        let args = ["run", "s.yaml", "--out", "out", "--no-report", "--json", "--threads", "2", "--allow-read", "/"];
        let ran = under("true", folder.path(), &args);
        assert!(ran.status.success(), "{name}: {}", text(&ran.stderr));
        let summary: Value = serde_json::from_str(text(&ran.stdout).lines().last().unwrap()).unwrap();
        let taken = summary["peak_memory_mb"].as_f64().unwrap();
        println!("{name}: {estimated:.0} MB estimated, {taken:.0} MB taken");
        // Small ones do not matter.
        let near = (0.5..=2.0).contains(&(estimated / taken));
        assert!(near || taken < 200.0, "{name}: {estimated:.0} MB estimated, {taken:.0} MB taken");
        std::fs::remove_dir_all(folder.path().join("out")).unwrap();
    }
}

#[test]
fn what_does_not_fit_is_refused_before_it_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let told = |limits: &str, scenario: &str, more: &[&str]| {
        std::fs::write(folder.path().join("s.yaml"), scenario).unwrap();
        let said = under(limits, folder.path(), &[&["run", "s.yaml", "--out", "out", "--no-report"], more].concat());
        let told = text(&said.stderr).replace(['\n', '│'], " ");
        (said.status.code(), told.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    // An address space of 4 GB is enough to refuse it.
    let tight = "ulimit -v 4000000";
    let everybody = society(100_000, "{kind: complete}", "degroot");
    for (scenario, words) in [
        (everybody.as_str(), "at most 4.000e9 are allowed"),
        (&society(20_000, "{kind: complete}", "degroot"), "is available: messages of a round "),
        (&society(100_000_000, "{kind: grid, width: 10000}", "noise"), "is available: agents "),
        (&society(100_000_000, "{kind: none}", "noise"), "is available: agents "),
        (&society(1_000_000, "{kind: erdos-renyi, mean_degree: 400}", "noise"), "there is memory for only"),
        (
            &society(1_000_000, "{kind: watts-strogatz, neighbours: 400, rewire: 0.1}", "noise"),
            "there is memory for only",
        ),
    ] {
        for verb in [&[][..], &["--shards", "3"]] {
            let (code, told) = told(tight, scenario, verb);
            assert!(code == Some(2) && told.contains(words), "{code:?}: {told}");
            assert!(!folder.path().join("out").exists(), "nothing has begun");
        }
    }
    // The same by a flag, which is not questioned.
    let many = society(1_000_000, "{kind: none}", "noise");
    let (code, words) = told("true", &many, &["--memory", "100"]);
    assert!(code == Some(2) && words.contains("100 MB is available"), "{words}");
    assert!(words.contains("--memory MB raises the limit"), "{words}");
    let (code, words) = told("true", &many, &["--memory", "1000"]);
    assert_eq!(code, Some(0), "{words}");
}

#[test]
fn tables_are_not_wider_than_they_may_be() {
    let folder = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..1_000_000).map(|i| format!("c{i}")).collect();
    let row = vec!["1"; names.len()].join(",");
    std::fs::write(folder.path().join("wide.csv"), format!("{}\n{row}\n{row}\n", names.join(","))).unwrap();
    let cells: Vec<String> = names.iter().map(|name| format!("\"{name}\":1")).collect();
    std::fs::write(folder.path().join("wide.jsonl"), format!("{{{}}}\n", cells.join(","))).unwrap();
    for file in ["wide.csv", "wide.jsonl"] {
        let scenario = format!(
            "rounds: 1\npopulation: {{file: {file}}}\nworld: {{kind: guess-average}}\ncohorts: [{{policy: {{kind: level-k}}}}]\n"
        );
        std::fs::write(folder.path().join("s.yaml"), scenario).unwrap();
        let said = under("ulimit -v 4000000", folder.path(), &["validate", "s.yaml"]);
        let told = text(&said.stderr);
        assert!(said.status.code() == Some(2) && told.contains("there are 1000000 columns"), "{told}");
    }
}

#[test]
fn templates_cannot_take_all_memory() {
    let folder = tempfile::tempdir().unwrap();
    let validate = |template: &str| {
        std::fs::write(folder.path().join("question.md"), template).unwrap();
        let scenario = "rounds: 1\nagents: 2\nmodel: sim/medium\nworld: {kind: guess-average}\n\
                        cohorts: [{policy: {kind: mind, prompts: {question: {file: question.md}}}}]\n";
        std::fs::write(folder.path().join("s.yaml"), scenario).unwrap();
        let said = under("ulimit -v 4000000", folder.path(), &["validate", "s.yaml"]);
        (said.status.code(), text(&said.stderr))
    };
    let doubled = format!("{{% set a = 'xxxxxxxx' %}}{}{{{{ a|length }}}}", "{% set a = a ~ a %}".repeat(40));
    let replaced =
        format!("{{% set a = '{}' %}}{{{{ a|replace('x', a)|replace('x', a)|replace('x', a) }}}}", "x".repeat(1000));
    for template in [
        "{{ 'x\ny'|indent(10000000000) }}",
        "{{ '%99999999999s'|format('x') }}",
        "{{ range(100000)|join('x'*100000) }}",
        &replaced,
        &doubled,
        "{% set b %}{% for i in range(100000) %}{{ 'x' * 100000 }}{% endfor %}{% endset %}{{ b|length }}",
        "{{ 'x' * 100000000 ~ 'x' * 100000000 ~ 'x' * 100000000 ~ 'x' * 100000000 }}",
        "{% set ns = namespace() %}{% set ns.a = [ns] %}{{ ns }}",
    ] {
        let (code, told) = validate(template);
        assert!(
            code == Some(2) && told.contains("question.md") | told.contains("`question`"),
            "{template}: {code:?} {told}"
        );
    }
    let (code, told) =
        validate("How much do you guess, {{ agent }}? {{ '-' * 20 }} {{ acts|map(attribute='name')|join(', ') }}");
    assert_eq!(code, Some(0), "{told}");
}

#[test]
fn absurd_numbers_of_threads_and_shards_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("s.yaml"), society(100, "{kind: none}", "noise")).unwrap();
    for flags in [["--threads", "100000"], ["--shards", "1000000"], ["--shards", "4294967295"], ["--threads", "1025"]] {
        let said = under("true", folder.path(), &[&["run", "s.yaml", "--out", "out"][..], &flags].concat());
        assert!(
            said.status.code() == Some(2) && text(&said.stderr).contains("a whole number, 1 to 1024"),
            "{}",
            text(&said.stderr)
        );
    }
    let most = ["run", "s.yaml", "--out", "out", "--no-report", "--threads", "300", "--shards", "1024"];
    let said = under("true", folder.path(), &most);
    assert!(said.status.success(), "{}", text(&said.stderr));
}

#[test]
fn a_limit_on_the_size_of_files_is_told() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("s.yaml"), society(50_000, "{kind: none}", "noise")).unwrap();
    // In blocks of 512 bytes.
    let said = under("ulimit -f 40", folder.path(), &["run", "s.yaml", "--out", "out", "--no-report"]);
    let told = text(&said.stderr);
    assert!(said.status.code() == Some(4) && told.contains("ulimit -f") && told.contains("polity resume"), "{told}");
    let said = under("true", folder.path(), &["resume", "out", "--no-report"]);
    assert!(said.status.success(), "{}", text(&said.stderr));
}
