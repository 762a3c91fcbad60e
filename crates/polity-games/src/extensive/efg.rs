//! Gambit's format `.efg` (McKelvey, McLennan and Turocy): the nodes of a game in depth-first order.

use super::{Builder, Node, Tree};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

#[derive(Clone, Debug, PartialEq)]
enum Word {
    Open,
    Close,
    Quoted(String),
    Bare(String),
}

struct Words {
    /// Each word, with its line.
    words: Vec<(Word, usize)>,
    next: usize,
}

fn words(text: &str) -> Result<Vec<(Word, usize)>, String> {
    let mut words = Vec::new();
    let mut chars = text.chars().peekable();
    let mut line = 1;
    while let Some(first) = chars.next() {
        let begun = line;
        let word = match first {
            '\n' => {
                line += 1;
                continue;
            }
            _ if first.is_whitespace() || first == ',' => continue,
            '{' => Word::Open,
            '}' => Word::Close,
            '"' => {
                let mut quoted = String::new();
                loop {
                    match chars.next() {
                        None => return Err(format!("line {begun}: a `\"` is not closed")),
                        Some('"') => break,
                        Some('\\') => quoted.push(chars.next_if(|c| "\\\"".contains(*c)).unwrap_or('\\')),
                        Some(c) => {
                            line += usize::from(c == '\n');
                            quoted.push(c);
                        }
                    }
                }
                Word::Quoted(quoted)
            }
            _ => {
                let mut bare = String::from(first);
                while let Some(c) = chars.next_if(|c| !c.is_whitespace() && !"{}\",".contains(*c)) {
                    bare.push(c);
                }
                Word::Bare(bare)
            }
        };
        words.push((word, begun));
    }
    Ok(words)
}

/// Reads a number, or a fraction such as `1/3`.
fn number(text: &str) -> Option<f64> {
    let x = match text.split_once('/') {
        Some((above, below)) => above.parse::<f64>().ok()? / below.parse::<f64>().ok()?,
        None => text.parse().ok()?,
    };
    x.is_finite().then_some(x)
}

impl Words {
    fn line(&self) -> usize {
        let at = self.next.min(self.words.len().saturating_sub(1));
        self.words.get(at).map_or(1, |(_, line)| *line)
    }

    fn fail<T>(&self, told: impl std::fmt::Display) -> Result<T, String> {
        Err(format!("line {}: {told}", self.line()))
    }

    fn peek(&self) -> Option<&Word> {
        self.words.get(self.next).map(|(word, _)| word)
    }

    fn take(&mut self, word: &Word) -> bool {
        let found = self.peek() == Some(word);
        self.next += usize::from(found);
        found
    }

    fn quoted_next(&mut self) -> Option<String> {
        let Some(Word::Quoted(text)) = self.peek() else { return None };
        let text = text.clone();
        self.next += 1;
        Some(text)
    }

    fn quoted(&mut self, what: &str) -> Result<String, String> {
        self.quoted_next().map_or_else(|| self.fail(format!("{what} must stand here in quotes")), Ok)
    }

    fn bare(&mut self, what: &str) -> Result<String, String> {
        let Some(Word::Bare(text)) = self.peek() else { return self.fail(format!("{what} must stand here")) };
        let text = text.clone();
        self.next += 1;
        Ok(text)
    }

    fn whole(&mut self, what: &str) -> Result<usize, String> {
        let text = self.bare(what)?;
        if let Ok(n) = text.parse::<u32>() {
            return Ok(n as usize);
        }
        self.next -= 1;
        self.fail(format!("{what} must be a whole number, and is `{text}`"))
    }

    fn number(&mut self, what: &str) -> Result<f64, String> {
        let text = self.bare(what)?;
        if let Some(x) = number(&text) {
            return Ok(x);
        }
        self.next -= 1;
        self.fail(format!("{what} must be a number or a fraction, and is `{text}`"))
    }

    /// Reads the items of a list in braces, if one begins here.
    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T, String>) -> Result<Option<Vec<T>>, String> {
        if !self.take(&Word::Open) {
            return Ok(None);
        }
        let mut items = Vec::new();
        while !self.take(&Word::Close) {
            if self.peek().is_none() {
                return self.fail("a `{` is not closed");
            }
            items.push(item(self)?);
        }
        Ok(Some(items))
    }
}

/// What earlier nodes have defined, by the file's numbers.
#[derive(Default)]
struct Known {
    chances: BTreeMap<usize, Vec<(String, f64)>>,
    sets: BTreeMap<(usize, usize), (String, Vec<String>)>,
    outcomes: BTreeMap<usize, Vec<f64>>,
}

