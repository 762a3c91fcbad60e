//! Who can go when several robots want to go at once: as in the program rware, by the graph from where robots are to where they want to be.

use crate::grid::Cell;

/// Returns which robots get to the cells that they want.
///
/// A robot that wants to stay does. Robots in a ring of three or more go round. A free cell is for the longest line of robots that want to move
/// up to it; of lines of equal length, for that of the first robot. All others stay: those behind a robot that stays, those beside a ring,
/// and two who want to change places.
pub fn who_goes(at: &[Cell], wanted: &[Cell]) -> Vec<bool> {
    let n = at.len();
    let ahead: Vec<Option<usize>> = wanted.iter().map(|cell| at.iter().position(|other| other == cell)).collect();
    let mut goes: Vec<bool> = (0..n).map(|robot| ahead[robot] == Some(robot)).collect();
    for robot in 0..n {
        // Follows the line; a robot is in a ring if it comes back to it.
        let (mut length, mut next) = (1, ahead[robot]);
        while let Some(other) = next.filter(|other| *other != robot && length <= n) {
            (length, next) = (length + 1, ahead[other]);
        }
        goes[robot] |= next == Some(robot) && (3..=n).contains(&length);
    }
    let followers = |robot: usize| -> Vec<usize> {
        (0..n).filter(|other| *other != robot && ahead[*other] == Some(robot)).collect()
    };
    let mut heads: Vec<usize> = (0..n).filter(|robot| ahead[*robot].is_none()).collect();
    heads.sort_by_key(|robot| (wanted[*robot], *robot));
    for same in heads.chunk_by(|a, b| wanted[*a] == wanted[*b]) {
        let mut line = longest(same, &followers);
        while let Some(robot) = line {
            goes[robot] = true;
            line = longest(&followers(robot), &followers);
        }
    }
    goes
}

/// Returns the robot with the longest line behind it, the first of several.
fn longest(robots: &[usize], followers: &impl Fn(usize) -> Vec<usize>) -> Option<usize> {
    robots.iter().copied().rev().max_by_key(|robot| line(*robot, followers))
}

/// Returns the length of the longest line that a robot leads. A robot before a free cell leads no ring, so this ends.
fn line(robot: usize, followers: &impl Fn(usize) -> Vec<usize>) -> usize {
    1 + followers(robot).into_iter().map(|other| line(other, followers)).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::who_goes;
    use crate::grid::Cell;

    /// Robots by where they are and where they want to be.
    fn goes(robots: &[([u8; 2], [u8; 2])]) -> Vec<bool> {
        let cell = |[x, y]: [u8; 2]| Cell { x, y };
        let (at, wanted): (Vec<Cell>, Vec<Cell>) = robots.iter().map(|(at, to)| (cell(*at), cell(*to))).unzip();
        who_goes(&at, &wanted)
    }

    #[test]
    fn lines_move_up_and_rings_turn() {
        // A line of two, and one that wants the same cell.
        let line = [([1, 0], [2, 0]), ([0, 0], [1, 0]), ([2, 1], [2, 0])];
        assert_eq!(goes(&line), [true, true, false]);
        // Two want the same cell: the first gets it.
        assert_eq!(goes(&[([3, 0], [2, 0]), ([1, 0], [2, 0])]), [true, false]);
        // Nobody changes places, and nobody pushes a robot that stays.
        assert_eq!(goes(&[([0, 0], [1, 0]), ([1, 0], [0, 0]), ([0, 1], [0, 0])]), [false; 3]);
        assert_eq!(goes(&[([0, 0], [1, 0]), ([1, 0], [1, 0])]), [false, true]);
        // A ring of four turns, one who wants to get in does not.
        let ring = [([0, 0], [1, 0]), ([1, 0], [1, 1]), ([1, 1], [0, 1]), ([0, 1], [0, 0]), ([2, 0], [1, 0])];
        assert_eq!(goes(&ring), [true, true, true, true, false]);
    }
}
