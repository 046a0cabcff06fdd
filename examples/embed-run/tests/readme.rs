//! The README shows what the program prints; here the program is run and compared.
//!
//! Needs the plugins of `cargo xtask plugins`.

use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The cache that the tests of `longhaul` have too, so that plugins are compiled once.
fn cache() -> PathBuf {
    let user = rustix::process::geteuid();
    let name = if user.is_root() { "cache".to_owned() } else { format!("cache-{user}") };
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&cache).expect("ours");
    cache
}

/// The text between the line "```text" and the next "```".
fn printed(readme: &str) -> &str {
    let (_, from) = readme.split_once("```text\n").expect("the README has such a block");
    from.split_once("```").expect("the block ends").0
}

#[test]
fn the_program_prints_what_its_readme_says() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(example.join("README.md")).expect("readable");
    let ran = Command::new(env!("CARGO_BIN_EXE_embed-run"))
        .env("LONGHAUL_CACHE", cache())
        .env("LONGHAUL_PLUGINS", example.join("../../target/plugins"))
        .env_remove("LONGHAUL_PROGRAM")
        .output()
        .expect("the program starts");
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(String::from_utf8_lossy(&ran.stdout), printed(&readme), "{errors}");
    assert!(ran.status.success(), "{errors}");
}
