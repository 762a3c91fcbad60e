//! The files of an experiment: its scenario, the files that the scenario names, and its protocol.

use super::answers::{Expected, Plan, Studied, Validation};
use polity_kernel::scenario::Scenario;
use polity_kernel::tree::{Key, Node, Origin, Value};
use polity_stats::FEW;
use polity_store::files::yaml;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::path::Path;

/// A file to write, by its path in the folder.
pub(super) type File = (String, Vec<u8>);

/// New paths of files, by the path as the scenario to start from names them.
type Moved = BTreeMap<String, String>;

/// Returns all files of an experiment. `name`: of its scenario.
///
/// # Errors
/// A sentence, for a file that cannot be read.
pub(super) fn files(plan: &Plan, name: &str, answers: &str) -> Result<Vec<File>, String> {
    let mut moved = Moved::new();
    let mut files = Vec::new();
    for arm in &plan.arms {
        let scenario = Scenario::read(&arm.tree).map_err(|error| error.to_string())?;
        for wish in scenario.files() {
            if moved.contains_key(&wish.path) {
                continue;
            }
            let (_, bytes) = plan.start.reach.read(&wish.path, &Origin::File { start: 0, end: 0 })?;
            let file = Path::new(&wish.path).file_name().map_or("input".into(), |name| name.to_string_lossy());
            let taken = |path: &str| moved.values().any(|other| other == path);
            let path = match format!("data/{file}") {
                path if taken(&path) => format!("data/{}-{file}", moved.len()),
                path => path,
            };
            files.push((path.clone(), bytes));
            moved.insert(wish.path, path);
        }
    }
    files.push(("scenario.yaml".into(), scenario(plan, name, &moved).into_bytes()));
    files.push(("PROTOCOL.md".into(), protocol(plan, answers).into_bytes()));
    Ok(files)
}

/// The scenario: the text to start from with its comments, another name, moved files, and the design.
fn scenario(plan: &Plan, name: &str, moved: &Moved) -> String {
    let arms: Vec<(&str, Json)> = plan.arms.iter().map(|arm| (arm.name.as_str(), settings(&arm.set, moved))).collect();
    let design = design(plan, &arms);
    let mut tree = relocated(&plan.start.tree, moved);
    tree.take("design");
    let mut expected = tree.to_json();
    if let Json::Object(keys) = &mut expected {
        keys.insert("name".into(), name.into());
        if let Ok(Json::Object(block)) = yaml::parse(&design).map(|tree| tree.to_json()) {
            keys.extend(block);
        }
    }
    let head =
        format!("# Made by `polity new experiment` from {}; PROTOCOL.md says why it is as it is.\n", plan.start.name);
    let text = head.clone() + &edited(plan, name, moved) + &design;
    match yaml::parse(&text) {
        Ok(tree) if tree.to_json() == expected => text,
        // A text whose map is written in braces, for instance JSON, takes no further block.
        _ => head + &serde_json::to_string_pretty(&expected).unwrap_or_default() + "\n",
    }
}

