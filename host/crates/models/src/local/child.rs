//! The child process: start, requests, stops, end.
//!
//! Its output is bounded in lines and in total, since a file determines its behaviour. A request is cancelled by a
//! message to the child; one that does not react is killed.

use super::config::LocalConfig;
use crate::retry::outage;
use longhaul_core::LimitHit;
use longhaul_core::model::ModelError;
use longhaul_core::process_registry::{Child as Listing, ChildKind, Registered as _, RegistryEntry};
use longhaul_core::text::truncate;
use longhaul_llama::protocol::{
    AnswerBody, CallBody, ChildAnswer, ChildCall, ChildFailure, Completion, CompletionReply, ErrorKind, LINE_BYTES_MAX,
    thread_environment,
};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Bytes of lines that a child may write for one reply.
const REPLY_BYTES_MAX: usize = 64 << 20;

/// Bytes of its last output that are kept.
const LAST_WORDS_BYTES_MAX: usize = 2_048;

/// The longest time that a child may take to stop a reply or to end before it is killed.
const PATIENCE: Duration = Duration::from_secs(5);

/// Variables of the host's environment that a child needs to start.
const ENVIRONMENT: [&str; 4] = ["PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR"];

/// One request to the child. The child is told to stop when `said` is closed.
pub(super) struct Job {
    pub(super) completion: Completion,
    pub(super) said: mpsc::Sender<ChildOutput>,
}

/// The output for the caller.
pub(super) enum ChildOutput {
    Token(String),
    End(Result<CompletionReply, ModelError>),
}

/// The start of the child.
#[derive(Clone)]
pub(super) struct Launch {
    pub(super) name: String,
    pub(super) command: Vec<OsString>,
    pub(super) file: PathBuf,
    pub(super) config: LocalConfig,
}

/// The task that owns the child.
pub(super) struct Keeper {
    launch: Launch,
    jobs: mpsc::Receiver<Job>,
    running: Option<Running>,
}

impl Keeper {
    pub(super) fn new(launch: Launch, jobs: mpsc::Receiver<Job>) -> Self {
        Self { launch, jobs, running: None }
    }

    /// Serves requests until the model is dropped.
    pub(super) async fn keep(mut self) {
        while let Some(job) = self.next().await {
            if job.said.is_closed() {
                continue;
            }
            let longest = Duration::from_millis(self.launch.config.reply_ms_max);
            let end = tokio::select! {
                biased;
                () = job.said.closed() => None,
                end = timeout(longest, self.serve(&job)) => Some(end.unwrap_or(Err(Trouble::Late))),
            };
            if matches!(end, None | Some(Err(Trouble::Late))) {
                self.stop().await;
            }
            if let Some(end) = end {
                let end = end.map_err(|trouble| self.explain(trouble));
                // The caller may have gone, which is allowed.
                let _ = job.said.send(ChildOutput::End(end)).await;
            }
        }
        self.unload().await;
    }

    /// The next request; a child without requests is ended while waiting for it.
    async fn next(&mut self) -> Option<Job> {
        if self.running.is_some() {
            let idle = Duration::from_millis(self.launch.config.idle_ms_max);
            if let Ok(job) = timeout(idle, self.jobs.recv()).await {
                return job;
            }
            tracing::info!(model = %self.launch.name, "unloaded after idle_ms_max without requests");
            self.unload().await;
        }
        self.jobs.recv().await
    }

    async fn serve(&mut self, job: &Job) -> Result<CompletionReply, Trouble> {
        // A child that died while idle does not cost the next request anything.
        if self.running.as_mut().is_none_or(Running::has_ended) {
            self.running = None;
            self.running = Some(self.launch.start().await?);
        }
        let Some(running) = &mut self.running else {
            return Err(Trouble::Late);
        };
        let end = running.ask(&job.completion, &job.said).await;
        if matches!(end, Err(Trouble::Broken(_) | Trouble::Limit(_))) {
            self.running = None;
        }
        end
    }

    /// Stops a reply that no caller awaits, and the child with it if it does not react.
    async fn stop(&mut self) {
        if let Some(mut running) = self.running.take()
            && let Ok(Ok(())) = timeout(PATIENCE, running.stop()).await
        {
            self.running = Some(running);
        }
    }

    /// Asks the child to end by closing its input; dropping it kills it.
    async fn unload(&mut self) {
        if let Some(Running { mut child, input, .. }) = self.running.take() {
            drop(input);
            let _ = timeout(PATIENCE, child.wait()).await;
        }
    }

    fn explain(&self, trouble: Trouble) -> ModelError {
        let Launch { name, config, .. } = &self.launch;
        match trouble {
            Trouble::Late => {
                outage(format!("model `{name}`: no whole reply within reply_ms_max = {} ms", config.reply_ms_max), None)
            }
            Trouble::Broken(how) => outage(format!("model `{name}`: {how}; the next request starts it again"), None),
            Trouble::Limit(max) => ModelError::Limit(LimitHit::new("reply_bytes_max", max as u64 + 1, max as u64)),
            Trouble::Window(is) => ModelError::Failed(format!(
                "model `{name}` has a window of {is} tokens, less than [models.{name}] context_tokens_max = {}; set it to {is}, or give more memory_bytes_max",
                config.context_tokens_max
            )),
            Trouble::Said(failure) => said(name, config, failure),
        }
    }
}

