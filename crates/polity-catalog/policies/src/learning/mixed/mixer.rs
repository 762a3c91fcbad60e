//! Mixers: how the value of a team comes from the values of its members' choices.

use crate::learning::{Start, check_counts, check_layers, check_weights};
use polity_kernel::Invalid;
use polity_nn::{Activation, Array, Mlp, Tape, Var, Weights, outputs};
use schemars::JsonSchema;
use serde::Deserialize;

/// The key `mixer` of a learner.
pub trait MixerKeys: Clone + Default + Send + Sync + 'static {
    /// Makes the mixer. `state`: the numbers that all members of a team see together; `seats`: its members.
    ///
    /// # Errors
    /// A key that does not fit.
    fn build(&self, start: &mut Start, state: usize, seats: usize) -> Result<Mixer, Invalid>;
}

/// A sum.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Sum {
    /// Lowers the values of choices that are rare in the data. Default: nothing does.
    pub conservative: Option<Conservative>,
}

/// A penalty on the values of choices that are rare in the data.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Conservative {
    /// Its weight (α); at least 0.
    pub alpha: f64,
    /// What it compares the choices of a team with.
    pub penalty: Penalty,
}

impl Default for Conservative {
    fn default() -> Self {
        Conservative { alpha: 1.0, penalty: Penalty::Counterfactual }
    }
}

impl Conservative {
    /// Returns the weight of the mean over the members of a team.
    pub fn weight(&self, seats: usize) -> f32 {
        match self.penalty {
            Penalty::Counterfactual => self.alpha as f32,
            Penalty::Joint => self.alpha as f32 * seats as f32,
        }
    }
}

/// What the choices of a team are compared with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Penalty {
    /// With what each member could have done beside what the others did; the mean over members (Shao et al. 2023).
    #[default]
    Counterfactual,
    /// With all that the team could have done.
    Joint,
}

/// A monotonic mixer, whose weights come from networks that see what all members see.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Monotonic {
    /// Units of its hidden layer.
    pub embedding: u32,
    /// Sizes of hidden layers of the networks that make its weights; up to 8 layers of up to 1,024.
    pub hypernet: Vec<usize>,
}

/// A concave mixer, whose weights come from networks that see what all members see.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Concave {
    /// Units of its hidden layer.
    pub embedding: u32,
    /// Sizes of hidden layers of the networks that make its weights; up to 8 layers of up to 1,024.
    pub hypernet: Vec<usize>,
    /// Choices of a team from which a search for its best ones begins: one with the best choice of each member by itself, and others at random.
    pub starts: u32,
    /// How often such a search goes over all members, at most; each time each takes the choice that is best beside those of the others.
    pub sweeps: u32,
}

impl Default for Monotonic {
    fn default() -> Self {
        Monotonic { embedding: 32, hypernet: vec![64] }
    }
}

impl Default for Concave {
    fn default() -> Self {
        Concave { embedding: 32, hypernet: vec![64], starts: 4, sweeps: 4 }
    }
}

impl MixerKeys for Sum {
    fn build(&self, _: &mut Start, _: usize, _: usize) -> Result<Mixer, Invalid> {
        if let Some(Conservative { alpha, .. }) = self.conservative {
            check_weights(&[("mixer.conservative.alpha", alpha)])?;
        }
        Ok(Mixer::Sum(self.conservative))
    }
}

impl MixerKeys for Monotonic {
    fn build(&self, start: &mut Start, state: usize, seats: usize) -> Result<Mixer, Invalid> {
        // Small weights at first: else the team's value changes by many times what a member's does, and what is learned from its own
        // later values grows without bound.
        Ok(Mixer::Monotonic(Hyper::new(start, [state, seats], self.embedding, &self.hypernet, 0.1)?))
    }
}

impl MixerKeys for Concave {
    fn build(&self, start: &mut Start, state: usize, seats: usize) -> Result<Mixer, Invalid> {
        check_counts(&[("mixer.starts", self.starts), ("mixer.sweeps", self.sweeps)])?;
        let hyper = Hyper::new(start, [state, seats], self.embedding, &self.hypernet, 1.0)?;
        let slope = start.net_with("mixer.slope", [state, seats], (&self.hypernet, Activation::Relu), 1.0);
        Ok(Mixer::Concave { hyper, slope, starts: self.starts, sweeps: self.sweeps })
    }
}

/// How the value of a team comes from the values of its members' choices, the numbers q.
#[derive(Clone, Debug)]
pub enum Mixer {
    /// Their sum, and the penalty on it.
    Sum(Option<Conservative>),
    /// ELU(q · |W| + b) · |w| + v.
    Monotonic(Hyper),
    /// -ELU(q · W + b) · |w| + q · u + v, which is concave in q, since ELU is convex and grows.
    Concave {
        /// The networks of W, b, w and v.
        hyper: Hyper,
        /// The network of u.
        slope: Mlp,
        /// Beginnings of a search.
        starts: u32,
        /// Its length.
        sweeps: u32,
    },
}

