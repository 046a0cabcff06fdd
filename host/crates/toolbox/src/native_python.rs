//! The tool `python` of a run whose table says `runtime = "native"`: Python of this machine, with the packages of a
//! virtual environment, in the sandbox of native programs.
//!
//! Each call is a process of its own, whose directory is the tree of the run, which it cannot change. It answers as the
//! component of the same name does. Refuses to run below the sandbox level of the run; what it cannot know of a call's
//! hosts, the guard does.

use longhaul_config::PluginConfig;
use longhaul_config::tools::native_python::NativePythonSettings;
use longhaul_core::fault;
use longhaul_core::grant::{Access, DirectoryGrant, HostPattern};
use longhaul_core::journal::EffectClass;
use longhaul_core::tool::{FunctionInfo, HostTool, ToolCall, ToolError, ToolInfo, ToolOutput};
use longhaul_core::{InvocationId, LimitHit};
use longhaul_exec::{Code, ExecError, Job, JobLimits, JobReport, NativeRuntime, Runtime, run_native};
use longhaul_sandbox::{Level, SandboxHost};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The tool.
pub(crate) struct NativePython {
    host: SandboxHost,
    tree: PathBuf,
    venv: Option<PathBuf>,
    hosts: Vec<HostPattern>,
    settings: NativePythonSettings,
    /// A level below `full` that has confined a call so far.
    weaker: Mutex<Option<String>>,
}

impl NativePython {
    /// The tool of a table that was checked.
    pub(crate) fn new(part: &PluginConfig, host: SandboxHost, project: &Path, tree: &Path) -> fault::Result<Self> {
        Ok(Self {
            host,
            tree: std::path::absolute(tree)?,
            venv: part.venv.as_ref().map(|venv| project.join(venv)),
            hosts: part.hosts.clone(),
            settings: NativePythonSettings::of(part)?,
            weaker: Mutex::default(),
        })
    }

    /// Its calls change nothing where the sandbox holds and no host can be asked.
    fn effect(&self) -> EffectClass {
        let is_held = self.hosts.is_empty() && self.host.level_min > Level::None;
        if is_held { EffectClass::ReadOnly } else { EffectClass::Acts }
    }

    fn job(&self, asked: Asked, is_check: bool) -> Job {
        let NativePythonSettings { timeout_ms, memory_bytes_max, output_bytes_max } = self.settings;
        let directory = DirectoryGrant {
            guest: self.tree.to_string_lossy().into_owned(),
            host: self.tree.clone(),
            access: Access::Read,
        };
        Job {
            runtime: Runtime::Native(NativeRuntime {
                venv: self.venv.clone(),
                sandbox_min: self.host.level_min,
                directory: Some(self.tree.clone()),
                is_check,
            }),
            files: asked.files.unwrap_or_default(),
            context: Value::Object(asked.context.unwrap_or_default()),
            stdin: asked.stdin.unwrap_or_default(),
            directories: vec![directory],
            hosts: self.hosts.clone(),
            limits: JobLimits {
                timeout_ms: asked.timeout.map_or(timeout_ms, |seconds| milliseconds(seconds).min(timeout_ms)),
                memory_bytes_max,
                output_bytes_max,
                ..JobLimits::native()
            },
            ..Job::of(Code::Python(asked.source))
        }
    }

    fn note(&self, report: &JobReport) {
        let weaker = report.sandbox.clone().filter(|level| !["full", "runsc"].contains(&level.as_str()));
        if weaker.is_some() {
            *self.weaker.lock().unwrap_or_else(PoisonError::into_inner) = weaker;
        }
    }
}

/// The arguments of a call, as those of the component.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    source: String,
    stdin: Option<String>,
    timeout: Option<f64>,
    files: Option<BTreeMap<String, String>>,
    context: Option<Map<String, Value>>,
}

#[async_trait::async_trait]
impl HostTool for NativePython {
    async fn info(&self, name: &str) -> Result<ToolInfo, ToolError> {
        let network = if self.hosts.is_empty() { "without network" } else { "with the granted hosts alone" };
        let description = format!(
            "Runs Python with the packages of this project, {network}, in the tree of the run, which it cannot change."
        );
        let run = "Runs Python source and gives what it printed.";
        let check = "Runs Python source and the tests in it; it passes when it ends with exit code 0.";
        let functions = [("run", run), ("check", check)].map(|(name, what)| function(name, what, self.effect()));
        Ok(ToolInfo { id: name.to_owned(), description, functions: functions.into() })
    }

