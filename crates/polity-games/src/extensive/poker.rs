//! Two poker games small enough to be solved exactly.

use super::{Builder, Tree};

/// Kuhn poker (Kuhn 1950): a jack, a queen and a king, one card for each of two players, an ante of 1, one bet of 1. 12 information sets,
/// 58 nodes (cards are dealt one by one). The game is worth -1/18 to the first player.
#[must_use]
pub fn kuhn() -> Tree {
    kuhn_of(2)
}

/// Kuhn poker for several players with one more card than players (Abou Risk and Szafron 2010). After a bet, each other player calls or
/// folds in turn. 2 or 3 players.
pub(super) fn kuhn_of(players: usize) -> Tree {
    let names: Vec<String> = (1..=players).map(|player| format!("player-{player}")).collect();
    let title = if players == 2 { "kuhn".to_owned() } else { format!("kuhn-{players}") };
    let mut builder = Builder::new(&title, &names);
    kuhn_deal(&mut builder, players, &mut Vec::new());
    builder.built()
}

const KUHN_CARDS: [&str; 4] = ["J", "Q", "K", "A"];

fn kuhn_deal(builder: &mut Builder, players: usize, dealt: &mut Vec<usize>) {
    if dealt.len() == players {
        return kuhn_bet(builder, dealt, &mut Vec::new());
    }
    let left: Vec<usize> = (0..=players).filter(|card| !dealt.contains(card)).collect();
    let chance = 1.0 / left.len() as f64;
    builder.chance(&left.iter().map(|card| (KUHN_CARDS[*card], chance)).collect::<Vec<_>>());
    for card in left {
        dealt.push(card);
        kuhn_deal(builder, players, dealt);
        dealt.pop();
    }
}

/// Adds the nodes after the actions so far: whether each one put a chip into the pot.
fn kuhn_bet(builder: &mut Builder, cards: &[usize], actions: &mut Vec<bool>) {
    let players = cards.len();
    let bettor = actions.iter().position(|action| *action);
    if actions.len() == bettor.map_or(players, |bettor| bettor + players) {
        // The best card wins among those who put the chip in, or among all.
        let within =
            |player: &usize| bettor.is_none() || (0..actions.len()).any(|at| at % players == *player && actions[at]);
        let winner = (0..players).filter(within).max_by_key(|player| cards[*player]);
        let paid = |player: usize| if bettor.is_some() && within(&player) { 2.0 } else { 1.0 };
        let pot: f64 = (0..players).map(paid).sum();
        let payoff = |player| if Some(player) == winner { pot - paid(player) } else { -paid(player) };
        return builder.terminal(&(0..players).map(payoff).collect::<Vec<f64>>());
    }
    let player = actions.len() % players;
    let mut name = KUHN_CARDS[cards[player]].to_owned();
    for (at, action) in actions.iter().enumerate() {
        let raised = bettor.is_some_and(|bettor| bettor < at);
        name.push(if at == 0 { ' ' } else { '-' });
        name.push_str(KUHN_MOVES[usize::from(raised)][usize::from(*action)]);
    }
    builder.decision(player, &name, &KUHN_MOVES[usize::from(bettor.is_some())]);
    for action in [false, true] {
        actions.push(action);
        kuhn_bet(builder, cards, actions);
        actions.pop();
    }
}

/// Without and with a chip into the pot, before a bet and after it.
const KUHN_MOVES: [[&str; 2]; 2] = [["check", "bet"], ["fold", "call"]];

/// Leduc poker (Southey et al. 2005): two jacks, two queens and two kings, an ante of 1, one card each and then one on the table, two
/// rounds of betting with raises of 2 and 4, at most two raises a round. A pair with the table wins, otherwise the higher card. 936
/// information sets, 9,457 nodes. The game is worth about -0.0856 to the first player.
#[must_use]
pub fn leduc() -> Tree {
    let mut builder = Builder::new("leduc", &["player-1", "player-2"]);
    deal(&mut builder, &[], |builder, first| {
        deal(builder, &[first], |builder, second| {
            Hand { cards: [first, second], table: None, paid: [1, 1], seen: String::new() }.bet(builder, 0, 0, false);
        });
    });
    builder.built()
}

const CARDS: [&str; 6] = ["Js", "Jh", "Qs", "Qh", "Ks", "Kh"];

/// Adds a node where chance deals one of the cards that are left.
fn deal(builder: &mut Builder, gone: &[usize], mut then: impl FnMut(&mut Builder, usize)) {
    let left: Vec<usize> = (0..CARDS.len()).filter(|card| !gone.contains(card)).collect();
    let chance = 1.0 / left.len() as f64;
    builder.chance(&left.iter().map(|card| (CARDS[*card], chance)).collect::<Vec<_>>());
    left.into_iter().for_each(|card| then(builder, card));
}

/// A hand of Leduc poker so far.
#[derive(Clone)]
struct Hand {
    cards: [usize; 2],
    table: Option<usize>,
    paid: [u32; 2],
    /// What both players have seen.
    seen: String,
}

impl Hand {
    /// Adds a player's decision, after this many raises in the round. `checked`: the other one has checked in this round.
    fn bet(&self, builder: &mut Builder, player: usize, raises: u32, checked: bool) {
        let owed = self.paid[1 - player] - self.paid[player];
        let mut moves = if owed > 0 { vec!["fold", "call"] } else { vec!["check"] };
        if raises < 2 {
            moves.push("raise");
        }
        builder.decision(player, &format!("{}{}", CARDS[self.cards[player]], self.seen), &moves);
        for name in moves {
            let mut next = self.clone();
            next.seen = format!("{} {name}", self.seen);
            match name {
                "fold" => {
                    let lost = f64::from(self.paid[player]);
                    builder.terminal(&if player == 0 { [-lost, lost] } else { [lost, -lost] });
                }
                "raise" => {
                    next.paid[player] += owed + if self.table.is_none() { 2 } else { 4 };
                    next.bet(builder, 1 - player, raises + 1, false);
                }
                "check" if !checked => next.bet(builder, 1 - player, raises, true),
                _ => {
                    next.paid[player] += owed;
                    next.end_round(builder);
                }
            }
        }
    }

    fn end_round(&self, builder: &mut Builder) {
        let Some(table) = self.table else {
            return deal(builder, &self.cards, |builder, card| {
                let seen = format!("{}, {}", self.seen, CARDS[card]);
                Hand { table: Some(card), seen, ..self.clone() }.bet(builder, 0, 0, false);
            });
        };
        let strength = |card: usize| card / 2 + if card / 2 == table / 2 { 10 } else { 0 };
        let won = f64::from(self.paid[0]);
        builder.terminal(&match strength(self.cards[0]).cmp(&strength(self.cards[1])) {
            std::cmp::Ordering::Less => [-won, won],
            std::cmp::Ordering::Equal => [0.0, 0.0],
            std::cmp::Ordering::Greater => [won, -won],
        });
    }
}
