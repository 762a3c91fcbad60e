//! Requests and their answers: rows of the table `calls` and lines of `polity calls`.
//!
//! Answers come in any order and rounds ahead of the open one; the table has them by round. So a recorder keeps the answers of unrecorded
//! rounds (`Pending`) and writes those of a round, sorted, with it. For an interrupted run, these answers are in its journal.

use polity_kernel::ask::{Answer, Asker, Outcome, Resolution};
use polity_store::tables::{Batch, Column, ColumnSpec, Kind};
use serde::Serialize;
use std::collections::BTreeMap;

/// Bytes of text passed to the table writer at once, so that its limits hold whatever the models reply.
const BATCH_BYTES: usize = 4 << 20;

/// An answer and its request, as a row.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Call {
    /// Row of the data set; `None` in a society.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<u32>,
    /// The round in which the turn began.
    pub round: u32,
    /// The agent, or the member of the team.
    pub agent: u32,
    /// Who asked.
    pub asker: Asker,
    /// Counts the asker's requests for the agent in the round.
    pub n: u32,
    /// The purpose in a word; may be empty.
    pub purpose: String,
    /// `provider/model`.
    pub model: String,
    /// How it ended: one of [`Outcome::NAMES`].
    pub outcome: &'static str,
    /// The resolution of the request: the name of a [`Resolution`].
    pub resolution: &'static str,
    /// Number of earlier tries.
    pub attempt: u32,
    /// Tokens of the request.
    pub tokens_in: u64,
    /// Tokens of the reply.
    pub tokens_out: u64,
    /// Cached tokens of the request.
    pub tokens_cached: u64,
    /// Hidden thinking tokens of the reply.
    pub tokens_thinking: u64,
    /// Cost of the answer in US dollars, if it is known; if `shared`, it was paid by another request.
    pub cost_usd: Option<f64>,
    /// Milliseconds it took.
    pub latency_ms: f64,
    /// Milliseconds before it was sent: for a connection, rate limits, failed tries.
    pub waited_ms: f64,
    /// Failed tries before.
    pub retries: u32,
    /// Whether the answer was shared from another request of the same words.
    pub shared: bool,
    /// Whether the server did not report tokens: the call is counted at its maximum.
    pub estimated: bool,
    /// The request: all messages, each under its role.
    pub prompt: String,
    /// The original reply; without one, the error message.
    pub answer: String,
    /// What the model thought; empty if its provider does not show it.
    pub reasoning: String,
}

/// Identifies a call: round, item, agent, asker, number.
pub type Place = (u32, Option<u32>, u32, Asker, u32);

impl Call {
    /// Creates it from an answer, in an evaluation or in a society. Without texts it takes little memory. `priced`: whether the price of
    /// its model is known.
    #[must_use]
    pub fn of(answer: &Answer, evaluation: bool, texts: bool, priced: bool) -> Call {
        let Answer { id, request, outcome, usage, reasoning } = answer;
        let text = |make: &dyn Fn() -> String| if texts { make() } else { String::new() };
        Call {
            item: evaluation.then_some(id.item),
            round: id.round,
            agent: id.actor,
            asker: id.asker,
            n: id.n,
            purpose: request.purpose.clone(),
            model: request.model.to_string(),
            outcome: outcome.name(),
            resolution: answer.resolution().name(),
            attempt: request.step.map_or(0, |step| u32::from(step.nth)),
            tokens_in: usage.tokens_in,
            tokens_out: usage.tokens_out,
            tokens_cached: usage.tokens_cached,
            tokens_thinking: usage.tokens_thinking,
            cost_usd: (priced || usage.cost_usd > 0.0).then_some(usage.cost_usd),
            latency_ms: usage.latency_ms,
            waited_ms: usage.waited_ms,
            retries: usage.retries,
            shared: usage.shared,
            estimated: usage.estimated,
            prompt: text(&|| request.rendered()),
            answer: text(&|| outcome.words().to_string()),
            reasoning: text(&|| reasoning.clone().unwrap_or_default()),
        }
    }

