//! `-P` edits: `world.fraction`, `cohorts[0].policy.mean`, `cohorts.thinkers.policy.mean`.

use super::nearest::{excerpt, known_list, meant};
use super::path::join;
use super::{Key, Node, Step, TreeError, Value, parse_path};

/// What is wrong with a step: the message, and what to do.
type Wrong = (String, Option<String>);

impl Node {
    /// Puts `value` at `path`. A step is a key of a map, an index of a list, or the `name` of a list's entry. Keys that
    /// are missing are made (the typed read that follows refuses those that no type knows); an index out of range, an
    /// unknown name or a step into a scalar is an error that says what is there. On an error the tree is unchanged.
    pub fn edit(&mut self, path: &str, value: Node) -> Result<(), TreeError> {
        let origin = value.origin.clone();
        let wrong = |(message, help): Wrong, path: String| TreeError { message, path, origin: origin.clone(), help };
        let steps = parse_path(path).map_err(|message| wrong((message, Some(HOW.to_owned())), path.to_owned()))?;
        let mut here = self;
        for (n, step) in steps.iter().enumerate() {
            let so_far = |taken: usize| join("", &steps[..taken]);
            if let Some(name) = here.lacks(step) {
                let nested = nest(&steps[n + 1..], value).map_err(|what| wrong(what, so_far(n + 1)))?;
                here.insert(Key { name: name.to_owned(), origin }, nested);
                return Ok(());
            }
            here = here.enter_mut(step).map_err(|what| wrong(what, so_far(n)))?;
        }
        *here = value;
        Ok(())
    }

    /// The node at `path`, which is written as for [`Node::edit`]; `None` when nothing is written there.
    #[must_use]
    pub fn find(&self, path: &str) -> Option<&Node> {
        parse_path(path).ok()?.iter().try_fold(self, |here, step| Some(here.entry(step)?.1))
    }

    /// What a step leads to, and its key: in a list the index, however the step names the entry.
    #[must_use]
    pub fn entry(&self, step: &Step) -> Option<(String, &Node)> {
        match (&self.value, step) {
            (Value::List(items), step) => {
                let at = index(items, step).ok()?;
                Some((at.to_string(), items.get(at)?))
            }
            (_, Step::Word(name) | Step::Name(name)) => Some((name.clone(), self.get(name)?)),
            (_, Step::Index(_)) => None,
        }
    }

    /// Takes what stands under a key out of a map.
    pub fn take(&mut self, key: &str) -> Option<Node> {
        let Value::Map(entries) = &mut self.value else { return None };
        let at = entries.iter().position(|(k, _)| k.name == key)?;
        Some(entries.remove(at).1)
    }

    /// The key of this step, when an edit may make it here: in a map without it, or where nothing stands.
    fn lacks<'s>(&self, step: &'s Step) -> Option<&'s str> {
        match (&self.value, step) {
            (Value::Map(_), Step::Word(name) | Step::Name(name)) if self.get(name).is_none() => Some(name),
            (Value::Null, Step::Word(name) | Step::Name(name)) => Some(name),
            _ => None,
        }
    }

    fn insert(&mut self, key: Key, node: Node) {
        match &mut self.value {
            Value::Map(entries) => entries.push((key, node)),
            other => *other = Value::Map(vec![(key, node)]),
        }
    }

    /// The child that a step leads to.
    fn enter_mut(&mut self, step: &Step) -> Result<&mut Node, Wrong> {
        let at = join("", std::slice::from_ref(step));
        let message = format!("there is no `{at}` here, found {}", self.describe());
        let help = match &self.value {
            Value::Text(text) => {
                Some(format!("if it is a kind, write it as a map in the file: {{kind: {}}}", excerpt(text)))
            }
            _ => None,
        };
        match (&mut self.value, step) {
            (Value::List(items), step) => {
                let at = index(items, step)?;
                items.get_mut(at)
            }
            (Value::Map(entries), Step::Word(name) | Step::Name(name)) => {
                entries.iter_mut().find(|(key, _)| key.name == *name).map(|(_, node)| node)
            }
            _ => None,
        }
        .ok_or((message, help))
    }
}

