//! Other agents that take on work. See README.md.

use crate::arguments::text;
use polity_kernel::Invalid;
use polity_kernel::ask::{ChatMessage, Request, ResponseFormat, Role, Settings};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::tool::{Arguments, AskingToolkit, EffectClass, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.asking_toolkit::<Delegate>(files);
}

/// The agents that take on work.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// The agents by name: letters, digits, `_` and `-`.
    agents: BTreeMap<String, Agent>,
}

/// An agent.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Agent {
    /// What it is good for, for those who delegate to it.
    description: String,
    /// System instructions.
    persona: String,
    /// `provider/model`. Default: the scenario's.
    model: Option<String>,
    /// Sampling settings of its model.
    settings: Settings,
}

/// The agents that take on work, with their models.
pub struct Delegate {
    agents: BTreeMap<String, (Agent, String)>,
}

impl AskingToolkit for Delegate {
    const NAME: &'static str = "delegate";
    const SUMMARY: &'static str = "Delegates work to other agents";
    type Params = Params;

    fn open(params: Params, model: Option<&str>) -> Result<Self, Invalid> {
        Invalid::unless(!params.agents.is_empty(), "agents", "name at least one agent")?;
        let mut agents = BTreeMap::new();
        for (name, agent) in params.agents {
            let key = |key: &str| format!("agents.{name}{key}");
            let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
            Invalid::unless(
                plain && name.len() <= 48,
                &key(""),
                "a name has letters, digits, `_` and `-`, at most 48",
            )?;
            let Some(model) = agent.model.clone().or(model.map(str::to_owned)) else {
                let message = "the agent has no model; add `model: sim/medium`".into();
                return Err(Invalid { key: key(".model"), message });
            };
            agent
                .settings
                .check()
                .map_err(|invalid| Invalid { key: key(&format!(".settings.{}", invalid.key)), ..invalid })?;
            agents.insert(name, (agent, model));
        }
        Ok(Delegate { agents })
    }

    fn tools(&self) -> Vec<ToolSpec> {
        let arguments = json!({
            "type": "object",
            "properties": {
                "task": {"type": "string", "description": "what to do, with everything that must be known for it"},
            },
            "required": ["task"],
            "additionalProperties": false,
        });
        let tool = |(name, (agent, _)): (&String, &(Agent, String))| {
            let about = if agent.description.is_empty() { String::new() } else { format!(" {}", agent.description) };
            let doc = format!("Gives a task to {name}, who sees nothing but its text, and returns the result.{about}");
            ToolSpec::new(&format!("ask_{name}"), &doc, &arguments, EffectClass::Reads)
        };
        self.agents.iter().map(tool).collect()
    }

    fn targets(&self) -> Vec<String> {
        self.agents.values().map(|(_, model)| model.clone()).collect()
    }

    fn question(&self, tool: &str, arguments: &Arguments) -> Result<Request, String> {
        let name = tool.strip_prefix("ask_").unwrap_or_default();
        let (agent, model) = self.agents.get(name).ok_or_else(|| format!("there is no agent `{name}`"))?;
        let task = text(arguments, "task").trim();
        if task.is_empty() {
            return Err("the task is empty".into());
        }
        let mut messages = Vec::new();
        if !agent.persona.is_empty() {
            messages.push(ChatMessage::text(Role::System, agent.persona.as_str()));
        }
        messages.push(ChatMessage::text(Role::User, task));
        let request = Request::new(model.as_str(), messages, ResponseFormat::Text);
        Ok(Request { purpose: "delegated".into(), settings: agent.settings, ..request })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn params(agents: serde_json::Value) -> Params {
        serde_json::from_value(json!({ "agents": agents })).unwrap()
    }

    #[test]
    fn every_agent_is_a_tool_that_asks_its_model() {
        let agents = json!({"writer": {"persona": "You write.", "description": "Writes texts."}, "poet": {"model": "sim/small"}});
        let toolkit = Delegate::open(params(agents), Some("sim/medium")).unwrap();
        let names: Vec<String> = toolkit.tools().iter().map(|tool| tool.name.to_string()).collect();
        assert_eq!(names, ["ask_poet", "ask_writer"]);
        assert_eq!(toolkit.targets(), ["sim/small", "sim/medium"]);
        let task = Arguments::from_iter([("task".to_owned(), json!("A line on rain."))]);
        let request = toolkit.question("ask_writer", &task).unwrap();
        assert_eq!(&*request.model, "sim/medium");
        assert_eq!(request.rendered(), "[system]\nYou write.\n\n[user]\nA line on rain.");
        assert!(toolkit.question("ask_nobody", &task).is_err());
    }

    #[test]
    fn wrong_parameters_are_named() {
        let key = |agents, model| Delegate::open(params(agents), model).map(|_| ()).unwrap_err().key;
        assert_eq!(key(json!({}), Some("sim/medium")), "agents");
        assert_eq!(key(json!({"a": {}}), None), "agents.a.model");
        assert_eq!(key(json!({"a b": {}}), Some("sim/medium")), "agents.a b");
        assert_eq!(
            key(json!({"a": {"settings": {"temperature": 3}}}), Some("sim/medium")),
            "agents.a.settings.temperature"
        );
    }
}
