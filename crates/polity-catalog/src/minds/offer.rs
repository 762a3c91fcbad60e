//! One act out of several: put as one question, whose form holds what the agent may name in this turn, and read back.

use super::templates::plain;
use super::{Deed, THOUGHTS, thoughts};
use polity_kernel::ask::{Value, Want};
use polity_kernel::sight::{ActArgument, Name, Sight, TableSlot};

/// The field that names the act.
const ACT: &str = "act";
/// The field that holds the words of acts that carry some.
const WORDS: &str = "words";
/// What stands for no act.
pub const NOTHING: &str = "nothing";

/// The column of a sight's table whose values an act may name.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// The table.
    pub slot: TableSlot,
    /// Where its column stands in a row.
    pub place: usize,
    /// The column's name.
    pub column: Name,
    /// Where a column stands that says by this value of which rows it may; none: of all.
    pub only: Option<(usize, f64)>,
}

impl Shown {
    /// What the first row names that an act can be about: of a feed the best.
    #[must_use]
    pub fn first(&self, sight: Sight<'_>) -> Option<f64> {
        let fits = |row: &&[f64]| self.only.is_none_or(|(place, value)| row.get(place) == Some(&value));
        sight.table(self.slot).find(fits).and_then(|row| row.get(self.place)).copied()
    }
}

/// What an agent may do in a turn.
pub struct Offer<'a> {
    /// The acts that are offered: each with the field that says what it is about, if there is one.
    acts: Vec<(usize, &'a Deed, Option<usize>)>,
    /// The fields after that of the act.
    fields: Vec<(String, Want)>,
    thoughts: bool,
}

impl<'a> Offer<'a> {
    /// What these acts come to for somebody who sees this; those that would name something where nothing is seen are left out. Acts that
    /// name values of the same column share a field, and all that carry words have one.
    #[must_use]
    pub fn of(deeds: &'a [Deed], sight: Sight<'_>, thoughts: bool) -> Self {
        Offer::made(deeds, thoughts, |shown| Some(options(sight, shown)).filter(|options| !options.is_empty()))
    }

    /// What they come to for many at once, each of whom finds for itself what an act is about: nothing that is seen is asked for. Read, an
    /// act about something seen has its words as its value, or that it has none.
    #[must_use]
    pub fn of_many(deeds: &'a [Deed]) -> Self {
        Offer::made(deeds, false, |_| Some(Vec::new()))
    }

    /// `seen`: what an act may name; `None`: it is left out; nothing: it is not asked for.
    fn made(deeds: &'a [Deed], thoughts: bool, seen: impl Fn(&Shown) -> Option<Vec<String>>) -> Self {
        let mut offer = Offer { acts: Vec::new(), fields: Vec::new(), thoughts };
        for (i, deed) in deeds.iter().enumerate() {
            let field = match (&deed.argument, &deed.shown) {
                (ActArgument::Nothing, _) => None,
                (ActArgument::Text, _) => Some(offer.field(WORDS, || Want::Text)),
                (_, None) => Some(offer.field(&deed.name, || deed.want.clone())),
                (_, Some(shown)) => match seen(shown) {
                    None => continue,
                    Some(options) if options.is_empty() => None,
                    Some(options) => Some(offer.field(&shown.column, || Want::Choice(options))),
                },
            };
            if deed.argument.has_words() {
                offer.field(WORDS, || Want::Text);
            }
            offer.acts.push((i, deed, field));
        }
        offer
    }

    fn field(&mut self, name: &str, want: impl FnOnce() -> Want) -> usize {
        let found = self.fields.iter().position(|(known, _)| known == name);
        found.unwrap_or_else(|| {
            self.fields.push((name.to_owned(), want()));
            self.fields.len() - 1
        })
    }

    /// What is asked for: thoughts if they are wanted, the name of an act, and what any act may need; of that, what the act that is named
    /// does not need is not looked at.
    #[must_use]
    pub fn want(&self) -> Want {
        let names = self.acts.iter().map(|(_, deed, _)| deed.name.clone()).chain([NOTHING.to_owned()]).collect();
        let thoughts = self.thoughts.then(|| (THOUGHTS.to_owned(), Want::Text));
        let act = (ACT.to_owned(), Want::Choice(names));
        Want::Record(thoughts.into_iter().chain([act]).chain(self.fields.iter().cloned()).collect())
    }

    /// The act that an answer names, by its place among the deeds, with its value; and the thoughts.
    #[must_use]
    pub fn read(&self, answer: Value) -> (Option<(usize, Value)>, Option<String>) {
        let Value::Record(mut fields) = answer else { return (None, None) };
        let thoughts = self.thoughts.then(|| thoughts(&mut fields)).flatten();
        let mut fields = fields.into_iter();
        let Some(Value::Choice(act)) = fields.next() else { return (None, thoughts) };
        let values: Vec<Value> = fields.collect();
        let Some((i, deed, field)) = self.acts.get(act as usize) else { return (None, thoughts) };
        let value = match field {
            None if deed.argument.has_words() => self.words(&values),
            None => Some(Value::Choice(0)),
            Some(field) => self.value(deed, *field, &values),
        };
        (value.map(|value| (*i, value)), thoughts)
    }

    fn value(&self, deed: &Deed, field: usize, values: &[Value]) -> Option<Value> {
        let ActArgument::Seen { words, .. } = deed.argument else { return values.get(field).cloned() };
        let (Some((_, Want::Choice(options))), Some(Value::Choice(chosen))) =
            (self.fields.get(field), values.get(field))
        else {
            return None;
        };
        let number = Value::Number(options.get(*chosen as usize)?.parse().ok()?);
        if !words {
            return Some(number);
        }
        Some(Value::Record(vec![number, self.words(values)?]))
    }

