//! Programs of others in Python, in the versions of a list, installed once into the cache of tests.

use super::repository;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder that holds what a list names, which the first caller installs.
pub fn site(list: &str) -> PathBuf {
    let list = repository().join(list);
    let text = fs::read(&list).expect("the list is there");
    let site = super::test_cache().join(format!("python-{:016x}", fnv(&text)));
    // Tests of several processes want it at once.
    let lock = File::create(site.with_extension("lock")).expect("ours");
    lock.lock().expect("locked");
    if !site.exists() {
        install(&list, &site);
    }
    site
}

/// Under another name first: an installation that was cut off is not taken for a whole one.
fn install(list: &Path, site: &Path) {
    let half = site.with_extension("half");
    let _ = fs::remove_dir_all(&half);
    let pip = python()
        .args(["-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check", "--requirement"])
        .arg(list)
        .arg("--target")
        .arg(&half)
        .env("PIP_ROOT_USER_ACTION", "ignore")
        .output()
        .expect("python3 with pip is installed (on Debian: apt install python3-pip)");
    assert!(pip.status.success(), "{}", String::from_utf8_lossy(&pip.stderr));
    fs::rename(&half, site).expect("ours");
}

/// Python without what a virtual environment would bring along.
pub fn python() -> Command {
    let mut python = Command::new("python3");
    python.env_remove("VIRTUAL_ENV").env_remove("PYTHONHOME").env_remove("PYTHONPATH");
    python
}

/// A number for a text.
pub fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
