//! Reports of sweeps and comparisons: what many runs show together.

use super::App;
use super::problem::{Answer, Problem};
use axum::http::StatusCode;
use polity_driver::sweep::is_sweep;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Name of a report's file.
pub(crate) const REPORT_FILE: &str = "report.html";

/// A sweep or comparison with a report.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Report {
    pub id: String,
    /// `sweep` or `comparison`.
    pub kind: &'static str,
}

/// All reports in the folder that is served.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Reports {
    pub reports: Vec<Report>,
}

/// Which report.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Wanted {
    pub id: String,
}

/// The page of a report. It stands on its own: no scripts and no files beside it.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Page {
    pub html: String,
}

pub(crate) fn reports(app: &App) -> Answer<Reports> {
    let found = app.catalog.reports();
    let kind = |folder| if is_sweep(app.disk.as_ref(), folder) { "sweep" } else { "comparison" };
    let reports = found.iter().map(|(id, folder)| Report { id: id.clone(), kind: kind(folder.as_path()) }).collect();
    Ok(Reports { reports })
}

pub(crate) fn page(app: &App, wanted: &Wanted) -> Answer<Page> {
    let found = app.catalog.reports();
    let folder = found.get(&wanted.id).ok_or_else(|| {
        Problem::absent(format!("there is no report `{}` in {}", wanted.id, app.catalog.root().display()))
    })?;
    let path = folder.join(REPORT_FILE);
    let html = std::fs::read_to_string(&path).map_err(|error| {
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, format!("{} cannot be read: {error}", path.display()))
    })?;
    Ok(Page { html })
}
