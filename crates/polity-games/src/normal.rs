//! Games in normal form, and Gambit's format `.nfg` for them: title, players, strategies, payoffs.

/// Maximum numbers of players, strategies of one player, and combinations.
const MOST: [usize; 3] = [20, 100, 1_000_000];

/// A game in normal form.
#[derive(Clone, Debug, PartialEq)]
pub struct Game {
    /// Its title.
    pub title: String,
    /// The names of the players.
    pub players: Vec<String>,
    /// The strategies of each player, by name.
    pub strategies: Vec<Vec<String>>,
    /// The different names of all strategies, in order of first use.
    pub moves: Vec<String>,
    /// Each player's payoff, combination by combination; the first player's strategy changes fastest.
    payoffs: Vec<f64>,
}

impl Game {
    /// Returns the number of combinations of strategies.
    #[must_use]
    pub fn size(&self) -> usize {
        self.strategies.iter().map(Vec::len).product()
    }

    /// Returns a player's payoff.
    #[must_use]
    pub fn payoff(&self, profile: &[usize], player: usize) -> f64 {
        let mut place = 0;
        for (strategy, strategies) in profile.iter().zip(&self.strategies).rev() {
            place = place * strategies.len() + strategy;
        }
        self.payoffs.get(place * self.players.len() + player).copied().unwrap_or_default()
    }

    /// Returns all combinations; the first player's strategy changes fastest.
    pub fn profiles(&self) -> impl Iterator<Item = Vec<usize>> + '_ {
        (0..self.size()).map(|place| {
            let mut rest = place;
            let digit = |strategies: &Vec<String>| {
                let strategy = rest % strategies.len();
                rest /= strategies.len();
                strategy
            };
            self.strategies.iter().map(digit).collect()
        })
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Open,
    Close,
    Quoted(String),
    Bare(String),
}

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        rest = match first {
            '{' | '}' => {
                tokens.push(if first == '{' { Token::Open } else { Token::Close });
                &rest[1..]
            }
            '"' => {
                let (quoted, after) = rest[1..].split_once('"').ok_or("a `\"` is not closed")?;
                tokens.push(Token::Quoted(quoted.to_owned()));
                after
            }
            _ => {
                let end = rest.find(|c: char| c.is_whitespace() || "{}\"".contains(c)).unwrap_or(rest.len());
                tokens.push(Token::Bare(rest[..end].to_owned()));
                &rest[end..]
            }
        }
        .trim_start();
    }
    Ok(tokens)
}

/// Reads the names between two braces.
fn names(tokens: &mut std::slice::Iter<'_, Token>, what: &str) -> Result<Vec<String>, String> {
    if tokens.next() != Some(&Token::Open) {
        return Err(format!("`{{` is missing before the {what}"));
    }
    let mut names = Vec::new();
    loop {
        match tokens.next() {
            Some(Token::Quoted(name)) => names.push(name.clone()),
            Some(Token::Close) if !names.is_empty() => return Ok(names),
            Some(Token::Close) => return Err(format!("there are no {what}")),
            _ => return Err(format!("the {what} must be names in quotes, followed by `}}`")),
        }
    }
}

/// Reads a number, or a fraction such as `1/3`.
fn number(text: &str) -> Option<f64> {
    let x = match text.split_once('/') {
        Some((above, below)) => above.parse::<f64>().ok()? / below.parse::<f64>().ok()?,
        None => text.parse().ok()?,
    };
    x.is_finite().then_some(x)
}

/// Converts a name to an action's name: lower-case letters, digits and hyphens.
fn action(name: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() { c.to_lowercase().next().unwrap_or(c) } else { '-' };
    name.trim().chars().map(plain).collect()
}

