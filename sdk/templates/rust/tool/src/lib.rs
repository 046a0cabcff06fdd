//! The tool `{{name}}`: one function, to begin with.

use longhaul_sdk::json;
use longhaul_sdk::tool::{CallContext, Tool, Verification};
use longhaul_sdk::tools::{Effect, Function, ToolError, ToolInfo, ToolResult};

struct Plugin;

/// The arguments of `greet`, as `describe` declares them.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Greet {
    name: String,
}

impl Tool for Plugin {
    fn describe() -> ToolInfo {
        let parameters = serde_json::json!({
            "type": "object",
            "properties": { "name": { "type": "string" } },
            "required": ["name"],
            "additionalProperties": false,
        });
        let greet = Function {
            name: "greet".to_owned(),
            description: "Greets somebody by name.".to_owned(),
            parameters: parameters.to_string(),
            // It touches nothing, so it may be repeated. `acts` is for what must not be.
            effect: Effect::ReadOnly,
        };
        ToolInfo { id: "{{name}}".to_owned(), description: "Greets by name.".to_owned(), functions: vec![greet] }
    }

    fn call(function: String, arguments: String, _: CallContext) -> Result<ToolResult, ToolError> {
        match function.as_str() {
            "greet" => {
                let Greet { name } = json::read("the arguments", &arguments)?;
                let output = serde_json::json!({ "greeting": format!("Hello, {name}!") });
                Ok(ToolResult { output: output.to_string(), truncated: false })
            }
            _ => Err(ToolError::UnknownFunction(function)),
        }
    }

    /// Only for functions whose effect is `verifiable`: notes what `verify` will need.
    fn prepare(_: String, _: String) -> Result<String, ToolError> {
        Ok("{}".to_owned())
    }

    /// Only for functions whose effect is `verifiable`: whether a call that was cut off has happened.
    fn verify(function: String, _: String, _: String) -> Result<Verification, ToolError> {
        Ok(Verification::Unknown(format!("`{function}` cannot tell whether it happened")))
    }
}

longhaul_sdk::export_tool!(Plugin);
