//! A large value that seldom changes.

use polity_kernel::digest::DigestVec;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::ops::Deref;
use std::sync::Arc;

/// A large value that seldom changes, with its digest. A round in which it does not change neither copies nor hashes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound = "T: Serialize + DeserializeOwned")]
pub struct Kept<T>(DigestVec<Arc<T>>);

impl<T: Serialize> Kept<T> {
    /// Keeps a value.
    #[must_use]
    pub fn new(value: T) -> Self {
        Kept(vec![Arc::new(value)].into())
    }

    /// Replaces it.
    pub fn set(&mut self, value: T) {
        *self = Kept::new(value);
    }
}

impl<T> Deref for Kept<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // There is always one.
        &self.0[0]
    }
}
