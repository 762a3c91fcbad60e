//! Games of hidden roles, Chameleon and Undercover: clues, beliefs, votes, and an aid that computes beliefs. See README.md.

mod advice;
mod belief;
mod params;
#[cfg(test)]
mod tests;

pub use params::{Aid, Kind, Params, TestedAs};

use advice::Advice;
use belief::{Clue, Lexicon};
use polity_kernel::Invalid;
use polity_kernel::ask::Value;
use polity_kernel::environment::{DeclareEnvironment, Environment, Move, Seat, StepResult};
use polity_kernel::interface::{ActionArgument, TableSlot};
use polity_kernel::items::Item;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::world::{ObservationRow, WorldSetup};
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.environment::<HiddenRole>(files);
}

/// The numbers of the actions, in the order in which they come.
const CLUE: u16 = 0;
const ROLE: u16 = 1;
const SUSPECT: u16 = 2;
const EXPECT: u16 = 3;
const VOTE: u16 = 4;
const GUESS: u16 = 5;

/// A game of hidden roles.
pub struct HiddenRole {
    params: Params,
    fits: TableSlot,
    heard: TableSlot,
}

/// How a game has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Outcome {
    /// The hidden player was accused; in Chameleon it did not guess the word.
    Found,
    /// It was accused and guessed the word.
    Guessed,
    /// Another was accused.
    Wrong,
    /// Nobody has most votes.
    Even,
}

/// A game in progress.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// The seat of the hidden player, from 0.
    hidden: u32,
    /// The word of the others, and, in Undercover, its own.
    word: u32,
    odd: u32,
    /// By word: the clues that fit, as bits.
    fits: Vec<u32>,
    /// All clues, in turn.
    clues: Vec<Option<u32>>,
    /// For an aid that is fed noise: other words, and as many clues drawn at random.
    noise_fits: Vec<u32>,
    noise: Vec<Option<u32>>,
    /// The action that is due, and how often it has come.
    stage: u16,
    turn: u32,
    /// By seat: whether it says that it is the hidden one, whom it suspects, whom it votes for.
    roles: Vec<Option<bool>>,
    suspects: Vec<Option<u32>>,
    votes: Vec<Option<u32>>,
    /// By seat, then by turn: whom it expects the others to suspect.
    expects: Vec<Option<u32>>,
    guess: Option<u32>,
    outcome: Option<Outcome>,
    advice: Vec<Advice>,
}

fn truth(is: bool) -> f64 {
    f64::from(u8::from(is))
}

fn share(count: usize, of: usize) -> f64 {
    if of == 0 { 0.0 } else { count as f64 / of as f64 }
}

impl HiddenRole {
    fn players(&self) -> usize {
        self.params.players as usize
    }

