//! Tables of a sweep as the report reads them.

use polity_kernel::scenario::Factor;
use polity_store::tables::ColumnData;

/// The columns of a table by name.
pub(super) type Columns = Vec<(String, ColumnData)>;

/// A row of the table of contrasts.
pub(super) struct Contrast {
    pub factor: Option<String>,
    pub level: String,
    pub reference: String,
    /// Of an interaction: the other factor, its level, and that level's reference.
    pub with: Option<[String; 3]>,
    pub metric: String,
    pub difference: f64,
    pub interval: Option<(f64, f64)>,
    pub n: String,
    pub p_holm: Option<f64>,
    pub verdict: String,
    pub aliases: Option<String>,
}

impl Contrast {
    /// What is subtracted from what.
    pub fn name(&self) -> String {
        let with = self.with.as_ref().map(|with| with.each_ref().map(String::as_str));
        let words = words(self.factor.as_deref(), &self.level, &self.reference, with);
        self.aliases.as_ref().map_or(words.clone(), |aliases| format!("{words} (aliased with {aliases})"))
    }
}

/// A contrast in words: what is subtracted from what. `with`: of an interaction, the other factor, its level, and that level's reference.
pub(super) fn words(factor: Option<&str>, level: &str, reference: &str, with: Option<[&str; 3]>) -> String {
    match (factor.map(Factor::words), with) {
        (Some(factor), Some([other, at, from])) => {
            format!("{factor} {level} minus {reference}, at {} {at} minus at {from}", Factor::words(other))
        }
        (Some(factor), None) => format!("{factor}: {level} minus {reference}"),
        (None, _) => format!("{level} minus {reference}"),
    }
}

/// What is said where arms ran the same.
pub(super) fn cannot_differ(simulated: bool) -> String {
    let why = if simulated {
        "; simulated models do not read prompts, so arms that differ in words alone are equal. A model that reads \
         (--model openai/NAME) shows whether they differ"
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
