//! What a scenario may set.

use polity_kernel::Invalid;
use polity_learn::{aggregation, concerns, conservative, improper, joint, multilevel, value_mapping};
use schemars::JsonSchema;
use serde::Deserialize;

/// Which part of the reward a value is about.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// All of it.
    Sum,
    /// What is above 0.
    Positive,
    /// What is below 0, as a positive number.
    Negative,
    /// One channel, by number from 0.
    Channel(usize),
}

/// The increasing map under which values are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Mapping {
    /// None.
    #[default]
    Identity,
    /// scale · ln(value + offset).
    Log {
        /// Above 0.
        scale: f64,
        /// Above 0.
        offset: f64,
    },
    /// The value's size to a power, with its sign.
    Power {
        /// Above 0.
        exponent: f64,
    },
}

/// A part of the reward with values of its own.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Channel {
    /// Which part.
    part: Part,
    /// The weight of its values in the sum.
    #[serde(default = "one")]
    weight: f64,
    /// How they are stored.
    #[serde(default)]
    mapping: Mapping,
}

fn one() -> f64 {
    1.0
}

/// How objectives that discount differently are aggregated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scheme {
    /// The weighted sum of the rewards, with one discount factor.
    Markov,
    /// At each step objectives are weighed as at the first.
    Afresh,
    /// Each objective's weight falls with its discount factor.
    Carried,
}

/// How a baseline is mixed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mixing {
    /// In the first steps of an episode (StepMix).
    Step,
    /// In whole episodes, by lot (EpsMix).
    Episode,
    /// Not at all.
    Never,
    /// Nothing but the baseline.
    Always,
}

/// Who knows whose move in a joint policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// Each seat knows the moves of all seats before it.
    Ordered,
    /// Nobody knows a move.
    Independent,
    /// A learnt graph.
    Graph,
}

/// How edges of the graph are learnt.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Gates {
    /// Rate; 0 or more.
    rate: f64,
    /// What an open gate costs at last; 0 or more.
    penalty: f64,
    /// Round in which the penalty begins to grow.
    from: u32,
    /// Round from which it has its full height; after `from`.
    until: u32,
}

impl Default for Gates {
    fn default() -> Self {
        Gates { rate: 0.5, penalty: 0.0, from: 0, until: 1 }
    }
}

/// Learning from recorded steps.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// Rounds of recording; at least 2, since the steps of a round are seen in the next.
    rounds: u32,
    /// In the recording each next joint action is this many times as likely as the one before; above 0, at most 1.
    skew: f64,
    /// Subtracted from mean rewards, divided by the root of the number of visits; 0 or more.
    pessimism: f64,
}

/// A given controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Controller {
    /// Always this action, by number.
    Always(usize),
    /// The action with the number of the largest feature of the state.
    Largest,
}

/// How a mixture of controllers is learnt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// Policy gradient without a critic.
    Gradient,
    /// Actor and critic.
    ActorCritic,
    /// Natural actor and critic.
    Natural,
    /// Equal shares that never change.
    Fixed,
}

/// One of several learners that control one body.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Concern {
    /// Seats whose moves it makes.
    seats: Vec<usize>,
    /// Features of the state that it sees.
    sees: Vec<usize>,
    /// The weight of each channel in its reward.
    reward: Vec<f64>,
    /// Whether it remembers when others forget.
    #[serde(default)]
    kept: bool,
}

