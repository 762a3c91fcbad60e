//! Migration of scenarios from older formats, as edits of their text: comments and layout are preserved.
//!
//! A scenario states its format at the top, `polity: 2`; without it, the format is the current one. To change the format, raise
//! [`VERSION`] and append a [`Migration`] to [`MIGRATIONS`]; nothing else is needed.

use crate::tree::{Invalid, Node, Origin, TreeError, Value};

/// A replacement of a piece of text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Splice {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
    /// The new text.
    pub text: String,
}

/// A migration from one format to the next.
#[derive(Clone, Copy, Debug)]
pub struct Migration {
    /// What changes, for people.
    pub what: &'static str,
    /// The edits that a scenario of the older format needs, except for the key `polity`.
    pub edits: fn(&Node) -> Result<Vec<Splice>, TreeError>,
}

/// The migrations in order: the first leads from format 1 to format 2.
pub const MIGRATIONS: &[Migration] = &[Migration {
    what: "keys have the field's usual names: max_concurrent (window), humans (people), max_retries (again), max_messages (hear), \
           broadcast (tell), adversarial (misleads), distractor (lure), observation (sight), response_format (want)",
    edits: |tree| Ok(to_usual_names(tree)),
}];

/// Keys of policies that ask models: old and new name.
const OF_POLICIES: [(&str, &str); 3] = [("again", "max_retries"), ("hear", "max_messages"), ("tell", "broadcast")];
/// Policies with these keys.
const THAT_ASK: [&str; 3] = ["mind", "archetype", "sampled"];

/// Migrates format 1 to format 2.
fn to_usual_names(tree: &Node) -> Vec<Splice> {
    let mut edits: Vec<Splice> = Vec::new();
    edits.extend(renamed(tree, "window", "max_concurrent"));
    edits.extend(renamed(tree, "people", "humans"));
    edits.extend(tree.get("items").and_then(|items| renamed(items, "lure", "distractor")));
    let members = list(tree.get("team"));
    edits.extend(members.iter().filter_map(|member| renamed(member, "misleads", "adversarial")));
    for policy in list(tree.get("cohorts")).iter().filter_map(|cohort| cohort.get("policy")) {
        let kind = policy.get("kind").map(|kind| &kind.value);
        if matches!(kind, Some(Value::Text(kind)) if THAT_ASK.contains(&kind.as_str())) {
            edits.extend(OF_POLICIES.iter().filter_map(|(old, new)| renamed(policy, old, new)));
            edits.extend(list(policy.get("by")).iter().filter_map(|by| renamed(by, "sight", "observation")));
            edits
                .extend(list(policy.get("questions")).iter().filter_map(|one| renamed(one, "want", "response_format")));
        }
    }
    // Changes refer to parameters by path.
    for set in list(tree.get("changes")).iter().filter_map(|change| change.get("set")) {
        let Value::Map(entries) = &set.value else { continue };
        for (key, _) in entries {
            let Some((before, last)) = key.name.rsplit_once('.') else { continue };
            let new = OF_POLICIES.iter().find(|(old, _)| *old == last).filter(|_| before.ends_with(".policy"));
            if let (Some((_, new)), Origin::File { start, end }) = (new, &key.origin) {
                edits.push(Splice { start: *start, end: *end, text: format!("{before}.{new}") });
            }
        }
    }
    edits
}

fn list(node: Option<&Node>) -> &[Node] {
    match node.map(|node| &node.value) {
        Some(Value::List(items)) => items,
        _ => &[],
    }
}

/// A migrated scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// The new text; the old one if there was nothing to do.
    pub text: String,
    /// The old format.
    pub from: u32,
    /// The new format.
    pub to: u32,
    /// Descriptions of the changes.
    pub changes: Vec<&'static str>,
}

/// Returns the format that a scenario states, checked to be known to this build.
pub fn stated_format(tree: &Node) -> Result<Option<u32>, TreeError> {
    stated(tree, VERSION)
}

