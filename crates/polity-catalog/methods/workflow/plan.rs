//! The steps of a workflow, and what must hold of them before a run.

use super::Params;
use polity_kernel::Invalid;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value as Json};
use std::collections::BTreeSet;

/// Bound of `most` and `samples`.
const MOST: u32 = 1000;
/// What a template may hold besides ids of steps: the item's question.
pub(super) const QUESTION: &str = "question";
/// Begins a column of the item's row in a template.
pub(super) const ROW: &str = "row.";

/// A step: exactly one of `ask`, `act`, `call`, `run`, `vote`, `choose`, `review`, `revise`, `text`, `repeat` and `each`, and what belongs
/// to it. Texts may hold `{question}`, the id of a step, the name of an element of `each`, and `{row.COLUMN}`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Step {
    /// Its id, under which others use its output. A later step with the same id replaces the output.
    pub id: Option<String>,
    /// When it is done. Default: always.
    pub when: Option<When>,
    /// The member that does it, by name. Default: the first.
    pub member: Option<String>,
    /// The part of the item that is asked for, such as `plan`. Without it the member is asked for the answer of the item.
    pub part: Option<String>,
    /// Steps whose outputs the member is shown.
    pub see: Vec<String>,
    /// Asks a member, with this instruction after the question.
    pub ask: Option<String>,
    /// Number of independent replies.
    pub samples: Option<u32>,
    /// A member calls its tools until it gives an answer, with this instruction.
    pub act: Option<String>,
    /// Maximum number of replies of `act` (default 8), or of passes of `repeat` (default 3).
    pub most: Option<u32>,
    /// Calls a tool on behalf of a member.
    pub call: Option<String>,
    /// Its arguments.
    pub arguments: Map<String, Json>,
    /// Runs a function of the data set's checker file.
    pub run: Option<String>,
    /// Steps whose outputs it is given, in order.
    pub with: Vec<String>,
    /// Takes the commonest output of these steps, with all their samples.
    pub vote: Vec<String>,
    /// A member chooses the best output of these steps, with all their samples.
    pub choose: Vec<String>,
    /// A member checks the output of a step: right or wrong.
    pub review: Option<String>,
    /// The member that gave the output of a step gives it again, after a finding. Without one that failed, the output stays.
    pub revise: Option<String>,
    /// The step with the finding: a `run` or a `review`.
    pub after: Option<String>,
    /// A text.
    pub text: Option<String>,
    /// Steps that are repeated.
    pub repeat: Vec<Step>,
    /// The step that ends the loop when it passes.
    pub until: Option<String>,
    /// Does `steps` for every line, or every sample, of the output of this step. The output is the last outputs, each after a line
    /// `### ELEMENT`.
    pub each: Option<String>,
    /// The name of the element.
    #[serde(rename = "as")]
    pub element: Option<String>,
    /// The steps for every element.
    pub steps: Vec<Step>,
}

/// A condition on earlier steps. All that is given must hold.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct When {
    /// A step that has passed.
    pub passed: Option<String>,
    /// A step that has failed.
    pub failed: Option<String>,
    /// A step, and a text that its output has, without regard to case.
    pub has: Option<(String, String)>,
    /// A step, and a text that its output lacks.
    pub lacks: Option<(String, String)>,
}