    fn held_by(&self) -> Option<String> {
        self.weaker.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn call(&self, call: &ToolCall, _: &InvocationId, _: &str, _: u32) -> Result<ToolOutput, ToolError> {
        let is_check = match call.function.as_str() {
            "run" => false,
            "check" => true,
            other => {
                let name = longhaul_core::text::truncate(other, 120);
                return Err(ToolError::UnknownFunction(name));
            }
        };
        let asked: Asked = call.read()?;
        if asked.timeout.is_some_and(|seconds| seconds.is_nan() || seconds <= 0.0) {
            return Err(ToolError::InvalidArguments("`timeout` is in seconds and more than 0".to_owned()));
        }
        // A longer one than the setting is not what ends the call.
        let timeout = asked.timeout.filter(|seconds| milliseconds(*seconds) <= self.settings.timeout_ms);
        let job = self.job(asked, is_check);
        let report = run_native(&self.host, &job).await.map_err(refused)?;
        self.note(&report);
        told(report, timeout, is_check, &job.limits)
    }
}

fn function(name: &str, what: &str, effect: EffectClass) -> FunctionInfo {
    let properties = json!({
        "source": { "type": "string", "description": "Python source" },
        "stdin": { "type": "string" },
        "timeout": { "type": "number", "exclusiveMinimum": 0, "description": "seconds" },
        "files": {
            "type": "object",
            "additionalProperties": { "type": "string" },
            "description": "modules by file name, such as helper.py",
        },
        "context": { "type": "object", "description": "what the source sees as CONTEXT" },
    });
    FunctionInfo::of(name, what, effect, properties, &["source"])
}

/// Seconds of a model as milliseconds, at least one.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
fn milliseconds(seconds: f64) -> u64 {
    ((seconds * 1_000.0) as u64).max(1)
}

fn refused(error: ExecError) -> ToolError {
    match error {
        ExecError::SourceTooLong { .. } | ExecError::ContextTooDeep | ExecError::BadFile { .. } => {
            ToolError::InvalidArguments(error.to_string())
        }
        other => ToolError::Failed(other.to_string()),
    }
}

fn told(report: JobReport, timeout: Option<f64>, is_check: bool, limits: &JobLimits) -> Result<ToolOutput, ToolError> {
    let (mut stderr, mut code) = (report.stderr, report.exit_code);
    match (report.limit.as_deref(), timeout, code) {
        (Some("timeout_ms"), Some(seconds), _) => {
            stderr.push_str(&format!("Timeout after {seconds} seconds\n"));
            code = Some(-1);
        }
        (Some("timeout_ms"), None, _) => {
            return Err(ToolError::TimedOut(u32::try_from(limits.timeout_ms).unwrap_or(u32::MAX)));
        }
        (Some("memory_bytes_max"), _, None) => {
            let max = limits.memory_bytes_max;
            return Err(ToolError::Limit(LimitHit::new("memory_bytes_max", max, max)));
        }
        (Some(_), _, None) => return Err(ToolError::Failed(report.error_message.unwrap_or_default())),
        _ => {}
    }
    let code = code.unwrap_or(-1);
    let mut output = json!({ "stdout": report.stdout, "stderr": stderr, "exit_code": code });
    if is_check {
        output["passed"] = (code == 0).into();
    }
    Ok(ToolOutput { output: output.to_string(), truncated: report.truncated })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(exit_code: Option<i32>, limit: Option<&str>) -> JobReport {
        JobReport {
            success: exit_code == Some(0),
            stdout: "out".into(),
            stderr: String::new(),
            exit_code,
            duration_seconds: 0.0,
            error_message: None,
            fuel_used: 0,
            memory_bytes_peak: 0,
            limit: limit.map(str::to_owned),
            truncated: false,
            outputs: Vec::new(),
            sandbox: Some("full".into()),
            session: None,
        }
    }

    #[test]
    fn a_call_is_answered_as_that_of_the_component() {
        let told = |exit_code, limit, timeout, is_check| {
            told(report(exit_code, limit), timeout, is_check, &JobLimits::native()).map(|output| output.output)
        };
        let plain = r#"{"stdout":"out","stderr":"","exit_code":3}"#;
        assert_eq!(told(Some(3), None, None, false), Ok(plain.to_owned()));
        let passed = r#"{"stdout":"out","stderr":"","exit_code":0,"passed":true}"#;
        assert_eq!(told(Some(0), None, None, true), Ok(passed.to_owned()));
        let late = r#"{"stdout":"out","stderr":"Timeout after 1.5 seconds\n","exit_code":-1}"#;
        assert_eq!(told(None, Some("timeout_ms"), Some(1.5), false), Ok(late.to_owned()));
        assert_eq!(told(None, Some("timeout_ms"), None, false), Err(ToolError::TimedOut(300_000)));
        let memory = LimitHit::new("memory_bytes_max", 1 << 30, 1 << 30);
        assert_eq!(told(None, Some("memory_bytes_max"), None, false), Err(ToolError::Limit(memory)));
    }

    #[test]
    fn seconds_of_a_model_are_at_least_a_millisecond_and_never_too_many() {
        for (seconds, expected) in [(0.000_1, 1), (1.5, 1_500), (f64::INFINITY, u64::MAX), (1e300, u64::MAX)] {
            assert_eq!(milliseconds(seconds), expected);
        }
    }
}
