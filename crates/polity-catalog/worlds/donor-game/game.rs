//! The state of the game: who plays with whom, what they did, who lives on.

use super::params::Selection;
use polity_kernel::AgentId;
use polity_kernel::rng::Draws;
use serde::{Deserialize, Serialize};

/// What a donor chose.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    pub(super) who: AgentId,
    /// The share of its resources that it gives up or spends.
    pub(super) share: f64,
    pub(super) punishes: bool,
}

/// What a donor did.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Gift {
    round: u32,
    pub(super) to: AgentId,
    /// The share of its resources that it gave; 0 if it punished.
    pub(super) share: f64,
    pub(super) punished: bool,
}

/// A player of this generation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Player {
    pub(super) id: AgentId,
    pub(super) resources: f64,
    /// By how much they have changed in the round.
    pub(super) change: f64,
    /// How often it has been punished.
    pub(super) punished: u32,
    /// What it did as a donor, in order of rounds.
    gifts: Vec<Gift>,
    /// Its seat: those below half of the seats are donors in odd rounds, the next half in even ones. The last of an odd number never is.
    seat: u32,
}

impl Player {
    fn new(id: AgentId, endowment: f64) -> Self {
        Player { id, resources: endowment, change: 0.0, punished: 0, gifts: Vec::new(), seat: 0 }
    }

    pub(super) fn mean_share(&self) -> f64 {
        self.gifts.iter().map(|gift| gift.share).sum::<f64>() / self.gifts.len().max(1) as f64
    }
}

/// The state of the game.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Game {
    pub(super) generation: u32,
    /// The round of the generation, from 1; 0 while it is born.
    pub(super) round: u32,
    /// In order of id.
    pub(super) players: Vec<Player>,
    /// The player in each seat, by its place in the list.
    seats: Vec<u32>,
    /// The players whose history is shown in place of that of recipients, by donor; empty unless histories are drawn at random.
    stand_ins: Vec<u32>,
    /// Those who die when the next generation is born, ascending.
    pub(super) dying: Vec<AgentId>,
    /// The parents of the newborn, ascending: the order in which the society numbers them.
    pub(super) parents: Vec<AgentId>,
    /// The id of the next newborn.
    next: AgentId,
    pub(super) given: f64,
    pub(super) punishments: u32,
    pub(super) final_score: f64,
}

impl Game {
    pub(super) fn new(agents: u32, endowment: f64) -> Self {
        Game {
            generation: 0,
            round: 0,
            players: (0..agents).map(|id| Player::new(id, endowment)).collect(),
            seats: Vec::new(),
            stand_ins: Vec::new(),
            dying: Vec::new(),
            parents: Vec::new(),
            next: agents,
            given: 0.0,
            punishments: 0,
            final_score: 0.0,
        }
    }

    /// Returns the place of an agent in the list of players.
    pub(super) fn place(&self, who: AgentId) -> Option<usize> {
        self.players.binary_search_by_key(&who, |player| player.id).ok()
    }

    pub(super) fn player(&self, who: AgentId) -> Option<&Player> {
        self.players.get(self.place(who)?)
    }

    pub(super) fn mean_score(&self) -> f64 {
        self.players.iter().map(|player| player.resources).sum::<f64>() / self.players.len().max(1) as f64
    }

    /// Returns the recipient of a player in this round, if it is a donor. In half as many rounds as there are players nobody gives to the
    /// same player twice.
    pub(super) fn recipient(&self, donor: usize) -> Option<usize> {
        let (half, seat) = (self.players.len() / 2, self.players[donor].seat as usize);
        let turn = (self.round / 2) as usize;
        let seat = match self.round {
            0 => return None,
            round if round % 2 == 1 && seat < half => half + (seat + turn) % half,
            round if round % 2 == 0 && (half..2 * half).contains(&seat) => (seat - half + turn) % half,
            _ => return None,
        };
        self.seats.get(seat).map(|place| *place as usize)
    }

    /// Returns the player whose history this donor is shown in place of its recipient's.
    pub(super) fn stand_in(&self, donor: usize) -> Option<usize> {
        self.stand_ins.get(donor).map(|place| *place as usize)
    }

