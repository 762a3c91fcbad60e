//! Quotas: exact numbers of agents in the cells of a classification.

use super::whole::whole;
use super::{Cell, FitError, apportion, check, check_base, shares};
use crate::population::level::{self, About, LevelError};
use crate::population::{Share, Table};
use crate::rng::Draws;
use std::collections::BTreeMap;

/// People drawn by quotas.
#[derive(Clone, Debug, PartialEq)]
pub struct Filled {
    /// Share of all agents by row of the table, before they are made whole.
    pub weights: Vec<f64>,
    /// Agents of each row.
    pub counts: Vec<u32>,
    /// What was asked and what these agents have.
    pub shares: Vec<Share>,
}

/// How many agents of `n` each row becomes when the cells have exactly their quotas: `n` split by largest remainder. Within a
/// cell rows come up as often as their weights say (`base`, one a row; evenly where there are none), rounded like [`apportion`](super::apportion).
///
/// # Errors
/// Shares that are no shares, weights that are none ([`check_base`]), levels that do not fit the table, a cell given twice, a cell
/// with agents and without rows or weight, rows that are in no cell.
pub fn quotas(
    table: &Table,
    base: Option<&[f64]>,
    cells: &[Cell],
    n: u32,
    draws: &mut Draws,
) -> Result<Filled, FitError> {
    check(cells.iter().map(|cell| cell.share)).map_err(of_cell)?;
    if let Some(base) = base {
        check_base(base, table.rows())?;
    }
    let columns = columns_of(cells)?;
    let rows = rows_of_cells(table, &columns, &keys_of(table, cells, &columns)?)?;
    let asked: Vec<f64> = cells.iter().map(|cell| cell.share).collect();
    let (mut weights, mut counts) = (vec![0.0; table.rows()], vec![0; table.rows()]);
    for (i, (rows, size)) in rows.iter().zip(apportion(&asked, n)).enumerate() {
        let weight = |row: &u32| base.map_or(1.0, |base| base[*row as usize]);
        let total: f64 = rows.iter().map(weight).sum();
        if total > 0.0 {
            let within: Vec<f64> = rows.iter().map(|row| weight(row) / total).collect();
            let order: Vec<u32> = (0..rows.len() as u32).collect();
            let of_rows = whole(&within, &order, size, draws);
            for ((row, within), count) in rows.iter().zip(within).zip(of_rows) {
                weights[*row as usize] = within * asked[i];
                counts[*row as usize] = count;
            }
        } else if size > 0 {
            let message = format!("this cell needs {size} agents, but it has no row with a weight above 0");
            return Err(FitError::at(i, message));
        }
    }
    let agents: Vec<u32> = rows.iter().map(|rows| rows.iter().map(|row| counts[*row as usize]).sum()).collect();
    let level =
        |cell: &Cell| columns.iter().filter_map(|column| level_in(cell, column)).collect::<Vec<_>>().join(" × ");
    let levels = cells.iter().map(|cell| (level(cell), cell.share));
    let shares = shares(&columns.join(" × "), levels, &agents).collect();
    Ok(Filled { weights, counts, shares })
}

/// An error about a list of cells: its level is a cell.
fn of_cell(error: LevelError) -> FitError {
    let entry = if let About::Level(cell) = error.about { Some(cell) } else { None };
    FitError { entry, about: About::Levels, message: error.message }
}

fn level_in<'a>(cell: &'a Cell, column: &str) -> Option<&'a str> {
    cell.levels.iter().find(|(name, _)| name == column).map(|(_, level)| level.as_str())
}

/// The columns that all cells name, in the order of the first one.
fn columns_of(cells: &[Cell]) -> Result<Vec<&str>, FitError> {
    let Some(first) = cells.first() else { return Err(FitError::general("the list is empty")) };
    let columns: Vec<&str> = first.levels.iter().map(|(column, _)| column.as_str()).collect();
    let alike = |cell: &Cell| {
        cell.levels.len() == columns.len() && columns.iter().all(|column| level_in(cell, column).is_some())
    };
    let once = (1..columns.len()).all(|i| !columns[..i].contains(&columns[i]));
    match cells.iter().position(|cell| !(once && alike(cell))) {
        None => Ok(columns),
        Some(i) => Err(FitError::at(
            i,
            format!(
                "every cell must name the columns of the first one, {}, each of them once, and a share",
                columns.join(", ")
            ),
        )),
    }
}

/// What tells cells apart, as positions among the levels of each column.
struct Keys {
    /// By cell.
    of_cells: Vec<Vec<u32>>,
    /// By column, then by row of the table.
    of_rows: Vec<Vec<u32>>,
}

fn keys_of(table: &Table, cells: &[Cell], columns: &[&str]) -> Result<Keys, FitError> {
    let mut keys = Keys { of_cells: vec![Vec::new(); cells.len()], of_rows: Vec::new() };
    for column in columns {
        // The levels in order of appearance: the cell that each appears in, and whether agents are asked of it.
        let (mut levels, mut first_of, mut needed) = (Vec::new(), Vec::new(), Vec::new());
        let mut known = BTreeMap::new();
        for (i, cell) in cells.iter().enumerate() {
            let Some(level) = level_in(cell, column) else { continue };
            let key = *known.entry(level).or_insert(levels.len());
            if key == levels.len() {
                levels.push(level);
                first_of.push(i);
                needed.push(false);
            }
            needed[key] |= cell.share > 0.0;
            keys.of_cells[i].push(key as u32);
        }
        let codes = level::codes(table, column, &levels, &needed).map_err(|error| match error.about {
            About::Level(level) => FitError::at(first_of[level], error.message),
            about => FitError { entry: None, about, message: error.message },
        })?;
        keys.of_rows.push(codes);
    }
    Ok(keys)
}

/// The rows of the table in each cell.
fn rows_of_cells(table: &Table, columns: &[&str], keys: &Keys) -> Result<Vec<Vec<u32>>, FitError> {
    let mut sorted: Vec<usize> = (0..keys.of_cells.len()).collect();
    sorted.sort_by(|a, b| keys.of_cells[*a].cmp(&keys.of_cells[*b]));
    if let Some([_, twice]) = sorted.array_windows().find(|[a, b]| keys.of_cells[*a] == keys.of_cells[*b]) {
        return Err(FitError::at(*twice, "the same cell was given before"));
    }
    let mut rows: Vec<Vec<u32>> = vec![Vec::new(); sorted.len()];
    for row in 0..table.rows() {
        let key = || keys.of_rows.iter().map(|codes| &codes[row]);
        let Ok(place) = sorted.binary_search_by(|cell| keys.of_cells[*cell].iter().cmp(key())) else {
            return Err(FitError::general(format!(
                "row {row} of the data, counted from 0, is in no cell of the quotas by {}; give its cell a share, or 0 \
                 to leave its rows out",
                columns.join(", ")
            )));
        };
        rows[sorted[place]].push(row as u32);
    }
    Ok(rows)
}
