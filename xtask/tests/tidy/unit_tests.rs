//! A library or a program without unit tests is not built for them: cargo would compile and link it a second time, to
//! run nothing.

use std::path::Path;

use crate::modules;
use crate::packages::packages;
use crate::tree::{none, shown, source};

/// What unit tests are known by.
const MARKS: [&str; 3] = ["#[cfg(test)]", "#[test]", "::test]"];

#[test]
fn what_has_unit_tests_is_built_for_them_and_nothing_else_is() {
    let mut wrong = Vec::new();
    for package in packages() {
        for target in package.built() {
            let root = shown(&target.source);
            let files = modules::read(Path::new(&root), &source).into_iter().map(|module| module.file);
            let texts = files.filter_map(|file| source(&file));
            match (has_unit_tests(texts), target.tested) {
                (true, false) => wrong.push(format!("{root}: `test = false` in Cargo.toml leaves its unit tests out")),
                (false, true) => {
                    wrong.push(format!("{root}: it has no unit tests; write `test = false` in Cargo.toml"))
                }
                _ => {}
            }
        }
    }
    none(&wrong, "unit tests that nobody runs, or programs of tests without a test");
}

fn has_unit_tests(mut texts: impl Iterator<Item = String>) -> bool {
    texts.any(|text| MARKS.iter().any(|mark| text.contains(mark)))
}

#[test]
fn unit_tests_are_known_by_their_attributes() {
    let has = |text: &str| has_unit_tests(["fn a() {}", text].map(str::to_owned).into_iter());
    assert!(has("#[cfg(test)]\nmod tests;") && has("#[tokio::test]\nasync fn a() {}") && !has("fn test() {}"));
}
