//! Small neural networks, trained with the same bits on every machine, for any number of threads. Everything here is pure.
//!
//! Numbers are `f32`. A sum is always taken in the order of its terms, a product and an addition are never fused, and a batch is
//! split into blocks of a fixed size whose gradients are summed in a fixed tree. So the width of vectors and the number of threads
//! change the time, never a weight. Exponentials and logarithms come from `libm`, not from the platform.

mod adam;
mod array;
mod block;
mod file;
mod layers;
mod tape;
mod weights;

pub use adam::{Adam, clip};
pub use array::{Array, argmax};
pub use block::{BLOCK, Gradients, gradients, outputs};
pub use file::{Unreadable, read, write};
pub use layers::{Activation, Attention, Convolution, Dense, Experts, Gru, Mlp, SoftExperts, orthonormal};
pub use tape::{Tape, Var};
pub use weights::{Mismatch, NotFinite, Tensor, Weights};

#[cfg(test)]
mod tests;
