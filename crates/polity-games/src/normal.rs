//! Games in normal form, and Gambit's format `.nfg` for them: title, players, strategies, payoffs.

use crate::gambit::{Token, Tokens, quote};

/// The most players of a game.
const MOST_PLAYERS: usize = 20;
/// The most strategies of one player.
const MOST_STRATEGIES: usize = 100;
/// The most combinations of strategies.
const MOST_COMBINATIONS: usize = 1_000_000;

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
    /// Makes a game from its payoffs.
    ///
    /// `payoffs` holds one number for each player and combination: all players' payoffs of the first combination, then of the
    /// second, and so on; the first player's strategy changes fastest. Strategies become names of actions: lower-case letters,
    /// digits and hyphens.
    ///
    /// # Errors
    /// More than 20 players, 100 strategies of a player or a million combinations; a player without strategies; two strategies of
    /// a player with one name; a number of payoffs that does not fit, or a payoff that is not finite.
    ///
    /// ```
    /// use polity_games::normal::Game;
    ///
    /// let names = |names: [&str; 2]| names.map(String::from).to_vec();
    /// let both = vec![names(["dove", "hawk"]), names(["dove", "hawk"])];
    /// let payoffs = vec![2.0, 2.0, 4.0, 1.0, 1.0, 4.0, 0.0, 0.0];
    /// let game = Game::new("Chicken", names(["Row", "Column"]), both, payoffs).unwrap();
    /// // Row plays hawk, Column dove.
    /// assert_eq!((game.payoff(&[1, 0], 0), game.payoff(&[1, 0], 1)), (4.0, 1.0));
    /// assert!(game.regret(&[vec![0.5, 0.5], vec![0.5, 0.5]]) > 0.24);
    /// ```
    pub fn new(
        title: impl Into<String>,
        players: Vec<String>,
        strategies: Vec<Vec<String>>,
        payoffs: Vec<f64>,
    ) -> Result<Game, String> {
        if players.is_empty() || players.len() > MOST_PLAYERS {
            return Err(format!("a game has 1 to {MOST_PLAYERS} players; this one has {}", players.len()));
        }
        if strategies.len() != players.len() {
            return Err(format!(
                "{} players need as many lists of strategies; there are {}",
                players.len(),
                strategies.len()
            ));
        }
        let mut named = Vec::new();
        for (player, own) in players.iter().zip(&strategies) {
            if own.is_empty() || own.len() > MOST_STRATEGIES {
                return Err(format!("a player has 1 to {MOST_STRATEGIES} strategies; {player} has {}", own.len()));
            }
            let own: Vec<String> = own.iter().map(|name| action(name)).collect();
            let same = |i: &usize| own[*i].trim_matches('-').is_empty() || own[..*i].contains(&own[*i]);
            if let Some(i) = (0..own.len()).find(same) {
                return Err(format!("strategy {} of {player} has no name, or the name of another one", i + 1));
            }
            named.push(own);
        }
        let (needed, given) = (combinations(&named)? * players.len(), payoffs.len());
        if given != needed {
            return Err(format!(
                "{} players with these strategies need {needed} payoffs; there are {given}",
                players.len()
            ));
        }
        if let Some(i) = payoffs.iter().position(|payoff| !payoff.is_finite()) {
            return Err(format!("payoff {} is not a finite number", i + 1));
        }
        let mut moves: Vec<String> = Vec::new();
        for name in named.iter().flatten() {
            if !moves.contains(name) {
                moves.push(name.clone());
            }
        }
        Ok(Game { title: title.into(), players, strategies: named, moves, payoffs })
    }

    /// Makes a game from a function that gives all players' payoffs for a combination of strategies, one index for each player.
    ///
    /// # Errors
    /// As [`Game::new`].
    pub fn from_fn(
        title: impl Into<String>,
        players: Vec<String>,
        strategies: Vec<Vec<String>>,
        payoffs: impl Fn(&[usize]) -> Vec<f64>,
    ) -> Result<Game, String> {
        let sizes: Vec<usize> = strategies.iter().map(Vec::len).collect();
        let size = combinations(&strategies)?;
        let mut all = Vec::with_capacity(size * players.len());
        let mut profile = vec![0; sizes.len()];
        for _ in 0..size {
            all.extend(payoffs(&profile));
            advance(&mut profile, &sizes);
        }
        Game::new(title, players, strategies, all)
    }

    /// Returns the number of combinations of strategies.
    #[must_use]
    pub fn size(&self) -> usize {
        self.strategies.iter().map(Vec::len).product()
    }

    /// Returns each player's number of strategies.
    #[must_use]
    pub fn sizes(&self) -> Vec<usize> {
        self.strategies.iter().map(Vec::len).collect()
    }

    /// Returns a player's payoff in a combination: one index of a strategy for each player.
    ///
    /// # Panics
    /// If there is no such combination or player.
    #[must_use]
    pub fn payoff(&self, profile: &[usize], player: usize) -> f64 {
        let mut place = 0;
        for (strategy, strategies) in profile.iter().zip(&self.strategies).rev() {
            assert!(*strategy < strategies.len(), "strategy {strategy} of {}", strategies.len());
            place = place * strategies.len() + strategy;
        }
        self.payoff_at(place, player)
    }

    /// Returns a player's payoff in a combination, given its place in the order of [`Game::profiles`].
    pub(crate) fn payoff_at(&self, place: usize, player: usize) -> f64 {
        self.payoffs[place * self.players.len() + player]
    }

    /// Returns all combinations; the first player's strategy changes fastest.
    pub fn profiles(&self) -> impl Iterator<Item = Vec<usize>> + '_ {
        let sizes = self.sizes();
        let mut next = vec![0; sizes.len()];
        (0..self.size()).map(move |_| {
            let profile = next.clone();
            advance(&mut next, &sizes);
            profile
        })
    }

    /// Calls `visit` with every combination and its place.
    pub(crate) fn each(&self, mut visit: impl FnMut(&[usize], usize)) {
        let sizes = self.sizes();
        let mut profile = vec![0; sizes.len()];
        for place in 0..self.size() {
            visit(&profile, place);
            advance(&mut profile, &sizes);
        }
    }

    /// Returns the lowest and the highest payoff of a player.
    #[must_use]
    pub fn range(&self, player: usize) -> (f64, f64) {
        let own = self.payoffs.iter().skip(player).step_by(self.players.len());
        own.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), payoff| (low.min(*payoff), high.max(*payoff)))
    }

    /// Writes the game in Gambit's format `.nfg`; [`read`] reads it back.
    #[must_use]
    pub fn write(&self) -> String {
        let quoted = |names: &[String]| names.iter().map(|name| quote(name)).collect::<Vec<_>>().join(" ");
        let lists: Vec<String> = self.strategies.iter().map(|own| format!("{{ {} }}", quoted(own))).collect();
        let payoffs: Vec<String> = self.payoffs.iter().map(f64::to_string).collect();
        format!(
            "NFG 1 R {} {{ {} }}\n{{ {} }}\n\n{}\n",
            quoted(std::slice::from_ref(&self.title)),
            quoted(&self.players),
            lists.join(" "),
            payoffs.join(" ")
        )
    }

    /// Returns the expected payoff of each pure strategy of `player` against the mixed strategies of the others.
    ///
    /// `mixed` holds one probability for each strategy of each player, the player's own included (they are not used).
    ///
    /// # Panics
    /// If a player or a probability is missing.
    #[must_use]
    pub fn values(&self, mixed: &[Vec<f64>], player: usize) -> Vec<f64> {
        let mut values = vec![0.0; self.strategies[player].len()];
        self.each(|profile, place| {
            let others = profile.iter().enumerate().filter(|(other, _)| *other != player);
            let weight: f64 = others.map(|(other, strategy)| mixed[other][*strategy]).product();
            if weight != 0.0 {
                values[profile[player]] += weight * self.payoff_at(place, player);
            }
        });
        values
    }

    /// Returns each player's expected payoff when all play `mixed`, and how much each could gain by another strategy, the others'
    /// unchanged (at least 0).
    ///
    /// # Panics
    /// As [`Game::values`].
    #[must_use]
    pub fn payoffs_and_gains(&self, mixed: &[Vec<f64>]) -> (Vec<f64>, Vec<f64>) {
        let of = |player: usize| {
            let values = self.values(mixed, player);
            let payoff: f64 = mixed[player].iter().zip(&values).map(|(p, value)| p * value).sum();
            (payoff, (values.iter().copied().fold(f64::NEG_INFINITY, f64::max) - payoff).max(0.0))
        };
        (0..self.players.len()).map(of).unzip()
    }

    /// Returns the regret of a mixed profile: the most that one player could gain by another strategy. It is 0 in a Nash
    /// equilibrium; a profile with regret ε is an ε-equilibrium. (OpenSpiel's `NashConv` is the sum of all players' gains.)
    ///
    /// # Panics
    /// As [`Game::values`].
    #[must_use]
    pub fn regret(&self, mixed: &[Vec<f64>]) -> f64 {
        self.payoffs_and_gains(mixed).1.into_iter().fold(0.0, f64::max)
    }
}

