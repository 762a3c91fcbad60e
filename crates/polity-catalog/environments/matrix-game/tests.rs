//! Games from files: rewards, seats, errors; fictitious play against a plain second implementation and theory.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::testing::{open, registry};
use polity_kernel::ask::{Answer, Outcome, ResponseFormat, Usage, Value};
use polity_kernel::environment::Move;
use polity_kernel::machine::{Machine, Then};
use polity_kernel::scenario::Inputs;
use polity_kernel::tree::Node;
use serde_json::{Value as Json, json};

fn game(game: &str, repeat: u32, agents: u32, rounds: u32, policy: Json) -> Json {
    json!({"rounds": rounds, "agents": agents, "world": {"kind": "matrix-game", "game": game, "repeat": repeat},
        "topology": {"kind": "none"}, "cohorts": [{"policy": policy}]})
}

const PENNIES: &str = "NFG 1 R \"pennies\" { \"even\" \"odd\" } { { \"heads\" \"tails\" } { \"heads\" \"tails\" } } \"\" 1 -1 -1 1 -1 1 1 -1";
/// The row plays up in 2 of 7 rounds, the column left in 3 of 7 (by indifference).
const MIXED: &str =
    "NFG 1 R \"mixed\" { \"row\" \"column\" } { { \"up\" \"down\" } { \"left\" \"right\" } } \"\" 3 -3 -1 1 -2 2 1 -1";

/// Returns the moves of a society of fictitious players, round by round, in the form of acts.
fn moves(scenario: &Json) -> Vec<Vec<u16>> {
    let mut society = open(scenario, &Inputs::default(), 1).unwrap_or_else(|error| panic!("{error}"));
    let mut rounds = Vec::new();
    loop {
        match society.poll(Vec::new()).unwrap().then {
            Then::Round(_) => {
                rounds.push(society.acts().flat_map(|block| block.rows.iter().map(|act| act.kind)).collect());
            }
            Then::Done(_) => return rounds,
            Then::More | Then::Wait | Then::Exchange(_) => panic!("nobody is asked"),
        }
    }
}

/// A plain implementation of fictitious play: payoffs [own][other] of both players.
fn plainly(payoffs: [Vec<Vec<f64>>; 2], rounds: usize) -> Vec<[usize; 2]> {
    let mut counts = [vec![0.0; payoffs[1].len()], vec![0.0; payoffs[0].len()]];
    let mut played = Vec::new();
    for _ in 0..rounds {
        let best = |player: usize| {
            let seen = &counts[player];
            let all = seen.iter().all(|count| *count == 0.0);
            let value = |row: &Vec<f64>| -> f64 {
                row.iter().zip(seen).map(|(payoff, count)| payoff * if all { 1.0 } else { *count }).sum()
            };
            let values: Vec<f64> = payoffs[player].iter().map(value).collect();
            let top = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            values.iter().position(|value| *value == top).unwrap()
        };
        let now = [best(0), best(1)];
        counts[0][now[1]] += 1.0;
        counts[1][now[0]] += 1.0;
        played.push(now);
    }
    played
}

#[test]
fn fictitious_play_is_the_plain_one_and_converges_where_theory_says() {
    const ROUNDS: u32 = 6000;
    for (text, payoffs, row, column) in [
        (PENNIES, [vec![vec![1.0, -1.0], vec![-1.0, 1.0]], vec![vec![-1.0, 1.0], vec![1.0, -1.0]]], 0.5, 0.5),
        (MIXED, [vec![vec![3.0, -2.0], vec![-1.0, 1.0]], vec![vec![-3.0, 1.0], vec![2.0, -1.0]]], 2.0 / 7.0, 3.0 / 7.0),
    ] {
        let played = moves(&game(text, ROUNDS, 2, ROUNDS, json!("fictitious-play")));
        let expected = plainly(payoffs, ROUNDS as usize);
        // The actions are numbered by name, in order of first use.
        let second = if text == PENNIES { 0 } else { 2 };
        let own: Vec<[usize; 2]> =
            played.iter().map(|both| [usize::from(both[0]), usize::from(both[1]) - second]).collect();
        assert_eq!(own, expected);
        let share = |player: usize| own.iter().filter(|both| both[player] == 0).count() as f64 / f64::from(ROUNDS);
        assert!((share(0) - row).abs() < 0.02 && (share(1) - column).abs() < 0.02, "{} {}", share(0), share(1));
    }
}

