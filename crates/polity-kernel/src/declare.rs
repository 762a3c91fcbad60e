//! What a world shows and understands, declared once.
//!
//! A world gets a [`Declare`] when it opens. Every declaration takes a name and a description, and either the function that finds the value
//! or nothing; it returns a typed slot where the world must write or recognise something itself. So nothing is listed in one place and
//! matched by position in another.
//!
//! ```
//! use polity_kernel::declare::Declare;
//! use polity_kernel::sight::ActArgument;
//! struct Pasture { capacity: f64 }
//! // The state that all share is the grass; of each agent it is what the agent has eaten.
//! let mut declare: Declare<Pasture, f64, f64> = Declare::default();
//! declare.shared_number("grass", "grass left an agent", |_, grass| *grass);
//! let graze = declare.action("graze", ActArgument::Number { low: 0.0, high: 1.0 }, "eat");
//! declare.column("eaten", "all that the agent has eaten", None, |_, _, eaten| *eaten);
//! declare.scalar("used", "share of the land's grass that is gone", |world, grass| 1.0 - grass / world.capacity);
//! assert_eq!(graze, 0);
//! ```

use crate::sight::{
    ActArgument, ActKind, Cells, Field, FieldKind, Interface, Name, NumberSlot, TableKind, TableSlot, TextSlot,
    WorldColumn,
};
use crate::world::{SplitWorld, World};
use crate::{AgentId, Invalid};
use std::collections::BTreeSet;

/// A number of a world `W` whose state is `S`.
type OfWorld<W, S> = Box<dyn Fn(&W, &S) -> f64 + Send + Sync>;
/// A number of one agent, whose share of it is `A`.
type OfAgent<W, S, A> = Box<dyn Fn(&W, &S, &A) -> f64 + Send + Sync>;
/// The rows that a round adds to a table.
type OfRound<W, S> = Box<dyn Fn(&W, &S) -> Vec<Cells> + Send + Sync>;

/// Where a world `W` declares. `S` is the state that its functions read, and `A` what tells agents apart: for a [`World`] its state and an
/// agent's id, for a [`SplitWorld`] the common state and an agent's row.
pub struct Declare<W, S, A> {
    pub(crate) interface: Interface,
    pub(crate) shared: Vec<(NumberSlot, OfWorld<W, S>)>,
    pub(crate) numbers: Vec<(NumberSlot, OfAgent<W, S, A>)>,
    pub(crate) columns: Vec<OfAgent<W, S, A>>,
    pub(crate) scalars: Vec<OfWorld<W, S>>,
    pub(crate) tables: Vec<OfRound<W, S>>,
}

/// Where a [`World`] declares.
pub type DeclareWorld<W> = Declare<W, <W as World>::State, AgentId>;
/// Where a [`SplitWorld`] declares.
pub type DeclareSplit<W> = Declare<W, <W as SplitWorld>::Common, <W as SplitWorld>::Row>;

impl<W, S, A> Default for Declare<W, S, A> {
    fn default() -> Self {
        Declare {
            interface: Interface::default(),
            shared: Vec::new(),
            numbers: Vec::new(),
            columns: Vec::new(),
            scalars: Vec::new(),
            tables: Vec::new(),
        }
    }
}

impl<W, S, A> Declare<W, S, A> {
    fn slot(&mut self, field: Field) -> usize {
        let slot = self.interface.sight.iter().filter(|known| known.kind == field.kind).count();
        self.interface.sight.push(field);
        slot
    }

    /// A number that each agent sees its own of.
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

    /// A number that all agents see alike, unless `observe` writes another for some.
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

    /// A number that `observe` writes: 0 for agents for whom it does not.
    pub fn number_slot(&mut self, name: impl Into<Name>, doc: impl Into<Name>) -> NumberSlot {
        NumberSlot(self.slot(Field::number(name, doc)))
    }

