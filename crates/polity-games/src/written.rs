//! Games written as data: players, moves and payoffs, or a tree with turns, chance and information.
//!
//! ```text
//! title: Stag hunt                      title: Matching a coin that only Ann sees
//! players: [Ann, Bob]                   players: [Ann, Bob]
//! moves: [stag, hare]                   tree:
//! payoffs:                                chance:
//!   - [[4, 4], [0, 3]]                      heads:
//!   - [[3, 0], [3, 3]]                        p: 1/2
//!                                             then: {player: Bob, set: guess, moves: {heads: [-1, 1], tails: [1, -1]}}
//!                                           tails:
//!                                             p: 1/2
//!                                             then: {player: Bob, set: guess, moves: {heads: [1, -1], tails: [-1, 1]}}
//! ```
//!
//! `payoffs` is a list with one entry for each move of the first player; each is a list for the moves of the second, and so on;
//! innermost stands what each player gets. `moves` is one list for all, or a list for each player by name. In a tree, decisions of a
//! player with the same `set` cannot be told apart, and a decision without `set` is told apart from all others.

use crate::extensive::{Builder, Tree};
use crate::gambit;
use crate::normal::Game;
use polity_base::tree::{Node, TreeError, Value, child, item, nearest};

/// A game that was written as data.
#[derive(Clone, Debug, PartialEq)]
pub enum Written {
    /// In normal form.
    Normal(Game),
    /// In extensive form.
    Extensive(Tree),
}

/// Reads a game.
///
/// # Errors
/// The place of what is missing, unknown or of the wrong shape, and what belongs there.
///
/// ```
/// use polity_base::tree::Node;
/// use polity_games::written::{Written, read};
/// use serde_json::json;
///
/// let data = json!({"players": ["Ann", "Bob"], "moves": ["stag", "hare"],
///     "payoffs": [[[4, 4], [0, 3]], [[3, 0], [3, 3]]]});
/// let Written::Normal(game) = read(&Node::from_json(&data)).unwrap() else { panic!("moves and payoffs are a normal form") };
/// assert_eq!(game.payoff(&[0, 1], 1), 3.0);
/// ```
pub fn read(file: &Node) -> Result<Written, TreeError> {
    known(file, "", &["title", "players", "moves", "payoffs", "tree"])?;
    let title = file.get("title").map_or(Ok(""), |node| text(node, "title"))?;
    let players = texts(needed(file, "", "players")?, "players")?;
    match (file.get("tree"), file.get("payoffs")) {
        (Some(tree), None) => {
            if let Some(moves) = file.get("moves") {
                return Err(wrong(moves, "moves", "a tree names the moves at each decision"));
            }
            let mut builder = Builder::new(title, &players);
            branch(tree, "tree", &players, &mut Vec::new(), &mut builder)?;
            builder.finish().map(Written::Extensive).map_err(|error| wrong(tree, "tree", error))
        }
        (None, Some(payoffs)) => {
            let moves = moves(needed(file, "", "moves")?, &players)?;
            let sizes: Vec<usize> = moves.iter().map(Vec::len).collect();
            let mut all = Vec::new();
            table(payoffs, "payoffs", &sizes, &moves, &players, &mut all)?;
            let count = players.len();
            // The file's last player changes fastest, a game's first one does.
            let of = |profile: &[usize]| {
                let place = profile.iter().zip(&sizes).fold(0, |place, (chosen, size)| place * size + chosen);
                all[place * count..(place + 1) * count].to_vec()
            };
            let game = Game::from_fn(title, players.clone(), moves.clone(), of);
            game.map(Written::Normal).map_err(|error| wrong(file, "", error))
        }
        (Some(tree), Some(_)) => Err(wrong(tree, "tree", "a game has either `payoffs` or a `tree`")),
        (None, None) => Err(wrong(file, "", "a game needs `moves` and `payoffs`, or a `tree`")),
    }
}

fn wrong(node: &Node, path: &str, message: impl Into<String>) -> TreeError {
    TreeError { message: message.into(), path: path.into(), origin: node.origin.clone(), help: None }
}

fn expected(node: &Node, path: &str, what: &str) -> TreeError {
    wrong(node, path, format!("expected {what}, found {}", node.describe()))
}

fn needed<'a>(node: &'a Node, path: &str, key: &str) -> Result<&'a Node, TreeError> {
    node.get(key).ok_or_else(|| wrong(node, path, format!("`{key}` is missing")))
}

