//! Which agents are in which cohort.

use super::{MOST_AGENTS, wrong};
use crate::formula::{Formula, Kind};
use crate::population::Population;
use crate::population::names::Attributes;
use crate::scenario::{CohortSource, Count, Scenario};
use crate::tree::{Node, TreeError, Value, child, item};

/// How agents are split over cohorts: as far as it is known without them.
#[derive(Debug)]
pub(super) struct CohortSplit {
    /// The sizes of cohorts without a condition; 0 for those with one. All of them, if no cohort has one.
    sizes: Vec<u32>,
    /// The conditions, by cohort.
    conditions: Vec<Option<String>>,
    /// How the agents that meet no condition are split, if there are conditions: shares of cohorts.
    shares: Vec<f64>,
    agents: u32,
}

/// Returns how a scenario splits its agents. `table_rows`: the rows of its population's file.
pub(super) fn split(scenario: &Scenario, tree: &Node, table_rows: Option<u32>) -> Result<CohortSplit, TreeError> {
    let cohorts = cohorts_of(scenario, tree)?;
    let conditions: Vec<Option<String>> = cohorts.iter().map(|cohort| cohort.condition.clone()).collect();
    if cohorts.iter().any(|cohort| cohort.seats.is_some()) {
        let sizes = sizes_by_seats(scenario, cohorts, tree)?;
        return Ok(CohortSplit {
            agents: sizes.iter().sum(),
            sizes,
            conditions: vec![None; cohorts.len()],
            shares: Vec::new(),
        });
    }
    if conditions.iter().all(Option::is_none) {
        let sizes = sizes(scenario, cohorts, tree, table_rows)?;
        return Ok(CohortSplit { agents: sizes.iter().sum(), sizes, conditions, shares: Vec::new() });
    }
    let error = |key: &str, i: usize, message: &str, help: &str| {
        let path = child(&item("cohorts", i), key);
        Err(wrong(&path, tree.find(&path), tree, message, Some(help)))
    };
    if scenario.population.is_none() {
        let i = conditions.iter().position(Option::is_some).unwrap_or_default();
        return error("where", i, "a condition needs agents with attributes", "add a `population`");
    }
    let mut shares = Vec::with_capacity(cohorts.len());
    let rest = conditions.iter().filter(|condition| condition.is_none()).count();
    for (i, (cohort, condition)) in cohorts.iter().zip(&conditions).enumerate() {
        let key = if cohort.share.is_some() { "share" } else { "count" };
        match (condition, cohort.share, cohort.count) {
            (Some(_), None, None) => shares.push(0.0),
            (Some(_), ..) => {
                return error(key, i, "the condition decides how many agents the cohort has", "remove it");
            }
            (None, _, Some(_)) => {
                return error("count", i, "beside cohorts with a condition, the others share the rest", "use `share`");
            }
            (None, Some(share), None) if share > 0.0 && share <= 1.0 => shares.push(share),
            (None, Some(_), None) => {
                return error("share", i, "a share must be above 0 and at most 1", "for instance `share: 0.5`");
            }
            (None, None, None) if rest == 1 => shares.push(1.0),
            (None, None, None) => {
                let message = "several cohorts share the agents that meet no condition, so each needs a `share`";
                return error("share", i, message, "for instance `share: 0.5`");
            }
        }
    }
    let sum: f64 = shares.iter().sum();
    if rest > 0 && (sum - 1.0).abs() > 1e-6 {
        let message = format!("the shares of the cohorts without a condition sum to {sum}, not to 1");
        return Err(wrong("cohorts", tree.get("cohorts"), tree, message, None));
    }
    let agents = match (scenario.agents, table_rows) {
        (Some(agents), _) | (None, Some(agents)) => agents,
        (None, None) => {
            return Err(wrong("", None, tree, "the number of agents is missing", Some("add `agents: 1000`")));
        }
    };
    if agents > MOST_AGENTS {
        return Err(wrong(
            "agents",
            tree.get("agents"),
            tree,
            format!("at most {MOST_AGENTS} agents are possible"),
            None,
        ));
    }
    Ok(CohortSplit { sizes: vec![0; cohorts.len()], conditions, shares, agents })
}

impl CohortSplit {
    /// Returns the number of agents.
    pub fn agents(&self) -> u32 {
        self.agents
    }

    /// Returns whether several cohorts take agents by their order alone.
    pub fn takes_in_order(&self) -> bool {
        self.conditions.iter().filter(|condition| condition.is_none()).count() > 1
    }

