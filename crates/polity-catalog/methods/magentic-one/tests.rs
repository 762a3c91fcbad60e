//! Who is shown what: the thread of orders and answers, the new plan after stalls, and the final answer.

use crate::exchange::{one_question, says};
use polity_kernel::ask::{Effect, Outcome, Value};
use serde_json::json;

fn entry(answer: Value) -> Value {
    Value::Record(vec![answer, Value::Text("so it looks".into())])
}

/// A progress ledger: no loop, progress or not, the first worker next.
fn ledger(satisfied: bool, progressing: bool, order: &str) -> Outcome {
    let yes = |yes: bool| Value::Choice(u32::from(!yes));
    let fields = vec![
        entry(yes(satisfied)),
        entry(yes(false)),
        entry(yes(progressing)),
        entry(Value::Choice(0)),
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
