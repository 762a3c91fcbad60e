//! The steps of a workflow, and what must hold of them before a run.

use super::Params;
use polity_kernel::Invalid;
use polity_kernel::ask::ResponseFormat;
use polity_kernel::method::Member;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value as Json};
use std::collections::{BTreeMap, BTreeSet};

/// Bound of `most` and `samples`.
const MOST: u32 = 1000;
/// What a template may hold besides ids of steps: the item's question.
pub(super) const QUESTION: &str = "question";
/// Begins a column of the item's row in a template.
pub(super) const ROW: &str = "row.";

/// The actions of a step.
const ACTIONS: &str =
    "ask, act, call, run, vote, choose, review, revise, text, repeat, each, parallel, route, hand_off and chat";

/// A step: exactly one of `ask`, `act`, `call`, `run`, `vote`, `choose`, `review`, `revise`, `text`, `repeat`, `each`, `parallel`,
/// `route`, `hand_off` and `chat`, and what belongs to it. Texts may hold `{question}`, the id of a step, a field of its output
/// (`{ID.FIELD}`), the name of an element of `each`, and `{row.COLUMN}`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Step {
    /// Its id, under which others use its output. A later step with the same id replaces the output.
    pub id: Option<String>,
    /// When it is done. Default: always.
    pub when: Option<When>,
    /// The member that does it, by name; who begins a `hand_off`, and who moderates a `chat`. Default: the first.
    pub member: Option<String>,
    /// The part of the item that is asked for, such as `plan`. Without it the member is asked for the answer of the item.
    pub part: Option<String>,
    /// Steps whose outputs the member is shown.
    pub see: Vec<String>,
    /// Asks a member, with this instruction after the question.
    pub ask: Option<String>,
    /// The form of the reply to `ask`, or of the result of a `hand_off`, as in questions to minds: `text`, `{choice: [...]}`,
    /// `{number: {low, high, whole}}`, `{list: {of, least, most}}` or `{record: [[NAME, FORM], ...]}`. Default: the answer of the item.
    pub want: Option<ResponseFormat>,
    /// Number of independent replies.
    pub samples: Option<u32>,
    /// A member calls its tools until it gives an answer, with this instruction.
    pub act: Option<String>,
    /// Maximum number of replies of `act` (default 8), of passes of `repeat` (default 3), or of turns of `hand_off` and `chat` (default
    /// 10).
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
    /// The condition that ends the loop, tested after every pass.
    pub stop_when: Option<When>,
    /// Does `steps` for every line, or every sample, of the output of this step. The output is the last outputs, each after a line
    /// `### ELEMENT`.
    pub each: Option<String>,
    /// The name of the element.
    #[serde(rename = "as")]
    pub element: Option<String>,
    /// The steps for every element.
    pub steps: Vec<Step>,
    /// Branches by name, all of which are done. Their questions go out together: first those of all first steps, then those of all second
    /// steps. The output joins the last output of each branch, in order of their names, each after a line `### NAME`.
    pub parallel: BTreeMap<String, Vec<Step>>,
    /// A member chooses which of `branches` is done, with this instruction. The output is the name of the branch.
    pub route: Option<String>,
    /// The branches to choose from, by name.
    pub branches: BTreeMap<String, Vec<Step>>,
    /// Members work one after the other, and each names who goes on or ends the work. The output is the last result.
    pub hand_off: Option<String>,
    /// Members talk, and a moderator names who speaks next or ends it. The output is what was said.
    pub chat: Option<String>,
    /// The members of `hand_off` or `chat`, by name. Default: all that work on items, besides the moderator.
    pub among: Vec<String>,
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
    /// A step, or a field of its output (`ID.FIELD`), and the text that it is, without regard to case and surrounding space.
    pub is: Option<(String, String)>,
    /// A step, or a field of its output, and a number that it reaches.
    pub at_least: Option<(String, f64)>,
    /// A step, or a field of its output, and a number that it stays below.
    pub below: Option<(String, f64)>,
}

