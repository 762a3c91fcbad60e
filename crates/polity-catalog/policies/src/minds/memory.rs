//! Working memory: the last rounds in words, and a running summary of earlier ones, within a budget of tokens.

use serde::{Deserialize, Serialize};

/// Characters per token, roughly.
const LETTERS: u64 = 4;

/// A mind's memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// Summary of everything before the window; may be empty.
    pub summary: String,
    /// (round, observation and actions), oldest first.
    pub window: Vec<(u32, String)>,
}

fn tokens(text: &str) -> u64 {
    (text.chars().count() as u64).div_ceil(LETTERS)
}

impl Memory {
    /// Returns the tokens of all of it.
    pub fn tokens(&self) -> u64 {
        tokens(&self.summary) + self.window.iter().map(|(_, text)| tokens(text)).sum::<u64>()
    }

    /// Adds a round; with a limit, drops the oldest until the rest is within it.
    pub fn keep(&mut self, round: u32, text: String, limit: Option<u32>) {
        self.window.push((round, text));
        if let Some(limit) = limit {
            self.cut(limit);
        }
    }

    /// Drops the oldest rounds until the rest is within the limit. The newest round stays, truncated if necessary.
    pub fn cut(&mut self, limit: u32) {
        let limit = u64::from(limit);
        if self.tokens() > limit && tokens(&self.summary) > limit / 2 {
            self.summary = self.summary.chars().take((limit / 2 * LETTERS) as usize).collect();
        }
        while self.tokens() > limit && self.window.len() > 1 {
            self.window.remove(0);
        }
        let rest = limit.saturating_sub(tokens(&self.summary)) * LETTERS;
        if self.tokens() > limit
            && let Some((_, text)) = self.window.last_mut()
        {
            *text = text.chars().take(rest as usize).collect();
        }
    }

    /// Returns the older half of the window, which is to be summarised; at most all but the newest.
    pub fn older_half(&self) -> Vec<&str> {
        self.window.iter().take(self.half()).map(|(_, text)| text.as_str()).collect()
    }

    /// Replaces the older half by a summary.
    pub fn replace_older_half(&mut self, summary: String) {
        self.window.drain(..self.half());
        self.summary = summary;
    }

    fn half(&self) -> usize {
        self.window.len().div_ceil(2).min(self.window.len().saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memories_stay_within_their_tokens() {
        let mut memory = Memory::default();
        for round in 0..100 {
            memory.keep(round, format!("in round {round} this and that came to pass"), Some(50));
            assert!(memory.tokens() <= 50, "{memory:?}");
            assert_eq!(memory.window.last().map(|(round, _)| *round), Some(round));
        }
        assert_eq!(memory.window.len(), 5);
        memory.keep(100, "x".repeat(1000), Some(50));
        assert_eq!((memory.window.len(), memory.tokens()), (1, 50));
    }

    #[test]
    fn the_older_half_becomes_a_summary() {
        let mut memory = Memory::default();
        for round in 0..5 {
            memory.keep(round, format!("round {round}"), None);
        }
        assert_eq!(memory.older_half(), ["round 0", "round 1", "round 2"]);
        memory.replace_older_half("the first three".into());
        assert_eq!(memory.window.len(), 2);
        memory.summary = "long ".repeat(100);
        memory.cut(20);
        assert!(memory.tokens() <= 20 && memory.summary.len() == 40, "{memory:?}");
    }
}