/// The reason why there is no reply.
enum Trouble {
    /// It took too long.
    Late,
    /// The child ended, or its output is invalid.
    Broken(String),
    /// It wrote more than this many bytes.
    Limit(usize),
    /// Its window is smaller than the configured one.
    Window(u32),
    /// The child reports it itself.
    Said(ChildFailure),
}

fn said(name: &str, config: &LocalConfig, failure: ChildFailure) -> ModelError {
    let text = format!("model `{name}`: {}", calm(&failure.message));
    match failure.kind {
        ErrorKind::PromptTooLong => {
            let max = u64::from(config.context_tokens_max);
            ModelError::ContextFull(LimitHit::new("context_tokens_max", max + 1, max))
        }
        ErrorKind::BadRequest | ErrorKind::BadSchema | ErrorKind::LineTooLong => ModelError::Invalid(text),
        ErrorKind::Busy | ErrorKind::OutOfMemory => outage(text, None),
        ErrorKind::BadModel | ErrorKind::Internal => ModelError::Failed(text),
    }
}

impl Launch {
    /// A child that has loaded its file.
    async fn start(&self) -> Result<Running, Trouble> {
        let mut running = self.spawn().map_err(Trouble::Broken)?;
        let longest = Duration::from_millis(self.config.load_ms_max);
        let greeting = timeout(longest, running.read()).await;
        let Ok(greeting) = greeting else {
            let words = running.last_words();
            return Err(Trouble::Broken(format!(
                "its process did not load within load_ms_max = {} ms{words}",
                longest.as_millis()
            )));
        };
        match greeting?.body {
            AnswerBody::Info(info) if info.context_tokens_max < self.config.context_tokens_max => {
                Err(Trouble::Window(info.context_tokens_max))
            }
            AnswerBody::Info(info) => {
                if let Some(why) = info.unconfined {
                    let (model, why) = (&self.name, calm(&why));
                    tracing::warn!(%model, %why, "the process of a local model read its file with the powers of this user");
                }
                Ok(running)
            }
            AnswerBody::Error(failure) => Err(Trouble::Said(failure)),
            AnswerBody::Token(_) | AnswerBody::Done(_) | AnswerBody::Tokens(_) => {
                Err(Trouble::Broken("its process does not greet as the protocol says".to_owned()))
            }
        }
    }

    fn spawn(&self) -> Result<Running, String> {
        let (program, first) = self.command.split_first().ok_or("it has no command to start")?;
        let kept = ENVIRONMENT.iter().filter_map(|name| Some((*name, std::env::var_os(name)?)));
        let mut child = Command::new(program)
            .args(first)
            .arg("--file")
            .arg(&self.file)
            .args(["--context-tokens-max", &self.config.context_tokens_max.to_string()])
            .args(["--memory-bytes-max", &self.config.memory_bytes_max.to_string()])
            .env_clear()
            .envs(kept)
            .envs(thread_environment(self.config.threads))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("cannot start `{}`: {error}", program.display()))?;
        self.lower_priority(&child);
        let entry = child.id().map(|pid| {
            let mut listed = Listing::new(pid, ChildKind::Model, self.name.as_str());
            listed.memory_bytes_max = Some(self.config.memory_bytes_max.saturating_add(BESIDE_BYTES));
            listed.enter()
        });
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(input), Some(output), Some(errors)) = pipes else {
            return Err("its process has no pipes".to_owned());
        };
        Ok(Running { _entry: entry, ..Running::new(child, input, output, errors) })
    }

    /// Threads that the child starts inherit it; it has started none yet.
    fn lower_priority(&self, child: &Child) {
        let pid = child.id().and_then(|id| rustix::process::Pid::from_raw(id.try_into().ok()?));
        let nice = i32::from(self.config.nice.min(19));
        if let Err(error) = rustix::process::setpriority_process(pid, nice) {
            tracing::warn!(model = %self.name, %error, "cannot lower the priority of the model's process");
        }
    }
}

/// Memory of the child beside the model: threads, and inference buffers.
const BESIDE_BYTES: u64 = 768 << 20;

/// A child, and the state of its protocol.
struct Running {
    child: Child,
    /// Its entry in the list of children.
    _entry: Option<RegistryEntry<Listing>>,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// The beginning of a line; kept here, since reading may be cancelled in its middle.
    line: Vec<u8>,
    last_words: Arc<Mutex<VecDeque<u8>>>,
    calls: u64,
    /// The request without an end so far.
    open: Option<u64>,
    /// A line to the child may have been truncated.
    writing: bool,
}

