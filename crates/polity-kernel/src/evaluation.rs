//! An evaluation: a method that works on every item of a data set, as one machine.
//!
//! What the method does once a run comes first ([`crate::method::Method::prepare`]). Then each item has its own instance of the method.
//! A bounded window of instances runs at once, each at its own pace. Round r of the run is complete when every item has passed its
//! round r. There is one journal, one digest and one table of items.

use crate::Bug;
use crate::ask::tool::Ran;
use crate::ask::{Answer, Asker, Effect};
use crate::digest::{Digest, Kind, RowHash};
use crate::environment::Env;
use crate::interface::Actions;
use crate::items::{Item, Scorer};
use crate::machine::{ItemReport, Machine, Outcome, RoundReport, Step, Then};
use crate::method::{
    Log, Member, MethodHost, Placebo, PlantedFault, Prepared, Quantity, Records, Score, Start, Verdict, Whole,
};
use crate::saved::{Reader, Sink, Writer};
use crate::toolbox::Toolbox;
use crate::topology::Topology;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// An item in progress.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Instance {
    begun: bool,
    round: u32,
    checkpoint: Option<Vec<u8>>,
    /// Answers since the checkpoint, sorted by id.
    answers: Vec<Answer>,
    open: Vec<Effect>,
    asks: u32,
    verdict: Option<(Verdict, Score)>,
    /// Paused at the end of a round because the scenario changes there.
    held: bool,
    /// The last round in which its method did something, while only the score is open.
    scoring: Option<u32>,
}

impl Instance {
    fn ready(&self) -> bool {
        self.begun && self.verdict.is_none() && self.open.is_empty() && !self.held
    }

    fn passed(&self, round: u32) -> bool {
        // The last round stays open until there is a score, because the score is reported there.
        self.verdict.is_some() || self.scoring.unwrap_or(self.round) > round
    }
}

/// What the method does once, before the items.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Before {
    /// Sorted by id.
    answers: Vec<Answer>,
    open: Vec<Effect>,
    ended: bool,
    /// What it kept for all items.
    kept: Option<Vec<u8>>,
}

impl Before {
    /// Whether it has ended and kept nothing, as that of most methods.
    fn is_nothing(&self) -> bool {
        self.ended && self.kept.is_none()
    }
}

/// The plan of an evaluation, made by its builder.
pub(crate) struct Plan {
    pub seed: u64,
    pub rounds: u32,
    pub window: usize,
    pub items: Vec<Item>,
    pub team: Vec<Member>,
    pub topology: Topology,
    /// How often a member is asked again when its reply is unusable.
    pub retries: u8,
    /// What carries no information.
    pub placebos: Vec<Placebo>,
    /// What goes wrong on purpose.
    pub faults: Vec<PlantedFault>,
    /// The environment in which items are worked on, if any.
    pub environment: Option<Env>,
    /// The tools of the scenario.
    pub toolbox: Arc<Toolbox>,
}

#[derive(Serialize, Deserialize)]
struct Data {
    round: u32,
    chain: Digest,
    instances: Vec<Instance>,
    logs: BTreeMap<u32, Vec<(u32, Log)>>,
    measured: Vec<Option<f64>>,
}

/// Whose state it is, in errors.
const WHAT: &str = "the evaluation";

/// A method that works on a data set, as a [`Machine`].
pub struct Evaluation {
    plan: Plan,
    method: Box<dyn MethodHost>,
    /// The method with changed parameters, and the round from which they hold, sorted by round.
    changes: Vec<(u32, Box<dyn MethodHost>)>,
    before: Before,
    instances: Vec<Instance>,
    /// The log of incomplete rounds: by round, (item, log).
    logs: BTreeMap<u32, Vec<(u32, Log)>>,
    /// The measurements up to the last complete round: the quantities of the first item, of the second, and so on.
    measured: Vec<Option<f64>>,
    /// Messages of the last complete round.
    messages: Vec<(u32, u32, u32, String)>,
    /// Actions of the last complete round: (item, acts).
    acts: Vec<(u32, Actions)>,
    round: u32,
    chain: Digest,
}

