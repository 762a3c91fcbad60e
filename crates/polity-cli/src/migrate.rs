//! `polity migrate`.

use super::failure::{Exit, Failure, Source};
use super::output::{self, note};
use polity_kernel::scenario::VERSION;
use polity_kernel::scenario::migrate::{self, Migrated};
use polity_store::files::{self, yaml};
use std::fs;
use std::io::{Error, Write};
use std::path::{Path, PathBuf};

/// Rewrites each file of an older format. A file that cannot be migrated stays as it is, and the others are still migrated.
pub fn migrate(paths: &[PathBuf], from: Option<u32>, dry_run: bool) -> Result<Exit, Failure> {
    if let Some(from) = from
        && !(1..=VERSION).contains(&from)
    {
        let message = format!("--from {from}: this build knows the formats 1 to {VERSION}");
        return Err(Failure::new(Exit::Input, message));
    }
    let (files, without) = super::validate::named(paths);
    let mut worst = if without == 0 { Exit::Done } else { Exit::Input };
    for path in &files {
        match one(path, from, dry_run) {
            Ok(Migrated { text, to, .. }) if migrate::seems_older(&text, yaml::parse) => {
                note(&format!(
                    "{0}: it states no format, so it is read as format {to}, but it has keys of an older one: \
                     `polity migrate --from 1 {0}` renames them",
                    path.display()
                ));
            }
            Ok(Migrated { from, to, changes, .. }) if changes.is_empty() => {
                note(&format!("{}: format {from}; {to} is the newest, nothing to change", path.display()));
            }
            Ok(Migrated { from, to, changes, .. }) => {
                let would = if dry_run { "would be converted" } else { "converted" };
                note(&format!("{}: {would} from format {from} to {to}: {}", path.display(), changes.join("; ")));
            }
            Err(failure) => {
                output::wrong(failure.message.trim_end());
                worst = failure.exit;
            }
        }
    }
    Ok(worst)
}

fn one(path: &Path, from: Option<u32>, dry_run: bool) -> Result<Migrated, Failure> {
    let (text, _) = files::read_file(path)?;
    let migrated = migrate::migrate(&text, yaml::parse, from).map_err(|error| {
        let source = Source { name: path.display().to_string(), text: text.clone() };
        source.failure(&error)
    })?;
    if migrated.text != text && !dry_run {
        replace(path, &migrated.text).map_err(|error| {
            Failure::new(Exit::Disk, format!("{} cannot be written and is unchanged: {error}", path.display()))
        })?;
    }
    Ok(migrated)
}

