//! `polity new`: create a crate with your own leaf, outside of this repository; or an experiment (`experiment/`).
//!
//! Templates are real code with real names (`pasture`, `midway`, `ballot`), which tests compile and check; a new crate is the
//! template with its name put in.

mod experiment;

use super::args::{Guided, Own};
use super::failure::{Exit, Failure};
use super::output::note;
use polity_kernel::registry::Registry;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The differences between kinds of leaves.
struct Template {
    /// The template's own name, which the new one replaces.
    name: &'static str,
    /// The kind in `polity list`.
    kind: &'static str,
    lib: &'static str,
    /// Files beside it, by path.
    files: &'static [(&'static str, &'static str)],
}

macro_rules! template {
    ($folder:literal, $name:literal, $kind:literal $(, $more:literal)*) => {
        Template {
            name: $name,
            kind: $kind,
            lib: include_str!(concat!("templates/", $folder, "/src/lib.rs")),
            files: &[
                ("README.md", concat!(
                    include_str!(concat!("templates/", $folder, "/README.md")),
                    include_str!("templates/common/README-tail.md")
                )),
                ("scenario.yaml", include_str!(concat!("templates/", $folder, "/scenario.yaml"))),
                ("golden.json", include_str!(concat!("templates/", $folder, "/golden.json"))),
                $(($more, include_str!(concat!("templates/", $folder, "/", $more))),)*
            ],
        }
    };
}

const WORLD: Template = template!("world", "pasture", "worlds");
const POLICY: Template = template!("policy", "midway", "policies");
const METHOD: Template = template!("method", "ballot", "methods", "items.jsonl");

/// Files that every new crate has. They name the crate `own_leaf`.
const COMMON: [(&str, &str); 6] = [
    ("Cargo.toml", include_str!("templates/common/Cargo.toml.in")),
    ("src/main.rs", include_str!("templates/common/main.rs")),
    ("tests/conformance.rs", include_str!("templates/common/conformance.rs")),
    // As the library is built and formatted.
    ("rust-toolchain.toml", include_str!("../../../../rust-toolchain.toml")),
    ("rustfmt.toml", include_str!("../../../../rustfmt.toml")),
    (".gitignore", "/target\n/runs\n"),
];

/// The folder of the crate `polity` when this one was built.
const BUILT_IN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../polity");

/// Where the new crate finds the library.
#[derive(Debug)]
enum Library {
    /// The folder of the crate `polity` in a checkout.
    Folder(PathBuf),
    /// A git repository.
    Git(String),
}

/// Writes the crate `name` into the current folder, or an experiment into the folder `name`.
pub fn new(
    kind: Own,
    name: &str,
    library: Option<&str>,
    guided: &Guided,
    registry: &Registry,
) -> Result<Exit, Failure> {
    let template = match kind {
        Own::World => WORLD,
        Own::Policy => POLICY,
        Own::Method => METHOD,
        Own::Experiment => {
            let Guided { answers, write_answers } = guided;
            return experiment::experiment(name, answers.as_deref(), write_answers.as_deref(), registry);
        }
    };
    if guided.answers.is_some() || guided.write_answers.is_some() {
        return Err(wrong("--answers and --write-answers are for `polity new experiment` only".into()));
    }
    check_name(name, registry)?;
    let library = match library {
        Some(given) => named(given)?,
        None => default_library(Path::new(BUILT_IN))?,
    };
    let folder = Path::new(name);
    fs::create_dir(folder).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            wrong(format!("`{name}` already exists in this folder; nothing was changed. Choose another name or folder"))
        }
        _ => Failure::new(Exit::Disk, format!("the folder `{name}` cannot be created: {error}")),
    })?;
    write_all(folder, &files(&template, name, &library)).map_err(|(path, error)| {
        Failure::new(Exit::Disk, format!("{} cannot be written: {error}; `{name}` is not complete", path.display()))
    })?;
    note(&format!("created the crate {name}: the command polity with a leaf of your own, {}/{name}", template.kind));
    match &library {
        Library::Git(url) => note(&format!("library: {url}")),
        Library::Folder(path) => note(&format!("library: {}", path.display())),
    }
    note(&format!("try:\n  cd {name}\n  cargo test\n  cargo run -- run scenario.yaml"));
    Ok(Exit::Done)
}