    fn lexicon<'a>(&self, table: &'a Table) -> Lexicon<'a> {
        Lexicon { fits: &table.fits, clues: self.params.clues, slip: self.params.slip }
    }

    /// Returns the words and clues that the aid computes with.
    fn fed<'a>(&self, table: &'a Table) -> (Lexicon<'a>, &'a [Clue]) {
        match self.params.aid {
            Aid::Noise => (Lexicon { fits: &table.noise_fits, ..self.lexicon(table) }, &table.noise),
            Aid::Off | Aid::Belief => (self.lexicon(table), &table.clues),
        }
    }

    /// Returns the word that a player has been told.
    fn told(&self, table: &Table, seat: usize) -> Option<usize> {
        match (self.params.game, seat == table.hidden as usize) {
            (Kind::Chameleon, true) => None,
            (Kind::Undercover, true) => Some(table.odd as usize),
            (_, false) => Some(table.word as usize),
        }
    }

    /// Returns whether a player is one whose abilities are measured.
    fn is_tested(&self, seat: usize) -> bool {
        self.params.tested == 0 || self.params.tested as usize == seat + 1
    }

    /// Returns the player whose suspicion one is asked to foresee: the others in order of seat.
    fn target(table: &Table, seat: usize) -> usize {
        let turn = table.turn as usize;
        if turn < seat { turn } else { turn + 1 }
    }

    fn acts(&self, table: &Table, seat: usize) -> bool {
        if table.outcome.is_some() {
            return false;
        }
        match table.stage {
            CLUE => table.clues.len() % self.players() == seat,
            GUESS => seat == table.hidden as usize,
            _ => true,
        }
    }

    /// Goes on to the next action.
    fn advance(&self, table: &mut Table) {
        table.turn += 1;
        let times = match table.stage {
            CLUE => self.params.players * self.params.clue_rounds,
            EXPECT => self.params.players - 1,
            _ => 1,
        };
        if table.turn < times {
            return;
        }
        table.turn = 0;
        table.stage += 1;
        let last = if self.params.game == Kind::Chameleon { GUESS } else { VOTE };
        if table.stage > last {
            table.outcome = Some(self.outcome(table));
        }
    }

    fn outcome(&self, table: &Table) -> Outcome {
        let mut counts = vec![0u32; self.players()];
        for vote in table.votes.iter().flatten() {
            counts[*vote as usize] += 1;
        }
        let most = counts.iter().copied().max().unwrap_or_default();
        let mut accused = (0u32..).zip(&counts).filter(|(_, count)| **count == most).map(|(seat, _)| seat);
        match (accused.next(), accused.next()) {
            (Some(accused), None) if accused != table.hidden => Outcome::Wrong,
            (Some(_), None) if table.guess == Some(table.word) => Outcome::Guessed,
            (Some(_), None) => Outcome::Found,
            _ => Outcome::Even,
        }
    }

    /// Returns the points of a player, as published: as a share of the most that there are.
    fn points(&self, table: &Table, seat: usize) -> f64 {
        let hidden = match (self.params.game, table.outcome) {
            (_, None) => return 0.0,
            (_, Some(Outcome::Found)) => 0.0,
            (_, Some(Outcome::Guessed)) => 0.5,
            (_, Some(Outcome::Wrong)) => 1.0,
            (Kind::Chameleon, Some(Outcome::Even)) => 0.5,
            (Kind::Undercover, Some(Outcome::Even)) => 2.0 / 3.0,
        };
        if seat == table.hidden as usize { hidden } else { 1.0 - hidden }
    }

    /// Returns the share of tested players for whom something holds, of those for whom it can be said.
    fn share(&self, says: impl Fn(usize) -> Option<bool>) -> f64 {
        let said: Vec<bool> = (0..self.players()).filter(|seat| self.is_tested(*seat)).filter_map(says).collect();
        share(said.iter().filter(|right| **right).count(), said.len())
    }

    fn judgement(&self, table: &Table) -> f64 {
        let right = |seat: usize| table.votes[seat] == Some(table.hidden);
        self.share(|seat| (seat != table.hidden as usize).then(|| right(seat)))
    }

    fn knows_who(&self, table: &Table) -> f64 {
        self.share(|seat| Some(table.suspects[seat] == Some(table.hidden)))
    }

    fn knows_views(&self, table: &Table) -> f64 {
        let others = self.players() - 1;
        let (mut right, mut all) = (0, 0);
        for seat in (0..self.players()).filter(|seat| self.is_tested(*seat)) {
            for (turn, expected) in table.expects[seat * others..(seat + 1) * others].iter().enumerate() {
                let target = if turn < seat { turn } else { turn + 1 };
                all += 1;
                right += usize::from(expected.is_some() && *expected == table.suspects[target]);
            }
        }
        share(right, all)
    }

    fn wins(&self, table: &Table) -> f64 {
        truth(table.outcome.is_some_and(|outcome| outcome != Outcome::Found))
    }

    fn guesses(&self, table: &Table) -> f64 {
        truth(table.guess == Some(table.word))
    }

    fn declare_sights(declare: &mut DeclareEnvironment<Self>, params: &Params) {
        let game = if params.game == Kind::Chameleon { 0.0 } else { 1.0 };
        declare.shared_number("game", "0 Chameleon, 1 Undercover", move |_, _| game);
        let (players, words, clues) = (params.players, params.words, params.clues);
        declare.shared_number("players", "players of a game", move |_, _| f64::from(players));
        declare.shared_number("words", "words that are possible", move |_, _| f64::from(words));
        declare.shared_number("clues", "clues that are possible", move |_, _| f64::from(clues));
        declare.number("seat", "the agent's seat, from 1", |_, _, seat| f64::from(*seat + 1));
        let doc = "what is due: 0 clues, 1 roles, 2 suspicions, 3 expectations, 4 votes, 5 the chameleon's guess";
        declare.shared_number("stage", doc, |_, table| f64::from(table.stage));
        declare.shared_number("over", "1 when the game is over", |_, table| truth(table.outcome.is_some()));
        declare.number("word", "the agent's word, from 1; 0 if it has none", |world, table, seat| {
            world.told(table, *seat as usize).map_or(0.0, |word| (word + 1) as f64)
        });
        declare.number("target", "the player of whom an expectation is due, from 1", |_, table, seat| {
            (HiddenRole::target(table, *seat as usize) + 1) as f64
        });
        for (name, doc, of) in advice::NUMBERS {
            declare.number(name, doc, move |_, table, seat| of(&table.advice[*seat as usize]));
        }
    }

    fn declare_results(declare: &mut DeclareEnvironment<Self>) {
        declare.column("hidden", "1 for the hidden player", Some((0.0, 1.0)), |_, table, seat| {
            truth(*seat == table.hidden)
        });
        declare.column("points", "the agent's points, from 0 to 1", Some((0.0, 1.0)), |world, table, seat| {
            world.points(table, *seat as usize)
        });
        let of = |seats: &Vec<Option<u32>>, seat: u32| seats[seat as usize].map_or(0.0, |who| f64::from(who + 1));
        declare
            .column("vote", "the seat it has voted for; 0: none", None, move |_, table, seat| of(&table.votes, *seat));
        declare
            .column("suspect", "the seat it suspects; 0: none", None, move |_, table, seat| of(&table.suspects, *seat));
        let doc = "share of the tested ordinary players who have voted for the hidden one";
        declare.scalar("judgement", doc, Self::judgement);
        declare.scalar("knows-who", "share of the tested players who suspect the hidden one", Self::knows_who);
        let doc = "share of the right expectations of tested players, of whom another suspects";
        declare.scalar("knows-views", doc, Self::knows_views);
        declare.scalar("reasoning", "mean of `knows-who` and `knows-views`", |world, table| {
            (world.knows_who(table) + world.knows_views(table)) / 2.0
        });
        let doc = "share of the tested players who have named their own role rightly";
        declare.scalar("self-awareness", doc, |world, table| {
            world.share(|seat| Some(table.roles[seat] == Some(seat == table.hidden as usize)))
        });
        declare.scalar("hidden-wins", "1 if the hidden player was not found", Self::wins);
        declare.scalar("guessed", "1 if the chameleon has guessed the word", Self::guesses);
        declare.scalar("deception", "`hidden-wins`, and a quarter of `guessed`", |world, table| {
            world.wins(table) + 0.25 * world.guesses(table)
        });
        let doc = "mean points of the tested players, from 0 to 1";
        declare.scalar("win-rate", doc, |world, table| {
            let tested: Vec<usize> = (0..world.players()).filter(|seat| world.is_tested(*seat)).collect();
            tested.iter().map(|seat| world.points(table, *seat)).sum::<f64>() / tested.len().max(1) as f64
        });
    }

    /// Draws for each word the clues that fit it: at least two, and not all.
    fn draw_lexicon(&self, draws: &mut Draws) -> Vec<u32> {
        let clues = self.params.clues;
        (0..self.params.words)
            .map(|_| {
                let mut fits = 0u32;
                for clue in 0..clues {
                    fits |= u32::from(draws.chance(self.params.overlap)) << clue;
                }
                while fits.count_ones() < 2 {
                    fits |= 1 << draws.below(u64::from(clues));
                }
                while fits.count_ones() == clues {
                    fits &= !(1 << draws.below(u64::from(clues)));
                }
                fits
            })
            .collect()
    }

    fn record(&self, table: &mut Table, made: &Move) {
        let seat = made.seat as usize;
        let number = match &made.argument {
            Value::Number(value) => value.round(),
            Value::Choice(option) => f64::from(*option),
            _ => return,
        };
        // Numbers of clues, words and seats count from 1.
        let place = (number >= 1.0).then(|| number as u32 - 1);
        match made.action {
            ROLE => table.roles[seat] = Some(number == 1.0),
            SUSPECT => table.suspects[seat] = place,
            EXPECT => {
                let others = self.players() - 1;
                table.expects[seat * others + table.turn as usize] = place;
            }
            // Nobody can vote for itself.
            VOTE => table.votes[seat] = place.filter(|who| *who as usize != seat),
            GUESS => table.guess = place,
            _ => {}
        }
    }
}

