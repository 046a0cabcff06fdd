//! The test of the Debian package: installed, run, installed once more and removed in a root that has nothing else.
//!
//! The root is Debian's smallest, made by `debootstrap` once into the cache and copied for each test. It shares neither
//! processes nor mounts with this machine, and is no wall against a hostile package.

use crate::browser::is_root;
use anyhow::{Context, Result, ensure};
use longhaul_build::cache::{Cache, create_dir};
use longhaul_build::debian_packages;
use longhaul_build::process::run;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The release of Debian in the root.
const SUITE: &str = "bookworm";

/// The commands that are tried in the root; the first one that fails ends the test.
const TRY: &str = r#"
set -eu
mount -t proc proc /proc
export HOME=/tmp/home PATH=/usr/sbin:/usr/bin:/sbin:/bin
mkdir -p "$HOME"
say() { echo "clean root: $*"; }
dpkg --install /tmp/longhaul.deb
say "installed $(longhaul --version)"
getent passwd longhaul >/dev/null
test -f /usr/lib/systemd/system/longhaul.service
test -s /usr/share/man/man1/longhaul.1.gz
test -s /usr/share/bash-completion/completions/longhaul
longhaul plugin list | grep react >/dev/null
echo 'print(6 * 7)' >/tmp/code.py
longhaul exec /tmp/code.py | grep 42 >/dev/null
say "it ran Python, which it carries"
dpkg --install /tmp/longhaul.deb
say "installed over itself"
dpkg --remove longhaul
test ! -e /usr/bin/longhaul
dpkg --purge longhaul
for left in /usr/lib/systemd/system/longhaul.service /usr/share/man/man1/longhaul.1.gz /usr/share/doc/longhaul; do
    test ! -e "$left"
done
test -d "$HOME/.local/share/longhaul" || test -d "$HOME/.cache/longhaul"
say "removed, and the data of its users stays"
"#;

/// Tries the package in a copy of the root at `place`.
pub(super) fn test(cache: &Cache, package: &Path, place: &Path) -> Result<()> {
    ensure!(is_root(), "only root can install a package in a clean root; run `cargo xtask dist --test-deb` as root");
    let clean = cache.folder(&format!("debian-root-{SUITE}"), |folder| bootstrap(cache, folder))?;
    if place.exists() {
        fs::remove_dir_all(place).with_context(|| format!("remove `{}`", place.display()))?;
    }
    if let Some(parent) = place.parent() {
        create_dir(parent)?;
    }
    run("copy the clean root", Command::new("cp").arg("-a").arg(clean.join("root")).arg(place))?;
    fs::copy(package, place.join("tmp/longhaul.deb")).context("copy the package into the clean root")?;
    let mut tries = Command::new("unshare");
    tries.args(["--mount", "--pid", "--fork", "--kill-child", "chroot"]).arg(place).args(["/bin/sh", "-c", TRY]);
    run("try the package in a clean root", &mut tries)?;
    fs::remove_dir_all(place).with_context(|| format!("remove `{}`", place.display()))
}

/// Makes the root, with the tool from Debian's own package.
fn bootstrap(cache: &Cache, folder: &Path) -> Result<()> {
    let tool = debian_packages::unpacked(cache, "debootstrap")?;
    let mut debootstrap = Command::new(tool.join("usr/sbin/debootstrap"));
    debootstrap
        .env("DEBOOTSTRAP_DIR", tool.join("usr/share/debootstrap"))
        .args(["--variant=minbase", SUITE])
        .arg(folder.join("root"));
    Ok(run("make a clean root of Debian (60 MB, once)", &mut debootstrap)?)
}
