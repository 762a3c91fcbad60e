//! Proximal policy optimisation, with a critic that sees what an agent sees or what its whole team sees.

mod contrast;
mod convolution;
mod latent;
mod league;
mod memory;
mod messages;
mod params;
mod perturb;
#[cfg(test)]
mod tests;
mod trunk;
mod turns;
mod update;

use super::{
    Choose, Identity, Learner, LearnerParams, Model, Now, Player, Seen, Start, Step, Teams, Together, Trained,
};
pub use convolution::ConvolutionSource;
use convolution::Pictures;
use latent::Latent;
pub use latent::LatentSource;
use league::League;
pub use league::LeagueSource;
pub use memory::MemorySource;
use memory::{Lived, Recurrent};
use messages::Messages;
pub use messages::MessagesSource;
pub use params::Params;
use perturb::Perturb;
pub use perturb::PerturbSource;
use polity_kernel::Invalid;
use polity_kernel::policy::PolicySetup;
use polity_nn::{Array, NotFinite, Tape, Var, Weights, outputs};
use std::borrow::Cow;
use std::marker::PhantomData;
pub use trunk::ExpertsSource;
use trunk::{Mixture, Trunk};
pub use turns::Symmetry;
use turns::Turns;

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
    policy: Trunk,
    value: Trunk,
    /// What agents tell each other.
    messages: Option<Messages>,
    /// The turns under which both networks are equivariant.
    turns: Option<Turns>,
    /// What the networks see in place of what agents see.
    latent: Option<Latent>,
    /// What agents remember from round to round.
    memory: Option<Recurrent>,
    teacher: Option<Player>,
    league: Option<League>,
    perturb: Option<Perturb>,
    /// The numbers of the tensors that stay as they are.
    frozen: Vec<usize>,
    /// Who the critic sees together; `None`: each agent alone.
    teams: Option<Teams>,
    kind: PhantomData<K>,
}

/// What a cohort is about to do.
struct Outlook {
    /// The logarithms of the probabilities of all choices for each agent.
    logs: Array,
    /// What each can expect.
    values: Array,
    /// What each remembers afterwards.
    left: Array,
}

impl Outlook {
    /// Replaces the rows of some agents.
    fn replace(&mut self, rows: &[u32], by: &Outlook) {
        for (all, by) in [(&mut self.logs, &by.logs), (&mut self.values, &by.values), (&mut self.left, &by.left)] {
            let columns = all.columns();
            for (to, row) in rows.iter().zip(0..by.rows()) {
                all.data_mut()[*to as usize * columns..][..columns].copy_from_slice(by.row(row));
            }
        }
    }
}

impl<K: Kind> Clipped<K> {
    /// Returns what agents of a cohort are about to do. `entered`: what each remembers. `who`: their rows; `None`: all.
    fn outlook(&self, weights: &Weights, seen: &Seen, entered: Option<&Array>, who: Option<&[u32]>) -> Outlook {
        let of = |all| who.map_or(Cow::Borrowed(all), |rows| Cow::Owned(Array::pick(all, rows)));
        let views = self.teams.as_ref().map(|teams| teams.views(seen));
        let views = views.as_ref().map(of);
        let (inputs, masks, entered) = (of(&seen.inputs), of(&seen.mask), entered.map(of));
        let [logs, values, left] = outputs(weights, inputs.rows(), |tape, rows| {
            let (x, mask) = (tape.input(inputs.part(rows.clone())), tape.input(masks.part(rows.clone())));
            let state = self.memory.as_ref().zip(entered.as_ref()).map(|(memory, entered)| {
                let before = tape.input(entered.part(rows.clone()));
                memory.on(tape, x, before)
            });
            let view = views.as_ref().map_or(x, |views| tape.input(views.part(rows)));
            let latent = self.latent.as_ref().map(|latent| latent.of(tape, view));
            let [logs, value] = self.heads(tape, [x, view, mask], state, latent);
            [logs, value, state.unwrap_or_else(|| tape.input(Array::EMPTY))]
        });
        Outlook { logs, values, left }
    }

