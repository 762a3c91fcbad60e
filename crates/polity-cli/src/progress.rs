//! The progress bar: round, rate, time left, money, and what the run waits for.

use super::output;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use polity_driver::drive::{PAUSED, Pace, Progress, Stop, Watch};
use polity_store::printable::{counted, on_one_line};
use serde::Serialize;
use std::time::Instant;

/// A bar on standard error. Where that is not a terminal, a line now and then instead.
pub struct Bar {
    bar: ProgressBar,
    begun: bool,
    /// When the last progress line was printed; at first, when progress was first told.
    told: Option<Instant>,
    pace: Pace,
    /// What the run last waited for, since the last line.
    waited: Option<String>,
    _stop: Stop,
}

/// What a line of progress tells programs.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    progress: &'a Progress,
    /// Actions of agents per second; in an evaluation, none.
    #[serde(skip_serializing_if = "Option::is_none")]
    acts_per_s: Option<f64>,
    /// Seconds until the planned end, at the present pace.
    #[serde(skip_serializing_if = "Option::is_none")]
    eta_s: Option<f64>,
}

impl Bar {
    /// Creates a bar for a run that `stop` can stop.
    pub fn new(stop: Stop) -> Self {
        let bar = ProgressBar::new(0);
        if !output::draws() {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        // The template is a constant; a wrong one falls back to the default look.
        if let Ok(style) = ProgressStyle::with_template("{bar:24} round {pos}/{len}  {elapsed}  {msg}") {
            bar.set_style(style);
        }
        Bar { bar, begun: false, told: None, pace: Pace::default(), waited: None, _stop: stop }
    }

    /// Returns the bar itself, for code that needs the terminal for a while.
    pub fn drawn(&self) -> ProgressBar {
        self.bar.clone()
    }

    /// Actions per second, in a society, and the seconds until the planned end.
    fn paced(&mut self, progress: &Progress) -> (Option<f64>, Option<f64>) {
        let paced = self.pace.note(progress);
        let of_society = progress.items.1 == 0;
        let acts_per_s = paced.filter(|_| of_society).map(|paced| paced.steps_per_s * f64::from(progress.agents));
        (acts_per_s, paced.map(|paced| paced.seconds_left))
    }

    /// Says now and then how far the run is, where no bar can be drawn: in a file, a scheduler's log, a pipe.
    fn tell(&mut self, progress: &Progress) {
        let (acts_per_s, eta_s) = self.paced(progress);
        if progress.waiting.is_some() {
            self.waited.clone_from(&progress.waiting);
        }
        let is_first = self.told.is_none();
        let told = *self.told.get_or_insert_with(Instant::now);
        // A short run says nothing; programs are told of the beginning.
        if told.elapsed() < output::between_lines() && !(is_first && output::is_json()) {
            return;
        }
        self.told = Some(Instant::now());
        // Between two rounds nothing is awaited, but what was awaited within the last round is what takes the time.
        let waited = self.waited.take().filter(|reason| reason != PAUSED);
        let progress = &Progress { waiting: progress.waiting.clone().or(waited), ..progress.clone() };
        output::note_with(&on_one_line(&words(progress, acts_per_s, eta_s)), &Line { progress, acts_per_s, eta_s });
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Watch for Bar {
    fn progress(&mut self, progress: &Progress) {
        if self.bar.is_hidden() {
            self.tell(progress);
            return;
        }
        if !self.begun {
            self.begun = true;
            self.bar.set_length(u64::from(progress.planned));
        }
        self.bar.set_position(u64::from(progress.rounds));
        // The bar's own rate would count what a resumed run had done before.
        let (acts_per_s, eta_s) = self.paced(progress);
        let mut message = eta_s.map_or(String::new(), |left| format!("about {} left  ", output::span(left)));
        if progress.items.1 > 0 {
            message.push_str(&format!("{}/{} items  ", progress.items.0, progress.items.1));
        } else {
            let rate = acts_per_s.map_or(String::new(), |rate| format!(", {} acts/s", si(rate)));
            message.push_str(&format!("{}{rate}  ", counted(progress.agents, "agent")));
        }
        if progress.answers > 0 {
            message.push_str(&format!("{}  ", answers(progress)));
        }
        if let Some(reason) = &progress.waiting {
            message.push_str(reason);
        }
        self.bar.set_message(on_one_line(&message).into_owned());
    }
}

/// How far a run is, in words.
fn words(progress: &Progress, acts_per_s: Option<f64>, eta_s: Option<f64>) -> String {
    let mut message = format!("round {} of {}", progress.rounds, progress.planned);
    if progress.items.1 > 0 {
        message.push_str(&format!(", {} of {} items", progress.items.0, progress.items.1));
    }
    if let Some(rate) = acts_per_s {
        message.push_str(&format!(", {} acts/s", si(rate)));
    }
    if let Some(left) = eta_s {
        message.push_str(&format!(", about {} left", output::span(left)));
    }
    if progress.answers > 0 {
        message.push_str(&format!(", {}", answers(progress)));
    }
    if let Some(reason) = &progress.waiting {
        message.push_str(&format!("; {reason}"));
    }
    message
}

/// How many answers there are, and what they cost if that is known to be anything.
fn answers(progress: &Progress) -> String {
    let answers = counted(progress.answers, "answer");
    match progress.cost_usd {
        Some(usd) => format!("{answers}, ${usd:.4}"),
        None => answers,
    }
}

/// Formats a number with a metric prefix.
pub fn si(value: f64) -> String {
    for (limit, suffix) in [(1e9, "G"), (1e6, "M"), (1e3, "k")] {
        if value >= limit {
            return format!("{:.1}{suffix}", value / limit);
        }
    }
    format!("{value:.0}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_far_the_run_is_and_what_is_left() {
        let progress = Progress { rounds: 3, planned: 9, agents: 10, ..Progress::default() };
        assert_eq!(words(&progress, None, None), "round 3 of 9");
        assert_eq!(words(&progress, Some(12_345.0), Some(250.0)), "round 3 of 9, 12.3k acts/s, about 4 min left");
        let waiting =
            Progress { items: (2, 8), answers: 5, cost_usd: Some(0.5), waiting: Some("limited".into()), ..progress };
        assert_eq!(
            words(&waiting, None, Some(9.0)),
            "round 3 of 9, 2 of 8 items, about 9 s left, 5 answers, $0.5000; limited"
        );
        // A price that is not known is not 0.
        let unpriced = Progress { cost_usd: None, waiting: None, ..waiting };
        assert_eq!(words(&unpriced, None, None), "round 3 of 9, 2 of 8 items, 5 answers");
    }

    #[test]
    fn prefixes() {
        assert_eq!(super::si(12.0), "12");
        assert_eq!(super::si(12_345.0), "12.3k");
        assert_eq!(super::si(2.5e6), "2.5M");
    }
}
