//! Devices on a plane that share radio channels, keep the rates of their users, and pay for every message. See README.md.

mod params;
#[cfg(test)]
mod tests;

pub use params::{Content, Params};

use crate::spaces::plane::Plane;
use polity_kernel::digest::DigestVec;
use polity_kernel::interface::{ActionArgument, Axis, NumberSlot, TableSlot};
use polity_kernel::policy::Person;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::world::{AgentActions, DeclareWorld, Future, ObservationRow, World, WorldSetup};
use polity_kernel::{AgentId, Invalid};
use serde::{Deserialize, Serialize};

/// Distances below this count as this much.
const NEAREST: f64 = 0.5;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.world::<Radio>(files);
}

/// A radio network.
pub struct Radio {
    params: Params,
    plane: Plane,
    heard: TableSlot,
    active: NumberSlot,
    acts: [u16; 2],
}

/// A device and its user, on the torus.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Device {
    at: (f64, f64),
    user: (f64, f64),
    channel: u32,
    power: f64,
    /// Ratio of signal to interference and noise at the user in the last round.
    ratio: f64,
    /// What it will do at the end of the round.
    next: (u32, f64),
    tells: bool,
}

/// The network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    devices: DigestVec<Device>,
    /// What each device heard in the last round: from whom, and which channel.
    heard: DigestVec<Vec<(AgentId, u32)>>,
    /// Who reaches the user of each device, and how well; computed from the places.
    #[serde(skip)]
    links: Vec<Vec<(AgentId, f64)>>,
    rounds: u32,
    /// Rounds in a row in which all users had their rate.
    streak: u32,
    kept: f64,
    power: f64,
    transmitted: f64,
    messages: u64,
    refused: u32,
    refused_last: u32,
}

fn truth(is: bool) -> f64 {
    f64::from(u8::from(is))
}

impl Radio {
    fn distance(&self, a: (f64, f64), b: (f64, f64)) -> f64 {
        let along = |a: f64, b: f64| {
            let d = (a - b).abs();
            d.min(self.plane.side - d)
        };
        let (x, y) = (along(a.0, b.0), along(a.1, b.1));
        (x * x + y * y).sqrt()
    }

    fn gain(&self, distance: f64) -> f64 {
        libm::pow(distance.max(NEAREST), -self.params.fading)
    }

    /// Returns who reaches the user of each device, in order of id, itself among them.
    fn links(&self, devices: &[Device]) -> Vec<Vec<(AgentId, f64)>> {
        let (mut starts, mut places) = (Vec::new(), Vec::new());
        self.plane.sort(&mut starts, &mut places, devices.iter().map(|device| device.at));
        let mut order = vec![0u32; devices.len()];
        for (who, place) in (0u32..).zip(&places) {
            order[*place as usize] = who;
        }
        let cells = self.plane.cells;
        let near = |user: (f64, f64)| {
            let cell = self.plane.cell(user.0, user.1);
            let (rows, columns) = (self.plane.runs(cell / cells), self.plane.runs(cell % cells));
            let mut found: Vec<(AgentId, f64)> = Vec::new();
            // With few cells a run covers all of them, and is seen from three sides.
            let of = |runs: [(std::ops::Range<usize>, f64); 3]| {
                let mut all: Vec<usize> = runs.into_iter().flat_map(|(run, _)| run).collect();
                all.sort_unstable();
                all.dedup();
                all
            };
            let columns = of(columns);
            for row in of(rows) {
                for column in &columns {
                    let cell = row * cells + column;
                    for who in &order[starts[cell] as usize..starts[cell + 1] as usize] {
                        let distance = self.distance(devices[*who as usize].at, user);
                        if distance <= self.params.reach {
                            found.push((*who, self.gain(distance)));
                        }
                    }
                }
            }
            found.sort_unstable_by_key(|(who, _)| *who);
            found
        };
        devices.iter().map(|device| near(device.user)).collect()
    }

    /// Computes the ratio of every user, and how many have their rate.
    fn measure(&self, state: &mut State) {
        let own = |device: &Device| self.gain(self.distance(device.at, device.user));
        let ratios: Vec<f64> = state
            .devices
            .iter()
            .zip(&state.links)
            .enumerate()
            .map(|(i, (device, links))| {
                let others = links.iter().map(|(who, gain)| (*who as usize, &state.devices[*who as usize], gain));
                let interference: f64 = others
                    .filter(|(who, other, _)| *who != i && other.channel == device.channel)
                    .map(|(_, other, gain)| other.power * gain)
                    .sum();
                device.power * own(device) / (self.params.noise + interference)
            })
            .collect();
        let kept = ratios.iter().filter(|ratio| **ratio >= self.params.target).count();
        for (i, ratio) in ratios.into_iter().enumerate() {
            state.devices.change(i, |device| device.ratio = ratio);
        }
        state.kept = kept as f64 / state.devices.len().max(1) as f64;
        state.power = state.devices.iter().map(|device| device.power).sum();
    }