    /// Brings the agents of each cohort together, in the order of cohorts, and returns how many each has. `tied`: the ties of an agent
    /// depend on its position, so that agents must keep it.
    ///
    /// # Errors
    /// A condition that cannot be read or that no agent meets; an agent without a cohort.
    pub fn arrange(self, tree: &Node, people: Population, tied: bool) -> Result<(Population, Vec<u32>), TreeError> {
        let CohortSplit { sizes, conditions, shares, .. } = self;
        if conditions.iter().all(Option::is_none) {
            return Ok((people, sizes));
        }
        let table = people.table().clone();
        let attributes = Attributes { table: &table, draw: false };
        let path = |i: usize| child(&item("cohorts", i), "where");
        let mut formulas = Vec::new();
        for (i, condition) in conditions.iter().enumerate() {
            let Some(text) = condition else { continue };
            let formula = Formula::read(text, &attributes, Kind::Truth);
            formulas.push((
                i,
                formula.map_err(|error| wrong(&path(i), tree.find(&path(i)), tree, error.to_string(), None))?,
            ));
        }
        let rest = conditions.len();
        let used = people.counts();
        let mut unknown = vec![(0, 0); rest];
        let mut cohort_of = |row: usize| {
            for (i, formula) in &formulas {
                match attributes.value(formula, row, None) {
                    1.0 => return *i as u32,
                    value if value.is_nan() && used[row] > 0 => {
                        let (agents, first) = &mut unknown[*i];
                        *first = if *agents == 0 { row } else { *first };
                        *agents += used[row];
                    }
                    _ => {}
                }
            }
            rest as u32
        };
        // Those who meet no condition come last, and then between the others.
        let classes: Vec<u32> = (0..table.rows()).map(&mut cohort_of).collect();
        if let Some((i, formula)) = formulas.iter().find(|(i, _)| unknown[*i].0 > 0) {
            let (agents, row) = unknown[*i];
            let (place, reads) = (table.place(row), attributes.described(formula, row));
            let message = format!(
                "values are missing, so it is unknown whether {agents} agents meet this, for instance in {place} ({reads})"
            );
            let help = "say what missing values mean, as in `age < 30 and not missing(age)`, or leave these rows out: `population: {missing: {COLUMN: drop}}`";
            return Err(wrong(&path(*i), tree.find(&path(*i)), tree, message, Some(help)));
        }
        let before = tied.then(|| people.clone());
        let (people, counts) = people.arranged(&classes, rest + 1);
        let left = counts.last().copied().unwrap_or(0);
        for (i, _) in &formulas {
            if counts[*i] == 0 {
                let message = "no agent meets this condition, apart from agents of the cohorts above";
                return Err(wrong(
                    &path(*i),
                    tree.find(&path(*i)),
                    tree,
                    message,
                    Some("change it, or remove the cohort"),
                ));
            }
        }
        let parts = shares.iter().filter(|share| **share > 0.0).count() as u32;
        if parts == 0 && left > 0 {
            let lacks = |(class, agents): (&u32, u32)| *class == rest as u32 && agents > 0;
            let row = classes.iter().zip(people.counts()).position(lacks).unwrap_or_default();
            let message = format!("{left} agents meet no condition, for instance the one in {}", table.place(row));
            let help = "add a cohort without `where`, which takes the others";
            return Err(wrong("cohorts", tree.get("cohorts"), tree, message, Some(help)));
        }
        if left < parts {
            let message =
                format!("{left} agents meet no condition, but {parts} cohorts without one need at least one each");
            return Err(wrong("cohorts", tree.get("cohorts"), tree, message, None));
        }
        let of_rest = largest_remainder(&shares, shares.iter().sum(), u64::from(left));
        let sizes: Vec<u32> = (0..rest).map(|i| if shares[i] > 0.0 { of_rest[i] } else { counts[i] }).collect();
        let people = in_order(people, &counts, &sizes, &shares);
        let moved = |before: &Population| {
            before.rows() != people.rows() && (0..people.len()).any(|agent| before.row(agent) != people.row(agent))
        };
        if before.is_some_and(|before| moved(&before)) {
            let message =
                "conditions bring the agents of a cohort together, but the topology's ties go by the order of agents";
            let help = "sort the rows of the population by cohort, or use a generated topology";
            return Err(wrong("topology", tree.get("topology"), tree, message, Some(help)));
        }
        Ok((people, sizes))
    }
}

/// Moves the agents without a condition, who stand last, between the cohorts with one.
fn in_order(people: Population, counts: &[u32], sizes: &[u32], shares: &[f64]) -> Population {
    let mut next_of_rest: u32 = counts[..counts.len() - 1].iter().sum();
    let mut next = 0;
    let mut order = Vec::with_capacity(people.len() as usize);
    for (size, share) in sizes.iter().zip(shares) {
        let from = if *share > 0.0 { &mut next_of_rest } else { &mut next };
        order.extend(*from..*from + size);
        *from += size;
    }
    people.reordered(&order)
}

