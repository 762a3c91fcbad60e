//! What a scenario may set.

use polity_kernel::Invalid;
use polity_learn::approximation;
use polity_learn::incremental::{Drift, Form, Settings};
use schemars::JsonSchema;
use serde::Deserialize;

/// Parameters of learners.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Numbers that the world shows and that make up the state.
    pub(super) state: Vec<Input>,
    /// The number that shows the reward of the last round.
    pub(super) reward: String,
    /// A number that counts the steps of an episode. Where it is 0 an episode has begun, and nothing follows from the decision before.
    pub(super) step: Option<String>,
    /// A number that shows after how many steps an episode is cut. From its last decision nothing is learned, since what would have come of
    /// it is not seen.
    pub(super) limit: Option<String>,
    /// What approximates the values.
    approximator: Approximator,
    /// How far a decision moves its value: in a mixture the share of the way to what was experienced, in a network the size of the step
    /// along the gradient; above 0, up to 1.
    pub(super) rate: f64,
    /// After each episode the rate is multiplied by this; 0 to 1.
    pub(super) fade: f64,
    /// What a reward is worth one decision later (discount factor); 0 to 1.
    pub(super) discount: f64,
    /// Probability with which a decision is drawn at random; 0 to 1.
    pub(super) explore: f64,
    /// Rewards are divided by this; above 0.
    pub(super) unit: f64,
    /// No state is taken to be worth more than this, in rewards. Default: no bound.
    highest: Option<f64>,
    /// Whether each decision learns the target of an earlier decision, drawn by lot (a placebo).
    pub(super) scrambled: bool,
    /// When the task counts as solved.
    pub(super) solved: Solved,
}

/// A number of the state.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Its name.
    pub(super) number: String,
    /// The value that becomes 0.
    pub(super) low: f64,
    /// The value that becomes 1.
    pub(super) high: f64,
}

/// When a task counts as solved.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Solved {
    /// The mean total reward that is needed.
    pub(super) reward: f64,
    /// Episodes in a row that it is the mean of; 1 to 1,000.
    pub(super) episodes: u32,
}

/// What approximates values.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Approximator {
    /// An incremental Gaussian mixture over state and values together.
    Mixture(Mixture),
    /// A network with one hidden layer.
    Network(Network),
}

/// A mixture.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Mixture {
    /// Deviation of a new component in each number of the state, whose range is 1; above 0.
    deviation: f64,
    /// Deviation of a new component in each value; above 0.
    value_deviation: f64,
    /// Probability with which a state of a known component is taken for a new one; 0 to 1.
    novelty: f64,
    /// Maximum number of components; 1 to 1,000.
    components: u32,
    /// Points after which a component forgets; 0: never.
    memory: f64,
    /// Share of the first variances below which forgetting does not take them; 0 to 1.
    floor: f64,
    /// Weight, in points, of a background of density 1 with values of 0; at least 0.
    background: f64,
}

impl Default for Mixture {
    fn default() -> Self {
        Mixture {
            deviation: 0.2,
            value_deviation: 0.3,
            novelty: 0.3,
            components: 40,
            memory: 100.0,
            floor: 0.3,
            background: 30.0,
        }
    }
}

/// A network.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Network {
    /// Hidden units; 1 to 1,000.
    hidden: u32,
    /// Deviation of the first weights; at least 0.
    deviation: f64,
}

impl Default for Network {
    fn default() -> Self {
        Network { hidden: 60, deviation: 1.0 }
    }
}

impl Default for Params {
    fn default() -> Self {
        Params {
            state: Vec::new(),
            reward: "last-reward".into(),
            step: None,
            limit: None,
            approximator: Approximator::Mixture(Mixture::default()),
            rate: 0.3,
            fade: 1.0,
            discount: 0.99,
            explore: 0.0,
            unit: 1.0,
            highest: None,
            scrambled: false,
            solved: Solved { reward: 0.0, episodes: 20 },
        }
    }
}