impl Running {
    fn new(child: Child, input: ChildStdin, output: ChildStdout, errors: ChildStderr) -> Self {
        let last_words = Arc::new(Mutex::new(VecDeque::new()));
        tokio::spawn(listen(errors, Arc::clone(&last_words)));
        let output = BufReader::new(output);
        let (line, _entry) = (Vec::new(), None);
        Self { child, _entry, input, output, line, last_words, calls: 0, open: None, writing: false }
    }

    fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    async fn ask(
        &mut self,
        completion: &Completion,
        said: &mpsc::Sender<ChildOutput>,
    ) -> Result<CompletionReply, Trouble> {
        self.calls += 1;
        self.open = Some(self.calls);
        self.write(CallBody::Complete(Box::new(completion.clone()))).await?;
        let mut left = REPLY_BYTES_MAX;
        loop {
            let answer = self.read().await?;
            if answer.id != self.open {
                continue;
            }
            match answer.body {
                AnswerBody::Token(piece) => {
                    left = left.checked_sub(piece.len()).ok_or(Trouble::Limit(REPLY_BYTES_MAX))?;
                    let _ = said.send(ChildOutput::Token(piece)).await;
                }
                AnswerBody::Done(reply) => {
                    self.open = None;
                    return Ok(reply);
                }
                AnswerBody::Error(failure) => {
                    self.open = None;
                    return Err(Trouble::Said(failure));
                }
                AnswerBody::Tokens(_) | AnswerBody::Info(_) => {}
            }
        }
    }

    /// Ends the open reply and reads the rest of it.
    async fn stop(&mut self) -> Result<(), Trouble> {
        let Some(open) = self.open else { return Ok(()) };
        if self.writing {
            return Err(Trouble::Late);
        }
        self.write(CallBody::Cancel(open)).await?;
        loop {
            let answer = self.read().await?;
            if answer.id == Some(open) && matches!(answer.body, AnswerBody::Done(_) | AnswerBody::Error(_)) {
                self.open = None;
                return Ok(());
            }
        }
    }

    async fn write(&mut self, body: CallBody) -> Result<(), Trouble> {
        let call = ChildCall { id: self.calls, body };
        let mut line = serde_json::to_vec(&call).map_err(|error| invalid(&error.to_string()))?;
        if line.len() > LINE_BYTES_MAX {
            self.open = None;
            return Err(invalid(
                "the conversation is longer than a line to the model's process may be; make it shorter",
            ));
        }
        line.push(b'\n');
        self.writing = true;
        let written = self.input.write_all(&line).await;
        if written.is_ok() {
            self.writing = false;
            return Ok(());
        }
        Err(self.death().await)
    }

    /// The next line; its read part stays when the future is dropped.
    async fn read(&mut self) -> Result<ChildAnswer, Trouble> {
        loop {
            let Ok(bytes) = self.output.fill_buf().await else {
                return Err(self.death().await);
            };
            if bytes.is_empty() {
                return Err(self.death().await);
            }
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let used = end.map_or(bytes.len(), |end| end + 1);
            self.line.extend_from_slice(&bytes[..end.unwrap_or(used)]);
            self.output.consume(used);
            if self.line.len() > LINE_BYTES_MAX {
                return Err(Trouble::Broken(format!("its process said a line of more than {LINE_BYTES_MAX} bytes")));
            }
            if end.is_some() {
                let line = std::mem::take(&mut self.line);
                return serde_json::from_slice(&line).map_err(|_| {
                    let line = String::from_utf8_lossy(&line[..line.len().min(200)]).into_owned();
                    Trouble::Broken(format!("its process said `{}`, which is not of the protocol", calm(&line)))
                });
            }
        }
    }

    /// The child closed a pipe: how it ended, with its last output.
    async fn death(&mut self) -> Trouble {
        let status = match timeout(PATIENCE, self.child.wait()).await {
            Ok(Ok(status)) => status.to_string(),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "it closed its output and stayed".to_owned(),
        };
        Trouble::Broken(format!("its process ended: {status}{}", self.last_words()))
    }

    fn last_words(&self) -> String {
        let kept = self.last_words.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = kept.iter().copied().collect();
        let words = calm(&String::from_utf8_lossy(&bytes));
        if words.is_empty() { words } else { format!("; it last said: {words}") }
    }
}

fn invalid(message: &str) -> Trouble {
    Trouble::Said(ChildFailure { kind: ErrorKind::BadRequest, message: message.to_owned() })
}

/// Keeps the end of the child's standard error.
async fn listen(mut errors: ChildStderr, kept: Arc<Mutex<VecDeque<u8>>>) {
    let mut piece = [0; 1024];
    while let Ok(read @ 1..) = errors.read(&mut piece).await {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(&piece[..read]);
        let excess = kept.len().saturating_sub(LAST_WORDS_BYTES_MAX);
        kept.drain(..excess);
    }
}

/// Text of the child, fit to be shown.
fn calm(text: &str) -> String {
    let text: String = text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    truncate(&text, LAST_WORDS_BYTES_MAX)
}
