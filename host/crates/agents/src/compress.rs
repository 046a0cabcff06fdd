//! Makes the next run's state from a run's output.
//!
//! The convention: when the last line that a run prints is a JSON object with a field `state`, that value is the state
//! that the next run sees, in place of the one that this run saw; a field `summary` beside it, a text, is the summary.
//! Such a line is no output. A run without such a line passes on the state that it saw.
//!
//! Into a state that is an object these are written, over what stands there: `previous_output`, the first and last
//! [`PART_CHARS`] characters of what was printed; `run_count`; `last_run`; and, once a run failed, `recent_errors`, the
//! last [`LIST_MAX`] of them. Everything else is the user's, and stays as it is. A state that is no object stays whole.

use crate::rfc3339;
use serde_json::{Map, Value, json};

/// Characters of each of the two parts that are kept of an output.
pub const PART_CHARS: usize = 500;
/// The most entries of `recent_errors`.
pub const LIST_MAX: usize = 100;
/// Characters of a summary without a model, and of an error in the list.
pub const SUMMARY_CHARS: usize = 200;

/// The keys that are laid over a state while a run sees it.
const LAID_OVER: [&str; 2] = ["config", "input"];

/// A run's output, separated from the line of the convention.
#[derive(Clone, Debug, PartialEq)]
pub struct PrintedOutput {
    /// The output without the line of the convention.
    pub output: String,
    /// The state that it prints; none: unchanged.
    pub state: Option<Value>,
    /// The summary that it prints.
    pub summary: Option<String>,
}

/// A run that has ended.
#[derive(Clone, Debug)]
pub struct FinishedRun<'a> {
    /// The output, without the line of the convention.
    pub output: &'a str,
    /// Runs that have ended, with this one.
    pub run_count: u64,
    /// End of the run, in milliseconds since 1970.
    pub at_ms: u64,
    /// Cause of the failure, if it failed.
    pub error: Option<&'a str>,
}

/// Separates the line of the convention from the output before it.
#[must_use]
pub fn printed(stdout: &str) -> PrintedOutput {
    let trimmed = stdout.trim_end();
    let start = trimmed.rfind('\n').map_or(0, |at| at + 1);
    let line = serde_json::from_str::<Map<String, Value>>(trimmed[start..].trim()).ok();
    match line {
        Some(mut fields) if fields.contains_key("state") => PrintedOutput {
            output: stdout[..start].to_owned(),
            state: fields.remove("state"),
            summary: fields.get("summary").and_then(Value::as_str).map(str::to_owned),
        },
        _ => PrintedOutput { output: stdout.to_owned(), state: None, summary: None },
    }
}

/// The value of `CONTEXT` for a run: the state, `{}` before the first run. A state that is no object is under `state`.
/// `config` and `input` are laid over it if there are any.
#[must_use]
pub fn context(state: Option<&Value>, config: &Value, input: Option<&Value>) -> Value {
    let mut fields = match state {
        Some(Value::Object(fields)) => fields.clone(),
        None | Some(Value::Null) => Map::new(),
        Some(other) => Map::from_iter([("state".to_owned(), other.clone())]),
    };
    let config = Some(config).filter(|config| !config.is_null());
    for (key, value) in LAID_OVER.into_iter().zip([config, input]) {
        if let Some(value) = value {
            fields.insert(key.to_owned(), value.clone());
        }
    }
    Value::Object(fields)
}

/// The state that a run printed, without the values that were only laid over the state that it saw.
#[must_use]
pub fn without_laid_over(printed: Value, before: Option<&Value>, config: &Value, input: Option<&Value>) -> Value {
    let Value::Object(mut fields) = printed else { return printed };
    for (key, is_laid) in LAID_OVER.into_iter().zip([!config.is_null(), input.is_some()]) {
        if !is_laid {
            continue;
        }
        match before.and_then(|before| before.get(key)) {
            Some(own) => drop(fields.insert(key.to_owned(), own.clone())),
            None => drop(fields.shift_remove(key)),
        }
    }
    Value::Object(fields)
}

/// The state of the next run.
#[must_use]
pub fn compress(state: Option<Value>, ran: &FinishedRun<'_>) -> Value {
    let mut fields = match state {
        Some(Value::Object(fields)) => fields,
        None | Some(Value::Null) => Map::new(),
        Some(other) => return other,
    };
    fields.insert("previous_output".to_owned(), parts(ran.output).into());
    fields.insert("run_count".to_owned(), ran.run_count.into());
    fields.insert("last_run".to_owned(), rfc3339(ran.at_ms).into());
    if let Some(error) = ran.error {
        let mut errors = match fields.shift_remove("recent_errors") {
            Some(Value::Array(errors)) => errors,
            _ => Vec::new(),
        };
        errors.push(json!({ "at": rfc3339(ran.at_ms), "error": first(error, SUMMARY_CHARS) }));
        errors.drain(..errors.len().saturating_sub(LIST_MAX));
        fields.insert("recent_errors".to_owned(), errors.into());
    }
    Value::Object(fields)
}

/// The summary of a run that neither a model nor the run itself summarised.
#[must_use]
pub fn summary(output: &str, error: Option<&str>) -> String {
    match error {
        Some(error) => first(&format!("failed: {error}"), SUMMARY_CHARS),
        None => first(output.trim(), SUMMARY_CHARS),
    }
}

/// The first and the last characters of an output, with the number of those between them.
#[must_use]
pub fn parts(output: &str) -> String {
    let count = output.chars().count();
    if count <= 2 * PART_CHARS {
        return output.to_owned();
    }
    let tail: String = output.chars().skip(count - PART_CHARS).collect();
    format!("{}\n[… {} characters left out …]\n{tail}", first(output, PART_CHARS), count - 2 * PART_CHARS)
}

fn first(text: &str, chars: usize) -> String {
    text.chars().take(chars).collect()
}