/// Returns the cohorts of a scenario, of which there must be 1 to 1000.
fn cohorts_of<'a>(scenario: &'a Scenario, tree: &Node) -> Result<&'a [CohortSource], TreeError> {
    let Some(cohorts) = &scenario.cohorts else {
        return Err(wrong(
            "",
            None,
            tree,
            "a society needs `cohorts`, which say who its agents are",
            Some("for instance `cohorts: [{policy: {kind: level-k}}]`"),
        ));
    };
    if cohorts.is_empty() || cohorts.len() > 1000 {
        let message = format!("a society must have 1 to 1000 cohorts, not {}", cohorts.len());
        return Err(wrong("cohorts", tree.get("cohorts"), tree, message, None));
    }
    Ok(cohorts)
}

/// Returns the number of agents of each cohort, if cohorts take seats of every episode.
fn sizes_by_seats(scenario: &Scenario, cohorts: &[CohortSource], tree: &Node) -> Result<Vec<u32>, TreeError> {
    let error = |path: &str, message: String, help: &str| wrong(path, tree.find(path), tree, message, Some(help));
    for (i, cohort) in cohorts.iter().enumerate() {
        let path = |key: &str| child(&item("cohorts", i), key);
        if !cohort.seats.is_some_and(|seats| (1..=MOST_AGENTS).contains(&seats)) {
            let message = format!("if one cohort takes seats, each takes 1 to {MOST_AGENTS}");
            return Err(error(&path("seats"), message, "for instance `seats: 1`"));
        }
        let others = [
            ("share", cohort.share.is_some()),
            ("count", cohort.count.is_some()),
            ("where", cohort.condition.is_some()),
        ];
        if let Some((key, _)) = others.iter().find(|(_, given)| *given) {
            let message = "its seats decide how many agents the cohort has";
            return Err(error(&path(key), message.into(), "remove it"));
        }
    }
    let of = |cohort: &CohortSource| u64::from(cohort.seats.unwrap_or_default());
    let seats: u64 = cohorts.iter().map(of).sum();
    let Some(agents) = scenario.agents else {
        return Err(error("", "the number of agents is missing".into(), &format!("for instance `agents: {seats}`")));
    };
    if agents == 0 || agents > MOST_AGENTS || !u64::from(agents).is_multiple_of(seats) {
        let message = format!(
            "the cohorts take {seats} seats of each episode, and {agents} agents do not fill a whole number of episodes"
        );
        return Err(error("agents", message, &format!("for instance `agents: {seats}`")));
    }
    let episodes = u64::from(agents) / seats;
    Ok(cohorts.iter().map(|cohort| (of(cohort) * episodes) as u32).collect())
}

/// Returns the number of agents of each cohort. `table_rows`: the rows of the population's file.
fn sizes(
    scenario: &Scenario,
    cohorts: &[CohortSource],
    tree: &Node,
    table_rows: Option<u32>,
) -> Result<Vec<u32>, TreeError> {
    let node = tree.get("cohorts");
    let error = |message: String, help: Option<&str>| wrong("cohorts", node, tree, message, help);
    let mut weights = Vec::new();
    for (i, cohort) in cohorts.iter().enumerate() {
        let here = node.and_then(|n| match &n.value {
            Value::List(items) => items.get(i),
            _ => None,
        });
        let weight = weight(cohort, cohorts.len() == 1);
        weights.push(weight.map_err(|(message, help)| wrong(&format!("cohorts[{i}]"), here, tree, message, help))?);
    }
    let shares = cohorts.iter().filter(|cohort| cohort.share.is_some()).count();
    let counts = cohorts.iter().filter(|cohort| matches!(cohort.count, Some(Count::Scaled(_)))).count();
    let fixed_total: u64 = cohorts.iter().filter_map(|cohort| cohort.fixed()).map(u64::from).sum();
    if shares > 0 && counts > 0 {
        return Err(error("some cohorts have a `share` and some a `count`".into(), Some("use one of the two for all")));
    }
    let sum: f64 = weights.iter().sum();
    if shares > 0 && (sum - 1.0).abs() > 1e-6 {
        return Err(error(format!("the shares sum to {sum}, not to 1"), None));
    }
    let counted = if shares == 0 && counts > 0 { Some(sum as u64) } else { None };
    let only_fixed = shares == 0 && counts == 0 && fixed_total > 0;
    let asked = counted.or(only_fixed.then_some(0)).map(|counted| counted + fixed_total);
    if let (None, Some(rows), Some(asked)) = (scenario.agents, table_rows, asked)
        && asked != u64::from(rows)
    {
        let message = two_numbers_of_agents(cohorts, rows);
        return Err(error(message, Some("add `agents`")));
    }
    let total = match (scenario.agents, table_rows, counted) {
        (Some(n), _, _) => u64::from(n),
        (None, Some(rows), _) => u64::from(rows),
        (None, None, Some(n)) => n + fixed_total,
        (None, None, None) if only_fixed => fixed_total,
        _ => {
            let help = Some("add `agents: 1000`, or give every cohort a `count`");
            return Err(wrong("", None, tree, "the number of agents is missing", help));
        }
    };
    let scaled = weights.iter().filter(|w| **w > 0.0).count() as u64;
    if total > u64::from(MOST_AGENTS) || total < fixed_total + scaled || only_fixed && total != fixed_total {
        let message = format!(
            "{total} agents cannot be split: fixed cohorts take {fixed_total}, and each of the {scaled} others needs at least one"
        );
        return Err(wrong("agents", tree.get("agents"), tree, message, None));
    }
    Ok(largest_remainder(&weights, sum, total - fixed_total)
        .into_iter()
        .zip(cohorts)
        .map(|(n, cohort)| cohort.fixed().unwrap_or(n))
        .collect())
}

