//! The built plugins that a benchmark or a test needs: their files, and those that are missing.
//!
//! A benchmark asks before it measures anything, and ends with one line where a back trace of the first call would say
//! less. Nothing is built here. Benchmarks include this file by its path, so that it uses no other.

#![allow(dead_code, reason = "each benchmark uses its part")]

use std::path::{Path, PathBuf};

/// The file of a plugin, named as below `target/plugins`: `files`, `tests/caller`, `sdk/rust/notes`.
pub fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../target/plugins/{name}.wasm"))
}

/// Ends this process with one line when a plugin is missing.
pub fn expect(names: &[&str]) {
    if let Some(missing) = missing(names) {
        eprintln!("{missing}");
        std::process::exit(1);
    }
}

/// The plugins that are missing, and the command that builds them; none when all are there.
pub fn missing(names: &[&str]) -> Option<String> {
    let missing: Vec<&str> = names.iter().copied().filter(|name| !file(name).is_file()).collect();
    if missing.is_empty() {
        return None;
    }
    // The plugins of tests and of the SDKs' examples lie in folders of their own.
    let tests = if missing.iter().any(|name| name.contains('/')) { " --tests" } else { "" };
    Some(format!("plugins that this needs are not built: {}; run: cargo xtask plugins{tests}", missing.join(", ")))
}
