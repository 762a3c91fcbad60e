//! The field: where apples grow, who stands where, zapping, regrowth.

use polity_kernel::rng::Draws;
use serde::{Deserialize, Serialize};

/// Cells between the centres of patches. Apples of one patch are never near those of another.
const SPACING: i32 = 7;
/// Rows below the patches, where players begin.
const YARD: i32 = 4;
/// Apples that are at most so far away are near (squared).
const NEAR: i32 = 4;
/// Steps of a beam, and how wide it is on each side.
const BEAM: (i32, i32) = (3, 1);

/// The moves, by number: up, right, down, left.
pub const WAYS: [(i32, i32); 4] = [(0, -1), (1, 0), (0, 1), (-1, 0)];

/// The shape of a field, which does not change.
#[derive(Clone, Debug)]
pub struct Shape {
    pub width: i32,
    pub height: i32,
    /// Cells on which apples grow, in order: (column, row).
    pub sites: Vec<(i32, i32)>,
    /// The other sites that are near each.
    pub near: Vec<Vec<usize>>,
    /// The site of each cell, row by row.
    site_at: Vec<Option<usize>>,
}

impl Shape {
    /// Makes a field with patches in columns and rows. A patch has 13 apples: those at most two steps from its centre.
    pub fn new(columns: u32, rows: u32) -> Shape {
        let (width, height) = (SPACING * columns as i32, SPACING * rows as i32 + YARD);
        let is_site = |x: i32, y: i32| {
            let off = |place: i32| (place % SPACING - SPACING / 2).abs();
            y < height - YARD && off(x) + off(y) <= 2
        };
        let mut sites = Vec::new();
        let mut site_at = Vec::new();
        for y in 0..height {
            for x in 0..width {
                site_at.push(is_site(x, y).then_some(sites.len()));
                if is_site(x, y) {
                    sites.push((x, y));
                }
            }
        }
        let close = |a: (i32, i32), b: (i32, i32)| (a.0 - b.0).pow(2) + (a.1 - b.1).pow(2) <= NEAR;
        let mut near = Vec::with_capacity(sites.len());
        for (i, a) in sites.iter().enumerate() {
            // Near cells are at most two rows away, so this stays linear in the number of patches.
            let mut own = Vec::new();
            for y in (a.1 - 2).max(0)..=(a.1 + 2).min(height - 1) {
                for x in (a.0 - 2).max(0)..=(a.0 + 2).min(width - 1) {
                    let other: Option<usize> = site_at[(y * width + x) as usize];
                    own.extend(other.filter(|other| *other != i && close(*a, sites[*other])));
                }
            }
            near.push(own);
        }
        Shape { width, height, sites, near, site_at }
    }

    pub fn is_inside(&self, (x, y): (i32, i32)) -> bool {
        (0..self.width).contains(&x) && (0..self.height).contains(&y)
    }

    /// Returns the site of a cell, if apples grow there.
    pub fn site(&self, at: (i32, i32)) -> Option<usize> {
        let place = self.is_inside(at).then(|| (at.1 * self.width + at.0) as usize)?;
        self.site_at.get(place).copied().flatten()
    }

    /// Returns whether a beam from a cell in a direction hits another.
    pub fn hits(from: (i32, i32), way: u8, to: (i32, i32)) -> bool {
        let (dx, dy) = WAYS[usize::from(way) % 4];
        let (x, y) = (to.0 - from.0, to.1 - from.1);
        let (ahead, aside) = (x * dx + y * dy, x * dy - y * dx);
        (1..=BEAM.0).contains(&ahead) && aside.abs() <= BEAM.1
    }
}

/// A player.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Player {
    pub at: (i32, i32),
    /// The direction of its last move.
    pub faces: u8,
    /// Rounds until it is back; 0 while it is there.
    pub away: u32,
    /// Rounds until it can zap again.
    pub cools: u32,
    pub eaten: u32,
}

/// A field and its players.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Field {
    /// Whether there is an apple at each site.
    pub apples: Vec<bool>,
    pub players: Vec<Player>,
    pub round: u32,
    /// Sum of the rounds, from 1, in which apples were eaten.
    pub when: u64,
    /// Apples eaten that left at least so many others near as the rules ask.
    pub spared: u32,
    /// Rounds that players were away, over all.
    pub lost: u64,
    pub zaps: u32,
}

/// What a player does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Deed {
    Nothing,
    Go(u8),
    Zap,
}

