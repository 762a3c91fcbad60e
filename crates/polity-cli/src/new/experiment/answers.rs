//! The answers that make an experiment, checked in the order in which they are asked for.

use crate::args::FileAccess;
use crate::engine::plain_engine;
use crate::failure::{Failure, Source};
use crate::flags::load;
use polity_driver::run::{Engine, Extent, Prepared, prepare};
use polity_kernel::registry::Registry;
use polity_kernel::scenario::{Assembled, Scenario};
use polity_kernel::tree::{Node, Origin, TreeError, Value, nearest};
use polity_stats::FEW;
use polity_store::DriveError;
use polity_store::files::{Reach, yaml};
use serde::Deserialize;
use std::path::Path;

/// The keys, in the order in which they are asked for and checked.
pub(super) const KEYS: [&str; 12] = [
    "question",
    "because",
    "studied",
    "start",
    "factor",
    "control",
    "treatments",
    "placebo",
    "outcome",
    "expected",
    "seeds",
    "validation",
];

/// What is studied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Studied {
    /// Agents that follow rules.
    Rules,
    /// Agents for which models decide.
    Minds,
    /// Models that work on tasks together.
    Team,
}

impl Studied {
    /// Its word in the answers.
    pub(super) fn word(self) -> &'static str {
        match self {
            Studied::Rules => "rules",
            Studied::Minds => "minds",
            Studied::Team => "team",
        }
    }

    /// Its meaning.
    pub(super) fn meaning(self) -> &'static str {
        match self {
            Studied::Rules => "agents that follow rules; no model is asked",
            Studied::Minds => "a society in which models decide for agents",
            Studied::Team => "a team of models that works on tasks",
        }
    }
}

/// Where the outcome of the treatment arms is expected, compared with that of the control arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Expected {
    /// Above.
    Higher,
    /// Below.
    Lower,
    /// On either side.
    Different,
}

/// A pattern that the control arm must show.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Validation {
    pub metric: String,
    pub at_least: Option<f64>,
    pub at_most: Option<f64>,
    pub because: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Answers {
    question: Option<String>,
    because: Option<String>,
    studied: Option<Studied>,
    start: Option<String>,
    factor: Option<String>,
    control: Option<Node>,
    treatments: Option<Vec<Node>>,
    placebo: Option<Node>,
    outcome: Option<String>,
    expected: Option<Expected>,
    seeds: Option<u32>,
    validation: Option<Validation>,
}

/// What is wrong with an answer.
#[derive(Debug)]
pub(super) struct Fault {
    /// The key of the answer.
    pub key: String,
    /// What is wrong, its place, and what to do.
    pub error: Box<TreeError>,
    /// The error of the scenario to start from, as it is shown elsewhere.
    of_start: Option<Failure>,
}

impl Fault {
    fn new(key: &str, message: impl Into<String>, help: Option<String>) -> Fault {
        let error = TreeError { message: message.into(), path: key.into(), origin: Origin::Built, help };
        Fault { key: key.into(), error: Box::new(error), of_start: None }
    }

    fn missing(key: &str, help: &str) -> Fault {
        Fault::new(key, "this answer is missing", Some(help.into()))
    }

    /// The error for people, pointing into the answers.
    pub(super) fn failure(self, source: &Source) -> Failure {
        self.of_start.unwrap_or_else(|| source.failure(&self.error))
    }

    /// The same in a dialogue, which has no file to point into.
    pub(super) fn told(&self) -> String {
        match (&self.of_start, &self.error.help) {
            (Some(failure), _) => failure.message.trim_end().to_owned(),
            (None, Some(help)) => format!("{}; {help}", self.error.message),
            (None, None) => self.error.message.clone(),
        }
    }
}

/// The scenario that an experiment starts from.
pub(super) struct Start {
    /// As it was given.
    pub name: String,
    /// Its text.
    pub text: String,
    /// Its tree, with any design of its own.
    pub tree: Node,
    /// Which files it may read.
    pub reach: Reach,
    /// The models that it asks.
    pub models: Vec<String>,
    /// Agents, or members of the team.
    pub agents: u32,
    /// The metrics that it measures; some have several results, with names of their own after a dot.
    pub metrics: Vec<String>,
    is_team: bool,
}

/// An arm of the experiment.
pub(super) struct Arm {
    pub name: String,
    /// Its settings: paths and values.
    pub set: Vec<(String, Node)>,
    /// The scenario with them.
    pub tree: Node,
}

