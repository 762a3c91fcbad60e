//! The targets of questions.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// What kind of thing a [`Target`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TargetKind {
    /// A language model or an embedding model: its calls cost tokens and count against `calls`.
    Model,
    /// A tool that runs on this machine, `tool/...`, or a toolkit of the scenario, `toolkit/...`: its calls count against `tool_calls`.
    Tool,
    /// A person, `human/...`: asked through the run's folder, without cost.
    Human,
}

impl TargetKind {
    /// Returns the kind of a full name. This is the only place that looks at the part before the slash.
    ///
    /// ```
    /// use polity_kernel::ask::TargetKind;
    ///
    /// assert_eq!(TargetKind::of("openai/gpt-4o"), TargetKind::Model);
    /// assert_eq!(TargetKind::of("tool/python"), TargetKind::Tool);
    /// assert_eq!(TargetKind::of("human/ann"), TargetKind::Human);
    /// ```
    #[must_use]
    pub fn of(name: &str) -> Self {
        match name.split_once('/') {
            Some(("tool" | "toolkit", _)) => TargetKind::Tool,
            Some(("human", _)) => TargetKind::Human,
            _ => TargetKind::Model,
        }
    }
}

/// A model, a tool or a person, by full name: `provider/model`. The kind is parsed once, when the name is read. Clones are cheap.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Target {
    name: Arc<str>,
    kind: TargetKind,
}

impl Target {
    /// Returns the full name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its kind.
    #[must_use]
    pub fn kind(&self) -> TargetKind {
        self.kind
    }
}

impl Deref for Target {
    type Target = str;

    fn deref(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl From<Arc<str>> for Target {
    fn from(name: Arc<str>) -> Self {
        Target { kind: TargetKind::of(&name), name }
    }
}

impl From<&str> for Target {
    fn from(name: &str) -> Self {
        Target::from(Arc::<str>::from(name))
    }
}

impl From<&String> for Target {
    fn from(name: &String) -> Self {
        Target::from(name.as_str())
    }
}

impl From<String> for Target {
    fn from(name: String) -> Self {
        Target::from(Arc::<str>::from(name))
    }
}

impl From<&Target> for Target {
    fn from(target: &Target) -> Self {
        target.clone()
    }
}

impl Serialize for Target {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.name)
    }
}

impl<'de> Deserialize<'de> for Target {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Target::from)
    }
}