#[test]
fn in_shapleys_game_fictitious_play_cycles_ever_more_slowly() {
    let text = "NFG 1 R \"Shapley\" { \"a\" \"b\" } { { \"x\" \"y\" \"z\" } { \"x\" \"y\" \"z\" } } \"\" \
                1 0 0 1 0 0 0 0 1 0 0 1 0 1 0 0 1 0";
    let played = moves(&game(text, 4000, 2, 4000, json!("fictitious-play")));
    // Lengths of runs of the same pair of moves.
    let mut runs = vec![0usize];
    for (i, both) in played.iter().enumerate() {
        if i > 0 && *both != played[i - 1] {
            runs.push(0);
        }
        *runs.last_mut().unwrap() += 1;
    }
    runs.pop();
    assert!(runs.len() > 12 && runs.windows(2).all(|two| two[1] > two[0]), "{runs:?}");
    let [.., before, last] = runs.as_slice() else { panic!("{runs:?}") };
    let growth = *last as f64 / *before as f64;
    assert!((1.4..1.55).contains(&growth), "runs grow geometrically: {growth} {runs:?}");
}

#[test]
fn rewards_are_the_payoffs_of_games_of_three_with_other_numbers_of_strategies() {
    // Payoffs encode their owner: 100 a + 10 b + c for player 1, and so on.
    let (sizes, mut payoffs) = ([2usize, 3, 2], Vec::new());
    for c in 0..2 {
        for b in 0..3 {
            for a in 0..2 {
                let all = (100 * a + 10 * b + c) as f64;
                payoffs.extend([all, -all, all / 2.0]);
            }
        }
    }
    let list = |player: usize| {
        (0..sizes[player]).map(|i| format!("\"{}{i}\"", ["a", "b", "c"][player])).collect::<Vec<_>>().join(" ")
    };
    let text = format!(
        "NFG 1 R \"three\" {{ \"p\" \"q\" \"r\" }} {{ {{ {} }} {{ {} }} {{ {} }} }} \"\" {}",
        list(0),
        list(1),
        list(2),
        payoffs.iter().map(f64::to_string).collect::<Vec<_>>().join(" ")
    );
    let registry = registry();
    let tree = Node::from_json(&json!({"kind": "matrix-game", "game": text, "repeat": 100}));
    let opened = registry.make_env(&tree).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((opened.seats(), opened.interface().acts.len()), (3, 7));
    let mut episode = opened.begin(&Default::default(), 1, 0);
    let mut total = [0.0; 3];
    for a in 0..2u16 {
        for b in 0..3u16 {
            for c in 0..2u16 {
                let names = |seat: u32| {
                    episode.offered(seat).unwrap().into_iter().map(|offer| offer.action).collect::<Vec<_>>()
                };
                assert_eq!((names(0), names(1), names(2)), (vec![0, 1], vec![2, 3, 4], vec![5, 6]));
                let made = [a, 2 + b, 5 + c];
                let moves: Vec<Move> = (0u32..)
                    .zip(made)
                    .map(|(seat, action)| Move { seat, action, argument: Value::Record(Vec::new()) })
                    .collect();
                let result = episode.step(&moves).unwrap();
                let all = f64::from(100 * a + 10 * b + c);
                assert_eq!(result.rewards, [all, -all, all / 2.0]);
                total.iter_mut().zip(&result.rewards).for_each(|(sum, reward)| *sum += reward);
            }
        }
    }
    assert_eq!([0, 1, 2].map(|seat| episode.total_reward(seat)), total);
    // If a player makes no move, nobody gets anything.
    let one = Move { seat: 1, action: 3, argument: Value::Record(Vec::new()) };
    assert_eq!(episode.step(&[one]).unwrap().rewards, [0.0; 3]);
}

