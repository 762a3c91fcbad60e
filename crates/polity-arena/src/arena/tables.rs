//! A comparison as rows of text, for the terminal, documents and the report.

use super::{Comparison, Despite, LEVEL, Overall, Pilot, Score, Spent};
use polity_store::printable::counted;
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

/// What stands where dollars are not known.
pub const UNKNOWN: &str = "not known";

/// Formats dollars.
#[must_use]
pub fn dollars(usd: Option<f64>) -> String {
    usd.map_or(UNKNOWN.into(), |usd| format!("{usd:.4}"))
}

/// Sorts methods for the table: task by task, the most accurate first; of equally accurate ones, that with fewer tokens.
pub(super) fn ranked(scores: &[Score]) -> Vec<&Score> {
    let order = names(scores, |score| &score.task);
    let task = |score: &Score| order.iter().position(|task| *task == score.task);
    let mut ranked: Vec<&Score> = scores.iter().collect();
    let accuracy = |score: &Score| score.accuracy.unwrap_or(-1.0);
    ranked.sort_by(|a, b| {
        let better = || accuracy(b).total_cmp(&accuracy(a)).then(a.spent.tokens().cmp(&b.spent.tokens()));
        task(a).cmp(&task(b)).then_with(better)
    });
    ranked
}

/// Returns the different names among rows, in the order in which they first occur.
pub(super) fn names<'a, T>(rows: &'a [T], of: impl Fn(&'a T) -> &'a str) -> Vec<&'a str> {
    let mut names = Vec::new();
    for row in rows {
        if !names.contains(&of(row)) {
            names.push(of(row));
        }
    }
    names
}

/// The columns that tell rows apart besides the method: the task and the model, where there are several.
struct Places {
    task: bool,
    model: bool,
}

impl Places {
    fn of(scores: &[Score]) -> Places {
        let several = |of: fn(&Score) -> &str| names(scores, of).len() > 1;
        Places { task: several(|score| &score.task), model: several(|score| &score.model) }
    }

    /// Puts the columns before those of a grid.
    fn columns(&self, grid: &mut Grid) {
        let before = [(self.task, "task"), (self.model, "model")].into_iter().filter(|(is, _)| *is);
        grid.columns.splice(0..0, before.map(|(_, name)| name.to_owned()));
    }

    /// Puts the cells before those of a row.
    fn cells(&self, task: &str, model: &str, row: &mut Vec<String>) {
        let before = [(self.task, task), (self.model, model)].into_iter().filter(|(is, _)| *is);
        row.splice(0..0, before.map(|(_, name)| name.to_owned()));
    }
}

