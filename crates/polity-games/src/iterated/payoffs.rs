//! The payoffs of a symmetric game of two players with two moves.

use crate::normal::Game;
use serde::Serialize;

/// What a player gets in a turn, by its own move and the other's. The first move of the game is called cooperation, the second
/// defection, whatever they mean in it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Payoffs {
    /// Both cooperate (the reward `R` of a prisoner's dilemma).
    pub cc: f64,
    /// It cooperates, and the other defects (the sucker's payoff `S`).
    pub cd: f64,
    /// It defects, and the other cooperates (the temptation `T`).
    pub dc: f64,
    /// Both defect (the punishment `P`).
    pub dd: f64,
}

impl Payoffs {
    /// The prisoner's dilemma of Axelrod's tournaments (Axelrod 1980).
    pub const PRISONERS_DILEMMA: Payoffs = Payoffs { cc: 3.0, cd: 0.0, dc: 5.0, dd: 1.0 };

    /// Returns the payoffs of a game in normal form.
    ///
    /// # Errors
    /// The game has other numbers of players or moves, or is not symmetric. The message says which.
    ///
    /// ```
    /// use polity_games::{iterated::Payoffs, normal};
    ///
    /// let text = r#"NFG 1 R "hawks and doves" { "1" "2" } { { "dove" "hawk" } { "dove" "hawk" } } 2 2 4 0 0 4 -1 -1"#;
    /// let payoffs = Payoffs::of(&normal::read(text)?)?;
    /// assert_eq!(payoffs, Payoffs { cc: 2.0, cd: 0.0, dc: 4.0, dd: -1.0 });
    /// # Ok::<(), String>(())
    /// ```
    pub fn of(game: &Game) -> Result<Payoffs, String> {
        let moves: Vec<usize> = game.strategies.iter().map(Vec::len).collect();
        if moves != [2, 2] {
            return Err(format!(
                "a repeated game is between two players with two moves each; this game has {} players with {moves:?} moves",
                moves.len()
            ));
        }
        Payoffs::symmetric(|own, other| [game.payoff(&[own, other], 0), game.payoff(&[own, other], 1)])
    }

    /// Returns the payoffs of a game from a function that gives what each of the two players gets, by the first one's move and the
    /// second one's, 0 or 1.
    ///
    /// # Errors
    /// The game is not symmetric. The message says where.
    pub fn symmetric(both: impl Fn(usize, usize) -> [f64; 2]) -> Result<Payoffs, String> {
        for (own, other) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let (first, second) = (both(own, other)[0], both(other, own)[1]);
            if first != second {
                return Err(format!(
                    "the game is not symmetric: for move {} against move {} the first player gets {first}, the second {second}",
                    own + 1,
                    other + 1
                ));
            }
        }
        let [cc, cd, dc, dd] = [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(own, other)| both(own, other)[0]);
        Ok(Payoffs { cc, cd, dc, dd })
    }

    /// Returns the lowest and the highest payoff.
    #[must_use]
    pub fn range(&self) -> (f64, f64) {
        let all = [self.cc, self.cd, self.dc, self.dd];
        (all.into_iter().fold(f64::INFINITY, f64::min), all.into_iter().fold(f64::NEG_INFINITY, f64::max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library;
    use crate::normal::read;

    #[test]
    fn games_that_do_not_fit_are_refused() {
        for (text, told) in [
            (r#"NFG 1 R "x" { "1" } { { "a" "b" } } 1 2"#, "this game has 1 players with [2] moves"),
            (r#"NFG 1 R "x" { "1" "2" } { { "a" "b" } { "a" } } 1 2 3 4"#, "[2, 1] moves"),
            (
                r#"NFG 1 R "x" { "1" "2" } { { "a" "b" } { "a" "b" } } 3 3 5 0 0 4 1 1"#,
                "for move 2 against move 1 the first player gets 5, the second 4",
            ),
        ] {
            let refused = Payoffs::of(&read(text).unwrap()).unwrap_err();
            assert!(refused.contains(told), "{refused}");
        }
        assert_eq!(Payoffs::of(&library::named("prisoners-dilemma").unwrap()), Ok(Payoffs::PRISONERS_DILEMMA));
    }
}
