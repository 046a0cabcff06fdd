//! Fuzz targets without a fuzzer: what was found once is not found again, and a few new inputs beside.

use crate::common::guests::lab::private_directory;
use longhaul_fuzz::driver::{self, FuzzBudget};
use longhaul_fuzz::{PROGRAM, chosen};
use std::time::Duration;

/// Mutations of a target; `LONGHAUL_MUTATIONS` asks for more, `LONGHAUL_FUZZ_S` for so many seconds of each target
/// instead, `LONGHAUL_TARGET` for one target alone, and `LONGHAUL_SEED` for others.
const MUTATIONS: u64 = 150;

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is `{text}`, and must be a number")))
}

#[test]
fn no_reader_of_what_comes_from_outside_stumbles_over_its_corpus_or_mutations_of_it() {
    PROGRAM.set(env!("CARGO_BIN_EXE_longhaul").into()).expect("set once");
    let findings = private_directory().keep();
    println!("an input that ends this process stands in {}", findings.display());
    let mutations = FuzzBudget::Mutations(number("LONGHAUL_MUTATIONS").unwrap_or(MUTATIONS));
    let bound = number("LONGHAUL_FUZZ_S").map_or(mutations, |seconds| FuzzBudget::Time(Duration::from_secs(seconds)));
    let one = std::env::var("LONGHAUL_TARGET").ok();
    for target in chosen(one.as_deref()).unwrap_or_else(|error| panic!("LONGHAUL_TARGET: {error}")) {
        let done = driver::drive(target, bound, number("LONGHAUL_SEED").unwrap_or(19), &findings);
        println!("{}: {done} mutations", target.0);
    }
    std::fs::remove_dir_all(&findings).expect("ours");
}

#[test]
fn a_target_that_is_mistyped_is_told_with_those_that_there_are() {
    let error = chosen(Some("confg")).expect_err("no target");
    assert!(error.contains("`confg`") && error.contains("config, journal_records"), "{error}");
    let names = |name| chosen(name).map(|targets| targets.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    assert_eq!(names(Some("config")), Ok(vec!["config"]));
    assert!(names(None).is_ok_and(|names| names.len() > 1));
}
