//! Debian's packages, unpacked privately.
//!
//! `apt-get download` fetches them, so signatures are checked, and `dpkg -x` unpacks them, so nothing is installed and
//! no root is needed. The system's package lists are only read: if they are missing, or too old, private ones are
//! fetched.

use crate::cache::{Cache, create_dir, entries, write_whole};
use crate::error::{AtPath, BuildError};
use crate::process::capture;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

type Result<T> = std::result::Result<T, BuildError>;

/// The file with the settings of apt, among the private lists.
const SETTINGS_FILE: &str = "apt.conf";

/// A folder with the files of a package, and of those libraries that it needs and the machine lacks. Its programs need
/// `LD_LIBRARY_PATH` set to `usr/lib/ARCHITECTURE-linux-gnu` in there.
///
/// # Errors
/// [`BuildError`], for example when Debian's servers cannot be reached.
pub fn unpacked(cache: &Cache, package: &str) -> Result<PathBuf> {
    unpacked_without(cache, package, &[])
}

/// The same without the dependencies whose names begin with one of `left_out`, and without what only those need.
///
/// # Errors
/// As [`unpacked`].
pub fn unpacked_without(cache: &Cache, package: &str, left_out: &[&str]) -> Result<PathBuf> {
    let name = [&[package][..], left_out].concat().join("-without-");
    cache.folder(&format!("debian-{name}"), |prefix| {
        let lists = prefix.join("apt");
        let packages = match DebianPackages::system() {
            system if is_version(&system.candidate(package)?) => system,
            _ => DebianPackages::private(cache, &lists)?,
        };
        let mut wanted = packages.missing_libraries(package, left_out)?;
        wanted.insert(package.to_owned());
        cache.say(&format!("fetching Debian's package {package}, once"));
        // Old lists may name removed versions.
        if let Err(error) = packages.unpack(&wanted, prefix) {
            cache.say(&format!("{error}; trying fresh lists"));
            DebianPackages::private(cache, &lists)?.unpack(&wanted, prefix)?;
        }
        if lists.exists() { fs::remove_dir_all(&lists).at("remove", &lists) } else { Ok(()) }
    })
}

fn is_version(candidate: &str) -> bool {
    candidate.starts_with(|first: char| first.is_ascii_digit())
}

/// Debian's package tools, on the system's lists or on private ones.
pub(crate) struct DebianPackages {
    /// The folder of the private lists, with [`SETTINGS_FILE`] in it.
    private_dir: Option<PathBuf>,
}

impl DebianPackages {
    /// The tools on the system's own lists.
    pub(crate) fn system() -> Self {
        Self { private_dir: None }
    }

    /// The tools on fresh lists in `dir`, which need no root and do not change the system's.
    pub(crate) fn private(cache: &Cache, dir: &Path) -> Result<Self> {
        cache.say("fetching Debian's package lists");
        for part in ["lists/partial", "cache/archives/partial"] {
            create_dir(&dir.join(part))?;
        }
        // The system's hooks work on the system's folders, so they are dropped. Root would switch to a user who may not
        // read below root's home.
        let settings = format!(
            "#clear APT::Update::Post-Invoke;\n\
             #clear APT::Update::Post-Invoke-Success;\n\
             Dir::State::lists \"{dir}/lists/\";\n\
             Dir::Cache \"{dir}/cache/\";\n\
             APT::Sandbox::User \"root\";\n",
            dir = dir.display()
        );
        write_whole(&dir.join(SETTINGS_FILE), settings.as_bytes())?;
        let packages = Self { private_dir: Some(dir.to_owned()) };
        let mut update = packages.command("apt-get");
        capture("fetch Debian's package lists", update.args(["--quiet", "update"]))?;
        Ok(packages)
    }

    /// The version that apt would install; `(none)`, or nothing, when there is none.
    pub(crate) fn candidate(&self, package: &str) -> Result<String> {
        let mut policy = self.command("apt-cache");
        let text = capture("ask which packages Debian offers here", policy.args(["policy", package]))?;
        let candidate = text.lines().find_map(|line| line.trim().strip_prefix("Candidate: "));
        Ok(candidate.unwrap_or_default().to_owned())
    }

    /// The libraries that `package` needs, directly or not, and that are not installed; without those whose names begin
    /// with one of `left_out`.
    pub(crate) fn missing_libraries(&self, package: &str, left_out: &[&str]) -> Result<BTreeSet<String>> {
        let is_wanted = |name: &str| !left_out.iter().any(|start| name.starts_with(*start)) && !is_installed(name);
        let mut missing = BTreeSet::new();
        let mut open = vec![package.to_owned()];
        while let Some(package) = open.pop() {
            for library in self.dependencies(&package)? {
                if is_wanted(&library) && missing.insert(library.clone()) {
                    open.push(library);
                }
            }
        }
        Ok(missing)
    }

    /// Fetches packages and unpacks them into `prefix`.
    pub(crate) fn unpack(&self, wanted: &BTreeSet<String>, prefix: &Path) -> Result<()> {
        let debs = prefix.join("debs");
        create_dir(&debs)?;
        let mut download = self.command("apt-get");
        download.args(["--quiet", "download"]).args(wanted);
        capture("fetch packages of Debian", download.current_dir(&debs))?;
        for deb in entries(&debs)? {
            let mut dpkg = Command::new("dpkg");
            capture("unpack a package of Debian", dpkg.arg("-x").arg(&deb).arg(prefix))?;
        }
        fs::remove_dir_all(&debs).at("remove", &debs)
    }

    /// The folder of the private lists, which are not needed any more.
    pub(crate) fn into_private_dir(self) -> Option<PathBuf> {
        self.private_dir
    }

    fn dependencies(&self, package: &str) -> Result<Vec<String>> {
        let mut depends = self.command("apt-cache");
        depends.args(["depends", "--important", package]);
        let text = capture("ask for the libraries of a package", &mut depends)?;
        let names = text
            .lines()
            .filter_map(|line| line.trim().strip_prefix("Depends: "))
            // Names in angle brackets are provided by several packages; no library is among them.
            .filter(|name| !name.starts_with('<'));
        Ok(names.map(str::to_owned).collect())
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        // Its output is parsed.
        command.env("LC_ALL", "C");
        if let Some(dir) = &self.private_dir {
            command.arg("-c").arg(dir.join(SETTINGS_FILE));
        }
        command
    }
}

fn is_installed(package: &str) -> bool {
    let mut query = Command::new("dpkg-query");
    query.args(["--show", "--showformat=${db:Status-Status}\n", package]);
    capture("ask for an installed library", &mut query)
        .is_ok_and(|states| states.lines().any(|state| state == "installed"))
}
