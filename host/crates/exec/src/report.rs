//! The result of a job, in the customary fields of executors, and some of our own.

use crate::job::JobLimits;
use crate::outputs::{ANSWER_VALUES_MAX, JobOutput, Outputs};
use longhaul_capabilities::Console;
use longhaul_core::LimitHit;
use longhaul_core::event::WorkUsage;
use longhaul_core::json::has_more_values;
use longhaul_core::text::truncate;
use longhaul_core::tool::{ToolError, ToolOutput};
use longhaul_engine::{CallError, Called};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Instant;

/// Bytes of the reason why a job did not succeed, which may be words of its code.
const REASON_BYTES_MAX: usize = 4_000;

/// The state of a session after a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SessionReport {
    /// Its name.
    pub name: String,
    /// The number of its steps, with this one.
    pub steps: u64,
    /// Bytes of its values, as they are kept.
    pub bytes: u64,
    /// The names of its variables.
    pub variables: Vec<String>,
    /// Variables of this step that the session cannot keep.
    pub unkept: Vec<UnkeptVariable>,
}

/// A variable that a session cannot keep, such as an open file or a generator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct UnkeptVariable {
    /// Its name, and those of variables that share objects with it.
    pub names: Vec<String>,
    /// The reason.
    pub reason: String,
}

/// The result of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct JobReport {
    /// True when the code ended by itself, with exit code 0.
    pub success: bool,
    /// Its standard output, even when it was stopped; invalid UTF-8 is replaced.
    pub stdout: String,
    /// Its standard error, likewise.
    pub stderr: String,
    /// Its exit code, from 0 to 255; none when it was stopped. A component that exits by `wasi:cli/exit.exit` reports
    /// only 0 or 1.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub exit_code: Option<i32>,
    /// Time from the start of its instance to its end.
    pub duration_seconds: f64,
    /// The reason why it did not succeed, in one line.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub error_message: Option<String>,
    /// The fuel that it used; 0 for a native job.
    pub fuel_used: u64,
    /// Its peak memory. Of a native job that of its interpreter, as that tells it, and 0 when it was stopped.
    pub memory_bytes_peak: u64,
    /// The limit that stopped it, or made it fail: `timeout_ms`, `memory_bytes_max`, `fuel_max`,
    /// `disk_bytes_max`, `stack_bytes_max`, or another field of `longhaul_core::Limits`.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub limit: Option<String>,
    /// True when some of the output was dropped.
    pub truncated: bool,
    /// Typed results, in order, if the job asked for them: what `display` was given, the value of the last expression,
    /// and of Python open figures of matplotlib. At most 100, and 8 MiB as JSON with
    /// 400,000 values.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub outputs: Vec<JobOutput>,
    /// The sandbox level of a native job: `full`, `namespaces`, `landlock`, `runsc` or `none`. Null in WebAssembly.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub sandbox: Option<String>,
    /// The state of the session, if the job was a step of one.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub session: Option<SessionReport>,
}

/// Facts about a finished job beside its call.
pub(crate) struct FinishedCall<'a> {
    pub(crate) since: Instant,
    pub(crate) console: Console,
    pub(crate) limits: &'a JobLimits,
}

/// Its end, regardless of the limits.
enum CallExit {
    Exited(i32),
    Refused(String),
    Stopped(CallError),
}

/// The answer of a runtime.
#[derive(Deserialize)]
struct RuntimeAnswer {
    exit_code: i32,
    #[serde(default)]
    outputs: Vec<Value>,
    #[serde(default)]
    outputs_dropped: u64,
}

impl RuntimeAnswer {
    /// Reads an answer, which the code of the job can make up.
    fn read(text: &str) -> Result<Self, String> {
        if has_more_values(text.as_bytes(), ANSWER_VALUES_MAX) {
            return Err(format!("the runtime answered more than {ANSWER_VALUES_MAX} values"));
        }
        serde_json::from_str(text).map_err(|error| format!("the runtime answered something else: {error}"))
    }
}

