//! What a design expects, judged by the intervals of its sweep: on the terminal and in the report.

use polity_arena::report::{DataTable, Section, measured};
use polity_driver::sweep::SweepSummary;
use polity_driver::systems::entry::Finding;
use polity_kernel::scenario::{Design, Expectation};
use polity_stats::{Estimate, FEW};

/// An expectation, and what was found.
pub(super) struct Judged<'a> {
    expectation: &'a Expectation,
    found: Estimate,
    finding: Finding,
}

/// Judges all expectations of a design. `find`: the estimate of what an expectation is about.
pub(super) fn judged<'a>(design: &'a Design, find: &dyn Fn(&Expectation) -> Option<Estimate>) -> Vec<Judged<'a>> {
    let judge = |expectation: &'a Expectation| {
        let found = find(expectation).unwrap_or(Estimate { mean: None, low: None, high: None, n: 0 });
        let interval = found.low.zip(found.high).filter(|_| found.n >= FEW);
        let finding = match interval.and_then(|(low, high)| expectation.decided(low, high)) {
            Some(true) => Finding::Holds,
            Some(false) => Finding::DoesNotHold,
            None => Finding::NotToldApart,
        };
        Judged { expectation, found, finding }
    };
    design.expect.iter().map(judge).collect()
}

/// The estimate that an expectation is about, from the summary of a sweep.
pub(super) fn in_summary(summary: &SweepSummary, of: &Expectation) -> Option<Estimate> {
    if of.minus.is_some() {
        let mut rows = summary.contrasts.iter();
        let row = rows.find(|row| row.factor.is_none() && row.level == of.arm && row.metric == of.metric)?;
        return Some(Estimate { mean: row.difference, low: row.low, high: row.high, n: row.n });
    }
    let row = summary.arms.iter().find(|row| row.arm == of.arm && row.metric == of.metric)?;
    Some(Estimate { mean: row.mean, low: row.low, high: row.high, n: row.n })
}

impl Judged<'_> {
    fn interval(&self) -> String {
        let interval = self.found.low.zip(self.found.high);
        interval
            .map_or("–".into(), |(low, high)| format!("{} to {}", measured(low, interval), measured(high, interval)))
    }

    /// A line for the terminal.
    pub(super) fn line(&self) -> String {
        let words = self.expectation.words();
        format!("expected: {words}: {} (95 % interval {})", self.finding.words(), self.interval())
    }

    fn row(&self) -> Vec<String> {
        let interval = self.found.low.zip(self.found.high);
        vec![
            self.expectation.words(),
            self.found.mean.map_or("–".into(), |mean| measured(mean, interval)),
            self.interval(),
            self.finding.words().into(),
            self.found.n.to_string(),
            self.expectation.because.clone().unwrap_or_default(),
        ]
    }
}

/// The section of the report; `None` if nothing was expected.
pub(super) fn section(judged: &[Judged<'_>]) -> Option<Section> {
    if judged.is_empty() {
        return None;
    }
    let text = format!(
        "What the design expected, written down before its first run. An expectation holds if the whole 95 % interval meets its bounds, and does not hold if \
         the whole interval is beyond one of them. Otherwise, and with fewer than {FEW} seeds, it is not told apart from its opposite."
    );
    let table = DataTable {
        columns: ["expected", "found", "95 % interval", "finding", "seeds", "because"].map(str::to_owned).to_vec(),
        rows: judged.iter().map(Judged::row).collect(),
        caption: "Expectations and findings.".into(),
        links: Vec::new(),
    };
    Some(Section { title: "Expected and found".into(), text: Some(text), table: Some(table), ..Section::default() })
}