impl Environment for HiddenRole {
    const NAME: &'static str = "hidden-role";
    const SUMMARY: &'static str = "Find who is hidden by clues and votes (Chameleon, Undercover)";
    type Params = Params;
    type State = Table;

    fn open(params: Params, _: &WorldSetup<'_>, declare: &mut DeclareEnvironment<Self>) -> Result<Self, Invalid> {
        params.check()?;
        HiddenRole::declare_sights(declare, &params);
        let doc = "all words with the clues that fit them, both from 1";
        let fits = declare.table_slot("fits", ["word", "clue"], doc);
        let heard = declare.table_slot("heard", ["player", "clue"], "the clues that were given, in turn");
        let number = |high: u32| ActionArgument::Number { low: 1.0, high: f64::from(high) };
        declare.action("clue", number(params.clues), "give a clue, by number");
        let roles = vec!["ordinary".to_owned(), "hidden".to_owned()];
        declare.action("role", ActionArgument::Choice(roles), "say, to yourself, which role you have");
        declare.action("suspect", number(params.players), "name, to yourself, the player whom you think hidden");
        declare.action("expect", number(params.players), "name the player whom the target suspects");
        declare.action("vote", number(params.players), "accuse a player other than yourself");
        declare.action("guess", number(params.words), "guess the word, as the chameleon");
        HiddenRole::declare_results(declare);
        Ok(HiddenRole { params, fits, heard })
    }