/// Returns all files of a new crate, by path.
fn files(template: &Template, name: &str, library: &Library) -> Vec<(&'static str, String)> {
    let put_name = |text: &str| {
        text.replace(&camel(template.name), &camel(name))
            .replace(template.name, name)
            .replace("own_leaf", &name.replace('-', "_"))
    };
    let source = match library {
        Library::Folder(path) => format!("path = {:?}", path.display().to_string()),
        Library::Git(url) => format!("git = {url:?}"),
    };
    let mut files = vec![("src/lib.rs", put_name(template.lib))];
    files.extend(
        template
            .files
            .iter()
            .map(|(path, text)| (*path, put_name(text).replace("list worlds", &format!("list {}", template.kind)))),
    );
    files.extend(COMMON.iter().map(|(path, text)| {
        let text = text.replace("@NAME@", name).replace("@RUST@", env!("CARGO_PKG_RUST_VERSION"));
        (*path, put_name(&text).replace("@SOURCE@", &source))
    }));
    // The versions that the library was tested with; without them Cargo takes the newest.
    if let Library::Folder(path) = library
        && let Ok(lock) = fs::read_to_string(path.join("../../Cargo.lock"))
    {
        files.push(("Cargo.lock", lock));
    }
    files
}

fn write_all(folder: &Path, files: &[(&str, String)]) -> Result<(), (PathBuf, std::io::Error)> {
    for (path, text) in files {
        let path = folder.join(path);
        let made = path.parent().map_or(Ok(()), fs::create_dir_all);
        made.and_then(|()| fs::write(&path, text)).map_err(|error| (path, error))?;
    }
    Ok(())
}

fn wrong(message: String) -> Failure {
    Failure::new(Exit::Input, message)
}

/// Returns the checkout that this program was built from, if it still exists.
fn default_library(built_in: &Path) -> Result<Library, Failure> {
    if is_library(built_in) {
        return Ok(Library::Folder(built_in.into()));
    }
    Err(wrong(format!(
        "this program does not know where the source of Polity is ({} is gone); nothing was created. Name a checkout \
         or a git URL: --polity PATH-OR-URL",
        built_in.display()
    )))
}

fn is_library(folder: &Path) -> bool {
    fs::read_to_string(folder.join("Cargo.toml")).is_ok_and(|text| text.contains("name = \"polity\""))
}

/// Returns a folder or a repository given by the user.
fn named(given: &str) -> Result<Library, Failure> {
    if given.contains("://") {
        return Ok(Library::Git(given.into()));
    }
    // Cargo reads URLs only, not the short form of ssh.
    if let Some((host, path)) = given.strip_prefix("git@").and_then(|rest| rest.split_once(':')) {
        return Ok(Library::Git(format!("ssh://git@{host}/{path}")));
    }
    let folder = Path::new(given).canonicalize().map_err(|error| {
        wrong(format!("--polity {given}: {error}; give the folder of a checkout of Polity, or a git URL"))
    })?;
    [folder.join("crates/polity"), folder].into_iter().find(|folder| is_library(folder)).map(Library::Folder).ok_or_else(
        || wrong(format!("--polity {given}: there is no crates/polity in it; give the folder of a checkout of Polity, or a git URL")),
    )
}

/// Converts `rock-pool` to `RockPool`.
fn camel(name: &str) -> String {
    let word = |word: &str| word[..1].to_uppercase() + &word[1..];
    name.split('-').filter(|part| part.is_ascii() && !part.is_empty()).map(word).collect()
}

/// Words of Rust, crates that a new crate depends on, and folders reserved by Cargo.
const TAKEN: &[&str] = &[
    "abstract",
    "alloc",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "build",
    "const",
    "continue",
    "core",
    "crate",
    "deps",
    "do",
    "dyn",
    "else",
    "enum",
    "examples",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "incremental",
    "let",
    "loop",
    "macro",
    "match",
    "mod",
    "move",
    "mut",
    "override",
    "own-leaf",
    "params",
    "polity",
    "polity-arena",
    "polity-base",
    "polity-catalog",
    "polity-cli",
    "polity-driver",
    "polity-environments",
    "polity-kernel",
    "polity-methods",
    "polity-metrics",
    "polity-models",
    "polity-policies",
    "polity-recall",
    "polity-stats",
    "polity-store",
    "polity-worlds",
    "priv",
    "proc-macro",
    "pub",
    "ref",
    "return",
    "schemars",
    "self",
    "serde",
    "static",
    "std",
    "struct",
    "super",
    "test",
    "trait",
    "true",
    "try",
    "type",
    "typeof",
    "union",
    "unsafe",
    "unsized",
    "use",
    "virtual",
    "where",
    "while",
    "yield",
];

/// Checks that a crate, a Rust type and a leaf can have this name.
fn check_name(name: &str, registry: &Registry) -> Result<(), Failure> {
    let slug: Vec<String> = name
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|part| !part.is_empty())
        .map(str::to_ascii_lowercase)
        .collect();
    let slug = slug.join("-");
    let slug = slug.trim_start_matches(|c: char| !c.is_ascii_lowercase());
    if slug != name || name.len() > 40 {
        let help = if slug.is_empty() || slug.len() > 40 { "rock-pool" } else { slug };
        return Err(wrong(format!(
            "`{}` cannot be the name of a crate: use lower-case letters a to z, digits and single dashes, a letter \
             first, at most 40 characters; for instance `{help}`",
            name.escape_debug()
        )));
    }
    if TAKEN.contains(&name) || imported(name) {
        return Err(wrong(format!(
            "`{name}` cannot be the name of a crate: it is taken by Rust, Cargo or Polity. Choose another"
        )));
    }
    for (kind, cards) in registry.leaves() {
        if let Some(card) = cards.iter().find(|card| card.name == name) {
            return Err(wrong(format!(
                "{kind}/{name} already exists (\"{}\"); choose another name (`polity list {kind}` shows those taken)",
                card.summary
            )));
        }
    }
    Ok(())
}

