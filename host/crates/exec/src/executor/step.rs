//! One step of a graph in Python's interpreter.
//!
//! It parses neither the arguments nor the answer: both are texts between the caller and the interpreter.

use super::Executor;
use crate::call::{setup, streaming};
use crate::error::ExecError;
use crate::job::{GraphLanguage, Job};
use crate::report::{FinishedCall, JobReport, of_runtime};
use longhaul_capabilities::Console;
use longhaul_core::tool::ToolCall;
use longhaul_engine::{CallStart, Cancel, ToolAttempt};
use std::time::Instant;

impl Executor {
    /// Calls the function `step` of the interpreter, in an instance with the grants and limits of this job. Returns the
    /// result of the call, and the interpreter's answer unless it was stopped.
    ///
    /// [`ExecError::NoRuntime`], [`ExecError::CompileLimit`], [`ExecError::Load`] or [`ExecError::Host`]; the step was
    /// not started then.
    pub async fn step(&self, job: &Job, arguments: String) -> Result<(JobReport, Option<String>), ExecError> {
        let plugin = self.runtime(GraphLanguage::Python).await?;
        let since = Instant::now();
        let (start, console) = match self.inner.ready.take(job) {
            Some((standby, console)) => (CallStart::from(standby), console),
            None => {
                let console = Console::new(job.limits.output_bytes_max);
                (CallStart::from(setup(&job.limits, job.directories.clone(), job.hosts.clone(), &console)), console)
            }
        };
        let call = ToolCall { tool: plugin.name().into(), function: "step".into(), arguments };
        let settings = streaming(&job.limits);
        let attempt = ToolAttempt { key: "exec", number: 1, settings: &settings };
        let mut called = plugin.call_tool(start, &Cancel::default(), &call, attempt).await;
        self.inner.ready.restock(GraphLanguage::Python);
        let said = match &mut called.result {
            Ok(Ok(output)) => Some(std::mem::replace(&mut output.output, r#"{"exit_code": 0}"#.to_owned())),
            _ => None,
        };
        Ok((of_runtime(called, FinishedCall { since, console, limits: &job.limits }), said))
    }
}
