//! The report's section on interactions: how far the effect of a factor depends on the level of another.

use super::columns::Contrast;
use super::reliability::Evidence;
use polity_arena::report::{Chart, DataTable, Figure, Panel, Section, Series};
use polity_kernel::scenario::{Arm, Design, Factor};
use polity_stats::{Estimate, mean, student, welch};

/// Maximum pairs of factors that are drawn.
const MOST_PAIRS: usize = 24;

/// The section; `None` if no two factors list their levels. `metric`: the one that is drawn.
pub(super) fn section(
    design: &Design,
    evidence: Option<&Evidence>,
    metric: Option<&str>,
    table: DataTable,
) -> Option<Section> {
    if table.rows.is_empty() {
        return None;
    }
    let listed: Vec<usize> = (0..design.factors.len()).filter(|f| design.factors[*f].range.is_none()).collect();
    let values = evidence.zip(metric).and_then(|(evidence, metric)| evidence.values.get(metric));
    // With two factors, the figure of the means shows their interaction.
    let figure = values.filter(|_| listed.len() > 2).map(|values| {
        let pairs = listed.iter().enumerate().flat_map(|(i, f)| listed[i + 1..].iter().map(move |g| (*f, *g)));
        let panels = pairs.take(MOST_PAIRS).map(|(f, g)| panel(design, values, f, g)).collect();
        Figure::Panels {
            title: "Interactions".into(),
            x_label: "level of the second factor".into(),
            panels,
            marks: Vec::new(),
            shade: String::new(),
            caption: format!(
                "Mean of {} over all arms with a level of each of two factors, with its 95 % interval over seeds. Lines that are not \
                 parallel are an interaction.",
                metric.unwrap_or_default()
            ),
        }
    });
    let text = "An interaction is a difference of differences: how much larger the effect of one factor is at a level of another factor than \
                at that other factor's first level, averaged over all other factors. It is 0 if the two effects simply add up.";
    Some(Section {
        title: "Interactions".into(),
        text: Some(text.into()),
        figures: figure.into_iter().collect(),
        table: Some(table),
    })
}

/// Means by the levels of two factors: lines by those of `f`, the axis has those of `g`.
fn panel(design: &Design, values: &[Vec<Option<f64>>], f: usize, g: usize) -> Panel {
    let name = |at: usize| Factor::words(&design.factors[at].name);
    let line = |(level, label): (usize, &String)| {
        let mut series = Series { name: format!("{} {label}", name(f)), band: Some(Vec::new()), ..Series::default() };
        for other in 0..design.factors[g].levels.len() {
            let has = |arm: &Arm| arm.levels[f] == level && arm.levels[g] == other;
            let arms: Vec<usize> = (0..design.arms.len()).filter(|at| has(&design.arms[*at])).collect();
            let Estimate { mean: Some(mean), low, high, .. } = level_of(design, values, &arms) else { continue };
            series.points.push((other as f64, mean));
            series.band.get_or_insert_default().extend(low.zip(high).map(|(low, high)| (other as f64, low, high)));
        }
        series
    };
    let chart = Chart::Levels {
        names: design.factors[g].levels.clone(),
        series: design.factors[f].levels.iter().enumerate().map(line).collect(),
        joined: true,
    };
    Panel { title: format!("{} by {}", name(g), name(f)), note: String::new(), chart }
}

/// The mean over some arms, with its interval over seeds.
fn level_of(design: &Design, values: &[Vec<Option<f64>>], arms: &[usize]) -> Estimate {
    if !design.common_random_numbers {
        let own: Vec<Vec<f64>> = arms.iter().map(|arm| values[*arm].iter().flatten().copied().collect()).collect();
        return welch(&own.iter().map(Vec::as_slice).collect::<Vec<_>>(), &[]);
    }
    let seeds = values.first().map_or(0, Vec::len);
    let at = |seed: usize| {
        let values: Option<Vec<f64>> = arms.iter().map(|arm| values[*arm].get(seed).copied().flatten()).collect();
        mean(&values?)
    };
    student(&(0..seeds).filter_map(at).collect::<Vec<f64>>())
}

/// The sentence on an interaction for the head of the report.
pub(super) fn told(row: &Contrast, metric: &str, by: &str, interval: &str) -> Option<String> {
    let (factor, [other, level, reference]) = row.factor.as_deref().zip(row.with.as_ref())?;
    let more = if row.difference > 0.0 { "higher" } else { "lower" };
    Some(format!(
        "The effect of {} {} instead of {} on {metric} is {by}{interval} {more} at {} {level} than at {reference}.",
        Factor::words(factor),
        row.level,
        row.reference,
        Factor::words(other)
    ))
}
