//! The database: the row `owner`, and the meaning of each statement about it.

use super::message::{Answer, Claimed, Request};
use super::record::Record;
use super::setting::{Clock, Dice, LEASE_MS, LeftOut, SKEW_MS_MAX, STEP_MS_MAX, Setting, Violation};
use crate::protocol::{OwnerRow, Proof, VOID_HEADS};

/// Changes that a standby lacks when it is promoted, at most.
const LOST_MAX: usize = 3;

/// The row of the owner, with the number of its claim in the record.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    nonce: Option<u32>,
    epoch: i64,
    head: i64,
    timeline: Option<i32>,
    lease_until_ms: Option<u64>,
    claim: usize,
}

/// A server with its standby.
pub(super) struct Database {
    setting: Setting,
    clock: Clock,
    timeline: i32,
    is_durable: bool,
    row: Row,
    /// The commits in their order.
    log: Vec<usize>,
    /// The row and the length of the log after each change, as a standby gets them.
    changes: Vec<(Row, usize)>,
}

impl Database {
    pub(super) fn new(dice: &mut Dice, setting: Setting) -> Self {
        let row = Row::default();
        Self {
            setting,
            clock: Clock::of(dice, SKEW_MS_MAX, setting.drift_ppm_max),
            timeline: 1,
            is_durable: true,
            row,
            log: Vec::new(),
            changes: vec![(row, 0)],
        }
    }

    /// Carries a statement out.
    pub(super) fn answer(&mut self, request: Request, now_ms: u64, record: &mut Record) -> Result<Answer, Violation> {
        let there_ms = self.clock.at(now_ms);
        Ok(match request {
            Request::Claim { nonce } => Answer::Claim(self.claim(nonce, there_ms, now_ms, record)),
            Request::Renew { nonce, proof } => Answer::Renew { is_renewed: self.renew(nonce, proof, there_ms) },
            Request::Append { nonce, proof, head, commit, is_void: false } => {
                let has_moved = self.append(nonce, proof, (head, commit), there_ms, record)?;
                // Conditions are looked at whoever asks, and a commit that landed breaks its own.
                let is_broken = record.conflicts(commit) || record.is_applied(commit);
                Answer::Append { has_moved, is_broken }
            }
            Request::Append { nonce, proof, head, is_void: true, .. } => {
                let (has_moved, is_broken) = (self.void(nonce, proof, head, there_ms), false);
                Answer::Append { has_moved, is_broken }
            }
            Request::Status { nonce } => Answer::Status(self.status(nonce, there_ms)),
            Request::GiveBack { nonce } => {
                self.give_back(nonce);
                Answer::GiveBack
            }
        })
    }

    /// Puts a standby in the place of the server, which lacks the last changes and has a clock of its own.
    pub(super) fn promote(&mut self, dice: &mut Dice, now_ms: u64, record: &mut Record) {
        let lost = dice.place((LOST_MAX + 1).min(self.changes.len()));
        self.changes.truncate(self.changes.len() - lost);
        if let Some((row, commits)) = self.changes.last().copied() {
            self.row = row;
            record.promote(&self.log[commits..], now_ms);
            self.log.truncate(commits);
        }
        self.timeline += 1;
        self.clock = Clock::of(dice, SKEW_MS_MAX, self.setting.drift_ppm_max);
    }

    /// Sets its clock.
    pub(super) fn set_clock(&mut self, dice: &mut Dice) {
        self.clock.set(dice.around(i64::try_from(STEP_MS_MAX).expect("a bound")));
    }

    /// Switches `synchronous_commit`.
    pub(super) fn set_durable(&mut self, is_durable: bool) {
        self.is_durable = is_durable;
    }

    pub(super) fn is_durable(&self) -> bool {
        self.is_durable
    }

