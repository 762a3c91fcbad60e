//! Named decision processes.

use crate::process::Process;
use polity_base::rng::Draws;

/// A process without transitions or rewards, whose episodes begin in state 0.
fn empty(states: usize, moves: &[usize], channels: usize) -> Process {
    let pairs = states * moves.iter().product::<usize>();
    let mut initial = vec![0.0; states];
    if let Some(first) = initial.first_mut() {
        *first = 1.0;
    }
    Process {
        states,
        moves: moves.to_vec(),
        channels,
        next: vec![Vec::new(); pairs],
        rewards: vec![0.0; pairs * channels],
        initial,
        terminal: vec![false; states],
        features: vec![states],
    }
}

/// A random process (Archibald, McKinnon and Thomas 1995): each pair leads to `branching` states with random probabilities; rewards are
/// uniform on [0, 1). From every state the process may also restart in any state, with probability 0.05, so that all states recur.
#[must_use]
pub fn garnet(states: usize, moves: &[usize], branching: usize, channels: usize, draws: &mut Draws) -> Process {
    let mut process = empty(states, moves, channels);
    let mut order: Vec<u32> = (0..states as u32).collect();
    for next in &mut process.next {
        draws.shuffle(&mut order);
        let mut cuts: Vec<f64> = (1..branching.min(states)).map(|_| draws.unit()).collect();
        cuts.sort_by(f64::total_cmp);
        cuts.push(1.0);
        let mut shares = vec![0.05 / states as f64; states];
        let mut before = 0.0;
        for (to, cut) in order.iter().zip(&cuts) {
            shares[*to as usize] += 0.95 * (cut - before);
            before = *cut;
        }
        let sum: f64 = shares.iter().sum();
        *next = (0u32..).zip(shares).map(|(to, p)| (to, p / sum)).collect();
    }
    process.rewards.iter_mut().for_each(|reward| *reward = draws.unit());
    process
}

/// A chain of states. Move 1 goes right with probability `climb`, else it stays; move 0 goes left. Move 0 in the first state gives
/// `small`, move 1 in the last gives 1; nothing else gives a reward.
#[must_use]
pub fn chain(states: usize, climb: f64, small: f64) -> Process {
    let mut process = empty(states, &[2], 1);
    for state in 0..states {
        process.next[2 * state] = vec![(state.saturating_sub(1) as u32, 1.0)];
        let right = (state + 1).min(states - 1) as u32;
        process.next[2 * state + 1] = match right as usize == state {
            true => vec![(right, 1.0)],
            false => vec![(right, climb), (state as u32, 1.0 - climb)],
        };
    }
    process.rewards[0] = small;
    process.rewards[2 * states - 1] = 1.0;
    process
}

/// A cell of a grid that gives a reward.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// Column, from 0.
    pub x: usize,
    /// Row, from 0.
    pub y: usize,
    /// The channel of the reward.
    pub channel: usize,
    /// The reward for entering the cell.
    pub reward: f64,
    /// Whether the episode ends there.
    pub end: bool,
}

/// A grid. Moves: up, right, down, left; against the edge a move stays. With probability `slip` the move is one of the two beside it. A
/// reward is given for entering a cell. Episodes begin in the cell (0, 0).
#[must_use]
pub fn grid(width: usize, height: usize, slip: f64, channels: usize, cells: &[Cell]) -> Process {
    let mut process = empty(width * height, &[4], channels);
    process.features = vec![height, width];
    for state in 0..width * height {
        let (x, y) = (state % width, state / width);
        for action in 0..4 {
            let mut shares = vec![(action, 1.0 - slip)];
            if slip > 0.0 {
                shares.extend([((action + 1) % 4, slip / 2.0), ((action + 3) % 4, slip / 2.0)]);
            }
            let pair = 4 * state + action;
            for (direction, p) in shares {
                let (x, y) = match direction {
                    0 => (x, y.saturating_sub(1)),
                    1 => ((x + 1).min(width - 1), y),
                    2 => (x, (y + 1).min(height - 1)),
                    _ => (x.saturating_sub(1), y),
                };
                let to = y * width + x;
                if p > 0.0 {
                    process.next[pair].push((to as u32, p));
                }
                if to != state {
                    for cell in cells.iter().filter(|cell| (cell.x, cell.y) == (x, y)) {
                        process.rewards[pair * channels + cell.channel] += p * cell.reward;
                    }
                }
            }
        }
    }
    for cell in cells.iter().filter(|cell| cell.end) {
        process.terminal[cell.y * width + cell.x] = true;
    }
    process
}

