//! Steps that decide who goes on: branches, routes, hand-offs and conversations.

use super::OUTPUT;
use super::outputs::{Asked, Output};
use super::perform::{Done, Performance, written};
use super::plan::{self, Step};
use crate::team::{NO_ANSWER, Stand, floor, wanted_answer};
use polity_kernel::ask::Part;
use polity_kernel::policy::Fault;

/// Turns of `hand_off` and `chat`, unless the step says otherwise.
const TURNS: u32 = 10;

impl Performance<'_, '_, '_> {
    /// Does all branches, step by step. The questions of steps that stand at the same place go out together.
    pub fn parallel<'a>(&'a mut self, step: &'a Step) -> Done<'a> {
        Box::pin(self.branches(step))
    }

    async fn branches(&mut self, step: &Step) -> Result<(), Fault> {
        let longest = step.parallel.values().map(Vec::len).max().unwrap_or(0);
        let mut lasts: Vec<Option<String>> = vec![None; step.parallel.len()];
        for place in 0..longest {
            let branches = step.parallel.values().enumerate();
            let here = branches.filter_map(|(branch, steps)| Some((branch, steps.get(place)?)));
            let due: Vec<(usize, &Step)> =
                here.filter(|(_, step)| step.when.as_ref().is_none_or(|when| self.holds(when))).collect();
            let (asking, others): (Vec<_>, Vec<_>) = due.into_iter().partition(|(_, step)| step.ask.is_some());
            self.together(&asking, &mut lasts).await?;
            for (branch, step) in others {
                self.last = None;
                self.step(step).await?;
                lasts[branch] = self.last_given().or(lasts[branch].take());
            }
        }
        let (mut all, mut whole) = (Vec::new(), String::new());
        for (name, last) in step.parallel.keys().zip(lasts) {
            let text = last.unwrap_or_default();
            whole.push_str(&format!("### {name}\n{}\n", text.trim_end()));
            all.push(text);
        }
        self.put(step, Output { text: whole, all, ..Output::default() });
        Ok(())
    }

    /// The output of the last step that was done.
    pub fn last_given(&self) -> Option<String> {
        Some(self.outputs.given(self.last.as_deref()?))
    }

    /// Asks the members of several steps together; all of them are kept in one checkpoint.
    async fn together(&mut self, steps: &[(usize, &Step)], lasts: &mut [Option<String>]) -> Result<(), Fault> {
        let mut recalled = Vec::new();
        for _ in steps {
            recalled.extend(self.recalled());
        }
        let outputs = match recalled.len() == steps.len() {
            true => recalled,
            false => {
                let asked = steps.iter().map(|(_, step)| self.asked(step).map(|asked| (*step, asked)));
                let asked = asked.collect::<Result<Vec<_>, Fault>>()?;
                let outputs = self.ask(asked).await;
                let done: Vec<(&Step, &Output)> = steps.iter().map(|(_, step)| *step).zip(&outputs).collect();
                self.keep(&done).await?;
                outputs
            }
        };
        for ((branch, step), output) in steps.iter().zip(outputs) {
            self.put(step, output);
            lasts[*branch] = self.last_given();
        }
        Ok(())
    }

    /// A member chooses a branch; under the placebo its choice is replaced by lot.
    pub async fn route(&mut self, step: &Step, asked: Asked) -> Output {
        let names: Vec<String> = step.branches.keys().cloned().collect();
        let shown = self.documents(&asked.see);
        let how = format!("{}\n{}", asked.instruction.trim_end(), self.context.prompt(&floor::ROUTE));
        let picked = floor::picked(self.context, asked.member, &shown, &how, names.clone()).await;
        let by_lot = || self.context.draws().below(names.len() as u64) as usize;
        let place = if self.is_drawn(step) { Some(by_lot()) } else { picked };
        match place.and_then(|place| names.get(place)) {
            Some(name) => Output { asked: Some(asked), ..Output::text(name.clone()) },
            None => Output { asked: Some(asked), ..Output::failed("") },
        }
    }

    /// The members of a conversation: those that the step names, else all that work on items.
    fn among(&self, step: &Step) -> Result<Vec<usize>, Fault> {
        match step.among.as_slice() {
            [] => Ok(self.context.workers()),
            names => names.iter().map(|name| self.member(step, name)).collect(),
        }
    }

    /// What the step shows, and what was said in it.
    fn shown(&self, asked: &Asked) -> Vec<Part> {
        self.documents(&asked.see).into_iter().chain(self.state.thread.iter().map(Stand::said)).collect()
    }

    /// Members work one after the other, and each names who goes on. Every turn is a round with a checkpoint.
    pub async fn hand_off(&mut self, step: &Step, asked: Asked) -> Result<Output, Fault> {
        let among = self.among(step)?;
        let format = step.want.clone().unwrap_or_else(|| wanted_answer(self.context));
        while self.state.replies < step.most.unwrap_or(TURNS) {
            let member = match (self.state.next, self.state.replies) {
                (Some(member), _) => member,
                (None, 0) => asked.member,
                (None, _) => break,
            };
            let others: Vec<usize> = among.iter().copied().filter(|other| *other != member).collect();
            let shown = self.shown(&asked);
            let (how, want) = (&asked.instruction, step.want.as_ref());
            let Some(handed) = floor::handed(self.context, member, &shown, how, &others, want).await else { break };
            let answer = match written(&handed.result, &format) {
                Ok(answer) => answer,
                Err(why) => {
                    self.context.record(member, NO_ANSWER, why);
                    break;
                }
            };
            let by = self.context.team.get(member).map_or_else(String::new, |member| member.name.clone());
            if let Some(next) = handed.next {
                self.context.tell(member, next, answer.clone());
            }
            self.said(step, member, Stand { by, answer, reasons: String::new() });
            self.state.next = handed.next;
            self.context.end_round(&self.state).await?;
        }
        Ok(match self.state.thread.last() {
            Some(last) => {
                // Whoever gave the result revises it.
                let member = plan::place_of(self.context.team, &last.by).unwrap_or(asked.member);
                Output { asked: Some(Asked { member, ..asked }), ..Output::text(last.answer.clone()) }
            }
            None => Output { asked: Some(asked), ..Output::failed("") },
        })
    }

    /// Members talk, and the moderator names who is next. Every turn is a round with a checkpoint.
    pub async fn chat(&mut self, step: &Step, asked: Asked) -> Result<Output, Fault> {
        let moderator = asked.member;
        let mut speakers = self.among(step)?;
        if step.among.is_empty() && speakers.len() > 1 {
            speakers.retain(|speaker| *speaker != moderator);
        }
        while self.state.replies < step.most.unwrap_or(TURNS) {
            let (shown, how) = (self.shown(&asked), &asked.instruction);
            let next = floor::next_speaker(self.context, moderator, &shown, how, &speakers).await;
            let Some(speaker) = next else { break };
            let hearers: Vec<usize> = speakers.iter().copied().chain([moderator]).collect();
            let Some(stand) = floor::speech(self.context, speaker, &shown, how, &hearers).await else { break };
            self.said(step, speaker, stand);
            self.context.end_round(&self.state).await?;
        }
        let said: Vec<String> =
            self.state.thread.iter().map(|stand| format!("{}: {}", stand.by, stand.answer.trim_end())).collect();
        match said.is_empty() {
            true => Ok(Output { asked: Some(asked), ..Output::failed("") }),
            false => Ok(Output { text: said.join("\n\n"), all: said, asked: Some(asked), ..Output::default() }),
        }
    }

    /// Adds to what was said in a step, and records it.
    fn said(&mut self, step: &Step, member: usize, stand: Stand) {
        let id = step.id.as_deref().unwrap_or("step");
        self.context.record(member, OUTPUT, format!("{id}: {}", stand.answer));
        self.state.thread.push(stand);
        self.state.replies += 1;
    }
}