/// Replaces a file as a whole or not at all.
fn replace(path: &Path, text: &str) -> Result<(), Error> {
    // The file itself, not a link to it.
    let path = path.canonicalize()?;
    let new = path.with_extension(format!("polity-{}.tmp", std::process::id()));
    let written = fs::File::create_new(&new)
        .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()))
        .and_then(|()| fs::set_permissions(&new, fs::metadata(&path)?.permissions()))
        .and_then(|()| fs::rename(&new, &path));
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_kernel::scenario::migrate::{Migration, migrate_by, renamed};

    #[test]
    fn files_are_replaced_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("demo.yaml");
        fs::write(&path, "old").unwrap();
        replace(&path, "new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no other file is left");
    }

    #[test]
    fn a_file_of_the_newest_format_is_not_touched_and_a_newer_one_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("demo.yaml");
        fs::write(&path, "polity: 2 # the newest\nrounds: 3\n").unwrap();
        assert_eq!(migrate(std::slice::from_ref(&path), None, false).unwrap(), Exit::Done);
        assert_eq!(fs::read_to_string(&path).unwrap(), "polity: 2 # the newest\nrounds: 3\n");
        fs::write(&path, "polity: 99\nnever-heard-of: 3\n").unwrap();
        let failure = one(&path, None, false).unwrap_err();
        assert!(failure.message.contains("format 99, but this build reads formats up to 2"), "{}", failure.message);
        assert!(failure.message.contains("demo.yaml:1:9"), "{}", failure.message);
        assert_eq!(migrate(&[path, "missing.yaml".into()], None, false).unwrap(), Exit::Input);
        assert!(migrate(&[], Some(7), false).unwrap_err().message.contains("formats 1 to 2"));
    }

    /// From format 1 to format 2: renames the renamed keys, and nothing that only looks like one.
    #[test]
    fn keys_get_the_usual_names() {
        let old = "polity: 1\nwindow: 4 # at once\npeople: {timeout: 1h}\nteam:\n  - {name: Liar, misleads: true}\n\
                   items: {file: a.csv, lure: \"false\"}\nmethod: {kind: self-moa, window: 3}\n\
                   cohorts:\n  - policy: {kind: mind, again: 2, hear: 5, tell: no, questions: [{name: why, want: text}]}\n\
                   \x20 - policy: {kind: archetype, by: [{column: age}, {sight: health}]}\n  - policy: {kind: gossip, tell: 0.5, by: [{sight: x}]}\n\
                   changes:\n  - {at: 3, set: {cohorts.a.policy.again: 0, world.again: 1}}\n";
        let new = "polity: 2\nmax_concurrent: 4 # at once\nhumans: {timeout: 1h}\nteam:\n  - {name: Liar, adversarial: true}\n\
                   items: {file: a.csv, distractor: \"false\"}\nmethod: {kind: self-moa, window: 3}\n\
                   cohorts:\n  - policy: {kind: mind, max_retries: 2, max_messages: 5, broadcast: no, questions: [{name: why, response_format: text}]}\n\
                   \x20 - policy: {kind: archetype, by: [{column: age}, {observation: health}]}\n  - policy: {kind: gossip, tell: 0.5, by: [{sight: x}]}\n\
                   changes:\n  - {at: 3, set: {cohorts.a.policy.max_retries: 0, world.again: 1}}\n";
        let unstated = |text: &str| text.replacen("polity: 1\n", "", 1).replacen("polity: 2\n", "", 1);
        assert!(
            migrate::seems_older(&unstated(old), yaml::parse) && !migrate::seems_older(&unstated(new), yaml::parse)
        );
        let migrated = polity_kernel::scenario::migrate::migrate(old, yaml::parse, None).unwrap();
        assert_eq!((migrated.text.as_str(), migrated.from, migrated.to), (new, 1, 2));
    }

    /// What the kernel's tests show with a small reader, with all of YAML.
    #[test]
    fn real_files_are_edited_in_place() {
        let rename = [Migration {
            what: "a world's `low` is called `bottom`",
            edits: |tree| Ok(tree.get("world").and_then(|world| renamed(world, "low", "bottom")).into_iter().collect()),
        }];
        let cases = [
            (
                "# A town\nworld: {kind: opinion, low: 0} # flow\nrounds: 3\n",
                "# A town\npolity: 2\nworld: {kind: opinion, bottom: 0} # flow\nrounds: 3\n",
            ),
            (
                "\"world\":\n    kind: opinion\n    \"low\" : 0   # the end\npolity: 1 # old\n",
                "\"world\":\n    kind: opinion\n    bottom : 0   # the end\npolity: 2 # old\n",
            ),
            ("{world: {low: 0}, rounds: 3}", "{polity: 2, world: {bottom: 0}, rounds: 3}"),
            ("---\n  rounds: 3\n  agents: 4\n", "---\n  polity: 2\n  rounds: 3\n  agents: 4\n"),
            // An alias is a copy of its anchor, places included: one edit.
            ("spare: &it {low: 1}\nworld: *it\n", "polity: 2\nspare: &it {bottom: 1}\nworld: *it\n"),
        ];
        for (old, new) in cases {
            let migrated = migrate_by(&rename, old, yaml::parse, Some(1)).unwrap();
            assert_eq!(migrated.text, new);
            assert_eq!(migrate_by(&rename, new, yaml::parse, None).unwrap().text, new, "once is enough");
        }
    }
}