pub(crate) fn of_runtime(called: Called<Result<ToolOutput, ToolError>>, ended: FinishedCall<'_>) -> JobReport {
    let Called { result, used, refused, .. } = called;
    let mut outputs = Outputs::default();
    let way = match result {
        Ok(Ok(output)) => match RuntimeAnswer::read(&output.output) {
            Ok(answer) => {
                outputs = Outputs::of(answer.outputs, answer.outputs_dropped);
                CallExit::Exited(answer.exit_code)
            }
            Err(reason) => CallExit::Refused(reason),
        },
        Ok(Err(error)) => CallExit::Refused(error.to_string()),
        Err(error) => CallExit::Stopped(error),
    };
    let report = ended.report(way, refused, used);
    JobReport { truncated: report.truncated || outputs.dropped > 0, outputs: outputs.kept, ..report }
}

pub(crate) fn of_program(called: Called<i32>, ended: FinishedCall<'_>) -> JobReport {
    let Called { result, used, refused, .. } = called;
    let way = result.map_or_else(CallExit::Stopped, CallExit::Exited);
    ended.report(way, refused, used)
}

impl FinishedCall<'_> {
    fn report(self, way: CallExit, refused: Option<LimitHit>, used: WorkUsage) -> JobReport {
        let duration_seconds = self.since.elapsed().as_secs_f64();
        let (stdout, stdout_cut) = self.console.stdout.text();
        let (stderr, stderr_cut) = self.console.stderr.text();
        let (exit_code, error_message, limit) = self.verdict(way, refused);
        JobReport {
            success: exit_code == Some(0),
            stdout,
            stderr,
            exit_code,
            duration_seconds,
            error_message,
            fuel_used: used.fuel,
            memory_bytes_peak: used.memory_bytes_peak,
            limit,
            truncated: stdout_cut || stderr_cut,
            outputs: Vec::new(),
            sandbox: None,
            session: None,
        }
    }

    /// Exit code, error and limit. Refused memory, and a refused write, count when the code did not succeed.
    fn verdict(&self, way: CallExit, refused: Option<LimitHit>) -> (Option<i32>, Option<String>, Option<String>) {
        match way {
            CallExit::Exited(0) => (Some(0), None, None),
            CallExit::Exited(code) => match refused {
                Some(hit) => (Some(code), Some(words(&hit, self.limits)), Some(hit.name)),
                None => (Some(code), Some(format!("it ended with exit code {code}")), None),
            },
            CallExit::Refused(reason) => (None, Some(truncate(&reason, REASON_BYTES_MAX)), None),
            CallExit::Stopped(CallError::Limit { hit, .. }) => {
                let name =
                    if matches!(hit.name.as_str(), "wall_ms_max" | "cpu_ms_max") { "timeout_ms" } else { &hit.name };
                (None, Some(words(&hit, self.limits)), Some(name.to_owned()))
            }
            CallExit::Stopped(error) => (None, Some(truncate(&error.to_string(), REASON_BYTES_MAX)), None),
        }
    }
}

/// The words of a limit in a report.
pub(crate) fn words(hit: &LimitHit, limits: &JobLimits) -> String {
    match hit.name.as_str() {
        "wall_ms_max" | "cpu_ms_max" => format!("Timeout: it ran longer than {} ms", limits.timeout_ms),
        "memory_bytes_max" => format!("memory limit: it needs more than {} bytes", limits.memory_bytes_max),
        "fuel_max" => format!("fuel limit: it needs more than {} fuel", limits.fuel_max),
        "disk_bytes_max" => format!("disk limit: it writes more than {} bytes into directories", limits.disk_bytes_max),
        "stack_bytes_max" => "stack limit: it calls too deep".to_owned(),
        _ => format!("limit: it used {} of {} {}", hit.used, hit.max, hit.name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_of_more_values_than_the_host_holds_is_refused_before_it_is_read() {
        let answer = |zeros: usize| {
            let text = format!(r#"{{"exit_code": 3, "outputs": [[{}0]]}}"#, "0,".repeat(zeros));
            RuntimeAnswer::read(&text).map(|answer| answer.exit_code)
        };
        assert_eq!(answer(10), Ok(3));
        assert!(answer(ANSWER_VALUES_MAX).is_err_and(|reason| reason.contains("more than 1000000 values")));
    }

    #[test]
    fn the_reason_of_a_job_is_bounded_whatever_its_code_answers() {
        let limits = JobLimits::default();
        let ended = FinishedCall { since: Instant::now(), console: Console::new(1), limits: &limits };
        let (_, reason, _) = ended.verdict(CallExit::Refused("x".repeat(1_000_000)), None);
        assert!(reason.is_some_and(|reason| (REASON_BYTES_MAX..REASON_BYTES_MAX + 100).contains(&reason.len())));
    }
}