/// Two queues and one server (Zaki, Mohan, Gopalan and Mannor 2022). In each step a customer arrives at a queue with its probability; the
/// server takes one from the queue that the move names. The reward is minus the number of those who wait, divided by what both
/// queues hold at most.
#[must_use]
pub fn queues(capacity: usize, arrivals: [f64; 2]) -> Process {
    let side = capacity + 1;
    let mut process = empty(side * side, &[2], 1);
    process.features = vec![side, side];
    for state in 0..side * side {
        let waiting = [state / side, state % side];
        for served in 0..2 {
            let pair = 2 * state + served;
            let mut left = waiting;
            left[served] = left[served].saturating_sub(1);
            for first in 0..2usize {
                for second in 0..2usize {
                    let p =
                        |queue: usize, comes: usize| if comes == 1 { arrivals[queue] } else { 1.0 - arrivals[queue] };
                    let share = p(0, first) * p(1, second);
                    let to = (left[0] + first).min(capacity) * side + (left[1] + second).min(capacity);
                    if share > 0.0 {
                        process.next[pair].push((to as u32, share));
                    }
                }
            }
            process.rewards[pair] = -((waiting[0] + waiting[1]) as f64) / (2 * capacity) as f64;
        }
    }
    process
}

/// A falling fruit. A body below moves left, stays or moves right; its arm has the same three moves and reaches one cell to either side.
/// Features: height of the fruit above the hand, column of the fruit, column of the body, place of the arm (0 to 2). Seats: body,
/// arm. Channels: the fruit is caught by the hand (`column of the body + arm - 1`); when the fruit lands, it is within the reach
/// of the body.
/// In the `mirrored` task the arm's moves are the other way round. An episode ends with the landing.
#[must_use]
pub fn catch(width: usize, height: usize, mirrored: bool) -> Process {
    let features = vec![height + 1, width, width, 3];
    let states = features.iter().product();
    let mut process = empty(states, &[3, 3], 2);
    process.features = features;
    let code = |up: usize, fruit: usize, body: usize, arm: usize| ((up * width + fruit) * width + body) * 3 + arm;
    process.initial = vec![0.0; states];
    for up in 0..=height {
        for fruit in 0..width {
            for body in 0..width {
                for arm in 0..3 {
                    let state = code(up, fruit, body, arm);
                    process.terminal[state] = up == 0;
                    if up == height && arm == 1 {
                        process.initial[state] = 1.0 / (width * width) as f64;
                    }
                    for action in 0..9 {
                        let pair = 9 * state + action;
                        let turn = if mirrored { 2 - action % 3 } else { action % 3 };
                        let step = |at: usize, by: usize, most: usize| (at + by).saturating_sub(1).min(most);
                        let (body, arm) = (step(body, action / 3, width - 1), step(arm, turn, 2));
                        process.next[pair] = vec![(code(up.saturating_sub(1), fruit, body, arm) as u32, 1.0)];
                        if up == 1 {
                            let hand = body + arm;
                            let caught = hand == fruit + 1;
                            let near = body.abs_diff(fruit) <= 1;
                            process.rewards[2 * pair] = f64::from(u8::from(caught));
                            process.rewards[2 * pair + 1] = f64::from(u8::from(near));
                        }
                    }
                }
            }
        }
    }
    process
}