impl Evaluation {
    pub(crate) fn new(plan: Plan, method: Box<dyn MethodHost>, changes: Vec<(u32, Box<dyn MethodHost>)>) -> Self {
        Evaluation {
            instances: vec![Instance::default(); plan.items.len()],
            measured: vec![None; plan.items.len() * method.quantities().len()],
            plan,
            method,
            changes,
            before: Before::default(),
            logs: BTreeMap::new(),
            messages: Vec::new(),
            acts: Vec::new(),
            round: 0,
            chain: Digest::default(),
        }
    }

    /// Returns the team.
    #[must_use]
    pub fn team(&self) -> &[Member] {
        &self.plan.team
    }

    /// Returns the data set.
    #[must_use]
    pub fn items(&self) -> &[Item] {
        &self.plan.items
    }

    /// Returns what it may ask: members and tools.
    #[must_use]
    pub fn models(&self) -> Vec<String> {
        let scored_by = self
            .plan
            .items
            .iter()
            .any(|item| item.scorer == Scorer::Code || item.checker.is_some())
            .then_some(Ran::PYTHON);
        let tools = self.method.tools().iter().copied().chain(scored_by).map(str::to_owned);
        let judge = self.plan.items.iter().find_map(|item| item.judge.as_deref()).map(str::to_owned);
        let tools = tools.chain(self.plan.toolbox.targets());
        self.plan.team.iter().map(|member| member.model.clone()).chain(tools).chain(judge).collect()
    }

