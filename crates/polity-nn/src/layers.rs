//! Layers: which weights they have, how these begin, and what they compute.

use crate::{Array, Tape, Var, Weights};
use polity_base::rng::Draws;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A function between layers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// The hyperbolic tangent.
    #[default]
    Tanh,
    /// The positive part.
    Relu,
}

impl Activation {
    /// Returns the function of a batch.
    pub fn on(self, tape: &mut Tape<'_>, x: Var) -> Var {
        match self {
            Activation::Tanh => tape.tanh(x),
            Activation::Relu => tape.relu(x),
        }
    }
}

/// A dense layer: `x·w + b`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dense {
    weight: usize,
    bias: usize,
}

impl Dense {
    /// Makes a layer whose weights are orthogonal, times a gain, and whose bias is 0.
    pub fn new(weights: &mut Weights, name: &str, [from, to]: [usize; 2], gain: f64, draws: &mut Draws) -> Self {
        let weight = weights.push(format!("{name}.weight"), orthogonal(from, to, gain, draws));
        let bias = weights.push(format!("{name}.bias"), Array::zeros(1, to));
        Dense { weight, bias }
    }

    /// Returns what the layer makes of a batch.
    pub fn on(&self, tape: &mut Tape<'_>, x: Var) -> Var {
        let (weight, bias) = (tape.weight(self.weight), tape.weight(self.bias));
        tape.affine(x, weight, bias)
    }

    /// Returns the same, with weights that are constants.
    pub fn frozen_on(&self, tape: &mut Tape<'_>, x: Var) -> Var {
        let (weight, bias) = (tape.frozen(self.weight), tape.frozen(self.bias));
        tape.affine(x, weight, bias)
    }
}

/// Dense layers with a function between them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mlp {
    layers: Vec<Dense>,
    activation: Activation,
}

impl Mlp {
    /// Makes a network with layers of these sizes, from its inputs to its outputs. `gain`: that of the last layer.
    pub fn new(
        weights: &mut Weights,
        name: &str,
        sizes: &[usize],
        activation: Activation,
        gain: f64,
        draws: &mut Draws,
    ) -> Self {
        let last = sizes.len().saturating_sub(2);
        let layer = |(i, pair): (usize, &[usize])| {
            let gain = if i == last { gain } else { std::f64::consts::SQRT_2 };
            Dense::new(weights, &format!("{name}.{i}"), [pair[0], pair[1]], gain, draws)
        };
        Mlp { layers: sizes.windows(2).enumerate().map(layer).collect(), activation }
    }

    /// Returns the number of the last layer's bias among the weights; `None` without layers.
    #[must_use]
    pub fn last_bias(&self) -> Option<usize> {
        self.layers.last().map(|layer| layer.bias)
    }

    /// Returns what the network makes of a batch.
    pub fn on(&self, tape: &mut Tape<'_>, x: Var) -> Var {
        self.through(tape, x, Dense::on)
    }

    /// Returns the same, with weights that are constants: gradients flow through the network to its inputs, and do not move it.
    pub fn frozen_on(&self, tape: &mut Tape<'_>, x: Var) -> Var {
        self.through(tape, x, Dense::frozen_on)
    }

    fn through(&self, tape: &mut Tape<'_>, mut x: Var, on: fn(&Dense, &mut Tape<'_>, Var) -> Var) -> Var {
        for (i, layer) in self.layers.iter().enumerate() {
            if i > 0 {
                x = self.activation.on(tape, x);
            }
            x = on(layer, tape, x);
        }
        x
    }
}

/// A convolution of pictures, with a stride of 1 and without a border (LeCun et al. 1989). A picture is a row of numbers: pixel by pixel, row
/// by row, and all channels of a pixel side by side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Convolution {
    filters: Dense,
    /// The columns of a picture that make up each patch, patch by patch.
    patches: Vec<u32>,
    /// Numbers of a patch.
    patch: usize,
    size: [usize; 3],
}

