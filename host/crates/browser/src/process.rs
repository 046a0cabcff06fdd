//! A running browser: in its sandbox, with a proxy and a pipe.

use crate::child::{PIPE, Spec, TOO_MUCH_MEMORY, WAY};
use crate::environment::BrowserEnvironment;
use crate::error::{BrowserError, SAID_BYTES_MAX};
use crate::pipe::{Event, Pipe};
use crate::program;
use crate::settings::BrowserSettings;
use longhaul_core::process_registry::ChildKind;
use longhaul_core::text::truncate;
use longhaul_egress::{Proxy, listen_in};
use longhaul_sandbox::{Level, Program, ProgramLimits, Running, SandboxError, ScratchDirectory, start};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// The longest time that a browser may take until it responds.
const START: Duration = Duration::from_secs(20);

/// The longest time from the close of its pipe to its end: the memory of all its processes is returned meanwhile.
const END: Duration = Duration::from_secs(10);

/// The time in which a browser that does not answer may turn out to have ended.
const END_UNTOLD: Duration = Duration::from_millis(500);

/// The lowest level for a browser, whatever is accepted for others: below it, it has no network of its own.
const LEVEL_MIN: Level = Level::Namespaces;

/// Bytes of its standard error that are kept.
const COMPLAINTS_BYTES_MAX: u64 = 8 << 10;

/// A browser. Dropping it ends all its processes.
pub(crate) struct Process {
    running: Running,
    server: JoinHandle<()>,
}

