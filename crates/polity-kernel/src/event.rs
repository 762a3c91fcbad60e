//! The records of a run's journal. For their frames see [`crate::journal`].

use crate::AgentId;
use crate::ask::{Answer, Constrain, EffectId, Usage};
use crate::digest::Digest;
use crate::machine::Outcome;
use crate::scenario::Limits;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A record of the journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Event {
    /// The manifest, verbatim. Written first, and again before the manifest changes.
    Manifest(String),
    /// Answers, durable before they are used.
    Answers(Vec<Answer>),
    /// A round is complete.
    Round {
        /// Which.
        round: u32,
        /// The sum over its rows.
        sum: Digest,
        /// The chain up to and including it.
        chain: Digest,
    },
    /// A snapshot is durable, and so are the tables up to the round before. Its parts count from this record on.
    Snapshot {
        /// The first round after the snapshot.
        round: u32,
        /// Digest of the state, made from the digests of its chunks.
        bytes: Digest,
        /// The parts of tables that were closed for it.
        parts: Vec<Part>,
    },
    /// The process stopped by itself before the end.
    Stopped {
        /// Why.
        reason: String,
    },
    /// The run has ended.
    Ended {
        /// How.
        outcome: Outcome,
        /// The last parts of its tables, valid from this record on.
        parts: Vec<Part>,
    },
    /// Calls that are made although they might have exceeded the budget. They are decided together when nothing is in flight, and
    /// journaled before their results, so that a resumed run makes the same ones.
    Wave(Vec<EffectId>),
    /// The run's budget is used up. The run continues with a larger one.
    Exhausted {
        /// Which limit, and how much is spent.
        reason: String,
    },
    /// A request without an answer. If its provider may have answered it after all, it counts as a call, at the most that it can
    /// have taken. A rejected request takes nothing. Journaled before the next try.
    Broke {
        /// The effect that was requested.
        id: EffectId,
        /// The most that the request can have taken; `None` if it was rejected.
        charged: Option<Usage>,
    },
    /// A person gave the running run an order. Durable before it is carried out.
    Ordered {
        /// What.
        order: Order,
        /// When, in milliseconds since 1970 by the clock of the process that received it.
        at_ms: u64,
    },
    /// Requests, journaled before they are sent. A request followed by neither an answer nor [`Event::Broke`] was in flight when
    /// the process was killed; a resumed run counts it at its maximum.
    Sent(Vec<Sent>),
    /// From now on a server uses another format of request, or uses one again.
    Form {
        /// The model.
        model: String,
        /// The constraint mode that changed.
        way: Constrain,
        /// Whether it is used from now on.
        used: bool,
        /// What the server said.
        why: String,
    },
    /// The run goes back to an older snapshot because newer ones are lost. Newer snapshots no longer count, nor do parts that hold
    /// this round or later ones.
    Rewound {
        /// The round with which it continues.
        round: u32,
    },
}

/// A request on its way to a provider.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sent {
    /// The requested effect.
    pub id: EffectId,
    /// The most that the request can take.
    pub most: Usage,
}

/// A closed part of a table, as its file was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The table's name.
    pub table: String,
    /// The first round whose rows it may hold.
    pub first: u32,
    /// The last one.
    pub last: u32,
    /// Its rows.
    pub rows: u64,
    /// Bytes of its file.
    pub bytes: u64,
    /// Digest of these bytes, by [`crate::digest::FileHash`].
    pub digest: Digest,
}

/// An order that a person may give a running run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Start nothing new, and pause at the end of the round.
    Pause,
    /// Continue.
    Resume,
    /// Finish what is in flight, save and stop.
    Stop,
    /// Change limits; `None` keeps the old value.
    Set {
        /// Maximum number of calls in flight, of this process.
        connections: Option<u32>,
        /// What the run may spend in total, including what it has spent.
        limits: Limits,
    },
    /// Continue for some rounds, then pause.
    Step {
        /// How many.
        rounds: u32,
    },
    /// Go on with other parameters from the next round on. The scenario in the manifest then has a change at that round, so a replay
    /// makes it, too.
    Change {
        /// Edits of the scenario, `PATH=VALUE`.
        edits: Vec<String>,
    },
}

impl Order {
    /// Sends a text in the name of an agent in the next round, to some agents, or to its neighbours. It is a change of the scenario's
    /// `messages`.
    #[must_use]
    pub fn message(from: AgentId, to: Option<&[AgentId]>, text: &str) -> Order {
        let mut message = serde_json::json!({ "from": from, "text": text });
        if let Some(to) = to {
            message["to"] = to.into();
        }
        Order::Change { edits: vec![format!("messages=[{message}]")] }
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (connections, limits) = match self {
            Order::Pause => return f.write_str("pause"),
            Order::Resume => return f.write_str("resume"),
            Order::Stop => return f.write_str("stop"),
            Order::Step { rounds } => return write!(f, "step {rounds}"),
            Order::Change { edits } => return write!(f, "change {}", edits.join(" ")),
            Order::Set { connections, limits } => (connections, limits),
        };
        let values = [
            ("max-connections", connections.map(|n| n.to_string())),
            ("max-cost", limits.cost_usd.map(|usd| usd.to_string())),
            ("max-tokens", limits.tokens.map(|n| n.to_string())),
            ("max-calls", limits.calls.map(|n| n.to_string())),
            ("max-requests", limits.requests.map(|n| n.to_string())),
            ("max-tool-calls", limits.tool_calls.map(|n| n.to_string())),
        ];
        f.write_str("set")?;
        values
            .iter()
            .filter_map(|(key, value)| Some((key, value.as_ref()?)))
            .try_for_each(|(k, v)| write!(f, " {k}={v}"))
    }
}

impl Event {
    /// The kind of [`Event::Manifest`].
    pub const MANIFEST: u8 = 1;
    /// The kind of [`Event::Round`].
    pub const ROUND: u8 = 3;
    /// The kind of [`Event::Snapshot`].
    pub const SNAPSHOT: u8 = 4;
    /// The kind of [`Event::Ended`].
    pub const ENDED: u8 = 6;
    /// The kind of [`Event::Ordered`].
    pub const ORDERED: u8 = 10;
    /// The kind of [`Event::Form`].
    pub const FORM: u8 = 12;
    /// The kind of [`Event::Rewound`].
    pub const REWOUND: u8 = 20;

    /// Returns the number of this kind of record in a frame. Never renumber.
    #[must_use]
    pub fn kind(&self) -> u8 {
        match self {
            Event::Manifest(_) => Event::MANIFEST,
            Event::Answers(_) => 2,
            Event::Round { .. } => Event::ROUND,
            Event::Snapshot { .. } => Event::SNAPSHOT,
            Event::Stopped { .. } => 5,
            Event::Ended { .. } => Event::ENDED,
            Event::Wave(_) => 7,
            Event::Exhausted { .. } => 8,
            Event::Broke { .. } => 9,
            Event::Ordered { .. } => Event::ORDERED,
            Event::Sent(_) => 11,
            Event::Form { .. } => Event::FORM,
            Event::Rewound { .. } => Event::REWOUND,
        }
    }

    /// Returns the payload of its frame.
    pub fn encode(&self) -> Result<Vec<u8>, postcard::Error> {
        postcard::to_allocvec(self)
    }

    /// Reads a payload back.
    pub fn decode(kind: u8, payload: &[u8]) -> Result<Event, String> {
        let event: Event = postcard::from_bytes(payload).map_err(|e| e.to_string())?;
        if event.kind() != kind {
            return Err(format!("its frame has kind {kind}, but its content has kind {}", event.kind()));
        }
        Ok(event)
    }
}
