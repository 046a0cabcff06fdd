//! Runs steps of a graph, each in an interpreter of its own.
//!
//! A step sees its given values, what its grants allow, and nothing else; its changes come back as blobs, named here by
//! the digest of their bytes. This module does not decide which steps run, keeps nothing, and trusts an answer only
//! where a false one harms nothing but the graph of that step. Errors of a step are in its report; an error here means
//! that it was not run.
//!
//! Some things are neither carried from step to step nor compared: the order of a set's elements, identities of numbers
//! and texts, addresses, cache statistics, changes to modules and builtins, warnings that were shown before, tracebacks
//! of stored exceptions, and the flags of `decimal`. A report has the paths of the files that a step read and wrote;
//! their content is for the caller to look at.

mod answer;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use longhaul_core::Digest;
use longhaul_core::grant::{Access, DirectoryGrant, HostPattern};
use longhaul_core::output::OutputSink;
use longhaul_exec::{Code, ExecError, Executor, GraphLanguage, Job, JobLimits};
use longhaul_graph::step::{GivenGroup, StepEnd, StepReport, StepRequest};
use serde_json::{Value, json};
use std::sync::Arc;

/// Bytes of all values that one run may get: 64 MiB. They cross into the interpreter as text, a third longer.
pub const GIVEN_BYTES_MAX: u64 = 64 << 20;

/// Finds values by digest.
pub trait Blobs: Sync {
    /// The content of a blob; none if there is none of this digest.
    ///
    /// # Errors
    /// The reason why it cannot be read, in one line.
    fn blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, String>;
}

/// The reason why a step was not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StepError {
    /// The interpreter is unavailable, or the source is too long.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// A value is gone.
    #[error("the value of `{names}` (blob {digest}) is not in the store; run the step that made it again")]
    Missing {
        /// The names that share the value.
        names: String,
        /// The blob.
        digest: Digest,
    },
    /// A value cannot be read.
    #[error("the value of `{names}` cannot be read: {reason}")]
    Unreadable {
        /// The names that share the value.
        names: String,
        /// The reason why it cannot be read.
        reason: String,
    },
    /// The values are too large.
    #[error(
        "step `{step}` may look at {bytes} bytes of values, and at most {GIVEN_BYTES_MAX} are handed over; keep large \
         data in fewer variables, or in a file of a granted directory"
    )]
    TooMuchGiven {
        /// The step.
        step: String,
        /// Their least total size.
        bytes: u64,
    },
}

/// Runs steps with one set of limits and grants. Clones share the waiting instances.
#[derive(Clone)]
pub struct Steps {
    executor: Executor,
    limits: JobLimits,
    directories: Vec<DirectoryGrant>,
    hosts: Vec<HostPattern>,
    sink: Option<Arc<dyn OutputSink>>,
}

impl Steps {
    /// Steps that see nothing but their values. The limits apply to each run.
    #[must_use]
    pub fn new(executor: Executor, limits: JobLimits) -> Self {
        Self { executor, limits, directories: Vec::new(), hosts: Vec::new(), sink: None }
    }

    /// Steps that see these directories, and may reach these hosts by HTTP.
    #[must_use]
    pub fn with_grants(self, directories: Vec<DirectoryGrant>, hosts: Vec<HostPattern>) -> Self {
        Self { directories, hosts, ..self }
    }

    /// Steps whose output goes to this sink while they run. Their reports have it all the same.
    #[must_use]
    pub fn with_sink(self, sink: Option<Arc<dyn OutputSink>>) -> Self {
        Self { sink, ..self }
    }

    /// True when a run may have effects outside: it may write files or ask hosts.
    #[must_use]
    pub fn acts(&self) -> bool {
        !self.hosts.is_empty() || self.directories.iter().any(|directory| directory.access != Access::Read)
    }

