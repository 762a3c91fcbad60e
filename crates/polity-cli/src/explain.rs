//! `polity explain`: what a leaf is, what it can be given, and what fits it.

use super::failure::{Exit, Failure};
use super::fits::Lab;
use super::output::{json, note, print_line, print_text};
use super::reference::{KeyTable, key_tables, plural};
use super::sources::sources;
use comfy_table::{ContentArrangement, Table, presets};
use polity_kernel::interface::{ActionArgument, ActionKind, Field, FieldKind, Interface, WorldColumn};
use polity_kernel::method::Facts;
use polity_kernel::registry::{LeafInfo, Registry};
use polity_kernel::topology;
use polity_kernel::tree::nearest;
use serde::Serialize;
use std::fmt::Write as _;

/// All that the command says about a leaf.
#[derive(Debug, Default, Serialize)]
struct Page<'a> {
    name: &'a str,
    /// `world`, `policy`, `method`, `metric`, `topology` or `toolkit`.
    kind: &'static str,
    summary: &'a str,
    /// The first paragraph of its README.
    about: String,
    parameters: Vec<KeyTable>,
    #[serde(skip_serializing_if = "Option::is_none")]
    interface: Option<Interface>,
    /// Numbers of the agents' states that a policy adds to the quantities.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    quantities: Vec<WorldColumn>,
    #[serde(skip_serializing_if = "Option::is_none")]
    facts: Option<&'a Facts>,
    /// The policies that fit a world.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    policies: Vec<Named<'a>>,
    /// The worlds that a policy or a metric fits.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    worlds: Vec<Named<'a>>,
    /// The metrics that can measure a world's quantities, with these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    metrics: Vec<(Named<'a>, Vec<String>)>,
    /// The names of its prompts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    prompts: Vec<&'a str>,
    sources: Vec<String>,
    /// A scenario that uses it.
    #[serde(skip_serializing_if = "str::is_empty")]
    example: &'a str,
}

/// A leaf and its line in lists.
#[derive(Clone, Copy, Debug, Serialize)]
struct Named<'a> {
    name: &'a str,
    summary: &'a str,
}

fn named<'a>(card: &&'a LeafInfo) -> Named<'a> {
    Named { name: card.name, summary: card.summary }
}

pub fn explain(name: Option<&str>, as_json: bool, registry: &Registry) -> Result<Exit, Failure> {
    let lab = Lab::new(registry);
    let Some(name) = name else {
        matrix(&lab, as_json, registry);
        return Ok(Exit::Done);
    };
    let pages = pages(name, &lab, registry);
    if pages.is_empty() {
        return Err(unknown(name, registry));
    }
    if as_json {
        print_line(&json(&pages));
        return Ok(Exit::Done);
    }
    for (i, page) in pages.iter().enumerate() {
        if i > 0 {
            print_line("");
        }
        print_text(&shown(page));
    }
    Ok(Exit::Done)
}

