//! Which earlier replies a request shows.
//!
//! Statements of members are typed parts of a request: they are matched by their words and their speaker. Drafts, plans and the output of
//! programs stand in plain text: they are found word for word. Letters and numbers in plain text are not recognised.

use polity_kernel::ask::{Answer, ChatMessage, Outcome, Part, ResponseFormat, Role, Task, Value};
use std::collections::BTreeSet;

/// The fewest characters by which a reply is recognised in plain text.
const SHORTEST: usize = 20;

/// An answer to a question about an item, with the texts of its reply.
pub(super) struct Replied<'a> {
    pub answer: &'a Answer,
    pub texts: Vec<String>,
}

impl<'a> Replied<'a> {
    pub fn of(answer: &'a Answer) -> Self {
        let mut texts = Vec::new();
        if let Outcome::Reply { value, .. } = &answer.outcome {
            gather(value, &answer.request.response_format, &mut texts);
        }
        Replied { answer, texts }
    }

    /// How well the reply fits a statement: 2 by answer and reasons, 1 by one of them, 0 not at all.
    fn fits(&self, answer: &str, reasons: &str) -> u8 {
        let has = |words: &str| !words.trim().is_empty() && self.texts.iter().any(|text| text == words.trim());
        match (has(answer), has(reasons)) {
            (true, right) if right || reasons.trim().is_empty() => 2,
            (true, _) => 1,
            (false, true) if is_long(reasons) => 1,
            _ => 0,
        }
    }
}

fn is_long(text: &str) -> bool {
    text.chars().nth(SHORTEST - 1).is_some()
}

/// Collects the texts of a value: its fields, and the options that it names.
fn gather(value: &Value, form: &ResponseFormat, into: &mut Vec<String>) {
    match (value, form) {
        (Value::Text(text), _) => into.push(text.trim().to_owned()),
        (Value::Choice(at), ResponseFormat::Choice(options)) => into.extend(options.get(*at as usize).cloned()),
        (Value::Number(number), _) => into.push(number.to_string()),
        (Value::List(values), ResponseFormat::List { of, .. }) => {
            values.iter().for_each(|value| gather(value, of, into))
        }
        (Value::Calls { text, calls }, _) => {
            into.push(text.trim().to_owned());
            let arguments = calls.iter().flat_map(|call| call.read().into_iter());
            into.extend(arguments.filter_map(|(_, value)| Some(value.as_str()?.trim().to_owned())));
        }
        (Value::Record(values), ResponseFormat::Record(fields)) => {
            values.iter().zip(fields).for_each(|(value, (_, form))| gather(value, form, into));
        }
        _ => {}
    }
}

/// What a request shows.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Shown {
    /// Whether it holds the item's question.
    pub question: bool,
    /// The earlier calls on the item whose replies it shows.
    pub replies: BTreeSet<usize>,
    /// Statements that are in no earlier reply on the item.
    pub unknown: usize,
    /// Its words without the question and the replies: the prompt that stays the same.
    pub frame: String,
}

/// Returns what the request of a call shows. `replied`: all calls on the item, in the order of their answers; `names`: the members'.
pub(super) fn shown(replied: &[Replied<'_>], at: usize, names: &[String], question: &str) -> Shown {
    let Some(Replied { answer, .. }) = replied.get(at) else { return Shown::default() };
    let mut reading =
        Reading { replied: replied.get(..at).unwrap_or_default(), answer, names, question, shown: Shown::default() };
    for message in answer.request.messages.iter() {
        reading.shown.frame.push_str(message.role.name());
        for part in &message.parts {
            match part {
                Part::Text(text) => reading.plain(text),
                Part::Said { by, answer: said, reasons } => {
                    let speaker =
                        if message.role == Role::Assistant { Some(answer.id.actor) } else { reading.speaker(by) };
                    reading.statement(speaker, said, reasons);
                }
                Part::Finding { by, words, .. } => {
                    let speaker = reading.speaker(by);
                    reading.finding(speaker, words);
                }
                Part::Calls(_) | Part::Result(_) => {
                    reading.plain(&ChatMessage { role: message.role, parts: vec![part.clone()] }.rendered());
                }
            }
        }
    }
    reading.shown
}

/// A request that is being read.
struct Reading<'a> {
    /// The calls answered before it was.
    replied: &'a [Replied<'a>],
    answer: &'a Answer,
    names: &'a [String],
    question: &'a str,
    shown: Shown,
}