    fn words(&self, values: &[Value]) -> Option<Value> {
        self.fields.iter().position(|(name, _)| name == WORDS).and_then(|i| values.get(i)).cloned()
    }
}

/// The values of a column, each once, in the order seen.
fn options(sight: Sight<'_>, shown: &Shown) -> Vec<String> {
    let mut options: Vec<String> = Vec::new();
    for row in sight.table(shown.slot) {
        let option = plain(row.get(shown.place).copied().unwrap_or(0.0));
        if !options.contains(&option) {
            options.push(option);
        }
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_kernel::sight::{Field, Interface, Sights};

    fn deed(name: &str, argument: ActArgument, shown: Option<Shown>) -> Deed {
        let want = super::super::want_of(name, &argument);
        Deed { kind: 0, name: name.into(), argument, want, default: None, right: None, shown }
    }

    fn deeds() -> Vec<Deed> {
        let shown = |place, column: &'static str| {
            Some(Shown { slot: TableSlot(0, 2), place, column: column.into(), only: None })
        };
        let seen = |column: &'static str, words| ActArgument::Seen {
            table: "feed".into(),
            column: column.into(),
            words,
            only: None,
        };
        vec![
            deed("post", ActArgument::Text, None),
            deed("like", seen("post", false), shown(0, "post")),
            deed("comment", seen("post", true), shown(0, "post")),
            deed("follow", seen("author", false), shown(1, "author")),
            deed("search", ActArgument::Number { low: 0.0, high: 31.0 }, None),
            deed("rest", ActArgument::Nothing, None),
        ]
    }

    fn sights(rows: &[f64]) -> Sights {
        let interface = Interface { sight: vec![Field::table("feed", ["post", "author"], "")], ..Interface::default() };
        let mut sights = Sights::new(&interface, 1);
        sights.put_table(0, TableSlot(0, 2), |table| table.extend(rows.iter().copied()));
        sights
    }

    #[test]
    fn one_act_is_asked_for_with_what_it_may_name() {
        let (deeds, sights) = (deeds(), sights(&[70.0, 3.0, 71.0, 3.0]));
        let offer = Offer::of(&deeds, sights.row(0), false);
        let Want::Record(fields) = offer.want() else { panic!("no record") };
        let names: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["act", "words", "post", "author", "search"]);
        assert_eq!(fields[2].1, Want::Choice(vec!["70".into(), "71".into()]));
        assert_eq!(fields[3].1, Want::Choice(vec!["3".into()]), "each once");
        let answer = |act: u32| {
            let text = |text: &str| Value::Text(text.into());
            Value::Record(vec![Value::Choice(act), text("hm"), Value::Choice(1), Value::Choice(0), Value::Number(5.0)])
        };
        let read = |act: u32| offer.read(answer(act)).0;
        assert_eq!(read(0), Some((0, Value::Text("hm".into()))));
        assert_eq!(read(1), Some((1, Value::Number(71.0))));
        assert_eq!(read(2), Some((2, Value::Record(vec![Value::Number(71.0), Value::Text("hm".into())]))));
        assert_eq!(read(3), Some((3, Value::Number(3.0))));
        assert_eq!(read(4), Some((4, Value::Number(5.0))));
        assert_eq!(read(5), Some((5, Value::Choice(0))));
        // Nothing, and what is no act at all.
        assert_eq!((read(6), read(7)), (None, None));
    }

    #[test]
    fn many_are_asked_for_no_row_and_each_finds_the_first_that_fits() {
        let deeds = deeds();
        let offer = Offer::of_many(&deeds);
        let Want::Record(fields) = offer.want() else { panic!("no record") };
        let names: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["act", "words", "search"]);
        let read = |act: u32| {
            let values = vec![Value::Choice(act), Value::Text("hm".into()), Value::Number(5.0)];
            offer.read(Value::Record(values)).0
        };
        assert_eq!(read(0), Some((0, Value::Text("hm".into()))));
        assert_eq!(read(1), Some((1, Value::Choice(0))));
        assert_eq!(read(2), Some((2, Value::Text("hm".into()))));
        assert_eq!(read(4), Some((4, Value::Number(5.0))));
        assert_eq!(read(6), None);
        let shown = |only| Shown { slot: TableSlot(0, 2), place: 0, column: "post".into(), only };
        let sights = sights(&[70.0, 3.0, 71.0, 4.0]);
        let found = [None, Some((1, 4.0)), Some((1, 5.0))].map(|only| shown(only).first(sights.row(0)));
        assert_eq!(found, [Some(70.0), Some(71.0), None]);
    }

    #[test]
    fn who_sees_nothing_is_offered_what_needs_nothing() {
        let (deeds, sights) = (deeds(), sights(&[]));
        let offer = Offer::of(&deeds, sights.row(0), true);
        let Want::Record(fields) = offer.want() else { panic!("no record") };
        let acts = ["post", "search", "rest", "nothing"].map(String::from).to_vec();
        assert_eq!(fields[0], ("thoughts".into(), Want::Text));
        assert_eq!(fields[1], ("act".into(), Want::Choice(acts)));
        let answer = [Value::Text("why not".into()), Value::Choice(1), Value::Text("".into()), Value::Number(2.0)];
        assert_eq!(offer.read(Value::Record(answer.to_vec())), (Some((4, Value::Number(2.0))), Some("why not".into())));
    }
}
