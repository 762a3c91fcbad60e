//! Checks the book in `docs/book`: its commands are run, its scenarios are read, its code is what the tests compile.
//!
//! A block marked `console` holds commands (`$ ...`) and what they print. Each page has a folder of its own with copies of
//! `scenarios/`, `data/` and `systems/`. A command must end with exit code 0. Lines shown must be printed in this order, on either stream; `...`
//! stands for any lines, `…` for any text within a line, and seconds may differ. A block marked `yaml` whose first line is
//! `# NAME.yaml` is written to that file first.

use polity_kernel::rng::{Draws, Stream};
use polity_stats::{Estimate, bootstrap, student};
use rayon::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn source() -> PathBuf {
    root().join("docs/book/src")
}

fn page(name: &str) -> String {
    fs::read_to_string(source().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Returns the pages that the summary lists.
fn pages() -> Vec<String> {
    links(&page("SUMMARY.md"))
}

fn links(text: &str) -> Vec<String> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.filter(|target| target.ends_with(".md")).map(String::from).collect()
}

/// Returns blocks of code: their language, and their text.
fn blocks(text: &str) -> Vec<(&str, &str)> {
    let fenced = text.split("\n```").skip(1).step_by(2);
    fenced.filter_map(|block| block.split_once('\n')).collect()
}

#[test]
fn the_summary_lists_every_page_and_links_lead_somewhere() {
    let mut listed = pages();
    listed.sort();
    let mut found: Vec<String> = fs::read_dir(source())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".md") && name != "SUMMARY.md")
        .collect();
    found.sort();
    assert_eq!(listed, found);
    for name in &listed {
        let text = page(name);
        assert!(text.matches("\n```").count().is_multiple_of(2), "{name}: a block of code is not closed");
        links(&text).iter().for_each(|target| assert!(listed.contains(target), "{name} links to {target}"));
        for (language, _) in blocks(&text) {
            // Python is run by scripts/python-tests.sh, and commands of schedulers by scripts/distributed.sh, which read one page each.
            let tested = ["console", "yaml", "rust", "sh"].contains(&language)
                || [("python", "python.md"), ("text", "many-runs.md")].contains(&(language, name.as_str()));
            assert!(tested, "{name}: nothing tests `{language}`");
        }
    }
}

#[test]
fn the_chapters_of_the_reference_are_made_by_the_program() {
    let chapter = |words: &[&str], name: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_polity")).arg("reference").args(words).output().unwrap();
        let made = String::from_utf8(output.stdout).unwrap();
        let path = source().join(name);
        if std::env::var_os("POLITY_BLESS").is_some() {
            fs::write(&path, &made).unwrap();
        }
        let words = words.join(" ");
        let same = fs::read_to_string(path).unwrap() == made;
        assert!(same, "write it anew: polity reference {words} > docs/book/src/{name}");
        made
    };
    chapter(&["tables"], "tables.md");
    chapter(&["flags"], "flags.md");
    chapter(&["fits"], "fits.md");
    let made = chapter(&[], "scenarios.md");
    for inner in ["::", "The parameters of a kind", "the driver"] {
        assert!(!made.contains(inner), "the reference speaks of what only the code knows: {inner}");
    }
    // Links within the page lead to headings, converted to anchors as in mdBook.
    let anchor = |heading: &str| {
        let kept = heading.trim_start_matches('#').trim().to_lowercase();
        kept.chars().filter(|c| c.is_alphanumeric() || "-_ ".contains(*c)).collect::<String>().replace(' ', "-")
    };
    let anchors: Vec<String> = made.lines().filter(|line| line.starts_with('#')).map(anchor).collect();
    for target in made.split("](#").skip(1).filter_map(|rest| rest.split(')').next()) {
        assert_eq!(anchors.iter().filter(|anchor| *anchor == target).count(), 1, "#{target}");
    }
}

/// Where the keys of a leaf begin in its README; they go to the end.
const KEYS: &str =
    "\n## Keys\n\n<!-- Made from the types: POLITY_BLESS=1 cargo test -p polity --test all book:: -->\n\n";

