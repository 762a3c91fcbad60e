//! What a scenario may set.

use polity_kernel::Invalid;
use polity_kernel::scenario::TextSource;
use schemars::JsonSchema;
use serde::Deserialize;

/// Parameters of the world.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// What every agent does.
    pub(super) study: Kind,
}

/// What every agent does, with its own random numbers.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Learns a Gaussian mixture from a stream of points, in one pass.
    GaussianStream(Stream),
    /// Learns digits in one pass, and tells others apart.
    Digits(Digits),
    /// Labels short trajectories of two decision processes.
    DecisionProcesses(Processes),
    /// Follows a hidden state with two particle filters.
    ParticleFilter(Filter),
    /// Steers a vehicle that starts in one of three places to a target, by a convex program.
    Steering(Steering),
    /// Fits a mixture of logistic experts with a softmax gate to more and more points.
    SoftmaxGating(Gating),
    /// Learns a classifier with a mixture of experts of limited capacity, and answers queries whose batch somebody else fills.
    ExpertBuffers(Buffers),
}

impl Default for Kind {
    fn default() -> Self {
        Kind::GaussianStream(Stream::default())
    }
}

/// How a Gaussian mixture keeps its components.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// As precision matrices, by rank-one updates.
    #[default]
    Precision,
    /// As covariance matrices, factored for every point.
    Covariance,
}

/// What grows from round to round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Grows {
    /// The points of a round: it has 1, 2, 3, ... times `points`, and every round is a new run.
    Points,
    /// The dimensions: 1, 2, 3, ... times `dimensions`.
    Dimensions,
    /// The clusters, and so the components: 1, 2, 3, ... times `clusters`.
    Clusters,
}

/// A stream of points of distant clusters, each normal with correlated dimensions.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Stream {
    /// Dimensions of a point; 1 to 64.
    pub(super) dimensions: u32,
    /// Clusters, and the most components; 1 to 32.
    pub(super) clusters: u32,
    /// Points of a round; 1 to 10000.
    pub(super) points: u32,
    /// Rounds; 1 to 1000.
    pub(super) rounds: u32,
    /// How components are kept.
    pub(super) form: Form,
    /// What grows from round to round. By default nothing, and the mixture goes on learning.
    pub(super) grows: Option<Grows>,
}

impl Default for Stream {
    fn default() -> Self {
        Stream { dimensions: 2, clusters: 2, points: 5, rounds: 10, form: Form::Precision, grows: None }
    }
}

impl Stream {
    pub(super) fn check(&self) -> Result<(), Invalid> {
        Invalid::within(1..=64, "study.gaussian-stream.dimensions", self.dimensions)?;
        Invalid::within(1..=32, "study.gaussian-stream.clusters", self.clusters)?;
        Invalid::within(1..=10_000, "study.gaussian-stream.points", self.points)?;
        Invalid::within(1..=1000, "study.gaussian-stream.rounds", self.rounds)?;
        let largest = |grows: Grows, value: u32| if self.grows == Some(grows) { value * self.rounds } else { value };
        let most = largest(Grows::Dimensions, self.dimensions);
        let message = format!("at most 256 dimensions in the last round, not {most}");
        Invalid::unless(most <= 256, "study.gaussian-stream.rounds", message)?;
        let most = largest(Grows::Clusters, self.clusters);
        let message = format!("at most 64 clusters in the last round, not {most}");
        Invalid::unless(most <= 64, "study.gaussian-stream.rounds", message)
    }
}

/// A set of labelled images: which part is learned, and how.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Digits {
    /// The images: {file: NAME}, or the text itself. A line has a label from 0 to 9 and the pixels, each from `0` to `g` (16).
    pub(super) images: TextSource,
    /// Share of the images that is learned; the others are told apart. Above 0, below 1. Which ones is drawn for each agent.
    pub(super) learned: f64,
    /// How components are kept.
    pub(super) form: Form,
    /// Maximum number of components; 1 to 100.
    pub(super) components: u32,
    /// Probability with which an image of a known component is taken for a new one, 0 to 1; at 0 there is one component.
    pub(super) novelty: f64,
    /// Standard deviation of a new component in each pixel, whose range is 1.
    pub(super) pixel: f64,
    /// Standard deviation of a new component in each of the ten entries for the label, which are 0 or 1.
    pub(super) label: f64,
    /// A placebo: labels are dealt out anew among the images that are learned.
    pub(super) shuffled: bool,
}

impl Default for Digits {
    fn default() -> Self {
        Digits {
            images: TextSource::Here(String::new()),
            learned: 0.667,
            form: Form::Precision,
            components: 10,
            novelty: 0.001,
            pixel: 0.3,
            label: 0.1,
            shuffled: false,
        }
    }
}