impl Convolution {
    /// Makes a layer. `[height, width, channels]`: the size of a picture. `[side, filters]`: the side of the square patches, at most that of a
    /// picture, and what is made of each.
    pub fn new(
        weights: &mut Weights,
        name: &str,
        [height, width, channels]: [usize; 3],
        [side, filters]: [usize; 2],
        draws: &mut Draws,
    ) -> Self {
        let patch = side * side * channels;
        let dense = Dense::new(weights, name, [patch, filters], std::f64::consts::SQRT_2, draws);
        let [rows, columns] = [height, width].map(|pixels| pixels + 1 - side);
        let mut patches = Vec::with_capacity(rows * columns * patch);
        for (top, left) in (0..rows).flat_map(|top| (0..columns).map(move |left| (top, left))) {
            for row in top..top + side {
                let first = (row * width + left) * channels;
                patches.extend((first..first + side * channels).map(|column| column as u32));
            }
        }
        Convolution { filters: dense, patches, patch, size: [rows, columns, filters] }
    }

    /// Returns the height, the width and the channels of what the layer makes of a picture.
    #[must_use]
    pub fn size(&self) -> [usize; 3] {
        self.size
    }

    /// Returns what the layer makes of a batch of pictures: pictures of [`Convolution::size`].
    pub fn on(&self, tape: &mut Tape<'_>, x: Var) -> Var {
        let patches = tape.select(x, self.patches.clone());
        let patches = tape.reshape(patches, self.patch);
        let made = self.filters.on(tape, patches);
        tape.reshape(made, self.size.iter().product())
    }
}

/// A layer with gates that keeps a state from step to step (Cho et al. 2014), as PyTorch computes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gru {
    input: Dense,
    state: Dense,
    size: usize,
}

impl Gru {
    /// Makes a layer with a state of `to` numbers.
    pub fn new(weights: &mut Weights, name: &str, [from, to]: [usize; 2], draws: &mut Draws) -> Self {
        let input = Dense::new(weights, &format!("{name}.input"), [from, 3 * to], 1.0, draws);
        let state = Dense::new(weights, &format!("{name}.state"), [to, 3 * to], 1.0, draws);
        Gru { input, state, size: to }
    }

    /// Returns the state after a step.
    pub fn on(&self, tape: &mut Tape<'_>, x: Var, state: Var) -> Var {
        let (from_input, from_state) = (self.input.on(tape, x), self.state.on(tape, state));
        let n = self.size;
        let gate = |tape: &mut Tape<'_>, i: usize| {
            let (x, h) = (tape.columns(from_input, i * n, n), tape.columns(from_state, i * n, n));
            let sum = tape.add(x, h);
            tape.sigmoid(sum)
        };
        let (reset, keep) = (gate(tape, 0), gate(tape, 1));
        let (x, h) = (tape.columns(from_input, 2 * n, n), tape.columns(from_state, 2 * n, n));
        let h = tape.multiply(reset, h);
        let sum = tape.add(x, h);
        let new = tape.tanh(sum);
        let difference = tape.subtract(state, new);
        let kept = tape.multiply(keep, difference);
        tape.add(new, kept)
    }
}

/// A sparse mixture-of-experts layer: a gate routes each row to its top k experts, whose outputs are added, each times its probability
/// (Shazeer et al. 2017). With k = 1 it is the layer of the Switch Transformer (Fedus et al. 2021).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Experts {
    gate: Dense,
    experts: Vec<Mlp>,
    k: usize,
}

impl Experts {
    /// Makes so many experts with layers of these sizes. `[experts, k]`: how many there are, at least 1, and how many serve a row.
    pub fn new(
        weights: &mut Weights,
        name: &str,
        sizes: &[usize],
        [experts, k]: [usize; 2],
        activation: Activation,
        draws: &mut Draws,
    ) -> Self {
        let from = sizes.first().copied().unwrap_or(0);
        let gate = Dense::new(weights, &format!("{name}.gate"), [from, experts.max(1)], 1.0, draws);
        let expert = |i| Mlp::new(weights, &format!("{name}.{i}"), sizes, activation, 1.0, draws);
        Experts { gate, experts: (0..experts.max(1)).map(expert).collect(), k }
    }

    /// Returns the logarithms of the probabilities of all experts for each row.
    pub fn gates(&self, tape: &mut Tape<'_>, x: Var) -> Var {
        let logits = self.gate.on(tape, x);
        tape.log_softmax(logits)
    }

