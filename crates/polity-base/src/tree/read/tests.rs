use std::collections::BTreeMap;

use proptest::prelude::*;
use serde::Deserialize;
use serde_json::json;

use super::*;
use crate::tree::json::tests::any_tree;
use crate::tree::parse_path;

#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct World {
    fraction: f64,
    #[serde(default)]
    rounds: u32,
    label: Option<String>,
}

/// Forgets to deny unknown fields.
#[derive(Debug, Deserialize, PartialEq)]
struct Cohort {
    name: String,
    count: u8,
    policy: Node,
}

#[derive(Debug, Deserialize, PartialEq)]
struct Society {
    world: World,
    cohorts: Vec<Cohort>,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum Answers {
    Wait,
    Lag(u32),
    BothWays(u32, u32),
    AtMost { rounds: u32, strict: Option<bool> },
}

/// A type with a check of its own.
#[derive(Debug, Deserialize, PartialEq)]
#[serde(try_from = "f64")]
struct Share(f64);

impl TryFrom<f64> for Share {
    type Error = String;
    fn try_from(share: f64) -> Result<Share, String> {
        if (0.0..=1.0).contains(&share) { Ok(Share(share)) } else { Err(format!("a share is 0 to 1, not {share}")) }
    }
}

#[derive(Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "kebab-case")]
enum Party {
    Left,
    FarRight,
}

/// A tree in which every key and value has an origin of its own.
fn marked(json: serde_json::Value) -> Node {
    fn mark(node: &mut Node, at: &mut usize) {
        node.origin = next(at);
        match &mut node.value {
            Value::List(items) => items.iter_mut().for_each(|item| mark(item, at)),
            Value::Map(entries) => entries.iter_mut().for_each(|(key, item)| {
                key.origin = next(at);
                mark(item, at);
            }),
            _ => {}
        }
    }
    fn next(at: &mut usize) -> Origin {
        *at += 1;
        Origin::File { start: *at, end: *at }
    }
    let mut node = Node::from_json(&json);
    mark(&mut node, &mut 0);
    node
}

/// The origin of the value at a path, or of its key.
fn origin_at(tree: &Node, path: &str, of_key: bool) -> Origin {
    let steps = parse_path(path).unwrap_or_default();
    let mut here = (None, tree);
    for step in &steps {
        here = match (&here.1.value, step) {
            (Value::List(items), Step::Index(at)) => (None, &items[*at]),
            (Value::Map(entries), Step::Word(name) | Step::Name(name)) => {
                let (key, node) = entries.iter().find(|(key, _)| key.name == *name).unwrap();
                (Some(key), node)
            }
            _ => panic!("{path} is not in the tree"),
        };
    }
    if of_key { here.0.unwrap().origin.clone() } else { here.1.origin.clone() }
}

fn society() -> serde_json::Value {
    json!({
        "world": {"fraction": 1, "rounds": 3.0},
        "cohorts": [
            {"name": "thinkers", "count": 2, "policy": {"kind": "level-k", "mean": 1.5}},
            {"name": "crowd", "count": 3, "policy": "random"},
        ],
    })
}

#[test]
fn a_scenario_is_read_and_its_leaves_keep_their_places() {
    let tree = marked(society());
    let read: Society = tree.read("").unwrap();
    assert_eq!(read.world, World { fraction: 1.0, rounds: 3, label: None });
    assert_eq!(read.cohorts.len(), 2);
    let policy = &read.cohorts[0].policy;
    assert_eq!(policy.origin, origin_at(&tree, "cohorts[0].policy", false));
    assert_eq!(policy.get("mean").unwrap().origin, origin_at(&tree, "cohorts[0].policy.mean", false));
    let error = policy.read::<World>("cohorts[0].policy").unwrap_err();
    assert_eq!(error.origin, origin_at(&tree, "cohorts[0].policy.kind", true));
}

/// Where an error must point.
enum At {
    Key,
    Value,
}

/// Replaces the value at `pointer` of the good society and reads it again.
fn with(pointer: &str, value: serde_json::Value) -> (Node, TreeError) {
    let mut json = society();
    let (parent, last) = pointer.rsplit_once('/').unwrap();
    match json.pointer_mut(parent).unwrap() {
        serde_json::Value::Object(map) => {
            map.insert(last.to_owned(), value);
        }
        other => other[last.parse::<usize>().unwrap()] = value,
    }
    let tree = marked(json);
    let error = tree.read::<Society>("").unwrap_err();
    (tree, error)
}

#[test]
fn wrong_scenarios_are_blamed_on_the_deepest_place() {
    use At::{Key, Value};
    let cases = [
        ("/wrold", json!({}), "wrold: unknown key `wrold`; did you mean `world`?", Key),
        ("/world/frction", json!(1), "world.frction: unknown key `frction`; did you mean `fraction`?", Key),
        ("/world/zebra", json!(1), "world.zebra: unknown key `zebra`", Key),
        ("/world/a.b", json!(1), "world.\"a.b\": unknown key `a.b`", Key),
        ("/cohorts/1/cuont", json!(1), "cohorts[1].cuont: unknown key `cuont`; did you mean `count`?", Key),
        ("/world/fraction", json!("abc"), "world.fraction: expected a number, found text `abc`", Value),
        ("/world/fraction", json!(null), "world.fraction: expected a number, found nothing", Value),
        ("/world/rounds", json!(1.5), "world.rounds: expected a whole number, found the number 1.5", Value),
        (
            "/world/rounds",
            json!(-1),
            "world.rounds: expected a whole number that is not negative, found the number -1",
            Value,
        ),
        (
            "/cohorts/0/count",
            json!(256),
            "cohorts[0].count: expected a whole number from 0 to 255, found the number 256",
            Value,
        ),
        ("/world/label", json!(1.5), "world.label: expected text, found the number 1.5", Value),
        ("/cohorts/1", json!("crowd"), "cohorts[1]: expected a map, found text `crowd`", Value),
        ("/cohorts/1", json!({"name": "x", "policy": 1}), "cohorts[1]: the key `count` is missing", Value),
        ("/cohorts/1", json!({"name": "x", "count": 1}), "cohorts[1]: the key `policy` is missing", Value),
        ("/cohorts", json!({"a": 1}), "cohorts: expected a list, found a map", Value),
        ("/world", json!([]), "world: expected a map, found a list of 0 entries", Value),
    ];
    for (pointer, value, message, at) in cases {
        let (tree, error) = with(pointer, value);
        assert_eq!(error.to_string(), message, "{pointer}");
        assert_eq!(error.origin, origin_at(&tree, &error.path, matches!(at, Key)), "{pointer}");
    }
}

#[test]
fn errors_help() {
    let help = |pointer: &str, value| with(pointer, value).1.help;
    assert_eq!(help("/world/frction", json!(1)).unwrap(), "known keys: fraction, rounds, label");
    assert_eq!(help("/cohorts/0/zzz", json!(1)).unwrap(), "known keys: name, count, policy");
    assert_eq!(help("/world", json!({})).unwrap(), "its keys: fraction, rounds, label");
    assert_eq!(help("/world", json!("beauty")).unwrap(), "its keys: fraction, rounds, label");
    assert_eq!(help("/world/rounds", json!("0x10")).as_deref(), Some(NUMBERS));
    assert_eq!(help("/world/rounds", json!("-012")).as_deref(), Some(NUMBERS));
    assert_eq!(help("/world/rounds", json!("many")), None);
    assert_eq!(help("/world/label", json!(true)).as_deref(), Some(QUOTES));
    assert_eq!(help("/world/label", json!([])), None);
}

#[test]
fn the_readers_own_path_comes_first() {
    let error = marked(json!({"fraction": "x"})).read::<World>("cohorts[2].policy").unwrap_err();
    assert_eq!(error.path, "cohorts[2].policy.fraction");
    let error = marked(json!([1, "x"])).read::<Vec<u8>>("levels").unwrap_err();
    assert_eq!(error.path, "levels[1]");
}

fn read<T: de::DeserializeOwned>(json: serde_json::Value) -> Result<T, String> {
    marked(json).read::<T>("").map_err(|error| error.to_string())
}

#[test]
fn numbers_fit_or_are_refused() {
    assert_eq!(read::<f64>(json!(3)), Ok(3.0));
    assert_eq!(read::<i32>(json!(1e3)), Ok(1000));
    assert_eq!(read::<i64>(json!(9_007_199_254_740_992.0_f64)), Ok(9_007_199_254_740_992));
    assert!(read::<i64>(json!(9_007_199_254_740_994.0_f64)).is_err());
    assert!(read::<u64>(json!(1e300)).is_err());
    assert_eq!(read::<i64>(json!(i64::MIN)), Ok(i64::MIN));
    assert_eq!(read::<u64>(json!(i64::MAX)), Ok(i64::MAX as u64));
    assert_eq!(read::<i8>(json!(-128)), Ok(-128));
    assert!(read::<i8>(json!(-129)).is_err());
    assert_eq!(read::<u128>(json!(5)), Ok(5));
    assert_eq!(read::<f32>(json!(0.5)), Ok(0.5));
    assert!(read::<f32>(json!(1e300)).is_err());
    for broken in [f64::NAN, f64::INFINITY] {
        assert!(Node::built(Value::Float(broken)).read::<f64>("").is_err());
        assert!(Node::built(Value::Float(broken)).read::<u64>("").is_err());
        assert!(Node::built(Value::Float(broken)).read::<serde_json::Value>("").is_err());
    }
}

#[test]
fn every_shape_of_type_is_read() {
    assert_eq!(read::<Option<u8>>(json!(null)), Ok(None));
    assert_eq!(read::<Option<u8>>(json!(1)), Ok(Some(1)));
    assert_eq!(read::<(u8, String)>(json!([1, "a"])), Ok((1, "a".into())));
    assert_eq!(read::<(u8, u8)>(json!([1])).unwrap_err(), "expected a list of 2 entries, found a list of 1 entry");
    assert!(read::<(u8, u8)>(json!([1, 2, 3])).is_err());
    assert_eq!(read::<[u8; 2]>(json!([1, 2])), Ok([1, 2]));
    assert_eq!(read::<BTreeMap<String, u8>>(json!({"b": 1})), Ok(BTreeMap::from([("b".into(), 1)])));
    assert_eq!(read::<BTreeMap<u32, bool>>(json!({"7": true})), Ok(BTreeMap::from([(7, true)])));
    assert_eq!(read::<BTreeMap<Party, u8>>(json!({"far-right": 1})), Ok(BTreeMap::from([(Party::FarRight, 1)])));
    assert_eq!(read::<Share>(json!(0.25)), Ok(Share(0.25)));
    assert_eq!(read::<()>(json!(null)), Ok(()));
    assert_eq!(read::<char>(json!("é")), Ok('é'));
    assert!(read::<char>(json!("ab")).is_err());
    assert!(read::<bool>(json!("true")).is_err());
    assert_eq!(read::<serde_json::Value>(society()), Ok(society()));
}

#[test]
fn enums_are_names_or_maps_of_one_entry() {
    assert_eq!(read::<Answers>(json!("wait")), Ok(Answers::Wait));
    assert_eq!(read::<Answers>(json!({"wait": null})), Ok(Answers::Wait));
    assert_eq!(read::<Answers>(json!({"lag": 2})), Ok(Answers::Lag(2)));
    assert_eq!(read::<Answers>(json!({"both-ways": [2, 3]})), Ok(Answers::BothWays(2, 3)));
    let at_most = Answers::AtMost { rounds: 2, strict: None };
    assert_eq!(read::<Answers>(json!({"at-most": {"rounds": 2}})), Ok(at_most));
}

#[test]
fn wrong_enums_custom_checks_and_keys_point_at_their_place() {
    let cases: [(serde_json::Value, &str, bool); 10] = [
        (json!({"w": "wiat"}), "w: unknown choice `wiat`; did you mean `wait`?", false),
        (json!({"w": {"lga": 2}}), "w.lga: unknown choice `lga`; did you mean `lag`?", true),
        (json!({"w": {"lag": "x"}}), "w.lag: expected a whole number, found text `x`", false),
        (json!({"w": "lag"}), "w: text `lag` needs a value", false),
        (json!({"w": {"wait": 3}}), "w.wait: expected nothing, found the number 3", false),
        (
            json!({"w": {"at-most": {"ruonds": 1}}}),
            "w.at-most.ruonds: unknown key `ruonds`; did you mean `rounds`?",
            true,
        ),
        (json!({"w": "at-most"}), "w: the key `rounds` is missing", false),
        (
            json!({"w": {"both-ways": [1, -1]}}),
            "w.both-ways[1]: expected a whole number that is not negative, found the number -1",
            false,
        ),
        (json!({"w": 3}), "w: expected the name of a choice or a map of one entry, found the number 3", false),
        (
            json!({"w": {"lag": 1, "wait": null}}),
            "w: expected the name of a choice or a map of one entry, found a map with the keys lag, wait",
            false,
        ),
    ];
    for (json, message, of_key) in cases {
        let tree = marked(json);
        let error = tree.read::<BTreeMap<String, Answers>>("").unwrap_err();
        assert_eq!(error.to_string(), message);
        assert_eq!(error.origin, origin_at(&tree, &error.path, of_key), "{message}");
    }
    let tree = marked(json!({"a": [0.5, 1.5]}));
    let error = tree.read::<BTreeMap<String, Vec<Share>>>("").unwrap_err();
    assert_eq!(error.to_string(), "a[1]: a share is 0 to 1, not 1.5");
    assert_eq!(error.origin, origin_at(&tree, "a[1]", false));
    let tree = marked(json!({"left": 1, "lfet": 2}));
    let error = tree.read::<BTreeMap<Party, u8>>("").unwrap_err();
    assert_eq!(error.to_string(), "lfet: unknown choice `lfet`; did you mean `left`?");
    assert_eq!(error.origin, origin_at(&tree, "lfet", true));
    let error = marked(json!({"x": 1})).read::<BTreeMap<u8, u8>>("").unwrap_err();
    assert_eq!(error.to_string(), "x: expected a whole number from 0 to 255 as a key, found `x`");
}

proptest! {
    #[test]
    fn any_tree_is_carried_and_read_without_a_panic(tree in any_tree()) {
        let mut marked = tree.clone();
        marked.origin = Origin::Edit("a=b".into());
        prop_assert_eq!(&marked.read::<Node>("").unwrap(), &marked);
        prop_assert_eq!(tree.read::<serde_json::Value>("").unwrap(), tree.to_json());
        let _ = (tree.read::<Society>(""), tree.read::<Answers>(""), tree.read::<BTreeMap<u8, Vec<Share>>>(""));
        let _ = tree.split_kind("");
    }

    #[test]
    fn a_tree_survives_other_formats(tree in any_tree()) {
        let text = serde_json::to_string(&tree).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Node>(&text).unwrap(), &tree);
        prop_assert_eq!(postcard::from_bytes::<Node>(&pack(&tree).unwrap()).unwrap(), tree);
    }
}
