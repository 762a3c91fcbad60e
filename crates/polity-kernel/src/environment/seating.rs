//! Which agent sits where.

use crate::AgentId;

/// The seats of all episodes. Each cohort takes the same seats of every episode, the first cohort the first ones; its agents take them
/// episode by episode, in order of id.
#[derive(Clone, Debug)]
pub(crate) struct Seating {
    /// The first seat of each cohort, then the number of seats.
    bounds: Vec<u32>,
    episodes: u32,
}

impl Seating {
    /// Seats so many agents. `taken`: how many seats of an episode each cohort takes; empty if agents take all seats in order of id.
    pub fn new(agents: u32, seats: u32, taken: &[u32]) -> Self {
        let taken = if taken.is_empty() { &[seats] } else { taken };
        let mut bounds = vec![0];
        for n in taken {
            bounds.push(bounds.last().copied().unwrap_or(0) + n);
        }
        Seating { bounds, episodes: agents / seats.max(1) }
    }

    /// Returns the number of seats of an episode.
    pub fn seats(&self) -> u32 {
        self.bounds.last().copied().unwrap_or(0)
    }

    /// Returns the number of episodes.
    pub fn episodes(&self) -> u32 {
        self.episodes
    }

    /// Returns the episode and the seat of an agent.
    pub fn place(&self, who: AgentId) -> (usize, u32) {
        let cohort = self.bounds[1..].partition_point(|end| end * self.episodes <= who).min(self.bounds.len() - 2);
        let [first, end] = [self.bounds[cohort], self.bounds[cohort + 1]];
        let (n, among) = (end - first, who - first * self.episodes);
        ((among / n) as usize, first + among % n)
    }

    /// Returns the agent on a seat of an episode.
    pub fn agent(&self, episode: usize, seat: u32) -> AgentId {
        let cohort = self.bounds[1..].partition_point(|end| *end <= seat);
        let [first, end] = [self.bounds[cohort], self.bounds[cohort + 1]];
        first * self.episodes + episode as u32 * (end - first) + (seat - first)
    }
}

#[cfg(test)]
mod tests {
    use super::Seating;

    #[test]
    fn agents_and_seats_belong_to_each_other() {
        let in_order = Seating::new(12, 4, &[]);
        assert_eq!((0..12).map(|who| in_order.place(who)).nth(6), Some((1, 2)));
        // Two agents of the first cohort sit in each of three episodes, then one of the second and one of the third.
        let by_cohort = Seating::new(12, 4, &[2, 1, 1]);
        let places: Vec<_> = (0..12).map(|who| by_cohort.place(who)).collect();
        assert_eq!(places[..7], [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1), (0, 2)]);
        assert_eq!(places[9..], [(0, 3), (1, 3), (2, 3)]);
        for seating in [in_order, by_cohort] {
            for who in 0..12 {
                let (episode, seat) = seating.place(who);
                assert_eq!(seating.agent(episode, seat), who);
            }
            assert_eq!((seating.seats(), seating.episodes()), (4, 3));
        }
    }
}