    /// Returns the logarithms of the probabilities of all choices, and what can be expected, for what an agent sees, what its critic sees,
    /// and its mask. `state`: what it remembers. `latent`: the latent states that belong to what its critic sees.
    fn heads(
        &self,
        tape: &mut Tape<'_>,
        [x, view, mask]: [Var; 3],
        state: Option<Var>,
        latent: Option<Var>,
    ) -> [Var; 2] {
        let latent = self.latent.as_ref().zip(latent).map(|(latent, states)| [latent.own(tape, states), states]);
        let [x, view] = latent.unwrap_or([x, view]);
        let network = |tape: &mut Tape<'_>, [x, view]: [Var; 2]| {
            let heard = self.messages.as_ref().map(|messages| messages.heard(tape, x, view));
            let inputs: Vec<Var> = [Some(x), heard, state].into_iter().flatten().collect();
            let x = if inputs.len() == 1 { x } else { tape.join(&inputs) };
            let view = state.map_or(view, |state| tape.join(&[view, state]));
            [self.policy.on(tape, x), self.value.on(tape, view)]
        };
        let [logits, value] = match &self.turns {
            Some(turns) => turns.mean(tape, [x, view], network),
            None => network(tape, [x, view]),
        };
        let logits = tape.add(logits, mask);
        [tape.log_softmax(logits), value]
    }
}

impl<K: Kind> Learner for Clipped<K> {
    const NAME: &'static str = K::NAME;
    const SUMMARY: &'static str = K::SUMMARY;
    type Params = Params;
    type Memory = Trained<Lived>;

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<(Self, Start), Invalid> {
        params.check()?;
        let together = params.critic.unwrap_or(K::CRITIC);
        let teams = (together != Together::Alone).then(|| Teams::open(together, setup)).transpose()?;
        let identity = if K::CRITIC == Together::Alone { Identity::Shared } else { Identity::Seat };
        let mut start = Start::open(K::NAME, &params.keys(), identity, setup)?;
        let (inputs, choices) = (start.inputs(), start.choices());
        let memory = params.memory.as_ref().map(|source| Recurrent::open(source, &mut start)).transpose()?;
        let remembered = memory.as_ref().map_or(0, Recurrent::size);
        let messages =
            params.messages.as_ref().map(|source| Messages::open(source, teams.as_ref(), &mut start)).transpose()?;
        let heard = params.messages.map_or(0, |source| source.size);
        let latent = params.latent.map(|source| Latent::open(source, teams.as_ref(), &mut start)).transpose()?;
        let turns = params
            .symmetry
            .map(|symmetry| Turns::of(symmetry, &start.senses.numbers(), &start.senses.choices()))
            .transpose()?;
        if let Some(about) = &mut start.about {
            let messages = params.messages.map(|_| "messages: ...".to_owned());
            let symmetry = params.symmetry.map(|symmetry| format!("symmetry: {}", symmetry.name()));
            let experts = params.experts.as_ref().map(|_| "experts: ...".to_owned());
            let convolution = params.convolution.as_ref().map(|_| "convolution: ...".to_owned());
            let latent = params.latent.map(|_| "latent: ...".to_owned());
            about.network = [messages, symmetry, experts, convolution, latent]
                .into_iter()
                .flatten()
                .reduce(|all, key| format!("{all}, {key}"));
        }
        let experts = params.experts.as_ref();
        let why = "needs a critic that sees what the agent sees: `critic: alone`";
        Invalid::unless(experts.is_none() || teams.is_none(), "experts", why)?;
        let inputs = params.latent.map_or(inputs, |source| source.size);
        let seen = inputs * teams.as_ref().map_or(1, Teams::seats);
        let mut open = |name: &str, views: usize, sizes: [usize; 2], gain: f64| {
            if let Some(source) = &params.convolution {
                return Pictures::open(source, &mut start, name, views, sizes, gain).map(Trunk::Pictures);
            }
            match experts {
                Some(source) => Mixture::open(source, &mut start, name, sizes[1], gain).map(Trunk::Mixture),
                None => Ok(Trunk::Plain(start.net(name, sizes, gain))),
            }
        };
        let policy = open("policy", 1, [inputs + heard + remembered, choices], 0.01)?;
        let value = open("value", teams.as_ref().map_or(1, Teams::seats), [seen + remembered, 1], 1.0)?;
        if let Some(source) = &params.weights {
            start.take(source, setup)?;
        }
        let mut frozen = Vec::new();
        if let Some(source) = &params.transfer {
            let taken = start.take_layers(&source.weights, &source.layers, setup);
            let taken = taken.map_err(|error| Invalid { key: format!("transfer.{}", error.key), ..error })?;
            frozen = if source.frozen { taken } else { Vec::new() };
        }
        let message = "does not go with layers that are frozen";
        Invalid::unless(params.perturb.is_none() || frozen.is_empty(), "perturb", message)?;
        let league = params.league.as_ref().map(|source| League::open(source, setup)).transpose()?;
        let perturb = params.perturb.map(|source| Perturb::open(source, &start.first)).transpose()?;
        let teacher = params.teacher.as_ref().map(|teacher| {
            let (player, of) = Player::open(setup.weights(&teacher.weights)?)?;
            of.fits(&start.senses, setup.world).map(|()| player)
        });
        let teacher =
            teacher.transpose().map_err(|error| Invalid { key: format!("teacher.{}", error.key), ..error })?;
        Ok((
            Clipped {
                params,
                policy,
                value,
                messages,
                turns,
                latent,
                memory,
                teacher,
                league,
                perturb,
                frozen,
                teams,
                kind: PhantomData,
            },
            start,
        ))
    }

