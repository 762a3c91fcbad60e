//! A critic: reads the last game of a player, and says how far to hold out in the next.

/// What the critic read: the bids of the other, as distances from the player's own first offer that become smaller (so that less is
/// better for the player), and the price in the same measure.
pub(super) struct Reading<'a> {
    /// The distances of the other's offers, in order.
    pub(super) others: &'a [f64],
    /// The distance of the price; `None` without a deal.
    pub(super) price: Option<f64>,
}

/// What the critic says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Advice {
    /// Hold out for this distance.
    pub(super) target: f64,
    /// Whether the player asked for too much.
    pub(super) too_bold: bool,
}

/// Reads a game. After a deal: the other was still giving way, so hold out for the price and `boldness` of its last steps more. Without
/// a deal: the other would have agreed to its last offer, so ask for one of its steps less than that.
pub(super) fn comment(game: &Reading<'_>, boldness: f64) -> Option<Advice> {
    let (last, before) = match game.others {
        [.., before, last] => (*last, *before),
        _ => return None,
    };
    let step = (before - last).max(0.0);
    Some(match game.price {
        Some(price) => Advice { target: (price - boldness * step).max(0.0), too_bold: false },
        None => Advice { target: last + step, too_bold: true },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_asks_for_more_after_a_deal_and_for_less_without_one() {
        let others = [10.0, 8.0, 6.5];
        let deal = comment(&Reading { others: &others, price: Some(6.5) }, 1.0);
        assert_eq!(deal, Some(Advice { target: 5.0, too_bold: false }));
        let broken = comment(&Reading { others: &others, price: None }, 1.0);
        assert_eq!(broken, Some(Advice { target: 8.0, too_bold: true }));
        assert_eq!(comment(&Reading { others: &others[..1], price: Some(10.0) }, 1.0), None);
    }
}
