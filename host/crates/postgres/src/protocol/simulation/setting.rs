//! The setting of a schedule: bounds, clocks, dice, the rule that is left out, and what can be wrong.

use std::fmt;

/// The length of a lease.
pub(super) const LEASE_MS: u64 = 10_000;

/// The largest error of a clock's rate that the protocol is promised, in parts of a million: 1 %. That of a quartz is
/// below 0.1 %.
pub(super) const DRIFT_PPM_MAX: i64 = 10_000;

/// The farthest that the database's clock is set, once in a schedule.
pub(super) const STEP_MS_MAX: u64 = 500;

/// The most that the clock of a server is off when it begins.
pub(super) const SKEW_MS_MAX: u64 = 1_000;

/// The time for which an owner may take its lease for longer than the database does: a slow clock here and a fast one
/// there, which is also set forward.
pub(super) const SLACK_MS: u64 = 204 + STEP_MS_MAX;

/// The beginning of each schedule. Clocks that are behind are still above zero.
pub(super) const START_MS: u64 = 1_000_000;

/// The bounds and the rules of a schedule.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    pub(super) left_out: LeftOut,
    pub(super) drift_ppm_max: i64,
    /// The time that an effect may begin too late; see [`SLACK_MS`].
    pub(super) slack_ms: u64,
}

/// A rule of the protocol that is left out, to see that this is found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeftOut {
    Nothing,
    /// A statement proves neither its nonce nor its epoch.
    ClaimOfFence,
    /// A statement proves its nonce and no epoch.
    EpochOfFence,
    /// A commit expects no head.
    HeadOfFence,
    /// A statement proves no timeline.
    TimelineOfFence,
    /// The row's timeline is compared with the server's, and not with the one that the process knows.
    TimelineOfClaim,
    /// The lease is counted from the answer.
    TimeOfSending,
    /// A commit whose connection broke is taken for one that did nothing.
    UnknownOutcome,
    /// An effect begins without a look at the lease.
    LookBeforeEffect,
    /// A process claims the store while another one's lease runs.
    WaitForLease,
}

/// A broken promise of the protocol.
#[derive(Clone, Debug)]
pub(super) enum Violation {
    /// A commit landed without the right to, twice, or otherwise than its caller was told.
    Commit(String),
    /// An effect began without an announcement, or after another process may have begun it.
    Effect(String),
    /// Nobody holds the store after the faults, or whoever holds it does not keep it.
    Holder(String),
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Commit(text) | Self::Effect(text) | Self::Holder(text)) = self;
        f.write_str(text)
    }
}

/// A linear congruential generator, with Knuth's constants; the low bits are weak and dropped.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn of(seed: u64) -> Self {
        let mut dice = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        for _ in 0..4 {
            dice.below(2);
        }
        dice
    }

    pub(super) fn below(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    pub(super) fn one_in(&mut self, sides: u64) -> bool {
        self.below(sides) == 0
    }

    /// The place of one of so many things.
    pub(super) fn place(&mut self, count: usize) -> usize {
        let count = u64::try_from(count).expect("few things");
        usize::try_from(self.below(count)).expect("below a usize")
    }

    /// A number from `-max` to `max`.
    pub(super) fn around(&mut self, max: i64) -> i64 {
        let sides = u64::try_from(2 * max + 1).expect("a bound");
        i64::try_from(self.below(sides)).expect("below an i64") - max
    }
}

/// A clock that runs at a rate of its own.
#[derive(Clone, Copy)]
pub(super) struct Clock {
    offset_ms: i64,
    drift_ppm: i64,
}

impl Clock {
    pub(super) fn of(dice: &mut Dice, skew_ms_max: u64, drift_ppm_max: i64) -> Self {
        let skew_ms_max = i64::try_from(skew_ms_max).expect("a bound");
        Self { offset_ms: dice.around(skew_ms_max), drift_ppm: dice.around(drift_ppm_max) }
    }

    /// Its time at a true time.
    pub(super) fn at(&self, now_ms: u64) -> u64 {
        let since = i64::try_from(now_ms.saturating_sub(START_MS)).expect("a short schedule");
        now_ms.saturating_add_signed(self.offset_ms + since * self.drift_ppm / 1_000_000)
    }

    pub(super) fn set(&mut self, by_ms: i64) {
        self.offset_ms += by_ms;
    }
}
