//! The prompts of a method: the texts that it sends to models. A scenario can change each of them (`method: {prompts: ...}`).

use super::{Preparation, TeamContext};
use crate::items::Scorer;
use crate::scenario::TextSource;
use crate::tree::{Invalid, Key, Node, TreeError, Value, child, nearest};
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The key of a method under which a scenario changes its prompts.
pub(crate) const PROMPTS: &str = "prompts";

/// A text that a method sends to models. It may hold placeholders, written `{{ name }}`, for which the method puts what they stand for.
///
/// ```
/// use polity_kernel::method::Prompt;
///
/// const LIST: Prompt = Prompt::new("ideas", "asks a member for ideas", "List at most {{ most }} ideas.\n").may_hold(&["most"]);
/// assert_eq!(LIST.text, "List at most {{ most }} ideas.");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Prompt {
    /// Its name, unique within the method.
    pub name: &'static str,
    /// One line: who gets it, and when.
    pub doc: &'static str,
    /// The method's own text.
    pub text: &'static str,
    /// Placeholders that it may hold.
    pub may_hold: &'static [&'static str],
    /// Placeholders that it must hold: without them whoever reads it does not know what to do.
    pub must_hold: &'static [&'static str],
    /// The method's own text for items with another scorer, where it differs.
    pub by_scorer: &'static [(Scorer, &'static str)],
}

impl Prompt {
    /// Makes a prompt without placeholders. Space at the end of the text is left out.
    #[must_use]
    pub const fn new(name: &'static str, doc: &'static str, text: &'static str) -> Self {
        Prompt { name, doc, text: text.trim_ascii_end(), may_hold: &[], must_hold: &[], by_scorer: &[] }
    }

    /// Names the placeholders that the text may hold.
    #[must_use]
    pub const fn may_hold(self, may_hold: &'static [&'static str]) -> Self {
        Prompt { may_hold, ..self }
    }

    /// Names the placeholders that the text must hold.
    #[must_use]
    pub const fn must_hold(self, must_hold: &'static [&'static str]) -> Self {
        Prompt { must_hold, ..self }
    }

    /// Gives other texts for items with these scorers. A text of the scenario is used for all.
    #[must_use]
    pub const fn by_scorer(self, by_scorer: &'static [(Scorer, &'static str)]) -> Self {
        Prompt { by_scorer, ..self }
    }

    /// Returns all placeholders that the text may hold.
    #[must_use]
    pub fn placeholders(&self) -> Vec<&'static str> {
        self.must_hold.iter().chain(self.may_hold).copied().collect()
    }

    /// Returns the method's own text for items with this scorer.
    fn own(&self, scorer: Scorer) -> &'static str {
        self.by_scorer.iter().find(|(other, _)| *other == scorer).map_or(self.text, |(_, text)| *text)
    }

    /// Checks a text that is to replace the method's own.
    fn check(&self, text: &str) -> Result<(), String> {
        let known = self.placeholders();
        let listed = || known.iter().map(|name| format!("`{{{{ {name} }}}}`")).collect::<Vec<_>>().join(", ");
        let used: Vec<&str> = places(text).into_iter().map(|(_, _, name)| name).collect();
        if let Some(unknown) = used.iter().find(|name| !known.contains(name)) {
            let near = nearest(unknown, known.iter().copied());
            let near = near.map_or(String::new(), |near| format!("; did you mean `{{{{ {near} }}}}`?"));
            let has = if known.is_empty() { "no placeholders".to_owned() } else { listed() };
            return Err(format!("there is no placeholder `{{{{ {unknown} }}}}`{near} (this prompt has {has})"));
        }
        if let Some(missing) = self.must_hold.iter().find(|name| !used.contains(name)) {
            return Err(format!("the text needs the placeholder `{{{{ {missing} }}}}`: this prompt {}", self.doc));
        }
        if text.contains("{%") {
            return Err("prompts of methods hold placeholders, but no statements (`{% ... %}`)".into());
        }
        Ok(())
    }
}

/// Returns the placeholders of a text, as (start, end, name).
fn places(text: &str) -> Vec<(usize, usize, &str)> {
    let mut places = Vec::new();
    let mut from = 0;
    while let Some(start) = text[from..].find("{{").map(|at| from + at) {
        let inside = &text[start + 2..];
        match inside.find("}}").map(|end| &inside[..end]) {
            Some(name) if !name.contains(['{', '\n']) => {
                from = start + 4 + name.len();
                places.push((start, from, name.trim()));
            }
            _ => from = start + 1,
        }
    }
    places
}