#[test]
fn minds_are_offered_the_moves_of_their_seat_and_columns_show_how_an_episode_ended() {
    let mind = json!({"kind": "mind", "model": "test/scripted", "memory": {"tokens": 0}});
    let mut society =
        open(&game(MIXED, 1, 2, 1, mind), &Inputs::default(), 1).unwrap_or_else(|error| panic!("{error}"));
    let step = society.poll(Vec::new()).unwrap();
    let offered: Vec<Vec<String>> = step
        .start
        .iter()
        .map(|effect| match &effect.request.response_format {
            ResponseFormat::Record(fields) => match &fields[0].1 {
                ResponseFormat::Choice(options) => options.clone(),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(offered, [["up", "down", "nothing"], ["left", "right", "nothing"]]);
    let answers = step.start.iter().map(|effect| Answer {
        id: effect.id,
        request: effect.request.clone(),
        outcome: Outcome::Reply { value: Value::Record(vec![Value::Choice(0)]), raw: String::new(), repaired: false },
        usage: Usage::default(),
        reasoning: None,
    });
    let Then::Round(report) = society.poll(answers.collect()).unwrap().then else { panic!("the round ends") };
    let metric = |name: &str| report.metrics.iter().find(|(known, _)| known == name).unwrap().1;
    assert_eq!((metric("refused"), metric("episodes"), metric("mean-reward")), (0.0, 1.0, 0.0));
    let place = |name: &str| society.interface().columns.iter().position(|column| &*column.name == name).unwrap();
    assert_eq!(society.column(place("reward")), [3.0, -3.0]);
    assert_eq!(
        (society.column(place("played-up")), society.column(place("played-left"))),
        (vec![1.0, 0.0], vec![0.0, 1.0])
    );
}

#[test]
fn games_that_do_not_fit_are_refused() {
    let refused = |scenario: &Json| match open(scenario, &Inputs::default(), 1) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("{scenario} was taken"),
    };
    let odd = refused(&game(PENNIES, 1, 3, 1, json!("fictitious-play")));
    assert!(odd.contains("2 seats, and 3 agents"), "{odd}");
    let broken = refused(&game("NFG 1 R", 1, 2, 1, json!("fictitious-play")));
    assert!(broken.contains("world.game") && broken.contains("title"), "{broken}");
}

#[test]
fn measures_of_cooperation_are_those_of_plain_sums() {
    // Three players with two moves each; payoffs by lot, some negative.
    let payoff = |a: usize, b: usize, c: usize, player: usize| ((a * 5 + b * 3 + c * 7 + player * 11) % 6) as f64 - 2.0;
    let mut listed = String::new();
    for c in 0..2 {
        for b in 0..2 {
            for a in 0..2 {
                (0..3).for_each(|player| listed.push_str(&format!(" {}", payoff(a, b, c, player))));
            }
        }
    }
    let text = format!(
        "NFG 1 R \"three\" {{ \"p\" \"q\" \"r\" }} {{ {{ \"x\" \"y\" }} {{ \"x\" \"y\" }} {{ \"x\" \"y\" }} }} \"\"{listed}"
    );
    let lot = json!({"kind": "rule", "state": {"p": "uniform(0.2, 0.9)", "y": 0}, "update": {"y": "1 if chance(p) else 0"},
        "actions": [{"act": "y", "when": "y == 1"}, {"act": "x", "when": "y == 0"}]});
    let mut society =
        open(&game(&text, 30, 3, 29, lot), &Inputs::default(), 1).unwrap_or_else(|error| panic!("{error}"));
    let (mut rounds, mut gained, mut played) = (0.0, [0.0; 3], [[0.0; 2]; 3]);
    while let Then::Round(report) = society.poll(Vec::new()).unwrap().then {
        let made: Vec<usize> = society
            .acts()
            .flat_map(|block| block.rows.iter().map(|act| usize::from(act.kind)).collect::<Vec<_>>())
            .collect();
        rounds += 1.0;
        for player in 0..3 {
            gained[player] += payoff(made[0], made[1], made[2], player);
            played[player][made[player]] += 1.0 / 29.0;
        }
        let metric = |name: &str| report.metrics.iter().find(|(known, _)| known == name).unwrap().1;
        assert!((metric("welfare") - gained.iter().sum::<f64>() / rounds).abs() < 1e-9);
        let above = gained.map(|gained| gained + 2.0 * rounds);
        let differences: f64 = above.iter().flat_map(|a| above.iter().map(move |b| (a - b).abs())).sum();
        assert!((metric("equality") - (1.0 - differences / (6.0 * above.iter().sum::<f64>()))).abs() < 1e-9);
        let share = |player: usize, strategy: usize| played[player][strategy] * 29.0 / rounds;
        let value = |player: usize, own: Option<usize>| {
            let mut sum = 0.0;
            for profile in 0..8usize {
                let moves = [profile & 1, profile >> 1 & 1, profile >> 2];
                let weight = |other: usize| match own.filter(|_| other == player) {
                    Some(own) => f64::from(u8::from(moves[other] == own)),
                    None => share(other, moves[other]),
                };
                sum += weight(0) * weight(1) * weight(2) * payoff(moves[0], moves[1], moves[2], player);
            }
            sum
        };
        let gain = |player: usize| value(player, Some(0)).max(value(player, Some(1))) - value(player, None);
        let exploitability = (gain(0) + gain(1) + gain(2)) / 3.0;
        assert!((metric("exploitability") - exploitability).abs() < 1e-9, "{exploitability}");
        let welfare =
            |profile: usize| (0..3).map(|p| payoff(profile & 1, profile >> 1 & 1, profile >> 2, p)).sum::<f64>();
        let (low, high) =
            (0..8).fold((f64::MAX, f64::MIN), |(low, high), p| (low.min(welfare(p)), high.max(welfare(p))));
        assert!((metric("efficiency") - (metric("welfare") - low) / (high - low)).abs() < 1e-9);
    }
    assert_eq!(rounds, 29.0);
}

/// Returns the mean reward of pairs of independent learners after they have learned, and the share of pairs in which both play their first
/// move or both their last.
fn learned(text: &str) -> (f64, f64) {
    let policy = json!({"kind": "q-learner", "explore": 1, "decay": 0.99, "rate": 0.2, "stop": 390});
    let mut society = open(&game(text, 400, 400, 400, policy), &Inputs::default(), 1).unwrap();
    let mut last = None;
    while let Then::Round(report) = society.poll(Vec::new()).unwrap().then {
        let acts: Vec<u16> =
            society.acts().flat_map(|block| block.rows.iter().map(|act| act.kind).collect::<Vec<_>>()).collect();
        last = Some((report, acts));
    }
    let (report, acts) = last.unwrap();
    let same = acts.chunks(2).filter(|pair| **pair == [0, 0] || **pair == [2, 2]).count() as f64;
    (crate::testing::metric(&report, "mean-reward"), same / (acts.len() / 2) as f64)
}

#[test]
fn independent_learners_miss_the_best_of_the_climbing_game_and_of_the_penalty_game() {
    let written = |payoffs: &str| {
        let moves = r#"{ "a0" "a1" "a2" }"#;
        format!(r#"NFG 1 R "game" {{ "first" "second" }} {{ {moves} {moves} }} "" {payoffs}"#)
    };
    // As in scenarios/games: the first player's move changes fastest.
    let climbing = &written("11 11 -30 -30 0 0 -30 -30 7 7 6 6 0 0 0 0 5 5");
    let penalty = &written("10 10 0 0 -100 -100 0 0 2 2 0 0 -100 -100 0 0 10 10");
    // Claus and Boutilier (1998); the penalty game with k = -100. The first player chooses the row.
    for (text, rows) in [
        (climbing, [[11.0, -30.0, 0.0], [-30.0, 7.0, 0.0], [0.0, 6.0, 5.0]]),
        (penalty, [[10.0, 0.0, -100.0], [0.0, 2.0, 0.0], [-100.0, 0.0, 10.0]]),
    ] {
        let game = polity_games::normal::read(text).unwrap();
        for profile in game.profiles() {
            let payoff = rows[profile[0]][profile[1]];
            assert_eq!([0, 1].map(|player| game.payoff(&profile, player)), [payoff; 2]);
        }
    }
    // They settle for 5 instead of 11, and for 2 instead of 10.
    let (reward, same) = learned(climbing);
    assert!(reward < 6.0 && same > 0.9, "{reward} {same}");
    let (reward, same) = learned(penalty);
    assert!(reward < 3.0 && same < 0.1, "{reward} {same}");
}
