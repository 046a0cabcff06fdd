//! Random runs that are forked at any point, killed at any commit, before the fork, in it and after it, and deleted.
//!
//! A world has runs of a guest with all classes of effects, delegations, parallel calls and approvals, over a store in
//! memory, and a receiver that counts. After each fork its parent has the bytes that it had, and the fork the answers,
//! times and fuel of the past that it shares; at the end each finished effect happened once, and everything replays.
//! Here are no branches, trees and records of runs: `make.rs` stores these in the same transaction.
//!
//! `LONGHAUL_FORKS` sets how many forks are made (default 100), `LONGHAUL_SEED` the first world. A failure names the
//! seed of its world.

mod dice;
mod dying;
mod forking;
mod guest;
mod past;
mod receiver;
mod world;

use world::{Counts, Planted, World};

/// Forks without the variable: some two seconds.
const FORKS: u64 = 100;

/// Worlds in which a planted fault has to show.
const WORLDS_MAX: u64 = 60;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime")
}

#[test]
fn forks_at_any_point_share_the_past_and_repeat_no_effect_whenever_they_are_killed() {
    let (first, wanted) = (number("LONGHAUL_SEED").unwrap_or(1), number("LONGHAUL_FORKS").unwrap_or(FORKS));
    let (runtime, mut counts, mut seed) = (runtime(), Counts::default(), first);
    while counts.forks < wanted {
        println!("LONGHAUL_SEED={seed}");
        let mut world = World::new(seed, None);
        let played = runtime.block_on(world.play());
        assert_eq!(played, Ok(()), "LONGHAUL_SEED={seed}: {:?}", world.counts);
        counts = counts.plus(world.counts);
        seed += 1;
        assert!(seed - first <= wanted + 10, "hardly a fork is made: {counts:?}");
    }
    println!("from LONGHAUL_SEED={first} on, without a repeated effect: {counts:?}");
    if wanted >= FORKS {
        let Counts { forks_of_forks, edited, kills, kills_of_forking, questions, decisions, deleted, .. } = counts;
        let tried = [forks_of_forks, edited, kills, kills_of_forking, questions, decisions, deleted];
        assert!(tried.iter().all(|count| *count > wanted / 20), "something was hardly tried: {counts:?}");
        assert!(counts.refused < counts.forks && counts.shared_entries > counts.forks, "{counts:?}");
    }
}

#[test]
fn each_planted_fault_is_found() {
    let runtime = runtime();
    for planted in [
        Planted::ShareTooFar,
        Planted::ShareLeftOut,
        Planted::HandOverLeftOut,
        Planted::VerifyLeftOut,
        Planted::QuestionLeftOut,
    ] {
        let is_found = |seed| runtime.block_on(World::new(seed, Some(planted)).play()).is_err();
        assert!((1..=WORLDS_MAX).any(is_found), "{planted:?} was not found");
    }
}