#[test]
fn the_keys_of_every_leaf_are_in_its_readme() {
    let registry = polity::registry();
    let mut wrong = Vec::new();
    for (kind, leaves) in registry.leaves() {
        for leaf in leaves {
            let output = Command::new(env!("CARGO_BIN_EXE_polity"))
                .args(["reference", &format!("{kind}/{}", leaf.name)])
                .output();
            let keys = String::from_utf8(output.unwrap().stdout).unwrap();
            assert!(!keys.is_empty(), "{kind}/{} has no keys", leaf.name);
            let path = Path::new(leaf.files.folder).join("README.md");
            let text = fs::read_to_string(&path).unwrap();
            let own = text.split(KEYS).next().unwrap();
            let made = format!("{}\n{KEYS}{keys}", own.trim_end());
            if text != made && std::env::var_os("POLITY_BLESS").is_some() {
                fs::write(&path, &made).unwrap();
            } else if text != made {
                wrong.push(format!("{kind}/{}", leaf.name));
            }
            for inner in ["::", "The parameters of a kind", "the driver"] {
                assert!(!keys.contains(inner), "{kind}/{} speaks of what only the code knows: {inner}", leaf.name);
            }
        }
    }
    assert!(wrong.is_empty(), "write them anew with POLITY_BLESS=1: {}", wrong.join(", "));
}

/// Returns how many of a hundred 95 % intervals of `n` values contain their true mean.
fn covered(of: fn(&[f64]) -> Estimate, n: u32, truth: f64, value: impl Fn(&mut Draws) -> f64 + Sync) -> String {
    const TRIALS: u32 = 500;
    let hold = |trial: &u32| {
        let mut draws = Draws::new(95, Stream::Driver, n, *trial);
        let values: Vec<f64> = (0..n).map(|_| value(&mut draws)).collect();
        let found = of(&values);
        found.low.is_some_and(|low| low <= truth) && found.high.is_some_and(|high| high >= truth)
    };
    let hold = (0..TRIALS).into_par_iter().filter(hold).count();
    format!("{:.1}", 100.0 * hold as f64 / f64::from(TRIALS))
}

#[test]
fn the_coverage_of_intervals_is_measured() {
    let right = |p: f64| move |draws: &mut Draws| f64::from(u8::from(draws.chance(p)));
    let accuracy = |p: f64| move |draws: &mut Draws| (0..400).filter(|_| draws.chance(p)).count() as f64 / 400.0;
    let mut made = String::from("| values | how many | Student's | percentile bootstrap |\n|---|---|---|---|\n");
    let mut row = |values: &str, n: u32, student: String, bootstrap: String| {
        made += &format!("| {values} | {n} | {student} | {bootstrap} |\n");
    };
    for n in [3, 6, 8, 30] {
        let of = |of| covered(of, n, 0.0, Draws::normal);
        row("normal", n, of(student), of(bootstrap));
    }
    for n in [3, 6, 8, 30] {
        row("shares of 400 items, each right with 0.9", n, covered(student, n, 0.9, accuracy(0.9)), String::new());
    }
    for n in [6, 30] {
        let value = |draws: &mut Draws| libm::exp(draws.normal());
        row("log-normal", n, covered(student, n, libm::exp(0.5), value), String::new());
    }
    for (p, n) in [(0.7, 20), (0.7, 60), (0.7, 200), (0.95, 20), (0.95, 60)] {
        row(&format!("items, each right with {p}"), n, String::new(), covered(bootstrap, n, p, right(p)));
    }
    let (begin, end) = ("<!-- coverage: POLITY_BLESS=1 cargo test -p polity --test all book:: -->\n", "<!-- end -->");
    let path = source().join("intervals.md");
    let text = page("intervals.md");
    let (head, rest) = text.split_once(begin).unwrap();
    let (_, tail) = rest.split_once(end).unwrap();
    let made = format!("{head}{begin}\n{made}\n{end}{tail}");
    if std::env::var_os("POLITY_BLESS").is_some() {
        fs::write(&path, &made).unwrap();
    }
    assert!(
        fs::read_to_string(path).unwrap() == made,
        "write it anew: POLITY_BLESS=1 cargo test -p polity --test all book::"
    );
}

