//! A calculator. See README.md.

use crate::arguments::text;
use polity_kernel::registry::{LeafFiles, NoParams, Registry};
use polity_kernel::scenario::Inputs;
use polity_kernel::tool::{Arguments, EffectClass, PureToolkit, ToolOutput, ToolSpec};
use polity_kernel::{Invalid, expression};
use serde_json::json;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.toolkit::<Calculator>(files);
}

/// A calculator.
pub struct Calculator;

impl PureToolkit for Calculator {
    const NAME: &'static str = "calculator";
    const SUMMARY: &'static str = "Works out expressions";
    type Params = NoParams;

    fn open(_: NoParams, _: &Inputs) -> Result<Self, Invalid> {
        Ok(Calculator)
    }

    fn tools(&self) -> Vec<ToolSpec> {
        let expression = json!({"type": "string", "description": "such as (1 + 2) * sqrt(16) / 3"});
        let arguments = json!({
            "type": "object", "properties": {"expression": expression}, "required": ["expression"],
            "additionalProperties": false,
        });
        let doc = format!(
            "Works out an expression of numbers with + - * / ^ % (remainder), parentheses, pi, e and {}.",
            expression::FUNCTIONS.join(", ")
        );
        vec![ToolSpec::new("calculate", &doc, &arguments, EffectClass::Pure)]
    }

    fn call(&self, tool: &str, arguments: &Arguments) -> ToolOutput {
        if tool != "calculate" {
            return ToolOutput::error(format!("there is no tool `{tool}`"));
        }
        match expression::value(text(arguments, "expression")) {
            Ok(value) => ToolOutput::text(expression::shown(value)),
            Err(error) => ToolOutput::error(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calculate(expression: &str) -> ToolOutput {
        let arguments = Arguments::from_iter([("expression".to_owned(), expression.into())]);
        Calculator.call("calculate", &arguments)
    }

    #[test]
    fn the_tool_returns_the_value_or_an_error() {
        assert_eq!(calculate("0.1 + 0.2"), ToolOutput::text("0.3"));
        assert_eq!(calculate("1 / 0"), ToolOutput::error("character 3: a division by 0"));
        assert!(Calculator.call("guess", &Arguments::default()).error);
        let tools = Calculator.tools();
        assert_eq!((tools.len(), &*tools[0].name, tools[0].effect), (1, "calculate", EffectClass::Pure));
        assert_eq!(tools[0].schema()["required"], json!(["expression"]));
    }
}