/// Refuses what is no map, and unknown keys.
fn known(node: &Node, path: &str, keys: &[&str]) -> Result<(), TreeError> {
    for (key, value) in entries(node, path)? {
        if !keys.contains(&key) {
            let meant =
                nearest(key, keys.iter().copied()).map_or(String::new(), |near| format!("; did you mean `{near}`?"));
            return Err(wrong(
                value,
                &child(path, key),
                format!("unknown key `{key}`{meant} (there are {})", keys.join(", ")),
            ));
        }
    }
    Ok(())
}

fn entries<'a>(node: &'a Node, path: &str) -> Result<Vec<(&'a str, &'a Node)>, TreeError> {
    match &node.value {
        Value::Map(entries) => Ok(entries.iter().map(|(key, value)| (key.name.as_str(), value)).collect()),
        _ => Err(expected(node, path, "a map")),
    }
}

fn list<'a>(node: &'a Node, path: &str, what: &str) -> Result<&'a [Node], TreeError> {
    match &node.value {
        Value::List(all) => Ok(all),
        _ => Err(expected(node, path, what)),
    }
}

fn text<'a>(node: &'a Node, path: &str) -> Result<&'a str, TreeError> {
    match &node.value {
        Value::Text(text) => Ok(text),
        _ => Err(expected(node, path, "text")),
    }
}

fn texts(node: &Node, path: &str) -> Result<Vec<String>, TreeError> {
    let all = list(node, path, "a list of names")?.iter().enumerate();
    all.map(|(i, name)| text(name, &item(path, i)).map(str::to_owned)).collect()
}

/// A number, or a fraction such as `1/3`.
fn number(node: &Node, path: &str) -> Result<f64, TreeError> {
    let read = match &node.value {
        Value::Int(number) => Some(*number as f64),
        Value::Float(number) => Some(*number),
        Value::Text(text) => gambit::number(text),
        _ => None,
    };
    read.ok_or_else(|| expected(node, path, "a number, or a fraction such as 1/3"))
}

fn moves(node: &Node, players: &[String]) -> Result<Vec<Vec<String>>, TreeError> {
    if matches!(node.value, Value::List(_)) {
        return Ok(vec![texts(node, "moves")?; players.len()]);
    }
    let names: Vec<&str> = players.iter().map(String::as_str).collect();
    known(node, "moves", &names)?;
    names.iter().map(|name| texts(needed(node, "moves", name)?, &child("moves", name))).collect()
}

/// Reads what all players get, for the moves of the players that are left.
fn table(
    node: &Node,
    path: &str,
    left: &[usize],
    moves: &[Vec<String>],
    players: &[String],
    all: &mut Vec<f64>,
) -> Result<(), TreeError> {
    let Some((size, rest)) = left.split_first() else { return payoffs(node, path, players, all) };
    let player = moves.len() - left.len();
    let what = format!("a list with an entry for each of the {size} moves of {}", players[player]);
    let rows = list(node, path, &what)?;
    if rows.len() != *size {
        return Err(wrong(node, path, format!("expected {what}, found {} entries", rows.len())));
    }
    let mut each = rows.iter().enumerate();
    each.try_for_each(|(i, row)| table(row, &item(path, i), rest, moves, players, all))
}

fn payoffs(node: &Node, path: &str, players: &[String], all: &mut Vec<f64>) -> Result<(), TreeError> {
    let what = format!("what each of the {} players gets", players.len());
    let numbers = list(node, path, &what)?;
    if numbers.len() != players.len() {
        return Err(wrong(node, path, format!("expected {what}, found {} numbers", numbers.len())));
    }
    for (i, one) in numbers.iter().enumerate() {
        all.push(number(one, &item(path, i))?);
    }
    Ok(())
}

