//! The database: the rows of seats, the keys, and commits that run beside each other.

use super::super::setting::{Clock, DRIFT_PPM_MAX, Dice, LEASE_MS, SKEW_MS_MAX, STEP_MS_MAX, Violation};
use super::Omitted;
use super::message::{Answer, Append, KEYS, Look, OWNER, Packet, Request, SEATS, Value};
use super::record::Record;
use crate::protocol::{OwnerRow, Proof, VOID_HEADS};

/// Changes that a standby lacks when it is promoted, at most.
const LOST_MAX: usize = 3;

#[derive(Clone, Copy, Debug, Default)]
struct Row {
    nonce: Option<u32>,
    epoch: i64,
    head: i64,
    timeline: Option<i32>,
    lease_until_ms: Option<u64>,
}

impl Row {
    fn is_over(&self, there_ms: u64) -> bool {
        self.lease_until_ms.is_none_or(|until| until <= there_ms)
    }
}

/// All rows at one moment.
#[derive(Clone, Copy)]
struct State {
    rows: [Row; SEATS],
    values: [Value; KEYS],
    /// The number of the last change of each row of a seat, and of each key.
    rows_changed: [u64; SEATS],
    values_changed: [u64; KEYS],
    /// The number of commits that were applied.
    commits: usize,
}

/// A commit that began.
#[derive(Clone, Copy)]
struct Running {
    append: Append,
    packet: Packet,
    /// The rows that it sees.
    seen: State,
    there_ms: u64,
}

/// A server with its standby.
pub(super) struct Database {
    omitted: Omitted,
    clock: Clock,
    timeline: i32,
    state: State,
    changes: u64,
    /// The commits in their order.
    log: Vec<usize>,
    /// The state after each change, as a standby gets it.
    history: Vec<State>,
    running: Vec<Running>,
}

impl Database {
    pub(super) fn new(dice: &mut Dice, omitted: Omitted) -> Self {
        let state = State {
            rows: [Row::default(); SEATS],
            values: [Value::Absent; KEYS],
            rows_changed: [0; SEATS],
            values_changed: [0; KEYS],
            commits: 0,
        };
        Self {
            omitted,
            clock: Clock::of(dice, SKEW_MS_MAX, DRIFT_PPM_MAX),
            timeline: 1,
            state,
            changes: 0,
            log: Vec::new(),
            history: vec![state],
            running: Vec::new(),
        }
    }

    /// Carries a statement out; none for a commit, which begins.
    pub(super) fn answer(&mut self, request: Request, packet: Packet, now_ms: u64) -> Option<Answer> {
        let there_ms = self.clock.at(now_ms);
        Some(match request {
            Request::Claim { seat, nonce } => Answer::Claim(self.claim(seat, nonce, there_ms)),
            Request::Renew { seat, nonce, proof } => {
                Answer::Renew { is_renewed: self.renew(seat, nonce, proof, there_ms) }
            }
            Request::Status { seat, nonce } => Answer::Status(self.status(seat, nonce, there_ms)),
            Request::Look => {
                let seats = self.state.rows.map(|row| (row.epoch, row.is_over(there_ms)));
                Answer::Look(Look { values: self.state.values, seats })
            }
            Request::Evict { seat, epoch, timeline } => {
                Answer::Evict { is_evicted: self.evict(seat, epoch, timeline, there_ms) }
            }
            Request::Append(append) => {
                self.running.push(Running { append, packet, seen: self.state, there_ms });
                return None;
            }
        })
    }

    /// Ends one of the commits that run: the packet of its statement, and its answer.
    pub(super) fn finish(
        &mut self,
        dice: &mut Dice,
        record: &mut Record,
    ) -> Result<Option<(Packet, Answer)>, Violation> {
        if self.running.is_empty() {
            return Ok(None);
        }
        let running = self.running.swap_remove(dice.place(self.running.len()));
        Ok(Some((running.packet, self.append(running, record)?)))
    }

    /// Puts a standby in the place of the server, which lacks the last changes and has a clock of its own.
    pub(super) fn promote(&mut self, dice: &mut Dice, record: &mut Record) {
        let lost = dice.place((LOST_MAX + 1).min(self.history.len()));
        self.history.truncate(self.history.len() - lost);
        if let Some(state) = self.history.last() {
            self.state = *state;
        }
        record.promote(&self.log[self.state.commits..]);
        self.log.truncate(self.state.commits);
        self.running.clear();
        self.timeline += 1;
        self.clock = Clock::of(dice, SKEW_MS_MAX, DRIFT_PPM_MAX);
    }

    /// Sets its clock.
    pub(super) fn set_clock(&mut self, dice: &mut Dice) {
        self.clock.set(dice.around(i64::try_from(STEP_MS_MAX).expect("a bound")));
    }