/// What learns.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Algorithm {
    /// Q-learning with values in mapped spaces.
    ValueMapping {
        /// The parts of the reward; together they must be all of it.
        channels: Vec<Channel>,
        /// The rate before the map is the number of visits to the power of minus this; 0 to 1. 0: nothing is averaged before the map.
        #[serde(default = "decay")]
        decay: f64,
        /// The rate of the average under the map; above 0, at most 1.
        #[serde(default = "half")]
        mapped_rate: f64,
        /// The rate under the map falls with visits, too, to the power of minus this; 0 to 1.
        #[serde(default)]
        mapped_decay: f64,
        /// Probability of a uniform action.
        #[serde(default = "half")]
        explore: f64,
        /// Whether each part bootstraps on the action that is best for itself.
        #[serde(default)]
        selfish: bool,
    },
    /// A planner for objectives that discount differently. It needs a known process with episodes.
    Aggregation {
        /// How they are aggregated.
        scheme: Scheme,
        /// The factor of the scheme `markov`; without it, the one of a hundred and one that the objectives like best.
        #[serde(default)]
        discount: Option<f64>,
    },
    /// Optimistic exploration above a floor. It needs a baseline and episodes.
    Conservative {
        /// How the baseline is mixed in.
        mixing: Mixing,
        /// Probability with which some confidence bound may fail; above 0, below 1.
        #[serde(default = "failure")]
        failure: f64,
        /// Episodes that the bounds must hold for.
        episodes: u32,
        /// Factor of the bounds; 1 is what theory asks for.
        #[serde(default = "one")]
        width: f64,
    },
    /// Joint policies of cooperative games. It needs a known process, or `recorded`.
    Joint {
        /// Who knows whose move.
        form: Form,
        /// The step; above 0.
        step: f64,
        /// If not 0, the step is divided by the root of this number of rounds.
        #[serde(default)]
        rounds: u32,
        /// Standard deviation of the first logits.
        #[serde(default)]
        spread: f64,
        /// How edges of a graph are learnt.
        #[serde(default)]
        gates: Gates,
        /// Learning from recorded steps in place of the known process.
        #[serde(default)]
        recorded: Option<Recorded>,
    },
    /// A softmax over given controllers.
    Improper {
        /// The controllers.
        controllers: Vec<Controller>,
        /// How the softmax is learnt.
        rule: Rule,
        /// Its step.
        step: f64,
        /// Step of the critic.
        #[serde(default = "tenth")]
        critic: f64,
        /// Discount factor; 0 to 1.
        #[serde(default = "discount")]
        discount: f64,
    },
    /// Actor and critic for the mean reward.
    MultiLevel {
        /// Steps of each round; 0: a power of two, drawn.
        #[serde(default)]
        steps: u32,
        /// The largest power of two.
        #[serde(default = "most")]
        most: u32,
        /// Step of the actor.
        actor: f64,
        /// Step of the critic and of the mean reward.
        critic: f64,
        /// Whether steps are divided by the root of the sum of squares (AdaGrad).
        #[serde(default)]
        adaptive: bool,
    },
    /// Several Q-learners that control one body.
    Concerns {
        /// The learners.
        concerns: Vec<Concern>,
        /// Rate of learning; 0 to 1.
        rate: f64,
        /// Probability of a uniform move.
        explore: f64,
        /// Round before which all but those kept forget.
        #[serde(default)]
        forget: Option<u32>,
    },
}

fn decay() -> f64 {
    0.7
}

fn half() -> f64 {
    0.5
}

fn failure() -> f64 {
    0.1
}

fn tenth() -> f64 {
    0.1
}

fn discount() -> f64 {
    0.9
}

fn most() -> u32 {
    1024
}

/// A learner's settings, checked.
pub(super) enum Config {
    ValueMapping(value_mapping::Config),
    Aggregation(aggregation::Scheme),
    Conservative(conservative::Config),
    Joint(joint::Config),
    Improper(improper::Config),
    MultiLevel(multilevel::Config),
    Concerns(concerns::Config),
}

fn positive(key: &str, value: f64) -> Result<(), Invalid> {
    Invalid::unless(value > 0.0 && value.is_finite(), key, format!("must be above 0, is {value}"))
}

fn not_negative(key: &str, value: f64) -> Result<(), Invalid> {
    Invalid::unless(value >= 0.0 && value.is_finite(), key, format!("must be 0 or more, is {value}"))
}

impl Channel {
    fn read(self) -> value_mapping::Channel {
        let part = match self.part {
            Part::Sum => value_mapping::Part::Sum,
            Part::Positive => value_mapping::Part::Positive,
            Part::Negative => value_mapping::Part::Negative,
            Part::Channel(number) => value_mapping::Part::Channel(number),
        };
        let mapping = match self.mapping {
            Mapping::Identity => value_mapping::Mapping::Identity,
            Mapping::Log { scale, offset } => value_mapping::Mapping::Log { scale, offset },
            Mapping::Power { exponent } => value_mapping::Mapping::Power { exponent },
        };
        value_mapping::Channel { part, weight: self.weight, mapping }
    }
}

