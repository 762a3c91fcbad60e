//! What a scenario may set.

use polity_games::taxation::Schedule;
use polity_kernel::Invalid;
use polity_kernel::rng::Draws;
use schemars::JsonSchema;
use serde::Deserialize;

/// The distribution of skills: the generalised beta distribution of the second kind. The default was fitted to incomes of the American
/// Community Survey 2023.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Skills {
    /// Its scale, in units of income; above 0.
    scale: f64,
    /// Its shape, the exponent of ratios; 0.5 to 20.
    shape: f64,
    /// The shape of the lower tail; 0.05 to 100.
    lower: f64,
    /// The shape of the upper tail; 0.05 to 100. `shape` times `upper` must be above 1, or there is no mean.
    upper: f64,
}

impl Default for Skills {
    fn default() -> Self {
        Skills { scale: 72_402.781_8, shape: 2.072_107_1, lower: 0.486_518_7, upper: 1.141_039_9 }
    }
}

/// Draws from a gamma distribution with scale 1 (Marsaglia and Tsang 2000).
fn gamma(shape: f64, draws: &mut Draws) -> f64 {
    if shape < 1.0 {
        let scale = libm::pow(draws.open_unit(), 1.0 / shape);
        return gamma(shape + 1.0, draws) * scale;
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = draws.normal();
        let v = (1.0 + c * x) * (1.0 + c * x) * (1.0 + c * x);
        if v > 0.0 && libm::log(draws.open_unit()) < 0.5 * x * x + d - d * v + d * libm::log(v) {
            return d * v;
        }
    }
}

impl Skills {
    /// Draws a skill.
    pub(super) fn draw(&self, draws: &mut Draws) -> f64 {
        let ratio = gamma(self.lower, draws) / gamma(self.upper, draws);
        (self.scale * libm::pow(ratio, 1.0 / self.shape)).clamp(1.0, 1e12)
    }
}

/// What planners are shown of past welfare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Feedback {
    /// That of the last year.
    #[default]
    True,
    /// A placebo: that of a past year that is drawn at random.
    Shuffled,
}

/// Parameters of the world.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Incomes from which brackets begin, the first 0. Default: those of the federal income tax of the United States for single filers
    /// in 2024.
    pub(super) thresholds: Vec<f64>,
    /// The marginal rate of each bracket at the start; 0 to 1. Default: those of the same tax.
    pub(super) rates: Vec<f64>,
    /// Elasticity of income to the share that is kept; 0.01 to 10.
    pub(super) elasticity: f64,
    /// Inequality aversion of welfare; 0 to 10. With 0 welfare is the mean of utilities, with 1 their geometric mean.
    pub(super) aversion: f64,
    /// The distribution of skills.
    pub(super) skills: Skills,
    /// Number of agents, those with the lowest ids, who are planners and do not work.
    pub(super) planners: u32,
    /// Whether workers vote on the planners' proposals. Otherwise that of the first planner becomes law.
    pub(super) vote: bool,
    /// Rounds of work in a tax year.
    pub(super) steps: u32,
    /// Tax years. After the last one the run ends.
    pub(super) years: u32,
    /// What planners are shown of past welfare.
    pub(super) feedback: Feedback,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            thresholds: vec![0.0, 11_600.0, 47_150.0, 100_525.0, 191_950.0, 243_725.0, 609_350.0],
            rates: vec![0.10, 0.12, 0.22, 0.24, 0.32, 0.35, 0.37],
            elasticity: 0.25,
            aversion: 1.0,
            skills: Skills::default(),
            planners: 1,
            vote: false,
            steps: 1,
            years: 100,
            feedback: Feedback::True,
        }
    }
}

impl Params {
    /// Checks what the scenario has set. Returns the law at the start.
    pub(super) fn check(&self, agents: u32) -> Result<Schedule, Invalid> {
        Invalid::within(1..=20, "thresholds", self.thresholds.len())?;
        let named = |key: &'static str| move |message| Invalid { key: key.into(), message };
        let untaxed =
            Schedule::new(self.thresholds.clone(), vec![0.0; self.thresholds.len()]).map_err(named("thresholds"))?;
        let law = untaxed.with_rates(self.rates.clone()).map_err(named("rates"))?;
        Invalid::within(0.01..=10.0, "elasticity", self.elasticity)?;
        Invalid::within(0.0..=10.0, "aversion", self.aversion)?;
        let Skills { scale, shape, lower, upper } = self.skills;
        Invalid::within(1.0..=1e9, "skills.scale", scale)?;
        Invalid::within(0.5..=20.0, "skills.shape", shape)?;
        Invalid::within(0.05..=100.0, "skills.lower", lower)?;
        Invalid::within(0.05..=100.0, "skills.upper", upper)?;
        let message = format!("times `shape` must be above 1, is {}", shape * upper);
        Invalid::unless(shape * upper > 1.0, "skills.upper", message)?;
        Invalid::within(0..=16, "planners", self.planners)?;
        let message = format!("needs more agents than planners ({}), has {agents}", self.planners);
        Invalid::unless(agents > self.planners, "kind", message)?;
        Invalid::unless(!self.vote || self.planners > 0, "vote", "there is no planner whose proposal could win")?;
        Invalid::within(1..=1000, "steps", self.steps)?;
        Invalid::within(1..=100_000, "years", self.years)?;
        Ok(law)
    }
}