    fn energy(&self, state: &State) -> f64 {
        state.transmitted + self.params.message_cost * state.messages as f64
    }

    /// Returns the energy so far as a share of that at maximum power.
    fn share(&self, state: &State) -> f64 {
        let full = self.params.max_power * state.devices.len() as f64 * f64::from(state.rounds.max(1));
        self.energy(state) / full
    }

    fn declare_views(declare: &mut DeclareWorld<Self>, params: &Params) {
        let Params { channels, target, max_power, message_cost, loss, .. } = *params;
        for (name, doc, value) in [
            ("channels", "channels", f64::from(channels)),
            ("target", "ratio of signal to interference and noise that each user needs", target),
            ("max-power", "maximum power", max_power),
            ("message-cost", "energy of a message; a round of power 1 takes an energy of 1", message_cost),
            ("loss", "probability that one in reach does not get a message", loss),
        ] {
            declare.shared_number(name, doc, move |_, _| value);
        }
        type Of = fn(&Device) -> f64;
        let own: [(&'static str, &'static str, Of); 3] = [
            ("own-channel", "the channel of the device, from 0", |d| f64::from(d.channel)),
            ("own-power", "its power", |d| d.power),
            ("own-ratio", "ratio of signal to interference and noise at its user in the last round", |d| d.ratio),
        ];
        for (name, doc, of) in own {
            declare.number(name, doc, move |_, state, who| of(&state.devices[*who as usize]));
        }
    }

    fn declare_results(declare: &mut DeclareWorld<Self>, side: f64) {
        let at =
            |of: fn(&Device) -> f64| move |_: &Radio, state: &State, who: &AgentId| of(&state.devices[*who as usize]);
        declare.coordinate(Axis::X, "x", "place of the device", (0.0, side), at(|device| device.at.0));
        declare.coordinate(Axis::Y, "y", "place of the device", (0.0, side), at(|device| device.at.1));
        declare.column("user-x", "place of its user", Some((0.0, side)), at(|device| device.user.0));
        declare.column("user-y", "place of its user", Some((0.0, side)), at(|device| device.user.1));
        declare.column("channel", "its channel, from 0", None, at(|device| f64::from(device.channel)));
        declare.column("power", "its power", None, at(|device| device.power));
        declare.column(
            "ratio",
            "ratio of signal to interference and noise at its user",
            None,
            at(|device| device.ratio),
        );
        let doc = "1 if the user has its rate, less the share of the maximum power";
        declare.reward(doc, |world, state, who| {
            let device = &state.devices[*who as usize];
            truth(device.ratio >= world.params.target) - device.power / world.params.max_power
        });
        declare.scalar("kept", "share of users who have their rate", |_, state| state.kept);
        declare.scalar("power", "sum of powers in the round", |_, state| state.power);
        declare.scalar("messages", "messages so far", |_, state| state.messages as f64);
        declare.scalar("message-energy", "energy of messages so far", |world, state| {
            world.params.message_cost * state.messages as f64
        });
        declare.scalar("energy", "energy of signals and messages so far", Radio::energy);
        let doc = "this energy as a share of that of all devices at maximum power";
        declare.scalar("energy-share", doc, Radio::share);
        let doc =
            "1 if all users have had their rate in the last `hold` rounds, and the share of energy is at most `cut`";
        declare.scalar("intent", doc, |world, state| {
            truth(state.streak >= world.params.hold && world.share(state) <= world.params.cut)
        });
        declare.scalar("refused", "acts of the round that name no channel or no power", |_, state| {
            f64::from(state.refused_last)
        });
    }
}

impl World for Radio {
    const NAME: &'static str = "radio";
    const SUMMARY: &'static str = "Devices that share radio channels, keep rates, save energy and pay for messages";
    type Params = Params;
    type State = State;

