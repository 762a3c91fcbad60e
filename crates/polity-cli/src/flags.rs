//! What flags mean: edits of a scenario, a budget, the options of the mock server.

use super::args::{Answering, Edits, FileAccess, Keys, Mock, Spending};
use super::failure::{Exit, Failure, Source, failure};
use polity_driver::run::{Prepared, other_models, prepare};
use polity_kernel::ask::Constrain;
use polity_kernel::registry::Registry;
use polity_kernel::scenario::{Budget, Price};
use polity_kernel::tree::{Key, Node, Origin, Value, nearest};
use polity_models::mock_server::{Faults, Options};
use polity_models::models::prices;
use polity_store::files::{self, FileError, Reach, yaml};
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

/// Returns flags that set a number of the scenario.
pub(crate) fn flags<const N: usize>(flags: [(&str, Option<u64>); N]) -> Vec<(String, Node)> {
    let set = |(path, value): (&str, Option<u64>)| {
        let value = value?;
        let flag = path.rsplit('.').next().unwrap_or(path);
        let origin = polity_kernel::tree::Origin::Edit(format!("--{flag} {value}").into());
        Some((path.to_string(), Node { value: Value::Int(value as i64), origin }))
    };
    flags.into_iter().filter_map(set).collect()
}

impl Spending {
    pub(crate) fn budget(self) -> Budget {
        let Spending { max_cost, max_tokens, max_calls, max_requests, max_tool_calls, max_time } = self;
        Budget {
            cost_usd: max_cost,
            tokens: max_tokens,
            calls: max_calls,
            requests: max_requests,
            tool_calls: max_tool_calls,
            seconds: max_time,
            ..Budget::default()
        }
    }

    /// Returns the same as edits of a scenario.
    pub(crate) fn flags(self) -> Vec<(String, Node)> {
        let Spending { max_cost, max_tokens, max_calls, max_requests, max_tool_calls, max_time } = self;
        let whole = |n: u64| (Value::Int(n as i64), n.to_string());
        let real = |x: f64| (Value::Float(x), x.to_string());
        let limits = [
            ("max-tokens", "budget.tokens", max_tokens.map(whole)),
            ("max-calls", "budget.calls", max_calls.map(whole)),
            ("max-requests", "budget.requests", max_requests.map(whole)),
            ("max-tool-calls", "budget.tool_calls", max_tool_calls.map(whole)),
            ("max-cost", "budget.cost_usd", max_cost.map(real)),
            ("max-time", "budget.seconds", max_time.map(real)),
        ];
        let set = |(flag, path, value): (&str, &str, Option<(Value, String)>)| {
            let (value, shown) = value?;
            let origin = polity_kernel::tree::Origin::Edit(format!("--{flag} {shown}").into());
            Some((path.to_string(), Node { value, origin }))
        };
        limits.into_iter().filter_map(set).collect()
    }
}

impl Answering {
    /// Returns prices by name.
    pub(crate) fn prices(&self) -> Result<BTreeMap<String, Price>, Failure> {
        self.price.iter().map(|text| price(text)).collect()
    }

    /// Returns prices as edits of a scenario. Names are quoted, since they may hold dots, which separate the keys of a path.
    pub(crate) fn flags(&self) -> Result<Vec<(String, Node)>, Failure> {
        let edit = |text: &String| {
            let (name, price) = price(text)?;
            let origin = Origin::Edit(format!("--price {text}").into());
            let entry = |name: &str, value: f64| {
                let key = Key { name: name.into(), origin: origin.clone() };
                (key, Node { value: Value::Float(value), origin: origin.clone() })
            };
            let mut entries = vec![entry("input", price.input), entry("output", price.output)];
            entries.extend(price.cached.map(|cached| entry("cached", cached)));
            Ok((format!("prices.{name:?}"), Node { value: Value::Map(entries), origin }))
        };
        self.price.iter().map(edit).collect()
    }
}

/// Reads `NAME=INPUT,OUTPUT[,CACHED]`. A name may hold an equals sign, a price may not.
fn price(text: &str) -> Result<(String, Price), Failure> {
    let wrong = || {
        let what =
            "NAME=INPUT,OUTPUT[,CACHED] in US dollars per million tokens, for instance openai/gpt-4.1-mini=0.4,1.6,0.1";
        Failure::new(Exit::Input, format!("--price {text}: it must be {what}"))
    };
    let (name, numbers) = text.rsplit_once('=').filter(|(name, _)| !name.contains('"')).ok_or_else(wrong)?;
    let numbers: Option<Vec<f64>> = numbers.split(',').map(|number| number.trim().parse().ok()).collect();
    let numbers = numbers.filter(|numbers| numbers.iter().all(|x| (0.0..=1e6).contains(x))).ok_or_else(wrong)?;
    if !name.contains('/') {
        return Err(Failure::new(
            Exit::Input,
            format!("--price {text}: a model is named `provider/model`, for instance openai/{name}"),
        ));
    }
    let (input, output, cached) = match numbers[..] {
        [input, output] => (input, output, None),
        [input, output, cached] => (input, output, Some(cached)),
        _ => return Err(wrong()),
    };
    Ok((name.to_owned(), Price { input, output, cached }))
}

impl Edits {
    pub(crate) fn flags(&self) -> Vec<(String, Node)> {
        let Edits { keys: Keys { agents, rounds, seed, .. }, model } = self;
        let numbers = flags([("agents", agents.map(u64::from)), ("rounds", rounds.map(u64::from)), ("seed", *seed)]);
        numbers.into_iter().chain(model.as_deref().map(|model| ("model".to_string(), of_all(model)))).collect()
    }
}

