//! Tables of a sweep as the report reads them.

use polity_store::tables::ColumnData;

/// The columns of a table by name.
pub(super) type Columns = Vec<(String, ColumnData)>;

/// A row of the table of contrasts.
pub(super) struct Contrast {
    pub factor: Option<String>,
    pub level: String,
    pub reference: String,
    pub metric: String,
    pub difference: f64,
    pub interval: Option<(f64, f64)>,
    pub n: String,
    pub verdict: String,
}

impl Contrast {
    /// What is subtracted from what.
    pub fn name(&self) -> String {
        let factor = self.factor.as_ref().map_or(String::new(), |factor| format!("{factor}: "));
        format!("{factor}{} minus {}", self.level, self.reference)
    }
}

/// What is said where arms ran the same.
pub(super) fn cannot_differ(simulated: bool) -> String {
    let why = if simulated {
        "; simulated models do not read prompts, so arms that differ in words alone are equal"
    } else {
        ""
    };
    format!("ran the same: no value differs in any seed{why}")
}

pub(super) fn texts(columns: &Columns, name: &str) -> Vec<Option<String>> {
    columns.iter().find(|(n, _)| n == name).map(|(_, data)| data.texts()).unwrap_or_default()
}

pub(super) fn numbers(columns: &Columns, name: &str) -> Vec<Option<f64>> {
    columns.iter().find(|(n, _)| n == name).map(|(_, data)| data.numbers()).unwrap_or_default()
}
