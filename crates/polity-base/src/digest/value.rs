//! The hash of any serializable value: its numbers, lengths and texts in the order of serialization.

use super::RowHash;
use serde::ser::{self, Serialize};
use std::fmt::{self, Display};

/// The name under which a collection that maintains its own digest serializes itself.
pub(super) const KEPT: &str = "polity::kept";
/// The field of such a collection that its digest represents: it is saved, but not hashed again.
pub(super) const ROWS: &str = "rows";

/// Hashes a value together with its owner.
///
/// Two values of one type have the same hash only if they serialize alike (except with probability 2⁻¹²⁸). A [`super::DigestVec`]
/// or [`super::DigestMap`] in the value costs one step, whatever its length.
///
/// ```
/// use polity_base::digest::{Kind, RowHash, hash_value};
/// let head = RowHash::new(Kind::Row, 3);
/// assert_eq!(hash_value(head, 7, &(1u8, 2.5)), hash_value(head, 7, &(1u8, 2.5)));
/// assert_ne!(hash_value(head, 7, &(1u8, 2.5)), hash_value(head, 8, &(1u8, 2.5)));
/// ```
#[inline]
#[must_use]
pub fn hash_value<T: Serialize + ?Sized>(head: RowHash, whose: u64, value: &T) -> u128 {
    let mut hasher = Hasher { hash: head, held: Some(whose) };
    match value.serialize(&mut hasher) {
        Ok(()) => hasher.held.map_or(hasher.hash, |held| hasher.hash.word(held)).finish(),
        // Reached only if the value's `Serialize` itself fails; it still gets a hash that no other value has.
        Err(Refused) => head.word(whose).word(u64::MAX).finish(),
    }
}

/// Hashes a value, two words per step.
struct Hasher {
    hash: RowHash,
    /// A word that waits for the next.
    held: Option<u64>,
}

impl Hasher {
    #[inline(always)]
    fn word(&mut self, word: u64) -> Result<(), Refused> {
        match self.held.take() {
            Some(held) => self.hash = self.hash.words(held, word),
            None => self.held = Some(word),
        }
        Ok(())
    }

    #[inline(always)]
    fn long(&mut self, value: u128) -> Result<(), Refused> {
        self.word(value as u64)?;
        self.word((value >> 64) as u64)
    }

    /// Hashes bytes and their length.
    fn bytes(&mut self, bytes: &[u8]) -> Result<(), Refused> {
        self.word(bytes.len() as u64)?;
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().try_for_each(|word| self.word(u64::from_le_bytes(*word)))?;
        if rest.is_empty() {
            return Ok(());
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.word(u64::from_le_bytes(last))
    }
}

/// A value that refuses to be serialized.
#[derive(Debug)]
struct Refused;

impl Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the value cannot be serialized")
    }
}

impl std::error::Error for Refused {}

impl ser::Error for Refused {
    fn custom<T: Display>(_: T) -> Self {
        Refused
    }
}

/// The elements of a sequence or a map. If their number is not known in advance, each element and the end are marked.
struct Elements<'a> {
    hasher: &'a mut Hasher,
    announced: bool,
}

impl<'a> Elements<'a> {
    fn new(hasher: &'a mut Hasher, n: Option<usize>) -> Result<Self, Refused> {
        hasher.word(n.map_or(u64::MAX, |n| n as u64))?;
        Ok(Elements { hasher, announced: n.is_none() })
    }

    #[inline(always)]
    fn next<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Refused> {
        if self.announced {
            self.hasher.word(1)?;
        }
        value.serialize(&mut *self.hasher)
    }

    fn end(self) -> Result<(), Refused> {
        if self.announced { self.hasher.word(0) } else { Ok(()) }
    }
}

/// The fields of a struct.
struct Fields<'a> {
    hasher: &'a mut Hasher,
    /// Whether its digest represents its rows.
    kept: bool,
}

/// Numbers that fit into a word.
macro_rules! words {
    ($($method:ident: $type:ty),*) => {
        $(#[inline(always)]
        fn $method(self, value: $type) -> Result<(), Refused> {
            self.word(value as u64)
        })*
    };
}

