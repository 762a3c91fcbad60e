//! Episodes: those that agents have played, and those from which skills are learned.

use crate::learning::{NONE, Parts, Rollout};
use polity_nn::Array;

/// Decisions of whole episodes and the states in which these ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Played {
    /// The states in which something was decided.
    pub states: Array,
    /// What is added to the logits of choices that were not offered there.
    pub masks: Array,
    /// What was chosen.
    pub choices: Vec<u32>,
    /// To which episode each decision belongs.
    pub of: Vec<u32>,
    /// The last state of each episode.
    pub ends: Array,
    /// The skill that was followed in each episode.
    pub skills: Vec<u32>,
}

/// What agents saw and chose in whole episodes. The last decision of an episode leads nowhere, since what is seen next is the start of
/// another one. The state in which it was taken is the end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorded {
    /// The episodes, with states as they were seen.
    pub episodes: Played,
    /// The state after each decision.
    pub then: Array,
    /// The first state of each episode.
    pub starts: Array,
    /// Decisions in the longest episode.
    pub longest: usize,
}

impl Recorded {
    /// Gathers the episodes that parts of a rollout name. `observed`: numbers of a state, after which come those of the skill.
    pub fn gather(rollout: &Rollout, parts: &Parts, observed: usize) -> Self {
        let steps: Vec<_> = rollout.steps().collect();
        let mut all = Recorded::default();
        for (who, from, to) in parts.played() {
            let rows = steps[from as usize..to as usize].iter().filter_map(|step| Some((step, step.seen.row(who)?)));
            let decided: Vec<_> = rows.filter(|(step, row)| step.choices[*row] != NONE).collect();
            let state =
                |(step, row): &(&&crate::learning::Step, usize)| step.seen.inputs.row(*row)[..observed].to_vec();
            let Some((first, last)) = decided.first().zip(decided.last()) else { continue };
            let episode = all.episodes.skills.len() as u32;
            for pair in decided.windows(2) {
                let (step, row) = pair[0];
                all.episodes.states.push(&state(&pair[0]));
                all.episodes.masks.push(step.seen.mask.row(row));
                all.episodes.choices.push(u32::from(step.choices[row]));
                all.episodes.of.push(episode);
                all.then.push(&state(&pair[1]));
            }
            let own = &first.0.seen.inputs.row(first.1)[observed..];
            all.episodes.skills.push(own.iter().position(|x| *x == 1.0).unwrap_or_default() as u32);
            all.episodes.ends.push(&state(last));
            all.starts.push(&state(first));
            all.longest = all.longest.max(decided.len() - 1);
        }
        all
    }
}

/// Returns matrices with the same number of rows, side by side.
pub fn joined(left: &Array, right: &Array) -> Array {
    let mut all = Array::EMPTY;
    (0..left.rows()).for_each(|row| all.push(&[left.row(row), right.row(row)].concat()));
    all
}