impl Known {
    /// Reads an outcome: its number, its name and its payoffs; only the number after the first time. None is 0.
    fn outcome(&mut self, words: &mut Words, players: usize) -> Result<Option<Vec<f64>>, String> {
        let number = words.whole("the number of an outcome (0 for none)")?;
        words.quoted_next();
        let payoffs = words.list(|words| words.number("a payoff"))?;
        if let Some(payoffs) = payoffs {
            if payoffs.len() != players {
                return words.fail(format!("{players} players need {players} payoffs; there are {}", payoffs.len()));
            }
            if number == 0 {
                return words.fail("outcome 0 means no outcome, and has no payoffs");
            }
            if self.outcomes.insert(number, payoffs.clone()).is_some_and(|known| known != payoffs) {
                return words.fail(format!("outcome {number} has other payoffs than before"));
            }
        }
        match self.outcomes.get(&number) {
            _ if number == 0 => Ok(None),
            None => words.fail(format!("the payoffs of outcome {number} are missing")),
            Some(payoffs) => Ok(Some(payoffs.clone())),
        }
    }

    /// Reads what follows `c` and the node's name, and adds the node. Returns the number of moves.
    fn chance(&mut self, words: &mut Words, builder: &mut Builder) -> Result<usize, String> {
        let set = words.whole("the number of a chance set")?;
        words.quoted_next();
        let moves = words.list(|words| Ok((words.quoted("a move of chance")?, words.number("a probability")?)))?;
        let moves = moves.map(|moves| {
            let (names, probabilities): (Vec<String>, Vec<f64>) = moves.into_iter().unzip();
            named(names).into_iter().zip(probabilities).collect()
        });
        let moves = match moves.or_else(|| self.chances.get(&set).cloned()) {
            Some(moves) => moves,
            None => return words.fail(format!("the moves of chance set {set} are missing")),
        };
        if self.chances.get(&set).is_some_and(|known| *known != moves) {
            return words.fail(format!("chance set {set} has other moves or probabilities than before"));
        }
        builder.chance(&moves);
        let count = moves.len();
        self.chances.insert(set, moves);
        Ok(count)
    }

    /// Reads what follows `p` and the node's name, and adds the node. Returns the number of moves.
    fn decision(&mut self, words: &mut Words, builder: &mut Builder) -> Result<usize, String> {
        let player = words.whole("the number of a player")?;
        let Some(player) = player.checked_sub(1) else { return words.fail("players are numbered from 1") };
        let set = words.whole("the number of an information set")?;
        let label = words.quoted_next();
        let moves = words.list(|words| words.quoted("a move"))?;
        let moves = moves.map(named);
        let known = self.sets.get(&(player, set)).cloned();
        let Some((label, moves)) = moves.map(|moves| (label.unwrap_or_default(), moves)).or(known) else {
            return words.fail(format!("the moves of information set {set} of player {} are missing", player + 1));
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
    let mut words = Words { words: words(text)?, next: 0 };
    let is =
        |word: Option<&Word>, fits: &[&str]| matches!(word, Some(Word::Bare(bare)) if fits.contains(&bare.as_str()));
    for fits in [&["EFG"][..], &["2"], &["R", "D"]] {
        if !is(words.peek(), fits) {
            return words.fail("a game begins with `EFG 2 R`, its title in quotes, and its players");
        }
        words.next += 1;
    }
    let title = words.quoted("the title")?;
    let Some(players) = words.list(|words| words.quoted("a player"))? else {
        return words.fail("the players must stand here, in `{` and `}`");
    };
    // A comment may precede the nodes.
    words.quoted_next();
    let mut builder = Builder::new(&title, &players);
    if let Some(fault) = builder.fault() {
        return words.fail(fault);
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
        let kind = words.bare("a node, which begins with `c`, `p` or `t`,")?;
        words.quoted_next();
        let children = match kind.as_str() {
            "c" => known.chance(&mut words, &mut builder)?,
            "p" => known.decision(&mut words, &mut builder)?,
            "t" => 0,
            _ => {
                words.next -= 1;
                return words.fail(format!("a node begins with `c`, `p` or `t`, and not with `{kind}`"));
            }
        };
        if let Some(payoffs) = known.outcome(&mut words, players.len())? {
            sum.iter_mut().zip(payoffs).for_each(|(sum, payoff)| *sum += payoff);
        }
        if kind == "t" {
            builder.terminal(&sum);
        }
        if let Some(fault) = builder.fault() {
            words.next -= 1;
            return words.fail(fault);
        }
        path.push((children, sum));
    }
    if words.peek().is_some() {
        return words.fail("the tree is complete, but more text follows");
    }
    builder.finish()
}

/// Writes text in quotes.
fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
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