    /// Its sort key.
    #[must_use]
    pub fn place(&self) -> Place {
        (self.round, self.item, self.agent, self.asker, self.n)
    }

    /// Whether it ended its request.
    #[must_use]
    pub fn ends(&self) -> bool {
        self.resolution != Resolution::Again.name()
    }

    /// Whether it ended its request without a reply.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.resolution == Resolution::Default.name() || self.resolution == Resolution::None.name()
    }

    fn bytes(&self) -> usize {
        size_of::<Call>() + self.prompt.len() + self.answer.len() + self.reasoning.len()
    }
}

/// The columns of the table.
pub(crate) fn columns(evaluation: bool) -> Vec<ColumnSpec> {
    let column = |name: &str, kind: Kind, doc: &str| ColumnSpec::new(name, kind, doc);
    let words = |all: &[&str]| Kind::Category(all.iter().map(|word| (*word).to_string()).collect());
    let who = if evaluation { "member of the team" } else { "who asked" };
    let item = evaluation.then(|| column("item", Kind::U32, "row of the data set"));
    let resolutions = Resolution::ALL.map(Resolution::name);
    let others = [
        column("round", Kind::U32, "the round in which the turn began, from 0"),
        column("agent", Kind::U32, who),
        column(
            "asker",
            words(&Asker::ALL.map(Asker::name)),
            "who asked: the agent in its turn, or its cohort or the world on its behalf; a member of a team, the \
             team's method, the scorer of its answer, or the method once a run (with item 0)",
        ),
        column("n", Kind::U32, "number of the asker's question for the agent in the round, from 0"),
        column("purpose", Kind::Text, "purpose of the question, in a word"),
        column("model", Kind::Text, "provider/model"),
        column("outcome", words(&Outcome::NAMES), "how it ended"),
        column(
            "resolution",
            words(&resolutions),
            "how the question was resolved: the reply fits as it came, after repair, or when reasked; the question is \
             asked again; its default is used; or no reply fits, and the asker was told so",
        ),
        column("attempt", Kind::U32, "how often the question was asked before"),
        column("tokens_in", Kind::U64, "tokens of the request"),
        column("tokens_out", Kind::U64, "tokens of the reply"),
        column("tokens_cached", Kind::U64, "how many of tokens_in were in the provider's cache"),
        column("tokens_thinking", Kind::U64, "how many of tokens_out were hidden thinking"),
        column(
            "cost_usd",
            Kind::F64,
            "cost in US dollars when the answer was first obtained; answers that share a call all show its cost, which \
             was paid only where shared is false; missing if the price of the model is not known",
        )
        .nullable(),
        column("latency_ms", Kind::F64, "latency in milliseconds (declared, for simulated models)").volatile(),
        column(
            "waited_ms",
            Kind::F64,
            "milliseconds before the request was sent: waiting for a connection, for rate limits and for failed tries",
        )
        .volatile(),
        column("retries", Kind::U32, "failed tries before this answer").volatile(),
        column("shared", Kind::Bool, "whether no call was made, because an identical request provided the answer")
            .volatile(),
        column(
            "estimated",
            Kind::Bool,
            "whether the server did not report token counts; the counts are then the most that the call can have used",
        ),
        column("prompt", Kind::Text, "all messages as they were sent, each under its role"),
        column("answer", Kind::Text, "the reply as it came; without one, the error message"),
        column("reasoning", Kind::Text, "what the model thought; empty if its provider does not show it"),
    ];
    item.into_iter().chain(others).collect()
}

/// Rows of the table, in batches limited in bytes.
pub(crate) struct Batches(std::iter::Peekable<std::vec::IntoIter<Call>>);

impl Batches {
    pub(crate) fn of(calls: Vec<Call>) -> Self {
        Batches(calls.into_iter().peekable())
    }
}

