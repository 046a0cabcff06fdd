//! Sessions: namespaces of Python under a name, which outlive a job.
//!
//! A step of a session is given the values of the steps before it and answers those that it changed, as a step of a
//! graph does; between steps nothing runs. Values are loaded in the sandbox alone: to the host they are bytes. A
//! session belongs to the interpreter that began it. A step that is stopped by a limit leaves its session as it was.
//!
//! Loading values runs code of the steps that made them, with the grants of the step that loads them. So a session has
//! steps with directories or hosts, or steps of callers who may grant none, and never both.

mod access;
mod store;

pub use store::{ExecSessions, SessionSummary};

use crate::error::ExecError;
use crate::executor::Executor;
use crate::job::{Code, Job, Runtime};
use crate::native;
use crate::report::{JobReport, UnkeptVariable};
use crate::step_answer::StepAnswer;
use access::SessionAccess;
use longhaul_core::Clock as _;
use longhaul_home::MachineClock;
use serde_json::json;
use std::hash::{BuildHasher as _, RandomState};
use store::OpenSession;

impl Executor {
    /// Runs a job of Python as the next step of a session, which it begins if there is none of the name. The report has
    /// typed outputs, and the state of the session. The caller may grant whatever the job names.
    ///
    /// # Errors
    /// As [`Executor::run`], and when the session is unusable: its name, another step at work, another interpreter, or
    /// too many of them. The code was not started then, except for [`ExecError::SessionTooLarge`] and
    /// [`ExecError::SessionCrowded`].
    pub async fn run_in_session(&self, name: &str, job: Job) -> Result<JobReport, ExecError> {
        let is_granted = !job.directories.is_empty() || !job.hosts.is_empty();
        self.run_step(name, job, SessionAccess { is_granted, is_shared: false }).await
    }

    /// The same for a caller that may grant nothing, such as one over HTTP without the scope `admin`: refused in a
    /// session whose steps had directories or hosts, and no step of the session has any from then on.
    ///
    /// # Errors
    /// As [`Executor::run_in_session`], and [`ExecError::SessionGranted`].
    pub async fn run_in_shared_session(&self, name: &str, job: Job) -> Result<JobReport, ExecError> {
        let is_granted = !job.directories.is_empty() || !job.hosts.is_empty();
        self.run_step(name, job, SessionAccess { is_granted, is_shared: true }).await
    }

    async fn run_step(&self, name: &str, job: Job, access: SessionAccess) -> Result<JobReport, ExecError> {
        self.check(&job)?;
        let Code::Python(source) = &job.code else { return Err(ExecError::SessionOfPython) };
        if job.runtime == Runtime::Wasm && !job.files.is_empty() {
            return Err(ExecError::SessionFiles);
        }
        let sessions = ExecSessions::of(self.paths())?;
        let (of_name, runtime) = (name.to_owned(), interpreter_of(&job.runtime));
        let session = on_disk(move || sessions.open(&of_name, &runtime, access, MachineClock.now_ms())).await?;
        let arguments = json!({
            "id": (session.steps() + 1).to_string(),
            "source": source,
            // The generator of random numbers begins elsewhere in each session.
            "seed": format!("{:x}", RandomState::new().hash_one(name)),
            "given": session.groups(),
            "session": { "context": job.context, "stdin": job.stdin },
        });
        let arguments = arguments.to_string();
        let (mut report, answered) = match &job.runtime {
            Runtime::Wasm => self.step_of_session(&job, arguments).await?,
            Runtime::Native(_) => native::step(self.paths(), &job, &arguments).await?,
        };
        let (session, unkept) = match answered {
            Some(answer) => on_disk(move || taken(session, answer)).await?,
            None => (session, Vec::new()),
        };
        report.session = Some(session.report(unkept));
        Ok(report)
    }
}

fn taken(mut session: OpenSession, answer: StepAnswer) -> Result<(OpenSession, Vec<UnkeptVariable>), ExecError> {
    let unkept = session.take(answer, MachineClock.now_ms())?;
    Ok((session, unkept))
}

/// Reads or writes a session, of up to 64 MiB, where no other job waits for it.
async fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ExecError> + Send + 'static,
) -> Result<T, ExecError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|stopped| ExecError::Host(format!("the session cannot be read or kept: {stopped}")))?
}

/// The interpreter that a session belongs to: values of one are not read by another.
fn interpreter_of(runtime: &Runtime) -> String {
    match runtime {
        Runtime::Wasm => "wasm".to_owned(),
        Runtime::Native(native) => match &native.venv {
            None => "native".to_owned(),
            Some(venv) => {
                format!("native, {}", std::path::absolute(venv).unwrap_or_else(|_| venv.clone()).display())
            }
        },
    }
}
