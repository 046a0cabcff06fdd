//! Each example's README shows a command and what it prints; here the command is run and compared.
//!
//! Example 01 needs a model and minutes, so what is run of it is its recording, by example 02.

use crate::common;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the workspace is there")
}

/// The text between the first line "```LANGUAGE" and the next "```".
fn block<'a>(text: &'a str, language: &str) -> &'a str {
    let start = text.find(&format!("```{language}\n")).expect("the README has such a block") + language.len() + 4;
    let end = text[start..].find("```").expect("the block ends");
    &text[start..start + end]
}

/// Runs the command of an example's README, and compares what it prints with what is written there.
#[track_caller]
fn prints_what_its_readme_says(example: &str) {
    let root = root();
    let path = root.join("examples").join(example).join("README.md");
    let readme = std::fs::read_to_string(&path).expect("readable");
    let command = block(&readme, "sh").trim();
    let ran = Command::new("sh")
        .args(["-c", command])
        .current_dir(&root)
        .env("LONGHAUL", env!("CARGO_BIN_EXE_longhaul"))
        .env("LONGHAUL_PLUGINS", root.join("target/plugins"))
        .env("LONGHAUL_CACHE", common::test_cache())
        .output()
        .expect("a shell is there");
    let (printed, errors) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert_eq!(printed, block(&readme, "text"), "{errors}");
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