impl<'a> ser::Serializer for &'a mut Hasher {
    type Ok = ();
    type Error = Refused;
    type SerializeSeq = Elements<'a>;
    type SerializeTuple = &'a mut Hasher;
    type SerializeTupleStruct = &'a mut Hasher;
    type SerializeTupleVariant = &'a mut Hasher;
    type SerializeMap = Elements<'a>;
    type SerializeStruct = Fields<'a>;
    type SerializeStructVariant = &'a mut Hasher;

    words!(serialize_bool: bool, serialize_char: char);
    words!(serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64);
    words!(serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64);

    fn serialize_u128(self, value: u128) -> Result<(), Refused> {
        self.long(value)
    }

    fn serialize_i128(self, value: i128) -> Result<(), Refused> {
        self.long(value as u128)
    }

    #[inline(always)]
    fn serialize_f32(self, value: f32) -> Result<(), Refused> {
        self.word(u64::from(value.to_bits()))
    }

    #[inline(always)]
    fn serialize_f64(self, value: f64) -> Result<(), Refused> {
        self.word(value.to_bits())
    }

    fn serialize_str(self, value: &str) -> Result<(), Refused> {
        self.bytes(value.as_bytes())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), Refused> {
        self.bytes(value)
    }

    fn serialize_none(self) -> Result<(), Refused> {
        self.word(0)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Refused> {
        self.word(1)?;
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Refused> {
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Refused> {
        Ok(())
    }

    fn serialize_unit_variant(self, _: &'static str, index: u32, _: &'static str) -> Result<(), Refused> {
        self.word(u64::from(index))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<(), Refused> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        index: u32,
        _: &'static str,
        value: &T,
    ) -> Result<(), Refused> {
        self.word(u64::from(index))?;
        value.serialize(self)
    }

    fn serialize_seq(self, n: Option<usize>) -> Result<Elements<'a>, Refused> {
        Elements::new(self, n)
    }

    fn serialize_tuple(self, _: usize) -> Result<Self, Refused> {
        Ok(self)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, Refused> {
        Ok(self)
    }

    fn serialize_tuple_variant(self, _: &'static str, index: u32, _: &'static str, _: usize) -> Result<Self, Refused> {
        self.word(u64::from(index))?;
        Ok(self)
    }

    fn serialize_map(self, n: Option<usize>) -> Result<Elements<'a>, Refused> {
        Elements::new(self, n)
    }

    #[inline(always)]
    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Fields<'a>, Refused> {
        Ok(Fields { hasher: self, kept: name == KEPT })
    }

    fn serialize_struct_variant(self, _: &'static str, index: u32, _: &'static str, _: usize) -> Result<Self, Refused> {
        self.word(u64::from(index))?;
        Ok(self)
    }

    /// As for snapshots: the bytes that are hashed are the bytes that are saved.
    fn is_human_readable(&self) -> bool {
        false
    }
}

impl ser::SerializeSeq for Elements<'_> {
    type Ok = ();
    type Error = Refused;

    #[inline(always)]
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Refused> {
        self.next(value)
    }

    fn end(self) -> Result<(), Refused> {
        self.end()
    }
}

impl ser::SerializeMap for Elements<'_> {
    type Ok = ();
    type Error = Refused;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Refused> {
        self.next(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Refused> {
        value.serialize(&mut *self.hasher)
    }

    fn end(self) -> Result<(), Refused> {
        self.end()
    }
}

impl ser::SerializeStruct for Fields<'_> {
    type Ok = ();
    type Error = Refused;

    #[inline(always)]
    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Refused> {
        if self.kept && name == ROWS { Ok(()) } else { value.serialize(&mut *self.hasher) }
    }

    #[inline(always)]
    fn end(self) -> Result<(), Refused> {
        Ok(())
    }
}

