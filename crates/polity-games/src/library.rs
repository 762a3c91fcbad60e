//! Textbook games in normal form, by name.

use crate::normal::Game;
use polity_base::tree::nearest;

/// A game of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// A one-line summary.
    pub summary: &'static str,
    /// The number that may follow its name (`public-goods-6`).
    pub number: Option<Number>,
}

/// A number that may follow the name of a game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number {
    /// What it sets.
    pub what: &'static str,
    /// The number if none follows the name.
    pub default: usize,
    /// The least number.
    pub least: usize,
    /// The greatest number.
    pub most: usize,
}

const fn plain(name: &'static str, summary: &'static str) -> Entry {
    Entry { name, summary, number: None }
}

/// The games of the library. Sources: Luce and Raiffa 1957, Rapoport and Guyer 1966, and as stated.
pub const GAMES: [Entry; 19] = [
    plain(
        "prisoners-dilemma",
        "Each gains by defecting, but both do better if both cooperate (payoffs of Axelrod 1984)",
    ),
    plain("donation", "Help the other at a cost of 1 for a benefit of 3, or not (Nowak 2006)"),
    plain("stag-hunt", "Hunt a stag together, or a hare alone: trust against safety (Rousseau 1755)"),
    plain("chicken", "Going straight pays if the other swerves; Aumann's (1974) example of a correlated equilibrium"),
    plain(
        "snowdrift",
        "Share a cost of 1 for a benefit of 2 to both, or leave it to the other (Hauert and Doebeli 2004)",
    ),
    plain("hawk-dove", "Fight or share a prize of 4 when a fight costs 6 (Maynard Smith and Price 1973)"),
    plain("battle-of-the-sexes", "Two players want to meet, but prefer different places"),
    plain("matching-pennies", "One wants to match, the other to differ"),
    plain("biased-pennies", "Matching pennies in which one match pays nine times as much (Ochs 1995)"),
    plain("rock-paper-scissors", "Each strategy beats one and loses to one"),
    plain("deadlock", "Both prefer mutual defection to mutual cooperation"),
    plain("coordination", "Both gain if they choose the same one of two equal options"),
    plain("shapley", "Three strategies each; fictitious play cycles (Shapley 1964)"),
    plain("inspection", "Inspect or trust a worker who works or shirks (Fudenberg and Tirole 1991)"),
    plain("commitment", "The leader gains by committing itself to a mixture (Conitzer and Sandholm 2006)"),
    plain("market-entry", "An entrant faces an incumbent who may fight (Selten 1978)"),
    Entry {
        name: "travellers-dilemma",
        summary: "The lower of two claims is paid, with 2 more for the lower claimant and 2 less for the other (Basu 1994)",
        number: Some(Number { what: "the highest claim; the lowest is 2", default: 10, least: 3, most: 100 }),
    },
    Entry {
        name: "public-goods",
        summary: "Contributions of 20 grow by 1.6 and are shared (the parameters of Fehr and Gaechter 2000)",
        number: Some(Number { what: "players", default: 4, least: 2, most: 12 }),
    },
    Entry {
        name: "volunteers-dilemma",
        summary: "All gain 2 if someone volunteers, at a cost of 1 (Diekmann 1985)",
        number: Some(Number { what: "players", default: 3, least: 2, most: 12 }),
    },
];

/// Returns a game of the library by its name, which a number may follow if the game takes one: `public-goods-6`.
///
/// # Errors
/// There is no such game (the message lists the names), or its number is out of range (the message says the range).
///
/// ```
/// use polity_games::library;
///
/// assert_eq!(library::named("public-goods-6").unwrap().players.len(), 6);
/// assert!(library::named("public-goods-99").unwrap_err().contains("from 2 to 12"));
/// ```
pub fn named(name: &str) -> Result<Game, String> {
    if let Some(entry) = GAMES.iter().find(|entry| entry.name == name) {
        return make(entry.name, entry.number.map_or(0, |number| number.default));
    }
    let numbered = name.rsplit_once('-').and_then(|(head, number)| {
        let entry = GAMES.iter().find(|entry| entry.name == head && entry.number.is_some())?;
        Some((entry, number.parse::<usize>().ok()?))
    });
    match numbered {
        Some((Entry { name, number: Some(Number { what, least, most, .. }), .. }, number)) => {
            if !(*least..=*most).contains(&number) {
                return Err(format!("the number of `{name}` ({what}) is from {least} to {most}; {number} is not"));
            }
            make(name, number)
        }
        _ => {
            let names: Vec<&str> = GAMES.iter().map(|entry| entry.name).collect();
            let near = nearest(name, names.iter().copied());
            let meant = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
            Err(format!("there is no game `{name}` in the library{meant} (known are {})", names.join(", ")))
        }
    }
}

