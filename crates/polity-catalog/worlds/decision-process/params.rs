//! What a scenario may set.

use polity_kernel::Invalid;
use polity_kernel::rng::Draws;
use polity_learn::process::{Objective, Process};
use polity_learn::process_library::{self as library, Cell};
use schemars::JsonSchema;
use serde::Deserialize;

/// A cell of a grid with a reward.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reward {
    /// Column, from 0.
    x: usize,
    /// Row, from 0.
    y: usize,
    /// The channel of the reward, from 0.
    #[serde(default)]
    channel: usize,
    /// The reward for entering the cell.
    reward: f64,
    /// Whether the episode ends there.
    #[serde(default)]
    end: bool,
}

/// A decision process. What is drawn is drawn for each agent.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Kind {
    /// A random process: each pair of state and action leads to a few states with random probabilities; rewards are uniform on [0, 1).
    Garnet {
        /// Number of states.
        states: usize,
        /// Number of moves of each seat.
        moves: Vec<usize>,
        /// States that a pair leads to; with probability 0.05 it leads to any state.
        branching: usize,
        /// Channels of reward.
        #[serde(default = "one")]
        channels: usize,
    },
    /// A random cooperative game with traps: the best joint action of a state gives 1, a safe one `safe`, and whoever plays its best move
    /// while another does not costs all `penalty`.
    Climbing {
        /// Number of states.
        states: usize,
        /// Number of moves of each seat; at least 2 each.
        moves: Vec<usize>,
        /// States that a pair leads to.
        branching: usize,
        /// Reward of the safe joint action; each seat that keeps to it adds its share.
        safe: f64,
        /// Reward of a best move that the others do not match.
        penalty: f64,
    },
    /// A chain: move 1 climbs with some probability, move 0 falls back by one state. The last state gives 1, the first `small`.
    Chain {
        /// Number of states.
        states: usize,
        /// Probability that move 1 climbs.
        climb: f64,
        /// Reward of move 0 in the first state.
        small: f64,
    },
    /// A grid with rewards in cells. Episodes begin in the first cell. Moves: up, right, down, left.
    Grid {
        /// Columns.
        width: usize,
        /// Rows.
        height: usize,
        /// Probability of a move to one of the two sides of the one intended.
        #[serde(default)]
        slip: f64,
        /// Channels of reward.
        #[serde(default = "one")]
        channels: usize,
        /// The rewards.
        #[serde(default)]
        rewards: Vec<Reward>,
        /// Further cells for each channel that end the episode with a reward uniform on [0, 1), at places drawn for each agent.
        #[serde(default)]
        scattered: usize,
    },
    /// Two queues and one server; moves: serve the first, serve the second. The reward is minus the share of all places that are taken.
    Queues {
        /// Places of each queue.
        capacity: usize,
        /// Probability of an arrival at each queue in a step.
        arrivals: [f64; 2],
    },
    /// A falling fruit, a body and its arm. Seats: body, arm. Channels: caught; body near the fruit as it lands.
    Catch {
        /// Columns.
        width: usize,
        /// Steps until the fruit lands.
        height: usize,
        /// Whether the arm's moves are the other way round.
        #[serde(default)]
        mirrored: bool,
    },
    /// A process as written.
    Written {
        /// Number of states.
        states: usize,
        /// Number of moves of each seat.
        moves: Vec<usize>,
        /// [state, joint action, next state, probability]. Pairs that are not listed stay where they are.
        transitions: Vec<(u32, u32, u32, f64)>,
        /// [state, joint action, channel, reward]. What is not listed is 0.
        rewards: Vec<(u32, u32, u32, f64)>,
        /// Channels of reward.
        #[serde(default = "one")]
        channels: usize,
        /// States that end an episode.
        #[serde(default)]
        terminal: Vec<u32>,
    },
}

fn one() -> usize {
    1
}

/// How rewards of different times add up.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Horizon {
    /// Episodes of so many steps.
    Episodic {
        /// Steps.
        steps: usize,
        /// Discount factor of each channel; 1 if not given.
        #[serde(default)]
        discounts: Vec<f64>,
    },
    /// Forever, with a discount factor.
    Discounted {
        /// The factor; below 1.
        discount: f64,
    },
    /// The mean reward a step.
    Average,
}

/// A known policy.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// It is the softmax of the best action values divided by this; above 0.
    pub(super) temperature: f64,
    /// The share of its worth that every episode must reach in expectation; 0 to 1.
    pub(super) floor: f64,
}

/// Another task from some round on.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// The round.
    pub(super) round: u32,
    /// The process from then on, of the same size; nothing of it may be drawn.
    pub(super) process: Kind,
}

