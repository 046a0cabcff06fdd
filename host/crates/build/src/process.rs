//! Running other programs.
//!
//! Every failure names the task, the program and its output. Nothing here goes through a shell, and nothing is retried.

use crate::error::BuildError;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, BuildError>;

/// The interval of the polls of a bounded program. Small beside the second that the shortest one takes.
const POLL_MS: u64 = 20;

/// The longest part of a program's output in an error: a compiler's first errors are at the front.
const SAID_BYTES_MAX: usize = 64 << 10;

/// Runs `command`; its output goes to ours unless it is redirected.
///
/// # Errors
/// When it does not start, or ends with an error.
pub fn run(doing: &str, command: &mut Command) -> Result<()> {
    let status = command.stdin(Stdio::null()).status().map_err(|why| missing(doing, command, why))?;
    if !status.success() {
        return Err(failed(doing, command, status, String::new()));
    }
    Ok(())
}

/// Runs `command` without terminal output and returns its standard output; its other output is only shown if it fails.
pub(crate) fn capture(doing: &str, command: &mut Command) -> Result<String> {
    let output = output(doing, command)?;
    said(doing, command, &output)
}

/// Runs `command` without terminal output, and returns all of its output with its status.
pub(crate) fn output(doing: &str, command: &mut Command) -> Result<Output> {
    command.stdin(Stdio::null()).output().map_err(|why| missing(doing, command, why))
}

/// As [`capture`], but errors go straight to the terminal: for programs that report progress there.
pub(crate) fn capture_stdout(doing: &str, command: &mut Command) -> Result<String> {
    command.stdout(Stdio::piped()).stderr(Stdio::inherit()).stdin(Stdio::null());
    let output = command.output().map_err(|why| missing(doing, command, why))?;
    if !output.status.success() {
        // Its standard output is for programs; its messages are on the terminal.
        return Err(failed(doing, command, output.status, "; see above".to_owned()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// As [`capture`], but kills the program and returns an error after `limit`.
pub(crate) fn capture_within(doing: &str, command: &mut Command, limit: Duration) -> Result<String> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|why| missing(doing, command, why))?;
    let start = Instant::now();
    while child.try_wait().map_err(|why| missing(doing, command, why))?.is_none() {
        if start.elapsed() >= limit {
            // It may end between the poll and the kill; either way it has ended after `wait`.
            let _ = child.kill();
            let _ = child.wait();
            return Err(BuildError::ToolSlow {
                doing: doing.to_owned(),
                program: program(command),
                seconds_max: limit.as_secs(),
            });
        }
        thread::sleep(Duration::from_millis(POLL_MS));
    }
    let output = child.wait_with_output().map_err(|why| missing(doing, command, why))?;
    said(doing, command, &output)
}

fn said(doing: &str, command: &Command, output: &Output) -> Result<String> {
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(stdout);
    }
    let mut words = format!("{stdout}{}", String::from_utf8_lossy(&output.stderr)).trim_end().to_owned();
    if words.len() > SAID_BYTES_MAX {
        words.truncate(words.floor_char_boundary(SAID_BYTES_MAX));
        words.push_str("\n(and more)");
    }
    let said = if words.is_empty() { String::new() } else { format!(":\n{words}") };
    Err(failed(doing, command, output.status, said))
}

fn failed(doing: &str, command: &Command, status: std::process::ExitStatus, said: String) -> BuildError {
    BuildError::ToolFailed { doing: doing.to_owned(), program: program(command), status, said }
}

fn missing(doing: &str, command: &Command, why: io::Error) -> BuildError {
    let path = Path::new(command.get_program());
    if let Some(directory) = path.parent().filter(|_| why.kind() == io::ErrorKind::PermissionDenied && is_program(path))
    {
        let (doing, directory) = (doing.to_owned(), directory.to_owned());
        return BuildError::NoExec { doing, directory, why: why.to_string() };
    }
    let program = program(command);
    BuildError::ToolMissing { doing: doing.to_owned(), remedy: remedy(&program), program, why }
}

/// True when the file at an absolute path has the mode of a program: if it does not start, its place is at fault.
fn is_program(path: &Path) -> bool {
    path.is_absolute() && path.metadata().is_ok_and(|found| found.is_file() && found.mode() & 0o111 != 0)
}

fn remedy(program: &str) -> &'static str {
    match program {
        "cargo" | "rustc" | "rustup" => "install Rust with rustup, and have its programs on PATH",
        "python3" => "install Python 3 with pip; on Debian: apt install python3 python3-pip",
        "apt-get" | "apt-cache" | "dpkg" => {
            "without rustup's wasm target, Rust plugins are built with Debian's compiler; on this system run: \
             rustup target add wasm32-unknown-unknown"
        }
        _ => "is it installed and on PATH?",
    }
}

/// The name of the program, without its folder.
fn program(command: &Command) -> String {
    let path = Path::new(command.get_program());
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_program_that_may_not_start_where_it_lies_is_told_with_its_directory() {
        let place = tempfile::tempdir().unwrap();
        let tool = place.path().join("tool");
        // As where a file system is mounted noexec, the system denies what the mode of the file allows.
        fs::write(&tool, "#!/dev/null\n").unwrap();
        fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
        let told = capture("build a", &mut Command::new(&tool)).unwrap_err().to_string();
        let start = format!("build a: no program can be started in `{}` (Permission denied", place.path().display());
        assert!(told.starts_with(&start) && told.ends_with("LONGHAUL_CACHE or XDG_CACHE_HOME"), "{told}");
        // A file without the mode is another fault.
        fs::set_permissions(&tool, fs::Permissions::from_mode(0o644)).unwrap();
        let told = capture("build a", &mut Command::new(&tool)).unwrap_err().to_string();
        assert!(told.contains("is it installed and on PATH?"), "{told}");
    }
}