/// Puts values for the placeholders of a text.
fn filled(text: &str, values: &[(&str, &str)]) -> String {
    let mut whole = String::with_capacity(text.len());
    let mut from = 0;
    for (start, end, name) in places(text) {
        whole.push_str(&text[from..start]);
        match values.iter().find(|(known, _)| *known == name) {
            Some((_, value)) => whole.push_str(value),
            None => whole.push_str(&text[start..end]),
        }
        from = end;
    }
    whole.push_str(&text[from..]);
    whole
}

/// The prompts of an open method: its own, and those that the scenario puts in their places.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prompts {
    listed: &'static [Prompt],
    given: BTreeMap<String, Box<str>>,
}

impl Prompts {
    /// Takes the scenario's prompts out of a method's node, and checks them. `path`: the path of the node, for errors. `texts`: the files
    /// that were read.
    pub fn take(
        method: &str,
        listed: &'static [Prompt],
        node: &Node,
        path: &str,
        texts: &BTreeMap<String, Arc<str>>,
    ) -> Result<(Prompts, Node), TreeError> {
        let Value::Map(entries) = &node.value else {
            return Ok((Prompts { listed, ..Prompts::default() }, node.clone()));
        };
        let (own, rest): (Vec<_>, Vec<_>) =
            entries.iter().cloned().partition(|(key, _): &(Key, Node)| key.name == PROMPTS);
        let rest = Node { value: Value::Map(rest), origin: node.origin.clone() };
        let Some((_, own)) = own.into_iter().next() else {
            return Ok((Prompts { listed, ..Prompts::default() }, rest));
        };
        let path = child(path, PROMPTS);
        let sources: BTreeMap<String, TextSource> = own.read(&path)?;
        let mut given = BTreeMap::new();
        for (name, source) in &sources {
            let blame = |message: String| own.blame(&path, Invalid { key: name.clone(), message });
            let Some(prompt) = listed.iter().find(|prompt| prompt.name == name) else {
                let known: Vec<&str> = listed.iter().map(|prompt| prompt.name).collect();
                let near = nearest(name, known.iter().copied());
                let near = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
                let has = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                let message = format!(
                    "`{method}` has no prompt `{name}`{near} (it has {has}; `polity prompts {method}` shows their texts)"
                );
                return Err(blame(message));
            };
            let (text, _) = source.words(texts).map_err(|invalid| blame(invalid.message))?;
            prompt.check(text).map_err(blame)?;
            given.insert(name.clone(), text.trim_end().into());
        }
        Ok((Prompts { listed, given }, rest))
    }

    /// Returns a prompt's text.
    fn text(&self, prompt: &Prompt, scorer: Scorer) -> &str {
        self.given.get(prompt.name).map_or(prompt.own(scorer), |text| &**text)
    }

    fn lists(&self, prompt: &Prompt) -> bool {
        self.listed.iter().any(|listed| listed.name == prompt.name)
    }
}

/// Returns the JSON Schema of the prompts that a scenario may give a method.
pub(crate) fn schema_of(method: &str, listed: &[Prompt]) -> serde_json::Value {
    let text = json!({"anyOf": [
        {"type": "string"},
        {"type": "object", "properties": {"file": {"type": "string"}}, "required": ["file"], "additionalProperties": false},
    ]});
    let of = |prompt: &Prompt| {
        let mut schema = text.clone();
        let holds: Vec<String> = prompt.placeholders().iter().map(|name| format!("`{{{{ {name} }}}}`")).collect();
        let holds = if holds.is_empty() { String::new() } else { format!(" (placeholders: {})", holds.join(", ")) };
        schema["description"] = format!("Replaces the prompt that {}{holds}.", prompt.doc).into();
        (prompt.name.to_owned(), schema)
    };
    json!({
        "description": format!(
            "Prompts that replace the method's own, by name: a text, or {{file: NAME}}. `polity prompts {method}` shows them."
        ),
        "type": "object",
        "properties": listed.iter().map(of).collect::<serde_json::Map<_, _>>(),
        "additionalProperties": false,
    })
}

