//! A schedule: faults at random, and then a time without any.

use super::message::{Lane, Message, Packet, Request};
use super::process::Phase;
use super::record::Counts;
use super::setting::{LEASE_MS, SKEW_MS_MAX, Violation};
use super::world::World;

/// Steps with faults.
const STEPS: u32 = 100;

/// Promotions in a schedule, at most.
const PROMOTIONS_MAX: u32 = 2;

/// A pace of the time without faults, in which every process gets its turn.
const PACE_MS: u64 = LEASE_MS / 8;

/// The time after the last fault within which somebody holds the store: a lease that was just renewed, by a slow clock
/// that was behind the former one, and the next look of a standby.
const SETTLED_MS_MAX: u64 = 2 * LEASE_MS + LEASE_MS / 4 + SKEW_MS_MAX;

/// The time for which whoever holds the store then is watched.
const WATCHED_MS: u64 = LEASE_MS + LEASE_MS / 2;

impl World {
    /// Runs the schedule to its end; what happened.
    pub(super) fn run(&mut self) -> Result<Counts, Violation> {
        let (mut promotions, mut is_clock_set) = (0, false);
        for _ in 0..STEPS {
            self.now_ms += self.dice.below(200);
            match self.dice.below(256) {
                0..140 => self.deliver_one()?,
                140..232 => {
                    let at = self.somebody();
                    self.act(at)?;
                }
                232..242 => self.now_ms += self.dice.below(LEASE_MS),
                242..245 => self.stop_somebody(),
                245..248 => {
                    let at = self.somebody();
                    self.processes[at].phase = Phase::Ended;
                    self.note(format_args!("{at} is killed"));
                }
                248..250 if promotions < PROMOTIONS_MAX => {
                    promotions += 1;
                    self.note(format_args!("a standby is promoted"));
                    self.database.promote(&mut self.dice, self.now_ms, &mut self.record);
                }
                250 if !is_clock_set => {
                    is_clock_set = true;
                    self.note(format_args!("the clock of the database is set"));
                    self.database.set_clock(&mut self.dice);
                }
                251 => {
                    let is_durable = !self.database.is_durable();
                    self.database.set_durable(is_durable);
                    self.note(format_args!("commits are durable: {is_durable}"));
                }
                252.. => {
                    let at = self.somebody();
                    let lane = if self.dice.one_in(2) { Lane::Keeper } else { Lane::Writer };
                    self.cut(at, lane);
                }
                _ => {}
            }
        }
        self.calm_down()?;
        self.expect_holder()?;
        Ok(std::mem::take(&mut self.record.counts))
    }

    fn somebody(&mut self) -> usize {
        self.dice.place(self.processes.len())
    }

    fn stop_somebody(&mut self) {
        let at = self.somebody();
        let wakes_ms = self.now_ms + self.dice.below(2 * LEASE_MS);
        self.processes[at].wakes_ms = wakes_ms;
        self.note(format_args!("{at} stops for {} ms", wakes_ms - self.now_ms));
    }

    /// Has any message arrive, whatever was sent before it; or loses it, or has it arrive and come again.
    fn deliver_one(&mut self) -> Result<(), Violation> {
        if self.network.is_empty() {
            return Ok(());
        }
        let place = self.dice.place(self.network.len());
        let packet = self.network[place];
        let is_answer = matches!(packet.message, Message::Answer(_));
        if is_answer && self.processes[packet.process].wakes_ms > self.now_ms {
            return Ok(());
        }
        let chance = self.dice.below(20);
        if !comes_again(packet, chance) {
            self.network.swap_remove(place);
        }
        if chance == 19 {
            self.note(format_args!("lost on its way: {packet:?}"));
            return Ok(());
        }
        self.arrive(packet)
    }

    /// Ends all faults: what is on its way arrives, and everybody is awake.
    fn calm_down(&mut self) -> Result<(), Violation> {
        self.note(format_args!("no faults from here on"));
        self.database.set_durable(true);
        for at in 0..self.processes.len() {
            self.processes[at].wakes_ms = 0;
            self.cut(at, Lane::Keeper);
            self.cut(at, Lane::Writer);
        }
        self.deliver_all()
    }

    fn deliver_all(&mut self) -> Result<(), Violation> {
        while !self.network.is_empty() {
            let packet = self.network.remove(0);
            self.arrive(packet)?;
        }
        Ok(())
    }

    /// Expects that somebody holds the store soon, commits, and keeps it.
    fn expect_holder(&mut self) -> Result<(), Violation> {
        let began_ms = self.now_ms;
        let mut found: Option<(usize, u32, u64)> = None;
        loop {
            self.now_ms += PACE_MS;
            for at in 0..self.processes.len() {
                if !self.take_turn(at)? {
                    continue;
                }
                let (first, nonce, _) = *found.get_or_insert((at, self.processes[at].nonce, self.now_ms));
                if (at, self.processes[at].nonce) != (first, nonce) {
                    return Err(Violation::Holder(format!("{at} took the store from {first} without a fault")));
                }
            }
            match found {
                None if self.now_ms - began_ms > SETTLED_MS_MAX => {
                    return Err(Violation::Holder("nobody holds the store".to_owned()));
                }
                Some((at, _, since_ms)) if self.now_ms - since_ms > WATCHED_MS => {
                    return match self.processes[at].phase {
                        Phase::Working => Ok(()),
                        Phase::Seeking | Phase::Ended => Err(Violation::Holder(format!("{at} did not keep the store"))),
                    };
                }
                _ => {}
            }
        }
    }

    /// Has a process do what it does without faults; true: it holds the store, and committed.
    fn take_turn(&mut self, at: usize) -> Result<bool, Violation> {
        if self.processes[at].phase == Phase::Ended {
            self.start_again(at);
        }
        let process = &self.processes[at];
        let now_ms = process.now_ms(self.now_ms);
        if process.phase == Phase::Seeking {
            self.claim(at);
        } else if process.owner.renew_in_ms(now_ms) == 0 {
            self.renew(at);
        }
        self.deliver_all()?;
        if self.processes[at].phase != Phase::Working {
            return Ok(false);
        }
        let before = self.record.counts.acknowledged();
        self.commit(at, false, false);
        self.deliver_all()?;
        let process = &self.processes[at];
        Ok(self.record.counts.acknowledged() > before && process.owner.left_ms(process.now_ms(self.now_ms)) > 0)
    }
}

/// True for statements about the lease that are carried out now and once more later. A commit is sent again by its
/// process alone.
fn comes_again(packet: Packet, chance: u64) -> bool {
    match packet.message {
        // An attempt to claim that lands late is the most dangerous one.
        Message::Request(Request::Claim { .. }) => chance < 8,
        Message::Request(Request::Renew { .. } | Request::Status { .. } | Request::GiveBack { .. }) => chance < 2,
        Message::Request(Request::Append { .. }) | Message::Answer(_) => false,
    }
}
