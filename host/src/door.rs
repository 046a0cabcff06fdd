//! The way to the service: in this process when it owns the data directory, otherwise over the owner's
//! socket. Both ways give the same answers.

use crate::config::Config;
use crate::crash::CrashPoints;
use crate::home::Home;
use crate::server::socket::{self, Call, Line, Reply, StrangeOwner};
use crate::service::{Answer, Request, Service, Which};
use crate::wiring::World;
use longhaul_core::RunId;
use longhaul_core::event::RunEvent;
use longhaul_core::fault::{self, Context as _, Fault, bail};
use longhaul_core::stream::Token;
use longhaul_engine::CompileLimits;
use longhaul_records::bus::{Heard, Watching};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc::{self, OwnedPermit};
use tokio::task::JoinHandle;

/// How long an owner that does not answer is waited for: it may just be starting, or dying.
const OWNER_WAIT: Duration = Duration::from_secs(20);

/// How long a watcher may not read at all before it is let go.
const READER_WAIT: Duration = Duration::from_secs(30);

/// Something seen of a run.
#[derive(Clone, Debug)]
pub enum Seen {
    /// An event.
    Event(RunEvent),
    /// A part of what a model says.
    Token(Token),
    /// Parts of what models say were lost, since they were not read in time.
    Lagged,
    /// The watcher did not read, and is let go. It may watch again, from the last event on.
    Dropped,
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
    pub async fn open(home: &Home, project: Option<&Path>) -> fault::Result<Self> {
        let asked = tokio::time::Instant::now();
        loop {
            if let Some(owned) = home.try_own()? {
                return Self::own(home, owned, project);
            }
            match socket::connect(home).await {
                Ok(_) => return Ok(Self::Far(home.clone())),
                Err(error) if error.is::<StrangeOwner>() => return Err(error),
                Err(_) => {}
            }
            if asked.elapsed() > OWNER_WAIT {
                bail!("another longhaul holds `{}` and does not answer; end it and try again", home.path().display());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Becomes the owner, once a command that is about to end has.
    pub async fn own_soon(home: &Home) -> fault::Result<Self> {
        let asked = tokio::time::Instant::now();
        loop {
            if let Some(owned) = home.try_own()? {
                return Self::own(home, owned, None);
            }
            if asked.elapsed() > OWNER_WAIT {
                bail!(
                    "another longhaul owns `{}`, perhaps one that follows a run; end it and try again",
                    home.path().display()
                );
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    fn own(home: &Home, owned: crate::home::Owned, project: Option<&Path>) -> fault::Result<Self> {
        // The caps on compiling are the project's, where there is one that can be read.
        let compile = project
            .and_then(|project| Config::read(project).ok())
            .map_or_else(CompileLimits::default, |config| config.compile);
        let world = World::open(owned, CrashPoints::from_environment(), compile)?;
        let seed = world.fresh_seed();
        let service = Arc::new(Service::new(world));
        let server = socket::serve(home, Arc::clone(&service), seed)?;
        Ok(Self::Own { service, server, home: home.clone() })
    }

    /// Asks for something.
    pub async fn ask(&self, request: Request) -> fault::Result<Answer> {
        match self {
            Self::Own { service, .. } => service.answer(request).await,
            Self::Far(home) => {
                let mut lines = send(home, &Call::Ask(Box::new(request))).await?;
                match next_line(&mut lines).await?.ok_or(OwnerGone)? {
                    Line::Reply(Reply::Answer(answer)) => Ok(*answer),
                    Line::Reply(Reply::Error(wire)) => bail!(wire),
                    other => bail!(Fault::internal(format!("the owner answered something else: {other:?}"))),
                }
            }
        }
    }

    /// Watches a run from the event after `after`. The channel ends when the owner does.
    pub async fn watch(&self, run: &RunId, after: u64) -> fault::Result<mpsc::Receiver<Seen>> {
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
                            Line::Token { token, after, part } => Seen::Token(Token { after, part, ..token }),
                            Line::Lagged => Seen::Lagged,
                            Line::Dropped => Seen::Dropped,
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

    /// The runs that are worked on here, if this process is the owner.
    pub fn active(&self) -> Vec<RunId> {
        match self {
            Self::Own { service, .. } => service.active(),
            Self::Far(_) => Vec::new(),
        }
    }

    /// As [`Door::close`], but nothing that others have under way here is cut off: it takes as long as the longest
    /// effect, or answer of a model, that is on its way.
    pub async fn leave(self) {
        if let Self::Own { service, .. } = &self {
            service.end_remembering().await;
            service.hand_over().await;
        }
        self.close().await;
    }

    /// Stops serving: runs of others go on where they are attached. Effects that are on their way are waited for, but
    /// not for long.
    pub async fn close(self) {
        if let Self::Own { service, server, home } = self {
            // Others are answered while runs that have ended are remembered.
            service.end_remembering().await;
            server.abort();
            let _ = server.await;
            service.stop().await;
            // The socket goes with its owner, so that nobody connects to a dead one.
            let _ = std::fs::remove_file(home.socket());
        }
    }
}

/// Sends what is stored, then what comes, until nobody works on the run. It never waits for long: the run does
/// not at all, and a watcher that does not read is let go.
pub async fn watch_here(service: &Service, run: &RunId, after: u64, sender: &mpsc::Sender<Seen>) {
    // Kept for the last word, which must not need room.
    let Ok(last_word) = sender.clone().reserve_owned().await else { return };
    Watcher { service, run, last: after, sender, is_behind: false, waits_max: READER_WAIT }.watch(last_word).await;
}

/// Who watches a run from here.
struct Watcher<'a> {
    service: &'a Service,
    run: &'a RunId,
    /// The last event that was sent.
    last: u64,
    sender: &'a mpsc::Sender<Seen>,
    /// Whether parts of what models say were lost since the last one that was sent.
    is_behind: bool,
    waits_max: Duration,
}

/// Why a watcher gets no more.
enum Left {
    /// It went, or the store does not answer.
    Gone,
    /// It does not read.
    Slow,
}

impl Watcher<'_> {
    async fn watch(mut self, last_word: OwnedPermit<Seen>) {
        match self.watch_on().await {
            Ok(why) => drop(last_word.send(Seen::Gone(why))),
            Err(Left::Slow) => drop(last_word.send(Seen::Dropped)),
            Err(Left::Gone) => {}
        }
    }

    /// Until the run is gone; gives what ended it, if it was not the run itself.
    async fn watch_on(&mut self) -> Result<Option<String>, Left> {
        // Before the store is read, so that nothing falls between.
        let watching = self.service.watch(self.run);
        self.catch_up().await?;
        let Some(Watching { mut receiver, so_far }) = watching else { return Ok(None) };
        so_far.into_iter().for_each(|token| self.send_token(token));
        loop {
            match receiver.recv().await {
                // Where to begin is the watcher's word, and may be the end of all numbers.
                Ok(Heard::Event(event)) if self.last.checked_add(1) == Some(event.number) => {
                    self.send_event(event).await?;
                }
                // It was read from the store already, or something before it was not.
                Ok(Heard::Event(_)) => self.catch_up().await?,
                Ok(Heard::Token(token)) if self.is_behind => self.send_so_far(token),
                Ok(Heard::Token(token)) => self.send_token(token),
                Ok(Heard::Gone { why }) => {
                    self.catch_up().await?;
                    return Ok(why);
                }
                // Too slow: events that were missed are in the store.
                Err(RecvError::Lagged(_)) => {
                    self.is_behind = true;
                    self.catch_up().await?;
                }
                Err(RecvError::Closed) => {
                    self.catch_up().await?;
                    return Ok(None);
                }
            }
        }
    }

    /// Sends events that are stored.
    async fn catch_up(&mut self) -> Result<(), Left> {
        loop {
            let events = self.service.events(self.run, self.last).map_err(|_| Left::Gone)?;
            if events.is_empty() {
                return Ok(());
            }
            for event in events {
                self.send_event(event).await?;
            }
        }
    }

    async fn send_event(&mut self, event: RunEvent) -> Result<(), Left> {
        let number = event.number;
        match self.sender.send_timeout(Seen::Event(event), self.waits_max).await {
            Ok(()) => self.last = number,
            Err(mpsc::error::SendTimeoutError::Timeout(_)) => return Err(Left::Slow),
            Err(mpsc::error::SendTimeoutError::Closed(_)) => return Err(Left::Gone),
        }
        Ok(())
    }

    /// A part is a live view: one that there is no room for is lost, and that is told before the next one.
    fn send_token(&mut self, token: Token) {
        self.is_behind |= self.sender.try_send(Seen::Token(token)).is_err();
    }

    /// After a loss: that there was one, and what is being said as a whole.
    fn send_so_far(&mut self, token: Token) {
        if self.sender.try_send(Seen::Lagged).is_err() {
            return;
        }
        self.is_behind = false;
        let so_far = self.service.so_far(self.run);
        let whole = so_far.into_iter().find(|one| one.invocation == token.invocation);
        self.send_token(whole.unwrap_or(token));
    }
}

type Lines = BufReader<UnixStream>;

async fn send(home: &Home, call: &Call) -> fault::Result<Lines> {
    let mut stream = socket::connect(home).await?;
    let mut line = serde_json::to_vec(call)?;
    line.push(b'\n');
    // One that refuses us reads no call; its reason is there to be read.
    let _ = stream.write_all(&line).await;
    Ok(BufReader::new(stream))
}

async fn next_line(lines: &mut Lines) -> fault::Result<Option<Line>> {
    let mut line = String::new();
    // A connection that breaks and one that ends are the same: its other end is gone.
    if lines.read_line(&mut line).await.unwrap_or(0) == 0 {
        return Ok(None);
    }
    let understood = serde_json::from_str(&line).map(Some);
    understood.context("the owner's answer is not understood; client and owner may be of different versions")
}

/// The run that a command means: the one it names, else the newest of the project it stands in.
pub fn which(named: Option<String>, directory: &Path) -> Which {
    named.map_or_else(|| Which::NewestIn(directory.to_owned()), Which::Named)
}
