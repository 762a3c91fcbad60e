//! Declarations of what a world shows and which actions it understands.
//!
//! A world gets a [`Declare`] when it opens. Every declaration takes a name, a description and, optionally, the function that
//! computes the value. It returns a typed slot if the world must write or recognise something itself. So nothing is listed in one
//! place and matched by position in another.
//!
//! ```
//! use polity_kernel::declare::Declare;
//! use polity_kernel::interface::ActionArgument;
//! struct Pasture { capacity: f64 }
//! // The state that all share is the grass; of each agent it is what the agent has eaten.
//! let mut declare: Declare<Pasture, f64, f64> = Declare::default();
//! declare.shared_number("grass", "grass left an agent", |_, grass| *grass);
//! let graze = declare.action("graze", ActionArgument::Number { low: 0.0, high: 1.0 }, "eat");
//! declare.column("eaten", "all that the agent has eaten", None, |_, _, eaten| *eaten);
//! declare.scalar("used", "share of the land's grass that is gone", |world, grass| 1.0 - grass / world.capacity);
//! assert_eq!(graze, 0);
//! ```

use crate::Invalid;
use crate::interface::{
    ActionArgument, ActionKind, Axis, Cells, Field, FieldKind, Interface, Name, NumberSlot, TableKind, TableSlot,
    TextSlot, WorldColumn,
};
use std::collections::BTreeSet;

/// A number of a world `W` whose state is `S`.
type OfWorld<W, S> = Box<dyn Fn(&W, &S) -> f64 + Send + Sync>;
/// A number of one agent, whose part of the state is `A`.
type OfAgent<W, S, A> = Box<dyn Fn(&W, &S, &A) -> f64 + Send + Sync>;
/// A number of every agent. Blocks of agents are read with one call.
pub(crate) trait Column<W, S, A>: Send + Sync {
    fn of(&self, world: &W, state: &S, agent: &A) -> f64;
    /// Appends the numbers of some agents, in their order.
    fn extend(&self, world: &W, state: &S, agents: &[A], out: &mut Vec<f64>);
}

impl<W, S, A, F: Fn(&W, &S, &A) -> f64 + Send + Sync> Column<W, S, A> for F {
    fn of(&self, world: &W, state: &S, agent: &A) -> f64 {
        self(world, state, agent)
    }

    fn extend(&self, world: &W, state: &S, agents: &[A], out: &mut Vec<f64>) {
        out.extend(agents.iter().map(|agent| self(world, state, agent)));
    }
}

/// The rows that a round adds to a table.
type OfRound<W, S> = Box<dyn Fn(&W, &S) -> Vec<Cells> + Send + Sync>;

/// One of several objectives: a part of the reward of each agent.
pub(crate) struct Objective<W, S, A> {
    pub name: Name,
    pub doc: Name,
    pub value: OfAgent<W, S, A>,
}

/// The declarations of a world `W`. `S` is the state that its functions read, and `A` identifies an agent: for a [`World`](crate::world::World) its
/// state and an agent's id, for a [`SplitWorld`](crate::world::SplitWorld) the common state and an agent's row.
pub struct Declare<W, S, A> {
    pub(crate) interface: Interface,
    pub(crate) shared: Vec<(NumberSlot, OfWorld<W, S>)>,
    pub(crate) numbers: Vec<(NumberSlot, OfAgent<W, S, A>)>,
    pub(crate) columns: Vec<Box<dyn Column<W, S, A>>>,
    pub(crate) scalars: Vec<OfWorld<W, S>>,
    pub(crate) tables: Vec<OfRound<W, S>>,
    pub(crate) objectives: Vec<Objective<W, S, A>>,
    pub(crate) random_order: bool,
    pub(crate) reports_disturbed: bool,
}

impl<W, S, A> Default for Declare<W, S, A> {
    fn default() -> Self {
        Declare {
            interface: Interface::default(),
            shared: Vec::new(),
            numbers: Vec::new(),
            columns: Vec::new(),
            scalars: Vec::new(),
            tables: Vec::new(),
            objectives: Vec::new(),
            random_order: false,
            reports_disturbed: false,
        }
    }
}