/// The weight of a cohort when the agents are split: its share, its count, or 0 if its size is fixed. The error is a message and a hint.
fn weight(cohort: &CohortSource, alone: bool) -> Result<f64, (String, Option<&'static str>)> {
    match (cohort.share, cohort.count) {
        (Some(_), Some(_)) => Err(("give `share` or `count`, not both".into(), None)),
        (Some(share), None) if !(share > 0.0 && share <= 1.0) => {
            Err((format!("`share` must be above 0 and at most 1, not {share}"), None))
        }
        (Some(share), None) => Ok(share),
        (None, Some(Count::Scaled(0) | Count::Fixed { fixed: 0 })) => {
            Err(("a cohort must have at least one agent".into(), Some("remove the cohort")))
        }
        (None, Some(Count::Scaled(n))) => Ok(f64::from(n)),
        (None, Some(Count::Fixed { .. })) => Ok(0.0),
        (None, None) if alone => Ok(1.0),
        (None, None) => {
            let message = "if there are several cohorts, each needs a `share` or a `count`";
            Err((message.into(), Some("for instance `share: 0.5`")))
        }
    }
}

/// Asks which of two numbers of agents is meant.
fn two_numbers_of_agents(cohorts: &[CohortSource], rows: u32) -> String {
    let parts: Vec<String> = cohorts
        .iter()
        .filter_map(|cohort| match cohort.count? {
            Count::Scaled(n) | Count::Fixed { fixed: n } => Some(n.to_string()),
        })
        .collect();
    format!(
        "the number of agents is unclear: the cohorts have {}, but the population's file has {rows} rows",
        parts.join(" + ")
    )
}

/// Splits `total` in proportion to the weights. Every positive weight gets at least one.
fn largest_remainder(weights: &[f64], sum: f64, total: u64) -> Vec<u32> {
    let exact: Vec<f64> = weights.iter().map(|w| if sum > 0.0 { w / sum * total as f64 } else { 0.0 }).collect();
    let mut sizes: Vec<u64> =
        exact.iter().zip(weights).map(|(x, w)| (x.floor() as u64).max(u64::from(*w > 0.0))).collect();
    let mut order: Vec<usize> = (0..weights.len()).filter(|i| weights[*i] > 0.0).collect();
    order.sort_by(|a, b| (exact[*b].fract()).total_cmp(&exact[*a].fract()).then(a.cmp(b)));
    let mut given: u64 = sizes.iter().sum();
    for i in order.iter().cycle().take(order.len() * 2) {
        if given >= total {
            break;
        }
        sizes[*i] += 1;
        given += 1;
    }
    // The minimum of one may have assigned too much: take from the largest.
    while given > total {
        match (0..sizes.len()).filter(|i| sizes[*i] > 1).max_by_key(|i| sizes[*i]) {
            Some(i) => sizes[i] -= 1,
            None => break,
        }
        given -= 1;
    }
    sizes.into_iter().map(|n| n as u32).collect()
}

#[cfg(test)]
mod tests {
    use super::largest_remainder;

    #[test]
    fn proportions_are_kept_and_nobody_is_left_out() {
        assert_eq!(largest_remainder(&[0.5, 0.3, 0.2], 1.0, 10), [5, 3, 2]);
        assert_eq!(largest_remainder(&[0.5, 0.3, 0.2], 1.0, 7), [4, 2, 1]);
        assert_eq!(largest_remainder(&[0.98, 0.01, 0.01], 1.0, 5), [3, 1, 1]);
        assert_eq!(largest_remainder(&[1.0, 0.0, 1.0], 2.0, 3), [2, 0, 1]);
        for total in 3..200 {
            assert_eq!(largest_remainder(&[0.98, 0.01, 0.01], 1.0, total).iter().sum::<u32>() as u64, total);
        }
    }
}
