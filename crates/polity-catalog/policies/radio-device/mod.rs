//! Keep the rate of the own user with as little power as possible, and avoid the channels of others. See README.md.

#[cfg(test)]
mod tests;

use polity_kernel::Invalid;
use polity_kernel::interface::{NumberSlot, TableSlot};
use polity_kernel::policy::{Fault, Person, Policy, PolicySetup, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.policy::<RadioDevice>(files);
}

/// The aim of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Plan {
    /// The rate of its user with little power, on a channel that few others use.
    #[default]
    Cooperate,
    /// The highest rate for its own user: maximum power.
    Greedy,
}

/// Parameters of devices.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// The aim of a device.
    plan: Plan,
    /// How often a device says which channel it uses, at the start and after every change; 0 to 1000.
    repeats: u32,
    /// Most messages of a device.
    budget: u32,
    /// Probability that it changes to a better channel in a round; 0 to 1.
    moves: f64,
    /// A channel is better if less than this share of the interference is to be expected there; 0 to 1.
    better: f64,
    /// It aims at this multiple of the target; 1 to 10.
    margin: f64,
    /// Whether it tries a random channel if maximum power does not help.
    hops: bool,
}

impl Default for Params {
    fn default() -> Self {
        Params { plan: Plan::Cooperate, repeats: 4, budget: 20, moves: 0.3, better: 0.8, margin: 1.07, hops: true }
    }
}

/// What a device remembers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// Whom it has heard, in order of id: its channel, and the share of its signal that arrives.
    known: Vec<(u32, u32, f64)>,
    /// Messages that are still to be sent, and those sent.
    left: u32,
    sent: u32,
}

/// A device of a radio network.
pub struct RadioDevice {
    params: Params,
    slots: [NumberSlot; 6],
    heard: (TableSlot, [usize; 3]),
    power: u16,
    channel: u16,
    tell: u16,
}

impl Policy for RadioDevice {
    const NAME: &'static str = "radio-device";
    const SUMMARY: &'static str = "Keep a rate with little power, and tell others the own radio channel";
    type Params = Params;
    type State = Memory;

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        Invalid::within(0..=1000, "repeats", params.repeats)?;
        Invalid::within(0.0..=1.0, "moves", params.moves)?;
        Invalid::within(0.0..=1.0, "better", params.better)?;
        Invalid::within(1.0..=10.0, "margin", params.margin)?;
        let number = |name| setup.number(name);
        Ok(RadioDevice {
            params,
            slots: [
                number("channels")?,
                number("target")?,
                number("max-power")?,
                number("own-channel")?,
                number("own-power")?,
                number("own-ratio")?,
            ],
            heard: setup.table("heard", ["device", "channel", "gain"])?,
            power: setup.act("power")?.0,
            channel: setup.act("channel")?.0,
            tell: setup.act("tell")?.0,
        })
    }

    fn init_state(&self, _: Person<'_>, _: &mut Draws) -> Memory {
        Memory { left: self.params.repeats, ..Memory::default() }
    }

    async fn act(&self, memory: &mut Memory, turn: &mut Turn<'_>) -> Result<(), Fault> {
        let Params { plan, repeats, budget, moves, better, margin, hops } = self.params;
        let seen = turn.observation;
        let [channels, target, max_power, own, power, ratio] = self.slots.map(|slot| seen.number(slot));
        if plan == Plan::Greedy {
            turn.act(self.power, max_power);
            return Ok(());
        }
        let (table, [device, channel, gain]) = self.heard;
        for row in seen.table(table) {
            let told = (row[device] as u32, row[channel] as u32, row[gain]);
            match memory.known.binary_search_by_key(&told.0, |(who, ..)| *who) {
                Ok(place) => memory.known[place] = told,
                Err(place) => memory.known.insert(place, told),
            }
        }
        // Foschini and Miljanic: as much more power as the ratio is below the aim.
        let wanted = if ratio > 0.0 { power * margin * target / ratio } else { max_power };
        turn.act(self.power, wanted.min(max_power));
        let mut expected = vec![0.0; channels as usize];
        for (_, channel, gain) in &memory.known {
            if let Some(sum) = expected.get_mut(*channel as usize) {
                *sum += gain;
            }
        }
        let here = own as usize;
        let mut best = here;
        for channel in 0..expected.len() {
            if expected[channel] < expected[best] {
                best = channel;
            }
        }
        let mut next = here;
        if expected[best] < better * expected[here] && turn.draws.chance(moves) {
            next = best;
        } else if hops && ratio < target && power >= 0.999 * max_power && turn.draws.chance(moves) {
            next = turn.draws.below(channels as u64) as usize;
        }
        if next != here {
            turn.act(self.channel, next as f64);
            memory.left = repeats;
        }
        if memory.left > 0 && memory.sent < budget {
            memory.left -= 1;
            memory.sent += 1;
            turn.act(self.tell, 0.0);
        }
        Ok(())
    }
}
