//! Trees from nodes in depth-first order.

use super::{Chance, InformationSet, Kind, Slot, Tree};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum numbers of players and of nodes, and maximum number of moves on one path.
const MOST_PLAYERS: usize = 20;
const MOST_NODES: usize = 10_000_000;
const MOST_DEPTH: usize = 1_000;

/// Makes a [`Tree`] from nodes in depth-first order: a node, then all nodes below its first move, then all below its second one.
///
/// ```
/// use polity_games::extensive::Builder;
///
/// // A coin that only Ann sees; Bob guesses.
/// let mut builder = Builder::new("coin", &["Ann", "Bob"]);
/// builder.chance(&[("heads", 0.5), ("tails", 0.5)]);
/// for heads in [true, false] {
///     builder.decision(1, "guess", &["heads", "tails"]);
///     let right = if heads { [-1.0, 1.0] } else { [1.0, -1.0] };
///     builder.terminal(&right);
///     builder.terminal(&right.map(|x| -x));
/// }
/// let tree = builder.finish()?;
/// assert_eq!((tree.len(), tree.sets().len()), (7, 1));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug)]
pub struct Builder {
    tree: Tree,
    /// Sets in order of first use, by player and key.
    known: BTreeMap<(usize, String), u32>,
    /// Names in use, by player.
    names: BTreeSet<(usize, String)>,
    /// The path to the next node: each node on it, and which of its moves the path takes.
    open: Vec<(u32, u32)>,
    fault: Option<String>,
}

impl Builder {
    /// Begins a game. Between 1 and 20 players.
    #[must_use]
    pub fn new<S: AsRef<str>>(title: &str, players: &[S]) -> Self {
        let tree = Tree {
            title: title.to_owned(),
            players: players.iter().map(|name| name.as_ref().to_owned()).collect(),
            sets: Vec::new(),
            slots: Vec::new(),
            children: Vec::new(),
            chances: Vec::new(),
            payoffs: Vec::new(),
            offsets: Vec::new(),
        };
        let within = (1..=MOST_PLAYERS).contains(&players.len());
        let fault =
            (!within).then(|| format!("a game has 1 to {MOST_PLAYERS} players; this one has {}", players.len()));
        Builder { tree, known: BTreeMap::new(), names: BTreeSet::new(), open: Vec::new(), fault }
    }

    /// Adds a node where chance moves, with the probability of each move.
    pub fn chance<S: AsRef<str>>(&mut self, moves: &[(S, f64)]) {
        if self.fault.is_some() {
            return;
        }
        let names: Vec<String> = moves.iter().map(|(name, _)| name.as_ref().to_owned()).collect();
        let probabilities: Vec<f64> = moves.iter().map(|(_, p)| *p).collect();
        let sum: f64 = probabilities.iter().sum();
        if let Some(p) = probabilities.iter().find(|p| !(0.0..=1.0 + 1e-9).contains(*p)) {
            self.refuse(&format!("a probability is {p}, and must be between 0 and 1"));
        } else if !moves.is_empty() && (sum - 1.0).abs() > 1e-9 {
            self.refuse(&format!("the probabilities of chance add up to {sum}, and must add up to 1"));
        }
        let kind = Kind::Chance(self.tree.chances.len() as u32);
        self.tree.chances.push(Chance { moves: names, probabilities });
        self.push(kind, moves.len());
    }

    /// Adds a node where a player decides. Nodes of one player with the same name of a set belong to the same information set, and
    /// must have the same moves in the same order.
    pub fn decision<S: AsRef<str>>(&mut self, player: usize, set: &str, moves: &[S]) {
        self.keyed(player, set, set, moves);
    }

    /// Adds a decision whose set has a unique key, and a label that other sets may have, too.
    pub(super) fn keyed<S: AsRef<str>>(&mut self, player: usize, key: &str, label: &str, moves: &[S]) {
        if self.fault.is_some() {
            return;
        }
        if player >= self.tree.players.len() {
            let players = self.tree.players.len();
            return self.refuse(&format!("player {} decides, but there are {players} players", player + 1));
        }
        let set = match self.known.get(&(player, key.to_owned())) {
            Some(set) => {
                let InformationSet { name, moves: known, .. } = &self.tree.sets[*set as usize];
                if known.len() != moves.len() || known.iter().zip(moves).any(|(a, b)| a != b.as_ref()) {
                    let given: Vec<&str> = moves.iter().map(AsRef::as_ref).collect();
                    let told = format!(
                        "information set `{name}` of {} has the moves {} here, and the moves {} at an earlier node",
                        self.tree.players[player],
                        given.join(", "),
                        known.join(", ")
                    );
                    return self.refuse(&told);
                }
                *set
            }
            None => {
                let moves: Vec<String> = moves.iter().map(|name| name.as_ref().to_owned()).collect();
                let set = self.tree.sets.len() as u32;
                let name = self.free_name(player, key, label);
                self.known.insert((player, key.to_owned()), set);
                self.tree.sets.push(InformationSet { player, name, moves, nodes: Vec::new() });
                set
            }
        };
        self.tree.sets[set as usize].nodes.push(self.tree.slots.len() as u32);
        self.push(Kind::Decision(set), moves.len());
    }

    /// Returns a set's label, or the label with the key where another set has it.
    fn free_name(&mut self, player: usize, key: &str, label: &str) -> String {
        let mut name = if label.is_empty() { key.to_owned() } else { label.to_owned() };
        while !self.names.insert((player, name.clone())) {
            name = format!("{name} ({key})");
        }
        name
    }