    /// Returns what a player did when it was last a donor, what the one whom it then met had done last before, and so on.
    pub(super) fn trace(&self, of: usize, steps: usize) -> Vec<(AgentId, Gift)> {
        let (mut found, mut place, mut before) = (Vec::new(), of, u32::MAX);
        while found.len() < steps {
            let player = &self.players[place];
            let Some(gift) = player.gifts.iter().rev().find(|gift| gift.round < before) else { break };
            found.push((player.id, *gift));
            before = gift.round;
            match self.place(gift.to) {
                Some(next) => place = next,
                None => break,
            }
        }
        found
    }

    /// Plays a round with the choices of donors, in order of id.
    pub(super) fn play(&mut self, choices: &[Choice], factor: f64, punishment: f64) {
        let donors: Vec<(usize, usize)> =
            (0..self.players.len()).filter_map(|donor| Some((donor, self.recipient(donor)?))).collect();
        for player in &mut self.players {
            player.change = 0.0;
        }
        (self.given, self.punishments) = (0.0, 0);
        for (donor, recipient) in &donors {
            let who = self.players[*donor].id;
            let choice = choices.binary_search_by_key(&who, |choice| choice.who).ok().map(|i| choices[i]);
            let Choice { share, punishes, .. } = choice.unwrap_or(Choice { who, share: 0.0, punishes: false });
            let spent = share * self.players[*donor].resources;
            self.change(*donor, -spent);
            self.change(*recipient, if punishes { -punishment * spent } else { factor * spent });
            if punishes {
                self.punishments += 1;
                self.players[*recipient].punished += 1;
            }
            let (round, to, share) = (self.round, self.players[*recipient].id, if punishes { 0.0 } else { share });
            self.given += share;
            self.players[*donor].gifts.push(Gift { round, to, share, punished: punishes });
        }
        self.given /= donors.len().max(1) as f64;
    }

    /// Changes what a player has. Nobody has less than nothing.
    fn change(&mut self, place: usize, by: f64) {
        let player = &mut self.players[place];
        let change = by.max(-player.resources);
        player.resources += change;
        player.change += change;
    }

    /// Ends a generation: half of it lives on, and as many are to be born as die.
    pub(super) fn select(&mut self, selection: Selection, mutation: f64, draws: &mut Draws) {
        // Ties, and random halves, by lot.
        let mut order: Vec<usize> = (0..self.players.len()).collect();
        draws.shuffle(&mut order);
        if selection == Selection::Top {
            order.sort_by(|a, b| self.players[*b].resources.total_cmp(&self.players[*a].resources));
        }
        let (living, dying) = order.split_at(order.len() - order.len() / 2);
        let mut parent = || {
            let among = if draws.chance(mutation) { &order[..] } else { living };
            self.players[among[draws.below(among.len() as u64) as usize]].id
        };
        self.parents = dying.iter().map(|_| parent()).collect();
        self.parents.sort_unstable();
        self.dying = dying.iter().map(|place| self.players[*place].id).collect();
        self.dying.sort_unstable();
        self.generation += 1;
        self.round = 0;
    }

    /// Lets the next generation begin: the dying leave, the newborn come, all have the same and no history.
    pub(super) fn succeed(&mut self, endowment: f64) {
        let dying = std::mem::take(&mut self.dying);
        let mut players = std::mem::take(&mut self.players);
        players.retain(|player| dying.binary_search(&player.id).is_err());
        let born = std::mem::take(&mut self.parents).len() as AgentId;
        let ids = players.iter().map(|player| player.id).chain(self.next..self.next + born);
        self.players = ids.map(|id| Player::new(id, endowment)).collect();
        self.next += born;
    }

    /// Draws who plays with whom in this generation.
    pub(super) fn seat(&mut self, draws: &mut Draws) {
        self.seats = (0..self.players.len() as u32).collect();
        draws.shuffle(&mut self.seats);
        for (seat, place) in (0..).zip(&self.seats) {
            self.players[*place as usize].seat = seat;
        }
    }

    /// Draws whose history donors are shown.
    pub(super) fn draw_stand_ins(&mut self, draws: &mut Draws) {
        let n = self.players.len() as u64;
        self.stand_ins = (0..n).map(|_| draws.below(n) as u32).collect();
    }
}