/// The networks that make a mixer's weights.
#[derive(Clone, Debug)]
pub struct Hyper {
    first: Mlp,
    bias: Mlp,
    second: Mlp,
    value: Mlp,
}

impl Hyper {
    /// `gain`: that of the last layers of the networks.
    fn new(
        start: &mut Start,
        [state, seats]: [usize; 2],
        units: u32,
        hidden: &[usize],
        gain: f64,
    ) -> Result<Self, Invalid> {
        Invalid::within(1..=1_024, "mixer.embedding", units)?;
        check_layers("mixer.hypernet", hidden)?;
        let units = units as usize;
        let mut net = |name: &str, to: usize, hidden: &[usize]| {
            start.net_with(&format!("mixer.{name}"), [state, to], (hidden, Activation::Relu), gain)
        };
        Ok(Hyper {
            first: net("first", seats * units, hidden),
            bias: net("bias", units, &[]),
            second: net("second", units, hidden),
            value: net("value", 1, &[units]),
        })
    }
}

impl Mixer {
    /// Returns the values of teams as a column. `q`: the values of their members' choices, a team in a row; `state`: what these see.
    pub fn on(&self, tape: &mut Tape<'_>, q: Var, state: Var) -> Var {
        let (hyper, concave) = match self {
            Mixer::Sum(_) => return tape.row_sums(q),
            Mixer::Monotonic(hyper) => (hyper, None),
            Mixer::Concave { hyper, slope, .. } => (hyper, Some(slope)),
        };
        let mut first = hyper.first.on(tape, state);
        if concave.is_none() {
            first = tape.abs(first);
        }
        let (bias, second, value) =
            (hyper.bias.on(tape, state), hyper.second.on(tape, state), hyper.value.on(tape, state));
        let units = tape.row_times(q, first);
        let units = tape.add(units, bias);
        let units = tape.elu(units);
        let second = tape.abs(second);
        let mut mixed = tape.row_times(units, second);
        if let Some(slope) = concave {
            let slope = slope.on(tape, state);
            let along = tape.row_times(q, slope);
            mixed = tape.subtract(along, mixed);
        }
        tape.add(mixed, value)
    }
}

/// Concave mixers of many teams, with their weights, for a search.
pub struct Mixed {
    first: Array,
    bias: Array,
    second: Array,
    slope: Array,
}

/// Returns `x` where it is positive, and `exp(x) - 1` elsewhere.
fn elu(x: f32) -> f32 {
    if x < 0.0 { libm::expm1f(x) } else { x }
}

impl Mixed {
    /// Makes the weights of a concave mixer for teams that see this.
    pub fn new(hyper: &Hyper, slope: &Mlp, weights: &Weights, state: &Array) -> Self {
        let [first, bias, second, slope] = outputs(weights, state.rows(), |tape, rows| {
            let state = tape.input(state.part(rows));
            let nets = [&hyper.first, &hyper.bias, &hyper.second, slope];
            nets.map(|net| net.on(tape, state))
        });
        Mixed { first, bias, second, slope }
    }

    /// Searches for the best choices of a team, all members in turn taking the choice that is best beside those of the others, until none
    /// changes, or `sweeps` times. `q`: the values of all choices of its members, in rows; very low for those that are not offered. Returns
    /// the choices, and their value less that of the state.
    pub fn climb(&self, team: usize, q: &[&[f32]], mut choices: Vec<u16>, sweeps: u32) -> (Vec<u16>, f32) {
        let units = self.bias.columns();
        let (first, second, slopes) = (self.first.row(team), self.second.row(team), self.slope.row(team));
        let weights = |seat: usize| &first[seat * units..(seat + 1) * units];
        let value =
            |sums: &[f32], along: f32| along - sums.iter().zip(second).map(|(sum, w)| elu(*sum) * w.abs()).sum::<f32>();
        let mut sums = self.bias.row(team).to_vec();
        let mut along = 0.0f32;
        for (seat, (q, slope)) in q.iter().zip(slopes).enumerate() {
            let now = q[usize::from(choices[seat])];
            sums.iter_mut().zip(weights(seat)).for_each(|(sum, w)| *sum += now * w);
            along += now * slope;
        }
        let mut best = value(&sums, along);
        for _ in 0..sweeps {
            let mut changed = false;
            for (seat, (q, slope)) in q.iter().zip(slopes).enumerate() {
                let now = q[usize::from(choices[seat])];
                let mut better = None;
                for (choice, q) in (0u16..).zip(*q).filter(|(_, q)| **q > OFFERED) {
                    let by = q - now;
                    let moved: Vec<f32> = sums.iter().zip(weights(seat)).map(|(sum, w)| sum + by * w).collect();
                    let there = along + by * slope;
                    let found = value(&moved, there);
                    if found > best && choice != choices[seat] {
                        best = found;
                        better = Some((choice, moved, there));
                    }
                }
                if let Some((choice, moved, there)) = better {
                    choices[seat] = choice;
                    (sums, along, changed) = (moved, there, true);
                }
            }
            if !changed {
                break;
            }
        }
        (choices, best)
    }
}

/// Values of choices that are offered are above this.
const OFFERED: f32 = -1e8;
