//! One act out of several, asked as one question. Its format lists what the agent may name in this turn.

use super::action_form::{ActionForm, Shown, thoughts};
use super::names::THOUGHTS;
use super::templates::plain;
use polity_kernel::ask::{ResponseFormat, Value};
use polity_kernel::interface::{ActionArgument, Observation};

/// The field that names the act.
const ACT: &str = "act";
/// The field with the words of acts that carry some.
const WORDS: &str = "words";
/// The name for no act.
pub const NOTHING: &str = "nothing";

/// The acts that an agent may perform in a turn.
pub struct Offer<'a> {
    /// The offered acts, each with the field of its target, if it has one.
    acts: Vec<(usize, &'a ActionForm, Option<usize>)>,
    /// The fields after that of the act.
    fields: Vec<(String, ResponseFormat)>,
    thoughts: bool,
}

impl<'a> Offer<'a> {
    /// Builds the offer for an agent with this observation. Acts whose targets are not seen are left out. Actions with targets from the
    /// same column share a field, as do all that carry words.
    #[must_use]
    pub fn of(actions: &'a [ActionForm], observation: Observation<'_>, thoughts: bool) -> Self {
        let mut offer = Offer::made(actions, thoughts, |shown| {
            Some(options(observation, shown)).filter(|options| !options.is_empty())
        });
        offer.acts.retain(|(_, action, _)| action.may.is_none_or(|may| observation.number(may) != 0.0));
        offer
    }

    /// Builds the offer for many agents at once, each of whom finds the target of an act itself; targets are not asked for. When read, an
    /// act with a target has its words as its value, or none.
    #[must_use]
    pub fn of_many(actions: &'a [ActionForm]) -> Self {
        Offer::made(actions, false, |_| Some(Vec::new()))
    }

    /// `seen`: the targets of an act; `None`: it is left out; empty: its target is not asked for.
    fn made(actions: &'a [ActionForm], thoughts: bool, seen: impl Fn(&Shown) -> Option<Vec<String>>) -> Self {
        let mut offer = Offer { acts: Vec::new(), fields: Vec::new(), thoughts };
        for (i, action) in actions.iter().enumerate() {
            let field = match (&action.argument, &action.shown) {
                (ActionArgument::Nothing, _) => None,
                (ActionArgument::Text, _) => Some(offer.field(WORDS, || ResponseFormat::Text)),
                (_, None) => Some(offer.field(&action.name, || action.response_format.clone())),
                (_, Some(shown)) => match seen(shown) {
                    None => continue,
                    Some(options) if options.is_empty() => None,
                    Some(options) => Some(offer.field(&shown.column, || ResponseFormat::Choice(options))),
                },
            };
            if action.argument.has_words() {
                offer.field(WORDS, || ResponseFormat::Text);
            }
            offer.acts.push((i, action, field));
        }
        offer
    }

    fn field(&mut self, name: &str, response_format: impl FnOnce() -> ResponseFormat) -> usize {
        let found = self.fields.iter().position(|(known, _)| known == name);
        found.unwrap_or_else(|| {
            self.fields.push((name.to_owned(), response_format()));
            self.fields.len() - 1
        })
    }

    /// Returns the format: thoughts if wanted, the name of an act, and the fields of all acts. Fields that the named act does not need
    /// are ignored.
    #[must_use]
    pub fn response_format(&self) -> ResponseFormat {
        let names = self.acts.iter().map(|(_, action, _)| action.name.clone()).chain([NOTHING.to_owned()]).collect();
        let thoughts = self.thoughts.then(|| (THOUGHTS.to_owned(), ResponseFormat::Text));
        let act = (ACT.to_owned(), ResponseFormat::Choice(names));
        ResponseFormat::Record(thoughts.into_iter().chain([act]).chain(self.fields.iter().cloned()).collect())
    }

    /// Reads the act of an answer, by its index among the actions, with its value; and the thoughts.
    #[must_use]
    pub fn read(&self, answer: Value) -> (Option<(usize, Value)>, Option<String>) {
        let Value::Record(mut fields) = answer else { return (None, None) };
        let thoughts = self.thoughts.then(|| thoughts(&mut fields)).flatten();
        let mut fields = fields.into_iter();
        let Some(Value::Choice(act)) = fields.next() else { return (None, thoughts) };
        let values: Vec<Value> = fields.collect();
        let Some((i, action, field)) = self.acts.get(act as usize) else { return (None, thoughts) };
        let value = match field {
            None if action.argument.has_words() => self.words(&values),
            None => Some(Value::Choice(0)),
            Some(field) => self.value(action, *field, &values),
        };
        (value.map(|value| (*i, value)), thoughts)
    }

