//! The weights of a network: matrices with names.

use crate::Array;
use polity_base::digest::{Digest, Kind, RowHash, hash_value};
use serde::{Deserialize, Serialize};
use std::ops::Deref;

/// A matrix of weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tensor {
    /// Its name, such as `policy.0.weight`.
    pub name: String,
    /// Its numbers.
    pub array: Array,
}

/// The weights of a network, in the order in which its layers were made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Weights(Vec<Tensor>);

/// A number that is infinite or none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a finite number")]
pub struct NotFinite(pub String);

/// Weights that do not fit a network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// A missing matrix.
    #[error("the weights have no `{name}` ({} by {}); they have {known}", shape[0], shape[1])]
    Missing {
        /// Its name.
        name: String,
        /// Its rows and columns.
        shape: [usize; 2],
        /// The names that there are.
        known: String,
    },
    /// A matrix of another shape.
    #[error("`{name}` is {} by {}, and must be {} by {}", found[0], found[1], wanted[0], wanted[1])]
    Shape {
        /// Its name.
        name: String,
        /// Its rows and columns.
        found: [usize; 2],
        /// Those that the network needs.
        wanted: [usize; 2],
    },
}

impl Weights {
    /// Adds a matrix and returns its number.
    pub fn push(&mut self, name: impl Into<String>, array: Array) -> usize {
        self.0.push(Tensor { name: name.into(), array });
        self.0.len() - 1
    }

    /// Returns all matrices.
    pub fn arrays_mut(&mut self) -> impl Iterator<Item = &mut Array> {
        self.0.iter_mut().map(|tensor| &mut tensor.array)
    }

    /// Returns the digest of names, shapes and numbers.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest(hash_value(RowHash::new(Kind::Cohort, 0), 0, self))
    }

    /// Takes the numbers of other weights, found by name.
    ///
    /// # Errors
    /// A missing matrix, or one of another shape.
    pub fn take(&mut self, from: &Weights) -> Result<(), Mismatch> {
        for tensor in &mut self.0 {
            let (name, wanted) = (tensor.name.clone(), tensor.array.shape());
            let Some(found) = from.iter().find(|found| found.name == name) else {
                let known: Vec<&str> = from.iter().map(|found| found.name.as_str()).collect();
                return Err(Mismatch::Missing { name, shape: wanted, known: known.join(", ") });
            };
            if found.array.shape() != wanted {
                return Err(Mismatch::Shape { name, found: found.array.shape(), wanted });
            }
            tensor.array = found.array.clone();
        }
        Ok(())
    }

    /// Moves all numbers towards those of other weights of the same shapes, by this part of the difference.
    pub fn approach(&mut self, to: &Weights, part: f32) {
        for (own, to) in self.0.iter_mut().zip(&to.0) {
            own.array = own.array.zip(&to.array, |own, to| own + part * (to - own));
        }
    }

    /// Checks that all numbers are finite.
    ///
    /// # Errors
    /// The name of the first matrix with one that is not.
    pub fn finite(&self) -> Result<(), NotFinite> {
        let bad = self.iter().find(|tensor| !all_finite(&tensor.array));
        bad.map_or(Ok(()), |tensor| Err(NotFinite(tensor.name.clone())))
    }
}

pub(crate) fn all_finite(array: &Array) -> bool {
    array.data().iter().all(|x| x.is_finite())
}

impl Deref for Weights {
    type Target = [Tensor];

    fn deref(&self) -> &[Tensor] {
        &self.0
    }
}
