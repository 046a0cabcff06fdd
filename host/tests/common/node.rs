//! Programs of others in JavaScript, in the versions of a lock file, installed once into the cache of tests.

use super::repository;
use longhaul_build::cache::Cache;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// The folder that holds what the lock file in a folder names, which the first caller installs.
pub fn modules(lists: &str) -> PathBuf {
    let lists = repository().join(lists);
    let lock = fs::read(lists.join("package-lock.json")).expect("the lock file is there");
    let site = super::test_cache().join(format!("node-{:016x}", super::python::fnv(&lock)));
    // Tests of several processes want it at once.
    let held = File::create(site.with_extension("lock")).expect("ours");
    held.lock().expect("locked");
    if !site.exists() {
        install(&lists, &site);
    }
    site.join("node_modules")
}

/// Under another name first: an installation that was cut off is not taken for a whole one.
fn install(lists: &Path, site: &Path) {
    let half = site.with_extension("half");
    let _ = fs::remove_dir_all(&half);
    fs::create_dir_all(&half).expect("ours");
    for file in ["package.json", "package-lock.json"] {
        fs::copy(lists.join(file), half.join(file)).expect("ours");
    }
    let mut npm = longhaul_build::npm(&cache()).expect("npm can be had");
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]).current_dir(&half);
    let ran = npm.output().expect("npm runs");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    fs::rename(&half, site).expect("ours");
}

/// The program that runs JavaScript.
pub fn node() -> String {
    let node = longhaul_build::node(&cache()).expect("Node.js can be had");
    node.get_program().to_string_lossy().into_owned()
}

fn cache() -> Cache {
    Cache::open(|line| eprintln!("{line}")).expect("there is a cache")
}