/// The leaves of every kind but topologies, which are in the kernel.
fn kinds(registry: &Registry) -> [(&'static str, Vec<&LeafInfo>); 5] {
    [
        ("world", registry.worlds()),
        ("policy", registry.policies()),
        ("method", registry.methods()),
        ("metric", registry.metrics()),
        ("toolkit", registry.toolkits()),
    ]
}

fn unknown(name: &str, registry: &Registry) -> Failure {
    let leaves = kinds(registry).into_iter().flat_map(|(_, cards)| cards).map(|card| card.name);
    let all: Vec<&str> = leaves.chain(topology::kinds().into_iter().map(|(kind, _)| kind)).collect();
    let meant = nearest(name, all).map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    let message = format!(
        "there is no world, policy, method, metric, topology or toolkit `{name}`{meant} (`polity list worlds` and so on \
         list them)"
    );
    Failure::new(Exit::Input, message)
}

/// The pages of a name: one for each kind that has such a leaf.
fn pages<'a>(name: &str, lab: &Lab<'a>, registry: &'a Registry) -> Vec<Page<'a>> {
    let method = registry.method_named(name).unwrap_or(name);
    let mut pages = Vec::new();
    for (kind, cards) in kinds(registry) {
        let wanted = if kind == "method" { method } else { name };
        let Some(card) = cards.into_iter().find(|card| card.name == wanted) else { continue };
        let mut page = Page {
            name: card.name,
            kind,
            summary: card.summary,
            about: first_paragraph(card.files.readme),
            parameters: key_tables(registry, kind, card.name),
            prompts: card.files.prompts.iter().map(|(name, _)| *name).collect(),
            sources: sources(card),
            example: card.files.scenario,
            ..Page::default()
        };
        match kind {
            "world" => of_world(&mut page, lab),
            "policy" => of_policy(&mut page, lab),
            "metric" => page.worlds = worlds_of_metric(card, lab, registry),
            "method" => page.facts = registry.facts(card.name),
            _ => {}
        }
        pages.push(page);
    }
    let kinds = topology::kinds();
    pages.extend(kinds.into_iter().filter(|(kind, _)| *kind == name).map(|(kind, _)| Page {
        name: kind,
        kind: "topology",
        summary: "Who can hear whom",
        parameters: key_tables(registry, "topology", kind),
        ..Page::default()
    }));
    pages
}

fn of_world<'a>(page: &mut Page<'a>, lab: &Lab<'a>) {
    let policies = lab.policies_of(page.name);
    page.policies = policies.iter().map(named).collect();
    let Some((policy, shown)) = policies.iter().find_map(|policy| Some((policy, lab.shown(page.name, policy.name)?)))
    else {
        return;
    };
    let metrics = lab.metrics_of(page.name, policy.name, &measurable(&shown.interface));
    page.metrics = metrics.iter().map(|(metric, of)| (named(metric), of.clone())).collect();
    page.interface = Some(shown.interface);
}

/// What metrics can measure in a world: its quantities, and actions that carry a number.
fn measurable(interface: &Interface) -> Vec<&str> {
    let mut names: Vec<&str> = interface.columns.iter().map(|column| column.name.as_ref()).collect();
    let has_value =
        |act: &&ActionKind| matches!(act.argument, ActionArgument::Number { .. } | ActionArgument::Choice(_));
    for act in interface.acts.iter().filter(has_value) {
        if !names.contains(&act.name.as_ref()) {
            names.push(&act.name);
        }
    }
    names
}

fn of_policy<'a>(page: &mut Page<'a>, lab: &Lab<'a>) {
    let worlds = lab.worlds_of(page.name);
    page.worlds = worlds.iter().map(named).collect();
    let shown = worlds.iter().find_map(|world| lab.shown(world.name, page.name));
    page.quantities = shown.map_or(Vec::new(), |shown| shown.of_policy);
}

fn worlds_of_metric<'a>(metric: &LeafInfo, lab: &Lab<'a>, registry: &'a Registry) -> Vec<Named<'a>> {
    let measures = |world: &&'a LeafInfo| {
        let policy = registry.policies().into_iter().find(|policy| lab.fits(world.name, policy.name))?;
        let shown = lab.shown(world.name, policy.name)?;
        let names = measurable(&shown.interface);
        let measured = names.iter().any(|of| lab.measures(world.name, policy.name, metric.name, of));
        measured.then(|| named(world))
    };
    registry.worlds().iter().filter_map(measures).collect()
}

