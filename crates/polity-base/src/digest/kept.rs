//! Collections that maintain the digest of their contents, so that a large state need not be hashed again each round.
//!
//! They can be read like a slice and a map. Every mutation updates the digest.

use super::value::{KEPT, ROWS};
use super::{Digest, Kind, RowHash, hash_value};
use serde::de::{DeserializeOwned, Error};
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::ops::Deref;

/// The hash of one row.
#[inline(always)]
fn hash<T: Serialize>(number: u64, row: &T) -> u128 {
    hash_value(RowHash::new(Kind::Row, 0), number, row)
}

/// Returns the digest of rows numbered from `first`.
fn digest_of<T: Serialize>(first: u64, rows: &[T]) -> Digest {
    let mut digest = Digest::default();
    rows.iter().enumerate().for_each(|(i, row)| digest.add(hash(first + i as u64, row)));
    digest
}

/// A [`Vec`] that maintains the digest of its rows. It reads like a slice; every change goes through a method.
///
/// ```
/// use polity_base::digest::DigestVec;
/// let mut votes = DigestVec::from(vec![0u32; 3]);
/// let before = votes.digest();
/// votes.change(1, |votes| *votes += 1);
/// assert_eq!(votes[1], 1);
/// assert_ne!(votes.digest(), before);
/// votes.set(1, 0);
/// assert_eq!(votes.digest(), before);
/// ```
#[derive(Clone, Debug)]
pub struct DigestVec<T> {
    /// The number of the first row. A row keeps its number when earlier rows are dropped.
    first: u64,
    rows: Vec<T>,
    digest: Digest,
    /// Whether most rows changed in the last pass over all of them. It decides how the digest is computed, never its value.
    mostly: bool,
}

impl<T: Serialize> DigestVec<T> {
    /// Makes a collection with rows numbered from `first`.
    #[must_use]
    pub fn numbered_from(first: u64, rows: Vec<T>) -> Self {
        DigestVec { first, digest: digest_of(first, &rows), rows, mostly: false }
    }

    /// Returns the digest of all rows and their numbers.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Reserves capacity for exactly `more` rows.
    pub fn reserve_exact(&mut self, more: usize) {
        self.rows.reserve_exact(more);
    }

    /// Appends a row.
    pub fn push(&mut self, row: T) {
        self.digest.add(hash(self.first + self.rows.len() as u64, &row));
        self.rows.push(row);
    }

    /// Changes row `i`, counted from the first one held.
    ///
    /// # Panics
    /// If there is no such row, as slices do.
    #[inline]
    pub fn change<R>(&mut self, i: usize, change: impl FnOnce(&mut T) -> R) -> R {
        let row = &mut self.rows[i];
        let number = self.first + i as u64;
        self.digest.subtract(hash(number, row));
        let result = change(row);
        self.digest.add(hash(number, row));
        result
    }

    /// Changes fields of row `i` that are not saved (`#[serde(skip)]`) and so are not part of the digest. Debug builds check that.
    ///
    /// # Panics
    /// If there is no such row, as slices do.
    #[inline]
    pub fn change_unsaved(&mut self, i: usize, change: impl FnOnce(&mut T)) {
        let before = cfg!(debug_assertions).then(|| hash(0, &self.rows[i]));
        change(&mut self.rows[i]);
        debug_assert!(
            before.is_none_or(|before| before == hash(0, &self.rows[i])),
            "a field that is saved has changed"
        );
    }

    /// Replaces row `i` with `row` and returns the old row.
    ///
    /// # Panics
    /// If there is no such row, as slices do.
    pub fn set(&mut self, i: usize, row: T) -> T {
        self.change(i, |old| std::mem::replace(old, row))
    }

    /// Drops the first `n` rows. The others keep their numbers.
    ///
    /// # Panics
    /// If there are fewer rows, as [`Vec::drain`] does.
    pub fn drop_first(&mut self, n: usize) {
        for (i, row) in self.rows.drain(..n).enumerate() {
            self.digest.subtract(hash(self.first + i as u64, &row));
        }
        self.first += n as u64;
    }