#[test]
fn code_and_scenarios_of_the_book_are_real() {
    for name in pages() {
        for (language, block) in blocks(&page(&name)) {
            if language == "rust" {
                // Templates, which `templates.rs` compiles and checks, and the example that `embedding.rs` runs.
                let file = block.trim().strip_prefix("{{#include ").and_then(|rest| rest.strip_suffix("}}"));
                let file =
                    source().join(file.unwrap_or_else(|| panic!("{name}: code that nothing compiles:\n{block}")));
                let file = file.canonicalize().unwrap();
                let tested = ["crates/polity-cli/src/new/templates", "crates/polity/examples/embedding.rs"];
                assert!(tested.iter().any(|place| file.starts_with(root().join(place))), "{}", file.display());
            }
            if language == "yaml" {
                polity_store::files::yaml::parse(block).unwrap_or_else(|error| panic!("{name}: {error}\n{block}"));
            }
            if language == "sh" {
                // Commands that compile a whole crate are run by the script, which lists these commands and no others.
                let script = fs::read_to_string(root().join("scripts/new-crate-check.sh")).unwrap();
                let unknown = block.lines().find(|line| !script.contains(line));
                assert_eq!(unknown, None, "{name}: scripts/new-crate-check.sh does not run it");
            }
        }
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let to = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &to);
        } else {
            fs::copy(&path, to).unwrap();
        }
    }
}

/// Returns a line without seconds and outer blanks.
fn stable(line: &str) -> String {
    let words = line.split_whitespace().collect::<Vec<_>>();
    let seconds = |i: usize| words.get(i + 1) == Some(&"s") && words[i].parse::<f64>().is_ok();
    (0..words.len()).map(|i| if seconds(i) { "…" } else { words[i] }).collect::<Vec<_>>().join(" ")
}

/// Returns whether a line is as shown.
fn is_shown(shown: &str, line: &str) -> bool {
    let mut rest = line;
    let mut parts = shown.split('…').map(str::trim).peekable();
    let mut first = true;
    while let Some(part) = parts.next() {
        let last = parts.peek().is_none();
        let at = match (first, last) {
            (true, true) => return rest == part,
            (true, false) => rest.starts_with(part).then_some(0),
            (false, true) if part.is_empty() => return true,
            (false, true) => return rest.ends_with(part),
            (false, false) => rest.find(part),
        };
        let Some(at) = at else { return false };
        rest = &rest[at + part.len()..];
        first = false;
    }
    true
}

/// Compares printed lines with shown ones; returns the first line that is not printed where it should be.
fn differs(shown: &[&str], printed: &str) -> Option<String> {
    let printed: Vec<String> = printed.lines().map(stable).collect();
    let mut at = 0;
    let mut any = false;
    for line in shown {
        if *line == "..." {
            any = true;
            continue;
        }
        let line = stable(line);
        let found = match any {
            true => printed[at..].iter().position(|printed| is_shown(&line, printed)),
            false => printed.get(at).filter(|printed| is_shown(&line, printed)).map(|_| 0),
        };
        match found {
            Some(skipped) => at += skipped + 1,
            None => return Some(line),
        }
        any = false;
    }
    (!any && !shown.is_empty() && at < printed.len()).then(|| format!("(nothing more, but: {})", printed[at]))
}

