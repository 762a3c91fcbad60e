//! Logs for the tools of Inspect AI (`inspect log`, `inspect view`): format 2 of its JSON logs, one per method.
//!
//! Results do not depend on clock time and Polity records none, so the times in a log are the epoch, and the log says so.

use super::{Score, Sheet, Spent};
use serde_json::{Map, Value, json};

/// The time in every log.
const EPOCH: &str = "1970-01-01T00:00:00+00:00";

/// The name of a method's log, as Inspect forms names: time, task, id. `at`: its place in the comparison.
pub(super) fn name(at: usize, score: &Score) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' };
    let label: String = score.method.chars().map(plain).collect();
    format!("1970-01-01T00-00-00_{label}_{}.json", id(at, score))
}

/// Ids are letters and digits.
fn id(at: usize, score: &Score) -> String {
    format!("{}x{}n{at}", score.kind.replace('-', ""), score.members)
}

fn usage(spent: &Spent) -> Value {
    json!({ "input_tokens": spent.tokens_in, "output_tokens": spent.tokens_out, "total_tokens": spent.tokens() })
}

fn metric(name: &str, value: Option<f64>) -> (String, Value) {
    (name.to_owned(), json!({ "name": name, "value": value.unwrap_or_default(), "params": {} }))
}

/// The log of a method.
pub(super) fn log(at: usize, score: &Score, sheets: &[Sheet]) -> Value {
    let (model, id) = (&score.model, id(at, score));
    let by_model = |spent: &Spent| Map::from_iter([(model.clone(), usage(spent))]);
    let ids: Vec<String> = sheets.iter().take(1).flat_map(|s| &s.rows).map(|row| row.item.to_string()).collect();
    let mut metrics = Map::from_iter([metric("accuracy", score.accuracy)]);
    metrics.extend([metric("low", score.low), metric("high", score.high)]);
    let total = score.items * sheets.len();
    let samples: Vec<Value> = sheets
        .iter()
        .enumerate()
        .flat_map(|(epoch, sheet)| sheet.rows.iter().map(move |row| (epoch + 1, row)))
        .map(|(epoch, row)| {
            let answer = row.answer.clone().unwrap_or_default();
            let said = json!({ "role": "assistant", "content": answer });
            // As Inspect writes them: correct, incorrect, no answer.
            let value = match (row.correct, &row.answer) {
                (Some(true), _) => "C",
                (Some(false), Some(_)) => "I",
                _ => "N",
            };
            let mut scores = Map::new();
            scores.insert("polity".into(), json!({ "value": value, "answer": row.extracted, "explanation": row.note }));
            json!({
                "id": row.item.to_string(),
                "epoch": epoch,
                "input": row.question,
                "target": row.gold.clone().unwrap_or_default(),
                "messages": [{ "role": "user", "content": row.question }, said],
                "output": {
                    "model": model,
                    "choices": [{ "message": said, "stop_reason": "stop" }],
                    "completion": answer,
                    "usage": usage(&row.spent),
                },
                "scores": scores,
                "metadata": { "rounds": row.rounds, "calls": row.spent.calls, "cost_usd": row.spent.cost_usd },
                "store": {},
                "events": [],
                "model_usage": by_model(&row.spent),
                "attachments": {},
            })
        })
        .collect();
    json!({
        "version": 2,
        "status": "success",
        "eval": {
            "eval_id": id,
            "run_id": id,
            "created": EPOCH,
            "task": score.method,
            "task_id": id,
            "task_version": 0,
            "task_attribs": {},
            "task_args": {},
            "task_args_passed": {},
            "dataset": { "name": score.task, "samples": ids.len(), "sample_ids": ids, "shuffled": false },
            "model": model,
            "model_generate_config": {},
            "model_args": {},
            "config": { "epochs": sheets.len() },
            "packages": { "polity": env!("CARGO_PKG_VERSION") },
            "scorers": [{ "name": "polity", "options": {}, "metrics": [{ "name": "accuracy", "options": {} }], "metadata": {} }],
            "metadata": {
                "simulated": score.simulated,
                "times": "Polity records no clock time; the times in this log are the epoch",
            },
        },
        "plan": {
            "name": score.kind,
            "steps": [{
                "solver": score.kind,
                "params": { "members": score.members, "rounds": score.rounds },
                "params_passed": {},
            }],
            "config": {},
        },
        "results": {
            "total_samples": total,
            "completed_samples": total,
            "scores": [{ "name": "polity", "scorer": "polity", "params": {}, "metrics": metrics }],
        },
        "stats": {
            "started_at": EPOCH,
            "completed_at": EPOCH,
            "model_usage": by_model(&score.spent),
            "role_usage": {},
        },
        "samples": samples,
    })
}
