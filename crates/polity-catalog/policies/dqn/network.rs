//! Networks for values of choices.

use super::params::PatchesSource;
use crate::learning::{Start, one_hot};
use polity_kernel::Invalid;
use polity_nn::{Dense, Mlp, SoftExperts, Tape, Var};

/// A network from what is seen to the values of all choices.
pub struct Values {
    patches: Option<Patches>,
    net: Mlp,
}

/// The layers that look at patches.
struct Patches {
    count: usize,
    /// From the numbers of a patch, and a 1 at its place.
    embed: Dense,
    experts: Option<SoftExperts>,
}

impl Values {
    /// Makes a network.
    ///
    /// # Errors
    /// A size out of range, or patches that do not fill what is seen.
    pub fn open(source: Option<&PatchesSource>, start: &mut Start) -> Result<Self, Invalid> {
        let (inputs, choices) = (start.inputs(), start.choices());
        let Some(PatchesSource { count, size, experts }) = source.copied() else {
            return Ok(Values { patches: None, net: start.net("policy", [inputs, choices], 1.0) });
        };
        Invalid::within(1..=256, "patches.count", count)?;
        Invalid::within(1..=1_024, "patches.size", size)?;
        let message = format!("{inputs} numbers are seen, which cannot be divided into {count} patches of one size");
        Invalid::unless(inputs % count == 0, "patches.count", message)?;
        if let Some(experts) = experts {
            Invalid::within(1..=64, "patches.experts.count", experts.count)?;
            Invalid::within(1..=1_024, "patches.experts.size", experts.size)?;
        }
        start.about.iter_mut().for_each(|about| about.network = Some("patches: ...".into()));
        let embed = start.dense("patch", [inputs / count + count, size]);
        let made = experts.map_or(size, |experts| experts.size);
        let experts = experts.map(|experts| start.soft_experts("experts", [size, experts.size], experts.count));
        let net = start.net("policy", [count * made, choices], 1.0);
        Ok(Values { patches: Some(Patches { count, embed, experts }), net })
    }

    /// Returns the values of all choices for a batch.
    pub fn on(&self, tape: &mut Tape<'_>, x: Var) -> Var {
        let Some(Patches { count, embed, experts }) = &self.patches else { return self.net.on(tape, x) };
        let (rows, width) = (tape.value(x).rows(), tape.value(x).columns() / count);
        let mut tokens = Vec::with_capacity(*count);
        for patch in 0..*count {
            let seen = tape.columns(x, patch * width, width);
            let place = tape.input(one_hot(std::iter::repeat_n(patch, rows), *count));
            let seen = tape.join(&[seen, place]);
            let made = embed.on(tape, seen);
            tokens.push(tape.relu(made));
        }
        if let Some(experts) = experts {
            tokens = experts.on(tape, &tokens).into_iter().map(|made| tape.relu(made)).collect();
        }
        let x = tape.join(&tokens);
        self.net.on(tape, x)
    }
}
