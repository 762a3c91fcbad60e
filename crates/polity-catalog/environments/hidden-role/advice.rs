//! What a player notices by itself, and what the aid tells it.

use super::belief::{Clue, Lexicon};
use super::{Aid, CLUE, EXPECT, GUESS, HiddenRole, Kind, Table};
use polity_kernel::rng::Draws;
use serde::{Deserialize, Serialize};

/// What a player notices, and what the aid tells it. Seats, words and clues count from 1; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Advice {
    misfit: u32,
    misfits: u32,
    their_misfit: u32,
    apt: u32,
    likely_word: u32,
    aid: bool,
    aid_suspect: u32,
    aid_hidden: f64,
    aid_expect: u32,
    aid_clue: u32,
    aid_word: u32,
}

/// A number that a player sees: its name, what it is, where it is.
type Number = (&'static str, &'static str, fn(&Advice) -> f64);

pub(super) const NUMBERS: [Number; 11] = [
    ("misfit", "a player whose clue does not fit the agent's word, the first one; 0 if there is none", |a| {
        f64::from(a.misfit)
    }),
    ("misfits", "how many players have given such a clue", |a| f64::from(a.misfits)),
    ("their-misfit", "the same as `misfit` from the place of the target, if it had the agent's word", |a| {
        f64::from(a.their_misfit)
    }),
    ("apt", "a clue that fits the agent's word; without a word, one that fits a word like those of the others", |a| {
        f64::from(a.apt)
    }),
    ("likely-word", "a word that fits most of the clues, by lot if there are several", |a| f64::from(a.likely_word)),
    ("aid", "1 if the agent has an aid that computes beliefs", |a| f64::from(u8::from(a.aid))),
    ("aid-suspect", "the aid: the other player who is most probably hidden", |a| f64::from(a.aid_suspect)),
    ("aid-hidden", "the aid: the probability that the agent itself is the hidden one", |a| a.aid_hidden),
    ("aid-expect", "the aid: whom the target most probably suspects", |a| f64::from(a.aid_expect)),
    ("aid-clue", "the aid: a clue that makes the agent look least like the hidden one", |a| f64::from(a.aid_clue)),
    ("aid-word", "the aid: the most probable word of the others", |a| f64::from(a.aid_word)),
];

/// Returns the place of the largest, the first of several.
fn best(values: impl Iterator<Item = f64>) -> Option<usize> {
    let mut best: Option<(usize, f64)> = None;
    for (place, value) in values.enumerate() {
        if best.is_none_or(|(_, most)| value > most) {
            best = Some((place, value));
        }
    }
    best.map(|(place, _)| place)
}

impl HiddenRole {
    /// Returns the first other player with a clue that does not fit, and how many have one.
    fn misfit(&self, lexicon: Lexicon<'_>, table: &Table, from: usize, word: usize) -> (u32, u32) {
        let n = self.players();
        let odd = |who: usize| {
            who != from && table.clues.iter().skip(who).step_by(n).flatten().any(|clue| !lexicon.has(word, *clue))
        };
        let mut found = (0..n).filter(|who| odd(*who));
        let first = found.next();
        (first.map_or(0, |who| who as u32 + 1), u32::from(first.is_some()) + found.count() as u32)
    }

    /// Returns the probabilities that each player is hidden, from the place of one who has this word.
    fn view(&self, lexicon: Lexicon<'_>, clues: &[Clue], from: usize, word: usize) -> Vec<f64> {
        match self.params.game {
            Kind::Chameleon => lexicon.without_a_word(clues, self.players(), from, word),
            Kind::Undercover => lexicon.with_another_word(clues, self.players(), from, word),
        }
    }

    /// Returns the most probable other player.
    fn suspect(view: &[f64], from: usize) -> u32 {
        let others = view.iter().enumerate().map(|(who, p)| if who == from { -1.0 } else { *p });
        best(others).map_or(0, |who| who as u32 + 1)
    }

    /// Works out what all players notice and are told.
    pub(super) fn advise(&self, table: &Table, draws: &mut Draws) -> Vec<Advice> {
        (0..self.players()).map(|seat| self.advise_one(table, seat, draws)).collect()
    }

