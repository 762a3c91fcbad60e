//! A contrastive loss for memories.

use crate::learning::Decisions;
use polity_kernel::rng::Draws;
use polity_nn::{Array, BLOCK, Dense, Tape, Var};
use std::collections::BTreeSet;

/// Negative samples of each decision.
const OTHERS: usize = 8;
/// Similarities are divided by this before the softmax.
const TEMPERATURE: f32 = 0.1;

/// Positive and negative samples for each decision of a batch. Each episode is cut in two, and memories begin anew at the cut. The positive sample
/// comes from the other part of the same episode, negative ones come from other agents. So the two parts of a positive pair share no history, only
/// who else is there.
#[derive(Debug)]
pub struct Pairs {
    /// Positions in the batch: the positive samples, then the negative ones.
    pub(super) with: [Vec<u32>; OTHERS + 1],
    /// 1 for a decision that has both, else 0.
    pub(super) known: Vec<f32>,
    /// The decisions at which memories begin anew.
    cuts: BTreeSet<u32>,
}

impl Pairs {
    /// Draws samples. `batch`: the decisions, agent by agent. `ends`: a 0, then where those of each agent end. Negative samples come from
    /// agents whose gradients are computed in the same block.
    pub fn draw(decisions: &Decisions, batch: &[u32], ends: &[usize], draws: &mut Draws) -> Self {
        let with = [const { Vec::new() }; OTHERS + 1];
        let mut pairs = Pairs { with, known: Vec::with_capacity(batch.len()), cuts: BTreeSet::new() };
        let agents = ends.len() - 1;
        for agent in 0..agents {
            let first = agent / BLOCK * BLOCK;
            let together = first..agents.min(first + BLOCK);
            let several = together.len() > 1;
            let own = ends[agent]..ends[agent + 1];
            let mut begin = own.start;
            while begin < own.end {
                // The last decision of an episode has no next one.
                let ended = |at: &usize| decisions.next[batch[*at] as usize].is_none();
                let end = (begin..own.end).find(ended).map_or(own.end, |last| last + 1);
                let cut = begin + 1 + below(draws, (end - begin).saturating_sub(1));
                let long = cut < end;
                if long {
                    pairs.cuts.insert(batch[cut]);
                }
                for at in begin..end {
                    let other = if at < cut && long { cut..end } else { begin..cut };
                    pairs.with[0].push((other.start + below(draws, other.len())) as u32);
                    for with in &mut pairs.with[1..] {
                        let mut who = together.start + below(draws, together.len() - 1);
                        who += usize::from(who >= agent && several);
                        with.push((ends[who] + below(draws, ends[who + 1] - ends[who])) as u32);
                    }
                    pairs.known.push(f32::from(u8::from(long && several)));
                }
                begin = end;
            }
        }
        pairs
    }

    /// Returns whether memories begin anew at a decision.
    pub fn cuts(&self, decision: u32) -> bool {
        self.cuts.contains(&decision)
    }

    /// Returns the cross entropy of picking the positive sample, summed over some decisions (InfoNCE: van den Oord et al. 2018). `states`: the
    /// memories at these decisions. `layer`: the projection in which they are compared.
    pub fn loss(&self, tape: &mut Tape<'_>, layer: &Dense, states: Var, rows: std::ops::Range<usize>) -> Var {
        let to = layer.on(tape, states);
        let square = tape.square(to);
        let square = tape.row_sums(square);
        let least = tape.input(Array::column(vec![1e-6; rows.len()]));
        let square = tape.most(square, least);
        let scale = tape.power(square, -0.5);
        let to = tape.row_times(scale, to);
        let mut similar = Vec::with_capacity(OTHERS + 1);
        for with in &self.with {
            let with = with[rows.clone()].iter().map(|at| at - rows.start as u32).collect();
            let with = tape.rows(to, with);
            let product = tape.multiply(to, with);
            similar.push(tape.row_sums(product));
        }
        let similar = tape.join(&similar);
        let logits = tape.scale(similar, 1.0 / TEMPERATURE);
        let logs = tape.log_softmax(logits);
        let right = tape.columns(logs, 0, 1);
        let known = tape.input(Array::column(self.known[rows].to_vec()));
        let right = tape.multiply(right, known);
        let sum = tape.sum(right);
        tape.scale(sum, -1.0)
    }
}

/// Draws a whole number below `most`; 0 if there is none.
fn below(draws: &mut Draws, most: usize) -> usize {
    if most == 0 { 0 } else { draws.below(most as u64) as usize }
}
