//! Running other programs.
//!
//! Every failure names what we were doing, the program and what it said. Nothing here goes through
//! a shell, and nothing is retried.

use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// How often a bounded program is looked at. Small beside the second that the shortest one takes.
const POLL_MS: u64 = 20;

/// Runs `command`, its output going where ours goes.
pub(crate) fn run(doing: &str, command: &mut Command) -> Result<()> {
    let status = command.stdin(Stdio::null()).status().with_context(|| not_started(doing, command))?;
    if !status.success() {
        bail!("{doing}: `{}` ended with {status}", program(command));
    }
    Ok(())
}

/// Runs `command` quietly and gives its standard output; what it said is only shown if it fails.
pub(crate) fn capture(doing: &str, command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().with_context(|| not_started(doing, command))?;
    said(doing, command, output)
}

/// As [`capture`], but errors go straight to the terminal: for programs that report progress there.
pub(crate) fn capture_stdout(doing: &str, command: &mut Command) -> Result<String> {
    command.stderr(Stdio::inherit());
    capture(doing, command)
}

/// As [`capture`], but the program is killed and an error returned after `limit`.
pub(crate) fn capture_within(doing: &str, command: &mut Command, limit: Duration) -> Result<String> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| not_started(doing, command))?;
    let start = Instant::now();
    while child.try_wait().with_context(|| format!("{doing}: wait for `{}`", program(command)))?.is_none() {
        if start.elapsed() >= limit {
            // It may end between the look and the kill; either way it is gone after `wait`.
            let _ = child.kill();
            let _ = child.wait();
            let program = program(command);
            bail!("{doing}: `{program}` took longer than {} s", limit.as_secs());
        }
        thread::sleep(Duration::from_millis(POLL_MS));
    }
    let output =
        child.wait_with_output().with_context(|| format!("{doing}: read the output of `{}`", program(command)))?;
    said(doing, command, output)
}

fn said(doing: &str, command: &Command, output: Output) -> Result<String> {
    if !output.status.success() {
        bail!(
            "{doing}: `{}` ended with {}: {}{}",
            program(command),
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr).trim_end(),
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn not_started(doing: &str, command: &Command) -> String {
    format!("{doing}: `{}` does not start; is it installed and on PATH?", program(command))
}

fn program(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}
