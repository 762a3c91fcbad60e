//! Parameters of deep Q-learning.

use polity_kernel::Invalid;
use polity_nn::Squash;
use schemars::JsonSchema;
use serde::Deserialize;

/// Parameters of a learner.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Numbers that the world shows and that the network sees. Default: all, except those about turns and rewards.
    pub observe: Option<Vec<String>>,
    /// The number that shows the reward of the last round.
    pub reward: String,
    /// Sizes of the hidden layers; up to 8 layers of up to 1,024.
    pub hidden: Vec<usize>,
    /// The function after each hidden layer.
    pub squash: Squash,
    /// Rounds that are remembered, of all agents.
    pub memory: u32,
    /// The round before which nothing is learned.
    pub begin: u32,
    /// Rounds from one update to the next.
    pub every: u32,
    /// Steps of the optimiser in an update.
    pub steps: u32,
    /// Decisions in a step of the optimiser.
    pub minibatch: u32,
    /// Steps of the optimiser from one refreshing of the target network to the next.
    pub refresh: u32,
    /// Whether the network itself names the best later choice, and the target network only its value (double Q-learning).
    pub double: bool,
    /// Step size of Adam.
    pub rate: f64,
    /// What a reward is worth one decision later (discount γ); 0 to 1.
    pub discount: f64,
    /// Probability with which a decision is drawn at random (ε) at the start; 0 to 1.
    pub explore: f64,
    /// What that probability falls to; 0 to 1.
    pub least: f64,
    /// Rounds until it has fallen.
    pub over: u32,
    /// The longest gradient; longer ones are scaled down.
    pub norm: f64,
    /// The round from which the agents take the best choices and learn no more. Default: never.
    pub stop: Option<u32>,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            observe: None,
            reward: "last-reward".into(),
            hidden: vec![64, 64],
            squash: Squash::Relu,
            memory: 2_000,
            begin: 50,
            every: 1,
            steps: 1,
            minibatch: 128,
            refresh: 250,
            double: true,
            rate: 1e-3,
            discount: 0.99,
            explore: 1.0,
            least: 0.05,
            over: 500,
            norm: 10.0,
            stop: None,
        }
    }
}

impl Params {
    /// Checks that every number is in its range.
    pub fn check(&self) -> Result<(), Invalid> {
        Invalid::unless(self.hidden.len() <= 8, "hidden", "must be at most 8 layers")?;
        for size in &self.hidden {
            Invalid::within(1..=1_024, "hidden", *size)?;
        }
        Invalid::within(2..=1_000_000, "memory", self.memory)?;
        for (key, value) in
            [("every", self.every), ("steps", self.steps), ("minibatch", self.minibatch), ("refresh", self.refresh)]
        {
            Invalid::within(1..=1_000_000, key, value)?;
        }
        for (key, value) in [("discount", self.discount), ("explore", self.explore), ("least", self.least)] {
            Invalid::within(0.0..=1.0, key, value)?;
        }
        for (key, value) in [("rate", self.rate), ("norm", self.norm)] {
            let fits = value > 0.0 && value.is_finite();
            Invalid::unless(fits, key, format!("must be above 0, is {value}"))?;
        }
        Ok(())
    }
}
