//! Files of weights, and what is said in them.

use super::{Chooser, Senses};
use polity_kernel::Invalid;
use polity_kernel::policy::{Fault, PolicySetup};
use polity_kernel::rng::{Draws, Stream};
use polity_nn::{Activation, Array, Mlp, Weights};
use serde::{Deserialize, Serialize};

/// What is said in a file of weights: who learned them, from what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The policy that learned them.
    pub learner: String,
    /// The world in which it did.
    pub world: String,
    /// The numbers that it saw, in order.
    pub numbers: Vec<String>,
    /// Its choices, in order.
    pub choices: Vec<String>,
    /// The sizes of the layers between.
    pub hidden: Vec<usize>,
    /// The function between layers.
    pub activation: Activation,
    /// Whether the network gives values of choices, and no logits of probabilities.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub values: bool,
    /// Whether the agents choose numbers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub continuous: bool,
    /// Whether one network sees each choice alone, with the numbers about it, and gives its logit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub per_choice: bool,
    /// The keys of a network that only its learner has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// The numbers that an agent remembers from round to round, if it remembers some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<usize>,
}

/// Makes a network from what is seen to these outputs. `gain`: that of the last layer.
pub fn net(
    weights: &mut Weights,
    name: &str,
    [from, to]: [usize; 2],
    (hidden, activation): (&[usize], Activation),
    gain: f64,
    draws: &mut Draws,
) -> Mlp {
    let sizes: Vec<usize> = [from].iter().chain(hidden).chain(&[to]).copied().collect();
    Mlp::new(weights, name, &sizes, activation, gain, draws)
}

impl About {
    /// Says what a learner sees and chooses from in a world, and the shape of its network.
    #[must_use]
    pub fn new(
        learner: &str,
        setup: &PolicySetup<'_>,
        senses: &Senses,
        hidden: &[usize],
        activation: Activation,
    ) -> Self {
        About {
            learner: learner.into(),
            world: setup.world.into(),
            numbers: senses.numbers(),
            choices: senses.choices(),
            hidden: hidden.to_vec(),
            activation,
            values: false,
            continuous: false,
            per_choice: false,
            network: None,
            memory: None,
        }
    }

    /// Returns weights as a file.
    ///
    /// # Errors
    /// Weights that cannot be written: a defect of the learner.
    pub fn write(&self, weights: &Weights) -> Result<Vec<u8>, Fault> {
        let about = serde_json::to_string(self).map_err(|error| Fault(error.to_string()))?;
        polity_nn::write(weights, &about).map_err(|error| Fault(error.to_string()))
    }

    /// Reads a file of weights.
    ///
    /// # Errors
    /// Bytes that are no weights, or not those of a learner here.
    pub fn read(bytes: &[u8]) -> Result<(Weights, About), Invalid> {
        let wrong = |message: String| Invalid { key: "weights".into(), message };
        let (weights, about) = polity_nn::read(bytes).map_err(|error| wrong(error.to_string()))?;
        let about =
            about.ok_or_else(|| wrong("the file does not say who learned its weights, and from what".into()))?;
        let about = serde_json::from_str(&about)
            .map_err(|error| wrong(format!("what the file says about its weights cannot be read: {error}")))?;
        Ok((weights, about))
    }

    /// Checks that weights were learned from what a learner sees and chooses from here.
    ///
    /// # Errors
    /// What differs, with both.
    pub fn fits(&self, senses: &Senses, world: &str) -> Result<(), Invalid> {
        let same = |what: &str, there: &[String], here: &[String]| {
            let message = format!(
                "they were learned in the world `{}` with the {what} {}, but `{world}` has {}",
                self.world,
                there.join(", "),
                here.join(", "),
            );
            Invalid::unless(there == here, "weights", message)
        };
        same("numbers", &self.numbers, &senses.numbers())?;
        same("choices", &self.choices, &senses.choices())
    }
}

/// A network that chooses, from a file of weights.
#[derive(Clone, Debug)]
pub struct Player {
    policy: Chooser,
    weights: Weights,
}

impl Player {
    /// Reads a file of weights.
    ///
    /// # Errors
    /// Bytes that are no weights, or whose shapes are not those that the file says.
    pub fn open(bytes: &[u8]) -> Result<(Self, About), Invalid> {
        let wrong = |message: String| Invalid { key: "weights".into(), message };
        let (found, about) = About::read(bytes)?;
        let remembers = about.memory.map(|size| ("their agents remember", format!("memory: {{gru: {size}}}, ")));
        let network = about.network.as_ref().map(|keys| ("their network has more parts", format!("{keys}, ")));
        let numbers = about.continuous.then(|| ("their agents choose numbers", String::new()));
        if let Some((why, keys)) = remembers.or(network).or(numbers) {
            let play = format!("{{kind: {}, {keys}weights: ..., stop: 0}}", about.learner);
            return Err(wrong(format!("{why}, which only their learner can play; play them with `{play}`")));
        }
        let mut weights = Weights::default();
        // What they begin with is replaced.
        let mut draws = Draws::new(0, Stream::Learner, 0, 0);
        let policy = Chooser::new(&about, 1.0, &mut weights, &mut draws)?;
        weights.take(&found).map_err(|error| wrong(error.to_string()))?;
        weights.finite().map_err(|error| wrong(error.to_string()))?;
        Ok((Player { policy, weights }, about))
    }

    /// Returns the logarithms of the probabilities of all choices, for each row of what is seen with its mask.
    #[must_use]
    pub fn logs(&self, inputs: &Array, masks: &Array) -> Array {
        self.policy.logs(&self.weights, inputs, masks)
    }
}