/// An experiment whose answers are checked.
pub(super) struct Plan {
    pub question: String,
    pub because: Option<String>,
    pub studied: Studied,
    pub start: Start,
    pub factor: String,
    /// The control arm first, then treatments, then the placebo.
    pub arms: Vec<Arm>,
    pub has_placebo: bool,
    pub outcome: String,
    pub expected: Expected,
    pub seeds: u32,
    pub validation: Validation,
}

impl Plan {
    /// The seed of each arm's first run.
    pub(super) fn first_seed(&self) -> u64 {
        match self.start.tree.get("seed").map(|seed| &seed.value) {
            Some(Value::Int(seed)) => u64::try_from(*seed).unwrap_or(1),
            _ => 1,
        }
    }

    /// Number of treatment arms.
    pub(super) fn treatments(&self) -> usize {
        self.arms.len() - 1 - usize::from(self.has_placebo)
    }
}

/// Reads and checks answers.
pub(super) struct Reading<'a> {
    pub registry: &'a Registry,
    pub engine: Engine<'a>,
}

impl<'a> Reading<'a> {
    pub(super) fn new(registry: &'a Registry) -> Self {
        Reading { registry, engine: Engine { asks: false, ..plain_engine(registry) } }
    }

    /// Reads all answers. The fault is that of the first wrong or missing key in the order of [`KEYS`].
    pub(super) fn plan(&self, text: &str) -> Result<Plan, Fault> {
        let of_tree = |error: TreeError| {
            let key = error.path.split(['.', '[']).next().unwrap_or_default().to_owned();
            Fault { key, error: Box::new(error), of_start: None }
        };
        let tree = yaml::parse(text).map_err(of_tree)?;
        let answers: Answers = tree.read("").map_err(of_tree)?;
        self.check(answers).map_err(|mut fault| {
            if fault.error.origin == Origin::Built {
                fault.error.origin = tree.get(&fault.key).map_or(&tree.origin, |node| &node.origin).clone();
            }
            fault
        })
    }

    fn check(&self, answers: Answers) -> Result<Plan, Fault> {
        let written = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
        let question = written(&answers.question)
            .ok_or_else(|| Fault::missing("question", "write what you want to find out, in one sentence"))?;
        let studied = answers.studied.ok_or_else(|| Fault::missing("studied", "write rules, minds or team"))?;
        let start = written(&answers.start).ok_or_else(|| {
            Fault::missing("start", "write the name of a leaf (polity list worlds) or of a scenario file")
        })?;
        let start = self.start(&start)?;
        fits(studied, &start)?;
        let factor = written(&answers.factor)
            .ok_or_else(|| Fault::missing("factor", "write a key of the scenario, for instance world.fraction"))?;
        let mut arms = self.arms(&start, &factor, answers.control, answers.treatments)?;
        let has_placebo = answers.placebo.is_some();
        if let Some(placebo) = answers.placebo {
            arms.push(self.placebo(&start, &factor, placebo, &arms)?);
        }
        let outcome = written(&answers.outcome)
            .ok_or_else(|| Fault::missing("outcome", &format!("write a metric: {}", start.metrics.join(", "))))?;
        measures(&start, "outcome", &outcome)?;
        let expected =
            answers.expected.ok_or_else(|| Fault::missing("expected", "write higher, lower or different"))?;
        let seeds = answers.seeds.ok_or_else(|| Fault::missing("seeds", "write a number of seeds, for instance 12"))?;
        if (seeds as usize) < FEW {
            let message = format!("{seeds} seeds are too few: with fewer than {FEW}, no difference has a verdict");
            return Err(Fault::new("seeds", message, Some(format!("write {FEW} or more; 12 is a start"))));
        }
        let help = "write a pattern that the control arm must show: {metric: METRIC, at_least: NUMBER}";
        let validation = answers.validation.ok_or_else(|| Fault::missing("validation", help))?;
        bounded(&start, &validation)?;
        let because = written(&answers.because);
        Ok(Plan { question, because, studied, start, factor, arms, has_placebo, outcome, expected, seeds, validation })
    }

