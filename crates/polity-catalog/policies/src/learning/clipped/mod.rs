//! Proximal policy optimisation, with a critic that sees what an agent sees or what its whole team sees.

mod params;
mod update;

use super::{About, Keys, Learner, Model, Now, Player, Rollout, Seen, Start, Step, Teams, Together, Trained};
pub use params::Params;
use polity_kernel::Invalid;
use polity_kernel::policy::PolicySetup;
use polity_nn::{Array, Mlp, NotFinite, Weights, outputs};
use std::marker::PhantomData;

/// A kind of proximal policy optimisation.
pub trait Kind: Send + Sync + 'static {
    /// The name a scenario uses.
    const NAME: &'static str;
    /// One line for lists.
    const SUMMARY: &'static str;
    /// What its critic sees by default.
    const CRITIC: Together;
}

/// A learner.
pub struct Clipped<K> {
    params: Params,
    policy: Mlp,
    value: Mlp,
    teacher: Option<Player>,
    /// Who the critic sees together; `None`: each agent alone.
    teams: Option<Teams>,
    kind: PhantomData<K>,
}

impl<K: Kind> Clipped<K> {
    /// Returns the logarithms of the probabilities of all choices for each agent, and what each can expect.
    fn outlook(&self, weights: &Weights, seen: &Seen) -> [Array; 2] {
        let views = self.teams.as_ref().map(|teams| teams.views(seen));
        outputs(weights, seen.agents.len(), |tape, rows| {
            let (x, mask) = (tape.input(seen.inputs.part(rows.clone())), tape.input(seen.mask.part(rows.clone())));
            let view = views.as_ref().map_or(x, |views| tape.input(views.part(rows)));
            let logits = self.policy.on(tape, x);
            let logits = tape.add(logits, mask);
            [tape.log_softmax(logits), self.value.on(tape, view)]
        })
    }
}

impl<K: Kind> Learner for Clipped<K> {
    const NAME: &'static str = K::NAME;
    const SUMMARY: &'static str = K::SUMMARY;
    type Params = Params;
    type Memory = Trained<Rollout>;

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<(Self, Start), Invalid> {
        params.check()?;
        let together = params.critic.unwrap_or(K::CRITIC);
        let teams = (together != Together::Nobody).then(|| Teams::open(together, setup)).transpose()?;
        let mut start = Start::open(K::NAME, &params.keys(), K::CRITIC != Together::Nobody, setup)?;
        let (inputs, choices) = (start.inputs(), start.choices());
        let policy = start.net("policy", [inputs, choices], 0.01);
        let value = start.net("value", [inputs * teams.as_ref().map_or(1, Teams::seats), 1], 1.0);
        if let Some(source) = &params.weights {
            let (weights, of) = About::read(setup.weights(source)?)?;
            of.fits(&start.senses, setup.world)?;
            start
                .first
                .take(&weights)
                .map_err(|error| Invalid { key: "weights".into(), message: error.to_string() })?;
        }
        let teacher = params.teacher.as_ref().map(|teacher| {
            let (player, of) = Player::open(setup.weights(&teacher.weights)?)?;
            of.fits(&start.senses, setup.world).map(|()| player)
        });
        let teacher =
            teacher.transpose().map_err(|error| Invalid { key: format!("teacher.{}", error.key), ..error })?;
        Ok((Clipped { params, policy, value, teacher, teams, kind: PhantomData }, start))
    }

    fn begin(&self, first: &Weights) -> Trained<Rollout> {
        Trained::new(first, Rollout::default())
    }

    fn memory_bytes(&self, row: usize) -> usize {
        // What waits to be learned from, and the batch that is made of it.
        let views = self.teams.as_ref().map_or(0, |teams| teams.seats() * row);
        self.params.horizon as usize * (2 * (row + 24) + views)
    }

    fn step(&self, memory: &mut Trained<Rollout>, seen: &Seen, now: &Now<'_>) -> Result<(), NotFinite> {
        let [mut logs, mut values] = self.outlook(&memory.model.weights, seen);
        if now.learns && memory.experience.len() >= self.params.horizon as usize {
            let mut decisions = memory.experience.decisions(seen, values.data(), self.teams.as_ref());
            decisions.rewards.iter_mut().for_each(|reward| *reward *= self.params.reward_scale as f32);
            let model: Model = self.update(&memory.model, &decisions, memory.updates, now)?;
            memory.learned(model);
            [logs, values] = self.outlook(&memory.model.weights, seen);
            memory.experience.clear();
        }
        if !now.learns {
            // Only the last decisions are read.
            memory.experience.clear();
        }
        let choices = now.chosen(seen, &logs);
        let log = |(row, choice): (usize, &u16)| logs.row(row).get(usize::from(*choice)).copied().unwrap_or_default();
        let logs = choices.iter().enumerate().map(log).collect();
        memory.experience.push(Step { seen: seen.clone(), choices, logs, values: values.data().to_vec() });
        Ok(())
    }
}

impl Params {
    fn keys(&self) -> Keys<'_> {
        Keys {
            observe: self.observe.as_deref(),
            reward: &self.reward,
            hidden: &self.hidden,
            activation: self.activation,
            stop: self.stop,
        }
    }
}