    /// Returns all rows, and a pass to which changed rows must be reported. `whole`: whether every row may change.
    pub fn pass(&mut self, whole: bool) -> (&mut [T], Pass<'_, T>) {
        let DigestVec { first, rows, digest, mostly } = self;
        let afresh = whole && *mostly;
        (rows, Pass { first: *first, digest, mostly, whole, afresh, changed: 0, row: std::marker::PhantomData })
    }
}

/// A pass over the rows of a [`DigestVec`] in which some change.
pub struct Pass<'a, T> {
    first: u64,
    digest: &'a mut Digest,
    mostly: &'a mut bool,
    whole: bool,
    /// Whether the digest is recomputed at the end. If most rows change, that is less work than updating it for each.
    afresh: bool,
    changed: usize,
    row: std::marker::PhantomData<fn(&T)>,
}

impl<T: Serialize> Pass<'_, T> {
    /// Reports that row `i` changed from `before` to `after`.
    #[inline(always)]
    pub fn changed(&mut self, i: usize, before: &T, after: &T) {
        self.changed += 1;
        if !self.afresh {
            let number = self.first + i as u64;
            self.digest.subtract(hash(number, before));
            self.digest.add(hash(number, after));
        }
    }

    /// Ends the pass. `rows`: all of them.
    pub fn end(self, rows: &[T]) {
        if self.afresh {
            *self.digest = digest_of(self.first, rows);
        }
        if self.whole {
            *self.mostly = 2 * self.changed > rows.len();
        }
    }
}

impl<T: Clone + Serialize> DigestVec<T> {
    /// Resizes it to `n` rows, appending copies of `row`.
    pub fn resize(&mut self, n: usize, row: T) {
        while self.rows.len() > n {
            let gone = self.rows.pop();
            gone.iter().for_each(|row| self.digest.subtract(hash(self.first + self.rows.len() as u64, row)));
        }
        self.rows.reserve(n - self.rows.len());
        while self.rows.len() < n {
            self.push(row.clone());
        }
    }

    /// Sets every row to `row`.
    pub fn fill(&mut self, row: T) {
        self.rows.fill(row);
        self.digest = digest_of(self.first, &self.rows);
    }
}

impl<T> Default for DigestVec<T> {
    fn default() -> Self {
        DigestVec { first: 0, rows: Vec::new(), digest: Digest::default(), mostly: false }
    }
}

impl<T: Serialize> From<Vec<T>> for DigestVec<T> {
    fn from(rows: Vec<T>) -> Self {
        DigestVec::numbered_from(0, rows)
    }
}

impl<T> Deref for DigestVec<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        &self.rows
    }
}

impl<T: PartialEq> PartialEq for DigestVec<T> {
    fn eq(&self, other: &Self) -> bool {
        self.first == other.first && self.rows == other.rows
    }
}

impl<T: Serialize> Serialize for DigestVec<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut kept = serializer.serialize_struct(KEPT, 3)?;
        kept.serialize_field("first", &self.first)?;
        kept.serialize_field("digest", &self.digest)?;
        kept.serialize_field(ROWS, &self.rows)?;
        kept.end()
    }
}

/// A collection as it is saved.
#[derive(Deserialize)]
struct Saved<R> {
    first: u64,
    digest: Digest,
    rows: R,
}

/// Checks that the digest of the data read equals the saved one.
fn checked<E: Error>(found: Digest, saved: Digest) -> Result<(), E> {
    if found == saved { Ok(()) } else { Err(E::custom("its rows are not those that were saved")) }
}

impl<'de, T: Serialize + DeserializeOwned> Deserialize<'de> for DigestVec<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let saved = Saved::<Vec<T>>::deserialize(deserializer)?;
        let kept = DigestVec::numbered_from(saved.first, saved.rows);
        checked(kept.digest, saved.digest)?;
        Ok(kept)
    }
}

/// A [`BTreeMap`] that maintains the digest of its entries. It reads like a map; every change goes through a method.
///
/// ```
/// use polity_base::digest::DigestMap;
/// let mut follows: DigestMap<u32, Vec<u32>> = DigestMap::default();
/// let empty = follows.digest();
/// follows.change_or_insert(3, |of| of.push(5));
/// assert_eq!(follows.get(&3), Some(&vec![5]));
/// follows.remove(&3);
/// assert_eq!(follows.digest(), empty);
/// ```
#[derive(Clone, Debug)]
pub struct DigestMap<K, V> {
    rows: BTreeMap<K, V>,
    digest: Digest,
}

