//! The programs of PostgreSQL, and the user that they run as.
//!
//! `LONGHAUL_POSTGRES_BIN` names their directory. Without it the newest installed ones are used, from version 15 on,
//! else Debian's, which are unpacked into the cache of build tools and not installed.

use longhaul_build::cache::Cache;
use longhaul_build::debian_packages;
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use tempfile::TempDir;

/// The directory of the programs, for machines that have them elsewhere.
const BIN: &str = "LONGHAUL_POSTGRES_BIN";

/// The programs that the tests start. Debian's directory in PATH has the last one alone.
const NAMES: [&str; 3] = ["postgres", "initdb", "pg_basebackup"];

/// The oldest version that the store works with.
const VERSION_MIN: u32 = 15;

/// Packages that have a server, in the releases of Debian and Ubuntu.
const PACKAGES: [&str; 4] = ["postgresql-15", "postgresql-16", "postgresql-17", "postgresql-18"];

/// The dependencies that a server with one locale and without its compiler does without: 450 of 580 MB.
const LEFT_OUT: [&str; 7] =
    ["debconf", "libllvm", "locales", "postgresql-client-common", "postgresql-common", "ssl-cert", "tzdata"];

/// The variable that names the directories of libraries.
pub const LIBRARIES: &str = "LD_LIBRARY_PATH";

/// Debian's user `nobody`. The server refuses to run as root, and `initdb` as a user without a name.
const NOBODY: u32 = 65_534;

/// The programs of one version.
#[derive(Clone)]
pub struct Programs {
    bin: PathBuf,
    version: u32,
    /// The directory that Debian's packages were unpacked into.
    unpacked: Option<PathBuf>,
}

impl Programs {
    /// The programs of this machine.
    pub fn found() -> Self {
        static FOUND: OnceLock<Programs> = OnceLock::new();
        FOUND.get_or_init(|| named().or_else(installed).unwrap_or_else(fetched)).clone()
    }

    /// The major version.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The same programs where the user of the server can read them.
    pub fn within_reach_of(&self, place: &Path) -> Self {
        let Some(unpacked) = &self.unpacked else {
            return self.clone();
        };
        let programs = within_reach(unpacked, place);
        let bin = programs.join(self.bin.strip_prefix(unpacked).expect("it is in there"));
        Self { bin, version: self.version, unpacked: Some(programs) }
    }

    /// The directory of the programs.
    pub fn bin(&self) -> &Path {
        &self.bin
    }

    /// The directories of their libraries, where those are not the system's.
    pub fn libraries(&self) -> Option<OsString> {
        self.unpacked.as_deref().map(libraries_in)
    }

    /// One of the programs, as the user of the server, in `place`.
    pub fn command(&self, name: &str, place: &Path) -> Command {
        let mut command = Command::new(self.bin.join(name));
        command.current_dir(place);
        // The environment of whoever runs the tests may name another server.
        for variable in ["PGDATA", "PGHOST", "PGPORT", "PGUSER", "PGDATABASE", "PGPASSWORD", "PGSERVICE", "PGOPTIONS"] {
            command.env_remove(variable);
        }
        command.envs(self.libraries().map(|libraries| (LIBRARIES, libraries)));
        as_server_user(&mut command);
        command
    }
}

/// Has a program run as the user of the server.
pub fn as_server_user(command: &mut Command) {
    if is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
}

/// Unpacked packages where the user of the server can read them: the cache of root may be in a closed home, so they are
/// linked into `place`.
pub fn within_reach(unpacked: &Path, place: &Path) -> PathBuf {
    if !is_root() {
        return unpacked.to_owned();
    }
    let programs = place.join("programs");
    let parts: Vec<_> = ["usr", "lib"].map(|name| unpacked.join(name)).into_iter().filter(|it| it.exists()).collect();
    // Links cost nothing, and another file system has none.
    let is_linked = ["-al", "-a"].into_iter().any(|how| {
        let _ = std::fs::remove_dir_all(&programs);
        std::fs::create_dir(&programs).expect("ours");
        let copied = Command::new("cp").arg(how).args(&parts).arg(&programs).output();
        copied.is_ok_and(|copied| copied.status.success())
    });
    assert!(is_linked, "{} cannot be copied to {}", unpacked.display(), programs.display());
    programs
}

/// The directories of libraries in unpacked packages.
pub fn libraries_in(unpacked: &Path) -> OsString {
    let family = format!("{}-linux-gnu", std::env::consts::ARCH);
    let libraries = ["usr/lib", "lib"].map(|folder| unpacked.join(folder).join(&family));
    std::env::join_paths(libraries).expect("no colons")
}

/// A new directory of the server's user. It is removed with its value.
pub fn place() -> TempDir {
    let place = tempfile::tempdir().expect("a directory");
    give(place.path());
    place
}

/// Gives a path to the server's user.
pub fn give(path: &Path) {
    if is_root() {
        std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).expect("root may");
    }
}

/// The number of the server's user.
pub fn server_user() -> u32 {
    if is_root() { NOBODY } else { rustix::process::geteuid().as_raw() }
}

/// Runs a command that must succeed.
pub fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn named() -> Option<Programs> {
    let bin = PathBuf::from(std::env::var_os(BIN).filter(|value| !value.is_empty())?);
    let programs = programs(bin.clone());
    assert!(programs.is_some(), "{BIN}: {} has not {NAMES:?} of version {VERSION_MIN} or later", bin.display());
    programs
}

fn installed() -> Option<Programs> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().filter_map(Result::ok);
    let of_debian = versions.map(|version| version.path().join("bin"));
    let found = std::env::split_paths(&path).chain(of_debian).filter_map(programs);
    found.max_by_key(|programs| programs.version)
}

fn programs(bin: PathBuf) -> Option<Programs> {
    if !NAMES.iter().all(|name| bin.join(name).is_file()) {
        return None;
    }
    let told = Command::new(bin.join(NAMES[0])).arg("--version").output().ok()?;
    let version = version(&String::from_utf8_lossy(&told.stdout))?;
    (version >= VERSION_MIN).then_some(Programs { bin, version, unpacked: None })
}

/// The major version: 15 of `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`.
fn version(text: &str) -> Option<u32> {
    let (_, version) = text.split_once(") ")?;
    version.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

fn fetched() -> Programs {
    let cache = cache();
    let mut errors = Vec::new();
    for package in PACKAGES {
        match debian_packages::unpacked_without(&cache, package, &LEFT_OUT) {
            Ok(unpacked) => {
                let version = package.trim_start_matches("postgresql-").parse::<u32>().expect("a number");
                let bin = unpacked.join(format!("usr/lib/postgresql/{version}/bin"));
                return Programs { bin, version, unpacked: Some(unpacked) };
            }
            Err(error) => errors.push(format!("{package}: {error}")),
        }
    }
    panic!("install PostgreSQL {VERSION_MIN} or later, or name its programs with {BIN}; {}", errors.join("; "));
}

/// The cache outside the tree.
pub fn cache() -> Cache {
    Cache::open(|line| eprintln!("{line}")).unwrap_or_else(|error| panic!("{error}"))
}
