//! The run of the demo, in a child process of this program, which can be killed.
//!
//! The child has a process group of its own, so that a Ctrl-C at the terminal reaches it once, through us.

use super::words::say;
use crate::context::Context;
use longhaul_core::fault::{self, Context as _};
use longhaul_home::own_program;
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::signal::unix::{SignalKind, signal};

/// The end of the child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// By itself, with an exit code. None: a signal of somebody else ended it.
    Ended(Option<i32>),
    /// We killed it.
    Killed,
    /// The person pressed Ctrl-C.
    Interrupted,
}

/// A child, and what it prints.
pub(super) struct Running {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

/// Carries out `run` or `resume` in the project, and prints its lines. Kills it with SIGKILL after the first line that
/// begins with `kill_at`.
pub(super) async fn run(
    context: &Context,
    directory: &Path,
    command: &str,
    kill_at: Option<&str>,
) -> fault::Result<Ending> {
    // The file is ours, and nobody could be asked about it there.
    let arguments: [&OsStr; 4] = ["--project".as_ref(), directory.as_os_str(), "--trust".as_ref(), command.as_ref()];
    let mut running = Running::start(context, &arguments)?;
    let mut interrupts = signal(SignalKind::interrupt())?;
    let (mut kills, mut count) = (false, 0_u32);
    loop {
        tokio::select! {
            line = running.lines.next_line() => {
                let Some(line) = line? else { break };
                kills = count == 0 && kill_at.is_some_and(|text| line.trim_start().starts_with(text));
                if kills {
                    running.kill();
                }
                say(context, &format!("  {line}"));
                if kills {
                    break;
                }
            }
            _ = interrupts.recv() => {
                count += 1;
                // The first one pauses the run, a second one ends it at once.
                running.interrupt();
            }
        }
    }
    let status = running.child.wait().await?;
    // A run that ends well although a person pressed Ctrl-C had nothing left to pause.
    let is_interrupted = count > 0 && !status.success();
    Ok(if is_interrupted { Ending::Interrupted } else { ending(status, kills) })
}

fn ending(status: ExitStatus, kills: bool) -> Ending {
    match (kills, status.signal()) {
        (true, Some(signal)) if signal == Signal::KILL.as_raw() => Ending::Killed,
        _ => Ending::Ended(status.code()),
    }
}

impl Running {
    /// Starts this program with these arguments, in the same data directory.
    pub(super) fn start(context: &Context, arguments: &[&OsStr]) -> fault::Result<Self> {
        let mut command = Command::new(own_program()?);
        command.arg("--home").arg(context.home.path()).args(arguments);
        // We print its lines, so it draws nothing between them.
        command.env("TERM", "dumb");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).process_group(0).kill_on_drop(true);
        let mut child = command.spawn().context("cannot start this program again")?;
        let output = child.stdout.take().context("a child without its output")?;
        Ok(Self { child, lines: BufReader::new(output).lines() })
    }

    /// Its next line; none at its end.
    pub(super) async fn line(&mut self) -> fault::Result<Option<String>> {
        Ok(self.lines.next_line().await?)
    }

    /// SIGKILL.
    fn kill(&mut self) {
        // It may have ended by itself.
        let _ = self.child.start_kill();
    }

    /// SIGINT, as Ctrl-C sends it.
    pub(super) fn interrupt(&self) {
        let pid = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(pid) = pid {
            let _ = kill_process(pid, Signal::INT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_kill_counts_as_one() {
        let killed = ExitStatus::from_raw(9);
        assert_eq!(ending(killed, true), Ending::Killed);
        assert_eq!(ending(killed, false), Ending::Ended(None));
        assert_eq!(ending(ExitStatus::from_raw(0), true), Ending::Ended(Some(0)));
        assert_eq!(ending(ExitStatus::from_raw(3 << 8), false), Ending::Ended(Some(3)));
    }
}