impl Iterator for Batches {
    type Item = Batch;

    fn next(&mut self) -> Option<Batch> {
        let mut calls = vec![self.0.next()?];
        let mut bytes = calls[0].bytes();
        while let Some(call) = self.0.next_if(|call| bytes + call.bytes() <= BATCH_BYTES) {
            bytes += call.bytes();
            calls.push(call);
        }
        Some(batch(calls))
    }
}

fn batch(mut calls: Vec<Call>) -> Batch {
    fn u32s(calls: &[Call], of: impl Fn(&Call) -> u32) -> Column {
        Column::U32(calls.iter().map(of).collect())
    }
    fn u64s(calls: &[Call], of: impl Fn(&Call) -> u64) -> Column {
        Column::U64(calls.iter().map(of).collect())
    }
    fn f64s(calls: &[Call], of: impl Fn(&Call) -> f64) -> Column {
        Column::F64(calls.iter().map(of).collect())
    }
    fn taken(calls: &mut [Call], of: impl Fn(&mut Call) -> &mut String) -> Column {
        Column::Text(calls.iter_mut().map(|call| std::mem::take(of(call))).collect())
    }
    fn codes(calls: &[Call], words: &[&str], of: impl Fn(&Call) -> &'static str) -> Column {
        let code = |call: &Call| words.iter().position(|word| *word == of(call)).unwrap_or(0) as u16;
        Column::Code(calls.iter().map(code).collect())
    }
    let rows = calls.len();
    let mut columns = Vec::new();
    if calls.iter().all(|call| call.item.is_some()) {
        columns.push(u32s(&calls, |call| call.item.unwrap_or(0)));
    }
    columns.extend([
        u32s(&calls, |call| call.round),
        u32s(&calls, |call| call.agent),
        codes(&calls, &Asker::ALL.map(Asker::name), |call| call.asker.name()),
        u32s(&calls, |call| call.n),
        taken(&mut calls, |call| &mut call.purpose),
        taken(&mut calls, |call| &mut call.model),
        codes(&calls, &Outcome::NAMES, |call| call.outcome),
        codes(&calls, &Resolution::ALL.map(Resolution::name), |call| call.resolution),
        u32s(&calls, |call| call.attempt),
        u64s(&calls, |call| call.tokens_in),
        u64s(&calls, |call| call.tokens_out),
        u64s(&calls, |call| call.tokens_cached),
        u64s(&calls, |call| call.tokens_thinking),
        Column::MaybeF64(calls.iter().map(|call| call.cost_usd).collect()),
        f64s(&calls, |call| call.latency_ms),
        f64s(&calls, |call| call.waited_ms),
        u32s(&calls, |call| call.retries),
        Column::Bool(calls.iter().map(|call| call.shared).collect()),
        Column::Bool(calls.iter().map(|call| call.estimated).collect()),
        taken(&mut calls, |call| &mut call.prompt),
        taken(&mut calls, |call| &mut call.answer),
        taken(&mut calls, |call| &mut call.reasoning),
    ]);
    Batch { rows, columns }
}

/// Answers of unrecorded rounds.
#[derive(Debug)]
pub(crate) struct Pending {
    /// Number of rounds after which a turn with requests is complete.
    lag: u32,
    evaluation: bool,
    texts: bool,
    /// Models whose price is not known.
    unpriced: Vec<String>,
    by_round: BTreeMap<u32, Vec<Call>>,
}

impl Pending {
    pub(crate) fn new(lag: u32, evaluation: bool, texts: bool) -> Self {
        Pending { lag, evaluation, texts, unpriced: Vec::new(), by_round: BTreeMap::new() }
    }

    /// Sets the models whose price is not known: what their calls cost is missing.
    pub(crate) fn unpriced(&mut self, models: Vec<String>) {
        self.unpriced = models;
    }

    /// Whether turns with requests are complete only in a later round.
    pub(crate) fn lags(&self) -> bool {
        self.lag > 0
    }