impl<K: Ord + Serialize, V: Serialize> DigestMap<K, V> {
    fn hash(key: &K, value: &V) -> u128 {
        hash(0, &(key, value))
    }

    /// Returns the digest of all entries.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Inserts an entry; returns the old value of the key, if any.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let old = self.remove(&key);
        self.digest.add(Self::hash(&key, &value));
        self.rows.insert(key, value);
        old
    }

    /// Removes an entry and returns its value.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let value = self.rows.remove(key)?;
        self.digest.subtract(Self::hash(key, &value));
        Some(value)
    }

    /// Changes the value of an entry; `None` if there is no such entry.
    pub fn change<R>(&mut self, key: &K, change: impl FnOnce(&mut V) -> R) -> Option<R> {
        let value = self.rows.get_mut(key)?;
        self.digest.subtract(Self::hash(key, value));
        let result = change(value);
        self.digest.add(Self::hash(key, value));
        Some(result)
    }

    /// Keeps the entries for which `keep` is true.
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &V) -> bool) {
        let digest = &mut self.digest;
        self.rows.retain(|key, value| {
            let stays = keep(key, value);
            if !stays {
                digest.subtract(Self::hash(key, value));
            }
            stays
        });
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        *self = DigestMap::default();
    }
}

impl<K: Ord + Serialize, V: Serialize + Default> DigestMap<K, V> {
    /// Changes the value of an entry, inserting the default value first if the key is missing.
    pub fn change_or_insert<R>(&mut self, key: K, change: impl FnOnce(&mut V) -> R) -> R
    where
        K: Copy,
    {
        if !self.rows.contains_key(&key) {
            self.insert(key, V::default());
        }
        let value = self.rows.entry(key).or_default();
        self.digest.subtract(Self::hash(&key, value));
        let result = change(value);
        self.digest.add(Self::hash(&key, value));
        result
    }
}

impl<K, V> Default for DigestMap<K, V> {
    fn default() -> Self {
        DigestMap { rows: BTreeMap::new(), digest: Digest::default() }
    }
}

impl<K, V> Deref for DigestMap<K, V> {
    type Target = BTreeMap<K, V>;

    #[inline(always)]
    fn deref(&self) -> &BTreeMap<K, V> {
        &self.rows
    }
}

impl<K: PartialEq, V: PartialEq> PartialEq for DigestMap<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.rows == other.rows
    }
}

impl<K: Ord + Serialize, V: Serialize> From<BTreeMap<K, V>> for DigestMap<K, V> {
    fn from(rows: BTreeMap<K, V>) -> Self {
        let mut digest = Digest::default();
        rows.iter().for_each(|(key, value)| digest.add(Self::hash(key, value)));
        DigestMap { rows, digest }
    }
}

impl<K: Serialize, V: Serialize> Serialize for DigestMap<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut kept = serializer.serialize_struct(KEPT, 3)?;
        kept.serialize_field("first", &0u64)?;
        kept.serialize_field("digest", &self.digest)?;
        kept.serialize_field(ROWS, &self.rows)?;
        kept.end()
    }
}

