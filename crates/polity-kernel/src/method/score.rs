//! Scoring of answers, and programs that run in the sandbox: tests, and functions of a checker file.

use super::{Placebo, TeamContext, Verdict};
use crate::ask::tool::{Ended, Ran};
use crate::ask::{AskError, Asker, Question, Request, Task};
use crate::items::{CHECK, Checked, CheckerError, Scorer, Tested, judged};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The score of an answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// The final answer that was extracted from it.
    pub extracted: Option<String>,
    /// Whether it is right; `None` if that cannot be decided.
    pub correct: Option<bool>,
    /// The output of its tests or its judge, if any.
    pub note: Option<String>,
    /// The score of a checker, from 0 to 1.
    pub points: Option<f64>,
    /// What a checker measured, by name.
    pub measures: BTreeMap<String, f64>,
}

impl TeamContext<'_> {
    /// Returns whether the episode has solved the item, if the environment decides that.
    fn solved(&self, verdict: &Verdict) -> Option<bool> {
        self.episode.as_ref()?.solved(verdict.answer.as_deref()).ok().flatten()
    }

    /// Scores an answer. Questions for that belong to the method's last round ([`Asker::Scorer`]).
    pub(super) async fn scored(&mut self, verdict: &Verdict) -> Score {
        if let Some(correct) = self.solved(verdict) {
            return Score { extracted: verdict.answer.clone(), correct: Some(correct), ..Score::default() };
        }
        let Some(answer) = &verdict.answer else {
            let checked = self.item.checker.is_some();
            let correct = (checked || self.item.gold.is_some()).then_some(false);
            return Score { correct, points: checked.then_some(0.0), ..Score::default() };
        };
        let extracted = self.item.extracted(answer);
        let scorer = self.team.len() as u32 + 1;
        self.ask.set_round(self.last_round());
        if let Some(request) = self.item.to_judge(answer) {
            let question = Question::new(request).hidden(self.item.hidden(Task::Check));
            let heard = self.ask.ask_for(Asker::Scorer, scorer, question).await;
            return match heard.as_ref().map(judged) {
                Ok(Some((right, why))) => {
                    Score { extracted, correct: Some(right), note: Some(why.into()), ..Score::default() }
                }
                Ok(None) => {
                    let note = Some("the judge said neither right nor wrong".into());
                    Score { extracted, note, ..Score::default() }
                }
                Err(why) => Score { extracted, note: Some(why.to_string()), ..Score::default() },
            };
        }
        if self.item.checker.is_some() {
            return match self.checked(Asker::Scorer, scorer, CHECK, &[answer]).await {
                Ok(Checked { passed, text, score, measures }) => {
                    let note = Some(text).filter(|text| !text.is_empty());
                    Score { extracted, correct: Some(passed), note, points: Some(score), measures }
                }
                Err(why) => Score { extracted, note: Some(why.to_string()), ..Score::default() },
            };
        }
        let Some(program) = self.item.program.as_ref().filter(|_| self.item.scorer == Scorer::Code) else {
            return Score { extracted, correct: self.item.is_right(answer), ..Score::default() };
        };
        let ran = self.test_for(Asker::Scorer, scorer, &program.scored(answer)).await;
        let note = match &ran {
            Ok(Ran { ended, errors, .. }) => {
                let last = errors.trim().lines().last().map(|line| format!(": {line}"));
                format!("{}{}", ended.name(), last.unwrap_or_default())
            }
            Err(why) => why.to_string(),
        };
        // If the tests could not be run, the answer is neither right nor wrong.
        Score { extracted, correct: ran.ok().map(|ran| ran.is_right()), note: Some(note), ..Score::default() }
    }

    /// Runs a Python program with its tests in the sandbox ([`Ran::PYTHON`]). The asker is the method ([`Asker::Method`]).
    pub async fn test(&mut self, tested: &Tested) -> Result<Ran, AskError> {
        let ran = self.test_for(Asker::Method, self.team.len() as u32, tested).await?;
        if !self.placebos.contains(&Placebo::Run) {
            return Ok(ran);
        }
        let ended = if self.lot().chance(0.5) { Ended::Finished } else { Ended::Failed };
        Ok(Ran { ended, status: 0, output: String::new(), errors: String::new() })
    }

    /// Calls a function of the data set's checker file (`items.checker`) with the item's row and these texts, in the sandbox.
    ///
    /// # Errors
    /// [`AskError::Invalid`] if the file cannot be used or lacks the function; otherwise the data set has no checker, or the function ended
    /// without a result, which says nothing about the texts.
    pub async fn run_checker(&mut self, function: &str, texts: &[&str]) -> Result<Checked, AskError> {
        let checked = self.checked(Asker::Method, self.team.len() as u32, function, texts).await?;
        if !self.placebos.contains(&Placebo::Run) {
            return Ok(checked);
        }
        Ok(Checked { passed: self.lot().chance(0.5), text: String::new(), ..Checked::default() })
    }

    async fn checked(&mut self, asker: Asker, actor: u32, function: &str, texts: &[&str]) -> Result<Checked, AskError> {
        let Some(checker) = self.item.checker.clone() else {
            let why = "the data set has no checker; name a Python file under `items.checker`";
            return Err(AskError::Failed(why.into()));
        };
        let ran = self.run_for(asker, actor, checker.request(function, texts)).await?;
        Checked::read(&ran).map_err(|error| match error {
            CheckerError::Broken(why) => AskError::Invalid { raw: ran.output.clone(), why },
            CheckerError::NoResult(why) => AskError::Failed(why),
        })
    }

    async fn test_for(&mut self, asker: Asker, actor: u32, tested: &Tested) -> Result<Ran, AskError> {
        self.run_for(asker, actor, Ran::tested(tested)).await
    }

    async fn run_for(&mut self, asker: Asker, actor: u32, request: Request) -> Result<Ran, AskError> {
        let request = Request { purpose: "run".into(), ..request };
        let value = match self.agent {
            Some(agent) => self.ask.ask(agent, request).await?,
            None => self.ask.ask_for(asker, actor, request).await?,
        };
        Ran::read(&value).map_err(|why| AskError::Invalid { raw: format!("{value:?}"), why })
    }
}
