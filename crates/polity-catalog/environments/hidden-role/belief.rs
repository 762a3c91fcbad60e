//! Beliefs by Bayes' rule about who is hidden, and about the secret word.

/// Which clues fit which words. Words and clues are numbered from 0 here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lexicon<'a> {
    /// By word: its clues, as bits.
    pub fits: &'a [u32],
    /// Number of clues.
    pub clues: u32,
    /// The probability that an ordinary player gives a clue that does not fit.
    pub slip: f64,
}

/// A clue of a player; `None` if it has said nothing.
pub(super) type Clue = Option<u32>;

impl Lexicon<'_> {
    /// Returns whether a clue fits a word.
    pub fn has(&self, word: usize, clue: u32) -> bool {
        self.fits[word] >> clue & 1 == 1
    }

    /// Returns the probability that a player with this word gives this clue.
    pub fn chance(&self, word: usize, clue: Clue) -> f64 {
        let Some(clue) = clue else { return 1.0 };
        let fitting = self.fits[word].count_ones();
        match (self.has(word, clue), self.clues - fitting) {
            (true, 0) => 1.0 / f64::from(fitting),
            (true, _) => (1.0 - self.slip) / f64::from(fitting),
            (false, others) => self.slip / f64::from(others),
        }
    }

    /// Returns the probabilities of all words for one who does not know the word and has heard these clues of those who do.
    pub fn words(&self, heard: impl Iterator<Item = Clue> + Clone) -> Vec<f64> {
        let likelihood = |word: usize| {
            heard.clone().map(|clue| self.chance(word, clue)).fold(1.0, |product, chance| product * chance)
        };
        shares((0..self.fits.len()).map(likelihood).collect())
    }

    /// Returns the probability that one who does not know the word gives this clue after these: it draws a word from its beliefs and
    /// speaks as if that were the word.
    pub fn blending(&self, before: impl Iterator<Item = Clue> + Clone, clue: Clue) -> f64 {
        self.words(before).iter().enumerate().map(|(word, p)| p * self.chance(word, clue)).sum()
    }

    /// Returns the probability, for an ordinary player at `own` who knows the word, that each player does not know it. The clue at
    /// place `k` is that of player `k % players`.
    pub fn without_a_word(&self, clues: &[Clue], players: usize, own: usize, word: usize) -> Vec<f64> {
        let likelihood = |hidden: usize| {
            if hidden == own {
                return 0.0;
            }
            let mut product = 1.0;
            for (place, clue) in clues.iter().enumerate() {
                product *= match place % players == hidden {
                    true => {
                        let others = clues[..place].iter().enumerate();
                        let others = others.filter(|(other, _)| other % players != hidden).map(|(_, clue)| *clue);
                        self.blending(others, *clue)
                    }
                    false => self.chance(word, *clue),
                };
            }
            product
        };
        shares((0..players).map(likelihood).collect())
    }

    /// Returns the probability, for a player at `own` who knows its own word alone, that each player is the one with another word.
    pub fn with_another_word(&self, clues: &[Clue], players: usize, own: usize, word: usize) -> Vec<f64> {
        let of = |who: usize, word: usize| {
            clues.iter().skip(who).step_by(players).map(|clue| self.chance(word, *clue)).product::<f64>()
        };
        let others = self.fits.len() - 1;
        let likelihood = |hidden: usize| {
            let mut sum = 0.0;
            for another in (0..self.fits.len()).filter(|another| *another != word) {
                let mut product = 1.0;
                for who in (0..players).filter(|who| *who != own) {
                    // If the own word is the odd one, all others have another.
                    let odd = hidden == own || who == hidden;
                    product *= of(who, if odd { another } else { word });
                }
                sum += product;
            }
            sum / others as f64
        };
        shares((0..players).map(likelihood).collect())
    }
}

/// Divides by the sum; if all are 0, all are alike.
fn shares(mut weights: Vec<f64>) -> Vec<f64> {
    let sum: f64 = weights.iter().sum();
    let n = weights.len() as f64;
    for weight in &mut weights {
        *weight = if sum > 0.0 { *weight / sum } else { 1.0 / n };
    }
    weights
}
