//! What a comparison is asked for.

use polity_kernel::scenario::Budget;
use polity_kernel::tree::Node;

/// The minimum number of pilot items, unless a number is given.
pub const LEAST_PILOT: u32 = 5;

/// The settings of a request, for all methods.
#[derive(Clone, Debug)]
pub struct ArenaRequest {
    /// `provider/model` of all members.
    pub model: String,
    /// Use only the first N items; all if `None`.
    pub limit: Option<u32>,
    /// Seed of the first repeat; each further repeat adds one.
    pub seed: u64,
    /// Runs of each method.
    pub repeats: u32,
    /// Items of the pilot; if `None`, a tenth, but at least [`LEAST_PILOT`].
    pub pilot: Option<u32>,
    /// Whether each run is recomputed from its journal before it counts.
    pub replay: bool,
    /// Changes of the scenario.
    pub edits: Vec<(String, Node)>,
    /// The budget of all runs in this folder together, and of this process in seconds.
    pub budget: Budget,
}
