//! How cells are counted, and what is told of them in words.

/// A way of counting the cells of a maze.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counting {
    /// Whether the row stands first.
    row_first: bool,
    /// Whether rows are counted from the top.
    from_top: bool,
}

impl Counting {
    /// Returns the way of counting with a number, 0 to 3.
    pub fn of(number: u8) -> Counting {
        Counting { row_first: number & 1 == 0, from_top: number & 2 == 0 }
    }

    fn says(self) -> String {
        let pair = if self.row_first { "(row, column)" } else { "(column, row)" };
        format!("Cells are {pair}, from 1, rows from the {}. ", if self.from_top { "top" } else { "bottom" })
    }

    /// Returns the way of counting that a message states.
    fn stated(message: &str) -> Option<Counting> {
        let row_first = match () {
            () if message.contains("(row, column)") => true,
            () if message.contains("(column, row)") => false,
            () => return None,
        };
        Some(Counting { row_first, from_top: !message.contains("rows from the bottom") })
    }

    fn pair(self, cell: u32, size: u32) -> (u32, u32) {
        let (row, column) = (cell / size, cell % size);
        let row = if self.from_top { row } else { size - 1 - row };
        if self.row_first { (row + 1, column + 1) } else { (column + 1, row + 1) }
    }

    fn cell(self, (first, second): (u32, u32), size: u32) -> Option<u32> {
        let inside = |place: u32| (1..=size).contains(&place).then(|| place - 1);
        let (first, second) = (inside(first)?, inside(second)?);
        let (row, column) = if self.row_first { (first, second) } else { (second, first) };
        Some((if self.from_top { row } else { size - 1 - row }) * size + column)
    }
}

/// Returns the way of counting that was stated last in these messages.
pub fn in_force(messages: &[&str]) -> Option<Counting> {
    messages.iter().rev().find_map(|message| Counting::stated(message))
}

/// Tells the cells that an agent sees.
pub fn tell(seen: &[Option<bool>], size: u32, counting: Counting, strong: bool, stated: bool) -> String {
    let mut said = match (strong, stated) {
        (true, true) => counting.says(),
        (true, false) => "These are all of the cells that can be seen from here. ".to_owned(),
        (false, _) => String::new(),
    };
    for (cell, wall) in (0u32..).zip(seen) {
        if let Some(wall) = wall {
            let (first, second) = counting.pair(cell, size);
            let what = if *wall { "wall" } else { "free" };
            said.push_str(&format!("({first}, {second}) {what}; "));
        }
    }
    said
}

/// Reads the cells that a message tells of, and whether each is a wall.
pub fn told(message: &str, size: u32, counting: Counting) -> Vec<(u32, bool)> {
    let read = |part: &str| {
        let (pair, what) = part.rsplit_once('(')?.1.split_once(')')?;
        let (first, second) = pair.split_once(',')?;
        let pair = (first.trim().parse().ok()?, second.trim().parse().ok()?);
        Some((counting.cell(pair, size)?, what.trim().starts_with("wall")))
    };
    message.split(';').filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{Counting, in_force, tell, told};

    #[test]
    fn what_is_told_is_read_as_it_was_meant_and_otherwise_mirrored() {
        let seen: Vec<Option<bool>> = (0..36).map(|cell| (cell % 3 != 1).then_some(cell % 5 == 0)).collect();
        for speaker in 0..4 {
            let counting = Counting::of(speaker);
            let message = tell(&seen, 6, counting, true, true);
            assert_eq!(in_force(&["Other: nothing", &message]), Some(counting));
            for reader in 0..4 {
                let mut read = vec![None; 36];
                told(&message, 6, Counting::of(reader))
                    .into_iter()
                    .for_each(|(cell, wall)| read[cell as usize] = Some(wall));
                assert_eq!(read == seen, reader == speaker, "{speaker} {reader}");
            }
            for stated in [true, false] {
                assert_eq!(in_force(&[tell(&seen, 6, counting, false, stated).as_str()]), None);
            }
            assert_eq!(in_force(&[tell(&seen, 6, counting, true, false).as_str()]), None);
        }
        // By hand: the second cell of the third row from the top of four rows.
        assert_eq!(told("(3, 2) wall; (9, 1) wall; odd", 4, Counting::of(0)), [(9, true)]);
        assert_eq!(told("(2, 3) free", 4, Counting::of(1)), [(9, false)]);
        assert_eq!(told("(2, 2) wall;", 4, Counting::of(2)), [(9, true)]);
    }
}
