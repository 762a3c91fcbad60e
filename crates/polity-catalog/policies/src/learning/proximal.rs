//! The loss of proximal policy optimisation.

use polity_nn::{Tape, Var};

/// What counts how much in the loss.
#[derive(Clone, Copy, Debug)]
pub struct ClippedLoss {
    /// How far the probability of a decision may move, as a part of it (ε).
    pub clip: f64,
    /// Weight of the error of the value (c1).
    pub value_weight: f64,
    /// Weight of the entropy (c2).
    pub entropy_weight: f64,
}

impl ClippedLoss {
    /// Returns the loss of some of `n` decisions, and its parts: those of the policy and of the value, and the entropy. With A the advantage,
    /// R the return, p and p₀ the probabilities of a decision now and when it was taken, and r = p / p₀, the loss is the mean of
    ///
    /// -min(r A, clip(r, 1 - ε, 1 + ε) A) + c₁ (V - R)² / 2 - c₂ entropy
    ///
    /// (Schulman et al. 2017). `[log, old]`: the logarithms of p and p₀. `[value, goal]`: V and R. `entropy`: numbers that add up to the entropies
    /// of all decisions, and the sign with which they do.
    pub fn on(
        self,
        tape: &mut Tape<'_>,
        [log, old]: [Var; 2],
        advantage: Var,
        [value, goal]: [Var; 2],
        (entropies, sign): (Var, f32),
        n: usize,
    ) -> [Var; 4] {
        let (low, high) = (1.0 - self.clip as f32, 1.0 + self.clip as f32);
        let moved = tape.subtract(log, old);
        let ratio = tape.exp(moved);
        let clipped = tape.clamp(ratio, low, high);
        let (free, held) = (tape.multiply(ratio, advantage), tape.multiply(clipped, advantage));
        let gain = tape.least(free, held);
        let error = tape.subtract(value, goal);
        let error = tape.square(error);
        let [policy, value, entropy] = [(gain, -1.0), (error, 0.5), (entropies, sign)].map(|(of, by)| {
            let sum = tape.sum(of);
            tape.scale(sum, by / n as f32)
        });
        let value_part = tape.scale(value, self.value_weight as f32);
        let entropy_part = tape.scale(entropy, -self.entropy_weight as f32);
        let loss = tape.add(policy, value_part);
        [tape.add(loss, entropy_part), policy, value, entropy]
    }
}