    /// `Statements::claim` of `lease.rs`: the seat of a worker is taken over at once.
    fn claim(&mut self, seat: usize, nonce: u32, there_ms: u64) -> Option<(Proof, i64)> {
        let mut row = self.state.rows[seat];
        let is_same = row.nonce == Some(nonce);
        if seat == OWNER && !is_same && row.nonce.is_some() && !row.is_over(there_ms) {
            return None;
        }
        row.epoch += i64::from(!is_same);
        (row.nonce, row.timeline) = (Some(nonce), Some(self.timeline));
        row.lease_until_ms = Some(there_ms + LEASE_MS);
        self.put_row(seat, row);
        Some((Proof { epoch: row.epoch, timeline: self.timeline }, row.head))
    }

    /// `Statements::renew` of `lease.rs`.
    fn renew(&mut self, seat: usize, nonce: u32, proof: Proof, there_ms: u64) -> bool {
        let row = self.state.rows[seat];
        let proves = self.proves(&row, nonce, proof);
        if proves {
            self.put_row(seat, Row { lease_until_ms: Some(there_ms + LEASE_MS), ..row });
        }
        proves
    }

    /// `Statements::status` of `lease.rs`.
    fn status(&self, seat: usize, nonce: u32, there_ms: u64) -> OwnerRow {
        let row = &self.state.rows[seat];
        OwnerRow {
            is_ours: row.nonce == Some(nonce),
            epoch: row.epoch,
            head: row.head,
            claimed_on: row.timeline,
            timeline: self.timeline,
            is_in_time: !row.is_over(there_ms),
            is_durable: true,
        }
    }

    /// `Statements::evict` of `read.rs`.
    fn evict(&mut self, seat: usize, epoch: i64, timeline: i32, there_ms: u64) -> bool {
        let row = self.state.rows[seat];
        if timeline != self.timeline {
            return false;
        }
        if row.epoch == epoch && row.is_over(there_ms) {
            self.put_row(seat, Row { nonce: None, lease_until_ms: None, epoch: epoch + 1, ..row });
            return true;
        }
        row.epoch == epoch + 1 && row.nonce.is_none()
    }

    /// The statement of `append.rs` at its end.
    fn append(&mut self, running: Running, record: &mut Record) -> Result<Answer, Violation> {
        let Running { append, seen, there_ms, .. } = running;
        let change = (!append.is_void).then(|| record.change(append.commit));
        let is_broken =
            change.is_some_and(|change| change.expected.is_some_and(|value| value != seen.values[change.key.place()]));
        if is_broken || !self.may_append(&seen, &append, there_ms) {
            return Ok(Answer::Append { has_moved: false, is_broken });
        }
        let is_overtaken = self.state.rows_changed[append.seat] != seen.rows_changed[append.seat]
            || change.is_some_and(|change| {
                self.state.values_changed[change.key.place()] != seen.values_changed[change.key.place()]
            });
        if is_overtaken && self.omitted != Omitted::Isolation {
            record.counts.overtaken += 1;
            return Ok(Answer::Overtaken);
        }
        // As in READ COMMITTED, which looks again at the row that it waited for.
        if !self.may_append(&self.state, &append, there_ms) {
            return Ok(Answer::Append { has_moved: false, is_broken: false });
        }
        let row = self.state.rows[append.seat];
        let by = if let Some(change) = change {
            record.apply(append.commit, (append.seat, row.nonce, row.epoch), &self.state.values)?;
            self.log.push(append.commit);
            self.state.commits = self.log.len();
            self.changes += 1;
            self.state.values[change.key.place()] = change.value;
            self.state.values_changed[change.key.place()] = self.changes;
            1
        } else {
            VOID_HEADS
        };
        self.put_row(append.seat, Row { head: row.head + by, ..row });
        Ok(Answer::Append { has_moved: true, is_broken: false })
    }

    /// The fence of a commit.
    fn may_append(&self, state: &State, append: &Append, there_ms: u64) -> bool {
        let row = &state.rows[append.seat];
        self.proves(row, append.nonce, append.proof) && row.head == append.head && !row.is_over(there_ms)
    }

    /// The part of a fence that commits and renewals share.
    fn proves(&self, row: &Row, nonce: u32, proof: Proof) -> bool {
        let is_server = row.timeline == Some(self.timeline) && proof.timeline == self.timeline;
        row.nonce == Some(nonce) && row.epoch == proof.epoch && is_server
    }

    fn put_row(&mut self, seat: usize, row: Row) {
        self.changes += 1;
        self.state.rows[seat] = row;
        self.state.rows_changed[seat] = self.changes;
        self.history.push(self.state);
    }
}
