//! Runs an agent's code in the sandbox. Refuses an agent that is an ask or a run: it has no code of its own.

use crate::service::SchedulerService;
use crate::work::AgentWork;
use longhaul_agents::{AgentCode, ExecutionResult};
use longhaul_exec::{Code as Source, ExecError, Executor, ExecutorPaths, Job, JobLimits, JobReport};
use longhaul_home::plugin_directories;

/// Fuel per millisecond, at most: twice the rate of 10^12 in five minutes.
const FUEL_PER_MS: u64 = 7_000_000;

impl SchedulerService {
    /// Runs an agent's code in the sandbox.
    pub async fn run_code(&self, work: &AgentWork) -> ExecutionResult {
        let agent = &work.record.agent;
        let code = match &agent.code {
            AgentCode::Python { source } => Source::Python(source.clone()),
            AgentCode::JavaScript { source } => Source::JavaScript(source.clone()),
            AgentCode::Wasm { digest } => match self.store.blob(digest) {
                Ok(Some(bytes)) => Source::Wasm(bytes),
                Ok(None) => {
                    let why = format!(
                        "its program {} is not in the store; give it again with: longhaul agent update {} --file",
                        digest.short(),
                        agent.name
                    );
                    return ExecutionResult::failed(why, false);
                }
                Err(error) => return ExecutionResult::failed(error.to_string(), false),
            },
            AgentCode::Ask { .. } | AgentCode::Run { .. } => {
                return ExecutionResult::failed("it has no code of its own", false);
            }
        };
        let job = Job {
            context: work.context(),
            directories: agent.grants.directories.clone(),
            hosts: agent.grants.hosts.clone(),
            limits: JobLimits {
                timeout_ms: agent.limits.timeout_ms,
                memory_bytes_max: agent.limits.memory_bytes_max,
                output_bytes_max: usize::try_from(agent.limits.output_bytes_max).unwrap_or(usize::MAX),
                // More fuel than the timeout allows to use, because the timeout is the limit that people set.
                fuel_max: JobLimits::default().fuel_max.max(agent.limits.timeout_ms.saturating_mul(FUEL_PER_MS)),
                ..JobLimits::default()
            },
            ..Job::of(code)
        };
        let ran = match self.executor().await {
            Ok(executor) => executor.run(job).await,
            Err(error) => Err(error),
        };
        match ran {
            Ok(report) => of_report(report, agent.limits.timeout_ms),
            Err(error) => {
                // A resource that the host lacks may exist later; a fault of the code remains.
                let retryable = matches!(error, ExecError::Host(_));
                ExecutionResult::failed(error.to_string(), retryable)
            }
        }
    }

    async fn executor(&self) -> Result<&Executor, ExecError> {
        let open = || async {
            let mut places = ExecutorPaths::usual()?;
            places.runtimes = plugin_directories(&self.home);
            Executor::new(places)
        };
        self.executor.get_or_try_init(open).await
    }
}

/// Converts a report to an execution result. A timeout or an exit code is retryable; a run out of memory or fuel would
/// end the same way again.
fn of_report(report: JobReport, timeout_ms: u64) -> ExecutionResult {
    let is_timeout = report.limit.as_deref() == Some("timeout_ms");
    let error_message =
        if is_timeout { Some(ExecutionResult::timeout_message(timeout_ms)) } else { report.error_message };
    ExecutionResult {
        success: report.success,
        stdout: report.stdout,
        stderr: report.stderr,
        exit_code: report.exit_code.unwrap_or(-1),
        duration_seconds: report.duration_seconds,
        error_message,
        retryable: !report.success && (is_timeout || report.limit.is_none()),
        limit: report.limit,
        truncated: report.truncated,
        run: None,
        artifact: None,
        notes: Vec::new(),
    }
}