fn stated(tree: &Node, newest: u32) -> Result<Option<u32>, TreeError> {
    let Some(node) = tree.get("polity") else { return Ok(None) };
    let wrong = |message: String, help: Option<String>| TreeError {
        message,
        path: "polity".into(),
        origin: node.origin.clone(),
        help,
    };
    match node.value {
        Value::Int(format) if format > i64::from(newest) => Err(wrong(
            format!("this scenario has format {format}, but this build reads formats up to {newest}"),
            Some("use a newer polity".into()),
        )),
        Value::Int(format) if format >= 1 => Ok(Some(format as u32)),
        _ => Err(wrong(
            format!("a format must be a whole number from 1 to {newest}, found {}", node.describe()),
            Some(format!("write `polity: {newest}`, or leave the line out")),
        )),
    }
}

/// Returns the edit that renames a key of a map; `None` if the map has no such key.
#[must_use]
pub fn renamed(map: &Node, key: &str, new: &str) -> Option<Splice> {
    let Value::Map(entries) = &map.value else { return None };
    let (key, _) = entries.iter().find(|(k, _)| k.name == key)?;
    match key.origin {
        Origin::File { start, end } => Some(Splice { start, end, text: new.into() }),
        _ => None,
    }
}

/// Migrates the text of a scenario to the current format. `parse` reads YAML; `from` is the format of a text that states none.
pub fn migrate(
    text: &str,
    parse: impl Fn(&str) -> Result<Node, TreeError>,
    from: Option<u32>,
) -> Result<Migrated, TreeError> {
    migrate_by(MIGRATIONS, text, parse, from)
}

/// Whether a text that states no format, and is read as one of the current format, has keys of an older one.
pub fn seems_older(text: &str, parse: impl Fn(&str) -> Result<Node, TreeError>) -> bool {
    let is_older = |tree: &Node| {
        let has_edits = |migration: &Migration| (migration.edits)(tree).is_ok_and(|edits| !edits.is_empty());
        tree.get("polity").is_none() && MIGRATIONS.iter().any(has_edits)
    };
    parse(text).is_ok_and(|tree| is_older(&tree))
}

/// Does the same as [`migrate`] with other migrations, each leading to a format one above its number.
pub fn migrate_by(
    migrations: &[Migration],
    text: &str,
    parse: impl Fn(&str) -> Result<Node, TreeError>,
    from: Option<u32>,
) -> Result<Migrated, TreeError> {
    let newest = migrations.len() as u32 + 1;
    let mut tree = parse(text)?;
    let from = match stated(&tree, newest)? {
        Some(format) => format,
        None => from.unwrap_or(newest).clamp(1, newest),
    };
    let mut text = text.to_owned();
    let mut changes = Vec::new();
    for (format, migration) in (1..).zip(migrations).skip(from as usize - 1) {
        let mut splices = (migration.edits)(&tree)?;
        splices.extend(state_format(&text, &tree, format + 1));
        text = spliced(&text, splices).map_err(|invalid| tree.blame("", invalid))?;
        tree = parse(&text)?;
        changes.push(migration.what);
    }
    Ok(Migrated { text, from, to: newest, changes })
}

/// Returns the edit that states the format: in its place, or before the first key.
fn state_format(text: &str, tree: &Node, format: u32) -> Option<Splice> {
    if let Some(Node { origin: Origin::File { start, end }, .. }) = tree.get("polity") {
        return Some(Splice { start: *start, end: *end, text: format.to_string() });
    }
    let Value::Map(entries) = &tree.value else { return None };
    match (&entries.first()?.0.origin, &tree.origin) {
        // In `{rounds: 3}` the map begins before its first key.
        (Origin::File { start: key, .. }, Origin::File { start, .. }) if key > start => {
            Some(Splice { start: *key, end: *key, text: format!("polity: {format}, ") })
        }
        (Origin::File { start, .. }, _) => {
            let line = text.get(..*start)?.rsplit('\n').next().unwrap_or_default();
            Some(Splice { start: *start, end: *start, text: format!("polity: {format}\n{line}") })
        }
        _ => None,
    }
}

