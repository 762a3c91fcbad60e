//! Plans are carried out whole.

use crate::exchange::{one_question, says};
use polity_kernel::ask::{Outcome, Value};
use serde_json::json;

#[test]
fn all_steps_of_a_plan_are_done_however_many_rounds_there_are() {
    let text = |text: &str| Value::Text(text.into());
    for rounds in [2, 5, 10] {
        let scenario =
            json!({"rounds": rounds, "agents": 1, "method": {"kind": "autoagents", "drafts": 1, "tries": 1}});
        let (asked, reports) = one_question(&scenario, &|effect| {
            if effect.request.purpose == "write" {
                let role = Value::Record(vec![text("Geographer"), text("knows capitals")]);
                let steps = (1..=6).map(|n| Value::Record(vec![text("Geographer"), text(&format!("task {n}"))]));
                let value = Value::Record(vec![Value::List(vec![role]), Value::List(steps.collect())]);
                return Outcome::Reply { value, raw: String::new(), repaired: false };
            }
            let told = effect.request.rendered();
            let step = told.split("Your step: task ").last().unwrap_or_default().chars().next().unwrap_or('?');
            says("", text(if step == '6' { "Canberra" } else { "Sydney" }))
        });
        assert_eq!(asked.len(), 7, "a plan and six steps in {rounds} rounds");
        let last = reports.last().and_then(|report| report.items.first());
        assert_eq!(last.and_then(|item| item.correct), Some(true), "the last step gives the answer");
    }
}
