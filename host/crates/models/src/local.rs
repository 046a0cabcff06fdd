//! A small model in a child process of ours.
//!
//! The child speaks the JSON lines of [`longhaul_llama::protocol`]. It is started at the first
//! request, with low priority and without our environment, so that no key of another provider
//! reaches it; it ends after a time without requests, and with us. One request is served at a time,
//! in the order in which they came. When it dies, the request fails and the next one starts it again:
//! nothing is retried here, since what killed the child once may do it again. The child limits its
//! own memory, by the number it is given.

mod child;
mod dialogue;

use crate::retry::outage;
use child::{Keeper, Launch, Said};
use dialogue::Dialogue;
use longhaul_core::model::{Cost, Heard, Model, ModelError, ModelInfo, ModelReply, ModelRequest};
use longhaul_llama::protocol::Completion;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use tokio::sync::mpsc;

/// Requests that wait in order; more wait for a place among them, in order too.
const REQUESTS_WAITING_MAX: usize = 64;

/// Pieces of a reply that wait for a slow watcher.
const PIECES_WAITING_MAX: usize = 256;

/// A table `[models.NAME]` with `provider = "local"`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LocalConfig {
    /// The GGUF file, or the name of a model that was pulled. Default `smollm2`.
    pub file: PathBuf,
    /// The window, in tokens. Default 8 192. It is an error when the file or the memory has less, so
    /// that a conversation is cut the same way on every machine.
    pub context_tokens_max: u32,
    /// Memory of the child, in bytes. Default 1 GiB. The child keeps to it itself.
    pub memory_bytes_max: u64,
    /// Threads of the child. Default 2. Its threads spin while they wait: give no more than there are
    /// cores to spare.
    pub threads: usize,
    /// Lowers the child's priority, 0 to 19. Default 10.
    pub nice: u8,
    /// Time without a request after which the child ends, in milliseconds. Default 300 000.
    pub idle_ms_max: u64,
    /// Longest time to load the file, in milliseconds. Default 60 000.
    pub load_ms_max: u64,
    /// Longest time for one reply, in milliseconds. Default 600 000. The time in the queue is not in it.
    pub reply_ms_max: u64,
}

impl Default for LocalConfig {
    fn default() -> Self {
        Self {
            file: PathBuf::from("smollm2"),
            context_tokens_max: 8_192,
            memory_bytes_max: 1 << 30,
            threads: 2,
            nice: 10,
            idle_ms_max: 300_000,
            load_ms_max: 60_000,
            reply_ms_max: 600_000,
        }
    }
}

/// A model in a child process.
pub struct Local {
    launch: Launch,
    jobs: Mutex<Option<mpsc::Sender<Job>>>,
}

/// One request on its way to the child. The child is told to stop when `said` is closed.
pub(crate) struct Job {
    completion: Completion,
    said: mpsc::Sender<Said>,
}

impl Local {
    /// Prepares the model of `file`; nothing is started yet. `command` is the program and its first
    /// arguments; `--file`, `--context-tokens-max` and `--memory-bytes-max` are added, each with its value.
    #[must_use]
    pub fn new(name: &str, config: LocalConfig, command: Vec<OsString>, file: &Path) -> Self {
        let launch = Launch { name: name.to_owned(), command, file: file.to_owned(), config };
        Self { launch, jobs: Mutex::new(None) }
    }

    /// The way to the task that keeps the child, which is started here when there is none: at first,
    /// and when the runtime it ran on has ended.
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

    async fn ask(&self, request: &ModelRequest, heard: Heard<'_>, _cost: &dyn Cost) -> Result<ModelReply, ModelError> {
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
                Said::Token(piece) if dialogue.is_plain() => heard(&piece),
                Said::Token(_) => {}
                Said::End(reply) => {
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
