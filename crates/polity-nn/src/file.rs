//! Weights as a file, in the format safetensors.

use crate::{Array, Weights};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use std::iter::once;

/// The key of what is written beside the weights.
const ABOUT: &str = "polity";

/// Bytes that are no weights.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreadable(pub String);

/// Returns weights as the bytes of a file, with a text about them. The same weights give the same bytes.
///
/// # Errors
/// Two matrices of one name.
pub fn write(weights: &Weights, about: &str) -> Result<Vec<u8>, Unreadable> {
    let wrong = |error: safetensors::SafeTensorError| Unreadable(error.to_string());
    let bytes: Vec<Vec<u8>> =
        weights.iter().map(|of| of.array.data().iter().flat_map(|x| x.to_le_bytes()).collect()).collect();
    let views = weights.iter().zip(&bytes).map(|(of, bytes)| {
        Ok((of.name.as_str(), TensorView::new(Dtype::F32, of.array.shape().to_vec(), bytes).map_err(wrong)?))
    });
    let views = views.collect::<Result<Vec<_>, Unreadable>>()?;
    // With a single key, the order of this map cannot matter.
    let about = once((ABOUT.to_owned(), about.to_owned())).collect();
    safetensors::serialize(views, Some(about)).map_err(wrong)
}

/// Reads weights, and the text about them.
///
/// # Errors
/// Bytes in another format, numbers that are no `f32`, tensors that are no matrices.
pub fn read(bytes: &[u8]) -> Result<(Weights, Option<String>), Unreadable> {
    let wrong = |error: safetensors::SafeTensorError| Unreadable(format!("no safetensors file: {error}"));
    let file = SafeTensors::deserialize(bytes).map_err(wrong)?;
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(wrong)?;
    let about = header.metadata().as_ref().and_then(|about| about.get(ABOUT)).cloned();
    let mut named = file.tensors();
    named.sort_by(|(left, _), (right, _)| left.cmp(right));
    let mut weights = Weights::default();
    for (name, tensor) in named {
        let shape = match *tensor.shape() {
            [rows, columns] => [rows, columns],
            [columns] => [1, columns],
            ref other => return Err(Unreadable(format!("`{name}` has {} dimensions, and not 2", other.len()))),
        };
        if tensor.dtype() != Dtype::F32 {
            return Err(Unreadable(format!("`{name}` has numbers of type {:?}, and not F32", tensor.dtype())));
        }
        let (numbers, _) = tensor.data().as_chunks::<4>();
        let data = numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        weights.push(name, Array::new(shape[0], shape[1], data));
    }
    Ok((weights, about))
}