    /// Returns the dispatch mask: 1 in the row and the column of an expert that serves it, 0 elsewhere. `gates`: from [`Experts::gates`].
    /// `capacity`: the most rows that an expert serves. Earlier rows come first, and first choices of all rows before second ones.
    #[must_use]
    pub fn served(&self, gates: &Array, capacity: Option<usize>) -> Array {
        let (rows, columns) = (gates.rows(), gates.columns());
        let mut served = Array::zeros(rows, columns);
        let mut left = vec![capacity.unwrap_or(rows); columns];
        let ranked = |row: usize| {
            let mut order: Vec<usize> = (0..columns).collect();
            // Of equal experts the first.
            order.sort_by(|a, b| gates.row(row)[*b].total_cmp(&gates.row(row)[*a]));
            order
        };
        let orders: Vec<Vec<usize>> = (0..rows).map(ranked).collect();
        for rank in 0..self.k.min(columns) {
            for (row, order) in orders.iter().enumerate() {
                let expert = order[rank];
                if left[expert] > 0 {
                    left[expert] -= 1;
                    served.data_mut()[row * columns + expert] = 1.0;
                }
            }
        }
        served
    }

    /// Returns what the experts make of a batch. `gates` and `served`: from [`Experts::gates`] and [`Experts::served`]. A row that no expert
    /// serves becomes 0.
    pub fn on(&self, tape: &mut Tape<'_>, x: Var, gates: Var, served: Array) -> Var {
        let served = tape.input(served);
        let p = tape.exp(gates);
        let p = tape.multiply(p, served);
        let parts: Vec<Var> = self.experts.iter().map(|expert| expert.on(tape, x)).collect();
        let weigh = |(i, part): (usize, Var)| {
            let own = tape.columns(p, i, 1);
            tape.row_times(own, part)
        };
        let parts: Vec<Var> = parts.into_iter().enumerate().map(weigh).collect();
        let sum = |sum, part| tape.add(sum, part);
        parts.into_iter().reduce(sum).unwrap_or(x)
    }
}

/// A soft mixture of experts: each expert sees one weighed mean of all tokens of a row, and each token becomes a weighed mean of what the
/// experts make of theirs (Puigcerver et al. 2023, with one slot for each expert).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SoftExperts {
    /// How well a token fits an expert.
    fit: Dense,
    experts: Vec<Mlp>,
}

impl SoftExperts {
    /// Makes so many experts with layers of these sizes. The first size is that of a token.
    pub fn new(
        weights: &mut Weights,
        name: &str,
        sizes: &[usize],
        experts: usize,
        activation: Activation,
        draws: &mut Draws,
    ) -> Self {
        let from = sizes.first().copied().unwrap_or(0);
        let fit = Dense::new(weights, &format!("{name}.fit"), [from, experts.max(1)], 1.0, draws);
        let expert = |i| Mlp::new(weights, &format!("{name}.{i}"), sizes, activation, std::f64::consts::SQRT_2, draws);
        SoftExperts { fit, experts: (0..experts.max(1)).map(expert).collect() }
    }

    /// Returns what becomes of each token. `tokens`: each a matrix with a row for each row of the batch.
    pub fn on(&self, tape: &mut Tape<'_>, tokens: &[Var]) -> Vec<Var> {
        let fits: Vec<Var> = tokens.iter().map(|token| self.fit.on(tape, *token)).collect();
        let mut made = Vec::with_capacity(self.experts.len());
        for (i, expert) in self.experts.iter().enumerate() {
            let own: Vec<Var> = fits.iter().map(|fits| tape.columns(*fits, i, 1)).collect();
            let own = tape.join(&own);
            let seen = mean(tape, own, tokens);
            made.extend(seen.map(|seen| expert.on(tape, seen)));
        }
        fits.into_iter().filter_map(|fits| mean(tape, fits, &made)).collect()
    }
}

/// Returns the mean of some matrices, row by row, weighed by the softmax of logits, of which there is a column for each.
fn mean(tape: &mut Tape<'_>, logits: Var, of: &[Var]) -> Option<Var> {
    let shares = tape.log_softmax(logits);
    let shares = tape.exp(shares);
    let weigh = |(i, part): (usize, &Var)| {
        let share = tape.columns(shares, i, 1);
        tape.row_times(share, *part)
    };
    let parts: Vec<Var> = of.iter().enumerate().map(weigh).collect();
    parts.into_iter().reduce(|sum, part| tape.add(sum, part))
}

