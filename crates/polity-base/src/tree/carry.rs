//! Sub-trees inside typed structs: a field of type [`Node`] keeps its part of the tree, origins included, for a leaf to
//! read later.
//!
//! Serde has no way to hand a value of our own through a deserialiser, so the reader of [`super::read`] recognises
//! [`CARRIED`] and passes the sub-tree as bytes; every other format sees an ordinary pair.

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::{Serialize, Serializer};

use super::Node;

/// The name under which a `Node` asks to be carried unread.
pub(super) const CARRIED: &str = "polity::tree::Node";

/// The bytes in which the reader passes a sub-tree on.
pub(super) fn pack(node: &Node) -> postcard::Result<Vec<u8>> {
    postcard::to_allocvec(node)
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_newtype_struct(CARRIED, &(&self.value, &self.origin))
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Node, D::Error> {
        struct Unpack;
        impl<'de> Visitor<'de> for Unpack {
            type Value = Node;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a part of a scenario")
            }

            fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<Node, E> {
                postcard::from_bytes(&bytes).map_err(E::custom)
            }

            fn visit_newtype_struct<D: Deserializer<'de>>(self, pair: D) -> Result<Node, D::Error> {
                let (value, origin) = Deserialize::deserialize(pair)?;
                Ok(Node { value, origin })
            }
        }
        deserializer.deserialize_newtype_struct(CARRIED, Unpack)
    }
}
