//! The world of a schedule: processes, the network and the database, the faults, and the way of a message.

use super::super::setting::{Dice, LEASE_MS, START_MS, Violation};
use super::Omitted;
use super::database::Database;
use super::message::{Answer, Lane, Message, OWNER, Packet, Request, SEATS};
use super::process::{Call, Phase, Process, Purpose};
use super::record::{Counts, Record};
use crate::protocol::{CommitEvent, Failure, Input, Loss, Obstacle, Outcome};
use std::fmt;

/// Steps of a schedule.
const STEPS: u32 = 400;

/// Promotions in a schedule, at most.
const PROMOTIONS_MAX: u32 = 1;

pub(super) struct World {
    pub(super) omitted: Omitted,
    pub(super) dice: Dice,
    /// The true time.
    pub(super) now_ms: u64,
    pub(super) processes: Vec<Process>,
    database: Database,
    network: Vec<Packet>,
    pub(super) record: Record,
    nonces: u32,
    calls: u32,
    events: Option<Vec<String>>,
}

impl World {
    pub(super) fn new(seed: u64, omitted: Omitted) -> Self {
        let mut dice = Dice::of(seed);
        let database = Database::new(&mut dice, omitted);
        let mut world = Self {
            omitted,
            dice,
            now_ms: START_MS,
            processes: Vec::new(),
            database,
            network: Vec::new(),
            record: Record::default(),
            nonces: 0,
            calls: 0,
            events: None,
        };
        for seat in [OWNER].into_iter().chain(OWNER..SEATS) {
            let nonce = world.nonce();
            world.processes.push(Process::new(&mut world.dice, seat, nonce));
        }
        world
    }

    /// Runs the schedule to its end; what happened.
    pub(super) fn run(&mut self) -> Result<Counts, Violation> {
        let (mut promotions, mut is_clock_set) = (0, false);
        for _ in 0..STEPS {
            self.now_ms += self.dice.below(200);
            match self.dice.below(256) {
                0..100 => self.deliver_one()?,
                100..140 => self.finish_one()?,
                140..236 => {
                    let at = self.dice.place(self.processes.len());
                    self.act(at)?;
                }
                236..242 => self.now_ms += self.dice.below(LEASE_MS),
                242..246 => self.stop_somebody(),
                246..248 => {
                    let at = self.dice.place(self.processes.len());
                    self.processes[at].phase = Phase::Ended;
                    self.note(format_args!("{at} is killed"));
                }
                248 if promotions < PROMOTIONS_MAX => {
                    promotions += 1;
                    self.note(format_args!("a standby is promoted"));
                    self.database.promote(&mut self.dice, &mut self.record);
                }
                249 if !is_clock_set => {
                    is_clock_set = true;
                    self.note(format_args!("the clock of the database is set"));
                    self.database.set_clock(&mut self.dice);
                }
                250.. => {
                    let at = self.dice.place(self.processes.len());
                    self.cut(at, Lane::Writer);
                }
                _ => {}
            }
        }
        Ok(std::mem::take(&mut self.record.counts))
    }

    /// Keeps the events from now on.
    pub(super) fn tell(&mut self) {
        self.events = Some(Vec::new());
    }

    pub(super) fn told(&self) -> String {
        self.events.iter().flatten().map(String::as_str).collect::<Vec<_>>().join("\n")
    }

    pub(super) fn note(&mut self, event: fmt::Arguments<'_>) {
        if let Some(events) = &mut self.events {
            events.push(format!("{:>6} {event}", self.now_ms - START_MS));
        }
    }

    /// A nonce that no process had.
    pub(super) fn nonce(&mut self) -> u32 {
        self.nonces += 1;
        self.nonces
    }

    pub(super) fn send(&mut self, at: usize, lane: Lane, purpose: Purpose, request: Request) {
        self.calls += 1;
        let (number, process) = (self.calls, &mut self.processes[at]);
        let sent_ms = process.now_ms(self.now_ms);
        *process.call(lane) = Some(Call { number, purpose, sent_ms });
        self.network.push(Packet { process: at, lane, call: number, message: Message::Request(request) });
        self.note(format_args!("{at} sends {number}: {request:?}"));
    }

    /// Breaks the connection of a task, if it waits for an answer.
    pub(super) fn cut(&mut self, at: usize, lane: Lane) {
        let Some(Call { number, purpose, .. }) = self.processes[at].call(lane).take() else { return };
        self.note(format_args!("{at} waits for {number} no longer"));
        let failure = match purpose {
            Purpose::Commit => Failure::Unknown,
            Purpose::AfterCommit { .. } => Failure::Again,
            Purpose::Claim | Purpose::Renewal | Purpose::AfterRenewal | Purpose::Look | Purpose::Evict { .. } => return,
        };
        if let Err(loss) = self.processes[at].owner.step(Input::Commit(CommitEvent::Failed(failure))) {
            self.lose(at, loss);
        }
    }

    /// Ends a process that lost its seat.
    pub(super) fn lose(&mut self, at: usize, loss: Loss) {
        self.note(format_args!("{at} lost its seat: {loss:?}"));
        self.record.counts.lost += 1;
        self.processes[at].phase = Phase::Ended;
    }

