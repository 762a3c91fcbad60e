//! Claims of published systems, as `polity systems check` found them.

use super::App;
use super::problem::{Answer, Problem};
use axum::http::StatusCode;
use polity_driver::systems::CLAIMS_FILE;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;

/// Claims by system.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Systems {
    pub systems: Vec<Json>,
}

/// Reads the claims of the check that the folder holds; none if it holds none.
pub(crate) fn systems(app: &App) -> Answer<Systems> {
    let path = app.catalog.root().join(CLAIMS_FILE);
    let text = match std::fs::read_to_string(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Systems { systems: Vec::new() }),
        read => read.map_err(|error| broken(&path, &error.to_string()))?,
    };
    let checked: Json = serde_json::from_str(&text).map_err(|error| broken(&path, &error.to_string()))?;
    let mut by_system: BTreeMap<String, Vec<Json>> = BTreeMap::new();
    for claim in checked.get("claims").and_then(Json::as_array).into_iter().flatten() {
        let text = |key: &str| claim.get(key).and_then(Json::as_str).unwrap_or_default().to_string();
        let number = |key: &str| claim.get(key).and_then(Json::as_f64).map_or("unknown".into(), |x| format!("{x:.3}"));
        let detail = format!(
            "expected {}; measured {} ({} to {}, 95 %). {}",
            text("expected"),
            number("measured"),
            number("low"),
            number("high"),
            text("note")
        );
        by_system.entry(text("system")).or_default().push(json!({
            "id": text("claim"), "text": text("text"), "verdict": text("verdict"), "detail": detail.trim_end(),
            "simulated": claim.get("simulated"),
        }));
    }
    let systems = by_system.into_iter().map(|(name, claims)| json!({ "name": name, "title": name, "claims": claims }));
    Ok(Systems { systems: systems.collect() })
}

fn broken(path: &std::path::Path, why: &str) -> Problem {
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, format!("{} cannot be read: {why}", path.display()))
}
