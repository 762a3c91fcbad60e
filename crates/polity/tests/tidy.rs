//! Tidiness as a test: the documents' statements about the source tree, and the source tree's own rules.

use clap::Parser;
use polity::cli::Args;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const KINDS: [&str; 6] = ["worlds", "environments", "policies", "methods", "metrics", "toolkits"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn list(dir: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    entries
}

/// Returns every file below a folder with one of these endings (all, if none are given), sorted.
fn walk(dir: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let fits = |path: &PathBuf| endings.is_empty() || endings.iter().any(|end| name_of(path).ends_with(end));
    list(dir)
        .into_iter()
        .flat_map(|path| if path.is_dir() { walk(&path, endings) } else { vec![path] })
        .filter(fits)
        .collect()
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

/// Folders of leaves by kind.
fn leaves() -> BTreeMap<&'static str, Vec<PathBuf>> {
    let catalog = root().join("crates/polity-catalog");
    let is_leaf = |path: &PathBuf| path.join("mod.rs").is_file();
    KINDS.into_iter().map(|kind| (kind, list(&catalog.join(kind)).into_iter().filter(is_leaf).collect())).collect()
}

/// Returns Rust source without comments, and without the tests at its end.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    text.lines().map(|line| line.split("//").next().unwrap()).collect::<Vec<_>>().join("\n")
}

/// Splits code into identifiers and punctuation; `::` is one token.
fn tokens(code: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut chars = code.chars().peekable();
    while let Some(c) = chars.next() {
        if c.is_alphanumeric() || c == '_' {
            word.push(c);
            continue;
        }
        if !word.is_empty() {
            out.push(std::mem::take(&mut word));
        }
        if c == ':' && chars.peek() == Some(&':') {
            chars.next();
            out.push("::".into());
        } else if !c.is_whitespace() {
            out.push(c.to_string());
        }
    }
    out.push(word);
    out
}

/// Returns the names after `head::`: one name, or all names of a group in braces.
fn after(tokens: &[String], head: &str) -> Vec<String> {
    let mut out = Vec::new();
    for i in 0..tokens.len().saturating_sub(2) {
        if tokens[i] != head || tokens[i + 1] != "::" {
            continue;
        }
        let mut depth = 0;
        for token in &tokens[i + 2..] {
            match token.as_str() {
                "{" => depth += 1,
                "}" => depth -= 1,
                _ => out.push(token.clone()),
            }
            if depth <= 0 {
                break;
            }
        }
    }
    out
}

#[test]
fn leaves_import_no_other_leaf() {
    let all = leaves();
    let modules: BTreeSet<String> = all.values().flatten().map(|path| name_of(path).replace('-', "_")).collect();
    let catalog = root().join("crates/polity-catalog");
    let shared: BTreeSet<String> = KINDS
        .into_iter()
        .flat_map(|kind| list(&catalog.join(kind).join("src")))
        .map(|path| name_of(&path).trim_end_matches(".rs").to_owned())
        .chain(["testing", "exchange", "official"].map(String::from))
        .collect();
    let mut wrong = Vec::new();
    for file in all.values().flatten().flat_map(|folder| walk(folder, &[".rs"])) {
        let text = code(&file);
        let tokens = tokens(&text);
        let mut say = |what: String| wrong.push(format!("{}: {what}", file.display()));
        // From the crate's root a leaf may use only what is shared by several leaves; it reaches its own items with `super` or `self`.
        for head in [
            "crate",
            "polity_catalog",
            "polity_worlds",
            "polity_environments",
            "polity_policies",
            "polity_methods",
            "polity_toolkits",
        ] {
            let strange = after(&tokens, head).into_iter().filter(|name| !shared.contains(name));
            strange.for_each(|name| say(format!("{head}::{name}")));
        }
        for name in after(&tokens, "super") {
            if modules.contains(&name) || KINDS.contains(&name.as_str()) {
                say(format!("super::{name}"));
            }
        }
        if text.contains("\"../") || text.contains("#[path") {
            say("a path out of the folder".into());
        }
    }
    assert!(wrong.is_empty(), "leaves that name another leaf:\n{}", wrong.join("\n"));
}