fn make(name: &str, number: usize) -> Result<Game, String> {
    let symmetric =
        |names: [&str; 2], own: [[f64; 2]; 2]| of_two(name, names, names, own.map(|row| row.to_vec()), None);
    match name {
        "prisoners-dilemma" => symmetric(["cooperate", "defect"], [[3.0, 0.0], [5.0, 1.0]]),
        "donation" => symmetric(["cooperate", "defect"], [[2.0, -1.0], [3.0, 0.0]]),
        "stag-hunt" => symmetric(["stag", "hare"], [[4.0, 0.0], [3.0, 3.0]]),
        "chicken" => symmetric(["swerve", "straight"], [[6.0, 2.0], [7.0, 0.0]]),
        "snowdrift" => symmetric(["cooperate", "defect"], [[1.5, 1.0], [2.0, 0.0]]),
        "hawk-dove" => symmetric(["hawk", "dove"], [[-1.0, 4.0], [0.0, 2.0]]),
        "deadlock" => symmetric(["cooperate", "defect"], [[2.0, 1.0], [4.0, 3.0]]),
        "coordination" => symmetric(["left", "right"], [[1.0, 0.0], [0.0, 1.0]]),
        "battle-of-the-sexes" => {
            let names = ["opera", "football"];
            of_two(name, names, names, [[3.0, 0.0], [0.0, 2.0]], Some([[2.0, 0.0], [0.0, 3.0]]))
        }
        "matching-pennies" => {
            let names = ["heads", "tails"];
            of_two(name, names, names, [[1.0, -1.0], [-1.0, 1.0]], Some([[-1.0, 1.0], [1.0, -1.0]]))
        }
        "biased-pennies" => {
            let names = ["heads", "tails"];
            of_two(name, names, names, [[9.0, 0.0], [0.0, 1.0]], Some([[0.0, 1.0], [1.0, 0.0]]))
        }
        "rock-paper-scissors" => {
            let names = ["rock", "paper", "scissors"];
            of_two(name, names, names, [[0.0, -1.0, 1.0], [1.0, 0.0, -1.0], [-1.0, 1.0, 0.0]], None::<[[f64; 3]; 3]>)
        }
        "shapley" => {
            let names = ["first", "second", "third"];
            let row = [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]];
            let column = [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]];
            of_two(name, names, names, row, Some(column))
        }
        "inspection" => of_two(
            name,
            ["inspect", "trust"],
            ["work", "shirk"],
            [[3.0, -1.0], [4.0, -4.0]],
            Some([[2.0, 0.0], [2.0, 4.0]]),
        ),
        "commitment" => {
            of_two(name, ["up", "down"], ["left", "right"], [[2.0, 4.0], [1.0, 3.0]], Some([[1.0, 0.0], [0.0, 1.0]]))
        }
        "market-entry" => of_two(
            name,
            ["stay-out", "enter"],
            ["yield", "fight"],
            [[1.0, 1.0], [2.0, 0.0]],
            Some([[5.0, 5.0], [2.0, 0.0]]),
        ),
        "travellers-dilemma" => {
            let claims: Vec<String> = (2..=number).map(|claim| claim.to_string()).collect();
            Game::from_fn(title(name), players(2), vec![claims.clone(), claims], |profile| {
                let paid = |own: usize, other: usize| {
                    let bonus = if own < other {
                        2.0
                    } else if own > other {
                        -2.0
                    } else {
                        0.0
                    };
                    (own.min(other) + 2) as f64 + bonus
                };
                vec![paid(profile[0], profile[1]), paid(profile[1], profile[0])]
            })
        }
        "public-goods" => {
            let names = vec![vec!["contribute".to_owned(), "keep".to_owned()]; number];
            Game::from_fn(title(name), players(number), names, |profile| {
                let share = 1.6 * 20.0 * profile.iter().filter(|own| **own == 0).count() as f64 / number as f64;
                profile.iter().map(|own| share + 20.0 * *own as f64).collect()
            })
        }
        "volunteers-dilemma" => {
            let names = vec![vec!["volunteer".to_owned(), "wait".to_owned()]; number];
            Game::from_fn(title(name), players(number), names, |profile| {
                let good = if profile.contains(&0) { 2.0 } else { 0.0 };
                profile.iter().map(|own| if *own == 0 { good - 1.0 } else { good }).collect()
            })
        }
        _ => Err(format!("`{name}` is listed, but the library has no payoffs for it")),
    }
}

fn title(name: &str) -> String {
    let mut title = name.replace('-', " ");
    title[..1].make_ascii_uppercase();
    title
}

fn players(n: usize) -> Vec<String> {
    (1..=n).map(|player| format!("Player {player}")).collect()
}

/// A game of two players from their payoffs, by the first one's strategies, then by the second's. Without the second's payoffs the
/// game is symmetric.
fn of_two<R: AsRef<[f64]>, const M: usize, const N: usize>(
    name: &str,
    rows: [&str; M],
    columns: [&str; N],
    first: [R; M],
    second: Option<[R; M]>,
) -> Result<Game, String> {
    let names = vec![rows.map(String::from).to_vec(), columns.map(String::from).to_vec()];
    Game::from_fn(title(name), players(2), names, |profile| {
        let (i, j) = (profile[0], profile[1]);
        let other = second.as_ref().map_or_else(|| first[j].as_ref()[i], |second| second[i].as_ref()[j]);
        vec![first[i].as_ref()[j], other]
    })
}
