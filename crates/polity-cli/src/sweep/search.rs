//! What a search found: on the terminal and in the report.

use super::columns::{Columns, numbers, texts};
use polity_arena::report::{DataTable, Figure, Section, Series, measured};
use polity_driver::sweep::Found;
use polity_kernel::scenario::{Design, Search};

/// Maximum points in the report's table.
const MOST_POINTS: usize = 20;

/// The rows for the terminal: the best point of an optimiser, or the posterior distribution. Columns: factor, best or mean, low, high.
pub(super) fn rows(design: &Design, found: &Found) -> Vec<[String; 4]> {
    if !found.posterior.is_empty() {
        let row = |of: &polity_driver::sweep::PosteriorRow| {
            [of.factor.clone(), format!("{:.4}", of.mean), format!("{:.4}", of.low), format!("{:.4}", of.high)]
        };
        return found.posterior.iter().map(row).collect();
    }
    let values = found.best.iter().flat_map(|best| &best.values);
    let row = |(factor, value): (&polity_kernel::scenario::Factor, &f64)| {
        [factor.name.clone(), format!("{value:.4}"), "-".into(), "-".into()]
    };
    design.factors.iter().zip(values).map(row).collect()
}

/// What was found, in a sentence.
pub(super) fn line(found: &Found) -> String {
    let best = found.best.as_ref().and_then(|best| Some((best, best.loss?)));
    let best = best.map_or("no point has all metrics".into(), |(best, loss)| {
        format!("the best point is {}, with a loss of {loss:.4}", best.arm)
    });
    format!("search: {} points; {best}", found.evaluations)
}

/// The section of the report, from the table of points.
pub(super) fn section(design: &Design, search: &Search, table: &Columns) -> Section {
    let (arms, losses, weights) = (texts(table, "arm"), numbers(table, "loss"), numbers(table, "weight"));
    let values: Vec<Vec<Option<f64>>> = design.factors.iter().map(|factor| numbers(table, &factor.name)).collect();
    let points = losses.iter().enumerate().filter_map(|(at, loss)| Some((at as f64 + 1.0, (*loss)?)));
    let points: Vec<(f64, f64)> = points.collect();
    let mut least = f64::INFINITY;
    let best = points.iter().map(|(at, loss)| {
        least = least.min(*loss);
        (*at, least)
    });
    let best = Series { name: "least so far".into(), points: best.collect(), ..Series::default() };
    let each = Series { name: "each point".into(), points, reference: true, ..Series::default() };
    let figure = Figure::Lines {
        title: "Loss".into(),
        x_label: "point".into(),
        y_label: "loss".into(),
        series: vec![best, each],
        caption: "How far each point of the search is from the targets, and the least loss so far.".into(),
    };
    // Those with the most weight, or with the least loss.
    let mut order: Vec<usize> = (0..losses.len()).filter(|row| losses[*row].is_some()).collect();
    let bayesian = search.by.is_bayesian();
    let weight = |row: &usize| weights.get(*row).copied().flatten().unwrap_or(0.0);
    let loss = |row: &usize| losses[*row].unwrap_or(f64::INFINITY);
    order.sort_by(|a, b| match bayesian {
        true => weight(b).total_cmp(&weight(a)).then(a.cmp(b)),
        false => loss(a).total_cmp(&loss(b)).then(a.cmp(b)),
    });
    let shown = |value: f64| measured(value, None);
    let row = |row: &usize| {
        let mut cells = vec![arms[*row].clone().unwrap_or_default()];
        cells.extend(values.iter().map(|values| values[*row].map_or("–".into(), shown)));
        cells.push(shown(loss(row)));
        cells.push(if bayesian { shown(weight(row)) } else { "–".into() });
        cells
    };
    let rows = order.iter().take(MOST_POINTS).map(row).collect();
    let mut columns = vec!["point".to_owned()];
    columns.extend(design.factors.iter().map(|factor| factor.name.clone()));
    columns.extend(["loss".to_owned(), "weight".to_owned()]);
    let caption = match bayesian {
        true => format!("The {MOST_POINTS} points with the most weight; search.csv has all."),
        false => format!("The {MOST_POINTS} points with the least loss; search.csv has all."),
    };
    let table = DataTable { columns, rows, caption, links: Vec::new() };
    let text = match bayesian {
        true => format!(
            "This is {}. The weighted points are a sample of the posterior distribution of the parameters, if each was uniform on the \
             scale of its range before. It is approximate: the nearer the kept points are to the targets, the better. It says which parameters of this \
             model fit these targets, not that the model is right.",
            search.words()
        ),
        false => format!(
            "This is {}. The best point is the best of those that were run: it is no proof that there is no better one, and its loss is \
             smaller than with other seeds, since it was chosen for being small.",
            search.words()
        ),
    };
    Section { title: "Search".into(), text: Some(text), figures: vec![figure], table: Some(table) }
}