/// Values one after the other; their number is part of their type.
macro_rules! in_order {
    ($($trait:ident $method:ident),*) => {
        $(impl ser::$trait for &mut Hasher {
            type Ok = ();
            type Error = Refused;

            #[inline(always)]
            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Refused> {
                value.serialize(&mut **self)
            }

            #[inline(always)]
            fn end(self) -> Result<(), Refused> {
                Ok(())
            }
        })*
    };
}

in_order!(SerializeTuple serialize_element, SerializeTupleStruct serialize_field, SerializeTupleVariant serialize_field);

impl ser::SerializeStructVariant for &mut Hasher {
    type Ok = ();
    type Error = Refused;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, _: &'static str, value: &T) -> Result<(), Refused> {
        value.serialize(&mut **self)
    }

    fn end(self) -> Result<(), Refused> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Kind;
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    fn hash(value: &impl Serialize) -> u128 {
        hash_value(RowHash::new(Kind::Row, 3), 7, value)
    }

    #[derive(serde::Serialize)]
    enum Shape {
        Empty,
        One(u32),
        Two(u32, u32),
        Named { a: u32 },
    }

    #[test]
    fn values_are_told_apart_by_every_number_text_and_length() {
        fn all_differ<T: Serialize>(values: &[T]) -> bool {
            values.iter().map(hash).collect::<BTreeSet<u128>>().len() == values.len()
        }
        let numbers: Vec<Vec<f64>> = (0..120).map(|i| vec![[0.0, 1.5, -1.5][i % 3]; 1 + i / 3]).collect();
        assert!(all_differ(&numbers));
        assert!(all_differ(&(0..40).map(|n| "x".repeat(n)).collect::<Vec<String>>()));
        let lists: [&[&[u8]]; 6] = [&[], &[&[1], &[2]], &[&[1, 2]], &[&[], &[1, 2]], &[&[1, 2], &[]], &[&[2], &[1]]];
        assert!(all_differ(&lists));
        assert!(all_differ(&[vec![None, Some(0u8)], vec![Some(0), None], vec![Some(1), None], vec![None, None]]));
        let shapes = [Shape::Empty, Shape::One(1), Shape::Two(1, 1), Shape::Named { a: 1 }, Shape::Named { a: 2 }];
        assert!(all_differ(&shapes));
        assert!(all_differ(&[1u128, 1 << 64, 1 << 65]) && all_differ(&[-1i8, 1, 127, -128]));
        assert!(all_differ(&[BTreeMap::from([(1, 2), (3, 4)]), BTreeMap::from([(1, 2)]), BTreeMap::from([(2, 1)])]));
        // Texts whose last word is padded with zeros.
        assert_ne!(hash(&"a"), hash(&"a\0"));
    }

    #[test]
    fn a_number_alone_is_one_step() {
        let head = RowHash::new(Kind::Agent, 9);
        assert_eq!(hash_value(head, 7, &2.5), head.words(7, 2.5f64.to_bits()).finish());
        assert_eq!(hash_value(head, 7, &2.5), hash_value(head, 7, &(2.5,)));
    }

    #[test]
    fn lists_of_unknown_length_are_told_apart() {
        struct Unknown(Vec<Vec<u64>>);
        impl Serialize for Unknown {
            fn serialize<S: ser::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use ser::SerializeSeq;
                let mut outer = serializer.serialize_seq(None)?;
                self.0.iter().try_for_each(|inner| outer.serialize_element(inner))?;
                outer.end()
            }
        }
        let lists =
            [vec![], vec![vec![]], vec![vec![1]], vec![vec![1], vec![]], vec![vec![1, 1]], vec![vec![1], vec![1]]];
        let hashes: BTreeSet<u128> = lists.iter().map(|list| hash(&Unknown(list.clone()))).collect();
        assert_eq!(hashes.len(), lists.len());
    }

    #[test]
    fn a_value_that_refuses_itself_has_a_hash_of_its_own() {
        struct Never;
        impl Serialize for Never {
            fn serialize<S: ser::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
                Err(ser::Error::custom("never"))
            }
        }
        assert_ne!(hash(&Never), hash(&()));
        assert_eq!(hash(&(1, Never)), hash(&(2, Never)));
    }
}
