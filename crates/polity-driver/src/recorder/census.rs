//! How the rows of a population's file became agents.

use polity_kernel::population::{Census, Population};
use polity_store::tables::Column;

/// Returns the number of rows of the table `census`, and its columns; `None` if there was no file. `agents`: those at the start.
pub(super) fn columns(people: &Population, agents: u32) -> Option<(usize, Vec<Column>)> {
    let Census { rows, missing, eligible } = people.census()?;
    let mut agents_of = vec![0u32; people.table().rows()];
    (0..agents).for_each(|agent| agents_of[people.row(agent) as usize] += 1);
    let used = agents_of.iter().filter(|agents| **agents > 0).count();
    let most = agents_of.iter().copied().max().unwrap_or(0);
    let squares: f64 = agents_of.iter().map(|agents| f64::from(*agents) * f64::from(*agents)).sum();
    let effective = f64::from(agents) * f64::from(agents) / squares;
    let plain = |quantity: &str, value: f64| (quantity.to_owned(), None, value);
    let mut all = vec![plain("rows", f64::from(*rows))];
    all.extend(missing.iter().map(|(column, count)| ("missing".to_owned(), Some(column.clone()), f64::from(*count))));
    all.extend([
        plain("eligible", f64::from(*eligible)),
        plain("used", used as f64),
        plain("most-agents-of-a-row", f64::from(most)),
        plain("effective-sample-size", effective),
    ]);
    let columns = vec![
        Column::Text(all.iter().map(|(quantity, ..)| quantity.clone()).collect()),
        Column::MaybeText(all.iter().map(|(_, column, _)| column.clone()).collect()),
        Column::F64(all.iter().map(|(.., value)| *value).collect()),
    ];
    Some((all.len(), columns))
}