const HOW: &str = "write it like world.fraction, cohorts[0].count or cohorts.NAME.count";

/// The index in a list that a step means: a number, or the `name` of an entry.
fn index(items: &[Node], step: &Step) -> Result<usize, Wrong> {
    let number = match step {
        Step::Index(at) => Some(*at),
        Step::Word(word) => word.parse().ok(),
        Step::Name(_) => None,
    };
    if let Some(at) = number {
        return match (at < items.len(), items.len()) {
            (true, _) => Ok(at),
            (false, 0) => Err((format!("the index {at} is out of range: the list is empty"), None)),
            (false, len) => {
                Err((format!("the index {at} is out of range: the list has the indices 0 to {}", len - 1), None))
            }
        };
    }
    let (Step::Word(name) | Step::Name(name)) = step else {
        return Err(("name an entry of a list by its index or its name".to_owned(), None));
    };
    let named = |node: &Node| {
        node.get("name").and_then(|name| match &name.value {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        })
    };
    let names: Vec<Option<String>> = items.iter().map(named).collect();
    let mut hits = names.iter().enumerate().filter(|(_, other)| other.as_ref() == Some(name)).map(|(at, _)| at);
    match (hits.next(), hits.next()) {
        (Some(at), None) => Ok(at),
        (Some(a), Some(b)) => Err((
            format!("the entries {a} and {b} are both named `{}`", excerpt(name)),
            Some("use the index".to_owned()),
        )),
        (None, _) => {
            let known: Vec<&str> = names.iter().flatten().map(String::as_str).collect();
            Err((
                format!("no entry of this list is named `{}`{}", excerpt(name), meant(name, &known)),
                Some(known_list("names", &known)),
            ))
        }
    }
}

