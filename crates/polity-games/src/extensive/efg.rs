//! Gambit's format `.efg` (McKelvey, McLennan and Turocy): the nodes of a game in depth-first order.

use super::{Builder, Node, Tree};
use crate::gambit::{Tokens, quote};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// What earlier nodes have defined, by the file's numbers.
#[derive(Default)]
struct Known {
    chances: BTreeMap<usize, Vec<(String, f64)>>,
    sets: BTreeMap<(usize, usize), (String, Vec<String>)>,
    outcomes: BTreeMap<usize, Vec<f64>>,
}

impl Known {
    /// Reads an outcome: its number, its name and its payoffs; only the number after the first time. None is 0.
    fn outcome(&mut self, tokens: &mut Tokens, players: usize) -> Result<Option<Vec<f64>>, String> {
        let number = tokens.whole("the number of an outcome (0 for none)")?;
        tokens.quoted_next();
        let payoffs = tokens.list(|tokens| tokens.number("a payoff"))?;
        if let Some(payoffs) = payoffs {
            if payoffs.len() != players {
                return tokens.fail(format!("{players} players need {players} payoffs; there are {}", payoffs.len()));
            }
            if number == 0 {
                return tokens.fail("outcome 0 means no outcome, and has no payoffs");
            }
            if self.outcomes.insert(number, payoffs.clone()).is_some_and(|known| known != payoffs) {
                return tokens.fail(format!("outcome {number} has other payoffs than before"));
            }
        }
        match self.outcomes.get(&number) {
            _ if number == 0 => Ok(None),
            None => tokens.fail(format!("the payoffs of outcome {number} are missing")),
            Some(payoffs) => Ok(Some(payoffs.clone())),
        }
    }

    /// Reads what follows `c` and the node's name, and adds the node. Returns the number of moves.
    fn chance(&mut self, tokens: &mut Tokens, builder: &mut Builder) -> Result<usize, String> {
        let set = tokens.whole("the number of a chance set")?;
        tokens.quoted_next();
        let moves = tokens.list(|tokens| Ok((tokens.quoted("a move of chance")?, tokens.number("a probability")?)))?;
        let moves = moves.map(|moves| {
            let (names, probabilities): (Vec<String>, Vec<f64>) = moves.into_iter().unzip();
            named(names).into_iter().zip(probabilities).collect()
        });
        let moves = match moves.or_else(|| self.chances.get(&set).cloned()) {
            Some(moves) => moves,
            None => return tokens.fail(format!("the moves of chance set {set} are missing")),
        };
        if self.chances.get(&set).is_some_and(|known| *known != moves) {
            return tokens.fail(format!("chance set {set} has other moves or probabilities than before"));
        }
        builder.chance(&moves);
        let count = moves.len();
        self.chances.insert(set, moves);
        Ok(count)
    }

    /// Reads what follows `p` and the node's name, and adds the node. Returns the number of moves.
    fn decision(&mut self, tokens: &mut Tokens, builder: &mut Builder) -> Result<usize, String> {
        let player = tokens.whole("the number of a player")?;
        let Some(player) = player.checked_sub(1) else { return tokens.fail("players are numbered from 1") };
        let set = tokens.whole("the number of an information set")?;
        let label = tokens.quoted_next();
        let moves = tokens.list(|tokens| tokens.quoted("a move"))?;
        let moves = moves.map(named);
        let known = self.sets.get(&(player, set)).cloned();
        let Some((label, moves)) = moves.map(|moves| (label.unwrap_or_default(), moves)).or(known) else {
            return tokens.fail(format!("the moves of information set {set} of player {} are missing", player + 1));
        };
        builder.keyed(player, &set.to_string(), &label, &moves);
        let count = moves.len();
        self.sets.entry((player, set)).or_insert((label, moves));
        Ok(count)
    }
}

/// Gives moves without a name their number as a name, and adds the number to a name that an earlier move has.
fn named(names: Vec<String>) -> Vec<String> {
    let mut known = BTreeSet::new();
    let mut different = Vec::with_capacity(names.len());
    for (number, mut name) in (1..).zip(names) {
        if name.is_empty() {
            name = number.to_string();
        }
        while !known.insert(name.clone()) {
            name = format!("{name} ({number})");
        }
        different.push(name);
    }
    different
}