/// Returns the number of combinations of strategies.
fn combinations(strategies: &[Vec<String>]) -> Result<usize, String> {
    let size = strategies.iter().try_fold(1usize, |size, own| size.checked_mul(own.len()));
    size.filter(|size| *size <= MOST_COMBINATIONS)
        .ok_or_else(|| format!("a game has at most {MOST_COMBINATIONS} combinations of strategies"))
}

/// Advances to the next combination; the first player's strategy changes fastest.
fn advance(profile: &mut [usize], sizes: &[usize]) {
    for (strategy, size) in profile.iter_mut().zip(sizes) {
        *strategy += 1;
        if *strategy < *size {
            return;
        }
        *strategy = 0;
    }
}

/// Converts a name to an action's name: lower-case letters, digits and hyphens.
fn action(name: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() { c.to_lowercase().next().unwrap_or(c) } else { '-' };
    name.trim().chars().map(plain).collect()
}

/// Reads a game.
///
/// # Errors
/// The error in words, with its line where it has one: what is no `.nfg`, and all faults that [`Game::new`] names.
pub fn read(text: &str) -> Result<Game, String> {
    let mut tokens = Tokens::new(text)?;
    let (title, players) = tokens.head("NFG", "1")?;
    if players.is_empty() {
        return tokens.fail("there are no players");
    }
    let strategies = tokens.list(|tokens| match tokens.peek() {
        // A number of strategies in place of their names.
        Some(Token::Bare(_)) => {
            let count = tokens.whole("the number of a player's strategies")?.min(MOST_STRATEGIES + 1);
            Ok((1..=count).map(|number| number.to_string()).collect())
        }
        _ => tokens.names("the strategies of a player", "a strategy"),
    })?;
    let Some(strategies) = strategies else {
        return tokens.fail(
            "the strategies of each player must be enclosed in `{` and `}`, and all these lists in another pair",
        );
    };
    // A comment may precede the payoffs.
    tokens.quoted_next();
    let payoffs = match tokens.peek() {
        Some(Token::Open) => payoffs_of_outcomes(&mut tokens, players.len())?,
        _ => rest(&mut tokens, |tokens| tokens.number("a payoff"))?,
    };
    Game::new(title, players, strategies, payoffs)
}

