//! A process of a run: this program, killed by itself at a point, or by us when it takes too long or the person pressed
//! Ctrl-C.
//!
//! Each has a process group of its own: a Ctrl-C at the terminal does not reach it, and where we end it, all that it
//! started ends with it. What a process that killed itself had started is left as a crash leaves it. The output goes to
//! a file, which no pipe can block.

use longhaul_core::fault::{self, Context as _, bail};
use longhaul_core::text::printable;
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs::{self, File};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tokio::process::{Child, Command};
use tokio::sync::watch;

/// Last lines of the output that an error shows, and the longest of them in bytes.
const LINES_SHOWN: usize = 3;
const LINE_BYTES_MAX: usize = 600;

/// The end of a process.
pub struct Ended {
    /// As the system says it; none when it was ended because it took too long.
    pub status: Option<ExitStatus>,
    /// The file with what it printed.
    output: PathBuf,
    /// Its time.
    pub took: Duration,
}

impl Ended {
    /// True when SIGKILL ended it, and not we.
    pub fn was_killed(&self) -> bool {
        self.status.is_some_and(|status| status.signal() == Some(Signal::KILL.as_raw()))
    }

    /// Its exit code; none after a signal.
    pub fn code(&self) -> Option<i32> {
        self.status.and_then(|status| status.code())
    }

    /// The end of its output, on one line.
    pub fn last_lines(&self) -> String {
        let output = String::from_utf8_lossy(&fs::read(&self.output).unwrap_or_default()).into_owned();
        let lines: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = lines[lines.len().saturating_sub(LINES_SHOWN)..].iter();
        last.map(|line| printable(line.trim(), LINE_BYTES_MAX)).collect::<Vec<_>>().join(" / ")
    }
}

/// Gives a process this text on standard input.
pub fn feed(command: &mut Command, text: &str) {
    // A file that is open and has no name any more: nothing has to write while the process reads.
    let fed = tempfile::tempfile().and_then(|mut file| {
        file.write_all(format!("{text}\n").as_bytes())?;
        file.seek(SeekFrom::Start(0))?;
        Ok(file)
    });
    command.stdin(fed.map_or_else(|_| Stdio::null(), Stdio::from));
}

/// Runs a process to its end.
///
/// # Errors
/// It cannot be started, or the person pressed Ctrl-C.
pub async fn run(
    mut command: Command,
    output: &Path,
    timeout: Duration,
    mut stopped: watch::Receiver<bool>,
) -> fault::Result<Ended> {
    if *stopped.borrow() {
        bail!("interrupted");
    }
    let file = File::create(output).with_context(|| format!("cannot write `{}`", output.display()))?;
    command.stdout(file.try_clone()?).stderr(file).process_group(0).kill_on_drop(true);
    let since = Instant::now();
    let mut running = Running(command.spawn().context("cannot start this program again")?);
    let ended = tokio::select! {
        status = running.0.wait() => Some(status?),
        () = tokio::time::sleep(timeout) => None,
        () = interrupted(&mut stopped) => {
            running.end().await;
            bail!("interrupted");
        }
    };
    running.end().await;
    Ok(Ended { status: ended, output: output.to_owned(), took: since.elapsed() })
}

/// Returns once the person pressed Ctrl-C.
async fn interrupted(stopped: &mut watch::Receiver<bool>) {
    if stopped.wait_for(|stopped| *stopped).await.is_err() {
        // The receiver of the word is gone, too.
        std::future::pending::<()>().await;
    }
}

struct Running(Child);

impl Running {
    /// Ends it with all that it started, and waits for it.
    async fn end(&mut self) {
        self.kill_group();
        // It may have ended by itself.
        let _ = self.0.wait().await;
    }

    fn kill_group(&self) {
        // The id is none once its end was waited for, and then the number may be another process's.
        let pid = self.0.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(pid) = pid {
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill_group();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn shell(script: &str, timeout: Duration) -> (Ended, tempfile::TempDir) {
        let place = tempfile::tempdir().expect("a directory");
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        feed(&mut command, "from the test");
        let (_stop, stopped) = watch::channel(false);
        let ended = run(command, &place.path().join("output"), timeout, stopped).await.expect("it runs");
        (ended, place)
    }

    #[tokio::test]
    async fn the_end_of_a_process_is_told_with_its_last_lines() {
        let (ended, _place) =
            shell("read line; echo \"1\"; echo; echo \"$line\"; exit 3", Duration::from_secs(60)).await;
        assert_eq!((ended.code(), ended.was_killed()), (Some(3), false));
        assert_eq!(ended.last_lines(), "1 / from the test");
        let (killed, _place) = shell("kill -9 $$", Duration::from_secs(60)).await;
        assert_eq!((killed.code(), killed.was_killed()), (None, true));
    }

    #[tokio::test]
    async fn a_process_that_takes_too_long_is_ended_and_is_no_kill_of_its_own() {
        let (ended, _place) = shell("sleep 600", Duration::from_millis(50)).await;
        assert_eq!((ended.status.is_none(), ended.was_killed()), (true, false));
    }

    #[tokio::test]
    async fn an_interrupt_ends_the_process() {
        let place = tempfile::tempdir().expect("a directory");
        let (stop, stopped) = watch::channel(false);
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 600"]);
        let output = place.path().join("output");
        let interrupt = async { assert!(!stop.send_replace(true)) };
        let (refused, ()) = tokio::join!(run(command, &output, Duration::from_secs(600), stopped), interrupt);
        assert!(refused.is_err_and(|error| error.to_string() == "interrupted"));
    }
}
