//! A process: its owner's machine, its clock, and the calls that it waits for.

use super::message::Lane;
use super::setting::{Clock, Dice, LEASE_MS, Setting};
use crate::protocol::Owner;

/// The largest difference between the times since two machines were started.
const UPTIME_MS_MAX: u64 = 100_000;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Stands by.
    Seeking,
    /// Took the store, and was not told otherwise.
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
    GiveBack,
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
    pub(super) nonce: u32,
    pub(super) owner: Owner,
    pub(super) phase: Phase,
    keeper: Option<Call>,
    writer: Option<Call>,
    /// The commit that is being made.
    pub(super) commit: Option<usize>,
    /// True while the head is moved without it, since an attempt of it may still land.
    pub(super) is_voiding: bool,
    /// The announcement of an effect that may begin.
    pub(super) announced: Option<usize>,
    /// The number of its claim in the record.
    pub(super) claim: usize,
    /// The true time until which it is stopped.
    pub(super) wakes_ms: u64,
}

impl Process {
    pub(super) fn new(dice: &mut Dice, setting: Setting, nonce: u32) -> Self {
        Self::on(Clock::of(dice, UPTIME_MS_MAX, setting.drift_ppm_max), nonce)
    }

    /// Another process on the same machine.
    pub(super) fn start_again(&mut self, nonce: u32) {
        *self = Self::on(self.clock, nonce);
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

    fn on(clock: Clock, nonce: u32) -> Self {
        Self {
            clock,
            nonce,
            owner: Owner::new(LEASE_MS),
            phase: Phase::Seeking,
            keeper: None,
            writer: None,
            commit: None,
            is_voiding: false,
            announced: None,
            claim: 0,
            wakes_ms: 0,
        }
    }
}