    /// What the method records.
    #[must_use]
    pub fn records(&self) -> &'static [Records] {
        self.method.records()
    }

    /// Returns what the method measures for every item.
    #[must_use]
    pub fn quantities(&self) -> &'static [Quantity] {
        self.method.quantities()
    }

    /// Returns the actions of the last complete round: (item, acts), in order of item.
    #[must_use]
    pub fn acts(&self) -> &[(u32, Actions)] {
        &self.acts
    }

    /// Returns the messages of the last complete round: (item, from, to, text).
    #[must_use]
    pub fn messages(&self) -> &[(u32, u32, u32, String)] {
        &self.messages
    }

    /// Returns the number of items that have a verdict.
    #[must_use]
    pub fn finished(&self) -> usize {
        self.instances.iter().filter(|i| i.verdict.is_some()).count()
    }

    fn hear(&mut self, answers: Vec<Answer>) {
        for answer in answers {
            let (open, answers) = match (answer.id.asker, self.instances.get_mut(answer.id.item as usize)) {
                (Asker::Preparation, _) => (&mut self.before.open, &mut self.before.answers),
                (_, Some(instance)) => (&mut instance.open, &mut instance.answers),
                (_, None) => continue,
            };
            let before = open.len();
            open.retain(|effect| effect.id != answer.id);
            if open.len() < before
                && let Err(place) = answers.binary_search_by_key(&answer.id, |a| a.id)
            {
                answers.insert(place, answer);
            }
        }
    }

    /// Begins items while the window has room.
    fn admit(&mut self) {
        // A paused instance waits for those that have not begun, so it takes no place: otherwise they would never begin.
        let mut under_way = self.instances.iter().filter(|i| i.begun && i.verdict.is_none() && !i.held).count();
        for instance in &mut self.instances {
            if under_way >= self.plan.window {
                break;
            }
            if !instance.begun {
                instance.begun = true;
                under_way += 1;
            }
        }
    }

    /// Runs what the method does once, until it has ended; returns its new questions.
    fn prepare(&mut self) -> Result<Vec<Effect>, Bug> {
        if self.before.ended || !self.before.open.is_empty() {
            return Ok(Vec::new());
        }
        let Plan { team, items, retries, .. } = &self.plan;
        let whole = Whole { team, items, retries: *retries, answers: &self.before.answers };
        match self.method.prepare(whole)? {
            Prepared::Ended(kept) => {
                self.before = Before { ended: true, kept, ..Before::default() };
                Ok(Vec::new())
            }
            Prepared::Waits(wanted) => {
                // Its questions bear the first item's number.
                if let Some(first) = self.instances.first_mut() {
                    first.asks += wanted.len() as u32;
                }
                self.before.open.clone_from(&wanted);
                Ok(wanted)
            }
        }
    }

    /// Runs every instance that can continue; returns the new questions, in order of item.
    fn advance(&mut self) -> Result<Vec<Effect>, Bug> {
        let mut effects = self.prepare()?;
        if !self.before.ended {
            return Ok(effects);
        }
        loop {
            self.admit();
            let hold_at = self.changes.first().map(|(at, _)| *at);
            let (plan, method, prepared) = (&self.plan, self.method.as_ref(), self.before.kept.as_deref());
            let ran: Vec<_> = self
                .instances
                .par_iter()
                .zip(&plan.items)
                .enumerate()
                .filter(|(_, (instance, _))| instance.ready())
                .map(|(i, (instance, item))| {
                    let start = Start {
                        item,
                        team: &plan.team,
                        topology: &plan.topology,
                        seed: plan.seed,
                        round: instance.round,
                        checkpoint: instance.checkpoint.as_deref(),
                        prepared,
                        answers: &instance.answers,
                        hold_at,
                        retries: plan.retries,
                        placebos: &plan.placebos,
                        faults: &plan.faults,
                        environment: plan.environment.as_ref(),
                        toolbox: &plan.toolbox,
                    };
                    Ok((i, method.run(start)?))
                })
                .collect::<Result<_, Bug>>()?;
            if ran.is_empty() {
                return Ok(effects);
            }
            for (i, ran) in ran {
                let instance = &mut self.instances[i];
                for (round, log) in ran.ended {
                    self.logs.entry(round).or_default().push((i as u32, log));
                }
                if ran.checkpoint.is_some() {
                    instance.checkpoint = ran.checkpoint;
                    instance.round = ran.round;
                    instance.answers.retain(|answer| answer.id.round >= ran.round);
                }
                instance.held = ran.verdict.is_none() && ran.wanted.is_empty();
                instance.asks += ran.wanted.len() as u32;
                instance.open = ran.wanted.clone();
                instance.scoring = ran.scoring;
                effects.extend(ran.wanted);
                if ran.verdict.is_some() {
                    instance.verdict = ran.verdict;
                    instance.round = ran.round;
                    instance.checkpoint = None;
                    instance.answers.clear();
                }
            }
        }
    }

    /// Returns the last active round of each item that has a verdict.
    fn last_rounds(&self) -> Vec<Option<u32>> {
        let mut last: Vec<Option<u32>> = vec![None; self.instances.len()];
        for (round, logs) in &self.logs {
            for (item, _) in logs {
                last[*item as usize] = Some(*round);
            }
        }
        let of = |(instance, logged): (&Instance, Option<u32>)| {
            instance.verdict.as_ref().map(|_| logged.unwrap_or(instance.round.saturating_sub(1)))
        };
        self.instances.iter().zip(last).map(of).collect()
    }

    /// Returns the measurements of an item.
    fn measured_of(&mut self, item: usize) -> &mut [Option<f64>] {
        let n = self.method.quantities().len();
        self.measured.get_mut(item * n..(item + 1) * n).unwrap_or_default()
    }

    fn close_round(&mut self) -> RoundReport {
        let round = self.round;
        let mut report = RoundReport { round, ..RoundReport::default() };
        let last = self.last_rounds();
        let mut logs = self.logs.remove(&round).unwrap_or_default();
        logs.sort_by_key(|(item, _)| *item);
        report.agents = logs.len() as u32;
        self.acts.clear();
        self.messages.clear();
        if let Some(kept) = self.before.kept.as_ref().filter(|_| round == 0) {
            report.sum.add(RowHash::new(Kind::Common, round).bytes(kept).finish());
        }
        let (mut answers, mut right, mut teams, mut agreed) = (0u64, 0u64, 0u64, 0u64);
        for (item, log) in logs {
            let base = |kind| RowHash::new(kind, round).word(u64::from(item));
            let mut standing: Vec<&str> = Vec::new();
            for (n, act) in log.acts.rows.iter().enumerate() {
                let text = log.acts.text(n).unwrap_or_default();
                report.sum.add(
                    base(Kind::Action)
                        .word(u64::from(act.who) << 32 | u64::from(act.kind) << 16 | n as u64)
                        .number(act.value)
                        .bytes(text.as_bytes())
                        .finish(),
                );
                if act.kind == 0 {
                    standing.push(text);
                }
            }
            let Some(asked) = self.plan.items.get(item as usize) else { continue };
            let told: Vec<bool> = standing.iter().filter_map(|answer| asked.is_right(answer)).collect();
            answers += told.len() as u64;
            right += told.iter().filter(|right| **right).count() as u64;
            if standing.len() > 1 {
                teams += 1;
                agreed += u64::from(standing.iter().all(|a| asked.same(a, standing[0])));
            }
            for (n, (from, to, text)) in log.messages.into_iter().enumerate() {
                report.messages += 1;
                let hash = base(Kind::Message).word(u64::from(from) << 32 | u64::from(to)).word(n as u64);
                report.sum.add(hash.bytes(text.as_bytes()).finish());
                self.messages.push((item, from, to, text));
            }
            report.acts += log.acts.rows.len() as u64;
            self.acts.push((item, log.acts));
            for (quantity, value) in log.measured {
                report.sum.add(base(Kind::Metric).word(u64::from(quantity)).number(value).finish());
                if let Some(place) = self.measured_of(item as usize).get_mut(usize::from(quantity)) {
                    *place = Some(value);
                }
            }
        }
        let mut share = |name: &str, part: u64, of: u64| {
            if of > 0 {
                report.metrics.push((name.to_string(), part as f64 / of as f64));
            }
        };
        share("members.correct", right, answers);
        share("teams.agreed", agreed, teams);
        let quantities = self.method.quantities();
        self.measure_scored(&mut report, quantities, &last);
        for (q, quantity) in quantities.iter().enumerate() {
            let values = || self.measured.iter().skip(q).step_by(quantities.len()).flatten();
            if values().next().is_some() {
                let mean = values().sum::<f64>() / values().count() as f64;
                report.metrics.push((quantity.name.into(), mean));
            }
        }
        self.report_verdicts(&mut report, &last);
        for (name, value) in &report.metrics {
            report.sum.add(RowHash::new(Kind::Metric, round).bytes(name.as_bytes()).number(*value).finish());
        }
        self.chain = self.chain.chain(round, report.sum);
        report.chain = self.chain;
        self.round += 1;
        report
    }

    /// Takes what checkers measured of the items whose last round this is.
    fn measure_scored(&mut self, report: &mut RoundReport, quantities: &[Quantity], last: &[Option<u32>]) {
        for i in (0..last.len()).filter(|i| last[*i] == Some(report.round)) {
            let score = self.instances[i].verdict.as_ref().map(|(_, score)| score);
            let measures = score.map(|score| score.measures.clone()).unwrap_or_default();
            for (name, value) in measures.into_iter().filter(|(_, value)| value.is_finite()) {
                let Some(place) = quantities.iter().position(|quantity| quantity.name == name) else { continue };
                report.sum.add(
                    RowHash::new(Kind::Metric, report.round).word(i as u64).word(place as u64).number(value).finish(),
                );
                if let Some(slot) = self.measured_of(i).get_mut(place) {
                    *slot = Some(value);
                }
            }
        }
    }

    /// Reports the verdicts of the items whose last round this is.
    fn report_verdicts(&mut self, report: &mut RoundReport, last: &[Option<u32>]) {
        let round = report.round;
        let finished: Vec<usize> = (0..last.len()).filter(|i| last[*i] == Some(round)).collect();
        let mut scored = 0;
        for i in finished {
            let measured = self.measured_of(i).to_vec();
            let (instance, item) = (&self.instances[i], &self.plan.items[i]);
            let (Verdict { answer }, score) = instance.verdict.clone().unwrap_or_default();
            scored += u64::from(score.correct.is_some());
            report.sum.add(
                RowHash::new(Kind::Item, round)
                    .word(i as u64)
                    .bytes(answer.as_deref().unwrap_or("\u{0}none").as_bytes())
                    .word(u64::from(instance.asks))
                    .word(score.correct.map_or(2, u64::from))
                    .finish(),
            );
            report.items.push(ItemReport {
                item: i as u32,
                answer,
                gold: item.gold.clone(),
                extracted: score.extracted,
                correct: score.correct,
                note: score.note,
                points: score.points,
                rounds: round + 1,
                asks: instance.asks,
                measured,
            });
        }
        if scored > 0 {
            // Average over all items so far, since those that end last are the hard ones. Items proceed at their own pace, so some
            // may have ended in a later round already. Which ones depends on when answers arrived, so they do not count yet.
            let ended = |(instance, last): (&Instance, &Option<u32>)| {
                let (_, score) = instance.verdict.as_ref().filter(|_| last.is_some_and(|last| last <= round))?;
                score.correct
            };
            let (mut correct, mut all) = (0u32, 0u32);
            for right in self.instances.iter().zip(last).filter_map(ended) {
                all += 1;
                correct += u32::from(right);
            }
            report.metrics.push(("items.correct".into(), f64::from(correct) / f64::from(all)));
            let points = |(instance, last): (&Instance, &Option<u32>)| {
                let (_, score) = instance.verdict.as_ref().filter(|_| last.is_some_and(|last| last <= round))?;
                score.points
            };
            let points: Vec<f64> = self.instances.iter().zip(last).filter_map(points).collect();
            if !points.is_empty() {
                report.metrics.push(("items.score".into(), points.iter().sum::<f64>() / points.len() as f64));
            }
        }
    }
}