impl Drop for Process {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Process {
    /// Starts a browser. The host's sandbox confines it: a browser's own needs namespaces, which are unavailable
    /// inside.
    pub(crate) async fn start(
        environment: &BrowserEnvironment,
        settings: &BrowserSettings,
        proxy: &Arc<Proxy>,
    ) -> Result<(Self, Pipe, mpsc::Receiver<Event>), BrowserError> {
        let program = program::find(settings)?;
        let room = ScratchDirectory::new(&environment.host).map_err(not_started)?;
        let way = listen_in(&room.shared(), name_of(WAY)).map_err(not_started)?;
        let pipe = listen_in(&room.shared(), name_of(PIPE)).map_err(not_started)?;
        let server = tokio::spawn(Arc::clone(proxy).serve_all(way));
        let confined = confined(environment, settings, &program)?;
        let mut process = match start(&environment.host, room, &confined).await {
            Ok(running) => Self { running, server },
            Err(error) => {
                server.abort();
                return Err(match error {
                    SandboxError::Refused { level_min, why, .. } => no_sandbox(level_min, &why),
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
        // The pipe exists before the browser: it may still refuse to start.
        let spoke = tokio::select! {
            spoke = pipe.call(None, "Browser.getVersion", serde_json::json!({}), START) => spoke,
            ended = process.ended() => return Err(not_started(ended)),
        };
        match spoke {
            Ok(_) => Ok((process, pipe, events)),
            Err(error) => Err(not_started(process.why_it_ended(error).await)),
        }
    }

    /// Its sandbox level.
    pub(crate) fn level(&self) -> Level {
        self.running.level()
    }

    /// Replaces an error by how the browser ended, if it has: that explains more.
    pub(crate) async fn why_it_ended(&mut self, error: BrowserError) -> BrowserError {
        let patience = if matches!(error, BrowserError::Ended { .. }) { END } else { END_UNTOLD };
        timeout(patience, self.ended()).await.unwrap_or(error)
    }

    /// Waits until it has ended, and returns how.
    async fn ended(&mut self) -> BrowserError {
        let (limit, said) = self.running.ended().await;
        let over_memory = (self.running.exit_code() == Some(TOO_MUCH_MEMORY)).then_some("memory_bytes_max");
        let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
        BrowserError::Ended { limit: limit.or(over_memory), said: truncate(last, SAID_BYTES_MAX) }
    }
}

fn not_started(why: impl std::fmt::Display) -> BrowserError {
    BrowserError::NotStarted { why: why.to_string() }
}

/// The refusal has a text of its own, since a browser may not run at the lower levels of other programs.
fn no_sandbox(level_min: Level, why: &str) -> BrowserError {
    let less = if level_min > LEVEL_MIN {
        format!("accept less by name with `sandbox_min = \"{LEVEL_MIN}\"`")
    } else {
        "remove the tool: without namespaces there is no browser".to_owned()
    };
    BrowserError::NoSandbox {
        why: format!("the sandbox level `{level_min}`: {why}; {}, or {less}", level_min.remedy()),
    }
}

/// A socket's name in the shared directory.
fn name_of(socket: &str) -> &str {
    socket.rsplit('/').next().unwrap_or(socket)
}

fn confined(
    environment: &BrowserEnvironment,
    settings: &BrowserSettings,
    program: &Path,
) -> Result<Program, BrowserError> {
    let real = program.canonicalize().map_err(not_started)?;
    let spec = Spec { argv: program::command(&real), memory_bytes_max: settings.memory_bytes_max };
    let spec = serde_json::to_string(&spec).map_err(not_started)?;
    // The link leads to this very binary, whose path is not visible.
    let argv =
        std::iter::once("/proc/self/exe".to_owned()).chain(environment.child_args.clone()).chain([spec]).collect();
    let limits = ProgramLimits {
        wall_ms_max: settings.wall_ms_max,
        grace_ms: 0,
        // Wall time and the caps of traffic and memory bound it.
        cpu_seconds_max: settings.wall_ms_max.div_ceil(1_000),
        // It reserves terabytes; the child watches its real usage.
        memory_bytes_max: u64::MAX,
        output_bytes_max: COMPLAINTS_BYTES_MAX,
        processes_max: settings.processes_max,
        file_bytes_max: settings.disk_bytes_max,
        disk_bytes_max: settings.disk_bytes_max,
    };
    // A browser may be in a user's home, among keys: it sees itself, and the usual files of browsers.
    let starts = real.into_os_string().into_string().ok();
    let level_min = environment.host.level_min.max(LEVEL_MIN);
    let kind = ChildKind::Kept;
    Ok(Program { kind, starts, level_min, limits, ..Program::new("the browser", argv) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_core::grant::Grants;
    use longhaul_core::supervisor::Unsupervised;
    use longhaul_egress::{Guard, RequestLimits};
    use longhaul_sandbox::SandboxHost;
    use std::path::PathBuf;

    #[test]
    fn a_browser_that_cannot_be_held_is_told_with_what_it_takes_and_nothing_less() {
        let said = |level_min| no_sandbox(level_min, "cannot make namespaces: x").to_string();
        let full = said(Level::Full);
        assert!(
            full.contains("does not give the sandbox level `full`: cannot make namespaces: x; allow user"),
            "{full}"
        );
        assert!(full.ends_with("or accept less by name with `sandbox_min = \"namespaces\"`"), "{full}");
        let least = said(Level::Namespaces);
        assert!(least.contains("; allow user namespaces: ") && !least.contains("sandbox_min"), "{least}");
    }

    /// Shown as a tool chain, whose rule excludes homes; see its tests.
    #[test]
    fn a_browser_in_a_home_is_shown_without_the_directory_that_it_lies_in() {
        let home = tempfile::tempdir().expect("a directory");
        let (program, link) = (home.path().join("chrome"), home.path().join("link"));
        std::fs::write(&program, "").expect("written");
        std::os::unix::fs::symlink(&program, &link).expect("made");
        let host = SandboxHost {
            program: PathBuf::from("/proc/self/exe"),
            prefix_args: Vec::new(),
            scratch: home.path().to_owned(),
            cache: None,
            hidden: Vec::new(),
            checkout: None,
            level_min: Level::Full,
            redact: None,
        };
        let guard = Guard::new(Grants::default(), RequestLimits::default());
        let environment =
            BrowserEnvironment { host, child_args: Vec::new(), guard, supervisor: Arc::new(Unsupervised) };
        let confined = confined(&environment, &BrowserSettings::default(), &link).expect("a program");
        let real = program.canonicalize().expect("its name");
        assert!(confined.read.is_empty() && confined.write.is_empty(), "{confined:?}");
        assert_eq!(confined.starts.as_deref(), real.to_str());
    }
}
