//! The tests of what holds and judges native programs, once more as an ordinary user.
//!
//! A kernel gives root other walls than a user: other namespaces, other mounts, other limits. So what root's tests show
//! says little of a user's machine. Nothing is built for it: the programs that root built are started again, with
//! root's tool chain where a check needs one. A caller other than root has run all tests as a user already. Refuses to
//! open directories to the user, except `target/tmp`.

use crate::browser::is_root;
use crate::commands::{run, stdout_of, sysroot, tests_at_once};
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A user that owns nothing on the machine.
const USER: u32 = 65_533;

/// Tests that meet the kernel: of the sandbox and of what uses it, of the process that compiles, and of MCP servers,
/// which are programs of others. The tests of `longhaul` have a cache for each user. Left out are the ways of cheating:
/// what a report of a test runner proves does not depend on who started it.
const TESTS: &str = "package(longhaul-sandbox) + package(longhaul-tools) \
                     + (package(longhaul-worktree) - test(/^native::cheats::/)) \
                     + (package(longhaul) & (binary(hostile) + (binary(tools) & test(/^mcp::/))))";

/// Further directories of the user's programs.
const PATH: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];

/// Variables of root's own tool chain and caches, and of the request that every runner of tests has to be there: on the
/// user's PATH are those of the system alone.
const NOT_FOR_THE_USER: [&str; 5] = ["CARGO", "CARGO_HOME", "CI", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN"];

/// Listings that nextest reads from files, since the user has none of root's caches.
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
    ensure!(
        is_for_user("-r", &programs),
        "other users cannot read `{}`; move the repository to where they can",
        root.display()
    );
    let mut tests = as_user();
    tests.arg(program).args(["nextest", "run", "--no-fail-fast", "--binaries-metadata"]).arg(programs);
    tests.arg("--cargo-metadata").arg(packages).args(["-E", TESTS, "--test-threads", &tests_at_once()]);
    let tools = tool_chain(root, &place)?;
    let path = std::env::join_paths(std::iter::once(tools).chain(PATH.map(PathBuf::from)));
    tests.current_dir(root).env("HOME", home).env("PATH", path.context("name the directories of programs")?);
    for name in NOT_FOR_THE_USER {
        tests.env_remove(name);
    }
    run("run the tests as a user", &mut tests)
}

/// The programs of the tool chain in use: where they are, or, where that is closed to the user, such as in root's home,
/// by further names below `place`.
fn tool_chain(root: &Path, place: &Path) -> Result<PathBuf> {
    let from = sysroot(root)?;
    if is_for_user("-x", &from.join("bin/cargo")) {
        return Ok(from.join("bin"));
    }
    let to = place.join("toolchain");
    // Links cost nothing, and another file system has none.
    for how in ["-al", "-a"] {
        if to.exists() {
            fs::remove_dir_all(&to).context("remove the tool chain of the tests before")?;
        }
        fs::create_dir(&to).context("make a directory for the tool chain")?;
        let mut copy = Command::new("cp");
        copy.arg(how).args(["bin", "lib"].map(|name| from.join(name))).arg(&to).stderr(Stdio::null());
        if copy.status().is_ok_and(|status| status.success()) {
            return Ok(to.join("bin"));
        }
    }
    bail!("the tool chain `{}` cannot be copied to `{}`; make room there", from.display(), to.display());
}

/// True when a path passes `test` for the user.
fn is_for_user(how: &str, path: &Path) -> bool {
    as_user().args(["test", how]).arg(path).status().is_ok_and(|status| status.success())
}

fn as_user() -> Command {
    let mut command = Command::new("setpriv");
    command.args([format!("--reuid={USER}"), format!("--regid={USER}"), "--clear-groups".to_owned()]);
    command
}

/// Makes a directory like `/tmp`: every user may make files there, and remove its own alone.
fn open_to_all(directory: &Path) -> Result<()> {
    fs::create_dir_all(directory)
        .and_then(|()| fs::set_permissions(directory, fs::Permissions::from_mode(0o1777)))
        .with_context(|| format!("open `{}`", directory.display()))
}
