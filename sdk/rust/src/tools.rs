//! Calling the tools that were granted, with serde types as arguments and answers.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Error;
pub use crate::bindings::tool_types::{Effect, Function, ToolCall, ToolError, ToolInfo, ToolResult};
pub use crate::bindings::tools::{call as call_raw, call_many, list};

/// Calls `tool.function` and reads its answer.
///
/// # Errors
/// Those of the tool; [`Error::Invalid`] when `arguments` or the answer do not fit.
pub fn call<T: DeserializeOwned>(tool: &str, function: &str, arguments: &impl Serialize) -> Result<T, Error> {
    let arguments = serde_json::to_string(arguments)?;
    let call = ToolCall { tool: tool.to_owned(), function: function.to_owned(), arguments };
    let result = call_raw(&call)?;
    crate::json::read(&format!("the answer of `{tool}.{function}`"), &result.output)
}