    /// Opens the scenario to start from.
    pub(super) fn start(&self, name: &str) -> Result<Start, Fault> {
        let path = Path::new(name);
        let failed = |failure: Failure| Fault {
            of_start: Some(failure),
            ..Fault::new("start", format!("`{name}` is no scenario that can be started from"), None)
        };
        let (prepared, source) = load(path, &FileAccess::default(), &[], Vec::new(), self.registry).map_err(failed)?;
        let machine = self.engine.assemble(&prepared).map_err(|error| failed(source.failure(&error)))?;
        let scenario = Scenario::read(&prepared.tree).map_err(|error| failed(source.failure(&error)))?;
        let tree = yaml::parse(&source.text).map_err(|error| failed(source.failure(&error)))?;
        Ok(Start {
            name: name.into(),
            tree,
            reach: Reach::of(path.parent().unwrap_or(Path::new(".")), &[]),
            models: machine.models(),
            agents: machine.agents(),
            metrics: metrics(&scenario, &machine),
            is_team: machine.evaluation().is_some(),
            text: source.text,
        })
    }

    /// The control arm and the treatment arms.
    fn arms(
        &self,
        start: &Start,
        factor: &str,
        control: Option<Node>,
        treatments: Option<Vec<Node>>,
    ) -> Result<Vec<Arm>, Fault> {
        let own = start.tree.find(factor);
        let control = control.or_else(|| own.cloned()).ok_or_else(|| {
            let message = format!("the scenario does not set `{factor}`, so the control arm needs a value");
            Fault::new("control", message, Some("write `control: VALUE`, or correct `factor`".into()))
        })?;
        let key = if own.is_some() { "control" } else { "factor" };
        let mut arms = vec![self.arm(start, key, "control", vec![(factor.into(), control)])?];
        let help = "write at least one other value of the factor, for instance `treatments: [0.5]`";
        let treatments = treatments.ok_or_else(|| Fault::missing("treatments", help))?;
        if treatments.is_empty() {
            let message = "there is only the control arm, so there is nothing to compare it with";
            return Err(Fault::new("treatments", message, Some(help.into())));
        }
        for (i, value) in treatments.iter().enumerate() {
            let label = label(value).filter(|label| arms.iter().all(|arm| arm.name != format!("treatment-{label}")));
            let name = match label {
                Some(label) => format!("treatment-{label}"),
                None => format!("treatment-{}", i + 1),
            };
            let arm = self.arm(start, "treatments", &name, vec![(factor.into(), value.clone())])?;
            let same = arms.iter().find(|other| other.tree.to_json() == arm.tree.to_json());
            if let Some(other) = same {
                let message = format!("the arms `{}` and `{name}` are the same scenario", other.name);
                return Err(Fault::new("treatments", message, Some(help.into())));
            }
            arms.push(arm);
        }
        Ok(arms)
    }

    /// The placebo arm: the control arm with other settings.
    fn placebo(&self, start: &Start, factor: &str, placebo: Node, arms: &[Arm]) -> Result<Arm, Fault> {
        let help = || Some("write keys and values, for instance `placebo: {world.announce: nothing}`".to_owned());
        let Value::Map(entries) = placebo.value else {
            let message = format!("expected a map of keys and values, found {}", placebo.describe());
            return Err(Fault::new("placebo", message, help()));
        };
        if entries.is_empty() {
            return Err(Fault::new("placebo", "a placebo changes something that must not matter", help()));
        }
        if entries.iter().any(|(key, _)| key.name == factor) {
            let message = format!("the placebo sets `{factor}`, which is the factor");
            return Err(Fault::new("placebo", message, help()));
        }
        let mut set = arms.first().map(|control| control.set.clone()).unwrap_or_default();
        set.extend(entries.into_iter().map(|(key, value)| (key.name, value)));
        let arm = self.arm(start, "placebo", "placebo", set)?;
        match arms.iter().find(|other| other.tree.to_json() == arm.tree.to_json()) {
            Some(other) => {
                let message = format!("the placebo is the same scenario as the arm `{}`", other.name);
                Err(Fault::new("placebo", message, help()))
            }
            None => Ok(arm),
        }
    }