impl Params {
    pub(super) fn check(&self) -> Result<(), Invalid> {
        let positive = |key: &str, x: f64| {
            Invalid::unless(x > 0.0 && x.is_finite(), key, format!("must be a number above 0, is {x}"))
        };
        Invalid::within(1..=16, "state", self.state.len())?;
        for input in &self.state {
            let apart = input.low.is_finite() && input.high.is_finite() && input.low != input.high;
            Invalid::unless(apart, "state", format!("`low` and `high` of `{}` must be two numbers", input.number))?;
        }
        positive("rate", self.rate)?;
        Invalid::within(0.0..=1.0, "rate", self.rate)?;
        Invalid::within(0.0..=1.0, "fade", self.fade)?;
        Invalid::within(0.0..=1.0, "discount", self.discount)?;
        Invalid::within(0.0..=1.0, "explore", self.explore)?;
        positive("unit", self.unit)?;
        Invalid::unless(self.highest.is_none_or(f64::is_finite), "highest", "must be a finite number")?;
        Invalid::within(1..=1_000, "solved.episodes", self.solved.episodes)?;
        Invalid::unless(self.limit.is_none() || self.step.is_some(), "limit", "needs `step`")?;
        match &self.approximator {
            Approximator::Mixture(mixture) => {
                positive("approximator.mixture.deviation", mixture.deviation)?;
                positive("approximator.mixture.value_deviation", mixture.value_deviation)?;
                Invalid::within(0.0..=1.0, "approximator.mixture.novelty", mixture.novelty)?;
                Invalid::within(1..=1_000, "approximator.mixture.components", mixture.components)?;
                Invalid::within(0.0..=1e9, "approximator.mixture.memory", mixture.memory)?;
                Invalid::within(0.0..=1.0, "approximator.mixture.floor", mixture.floor)?;
                let kept = mixture.memory == 0.0 || mixture.floor > 0.0 && mixture.memory >= 1.0;
                let message = "must be 0 or at least 1, with a `floor` above 0: else variances fade to 0";
                Invalid::unless(kept, "approximator.mixture.memory", message)?;
                Invalid::within(0.0..=1e9, "approximator.mixture.background", mixture.background)
            }
            Approximator::Network(network) => {
                Invalid::within(1..=1_000, "approximator.network.hidden", network.hidden)?;
                Invalid::within(0.0..=1e3, "approximator.network.deviation", network.deviation)
            }
        }
    }

    /// Returns what no state is worth more than, in units.
    pub(super) fn highest(&self) -> f64 {
        self.highest.map_or(f64::INFINITY, |highest| highest / self.unit)
    }

    pub(super) fn approximator(&self, inputs: usize, actions: usize) -> approximation::Approximator {
        match &self.approximator {
            Approximator::Mixture(mixture) => {
                let mut variances = vec![mixture.deviation * mixture.deviation; inputs];
                variances.resize(inputs + actions, mixture.value_deviation * mixture.value_deviation);
                approximation::Approximator::Mixture(Settings {
                    form: Form::Precision,
                    variances,
                    novelty: mixture.novelty,
                    most: mixture.components as usize,
                    age: 0,
                    weight: 0.0,
                    drift: Drift {
                        known: inputs,
                        memory: mixture.memory,
                        floor: mixture.floor,
                        background: mixture.background,
                    },
                })
            }
            Approximator::Network(network) => {
                approximation::Approximator::Network { hidden: network.hidden as usize, deviation: network.deviation }
            }
        }
    }

    /// Returns about how many bytes an agent takes at most.
    pub(super) fn memory_bytes(&self, inputs: usize, actions: usize) -> usize {
        let numbers = match &self.approximator {
            Approximator::Mixture(mixture) => {
                let d = inputs + actions;
                mixture.components as usize * (d * d + d + 10)
            }
            Approximator::Network(network) => network.hidden as usize * (inputs + actions + 1) + actions,
        };
        8 * (numbers + self.solved.episodes as usize + 50)
    }
}