    fn advise_one(&self, table: &Table, seat: usize, draws: &mut Draws) -> Advice {
        let mut advice = Advice { aid: self.params.aid != Aid::Off && self.is_tested(seat), ..Advice::default() };
        if !self.acts(table, seat) {
            return advice;
        }
        let lexicon = self.lexicon(table);
        let told = self.told(table, seat);
        if let Some(word) = told {
            (advice.misfit, advice.misfits) = self.misfit(lexicon, table, seat, word);
        }
        if table.stage == EXPECT {
            let word = told.unwrap_or_else(|| self.likely(lexicon, &table.clues, seat, draws));
            advice.their_misfit = self.misfit(lexicon, table, HiddenRole::target(table, seat), word).0;
        }
        if table.stage == CLUE {
            // Without a word, one is drawn from what the clues of the others say.
            let word = told.unwrap_or_else(|| {
                let words = lexicon.words(self.of_others(&table.clues, seat));
                draws.weighted(&words).unwrap_or_default()
            });
            let fitting: Vec<u32> = (0..self.params.clues).filter(|clue| lexicon.has(word, *clue)).collect();
            advice.apt = fitting[draws.below(fitting.len() as u64) as usize] + 1;
        }
        if table.stage == GUESS {
            advice.likely_word = self.likely(lexicon, &table.clues, seat, draws) as u32 + 1;
        }
        if advice.aid {
            self.help(table, seat, &mut advice);
        }
        advice
    }

    fn of_others<'a>(&self, clues: &'a [Clue], seat: usize) -> impl Iterator<Item = Clue> + Clone + use<'a> {
        let n = self.players();
        clues.iter().enumerate().filter(move |(place, _)| place % n != seat).map(|(_, clue)| *clue)
    }

    /// Returns a word that fits most clues of the others.
    fn likely(&self, lexicon: Lexicon<'_>, clues: &[Clue], seat: usize, draws: &mut Draws) -> usize {
        let fit = |word: usize| self.of_others(clues, seat).flatten().filter(|clue| lexicon.has(word, *clue)).count();
        let counts: Vec<usize> = (0..table_words(lexicon)).map(fit).collect();
        let most = counts.iter().copied().max().unwrap_or_default();
        let all: Vec<usize> = (0..counts.len()).filter(|word| counts[*word] == most).collect();
        all[draws.below(all.len() as u64) as usize]
    }

    /// The aid.
    fn help(&self, table: &Table, seat: usize, advice: &mut Advice) {
        let (lexicon, clues) = self.fed(table);
        let words = lexicon.words(self.of_others(clues, seat));
        let likely = best(words.iter().copied()).unwrap_or_default();
        advice.aid_word = likely as u32 + 1;
        let told = self.told(table, seat);
        match told {
            Some(word) => {
                let view = self.view(lexicon, clues, seat, word);
                advice.aid_suspect = HiddenRole::suspect(&view, seat);
                advice.aid_hidden = view[seat];
            }
            // The chameleon accuses whom another ordinary player would accuse of the others.
            None => {
                let from = usize::from(seat == 0);
                let mut view = self.view(lexicon, clues, from, likely);
                view[seat] = 0.0;
                advice.aid_suspect = HiddenRole::suspect(&view, from);
                advice.aid_hidden = 1.0;
            }
        }
        if table.stage == EXPECT {
            let target = HiddenRole::target(table, seat);
            let view = self.view(lexicon, clues, target, told.unwrap_or(likely));
            advice.aid_expect = HiddenRole::suspect(&view, target);
        }
        if table.stage == CLUE {
            let heard = || self.of_others(clues, seat);
            let blending: Vec<f64> = (0..self.params.clues).map(|clue| lexicon.blending(heard(), Some(clue))).collect();
            let chosen = match told {
                // One who knows the word gives the clue that one without it would give least.
                Some(word) => {
                    best((0u32..).zip(&blending).map(|(clue, p)| if lexicon.has(word, clue) { -p } else { -2.0 }))
                }
                None => best(blending.iter().copied()),
            };
            advice.aid_clue = chosen.map_or(0, |clue| clue as u32 + 1);
        }
    }
}

fn table_words(lexicon: Lexicon<'_>) -> usize {
    lexicon.fits.len()
}
