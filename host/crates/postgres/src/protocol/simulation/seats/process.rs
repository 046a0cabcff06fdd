//! A process: its machine, its clock, what it saw, and the calls that it waits for.

use super::super::setting::{Clock, DRIFT_PPM_MAX, Dice, LEASE_MS};
use super::message::{Lane, Look};
use crate::protocol::Owner;

/// The largest difference between the times since two machines were started.
const UPTIME_MS_MAX: u64 = 100_000;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Wants its seat.
    Seeking,
    /// Took its seat, and was not told otherwise.
    Working,
    Ended,
}

/// The reason for a statement.
#[derive(Clone, Copy)]
pub(super) enum Purpose {
    Claim,
    Renewal,
    /// Asks why a renewal did nothing.
    AfterRenewal,
    Commit,
    /// Asks why a commit did nothing.
    AfterCommit {
        is_broken: bool,
    },
    Look,
    Evict {
        seat: usize,
        epoch: i64,
    },
}

/// A statement that a process waits for.
#[derive(Clone, Copy)]
pub(super) struct Call {
    pub(super) number: u32,
    pub(super) purpose: Purpose,
    /// By the clock of the process.
    pub(super) sent_ms: u64,
}

pub(super) struct Process {
    clock: Clock,
    pub(super) seat: usize,
    pub(super) nonce: u32,
    pub(super) owner: Owner,
    pub(super) phase: Phase,
    keeper: Option<Call>,
    writer: Option<Call>,
    /// The commit that is being made.
    pub(super) commit: Option<usize>,
    /// True while the head is moved without it, since an attempt of it may still land.
    pub(super) is_voiding: bool,
    /// The state that it saw, with its own commits since; none: it has to look.
    pub(super) look: Option<Look>,
    /// The true time until which it is stopped.
    pub(super) wakes_ms: u64,
}

impl Process {
    pub(super) fn new(dice: &mut Dice, seat: usize, nonce: u32) -> Self {
        Self::on(Clock::of(dice, UPTIME_MS_MAX, DRIFT_PPM_MAX), seat, nonce)
    }

    /// Another process with the same data directory.
    pub(super) fn start_again(&mut self, nonce: u32) {
        *self = Self::on(self.clock, self.seat, nonce);
    }

    pub(super) fn now_ms(&self, now_ms: u64) -> u64 {
        self.clock.at(now_ms)
    }

    pub(super) fn call(&mut self, lane: Lane) -> &mut Option<Call> {
        match lane {
            Lane::Keeper => &mut self.keeper,
            Lane::Writer => &mut self.writer,
        }
    }

    fn on(clock: Clock, seat: usize, nonce: u32) -> Self {
        Self {
            clock,
            seat,
            nonce,
            owner: Owner::new(LEASE_MS),
            phase: Phase::Seeking,
            keeper: None,
            writer: None,
            commit: None,
            is_voiding: false,
            look: None,
            wakes_ms: 0,
        }
    }
}
