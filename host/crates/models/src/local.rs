//! A small model in a child process.
//!
//! The child speaks the JSON lines of [`longhaul_llama::protocol`]. It is started at the first request, with low
//! priority and without the host's environment, so that it gets no key of another provider; it ends after a time
//! without requests, and with the host. One request is served at a time, in order. When the child dies, the request
//! fails and the next one starts it again: nothing is retried here, since the cause of death may recur. The child
//! limits its own memory, by the number that it is given.

mod child;
mod config;
mod dialogue;

pub use config::LocalConfig;

use crate::retry::outage;
use child::{ChildOutput, Job, Keeper, Launch};
use dialogue::Dialogue;
use longhaul_core::model::{Cost, Model, ModelError, ModelInfo, ModelReply, ModelRequest, ReplyListener};
use std::ffi::OsString;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use tokio::sync::mpsc;

/// Requests that wait in order; more wait for a place among them, in order too.
const REQUESTS_WAITING_MAX: usize = 64;

/// Pieces of a reply that wait for a slow watcher.
const PIECES_WAITING_MAX: usize = 256;

/// A model in a child process.
pub struct Local {
    launch: Launch,
    jobs: Mutex<Option<mpsc::Sender<Job>>>,
}

impl Local {
    /// Prepares the model of `file`; nothing is started yet. `command` is the program and its first
    /// arguments; `--file`, `--context-tokens-max` and `--memory-bytes-max` are added, each with its value.
    #[must_use]
    pub fn new(name: &str, config: LocalConfig, command: Vec<OsString>, file: &Path) -> Self {
        let launch = Launch { name: name.to_owned(), command, file: file.to_owned(), config };
        Self { launch, jobs: Mutex::new(None) }
    }

    /// The queue of the task that keeps the child. The task is started here when there is none: at first, and when the
    /// runtime it ran on has ended.
    fn keeper(&self) -> mpsc::Sender<Job> {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = jobs.as_ref().filter(|sender| !sender.is_closed()) {
            return sender.clone();
        }
        let (sender, receiver) = mpsc::channel(REQUESTS_WAITING_MAX);
        tokio::spawn(Keeper::new(self.launch.clone(), receiver).keep());
        *jobs = Some(sender.clone());
        sender
    }
}

#[async_trait::async_trait]
impl Model for Local {
    fn info(&self) -> ModelInfo {
        let name = self.launch.file.file_stem().unwrap_or_default().to_string_lossy();
        ModelInfo { id: format!("local/{name}"), context_tokens_max: self.launch.config.context_tokens_max }
    }

    async fn ask(
        &self,
        request: &ModelRequest,
        heard: ReplyListener<'_>,
        _cost: &dyn Cost,
    ) -> Result<ModelReply, ModelError> {
        let dialogue = Dialogue::of(request)?;
        let (said, mut answers) = mpsc::channel(PIECES_WAITING_MAX);
        let job = Job { completion: dialogue.completion(), said };
        let gone = || outage(format!("model `{}`: its task ended; ask again", self.launch.name), None);
        self.keeper().send(job).await.map_err(|_| gone())?;
        if let Some(prefill) = &request.prefill {
            heard(prefill);
        }
        while let Some(said) = answers.recv().await {
            match said {
                ChildOutput::Token(piece) if dialogue.is_plain() => heard(&piece),
                ChildOutput::Token(_) => {}
                ChildOutput::End(reply) => {
                    let reply = dialogue.reply(reply?)?;
                    if !dialogue.is_plain() {
                        heard(&reply.text);
                    }
                    return Ok(reply);
                }
            }
        }
        Err(gone())
    }
}

#[cfg(test)]
mod tests;
