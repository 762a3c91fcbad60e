//! Networks, plain or with other first layers: a mixture of experts, or convolutions.

use super::Pictures;
use crate::learning::{Start, check_layers};
use polity_kernel::Invalid;
use polity_nn::{Activation, Dense, Mlp, Tape, Var, orthonormal};
use schemars::JsonSchema;
use serde::Deserialize;

/// A mixture of experts for several tasks. Each expert is a network of the same size. The numbers that tell the task weigh what the experts
/// make of the others.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExpertsSource {
    /// How many experts there are, 1 to 64.
    pub count: usize,
    /// Numbers that each makes of what is seen, 1 to 1,024; at least as many as there are experts if they are orthogonal.
    pub size: usize,
    /// The numbers that tell the task, by name. Experts do not see them. With none the gate and the experts see all numbers, which needs a
    /// gate of the kind `softmax`.
    #[serde(default)]
    pub by: Vec<String>,
    /// How much an expert counts in a task.
    #[serde(default)]
    pub gate: Gate,
    /// Sizes of hidden layers after the experts, which all tasks share; up to 8 layers of up to 1,024.
    #[serde(default)]
    pub then: Vec<usize>,
    /// Whether what the experts make of each state is made orthonormal (Hendawy et al. 2024).
    #[serde(default)]
    pub orthogonal: bool,
}

/// How much an expert counts in a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Gate {
    /// By a weight that is learned. The layers after the experts see the task, too.
    #[default]
    Learned,
    /// By a softmax of such weights, so that all of them are above 0 and add up to 1 (Jacobs et al. 1991).
    Softmax,
    /// Each task has its own expert, in the order of `by`, as layers of perception; the layers after them do not see the task.
    Own,
}

/// A network.
#[derive(Clone, Debug)]
pub enum Trunk {
    /// Dense layers.
    Plain(Mlp),
    /// A mixture of experts before them.
    Mixture(Mixture),
    /// Convolutions before them.
    Pictures(Pictures),
}

impl Trunk {
    /// Returns what the network makes of a batch.
    pub fn on(&self, tape: &mut Tape<'_>, x: Var) -> Var {
        match self {
            Trunk::Plain(net) => net.on(tape, x),
            Trunk::Mixture(mixture) => mixture.on(tape, x),
            Trunk::Pictures(pictures) => pictures.on(tape, x),
        }
    }
}

/// A network whose first layers are a mixture of experts.
#[derive(Clone, Debug)]
pub struct Mixture {
    experts: Vec<Mlp>,
    /// `None`: each task has its own expert.
    gate: Option<Dense>,
    softmax: bool,
    /// Whether the layers after the experts see the task, too.
    told: bool,
    orthogonal: bool,
    /// The columns that experts see, and those that tell the task.
    state: Vec<u32>,
    task: Vec<u32>,
    net: Mlp,
}

impl Mixture {
    /// Makes a network from what is seen to `outputs`. `gain`: that of its last layer.
    ///
    /// # Errors
    /// Experts of sizes out of range, or by numbers that are not seen.
    pub fn open(
        source: &ExpertsSource,
        start: &mut Start,
        name: &str,
        outputs: usize,
        gain: f64,
    ) -> Result<Self, Invalid> {
        Invalid::within(1..=64, "experts.count", source.count)?;
        Invalid::within(1..=1_024, "experts.size", source.size)?;
        let message = format!("{} orthogonal rows need at least as many numbers each", source.count);
        Invalid::unless(!source.orthogonal || source.size >= source.count, "experts.size", message)?;
        let own = source.gate == Gate::Own;
        let all = source.by.is_empty() && source.gate == Gate::Softmax;
        let message = format!("{} tasks have as many experts of their own", source.by.len());
        Invalid::unless(!own || source.count == source.by.len(), "experts.count", message)?;
        check_layers("experts.then", &source.then)?;
        let numbers = start.senses.numbers();
        let find = |by: &String| {
            let message = || format!("`{by}` is not among the numbers that are seen");
            let found = numbers.iter().position(|number| number == by);
            found.ok_or_else(|| Invalid { key: "experts.by".into(), message: message() })
        };
        let mut by = source.by.iter().map(find).collect::<Result<Vec<usize>, Invalid>>()?;
        let rest: Vec<usize> = (0..numbers.len()).filter(|column| !by.contains(column)).collect();
        if all {
            by.clone_from(&rest);
        }
        Invalid::unless(
            !by.is_empty() && !rest.is_empty(),
            "experts.by",
            "must leave some numbers to the experts, and name at least one unless the gate is `softmax`",
        )?;
        let expert = |i: usize, start: &mut Start| {
            let sizes = [rest.len(), source.size];
            start.net(&format!("{name}-expert-{i}"), sizes, std::f64::consts::SQRT_2)
        };
        let experts = (0..source.count).map(|i| expert(i, start)).collect();
        let gate = (!own).then(|| start.dense(&format!("{name}-gate"), [by.len(), source.count]));
        let activation = start.about.as_ref().map_or(Activation::Tanh, |about| about.activation);
        let told = !own && !all;
        let seen = source.size + if told { by.len() } else { 0 };
        let net = start.net_with(name, [seen, outputs], (&source.then, activation), gain);
        let columns = |of: Vec<usize>| of.into_iter().map(|column| column as u32).collect();
        Ok(Mixture {
            experts,
            gate,
            softmax: source.gate == Gate::Softmax,
            told,
            orthogonal: source.orthogonal,
            state: columns(rest),
            task: columns(by),
            net,
        })
    }

    /// Returns what the network makes of a batch.
    fn on(&self, tape: &mut Tape<'_>, x: Var) -> Var {
        let mixed = self.mixed(tape, x);
        self.net.on(tape, mixed)
    }

    /// Returns what the experts make of a batch, weighed by task, and the task.
    fn mixed(&self, tape: &mut Tape<'_>, x: Var) -> Var {
        let [state, task] = [&self.state, &self.task].map(|columns| tape.select(x, columns.clone()));
        let mut parts: Vec<Var> = self.experts.iter().map(|expert| expert.on(tape, state)).collect();
        if self.orthogonal {
            parts = orthonormal(tape, &parts);
        }
        let mut gates = self.gate.as_ref().map_or(task, |gate| gate.on(tape, task));
        if self.softmax {
            let logs = tape.log_softmax(gates);
            gates = tape.exp(logs);
        }
        let mut weighed = Vec::with_capacity(parts.len());
        for (i, part) in parts.into_iter().enumerate() {
            let gate = tape.columns(gates, i, 1);
            weighed.push(tape.row_times(gate, part));
        }
        let sum = weighed.into_iter().reduce(|sum, part| tape.add(sum, part)).unwrap_or(state);
        let sum = tape.tanh(sum);
        if self.told { tape.join(&[sum, task]) } else { sum }
    }
}