impl Machine for Evaluation {
    fn poll(&mut self, answers: Vec<Answer>) -> Result<Step, Bug> {
        self.hear(answers);
        let mut start = Vec::new();
        loop {
            start.extend(self.advance()?);
            // All instances have reached the round at which the scenario changes.
            let at_border = self.changes.first().is_some_and(|(at, _)| {
                *at <= self.round && self.instances.iter().all(|i| i.verdict.is_some() || i.held && i.round >= *at)
            });
            if !at_border {
                break;
            }
            let (_, method) = self.changes.remove(0);
            self.method = method;
            self.instances.iter_mut().for_each(|i| i.held = false);
        }
        let all_passed = self.instances.iter().all(|i| i.passed(self.round));
        let all_done = self.instances.iter().all(|i| i.verdict.is_some());
        if all_done && self.logs.is_empty() {
            let outcome = Outcome { rounds: self.round, reason: None, digest: self.chain };
            return Ok(Step { start, then: Then::Done(outcome) });
        }
        if all_passed {
            let report = self.close_round();
            return Ok(Step { start, then: Then::Round(Box::new(report)) });
        }
        Ok(Step { start, then: Then::Wait })
    }

    fn save(&self, to: &mut dyn Sink) -> Result<(), Bug> {
        let mut to = Writer::new(to);
        to.value(&(self.round, self.chain, &self.instances, &self.logs, &self.measured), WHAT)?;
        // So a method that prepares nothing has the same snapshots as before.
        if self.before.is_nothing() { Ok(()) } else { to.value(&self.before, WHAT) }
    }