    /// A text that `observe` writes: empty for agents for whom it does not.
    pub fn text_slot(&mut self, name: impl Into<Name>, doc: impl Into<Name>) -> TextSlot {
        TextSlot(self.slot(Field::text(name, doc)))
    }

    /// A table that `observe` writes: without rows for agents for whom it does not.
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

    /// Something that agents can do; its number is the `kind` of such acts.
    ///
    /// What an action carries can be a record, described by a Rust type or by data:
    ///
    /// ```
    /// use polity_kernel::ask::Want;
    /// use polity_kernel::declare::Declare;
    /// use polity_kernel::sight::ActArgument;
    /// #[derive(schemars::JsonSchema, serde::Serialize, serde::Deserialize)]
    /// struct Bid { good: String, price: f64 }
    /// let mut declare: Declare<(), (), ()> = Declare::default();
    /// declare.action("bid", ActArgument::Record(Want::of::<Bid>()?), "bid a price for a good");
    /// let goods = vec!["timber".to_string(), "grain".to_string()];
    /// let bid = [("good".to_string(), Want::Choice(goods)), ("price".to_string(), Want::number(0.0, 1.0))];
    /// declare.action("bid-on-a-list", ActArgument::Record(Want::Record(bid.into())), "bid a price for one of these goods");
    /// # Ok::<(), String>(())
    /// ```
    pub fn action(&mut self, name: impl Into<Name>, argument: ActArgument, doc: impl Into<Name>) -> u16 {
        self.interface.acts.push(ActKind { name: name.into(), argument, doc: doc.into() });
        self.interface.acts.len() as u16 - 1
    }

    /// The actions are alternatives: who is asked what it does names one of them, or none. Else it is asked for a value of each.
    pub fn alternatives(&mut self) {
        self.interface.alternatives = true;
    }

    /// A number of each agent that metrics and tables may read. `range`: the smallest and the largest sensible value, where there are such.
    pub fn column(
        &mut self,
        name: impl Into<Name>,
        doc: impl Into<Name>,
        range: Option<(f64, f64)>,
        value: impl Fn(&W, &S, &A) -> f64 + Send + Sync + 'static,
    ) {
        self.interface.columns.push(WorldColumn { name: name.into(), doc: doc.into(), range });
        self.columns.push(Box::new(value));
    }

    /// A number a round, recorded as a metric.
    pub fn scalar(
        &mut self,
        name: impl Into<Name>,
        doc: impl Into<Name>,
        value: impl Fn(&W, &S) -> f64 + Send + Sync + 'static,
    ) {
        self.interface.scalars.push(Field::number(name, doc));
        self.scalars.push(Box::new(value));
    }

    /// A table that the run records. `rows` gives what the round that has just ended adds: one entry a column.
    pub fn table(&mut self, table: TableKind, rows: impl Fn(&W, &S) -> Vec<Cells> + Send + Sync + 'static) {
        self.interface.tables.push(table);
        self.tables.push(Box::new(rows));
    }

    /// Refuses two declarations of one kind under one name, as a world made from data may come to have.
    pub(crate) fn check(&self) -> Result<(), Invalid> {
        let Interface { sight, acts, columns, scalars, tables, .. } = &self.interface;
        let kinds: [(&str, Vec<&Name>); 5] = [
            ("things to see", sight.iter().map(|field| &field.name).collect()),
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

    /// Whether agents see any table.
    pub(crate) fn shows_tables(&self) -> bool {
        self.interface.sight.iter().any(|field| field.kind == FieldKind::Table)
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
        // A column, an action and a scalar may have the name of something that is seen.
        declare.column("a", "", None, |(), (), ()| 0.0);
        declare.scalar("a", "", |(), ()| 0.0);
        assert_eq!((declare.action("a", ActArgument::Nothing, ""), declare.check()), (0, Ok(())));
        declare.scalar(String::from("a"), "", |(), ()| 0.0);
        let error = declare.check().unwrap_err();
        assert_eq!(error.message, "the world has two scalars called `a`");
    }
}
