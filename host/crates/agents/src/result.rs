//! Results of executions. Every execution has one: a missing agent, a limit and a kill are results too.

use longhaul_core::RunId;
use serde::{Deserialize, Serialize};

/// The exit code of an execution that was stopped, or never started.
const STOPPED: i32 = -1;

/// The result of one execution.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExecutionResult {
    /// True when the code ended by itself, with exit code 0.
    pub success: bool,
    /// Standard output, also of a stopped execution.
    pub stdout: String,
    /// Standard error, also of a stopped execution.
    pub stderr: String,
    /// Exit code; -1 when the code was stopped or never started.
    pub exit_code: i32,
    /// Time from start to end, in seconds.
    pub duration_seconds: f64,
    /// Cause of the failure, in one line.
    pub error_message: Option<String>,
    /// True when a later execution may succeed without any change.
    #[serde(default)]
    pub retryable: bool,
    /// The limit that stopped it, such as `timeout_ms` or `memory_bytes_max`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// True when some output was dropped, by the limit or in storage.
    #[serde(default)]
    pub truncated: bool,
    /// The run, for an ask or a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The fate of the agent's artifact. None: it was not the last attempt of its task, or it never began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<ArtifactOutcome>,
    /// Remarks, such as a state that was refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The fate of an agent's artifact at the end of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArtifactOutcome {
    /// The version that the execution began with; 0 is none.
    pub base_version: u64,
    /// The version at its end.
    pub version: u64,
    /// True when the execution made that version. False: another run or a person did while it ran, and it stays whole.
    pub saved: bool,
}

impl ExecutionResult {
    /// The result of an execution that never ran, or was stopped, for a reason.
    #[must_use]
    pub fn failed(why: impl Into<String>, retryable: bool) -> Self {
        Self { exit_code: STOPPED, error_message: Some(why.into()), retryable, ..Self::default() }
    }

    /// There is no such agent.
    #[must_use]
    pub fn not_found(agent: &str) -> Self {
        Self::failed(format!("Agent {agent} not found; `longhaul agent list` shows them"), false)
    }

    /// The agent may not be run.
    #[must_use]
    pub fn not_active(agent: &str) -> Self {
        Self::failed(format!("Agent {agent} is not active; switch it on with: longhaul agent activate {agent}"), false)
    }

    /// The process ended while it ran.
    #[must_use]
    pub fn host_ended() -> Self {
        Self::failed("the host ended while it ran", true)
    }

    /// The sentence about a time limit.
    #[must_use]
    pub fn timeout_message(timeout_ms: u64) -> String {
        match timeout_ms % 1_000 {
            0 => format!("Timeout after {} seconds", timeout_ms / 1_000),
            rest => {
                let text = format!("{}.{rest:03}", timeout_ms / 1_000);
                format!("Timeout after {} seconds", text.trim_end_matches('0'))
            }
        }
    }

    /// The result in its stored form: the first and the last bytes of each stream, `bytes_max` together.
    #[must_use]
    pub fn kept(&self, bytes_max: usize) -> Self {
        let (stdout, cut_out) = middle_out(&self.stdout, bytes_max);
        let (stderr, cut_err) = middle_out(&self.stderr, bytes_max);
        Self { stdout, stderr, truncated: self.truncated || cut_out || cut_err, ..self.clone() }
    }
}

fn middle_out(text: &str, bytes_max: usize) -> (String, bool) {
    if text.len() <= bytes_max {
        return (text.to_owned(), false);
    }
    let head = &text[..text.floor_char_boundary(bytes_max / 2)];
    let tail = &text[text.ceil_char_boundary(text.len() - bytes_max / 2)..];
    let left_out = text.len() - head.len() - tail.len();
    (format!("{head}\n[… {left_out} bytes left out …]\n{tail}"), true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_says_after_how_many_seconds() {
        for (ms, text) in [(1_000, "1"), (300_000, "300"), (1_500, "1.5"), (50, "0.05"), (1_001, "1.001")] {
            assert_eq!(ExecutionResult::timeout_message(ms), format!("Timeout after {text} seconds"));
        }
    }

    #[test]
    fn what_is_kept_of_long_output_has_its_beginning_and_its_end_and_splits_no_character() {
        let result = ExecutionResult { stdout: format!("a{}z", "ä".repeat(1_000)), ..ExecutionResult::default() };
        let kept = result.kept(100);
        assert!(kept.truncated && kept.stdout.len() < 160, "{kept:?}");
        assert!(kept.stdout.starts_with("aä") && kept.stdout.ends_with("äz"), "{kept:?}");
        assert!(kept.stdout.contains("[… 1902 bytes left out …]") || kept.stdout.contains("[… 1904 bytes left out …]"));
        assert_eq!(result.kept(2_002), result);
    }
}