/// The flag `--model`, which applies to more than the key `model`.
fn of_all(model: &str) -> Node {
    let origin = polity_kernel::tree::Origin::Edit(format!("--model {model}").into());
    Node { value: Value::Text(model.into()), origin }
}

impl Mock {
    pub(crate) fn options(self) -> Result<Options, Failure> {
        let faults = Faults::read(&self.fault).map_err(|why| Failure::new(Exit::Input, format!("--fault: {why}")))?;
        Ok(Options {
            port: self.port,
            model: self.model,
            requests_per_minute: self.requests_per_minute.map(NonZeroU32::get),
            tokens_per_minute: self.tokens_per_minute.map(NonZeroU32::get),
            at_once: self.at_once.map(NonZeroU32::get),
            latency: Duration::from_millis(self.latency_ms),
            batch_delay: Duration::from_millis(self.batch_delay),
            batch_expires: self.batch_expires,
            faults,
            seed: self.seed,
            offers: self
                .offers
                .iter()
                .filter(|way| !way.is_empty())
                .map(|way| offered(way))
                .collect::<Result<_, _>>()?,
        })
    }
}

/// Reads a constraint on answers that a mock server can offer.
fn offered(name: &str) -> Result<Constrain, Failure> {
    let ways = Constrain::ALL.into_iter().filter(|way| *way != Constrain::Words);
    ways.clone().find(|way| way.name() == name).ok_or_else(|| {
        let names: Vec<&str> = ways.map(Constrain::name).collect();
        let meant =
            nearest(name, names.iter().copied()).map(|near| format!(", did you mean `{near}`?")).unwrap_or_default();
        Failure::new(Exit::Input, format!("--offers: there is no `{name}`{meant} (there are {})", names.join(", ")))
    })
}

pub(crate) fn edits(set: &[String]) -> Result<Vec<(String, Node)>, Failure> {
    set.iter()
        .map(|text| files::parse_edit(text).map_err(|error| Failure::new(Exit::Input, format!("-P {text}: {error}"))))
        .collect()
}

/// Returns all edits of a scenario: those of `-P`, then those of flags. A model is checked, and takes the place of all models of the
/// scenario.
pub(crate) fn all_edits(
    tree: &Node,
    set: &[String],
    flags: impl IntoIterator<Item = (String, Node)>,
) -> Result<Vec<(String, Node)>, Failure> {
    let mut all = edits(set)?;
    for (path, node) in flags {
        if let ("model", Value::Text(model)) = (path.as_str(), &node.value) {
            check_model(model)?;
            all.extend(other_models(tree, &node));
        }
        all.push((path, node));
    }
    Ok(all)
}

pub(crate) fn load(
    file: &Path,
    access: &FileAccess,
    set: &[String],
    flags: Vec<(String, Node)>,
    registry: &Registry,
) -> Result<(Prepared, Source), Failure> {
    if file.is_dir() {
        let at = file.display();
        let message =
            format!("`{at}` is a folder; name a scenario file in it (`polity validate {at}` checks all of them)");
        return Err(Failure::new(Exit::Input, message));
    }
    let (text, tree) = match (files::read_file(file), file.to_str().and_then(|name| registry.example(name))) {
        // The name of a leaf is that of its example, unless there is such a file.
        (Err(FileError::Missing { .. }), Some(text)) => {
            let tree = yaml::parse(text).map_err(|error| Failure::new(Exit::Input, error.to_string()))?;
            (text.to_owned(), tree)
        }
        (read, _) => read?,
    };
    let source = Source { name: file.display().to_string(), text };
    let all = all_edits(&tree, set, flags)?;
    let stem = file.file_stem().map_or("run".into(), |s| s.to_string_lossy().into_owned());
    let reach = Reach::of(file.parent().unwrap_or(Path::new(".")), &access.allowed);
    let prepared = prepare(tree, &source.name, reach, &stem, all).map_err(|e| failure(&e, Some(&source)))?;
    Ok((prepared, source))
}

/// The error of a command that needs a model and was given none.
pub(crate) fn no_model() -> Failure {
    Failure::new(Exit::Input, "no model is given; for instance --model sim/medium (`polity list models` lists them)")
}

/// Refuses a model without its provider, and names the one that was probably meant.
pub(crate) fn check_model(model: &str) -> Result<(), Failure> {
    if model.contains('/') {
        return Ok(());
    }
    let priced = prices::table().into_iter().flat_map(|table| table.models.keys());
    let known = priced.into_iter().find(|known| known.rsplit_once('/').is_some_and(|(_, name)| name == model));
    let meant = known.cloned().unwrap_or_else(|| format!("openai/{model}"));
    let message = format!("--model {model}: a model is named `provider/model`; did you mean `{meant}`?");
    Err(Failure::new(Exit::Input, message))
}

/// Reads a filter of a list (`--where`). A value that nothing listed has is an error, so that a misspelt one does not look like an empty list.
pub(crate) fn filter_of<'a>(
    filter: &'a str,
    what: &str,
    dimensions: &[&str],
    values: &dyn Fn(&str) -> BTreeSet<String>,
) -> Result<(&'a str, &'a str), Failure> {
    let wrong = |why: String| Failure::new(Exit::Input, format!("--where {filter}: {why}"));
    let all = dimensions.join(", ");
    let (name, value) =
        filter.split_once('=').ok_or_else(|| wrong(format!("write DIMENSION=VALUE, with one of {all}")))?;
    if !dimensions.contains(&name) {
        return Err(wrong(format!("there is no dimension `{name}`; there are {all}")));
    }
    let values = values(name);
    match values.contains(value) {
        true => Ok((name, value)),
        false => {
            let there = values.into_iter().collect::<Vec<_>>().join(", ");
            Err(wrong(format!("no {what} has this {name}; there are {there}")))
        }
    }
}