    /// An arm, checked as `polity validate` does.
    fn arm(&self, start: &Start, key: &str, name: &str, set: Vec<(String, Node)>) -> Result<Arm, Fault> {
        const FIXED: [&str; 5] = ["seed", "design", "polity", "name", "description"];
        let wrong = |error: DriveError| match error {
            DriveError::Scenario(error) => Fault::new(key, format!("in the arm `{name}`: {error}"), error.help.clone()),
            error => Fault::new(key, format!("in the arm `{name}`: {error}"), None),
        };
        if let Some((path, _)) = set.iter().find(|(path, _)| FIXED.contains(&first_step(path))) {
            let message = format!("`{}` is the same in all arms", first_step(path));
            return Err(Fault::new(if key == "control" { "factor" } else { key }, message, None));
        }
        let mut tree = start.tree.clone();
        tree.take("design");
        // Without a place of their own: errors are those of the answers.
        let edits = set.iter().map(|(path, value)| (path.clone(), placeless(value))).collect();
        let prepared = prepare(tree, &start.name, start.reach.clone(), "experiment", edits).map_err(wrong)?;
        self.engine.validate(&prepared, Extent::Outline).map_err(wrong)?;
        let Prepared { tree, .. } = prepared;
        Ok(Arm { name: name.into(), set, tree })
    }
}

/// The same value without positions.
fn placeless(value: &Node) -> Node {
    Node::from_json(&value.to_json())
}

/// The first step of a path.
fn first_step(path: &str) -> &str {
    path.split(['.', '[']).next().unwrap_or_default()
}

/// A value as a part of an arm's name, if it is a short plain word.
fn label(value: &Node) -> Option<String> {
    let text = match &value.value {
        Value::Text(text) => text.clone(),
        Value::Map(_) | Value::List(_) | Value::Null => return None,
        _ => value.to_json().to_string(),
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    (!text.is_empty() && text.len() <= 24 && text.chars().all(plain)).then_some(text)
}

/// The metrics that a scenario measures.
fn metrics(scenario: &Scenario, machine: &Assembled) -> Vec<String> {
    let text = |node: &Node, key: &str| match node.get(key).map(|node| &node.value) {
        Some(Value::Text(text)) => Some(text.clone()),
        _ => None,
    };
    let mut names = Vec::new();
    if let Some(society) = machine.society() {
        let asked = scenario.metrics.iter();
        names.extend(asked.filter_map(|node| Some(format!("{}.{}", text(node, "of")?, text(node, "kind")?))));
        names.extend(society.interface().scalars.iter().map(|scalar| scalar.name.to_string()));
        let compared = scenario.validate.iter();
        names.extend(compared.filter_map(|node| Some(format!("validation.{}", text(node, "of")?))));
    }
    if let Some(evaluation) = machine.evaluation() {
        names.extend(["items.correct", "members.correct", "teams.agreed"].map(String::from));
        names.extend(evaluation.quantities().iter().map(|quantity| quantity.name.to_owned()));
    }
    names
}

/// Refuses a metric that the scenario does not measure.
fn measures(start: &Start, key: &str, metric: &str) -> Result<(), Fault> {
    let is = |known: &String| {
        metric.strip_prefix(known.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    if start.metrics.iter().any(is) {
        return Ok(());
    }
    let near = nearest(metric, start.metrics.iter().map(String::as_str));
    let near = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    let known = match start.metrics.is_empty() {
        true => "it measures nothing".into(),
        false => format!("it measures {}", start.metrics.join(", ")),
    };
    let help =
        format!("{known}; for another metric, add it to `metrics:` of a copy of the scenario, and start from that");
    Err(Fault::new(key, format!("the scenario does not measure `{metric}`{near}"), Some(help)))
}

/// Refuses a scenario of another kind than what is studied.
fn fits(studied: Studied, start: &Start) -> Result<(), Fault> {
    let found = match (start.is_team, start.models.is_empty()) {
        (true, _) => Studied::Team,
        (false, false) => Studied::Minds,
        (false, true) => Studied::Rules,
    };
    if found == studied {
        return Ok(());
    }
    let message = format!(
        "`{}` is {}, but `studied: {}` means {}",
        start.name,
        found.meaning(),
        studied.word(),
        studied.meaning()
    );
    Err(Fault::new(
        "start",
        message,
        Some(format!("write `studied: {}`, or start from another scenario", found.word())),
    ))
}

/// Refuses a pattern without a bound, or one that nothing can show.
fn bounded(start: &Start, validation: &Validation) -> Result<(), Fault> {
    let fault = |message: String, help: &str| Err(Fault::new("validation", message, Some(help.into())));
    measures(start, "validation", &validation.metric)?;
    match (validation.at_least, validation.at_most) {
        (None, None) => fault("a pattern needs a bound".into(), "add `at_least: NUMBER`, `at_most: NUMBER`, or both"),
        (Some(low), Some(high)) if low > high => {
            fault(format!("no value is at least {low} and at most {high}"), "exchange the two bounds")
        }
        _ => Ok(()),
    }
}