/// Says that a method uses a prompt that it does not list.
pub(super) fn unlisted(name: &str) -> String {
    format!("it uses the prompt `{name}`, which is not listed in its `PROMPTS`, so that no scenario could change it")
}

impl TeamContext<'_> {
    /// Returns the text of one of the method's [prompts](super::Method::PROMPTS), as the scenario has it.
    #[must_use]
    pub fn prompt(&self, prompt: &Prompt) -> &str {
        if !self.prompts.lists(prompt) {
            self.unlisted.set(Some(prompt.name));
        }
        self.prompts.text(prompt, self.item.scorer)
    }

    /// Returns the same with these values for its placeholders.
    #[must_use]
    pub fn filled(&self, prompt: &Prompt, values: &[(&str, &str)]) -> String {
        filled(self.prompt(prompt), values)
    }
}

impl Preparation<'_> {
    /// Returns the text of one of the method's [prompts](super::Method::PROMPTS), as the scenario has it, with these values for its
    /// placeholders.
    #[must_use]
    pub fn filled(&self, prompt: &Prompt, values: &[(&str, &str)]) -> String {
        if !self.prompts.lists(prompt) {
            self.unlisted.set(Some(prompt.name));
        }
        let scorer = self.items.first().map_or(Scorer::default(), |item| item.scorer);
        filled(self.prompts.text(prompt, scorer), values)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const STEP: Prompt =
        Prompt::new("step", "tells a member its step", "Do {{ step }}.\n").must_hold(&["step"]).may_hold(&["most"]);
    const FORM: Prompt = Prompt::new("form", "says how to answer", "Shortly.").by_scorer(&[(Scorer::Code, "In full.")]);

    #[test]
    fn placeholders_are_filled_and_other_braces_stay() {
        assert_eq!(
            filled("{{a}} {{ a }}, {b} {\"x\": {}} {{", &[("a", "1 {{ b }}")]),
            "1 {{ b }} 1 {{ b }}, {b} {\"x\": {}} {{"
        );
        assert_eq!(places("{{{ a }}} {{ x\n}} \\frac{{{x}}}{2}").len(), 2);
    }

    #[test]
    fn prompts_of_a_scenario_replace_those_of_the_method() {
        let texts = BTreeMap::from([("own.md".to_owned(), "Now {{ step }}!\n".into())]);
        let take =
            |node: serde_json::Value| Prompts::take("walk", &[STEP, FORM], &Node::from_json(&node), "method", &texts);
        let (own, rest) = take(json!({"steps": 3})).unwrap();
        assert_eq!((own.text(&STEP, Scorer::Exact), rest.get("steps").is_some()), ("Do {{ step }}.", true));
        assert_eq!((own.text(&FORM, Scorer::Exact), own.text(&FORM, Scorer::Code)), ("Shortly.", "In full."));
        let (given, rest) =
            take(json!({"steps": 3, "prompts": {"step": {"file": "own.md"}, "form": "As you like."}})).unwrap();
        assert_eq!((given.text(&STEP, Scorer::Exact), rest.get("prompts")), ("Now {{ step }}!", None));
        assert_eq!(given.text(&FORM, Scorer::Code), "As you like.");
        for (prompts, path, message) in [
            (
                json!({"stp": "x"}),
                "method.prompts.stp",
                "did you mean `step`? (it has step, form; `polity prompts walk`",
            ),
            (
                json!({"step": "Do {{ stp }}."}),
                "method.prompts.step",
                "did you mean `{{ step }}`? (this prompt has `{{ step }}`, `{{ most }}`)",
            ),
            (json!({"form": "{{ x }}"}), "method.prompts.form", "this prompt has no placeholders"),
            (
                json!({"step": "Do it."}),
                "method.prompts.step",
                "needs the placeholder `{{ step }}`: this prompt tells a member",
            ),
            (json!({"form": "{% if x %}"}), "method.prompts.form", "no statements"),
            (json!({"form": {"file": "none.md"}}), "method.prompts.form", "`none.md` was not read"),
        ] {
            let error = take(json!({"prompts": prompts})).unwrap_err();
            assert_eq!(error.path, path);
            assert!(error.message.contains(message), "{}", error.message);
        }
    }
}
