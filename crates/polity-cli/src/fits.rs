//! Which policies and metrics fit which worlds: found by trying, as `polity validate` does.

use super::engine::plain_engine;
use polity_driver::run::{Engine, Extent, Prepared, prepare};
use polity_kernel::interface::{Interface, WorldColumn};
use polity_kernel::registry::{LeafInfo, Registry};
use polity_kernel::tree::{Key, Node, Origin, Value};
use polity_store::files::{Reach, yaml};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

/// What an example keeps when other leaves are tried in it.
const KEPT: [&str; 5] = ["rounds", "agents", "population", "topology", "activation"];

/// Tries leaves together.
pub(super) struct Lab<'a> {
    registry: &'a Registry,
    engine: Engine<'a>,
    /// The societies that were looked for, by world and policy: every question about a pair needs its society.
    societies: RefCell<BTreeMap<(String, String), Option<Node>>>,
}

/// What a world shows and measures, and beside it what a policy adds.
pub(super) struct Shown {
    /// Observations, actions, quantities, measures and tables.
    pub interface: Interface,
    /// The quantities that the policy adds.
    pub of_policy: Vec<WorldColumn>,
}

fn map(entries: Vec<(&str, Node)>) -> Node {
    let key = |name: &str| Key { name: name.into(), origin: Origin::Built };
    Node::built(Value::Map(entries.into_iter().map(|(name, node)| (key(name), node)).collect()))
}

fn text(words: &str) -> Node {
    Node::built(Value::Text(words.into()))
}

impl<'a> Lab<'a> {
    pub(super) fn new(registry: &'a Registry) -> Self {
        Lab { registry, engine: Engine { asks: false, ..plain_engine(registry) }, societies: RefCell::default() }
    }

    /// The example of a leaf as a tree.
    fn example(&self, leaf: &LeafInfo) -> Option<Node> {
        yaml::parse(leaf.files.scenario).ok().filter(|tree| matches!(tree.value, Value::Map(_)))
    }

