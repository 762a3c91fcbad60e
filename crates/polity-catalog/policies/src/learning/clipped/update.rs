//! An update of proximal policy optimisation.

use super::contrast::Pairs;
use super::memory::{Lived, Recurrent, Sequences};
use super::{Clipped, Kind};
use crate::learning::{ClippedLoss, Decisions, Model, Now, generalised_advantages, normalised};
use polity_nn::{Array, NotFinite, gradients};

impl<K: Kind> Clipped<K> {
    /// Learns from decisions: each minibatch moves the weights against the gradient of [`ClippedLoss`].
    ///
    /// With a teacher, the cross entropy between its probabilities and the network's is added, with a weight that decays (Schmitt and
    /// others, arXiv 1803.03835).
    ///
    /// The losses of a latent state and of a contrastive memory are added.
    ///
    /// If agents remember, a minibatch consists of all decisions of some agents: their rounds are gone through again from what they remembered
    /// at the start of the first one.
    ///
    /// # Errors
    /// The first loss or gradient that is not a finite number.
    pub(super) fn update(
        &self,
        model: &Model,
        lived: &Lived,
        decisions: &Decisions,
        updates: u32,
        now: &Now<'_>,
    ) -> Result<Model, NotFinite> {
        let params = &self.params;
        let (mut model, mut draws) = (model.clone(), now.draws());
        let advantages = generalised_advantages(decisions, params.discount as f32, params.lambda as f32);
        let returns: Vec<f32> = advantages.iter().zip(&decisions.values).map(|(a, v)| a + v).collect();
        let left = if params.anneal { 1.0 - f64::from(now.round) / f64::from(now.rounds.max(1)) } else { 1.0 };
        let clipped =
            ClippedLoss { clip: params.clip, value_weight: params.value_weight, entropy_weight: params.entropy_weight };
        let taught = self.teacher.as_ref().zip(params.teacher.as_ref()).map(|(player, teacher)| {
            let mut taught = player.logs(&decisions.inputs, &decisions.masks);
            taught.data_mut().iter_mut().for_each(|log| *log = libm::expf(*log));
            (taught, (teacher.weight * libm::pow(teacher.decay, f64::from(updates))) as f32)
        });
        let next = self.latent.as_ref().map(|latent| (latent, latent.next(decisions, &mut draws)));
        // What minibatches consist of: decisions, or agents with all their decisions.
        let sequences = self.memory.as_ref().map(|memory| (memory, Sequences::of(decisions)));
        let parts = sequences.as_ref().map_or(decisions.len(), |(_, sequences)| sequences.len());
        let a_batch = (params.minibatch as usize * parts).div_ceil(decisions.len().max(1)).max(1);
        let mut order: Vec<u32> = (0..parts as u32).collect();
        for _ in 0..params.epochs {
            draws.shuffle(&mut order);
            for parts in order.chunks(a_batch) {
                // The decisions of the minibatch, and where those of each part end.
                let (mut batch, mut ends) = (Vec::new(), vec![0]);
                for part in parts {
                    match &sequences {
                        Some((_, sequences)) => batch.extend_from_slice(sequences.decisions(*part)),
                        None => batch.push(*part),
                    }
                    ends.push(batch.len());
                }
                let compared = self.memory.as_ref().and_then(Recurrent::compared);
                let compared = compared.map(|layer| (layer, Pairs::draw(decisions, &batch, &ends, &mut draws)));
                let of = |numbers: &[f32]| batch.iter().map(|i| numbers[*i as usize]).collect::<Vec<f32>>();
                let (advantages, returns, old) = (normalised(&of(&advantages)), of(&returns), of(&decisions.logs));
                let names = ["the loss", "the policy's loss", "the value's loss", "the entropy"];
                let mut found = gradients(&model.weights, parts.len(), names, |tape, rows| {
                    let mut states = |pairs: Option<&Pairs>| {
                        let (memory, sequences) = sequences.as_ref()?;
                        Some(memory.again(tape, lived, sequences, &parts[rows.clone()], pairs))
                    };
                    let state = states(None);
                    let cut = compared.as_ref().and_then(|(_, pairs)| states(Some(pairs)));
                    let rows = ends[rows.start]..ends[rows.end];
                    let picked = &batch[rows.clone()];
                    let x = tape.input(decisions.inputs.pick(picked));
                    let mask = tape.input(decisions.masks.pick(picked));
                    let column = |numbers: &[f32]| Array::column(numbers[rows.clone()].to_vec());
                    let (advantage, goal, old) =
                        (tape.input(column(&advantages)), tape.input(column(&returns)), tape.input(column(&old)));

                    let view = decisions.views.as_ref().map_or(x, |views| tape.input(views.pick(picked)));
                    let shown = state.zip(self.memory.as_ref()).map(|(state, memory)| memory.shown(tape, state));
                    let latent = self.latent.as_ref().map(|latent| latent.of(tape, view));
                    let [logs, value] = self.heads(tape, [x, view, mask], shown, latent);
                    let log = tape.pick(logs, picked.iter().map(|i| decisions.choices[*i as usize]).collect());
                    let p = tape.exp(logs);
                    let surprise = tape.multiply(p, logs);
                    let found = clipped.on(tape, [log, old], advantage, [value, goal], (surprise, -1.0), batch.len());
                    let [mut loss, policy_loss, value_loss, entropy] = found;
                    let n = batch.len() as f32;
                    if let Some((taught, weight)) = &taught {
                        let taught = tape.input(taught.pick(picked));
                        let agreed = tape.multiply(taught, logs);
                        let agreed = tape.sum(agreed);
                        let agreed = tape.scale(agreed, -weight / n);
                        loss = tape.add(loss, agreed);
                    }
                    if let Some(((latent, next), states)) = next.as_ref().zip(latent) {
                        let told = latent.loss(tape, states, next, decisions, picked);
                        let told = tape.scale(told, 1.0 / n);
                        loss = tape.add(loss, told);
                    }
                    if let Some(((layer, pairs), state)) = compared.as_ref().zip(cut) {
                        let told = pairs.loss(tape, layer, state, rows);
                        let told = tape.scale(told, 1.0 / n);
                        loss = tape.add(loss, told);
                    }
                    [loss, policy_loss, value_loss, entropy]
                })?;
                for frozen in &self.frozen {
                    found.of[*frozen].data_mut().fill(0.0);
                }
                model.descend(found, params.learning_rate * left, params.max_grad_norm)?;
            }
        }
        Ok(model)
    }
}
