//! Turns a conversation into a single prompt, by the template in the model's file or else in a plain format.

use crate::models::wire::Turn;
use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, Error, ErrorKind, Value, context};
use polity_kernel::ask::Role;

/// Maximum steps of a template.
const FUEL: u64 = 1_000_000;

/// The prompt format of a model.
pub(super) struct Chat {
    /// Jinja, as for Hugging Face's `apply_chat_template`.
    pub template: Option<String>,
    /// The text of the begin and end marks.
    pub bos: String,
    pub eos: String,
}

impl Chat {
    /// The prompt of a conversation. Adjacent messages of one speaker are merged, since many templates require it.
    pub fn prompt(&self, turns: &[Turn]) -> Result<String, String> {
        let turns = joined(turns.iter().cloned());
        let Some(template) = &self.template else {
            return Ok(plainly(&turns));
        };
        self.rendered(template, &turns).or_else(|error| {
            // Some templates accept no system message; it is then put before the first one.
            let user = turns.iter().map(|turn| match turn.role {
                Role::System => Turn::said(Role::User, turn.text.clone()),
                _ => turn.clone(),
            });
            let user = joined(user);
            let again = if user == turns { Err(()) } else { self.rendered(template, &user).map_err(|_| ()) };
            again.map_err(|()| format!("the model's chat template cannot be filled: {error:#}"))
        })
    }

    fn rendered(&self, template: &str, turns: &[Turn]) -> Result<String, Error> {
        let mut environment = Environment::new();
        environment.set_fuel(Some(FUEL));
        environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
        environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_function("raise_exception", |why: String| -> Result<Value, Error> {
            Err(Error::new(ErrorKind::InvalidOperation, why))
        });
        let message = |turn: &Turn| context! { role => turn.role.name(), content => turn.text.as_str() };
        let messages: Vec<Value> = turns.iter().map(message).collect();
        environment.render_str(
            template,
            context! {
                messages => messages, add_generation_prompt => true,
                bos_token => self.bos.as_str(), eos_token => self.eos.as_str(),
            },
        )
    }
}

fn joined(turns: impl Iterator<Item = Turn>) -> Vec<Turn> {
    let mut out: Vec<Turn> = Vec::new();
    for turn in turns {
        match out.last_mut() {
            Some(last) if last.role == turn.role => {
                last.text.push_str("\n\n");
                last.text.push_str(&turn.text);
            }
            _ => out.push(turn),
        }
    }
    out
}

/// For models without a template: each message after its speaker.
fn plainly(turns: &[Turn]) -> String {
    let mut out = String::new();
    for Turn { role, text, .. } in turns {
        let speaker = match role {
            Role::System => "",
            Role::User => "User: ",
            Role::Assistant => "Assistant: ",
        };
        out.extend([speaker, text, "\n\n"]);
    }
    out.push_str("Assistant:");
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Templates of real models, and what Jinja itself (3.1.6, set up as Hugging Face does) makes of a conversation.
    #[test]
    fn templates_are_filled_as_jinja_fills_them() {
        let peer: Vec<serde_json::Value> =
            serde_json::from_str(include_str!("../../../tests/gguf/templates.json")).unwrap();
        let said = [
            (Role::System, "Be brief."),
            (Role::User, " Where to?\n"),
            (Role::Assistant, "Left."),
            (Role::User, "Why?"),
        ];
        let turns = said.map(|(role, text)| Turn::said(role, text.into()));
        for case in peer {
            let template = Some(case["template"].as_str().unwrap().to_owned());
            let chat = Chat { template, bos: "<s>".into(), eos: "</s>".into() };
            assert_eq!(chat.prompt(&turns).as_deref(), Ok(case["prompt"].as_str().unwrap()), "{}", case["name"]);
        }
        let plain = Chat { template: None, bos: "<s>".into(), eos: "</s>".into() };
        let expected = "Be brief.\n\nUser:  Where to?\n\n\nAssistant: Left.\n\nUser: Why?\n\nAssistant:";
        assert_eq!(plain.prompt(&turns).as_deref(), Ok(expected));
        let endless = Chat {
            template: Some("{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}".into()),
            ..plain
        };
        assert!(endless.prompt(&turns).unwrap_err().contains("cannot be filled"));
    }
}