/// Returns whether a template imports a type of this name.
fn imported(name: &str) -> bool {
    let camel = camel(name);
    let imports = |lib: &str| {
        let uses = lib.lines().filter(|line| line.starts_with("use "));
        uses.flat_map(|line| line.split(|c: char| !c.is_alphanumeric())).any(|word| word == camel)
    };
    ["Ok", "Err", "Some", "None", "Result", "Option", "String", "Vec", "Self", "Default"].contains(&camel.as_str())
        || [WORLD, POLICY, METHOD].iter().any(|template| imports(template.lib))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_checkout_nothing_is_made() {
        let error = default_library(Path::new("/no/checkout/here")).unwrap_err();
        assert!(error.message.contains("--polity PATH-OR-URL"), "{}", error.message);
    }

    fn registry() -> Registry {
        let mut registry = Registry::new();
        polity_catalog::register_all(&mut registry);
        registry
    }

    #[test]
    fn names_that_fit() {
        let registry = registry();
        for name in ["tide", "rock-pool", "a1", "x", "pasture", "midway", "ballot"] {
            assert!(check_name(name, &registry).is_ok(), "{name}");
        }
    }

    #[test]
    fn names_that_do_not_fit_say_why() {
        let registry = registry();
        let cases = [
            ("", "cannot be the name of a crate"),
            ("Rock Pool", "for instance `rock-pool`"),
            ("7up", "for instance `up`"),
            ("a--b", "for instance `a-b`"),
            ("über", "for instance `ber`"),
            ("../x", "for instance `x`"),
            ("match", "is taken by Rust"),
            ("polity", "is taken by Rust"),
            ("opinion", "worlds/opinion already exists"),
            ("noise", "policies/noise already exists"),
            ("debate", "`polity list methods`"),
        ];
        for (name, expected) in cases {
            let failure = check_name(name, &registry).unwrap_err();
            assert!(failure.message.contains(expected), "{name}: {}", failure.message);
        }
        assert!(check_name(&"x".repeat(41), &registry).is_err());
        // A type `Registry` would clash with the one that the template imports.
        assert!(check_name("registry", &registry).is_err());
    }

    #[test]
    fn every_name_of_a_template_is_replaced() {
        for template in [WORLD, POLICY, METHOD] {
            let files = files(&template, "rock-pool", &Library::Folder("/srv/the \"new\" polity".into()));
            for (path, text) in files.iter().filter(|(path, _)| *path != "Cargo.lock") {
                for left in [template.name, &camel(template.name), "own_leaf", "@"] {
                    assert!(!text.contains(left), "{path} still has `{left}`:\n{text}");
                }
            }
            let text = |wanted: &str| &files.iter().find(|(path, _)| *path == wanted).unwrap().1;
            assert!(text("src/main.rs").contains("rock_pool::registry()"));
            assert!(text("src/lib.rs").contains("pub struct RockPool"));
            assert!(text("scenario.yaml").contains("kind: rock-pool"));
            assert!(text("Cargo.toml").contains(r#"polity = { path = "/srv/the \"new\" polity" }"#));
        }
    }

    #[test]
    fn the_library_is_a_folder_or_a_repository() {
        assert!(matches!(default_library(Path::new(BUILT_IN)), Ok(Library::Folder(_))), "this checkout is still there");
        assert!(matches!(named("https://example.org/polity.git"), Ok(Library::Git(_))));
        let root = Path::new(BUILT_IN).join("../..");
        let Ok(Library::Folder(found)) = named(&root.display().to_string()) else { panic!("a checkout is a library") };
        assert!(found.ends_with("crates/polity"));
        assert!(named("/nowhere").unwrap_err().message.contains("/nowhere"));
        assert!(named(BUILT_IN.trim_end_matches("polity")).unwrap_err().message.contains("no crates/polity"));
    }

    #[test]
    fn the_worked_example_is_short_and_made_for_this_version() {
        assert!(WORLD.lib.lines().count() <= 70, "the book promises a world in 70 lines");
        let version = env!("CARGO_PKG_VERSION").rsplit_once('.').unwrap().0;
        for template in [WORLD, POLICY, METHOD] {
            assert!(template.lib.contains(&format!("polity::made_for!(\"{version}\");")), "templates and made_for!");
        }
    }
}