/// What does not change in a game besides the shape.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Probability of regrowth by apples near; the last one holds for more, too.
    pub regrowth: Vec<f64>,
    /// Rounds for which who is zapped is away.
    pub away: u32,
    /// Rounds between two zaps.
    pub cool: u32,
    /// Apples that restraint leaves near.
    pub leave: usize,
}

impl Field {
    /// Begins a game: all apples are there, players stand in the yard.
    pub fn new(shape: &Shape, players: u32, draws: &mut Draws) -> Field {
        let mut field = Field {
            apples: vec![true; shape.sites.len()],
            players: Vec::new(),
            round: 0,
            when: 0,
            spared: 0,
            lost: 0,
            zaps: 0,
        };
        for _ in 0..players {
            let at = field.free_place(shape, draws);
            field.players.push(Player { at, faces: 0, away: 0, cools: 0, eaten: 0 });
        }
        field
    }

    pub fn is_taken(&self, at: (i32, i32)) -> bool {
        self.players.iter().any(|player| player.away == 0 && player.at == at)
    }

    fn free_place(&self, shape: &Shape, draws: &mut Draws) -> (i32, i32) {
        loop {
            let x = draws.below(shape.width as u64) as i32;
            let y = shape.height - 1 - draws.below(YARD as u64) as i32;
            if !self.is_taken((x, y)) {
                return (x, y);
            }
        }
    }

    /// Returns the apples near a site.
    pub fn near(&self, shape: &Shape, site: usize) -> usize {
        shape.near[site].iter().filter(|other| self.apples[**other]).count()
    }

    /// Plays a round. Returns what each player eats.
    pub fn play(&mut self, shape: &Shape, rules: &Rules, deeds: &[Deed], draws: &mut Draws) -> Vec<f64> {
        self.round += 1;
        let mut meals = vec![0.0; self.players.len()];
        let mut turns: Vec<usize> = (0..self.players.len()).collect();
        draws.shuffle(&mut turns);
        let there: Vec<bool> = self.players.iter().map(|player| player.away == 0).collect();
        for who in turns.iter().copied().filter(|who| there[*who] && deeds[*who] == Deed::Zap) {
            let Player { at, faces, cools, away, .. } = self.players[who];
            if cools > 0 || away > 0 {
                continue;
            }
            self.players[who].cools = rules.cool + 1;
            self.zaps += 1;
            for other in (0..self.players.len()).filter(|other| *other != who) {
                let other = &mut self.players[other];
                if rules.away > 0 && other.away == 0 && Shape::hits(at, faces, other.at) {
                    other.away = rules.away + 1;
                }
            }
        }
        for who in turns.iter().copied().filter(|who| there[*who]) {
            let Deed::Go(way) = deeds[who] else { continue };
            let player = &self.players[who];
            let (dx, dy) = WAYS[usize::from(way) % 4];
            let to = (player.at.0 + dx, player.at.1 + dy);
            if player.away > 0 {
                continue;
            }
            self.players[who].faces = way;
            if !shape.is_inside(to) || self.is_taken(to) {
                continue;
            }
            self.players[who].at = to;
            if let Some(site) = shape.site(to).filter(|site| self.apples[*site]) {
                self.apples[site] = false;
                self.players[who].eaten += 1;
                self.when += u64::from(self.round);
                self.spared += u32::from(self.near(shape, site) >= rules.leave);
                meals[who] = 1.0;
            }
        }
        self.grow(shape, rules, draws);
        for who in 0..self.players.len() {
            self.players[who].cools = self.players[who].cools.saturating_sub(1);
            if self.players[who].away > 0 {
                self.lost += 1;
                self.players[who].away -= 1;
                if self.players[who].away == 0 {
                    // It comes back to the yard.
                    self.players[who].away = 1;
                    let at = self.free_place(shape, draws);
                    (self.players[who].away, self.players[who].at) = (0, at);
                }
            }
        }
        meals
    }

    fn grow(&mut self, shape: &Shape, rules: &Rules, draws: &mut Draws) {
        let bare: Vec<usize> = (0..self.apples.len()).filter(|site| !self.apples[*site]).collect();
        let grown = |site: &usize| {
            let near = self.near(shape, *site).min(rules.regrowth.len().saturating_sub(1));
            let p = rules.regrowth.get(near).copied().unwrap_or_default();
            p > 0.0 && draws.chance(p) && !self.is_taken(shape.sites[*site])
        };
        let grown: Vec<usize> = bare.into_iter().filter(grown).collect();
        for site in grown {
            self.apples[site] = true;
        }
    }
}