/// A cooperative Markov game with traps. In each state, one joint action gives 1 (all seats' best moves together), another one gives
/// `safe`, whose seats can deviate at little loss; every other joint action in which a seat plays its best move gives `penalty`, as in
/// the climbing game of Claus and Boutilier (1998). Which moves these are is drawn for each state. Transitions are those of a garnet.
#[must_use]
pub fn climbing(
    states: usize,
    moves: &[usize],
    branching: usize,
    [safe, penalty]: [f64; 2],
    draws: &mut Draws,
) -> Process {
    let mut process = garnet(states, moves, branching, 1, draws);
    let actions = process.actions();
    for state in 0..states {
        let top: Vec<usize> = moves.iter().map(|n| draws.below(*n as u64) as usize).collect();
        let shift: Vec<usize> = moves.iter().map(|n| 1 + draws.below(*n as u64 - 1) as usize).collect();
        for action in 0..actions {
            let mut rest = action;
            let (mut high, mut low, mut seats) = (0, 0, 0);
            for ((n, top), shift) in moves.iter().zip(&top).zip(&shift).rev() {
                let own = rest % n;
                rest /= n;
                high += usize::from(own == *top);
                low += usize::from(own == (top + shift) % n);
                seats += 1;
            }
            process.rewards[state * actions + action] = match (high, low) {
                (high, _) if high == seats => 1.0,
                (0, low) => safe * low as f64 / seats as f64,
                _ => penalty,
            };
        }
    }
    process
}

/// A process as written: [state, joint action, next state, probability] and [state, joint action, channel, reward]. Pairs without a
/// transition stay where they are. Numbers of states, actions and channels must exist; probabilities are not checked here.
#[must_use]
pub fn written(
    states: usize,
    moves: &[usize],
    channels: usize,
    transitions: &[(u32, u32, u32, f64)],
    rewards: &[(u32, u32, u32, f64)],
    terminal: &[u32],
) -> Process {
    let mut process = empty(states, moves, channels);
    let actions = process.actions();
    for (state, action, to, p) in transitions {
        process.next[*state as usize * actions + *action as usize].push((*to, *p));
    }
    for (pair, next) in process.next.iter_mut().enumerate().filter(|(_, next)| next.is_empty()) {
        next.push(((pair / actions) as u32, 1.0));
    }
    for (state, action, channel, reward) in rewards {
        process.rewards[(*state as usize * actions + *action as usize) * channels + *channel as usize] += reward;
    }
    terminal.iter().for_each(|state| process.terminal[*state as usize] = true);
    process
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Objective;
    use polity_base::rng::Stream;

    #[test]
    fn all_are_processes() {
        let mut draws = Draws::new(1, Stream::World, 0, 0);
        let cell = Cell { x: 3, y: 2, channel: 1, reward: 2.0, end: true };
        for process in [
            garnet(6, &[2, 3], 3, 2, &mut draws),
            chain(5, 0.3, 0.1),
            grid(4, 3, 0.2, 2, &[cell]),
            queues(4, [0.3, 0.4]),
            catch(5, 4, false),
            climbing(2, &[3, 3], 2, [0.5, -1.0], &mut draws),
            written(2, &[2], 1, &[(0, 1, 1, 1.0)], &[(0, 1, 0, 1.0)], &[1]),
        ] {
            process.check().unwrap();
        }
    }

    #[test]
    fn closed_forms() {
        // Always right: the last state's reward of 1, after as many steps as states less one.
        let chain = chain(4, 1.0, 0.0);
        let value = chain.optimum(&Objective::Discounted { discount: 0.9 }, &[1.0]).value;
        assert!((value - 0.9f64.powi(3) / 0.1).abs() < 1e-9);
        // Six steps to the far corner.
        let cell = Cell { x: 3, y: 3, channel: 0, reward: 5.0, end: true };
        let grid = grid(4, 4, 0.0, 1, &[cell]);
        let value = grid.optimum(&Objective::Discounted { discount: 0.5 }, &[1.0]).value;
        assert!((value - 5.0 * 0.5f64.powi(5)).abs() < 1e-9);
        // A queue without arrivals is empty in the end.
        let quiet = queues(3, [0.0, 0.0]);
        assert!(quiet.optimum(&Objective::Average, &[1.0]).value.abs() < 1e-9);
        // Every fruit can be caught if there is time.
        let fruit = catch(4, 4, true);
        let episode = Objective::Episodic { horizon: 4, discounts: vec![1.0, 1.0] };
        assert!((fruit.optimum(&episode, &[1.0, 0.0]).value - 1.0).abs() < 1e-9);
        // The best joint action of the climbing game, forever.
        let game = climbing(3, &[3, 3], 2, [0.5, -1.0], &mut Draws::new(1, Stream::World, 0, 1));
        let value = game.optimum(&Objective::Discounted { discount: 0.5 }, &[1.0]).value;
        assert!((value - 2.0).abs() < 1e-9);
    }
}
