//! What readers were shown of their own side.

/// Posts in feeds on their reader's side, and on either side. Whole numbers, so that the order of readers does not matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exposed {
    pub own: u64,
    pub all: u64,
}

impl Exposed {
    /// Returns the share of one's own side.
    pub fn share(self) -> f64 {
        if self.all == 0 { 0.0 } else { self.own as f64 / self.all as f64 }
    }

    pub(super) fn with(self, other: Self) -> Self {
        Exposed { own: self.own + other.own, all: self.all + other.all }
    }
}
