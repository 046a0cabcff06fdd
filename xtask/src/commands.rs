//! Programs that the commands start. Nothing here goes through a shell.

use anyhow::{Context, Result, ensure};
use longhaul_build::process;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Runs a program to its end.
pub(crate) fn run(doing: &str, command: &mut Command) -> Result<()> {
    Ok(process::run(doing, command)?)
}

/// Runs a program and returns its standard output; its errors go to the terminal.
pub(crate) fn stdout_of(command: &mut Command) -> Result<Vec<u8>> {
    let output = command.stderr(Stdio::inherit()).output().with_context(|| format!("start {command:?}"))?;
    ensure!(output.status.success(), "{command:?} ended with {}", output.status);
    Ok(output.stdout)
}

/// Cargo on the repository at `root`.
pub(crate) fn cargo(root: &Path) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root);
    cargo
}

/// Tests that run at once: half as many more as there are cores, since many wait for a disk, a lease or a browser.
pub(crate) fn tests_at_once() -> String {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    (cores + cores / 2).to_string()
}

/// The directory of the tool chain in use.
pub(crate) fn sysroot(root: &Path) -> Result<PathBuf> {
    let told = stdout_of(Command::new("rustc").current_dir(root).args(["--print", "sysroot"]))?;
    Ok(PathBuf::from(String::from_utf8(told).context("read the name of the tool chain")?.trim_end()))
}
