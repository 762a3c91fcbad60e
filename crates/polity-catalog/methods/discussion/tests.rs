//! Speeches, agreement and votes on scripted replies, against the official program.

use crate::exchange::says;
use crate::official::{Case, Official, Rule, Who, answer, play};
use polity_kernel::ask::{Effect, Outcome, Value};
use serde_json::{Value as Json, json};
use std::cell::RefCell;

/// The number of a speaker: in a debate, members have the number of their speech in the turn beside it.
fn speaker(member: &Json) -> Option<u64> {
    member.as_u64().or_else(|| member.as_str()?.split_once(", speech ")?.0.parse().ok())
}

/// The speeches of a case, in order.
fn speeches(case: &Case) -> Vec<(u32, Json)> {
    case.calls.iter().filter(|call| call.kind == "answer").map(|call| (call.round, call.member.clone())).collect()
}

/// Whether a speaker is shown a speech: all speeches, the place of the speaker's own, and that of the speech.
type Shows<'a> = &'a dyn Fn(&[(u32, Json)], usize, usize) -> bool;

/// Keeps of each speaker's prompt the speeches that `keep` wants.
fn keep_speeches(case: &mut Case, keep: Shows<'_>) {
    let order = speeches(case);
    for (own, call) in case.calls.iter_mut().filter(|call| call.kind == "answer").enumerate() {
        call.shown
            .retain(|said| order.iter().position(|other| other == said).is_none_or(|place| keep(&order, own, place)));
    }
}

/// The marks of a voter whose vote was given in the words of its protocol.
fn marks(case: &Case, vote: &Json, n: usize) -> Vec<Value> {
    let mut marks = vec![0.0; n];
    match vote {
        Json::Array(points) => {
            marks.iter_mut().zip(points).for_each(|(mark, points)| *mark = points.as_f64().unwrap_or(0.0))
        }
        Json::String(chosen) => {
            let ranked = case.has("decision", "ranked-voting");
            let chosen = chosen.split([' ', ',']).filter_map(|place| place.parse::<usize>().ok());
            chosen.enumerate().for_each(|(rank, place)| marks[place] = if ranked { 10.0 - rank as f64 } else { 10.0 });
        }
        vote => marks[vote.as_u64().unwrap_or_default() as usize] = 10.0,
    }
    marks.into_iter().map(Value::Number).collect()
}

/// How far a run of ours is.
#[derive(Default)]
struct At {
    speeches: Vec<(u32, u32)>,
    votes: usize,
}

#[test]
fn acts_as_the_official_program() {
    let typed = |case: &mut Case| {
        case.calls.retain(|call| call.kind != "extract");
        for call in &mut case.calls {
            let voter = |member: &str| member.strip_suffix("'s final solution")?.parse::<u32>().ok();
            call.shown.iter_mut().for_each(|(_, member)| {
                if let Some(voter) = member.as_str().and_then(voter) {
                    *member = json!(voter);
                }
            });
            call.shown.retain(|(_, member)| member.as_str().is_none_or(|member| !member.ends_with("solution")));
        }
    };
    let since_the_last = |case: &mut Case| {
        keep_speeches(case, &|order, own, place| {
            let me = speaker(&order[own].1);
            let last = order[..own].iter().rposition(|(_, member)| speaker(member) == me);
            last.is_none_or(|last| place >= last)
        });
    };
    let passed_on = |case: &mut Case| {
        let heard: Vec<Vec<u64>> = serde_json::from_value(case.more["heard"].clone()).unwrap_or_default();
        keep_speeches(case, &|order, own, place| {
            let me = speaker(&order[own].1);
            speaker(&order[place].1) == me || me.is_some_and(|me| heard[place].contains(&me))
        });
    };
    let last_tie = |case: &mut Case| {
        let first = case.replies["answers"].as_array().and_then(|turns| turns.last()?[0].as_str()).map(str::to_owned);
        case.answer = case.answer.take().or(first);
    };
    let rules: [Rule<'_>; 4] =
        [("typed", &typed), ("since-the-last", &since_the_last), ("passed-on", &passed_on), ("last-tie", &last_tie)];
    Official::compare(include_str!("official.json"), include_str!("README.md"), &rules, &|case| {
        let at = RefCell::new(At::default());
        let said = case.answers().concat();
        let who = |_: usize, effect: &Effect| -> Who {
            let mut at = at.borrow_mut();
            let (turn, actor) = (effect.id.round, effect.id.actor);
            let last = at.speeches.last().map_or(0, |(turn, _)| *turn);
            match effect.request.purpose.as_str() {
                "rate" => (last, json!(format!("{actor}'s vote")), "vote"),
                "choose" => (last, json!("judge"), "vote"),
                _ => {
                    let before = at.speeches.iter().filter(|speech| **speech == (turn, actor)).count();
                    at.speeches.push((turn, actor));
                    let debate = case.has("paradigm", "debate");
                    let member = if debate { json!(format!("{actor}, speech {before}")) } else { json!(actor) };
                    (turn, member, "answer")
                }
            }
        };
        let reply = |(_, member, kind): &Who, marker: &str| -> Outcome {
            let mut at = at.borrow_mut();
            let turns = case.answers();
            let last: Vec<Option<String>> = turns.last().cloned().unwrap_or_default();
            if *kind == "answer" {
                return answer(marker, said[at.speeches.len() - 1].as_ref());
            }
            at.votes += 1;
            let votes: Vec<Json> =
                serde_json::from_value::<Vec<Vec<Json>>>(case.replies["votes"].clone()).unwrap_or_default().concat();
            let vote = &votes[at.votes - 1];
            if member == "judge" {
                let best = last.iter().position(|answer| answer.as_deref() == vote.as_str()).unwrap_or_default();
                return says(marker, Value::Choice(best as u32));
            }
            let value = Value::Record(vec![Value::List(marks(case, vote, last.len()))]);
            Outcome::Reply { value, raw: String::new(), repaired: false }
        };
        play("discussion", &case.settings, &who, &reply)
    });
}