/// Makes the rows of several matrices orthonormal, row by row: the first rows of all matrices are orthogonal to each other and have the
/// length 1, and so are all second rows, and so on (Gram-Schmidt). Rows that depend on earlier ones become short.
pub fn orthonormal(tape: &mut Tape<'_>, parts: &[Var]) -> Vec<Var> {
    let mut basis: Vec<Var> = Vec::with_capacity(parts.len());
    for part in parts {
        let mut new = *part;
        for known in &basis {
            let along = tape.multiply(new, *known);
            let along = tape.row_sums(along);
            let along = tape.row_times(along, *known);
            new = tape.subtract(new, along);
        }
        let square = tape.square(new);
        let square = tape.row_sums(square);
        let least = tape.input(Array::column(vec![1e-6; tape.value(square).rows()]));
        let square = tape.most(square, least);
        let scale = tape.power(square, -0.5);
        basis.push(tape.row_times(scale, new));
    }
    basis
}

/// Attention of a query to several entities, with several heads (Vaswani et al. 2017).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attention {
    query: Dense,
    key: Dense,
    value: Dense,
    heads: usize,
    size: usize,
}

impl Attention {
    /// Makes a layer. `[query, entity, to]`: the numbers of a query, of an entity, and of what each head makes of them.
    pub fn new(
        weights: &mut Weights,
        name: &str,
        [query, entity, to]: [usize; 3],
        heads: usize,
        draws: &mut Draws,
    ) -> Self {
        let mut dense =
            |part: &str, from| Dense::new(weights, &format!("{name}.{part}"), [from, heads * to], 1.0, draws);
        let (query, key, value) = (dense("query", query), dense("key", entity), dense("value", entity));
        Attention { query, key, value, heads, size: to }
    }

    /// Returns the mean of what the entities of each query have to say, weighed by how well they fit it, head by head. `entities`: each a
    /// matrix with a row for each query. `open`: a row for each query, with 1 for the entities that count and 0 for the others; a query
    /// without entities gets 0.
    pub fn on(&self, tape: &mut Tape<'_>, x: Var, entities: &[Var], open: Var) -> Var {
        let query = self.query.on(tape, x);
        let both: Vec<[Var; 2]> =
            entities.iter().map(|entity| [self.key, self.value].map(|dense| dense.on(tape, *entity))).collect();
        let mut heads = Vec::with_capacity(self.heads);
        for head in 0..self.heads {
            let (first, n) = (head * self.size, self.size);
            let own = tape.columns(query, first, n);
            let mut scores = Vec::with_capacity(both.len());
            for [key, _] in &both {
                let key = tape.columns(*key, first, n);
                let product = tape.multiply(own, key);
                scores.push(tape.row_sums(product));
            }
            let scores = tape.join(&scores);
            let scores = tape.scale(scores, 1.0 / libm::sqrtf(n as f32));
            let logs = tape.log_softmax(scores);
            let p = tape.exp(logs);
            let p = tape.multiply(p, open);
            let sum = tape.row_sums(p);
            // Where nothing is open, both are 0.
            let least = tape.input(Array::column(vec![1e-6; tape.value(sum).rows()]));
            let sum = tape.most(sum, least);
            let share = tape.power(sum, -1.0);
            let p = tape.row_times(share, p);
            let mut said = Vec::with_capacity(both.len());
            for (k, [_, value]) in both.iter().enumerate() {
                let (weight, value) = (tape.columns(p, k, 1), tape.columns(*value, first, n));
                said.push(tape.row_times(weight, value));
            }
            heads.extend(said.into_iter().reduce(|sum, said| tape.add(sum, said)));
        }
        tape.join(&heads)
    }
}

/// Returns a matrix whose shorter side is orthonormal, times a gain (Saxe et al. 2014).
fn orthogonal(rows: usize, columns: usize, gain: f64, draws: &mut Draws) -> Array {
    let (many, long) = (rows.min(columns), rows.max(columns));
    let mut basis: Vec<Vec<f64>> = Vec::with_capacity(many);
    while basis.len() < many {
        let mut new: Vec<f64> = (0..long).map(|_| draws.normal()).collect();
        for known in &basis {
            let along: f64 = known.iter().zip(&new).map(|(x, y)| x * y).sum();
            new.iter_mut().zip(known).for_each(|(x, y)| *x -= along * y);
        }
        let norm = libm::sqrt(new.iter().map(|x| x * x).sum());
        // A vector in the span of the others is drawn again; that has probability 0.
        if norm > 1e-6 {
            new.iter_mut().for_each(|x| *x /= norm);
            basis.push(new);
        }
    }
    let at = |i: usize, j: usize| (gain * if rows <= columns { basis[i][j] } else { basis[j][i] }) as f32;
    Array::new(
        rows,
        columns,
        (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j))).map(|(i, j)| at(i, j)).collect(),
    )
}
