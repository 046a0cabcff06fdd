//! The call of a runtime, and the setup of its instance.
//!
//! An instance has null services: it sees the data that the job names, and no store, no model and no tool.

use crate::job::{Code, Job, JobLimits};
use longhaul_capabilities::{Console, InvocationScope, InvocationSetup, null};
use longhaul_core::grant::{DirectoryGrant, Grants, HostPattern};
use longhaul_core::tool::ToolCall;
use longhaul_core::{InvocationId, Limits};
use longhaul_engine::Plugin;
use longhaul_home::MachineClock;
use serde_json::{Value, json};
use std::sync::Arc;

/// The call of a runtime for a job whose code is `source`.
pub(crate) fn run_call(runtime: &Plugin, job: &Job, source: &str) -> ToolCall {
    let mut arguments = json!({ "source": source, "context": job.context, "stdin": job.stdin });
    if !job.files.is_empty() {
        arguments["files"] = json!(job.files);
    }
    if matches!(job.code, Code::TypeScript(_)) {
        arguments["typescript"] = Value::Bool(true);
    }
    if job.rich {
        arguments["rich"] = Value::Bool(true);
    }
    ToolCall { tool: runtime.name().into(), function: "run".into(), arguments: arguments.to_string() }
}

/// The settings of a runtime that prints into its console. One byte more than is kept, so that the console sees an
/// overflow, even of code that is stopped.
pub(crate) fn streaming(limits: &JobLimits) -> Value {
    json!({ "stream": true, "output_bytes_max": limits.output_bytes_max.saturating_add(1) })
}

/// The setup of an instance for a job.
pub(crate) fn setup(
    limits: &JobLimits,
    directories: Vec<DirectoryGrant>,
    hosts: Vec<HostPattern>,
    console: &Console,
) -> InvocationSetup {
    InvocationSetup {
        invocation: InvocationId::from_text("exec"),
        scope: InvocationScope { project: "exec".into(), plugin: "exec".into() },
        // The table is empty, so that a refusal names the command-line option.
        grants: Grants { directories, hosts, ..Grants::default() },
        limits: limits.of_call(),
        services: null::services(Arc::new(MachineClock)),
        journal: None,
        context: None,
        seed: [0; 32],
        console: Some(console.clone()),
        placeholders: Arc::default(),
        told: None,
    }
}

impl JobLimits {
    fn of_call(&self) -> Limits {
        Limits {
            fuel_max: self.fuel_max,
            memory_bytes_max: self.memory_bytes_max,
            disk_bytes_max: self.disk_bytes_max,
            wall_ms_max: self.timeout_ms,
            cpu_ms_max: self.timeout_ms,
            // Endless printing is bounded by the size of the kept output, and by time.
            host_calls_max: u64::MAX,
            // A step of a graph returns its values.
            output_bytes_max: 64 << 20,
            ..Limits::default()
        }
    }
}
