//! Packages of PyPI, each in a folder of its own, through pip. None of them is installed.
//!
//! Nothing of pip's output reaches the terminal: a failure is one line, and names the file with the rest.

use crate::cache::{Cache, write_whole};
use crate::error::BuildError;
use crate::process::output;
use longhaul_core::pip::{PipFailure, without_addresses};
use std::path::PathBuf;
use std::process::{Command, Output};

/// The file of the cache with the whole output of the last pip that failed.
const LOG: &str = "pip.log";

/// The folder that holds the package in that version, and nothing else.
pub(crate) fn package(cache: &Cache, name: &str, version: &str) -> Result<PathBuf, BuildError> {
    cache.folder(&format!("{name}-{version}"), |dir| {
        cache.say(&format!("fetching {name} {version} with pip, once"));
        let mut pip = python();
        // A wheel: to install a package that comes as source runs its code.
        pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:"])
            .args(["--disable-pip-version-check", "--target"])
            .arg(dir)
            .arg(format!("{name}=={version}"))
            .env("PIP_ROOT_USER_ACTION", "ignore");
        let output = output(&format!("fetch {name} with pip (on Debian: apt install python3-pip)"), &mut pip)?;
        if output.status.success() { Ok(()) } else { Err(not_fetched(cache, format!("{name} {version}"), &output)) }
    })
}

/// The error of a pip that failed, in one line. All that it printed is in [`LOG`].
fn not_fetched(cache: &Cache, package: String, output: &Output) -> BuildError {
    let said = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes)).concat();
    let log = cache.path(LOG);
    let log = match write_whole(&log, without_addresses(&said).as_bytes()) {
        Ok(()) => format!("; pip's whole output is in `{}`", log.display()),
        // The reason that is told may well be the same: a disk that is full.
        Err(_) => String::new(),
    };
    let PipFailure { reason, remedy } = PipFailure::of(&said, &output.status.to_string());
    BuildError::NotFetched { package, reason, remedy, log }
}

/// Python in isolation: no virtual environment, whose packages would get into an image, and no compiled files among the
/// sources.
pub(crate) fn python() -> Command {
    let mut python = Command::new("python3");
    python
        .env_remove("VIRTUAL_ENV")
        .env_remove("PYTHONHOME")
        .env_remove("PYTHONPATH")
        .env("PYTHONDONTWRITEBYTECODE", "1");
    python
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;

    #[test]
    fn a_fetch_without_network_is_told_in_one_line_and_pips_output_is_kept() {
        let place = tempfile::tempdir().unwrap();
        let cache = Cache::at(place.path().to_owned(), |_| {});
        let retry = "WARNING: Retrying after 'NewConnectionError: [Errno 111] Connection refused': /simple/ziglang/\n";
        let stderr = format!("{}ERROR: see https://me:hunter2@index/simple\n", retry.repeat(5)).into_bytes();
        let output = Output { status: ExitStatus::from_raw(256), stdout: Vec::new(), stderr };
        let told = not_fetched(&cache, "ziglang 0.15.2".to_owned(), &output).to_string();
        assert!(
            told.starts_with("cannot fetch ziglang 0.15.2 with pip: the connection to the package index was refused; "),
            "{told}"
        );
        assert!(told.contains("PIP_INDEX_URL") && !told.contains("Retrying") && !told.contains('\n'), "{told}");
        let log = place.path().join(LOG);
        assert!(told.contains(&*log.to_string_lossy()), "{told}");
        let kept = std::fs::read_to_string(log).unwrap();
        assert_eq!(kept.matches("Retrying").count(), 5);
        assert!(!kept.contains("hunter2"), "{kept}");
    }
}
