//! Packages of PyPI, each in a folder of its own, through pip. None of them is installed.

use crate::cache::Cache;
use crate::error::BuildError;
use crate::process::run;
use std::io;
use std::path::PathBuf;
use std::process::Command;

/// The folder that holds the package in that version, and nothing else.
pub(crate) fn package(cache: &Cache, name: &str, version: &str) -> Result<PathBuf, BuildError> {
    cache.folder(&format!("{name}-{version}"), |dir| {
        cache.say(&format!("fetching {name} {version} with pip, once"));
        let mut pip = python();
        pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check", "--target"])
            .arg(dir)
            .arg(format!("{name}=={version}"))
            .env("PIP_ROOT_USER_ACTION", "ignore")
            // Our standard output is for our own results.
            .stdout(io::stderr());
        run(&format!("fetch {name} with pip (on Debian: apt install python3-pip)"), &mut pip)
    })
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