/// Reads a node of a tree and all below it.
fn branch(
    node: &Node,
    path: &str,
    players: &[String],
    so_far: &mut Vec<String>,
    builder: &mut Builder,
) -> Result<(), TreeError> {
    if matches!(node.value, Value::List(_)) {
        let mut gets = Vec::new();
        payoffs(node, path, players, &mut gets)?;
        builder.terminal(&gets);
        return Ok(());
    }
    if let Some(chance) = node.get("chance") {
        known(node, path, &["chance"])?;
        let path = child(path, "chance");
        let mut shares = Vec::new();
        for (name, happens) in entries(chance, &path)? {
            let path = child(&path, name);
            known(happens, &path, &["p", "then"])?;
            shares.push((name, number(needed(happens, &path, "p")?, &child(&path, "p"))?));
        }
        builder.chance(&shares);
        for (name, happens) in entries(chance, &path)? {
            let path = child(&path, name);
            so_far.push(name.into());
            branch(needed(happens, &path, "then")?, &child(&path, "then"), players, so_far, builder)?;
            so_far.pop();
        }
        return Ok(());
    }
    known(node, path, &["player", "set", "moves"])?;
    let who = needed(node, path, "player")?;
    let name = text(who, &child(path, "player"))?;
    let player = players.iter().position(|player| player == name).ok_or_else(|| {
        wrong(who, &child(path, "player"), format!("there is no player `{name}` (there are {})", players.join(", ")))
    })?;
    let set = match node.get("set") {
        Some(set) => text(set, &child(path, "set"))?.to_owned(),
        None if so_far.is_empty() => "start".into(),
        None => format!("after {}", so_far.join(", ")),
    };
    let moves = needed(node, path, "moves")?;
    let path = child(path, "moves");
    let below = entries(moves, &path)?;
    let names: Vec<&str> = below.iter().map(|(name, _)| *name).collect();
    builder.decision(player, &set, &names);
    for (name, next) in below {
        so_far.push(name.into());
        branch(next, &child(&path, name), players, so_far, builder)?;
        so_far.pop();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use crate::extensive::{self, Profile};
    use serde_json::{Value as Json, json};

    fn from(data: &Json) -> Result<Written, String> {
        read(&Node::from_json(data)).map_err(|error| error.to_string())
    }

    #[test]
    fn players_with_different_moves_keep_their_payoffs() {
        let data = json!({"title": "three", "players": ["a", "b", "c"],
            "moves": {"a": ["a0", "a1"], "b": ["b0", "b1", "b2"], "c": ["c0", "c1"]},
            "payoffs": (0..2).map(|a| (0..3).map(|b| (0..2).map(|c| json!([a, b, c])).collect()).collect()).collect::<Vec<Vec<Vec<Json>>>>()});
        let Written::Normal(game) = from(&data).unwrap() else { panic!("a normal form") };
        for profile in game.profiles() {
            for player in 0..3 {
                assert_eq!(game.payoff(&profile, player), profile[player] as f64);
            }
        }
        assert_eq!(crate::normal::read(&game.write()).unwrap(), game);
    }

    #[test]
    fn a_tree_with_chance_and_information_is_the_one_that_a_builder_makes() {
        let guess = |right: i32| json!({"player": "Bob", "set": "guess", "moves": {"heads": [-right, right], "tails": [right, -right]}});
        let data = json!({"title": "coin", "players": ["Ann", "Bob"], "tree": {"chance": {
            "heads": {"p": "1/2", "then": guess(1)}, "tails": {"p": 0.5, "then": guess(-1)}}}});
        let Written::Extensive(tree) = from(&data).unwrap() else { panic!("a tree") };
        assert_eq!((tree.len(), tree.sets().len()), (7, 1));
        assert_eq!(extensive::read(&extensive::write(&tree)).unwrap(), tree);
        assert_eq!(tree.payoffs(&Profile::uniform(&tree)), [0.0, 0.0]);
    }

    #[test]
    fn errors_name_the_place() {
        let normal = |payoffs: Json| json!({"players": ["a", "b"], "moves": ["x", "y"], "payoffs": payoffs});
        for (data, said) in [
            (
                normal(json!([[[1, 1], [1, 1]]])),
                "payoffs: expected a list with an entry for each of the 2 moves of a, found 1 entries",
            ),
            (
                normal(json!([[[1, 1], [1, 1]], [[1, 1], [1]]])),
                "payoffs[1][1]: expected what each of the 2 players gets, found 1 numbers",
            ),
            (normal(json!([[[1, 1], [1, 1]], [[1, 1], [1, "one"]]])), "payoffs[1][1][1]: expected a number"),
            (json!({"players": ["a"], "moves": ["x"]}), "a game needs `moves` and `payoffs`, or a `tree`"),
            (json!({"player": ["a"]}), "unknown key `player`; did you mean `players`?"),
            (
                json!({"players": ["a"], "tree": {"player": "b", "moves": {"x": [1]}}}),
                "tree.player: there is no player `b`",
            ),
            (json!({"players": ["a"], "tree": {"chance": {"x": {"p": 0.4, "then": [1]}}}}), "add up to 0.4"),
        ] {
            let error = from(&data).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }
}
