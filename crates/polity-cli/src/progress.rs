//! The progress bar: round, rate, time left, money, and what the run waits for.

use super::output;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use polity_driver::drive::{Progress, Stop, Watch};
use polity_store::printable::on_one_line;
use std::time::{Duration, Instant};

/// Time between two lines of progress where no bar can be drawn.
const BETWEEN_NOTES: Duration = Duration::from_secs(30);

/// A bar on standard error; hidden if that is not a terminal. With JSON, an occasional line instead.
pub struct Bar {
    bar: ProgressBar,
    begun: bool,
    /// When the last progress line was printed.
    told: Option<Instant>,
    _stop: Stop,
}

impl Bar {
    /// Creates a bar for a run that `stop` can stop.
    pub fn new(stop: Stop) -> Self {
        let bar = ProgressBar::new(0);
        if !output::draws() {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        // The template is a constant; a wrong one falls back to the default look.
        if let Ok(style) = ProgressStyle::with_template("{bar:24} round {pos}/{len}  {elapsed}, {eta} left  {msg}") {
            bar.set_style(style);
        }
        Bar { bar, begun: false, told: None, _stop: stop }
    }

    /// Returns the bar itself, for code that needs the terminal for a while.
    pub fn drawn(&self) -> ProgressBar {
        self.bar.clone()
    }

    /// Says now and then how far the run is, where no bar can be drawn: in a file, a scheduler's log, a pipe.
    fn tell(&mut self, progress: &Progress) {
        let told = *self.told.get_or_insert_with(Instant::now);
        if output::is_json() || told.elapsed() < BETWEEN_NOTES {
            return;
        }
        self.told = Some(Instant::now());
        let mut message = format!("round {} of {}", progress.rounds, progress.planned);
        if progress.items.1 > 0 {
            message.push_str(&format!(", {} of {} items", progress.items.0, progress.items.1));
        }
        if progress.answers > 0 {
            message.push_str(&format!(", {} answers, ${:.4}", progress.answers, progress.cost_usd));
        }
        if let Some(reason) = &progress.waiting {
            message.push_str(&format!("; {reason}"));
        }
        output::note(&on_one_line(&message));
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Watch for Bar {
    fn progress(&mut self, progress: &Progress) {
        if output::is_json() && self.told.is_none_or(|told| told.elapsed() >= output::BETWEEN_LINES) {
            self.told = Some(Instant::now());
            output::progress(&format!("round {} of {}", progress.rounds, progress.planned), progress);
        }
        if self.bar.is_hidden() {
            self.tell(progress);
            return;
        }
        if !self.begun {
            self.begun = true;
            self.bar.set_length(u64::from(progress.planned));
            // A resumed run does not begin at 0: the rate counts from here.
            self.bar.set_position(u64::from(progress.rounds.saturating_sub(1)));
            self.bar.reset_eta();
        }
        self.bar.set_position(u64::from(progress.rounds));
        let mut message = String::new();
        if progress.items.1 > 0 {
            message.push_str(&format!("{}/{} items  ", progress.items.0, progress.items.1));
        } else {
            let rate = f64::from(progress.agents) * self.bar.per_sec();
            message.push_str(&format!("{} agents, {} acts/s  ", progress.agents, si(rate)));
        }
        if progress.answers > 0 {
            message.push_str(&format!("{} answers, ${:.4}  ", progress.answers, progress.cost_usd));
        }
        if let Some(reason) = &progress.waiting {
            message.push_str(reason);
        }
        self.bar.set_message(on_one_line(&message).into_owned());
    }
}

/// Formats a number with a metric prefix.
fn si(value: f64) -> String {
    for (limit, suffix) in [(1e9, "G"), (1e6, "M"), (1e3, "k")] {
        if value >= limit {
            return format!("{:.1}{suffix}", value / limit);
        }
    }
    format!("{value:.0}")
}

#[cfg(test)]
mod tests {
    #[test]
    fn prefixes() {
        assert_eq!(super::si(12.0), "12");
        assert_eq!(super::si(12_345.0), "12.3k");
        assert_eq!(super::si(2.5e6), "2.5M");
    }
}