/// Runs a page's commands in order.
fn check_page(name: &str) {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(root().join(".polity-root"), folder.path().join(".polity-root")).unwrap();
    for copied in ["scenarios", "data", "systems"] {
        copy(&root().join(copied), &folder.path().join(copied));
    }
    let program = Path::new(env!("CARGO_BIN_EXE_polity")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    for (language, block) in blocks(&page(name)) {
        if language == "yaml"
            && let Some(file) = block.lines().next().unwrap().strip_prefix("# ")
            && file.ends_with(".yaml")
        {
            fs::write(folder.path().join(file), block).unwrap();
        }
        if language != "console" {
            continue;
        }
        assert!(block.starts_with("$ "), "{name}: a command comes first:\n{block}");
        for command in format!("\n{block}").split("\n$ ").skip(1) {
            let mut lines = command.lines();
            let command = lines.next().unwrap();
            let shown: Vec<&str> = lines.collect();
            let output = Command::new("sh")
                .args(["-c", &format!("{{ {command}\n}} 2>&1")])
                .current_dir(folder.path())
                .env("PATH", &path)
                .env("NO_COLOR", "1")
                .output()
                .unwrap();
            // A sweep prints its progress if it takes long.
            let printed: String = String::from_utf8_lossy(&output.stdout)
                .lines()
                .filter(|line| !line.contains(" runs done, about "))
                .fold(String::new(), |text, line| text + line + "\n");
            assert!(output.status.success(), "{name}: $ {command}\n{}\n{printed}", output.status);
            if let Some(line) = differs(&shown, &printed) {
                panic!("{name}: $ {command}\nthe book shows\n{line}\nand this is printed:\n{printed}");
            }
        }
    }
}

#[test]
fn commands_of_the_first_run() {
    check_page("first-run.md");
}

#[test]
fn commands_of_the_tutorials() {
    check_page("survey-tutorial.md");
    check_page("survey-study.md");
    check_page("endpoint-tutorial.md");
    check_page("platform-tutorial.md");
}

#[test]
fn commands_of_teams() {
    check_page("teams.md");
}

#[test]
fn commands_of_learners() {
    check_page("learning.md");
}

#[test]
fn commands_of_scenarios() {
    check_page("scenarios.md");
}

#[test]
fn commands_of_minds() {
    check_page("minds.md");
}

#[test]
fn commands_of_the_arena() {
    check_page("arena.md");
}

#[test]
fn commands_of_a_team_as_a_model() {
    check_page("serve.md");
}

#[test]
fn commands_of_diagnoses() {
    check_page("diagnose.md");
}

#[test]
fn commands_of_the_sandbox() {
    check_page("sandbox.md");
}

#[test]
fn the_page_on_tools_is_true() {
    check_page("tools.md");
}

#[test]
fn commands_of_people() {
    check_page("people.md");
}

#[test]
fn commands_of_systems() {
    check_page("systems.md");
}

#[test]
fn commands_of_attacks() {
    check_page("attacks.md");
}

#[test]
fn commands_of_maps() {
    check_page("maps.md");
}

#[test]
fn commands_of_the_world() {
    check_page("world.md");
}

#[test]
fn commands_of_determinism() {
    check_page("determinism.md");
}

#[test]
fn commands_of_runs() {
    check_page("runs.md");
}

#[test]
fn commands_of_experiments() {
    check_page("experiment.md");
}

#[test]
fn commands_of_sweeps() {
    check_page("sweeps.md");
}

#[test]
fn the_page_on_many_runs_is_true() {
    check_page("many-runs.md");
}

#[test]
fn commands_of_budgets() {
    check_page("budgets.md");
}

#[test]
fn commands_of_python() {
    check_page("python.md");
}

#[test]
fn commands_of_populations() {
    check_page("populations.md");
}

#[test]
fn commands_of_networks() {
    check_page("networks.md");
}

#[test]
fn commands_of_rules() {
    check_page("rules.md");
}

#[test]
fn commands_of_games() {
    check_page("games.md");
}

#[test]
fn commands_of_commands() {
    check_page("commands.md");
}

#[test]
fn commands_of_recorded_answers() {
    check_page("recorded.md");
}

#[test]
fn every_page_with_commands_is_checked() {
    let checked = include_str!("book.rs");
    for name in pages() {
        let commands = blocks(&page(&name)).iter().any(|(language, _)| *language == "console");
        assert_eq!(commands, checked.contains(&format!("check_page(\"{name}\");")), "{name}");
    }
}

#[test]
fn lines_are_compared_as_the_book_says() {
    assert!(differs(&["a  b", "...", "d"], "a b \nc\nd\n").is_none());
    assert!(differs(&["took 1.25 s"], "took 3 s").is_none());
    assert!(differs(&["run …, done"], "run 17, done").is_none());
    assert!(differs(&[], "whatever").is_none());
    assert!(differs(&["a"], "a\nb").is_some());
    assert!(differs(&["a", "..."], "a\nb").is_none());
    assert!(differs(&["b"], "a\nb").is_some());
    assert!(differs(&["digest …"], "no digest").is_some());
}
