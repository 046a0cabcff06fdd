//! The result of a job, in the customary fields of executors, and some of our own.

use crate::job::JobLimits;
use longhaul_capabilities::Console;
use longhaul_core::LimitHit;
use longhaul_core::event::WorkUsage;
use longhaul_core::tool::{ToolError, ToolOutput};
use longhaul_engine::{CallError, Called};
use serde::{Deserialize, Serialize};
use std::time::Instant;

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
    /// The fuel that it used.
    pub fuel_used: u64,
    /// Its peak memory.
    pub memory_bytes_peak: u64,
    /// The limit that stopped it, or made it fail: `timeout_ms`, `memory_bytes_max`, `fuel_max`,
    /// `disk_bytes_max`, `stack_bytes_max`, or another field of `longhaul_core::Limits`.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub limit: Option<String>,
    /// True when some of the output was dropped.
    pub truncated: bool,
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
}

pub(crate) fn of_runtime(called: Called<Result<ToolOutput, ToolError>>, ended: FinishedCall<'_>) -> JobReport {
    let Called { result, used, refused, .. } = called;
    let way = match result {
        Ok(Ok(output)) => match serde_json::from_str::<RuntimeAnswer>(&output.output) {
            Ok(answer) => CallExit::Exited(answer.exit_code),
            Err(error) => CallExit::Refused(format!("the runtime answered something else: {error}")),
        },
        Ok(Err(error)) => CallExit::Refused(error.to_string()),
        Err(error) => CallExit::Stopped(error),
    };
    ended.report(way, refused, used)
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
            CallExit::Refused(reason) => (None, Some(reason), None),
            CallExit::Stopped(CallError::Limit { hit, .. }) => {
                let name =
                    if matches!(hit.name.as_str(), "wall_ms_max" | "cpu_ms_max") { "timeout_ms" } else { &hit.name };
                (None, Some(words(&hit, self.limits)), Some(name.to_owned()))
            }
            CallExit::Stopped(error) => (None, Some(error.to_string()), None),
        }
    }
}

/// The name of a limit in a report.
fn words(hit: &LimitHit, limits: &JobLimits) -> String {
    match hit.name.as_str() {
        "wall_ms_max" | "cpu_ms_max" => format!("Timeout: it ran longer than {} ms", limits.timeout_ms),
        "memory_bytes_max" => format!("memory limit: it needs more than {} bytes", limits.memory_bytes_max),
        "fuel_max" => format!("fuel limit: it needs more than {} fuel", limits.fuel_max),
        "disk_bytes_max" => format!("disk limit: it writes more than {} bytes into directories", limits.disk_bytes_max),
        "stack_bytes_max" => "stack limit: it calls too deep".to_owned(),
        _ => format!("limit: it used {} of {} {}", hit.used, hit.max, hit.name),
    }
}
