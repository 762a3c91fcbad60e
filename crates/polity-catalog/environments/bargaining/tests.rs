//! The rules of the game, step by step.
#![allow(clippy::panic, clippy::unwrap_used)]

use crate::testing::registry;
use polity_kernel::ask::Value;
use polity_kernel::environment::{Episode, Move};
use polity_kernel::tree::Node;
use serde_json::{Value as Json, json};

fn begin(world: Json) -> Episode {
    let mut world = world;
    world["kind"] = json!("bargaining");
    let opened = registry().make_env(&Node::from_json(&world)).unwrap_or_else(|error| panic!("{error}"));
    opened.begin(&Default::default(), 1, 0)
}

/// The step of a player: a price, `accept`, or `leave`.
fn step(episode: &mut Episode, seat: u32, act: Json) -> Vec<f64> {
    let offered = episode.offered(seat).unwrap();
    let name = act.as_str().unwrap_or("offer");
    let offer = offered.iter().find(|offer| offer.name == name).unwrap_or_else(|| panic!("{name} is not offered"));
    let made = match act.as_f64() {
        Some(price) => offer.with(seat, vec![Value::Number(price)]),
        None => Move { seat, action: offer.action, argument: Value::Record(Vec::new()) },
    };
    episode.step(&[made]).unwrap().rewards
}

#[test]
fn a_deal_is_worth_the_distance_to_the_limits() {
    let mut episode = begin(json!({"turns": 6, "games": 2, "highest_cost": 10, "lowest_value": 20}));
    assert!(episode.offered(1).unwrap().is_empty(), "the seller begins");
    assert_eq!(step(&mut episode, 0, json!(18)), [0.0, 0.0]);
    assert!(episode.offered(0).unwrap().is_empty());
    step(&mut episode, 1, json!(13));
    // The seller accepts the buyer's last offer: cost 10, value 20.
    assert_eq!(step(&mut episode, 0, json!("accept")), [3.0, 7.0]);
    // The rest of the game passes without moves.
    for _ in 0..3 {
        assert!(episode.offered(0).unwrap().is_empty() && episode.offered(1).unwrap().is_empty());
        assert!(!episode.step(&[]).unwrap().done);
    }
    // The second game begins; the buyer takes the first price at once.
    episode.step(&[]).unwrap();
    assert_eq!(step(&mut episode, 1, json!("accept")), [10.0, 0.0]);
    let last = (0..4).map(|_| episode.step(&[]).unwrap().done).collect::<Vec<_>>();
    assert_eq!(last, [false, false, false, true]);
    assert_eq!((episode.total_reward(0), episode.total_reward(1)), (13.0, 7.0));
}

#[test]
fn who_leaves_or_runs_out_of_turns_has_no_deal() {
    let mut episode = begin(json!({"turns": 4, "games": 2}));
    assert_eq!(step(&mut episode, 0, json!("leave")), [0.0, 0.0]);
    assert!(episode.offered(1).unwrap().is_empty());
    (0..3).for_each(|_| drop(episode.step(&[]).unwrap()));
    for (turn, price) in [(0, 19), (1, 11), (0, 18), (1, 12)] {
        step(&mut episode, turn, json!(price));
    }
    assert!(episode.is_done());
    assert_eq!((episode.total_reward(0), episode.total_reward(1)), (0.0, 0.0));
}

#[test]
fn the_last_game_is_shown_or_another() {
    let shown = |which: &str| {
        let mut episode = begin(json!({"turns": 4, "games": 3, "shown": which}));
        for (seat, act) in [(0, json!(17)), (1, json!(12)), (0, json!(16)), (1, json!("accept"))] {
            step(&mut episode, seat, act);
        }
        let environment = registry().make_env(&Node::from_json(&json!({"kind": "bargaining"}))).unwrap();
        let (table, _) = environment.interface().table("bargaining", "last-game", ["seller", "price"]).unwrap();
        let price = environment.interface().number("bargaining", "last-price").unwrap();
        episode
            .observe(1, |seen| (seen.table(table).map(|row| [row[0], row[1]]).collect::<Vec<_>>(), seen.number(price)))
            .unwrap()
    };
    let (offers, price) = shown("own");
    assert_eq!(offers, [[1.0, 20.0], [0.0, 10.0], [1.0, 17.0], [0.0, 12.0], [1.0, 16.0]]);
    assert_eq!(price, 16.0);
    let (others, _) = shown("another");
    assert_ne!(others, offers);
    assert_eq!(others[..2], [[1.0, 20.0], [0.0, 10.0]]);
}

#[test]
fn games_that_do_not_fit_are_refused() {
    for (world, says) in [
        (json!({"low": 20}), "high: must be above `low`"),
        (json!({"turns": 7}), "turns: must be even, is 7"),
        (json!({"highest_cost": 30}), "highest_cost"),
        (json!({"games": 0}), "games"),
    ] {
        let mut world = world;
        world["kind"] = json!("bargaining");
        let error = registry().make_env(&Node::from_json(&world)).err().map(|error| error.to_string());
        assert!(error.as_ref().is_some_and(|error| error.contains(says)), "{error:?}");
    }
}