    fn next_round(&self) -> u32 {
        self.round
    }

    fn open_effects(&self) -> Vec<Effect> {
        self.before.open.iter().chain(self.instances.iter().flat_map(|i| &i.open)).cloned().collect()
    }
}

impl Evaluation {
    /// Restores a new evaluation of the same scenario from a snapshot.
    pub fn restore(&mut self, bytes: &[u8]) -> Result<(), Bug> {
        let mut from = Reader::new(bytes);
        let data: Data = from.value(WHAT)?;
        let nothing = Before { ended: true, ..Before::default() };
        let before = if from.is_empty() { nothing } else { from.value(WHAT)? };
        from.end(WHAT)?;
        let wrong = |why: &str| Err(Bug::Snapshot { what: WHAT.into(), why: why.into() });
        if data.instances.len() != self.instances.len() {
            return wrong("it was made with other items");
        }
        if data.measured.len() != self.measured.len() {
            return wrong("it was made with a method that measures something else");
        }
        while self.changes.first().is_some_and(|(at, _)| *at < data.round) {
            self.method = self.changes.remove(0).1;
        }
        self.round = data.round;
        self.chain = data.chain;
        self.before = before;
        self.instances = data.instances;
        self.logs = data.logs;
        self.measured = data.measured;
        Ok(())
    }

    /// Returns the number of planned rounds, as the method knows it.
    #[must_use]
    pub fn rounds(&self) -> u32 {
        self.plan.rounds
    }
}
