//! A person who can be asked. See README.md.

use crate::arguments::text;
use polity_kernel::Invalid;
use polity_kernel::ask::{ChatMessage, Request, ResponseFormat, Role};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::tool::{Arguments, AskingToolkit, EffectClass, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.asking_toolkit::<AskHuman>(files);
}

/// Who can be asked.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// The person's name: questions go to `human/NAME`.
    person: String,
}

impl Default for Params {
    fn default() -> Self {
        Params { person: "user".into() }
    }
}

/// A person who can be asked.
pub struct AskHuman {
    target: String,
}

impl AskingToolkit for AskHuman {
    const NAME: &'static str = "ask-human";
    const SUMMARY: &'static str = "Asks a person";
    type Params = Params;

    fn open(params: Params, _: Option<&str>) -> Result<Self, Invalid> {
        Ok(AskHuman { target: format!("human/{}", params.person) })
    }

    fn tools(&self) -> Vec<ToolSpec> {
        let arguments = json!({
            "type": "object", "properties": {"question": {"type": "string"}}, "required": ["question"],
            "additionalProperties": false,
        });
        let doc = "Asks the person you work for, and returns the answer. Ask only what you cannot find out yourself.";
        vec![ToolSpec::new("ask_human", doc, &arguments, EffectClass::Reads)]
    }

    fn targets(&self) -> Vec<String> {
        vec![self.target.clone()]
    }

    fn question(&self, _: &str, arguments: &Arguments) -> Result<Request, String> {
        let question = text(arguments, "question").trim();
        if question.is_empty() {
            return Err("the question is empty".into());
        }
        let messages = vec![ChatMessage::text(Role::User, question)];
        Ok(Request { purpose: "call".into(), ..Request::new(&*self.target, messages, ResponseFormat::Text) })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_call_is_a_question_to_the_person() {
        let toolkit = AskHuman::open(Params { person: "ann".into() }, None).unwrap();
        let arguments = |question: &str| Arguments::from_iter([("question".to_owned(), json!(question))]);
        let request = toolkit.question("ask_human", &arguments("Which shop?")).unwrap();
        assert_eq!((&*request.model, request.rendered().as_str()), ("human/ann", "[user]\nWhich shop?"));
        assert_eq!(toolkit.targets(), ["human/ann"]);
        assert!(toolkit.question("ask_human", &arguments(" ")).is_err());
    }
}
