//! Trees to and from JSON values, for manifests and for edits that come from other programs.

use serde_json::Value as Json;

use super::{Key, Node, Origin, Value};

impl Node {
    /// The tree as a JSON value, origins dropped. A number that is not finite, which no reader lets in, becomes null.
    pub fn to_json(&self) -> Json {
        match &self.value {
            Value::Null => Json::Null,
            Value::Bool(truth) => Json::Bool(*truth),
            Value::Int(number) => Json::from(*number),
            Value::Float(number) => Json::from(*number),
            Value::Text(text) => Json::String(text.clone()),
            Value::List(items) => items.iter().map(Node::to_json).collect(),
            Value::Map(entries) => {
                Json::Object(entries.iter().map(|(key, node)| (key.name.clone(), node.to_json())).collect())
            }
        }
    }

    /// A built tree from a JSON value. A whole number above `i64::MAX` becomes the nearest float.
    pub fn from_json(json: &Json) -> Node {
        Node::built(match json {
            Json::Null => Value::Null,
            Json::Bool(truth) => Value::Bool(*truth),
            Json::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(whole), _) => Value::Int(whole),
                (None, Some(float)) => Value::Float(float),
                (None, None) => Value::Null,
            },
            Json::String(text) => Value::Text(text.clone()),
            Json::Array(items) => Value::List(items.iter().map(Node::from_json).collect()),
            Json::Object(entries) => {
                let key = |name: &String| Key { name: name.clone(), origin: Origin::Built };
                Value::Map(entries.iter().map(|(name, value)| (key(name), Node::from_json(value))).collect())
            }
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Any tree, a few levels deep, every node built.
    pub fn any_tree() -> impl Strategy<Value = Node> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(Value::Int),
            any::<f64>().prop_filter("finite", |f| f.is_finite()).prop_map(Value::Float),
            any::<String>().prop_map(Value::Text),
        ];
        let value = leaf.prop_recursive(4, 40, 5, |inner| {
            let node = inner.prop_map(Node::built);
            prop_oneof![
                prop::collection::vec(node.clone(), 0..5).prop_map(Value::List),
                prop::collection::btree_map("[a-z.]{0,4}", node, 0..5).prop_map(|map| {
                    let key = |name| Key { name, origin: Origin::Built };
                    Value::Map(map.into_iter().rev().map(|(name, node)| (key(name), node)).collect())
                }),
            ]
        });
        value.prop_map(Node::built)
    }

    proptest! {
        #[test]
        fn a_tree_survives_json_and_its_text(tree in any_tree()) {
            let json = tree.to_json();
            prop_assert_eq!(&Node::from_json(&json), &tree);
            let again: Json = serde_json::from_str(&json.to_string()).unwrap();
            prop_assert_eq!(Node::from_json(&again), tree);
        }
    }
}
