//! Maps of tiles.

use crate::grid::{Cell, Size};
use polity_kernel::Invalid;
use polity_kernel::rng::Draws;
use serde::{Deserialize, Serialize};

/// A tile of a map. Its name is the character that stands for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Tile {
    /// Grass.
    #[serde(rename = ".")]
    Grass,
    /// Grass on which lives begin.
    #[serde(rename = "o")]
    Start,
    /// A forest, in which food grows.
    #[serde(rename = "f")]
    Forest,
    /// Water, for agents beside it.
    #[serde(rename = "w")]
    Water,
    /// Stone.
    #[serde(rename = "s")]
    Stone,
    /// Lava, which kills.
    #[serde(rename = "x")]
    Lava,
}

impl Tile {
    fn of(mark: char) -> Option<Tile> {
        let tiles = [Tile::Grass, Tile::Start, Tile::Forest, Tile::Water, Tile::Stone, Tile::Lava];
        tiles.into_iter().find(|tile| tile.mark(false) == mark)
    }

    /// Returns the character that stands for the tile. `bare`: whether it is a forest without food.
    pub fn mark(self, bare: bool) -> char {
        match self {
            Tile::Grass => '.',
            Tile::Start => 'o',
            Tile::Forest if bare => ',',
            Tile::Forest => 'f',
            Tile::Water => 'w',
            Tile::Stone => 's',
            Tile::Lava => 'x',
        }
    }

    /// Returns whether agents can enter the tile.
    pub fn is_passable(self) -> bool {
        !matches!(self, Tile::Water | Tile::Stone)
    }
}

/// Reads the rows of a map: its size, and its tiles.
///
/// # Errors
/// Rows of different lengths, too few or too many of them, an unknown character, or no place where lives begin.
pub fn read(map: &[String]) -> Result<(Size, Vec<Tile>), Invalid> {
    let rows: Vec<Vec<char>> = map.iter().map(|row| row.chars().collect()).collect();
    let width = rows.first().map_or(0, Vec::len);
    Invalid::unless((3..=64).contains(&rows.len()), "map", "has 3 to 64 rows")?;
    Invalid::unless((3..=64).contains(&width), "map", "has 3 to 64 columns")?;
    Invalid::unless(rows.iter().all(|row| row.len() == width), "map", "has rows of different lengths")?;
    let tile = |mark: &char| {
        let message = || format!("has `{mark}`, which is none of `.`, `o`, `f`, `w`, `s` and `x`");
        Tile::of(*mark).ok_or_else(|| Invalid { key: "map".into(), message: message() })
    };
    let tiles: Vec<Tile> = rows.iter().flatten().map(tile).collect::<Result<_, _>>()?;
    Invalid::unless(tiles.contains(&Tile::Start), "map", "needs an `o`: grass on which lives begin")?;
    Ok((Size { width: width as u8, height: rows.len() as u8 }, tiles))
}

/// Draws a map: a border of lava, a ring of grass on which lives begin, and inside 15 % water, 45 % grass, 25 % forest and 15 % stone in
/// patches. The heights of cells are random numbers, smoothed twice; the lowest cells are water, the highest stone.
pub fn drawn(size: Size, draws: &mut Draws) -> Vec<Tile> {
    let mut heights: Vec<f64> = (0..size.cells()).map(|_| draws.unit()).collect();
    for _ in 0..2 {
        let mean = |cell: Cell| {
            let ways = (-1..=1).flat_map(|x| (-1..=1).map(move |y| [x, y]));
            let near: Vec<usize> = ways.filter_map(|way| size.beyond(cell, way)).map(|cell| size.index(cell)).collect();
            near.iter().map(|index| heights[*index]).sum::<f64>() / near.len() as f64
        };
        heights = size.all().map(mean).collect();
    }
    let edge = |cell: Cell| {
        let last = |at: u8, of: u8| at.min(of - 1 - at);
        last(cell.x, size.width).min(last(cell.y, size.height))
    };
    let mut inner: Vec<usize> = size.all().filter(|cell| edge(*cell) > 1).map(|cell| size.index(cell)).collect();
    inner.sort_by(|a, b| heights[*a].total_cmp(&heights[*b]).then(a.cmp(b)));
    let ring = |cell| if edge(cell) == 0 { Tile::Lava } else { Tile::Start };
    let mut tiles: Vec<Tile> = size.all().map(ring).collect();
    let cells = inner.len();
    for (rank, index) in inner.into_iter().enumerate() {
        tiles[index] = match 100 * rank / cells {
            0..15 => Tile::Water,
            15..60 => Tile::Grass,
            60..85 => Tile::Forest,
            _ => Tile::Stone,
        };
    }
    tiles
}
