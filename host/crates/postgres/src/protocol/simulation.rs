//! Random schedules of the protocol: two to four processes, one database, a network that nobody can rely on.
//!
//! The processes decide with the same [`Owner`](super::Owner) as those of users. Messages are late, overtake each other
//! and are lost; statements about the lease are carried out twice. Clocks have different rates, the database's is set
//! in the middle, processes stop for longer than a lease, are killed and begin again, connections break, and the server
//! is replaced by a standby that lacks its last changes. In each schedule:
//!
//! - a commit changes the store only for the present claim, and only once;
//! - what was acknowledged is there, unless a promotion lost it, and what was refused is not;
//! - an effect begins only after its announcement is durable, and no later than [`SLACK_MS`](setting::SLACK_MS) after
//!   another process claimed the store. A promoted server may lack a renewal; there it is a lease after the promotion;
//! - once the faults end, somebody holds the store within two leases, and keeps it.
//!
//! A copy of a commit is one that its process sent: a connection carries it once. Whoever looks at its lease begins the
//! effect at once: a process that stops between the two is not caught by any clock, and its effect is treated by its
//! class. A promoted server replaces the former one, which is kept from taking writes.
//!
//! `LONGHAUL_SCHEDULES` sets their number (default 5,000). A failure names its seed and shows what happened;
//! `LONGHAUL_SEED` runs that one alone. A million of them, in minutes:
//!
//! ```sh
//! LONGHAUL_SCHEDULES=1000000 cargo nextest run --release -p longhaul-postgres protocol::simulation
//! ```

mod acts;
mod database;
mod message;
mod process;
mod record;
mod schedule;
mod seats;
mod setting;
mod world;

use record::Counts;
use setting::{DRIFT_PPM_MAX, LeftOut, SLACK_MS, Setting, Violation};
use world::World;

/// Schedules of a test, unless the environment sets their number.
const SCHEDULES: u64 = 5_000;

/// A drift of clocks that the protocol does not promise to survive: each rate is off by a fifth.
const DRIFT_PPM_BEYOND: i64 = 200_000;

const SOUND: Setting = Setting { left_out: LeftOut::Nothing, drift_ppm_max: DRIFT_PPM_MAX, slack_ms: SLACK_MS };

#[test]
fn a_store_has_one_owner_and_each_commit_one_outcome_in_every_schedule() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match number("LONGHAUL_SEED") {
        Some(seed) => seed..=seed,
        None => 1..=number("LONGHAUL_SCHEDULES").unwrap_or(SCHEDULES),
    };
    let is_single = seeds.start() == seeds.end();
    let mut counts = Counts::default();
    for seed in seeds {
        match World::new(seed, SOUND).run() {
            Ok(found) => counts.add(&found),
            Err(violation) => panic!("LONGHAUL_SEED={seed}: {violation}\n{}", told(seed, SOUND)),
        }
    }
    // A simulation in which nothing happens would hold every rule.
    assert!(is_single || counts.has_all(), "something never happened: {counts:?}");
}

#[test]
fn each_rule_that_is_left_out_is_found_out() {
    for left_out in [
        LeftOut::ClaimOfFence,
        LeftOut::EpochOfFence,
        LeftOut::HeadOfFence,
        LeftOut::TimelineOfFence,
        LeftOut::TimelineOfClaim,
        LeftOut::TimeOfSending,
        LeftOut::UnknownOutcome,
        LeftOut::LookBeforeEffect,
        LeftOut::WaitForLease,
    ] {
        let found = violations(Setting { left_out, ..SOUND }).next();
        assert!(found.is_some(), "{left_out:?} was left out of {SCHEDULES} schedules, and nothing went wrong");
    }
}

#[test]
fn clocks_beyond_the_bound_let_effects_overlap_and_never_a_commit() {
    let setting = Setting { drift_ppm_max: DRIFT_PPM_BEYOND, ..SOUND };
    assert!(violations(setting).any(|(_, found)| matches!(found, Violation::Effect(_))), "no effect overlaps");
    // No schedule ends at an effect here. A standby may wait longer: a new server's clock may be far behind.
    let setting = Setting { slack_ms: u64::MAX, ..setting };
    let of_commit = violations(setting).find(|(_, found)| matches!(found, Violation::Commit(_)));
    if let Some((seed, violation)) = of_commit {
        panic!("seed {seed}: {violation}\n{}", told(seed, setting));
    }
}

/// The schedules of a setting in which something goes wrong, and what.
fn violations(setting: Setting) -> impl Iterator<Item = (u64, Violation)> {
    (1..=SCHEDULES).filter_map(move |seed| Some((seed, World::new(seed, setting).run().err()?)))
}

/// The events of a schedule, an event a line.
fn told(seed: u64, setting: Setting) -> String {
    let mut world = World::new(seed, setting);
    world.tell();
    // It ends as it did before.
    let _ = world.run();
    world.told()
}