    /// Takes answers that round `next` or a later one uses.
    pub(crate) fn take_in<'a>(&mut self, answers: impl IntoIterator<Item = &'a Answer>, next: u32) {
        for answer in answers {
            if u64::from(answer.id.round) + u64::from(self.lag) >= u64::from(next) {
                let priced = !self.unpriced.iter().any(|model| **model == *answer.request.model);
                let call = Call::of(answer, self.evaluation, self.texts, priced);
                self.by_round.entry(call.round).or_default().push(call);
            }
        }
    }

    /// Returns what is used by the end of `round`, in order: all turns that began so long ago are complete.
    pub(crate) fn used_by(&mut self, round: u32) -> Vec<Call> {
        let Some(began) = round.checked_sub(self.lag) else { return Vec::new() };
        let later = self.by_round.split_off(&began.saturating_add(1));
        let mut calls: Vec<Call> = std::mem::replace(&mut self.by_round, later).into_values().flatten().collect();
        calls.sort_unstable_by_key(Call::place);
        calls
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_kernel::ask::{ChatMessage, EffectId, Request, ResponseFormat, Role, Usage};

    fn answer(round: u32, item: u32, actor: u32, n: u32, bytes: usize) -> Answer {
        let messages = vec![ChatMessage::text(Role::User, "x".repeat(bytes))];
        Answer {
            id: EffectId { item, round, actor, asker: Asker::Member, n },
            request: Request::new("sim/medium", messages, ResponseFormat::Text),
            outcome: Outcome::Refused { raw: "no".into() },
            usage: Usage::default(),
            reasoning: None,
        }
    }

    #[test]
    fn answers_wait_for_their_round_and_are_gone_with_it() {
        let mut pending = Pending::new(2, true, true);
        let all = [answer(1, 0, 0, 0, 3), answer(0, 5, 0, 1, 3), answer(0, 4, 1, 0, 3), answer(0, 4, 0, 0, 3)];
        pending.take_in(&all, 2);
        assert!(pending.used_by(1).is_empty(), "nothing is complete");
        let places: Vec<_> = pending.used_by(2).iter().map(Call::place).collect();
        assert_eq!(
            places,
            [(4, 0, 0), (4, 1, 0), (5, 0, 1)].map(|(item, agent, n)| (0, Some(item), agent, Asker::Member, n))
        );
        assert!(pending.used_by(2).is_empty());
        pending.take_in(&[answer(0, 9, 9, 9, 3)], 3);
        assert_eq!(pending.used_by(3).len(), 1, "what lies in closed parts is not taken in again");
        assert!(pending.by_round.is_empty());
    }

    #[test]
    fn a_cost_is_missing_where_the_price_is_not_known() {
        let mut pending = Pending::new(0, true, true);
        pending.unpriced(vec!["sim/medium".into()]);
        let mut told = answer(0, 1, 0, 0, 3);
        told.usage.cost_usd = 0.5;
        pending.take_in(&[answer(0, 0, 0, 0, 3), told], 0);
        let costs: Vec<Option<f64>> = pending.used_by(0).iter().map(|call| call.cost_usd).collect();
        assert_eq!(costs, [None, Some(0.5)]);
        assert_eq!(Call::of(&answer(0, 0, 0, 0, 3), true, true, true).cost_usd, Some(0.0));
    }

    #[test]
    fn long_texts_go_in_small_batches() {
        let sizes = [10, BATCH_BYTES, BATCH_BYTES * 3, BATCH_BYTES / 2, BATCH_BYTES / 4, 10];
        let calls = sizes.iter().map(|bytes| Call::of(&answer(0, 0, 0, 0, *bytes), false, true, true)).collect();
        let rows: Vec<usize> = Batches::of(calls).map(|batch| batch.rows).collect();
        assert_eq!(rows, [1, 1, 1, 3]);
        assert_eq!(columns(false).len() + 1, columns(true).len());
    }
}