/// Reads a game in Gambit's format `.efg`. Outcomes at inner nodes are added to what follows. The names of nodes and outcomes are left
/// out. A move without a name gets its number as a name, and one with the name of an earlier move gets its number added.
///
/// ```
/// let text = r#"EFG 2 R "matching pennies" { "Ann" "Bob" }
/// p "" 1 1 "" { "heads" "tails" } 0
///   p "" 2 1 "" { "heads" "tails" } 0
///     t "" 1 "same" { 1 -1 }
///     t "" 2 "different" { -1 1 }
///   p "" 2 1 0
///     t "" 2
///     t "" 1"#;
/// let tree = polity_games::extensive::read(text)?;
/// assert_eq!((tree.len(), tree.sets().len()), (7, 2));
/// assert!(!tree.perfect_information() && tree.perfect_recall().is_ok());
/// # Ok::<(), String>(())
/// ```
///
/// # Errors
/// The error in words, with its line: what is no `.efg`, and all faults that [`Builder::finish`] names.
pub fn read(text: &str) -> Result<Tree, String> {
    let mut tokens = Tokens::new(text)?;
    let (title, players) = tokens.head("EFG", "2")?;
    // A comment may precede the nodes.
    tokens.quoted_next();
    let mut builder = Builder::new(&title, &players);
    if let Some(fault) = builder.fault() {
        return tokens.fail(fault);
    }
    let mut known = Known::default();
    // Nodes on the path: children to come, and what the outcomes so far add up to.
    let mut path: Vec<(usize, Vec<f64>)> = vec![(1, vec![0.0; players.len()])];
    while let Some((left, sum)) = path.last_mut() {
        if *left == 0 {
            path.pop();
            continue;
        }
        *left -= 1;
        let mut sum = sum.clone();
        let kind = tokens.bare("a node, which begins with `c`, `p` or `t`,")?;
        tokens.quoted_next();
        let children = match kind.as_str() {
            "c" => known.chance(&mut tokens, &mut builder)?,
            "p" => known.decision(&mut tokens, &mut builder)?,
            "t" => 0,
            _ => {
                tokens.back();
                return tokens.fail(format!("a node begins with `c`, `p` or `t`, and not with `{kind}`"));
            }
        };
        if let Some(payoffs) = known.outcome(&mut tokens, players.len())? {
            sum.iter_mut().zip(payoffs).for_each(|(sum, payoff)| *sum += payoff);
        }
        if kind == "t" {
            builder.terminal(&sum);
        }
        if let Some(fault) = builder.fault() {
            tokens.back();
            return tokens.fail(fault);
        }
        path.push((children, sum));
    }
    if tokens.peek().is_some() {
        return tokens.fail("the tree is complete, but more text follows");
    }
    builder.finish()
}

/// Writes a game in Gambit's format `.efg`; [`read`] returns the same tree.
#[must_use]
pub fn write(tree: &Tree) -> String {
    let list = |names: &[String]| names.iter().map(|name| quote(name)).collect::<Vec<_>>().join(" ");
    let mut text = format!("EFG 2 R {} {{ {} }}\n\"\"\n\n", quote(&tree.title), list(&tree.players));
    let mut chances = 0;
    let mut outcomes = 0;
    for at in 0..tree.len() {
        // Writing to a string cannot fail.
        let _ = match tree.node(at) {
            Node::Chance { moves, probabilities, .. } => {
                chances += 1;
                let moves: Vec<String> =
                    moves.iter().zip(probabilities).map(|(name, p)| format!("{} {p}", quote(name))).collect();
                writeln!(text, "c \"\" {chances} \"\" {{ {} }} 0", moves.join(" "))
            }
            Node::Decision { set, .. } => {
                let own = &tree.sets()[set];
                let number = set - tree.sets_of(own.player).start + 1;
                writeln!(text, "p \"\" {} {number} {} {{ {} }} 0", own.player + 1, quote(&own.name), list(&own.moves))
            }
            Node::Terminal { payoffs } => {
                outcomes += 1;
                let payoffs: Vec<String> = payoffs.iter().map(f64::to_string).collect();
                writeln!(text, "t \"\" {outcomes} \"\" {{ {} }}", payoffs.join(", "))
            }
        };
    }
    text
}