    fn value(&self, action: &ActionForm, field: usize, values: &[Value]) -> Option<Value> {
        let ActionArgument::Seen { words, .. } = action.argument else { return values.get(field).cloned() };
        let (Some((_, ResponseFormat::Choice(options))), Some(Value::Choice(chosen))) =
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

/// Returns the values of a column, each once, in the order seen.
fn options(observation: Observation<'_>, shown: &Shown) -> Vec<String> {
    let mut options: Vec<String> = Vec::new();
    for row in observation.table(shown.slot) {
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
    use polity_kernel::interface::TableSlot;
    use polity_kernel::interface::{Field, Interface, Observations};

    fn action(name: &str, argument: ActionArgument, shown: Option<Shown>) -> ActionForm {
        let response_format = crate::minds::action_form::format_of(name, &argument);
        ActionForm {
            kind: 0,
            name: name.into(),
            argument,
            response_format,
            default: None,
            right: None,
            shown,
            may: None,
        }
    }

    fn actions() -> Vec<ActionForm> {
        let shown = |place, column: &'static str| {
            Some(Shown { slot: TableSlot(0, 2), place, column: column.into(), only: None })
        };
        let seen = |column: &'static str, words| ActionArgument::Seen {
            table: "feed".into(),
            column: column.into(),
            words,
            only: None,
        };
        vec![
            action("post", ActionArgument::Text, None),
            action("like", seen("post", false), shown(0, "post")),
            action("comment", seen("post", true), shown(0, "post")),
            action("follow", seen("author", false), shown(1, "author")),
            action("search", ActionArgument::Number { low: 0.0, high: 31.0 }, None),
            action("rest", ActionArgument::Nothing, None),
        ]
    }

    fn observations(rows: &[f64]) -> Observations {
        let interface =
            Interface { observation: vec![Field::table("feed", ["post", "author"], "")], ..Interface::default() };
        let mut observations = Observations::new(&interface, 1);
        observations.put_table(0, TableSlot(0, 2), |table| table.extend(rows.iter().copied()));
        observations
    }

    #[test]
    fn one_act_is_asked_for_with_what_it_may_name() {
        let (actions, observations) = (actions(), observations(&[70.0, 3.0, 71.0, 3.0]));
        let offer = Offer::of(&actions, observations.row(0), false);
        let ResponseFormat::Record(fields) = offer.response_format() else { panic!("no record") };
        let names: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["act", "words", "post", "author", "search"]);
        assert_eq!(fields[2].1, ResponseFormat::Choice(vec!["70".into(), "71".into()]));
        assert_eq!(fields[3].1, ResponseFormat::Choice(vec!["3".into()]), "each once");
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
        // Nothing, and an unknown act.
        assert_eq!((read(6), read(7)), (None, None));
    }

    #[test]
    fn many_are_asked_for_no_row_and_each_finds_the_first_that_fits() {
        let actions = actions();
        let offer = Offer::of_many(&actions);
        let ResponseFormat::Record(fields) = offer.response_format() else { panic!("no record") };
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
        let observations = observations(&[70.0, 3.0, 71.0, 4.0]);
        let found = [None, Some((1, 4.0)), Some((1, 5.0))].map(|only| shown(only).first(observations.row(0)));
        assert_eq!(found, [Some(70.0), Some(71.0), None]);
    }

    #[test]
    fn who_sees_nothing_is_offered_what_needs_nothing() {
        let (actions, observations) = (actions(), observations(&[]));
        let offer = Offer::of(&actions, observations.row(0), true);
        let ResponseFormat::Record(fields) = offer.response_format() else { panic!("no record") };
        let acts = ["post", "search", "rest", "nothing"].map(String::from).to_vec();
        assert_eq!(fields[0], ("thoughts".into(), ResponseFormat::Text));
        assert_eq!(fields[1], ("act".into(), ResponseFormat::Choice(acts)));
        let answer = [Value::Text("why not".into()), Value::Choice(1), Value::Text("".into()), Value::Number(2.0)];
        assert_eq!(offer.read(Value::Record(answer.to_vec())), (Some((4, Value::Number(2.0))), Some("why not".into())));
    }
}
