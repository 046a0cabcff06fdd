//! Each example's README shows a command and what it prints; here the command is run and compared.
//!
//! Example 01 needs a model and minutes, so what is run of it is its recording, by example 02.

use crate::common;
use crate::common::readme::{self, block_with};
use std::process::Command;

/// Runs the command of an example's README, and compares what it prints with what is written there.
#[track_caller]
fn prints_what_its_readme_says(example: &str) {
    let (root, readme) = (common::repository(), readme::of(&format!("examples/{example}")));
    let (command, output) = (block_with(&readme, "sh", ""), block_with(&readme, "text", ""));
    let ran = Command::new("sh")
        .args(["-c", command.trim()])
        .current_dir(&root)
        .env("LONGHAUL", env!("CARGO_BIN_EXE_longhaul"))
        .env("LONGHAUL_PLUGINS", root.join("target/plugins"))
        .env("LONGHAUL_CACHE", common::test_cache())
        .output()
        .expect("a shell is there");
    let (printed, errors) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert_eq!(printed, output, "{errors}");
    assert!(ran.status.success(), "{errors}");
}

#[test]
fn the_example_that_is_killed_prints_what_its_readme_says() {
    prints_what_its_readme_says("02-survive-a-kill");
}

#[test]
fn the_example_of_a_notebook_that_is_mended_prints_what_its_readme_says() {
    prints_what_its_readme_says("03-graph");
}