impl<'de, K: Ord + Serialize + DeserializeOwned, V: Serialize + DeserializeOwned> Deserialize<'de> for DigestMap<K, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let saved = Saved::<BTreeMap<K, V>>::deserialize(deserializer)?;
        let kept = DigestMap::from(saved.rows);
        checked(kept.digest, saved.digest)?;
        Ok(kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Draws, Stream};

    /// Round-trips through a snapshot, which recomputes the digest.
    fn afresh<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(value: &T) -> Vec<u8> {
        let bytes = postcard::to_allocvec(value).unwrap();
        assert_eq!(&postcard::from_bytes::<T>(&bytes).unwrap(), value);
        bytes
    }

    #[test]
    fn a_vec_keeps_the_digest_that_would_be_made_anew() {
        let mut draws = Draws::new(1, Stream::Driver, 0, 0);
        let mut kept: DigestVec<(u32, f64)> = DigestVec::default();
        let mut plain: Vec<(u32, f64)> = Vec::new();
        for step in 0..2_000u32 {
            let (n, row) = (plain.len(), (step, draws.unit()));
            match draws.below(20) {
                0 if n > 3 => {
                    kept.drop_first(3);
                    plain.drain(..3);
                }
                1 => {
                    kept.resize(n / 2, row);
                    plain.resize(n / 2, row);
                }
                2 => {
                    kept.resize(n + 5, row);
                    plain.resize(n + 5, row);
                }
                3 => {
                    kept.fill(row);
                    plain.fill(row);
                }
                4..8 if n > 0 => {
                    let i = draws.below(n as u64) as usize;
                    assert_eq!(kept.set(i, row), std::mem::replace(&mut plain[i], row));
                }
                _ => {
                    kept.push(row);
                    plain.push(row);
                }
            }
            assert_eq!(&*kept, plain.as_slice());
            assert_eq!(kept.digest, digest_of(kept.first, &plain), "step {step}");
        }
        afresh(&kept);
    }

    #[test]
    fn a_pass_in_which_few_or_many_change_gives_the_same_digest() {
        let mut draws = Draws::new(2, Stream::Driver, 0, 0);
        let mut kept = DigestVec::numbered_from(40, (0..100u64).collect());
        for round in 0..60 {
            let most = [0.02, 0.9][round / 5 % 2];
            let whole = round % 7 > 0;
            let (rows, mut pass) = kept.pass(whole);
            for (i, row) in rows.iter_mut().enumerate() {
                if draws.chance(most) {
                    let before = *row;
                    *row += 1;
                    pass.changed(i, &before, row);
                }
            }
            pass.end(rows);
            assert_eq!(kept.digest, digest_of(40, &kept), "round {round}");
        }
        assert!(kept.mostly, "the last rounds changed most rows");
    }

    #[test]
    fn a_map_keeps_the_digest_that_would_be_made_anew() {
        let mut draws = Draws::new(3, Stream::Driver, 0, 0);
        let mut kept: DigestMap<u32, Vec<u32>> = DigestMap::default();
        for step in 0..2_000u32 {
            let key = draws.below(50) as u32;
            match draws.below(6) {
                0 => drop(kept.insert(key, vec![step])),
                1 => drop(kept.remove(&key)),
                2 => drop(kept.change(&key, |of| of.push(step))),
                3 if draws.chance(0.1) => kept.retain(|key, _| key % 3 > 0),
                4 if draws.chance(0.02) => kept.clear(),
                _ => kept.change_or_insert(key, |of| of.push(step)),
            }
            assert_eq!(kept.digest, DigestMap::from(kept.rows.clone()).digest, "step {step}");
        }
        afresh(&kept);
    }

    #[test]
    fn rows_that_are_not_those_that_were_saved_are_refused() {
        let kept = DigestVec::from(vec![100u32, 101, 102]);
        let bytes = afresh(&kept);
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 1;
            assert!(postcard::from_bytes::<DigestVec<u32>>(&other).is_err(), "byte {at}");
        }
    }

    #[test]
    fn the_same_rows_in_another_order_have_another_digest() {
        assert_ne!(DigestVec::from(vec![1, 2]).digest(), DigestVec::from(vec![2, 1]).digest());
        assert_ne!(DigestVec::from(vec![1]).digest(), DigestVec::numbered_from(1, vec![1]).digest());
        // The number of rows counts even if rows hold nothing.
        assert_ne!(DigestVec::from(vec![(); 7]).digest(), DigestVec::from(vec![(); 8]).digest());
    }

    #[test]
    fn a_state_is_hashed_by_the_digests_that_it_holds() {
        let head = RowHash::new(Kind::Common, 1);
        let state = |votes: u32| (5u8, DigestVec::from(vec![votes, 2]), DigestMap::from(BTreeMap::from([(1, votes)])));
        assert_eq!(hash_value(head, 0, &state(1)), hash_value(head, 0, &state(1)));
        assert_ne!(hash_value(head, 0, &state(1)), hash_value(head, 0, &state(7)));
    }
}
