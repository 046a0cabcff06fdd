//! The browser that tests drive: the machine's own, or Debian's.
//!
//! On a machine without one, root installs the package; for another user it is unpacked into the cache, with the
//! libraries that are missing. Refuses to choose a browser where there is one, and to fetch one past the package
//! manager.

use crate::guests;
use anyhow::{Context, Result, bail};
use longhaul_build::cache::{Cache, entries};
use longhaul_build::process::run;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The package, which is also the program's name.
const CHROMIUM: &str = "chromium";

/// Names that the tool looks for.
const NAMES: [&str; 6] =
    [CHROMIUM, "chromium-browser", "google-chrome-stable", "google-chrome", "chromium-headless-shell", "chrome"];

/// A directory to look for a browser in, besides those of PATH.
pub(crate) fn directory() -> Result<Option<PathBuf>> {
    if NAMES.into_iter().any(|name| found(name).is_some()) {
        return Ok(None);
    }
    if found("apt-get").is_none() {
        bail!("there is no browser for the tests, and no apt-get to get one with; install Chromium");
    }
    if is_root() {
        guests::say("installing Debian's chromium, once");
        // Lists may be missing or older than what the mirror has.
        run("read the lists of packages", Command::new("apt-get").args(["--quiet", "update"]))?;
        let mut install = Command::new("apt-get");
        install.args(["--quiet", "--yes", "--no-install-recommends", "install", CHROMIUM]);
        run("install chromium", install.env("DEBIAN_FRONTEND", "noninteractive"))?;
        return Ok(None);
    }
    Cache::open(guests::say)?.folder("debian-chromium", unpack).map(Some)
}

fn found(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|program| program.is_file())
}

pub(crate) fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

/// Fetches and unpacks what an installation would install here.
fn unpack(directory: &Path) -> Result<()> {
    guests::say("fetching Debian's chromium (100 MB, once)");
    let packages = packages()?;
    let debs = directory.join("debs");
    std::fs::create_dir(&debs).context("make a folder for packages")?;
    let mut download = Command::new("apt-get");
    run("fetch chromium", download.args(["--quiet", "download"]).args(&packages).current_dir(&debs))?;
    for deb in entries(&debs)? {
        run("unpack chromium", Command::new("dpkg").arg("-x").arg(deb).arg(directory))?;
    }
    std::fs::remove_dir_all(&debs).context("remove the packages")?;
    // It starts with its own libraries, and nothing else does.
    let script = "#!/bin/sh\nhere=$(dirname \"$(readlink -f \"$0\")\")\n\
                  for dir in \"$here\"/usr/lib/*-linux-gnu/pulseaudio \"$here\"/usr/lib/*-linux-gnu \\\n\
                  \"$here\"/lib/*-linux-gnu; do\n\
                  LD_LIBRARY_PATH=\"$dir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}\"\ndone\nexport LD_LIBRARY_PATH\n\
                  exec \"$here/usr/lib/chromium/chromium\" \"$@\"\n";
    let program = directory.join(CHROMIUM);
    std::fs::write(&program, script).context("write the script that starts chromium")?;
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).context("make it executable")
}

/// Chromium and what it lacks here, as `name=version`.
fn packages() -> Result<Vec<String>> {
    let mut simulate = Command::new("apt-get");
    simulate.args(["--simulate", "--no-install-recommends", "install", CHROMIUM]);
    let output = simulate.output().context("start apt-get")?;
    if !output.status.success() {
        bail!("apt-get knows no chromium: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(told.lines().filter_map(package).collect())
}

/// The package of a line such as `Inst chromium (156.0-1 Debian-Security:12/stable [amd64])`.
fn package(line: &str) -> Option<String> {
    let (name, rest) = line.strip_prefix("Inst ")?.split_once(' ')?;
    let version = rest.split_once('(')?.1.split(' ').next()?;
    Some(format!("{name}={version}"))
}

#[cfg(test)]
mod tests {
    use super::package;

    #[test]
    fn a_line_of_a_simulation_names_a_package_with_its_version() {
        for (line, expected) in [
            (
                "Inst chromium (156.0.1-1~deb12u1 Debian-Security:12/oldstable-security [amd64])",
                Some("chromium=156.0.1-1~deb12u1"),
            ),
            ("Inst libx [1.0-1] (1.1-1 Debian:12/oldstable [amd64]) []", Some("libx=1.1-1")),
            ("Conf chromium (156.0.1-1 Debian:12 [amd64])", None),
            ("NOTE: This is only a simulation!", None),
        ] {
            assert_eq!(package(line).as_deref(), expected, "{line}");
        }
    }
}