/// Parameters.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// The process.
    pub(super) process: Kind,
    /// How rewards of different times add up.
    pub(super) objective: Horizon,
    /// The weight of each channel of reward; 1 if not given.
    pub(super) weights: Vec<f64>,
    /// Episodes (of episodic tasks) or steps that are sampled in a round, unless the agent asks for another number.
    pub(super) batch: u32,
    /// The most episodes or steps that an agent may ask for in a round, at least `batch`. A limit keeps minds from asking for far too many.
    pub(super) max_batch: u32,
    /// Standard deviation of the noise of observed rewards.
    pub(super) noise: f64,
    /// Whether agents see the process itself.
    pub(super) known: bool,
    /// A policy that agents know, and a floor below which they must not fall.
    pub(super) baseline: Option<Known>,
    /// Another task from some round on.
    pub(super) change: Option<Change>,
    /// Policies are evaluated in every so many rounds; at least 1.
    pub(super) evaluate: u32,
    /// Whether regret and violations are counted, which evaluates the acting policy in every round.
    pub(super) track: bool,
    /// Gap to the optimum up to which a task counts as solved, as a share of the optimum's size.
    pub(super) tolerance: f64,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            process: Kind::Garnet { states: 4, moves: vec![2], branching: 2, channels: 1 },
            objective: Horizon::Discounted { discount: 0.8 },
            weights: Vec::new(),
            batch: 20,
            max_batch: LONGEST,
            noise: 0.0,
            known: false,
            baseline: None,
            change: None,
            evaluate: 1,
            track: false,
            tolerance: 0.05,
        }
    }
}

/// The most steps of a round.
pub(super) const LONGEST: u32 = 100_000;

impl Kind {
    /// Whether something of it is drawn.
    pub(super) fn drawn(&self) -> bool {
        match self {
            Kind::Garnet { .. } | Kind::Climbing { .. } => true,
            Kind::Grid { scattered, .. } => *scattered > 0,
            _ => false,
        }
    }

    /// Whether each pair leads to every state.
    pub(super) fn dense(&self) -> bool {
        matches!(self, Kind::Garnet { .. } | Kind::Climbing { .. })
    }

    /// Checks what would make the process impossible to build.
    pub(super) fn check(&self, key: &str) -> Result<(), Invalid> {
        let at = |name: &str| format!("{key}.{name}");
        let share = |name: &str, value: f64| Invalid::within(0.0..=1.0, &at(name), value);
        let size = |name: &str, value: usize, least: usize| Invalid::within(least..=2_000, &at(name), value);
        let seats = |moves: &[usize], least: usize| {
            Invalid::within(1..=6, &at("moves"), moves.len())?;
            moves.iter().try_for_each(|moves| size("moves", *moves, least))
        };
        match self {
            Kind::Garnet { states, moves, branching, channels } => {
                size("states", *states, 1)?;
                size("branching", *branching, 1)?;
                size("channels", *channels, 1)?;
                seats(moves, 1)
            }
            Kind::Climbing { states, moves, branching, .. } => {
                size("states", *states, 1)?;
                size("branching", *branching, 1)?;
                seats(moves, 2)
            }
            Kind::Chain { states, climb, .. } => {
                size("states", *states, 2)?;
                share("climb", *climb)
            }
            Kind::Grid { width, height, slip, channels, rewards, scattered } => {
                size("width", *width, 1)?;
                size("height", *height, 1)?;
                size("channels", *channels, 1)?;
                share("slip", *slip)?;
                let cells = width * height;
                let fits = rewards.iter().all(|cell| cell.x < *width && cell.y < *height && cell.channel < *channels);
                Invalid::unless(
                    fits,
                    &at("rewards"),
                    "a cell lies outside of the grid, or its channel does not exist",
                )?;
                let most = cells.saturating_sub(1 + rewards.len());
                Invalid::unless(scattered * channels <= most, &at("scattered"), format!("only {most} cells are free"))
            }
            Kind::Queues { capacity, arrivals } => {
                size("capacity", *capacity, 1)?;
                arrivals.iter().try_for_each(|p| share("arrivals", *p))
            }
            Kind::Catch { width, height, .. } => {
                size("width", *width, 1)?;
                size("height", *height, 1)
            }
            Kind::Written { states, moves, transitions, rewards, channels, terminal } => {
                size("states", *states, 1)?;
                size("channels", *channels, 1)?;
                seats(moves, 1)?;
                let actions = moves.iter().product::<usize>();
                let pair = |state: u32, action: u32| (state as usize) < *states && (action as usize) < actions;
                let fits = transitions.iter().all(|(s, a, to, _)| pair(*s, *a) && (*to as usize) < *states);
                Invalid::unless(fits, &at("transitions"), "a state or an action does not exist")?;
                let fits = rewards.iter().all(|(s, a, channel, _)| pair(*s, *a) && (*channel as usize) < *channels);
                Invalid::unless(fits, &at("rewards"), "a state, an action or a channel does not exist")?;
                let fits = terminal.iter().all(|state| (*state as usize) < *states);
                Invalid::unless(fits, &at("terminal"), "a state does not exist")
            }
        }
    }

