//! What a design expects of its runs, written down before the first of them.

use crate::tree::nearest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A bound on the mean of a metric in an arm, or on its difference from the baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// The arm.
    pub arm: String,
    /// The baseline: the bounds are for the difference from it. Default: they are for the arm's own mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minus: Option<String>,
    /// The metric, by its full name.
    pub metric: String,
    /// Lower bound, itself not allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above: Option<f64>,
    /// Upper bound, itself not allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below: Option<f64>,
    /// Lower bound, itself allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    /// Upper bound, itself allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
    /// Reason or source, for the report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}

impl Expectation {
    /// Returns what an interval says: `Some(true)` if all of it meets every bound, `Some(false)` if all of it is beyond one of them,
    /// `None` otherwise.
    #[must_use]
    pub fn decided(&self, low: f64, high: f64) -> Option<bool> {
        let Expectation { above, below, at_least, at_most, .. } = self;
        let met = above.is_none_or(|bound| low > bound)
            && below.is_none_or(|bound| high < bound)
            && at_least.is_none_or(|bound| low >= bound)
            && at_most.is_none_or(|bound| high <= bound);
        let beyond = above.is_some_and(|bound| high <= bound)
            || below.is_some_and(|bound| low >= bound)
            || at_least.is_some_and(|bound| high < bound)
            || at_most.is_some_and(|bound| low > bound);
        (met || beyond).then_some(met)
    }

    /// Returns the expectation in words.
    #[must_use]
    pub fn words(&self) -> String {
        let of = match &self.minus {
            Some(baseline) => format!("{} minus {baseline}", self.arm),
            None => self.arm.clone(),
        };
        let bounds =
            [("above", self.above), ("below", self.below), ("at least", self.at_least), ("at most", self.at_most)];
        let bounds: Vec<String> = bounds.iter().filter_map(|(word, x)| Some(format!("{word} {}", (*x)?))).collect();
        format!("{}, {of}: {}", self.metric, bounds.join(" and "))
    }

    /// What is wrong with it in a design with these arms, this baseline among them: the key, the message, and what to do. `read`:
    /// whether the design reads its metric.
    pub(super) fn fault(&self, arms: &[&str], baseline: &str, read: bool) -> Option<(&'static str, String, String)> {
        let names = || arms.iter().copied();
        if !names().any(|name| name == self.arm) {
            let near = nearest(&self.arm, names()).map_or(String::new(), |near| format!("; did you mean `{near}`?"));
            let known: Vec<&str> = names().take(12).collect();
            return Some((
                "arm",
                format!("there is no arm `{}`{near}", self.arm),
                format!("arms: {}", known.join(", ")),
            ));
        }
        if let Some(minus) = &self.minus {
            if minus != baseline {
                let message =
                    format!("differences are taken from the baseline, `{baseline}`, but this names `{minus}`");
                return Some(("minus", message, format!("write `minus: {baseline}`, or change `design.baseline`")));
            }
            if self.arm == *minus {
                let help = "name another arm, or remove `minus`".to_owned();
                return Some(("minus", "an arm does not differ from itself".into(), help));
            }
        }
        if !read {
            let message = format!("the design does not read `{}`", self.metric);
            return Some(("metric", message, "add it to `design.metrics`".into()));
        }
        let (low, high) = (self.above.or(self.at_least), self.below.or(self.at_most));
        match (low, high) {
            (None, None) => {
                let help = "add `above`, `below`, `at_least` or `at_most`".to_owned();
                Some(("", "an expectation needs a bound".into(), help))
            }
            (Some(low), Some(high)) if low > high => {
                let message = format!("nothing lies above {low} and below {high}");
                Some(("", message, "exchange the bounds".into()))
            }
            _ => None,
        }
    }
}
