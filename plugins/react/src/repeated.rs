//! Calls that fail alike, again and again: a model that does not learn from the error would spend all of its steps on
//! them. Refuses to end an agent whose calls differ, or whose errors do: that one may still find its way. Refuses to count
//! outages, which end by themselves.

use longhaul_sdk::tools::{ToolCall, ToolError, ToolResult};
use longhaul_sdk::{Error, json};

/// Steps in a row whose calls and errors are the same. A model that reads the error needs one or two.
const ALIKE_MAX: u32 = 5;

/// The failing calls of the last step, and how often in a row they were made.
#[derive(Default)]
pub(crate) struct RepeatedFailure {
    last: Option<String>,
    times: u32,
}

impl RepeatedFailure {
    /// Counts a step.
    pub(crate) fn note(&mut self, calls: &[ToolCall], answers: &[Result<ToolResult, ToolError>]) {
        let failed: Option<Vec<String>> =
            calls.iter().zip(answers).map(|(call, answer)| failure(call, answer.as_ref().err()?)).collect();
        let step = failed.filter(|failed| !failed.is_empty()).map(|failed| failed.join("\n"));
        self.times = if step.is_some() && step == self.last { self.times + 1 } else { u32::from(step.is_some()) };
        self.last = step;
    }

    /// The last failure, once it was met [`ALIKE_MAX`] times in a row.
    pub(crate) fn stuck(&self) -> Option<String> {
        let last = self.last.as_ref().filter(|_| self.times >= ALIKE_MAX)?;
        Some(format!(
            "the model made the same call {} times in a row, which failed each time: {}; choose a stronger model for this \
             agent, or the style `file`",
            self.times,
            json::cut(last, 500)
        ))
    }
}

/// A call with its error, unless that is an outage or an answer that was lost in one.
fn failure(call: &ToolCall, error: &ToolError) -> Option<String> {
    let is_outage = matches!(error, ToolError::Unavailable(_) | ToolError::OutcomeUnknown(_));
    let said = || format!("{}.{} {}: {}", call.tool, call.function, call.arguments, Error::from(error.clone()));
    (!is_outage).then(said)
}

#[cfg(test)]
mod tests {
    use super::{ALIKE_MAX, RepeatedFailure};
    use longhaul_sdk::tools::{ToolCall, ToolError, ToolResult};
    use longhaul_sdk::types::Outage;

    fn call(arguments: &str) -> ToolCall {
        ToolCall { tool: "todo".to_owned(), function: "write".to_owned(), arguments: arguments.to_owned() }
    }

    fn fails(state: &mut RepeatedFailure, arguments: &str, times: u32) {
        for _ in 0..times {
            state.note(&[call(arguments)], &[Err(ToolError::Failed("missing field `items`".to_owned()))]);
        }
    }

    #[test]
    fn a_call_that_fails_alike_again_and_again_ends_the_agent_with_the_error() {
        let mut state = RepeatedFailure::default();
        fails(&mut state, "{}", ALIKE_MAX - 1);
        assert_eq!(state.stuck(), None);
        fails(&mut state, "{}", 1);
        let said = state.stuck().expect("it is stuck");
        assert!(said.contains("5 times") && said.contains("todo.write {}") && said.contains("missing field"), "{said}");
        assert!(!said.contains("ToolError"), "{said}");
    }

    #[test]
    fn another_call_and_one_that_succeeds_begin_anew() {
        let mut state = RepeatedFailure::default();
        fails(&mut state, "{}", ALIKE_MAX - 1);
        fails(&mut state, r#"{"items": 1}"#, ALIKE_MAX - 1);
        let done = ToolResult { output: String::new(), truncated: false };
        state.note(&[call("{}")], &[Ok(done)]);
        fails(&mut state, "{}", ALIKE_MAX - 1);
        // A step that asked for nothing that is the host's is no failure.
        state.note(&[], &[]);
        fails(&mut state, "{}", ALIKE_MAX - 1);
        assert_eq!(state.stuck(), None);
    }
    #[test]
    fn outages_do_not_count() {
        let mut state = RepeatedFailure::default();
        for _ in 0..2 * ALIKE_MAX {
            let outage = Outage { reason: "the server starts".to_owned(), retry_after_ms: None };
            state.note(&[call("{}")], &[Err(ToolError::Unavailable(outage))]);
        }
        assert_eq!(state.stuck(), None);
    }
}