/// Reads items until the text ends.
fn rest<T>(tokens: &mut Tokens, mut item: impl FnMut(&mut Tokens) -> Result<T, String>) -> Result<Vec<T>, String> {
    let mut items = Vec::new();
    while tokens.peek().is_some() {
        items.push(item(tokens)?);
    }
    Ok(items)
}

/// Reads the outcome version of the format: outcomes, each with a name and payoffs, and then the number of an outcome for each
/// combination. In outcome 0 all players get nothing.
fn payoffs_of_outcomes(tokens: &mut Tokens, players: usize) -> Result<Vec<f64>, String> {
    let outcome = |tokens: &mut Tokens| {
        let mut named = false;
        let payoffs = tokens.list(|tokens| {
            if !std::mem::replace(&mut named, true) {
                tokens.quoted("the name of an outcome")?;
                return Ok(None);
            }
            tokens.number("a payoff").map(Some)
        })?;
        let payoffs: Vec<f64> = payoffs.into_iter().flatten().flatten().collect();
        if payoffs.len() != players {
            return tokens.fail(format!("an outcome has a name and {players} payoffs; this one has {}", payoffs.len()));
        }
        Ok(payoffs)
    };
    let outcomes = tokens.list(outcome)?.unwrap_or_default();
    let chosen = rest(tokens, |tokens| {
        let number = tokens.whole("the number of an outcome")?;
        match number.checked_sub(1) {
            None => Ok(vec![0.0; players]),
            Some(place) => match outcomes.get(place) {
                Some(payoffs) => Ok(payoffs.clone()),
                None => tokens.fail(format!("there is no outcome {number}; there are {}", outcomes.len())),
            },
        }
    })?;
    Ok(chosen.concat())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{Game, read};

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
    fn numbers_of_strategies_and_outcomes_are_read() {
        let text = "NFG 1 R \"x\" { \"A\" \"B\" } { 2 3 } \"\" { { \"both\" 3, 1/2 } { \"\" -1 2 } } 1 0 2 2 0 1";
        let game = read(text).unwrap();
        assert_eq!(game.strategies, [vec!["1", "2"], vec!["1", "2", "3"]]);
        let pairs = [[0, 0], [1, 0], [0, 1], [1, 1], [0, 2], [1, 2]];
        let first: Vec<f64> = pairs.iter().map(|profile| game.payoff(profile, 0)).collect();
        assert_eq!((first, game.payoff(&[1, 2], 1)), (vec![3.0, 0.0, -1.0, -1.0, 0.0, 3.0], 0.5));
    }

    #[test]
    fn quotes_in_names_survive_a_file() {
        let names = |names: [&str; 2]| names.map(String::from).to_vec();
        let game =
            Game::new("the \"best\"", names(["A \\", "\"B\""]), vec![names(["a", "b"]); 2], vec![0.0; 8]).unwrap();
        assert_eq!(read(&game.write()).unwrap(), game);
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
            (
                "NFG 1 R \"x\" { \"A\" } { { \"a\" \"b\" } } 1 two",
                "line 1: a payoff must be a number or a fraction, and is `two`",
            ),
            ("NFG 1 R \"x\" { \"A\" } { { \"a\" } } { { \"\" 1 } } 2", "there is no outcome 2; there are 1"),
            ("NFG 1 R \"x\" { \"A\" } { { \"a\" } } { { \"\" 1 2 } } 1", "has a name and 1 payoffs; this one has 2"),
            ("NFG 1 R \"x\" { \"A\" } { 101 } 1", "has 101"),
            ("NFG 1 R \"x\" { \"A\" } \"a\"", "the strategies of each player must be enclosed"),
            ("NFG 1 R \"x\" { \"A\" }\n{ \"a\" } 1", "line 2: expected the strategies of a player, in"),
            ("NFG 1 R \"x\" { \"A\" } { { } } 1", "a player has 1 to 100 strategies; A has 0"),
            ("NFG 1 R \"x\" { \"A\" } { } 1", "1 players need as many lists of strategies; there are 0"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(told), "{text}: {error}");
        }
    }
}