impl Reading<'_> {
    /// The member of that name.
    fn speaker(&self, by: &str) -> Option<u32> {
        self.names.iter().position(|name| name == by).map(|at| at as u32)
    }

    /// How likely a call is the one that is shown, among those with the same words. Calls that are asked side by side do not see each
    /// other, so an earlier round counts more than the same one, unless the call follows within the round.
    fn order(&self, at: usize) -> (bool, u8, u32, u32, usize) {
        let (own, id) = (self.answer, self.replied.get(at).map(|replied| replied.answer));
        let class = id.map_or(0, |other| {
            let follows = other.request.purpose != own.request.purpose
                || (other.id.actor == own.id.actor && other.id.n < own.id.n);
            if other.id.round < own.id.round {
                1
            } else if follows {
                2
            } else {
                0
            }
        });
        let (round, n) = id.map_or((0, 0), |other| (other.id.round, other.id.n));
        (!self.shown.replies.contains(&at), class, round, n, at)
    }

    /// Reads a typed statement.
    fn statement(&mut self, speaker: Option<u32>, answer: &str, reasons: &str) {
        let fits = |at: &usize| {
            let replied = self.replied.get(*at)?;
            let fits = replied.fits(answer, reasons);
            let by = speaker.is_none_or(|speaker| speaker == replied.answer.id.actor);
            // Many members give the same short answer: then the name decides.
            let enough = fits > 0 && (by || is_long(reasons) || is_long(answer));
            enough.then(|| (fits, by, self.order(*at)))
        };
        match (0..self.replied.len()).filter_map(|at| fits(&at).map(|rank| (rank, at))).max() {
            Some((_, at)) => {
                self.shown.replies.insert(at);
            }
            None => self.shown.unknown += 1,
        }
    }

    /// Reads a finding: it quotes the replies of reviewers, or else is the verdict of the last check by its speaker.
    fn finding(&mut self, speaker: Option<u32>, words: &str) {
        let quotes = self.quotes(words);
        let checked = |replied: &Replied<'_>| {
            replied.answer.request.purpose == Task::Check.name()
                && speaker.is_none_or(|speaker| speaker == replied.answer.id.actor)
        };
        match self.replied.iter().rposition(checked) {
            _ if !quotes.is_empty() => self.shown.replies.extend(quotes.iter().map(|(_, at)| *at)),
            Some(at) => {
                self.shown.replies.insert(at);
            }
            None => self.statement(speaker, "", words),
        }
    }

    /// Reads plain text: it may quote replies.
    fn plain(&mut self, text: &str) {
        let mut quotes = self.quotes(text);
        // The longest quotations: what lies within one is part of it.
        let all: Vec<(usize, usize)> = quotes.iter().map(|(span, _)| *span).collect();
        quotes.retain(|((from, to), _)| {
            !all.iter().any(|(start, end)| start <= from && to <= end && end - start > to - from)
        });
        let question = (!self.question.is_empty()).then(|| text.find(self.question)).flatten();
        self.shown.question |= question.is_some();
        let mut spans: BTreeSet<(usize, usize)> = quotes.iter().map(|(span, _)| *span).collect();
        spans.extend(question.map(|from| (from, from + self.question.len())));
        for span in &spans {
            let calls = quotes.iter().filter(|(other, _)| other == span).map(|(_, at)| *at);
            if let Some(at) = calls.max_by_key(|at| self.order(*at)) {
                self.shown.replies.insert(at);
            }
        }
        let mut done = 0;
        for (from, to) in spans {
            self.shown.frame.push_str(text.get(done..from).unwrap_or_default());
            self.shown.frame.push('…');
            done = done.max(to);
        }
        self.shown.frame.push_str(text.get(done..).unwrap_or_default());
    }

    /// Where the text repeats a reply: the place, and the call.
    fn quotes(&self, text: &str) -> Vec<((usize, usize), usize)> {
        let mut quotes = Vec::new();
        for (at, replied) in self.replied.iter().enumerate() {
            for words in replied.texts.iter().filter(|words| is_long(words) && !self.question.contains(words.as_str()))
            {
                quotes.extend(text.find(words.as_str()).map(|from| ((from, from + words.len()), at)));
            }
        }
        quotes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_kernel::ask::{Asker, ChatMessage, EffectId, Request, Usage};

    const LONG: &str = "a draft with more than twenty characters";

    /// A reply with reasons and an answer.
    fn call(round: u32, actor: u32, parts: Vec<Part>, reasons: &str, answer: &str) -> Answer {
        let fields = ["reasons", "answer"].map(|name| (name.to_owned(), ResponseFormat::Text)).to_vec();
        let messages = vec![ChatMessage { role: Role::User, parts }];
        let value = Value::Record(vec![Value::Text(reasons.into()), Value::Text(answer.into())]);
        Answer {
            id: EffectId { item: 0, round, actor, asker: Asker::Member, n: 0 },
            request: Request {
                purpose: "solve".into(),
                ..Request::new("sim/medium", messages, ResponseFormat::Record(fields))
            },
            outcome: Outcome::Reply { value, raw: String::new(), repaired: false },
            usage: Usage::default(),
            reasoning: None,
        }
    }

    fn said(by: &str, answer: &str, reasons: &str) -> Part {
        Part::Said { by: by.into(), answer: answer.into(), reasons: reasons.into() }
    }

    fn last(calls: &[Answer]) -> Shown {
        let replied: Vec<Replied<'_>> = calls.iter().map(Replied::of).collect();
        shown(&replied, calls.len() - 1, &["Ann".into(), "Bob".into()], "How many?")
    }

    fn asks() -> Vec<Part> {
        vec![Part::Text("How many?".into()), Part::Text("Think.".into())]
    }

    #[test]
    fn the_speaker_decides_between_members_who_say_the_same() {
        let calls =
            [call(0, 0, asks(), "", "4"), call(0, 1, asks(), "", "4"), call(1, 0, vec![said("Bob", "4", "")], "", "4")];
        assert_eq!(last(&calls).replies, BTreeSet::from([1]));
        // The answer of another member is not Bob's, and a short answer under an unknown name may be anybody's.
        let calls =
            [call(0, 0, asks(), "", "5"), call(0, 1, asks(), "", "4"), call(1, 0, vec![said("Bob", "5", "")], "", "4")];
        assert_eq!((last(&calls).replies, last(&calls).unknown), (BTreeSet::new(), 1));
        let calls = [
            call(0, 0, asks(), "", "5"),
            call(0, 1, asks(), "", "4"),
            call(1, 0, vec![said("Answer 1", "5", "")], "", "4"),
        ];
        assert_eq!(last(&calls).replies, BTreeSet::from([0]));
    }

    #[test]
    fn members_asked_side_by_side_are_given_the_round_before() {
        let calls =
            [call(0, 1, asks(), "", "4"), call(1, 1, asks(), "", "4"), call(1, 0, vec![said("Bob", "4", "")], "", "4")];
        assert_eq!(last(&calls).replies, BTreeSet::from([0]), "Bob's answer of the same round came first by chance");
        let mut calls = calls;
        calls[2].request.purpose = "choose".into();
        assert_eq!(last(&calls).replies, BTreeSet::from([1]), "a choice follows on the answers of its round");
        // The same words twice are two replies.
        calls[2].request.messages =
            vec![ChatMessage { role: Role::User, parts: vec![said("Bob", "4", ""), said("Bob", "4", "")] }].into();
        assert_eq!(last(&calls).replies, BTreeSet::from([0, 1]));
    }

    #[test]
    fn plain_text_is_read_word_for_word_and_leaves_the_prompt() {
        let quoted = format!("How many?\nThe draft: {LONG}. Improve it.");
        let calls = [
            call(0, 0, asks(), LONG, "4"),
            call(0, 0, asks(), "a draft with more than", "5"),
            call(1, 0, vec![Part::Text(quoted)], "", "4"),
        ];
        let shown = last(&calls);
        assert_eq!(
            shown.replies,
            BTreeSet::from([0]),
            "the shorter text is part of the longer one; numbers do not count"
        );
        assert!(shown.question);
        assert_eq!(shown.frame, "user…\nThe draft: …. Improve it.");
        let alone = last(&calls[..1]);
        assert_eq!((alone.question, alone.replies.len(), alone.frame.as_str()), (true, 0, "user…Think."));
    }
}
