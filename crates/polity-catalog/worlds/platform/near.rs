//! Posts that are nearest to each reader, found for all of them at once.

/// The nearest posts of their main topics for all readers of a round. They are found topic by topic, since one topic fits into the
/// processor's cache and all together do not.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Near {
    /// The parameter `depth` for which they were found.
    pub(super) depth: u32,
    /// The readers, in order.
    pub(super) readers: Vec<u32>,
    /// For each reader and main topic, nearest first.
    pub(super) posts: Vec<[Vec<u32>; MAIN]>,
}

impl Near {
    /// Returns the posts near a reader, if they were searched to this depth.
    pub(super) fn of(&self, who: u32, depth: u32) -> Option<&[Vec<u32>; MAIN]> {
        let place = self.readers.binary_search(&who).ok().filter(|_| self.depth == depth)?;
        self.posts.get(place)
    }
}

/// Number of a reader's topics from which candidates come.
pub(super) const MAIN: usize = 2;
