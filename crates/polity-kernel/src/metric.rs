//! Metrics: numbers that describe a round, folded over blocks of agents and merged in a fixed tree.

use crate::tree::Invalid;
use crate::{Bug, Plain, tree_reduce};
use serde::de::DeserializeOwned;
use std::any::Any;

/// What a metric measures.
#[derive(Clone, Debug, PartialEq)]
pub struct Source<'a> {
    /// Name of the quantity.
    pub name: &'a str,
    /// Its smallest and largest sensible value, where the world declares them.
    pub range: Option<(f64, f64)>,
}

/// A number, or several, that describe a quantity over all agents.
pub trait Metric: Send + Sync + Sized + 'static {
    /// The name a scenario uses; also the name of the leaf's folder.
    const NAME: &'static str;
    /// One line for lists.
    const SUMMARY: &'static str;
    /// What a scenario may set, besides `of` and `every`.
    type Params: DeserializeOwned + schemars::JsonSchema;
    /// What a run of agents is folded to.
    type Fold: Plain;

    /// Opens the metric, or says which parameter does not fit.
    fn open(params: Self::Params, source: &Source<'_>) -> Result<Self, Invalid>;
    /// Folds the values of at most one block of agents, in order of agent.
    fn fold(&self, values: &[f64]) -> Self::Fold;
    /// Joins the folds of neighbouring runs of agents.
    fn merge(&self, left: Self::Fold, right: Self::Fold) -> Self::Fold;
    /// Writes the results: (suffix, value); the suffix is empty for a metric with one result. A result that does not exist (the mean
    /// of nobody) is left out.
    fn finish(&self, fold: Self::Fold, write: &mut dyn FnMut(&str, f64));
}

pub(crate) type Fold = Box<dyn Any + Send + Sync>;

/// A metric with its type erased; called once a block.
pub(crate) trait MetricHost: Send + Sync {
    fn fold(&self, values: &[f64]) -> Fold;
    fn encode(&self, fold: &Fold) -> Result<Vec<u8>, Bug>;
    fn decode(&self, bytes: &[u8]) -> Result<Fold, Bug>;
    fn finish(&self, folds: Vec<Fold>, write: &mut dyn FnMut(&str, f64)) -> Result<(), Bug>;
}

pub(crate) struct Host<M: Metric>(pub M);

impl<M: Metric> MetricHost for Host<M> {
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
