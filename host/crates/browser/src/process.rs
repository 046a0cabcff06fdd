//! A browser that runs: in its sandbox, with a proxy before it and a pipe to it.

use crate::child::{Spec, TOO_MUCH_MEMORY};
use crate::error::{BrowserError, SAID_BYTES_MAX};
use crate::pipe::{Event, Pipe};
use crate::program;
use crate::settings::BrowserSettings;
use crate::tool::Around;
use longhaul_core::text::truncate;
use longhaul_egress::Proxy;
use longhaul_worktree::{Held, HeldLimits, Kept, NativeError, Room, Sandbox, private_places, start_kept};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// The two sockets, as the child finds them from where it starts. Short, since the path of a socket has 107 bytes.
pub(crate) const WAY: &str = "../tmp/way";
pub(crate) const PIPE: &str = "../tmp/pipe";

/// How long a browser may take until it speaks.
const START: Duration = Duration::from_secs(20);

/// Bytes of its complaints that are kept.
const COMPLAINTS_BYTES_MAX: u64 = 8 << 10;

/// A browser. Dropping it ends all of it.
pub(crate) struct Process {
    kept: Kept,
    server: JoinHandle<()>,
}

impl Drop for Process {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Process {
    /// Starts one. Where the browser's own sandbox cannot be had inside of ours, ours is what holds it.
    pub(crate) async fn start(
        around: &Around,
        settings: &BrowserSettings,
        proxy: &Arc<Proxy>,
    ) -> Result<(Self, Pipe, mpsc::Receiver<Event>), BrowserError> {
        let program = program::find(settings)?;
        // It refuses its own sandbox to root.
        if !rustix::process::geteuid().is_root() {
            match Self::start_once(around, settings, proxy, &program, true).await {
                Err(BrowserError::NotStarted { why }) => {
                    tracing::debug!(why, "the browser does not start with a sandbox of its own");
                }
                started => return started,
            }
        }
        Self::start_once(around, settings, proxy, &program, false).await
    }

    async fn start_once(
        around: &Around,
        settings: &BrowserSettings,
        proxy: &Arc<Proxy>,
        program: &Path,
        has_own_sandbox: bool,
    ) -> Result<(Self, Pipe, mpsc::Receiver<Event>), BrowserError> {
        let room = Room::new(&around.host).map_err(not_started)?;
        let way = listen(&room.shared(), WAY).map_err(not_started)?;
        let pipe = listen(&room.shared(), PIPE).map_err(not_started)?;
        let server = tokio::spawn(serve(way, Arc::clone(proxy)));
        let held = held(around, settings, program, has_own_sandbox)?;
        let kept = start_kept(&around.host, room, &held).await;
        let mut process = match kept {
            Ok(kept) => Self { kept, server },
            Err(error) => {
                server.abort();
                return Err(match error {
                    NativeError::NoSandbox { why, .. } => BrowserError::NoSandbox { why },
                    other => not_started(other),
                });
            }
        };
        let accepted = tokio::select! {
            accepted = timeout(START, pipe.accept()) => accepted,
            ended = process.ended() => return Err(not_started(ended)),
        };
        let (stream, _) = accepted.map_err(|_| not_started("it said nothing"))?.map_err(not_started)?;
        let (pipe, events) = Pipe::over(stream);
        // The pipe is there before the browser is: it may still refuse to start.
        tokio::select! {
            spoke = pipe.call(None, "Browser.getVersion", serde_json::json!({}), START) => {
                spoke.map_err(not_started)?;
            }
            ended = process.ended() => return Err(not_started(ended)),
        }
        Ok((process, pipe, events))
    }

    /// Waits until it has ended, and says how.
    pub(crate) async fn ended(&mut self) -> BrowserError {
        let (limit, said) = self.kept.ended().await;
        let over_memory = said.lines().any(|line| line == TOO_MUCH_MEMORY).then_some(TOO_MUCH_MEMORY);
        let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
        BrowserError::Ended { limit: limit.or(over_memory), said: truncate(last, SAID_BYTES_MAX) }
    }
}

fn not_started(why: impl std::fmt::Display) -> BrowserError {
    BrowserError::NotStarted { why: why.to_string() }
}

/// Between two tries where a connection could not be taken, such as for want of file descriptors.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Hands each connection of the browser to the proxy.
async fn serve(way: UnixListener, proxy: Arc<Proxy>) {
    let mut served = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            accepted = way.accept() => match accepted {
                Ok((connection, _)) => drop(served.spawn(Arc::clone(&proxy).serve(connection))),
                // What is short now comes back when others close.
                Err(_) => tokio::time::sleep(ACCEPT_AGAIN).await,
            },
            Some(_) = served.join_next() => {}
        }
    }
}

/// A socket in a directory, whatever the length of its path.
fn listen(directory: &Path, socket: &str) -> std::io::Result<UnixListener> {
    let name = Path::new(socket).file_name().unwrap_or_default();
    let opened = File::open(directory)?;
    UnixListener::bind(PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd())).join(name))
}

fn held(
    around: &Around,
    settings: &BrowserSettings,
    program: &Path,
    has_own_sandbox: bool,
) -> Result<Held, BrowserError> {
    let argv = program::command(program, has_own_sandbox);
    let spec = Spec { argv, memory_bytes_max: settings.memory_bytes_max };
    let spec = serde_json::to_string(&spec).map_err(not_started)?;
    // The link leads to this very binary also where its directory is hidden.
    let argv = std::iter::once("/proc/self/exe".to_owned()).chain(around.child_args.clone()).chain([spec]).collect();
    let limits = HeldLimits {
        wall_ms_max: settings.wall_ms_max,
        grace_ms: 0,
        // Time on the clock and the caps of traffic and memory bound what it does.
        cpu_seconds_max: settings.wall_ms_max.div_ceil(1_000),
        // It reserves terabytes; what it uses is watched by the child.
        memory_bytes_max: u64::MAX,
        output_bytes_max: COMPLAINTS_BYTES_MAX,
        processes_max: settings.processes_max,
        file_bytes_max: settings.disk_bytes_max,
        disk_bytes_max: settings.disk_bytes_max,
    };
    let hidden: Vec<PathBuf> = private_places().into_iter().chain(around.hidden.clone()).collect();
    let real = program.canonicalize().map_err(not_started)?;
    // A browser may lie in somebody's home, and has to see itself.
    let is_hidden = hidden.iter().any(|dir| dir.canonicalize().is_ok_and(|dir| real.starts_with(dir)));
    Ok(Held {
        argv,
        cwd: PathBuf::new(),
        env: BTreeMap::new(),
        hidden,
        shown: real.parent().filter(|_| is_hidden).map(Path::to_owned).into_iter().collect(),
        // Without a network of its own it could pass the proxy by.
        sandbox_min: Sandbox::Namespaces,
        limits,
    })
}
