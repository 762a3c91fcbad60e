//! A comparison as rows of text, for the terminal, documents and the report.

use super::{Comparison, Score};
use std::collections::BTreeSet;

/// Columns and rows of text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grid {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Cells.
    pub rows: Vec<Vec<String>>,
}

impl Grid {
    fn new<const N: usize>(columns: [&str; N]) -> Grid {
        Grid { columns: columns.map(str::to_owned).to_vec(), rows: Vec::new() }
    }

    fn add<const N: usize>(&mut self, row: [String; N]) {
        self.rows.push(row.to_vec());
    }
}

/// Formats a share with three decimals; a missing one as a dash.
fn share(x: Option<f64>) -> String {
    x.map_or("-".into(), |x| format!("{x:.3}"))
}

/// Formats a difference of shares.
fn signed(x: Option<f64>) -> String {
    x.map_or("-".into(), |x| format!("{x:+.3}"))
}

/// Formats a probability; small ones keep their first digits.
fn chance(p: f64) -> String {
    if p < 0.001 { format!("{p:.1e}") } else { format!("{p:.3}") }
}

/// With more methods than this the table has no columns of single methods; `methods.jsonl` has them.
const MANY: usize = 8;

/// The most accurate first; of equally accurate ones, that with fewer tokens.
fn ranked(scores: &[Score]) -> Vec<&Score> {
    let mut ranked: Vec<&Score> = scores.iter().collect();
    let accuracy = |score: &Score| score.accuracy.unwrap_or(-1.0);
    ranked.sort_by(|a, b| accuracy(b).total_cmp(&accuracy(a)).then(a.spent.tokens().cmp(&b.spent.tokens())));
    ranked
}

/// One row per method, the most accurate first. Use is per item and repeat.
#[must_use]
pub fn methods(scores: &[Score]) -> Grid {
    let scores = ranked(scores);
    let columns = ["method", "members", "accuracy", "low", "high", "calls/item", "tokens/item", "USD", "coordination"];
    let mut grid = Grid::new(columns);
    for score in &scores {
        let tries = (score.items * score.runs.len()).max(1) as f64;
        grid.add([
            score.method.clone(),
            score.members.to_string(),
            share(score.accuracy),
            share(score.low),
            share(score.high),
            format!("{:.2}", score.spent.calls as f64 / tries),
            format!("{:.0}", score.spent.tokens() as f64 / tries),
            format!("{:.4}", score.spent.cost_usd),
            format!("{:.2}", score.coordination),
        ]);
    }
    let mut more = |name: String, cell: &dyn Fn(&Score) -> String| {
        grid.columns.push(name);
        grid.rows.iter_mut().zip(&scores).for_each(|(row, score)| row.push(cell(score)));
    };
    if scores.iter().any(|score| score.of_allowance.is_some()) {
        let of = |score: &Score| score.of_allowance.map_or("-".into(), |part| format!("{part:.2}"));
        more("of allowance".into(), &of);
    }
    if let Some((k, _)) = scores.iter().find_map(|score| score.pass.last_key_value()) {
        more(format!("pass^{k}"), &|score| share(score.pass.get(k).copied()));
    }
    if scores.iter().any(|score| score.replayed.is_some()) {
        more("replay".into(), &|score| score.replayed.map_or("-".into(), |status| status.to_string()));
    }
    // Of many methods, what at least half of them measure: their own quantities would make the table wider than any screen.
    let least = if scores.len() > MANY { scores.len().div_ceil(2) } else { 1 };
    let names: BTreeSet<&str> = scores.iter().flat_map(|score| score.measured.keys().copied()).collect();
    let measured = |name: &str| scores.iter().filter(|score| score.measured.contains_key(name)).count();
    for name in names.into_iter().filter(|name| measured(name) >= least) {
        more(name.into(), &|score| share(score.measured.get(name).map(|measured| measured.mean)));
    }
    if scores.iter().any(|score| score.unscored > 0) {
        more("unscored".into(), &|score| score.unscored.to_string());
    }
    if scores.iter().any(|score| score.unanswered > 0) {
        more("no answer".into(), &|score| score.unanswered.to_string());
    }
    grid
}

/// One row per pair of methods.
#[must_use]
pub fn duels(comparison: &Comparison) -> Grid {
    let mut grid =
        Grid::new(["pair", "difference", "low", "high", "only first", "only second", "p", "p (Holm)", "verdict"]);
    for duel in &comparison.compared {
        grid.add([
            format!("{} - {}", duel.a, duel.b),
            signed(duel.difference),
            signed(duel.low),
            signed(duel.high),
            duel.a_only.to_string(),
            duel.b_only.to_string(),
            chance(duel.p),
            chance(duel.p_holm),
            duel.verdict.into(),
        ]);
    }
    grid
}

/// One row per method, member and kind of work. The share is that of the method's tokens.
#[must_use]
pub fn ledger(scores: &[Score]) -> Grid {
    let mut grid = Grid::new(["method", "who", "for", "calls", "tokens in", "tokens out", "USD", "share"]);
    for score in scores {
        let all = score.spent.tokens().max(1) as f64;
        for entry in &score.ledger {
            grid.add([
                score.method.clone(),
                entry.who.clone(),
                entry.purpose.clone(),
                entry.spent.calls.to_string(),
                entry.spent.tokens_in.to_string(),
                entry.spent.tokens_out.to_string(),
                format!("{:.4}", entry.spent.cost_usd),
                format!("{:.2}", entry.spent.tokens() as f64 / all),
            ]);
        }
    }
    grid
}

/// One row per team on the pilot's items.
#[must_use]
pub fn pilot(comparison: &Comparison) -> Grid {
    let mut grid = Grid::new(["method", "members", "use per item", "of allowance"]);
    if let Some(pilot) = &comparison.pilot {
        for trial in &pilot.trials {
            let amount =
                if trial.per_item < 1.0 { format!("{:.6}", trial.per_item) } else { format!("{:.1}", trial.per_item) };
            let part = format!("{:.2}", trial.per_item / pilot.allowance);
            grid.add([trial.method.clone(), trial.members.to_string(), amount, part]);
        }
    }
    grid
}

/// Explanation of the ledger's terms.
pub const COORDINATION: &str = "Coordination is everything that is spent on work other than solving the item: all \
    tokens of calls whose purpose is not `solve` (reconsidering, rating, choosing, checking, planning, testing). The \
    work of others that a solving call is shown counts as solving.";
