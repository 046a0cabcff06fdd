//! Sandbox level of programs and of the compiler on this machine, found by trial, with remedies that would raise it.
//!
//! The trials change nothing: they start an empty program and compile an empty component.

use super::checks::{broken, fine, less};
use longhaul_api::wire::doctor::CheckResult;
use longhaul_core::fault::{self, Context as _, bail};
use longhaul_engine::{CompileLimits, Engine, EngineOptions, Jail, LoadError};
use longhaul_home::{Home, cache, own_program};
use longhaul_sandbox::{Level, Program, ProgramReport, SandboxError, SandboxHost, USER_OF_ROOTS_PROGRAMS, run};
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// The most looks, and their interval, for the cleanup behind a program that ended.
const CLEAR_LOOKS_MAX: usize = 100;
const CLEAR_LOOK: Duration = Duration::from_millis(10);

/// A component that exports `wasi:cli/run` without a function: enough to start the compiler.
const NOTHING: &[u8] = b"\0asm\x0d\0\x01\0\x05\x03\x01\x01\0\x0b\x18\x01\0\x12wasi:cli/run@0.2.0\x05\0\0";

/// A level that the machine refuses, and the reason that the child gave.
struct Refused {
    level: Level,
    why: String,
}

/// Finds the level of programs on this machine.
pub(super) async fn of_programs(home: &Home) -> CheckResult {
    const WHAT: &str = "sandbox";
    let level = match held_by(Level::None).await {
        Ok(level) => level,
        Err(why) => return broken(WHAT, why),
    };
    let is_root = rustix::process::geteuid().is_root();
    let root = if is_root {
        format!("; longhaul runs as root, and programs as user {USER_OF_ROOTS_PROGRAMS}: run it as an ordinary user")
    } else {
        String::new()
    };
    if level >= Level::Full {
        let stronger = stronger().await;
        return fine(WHAT, format!("level `full`: namespaces, Landlock and seccomp{root}; {stronger}"));
    }
    // Without namespaces there is a level between none and full.
    let above = if level == Level::None { &[Level::Full, Level::Landlock][..] } else { &[Level::Full] };
    let mut refused = Vec::new();
    for level in above {
        if let Err(why) = held_by(*level).await {
            refused.push(Refused { level: *level, why });
        }
    }
    let said = format!("{}{root}", lacking(level, &refused));
    match impassable(home).filter(|_| is_root && !level.has_namespaces()) {
        None => less(WHAT, said),
        Some(dir) => broken(
            WHAT,
            format!(
                "{said}; that user may not pass `{}` to the data directory, so that no program starts: name another with \
                 --home, such as /var/lib/longhaul (chgrp {USER_OF_ROOTS_PROGRAMS} DIRECTORY && chmod 710 DIRECTORY)",
                dir.display()
            ),
        ),
    }
}

/// Finds whether the compiler can be confined to its descriptors.
pub(super) async fn of_compiler() -> CheckResult {
    const WHAT: &str = "compiler";
    match compile_nothing().await {
        Ok(()) if CompileLimits::default().sandbox_min == Level::None => {
            less(WHAT, "held by its limits alone: this system has no walls that longhaul knows")
        }
        Ok(()) => fine(WHAT, "held by Landlock and seccomp: it has its descriptors, and nothing else"),
        Err(error) => less(WHAT, format!("{error:#}")),
    }
}

async fn compile_nothing() -> fault::Result<()> {
    let cache = empty_cache(cache().ok().as_deref())?;
    let limits = CompileLimits::default();
    let jail = Jail { program: own_program()?, arguments: vec!["compile-child".into()], limits };
    let engine = Engine::new(cache.path().to_owned(), jail, &EngineOptions::default())?;
    match engine.load_command("nothing", NOTHING).await {
        // The compilation succeeded, and the component has nothing to run.
        Ok(_) | Err(LoadError::WrongWorld { .. }) => Ok(()),
        Err(LoadError::Compile { reason, .. }) => bail!("{reason}"),
        Err(error) => Err(error.into()),
    }
}

