//! The metrics of a scenario, bound to what they measure.

use super::wrong;
use crate::interface::{ActionArgument, Interface};
use crate::metric::Source;
use crate::population::groups::{By, Groups};
use crate::population::{Column, Population};
use crate::registry::Registry;
use crate::scenario::MetricKeys;
use crate::society::{Grouping, Measure, Reads, Subset};
use crate::tree::{Invalid, Key, Node, TreeError, Value, nearest};

/// The most groups that a metric is measured for.
const MOST_GROUPS: usize = 100;
/// The keys of every metric.
const OWN: [&str; 3] = ["of", "by", "every"];

/// What metrics can measure.
pub(super) struct Measurable<'a> {
    pub registry: &'a Registry,
    /// The name of the world.
    pub world: &'a str,
    /// With the columns of policies.
    pub interface: &'a Interface,
    /// The number of columns of the world.
    pub of_world: usize,
    pub population: &'a Population,
    /// The names of the cohorts.
    pub cohorts: &'a [String],
}

/// The name by which agents are grouped by cohort, unless the population has an attribute of that name.
const COHORT: &str = "cohort";
/// What makes the groups, and their labels.
type Grouped = (Grouping, Vec<String>);
/// A quantity, and its range if it has one.
type Found = (Reads, Option<(f64, f64)>);

