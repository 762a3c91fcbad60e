//! Parameters of proximal policy optimisation.

use super::{
    ConvolutionSource, ExpertsSource, LatentSource, LeagueSource, MemorySource, MessagesSource, PerturbSource, Symmetry,
};
use crate::learning::{LearnerParams, Together, check_positive, check_shares, params};
use polity_kernel::Invalid;
use polity_kernel::scenario::WeightsSource;
use polity_nn::Activation;
use schemars::JsonSchema;
use serde::Deserialize;

params! {
    /// Parameters of a learner. The defaults are those of the paper's Atari runs where it gives them, with the network of CleanRL.
    all { hidden: vec![64, 64], activation: Activation::Tanh }
    own {
        /// Whose views the critic sees. Default: in `ppo` the agent's own, in `mappo` those of all agents of the episode.
        critic: Option<Together> = None,
        /// What agents remember from round to round of an episode. Default: nothing.
        memory: Option<MemorySource> = None,
        /// Messages that the agents in the critic's view send each other before they decide. Default: none.
        messages: Option<MessagesSource> = None,
        /// A latent state from which agents decide, and which also learns to predict what comes next. Default: none.
        latent: Option<LatentSource> = None,
        /// A mixture of experts for several tasks, in place of networks whose layers all tasks share. Default: none.
        experts: Option<ExpertsSource> = None,
        /// Convolutions over numbers about the cells of a grid. Default: none.
        convolution: Option<ConvolutionSource> = None,
        /// A symmetry of the world, under which the networks are then equivariant. Default: none.
        symmetry: Option<Symmetry> = None,
        /// Opponents from the learner's own past. Default: all agents of the cohort learn.
        league: Option<LeagueSource> = None,
        /// Perturbations of the weights, against learning that comes to a halt. Default: none.
        perturb: Option<PerturbSource> = None,
        /// Weights to begin with, from a file: {file: NAME}. Default: random ones.
        weights: Option<WeightsSource> = None,
        /// Layers to begin with, from a file of weights that were learned on another task. Default: none.
        transfer: Option<TransferSource> = None,
        /// A teacher whose choices the network imitates at first. Default: none.
        teacher: Option<Teacher> = None,
    }
    clipped {
        horizon: 128, epochs: 4, minibatch: 256, anneal: false, lambda: 0.95, clip: 0.2, value_weight: 0.5, entropy_weight: 0.01
    }
    returns { discount: 0.99, reward_scale: 1.0 }
    adam { learning_rate: 2.5e-4, max_grad_norm: 0.5 }
}

impl Params {
    /// Checks that every number is in its range.
    pub(super) fn check(&self) -> Result<(), Invalid> {
        self.check_shared()?;
        let message = "does not go with `memory`";
        Invalid::unless(self.symmetry.is_none() || self.memory.is_none(), "symmetry", message)?;
        let alone = self.memory.is_none() && self.messages.is_none() && self.symmetry.is_none();
        Invalid::unless(
            self.experts.is_none() || alone && self.latent.is_none(),
            "experts",
            "does not go with `memory`, `messages`, `latent` or `symmetry`",
        )?;
        Invalid::unless(
            self.convolution.is_none() || self.experts.is_none() && self.latent.is_none(),
            "convolution",
            "does not go with `experts` or `latent`",
        )?;
        let plain = self.messages.is_none() && self.symmetry.is_none();
        Invalid::unless(self.latent.is_none() || plain, "latent", "does not go with `messages` or `symmetry`")?;
        if let Some(Teacher { weight, decay, .. }) = self.teacher {
            check_positive(&[("teacher.weight", weight)])?;
            check_shares(&[("teacher.decay", decay)])?;
        }
        Ok(())
    }
}

/// Layers that were learned before.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TransferSource {
    /// Their weights, from a file that a learner has written: {file: NAME}.
    pub weights: WeightsSource,
    /// The networks that are taken, such as `policy` and `value`.
    #[serde(default = "both")]
    pub layers: Vec<String>,
    /// Whether they stay as they are.
    #[serde(default = "yes")]
    pub frozen: bool,
}

fn both() -> Vec<String> {
    ["policy", "value"].map(str::to_owned).to_vec()
}

fn yes() -> bool {
    true
}

/// A teacher, and how much it counts.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Teacher {
    /// Its weights, from a file that a learner has written: {file: NAME}.
    pub weights: WeightsSource,
    /// Weight of the cross entropy between its probabilities and the network's in the loss; above 0.
    #[serde(default = "one")]
    pub weight: f64,
    /// After each update that weight is multiplied by this; 0 to 1.
    #[serde(default = "decay")]
    pub decay: f64,
}

fn one() -> f64 {
    1.0
}

fn decay() -> f64 {
    0.9
}
