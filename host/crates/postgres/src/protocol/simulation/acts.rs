//! Acts of a process by itself: it claims, renews, commits, begins effects, and gives the store back.

use super::message::{Lane, Request};
use super::process::{Phase, Purpose};
use super::setting::{LeftOut, Violation};
use super::world::World;
use crate::protocol::{CommitEvent, Input};

impl World {
    /// Has a process do something, unless it is stopped.
    pub(super) fn act(&mut self, at: usize) -> Result<(), Violation> {
        let process = &self.processes[at];
        if process.wakes_ms > self.now_ms {
            return Ok(());
        }
        match process.phase {
            Phase::Ended => self.start_again(at),
            Phase::Seeking => self.claim_or_give_up(at),
            Phase::Working => match self.dice.below(16) {
                0..3 => self.renew_or_give_up(at),
                15 if self.dice.one_in(2) => self.give_back(at),
                9..15 if self.processes[at].announced.is_some() => return self.begin_effect(at),
                _ => return self.write(at),
            },
        }
        Ok(())
    }

    pub(super) fn start_again(&mut self, at: usize) {
        let nonce = self.nonce();
        self.processes[at].start_again(nonce);
        self.note(format_args!("{at} begins with nonce {nonce}"));
    }

    pub(super) fn claim(&mut self, at: usize) {
        let nonce = self.processes[at].nonce;
        self.send(at, Lane::Keeper, Purpose::Claim, Request::Claim { nonce });
    }

    pub(super) fn renew(&mut self, at: usize) {
        let process = &self.processes[at];
        if let Ok((proof, _)) = process.owner.held() {
            let nonce = process.nonce;
            self.send(at, Lane::Keeper, Purpose::Renewal, Request::Renew { nonce, proof });
        }
    }

    /// Sends the present commit, or a new one.
    pub(super) fn commit(&mut self, at: usize, is_announcement: bool, conflicts: bool) {
        let process = &mut self.processes[at];
        let Ok((proof, head)) = process.owner.held() else { return };
        let (nonce, claim, record) = (process.nonce, process.claim, &mut self.record);
        let commit = *process.commit.get_or_insert_with(|| record.commit(claim, is_announcement, conflicts));
        let is_void = process.is_voiding;
        self.send(at, Lane::Writer, Purpose::Commit, Request::Append { nonce, proof, head, commit, is_void });
    }

    fn claim_or_give_up(&mut self, at: usize) {
        if self.processes[at].call(Lane::Keeper).is_none() {
            self.claim(at);
        } else if self.dice.one_in(4) {
            self.cut(at, Lane::Keeper);
        }
    }

    fn renew_or_give_up(&mut self, at: usize) {
        if self.processes[at].call(Lane::Keeper).is_none() {
            self.renew(at);
        } else if self.dice.one_in(3) {
            self.cut(at, Lane::Keeper);
        }
    }

    fn write(&mut self, at: usize) -> Result<(), Violation> {
        let process = &mut self.processes[at];
        let (is_waiting, is_new) = (process.call(Lane::Writer).is_some(), process.commit.is_none());
        let may_announce = process.announced.is_none() && process.owner.left_ms(process.now_ms(self.now_ms)) > 0;
        if is_waiting {
            if self.dice.one_in(8) {
                self.cut(at, Lane::Writer);
            }
        } else if is_new {
            let is_announcement = self.dice.below(4) < 3 && may_announce;
            let conflicts = self.dice.one_in(8);
            self.commit(at, is_announcement, conflicts);
        } else if self.dice.one_in(6) {
            self.note(format_args!("the callers of {at} wait no longer"));
            return match self.processes[at].owner.step(Input::Commit(CommitEvent::TooLate)) {
                Ok(outcome) => self.settle(at, outcome),
                Err(loss) => {
                    self.lose(at, loss);
                    Ok(())
                }
            };
        } else {
            self.commit(at, false, false);
        }
        Ok(())
    }

    /// Begins the effect that was announced, or drops it where the lease may have run out.
    fn begin_effect(&mut self, at: usize) -> Result<(), Violation> {
        let process = &mut self.processes[at];
        let Some(announcement) = process.announced else { return Ok(()) };
        let has_lease = process.owner.left_ms(process.now_ms(self.now_ms)) > 0;
        if !has_lease && self.setting.left_out != LeftOut::LookBeforeEffect {
            process.announced = None;
            return Ok(());
        }
        let claim = process.claim;
        // Some effects are tried again under the same announcement.
        if self.dice.one_in(4) {
            self.processes[at].announced = None;
        }
        self.note(format_args!("{at} begins an effect"));
        self.record.begin_effect(announcement, claim, self.now_ms)
    }

    fn give_back(&mut self, at: usize) {
        let process = &mut self.processes[at];
        let nonce = process.nonce;
        // Its tasks have ended before.
        let _ = process.owner.step(Input::GivenBack);
        process.phase = Phase::Ended;
        self.send(at, Lane::Keeper, Purpose::GiveBack, Request::GiveBack { nonce });
    }
}