/// Wraps a value in one map for every step, so that it can be put under a key that did not exist.
fn nest(steps: &[Step], value: Node) -> Result<Node, Wrong> {
    steps.iter().rev().try_fold(value, |inner, step| match step {
        Step::Index(at) => Err((format!("there is no `[{at}]` here, found nothing"), None)),
        Step::Word(name) | Step::Name(name) => {
            let origin = inner.origin.clone();
            let key = Key { name: name.clone(), origin: origin.clone() };
            Ok(Node { value: Value::Map(vec![(key, inner)]), origin })
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Origin;
    use crate::tree::json::tests::any_tree;
    use proptest::prelude::*;
    use serde_json::json;

    fn society() -> Node {
        Node::from_json(&json!({
            "world": {"kind": "beauty-contest", "fraction": 0.5},
            "cohorts": [{"name": "thinkers", "policy": {"mean": 1}}, {"name": "crowd", "policy": "level-k"}],
            "twins": [{"name": "a"}, {"name": "a"}],
            "empty": [],
            "nothing": null,
            "1": "one",
            "gpt-4.1": {"price": 2},
        }))
    }

    fn seven() -> Node {
        Node { value: Value::Int(7), origin: Origin::Edit("the edit".into()) }
    }

    #[test]
    fn edits_reach_keys_indices_and_names() {
        let cases = [
            ("world.fraction", "/world/fraction"),
            ("cohorts.0.policy.mean", "/cohorts/0/policy/mean"),
            ("cohorts[0].policy.mean", "/cohorts/0/policy/mean"),
            ("cohorts.thinkers.policy.mean", "/cohorts/0/policy/mean"),
            ("cohorts.\"crowd\".policy", "/cohorts/1/policy"),
            ("cohorts.crowd", "/cohorts/1"),
            ("nothing", "/nothing"),
            ("1", "/1"),
            ("\"gpt-4.1\".price", "/gpt-4.1/price"),
        ];
        for (path, pointer) in cases {
            let mut tree = society();
            tree.edit(path, seven()).unwrap();
            let mut expected = society().to_json();
            *expected.pointer_mut(pointer).unwrap() = json!(7);
            assert_eq!(tree.to_json(), expected, "{path}");
        }
    }

    #[test]
    fn edits_make_missing_keys() {
        let mut tree = Node::from_json(&json!({"world": {"a": 1}, "nothing": null}));
        for path in ["world.b", "new.deep.er", "nothing.more"] {
            tree.edit(path, seven()).unwrap();
        }
        let expected = json!({"world": {"a": 1, "b": 7}, "nothing": {"more": 7}, "new": {"deep": {"er": 7}}});
        assert_eq!(tree.to_json(), expected);
    }

    #[test]
    fn what_an_edit_makes_is_marked_as_the_edit() {
        let mut tree = society();
        tree.edit("new.deep", seven()).unwrap();
        let Value::Map(entries) = &tree.value else { panic!() };
        let (key, node) = entries.last().unwrap();
        let edit = Origin::Edit("the edit".into());
        assert_eq!((&key.origin, &node.origin), (&edit, &edit));
        assert_eq!(node.get("deep"), Some(&seven()));
    }

    #[test]
    fn wrong_edits_say_what_is_there_and_change_nothing() {
        let cases = [
            ("cohorts.5", "cohorts: the index 5 is out of range: the list has the indices 0 to 1", None),
            ("cohorts[2].count", "cohorts: the index 2 is out of range: the list has the indices 0 to 1", None),
            ("empty[0]", "empty: the index 0 is out of range: the list is empty", None),
            (
                "cohorts.thinker.count",
                "cohorts: no entry of this list is named `thinker`; did you mean `thinkers`?",
                Some("names: thinkers, crowd"),
            ),
            ("cohorts.\"0\"", "cohorts: no entry of this list is named `0`", Some("names: thinkers, crowd")),
            ("twins.a.x", "twins: the entries 0 and 1 are both named `a`", Some("use the index")),
            ("world.fraction.x", "world.fraction: there is no `x` here, found the number 0.5", None),
            (
                "cohorts.crowd.policy.mean",
                "cohorts.crowd.policy: there is no `mean` here, found text `level-k`",
                Some("if it is a kind, write it as a map in the file: {kind: level-k}"),
            ),
            ("world[0]", "world: there is no `[0]` here, found a map", None),
            ("nothing[0]", "nothing: there is no `[0]` here, found nothing", None),
            ("new[0].x", "new: there is no `[0]` here, found nothing", None),
            ("nothing.x[0]", "nothing.x: there is no `[0]` here, found nothing", None),
            ("a..b", "a..b: a step of the path is empty", Some(HOW)),
            ("", "a step of the path is empty", Some(HOW)),
        ];
        for (path, message, help) in cases {
            let mut tree = society();
            let error = tree.edit(path, seven()).unwrap_err();
            assert_eq!(error.to_string(), message, "{path}");
            assert_eq!(error.help.as_deref(), help, "{path}");
            assert_eq!(error.origin, Origin::Edit("the edit".into()));
            assert_eq!(tree, society(), "{path} left a trace");
        }
    }

    #[test]
    fn what_is_written_is_found_and_taken_out() {
        let mut tree = society();
        tree.edit("world.fraction", seven()).unwrap();
        tree.edit("cohorts[0].policy", Node::built(Value::Map(Vec::new()))).unwrap();
        tree.edit("cohorts[0].policy.mean", seven()).unwrap();
        assert_eq!(tree.find("cohorts.0.policy.mean"), Some(&seven()));
        for nowhere in ["world.low", "cohorts[9]", "cohorts.nobody", "world.fraction.x", "world[0]", "", "a..b"] {
            assert_eq!(tree.find(nowhere), None, "{nowhere}");
        }
        assert_eq!(tree.take("world").as_ref().and_then(|world| world.get("fraction")), Some(&seven()));
        assert_eq!(tree.find("world"), None);
        assert_eq!(tree.take("world"), None);
        assert_eq!(seven().take("x"), None);
    }

    proptest! {
        #[test]
        fn any_edit_lands_or_leaves_the_tree(mut tree in any_tree(), path in "[a-z0-2.\\[\\]\"]{0,8}") {
            let before = tree.clone();
            if tree.edit(&path, seven()).is_err() {
                prop_assert_eq!(tree, before);
            }
        }
    }
}
