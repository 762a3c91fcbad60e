//! Well-known small games by name.

use super::{Builder, Tree, kuhn, leduc, poker};

/// The games that [`game`] knows: the name and one line.
pub const GAMES: [(&str, &str); 6] = [
    ("centipede", "Take the larger part, or pass while both parts double; 6 moves (McKelvey and Palfrey 1992)"),
    ("entry", "An entrant stays out or enters, and the incumbent fights or gives way (Selten 1978)"),
    ("kuhn", "Poker with three cards and one bet (Kuhn 1950)"),
    ("kuhn-3", "Kuhn's poker with three players and four cards"),
    ("leduc", "Poker with six cards and two rounds of bets (Southey et al. 2005)"),
    (
        "ultimatum",
        "Offer a part of 10 units, which the other accepts or rejects (Güth, Schmittberger and Schwarze 1982)",
    ),
];

/// Returns a game by its name: `centipede` (of 6 moves), `entry`, `kuhn`, `kuhn-3` (with three players), `leduc`, `ultimatum` (10 units
/// to share).
///
/// ```
/// use polity_games::extensive::{GAMES, game};
///
/// assert!(GAMES.iter().all(|(name, _)| game(name).is_some()));
/// assert!(game("chess").is_none());
/// ```
#[must_use]
pub fn game(name: &str) -> Option<Tree> {
    Some(match name {
        "centipede" => centipede(6),
        "entry" => entry(),
        "kuhn" => kuhn(),
        "kuhn-3" => poker::kuhn_of(3),
        "leduc" => leduc(),
        "ultimatum" => ultimatum(10),
        _ => return None,
    })
}

/// The ultimatum game (Güth, Schmittberger and Schwarze 1982): the proposer offers 0 to `pie` whole units; if the
/// responder rejects, both get nothing.
pub(crate) fn ultimatum(pie: u32) -> Tree {
    let mut builder = Builder::new("ultimatum", &["proposer", "responder"]);
    let offers: Vec<String> = (0..=pie).map(|offer| format!("offer-{offer}")).collect();
    builder.decision(0, "offer", &offers);
    for (offer, name) in offers.iter().enumerate() {
        builder.decision(1, name, &["accept", "reject"]);
        builder.terminal(&[f64::from(pie) - offer as f64, offer as f64]);
        builder.terminal(&[0.0, 0.0]);
    }
    builder.built()
}

/// The centipede game (Rosenthal 1981) with the payoffs of McKelvey and Palfrey (1992), in units of 10 cents: two players take turns,
/// `moves` in all. Whoever takes at move k, counted from 0, gets 4 · 2^k, and the other gets 2^k. If the last move is a pass,
/// the other gets the larger part, after one more doubling.
pub(crate) fn centipede(moves: u32) -> Tree {
    let mut builder = Builder::new("centipede", &["first", "second"]);
    // Taking comes first in each node, so that the node of the next move follows.
    let split = |taker: u32| {
        let unit = libm::exp2(f64::from(taker));
        if taker.is_multiple_of(2) { [4.0 * unit, unit] } else { [unit, 4.0 * unit] }
    };
    for k in 0..moves {
        builder.decision((k % 2) as usize, &format!("move-{}", k + 1), &["take", "pass"]);
        builder.terminal(&split(k));
    }
    builder.terminal(&split(moves));
    builder.built()
}

/// Entry into a market (Selten 1978, one market): the entrant stays out (0 and 2) or enters; the incumbent then fights (-1 and -1) or
/// accommodates (1 and 1).
#[must_use]
pub fn entry() -> Tree {
    let mut builder = Builder::new("entry", &["entrant", "incumbent"]);
    builder.decision(0, "entry", &["stay-out", "enter"]);
    builder.terminal(&[0.0, 2.0]);
    builder.decision(1, "response", &["fight", "accommodate"]);
    builder.terminal(&[-1.0, -1.0]);
    builder.terminal(&[1.0, 1.0]);
    builder.built()
}
