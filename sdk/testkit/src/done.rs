//! The result of one call, and assertions on it.

use longhaul_capabilities::LogLine;
use longhaul_core::event::{Event, WorkUsage};
use longhaul_core::text::printable;
use longhaul_core::{Digest, LimitHit};
use longhaul_engine::CallError;
use serde_json::{Value, json};
use std::fmt;
use std::time::Duration;

/// The most bytes of a line of a plugin's text that is shown.
const LINE_BYTES_MAX: usize = 4_096;

/// An import call that the journal of a pure plugin holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// The capability and verb, for example `tools.call`.
    pub name: String,
    /// Summary for people, for example `files.read {"path":"a"}`.
    pub summary: String,
    /// The digest of all the arguments.
    pub arguments: Digest,
    /// The arguments for people. A request to a model is its difference from the one before it in the same
    /// conversation.
    pub in_full: Value,
    /// Fuel used up to this call.
    pub fuel_used: u64,
    /// The answer as JSON; none when the call was ended instead.
    pub answer: Option<String>,
}

impl fmt::Display for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.summary)
    }
}

/// The typed error that a plugin returned, in the cases of the contract.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The case, for example `invalid-arguments`.
    pub case: String,
    /// The value of the case: a text, or a record.
    pub detail: Value,
    /// The whole error, for people.
    pub text: String,
}

/// The end of a call.
#[derive(Debug)]
pub enum Ending {
    /// The plugin returned a value.
    Returned(Value),
    /// The plugin returned an error.
    Refused(Refusal),
    /// A limit, a trap or a cancel stopped the call.
    Stopped(CallError),
}

/// The result of one call.
#[derive(Debug)]
pub struct Done {
    /// The name of the export.
    pub export: &'static str,
    /// The end of the call.
    pub ending: Ending,
    /// The resources that the call used.
    pub used: WorkUsage,
    /// Calls of imports, of a planner, an agent or an evaluator. The calls of other plugins are only
    /// counted, in `used`.
    pub calls: Vec<Made>,
    /// The events of its conversations.
    pub events: Vec<Event>,
    /// The log of the plugin.
    pub log: Vec<LogLine>,
    /// The number of lines above the limit of the log.
    pub log_dropped: u64,
    /// Time from start to end, the instance included.
    pub wall: Duration,
}

impl Done {
    /// The value that it returned.
    ///
    /// # Panics
    /// When it returned an error or was stopped; the message shows how it ended, and its log.
    #[track_caller]
    #[must_use]
    pub fn value(&self) -> &Value {
        match &self.ending {
            Ending::Returned(value) => value,
            _ => panic!("a value was expected\n{self}"),
        }
    }

    /// The error that it returned.
    ///
    /// # Panics
    /// When it returned a value or was stopped.
    #[track_caller]
    #[must_use]
    pub fn refusal(&self) -> &Refusal {
        match &self.ending {
            Ending::Refused(refusal) => refusal,
            _ => panic!("an error of the plugin was expected\n{self}"),
        }
    }

    /// The limit that stopped it, if one did.
    #[must_use]
    pub fn limit(&self) -> Option<&LimitHit> {
        match &self.ending {
            Ending::Stopped(CallError::Limit { hit, .. }) => Some(hit),
            _ => None,
        }
    }

    /// The breach of the contract in its returned value, if there is one.
    #[must_use]
    pub fn breach(&self) -> Option<&str> {
        match &self.ending {
            Ending::Stopped(CallError::Contract { breach, .. }) => Some(breach),
            _ => None,
        }
    }

    /// True when it accepted its input and returned a value, even one that breaks the contract.
    #[must_use]
    pub fn is_taken(&self) -> bool {
        matches!(self.ending, Ending::Returned(_)) || self.breach().is_some()
    }

    /// Checks that it returned an error of this case, whose text contains `part`.
    ///
    /// # Panics
    /// When it did not.
    #[track_caller]
    pub fn assert_refused(&self, case: &str, part: &str) {
        let refusal = self.refusal();
        assert!(
            refusal.case == case && refusal.text.contains(part),
            "the error `{case}` with `{part}` was expected\n{self}"
        );
    }