impl Measurable<'_> {
    /// Opens a metric: once, or once for each group.
    pub fn measures(&self, node: &Node, path: &str) -> Result<Vec<Measure>, TreeError> {
        let (kind, rest) = node.split_kind(path)?;
        let Value::Map(entries) = &rest.value else {
            return Err(wrong(path, Some(node), node, "a metric must be a map", None));
        };
        let is_own = |(key, _): &(Key, Node)| OWN.contains(&key.name.as_str());
        let (own, others): (Vec<_>, Vec<_>) = entries.iter().cloned().partition(is_own);
        let own = Node { value: Value::Map(own), origin: rest.origin.clone() };
        let rest = Node { value: Value::Map(others), origin: rest.origin };
        let MetricKeys { of, by, every } = own.read(path)?;
        if every == Some(0) {
            return Err(own.blame(path, Invalid { key: "every".into(), message: "must be at least 1 round".into() }));
        }
        let blame = |key: &str, message: String| own.blame(path, Invalid { key: key.into(), message });
        let every = every.unwrap_or(1);
        let open = |source: &Source<'_>| {
            self.registry.open_metric(&kind, &rest, path, source).map_err(|mut error| {
                // The keys of every metric were read before.
                error.help = error.help.map(|help| match help.strip_prefix("known keys: ") {
                    Some("none") => format!("known keys: {}", OWN.join(", ")),
                    Some(known) => format!("known keys: {}, {known}", OWN.join(", ")),
                    None => help,
                });
                error
            })
        };
        let grouped = by.map(|by| self.groups(&by).map_err(|message| blame("by", message))).transpose()?;
        let of = match of {
            By::One(of) => of,
            By::All(of) => {
                let (reads, sources) = self.rows(&of).map_err(|message| blame("of", message))?;
                let (first, others) =
                    sources.split_first().ok_or_else(|| blame("of", "name at least one quantity".into()))?;
                let (by, groups) = grouped.unzip();
                let source = Source { others, groups: groups.as_deref().unwrap_or_default(), ..first.clone() };
                let host = open(&source)?;
                let message = format!("`{}` describes one quantity; give its name, and not a list", kind.name);
                let host = Some(host).filter(|host| host.is_joint()).ok_or_else(|| blame("of", message))?;
                let reads = Reads::Rows(reads.into_iter().chain(by.map(Reads::Group)).collect());
                let name = format!("{}.{}", of.join("+"), kind.name);
                return Ok(vec![Measure { host, reads, name, every, subset: None }]);
            }
        };
        let (reads, range) = self.find(&of).map_err(|message| blame("of", message))?;
        let open = || {
            let host = open(&Source { name: &of, range, ..Source::default() })?;
            let message = format!("`{}` describes several quantities together; give a list of names", kind.name);
            Some(host).filter(|host| !host.is_joint()).ok_or_else(|| blame("of", message))
        };
        let Some((by, groups)) = grouped else {
            let name = format!("{of}.{}", kind.name);
            return Ok(vec![Measure { host: open()?, reads, name, every, subset: None }]);
        };
        let measure = |(group, label): (u32, String)| {
            let subset = Some(Subset { by: by.clone(), group });
            let name = format!("{of}.{}[{label}]", kind.name);
            Ok(Measure { host: open()?, reads: reads.clone(), name, every, subset })
        };
        (0..).zip(groups).map(measure).collect()
    }

    /// Returns what has these names, as parts of a row.
    fn rows<'n>(&self, of: &'n [String]) -> Result<(Vec<Reads>, Vec<Source<'n>>), String> {
        let mut parts = (Vec::new(), Vec::new());
        for name in of {
            let (reads, range) = self.find(name)?;
            if !matches!(reads, Reads::Column(_) | Reads::Attribute(_)) {
                return Err(format!(
                    "a metric of several quantities takes columns of the world and attributes of the population, and `{name}` is neither"
                ));
            }
            parts.0.push(reads);
            parts.1.push(Source { name, range, ..Source::default() });
        }
        Ok(parts)
    }

    /// Returns what has this name: a column of the world, an act, a column of policies, or an attribute.
    fn find(&self, of: &str) -> Result<Found, String> {
        let Interface { columns, acts, .. } = self.interface;
        let table = self.population.table();
        if let Some(i) = columns[..self.of_world].iter().position(|column| column.name == of) {
            return Ok((Reads::Column(i), columns[i].range));
        }
        if let Some(i) = acts.iter().position(|act| act.name == of) {
            return match &acts[i].argument {
                ActionArgument::Number { low, high } => Ok((Reads::Action(i as u16), Some((*low, *high)))),
                argument if argument.has_number() => Ok((Reads::Action(i as u16), None)),
                _ => Err(format!("acts of the kind `{of}` carry no number that could be measured")),
            };
        }
        if let Some(column) = columns.iter().find(|column| column.name == of) {
            return Ok((Reads::State(column.name.clone()), column.range));
        }
        match table.columns().enumerate().find(|(_, (name, _))| *name == of) {
            Some((i, (_, Column::Number(_)))) => return Ok((Reads::Attribute(i), None)),
            Some((_, (_, Column::Text { .. }))) => {
                return Err(format!(
                    "the attribute `{of}` holds words; measure a number, such as one that `population.derive` makes of it, or group by it \
                     (`by: {of}`)"
                ));
            }
            None => {}
        }
        let attributes =
            table.columns().filter(|(_, column)| matches!(column, Column::Number(_))).map(|(name, _)| name);
        let names = columns.iter().map(|c| c.name.as_ref()).chain(acts.iter().map(|a| a.name.as_ref()));
        let mut known: Vec<&str> = names.chain(attributes).collect();
        known.sort_unstable();
        known.dedup();
        let near = nearest(of, known.iter().copied()).map_or(String::new(), |n| format!("; did you mean `{n}`?"));
        Err(format!("the world `{}` has no quantity `{of}`{near} (it has {})", self.world, known.join(", ")))
    }

    /// Returns what makes the groups, and the groups that some agent is in.
    fn groups(&self, by: &By) -> Result<Grouped, String> {
        let table = self.population.table();
        if by.names() == [COHORT] && table.columns().all(|(name, _)| name != COHORT) {
            let labels: Vec<String> = self.cohorts.iter().map(|name| format!("{COHORT}={name}")).collect();
            return few(labels.len(), by).map(|()| (Grouping::Cohorts, labels));
        }
        let Groups { of_row, labels } = table.groups(by).map_err(|error| error.to_string())?;
        let mut sizes = vec![0u32; labels.len()];
        of_row.iter().zip(self.population.counts()).for_each(|(group, count)| sizes[*group as usize] += count);
        let mut places = vec![u32::MAX; labels.len()];
        let mut groups = Vec::new();
        for ((label, size), place) in labels.into_iter().zip(sizes).zip(&mut places) {
            if size > 0 {
                *place = groups.len() as u32;
                groups.push(label);
            }
        }
        few(groups.len(), by)?;
        Ok((Grouping::Rows(of_row.into_iter().map(|group| places[group as usize]).collect()), groups))
    }
}

/// Refuses too many groups.
fn few(groups: usize, by: &By) -> Result<(), String> {
    match groups > MOST_GROUPS {
        true => Err(format!(
            "{by} makes {groups} groups, but at most {MOST_GROUPS} can be measured; make fewer levels with `population.derive`"
        )),
        false => Ok(()),
    }
}
