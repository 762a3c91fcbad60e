//! Gradients of a batch: blocks of a fixed size on any number of threads, summed in a fixed tree.

use crate::weights::all_finite;
use crate::{Array, NotFinite, Tape, Var, Weights};
use rayon::prelude::*;
use std::ops::Range;

/// Rows of a block.
pub const BLOCK: usize = 64;

/// The gradients of a batch, and its losses.
#[derive(Clone, Debug, PartialEq)]
pub struct Gradients<const N: usize> {
    /// Sums over the batch.
    pub losses: [f64; N],
    /// The gradient of the first loss, for each matrix of weights.
    pub of: Vec<Array>,
}

/// Returns the gradients of the sum of a loss over a batch of rows. `loss` puts the losses of some rows on a tape, each summed over
/// these rows. The first one is to become small, the others are only reported.
///
/// # Errors
/// The first loss (`names`), or else the first gradient, that is not a finite number.
pub fn gradients<const N: usize>(
    weights: &Weights,
    rows: usize,
    names: [&str; N],
    loss: impl Fn(&mut Tape<'_>, Range<usize>) -> [Var; N] + Sync,
) -> Result<Gradients<N>, NotFinite> {
    let of_block = |block: usize| {
        let mut tape = Tape::new(weights);
        let vars = loss(&mut tape, block * BLOCK..rows.min((block + 1) * BLOCK));
        let losses = vars.map(|var| tape.value(var).data().iter().map(|x| f64::from(*x)).sum());
        Gradients { losses, of: tape.backward(vars[0]) }
    };
    let mut blocks: Vec<Gradients<N>> = (0..rows.div_ceil(BLOCK)).into_par_iter().map(of_block).collect();
    while blocks.len() > 1 {
        let mut pairs = std::mem::take(&mut blocks).into_iter();
        while let Some(mut left) = pairs.next() {
            if let Some(right) = pairs.next() {
                left.losses.iter_mut().zip(right.losses).for_each(|(sum, x)| *sum += x);
                left.of.iter_mut().zip(&right.of).for_each(|(sum, x)| sum.add(x));
            }
            blocks.push(left);
        }
    }
    let Some(all) = blocks.pop() else { return Err(NotFinite("the loss of an empty batch".into())) };
    weights.finite()?;
    if let Some(bad) = all.losses.iter().position(|loss| !loss.is_finite()) {
        return Err(NotFinite(names[bad].into()));
    }
    match all.of.iter().zip(weights.iter()).find(|(gradient, _)| !all_finite(gradient)) {
        Some((_, tensor)) => Err(NotFinite(format!("the gradient of {}", tensor.name))),
        None => Ok(all),
    }
}

/// Returns what networks make of a batch of rows, without gradients. `f` puts the outputs for some rows on a tape.
pub fn outputs<const N: usize>(
    weights: &Weights,
    rows: usize,
    f: impl Fn(&mut Tape<'_>, Range<usize>) -> [Var; N] + Sync,
) -> [Array; N] {
    let of_block = |block: usize| {
        let mut tape = Tape::new(weights);
        let vars = f(&mut tape, block * BLOCK..rows.min((block + 1) * BLOCK));
        vars.map(|var| tape.value(var).clone())
    };
    let blocks: Vec<[Array; N]> = (0..rows.div_ceil(BLOCK)).into_par_iter().map(of_block).collect();
    let mut all = [const { Array::EMPTY }; N];
    for block in &blocks {
        all.iter_mut().zip(block).for_each(|(all, part)| all.append(part));
    }
    all
}