/// An empty cache in that of the user: temporary files may be mounted noexec, which no compilation cares about. In the
/// directory of temporary files where the user has no cache, or none that can be written.
fn empty_cache(of_user: Option<&Path>) -> io::Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("longhaul-doctor-").permissions(Permissions::from_mode(0o700));
    let in_cache = of_user.and_then(|cache| builder.tempdir_in(cache).ok());
    in_cache.map_or_else(|| builder.tempdir(), Ok)
}

/// Finds whether programs can run in `runsc`, for users who ask for it.
async fn stronger() -> String {
    match held_by(Level::Runsc).await {
        Ok(_) => "`runsc` works too, where it is asked for".to_owned(),
        Err(why) => format!("`runsc` does not, where it is asked for: {why}"),
    }
}

/// The level of a program that demands at least `level_min`, or the reason why it cannot start.
async fn held_by(level_min: Level) -> Result<Level, String> {
    let program = Program { level_min, ..Program::new("/bin/true", vec!["/bin/true".into()]) };
    match tried(&program, None).await {
        Ok(Ok(report)) => Ok(report.level),
        Ok(Err(SandboxError::Refused { why, .. })) => Err(why),
        Ok(Err(error)) => Err(error.to_string()),
        Err(error) => Err(format!("{error:#}")),
    }
}

/// The walls that are missing for `full`, and their remedies.
fn lacking(level: Level, refused: &[Refused]) -> String {
    let reasons: Vec<String> =
        refused.iter().map(|Refused { level, why }| format!("`{level}` is refused: {why}")).collect();
    let mut remedies: Vec<&str> = refused.iter().filter_map(|refused| remedy(refused)).collect();
    remedies.dedup();
    let remedies: String = remedies.into_iter().map(|remedy| format!("{remedy}, ")).collect();
    format!(
        "level `{level}`, and runs want `full`; {}; {remedies}or accept less with `sandbox_min`",
        reasons.join("; ")
    )
}

/// The remedy for the wall that the child's reason names; none if the reason says what to do.
fn remedy(refused: &Refused) -> Option<&'static str> {
    let is_about = |word: &str| refused.why.contains(word);
    if is_about("ordinary user") {
        None
    } else if is_about("seccomp") {
        Some("allow seccomp filters (a kernel with CONFIG_SECCOMP_FILTER, in a container that lets them be set)")
    } else if is_about("Landlock") && refused.level == Level::Landlock {
        Some(Level::Landlock.remedy())
    } else if is_about("Landlock") {
        Some("allow Landlock (kernel 5.13 or newer, booted with lsm=landlock,...)")
    } else {
        Some(Level::Namespaces.remedy())
    }
}

/// The first directory above worktrees and copies that programs of root may not traverse. Without mounts of their own
/// they reach their work by its path.
fn impassable(home: &Home) -> Option<PathBuf> {
    let scratch = home.scratch();
    let there = scratch.ancestors().find_map(|dir| dir.canonicalize().ok())?;
    let mut down: Vec<&Path> = there.ancestors().collect();
    down.reverse();
    let is_closed = |dir: &&Path| {
        dir.metadata().is_ok_and(|found| !may_pass(found.mode(), found.uid(), found.gid(), USER_OF_ROOTS_PROGRAMS))
    };
    down.into_iter().find(is_closed).map(Path::to_owned)
}

/// True when a user, whose only group has the same number, may traverse a directory.
fn may_pass(mode: u32, owner: u32, group: u32, user: u32) -> bool {
    let passes = match (owner == user, group == user) {
        (true, _) => 0o100,
        (false, true) => 0o010,
        (false, false) => 0o001,
    };
    mode & passes != 0
}