    fn seats(&self) -> u32 {
        self.params.players
    }

    fn reset(&self, _: &Item, draws: &mut Draws) -> Table {
        let Params { players, words, tested, tested_as, .. } = self.params;
        let any = draws.below(u64::from(players)) as u32;
        let other = draws.below(u64::from(players.max(2) - 1)) as u32;
        let hidden = match (tested, tested_as) {
            (0, _) | (_, TestedAs::Lot) => any,
            (tested, TestedAs::Hidden) => tested - 1,
            (tested, TestedAs::Ordinary) => other + u32::from(other >= tested - 1),
        };
        let word = draws.below(u64::from(words)) as u32;
        let odd = draws.below(u64::from(words - 1)) as u32;
        let n = self.players();
        let mut table = Table {
            hidden,
            word,
            odd: odd + u32::from(odd >= word),
            fits: self.draw_lexicon(draws),
            clues: Vec::new(),
            noise_fits: self.draw_lexicon(draws),
            noise: Vec::new(),
            stage: CLUE,
            turn: 0,
            roles: vec![None; n],
            suspects: vec![None; n],
            votes: vec![None; n],
            expects: vec![None; n * (n - 1)],
            guess: None,
            outcome: None,
            advice: Vec::new(),
        };
        table.advice = self.advise(&table, draws);
        table
    }

    fn observe(&self, table: &Table, _: Seat, observation: &mut ObservationRow<'_>) {
        observation.table(self.fits, |rows| {
            for (word, fits) in table.fits.iter().enumerate() {
                for clue in (0..self.params.clues).filter(|clue| fits >> clue & 1 == 1) {
                    rows.extend([(word + 1) as f64, f64::from(clue + 1)]);
                }
            }
        });
        observation.table(self.heard, |rows| {
            for (place, clue) in table.clues.iter().enumerate() {
                let who = (place % self.players() + 1) as f64;
                rows.extend([who, clue.map_or(0.0, |clue| f64::from(clue + 1))]);
            }
        });
    }

    fn offers(&self, table: &Table, seat: Seat, action: u16) -> bool {
        action == table.stage && self.acts(table, seat as usize)
    }

    fn step(&self, table: &mut Table, moves: &[Move], draws: &mut Draws) -> StepResult {
        let n = self.players();
        let mut rewards = vec![0.0; n];
        let results = vec![String::new(); moves.len()];
        if table.outcome.is_some() {
            return StepResult { rewards, results, done: false };
        }
        if table.stage == CLUE {
            let clue: Clue = moves.first().and_then(|made| match &made.argument {
                Value::Number(value) => Some(value.round() as u32 - 1),
                _ => None,
            });
            table.clues.push(clue);
            table.noise.push(Some(draws.below(u64::from(self.params.clues)) as u32));
        }
        for made in moves {
            self.record(table, made);
        }
        self.advance(table);
        table.advice = self.advise(table, draws);
        if table.outcome.is_some() {
            rewards = (0..n).map(|seat| self.points(table, seat)).collect();
        }
        StepResult { rewards, results, done: table.outcome.is_some() && !self.params.single_episode }
    }
}