    /// Tells the caller of a commit its outcome, if it has one.
    pub(super) fn settle(&mut self, at: usize, outcome: Outcome) -> Result<(), Violation> {
        let process = &mut self.processes[at];
        let Some(commit) = process.commit else { return Ok(()) };
        match outcome {
            Outcome::Landed => {
                (process.commit, process.is_voiding) = (None, false);
                let change = self.record.change(commit);
                if let Some(look) = &mut process.look {
                    look.values[change.key.place()] = change.value;
                }
                self.note(format_args!("{at} has {commit}"));
                self.record.acknowledge(commit)
            }
            Outcome::Repeat(Obstacle::MayStillLand) if self.omitted != Omitted::Void => {
                process.is_voiding = true;
                self.record.counts.voided += 1;
                Ok(())
            }
            Outcome::Conflicting | Outcome::Failed | Outcome::Repeat(Obstacle::MayStillLand) => {
                (process.commit, process.is_voiding, process.look) = (None, false, None);
                self.note(format_args!("{at} has not {commit}"));
                self.record.refuse(commit)
            }
            Outcome::Stands | Outcome::Repeat(_) => Ok(()),
        }
    }

    fn stop_somebody(&mut self) {
        let at = self.dice.place(self.processes.len());
        let wakes_ms = self.now_ms + self.dice.below(2 * LEASE_MS);
        self.processes[at].wakes_ms = wakes_ms;
        self.note(format_args!("{at} stops for {} ms", wakes_ms - self.now_ms));
    }

    /// Has any message arrive, whatever was sent before it; or loses it, or has it arrive and come again. A commit
    /// comes once over its connection.
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
        let comes_again = !is_answer && !matches!(packet.message, Message::Request(Request::Append(_))) && chance < 2;
        if !comes_again {
            self.network.swap_remove(place);
        }
        if chance == 19 {
            self.note(format_args!("lost on its way: {packet:?}"));
            return Ok(());
        }
        match packet.message {
            Message::Request(request) => {
                if let Some(answer) = self.database.answer(request, packet, self.now_ms) {
                    self.reply(packet, answer);
                }
                Ok(())
            }
            Message::Answer(answer) => self.hear(packet, answer),
        }
    }

    fn finish_one(&mut self) -> Result<(), Violation> {
        if let Some((packet, answer)) = self.database.finish(&mut self.dice, &mut self.record)? {
            self.reply(packet, answer);
        }
        Ok(())
    }

    fn reply(&mut self, packet: Packet, answer: Answer) {
        self.note(format_args!("database, of {}, {}: {answer:?}", packet.process, packet.call));
        self.network.push(Packet { message: Message::Answer(answer), ..packet });
    }

    fn hear(&mut self, packet: Packet, answer: Answer) -> Result<(), Violation> {
        let Packet { process: at, lane, call: number, .. } = packet;
        let process = &mut self.processes[at];
        let call = process.call(lane);
        // The answer to a connection that is given up, or to a process that is gone.
        let Some(Call { purpose, sent_ms, .. }) = call.filter(|call| call.number == number) else { return Ok(()) };
        *call = None;
        if process.phase == Phase::Ended {
            return Ok(());
        }
        self.note(format_args!("{at} hears of {number}"));
        match self.take(at, lane, (purpose, sent_ms), answer) {
            Ok(outcome) => self.settle(at, outcome),
            Err(loss) => {
                self.lose(at, loss);
                Ok(())
            }
        }
    }

    /// Tells the machine of a process an answer, and asks further where it must.
    fn take(
        &mut self,
        at: usize,
        lane: Lane,
        (purpose, sent_ms): (Purpose, u64),
        answer: Answer,
    ) -> Result<Outcome, Loss> {
        let process = &mut self.processes[at];
        let (seat, nonce) = (process.seat, process.nonce);
        match (purpose, answer) {
            (Purpose::Claim, Answer::Claim(Some((proof, head)))) => {
                process.phase = Phase::Working;
                process.owner.step(Input::Claimed { sent_ms, proof, head })
            }
            (Purpose::Renewal, Answer::Renew { is_renewed: true }) => process.owner.step(Input::Renewed { sent_ms }),
            (Purpose::Renewal, Answer::Renew { is_renewed: false }) => {
                self.send(at, lane, Purpose::AfterRenewal, Request::Status { seat, nonce });
                Ok(Outcome::Stands)
            }
            (Purpose::AfterRenewal, Answer::Status(row)) => process.owner.step(Input::NotRenewed(Some(row))),
            (Purpose::Commit, Answer::Append { has_moved: true, .. }) => {
                let event = if process.is_voiding { CommitEvent::Voided } else { CommitEvent::Moved };
                process.owner.step(Input::Commit(event))
            }
            (Purpose::Commit, Answer::Append { has_moved: false, is_broken }) => {
                self.send(at, lane, Purpose::AfterCommit { is_broken }, Request::Status { seat, nonce });
                Ok(Outcome::Stands)
            }
            (Purpose::Commit, Answer::Overtaken) => {
                process.owner.step(Input::Commit(CommitEvent::Failed(Failure::Again)))
            }
            (Purpose::AfterCommit { is_broken }, Answer::Status(row)) => {
                let event = CommitEvent::Still { is_broken, row: Some(row) };
                let outcome = process.owner.step(Input::Commit(event))?;
                if outcome == Outcome::Repeat(Obstacle::RanOut { is_renewed: false }) {
                    let (proof, _) = process.owner.held()?;
                    self.send(at, lane, Purpose::Renewal, Request::Renew { seat, nonce, proof });
                }
                Ok(outcome)
            }
            (Purpose::Look, Answer::Look(look)) => {
                process.look = Some(look);
                Ok(Outcome::Stands)
            }
            (Purpose::Evict { seat, epoch }, Answer::Evict { is_evicted }) => {
                match &mut process.look {
                    Some(look) if is_evicted => look.seats[seat] = (epoch + 1, true),
                    look => *look = None,
                }
                self.record.counts.evicted += u64::from(is_evicted);
                Ok(Outcome::Stands)
            }
            // Another process has the store.
            _ => Ok(Outcome::Stands),
        }
    }
}