    /// Checks that a limit of this name stopped it.
    ///
    /// # Panics
    /// When it was not.
    #[track_caller]
    pub fn assert_limit(&self, name: &str) {
        assert!(self.limit().is_some_and(|hit| hit.name == name), "the limit `{name}` was expected\n{self}");
    }

    /// Checks the calls of imports, in order and none beside them: each line is the beginning of
    /// `NAME SUMMARY`.
    ///
    /// # Panics
    /// When they differ.
    #[track_caller]
    pub fn assert_calls(&self, expected: &[&str]) {
        let same = self.calls.len() == expected.len()
            && self.calls.iter().zip(expected).all(|(made, start)| made.to_string().starts_with(start));
        assert!(same, "the calls {expected:#?} were expected\n{self}");
    }

    /// Checks that a line of its log contains `part`.
    ///
    /// # Panics
    /// When none does.
    #[track_caller]
    pub fn assert_logged(&self, part: &str) {
        assert!(self.log.iter().any(|line| line.text.contains(part)), "`{part}` was expected in the log\n{self}");
    }

    /// Checks that it used at most so much fuel.
    ///
    /// # Panics
    /// When it used more.
    #[track_caller]
    pub fn assert_fuel_max(&self, fuel_max: u64) {
        assert!(self.used.fuel <= fuel_max, "at most {fuel_max} fuel was expected\n{self}");
    }

    /// The end as JSON: `{"result": ...}`, `{"error": {CASE: ...}}` or `{"stopped": {...}}`.
    #[must_use]
    pub fn ending_json(&self) -> Value {
        match &self.ending {
            Ending::Returned(value) => json!({ "result": value }),
            Ending::Refused(refusal) => json!({ "error": { refusal.case.as_str(): refusal.detail } }),
            Ending::Stopped(error) => json!({ "stopped": { "by": stopped_by(error), "text": error.to_string() } }),
        }
    }
}

/// An error in one line.
pub(crate) fn refusal_line(refusal: &Refusal) -> String {
    format!("{}: {}", refusal.case, refusal.text)
}

/// The kind of an end, in one word.
fn stopped_by(error: &CallError) -> &'static str {
    match error {
        CallError::Limit { .. } => "limit",
        CallError::Trapped { .. } => "trap",
        CallError::Contract { .. } => "contract",
        CallError::Parked(_) => "question",
        CallError::Unavailable(_) => "outage",
        CallError::Journal(_) => "journal",
        CallError::Cancelled => "cancel",
        _ => "host",
    }
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.ending {
            Ending::Returned(value) => writeln!(f, "result {value:#}")?,
            Ending::Refused(refusal) => {
                writeln!(f, "error {}: {}", refusal.case, printable(&refusal.text, LINE_BYTES_MAX))?
            }
            Ending::Stopped(error) => {
                writeln!(f, "stopped by {}: {}", stopped_by(error), printable(&error.to_string(), LINE_BYTES_MAX))?;
            }
        }
        if let Some(hit) = self.limit() {
            writeln!(f, "limit {} {} of {}", hit.name, hit.used, hit.max)?;
        }
        let WorkUsage { fuel, memory_bytes_peak, host_calls, .. } = self.used;
        let wall_ms = self.wall.as_secs_f64() * 1_000.0;
        writeln!(f, "fuel {fuel}, memory {memory_bytes_peak} bytes, {host_calls} host calls, {wall_ms:.1} ms")?;
        for made in &self.calls {
            writeln!(f, "call {}", printable(&made.to_string(), LINE_BYTES_MAX))?;
        }
        for line in &self.log {
            writeln!(f, "log {} {}", line.level, printable(&line.text, LINE_BYTES_MAX))?;
        }
        if self.log_dropped > 0 {
            writeln!(f, "log {} lines were over the cap", self.log_dropped)?;
        }
        Ok(())
    }
}