    fn leaf(&self, cards: Vec<&'a LeafInfo>, name: &str) -> Option<&'a LeafInfo> {
        cards.into_iter().find(|card| card.name == name)
    }

    /// Societies of a world without cohorts: its example, and the world alone with its defaults.
    fn without_cohorts(&self, world: &str) -> Vec<Node> {
        let number = |n| Node::built(Value::Int(n));
        let complete = || ("topology", map(vec![("kind", text("complete"))]));
        let alone = map(vec![("rounds", number(3)), ("agents", number(12)), complete(), ("world", text(world))]);
        let example = self.leaf(self.registry.worlds(), world).and_then(|leaf| self.example(leaf));
        let of_example = example.and_then(|tree| {
            let (kind, _) = tree.get("world")?.split_kind("world").ok()?;
            let mut entries: Vec<(&str, Node)> =
                KEPT.iter().filter_map(|key| Some((*key, tree.get(key)?.clone()))).collect();
            if !entries.iter().any(|(key, _)| *key == "agents" || *key == "population") {
                entries.push(("agents", number(12)));
            }
            entries.push(("world", tree.get("world")?.clone()));
            (kind.name == world).then(|| map(entries))
        });
        of_example.into_iter().chain([alone]).collect()
    }

    /// A policy as it may be written: its name alone, and as in its example; and the ties and people of the example.
    fn forms(&self, policy: &str) -> (Vec<Node>, Vec<(&'static str, Node)>) {
        let example = self.leaf(self.registry.policies(), policy).and_then(|leaf| self.example(leaf));
        let mut forms = vec![text(policy)];
        let cohorts = example.as_ref().and_then(|tree| tree.get("cohorts"));
        if let Some(Node { value: Value::List(cohorts), .. }) = cohorts {
            let of = |cohort: &Node| {
                let node = cohort.get("policy")?;
                let (kind, _) = node.split_kind("policy").ok()?;
                (kind.name == policy).then(|| node.clone())
            };
            forms.extend(cohorts.iter().filter_map(of));
        }
        let around = ["topology", "population"].into_iter();
        let around = around.filter_map(|key| Some((key, example.as_ref()?.get(key)?.clone())));
        (forms, around.collect())
    }

    fn prepared(&self, tree: Node) -> Option<Prepared> {
        prepare(tree, "example", Reach::of(Path::new("."), &[]), "example", Vec::new()).ok()
    }

    fn is_valid(&self, tree: Node) -> bool {
        self.prepared(tree).is_some_and(|prepared| self.engine.validate(&prepared, Extent::Outline).is_ok())
    }

    /// A valid society of a world with a policy, if there is one.
    fn society(&self, world: &str, policy: &str) -> Option<Node> {
        let pair = (world.to_owned(), policy.to_owned());
        let known = self.societies.borrow().get(&pair).cloned();
        known.unwrap_or_else(|| {
            let society = self.find_society(world, policy);
            self.societies.borrow_mut().insert(pair, society.clone());
            society
        })
    }

    fn find_society(&self, world: &str, policy: &str) -> Option<Node> {
        let (forms, around) = self.forms(policy);
        for society in self.without_cohorts(world) {
            for form in &forms {
                let cohorts = Node::built(Value::List(vec![map(vec![("policy", form.clone())])]));
                let with = |around: &[(&str, Node)]| {
                    let mut tree = society.clone();
                    tree.edit("cohorts", cohorts.clone()).ok()?;
                    tree.edit("model", text("sim/medium")).ok()?;
                    for (key, node) in around {
                        tree.edit(key, node.clone()).ok()?;
                    }
                    Some(tree)
                };
                // First as the world has it, then with the ties of the policy's example, then with its people, too.
                let tries = [with(&[]), with(&around[..around.len().min(1)]), with(&around)];
                if let Some(tree) = tries.into_iter().flatten().find(|tree| self.is_valid(tree.clone())) {
                    return Some(tree);
                }
            }
        }
        None
    }

    /// Whether a policy fits a world.
    pub(super) fn fits(&self, world: &str, policy: &str) -> bool {
        self.society(world, policy).is_some()
    }

    /// The policies that fit a world, by name.
    pub(super) fn policies_of(&self, world: &str) -> Vec<&'a LeafInfo> {
        self.registry.policies().into_iter().filter(|policy| self.fits(world, policy.name)).collect()
    }

    /// The worlds that a policy fits, by name.
    pub(super) fn worlds_of(&self, policy: &str) -> Vec<&'a LeafInfo> {
        self.registry.worlds().into_iter().filter(|world| self.fits(world.name, policy)).collect()
    }

    /// What a world shows with a policy that fits it.
    pub(super) fn shown(&self, world: &str, policy: &str) -> Option<Shown> {
        let prepared = self.prepared(self.society(world, policy)?)?;
        let machine = self.engine.assemble(&prepared).ok()?;
        let society = machine.society()?;
        let mut interface = society.interface().clone();
        let own = (0..interface.columns.len()).filter(|column| !society.is_of_policies(*column)).count();
        let of_policy = interface.columns.split_off(own);
        Some(Shown { interface, of_policy })
    }

    /// Whether a metric with its defaults can measure a quantity of a world.
    pub(super) fn measures(&self, world: &str, policy: &str, metric: &str, of: &str) -> bool {
        let Some(mut tree) = self.society(world, policy) else { return false };
        let node = map(vec![("kind", text(metric)), ("of", text(of))]);
        let edited = tree.edit("metrics", Node::built(Value::List(vec![node])));
        edited.is_ok() && self.is_valid(tree)
    }

    /// The metrics that can measure something of a world, each with the quantities.
    pub(super) fn metrics_of(
        &self,
        world: &str,
        policy: &str,
        quantities: &[&str],
    ) -> Vec<(&'a LeafInfo, Vec<String>)> {
        let all = self.registry.metrics().into_iter().map(|metric| {
            let own = quantities.iter().filter(|of| self.measures(world, policy, metric.name, of));
            (metric, own.map(|of| (*of).to_owned()).collect::<Vec<_>>())
        });
        all.filter(|(_, own)| !own.is_empty()).collect()
    }
}
