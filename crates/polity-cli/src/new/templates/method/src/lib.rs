//! Everybody answers once, alone; the answer that most give is the team's.

use polity::kernel::Invalid;
use polity::kernel::ask::{ChatMessage, ResponseFormat, Role, Value};
use polity::kernel::method::{Brief, Method, Prompt, Records, TeamContext, Verdict, same_answer};
use polity::kernel::policy::Fault;
use polity::kernel::registry::{NoParams, Registry};

polity::made_for!("0.1");

/// Every leaf of Polity, and this one.
pub fn registry() -> Registry {
    let mut registry = polity::registry();
    registry.method::<Ballot>(polity::leaf_files!());
    registry
}

/// What every member is told after the question. A scenario can change it: `method: {kind: ballot, prompts: {instruction: ...}}`.
const INSTRUCTION: Prompt = Prompt::new(
    "instruction",
    "tells every member how to answer, after the question",
    "Give your final answer, as short as it can be.",
);

/// The method.
pub struct Ballot;

impl Method for Ballot {
    const NAME: &'static str = "ballot";
    const SUMMARY: &'static str = "Everybody answers once, alone; most voices win";
    const RECORDS: &'static [Records] = &[Records { name: "answer", doc: "the member's answer" }];
    const PROMPTS: &'static [Prompt] = &[INSTRUCTION];
    type Params = NoParams;

    fn open(_: NoParams, _: usize, _: u32) -> Result<Self, Invalid> {
        Ok(Ballot)
    }

    async fn run(&self, context: &mut TeamContext<'_>) -> Result<Verdict, Fault> {
        let question = format!("{}\n\n{}", context.item.question, context.prompt(&INSTRUCTION));
        let ask = |member| Brief::new(member, vec![ChatMessage::text(Role::User, &question)], ResponseFormat::Text);
        let heard = context.ask_all((0..context.team.len()).map(ask).collect()).await;
        let mut votes: Vec<(String, u32)> = Vec::new();
        for (member, answer) in heard.iter().enumerate() {
            // A reply that is refused, cut or unreadable is no vote.
            let Some(answer) = answer.as_ref().ok().and_then(Value::as_text) else { continue };
            context.record(member, 0, answer);
            match votes.iter_mut().find(|(other, _)| same_answer(other, answer)) {
                Some((_, voices)) => *voices += 1,
                None => votes.push((answer.into(), 1)),
            }
        }
        context.end_round(&()).await?;
        // Of equals `max_by_key` takes the last: reversed, the answer that was given first.
        Ok(Verdict { answer: votes.into_iter().rev().max_by_key(|(_, voices)| *voices).map(|(answer, _)| answer) })
    }
}