impl When {
    /// The ids of steps that it uses, or of their fields.
    fn uses(&self) -> Vec<&str> {
        let When { passed, failed, has, lacks, is, at_least, below } = self;
        let texts = [has, lacks, is].into_iter().flatten().map(|(id, _)| id.as_str());
        let numbers = [at_least, below].into_iter().flatten().map(|(id, _)| id.as_str());
        [passed, failed].into_iter().flatten().map(String::as_str).chain(texts).chain(numbers).collect()
    }
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
            ("parallel", !self.parallel.is_empty()),
            ("route", self.route.is_some()),
            ("hand_off", self.hand_off.is_some()),
            ("chat", self.chat.is_some()),
        ];
        given.into_iter().filter_map(|(name, given)| given.then_some(name)).collect()
    }

    /// Whether a member does it. A `revise` is left to the member that gave the output.
    fn has_actor(&self) -> bool {
        let acts = |action: &&str| {
            matches!(*action, "ask" | "act" | "call" | "choose" | "review" | "route" | "hand_off" | "chat")
        };
        self.actions().iter().any(acts)
    }

    /// Whether several members take part in it.
    fn meets(&self) -> bool {
        self.hand_off.is_some() || self.chat.is_some()
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
        for (key, when) in [("when", &self.when), ("stop_when", &self.stop_when)] {
            uses.extend(when.iter().flat_map(When::uses).map(|id| (key, id)));
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
            ("route", &self.route),
            ("hand_off", &self.hand_off),
            ("chat", &self.chat),
        ];
        let mut templates: Vec<(&'static str, &str)> =
            texts.into_iter().filter_map(|(key, text)| Some((key, text.as_deref()?))).collect();
        templates.extend(self.arguments.values().filter_map(|value| Some(("arguments", value.as_str()?))));
        templates
    }

    /// The steps inside, with their keys.
    fn inner(&self) -> impl Iterator<Item = (String, &Vec<Step>)> {
        let lists = [("repeat", &self.repeat), ("steps", &self.steps)];
        let maps = [("parallel", &self.parallel), ("branches", &self.branches)];
        lists.into_iter().map(|(key, steps)| (key.to_owned(), steps)).chain(
            maps.into_iter()
                .flat_map(|(key, map)| map.iter().map(move |(name, steps)| (format!("{key}.{name}"), steps))),
        )
    }

    /// The members that it names, as far as they are known before the run, with the key.
    pub fn members(&self) -> Vec<(&'static str, &str)> {
        let known = |name: &&str| places(name).is_empty();
        let one = self.member.as_deref().into_iter().map(|name| ("member", name));
        let all = one.chain(self.among.iter().map(|name| ("among", name.as_str())));
        all.filter(|(_, name)| known(name)).collect()
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

/// Whether this is the id of a step, or a field of its output.
fn is_known(ids: &BTreeSet<String>, id: &str) -> bool {
    ids.contains(id) || field(id).is_some_and(|(step, _)| ids.contains(step))
}

/// Splits `ID.FIELD`.
pub(super) fn field(id: &str) -> Option<(&str, &str)> {
    id.split_once('.')
}

fn known(ids: &BTreeSet<String>, key: &str, id: &str) -> Result<(), Invalid> {
    let all: Vec<&str> = ids.iter().map(String::as_str).collect();
    Invalid::unless(is_known(ids, id), key, format!("there is no step `{id}`; the steps are {}", all.join(", ")))
}

fn steps(all: &[Step], path: &str, ids: &BTreeSet<String>, elements: &[&str]) -> Result<(), Invalid> {
    for (i, step) in all.iter().enumerate() {
        let path = format!("{path}[{i}]");
        let at = |key: &str| format!("{path}.{key}");
        let actions = step.actions();
        let one = || format!("a step has exactly one of {ACTIONS}; this one has {}", worded(&actions));
        Invalid::unless(actions.len() == 1, &path, one())?;
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
        flow(step, &at)?;
        Invalid::unless(step.each.is_none() || !step.steps.is_empty(), &at("steps"), "`each` needs steps to do")?;
        let element = step.element.as_deref().filter(|_| step.each.is_some());
        let inside: Vec<&str> = elements.iter().copied().chain(element).collect();
        for (key, template) in step.templates() {
            for (_, _, name) in places(template) {
                let is = name == QUESTION || name.starts_with(ROW) || inside.contains(&name) || is_known(ids, name);
                let message = format!(
                    "`{{{name}}}` is neither a step, nor an element of `each`, nor `{{question}}` or `{{row.COLUMN}}`"
                );
                Invalid::unless(is, &at(key), &message)?;
            }
        }
        for (key, inner) in step.inner() {
            steps(inner, &at(&key), ids, &inside)?;
        }
    }
    Ok(())
}

/// The place of a member in a team; or why no step can be for it.
pub(super) fn place_of(team: &[Member], name: &str) -> Result<usize, String> {
    let names = || team.iter().map(|member| member.name.as_str()).collect::<Vec<_>>().join(", ");
    match team.iter().position(|member| member.name == name) {
        None => Err(format!("there is no member `{name}`; the team has {}", names())),
        Some(place) if team[place].is_absent() => {
            Err(format!("`{name}` is absent from the team; leave the step out, or give it to another member"))
        }
        Some(place) => Ok(place),
    }
}

/// Calls a function with every step and its path.
pub(super) fn walk<'s>(steps: &'s [Step], path: &str, visit: &mut dyn FnMut(&'s Step, &str)) {
    for (i, step) in steps.iter().enumerate() {
        let path = format!("{path}[{i}]");
        visit(step, &path);
        for (key, inner) in step.inner() {
            walk(inner, &format!("{path}.{key}"), visit);
        }
    }
}

/// Whether a step may be for a member. A step whose member is a template may be for any.
pub(super) fn uses(all: &[Step], team: &[Member], member: usize) -> bool {
    let workers: Vec<usize> = (0..team.len()).filter(|place| team[*place].role.is_none()).collect();
    let first = workers.first().copied().unwrap_or(0);
    let may_be = |name: &str| !places(name).is_empty() || place_of(team, name) == Ok(member);
    let mut uses = false;
    walk(all, "steps", &mut |step, _| {
        uses |= step.has_actor() && step.member.as_deref().map_or(first == member, may_be);
        uses |= step.meets()
            && match step.among.as_slice() {
                [] => workers.contains(&member),
                names => names.iter().any(|name| may_be(name)),
            };
    });
    uses
}

/// Checks what belongs to branches, conversations and forms of replies.
fn flow(step: &Step, at: &impl Fn(&str) -> String) -> Result<(), Invalid> {
    let routes = step.route.is_some();
    Invalid::unless(
        if routes { step.branches.len() > 1 } else { step.branches.is_empty() },
        &at("branches"),
        "`route` needs two `branches` or more, and nothing else has some",
    )?;
    Invalid::unless(
        step.meets() || step.among.is_empty(),
        &at("among"),
        "only `hand_off` and `chat` have members `among` themselves",
    )?;
    for (key, branches) in [("parallel", &step.parallel), ("branches", &step.branches)] {
        for (name, steps) in branches {
            Invalid::unless(!steps.is_empty(), &at(&format!("{key}.{name}")), "a branch needs at least one step")?;
        }
    }
    let Some(want) = &step.want else { return Ok(()) };
    let fits = step.ask.is_some() || step.hand_off.is_some();
    Invalid::unless(fits, &at("want"), "only `ask` and `hand_off` have a form")?;
    Invalid::unless(step.part.is_none(), &at("want"), "a `part` is a text; it has no other form")?;
    want.check().map_err(|message| Invalid { key: at("want"), message })
}

fn worded(actions: &[&str]) -> String {
    if actions.is_empty() { "none".into() } else { actions.join(" and ") }
}
