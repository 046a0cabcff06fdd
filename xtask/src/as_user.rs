//! The tests of what holds and judges native programs, once more as an ordinary user.
//!
//! A kernel gives root other walls than a user: other namespaces, other mounts, other limits. So what root's tests show
//! says little of a user's machine. Nothing is built for it: the programs that root built are started again. Whoever is
//! no root has run all tests as a user already. Refuses to open anybody's directories for it but `target/tmp`.

use crate::browser::is_root;
use anyhow::{Context, Result, ensure};
use longhaul_build::process::run;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;
use std::process::{Command, Stdio};

/// A user that owns nothing on the machine.
const USER: u32 = 65_533;

/// Packages whose tests meet the kernel.
const TESTS: &str = "package(longhaul-sandbox) + package(longhaul-worktree) + package(longhaul-tools)";

/// What nextest is told by files, since the user may have no cargo.
const PROGRAMS: [&str; 6] =
    ["nextest", "list", "--workspace", "--list-type=binaries-only", "--message-format=json", "--cargo-quiet"];
const PACKAGES: [&str; 3] = ["metadata", "--format-version=1", "--quiet"];

/// Runs them: `cargo` is the command, `nextest` the directory of its subcommand.
pub(crate) fn test(root: &Path, cargo: impl Fn() -> Command, nextest: &Path) -> Result<()> {
    if !is_root() {
        return Ok(());
    }
    let place = root.join("target/as-user");
    let (home, programs, packages) = (place.join("home"), place.join("programs.json"), place.join("packages.json"));
    fs::create_dir_all(&home)
        .and_then(|()| chown(&home, Some(USER), Some(USER)))
        .context("make a home for the user")?;
    fs::write(&programs, stdout_of(cargo().args(PROGRAMS))?).context("list the tests")?;
    fs::write(&packages, stdout_of(cargo().args(PACKAGES))?).context("list the packages")?;
    open_to_all(&root.join("target/tmp"))?;
    // It may lie in a home that is closed to others.
    let program = place.join("cargo-nextest");
    fs::copy(nextest.join("cargo-nextest"), &program).context("copy nextest")?;
    let is_readable = as_user().args(["test", "-r"]).arg(&programs).status().is_ok_and(|status| status.success());
    ensure!(is_readable, "other users cannot read `{}`; move the repository to where they can", root.display());
    let mut tests = as_user();
    tests.arg(program).args(["nextest", "run", "--no-fail-fast", "--binaries-metadata"]).arg(programs);
    tests.arg("--cargo-metadata").arg(packages).args(["-E", TESTS]);
    tests.current_dir(root).env("HOME", home).env("PATH", "/usr/local/bin:/usr/bin:/bin");
    // Where it is set, a runner that is missing is a failure, and this PATH has only those of the system.
    tests.env_remove("CI");
    Ok(run("run the tests as a user", &mut tests)?)
}

fn as_user() -> Command {
    let mut command = Command::new("setpriv");
    command.args([format!("--reuid={USER}"), format!("--regid={USER}"), "--clear-groups".to_owned()]);
    command
}

fn stdout_of(command: &mut Command) -> Result<Vec<u8>> {
    let output = command.stderr(Stdio::inherit()).output().with_context(|| format!("start {command:?}"))?;
    ensure!(output.status.success(), "{command:?} ended with {}", output.status);
    Ok(output.stdout)
}

/// As `/tmp` is: everybody may make files, and nobody take away those of others.
fn open_to_all(directory: &Path) -> Result<()> {
    fs::create_dir_all(directory)
        .and_then(|()| fs::set_permissions(directory, fs::Permissions::from_mode(0o1777)))
        .with_context(|| format!("open `{}`", directory.display()))
}
