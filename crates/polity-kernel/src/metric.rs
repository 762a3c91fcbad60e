//! Metrics: numbers that describe a round, folded over blocks of agents and merged in a fixed tree.

use crate::tree::Invalid;
use crate::{Bug, Plain, tree_reduce};
use serde::de::DeserializeOwned;
use std::any::Any;

/// What a metric measures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Source<'a> {
    /// Name of the quantity.
    pub name: &'a str,
    /// Its smallest and largest sensible value, if the world declares them.
    pub range: Option<(f64, f64)>,
    /// The further quantities of a joint metric ([`Metric::JOINT`]).
    pub others: &'a [Source<'a>],
    /// The groups of agents of a joint metric. None: agents are not grouped.
    pub groups: &'a [String],
}

/// One or more numbers that describe a quantity over all agents.
/// ```
/// use polity_kernel::metric::{Metric, Source};
/// use polity_kernel::registry::{LeafFiles, Registry};
/// use polity_kernel::tree::Invalid;
///
/// /// What a scenario may set: `{kind: share-above, of: opinion, bar: 0.5}`.
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct ShareAbove {
///     bar: f64,
/// }
///
/// impl Metric for ShareAbove {
///     const NAME: &'static str = "share-above";
///     const SUMMARY: &'static str = "Share of agents above a bar";
///     type Params = ShareAbove;
///     type Fold = (u64, u64); // Agents above the bar, agents.
///
///     fn open(params: ShareAbove, of: &Source<'_>) -> Result<Self, Invalid> {
///         let (low, high) = of.range.unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
///         Invalid::within(low..=high, "bar", params.bar)?;
///         Ok(params)
///     }
///     fn fold(&self, values: &[f64]) -> (u64, u64) {
///         (values.iter().filter(|value| **value > self.bar).count() as u64, values.len() as u64)
///     }
///     fn merge(&self, left: (u64, u64), right: (u64, u64)) -> (u64, u64) {
///         (left.0 + right.0, left.1 + right.1)
///     }
///     fn finish(&self, (above, all): (u64, u64), write: &mut dyn FnMut(&str, f64)) {
///         if all > 0 {
///             write("", above as f64 / all as f64);
///         }
///     }
/// }
///
/// let metric = ShareAbove::open(ShareAbove { bar: 0.5 }, &Source { name: "opinion", range: Some((0.0, 1.0)), ..Source::default() })?;
/// let mut found = None;
/// metric.finish(metric.fold(&[0.2, 0.7, 0.9, 0.4]), &mut |_, share| found = Some(share));
/// assert_eq!(found, Some(0.5));
///
/// let mut registry = Registry::new();
/// registry.metric::<ShareAbove>(LeafFiles::default());
/// assert_eq!(registry.metrics()[0].name, "share-above");
/// # Ok::<(), Invalid>(())
/// ```
pub trait Metric: Send + Sync + Sized + 'static {
    /// The name a scenario uses; also the name of the leaf's folder.
    const NAME: &'static str;
    /// One line for lists.
    const SUMMARY: &'static str;
    /// Whether it describes several quantities of the agents together. It is then folded over rows: of each agent the values of all
    /// quantities and, if agents are grouped, the number of the agent's group.
    const JOINT: bool = false;
    /// What a scenario may set, besides `of` and `every`.
    type Params: DeserializeOwned + schemars::JsonSchema;
    /// What a run of agents is folded into.
    type Fold: Plain;

    /// Opens the metric; or returns which parameter does not fit.
    fn open(params: Self::Params, source: &Source<'_>) -> Result<Self, Invalid>;
    /// Folds the values of at most one block of agents, in order of agent; of a joint metric row by row.
    fn fold(&self, values: &[f64]) -> Self::Fold;
    /// Joins the folds of neighbouring runs of agents.
    fn merge(&self, left: Self::Fold, right: Self::Fold) -> Self::Fold;
    /// Writes the results: (suffix, value). The suffix is empty for a metric with one result. A result that does not exist (the
    /// mean of no agents) is left out.
    fn finish(&self, fold: Self::Fold, write: &mut dyn FnMut(&str, f64));
}

pub(crate) type Fold = Box<dyn Any + Send + Sync>;

/// A metric with its type erased. Called once per block.
pub(crate) trait MetricHost: Send + Sync {
    fn is_joint(&self) -> bool;
    fn fold(&self, values: &[f64]) -> Fold;
    fn encode(&self, fold: &Fold) -> Result<Vec<u8>, Bug>;
    fn decode(&self, bytes: &[u8]) -> Result<Fold, Bug>;
    fn finish(&self, folds: Vec<Fold>, write: &mut dyn FnMut(&str, f64)) -> Result<(), Bug>;
}

pub(crate) struct Host<M: Metric>(pub M);

impl<M: Metric> MetricHost for Host<M> {
    fn is_joint(&self) -> bool {
        M::JOINT
    }

    fn fold(&self, values: &[f64]) -> Fold {
        Box::new(self.0.fold(values))
    }

    fn encode(&self, fold: &Fold) -> Result<Vec<u8>, Bug> {
        let fold: &M::Fold = fold.downcast_ref().ok_or_else(|| Bug::internal("a fold is of another metric's type"))?;
        postcard::to_allocvec(fold).map_err(|e| Bug::internal(format!("metric `{}`: {e}", M::NAME)))
    }

    fn decode(&self, bytes: &[u8]) -> Result<Fold, Bug> {
        let fold: M::Fold =
            postcard::from_bytes(bytes).map_err(|e| Bug::Transport(format!("metric `{}`: {e}", M::NAME)))?;
        Ok(Box::new(fold))
    }

    fn finish(&self, folds: Vec<Fold>, write: &mut dyn FnMut(&str, f64)) -> Result<(), Bug> {
        let mut typed = Vec::with_capacity(folds.len());
        for fold in folds {
            typed.push(*fold.downcast::<M::Fold>().map_err(|_| Bug::internal("a fold is of another metric's type"))?);
        }
        let all = tree_reduce(typed, |a, b| self.0.merge(a, b)).unwrap_or_else(|| self.0.fold(&[]));
        self.0.finish(all, write);
        Ok(())
    }
}