impl Digits {
    pub(super) fn check(&self) -> Result<(), Invalid> {
        let above = |key: &str, value: f64| {
            let fits = value > 0.0 && value.is_finite();
            Invalid::unless(fits, &format!("study.digits.{key}"), format!("must be above 0, is {value}"))
        };
        above("pixel", self.pixel)?;
        above("label", self.label)?;
        above("learned", self.learned)?;
        Invalid::within(0.0..=0.999, "study.digits.learned", self.learned)?;
        Invalid::within(1..=100, "study.digits.components", self.components)?;
        Invalid::within(0.0..=1.0, "study.digits.novelty", self.novelty)
    }
}

/// How the labels of trajectories are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// By clustering in subspaces, then EM.
    #[default]
    Spectral,
    /// A placebo of it: the clusters are dealt out anew among the trajectories.
    Placebo,
    /// By EM from random starts; the accuracy is the mean over `restarts`.
    Random,
    /// By EM from the true labels: an upper bound.
    Truth,
}

/// Short trajectories in a gridworld of 8 by 8 cells, of one of two decision processes with the same policy.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Processes {
    /// Trajectories; 6 to 3000. The time grows with their square.
    pub(super) trajectories: u32,
    /// Steps of a trajectory; 8 to 1000.
    pub(super) steps: u32,
    /// Weight of what the two processes differ in: the pull to the best, or to the worst neighbour; 0 to 1.
    pub(super) pull: f64,
    /// How the labels are found.
    pub(super) start: Start,
    /// Trajectories are similar if their statistic is below this.
    pub(super) threshold: f64,
    /// Starts of EM, if it starts at random; 1 to 100.
    pub(super) restarts: u32,
}

impl Default for Processes {
    fn default() -> Self {
        Processes { trajectories: 1000, steps: 60, pull: 0.6, start: Start::Spectral, threshold: 0.3, restarts: 3 }
    }
}

impl Processes {
    pub(super) fn check(&self) -> Result<(), Invalid> {
        Invalid::within(6..=3000, "study.decision-processes.trajectories", self.trajectories)?;
        Invalid::within(8..=1000, "study.decision-processes.steps", self.steps)?;
        Invalid::within(0.0..=1.0, "study.decision-processes.pull", self.pull)?;
        Invalid::within(0.0..=2.0, "study.decision-processes.threshold", self.threshold)?;
        Invalid::within(1..=100, "study.decision-processes.restarts", self.restarts)
    }
}

/// A hidden state of the nonlinear growth model, followed by a bootstrap filter and by one with a fitted proposal.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Filter {
    /// Particles of each filter; 2 to 10000.
    pub(super) particles: u32,
    /// Steps, one a round; 1 to 1000.
    pub(super) steps: u32,
    /// Variance of the noise of states.
    pub(super) state_noise: f64,
    /// Variance of the noise of observations.
    pub(super) observation_noise: f64,
    /// Experts of the proposal; 1 to 20.
    pub(super) experts: u32,
    /// Iterations of online EM at each step; 0 to 100.
    pub(super) iterations: u32,
    /// Samples of each iteration; 1 to 10000.
    pub(super) samples: u32,
    /// Weight of the model's own kernel in the proposal; 0 to 1.
    pub(super) defence: f64,
    /// A placebo: the fit does the same work but does not see the observation.
    pub(super) blind: bool,
    /// Whether a filter on a grid runs beside them, from which errors are measured.
    pub(super) reference: bool,
}

impl Default for Filter {
    fn default() -> Self {
        Filter {
            particles: 100,
            steps: 50,
            state_noise: 10.0,
            observation_noise: 1.0,
            experts: 4,
            iterations: 10,
            samples: 100,
            defence: 0.1,
            blind: false,
            reference: true,
        }
    }
}

impl Filter {
    pub(super) fn check(&self) -> Result<(), Invalid> {
        Invalid::within(2..=10_000, "study.particle-filter.particles", self.particles)?;
        Invalid::within(1..=1000, "study.particle-filter.steps", self.steps)?;
        Invalid::within(0.01..=100.0, "study.particle-filter.state_noise", self.state_noise)?;
        Invalid::within(0.01..=100.0, "study.particle-filter.observation_noise", self.observation_noise)?;
        Invalid::within(1..=20, "study.particle-filter.experts", self.experts)?;
        Invalid::within(0..=100, "study.particle-filter.iterations", self.iterations)?;
        Invalid::within(1..=10_000, "study.particle-filter.samples", self.samples)?;
        Invalid::within(0.0..=1.0, "study.particle-filter.defence", self.defence)
    }
}

/// How the component whose controls an agent follows is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Chosen {
    /// By its posterior probability, given the first state.
    #[default]
    Posterior,
    /// A placebo: by its weight, whatever the first state is.
    Prior,
}

