//! What a scenario may set.

use polity_kernel::Invalid;
use schemars::JsonSchema;
use serde::Deserialize;

/// What becomes of the government's acts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// They hold from the next round on.
    #[default]
    Applied,
    /// A placebo: they are announced to all, and nothing else changes.
    Announced,
}

/// Parameters of the world.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Number of firms. Agent 0 is the government, the next are firms, all others are individuals.
    pub(super) firms: u32,
    /// Standard deviation of the log size of firms; 0 to 2.
    pub(super) spread: f64,
    /// Share of individuals who are skilled at the start; 0.01 to 0.99.
    pub(super) skilled: f64,
    /// The wage of the skilled at the start, if that of others is 1; 1.01 to 10.
    pub(super) premium: f64,
    /// Share of individuals of either kind who have work at the start; 0.1 to 1.
    pub(super) employed: f64,
    /// Share of labour and machines in output, the rest being profit; 0.1 to 0.9.
    pub(super) returns: f64,
    /// By what share a wage rises in a round if demand is twice the supply; 0 to 1.
    pub(super) flexibility: f64,
    /// No wage falls below this; 0 to 10.
    pub(super) minimum_wage: f64,
    /// Rounds that training takes; 1 to 100.
    pub(super) course: u32,
    /// Cost of routine work by AI at the start, if the wage of the unskilled is 1; 0.01 to 1000.
    pub(super) ai_cost: f64,
    /// By what share it falls in a round; 0 to 0.5.
    pub(super) decline: f64,
    /// It falls no further than this; 0.01 to 1000.
    pub(super) lowest: f64,
    /// Share of routine work that AI can do; 0 to 0.99.
    pub(super) exposure: f64,
    /// What adoption costs a firm besides, per unit of work, is even from 0 to this; 0 to 10.
    pub(super) hurdle: f64,
    /// By how much of its exposed work a firm can change its adoption in a round; 0.01 to 1.
    pub(super) speed: f64,
    /// What becomes of the government's acts.
    pub(super) policy: Policy,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            firms: 40,
            spread: 0.5,
            skilled: 0.4,
            premium: 1.6,
            employed: 0.95,
            returns: 0.6,
            flexibility: 0.05,
            minimum_wage: 0.9,
            course: 8,
            ai_cost: 1.5,
            decline: 0.03,
            lowest: 0.3,
            exposure: 0.6,
            hurdle: 0.6,
            speed: 0.2,
            policy: Policy::Applied,
        }
    }
}

impl Params {
    pub(super) fn check(&self, agents: u32) -> Result<(), Invalid> {
        Invalid::within(1..=1_000_000, "firms", self.firms)?;
        let message = format!("needs more agents than {} firms and a government, has {agents}", self.firms);
        Invalid::unless(agents > self.firms + 1, "kind", message)?;
        for (key, value, low, high) in [
            ("spread", self.spread, 0.0, 2.0),
            ("skilled", self.skilled, 0.01, 0.99),
            ("premium", self.premium, 1.01, 10.0),
            ("employed", self.employed, 0.1, 1.0),
            ("returns", self.returns, 0.1, 0.9),
            ("flexibility", self.flexibility, 0.0, 1.0),
            ("minimum_wage", self.minimum_wage, 0.0, 10.0),
            ("ai_cost", self.ai_cost, 0.01, 1000.0),
            ("decline", self.decline, 0.0, 0.5),
            ("lowest", self.lowest, 0.01, 1000.0),
            ("exposure", self.exposure, 0.0, 0.99),
            ("hurdle", self.hurdle, 0.0, 10.0),
            ("speed", self.speed, 0.01, 1.0),
        ] {
            Invalid::within(low..=high, key, value)?;
        }
        Invalid::within(1..=100, "course", self.course)
    }
}
