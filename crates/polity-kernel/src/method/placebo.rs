//! Placebos: a mechanism of a method runs and asks as always, but what comes out of it carries no information. What a method gains over
//! its placebo is due to the information, and not to the number of calls.

use crate::ask::{Part, Request, ResponseFormat, Role, Task, Value};
use crate::rng::Draws;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A kind of information that a placebo takes out of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Placebo {
    /// A member is asked for the best of several answers. Then the choice is drawn at random.
    Choose,
    /// Marks are asked for. Then they are drawn at random; so are marks that a member gives along with its answer.
    Rate,
    /// A member is asked to check an answer. Then the result is drawn at random.
    Check,
    /// Programs run with their tests. Then the result is drawn at random. The score of the final answer is not changed.
    Run,
    /// Members answer without seeing the answers of others that the method shows them.
    Said,
    /// A model with recorded answers answers another item than the one that it is asked.
    Items,
    /// Tools are called. Then the letters and digits of their results are covered, so that only their shape is left.
    Tools,
}

impl Placebo {
    /// Whether the reply to this kind of work is drawn by lot.
    fn replaces(self, task: Task) -> bool {
        matches!(
            (self, task),
            (Placebo::Choose, Task::Choose) | (Placebo::Rate, Task::Rate) | (Placebo::Check, Task::Check)
        )
    }
}

/// Takes the answers of others out of a question.
pub(crate) fn unsaid(request: &mut Request) {
    let messages = Arc::make_mut(&mut request.messages);
    for message in messages.iter_mut().filter(|message| message.role == Role::User) {
        message.parts.retain(|part| !matches!(part, Part::Said { .. }));
    }
}

/// Returns the reply as the method gets it under these placebos.
pub(crate) fn blinded(
    placebos: &[Placebo],
    task: Task,
    form: &ResponseFormat,
    reply: Value,
    draws: &mut Draws,
) -> Value {
    if placebos.iter().any(|placebo| placebo.replaces(task)) {
        return by_lot(form, reply, draws);
    }
    match (form, reply) {
        // Marks beside an answer.
        (ResponseFormat::Record(fields), Value::Record(values)) if placebos.contains(&Placebo::Rate) => {
            let marks =
                |form: &ResponseFormat| matches!(form, ResponseFormat::List { .. } | ResponseFormat::Number { .. });
            let field =
                |((name, form), value): (&(String, ResponseFormat), Value)| match marks(form) && name != "answer" {
                    true => by_lot(form, value, draws),
                    false => value,
                };
            Value::Record(fields.iter().zip(values).map(field).collect())
        }
        (_, reply) => reply,
    }
}

/// Returns a value of the same form, drawn by lot: each option and each number within the bounds is as likely as any other. A list keeps
/// its length, and texts are empty.
fn by_lot(form: &ResponseFormat, reply: Value, draws: &mut Draws) -> Value {
    match (form, reply) {
        (ResponseFormat::Choice(options), Value::Choice(_)) => Value::Choice(draws.below(options.len() as u64) as u32),
        (ResponseFormat::Number { low, high, whole }, Value::Number(_)) => {
            let x = draws.range(*low, *high);
            Value::Number(if *whole { x.round() } else { x })
        }
        (ResponseFormat::List { of, .. }, Value::List(values)) => {
            Value::List(values.into_iter().map(|value| by_lot(of, value, draws)).collect())
        }
        (ResponseFormat::Record(fields), Value::Record(values)) => {
            let values = fields.iter().zip(values).map(|((_, form), value)| by_lot(form, value, draws));
            Value::Record(values.collect())
        }
        (_, Value::Text(_)) => Value::Text(String::new()),
        (_, reply) => reply,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::ChatMessage;
    use crate::rng::Stream;

    fn draws(n: u32) -> Draws {
        Draws::new(7, Stream::Method, 0, n)
    }

    #[test]
    fn what_is_drawn_by_lot_does_not_depend_on_the_reply() {
        let check = ResponseFormat::Choice(["pass", "fail"].map(String::from).to_vec());
        let form = ResponseFormat::Record(vec![("reasons".into(), ResponseFormat::Text), ("answer".into(), check)]);
        let said = |i| Value::Record(vec![Value::Text("because".into()), Value::Choice(i)]);
        let got = |n, i| blinded(&[Placebo::Check], Task::Check, &form, said(i), &mut draws(n));
        let passes =
            (0..1000).filter(|n| got(*n, 0) == Value::Record(vec![Value::Text(String::new()), Value::Choice(0)]));
        let passes = passes.count();
        assert!((430..570).contains(&passes), "{passes}");
        assert!((0..100).all(|n| got(n, 0) == got(n, 1)));
        // Other kinds of work are left alone.
        assert_eq!(blinded(&[Placebo::Check], Task::Choose, &form, said(1), &mut draws(0)), said(1));
        assert_eq!(blinded(&[Placebo::Rate], Task::Solve, &form, said(1), &mut draws(0)), said(1));
    }

    #[test]
    fn marks_beside_an_answer_are_drawn_and_the_answer_stays() {
        let mark = ResponseFormat::Number { low: 1.0, high: 5.0, whole: true };
        let marks = ResponseFormat::List { of: Box::new(mark), least: 2, most: 2 };
        let form = ResponseFormat::Record(vec![("answer".into(), ResponseFormat::Text), ("marks".into(), marks)]);
        let said = Value::Record(vec![Value::Text("Canberra".into()), Value::List(vec![Value::Number(5.0); 2])]);
        let got: Vec<Value> =
            (0..50).map(|n| blinded(&[Placebo::Rate], Task::Solve, &form, said.clone(), &mut draws(n))).collect();
        assert!(got.iter().all(|value| value.field(0) == said.field(0)));
        assert!(got.iter().any(|value| value.field(1) != said.field(1)));
    }

    #[test]
    fn the_answers_of_others_are_left_out_and_the_members_own_stays() {
        let said = || Part::Said { by: "b".into(), answer: "4".into(), reasons: String::new() };
        let own = ChatMessage { role: Role::Assistant, parts: vec![said()] };
        let shown = ChatMessage { role: Role::User, parts: vec![Part::Text("?".into()), said()] };
        let mut request = Request::new("m", vec![shown, own.clone()], ResponseFormat::Text);
        unsaid(&mut request);
        assert_eq!(*request.messages, vec![ChatMessage::text(Role::User, "?"), own]);
    }
}
