//! One step of a graph, or of a session, in Python's interpreter.
//!
//! It parses neither the arguments nor the answer of a graph's step: both are texts between the caller and the
//! interpreter.

use super::Executor;
use crate::call::streaming;
use crate::error::ExecError;
use crate::job::{GraphLanguage, Job};
use crate::report::{FinishedCall, JobReport, of_runtime};
use crate::step_answer::StepAnswer;
use longhaul_capabilities::Console;
use longhaul_core::tool::{ToolCall, ToolError, ToolOutput};
use longhaul_engine::{Called, Cancel, ToolAttempt};
use std::time::Instant;

/// A finished call of the function `step`.
struct StepCall {
    called: Called<Result<ToolOutput, ToolError>>,
    since: Instant,
    console: Console,
}

impl Executor {
    /// Calls the function `step` of the interpreter, in an instance with the grants and limits of this job. Returns the
    /// result of the call, and the interpreter's answer unless it was stopped.
    ///
    /// [`ExecError::NoRuntime`], [`ExecError::CompileLimit`], [`ExecError::Load`] or [`ExecError::Host`]; the step was
    /// not started then.
    pub async fn step(&self, job: &Job, arguments: String) -> Result<(JobReport, Option<String>), ExecError> {
        let StepCall { mut called, since, console } = self.call_step(job, arguments).await?;
        let said = match &mut called.result {
            Ok(Ok(output)) => Some(std::mem::replace(&mut output.output, r#"{"exit_code": 0}"#.to_owned())),
            _ => None,
        };
        Ok((of_runtime(called, FinishedCall { since, console, limits: &job.limits }), said))
    }

    /// The same for a step of a session, whose report is that of a job. No answer: it was stopped, or answered
    /// something else.
    pub(crate) async fn step_of_session(
        &self,
        job: &Job,
        arguments: String,
    ) -> Result<(JobReport, Option<StepAnswer>), ExecError> {
        let StepCall { mut called, since, console } = self.call_step(job, arguments).await?;
        let read = match &called.result {
            Ok(Ok(output)) => Some(StepAnswer::read(&output.output)),
            _ => None,
        };
        let answered = match read {
            Some(Ok(answer)) => {
                called.result = Ok(Ok(ToolOutput { output: answer.of_job(), truncated: false }));
                Some(answer)
            }
            Some(Err(reason)) => {
                called.result = Ok(Err(ToolError::Failed(reason)));
                None
            }
            None => None,
        };
        Ok((of_runtime(called, FinishedCall { since, console, limits: &job.limits }), answered))
    }

    async fn call_step(&self, job: &Job, arguments: String) -> Result<StepCall, ExecError> {
        let plugin = self.runtime(GraphLanguage::Python).await?;
        let since = Instant::now();
        let (start, console) = self.start_of(job);
        let call = ToolCall { tool: plugin.name().into(), function: "step".into(), arguments };
        let settings = streaming(&job.limits);
        let attempt = ToolAttempt { key: "exec", number: 1, settings: &settings };
        let called = plugin.call_tool(start, &Cancel::default(), &call, attempt).await;
        self.inner.ready.restock(GraphLanguage::Python);
        Ok(StepCall { called, since, console })
    }
}
