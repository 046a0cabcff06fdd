//! Fuzz targets without a fuzzer: what was found once is not found again, and a few new inputs beside.

use crate::support::lab::private_directory;
use longhaul_fuzz::{PROGRAM, TARGETS, driver};

/// Mutations of a target; `LONGHAUL_MUTATIONS` asks for more, and `LONGHAUL_SEED` for others.
const MUTATIONS: u64 = 150;

fn number(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

#[test]
fn no_reader_of_what_comes_from_outside_stumbles_over_its_corpus_or_mutations_of_it() {
    PROGRAM.set(env!("CARGO_BIN_EXE_longhaul").into()).expect("set once");
    let findings = private_directory().keep();
    println!("an input that ends this process stands in {}", findings.display());
    for target in TARGETS {
        driver::drive(target, number("LONGHAUL_MUTATIONS", MUTATIONS), number("LONGHAUL_SEED", 19), &findings);
    }
    std::fs::remove_dir_all(&findings).expect("ours");
}