/// Applies all edits to the text. A part that an alias repeats is edited once.
fn spliced(text: &str, mut splices: Vec<Splice>) -> Result<String, Invalid> {
    splices.sort();
    splices.dedup();
    let mut new = String::with_capacity(text.len());
    let mut at = 0;
    for splice in splices {
        let kept = text.get(at..splice.start);
        Invalid::unless(kept.is_some(), "", "this scenario cannot be migrated: two changes overlap")?;
        new.push_str(kept.unwrap_or_default());
        new.push_str(&splice.text);
        at = splice.end;
    }
    new.push_str(text.get(at..).unwrap_or_default());
    Ok(new)
}

/// The version of the scenario format that this build writes and reads.
pub const VERSION: u32 = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Key;

    /// Reads only lines `key: number`, which is enough here. The driver's YAML reader is tested with complete scenarios.
    fn parse(text: &str) -> Result<Node, TreeError> {
        let mut entries = Vec::new();
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            if let Some((key, value)) = line.split('#').next().and_then(|line| line.split_once(": ")) {
                let origin = |start: usize, text: &str| Origin::File { start, end: start + text.len() };
                let value_at = at + key.len() + 2;
                let value = value.trim_end();
                let node = Node { value: Value::Int(value.parse().unwrap()), origin: origin(value_at, value) };
                entries.push((Key { name: key.into(), origin: origin(at, key) }, node));
            }
            at += line.len();
        }
        let origin = entries.first().map_or(Origin::Built, |(key, _): &(Key, Node)| key.origin.clone());
        Ok(Node { value: Value::Map(entries), origin })
    }

    const TWO: &[Migration] = &[
        Migration {
            what: "`turns` is called `rounds`",
            edits: |tree| Ok(renamed(tree, "turns", "rounds").into_iter().collect()),
        },
        Migration {
            what: "`people` is called `agents`",
            edits: |tree| Ok(renamed(tree, "people", "agents").into_iter().collect()),
        },
    ];

    fn migrated(text: &str, from: Option<u32>) -> Migrated {
        migrate_by(TWO, text, parse, from).unwrap()
    }

    #[test]
    fn there_is_a_migration_from_every_older_format() {
        assert_eq!(MIGRATIONS.len() + 1, VERSION as usize);
    }

    #[test]
    fn old_formats_become_new_and_comments_stay() {
        let old = "polity: 1  # the format\n# How long?\nturns: 3 # not many\npeople: 10\n";
        let new = migrated(old, None);
        assert_eq!(new.text, "polity: 3  # the format\n# How long?\nrounds: 3 # not many\nagents: 10\n");
        assert_eq!((new.from, new.to, new.changes.len()), (1, 3, 2));
        let half = migrated("people: 10 # few\npolity: 2\n", None);
        assert_eq!(half.text, "agents: 10 # few\npolity: 3\n");
        assert_eq!(half.changes, ["`people` is called `agents`"]);
    }

    #[test]
    fn what_is_new_or_states_no_format_stays_as_it_is() {
        for text in ["polity: 3\nturns: 3\n", "turns: 3\n", ""] {
            let same = migrated(text, None);
            assert_eq!((same.text.as_str(), same.from, same.changes.len()), (text, 3, 0));
        }
        // Unless the caller says what it is.
        assert_eq!(migrated("# old\nturns: 3\n", Some(1)).text, "# old\npolity: 3\nrounds: 3\n");
    }

    #[test]
    fn newer_formats_are_refused() {
        let error = migrate_by(TWO, "polity: 4\nnew-key: 1\n", parse, None).unwrap_err();
        assert_eq!(error.to_string(), "polity: this scenario has format 4, but this build reads formats up to 3");
        assert_eq!(error.origin, Origin::File { start: 8, end: 9 });
        assert!(migrate_by(TWO, "polity: 0\n", parse, None).unwrap_err().message.contains("from 1 to 3"));
    }

    #[test]
    fn edits_that_meet_are_refused() {
        let splice = |start, end| Splice { start, end, text: "x".into() };
        assert_eq!(spliced("abcdef", vec![splice(4, 5), splice(1, 3), splice(1, 3)]).unwrap(), "axdxf");
        assert!(spliced("abcdef", vec![splice(1, 3), splice(2, 4)]).is_err());
    }
}