/// The first paragraph below the title that describes the leaf.
fn first_paragraph(readme: &str) -> String {
    let paragraph = readme.split("\n\n").map(str::trim).find(|paragraph| {
        !paragraph.is_empty() && !paragraph.starts_with(['#', '|', '`', '<']) && !paragraph.starts_with("Source")
    });
    paragraph.map_or(String::new(), |text| text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Lines of a table without borders.
fn rows(lines: Vec<Vec<String>>) -> String {
    let width = lines.iter().map(Vec::len).max().unwrap_or(0);
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    for mut line in lines {
        line.resize(width, String::new());
        table.add_row(line);
    }
    table.to_string().lines().map(|line| format!(" {}\n", line.trim_end())).collect()
}

fn section(out: &mut String, title: &str, lines: Vec<Vec<String>>) {
    if !lines.is_empty() {
        let _ = write!(out, "\n{title}\n{}", rows(lines));
    }
}

fn of_named(all: &[Named<'_>]) -> Vec<Vec<String>> {
    all.iter().map(|leaf| vec![leaf.name.to_owned(), leaf.summary.to_owned()]).collect()
}

/// A page for people.
fn shown(page: &Page<'_>) -> String {
    let mut out = format!("{} ({}): {}\n", page.name, page.kind, page.summary);
    if !page.about.is_empty() {
        let _ = write!(out, "\n{}", rows(vec![vec![page.about.replace('`', "")]]));
    }
    for KeyTable { title, about, rows: keys, options } in &page.parameters {
        let title = match title.as_str() {
            "" => "Parameters".to_owned(),
            title if about.is_empty() => format!("Parameter {title}"),
            title => format!("Parameter {title}: {}", about.replace('`', "")),
        };
        let keys = keys.iter().map(|row| row.iter().map(|cell| cell.replace('`', "")).collect());
        let options = options.iter().map(|(value, about)| vec![value.replace('`', ""), about.replace('`', "")]);
        section(&mut out, &title, keys.chain(options).collect());
    }
    if page.parameters.is_empty() {
        out.push_str("\nIt has no parameters.\n");
    }
    if let Some(interface) = &page.interface {
        of_interface(&mut out, interface);
    }
    let columns = page.quantities.iter().map(quantity).collect();
    section(&mut out, "Quantities that it adds, for metrics", columns);
    section(&mut out, "Team", page.facts.map(facts).unwrap_or_default());
    let metrics = page.metrics.iter().map(|(metric, of)| vec![metric.name.to_owned(), of.join(", ")]);
    section(&mut out, "Metrics, and the quantities and actions that each can measure", metrics.collect());
    section(&mut out, "Policies that fit it", of_named(&page.policies));
    section(&mut out, "Worlds that it fits", of_named(&page.worlds));
    section(&mut out, "Prompts", page.prompts.iter().map(|name| vec![(*name).to_owned()]).collect());
    section(&mut out, "Sources", page.sources.iter().map(|source| vec![source.clone()]).collect());
    // The examples of methods and toolkits read data that only the repository has.
    if !page.example.is_empty() && !["method", "toolkit"].contains(&page.kind) {
        let ranges = if page.kind == "world" { "An example, whose ranges are shown" } else { "An example" };
        let _ = write!(out, "\n{ranges}: polity run {}\n", page.name);
    }
    out
}

fn of_interface(out: &mut String, interface: &Interface) {
    let observed = interface
        .observation
        .iter()
        .map(|field| vec![field.name.to_string(), field_kind(field), field.doc.to_string()]);
    section(out, "Agents see", observed.collect());
    let title = match interface.alternatives {
        true => "Agents do one of these, or nothing",
        false => "Agents do",
    };
    let acts = interface.acts.iter().map(|act| vec![act.name.to_string(), argument(act), act.doc.replace('`', "")]);
    section(out, title, acts.collect());
    let columns: Vec<Vec<String>> = interface.columns.iter().map(quantity).collect();
    section(out, "Quantities: one number for each agent, for metrics", columns);
    let scalars = interface.scalars.iter().map(|field| vec![field.name.to_string(), field.doc.to_string()]);
    section(out, "Measured in every round", scalars.collect());
    let tables = interface.tables.iter().map(|table| vec![table.name.to_string(), table.doc.to_string()]);
    section(out, "Tables of its own", tables.collect());
}

fn field_kind(field: &Field) -> String {
    match field.kind {
        FieldKind::Number => "number".into(),
        FieldKind::Text => "text".into(),
        FieldKind::Table => format!("table: {}", field.columns.join(", ")),
    }
}

fn argument(act: &ActionKind) -> String {
    match &act.argument {
        ActionArgument::Number { low, high } => format!("number, {low} to {high}"),
        ActionArgument::Choice(words) if words.len() <= 6 => format!("one of {}", words.join(", ")),
        ActionArgument::Choice(words) => format!("one of {} options", words.len()),
        ActionArgument::Text => "text".into(),
        ActionArgument::Seen { table, column, words: true, .. } => format!("a {column} in {table}, and a text"),
        ActionArgument::Seen { table, column, .. } => format!("a {column} in {table}"),
        ActionArgument::Record(_) => "a record".into(),
        ActionArgument::Nothing => String::new(),
    }
}

fn quantity(column: &WorldColumn) -> Vec<String> {
    let range = column.range.map_or(String::new(), |(low, high)| format!("{low} to {high}"));
    vec![column.name.to_string(), range, column.doc.to_string()]
}

fn facts(facts: &Facts) -> Vec<Vec<String>> {
    let row = |name: &str, value: String| vec![name.to_owned(), value];
    let mut lines =
        vec![row("members", facts.usual.members.to_string()), row("rounds", facts.usual.rounds.to_string())];
    lines.extend(facts.short.map(|short| row("short name", short.to_owned())));
    lines.extend((!facts.roles.is_empty()).then(|| row("roles", facts.roles.join(", "))));
    lines.extend((!facts.tools.is_empty()).then(|| row("tools", facts.tools.join(", "))));
    let dimensions = Facts::DIMENSIONS.iter().filter(|name| **name != "actors");
    lines.extend(dimensions.filter_map(|name| Some(row(name, facts.dimension(name)?))));
    lines.extend(
        facts.quantities.iter().map(|quantity| row(&format!("measures {}", quantity.name), quantity.doc.to_owned())),
    );
    lines
}

/// Each world with the policies that fit it.
fn fitting<'a>(lab: &Lab<'a>, registry: &'a Registry) -> Vec<(&'a LeafInfo, Vec<&'a LeafInfo>)> {
    registry.worlds().into_iter().map(|world| (world, lab.policies_of(world.name))).collect()
}

/// Which policies fit which worlds, for people and for programs.
fn matrix(lab: &Lab<'_>, as_json: bool, registry: &Registry) {
    let fitting = fitting(lab, registry);
    if as_json {
        let of = |(world, policies): &(&LeafInfo, Vec<&LeafInfo>)| serde_json::json!({ "world": world.name, "policies": policies.iter().map(|policy| policy.name).collect::<Vec<_>>() });
        print_line(&json(&fitting.iter().map(of).collect::<Vec<_>>()));
        return;
    }
    let letter = |i: usize| char::from_u32('a' as u32 + i as u32).unwrap_or('?').to_string();
    let mut out = String::from("Which policies fit which worlds\n\n");
    out.push_str(&rows(
        fitting
            .iter()
            .enumerate()
            .map(|(i, (world, _))| vec![letter(i), world.name.into(), world.summary.into()])
            .collect(),
    ));
    out.push('\n');
    let mut lines = vec![[String::new()].into_iter().chain((0..fitting.len()).map(letter)).collect::<Vec<_>>()];
    for policy in registry.policies() {
        let fits = fitting.iter().map(|(_, policies)| policies.iter().any(|other| other.name == policy.name));
        let cells = fits.map(|fits| if fits { "x" } else { "·" }.to_owned());
        lines.push([policy.name.to_owned()].into_iter().chain(cells).collect());
    }
    out.push_str(&rows(lines));
    print_text(&out);
    note("`polity explain NAME` says more about each: parameters, observations, actions, quantities");
}

/// The page of the book: every world with its quantities and policies.
pub fn page(registry: &Registry) -> String {
    let lab = Lab::new(registry);
    let mut out = String::from(
        "<!-- Made by `polity reference fits`; a test holds this file equal to what it prints. -->\n# Worlds and policies\n\n\
         Which policies fit a world is found by trying, as `polity validate` does. `polity explain` prints the same as a matrix, and \
         `polity explain NAME` says more about a world, policy, method, metric, topology or toolkit: its parameters, what agents see \
         and do, its prompts and its sources.\n\n\
         | world | what metrics can measure | policies that fit |\n|---|---|---|\n",
    );
    let list =
        |names: &mut dyn Iterator<Item = String>| names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    for (world, policies) in fitting(&lab, registry) {
        let shown = policies.iter().find_map(|policy| lab.shown(world.name, policy.name));
        let names = shown.as_ref().map_or(Vec::new(), |shown| measurable(&shown.interface));
        let quantities = list(&mut names.into_iter().map(str::to_owned));
        let fitting = list(&mut policies.iter().map(|policy| policy.name.to_owned()));
        let _ = writeln!(out, "| `{}`: {} | {quantities} | {fitting} |", world.name, world.summary);
    }
    let _ = write!(
        out,
        "\nA metric names the quantity, or the action with a number, that it measures: `{{kind: mean, of: opinion}}`. A joint metric, such as `hypervolume`, names several: `of: [return-a, return-b]`. `polity list {}` lists all.\n",
        plural("metric")
    );
    out
}