impl Step {
    /// The names of the actions that are given.
    fn actions(&self) -> Vec<&'static str> {
        let given = [
            ("ask", self.ask.is_some()),
            ("act", self.act.is_some()),
            ("call", self.call.is_some()),
            ("run", self.run.is_some()),
            ("vote", !self.vote.is_empty()),
            ("choose", !self.choose.is_empty()),
            ("review", self.review.is_some()),
            ("revise", self.revise.is_some()),
            ("text", self.text.is_some()),
            ("repeat", !self.repeat.is_empty()),
            ("each", self.each.is_some()),
        ];
        given.into_iter().filter_map(|(name, given)| given.then_some(name)).collect()
    }

    /// The ids of steps that it uses, with the key.
    fn uses(&self) -> Vec<(&'static str, &str)> {
        let lists = [("see", &self.see), ("with", &self.with), ("vote", &self.vote), ("choose", &self.choose)];
        let mut uses: Vec<(&'static str, &str)> =
            lists.into_iter().flat_map(|(key, ids)| ids.iter().map(move |id| (key, id.as_str()))).collect();
        let single = [
            ("review", &self.review),
            ("revise", &self.revise),
            ("after", &self.after),
            ("until", &self.until),
            ("each", &self.each),
        ];
        uses.extend(single.into_iter().filter_map(|(key, id)| Some((key, id.as_deref()?))));
        if let Some(When { passed, failed, has, lacks }) = &self.when {
            let texts = [has, lacks].into_iter().flatten().map(|(id, _)| ("when", id.as_str()));
            uses.extend([passed, failed].into_iter().flatten().map(|id| ("when", id.as_str())).chain(texts));
        }
        uses
    }

    /// Its texts with places to fill in, with the key.
    fn templates(&self) -> Vec<(&'static str, &str)> {
        let texts = [
            ("ask", &self.ask),
            ("act", &self.act),
            ("text", &self.text),
            ("part", &self.part),
            ("member", &self.member),
        ];
        let mut templates: Vec<(&'static str, &str)> =
            texts.into_iter().filter_map(|(key, text)| Some((key, text.as_deref()?))).collect();
        templates.extend(self.arguments.values().filter_map(|value| Some(("arguments", value.as_str()?))));
        templates
    }

    fn inner(&self) -> impl Iterator<Item = (&'static str, &Vec<Step>)> {
        [("repeat", &self.repeat), ("steps", &self.steps)].into_iter()
    }
}

/// Returns the places `{NAME}` of a template, as (start, end, name). Braces around anything else than a name stand for themselves.
pub(super) fn places(template: &str) -> Vec<(usize, usize, &str)> {
    let is_name =
        |name: &str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.'));
    let starts = template.match_indices('{').map(|(start, _)| start);
    starts
        .filter_map(|start| {
            let inside = &template[start + 1..];
            let name = &inside[..inside.find('}')?];
            is_name(name).then(|| (start, start + name.len() + 2, name))
        })
        .collect()
}

/// Checks that every step has exactly one action, and that all steps, elements and columns it names exist.
pub(super) fn check(params: &Params) -> Result<(), Invalid> {
    Invalid::unless(!params.steps.is_empty(), "steps", "a workflow needs at least one step")?;
    let mut ids = BTreeSet::new();
    collect(&params.steps, &mut ids);
    let named = [("answer", params.answer.as_slice()), ("blank", &params.blank), ("drawn", &params.drawn)];
    for (key, id) in named.into_iter().flat_map(|(key, ids)| ids.iter().map(move |id| (key, id))) {
        known(&ids, key, id)?;
    }
    steps(&params.steps, "steps", &ids, &[])
}

fn collect(steps: &[Step], ids: &mut BTreeSet<String>) {
    for step in steps {
        ids.extend(step.id.clone());
        step.inner().for_each(|(_, inner)| collect(inner, ids));
    }
}

fn known(ids: &BTreeSet<String>, key: &str, id: &str) -> Result<(), Invalid> {
    let all: Vec<&str> = ids.iter().map(String::as_str).collect();
    Invalid::unless(ids.contains(id), key, format!("there is no step `{id}`; the steps are {}", all.join(", ")))
}

fn steps(all: &[Step], path: &str, ids: &BTreeSet<String>, elements: &[&str]) -> Result<(), Invalid> {
    for (i, step) in all.iter().enumerate() {
        let path = format!("{path}[{i}]");
        let at = |key: &str| format!("{path}.{key}");
        let actions = step.actions();
        let one = "a step has exactly one of ask, act, call, run, vote, choose, review, revise, text, repeat and each";
        Invalid::unless(actions.len() == 1, &path, format!("{one}; this one has {}", worded(&actions)))?;
        for (key, id) in step.uses() {
            known(ids, &at(key), id)?;
        }
        for (key, count) in [("most", step.most), ("samples", step.samples)] {
            if let Some(count) = count {
                Invalid::within(1..=MOST, &at(key), count)?;
            }
        }
        Invalid::unless(
            step.revise.is_none() || step.after.is_some(),
            &at("after"),
            "`revise` needs the step with the finding",
        )?;
        Invalid::unless(step.each.is_none() || !step.steps.is_empty(), &at("steps"), "`each` needs steps to do")?;
        let element = step.element.as_deref().filter(|_| step.each.is_some());
        let inside: Vec<&str> = elements.iter().copied().chain(element).collect();
        for (key, template) in step.templates() {
            for (_, _, name) in places(template) {
                let is = name == QUESTION || name.starts_with(ROW) || inside.contains(&name) || ids.contains(name);
                let message = format!(
                    "`{{{name}}}` is neither a step, nor an element of `each`, nor `{{question}}` or `{{row.COLUMN}}`"
                );
                Invalid::unless(is, &at(key), &message)?;
            }
        }
        for (key, inner) in step.inner() {
            steps(inner, &at(key), ids, &inside)?;
        }
    }
    Ok(())
}

fn worded(actions: &[&str]) -> String {
    if actions.is_empty() { "none".into() } else { actions.join(" and ") }
}