    /// `Statements::claim` of `lease.rs`.
    fn claim(&mut self, nonce: u32, there_ms: u64, now_ms: u64, record: &mut Record) -> Option<Claimed> {
        let is_same = self.row.nonce == Some(nonce);
        let is_free = self.row.nonce.is_none() || self.row.lease_until_ms.is_none_or(|until| until <= there_ms);
        if !is_same && !is_free && !self.is_left_out(LeftOut::WaitForLease) {
            return None;
        }
        if !is_same || self.row.timeline != Some(self.timeline) {
            self.row.claim = record.claim(self.row.claim, now_ms);
        }
        self.row.nonce = Some(nonce);
        self.row.epoch += i64::from(!is_same);
        self.row.timeline = Some(self.timeline);
        self.row.lease_until_ms = Some(there_ms + LEASE_MS);
        self.keep();
        let proof = Proof { epoch: self.row.epoch, timeline: self.timeline };
        Some(Claimed { proof, head: self.row.head, number: self.row.claim })
    }

    /// `Statements::renew` of `lease.rs`.
    fn renew(&mut self, nonce: u32, proof: Proof, there_ms: u64) -> bool {
        let proves = self.proves(nonce, proof);
        if proves {
            self.row.lease_until_ms = Some(there_ms + LEASE_MS);
            self.keep();
        }
        proves
    }

    /// The statement of `append.rs`; true: the head moved.
    fn append(
        &mut self,
        nonce: u32,
        proof: Proof,
        (head, commit): (i64, usize),
        there_ms: u64,
        record: &mut Record,
    ) -> Result<bool, Violation> {
        if !self.may_append(nonce, proof, head, there_ms) || record.conflicts(commit) {
            return Ok(false);
        }
        record.apply(commit, self.row.claim)?;
        if self.row.timeline != Some(self.timeline) {
            return Err(Violation::Commit(format!("commit {commit} was applied after a promotion")));
        }
        self.row.head += 1;
        self.log.push(commit);
        self.keep();
        Ok(true)
    }

    /// The statement of `append.rs` without the commit; true: the head moved.
    fn void(&mut self, nonce: u32, proof: Proof, head: i64, there_ms: u64) -> bool {
        let moves = self.may_append(nonce, proof, head, there_ms);
        if moves {
            self.row.head += VOID_HEADS;
            self.keep();
        }
        moves
    }

    /// `Statements::status` of `lease.rs`.
    fn status(&self, nonce: u32, there_ms: u64) -> OwnerRow {
        OwnerRow {
            is_ours: self.row.nonce == Some(nonce),
            epoch: self.row.epoch,
            head: self.row.head,
            claimed_on: self.row.timeline,
            timeline: self.timeline,
            is_in_time: self.row.lease_until_ms.is_some_and(|until| until > there_ms),
            is_durable: self.is_durable,
        }
    }

    /// `Statements::give_back` of `lease.rs`.
    fn give_back(&mut self, nonce: u32) {
        if self.row.nonce == Some(nonce) {
            (self.row.nonce, self.row.lease_until_ms) = (None, None);
            self.keep();
        }
    }

    /// The fence of a commit.
    fn may_append(&self, nonce: u32, proof: Proof, head: i64, there_ms: u64) -> bool {
        self.proves(nonce, proof)
            && (self.row.head == head || self.is_left_out(LeftOut::HeadOfFence))
            && self.row.lease_until_ms.is_some_and(|until| until > there_ms)
            && self.is_durable
    }

    /// The part of a fence that commits and renewals share.
    fn proves(&self, nonce: u32, proof: Proof) -> bool {
        let is_claim = self.row.nonce == Some(nonce) || self.is_left_out(LeftOut::ClaimOfFence);
        let is_epoch = self.row.epoch == proof.epoch
            || self.is_left_out(LeftOut::ClaimOfFence)
            || self.is_left_out(LeftOut::EpochOfFence);
        let is_server = self.row.timeline == Some(self.timeline) || self.is_left_out(LeftOut::TimelineOfFence);
        let is_known = proof.timeline == self.timeline
            || self.is_left_out(LeftOut::TimelineOfFence)
            || self.is_left_out(LeftOut::TimelineOfClaim);
        is_claim && is_epoch && is_server && is_known
    }

    fn is_left_out(&self, rule: LeftOut) -> bool {
        self.setting.left_out == rule
    }

    fn keep(&mut self) {
        self.changes.push((self.row, self.log.len()));
    }
}
