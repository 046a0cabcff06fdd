//! Calls of the granted tools, with serde types as arguments and outputs.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Error;
pub use crate::bindings::tool_types::{EffectClass, Function, ToolCall, ToolError, ToolInfo, ToolResult};
use crate::bindings::tools as host;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// The length in bytes from which on the host keeps an output, so that it can be read again.
const KEPT_BYTES_MIN: usize = 4_000;

/// The number of calls so far, by which the host finds long outputs.
static CALLS: AtomicU32 = AtomicU32::new(0);

/// True when the host offers to read long outputs again.
static READS_AGAIN: AtomicBool = AtomicBool::new(false);

/// Lists the granted tools, and the host's own tool `context` where there is one.
#[must_use]
pub fn list() -> Vec<ToolInfo> {
    let listed = host::list();
    let reads = |tool: &ToolInfo| tool.id == "context" && tool.functions.iter().any(|one| one.name == "read_again");
    READS_AGAIN.store(listed.iter().any(reads), Ordering::Relaxed);
    listed
}

/// Calls a function and waits for its result.
///
/// # Errors
/// The error of the tool.
pub fn call_raw(call: &ToolCall) -> Result<ToolResult, ToolError> {
    CALLS.fetch_add(1, Ordering::Relaxed);
    host::call(call)
}

/// Makes up to 64 calls concurrently. Results are in the order of the calls, each with its own error.
#[must_use]
pub fn call_many(calls: &[ToolCall]) -> Vec<Result<ToolResult, ToolError>> {
    CALLS.fetch_add(u32::try_from(calls.len()).unwrap_or(u32::MAX), Ordering::Relaxed);
    host::call_many(calls)
}

/// Returns the first `chars_max` characters of an output, with a note on the missing rest and, where the host keeps the
/// output, on how to read on. `back` is the number of calls that were made after its call.
#[must_use]
pub fn beginning(output: &str, chars_max: usize, back: usize) -> String {
    let Some((at, _)) = output.char_indices().nth(chars_max) else { return output.to_owned() };
    let number = (CALLS.load(Ordering::Relaxed) as usize).checked_sub(back).filter(|number| *number > 0);
    match number {
        Some(number) if READS_AGAIN.load(Ordering::Relaxed) && output.len() >= KEPT_BYTES_MIN => {
            noted(output, at, Some(number))
        }
        _ => noted(output, at, None),
    }
}

fn noted(output: &str, at: usize, number: Option<usize>) -> String {
    let missing = output[at..].chars().count();
    let read_on = number.map(|number| {
        format!("; to read on, call context.read_again with {{\"id\": \"call-{number}\", \"offset\": {at}}}")
    });
    format!("{}… ({missing} more characters{})", &output[..at], read_on.unwrap_or_default())
}

/// Calls `tool.function` and reads its output.
///
/// # Errors
/// The error of the tool; [`Error::Invalid`] when `arguments` or the output do not fit their type.
pub fn call<T: DeserializeOwned>(tool: &str, function: &str, arguments: &impl Serialize) -> Result<T, Error> {
    let arguments = serde_json::to_string(arguments)?;
    let call = ToolCall { tool: tool.to_owned(), function: function.to_owned(), arguments };
    let result = call_raw(&call)?;
    crate::json::read(&format!("the answer of `{tool}.{function}`"), &result.output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_says_so_and_where_the_rest_is() {
        let long = "ä".repeat(10);
        assert_eq!(noted(&long, 4, None), "ää… (8 more characters)");
        let read_on = "; to read on, call context.read_again with {\"id\": \"call-7\", \"offset\": 4}";
        assert_eq!(noted(&long, 4, Some(7)), format!("ää… (8 more characters{read_on})"));
        assert_eq!((beginning(&long, 10, 0), beginning(&long, 9, 0)), (long.clone(), noted(&long, 18, None)));
    }
}
