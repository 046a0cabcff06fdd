//! Random schedules of several writers: two processes that may own the store, two workers with a seat each, and a
//! database in which a statement runs while others begin and end.
//!
//! All of them write one key with conditions. The owner gives runs to workers by claims, evicts a worker whose lease
//! ran out, and ends its claims after that; a worker gives runs back; whoever has a run writes its row, without a
//! condition. A commit sees the moment at which it began. Where a row that it writes was changed since, it does nothing
//! and is sent again. Messages, clocks and processes are as unreliable as in the schedules of the owner. In each
//! schedule:
//!
//! - a condition holds at the moment of its commit, and a commit lands once and by the claim that made it;
//! - the row of a run is written by the owner while no worker has a claim of it, and otherwise by that claim alone;
//! - callers are told the truth, unless a promotion lost it.
//!
//! A data directory has one process, so the next one of a worker begins after the end of the one before. What that one
//! sent may still arrive. `LONGHAUL_SCHEDULES` and `LONGHAUL_SEED` count here, too.

mod database;
mod message;
mod process;
mod record;
mod work;
mod world;

use super::setting::Violation;
use record::Counts;
use world::World;

/// Schedules of a test, unless the environment sets their number.
const SCHEDULES: u64 = 5_000;

/// The schedules in which a rule that is left out has to be found out: some need a worker that renews a lease which ran out
/// just when the owner looks.
const SCHEDULES_MAX: u64 = 200_000;

/// A rule that is left out, to see that this is found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Omitted {
    Nothing,
    /// A commit does not fail where a row that it writes was changed since it began.
    Isolation,
    /// The owner ends the claims of a worker whose lease ran out, without evicting it.
    Eviction,
    /// A caller is told of a conflict while an attempt of its commit may still land.
    Void,
}

#[test]
fn runs_have_one_writer_and_conditions_hold_in_every_schedule_of_several_seats() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match number("LONGHAUL_SEED") {
        Some(seed) => seed..=seed,
        None => 1..=number("LONGHAUL_SCHEDULES").unwrap_or(SCHEDULES),
    };
    let is_single = seeds.start() == seeds.end();
    let mut counts = Counts::default();
    for seed in seeds {
        match World::new(seed, Omitted::Nothing).run() {
            Ok(found) => counts.add(&found),
            Err(violation) => panic!("LONGHAUL_SEED={seed}: {violation}\n{}", told(seed)),
        }
    }
    // A simulation in which nothing happens would hold every rule.
    assert!(is_single || counts.has_all(), "something never happened: {counts:?}");
}

#[test]
fn each_rule_of_several_seats_that_is_left_out_is_found_out() {
    for omitted in [Omitted::Isolation, Omitted::Eviction, Omitted::Void] {
        let is_found = |seed: &u64| matches!(World::new(*seed, omitted).run(), Err(Violation::Commit(_)));
        let seed = (1..=SCHEDULES_MAX).find(is_found);
        println!("{omitted:?} is found out by schedule {seed:?}");
        assert!(seed.is_some(), "{omitted:?} was left out of {SCHEDULES_MAX} schedules, and nothing went wrong");
    }
}

/// The events of a schedule, an event a line.
fn told(seed: u64) -> String {
    let mut world = World::new(seed, Omitted::Nothing);
    world.tell();
    // It ends as it did before.
    let _ = world.run();
    world.told()
}
