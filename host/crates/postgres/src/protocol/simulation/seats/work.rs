//! The acts of a process by itself: it claims its seat, renews, looks, commits, and evicts where it is the owner.

use super::super::setting::Violation;
use super::Omitted;
use super::message::{Append, Change, Key, Lane, Look, OWNER, RUNS, Request, Value, WORKERS};
use super::process::{Phase, Purpose};
use super::world::World;
use crate::protocol::{CommitEvent, Input, Proof};

/// The next act of a process.
enum Intent {
    Look,
    Commit(Change),
    Evict { seat: usize, epoch: i64 },
}

impl World {
    /// Has a process do something, unless it is stopped.
    pub(super) fn act(&mut self, at: usize) -> Result<(), Violation> {
        if self.processes[at].wakes_ms > self.now_ms {
            return Ok(());
        }
        let phase = self.processes[at].phase;
        match phase {
            Phase::Ended => self.start_again(at),
            Phase::Seeking => self.claim(at),
            Phase::Working if self.dice.below(4) == 0 => self.renew(at),
            Phase::Working => return self.work(at),
        }
        Ok(())
    }

    fn start_again(&mut self, at: usize) {
        let nonce = self.nonce();
        self.processes[at].start_again(nonce);
        self.note(format_args!("{at} begins with nonce {nonce}"));
    }

    fn claim(&mut self, at: usize) {
        let process = &mut self.processes[at];
        let (seat, nonce) = (process.seat, process.nonce);
        if process.call(Lane::Keeper).is_none() {
            self.send(at, Lane::Keeper, Purpose::Claim, Request::Claim { seat, nonce });
        } else if self.dice.one_in(4) {
            self.cut(at, Lane::Keeper);
        }
    }

    fn renew(&mut self, at: usize) {
        let process = &mut self.processes[at];
        let (seat, nonce) = (process.seat, process.nonce);
        if process.call(Lane::Keeper).is_some() {
            if self.dice.one_in(3) {
                self.cut(at, Lane::Keeper);
            }
        } else if let Ok((proof, _)) = process.owner.held() {
            self.send(at, Lane::Keeper, Purpose::Renewal, Request::Renew { seat, nonce, proof });
        }
    }

    fn work(&mut self, at: usize) -> Result<(), Violation> {
        let process = &mut self.processes[at];
        let (nonce, look, has_commit) = (process.nonce, process.look, process.commit.is_some());
        if process.call(Lane::Writer).is_some() {
            if self.dice.one_in(5) {
                self.cut(at, Lane::Writer);
            }
            return Ok(());
        }
        let Ok((proof, _)) = process.owner.held() else { return Ok(()) };
        if has_commit {
            return self.go_on(at);
        }
        let intent = match look {
            Some(look) if !self.dice.one_in(4) => self.intent(at, proof, &look),
            _ => Intent::Look,
        };
        match intent {
            Intent::Look => self.send(at, Lane::Writer, Purpose::Look, Request::Look),
            Intent::Commit(change) => {
                self.processes[at].commit = Some(self.record.commit(nonce, change));
                self.append(at);
            }
            Intent::Evict { seat, epoch } => {
                let request = Request::Evict { seat, epoch, timeline: proof.timeline };
                self.send(at, Lane::Writer, Purpose::Evict { seat, epoch }, request);
            }
        }
        Ok(())
    }

    /// Sends the present commit again, or answers callers that wait no longer.
    fn go_on(&mut self, at: usize) -> Result<(), Violation> {
        if !self.dice.one_in(12) {
            self.append(at);
            return Ok(());
        }
        self.note(format_args!("the callers of {at} wait no longer"));
        match self.processes[at].owner.step(Input::Commit(CommitEvent::TooLate)) {
            Ok(outcome) => self.settle(at, outcome),
            Err(loss) => {
                self.lose(at, loss);
                Ok(())
            }
        }
    }

    fn append(&mut self, at: usize) {
        let process = &self.processes[at];
        let (Ok((proof, head)), Some(commit)) = (process.owner.held(), process.commit) else { return };
        let (seat, nonce, is_void) = (process.seat, process.nonce, process.is_voiding);
        let append = Append { seat, nonce, proof, head, commit, is_void };
        self.send(at, Lane::Writer, Purpose::Commit, Request::Append(append));
    }

    fn intent(&mut self, at: usize, proof: Proof, look: &Look) -> Intent {
        let (seat, run) = (self.processes[at].seat, self.dice.place(RUNS));
        if self.dice.one_in(2) {
            return Intent::Commit(self.shared(look));
        }
        let claim = look.values[Key::Claim(run).place()];
        if seat == OWNER { self.of_owner(run, claim, look) } else { self.of_worker(run, claim, (seat, proof.epoch)) }
    }

    /// A change of the key of all: few values, so that one which went comes again.
    fn shared(&mut self, look: &Look) -> Change {
        let value = if self.dice.one_in(2) { Value::Absent } else { Value::Number(1) };
        let expected = (!self.dice.one_in(5)).then_some(look.values[Key::Shared.place()]);
        Change { key: Key::Shared, expected, value }
    }

    fn of_owner(&mut self, run: usize, claim: Value, look: &Look) -> Intent {
        let key = Key::Claim(run);
        match claim {
            Value::Absent if self.dice.one_in(2) => {
                let seat = 1 + self.dice.place(WORKERS);
                let (epoch, is_over) = look.seats[seat];
                let value = Value::Claimed { seat, epoch };
                if is_over { Intent::Look } else { Intent::Commit(Change { key, expected: Some(claim), value }) }
            }
            Value::Absent => self.write(run),
            Value::Claimed { seat, epoch } => {
                let (present, is_over) = look.seats[seat];
                if present != epoch || (is_over && self.omitted == Omitted::Eviction) {
                    Intent::Commit(Change { key, expected: Some(claim), value: Value::Absent })
                } else if is_over {
                    Intent::Evict { seat, epoch }
                } else {
                    Intent::Look
                }
            }
            Value::Number(_) => Intent::Look,
        }
    }

    fn of_worker(&mut self, run: usize, claim: Value, (seat, epoch): (usize, i64)) -> Intent {
        if claim != (Value::Claimed { seat, epoch }) {
            return Intent::Look;
        }
        if self.dice.one_in(4) {
            return Intent::Commit(Change { key: Key::Claim(run), expected: Some(claim), value: Value::Absent });
        }
        self.write(run)
    }

    fn write(&mut self, run: usize) -> Intent {
        let value = Value::Number(self.dice.below(1_000));
        Intent::Commit(Change { key: Key::Run(run), expected: None, value })
    }
}