/// Runs a program in a scratch directory of its own, and removes the directory.
pub(super) async fn tried(
    program: &Program,
    home: Option<&Home>,
) -> fault::Result<Result<ProgramReport, SandboxError>> {
    let scratch = tempfile::tempdir().context("no temporary directory can be made")?;
    let host = SandboxHost {
        program: own_program()?,
        prefix_args: vec!["check-child".into()],
        scratch: scratch.path().to_owned(),
        cache: None,
        hidden: home.map(|home| home.path().to_owned()).into_iter().collect(),
        // A program that is tried reads its own project only.
        checkout: program.read.first().cloned(),
        level_min: Level::None,
        redact: None,
    };
    let ran = run(&host, program).await;
    // The sandbox cleans up in this directory after the program's end, so the directory must not go first.
    let is_clear = || scratch.path().read_dir().map_or(true, |entries| entries.count() == 0);
    for _ in 0..CLEAR_LOOKS_MAX {
        if is_clear() {
            break;
        }
        tokio::time::sleep(CLEAR_LOOK).await;
    }
    Ok(ran)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_NAMESPACES: &str = "cannot make namespaces: Operation not permitted (os error 1)";
    const NO_LANDLOCK: &str = "cannot restrict files with Landlock: this kernel does not offer it";
    const NO_SECCOMP: &str = "cannot refuse system calls with seccomp: Invalid argument (os error 22)";
    const STUCK: &str = "cannot run a program as an unprivileged user: longhaul runs as root and may not change its user; run \
                         it as an ordinary user";

    #[test]
    fn the_remedy_is_that_of_the_wall_which_is_missing() {
        let check = |level, refused: &[(Level, &str)], expected: &[&str], others: &[&str]| {
            let refused = refused.iter().map(|(level, why)| Refused { level: *level, why: (*why).to_owned() });
            let said = lacking(level, &refused.collect::<Vec<_>>());
            assert!(said.starts_with(&format!("level `{level}`, and runs want `full`; `full` is refused: ")), "{said}");
            assert!(expected.iter().all(|words| said.contains(words)), "{said}");
            assert!(!others.iter().any(|words| said.contains(words)), "{said}");
        };
        let (namespaces, landlock, seccomp) = ("max_user_namespaces", "lsm=landlock", "CONFIG_SECCOMP_FILTER");
        check(Level::Landlock, &[(Level::Full, NO_NAMESPACES)], &[NO_NAMESPACES, namespaces], &[landlock, seccomp]);
        check(Level::Namespaces, &[(Level::Full, NO_LANDLOCK)], &[NO_LANDLOCK, landlock, "5.13"], &[namespaces]);
        let neither = [(Level::Full, NO_NAMESPACES), (Level::Landlock, NO_LANDLOCK)];
        check(Level::None, &neither, &[NO_NAMESPACES, NO_LANDLOCK, namespaces, "6.12"], &[seccomp, "5.13"]);
        let no_seccomp = [(Level::Full, NO_SECCOMP), (Level::Landlock, NO_SECCOMP)];
        check(Level::None, &no_seccomp, &[NO_SECCOMP, seccomp], &[namespaces, landlock]);
        check(Level::None, &[(Level::Full, STUCK)], &[STUCK], &[namespaces, landlock, seccomp]);
    }

    /// A directory of temporary files that was mounted noexec used to be told as a fault of the cache.
    #[test]
    fn the_compiler_is_tried_in_the_cache_of_the_user_where_there_is_one() {
        let place = tempfile::tempdir().expect("a directory");
        let own = empty_cache(Some(place.path())).expect("made");
        assert!(own.path().starts_with(place.path()));
        assert_eq!(own.path().metadata().expect("made").mode() & 0o777, 0o700);
        for of_user in [None, Some(place.path().join("gone"))] {
            let other = empty_cache(of_user.as_deref()).expect("made");
            assert!(other.path().is_dir() && !other.path().starts_with(place.path()), "{of_user:?}");
        }
    }

    #[test]
    fn a_directory_is_passed_as_its_owner_its_group_or_anybody() {
        let user = USER_OF_ROOTS_PROGRAMS;
        for (mode, owner, group, expected) in [
            (0o700, 0, 0, false),
            (0o701, 0, 0, true),
            (0o755, 0, 0, true),
            (0o710, 0, user, true),
            (0o700, 0, user, false),
            // The permissions of the group hold for its members, and those of others do not.
            (0o701, 0, user, false),
            (0o710, 0, 0, false),
            (0o700, user, 0, true),
            (0o011, user, user, false),
        ] {
            assert_eq!(may_pass(mode, owner, group, user), expected, "{mode:o} {owner} {group}");
        }
    }
}
