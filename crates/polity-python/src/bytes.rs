//! Columns as bytes, in both directions.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// Bytes of Python's state, saved in one piece.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bytes(pub Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Owned;
        impl Visitor<'_> for Owned {
            type Value = Bytes;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes")
            }
            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Bytes, E> {
                Ok(Bytes(bytes.to_vec()))
            }
            fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<Bytes, E> {
                Ok(Bytes(bytes))
            }
        }
        deserializer.deserialize_byte_buf(Owned)
    }
}

/// Doubles as bytes.
pub fn doubles<'py>(py: Python<'py>, values: &[f64]) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, values.len() * 8, |to| {
        to.chunks_exact_mut(8).zip(values).for_each(|(to, value)| to.copy_from_slice(&value.to_le_bytes()));
        Ok(())
    })
}

/// Whole numbers below 2^32 as bytes.
pub fn wholes<'py>(py: Python<'py>, values: &[u32]) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, values.len() * 4, |to| {
        to.chunks_exact_mut(4).zip(values).for_each(|(to, value)| to.copy_from_slice(&value.to_le_bytes()));
        Ok(())
    })
}

/// Whole numbers below 2^64 as bytes.
pub fn long_wholes<'py>(py: Python<'py>, values: &[u64]) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, values.len() * 8, |to| {
        to.chunks_exact_mut(8).zip(values).for_each(|(to, value)| to.copy_from_slice(&value.to_le_bytes()));
        Ok(())
    })
}

/// Bytes as doubles; bytes that are left over are dropped.
pub fn as_doubles(bytes: &[u8]) -> Vec<f64> {
    bytes.as_chunks::<8>().0.iter().map(|eight| f64::from_le_bytes(*eight)).collect()
}
