//! The answer that a person writes in the place of a recorded one: its type has to be that of the call, or the component
//! that reads it would fail in a way that no run could have.
//!
//! Refused are answers of calls whose type the host keeps to itself, and decisions about calls, which only a person's
//! approval of that very call makes.

use longhaul_core::fault::{self, Context as _, Fault, bail};
use longhaul_core::journal::ImportCall;
use longhaul_core::model::{ModelError, ModelReply};
use longhaul_core::text::printable;
use longhaul_core::tool::{CheckError, ToolError, ToolOutput};
use longhaul_core::work::CheckReport;
use longhaul_records::invocation::STEP;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The call of a tool.
pub(crate) const TOOL_CALL: &str = "tools.call";

/// The run of a check.
const CHECK: &str = "checks.run";

/// Bytes of an edited answer. A guest has limits of its own, which hold for it, too.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// The text to record as the answer of a call.
///
/// The output of a tool may stand alone, as JSON, and so may the text of a model, as a string.
///
/// # Errors
/// The answer is no JSON, or not of the type that the call returns, with that type in an example.
pub(crate) fn checked(asked: &ImportCall, answer: &str) -> fault::Result<String> {
    if answer.len() > ANSWER_BYTES_MAX {
        bail!("the answer has {} bytes, and {ANSWER_BYTES_MAX} are the most", answer.len());
    }
    let value: Value = serde_json::from_str(answer)
        .or_invalid(|| format!("the answer `{}` is no JSON; text goes in quotes", printable(answer, 80)))?;
    match asked.name.as_str() {
        TOOL_CALL => tool_answer(value),
        STEP => reply(value),
        CHECK => {
            let example =
                r#"{"Ok":{"name":"NAME","passed":true,"exit_code":0,"stdout":"","stderr":"","truncated":false}}"#;
            recorded::<CheckReport, CheckError>(value, CHECK, example)
        }
        other => bail!(
            "the answer of `{}` cannot be edited; those of {TOOL_CALL}, {STEP} and {CHECK} can",
            printable(other, 80)
        ),
    }
}

fn tool_answer(value: Value) -> fault::Result<String> {
    if is_result(&value) {
        return recorded::<ToolOutput, ToolError>(value, TOOL_CALL, r#"{"Ok":{"output":"\"...\"","truncated":false}}"#);
    }
    let output: Result<_, ToolError> = Ok(ToolOutput { output: value.to_string(), truncated: false });
    Ok(serde_json::to_string(&output)?)
}

fn reply(value: Value) -> fault::Result<String> {
    if let Value::String(text) = value {
        let reply: Result<_, ModelError> = Ok(ModelReply { text, ..ModelReply::default() });
        return Ok(serde_json::to_string(&reply)?);
    }
    recorded::<ModelReply, ModelError>(value, STEP, r#""TEXT", or {"Ok": a reply as `longhaul journal` prints it}"#)
}

/// True for the form in which a call's result is recorded.
fn is_result(value: &Value) -> bool {
    let fields = value.as_object();
    fields.is_some_and(|fields| fields.len() == 1 && (fields.contains_key("Ok") || fields.contains_key("Err")))
}

/// The recorded form of a result, as its type writes it.
fn recorded<T, E>(value: Value, call: &str, example: &str) -> fault::Result<String>
where
    T: DeserializeOwned + Serialize,
    E: DeserializeOwned + Serialize,
{
    let read = serde_json::from_value::<Result<T, E>>(value);
    let typed = read.map_err(|error| {
        Fault::invalid(format!("the answer is none of `{call}`, {error}; one is such as {example}"))
    })?;
    Ok(serde_json::to_string(&typed)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_core::Digest;
    use longhaul_core::journal::EffectClass;

    fn asked(name: &str) -> ImportCall {
        ImportCall {
            name: name.to_owned(),
            summary: String::new(),
            arguments: Digest::of(b""),
            class: EffectClass::ReadOnly,
            prepared: None,
            fuel_used: 0,
            at_ms: 1,
            attempt: 1,
        }
    }

    #[track_caller]
    fn refused(name: &str, answer: &str, words: &str) {
        let why = checked(&asked(name), answer).expect_err("refused").to_string();
        assert!(why.contains(words), "{why}");
    }

    #[test]
    fn the_output_of_a_tool_may_stand_alone() {
        let output = |text: &str| -> Result<ToolOutput, ToolError> {
            serde_json::from_str(&checked(&asked(TOOL_CALL), text).expect("an answer")).expect("a tool's answer")
        };
        for text in [r#""two""#, "2", r#"{"found":[1,2]}"#, "null"] {
            assert_eq!(output(text), Ok(ToolOutput { output: text.to_owned(), truncated: false }));
        }
        let whole = r#"{"Ok":{"output":"7","truncated":true}}"#;
        assert_eq!(output(whole), Ok(ToolOutput { output: "7".into(), truncated: true }));
        assert_eq!(output(r#"{"Err":{"failed":"no"}}"#), Err(ToolError::Failed("no".into())));
    }

    #[test]
    fn a_model_may_say_a_text() {
        let text = checked(&asked(STEP), r#""hello""#).expect("a reply");
        let reply: Result<ModelReply, ModelError> = serde_json::from_str(&text).expect("a reply");
        assert_eq!(reply.expect("no error").text, "hello");
    }

    #[test]
    fn an_answer_of_the_wrong_type_is_refused_with_an_example() {
        refused(TOOL_CALL, "two", "text goes in quotes");
        refused(TOOL_CALL, r#"{"Ok":7}"#, r#"such as {"Ok":{"output""#);
        refused(STEP, "7", "such as \"TEXT\"");
        refused(STEP, r#"{"Ok":{"text":7}}"#, "none of `conversation.complete`");
        refused(CHECK, "true", r#""passed":true"#);
    }

    #[test]
    fn an_answer_that_nobody_may_write_is_refused() {
        refused("tools.approve", r#"{"allowed":"me"}"#, "cannot be edited");
        refused("tools.list", "[]", "cannot be edited");
        refused(TOOL_CALL, &format!("\"{}\"", "x".repeat(ANSWER_BYTES_MAX)), "are the most");
    }
}