/// Reads a game.
///
/// # Errors
/// The error, in words.
pub fn read(text: &str) -> Result<Game, String> {
    let all = tokens(text)?;
    let mut tokens = all.iter();
    let head: Vec<&Token> = tokens.by_ref().take(3).collect();
    let is = |token: Option<&&Token>, words: &[&str]| matches!(token, Some(Token::Bare(word)) if words.contains(&word.as_str()));
    if !is(head.first(), &["NFG"]) || !is(head.get(1), &["1"]) || !is(head.get(2), &["R", "D"]) {
        return Err("a game begins with `NFG 1 R`, its title in quotes, its players and their strategies".into());
    }
    let Some(Token::Quoted(title)) = tokens.next() else { return Err("the title in quotes is missing".into()) };
    let players = names(&mut tokens, "players")?;
    if players.len() > MOST[0] {
        return Err(format!("a game has at most {} players", MOST[0]));
    }
    if tokens.next() != Some(&Token::Open) {
        return Err("`{` is missing before the strategies".into());
    }
    let mut strategies = Vec::new();
    for player in &players {
        let own: Vec<String> = names(&mut tokens, "strategies")?.iter().map(|name| action(name)).collect();
        if let Some(i) = (0..own.len()).find(|i| own[*i].trim_matches('-').is_empty() || own[..*i].contains(&own[*i])) {
            return Err(format!("strategy {} of {player} has no name, or the name of another one", i + 1));
        }
        if own.len() > MOST[1] {
            return Err(format!("a player has at most {} strategies", MOST[1]));
        }
        strategies.push(own);
    }
    if tokens.next() != Some(&Token::Close) {
        return Err(
            "the strategies of each player must be enclosed in `{` and `}`, and all these lists in another pair".into(),
        );
    }
    let mut tokens = tokens.peekable();
    // A comment may precede the payoffs.
    tokens.next_if(|token| matches!(token, Token::Quoted(_)));
    let payoffs: Result<Vec<f64>, String> = tokens
        .map(|token| match token {
            Token::Bare(word) => number(word).ok_or_else(|| format!("`{word}` is not a payoff")),
            _ => Err("the outcome version of the format is not supported: list the payoffs in order".into()),
        })
        .collect();
    let payoffs = payoffs?;
    let size = strategies.iter().try_fold(1usize, |size, own| size.checked_mul(own.len())).filter(|n| *n <= MOST[2]);
    let size = size.ok_or_else(|| format!("a game has at most {} combinations of strategies", MOST[2]))?;
    if payoffs.len() != size * players.len() {
        let needed = size * players.len();
        return Err(format!(
            "{} players with these strategies need {needed} payoffs; there are {}",
            players.len(),
            payoffs.len()
        ));
    }
    let mut moves: Vec<String> = Vec::new();
    for name in strategies.iter().flatten() {
        if !moves.contains(name) {
            moves.push(name.clone());
        }
    }
    Ok(Game { title: title.clone(), players, strategies, moves, payoffs })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::read;

    #[test]
    fn payoffs_stand_with_the_first_players_strategy_fastest() {
        // Two by three: payoffs are numbered by combination.
        let text = "NFG 1 R \"numbers\" { \"A\" \"B\" } { { \"up\" \"Down \" } { \"l\" \"m\" \"r\" } } \"\"\n0 0 1 -1 2 -2 3 -3 4 -4 1/2 -5";
        let game = read(text).unwrap();
        assert_eq!((game.size(), game.moves.len()), (6, 5));
        assert_eq!(game.moves, ["up", "down", "l", "m", "r"]);
        assert_eq!((game.payoff(&[1, 0], 0), game.payoff(&[0, 1], 0), game.payoff(&[1, 2], 1)), (1.0, 2.0, -5.0));
        assert_eq!(game.payoff(&[1, 2], 0), 0.5);
        let profiles: Vec<Vec<usize>> = game.profiles().collect();
        assert_eq!(profiles, [[0, 0], [1, 0], [0, 1], [1, 1], [0, 2], [1, 2]]);
    }

    #[test]
    fn what_is_no_game_is_refused() {
        for (text, told) in [
            ("", "NFG 1 R"),
            ("NFG 2 R \"x\"", "NFG 1 R"),
            ("NFG 1 R \"x", "not closed"),
            ("NFG 1 R \"x\" { }", "no players"),
            ("NFG 1 R \"x\" { \"A\" } { { \"a\" \"A\" } } 1 2", "no name, or the name of another one"),
            ("NFG 1 R \"x\" { \"A\" } { { \"a\" \"b\" } } 1", "need 2 payoffs; there are 1"),
            ("NFG 1 R \"x\" { \"A\" } { { \"a\" \"b\" } } 1 two", "`two` is not a payoff"),
            ("NFG 1 R \"x\" { \"A\" } { { \"a\" } } { { \"\" 1 } } 1", "the outcome version"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(told), "{text}: {error}");
        }
    }
}