/// A vehicle in the plane between two walls: position, velocity, acceleration as control. It starts from a mixture of three normal distributions and
/// must end in one; every agent is a run of the same plan.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Steering {
    /// Steps, one a round; 10 to 30.
    pub(super) steps: u32,
    /// Probability with which a vehicle may be beyond a wall, at each step, and likewise an acceleration be too large; above 0, below 1. From 0.5
    /// on there are no such constraints.
    pub(super) risk: f64,
    /// How the component whose controls an agent follows is chosen.
    pub(super) component: Chosen,
}

impl Default for Steering {
    fn default() -> Self {
        Steering { steps: 15, risk: 0.02, component: Chosen::Posterior }
    }
}

impl Steering {
    pub(super) fn check(&self) -> Result<(), Invalid> {
        Invalid::within(10..=30, "study.steering.steps", self.steps)?;
        Invalid::within(0.0001..=0.999, "study.steering.risk", self.risk)
    }
}

/// What the gate sees of the input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GateInput {
    /// The input.
    #[default]
    Plain,
    /// Its hyperbolic tangent.
    Modified,
}

/// Two true logistic experts, of which the first is fitted by two. Each round has ten times as many points, and is a new run.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Gating {
    /// The slope of the first expert's logit; at 0 it vanishes. -3 to 3.
    pub(super) slope: f64,
    /// What the gate sees.
    pub(super) gate: GateInput,
    /// The first round has 10 to this power points; 3 to 12.
    pub(super) first: u32,
    /// Rounds; 2 to 8.
    pub(super) rounds: u32,
    /// Standard deviation of what the start of the fit is moved from the truth; 0 to 1.
    pub(super) spread: f64,
    /// Iterations of the fit; 1 to 10000.
    pub(super) iterations: u32,
}

impl Default for Gating {
    fn default() -> Self {
        Gating { slope: 2.0, gate: GateInput::Plain, first: 6, rounds: 5, spread: 0.1, iterations: 300 }
    }
}

impl Gating {
    pub(super) fn check(&self) -> Result<(), Invalid> {
        Invalid::within(-3.0..=3.0, "study.softmax-gating.slope", self.slope)?;
        Invalid::within(3..=12, "study.softmax-gating.first", self.first)?;
        Invalid::within(2..=8, "study.softmax-gating.rounds", self.rounds)?;
        Invalid::within(0.0..=1.0, "study.softmax-gating.spread", self.spread)?;
        Invalid::within(1..=10_000, "study.softmax-gating.iterations", self.iterations)
    }
}

/// Whose queries are in a batch with the victim's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Others {
    /// Those of an attacker, which come first.
    #[default]
    Attacker,
    /// Those of other users, which are drawn like the victim's and come first.
    Users,
    /// None.
    None,
    /// Queries drawn at random from the attacker's and three times as many of other users, in random order.
    Mixed,
}

/// A classifier with a mixture of experts of limited capacity. A victim's query is answered in a batch with others.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Buffers {
    /// Experts; 2 to 32.
    pub(super) experts: u32,
    /// Queries of a batch; 2 to 64.
    pub(super) batch: u32,
    /// The most queries that an expert serves, as a multiple of its share of a batch; above 0, at most 32.
    pub(super) capacity_factor: f64,
    /// Whose queries are in a batch with the victim's.
    pub(super) others: Others,
    /// Changes of a query that the attacker tries; 0 to 10,000.
    pub(super) tries: u32,
    /// A placebo: the attacker aims at an expert that does not serve the victim, with the same work.
    pub(super) misled: bool,
    /// A placebo: the classifier learns classes that are dealt out anew among the points.
    pub(super) shuffled: bool,
    /// Queries of victims, each with a batch of its own; 1 to 10,000.
    pub(super) victims: u32,
}

impl Default for Buffers {
    fn default() -> Self {
        Buffers {
            experts: 4,
            batch: 16,
            capacity_factor: 2.0,
            others: Others::Attacker,
            tries: 50,
            misled: false,
            shuffled: false,
            victims: 20,
        }
    }
}

impl Buffers {
    pub(super) fn check(&self) -> Result<(), Invalid> {
        Invalid::within(2..=32, "study.expert-buffers.experts", self.experts)?;
        Invalid::within(2..=64, "study.expert-buffers.batch", self.batch)?;
        let message = format!("must be above 0 and at most 32, is {}", self.capacity_factor);
        Invalid::unless(
            self.capacity_factor > 0.0 && self.capacity_factor <= 32.0,
            "study.expert-buffers.capacity_factor",
            message,
        )?;
        Invalid::within(0..=10_000, "study.expert-buffers.tries", self.tries)?;
        Invalid::within(1..=10_000, "study.expert-buffers.victims", self.victims)
    }
}
