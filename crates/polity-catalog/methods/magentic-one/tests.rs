//! Who is shown what: the thread of orders and answers, the new plan after stalls, and the final answer.

use crate::exchange::{one_question, says};
use crate::official::{Official, Who, answer, play};
use polity_kernel::ask::{Effect, Outcome, Value};
use serde_json::{Value as Json, json};
use std::cell::Cell;

fn entry(answer: Value) -> Value {
    Value::Record(vec![answer, Value::Text("so it looks".into())])
}

/// A progress ledger: no loop, progress or not, the first worker next.
fn ledger(satisfied: bool, progressing: bool, order: &str) -> Outcome {
    scripted(&json!({"satisfied": satisfied, "looping": false, "progressing": progressing, "next": 0}), order)
}

fn scripted(ledger: &Json, order: &str) -> Outcome {
    let yes = |key: &str| entry(Value::Choice(u32::from(ledger[key] != json!(true))));
    let next = ledger["next"].as_u64().unwrap_or_default() as u32;
    let fields = vec![
        yes("satisfied"),
        yes("looping"),
        yes("progressing"),
        entry(Value::Choice(next)),
        entry(Value::Text(order.into())),
    ];
    Outcome::Reply { value: Value::Record(fields), raw: String::new(), repaired: false }
}

fn is(effect: &Effect, purpose: &str) -> bool {
    effect.request.purpose == purpose
}

#[test]
fn everybody_sees_the_thread_and_a_new_plan_begins_a_new_one() {
    let scenario = json!({
        "rounds": 8, "agents": 3, "method": {"kind": "magentic-one", "max_stalls": 2},
    });
    // Two orders with progress, two stalls, a new plan, one order, and the end.
    let steps = [true, true, false, false, true];
    let (asked, _) = one_question(&scenario, &|effect| match effect.request.purpose.as_str() {
        "check" => {
            let round = effect.id.round as usize;
            ledger(round >= steps.len(), steps.get(round).copied().unwrap_or(true), &format!("order {round}"))
        }
        "write" => Outcome::Reply { value: Value::Text("notes".into()), raw: String::new(), repaired: false },
        _ => says(&format!("work of round {}", effect.id.round), Value::Text("Canberra".into())),
    });
    let told = |effect: &&Effect| effect.request.rendered();
    let work: Vec<String> = asked.iter().filter(|e| !is(e, "check") && !is(e, "write")).map(|e| told(&e)).collect();
    // Orders 0, 1, 2 and 4 are carried out; the second stall leads to a plan and not to order 3. Then the final answer.
    assert_eq!(work.len(), 5);
    assert!(
        work[2].contains("Order to") && work[2].contains("order 0") && work[2].contains("work of round 1"),
        "{}",
        work[2]
    );
    assert!(work[3].contains("Your task: order 4") && !work[3].contains("order 2"), "{}", work[3]);
    assert_eq!(asked.iter().filter(|effect| is(effect, "write")).count(), 4, "facts and plan, twice");
    let last = work.last().unwrap_or(&String::new()).clone();
    assert!(last.contains("work of round 4") && last.contains("order 4"), "{last}");
    assert_eq!(last.matches("Give the final answer to the question").count(), 1, "{last}");
    let ledgers: Vec<String> = asked.iter().filter(|effect| is(effect, "check")).map(|e| told(&e)).collect();
    assert!(ledgers[1].contains("order 0"), "the ledger shows the orders: {}", ledgers[1]);
}

#[test]
fn acts_as_the_official_program() {
    Official::compare(include_str!("official.json"), include_str!("README.md"), &[], &|case| {
        let (ledgers, answered) = (Cell::new(0), Cell::new(0));
        let who = |_: usize, effect: &Effect| -> Who {
            let told = effect.request.rendered();
            match effect.request.purpose.as_str() {
                "check" => {
                    ledgers.set(ledgers.get() + 1);
                    (ledgers.get() - 1, json!("progress"), "progress")
                }
                "write" if told.contains("Write a short plan") => (ledgers.get(), json!("plan"), "plan"),
                "write" => (ledgers.get(), json!("facts"), "facts"),
                _ if told.contains("Give the final answer to the question") => {
                    (ledgers.get() - 1, json!("final"), "final")
                }
                // The orchestrator is the first member.
                _ => (ledgers.get() - 1, json!(effect.id.actor - 1), "answer"),
            }
        };
        let reply = |(round, _, kind): &Who, marker: &str| match *kind {
            "progress" => scripted(&case.replies["progress"][*round as usize], marker),
            "answer" => {
                answered.set(answered.get() + 1);
                let said = case.replies["work"][answered.get() - 1].as_str();
                answer(marker, said.map(str::to_owned).as_ref())
            }
            "final" => says(marker, Value::Text("Canberra".into())),
            _ => Outcome::Reply { value: Value::Text(marker.into()), raw: String::new(), repaired: false },
        };
        play("magentic-one", &case.settings, &who, &reply)
    });
}