    fn begin(&self, first: &Weights) -> Trained<Lived> {
        Trained::new(first, Lived::default())
    }

    fn memory_bytes(&self, row: usize) -> usize {
        // What waits to be learned from, and the batch that is made of it.
        let views = self.teams.as_ref().map_or(0, |teams| teams.seats() * row);
        let states = 4 * self.memory.as_ref().map_or(0, Recurrent::size);
        self.params.horizon as usize * (2 * (row + 24) + views + states)
    }

    fn step(&self, memory: &mut Trained<Lived>, seen: &Seen, now: &Now<'_>) -> Result<(), NotFinite> {
        let entered = self.memory.as_ref().map(|layer| layer.entering(&memory.experience, seen));
        let mut outlook = self.outlook(&memory.model.weights, seen, entered.as_ref(), None);
        let league = self.league.as_ref().filter(|_| now.learns);
        if let Some(league) = league.filter(|_| now.round == 0) {
            league.keep(&mut memory.experience.versions, &memory.model.weights, 0, now);
        }
        let Trained { model, experience, updates } = &*memory;
        if now.learns && experience.rollout.len() >= self.params.horizon as usize {
            let learns = |who| league.is_none_or(|league| league.learns(who));
            let mut decisions = experience.rollout.decisions(seen, outlook.values.data(), self.teams.as_ref(), learns);
            decisions.rewards.iter_mut().for_each(|reward| *reward *= self.params.reward_scale as f32);
            let mut model: Model = self.update(model, experience, &decisions, *updates, now)?;
            if let Some(perturb) = &self.perturb {
                let (kept, mut draws) = (&mut memory.experience.kept, perturb::draws(now));
                perturb.keep(kept, &memory.model.weights, &decisions.rewards, &mut draws);
                perturb.perturb(kept, &mut model.weights, memory.updates + 1, &mut draws);
            }
            memory.learned(model);
            if let Some(league) = league {
                league.keep(&mut memory.experience.versions, &memory.model.weights, memory.updates, now);
            }
            outlook = self.outlook(&memory.model.weights, seen, entered.as_ref(), None);
            memory.experience.clear();
        }
        if !now.learns {
            // Only the last decisions are read.
            memory.experience.clear();
        }
        if let Some(league) = league {
            let versions = &mut memory.experience.versions;
            league.draw(versions, seen, now);
            for (weights, rows) in league.played(versions, seen) {
                outlook.replace(&rows, &self.outlook(weights, seen, entered.as_ref(), Some(&rows)));
            }
        }
        let Outlook { logs, values, left } = outlook;
        let choices = now.chosen(seen, &logs, Choose::Best);
        let log = |(row, choice): (usize, &u16)| logs.row(row).get(usize::from(*choice)).copied().unwrap_or_default();
        let logs = choices.iter().enumerate().map(log).collect();
        let step = Step { seen: seen.clone(), choices, logs, values: values.data().to_vec() };
        memory.experience.rollout.push(step);
        if let Some(entered) = entered {
            memory.experience.remember(seen, entered, left);
        }
        Ok(())
    }
}