#[test]
fn every_leaf_folder_is_complete_and_named_like_its_leaf() {
    let registry = polity::registry();
    let all = leaves();
    let mut wrong = Vec::new();
    for (kind, folders) in &all {
        let (_, cards) = registry.leaves().into_iter().find(|(known, _)| known == kind).unwrap();
        let names: BTreeSet<String> = cards.iter().map(|card| card.name.to_string()).collect();
        let found: BTreeSet<String> = folders.iter().map(|folder| name_of(folder)).collect();
        if names != found {
            wrong.push(format!("{kind}: the folders are {found:?}, the registry has {names:?}"));
        }
        let files = ["mod.rs", "README.md", "scenario.yaml", "golden.json"];
        for folder in folders {
            let missing = files.iter().filter(|file| !folder.join(file).is_file());
            wrong.extend(missing.map(|file| format!("{} has no {file}", folder.display())));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn dependencies_point_one_way() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    // Which crate may depend on which. Tests of leaves may use leaves of all kinds.
    let leaf = &["polity-games", "polity-kernel", "polity-learn", "polity-nn", "polity-recall"][..];
    let kinds = KINDS.map(|kind| format!("polity-{kind}"));
    let catalog: Vec<&str> = kinds.iter().map(String::as_str).chain(["polity-kernel"]).collect();
    let without_leaves =
        ["polity-kernel", "polity-stats", "polity-store", "polity-models", "polity-driver", "polity-arena"];
    let of_cli: Vec<&str> = without_leaves.into_iter().chain(["polity-games", "polity-view", "polity-mcp"]).collect();
    let all: Vec<&str> = without_leaves.into_iter().chain(["polity-catalog", "polity-cli"]).collect();
    let allowed: BTreeMap<&str, &[&str]> = [
        ("polity-base", &[][..]),
        ("polity-games", &["polity-base"][..]),
        ("polity-learn", &["polity-base"][..]),
        ("polity-nn", &["polity-base"][..]),
        ("polity-peers", &[][..]),
        ("polity-kernel", &["polity-base"][..]),
        ("polity-recall", &["polity-kernel"][..]),
        ("polity-catalog", &catalog),
        ("polity-stats", &["polity-kernel"][..]),
        ("polity-store", &["polity-kernel"][..]),
        ("polity-models", &["polity-kernel", "polity-store"][..]),
        ("polity-mcp", &["polity-kernel", "polity-models"][..]),
        (
            "polity-driver",
            &["polity-kernel", "polity-peers", "polity-stats", "polity-store", "polity-models", "polity-mcp"][..],
        ),
        ("polity-arena", &["polity-kernel", "polity-stats", "polity-store", "polity-driver"][..]),
        ("polity-view", &["polity-kernel", "polity-stats", "polity-store", "polity-models", "polity-driver"][..]),
        ("polity-cli", &of_cli),
        ("polity", &all),
        ("polity-python", &["polity"][..]),
    ]
    .into_iter()
    .chain(kinds.iter().map(|kind| (kind.as_str(), leaf)))
    .collect();
    // The pure crates depend on these and nothing else: no clock, no files, no network, no runtime.
    let pure = [
        "crc32fast",
        "libm",
        "minijinja",
        "postcard",
        "proptest",
        "pulp",
        "rayon",
        "safetensors",
        "schemars",
        "serde",
        "serde_json",
        "thiserror",
    ];
    let outer = [
        "polity-peers",
        "polity-store",
        "polity-models",
        "polity-mcp",
        "polity-driver",
        "polity-arena",
        "polity-view",
        "polity-cli",
        "polity",
        "polity-python",
    ];
    let packages = metadata["packages"].as_array().unwrap();
    let names: BTreeSet<&str> = packages.iter().map(|package| package["name"].as_str().unwrap()).collect();
    assert_eq!(names, allowed.keys().copied().collect(), "this test and ARCHITECTURE.md name the crates");
    let mut wrong = Vec::new();
    for package in packages {
        let name = package["name"].as_str().unwrap();
        for dependency in package["dependencies"].as_array().unwrap() {
            let other = dependency["name"].as_str().unwrap();
            if names.contains(other) {
                let tried = allowed[name] == leaf || (name, other) == ("polity-cli", "polity-catalog");
                let in_tests = dependency["kind"] == "dev" && tried;
                if !allowed[name].contains(&other) && !in_tests {
                    wrong.push(format!("{name} depends on {other}"));
                }
            } else if !outer.contains(&name) && !pure.contains(&other) {
                wrong.push(format!("{name} is pure and depends on {other}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn pure_crates_reach_for_nothing_outside() {
    // Also types that would let the number of threads or the order of a hash table affect a result.
    let words = ["HashMap", "HashSet", "RandomState", "Instant", "SystemTime", "current_num_threads", "tokio"];
    let modules = ["time", "fs", "net", "thread", "env", "process", "os"];
    let folders = [
        "polity-base/src",
        "polity-games/src",
        "polity-kernel/src",
        "polity-learn/src",
        "polity-nn/src",
        "polity-recall/src",
        "polity-stats/src",
    ]
    .into_iter()
    .map(String::from);
    let folders = folders.chain(KINDS.into_iter().map(|kind| format!("polity-catalog/{kind}")));
    let mut wrong = Vec::new();
    for file in folders.flat_map(|folder| walk(&root().join("crates").join(folder), &[".rs"])) {
        if name_of(&file) == "tests.rs" {
            continue;
        }
        let tokens = tokens(&code(&file));
        let used = tokens.iter().filter(|token| words.contains(&token.as_str())).cloned();
        let of_std = after(&tokens, "std").into_iter().filter(|name| modules.contains(&name.as_str()));
        for what in used.chain(of_std.map(|name| format!("std::{name}"))) {
            wrong.push(format!("{}: {what}", file.display()));
        }
    }
    assert!(wrong.is_empty(), "what the pure crates must not use:\n{}", wrong.join("\n"));
}

/// README.md, ARCHITECTURE.md, the decisions, and the READMEs of data, leaves and models.
/// The dev profile has no debug assertions, except in crates that use them. Elsewhere they would check nothing.
#[test]
fn debug_assertions_are_on_where_they_are_used() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let mut used = BTreeSet::new();
    for folder in list(&root().join("crates")) {
        for path in walk(&folder, &[".rs"]) {
            let text = fs::read_to_string(&path).unwrap();
            if path != root().join("crates/polity/tests/tidy.rs")
                && (text.contains("debug_assert") || text.contains("(debug_assertions)"))
            {
                used.insert(name_of(&folder));
            }
        }
    }
    let on = |name: &str| format!("[profile.dev.package.{name}]\ndebug-assertions = true\n");
    assert!(!used.is_empty());
    for name in &used {
        assert!(manifest.contains(&on(name)), "{name} has assertions; the dev profile in Cargo.toml turns them off");
    }
    assert_eq!(manifest.matches("\ndebug-assertions = true\n").count(), used.len(), "of these: {used:?}");
}

fn documents() -> Vec<PathBuf> {
    let root = root();
    let below = ["docs", "data", "crates", "systems"].into_iter().flat_map(|folder| walk(&root.join(folder), &[".md"]));
    [root.join("README.md"), root.join("ARCHITECTURE.md")].into_iter().chain(below).collect()
}

/// Returns words in backticks outside of code blocks, and targets of links.
fn mentions(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    for prose in text.split("```").step_by(2) {
        out.extend(prose.split('`').skip(1).step_by(2).map(str::to_string));
        out.extend(prose.split("](").skip(1).filter_map(|rest| rest.split(')').next()).map(str::to_string));
    }
    out
}

/// Returns the part of a mention that must exist, if it is a path of the repository: `crates/polity/src/main.rs` is one, `provider/model`
/// and `std::fs` are not. A path with a placeholder (`crates/*`) is checked up to there.
fn as_path(mention: &str) -> Option<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/*<>{},".contains(c);
    if mention.is_empty() || !mention.chars().all(plain) || mention.starts_with('/') {
        return None;
    }
    let roots = ["crates/", "docs/", "scenarios/", "systems/", "data/", "scripts/", ".ci/"];
    let endings = [".md", ".rs", ".toml", ".sh", ".tsv", ".png"];
    let file = !mention.contains('/') && endings.iter().any(|end| mention.ends_with(end));
    if !file && !roots.iter().any(|root| mention.starts_with(root)) {
        return None;
    }
    let fixed: Vec<&str> = mention.split('/').take_while(|step| !step.contains(['*', '<', '{'])).collect();
    Some(fixed.join("/"))
}

#[test]
fn paths_in_documents_exist() {
    let root = root();
    let names: BTreeSet<String> = walk(&root.join("crates"), &[]).iter().map(|path| name_of(path)).collect();
    let mut wrong = Vec::new();
    let mut checked = 0;
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        for path in mentions(&text).iter().filter_map(|mention| as_path(mention)) {
            checked += 1;
            let beside = document.parent().unwrap().join(&path);
            // `mod.rs` and `golden.json` are mentioned in general.
            let in_general = !path.contains('/') && names.contains(&path);
            if !root.join(&path).exists() && !beside.exists() && !in_general {
                wrong.push(format!("{}: `{path}`", document.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "documents name what does not exist:\n{}", wrong.join("\n"));
    assert!(checked > 80, "only {checked} paths were found in the documents; are they still in backticks?");
}

#[test]
fn the_map_of_the_code_names_every_test_of_the_whole() {
    let map = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let suites = list(&root().join("crates/polity/tests")).into_iter().filter(|path| path.is_file());
    for name in suites.map(|path| name_of(&path)) {
        assert!(map.contains(&format!("`crates/polity/tests/{name}`")), "ARCHITECTURE.md does not name {name}");
    }
}

#[test]
fn no_file_of_tests_is_left_out_of_its_program() {
    let tests = list(&root().join("crates")).into_iter().map(|one| one.join("tests")).filter(|tests| tests.is_dir());
    // Tests in Python have no program.
    for tests in tests.filter(|tests| !walk(tests, &[".rs"]).is_empty()) {
        let all = fs::read_to_string(tests.join("all.rs")).unwrap();
        for path in list(&tests) {
            let name = name_of(&path);
            let name = name.trim_end_matches(".rs");
            let is_module = path.join("mod.rs").exists() || path.extension().is_some_and(|end| end == "rs");
            if is_module && !["all", "conformance"].contains(&name) {
                assert!(
                    all.contains(&format!("\nmod {name};\n")),
                    "{} has no `mod {name};`",
                    tests.join("all.rs").display()
                );
            }
        }
    }
}

#[test]
fn decisions_are_dated() {
    for path in walk(&root().join("docs/decisions"), &[".md"]) {
        let text = fs::read_to_string(&path).unwrap();
        let dated = text.lines().any(|line| line.starts_with("Date: 20") && line.len() == "Date: 2026-11-20".len());
        assert!(dated, "{} has no line `Date: YEAR-MONTH-DAY`", path.display());
    }
}

/// Returns the commands in the code blocks of a document, without prompts, output and comments.
fn commands(text: &str) -> Vec<Vec<String>> {
    let mut out = Vec::new();
    for line in text.split("```").skip(1).step_by(2).flat_map(str::lines) {
        let line = line.trim().trim_start_matches("$ ");
        if ["polity ", "cargo run ", "bash "].iter().any(|start| line.starts_with(start)) {
            // Up to a comment, or to a shell operator.
            let command =
                [" #", " | ", " || ", " > ", " & "].iter().fold(line, |line, end| line.split(end).next().unwrap());
            out.push(words(command));
        }
    }
    out
}

/// Splits a command at blanks outside of quotes, which are left out.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut open) = (vec![String::new()], None);
    for character in command.chars() {
        match character {
            '\'' | '"' if open == Some(character) => open = None,
            '\'' | '"' if open.is_none() => open = Some(character),
            ' ' if open.is_none() => words.push(String::new()),
            other => words.last_mut().unwrap().push(other),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Returns why a command cannot be run as written.
fn fault(command: &[String]) -> Option<String> {
    let root = root();
    if command[0] == "bash" {
        return (!root.join(&command[1]).is_file()).then(|| "there is no such script".into());
    }
    if let Some(i) = command.iter().position(|word| word == "--example") {
        // Arguments are checked from the first example on.
        let examples = root.join("crates/polity/examples");
        let missing = examples.is_dir() && !examples.join(format!("{}.rs", command[i + 1])).is_file();
        return missing.then(|| "there is no such example".into());
    }
    let own = match command.iter().position(|word| word == "--") {
        Some(i) if command[0] == "cargo" => &command[i + 1..],
        _ => &command[1..],
    };
    let line = std::iter::once("polity").chain(own.iter().map(String::as_str));
    if let Err(error) = Args::try_parse_from(line)
        && error.use_stderr()
    {
        return Some(error.to_string());
    }
    let missing = own.iter().find(|word| word.starts_with("scenarios/") && !root.join(word).is_file());
    missing.map(|file| format!("{file} does not exist"))
}

#[test]
fn commands_in_documents_work_as_written() {
    let texts = documents().iter().map(|path| fs::read_to_string(path).unwrap()).collect::<Vec<_>>();
    let commands: Vec<_> = texts.iter().flat_map(|text| commands(text)).collect();
    let wrong: Vec<String> =
        commands.iter().filter_map(|c| fault(c).map(|why| format!("{}: {why}", c.join(" ")))).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(commands.len() >= 10, "only {} commands were found in the documents", commands.len());
}

#[test]
fn the_readme_is_one_screen_of_what_a_newcomer_needs() {
    let bytes = fs::metadata(root().join("README.md")).unwrap().len();
    assert!(bytes <= 8_000, "README.md has {bytes} bytes, at most 8,000 are read: the book is for the rest");
}

#[test]
fn the_digest_in_the_readme_is_that_of_the_main_job() {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_polity"))
        .args(["run", "scenarios/guess-average.yaml", "--no-report", "--json", "--out"])
        .arg(folder.path().join("run"))
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let summary: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let digest = summary["digest"].as_str().unwrap();
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    assert!(
        readme.contains(digest),
        "README.md shows other runs than this build makes ({digest}): make its transcripts anew"
    );
}