impl Algorithm {
    /// Checks the settings.
    pub(super) fn read(self) -> Result<Config, Invalid> {
        Ok(match self {
            Algorithm::ValueMapping { channels, decay, mapped_rate, mapped_decay, explore, selfish } => {
                Invalid::unless(!channels.is_empty(), "algorithm.channels", "there must be at least one")?;
                Invalid::within(0.0..=1.0, "algorithm.decay", decay)?;
                Invalid::within(0.0..=1.0, "algorithm.mapped_decay", mapped_decay)?;
                Invalid::within(0.0..=1.0, "algorithm.mapped_rate", mapped_rate)?;
                positive("algorithm.mapped_rate", mapped_rate)?;
                Invalid::within(0.0..=1.0, "algorithm.explore", explore)?;
                let channels: Vec<_> = channels.into_iter().map(Channel::read).collect();
                for (i, channel) in channels.iter().enumerate() {
                    let key = format!("algorithm.channels[{i}].mapping");
                    channel.mapping.check(channel.part).map_err(|message| Invalid { key, message })?;
                }
                Config::ValueMapping(value_mapping::Config {
                    channels,
                    decay,
                    mapped_rate,
                    mapped_decay,
                    explore,
                    selfish,
                })
            }
            Algorithm::Aggregation { scheme, discount } => {
                discount.map_or(Ok(()), |discount| Invalid::within(0.0..=1.0, "algorithm.discount", discount))?;
                let markov = scheme == Scheme::Markov || discount.is_none();
                Invalid::unless(markov, "algorithm.discount", "belongs to the scheme `markov`")?;
                Config::Aggregation(match scheme {
                    Scheme::Markov => aggregation::Scheme::Markov { discount },
                    Scheme::Afresh => aggregation::Scheme::Afresh,
                    Scheme::Carried => aggregation::Scheme::Carried,
                })
            }
            Algorithm::Conservative { mixing, failure, episodes, width } => {
                Invalid::within(1e-9..=0.999, "algorithm.failure", failure)?;
                not_negative("algorithm.width", width)?;
                let mixing = match mixing {
                    Mixing::Step => conservative::Mixing::Step,
                    Mixing::Episode => conservative::Mixing::Episode,
                    Mixing::Never => conservative::Mixing::Never,
                    Mixing::Always => conservative::Mixing::Always,
                };
                Config::Conservative(conservative::Config { mixing, failure, episodes, width })
            }
            Algorithm::Joint { form, step, rounds, spread, gates, recorded } => {
                positive("algorithm.step", step)?;
                not_negative("algorithm.spread", spread)?;
                not_negative("algorithm.gates.rate", gates.rate)?;
                not_negative("algorithm.gates.penalty", gates.penalty)?;
                Invalid::unless(gates.until > gates.from, "algorithm.gates.until", "must come after `from`")?;
                if let Some(recorded) = recorded {
                    let key = "algorithm.recorded.rounds";
                    Invalid::unless(recorded.rounds > 1, key, "must be at least 2: steps are seen one round later")?;
                    Invalid::within(1e-6..=1.0, "algorithm.recorded.skew", recorded.skew)?;
                    not_negative("algorithm.recorded.pessimism", recorded.pessimism)?;
                }
                let form = match form {
                    Form::Ordered => joint::Form::Ordered,
                    Form::Independent => joint::Form::Independent,
                    Form::Graph => joint::Form::Graph(joint::Gates {
                        rate: gates.rate,
                        penalty: gates.penalty,
                        from: gates.from,
                        until: gates.until,
                    }),
                };
                let recorded = recorded.map(|recorded| joint::Recorded {
                    rounds: recorded.rounds,
                    skew: recorded.skew,
                    pessimism: recorded.pessimism,
                });
                Config::Joint(joint::Config { form, step, rounds, spread, recorded })
            }
            Algorithm::Improper { controllers, rule, step, critic, discount } => {
                Invalid::unless(!controllers.is_empty(), "algorithm.controllers", "there must be at least one")?;
                not_negative("algorithm.step", step)?;
                Invalid::within(0.0..=1.0, "algorithm.critic", critic)?;
                Invalid::within(0.0..=1.0, "algorithm.discount", discount)?;
                let controller = |controller| match controller {
                    Controller::Always(action) => improper::Controller::Always(action),
                    Controller::Largest => improper::Controller::Largest,
                };
                let controllers = controllers.into_iter().map(controller).collect();
                let rule = match rule {
                    Rule::Gradient => improper::Rule::Gradient,
                    Rule::ActorCritic => improper::Rule::ActorCritic,
                    Rule::Natural => improper::Rule::Natural,
                    Rule::Fixed => improper::Rule::Fixed,
                };
                Config::Improper(improper::Config { controllers, rule, step, critic, discount })
            }
            Algorithm::MultiLevel { steps, most, actor, critic, adaptive } => {
                not_negative("algorithm.actor", actor)?;
                not_negative("algorithm.critic", critic)?;
                Invalid::within(2..=65_536, "algorithm.most", most)?;
                let batches = match steps {
                    0 => multilevel::Batches::Levels { most },
                    steps => multilevel::Batches::Fixed { steps },
                };
                Config::MultiLevel(multilevel::Config { batches, actor, critic, adaptive })
            }
            Algorithm::Concerns { concerns, rate, explore, forget } => {
                Invalid::within(0.0..=1.0, "algorithm.rate", rate)?;
                Invalid::within(0.0..=1.0, "algorithm.explore", explore)?;
                let read = |concern: Concern| concerns::Concern {
                    seats: concern.seats,
                    sees: concern.sees,
                    reward: concern.reward,
                    kept: concern.kept,
                };
                let concerns = concerns.into_iter().map(read).collect();
                Config::Concerns(concerns::Config { concerns, rate, explore, forget })
            }
        })
    }
}
