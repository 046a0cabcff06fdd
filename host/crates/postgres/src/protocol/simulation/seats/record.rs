//! The truth of a schedule, which no process knows: commits, who may make them, and what everybody was told of them.

use super::super::setting::Violation;
use super::message::{Change, KEYS, Key, OWNER, Value};

struct Commit {
    /// The nonce of the process that made it.
    nonce: u32,
    change: Change,
    is_applied: bool,
    /// True where it was applied, and a promotion lost it.
    is_lost: bool,
    is_refused: bool,
}

/// Everything that happened.
#[derive(Default)]
pub(super) struct Record {
    commits: Vec<Commit>,
    pub(super) counts: Counts,
}

/// The number of times that things happened.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) acknowledged: u64,
    pub(super) refused: u64,
    pub(super) overtaken: u64,
    pub(super) voided: u64,
    pub(super) evicted: u64,
    pub(super) lost: u64,
    pub(super) promotions: u64,
    given: u64,
    ended: u64,
    returned: u64,
    written_by_owner: u64,
    written_by_worker: u64,
}

impl Counts {
    pub(super) fn add(&mut self, other: &Self) {
        self.acknowledged += other.acknowledged;
        self.refused += other.refused;
        self.overtaken += other.overtaken;
        self.voided += other.voided;
        self.evicted += other.evicted;
        self.lost += other.lost;
        self.promotions += other.promotions;
        self.given += other.given;
        self.ended += other.ended;
        self.returned += other.returned;
        self.written_by_owner += other.written_by_owner;
        self.written_by_worker += other.written_by_worker;
    }

    pub(super) fn has_all(&self) -> bool {
        let of_commits = [self.acknowledged, self.refused, self.overtaken, self.voided];
        let of_seats = [self.evicted, self.lost, self.promotions];
        let of_runs = [self.given, self.ended, self.returned, self.written_by_owner, self.written_by_worker];
        of_commits.iter().chain(&of_seats).chain(&of_runs).all(|count| *count > 0)
    }
}

impl Record {
    /// A new commit of a process.
    pub(super) fn commit(&mut self, nonce: u32, change: Change) -> usize {
        self.commits.push(Commit { nonce, change, is_applied: false, is_lost: false, is_refused: false });
        self.commits.len() - 1
    }

    pub(super) fn change(&self, number: usize) -> Change {
        self.commits[number].change
    }

    /// Notes that the database applies a commit to the present values, by a claim of a seat.
    pub(super) fn apply(
        &mut self,
        number: usize,
        (seat, nonce, epoch): (usize, Option<u32>, i64),
        values: &[Value; KEYS],
    ) -> Result<(), Violation> {
        let commit = &mut self.commits[number];
        let wrong = |text: String| Err(Violation::Commit(text));
        if commit.is_applied {
            return wrong(format!("commit {number} was applied twice"));
        }
        if commit.is_refused {
            return wrong(format!("commit {number} was applied after its caller was told that it is not"));
        }
        if nonce != Some(commit.nonce) {
            return wrong(format!("commit {number} of {} was applied under the claim of {nonce:?}", commit.nonce));
        }
        let Change { key, expected, value } = commit.change;
        let found = values[key.place()];
        if expected.is_some_and(|expected| expected != found) {
            return wrong(format!("commit {number} was applied, and {key:?} is {found:?} and not {expected:?}"));
        }
        let own = Value::Claimed { seat, epoch };
        let is_permitted = match key {
            Key::Shared => true,
            Key::Claim(_) => seat == OWNER || (found == own && value == Value::Absent),
            Key::Run(run) => {
                let claim = values[Key::Claim(run).place()];
                if seat == OWNER { claim == Value::Absent } else { claim == own }
            }
        };
        if !is_permitted {
            return wrong(format!(
                "commit {number} of seat {seat}, claim {epoch}, changed {key:?} without a claim of it"
            ));
        }
        commit.is_applied = true;
        self.counts.count(seat, key, value);
        Ok(())
    }

    /// Notes that the server was promoted, and which commits it lacks.
    pub(super) fn promote(&mut self, lost: &[usize]) {
        for number in lost {
            self.commits[*number].is_applied = false;
            self.commits[*number].is_lost = true;
        }
        self.counts.promotions += 1;
    }

    /// Notes that a caller is told that its commit is durable.
    pub(super) fn acknowledge(&mut self, number: usize) -> Result<(), Violation> {
        self.counts.acknowledged += 1;
        if self.commits[number].is_applied || self.commits[number].is_lost {
            return Ok(());
        }
        Err(Violation::Commit(format!("commit {number} is not there, and its caller is told that it is")))
    }

    /// Notes that a caller is told that its commit did nothing.
    pub(super) fn refuse(&mut self, number: usize) -> Result<(), Violation> {
        let commit = &mut self.commits[number];
        commit.is_refused = true;
        self.counts.refused += 1;
        if commit.is_applied {
            return Err(Violation::Commit(format!("commit {number} is there, and its caller is told that it is not")));
        }
        Ok(())
    }
}

impl Counts {
    fn count(&mut self, seat: usize, key: Key, value: Value) {
        match (key, value) {
            (Key::Shared, _) => {}
            (Key::Claim(_), Value::Absent) if seat == OWNER => self.ended += 1,
            (Key::Claim(_), Value::Absent) => self.returned += 1,
            (Key::Claim(_), _) => self.given += 1,
            (Key::Run(_), _) if seat == OWNER => self.written_by_owner += 1,
            (Key::Run(_), _) => self.written_by_worker += 1,
        }
    }
}
