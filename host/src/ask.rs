//! Asking from a Rust program: one agent, a routed agent or a planned run answers, as with `longhaul ask`.
//!
//! An [`AskClient`] opens a data directory or finds its owner; each ask is a run like any other, which survives its
//! process. It decides nothing: [`Dispatch`] chooses the agent that answers.
//!
//! The program that asks is its own child processes, if its `main` begins with [`run_child_if_asked`].
//!
//! [`run_child_if_asked`]: crate::run_child_if_asked

use crate::children::expect_program;
use crate::events;
use crate::wiring;
use futures_util::Stream;
use longhaul_api::operations::RunOperations as _;
use longhaul_api::runs::{RunRef, ShowRun};
use longhaul_client::Client;
use longhaul_core::RunId;
use longhaul_core::fault;
use longhaul_core::stream::StreamLine;
use longhaul_home::Home;
use std::path::Path;

pub use longhaul_api::runs::{AskRequest, Status};
pub use longhaul_core::work::{Plan, Synthesis};
pub use longhaul_harness::{Dispatch, RunStatus};
pub use longhaul_models::set::ModelOptions;

/// The outcome of an ask.
#[derive(Clone, Debug)]
pub struct AskOutcome {
    /// The run; `longhaul status RUN` shows it.
    pub run: RunId,
    /// The status of the run: its end, or the reason why it waits.
    pub status: RunStatus,
    /// The answer; none when it did not come to one.
    pub synthesis: Option<Synthesis>,
    /// The run at length.
    pub details: Box<Status>,
}

/// Asks in one data directory.
pub struct AskClient(Client);

impl AskClient {
    /// Becomes the owner of the data directory, or finds the present owner.
    ///
    /// # Errors
    /// When it can neither be opened nor its owner be reached.
    pub async fn open(home: &Home, project: &Path) -> fault::Result<Self> {
        Ok(Self(wiring::open(home, Some(project)).await?))
    }

    /// Asks, and waits until there is an answer, or the run waits for a person or has ended without one.
    ///
    /// # Errors
    /// When the question is refused, with what to do.
    pub async fn ask(&self, question: AskRequest) -> fault::Result<AskOutcome> {
        let run = self.begin(question).await?;
        events::wait(&self.0, &run).await?;
        self.answered(run).await
    }

    /// Asks, and gives the run with its stream from the first event on.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub async fn stream(&self, question: AskRequest) -> fault::Result<(RunId, impl Stream<Item = StreamLine> + use<>)> {
        let run = self.begin(question).await?;
        let lines = events::stream(&self.0, &run, 1).await?;
        Ok((run, lines))
    }

    async fn begin(&self, question: AskRequest) -> fault::Result<RunId> {
        expect_program(&self.0)?;
        Ok(self.0.begin_ask(question).await?.run)
    }

    /// The present outcome of an ask.
    ///
    /// # Errors
    /// When there is no such run.
    pub async fn answered(&self, run: RunId) -> fault::Result<AskOutcome> {
        let details = Box::new(self.0.run_status(ShowRun { run: RunRef::Named(run.to_string()) }).await?);
        Ok(AskOutcome { run, status: details.summary.status, synthesis: details.synthesis.clone(), details })
    }

    /// Lets go of the data directory; runs that are not over go on with a resume.
    pub async fn close(self) {
        self.0.close().await;
    }
}

/// Asks and waits, in a program that is not asynchronous.
///
/// # Errors
/// As [`AskClient::ask`].
pub fn ask_blocking(home: &Home, question: AskRequest) -> fault::Result<AskOutcome> {
    let runtime = tokio::runtime::Builder::new_multi_thread().event_interval(1).enable_all().build()?;
    let answered = runtime.block_on(async {
        let asker = AskClient::open(home, &question.directory).await?;
        let answered = asker.ask(question).await;
        asker.close().await;
        answered
    });
    // A guest that does not yield must not keep the program.
    runtime.shutdown_timeout(std::time::Duration::from_secs(2));
    answered
}