    /// The number of states and of joint actions, before anything is built.
    pub(super) fn size(&self) -> (usize, usize) {
        let product = |moves: &[usize]| moves.iter().product();
        match self {
            Kind::Garnet { states, moves, .. }
            | Kind::Climbing { states, moves, .. }
            | Kind::Written { states, moves, .. } => (*states, product(moves)),
            Kind::Chain { states, .. } => (*states, 2),
            Kind::Grid { width, height, .. } => (width * height, 4),
            Kind::Queues { capacity, .. } => ((capacity + 1) * (capacity + 1), 2),
            Kind::Catch { width, height, .. } => ((height + 1) * width * width * 3, 9),
        }
    }

    /// Builds the process.
    pub(super) fn build(&self, draws: &mut Draws) -> Process {
        match self {
            Kind::Garnet { states, moves, branching, channels } => {
                library::garnet(*states, moves, *branching, *channels, draws)
            }
            Kind::Climbing { states, moves, branching, safe, penalty } => {
                library::climbing(*states, moves, *branching, [*safe, *penalty], draws)
            }
            Kind::Chain { states, climb, small } => library::chain(*states, *climb, *small),
            Kind::Grid { width, height, slip, channels, rewards, scattered } => {
                let fixed = rewards.iter().map(|cell| Cell {
                    x: cell.x,
                    y: cell.y,
                    channel: cell.channel,
                    reward: cell.reward,
                    end: cell.end,
                });
                let mut cells: Vec<Cell> = fixed.collect();
                let taken = |cells: &[Cell], place: usize| cells.iter().any(|cell| cell.y * width + cell.x == place);
                let mut free: Vec<usize> = (1..width * height).filter(|place| !taken(&cells, *place)).collect();
                draws.shuffle(&mut free);
                for (i, place) in free.iter().take(scattered * channels).enumerate() {
                    let (x, y) = (place % width, place / width);
                    cells.push(Cell { x, y, channel: i % channels, reward: draws.unit(), end: true });
                }
                library::grid(*width, *height, *slip, *channels, &cells)
            }
            Kind::Queues { capacity, arrivals } => library::queues(*capacity, *arrivals),
            Kind::Catch { width, height, mirrored } => library::catch(*width, *height, *mirrored),
            Kind::Written { states, moves, transitions, rewards, channels, terminal } => {
                library::written(*states, moves, *channels, transitions, rewards, terminal)
            }
        }
    }
}

impl Params {
    pub(super) fn check(&self) -> Result<(), Invalid> {
        self.process.check("process")?;
        Invalid::within(1..=LONGEST, "batch", self.batch)?;
        Invalid::within(self.batch..=LONGEST, "max_batch", self.max_batch)?;
        Invalid::unless(self.evaluate > 0, "evaluate", "must be at least 1")?;
        Invalid::within(0.0..=1.0e6, "noise", self.noise)?;
        Invalid::within(0.0..=1.0, "tolerance", self.tolerance)?;
        if let Some(known) = self.baseline {
            Invalid::within(1e-3..=1e6, "baseline.temperature", known.temperature)?;
            Invalid::within(0.0..=1.0, "baseline.floor", known.floor)?;
        }
        match &self.objective {
            Horizon::Episodic { steps, discounts } => {
                Invalid::within(1..=1_000, "objective.steps", *steps)?;
                discounts.iter().try_for_each(|d| Invalid::within(0.0..=1.0, "objective.discounts", *d))
            }
            Horizon::Discounted { discount } => Invalid::within(0.0..=0.9999, "objective.discount", *discount),
            Horizon::Average => Ok(()),
        }
    }

    /// The objective and the weights, for a number of channels.
    pub(super) fn objective(&self, channels: usize) -> Result<(Objective, Vec<f64>), Invalid> {
        let each = |values: &[f64], key: &str| match values {
            [] => Ok(vec![1.0; channels]),
            values if values.len() == channels && values.iter().all(|value| value.is_finite()) => Ok(values.to_vec()),
            values => Err(Invalid {
                key: key.into(),
                message: format!("{} numbers do not fit {channels} channels of reward", values.len()),
            }),
        };
        let objective = match &self.objective {
            Horizon::Episodic { steps, discounts } => {
                Objective::Episodic { horizon: *steps, discounts: each(discounts, "objective.discounts")? }
            }
            Horizon::Discounted { discount } => Objective::Discounted { discount: *discount },
            Horizon::Average => Objective::Average,
        };
        Ok((objective, each(&self.weights, "weights")?))
    }
}
