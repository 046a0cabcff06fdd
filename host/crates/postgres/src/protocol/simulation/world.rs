//! The world of a schedule: processes, the network and the database, and the way of a message between them.

use super::database::Database;
use super::message::{Answer, Claimed, Lane, Message, Packet, Request};
use super::process::{Call, Phase, Process, Purpose};
use super::record::Record;
use super::setting::{Dice, LeftOut, START_MS, Setting, Violation};
use crate::protocol::{CommitEvent, Failure, Input, Loss, Obstacle, Outcome};
use std::fmt;

pub(super) struct World {
    pub(super) setting: Setting,
    pub(super) dice: Dice,
    /// The true time.
    pub(super) now_ms: u64,
    pub(super) processes: Vec<Process>,
    pub(super) database: Database,
    pub(super) network: Vec<Packet>,
    pub(super) record: Record,
    nonces: u32,
    calls: u32,
    events: Option<Vec<String>>,
}

impl World {
    pub(super) fn new(seed: u64, setting: Setting) -> Self {
        let mut dice = Dice::of(seed);
        let database = Database::new(&mut dice, setting);
        let mut world = Self {
            setting,
            dice,
            now_ms: START_MS,
            processes: Vec::new(),
            database,
            network: Vec::new(),
            record: Record::new(setting.slack_ms),
            nonces: 0,
            calls: 0,
            events: None,
        };
        for _ in 0..2 + world.dice.below(3) {
            let nonce = world.nonce();
            world.processes.push(Process::new(&mut world.dice, setting, nonce));
        }
        world
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

    /// Has a message arrive.
    pub(super) fn arrive(&mut self, packet: Packet) -> Result<(), Violation> {
        let Packet { process, call, message, .. } = packet;
        match message {
            Message::Request(request) => {
                let answer = self.database.answer(request, self.now_ms, &mut self.record)?;
                self.note(format_args!("database, of {process}, {call}: {answer:?}"));
                self.network.push(Packet { message: Message::Answer(answer), ..packet });
                Ok(())
            }
            Message::Answer(answer) => self.hear(packet, answer),
        }
    }

    /// Breaks the connection of a task, if it waits for an answer.
    pub(super) fn cut(&mut self, at: usize, lane: Lane) {
        let Some(Call { number, purpose, .. }) = self.processes[at].call(lane).take() else { return };
        self.note(format_args!("{at} waits for {number} no longer"));
        let failure = match purpose {
            Purpose::Commit if self.setting.left_out == LeftOut::UnknownOutcome => Failure::Again,
            Purpose::Commit => Failure::Unknown,
            Purpose::AfterCommit { .. } => Failure::Again,
            Purpose::Claim | Purpose::Renewal | Purpose::AfterRenewal | Purpose::GiveBack => return,
        };
        let stepped = self.processes[at].owner.step(Input::Commit(CommitEvent::Failed(failure)));
        if let Err(loss) = stepped {
            self.lose(at, loss);
        }
    }

    /// Ends a process that lost the store.
    pub(super) fn lose(&mut self, at: usize, loss: Loss) {
        self.note(format_args!("{at} lost the store: {loss:?}"));
        self.record.lose();
        self.processes[at].phase = Phase::Ended;
    }

    /// Tells the caller of a commit its outcome, if it has one.
    pub(super) fn settle(&mut self, at: usize, outcome: Outcome) -> Result<(), Violation> {
        let process = &mut self.processes[at];
        let Some(commit) = process.commit else { return Ok(()) };
        match outcome {
            Outcome::Landed => {
                (process.commit, process.is_voiding) = (None, false);
                if self.record.is_announcement(commit) {
                    process.announced = Some(commit);
                }
                self.note(format_args!("{at} has {commit}"));
                self.record.acknowledge(commit)
            }
            Outcome::Conflicting | Outcome::Failed => {
                (process.commit, process.is_voiding) = (None, false);
                self.note(format_args!("{at} has not {commit}"));
                self.record.refuse(commit)
            }
            Outcome::Repeat(Obstacle::MayStillLand) => {
                process.is_voiding = true;
                Ok(())
            }
            Outcome::Stands | Outcome::Repeat(_) => Ok(()),
        }
    }

    fn hear(&mut self, packet: Packet, answer: Answer) -> Result<(), Violation> {
        let Packet { process: at, lane, call: number, .. } = packet;
        let process = &mut self.processes[at];
        let call = process.call(lane);
        // The answer to a connection that is given up, or to a process that is gone.
        let Some(Call { purpose, mut sent_ms, .. }) = call.filter(|call| call.number == number) else { return Ok(()) };
        *call = None;
        if process.phase == Phase::Ended {
            return Ok(());
        }
        if self.setting.left_out == LeftOut::TimeOfSending {
            sent_ms = process.now_ms(self.now_ms);
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
        let nonce = process.nonce;
        match (purpose, answer) {
            (Purpose::Claim, Answer::Claim(Some(Claimed { proof, head, number }))) => {
                (process.phase, process.claim) = (Phase::Working, number);
                process.owner.step(Input::Claimed { sent_ms, proof, head })
            }
            (Purpose::Renewal, Answer::Renew { is_renewed: true }) => process.owner.step(Input::Renewed { sent_ms }),
            (Purpose::Renewal, Answer::Renew { is_renewed: false }) => {
                self.send(at, lane, Purpose::AfterRenewal, Request::Status { nonce });
                Ok(Outcome::Stands)
            }
            (Purpose::AfterRenewal, Answer::Status(row)) => process.owner.step(Input::NotRenewed(Some(row))),
            (Purpose::Commit, Answer::Append { has_moved: true, .. }) => {
                let event = if process.is_voiding { CommitEvent::Voided } else { CommitEvent::Moved };
                process.owner.step(Input::Commit(event))
            }
            (Purpose::Commit, Answer::Append { has_moved: false, is_broken }) => {
                self.send(at, lane, Purpose::AfterCommit { is_broken }, Request::Status { nonce });
                Ok(Outcome::Stands)
            }
            (Purpose::AfterCommit { is_broken }, Answer::Status(row)) => {
                let event = CommitEvent::Still { is_broken, row: Some(row) };
                let outcome = process.owner.step(Input::Commit(event))?;
                if outcome == Outcome::Repeat(Obstacle::RanOut { is_renewed: false }) {
                    let (proof, _) = process.owner.held()?;
                    self.send(at, lane, Purpose::Renewal, Request::Renew { nonce, proof });
                }
                Ok(outcome)
            }
            // Somebody else has the store, or it was given back.
            _ => Ok(Outcome::Stands),
        }
    }
}