impl<W, S, A> Declare<W, S, A> {
    fn slot(&mut self, field: Field) -> usize {
        let slot = self.interface.observation.iter().filter(|known| known.kind == field.kind).count();
        self.interface.observation.push(field);
        slot
    }

    /// Declares a number with a value for each agent.
    pub fn number(
        &mut self,
        name: impl Into<Name>,
        doc: impl Into<Name>,
        value: impl Fn(&W, &S, &A) -> f64 + Send + Sync + 'static,
    ) -> NumberSlot {
        let slot = self.number_slot(name, doc);
        self.numbers.push((slot, Box::new(value)));
        slot
    }

    /// Declares a number with one value for all agents, unless `observe` writes another for some.
    pub fn shared_number(
        &mut self,
        name: impl Into<Name>,
        doc: impl Into<Name>,
        value: impl Fn(&W, &S) -> f64 + Send + Sync + 'static,
    ) -> NumberSlot {
        let slot = self.number_slot(name, doc);
        self.shared.push((slot, Box::new(value)));
        slot
    }

    /// Declares a number that `observe` writes; it is 0 for other agents.
    pub fn number_slot(&mut self, name: impl Into<Name>, doc: impl Into<Name>) -> NumberSlot {
        NumberSlot(self.slot(Field::number(name, doc)))
    }

    /// Declares a text that `observe` writes; it is empty for other agents.
    pub fn text_slot(&mut self, name: impl Into<Name>, doc: impl Into<Name>) -> TextSlot {
        TextSlot(self.slot(Field::text(name, doc)))
    }

    /// Declares a table that `observe` writes; it has no rows for other agents.
    pub fn table_slot<C: Into<Name>>(
        &mut self,
        name: impl Into<Name>,
        columns: impl IntoIterator<Item = C>,
        doc: impl Into<Name>,
    ) -> TableSlot {
        let field = Field::table(name, columns, doc);
        let columns = field.columns.len();
        TableSlot(self.slot(field), columns)
    }

    /// Declares an action. Returns its number, which is the `kind` of such acts.
    ///
    /// The argument of an action can be a record, described by a Rust type or by data:
    ///
    /// ```
    /// use polity_kernel::ask::ResponseFormat;
    /// use polity_kernel::declare::Declare;
    /// use polity_kernel::interface::ActionArgument;
    /// #[derive(schemars::JsonSchema, serde::Serialize, serde::Deserialize)]
    /// struct Bid { good: String, price: f64 }
    /// let mut declare: Declare<(), (), ()> = Declare::default();
    /// declare.action("bid", ActionArgument::Record(ResponseFormat::of::<Bid>()?), "bid a price for a good");
    /// let goods = vec!["timber".to_string(), "grain".to_string()];
    /// let bid = [("good".to_string(), ResponseFormat::Choice(goods)), ("price".to_string(), ResponseFormat::number(0.0, 1.0))];
    /// declare.action("bid-on-a-list", ActionArgument::Record(ResponseFormat::Record(bid.into())), "bid a price for one of these goods");
    /// # Ok::<(), String>(())
    /// ```
    pub fn action(&mut self, name: impl Into<Name>, argument: ActionArgument, doc: impl Into<Name>) -> u16 {
        self.interface.acts.push(ActionKind { name: name.into(), argument, doc: doc.into() });
        self.interface.acts.len() as u16 - 1
    }

    /// Makes the actions alternatives: an agent names one of them, or none. Otherwise it is asked for a value of each.
    pub fn alternatives(&mut self) {
        self.interface.alternatives = true;
    }

    /// Says how many agents share an episode, so that learners know who acts together. They are `k * seats .. (k + 1) * seats`, unless
    /// cohorts take seats of their own.
    pub fn seats(&mut self, seats: u32) {
        self.interface.seats = Some(seats);
    }