    /// Adds a node where the game is over, with each player's payoff.
    pub fn terminal(&mut self, payoffs: &[f64]) {
        if self.fault.is_some() {
            return;
        }
        let players = self.tree.players.len();
        if payoffs.len() != players {
            return self.refuse(&format!("{players} players need {players} payoffs; there are {}", payoffs.len()));
        }
        if let Some(payoff) = payoffs.iter().find(|payoff| !payoff.is_finite()) {
            return self.refuse(&format!("a payoff is {payoff}, and must be finite"));
        }
        let kind = Kind::Terminal(self.tree.terminals() as u32);
        self.tree.payoffs.extend_from_slice(payoffs);
        self.push(kind, 0);
    }

    /// Returns whether all nodes have their children, so that no further node fits.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.open.is_empty() && !self.tree.slots.is_empty()
    }

    /// Returns the first fault so far.
    pub(super) fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// Finishes the tree.
    ///
    /// # Errors
    /// The first fault of the nodes, with the node's number and the moves that lead there: probabilities that do not add up to 1,
    /// moves that differ within an information set, two moves of one name or a move without one, payoffs that do not match the
    /// players, missing nodes or too many, sizes above the limits.
    pub fn finish(self) -> Result<Tree, String> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        if self.tree.slots.is_empty() {
            return Err("the game has no nodes".into());
        }
        if !self.open.is_empty() {
            return Err(format!("the tree ends early: no node follows {}", self.place()));
        }
        Ok(self.built())
    }

    /// Numbers the sets by player. Only for complete trees that are known to be without fault.
    pub(super) fn built(self) -> Tree {
        debug_assert!(self.fault.is_none() && self.is_complete(), "{:?}", self.fault);
        let mut tree = self.tree;
        let mut order: Vec<usize> = (0..tree.sets.len()).collect();
        // The sort is stable: sets of a player stay in order of their first nodes.
        order.sort_by_key(|set| tree.sets[*set].player);
        let mut place = vec![0; order.len()];
        for (new, old) in order.iter().enumerate() {
            place[*old] = new as u32;
        }
        for slot in &mut tree.slots {
            if let Kind::Decision(set) = &mut slot.kind {
                *set = place[*set as usize];
            }
        }
        let mut sets: Vec<(u32, InformationSet)> = place.into_iter().zip(tree.sets).collect();
        sets.sort_by_key(|(place, _)| *place);
        tree.sets = sets.into_iter().map(|(_, set)| set).collect();
        tree.offsets = vec![0];
        let mut moves = 0;
        for set in &tree.sets {
            moves += set.moves.len() as u32;
            tree.offsets.push(moves);
        }
        tree
    }

    /// Adds a node of a kind with this many children to come, below the move that is next.
    fn push(&mut self, kind: Kind, count: usize) {
        let at = self.tree.slots.len();
        if self.is_complete() {
            return self.refuse("the tree is complete, but more nodes follow");
        }
        // Every node but the root is a child, perhaps one still to come.
        if self.tree.children.len() + count >= MOST_NODES || self.open.len() > MOST_DEPTH {
            return self
                .refuse(&format!("a tree has at most {MOST_NODES} nodes and is at most {MOST_DEPTH} moves deep"));
        }
        self.tree.slots.push(Slot { kind, first: self.tree.children.len() as u32, count: count as u32 });
        if let Some((parent, taken)) = self.open.last() {
            let slot = self.tree.slots[*parent as usize];
            self.tree.children[(slot.first + taken) as usize] = at as u32;
        }
        if let Err(told) = self.check_moves(kind) {
            return self.refuse_at(at, &told);
        }
        self.tree.children.resize(self.tree.children.len() + count, 0);
        if count > 0 {
            self.open.push((at as u32, 0));
            return;
        }
        // On to the next move of the nearest node that has one left.
        while let Some((node, taken)) = self.open.last_mut() {
            *taken += 1;
            if *taken < self.tree.slots[*node as usize].count {
                break;
            }
            self.open.pop();
        }
    }

    fn check_moves(&self, kind: Kind) -> Result<(), String> {
        let moves = self.moves(kind);
        if moves.is_empty() && !matches!(kind, Kind::Terminal(_)) {
            return Err("there are no moves".into());
        }
        if moves.iter().any(String::is_empty) {
            return Err("a move has no name".into());
        }
        let mut sorted: Vec<&String> = moves.iter().collect();
        sorted.sort();
        let twice = sorted.windows(2).find(|pair| pair[0] == pair[1]);
        twice.map_or(Ok(()), |pair| Err(format!("two moves have the name `{}`", pair[0])))
    }

    fn refuse(&mut self, told: &str) {
        self.refuse_at(self.tree.slots.len(), told);
    }

    fn refuse_at(&mut self, at: usize, told: &str) {
        let place = self.place();
        self.fault.get_or_insert_with(|| format!("node {} ({place}): {told}", at + 1));
    }

    /// Describes the moves that lead to the next node; of a long path, the last ones.
    fn place(&self) -> String {
        const SHOWN: usize = 8;
        let left_out = self.open.len().saturating_sub(SHOWN);
        let names = self.open[left_out..].iter().filter_map(|(node, taken)| {
            let name = self.moves(self.tree.slots[*node as usize].kind).get(*taken as usize)?;
            Some(format!("`{name}`"))
        });
        let dots = (left_out > 0).then(|| "...".to_owned());
        let path: Vec<String> = dots.into_iter().chain(names).collect();
        if path.is_empty() { "the root".into() } else { path.join(", ") }
    }

    /// Returns the names of the moves of a node.
    fn moves(&self, kind: Kind) -> &[String] {
        match kind {
            Kind::Chance(chance) => &self.tree.chances[chance as usize].moves,
            Kind::Decision(set) => &self.tree.sets[set as usize].moves,
            Kind::Terminal(_) => &[],
        }
    }
}