/// An arm's settings as JSON.
fn settings(set: &[(String, Node)], moved: &Moved) -> Json {
    set.iter()
        .map(|(path, value)| (path.clone(), relocated(value, moved).to_json()))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// The design as YAML.
fn design(plan: &Plan, arms: &[(&str, Json)]) -> String {
    let arm = |(name, set): &(&str, Json)| format!("    {}: {}\n", key(name), flow(set));
    let mut metrics = vec![plan.outcome.clone()];
    if plan.validation.metric != plan.outcome {
        metrics.push(plan.validation.metric.clone());
    }
    format!(
        "\n# The design, as it was fixed before the first run.\ndesign:\n  arms:\n{}  baseline: control\n  seeds: {}\n  metrics: {}\n  \
         read: last\n  # The report says what of this was found.\n  expect:\n{}",
        arms.iter().map(arm).collect::<String>(),
        plan.seeds,
        flow(&json!(metrics)),
        expectations(plan)
    )
}

/// The hypothesis and the validation as expectations of the design.
fn expectations(plan: &Plan) -> String {
    let Validation { metric, at_least, at_most, because } = &plan.validation;
    let why = |text: &Option<String>| text.as_ref().map_or(String::new(), |why| format!(", because: {}", json!(why)));
    let bound = |name: &str, bound: &Option<f64>| bound.map_or(String::new(), |x| format!(", {name}: {}", json!(x)));
    let bounds = bound("at_least", at_least) + &bound("at_most", at_most);
    let mut out = format!("    - {{arm: control, metric: {}{bounds}{}}}\n", json!(metric), why(because));
    let side = match plan.expected {
        Expected::Higher => "above",
        Expected::Lower => "below",
        // The verdict of the difference says it.
        Expected::Different => return out,
    };
    for arm in plan.arms.iter().skip(1).take(plan.treatments()) {
        let (arm, metric) = (key(&arm.name), json!(plan.outcome));
        out += &format!("    - {{arm: {arm}, minus: control, metric: {metric}, {side}: 0{}}}\n", why(&plan.because));
    }
    out
}

/// A value as YAML on one line.
fn flow(value: &Json) -> String {
    match value {
        Json::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Json::Object(entries) => {
            let entry = |(name, value): (&String, &Json)| format!("{}: {}", key(name), flow(value));
            format!("{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
        scalar => scalar.to_string(),
    }
}

/// A key as YAML: in quotes if it is not a plain word.
fn key(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    let word = name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(plain);
    if word { name.into() } else { json!(name).to_string() }
}

/// The tree with the new paths of its files.
fn relocated(node: &Node, moved: &Moved) -> Node {
    let value = match &node.value {
        Value::Text(text) => Value::Text(moved.get(text).unwrap_or(text).clone()),
        Value::List(items) => Value::List(items.iter().map(|item| relocated(item, moved)).collect()),
        Value::Map(entries) => {
            let entry = |(key, node): &(Key, Node)| (key.clone(), relocated(node, moved));
            Value::Map(entries.iter().map(entry).collect())
        }
        other => other.clone(),
    };
    Node { value, origin: node.origin.clone() }
}

/// The text to start from with another name and moved files, and without a design of its own.
fn edited(plan: &Plan, name: &str, moved: &Moved) -> String {
    let (text, tree) = (&plan.start.text, &plan.start.tree);
    // First byte, one past the last, and the new text.
    let mut splices: Vec<(usize, usize, String)> = Vec::new();
    let Value::Map(entries) = &tree.value else { return text.clone() };
    for (key, node) in entries {
        let (Origin::File { start, .. }, Origin::File { start: value, end }) = (&key.origin, &node.origin) else {
            continue;
        };
        match key.name.as_str() {
            "design" => splices.push((*start, *end, String::new())),
            "name" => splices.push((*value, *end, json!(name).to_string())),
            _ => moves(node, moved, &mut splices),
        }
    }
    // A part that an alias repeats is edited once.
    splices.sort();
    splices.dedup();
    let mut new = String::new();
    let mut at = 0;
    for (start, end, with) in splices.into_iter().filter(|(start, end, _)| start <= end) {
        new.push_str(text.get(at..start).unwrap_or_default());
        new.push_str(&with);
        at = end.max(at);
    }
    new.push_str(text.get(at..).unwrap_or_default());
    let named = entries.iter().any(|(key, _)| key.name == "name");
    let head = if named { String::new() } else { format!("name: {}\n", json!(name)) };
    head + new.trim_end() + "\n"
}

fn moves(node: &Node, moved: &Moved, splices: &mut Vec<(usize, usize, String)>) {
    match (&node.value, &node.origin) {
        (Value::Text(text), Origin::File { start, end }) => {
            splices.extend(moved.get(text).map(|path| (*start, *end, json!(path).to_string())));
        }
        (Value::List(items), _) => items.iter().for_each(|item| moves(item, moved, splices)),
        (Value::Map(entries), _) => entries.iter().for_each(|(_, node)| moves(node, moved, splices)),
        _ => {}
    }
}

/// The protocol: what is asked, what is run, and how the results are read, fixed before the first run.
fn protocol(plan: &Plan, answers: &str) -> String {
    let parts = [question(plan), model(plan), arms(plan), analysis(plan), validation(plan), commands(plan)];
    let head = "# Protocol\n\nWritten by `polity new experiment` before the first run. Keep it with the results. If you change the design after a run, say so in \
                your report.\n";
    let tail = format!(
        "\n## Answers\n\n`polity new experiment DIR --answers FILE` makes this folder again from them.\n\n```yaml\n{}\n```\n",
        answers.trim()
    );
    head.to_owned() + &parts.concat() + &tail
}

fn question(plan: &Plan) -> String {
    let treated = if plan.treatments() == 1 { "the treatment arm" } else { "each treatment arm" };
    let expected = match plan.expected {
        Expected::Higher => "is higher in {arms} than in the control arm",
        Expected::Lower => "is lower in {arms} than in the control arm",
        Expected::Different => "in {arms} differs from that of the control arm; no direction is expected",
    };
    let because = plan.because.as_ref().map_or(String::new(), |why| format!(" Reason: {}", sentence(why)));
    format!(
        "\n## Question and hypothesis\n\n{}\n\nHypothesis: `{}` {}.{because}\n",
        plan.question.trim(),
        plan.outcome,
        expected.replace("{arms}", treated)
    )
}

/// A text with a full stop at its end.
fn sentence(text: &str) -> String {
    let text = text.trim();
    if text.ends_with(['.', '!', '?']) { text.into() } else { format!("{text}.") }
}

fn model(plan: &Plan) -> String {
    let models = match plan.start.models.as_slice() {
        [] => "No model is asked.".to_owned(),
        models => format!(
            "Models asked: {}. Answers of simulated models (`sim/...`) come from declared probabilities; they say nothing about real ones.",
            models.join(", ")
        ),
    };
    let who = if plan.studied == Studied::Team { "members" } else { "agents" };
    format!(
        "\n## Model\n\nStudied: {}. Started from `{}`, with {} {who}. {models}\n",
        plan.studied.meaning(),
        plan.start.name,
        plan.start.agents
    )
}

fn arms(plan: &Plan) -> String {
    let mut out = String::from("\n## Arms\n\n| arm | role | settings |\n|---|---|---|\n");
    for (i, arm) in plan.arms.iter().enumerate() {
        let role = match i {
            0 => "control",
            i if plan.has_placebo && i + 1 == plan.arms.len() => "placebo",
            _ => "treatment",
        };
        let set = |(path, value): &(String, Node)| format!("`{path}: {}`", flow(&value.to_json())).replace('|', "\\|");
        let set: Vec<String> = arm.set.iter().map(set).collect();
        out += &format!("| `{}` | {role} | {} |\n", arm.name, set.join(", "));
    }
    let runs = plan.arms.len() * plan.seeds as usize;
    out + &format!(
        "\nThe factor is `{}`; the treatment arms differ from the control arm in nothing else. Replicates: {} seeds each, the same in all arms (common random numbers), {runs} runs in all.\n",
        plan.factor, plan.seeds
    )
}

fn analysis(plan: &Plan) -> String {
    let side = match plan.expected {
        Expected::Higher => "`stable` and above 0",
        Expected::Lower => "`stable` and below 0",
        Expected::Different => "`stable`",
    };
    let treatments = plan.treatments();
    let several = match treatments {
        1 => String::new(),
        n => format!(
            " There are {n} comparisons without a correction: if no treatment had an effect, at least one would be called stable with a probability \
             of up to {} %.",
            (5 * n).min(100)
        ),
    };
    let placebo = match plan.has_placebo {
        true => {
            "\n- The placebo: its difference must not be `stable`. If it is, something that must not matter matters, and the differences of the treatments \
                 cannot be put down to the factor alone."
        }
        false => "",
    };
    format!(
        "\n## Analysis\n\n\
         - The outcome is `{}` at the end of a run, read once.\n\
         - Every arm is compared with `control`, seed by seed. The interval is Student's, 95 %, over the {} differences.\n\
         - The hypothesis holds for a treatment if its difference is {side}. It fails if the difference is `stable` on the other side. Otherwise it is \
         not decided: the report's section *Reliability* says how many seeds would be needed for an effect of the measured size.{several}{placebo}\n\
         - Fewer than {FEW} seeds decide nothing. Seeds that are added after a look at the results are reported as such.\n",
        plan.outcome, plan.seeds
    )
}

fn validation(plan: &Plan) -> String {
    let of = &plan.validation;
    let bounds =
        [of.at_least.map(|low| format!("at or above {low}")), of.at_most.map(|high| format!("at or below {high}"))];
    let bounds: Vec<String> = bounds.into_iter().flatten().collect();
    let because = of.because.as_ref().map_or(String::new(), |why| format!(" Source: {}", sentence(why)));
    format!(
        "\n## Validation\n\nThe arm `control` must show a known pattern: the whole 95 % interval of its mean of `{}` lies {}.{because} If it does not, the model \
         is not one of what is studied, and no difference is reported as an effect.\n\nAn experiment like this says what follows from the model. Whether people or other \
         models behave like it is another question, which needs data: the key `validate` compares results with data.\n",
        of.metric,
        bounds.join(" and ")
    )
}

fn commands(plan: &Plan) -> String {
    let estimate = if plan.start.models.is_empty() {
        ""
    } else {
        "polity estimate scenario.yaml           # the cost of one run\n"
    };
    let last = plan.arms.last().map_or("control", |arm| arm.name.as_str());
    format!(
        "\n## Runs\n\nIn this folder:\n\n```sh\npolity validate scenario.yaml\n{estimate}polity sweep scenario.yaml --out sweep   # writes sweep/report.html\npolity verify sweep\n\
         polity replay sweep/runs/control/{seed}    # the same digests again\npolity replay sweep/runs/{last}/{seed}\n```\n\nReport: the interval of every difference, its verdict, the validation, \
         what the section *Expected and found* says, what the section *Reliability* says about seeds, digests and defaults, and every alarm of the section *Health*.\n",
        seed = plan.first_seed()
    )
}