/// One row per method, task and model: task by task, the most accurate first. Use is per item and repeat.
#[must_use]
pub fn methods(scores: &[Score]) -> Grid {
    let places = Places::of(scores);
    let scores = ranked(scores);
    let columns = ["method", "members", "accuracy", "low", "high", "calls/item", "tokens/item", "USD", "coordination"];
    let mut grid = Grid::new(columns);
    places.columns(&mut grid);
    for score in &scores {
        let tries = score.tries();
        let mut row = vec![
            score.method.clone(),
            score.members.to_string(),
            share(score.accuracy),
            share(score.low),
            share(score.high),
            format!("{:.2}", score.spent.calls as f64 / tries),
            format!("{:.0}", score.spent.tokens() as f64 / tries),
            dollars(score.spent.cost_usd),
            format!("{:.2}", score.coordination),
        ];
        places.cells(&score.task, &score.model, &mut row);
        grid.rows.push(row);
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

/// One row per pair.
#[must_use]
pub fn duels(comparison: &Comparison) -> Grid {
    let mut grid =
        Grid::new(["pair", "difference", "low", "high", "only first", "only second", "p", "p (Holm)", "verdict"]);
    let has_models = comparison.models.len() > 1 && !comparison.pairs_models();
    let places = Places { task: comparison.tasks.len() > 1, model: has_models };
    places.columns(&mut grid);
    for duel in &comparison.compared {
        let mut row = vec![
            duel.pair(),
            signed(duel.difference),
            signed(duel.low),
            signed(duel.high),
            duel.a_only.to_string(),
            duel.b_only.to_string(),
            chance(duel.p),
            chance(duel.p_holm),
            duel.words(),
        ];
        places.cells(&duel.task, duel.model.as_deref().unwrap_or_default(), &mut row);
        grid.rows.push(row);
    }
    grid
}

/// One row per mean over the tasks.
#[must_use]
pub fn overall(comparison: &Comparison) -> Grid {
    let mut grid = Grid::new(["method", "mean", "low", "high"]);
    let places = Places { task: false, model: comparison.models.len() > 1 };
    places.columns(&mut grid);
    let accuracy = |overall: &&Overall| overall.mean.unwrap_or(-1.0);
    let mut means: Vec<&Overall> = comparison.overall.iter().filter(|overall| !overall.difference).collect();
    means.sort_by(|a, b| accuracy(b).total_cmp(&accuracy(a)));
    for overall in means.into_iter().chain(comparison.overall.iter().filter(|overall| overall.difference)) {
        let shown = |x| if overall.difference { signed(x) } else { share(x) };
        let mut row = vec![overall.method.clone(), shown(overall.mean), shown(overall.low), shown(overall.high)];
        places.cells("", overall.model.as_deref().unwrap_or_default(), &mut row);
        grid.rows.push(row);
    }
    grid
}

/// One row per method, member and kind of work. The share is that of the method's tokens.
#[must_use]
pub fn ledger(scores: &[Score]) -> Grid {
    let mut grid = Grid::new(["method", "who", "for", "calls", "tokens in", "tokens out", "USD", "share"]);
    let places = Places::of(scores);
    places.columns(&mut grid);
    for score in scores {
        let all = score.spent.tokens().max(1) as f64;
        for entry in &score.ledger {
            let mut row = vec![
                score.method.clone(),
                entry.who.clone(),
                entry.purpose.clone(),
                entry.spent.calls.to_string(),
                entry.spent.tokens_in.to_string(),
                entry.spent.tokens_out.to_string(),
                dollars(entry.spent.cost_usd),
                format!("{:.2}", entry.spent.tokens() as f64 / all),
            ];
            places.cells(&score.task, &score.model, &mut row);
            grid.rows.push(row);
        }
    }
    grid
}

/// One row per team on the pilot's items.
#[must_use]
pub fn pilot(comparison: &Comparison) -> Grid {
    let mut grid = Grid::new(["method", "members", "use per item", "of allowance"]);
    let places = Places { task: comparison.tasks.len() > 1, model: comparison.models.len() > 1 };
    places.columns(&mut grid);
    for pilot in &comparison.pilots {
        for trial in &pilot.trials {
            let part = format!("{:.2}", trial.per_item / pilot.allowance);
            let mut row = vec![trial.method.clone(), trial.members.to_string(), amount(trial.per_item), part];
            places.cells(&pilot.task, &pilot.model, &mut row);
            grid.rows.push(row);
        }
    }
    grid
}

/// Formats a use per item: dollars have more digits.
fn amount(per_item: f64) -> String {
    if per_item < 1.0 { format!("{per_item:.6}") } else { format!("{per_item:.1}") }
}

/// Formats an allowance, to a millionth: 5117, 1686.6, 0.000123.
fn stated(allowance: f64) -> String {
    format!("{allowance:.6}").trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// What the allowances are and what the pilots took, one sentence each.
#[must_use]
pub fn allowances(comparison: &Comparison) -> Vec<String> {
    let of = |pilot: &Pilot| {
        let place = comparison.place(&pilot.task, Some(&pilot.model));
        let (unit, allowance, items) = (pilot.unit.word(), stated(pilot.allowance), pilot.items);
        match &pilot.set_by {
            Some(method) => format!(
                "equal {unit}{place}: {allowance} per item, which is what {method} uses on the first {items} items"
            ),
            None => {
                format!("equal {unit}{place}: {allowance} per item, as asked for, measured on the first {items} items")
            }
        }
    };
    let mut lines: Vec<String> = comparison.pilots.iter().map(of).collect();
    let mut spent = Spent::default();
    comparison.pilots.iter().for_each(|pilot| spent.add(&pilot.spent));
    if !lines.is_empty() {
        let pilots = if lines.len() == 1 { "pilot" } else { "pilots" };
        lines.push(format!("the {pilots} took {}, which do not count as use of the methods", used(&spent)));
    }
    lines
}

/// Formats a use in words.
#[must_use]
pub fn used(spent: &Spent) -> String {
    let (calls, tokens) = (counted(spent.calls, "call"), spent.tokens());
    match spent.cost_usd {
        Some(usd) => format!("{calls}, {tokens} tokens and {usd:.4} USD"),
        None => format!("{calls} and {tokens} tokens, at an unknown price"),
    }
}

/// Explains verdicts that seem to contradict their intervals, if there are any.
#[must_use]
pub fn despite(comparison: &Comparison) -> Vec<String> {
    let has = |why| comparison.compared.iter().any(|duel| duel.despite == Some(why));
    let tests = comparison.compared.len();
    let holm = format!(
        "(Holm): the interval excludes 0, and alone the pair would be told apart (p below {LEVEL}); but of {tests} tests some fall \
         below that by chance, and after Holm's correction this one does not"
    );
    let test = format!(
        "(exact test): the interval excludes 0, but it is approximate where few items differ; p of the exact test is not below \
         {LEVEL}"
    );
    let lines = [(Despite::Holm, holm), (Despite::Test, test)];
    lines.into_iter().filter(|(why, _)| has(*why)).map(|(_, line)| line).collect()
}

/// Explains means over tasks, if there are any.
pub const OVERALL: &str = "Means over the tasks, each with the same weight; the interval is over the items of each task, and the \
    tasks count as given.";

/// Explanation of the ledger's terms.
pub const COORDINATION: &str = "Coordination is everything that is spent on work other than solving the item: all \
    tokens of calls whose purpose is not `solve` (reconsidering, rating, choosing, checking, planning, testing). The \
    work of others that a solving call is shown counts as solving.";