    /// Identifies the limits and grants, on which the results of a run depend.
    #[must_use]
    pub fn grants(&self) -> Digest {
        // The limit of what it writes changes no result that is kept, and stays out of the name of a kept one.
        let JobLimits { memory_bytes_max, fuel_max, output_bytes_max, timeout_ms, disk_bytes_max: _ } = &self.limits;
        let limits = format!("{memory_bytes_max} {fuel_max} {output_bytes_max} {timeout_ms}");
        let grants = format!("{:?} {:?}", self.directories, self.hosts);
        Digest::of_parts(&[limits.as_bytes(), grants.as_bytes()])
    }

    /// Keeps instances ready for steps without grants.
    ///
    /// # Errors
    /// As [`Executor::keep_ready`].
    pub async fn keep_ready(&self, count: usize) -> Result<(), ExecError> {
        self.executor.keep_ready(GraphLanguage::Python, self.limits.clone(), count).await
    }

    /// Runs a step to its end.
    ///
    /// # Errors
    /// Every [`StepError`]; the step did not start then.
    pub async fn run(&self, request: &StepRequest, blobs: &impl Blobs) -> Result<StepReport, StepError> {
        let arguments = self.arguments(request, blobs)?;
        let (report, said) = self.executor.step(&self.job(request), arguments).await?;
        let mut step = StepReport {
            stdout: report.stdout,
            stderr: report.stderr,
            truncated: report.truncated,
            fuel_used: report.fuel_used,
            memory_bytes_peak: report.memory_bytes_peak,
            ..StepReport::of(request.step.clone())
        };
        // A whole number of microseconds, and never negative.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let duration_us = (report.duration_seconds * 1e6) as u64;
        step.duration_us = duration_us;
        match said {
            Some(text) => answer::read_into(&mut step, &text),
            None => {
                let message = report.error_message.unwrap_or_else(|| "it was stopped".to_owned());
                step.ended = StepEnd::Stopped { limit: report.limit, message };
            }
        }
        Ok(step)
    }

    fn job(&self, request: &StepRequest) -> Job {
        Job {
            directories: self.directories.clone(),
            hosts: self.hosts.clone(),
            limits: self.limits.clone(),
            sink: self.sink.clone(),
            ..Job::of(Code::Python(request.source.to_string()))
        }
    }

    fn arguments(&self, request: &StepRequest, blobs: &impl Blobs) -> Result<String, StepError> {
        let sources = request.before.iter().map(|before| &before.source).chain([&request.source]);
        for source in sources {
            if source.len() > longhaul_exec::SOURCE_BYTES_MAX {
                return Err(ExecError::SourceTooLong { bytes: source.len() }.into());
            }
        }
        let mut bytes = 0;
        let given: Vec<Value> =
            request.given.iter().map(|given| value(request, given, blobs, &mut bytes)).collect::<Result<_, _>>()?;
        let before: Vec<Value> = request
            .before
            .iter()
            .map(|before| json!({ "id": before.step, "source": before.source, "seed": before.seed }))
            .collect();
        let fields = json!({
            "id": request.step,
            "source": request.source,
            "seed": request.seed,
            "given": given,
            "prelude": before,
            "directories": self.directories.iter().map(|directory| &directory.guest).collect::<Vec<_>>(),
        });
        Ok(fields.to_string())
    }
}

/// A group of values in the interpreter's form.
fn value(request: &StepRequest, given: &GivenGroup, blobs: &impl Blobs, bytes: &mut u64) -> Result<Value, StepError> {
    let names = || given.names.iter().map(AsRef::as_ref).collect::<Vec<&str>>().join(", ");
    let content = blobs.blob(&given.blob).map_err(|reason| StepError::Unreadable { names: names(), reason })?;
    let content = content.ok_or_else(|| StepError::Missing { names: names(), digest: given.blob })?;
    *bytes += content.len() as u64;
    if *bytes > GIVEN_BYTES_MAX {
        return Err(StepError::TooMuchGiven { step: request.step.to_string(), bytes: *bytes });
    }
    Ok(json!({ "names": given.names, "value": given.value, "blob": STANDARD.encode(content) }))
}