    /// Declares a number of each agent that metrics and tables may read. `range`: the smallest and the largest sensible value, if
    /// any.
    pub fn column(
        &mut self,
        name: impl Into<Name>,
        doc: impl Into<Name>,
        range: Option<(f64, f64)>,
        value: impl Fn(&W, &S, &A) -> f64 + Send + Sync + 'static,
    ) {
        self.interface.columns.push(WorldColumn { name: name.into(), doc: doc.into(), range, axis: None });
        self.columns.push(Box::new(value));
    }

    /// Declares a coordinate of each agent's place, by which pictures of the world draw it. It is a column, too. `range`: the
    /// smallest and the largest value; of cells, the first and the last.
    pub fn coordinate(
        &mut self,
        axis: Axis,
        name: impl Into<Name>,
        doc: impl Into<Name>,
        range: (f64, f64),
        value: impl Fn(&W, &S, &A) -> f64 + Send + Sync + 'static,
    ) {
        self.column(name, doc, Some(range), value);
        if let Some(column) = self.interface.columns.last_mut() {
            column.axis = Some(axis);
        }
    }

    /// Declares what an agent got in the last round: the column `reward`, from which learners learn.
    pub fn reward(&mut self, doc: impl Into<Name>, value: impl Fn(&W, &S, &A) -> f64 + Send + Sync + 'static) {
        self.interface.reward = Some(self.columns.len());
        self.column("reward", doc, None, value);
    }

    /// Declares a number per round, recorded as a metric.
    pub fn scalar(
        &mut self,
        name: impl Into<Name>,
        doc: impl Into<Name>,
        value: impl Fn(&W, &S) -> f64 + Send + Sync + 'static,
    ) {
        self.interface.scalars.push(Field::number(name, doc));
        self.scalars.push(Box::new(value));
    }

    /// Declares a table that the run records. `rows` returns what the round that has just ended adds, with one entry per column.
    pub fn table(&mut self, table: TableKind, rows: impl Fn(&W, &S) -> Vec<Cells> + Send + Sync + 'static) {
        self.interface.tables.push(table);
        self.tables.push(Box::new(rows));
    }

    /// Refuses two declarations of one kind with the same name, which a world made from data may have.
    pub(crate) fn check(&self) -> Result<(), Invalid> {
        let Interface { observation, acts, columns, scalars, tables, .. } = &self.interface;
        let kinds: [(&str, Vec<&Name>); 5] = [
            ("observed values", observation.iter().map(|field| &field.name).collect()),
            ("actions", acts.iter().map(|act| &act.name).collect()),
            ("columns", columns.iter().map(|column| &column.name).collect()),
            ("scalars", scalars.iter().map(|scalar| &scalar.name).collect()),
            ("tables", tables.iter().map(|table| &table.name).collect()),
        ];
        for (kind, names) in kinds {
            let mut known = BTreeSet::new();
            if let Some(name) = names.into_iter().find(|name| !known.insert(*name)) {
                return Err(Invalid {
                    key: "kind".into(),
                    message: format!("the world has two {kind} called `{name}`"),
                });
            }
        }
        Ok(())
    }

    /// Returns whether agents see any table.
    pub(crate) fn shows_tables(&self) -> bool {
        self.interface.observation.iter().any(|field| field.kind == FieldKind::Table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_count_each_kind_of_thing_apart_and_names_stand_once() {
        let mut declare: Declare<(), (), ()> = Declare::default();
        assert_eq!(declare.number_slot("a", ""), NumberSlot(0));
        assert_eq!(declare.table_slot("t", ["x", "y"], ""), TableSlot(0, 2));
        assert_eq!(declare.shared_number(format!("made-{}", "here"), "", |(), ()| 1.0), NumberSlot(1));
        assert_eq!(declare.text_slot("words", ""), TextSlot(0));
        // A column, an action and a scalar may share the name of an observation.
        declare.column("a", "", None, |(), (), ()| 0.0);
        declare.scalar("a", "", |(), ()| 0.0);
        assert_eq!((declare.action("a", ActionArgument::Nothing, ""), declare.check()), (0, Ok(())));
        declare.scalar(String::from("a"), "", |(), ()| 0.0);
        let error = declare.check().unwrap_err();
        assert_eq!(error.message, "the world has two scalars called `a`");
    }
}
