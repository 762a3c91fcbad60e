//! What differs between two runs.

use super::App;
use super::overview::thinned;
use super::problem::Answer;
use polity_driver::results;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};

/// Two runs.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pair {
    pub a: String,
    pub b: String,
}

/// Their differences.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Difference {
    /// The last round up to which all is the same.
    pub same_until: Option<u32>,
    /// The first round whose digest differs.
    pub first_different: Option<u32>,
    pub scenario: Vec<Json>,
    pub metrics: Vec<Json>,
}

pub(crate) fn diff(app: &App, pair: &Pair) -> Answer<Difference> {
    let open = |id: &str| -> Answer<_> {
        let folder = app.catalog.run(id)?;
        Ok(results::of_run(app.disk.as_ref(), &folder)?)
    };
    let (a, b) = (open(&pair.a)?, open(&pair.b)?);
    let chains = |run: &results::Run<'_>| -> Answer<Vec<Option<String>>> {
        let table = run.tables.closed("rounds", &["chain"], usize::MAX)?;
        Ok(table.first().map(|(_, data)| data.texts()).unwrap_or_default())
    };
    let (of_a, of_b) = (chains(&a)?, chains(&b)?);
    let same = of_a.iter().zip(&of_b).take_while(|(a, b)| a == b).count() as u32;
    let longest = of_a.len().max(of_b.len()) as u32;
    let mut scenario = Vec::new();
    differing("", &a.manifest.scenario, &b.manifest.scenario, &mut scenario);
    let (mut of_a, mut of_b) = (a.tables.metrics()?, b.tables.metrics()?);
    let names: BTreeSet<String> = of_a.keys().chain(of_b.keys()).cloned().collect();
    let take = |of: &mut BTreeMap<String, Vec<(u32, f64)>>, name: &str| thinned(of.remove(name).unwrap_or_default());
    let metrics =
        names.iter().map(|name| json!({ "name": name, "a": take(&mut of_a, name), "b": take(&mut of_b, name) }));
    Ok(Difference {
        same_until: same.checked_sub(1),
        first_different: (same < longest).then_some(same),
        metrics: metrics.collect(),
        scenario,
    })
}

fn differing(path: &str, a: &Json, b: &Json, found: &mut Vec<Json>) {
    match (a, b) {
        (Json::Object(a), Json::Object(b)) => {
            let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                differing(&path, a.get(key).unwrap_or(&Json::Null), b.get(key).unwrap_or(&Json::Null), found);
            }
        }
        (Json::Array(a), Json::Array(b)) if a.len() == b.len() => {
            for (i, (a, b)) in a.iter().zip(b).enumerate() {
                differing(&format!("{path}[{i}]"), a, b, found);
            }
        }
        (a, b) if a == b => {}
        (a, b) => found.push(json!({ "path": path, "a": a, "b": b })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_differ_are_named_by_their_path() {
        let (a, b) = (json!({"w": {"x": 1, "y": 2}, "l": [1, 2]}), json!({"w": {"x": 1, "z": 2}, "l": [1, 3]}));
        let mut found = Vec::new();
        differing("", &a, &b, &mut found);
        let paths: Vec<&Json> = found.iter().map(|found| &found["path"]).collect();
        assert_eq!(paths, ["l[1]", "w.y", "w.z"]);
    }
}