    fn open(params: Params, setup: &WorldSetup<'_>, declare: &mut DeclareWorld<Self>) -> Result<Self, Invalid> {
        params.check(setup.agents)?;
        let side = params.side(setup.agents);
        Radio::declare_views(declare, &params);
        let doc = "messages of the last round: from whom, its channel, and the share of its signal that arrives";
        let heard = declare.table_slot("heard", ["device", "channel", "gain"], doc);
        let active = declare.number_slot("active", "1: every device may act in every round");
        let power = ActionArgument::Number { low: 0.0, high: params.max_power };
        let power = declare.action("power", power, "send with this power from now on");
        let channel = ActionArgument::Number { low: 0.0, high: f64::from(params.channels - 1) };
        let channel = declare.action("channel", channel, "send on this channel from now on");
        declare.action("tell", ActionArgument::Nothing, "tell all in reach the own channel, that from now on");
        Radio::declare_results(declare, side);
        // A cell is at least half as wide as signals reach.
        let plane = Plane::new(side, params.reach, setup.agents);
        Ok(Radio { params, plane, heard, active, acts: [power, channel] })
    }

    fn memory_bytes(&self) -> usize {
        let Params { reach, density, .. } = self.params;
        300 + (16.0 * core::f64::consts::PI * reach * reach * density) as usize
    }

    fn init_state(&self, setup: &WorldSetup<'_>, draws: &mut Draws) -> State {
        let Params { channels, max_power, user, .. } = self.params;
        let side = self.plane.side;
        let mut device = || {
            let at = (draws.range(0.0, side), draws.range(0.0, side));
            let (angle, far) = (draws.range(0.0, core::f64::consts::TAU), draws.range(user / 2.0, user));
            let user = (self.plane.along(at.0, far * libm::cos(angle)), self.plane.along(at.1, far * libm::sin(angle)));
            let channel = draws.below(u64::from(channels)) as u32;
            Device { at, user, channel, power: max_power, ratio: 0.0, next: (channel, max_power), tells: false }
        };
        let devices: Vec<Device> = (0..setup.agents).map(|_| device()).collect();
        let links = self.links(&devices);
        let mut state = State {
            heard: vec![Vec::new(); devices.len()].into(),
            devices: devices.into(),
            links,
            rounds: 0,
            streak: 0,
            kept: 0.0,
            power: 0.0,
            transmitted: 0.0,
            messages: 0,
            refused: 0,
            refused_last: 0,
        };
        self.measure(&mut state);
        state
    }

    fn restore(&self, state: &mut State) {
        state.links = self.links(&state.devices);
    }

    fn observe(&self, state: &State, person: Person<'_>, observation: &mut ObservationRow<'_>) {
        observation.number(self.active, 1.0);
        let me = person.id as usize;
        let (Some(heard), Some(links)) = (state.heard.get(me), state.links.get(me)) else { return };
        observation.table(self.heard, |rows| {
            for (from, channel) in heard {
                let link = links.binary_search_by_key(from, |(who, _)| *who);
                let gain = link.map_or(0.0, |place| links[place].1);
                rows.extend([f64::from(*from), f64::from(*channel), gain]);
            }
        });
    }

    fn apply(&self, state: &mut State, actions: &AgentActions<'_>, _: &mut Future) {
        let [power, channel] = self.acts;
        let Params { channels, max_power, .. } = self.params;
        let me = actions.person.id as usize;
        for act in actions.acts() {
            let fits = match act.kind {
                kind if kind == power => (0.0..=max_power).contains(&act.value),
                kind if kind == channel => act.value.fract() == 0.0 && (0.0..f64::from(channels)).contains(&act.value),
                _ => true,
            };
            state.refused += u32::from(!fits);
            if fits {
                state.devices.change(me, |device| match act.kind {
                    kind if kind == power => device.next.1 = act.value,
                    kind if kind == channel => device.next.0 = act.value as u32,
                    _ => device.tells = true,
                });
            }
        }
    }

    fn end_round(&self, state: &mut State, draws: &mut Draws) -> Option<String> {
        state.refused_last = std::mem::take(&mut state.refused);
        let told: Vec<bool> = state.devices.iter().map(|device| device.tells).collect();
        for i in 0..state.devices.len() {
            state.devices.change(i, |device| {
                (device.channel, device.power) = device.next;
                device.tells = false;
            });
        }
        // Who reaches the user of a device is heard by the device, too.
        let Params { loss, content, channels, .. } = self.params;
        for i in 0..state.devices.len() {
            let mut heard = Vec::new();
            for (who, _) in state.links[i].iter().filter(|(who, _)| *who as usize != i && told[*who as usize]) {
                if draws.chance(loss) {
                    continue;
                }
                let channel = match content {
                    Content::True => state.devices[*who as usize].channel,
                    Content::Random => draws.below(u64::from(channels)) as u32,
                };
                heard.push((*who, channel));
            }
            state.heard.set(i, heard);
        }
        state.messages += told.iter().filter(|told| **told).count() as u64;
        self.measure(state);
        state.rounds += 1;
        state.transmitted += state.power;
        state.streak = if state.kept >= 1.0 { state.streak + 1 } else { 0 };
        None
    }
}
