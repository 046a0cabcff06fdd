//! The way to the service: in this process when it owns the data directory, otherwise over the owner's
//! socket. Both ways give the same answers.

use crate::config::Config;
use crate::crash::CrashPoints;
use crate::home::Home;
use crate::run::Heard;
use crate::server::socket::{self, Call, Line, Reply};
use crate::service::{Answer, Request, Service, Which};
use crate::wiring::World;
use anyhow::bail;
use longhaul_core::RunId;
use longhaul_core::event::RunEvent;
use longhaul_engine::CompileLimits;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// How long an owner that does not answer is waited for: it may just be starting, or dying.
const OWNER_WAIT: Duration = Duration::from_secs(20);

/// Something seen of a run.
#[derive(Clone, Debug)]
pub enum Seen {
    /// An event.
    Event(RunEvent),
    /// A part of what a model says.
    Token(String),
    /// Nobody works on the run any more, for a reason of its own or because of an error.
    Gone(Option<String>),
}

/// The owner went away before it answered. What was asked may have been done.
#[derive(Debug, thiserror::Error)]
#[error("the owner of the data directory has just stopped; try again")]
pub struct OwnerGone;

/// The way to the service.
pub enum Door {
    /// This process owns the data directory and serves others meanwhile.
    Own {
        /// The service.
        service: Arc<Service>,
        /// Serves the socket.
        server: JoinHandle<()>,
        /// The directory.
        home: Home,
    },
    /// Another process owns it.
    Far(Home),
}

impl Door {
    /// Becomes the owner, or finds who is.
    pub async fn open(home: &Home, project: Option<&Path>) -> anyhow::Result<Self> {
        let asked = tokio::time::Instant::now();
        loop {
            if let Some(owned) = home.try_own()? {
                return Self::own(home, owned, project);
            }
            if UnixStream::connect(home.socket()).await.is_ok() {
                return Ok(Self::Far(home.clone()));
            }
            if asked.elapsed() > OWNER_WAIT {
                bail!("another longhaul holds `{}` and does not answer; end it and try again", home.path().display());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    fn own(home: &Home, owned: crate::home::Owned, project: Option<&Path>) -> anyhow::Result<Self> {
        // The caps on compiling are the project's, where there is one that can be read.
        let compile = project
            .and_then(|project| Config::read(project).ok())
            .map_or_else(CompileLimits::default, |config| config.compile);
        let service = Arc::new(Service::new(World::open(owned, CrashPoints::from_environment(), compile)?));
        let server = socket::serve(home, Arc::clone(&service))?;
        Ok(Self::Own { service, server, home: home.clone() })
    }

    /// Asks for something.
    pub async fn ask(&self, request: Request) -> anyhow::Result<Answer> {
        match self {
            Self::Own { service, .. } => service.answer(request).await,
            Self::Far(home) => {
                let mut lines = send(home, &Call::Ask(Box::new(request))).await?;
                match next_line(&mut lines).await?.ok_or(OwnerGone)? {
                    Line::Reply(Reply::Answer(answer)) => Ok(*answer),
                    Line::Reply(Reply::Error(error)) => bail!("{error}"),
                    other => bail!("the owner answered something else: {other:?}"),
                }
            }
        }
    }

    /// Watches a run from the event after `after`. The channel ends when the owner does.
    pub async fn watch(&self, run: &RunId, after: u64) -> anyhow::Result<mpsc::Receiver<Seen>> {
        let (sender, receiver) = mpsc::channel(256);
        match self {
            Self::Own { service, .. } => {
                let (service, run) = (Arc::clone(service), run.clone());
                tokio::spawn(async move { watch_here(&service, &run, after, &sender).await });
            }
            Self::Far(home) => {
                let mut lines = send(home, &Call::Watch { run: run.clone(), after }).await?;
                tokio::spawn(async move {
                    while let Ok(Some(line)) = next_line(&mut lines).await {
                        let seen = match line {
                            Line::Event(event) => Seen::Event(event),
                            Line::Token(text) => Seen::Token(text),
                            Line::Gone(why) => Seen::Gone(why),
                            Line::Reply(_) => return,
                        };
                        if sender.send(seen).await.is_err() {
                            return;
                        }
                    }
                });
            }
        }
        Ok(receiver)
    }

    /// Whether this process owns the data directory.
    pub fn is_owner(&self) -> bool {
        matches!(self, Self::Own { .. })
    }

    /// Stops serving: runs of others go on where they are attached.
    pub async fn close(self) {
        if let Self::Own { service, server, home } = self {
            server.abort();
            let _ = server.await;
            service.stop().await;
            // The socket goes with its owner, so that nobody connects to a dead one.
            let _ = std::fs::remove_file(home.socket());
        }
    }
}

/// Sends what is stored, then what comes, until nobody works on the run.
pub async fn watch_here(service: &Service, run: &RunId, after: u64, sender: &mpsc::Sender<Seen>) {
    let mut last = after;
    // Before the store is read, so that nothing falls between.
    let mut live = service.watch(run);
    loop {
        if !catch_up(service, run, &mut last, sender).await {
            return;
        }
        let Some(receiver) = &mut live else {
            let _ = sender.send(Seen::Gone(None)).await;
            return;
        };
        match receiver.recv().await {
            Ok(Heard::Event(event)) if event.number > last => {
                last = event.number;
                if sender.send(Seen::Event(event)).await.is_err() {
                    return;
                }
            }
            Ok(Heard::Event(_)) => {}
            // Tokens are a live view: one that a slow watcher has no room for is dropped.
            Ok(Heard::Token { text, .. }) => drop(sender.try_send(Seen::Token(text))),
            Ok(Heard::Gone { why }) => {
                catch_up(service, run, &mut last, sender).await;
                let _ = sender.send(Seen::Gone(why)).await;
                return;
            }
            // Too slow: what was missed is in the store.
            Err(tokio::sync::broadcast::error::RecvError::Lagged(_)) => {}
            Err(tokio::sync::broadcast::error::RecvError::Closed) => live = None,
        }
    }
}

/// Sends events that are stored; false when nobody listens or the store does not answer.
async fn catch_up(service: &Service, run: &RunId, last: &mut u64, sender: &mpsc::Sender<Seen>) -> bool {
    loop {
        let Ok(events) = service.events(run, *last) else { return false };
        if events.is_empty() {
            return true;
        }
        for event in events {
            *last = event.number;
            if sender.send(Seen::Event(event)).await.is_err() {
                return false;
            }
        }
    }
}

type Lines = BufReader<UnixStream>;

async fn send(home: &Home, call: &Call) -> anyhow::Result<Lines> {
    let mut stream = UnixStream::connect(home.socket()).await.map_err(|_| OwnerGone)?;
    let mut line = serde_json::to_vec(call)?;
    line.push(b'\n');
    stream.write_all(&line).await.map_err(|_| OwnerGone)?;
    Ok(BufReader::new(stream))
}

async fn next_line(lines: &mut Lines) -> anyhow::Result<Option<Line>> {
    let mut line = String::new();
    // A connection that breaks and one that ends are the same: its other end is gone.
    if lines.read_line(&mut line).await.unwrap_or(0) == 0 {
        return Ok(None);
    }
    Ok(Some(serde_json::from_str(&line)?))
}

/// The run that a command means: the one it names, else the newest of the project it stands in.
pub fn which(named: Option<String>, directory: &Path) -> Which {
    named.map_or_else(|| Which::NewestIn(directory.to_owned()), Which::Named)
}
