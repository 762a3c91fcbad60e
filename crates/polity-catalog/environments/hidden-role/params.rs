//! What a scenario may set.

use polity_kernel::Invalid;
use schemars::JsonSchema;
use serde::Deserialize;

/// Which game is played.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// All but one know the word; the chameleon knows that it does not. If accused, it can still win by guessing the word.
    #[default]
    Chameleon,
    /// All but one have the same word, and one has another. Nobody knows who that is.
    Undercover,
}

/// The aid that computes beliefs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Aid {
    /// There is none.
    #[default]
    Off,
    /// Beliefs by Bayes' rule.
    Belief,
    /// The same computation on words and clues drawn at random, in place of those of the game.
    Noise,
}

/// The role of the tested player.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TestedAs {
    /// Drawn by lot.
    #[default]
    Lot,
    /// An ordinary player.
    Ordinary,
    /// The hidden one.
    Hidden,
}

/// Parameters of a game.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Which game is played.
    pub(super) game: Kind,
    /// Players of a game, 3 to 10. Agents are seated in order of id.
    pub(super) players: u32,
    /// Words that are possible, 2 to 64.
    pub(super) words: u32,
    /// Clues that are possible, 3 to 32.
    pub(super) clues: u32,
    /// The probability that a clue fits a word; 0 to 1.
    pub(super) overlap: f64,
    /// Clues that each player gives, in turn; 1 to 5.
    pub(super) clue_rounds: u32,
    /// The probability, for beliefs, that a player gives a clue that does not fit its word; above 0, at most 0.5.
    pub(super) slip: f64,
    /// The seat of the player whose abilities are measured and who has the aid; 0: all players.
    pub(super) tested: u32,
    /// Its role.
    pub(super) tested_as: TestedAs,
    /// The aid.
    pub(super) aid: Aid,
    /// Play a single game (episode): after its end no player can act. By default the next game begins at once.
    pub(super) single_episode: bool,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            game: Kind::Chameleon,
            players: 3,
            words: 12,
            clues: 16,
            overlap: 0.3,
            clue_rounds: 1,
            slip: 0.05,
            tested: 0,
            tested_as: TestedAs::Lot,
            aid: Aid::Off,
            single_episode: false,
        }
    }
}

impl Params {
    pub(super) fn check(&self) -> Result<(), Invalid> {
        Invalid::within(3..=10, "players", self.players)?;
        Invalid::within(2..=64, "words", self.words)?;
        Invalid::within(3..=32, "clues", self.clues)?;
        Invalid::within(0.0..=1.0, "overlap", self.overlap)?;
        Invalid::within(1..=5, "clue_rounds", self.clue_rounds)?;
        Invalid::unless(self.slip > 0.0 && self.slip <= 0.5, "slip", "must be above 0 and at most 0.5")?;
        Invalid::within(0..=self.players, "tested", self.tested)
    }
}
