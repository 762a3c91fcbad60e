//! A teacher that proposes tasks on which a student makes progress (ALP-GMM).
//!
//! R. Portelas, C. Colas, K. Hofmann, P.-Y. Oudeyer, "Teacher algorithms for curriculum learning of deep RL in continuously parameterized
//! environments" (CoRL 2019). The progress on a task is the absolute difference between the student's reward for it and that for the nearest
//! earlier task. A Gaussian mixture is fitted to tasks and their progress. The next task is drawn from a component, which is chosen with a
//! probability in proportion to its mean progress.

use crate::mixture::Mixture;
use polity_base::digest::DigestVec;
use polity_base::rng::Draws;
use serde::{Deserialize, Serialize};

/// Tasks whose progress counts as 0.
const FIRST: usize = 5;

/// How a teacher proposes tasks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Numbers of a task, each from 0 to 1.
    pub dimensions: usize,
    /// Tasks from one fit to the next. As many of the last ones are fitted, and as many are drawn uniformly at first.
    pub fit_every: usize,
    /// The share of tasks that are drawn uniformly afterwards.
    pub explore: f64,
    /// The most components of a mixture. Akaike's criterion chooses how many, from 2 on.
    pub components: usize,
    /// Whether progress is shuffled among tasks before a fit, as a placebo: the same work, but no information.
    pub shuffled: bool,
}

/// What a teacher knows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Teacher {
    /// All tasks, each followed by the reward for it.
    known: DigestVec<f32>,
    /// The last tasks, each followed by the progress on it.
    last: Vec<f64>,
    mixture: Mixture,
}

impl Teacher {
    /// Returns the absolute difference between a reward and that for the nearest earlier task; 0 for the first tasks.
    fn progress(&self, settings: &Settings, task: &[f64], reward: f64) -> f64 {
        let d = settings.dimensions;
        if self.known.len() <= FIRST * (d + 1) {
            return 0.0;
        }
        let mut nearest = (f64::INFINITY, 0.0);
        for known in self.known.chunks(d + 1) {
            let away: f64 = known.iter().zip(task).map(|(x, y)| (f64::from(*x) - y) * (f64::from(*x) - y)).sum();
            if away < nearest.0 {
                nearest = (away, f64::from(known[d]));
            }
        }
        (reward - nearest.1).abs()
    }

    /// Learns what a student got for a task.
    pub fn learn(&mut self, settings: &Settings, task: &[f64], reward: f64, draws: &mut Draws) {
        let d = settings.dimensions;
        let progress = self.progress(settings, task, reward);
        task.iter().chain([&reward]).for_each(|x| self.known.push(*x as f32));
        self.last.extend(task.iter().chain([&progress]));
        if self.last.len() < settings.fit_every * (d + 1) {
            return;
        }
        let mut points = std::mem::take(&mut self.last);
        if settings.shuffled {
            let mut shuffled: Vec<f64> = points.iter().skip(d).step_by(d + 1).copied().collect();
            draws.shuffle(&mut shuffled);
            points.iter_mut().skip(d).step_by(d + 1).zip(shuffled).for_each(|(progress, other)| *progress = other);
        }
        let fits = (2..=settings.components).filter_map(|k| Mixture::fit(&points, d + 1, k, draws));
        let aic = |fit: &Mixture| fit.aic(settings.fit_every);
        if let Some(best) = fits.min_by(|one, other| aic(one).total_cmp(&aic(other))) {
            self.mixture = best;
        }
    }

    /// Draws the next task.
    pub fn propose(&self, settings: &Settings, draws: &mut Draws) -> Vec<f64> {
        let explores = draws.chance(settings.explore);
        let gains: Vec<f64> =
            self.mixture.components.iter().map(|(_, one)| one.mean[settings.dimensions].max(0.0)).collect();
        if explores || gains.is_empty() {
            return (0..settings.dimensions).map(|_| draws.unit()).collect();
        }
        let one = draws.weighted(&gains).unwrap_or_else(|| draws.below(gains.len() as u64) as usize);
        let mut task = self.mixture.components[one].1.draw(draws);
        task.truncate(settings.dimensions);
        task.iter_mut().for_each(|x| *x = x.clamp(0.0, 1.0));
        task
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_base::rng::Stream;

    const SETTINGS: Settings = Settings { dimensions: 1, fit_every: 200, explore: 0.1, components: 4, shuffled: false };

    #[test]
    fn progress_is_the_difference_to_the_nearest_earlier_task() {
        let (mut teacher, mut draws) = (Teacher::default(), Draws::new(1, Stream::World, 0, 0));
        for i in 0..6 {
            assert_eq!(teacher.progress(&SETTINGS, &[0.5], 1.0), 0.0, "{i}");
            teacher.learn(&SETTINGS, &[f64::from(i) / 10.0], f64::from(i), &mut draws);
        }
        assert_eq!(teacher.progress(&SETTINGS, &[0.32], 7.0), 4.0);
        assert_eq!(teacher.progress(&SETTINGS, &[1.0], 1.0), 4.0);
    }

    /// Returns the share of tasks in the half where rewards change.
    fn taught(settings: &Settings) -> f64 {
        let (mut teacher, mut draws) = (Teacher::default(), Draws::new(2, Stream::World, 0, 0));
        let mut there = 0;
        for i in 0..2_000 {
            let task = teacher.propose(settings, &mut draws);
            let changes = task[0] < 0.5;
            there += u32::from(i >= 1_000 && changes);
            let reward = if changes { draws.unit() } else { 0.3 };
            teacher.learn(settings, &task, reward, &mut draws);
        }
        f64::from(there) / 1_000.0
    }

    #[test]
    fn tasks_are_proposed_where_there_is_progress() {
        let (taught, placebo) = (taught(&SETTINGS), taught(&Settings { shuffled: true, ..SETTINGS }));
        assert!(taught > 0.85 && (0.3..0.7).contains(&placebo), "{taught} {placebo}");
    }

    #[test]
    fn tasks_are_drawn_uniformly_at_first() {
        let mut draws = Draws::new(3, Stream::World, 0, 0);
        let settings = Settings { explore: 0.0, ..SETTINGS };
        let mean = (0..4_000).map(|_| Teacher::default().propose(&settings, &mut draws)[0]).sum::<f64>() / 4_000.0;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
    }
}
