//! The truth of a schedule, which no process knows: claims, commits, and what everybody was told of them.

use super::setting::{LEASE_MS, Violation};

/// A commit.
struct Commit {
    /// The number of the claim under which it was made.
    claim: usize,
    is_announcement: bool,
    /// True where its conditions do not hold.
    conflicts: bool,
    is_applied: bool,
    /// True where it was applied, and a promotion lost it.
    is_lost: bool,
    is_refused: bool,
}

/// The end of a claim that something else replaced.
#[derive(Clone, Copy)]
struct Superseded {
    at_ms: u64,
    /// The time for which its owner may still take the store for its own.
    slack_ms: u64,
}

/// Everything that happened.
pub(super) struct Record {
    /// The time for which an owner may take its lease for longer than the database does.
    slack_ms: u64,
    commits: Vec<Commit>,
    /// By the number of the claim, from 1.
    claims: Vec<Option<Superseded>>,
    pub(super) counts: Counts,
}

/// The number of times that things happened.
#[derive(Debug, Default)]
pub(super) struct Counts {
    claims: u64,
    acknowledged: u64,
    refused: u64,
    effects: u64,
    lost: u64,
    promotions: u64,
}

impl Counts {
    pub(super) fn add(&mut self, other: &Self) {
        self.claims += other.claims;
        self.acknowledged += other.acknowledged;
        self.refused += other.refused;
        self.effects += other.effects;
        self.lost += other.lost;
        self.promotions += other.promotions;
    }

    pub(super) fn has_all(&self) -> bool {
        let all = [self.claims, self.acknowledged, self.refused, self.effects, self.lost, self.promotions];
        all.iter().all(|count| *count > 0)
    }

    pub(super) fn acknowledged(&self) -> u64 {
        self.acknowledged
    }
}

impl Record {
    pub(super) fn new(slack_ms: u64) -> Self {
        Self { slack_ms, commits: Vec::new(), claims: Vec::new(), counts: Counts::default() }
    }

    /// Notes a claim in the place of another one; 0 is none. Returns its number.
    pub(super) fn claim(&mut self, before: usize, now_ms: u64) -> usize {
        self.supersede(before, now_ms, self.slack_ms);
        self.claims.push(None);
        self.counts.claims += 1;
        self.claims.len()
    }

    /// Notes that the server was promoted, and which commits it lacks.
    pub(super) fn promote(&mut self, lost: &[usize], now_ms: u64) {
        for commit in lost {
            self.commits[*commit].is_applied = false;
            self.commits[*commit].is_lost = true;
        }
        // Nobody tells the owner, whose renewal may be lost. It finds out when it renews the lease.
        for number in 1..=self.claims.len() {
            self.supersede(number, now_ms, self.slack_ms.saturating_add(LEASE_MS));
        }
        self.counts.promotions += 1;
    }

    /// Notes the loss of the store, as a process finds it.
    pub(super) fn lose(&mut self) {
        self.counts.lost += 1;
    }

    /// A new commit of a process.
    pub(super) fn commit(&mut self, claim: usize, is_announcement: bool, conflicts: bool) -> usize {
        let (is_applied, is_lost, is_refused) = (false, false, false);
        self.commits.push(Commit { claim, is_announcement, conflicts, is_applied, is_lost, is_refused });
        self.commits.len() - 1
    }

    pub(super) fn is_announcement(&self, commit: usize) -> bool {
        self.commits[commit].is_announcement
    }

    pub(super) fn conflicts(&self, commit: usize) -> bool {
        self.commits[commit].conflicts
    }

    pub(super) fn is_applied(&self, commit: usize) -> bool {
        self.commits[commit].is_applied
    }

    /// Notes that the database applies a commit under a claim.
    pub(super) fn apply(&mut self, number: usize, claim: usize) -> Result<(), Violation> {
        let commit = &mut self.commits[number];
        let wrong = |text: String| Err(Violation::Commit(text));
        if commit.is_applied {
            return wrong(format!("commit {number} was applied twice"));
        }
        if commit.is_refused {
            return wrong(format!("commit {number} was applied after its caller was told that it is not"));
        }
        if commit.claim != claim {
            return wrong(format!("commit {number} of claim {} was applied under claim {claim}", commit.claim));
        }
        commit.is_applied = true;
        Ok(())
    }

    /// Notes that a caller is told that its commit is durable.
    pub(super) fn acknowledge(&mut self, number: usize) -> Result<(), Violation> {
        self.counts.acknowledged += 1;
        if self.was_durable(number) {
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

    /// Notes that an effect begins after its announcement, under a claim.
    pub(super) fn begin_effect(&mut self, announcement: usize, claim: usize, now_ms: u64) -> Result<(), Violation> {
        self.counts.effects += 1;
        if !self.was_durable(announcement) {
            return Err(Violation::Effect(format!("an effect begins without its announcement {announcement}")));
        }
        match self.claims[claim - 1] {
            Some(Superseded { at_ms, slack_ms }) if now_ms - at_ms > slack_ms => Err(Violation::Effect(format!(
                "an effect of claim {claim} begins {} ms after something else took its place",
                now_ms - at_ms
            ))),
            _ => Ok(()),
        }
    }

    /// True for a commit that is there, and for one that a promotion lost.
    fn was_durable(&self, number: usize) -> bool {
        self.commits[number].is_applied || self.commits[number].is_lost
    }

    fn supersede(&mut self, number: usize, at_ms: u64, slack_ms: u64) {
        if let Some(claim) = number.checked_sub(1).and_then(|at| self.claims.get_mut(at))
            && claim.is_none()
        {
            *claim = Some(Superseded { at_ms, slack_ms });
        }
    }
}
