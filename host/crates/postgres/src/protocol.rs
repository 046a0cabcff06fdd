//! The protocol of a store's owner, as a machine without clocks, connections and chance.
//!
//! [`Owner`] holds what a process knows of its right to its row: that of the owner of the store, or the seat of a
//! worker. `lease.rs` and `writer.rs` send the statements and tell it what came back. It decides what that means: until
//! when nobody else may claim the row, whether a commit landed, is sent again or failed, and whether the store is lost.
//! `simulation.rs` runs the same machine, with several processes, one database and a network under seeded schedules.
//!
//! Other seats change the values that a commit has conditions on. So a condition that does not hold now may hold again
//! when an attempt of unknown outcome arrives late. Before a caller is told that its commit did nothing, the head is
//! moved without the commit then, by [`VOID_HEADS`]: no attempt before lands any more, and the head tells what moved
//! it.

#[cfg(test)]
mod simulation;

/// The number by which the head is moved to keep attempts of unknown outcome from landing. A commit moves it by one.
pub(crate) const VOID_HEADS: i64 = 2;

/// The claim that every statement of an owner proves, beside the nonce.
///
/// The nonce alone would not do: an attempt to claim that lands late, after another process came and went, puts the
/// same nonce there again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Proof {
    /// The number of the claim.
    pub(crate) epoch: i64,
    /// The timeline of the server at the claim.
    pub(crate) timeline: i32,
}

/// The owner's row as a statement without effect found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OwnerRow {
    /// True where the nonce is that of this process.
    pub(crate) is_ours: bool,
    pub(crate) epoch: i64,
    pub(crate) head: i64,
    /// The timeline of the server at the claim that the row holds.
    pub(crate) claimed_on: Option<i32>,
    /// The timeline of the server that answered.
    pub(crate) timeline: i32,
    /// False once the lease ran out.
    pub(crate) is_in_time: bool,
    /// False where the server acknowledges what it may lose.
    pub(crate) is_durable: bool,
}

/// An event of a statement of this process, or of the process.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Input {
    /// A claim landed. The lease is counted from before it was sent, since the database counts from after that.
    Claimed { sent_ms: u64, proof: Proof, head: i64 },
    /// A renewal landed.
    Renewed { sent_ms: u64 },
    /// A renewal found nothing to renew, and then this row; none: it is gone.
    NotRenewed(Option<OwnerRow>),
    /// Something happened to the commit that is being made. There is one at a time.
    Commit(CommitEvent),
    /// The store is about to be given back.
    GivenBack,
    /// The task that commits ended by a defect.
    Defect,
}

/// An event of a commit.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CommitEvent {
    /// The statement moved the head.
    Moved,
    /// The head was moved without the commit.
    Voided,
    /// The statement did nothing, and then this row was found; none: it is gone.
    Still {
        /// True where the statement found conditions that do not hold.
        is_broken: bool,
        row: Option<OwnerRow>,
    },
    /// An attempt met an error.
    Failed(Failure),
    /// The callers wait no longer.
    TooLate,
}

/// The meaning of an error for a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The attempt did nothing, and another one may land.
    Again,
    /// Nobody knows whether the attempt landed or will land.
    Unknown,
    /// The attempt did nothing, and another one would fail in the same way.
    Final,
}

/// The consequence of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Nothing is lost, and no commit is decided.
    Stands,
    /// The commit is durable.
    Landed,
    /// The commit did nothing: its conditions do not hold.
    Conflicting,
    /// The commit is sent again as it was.
    Repeat(Obstacle),
    /// The commit did nothing, and is not sent again.
    Failed,
}

/// An obstacle that an attempt to commit met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// An error.
    Error,
    /// A server that acknowledges what it may lose.
    NotDurable,
    /// Conditions that do not hold, while an attempt before may still land: from here on the head is moved without the
    /// commit, in place of the commit.
    MayStillLand,
    /// A lease that had run out, and that nobody took.
    RanOut {
        /// False where it is renewed before the commit is sent again.
        is_renewed: bool,
    },
}

/// The reason why the store is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// The row has another claim, or none.
    NotOurs,
    /// Another process had the store before a late claim of this one landed.
    Reclaimed,
    /// The server was promoted, and may lack commits.
    Promoted { from: i32, to: i32 },
    /// The row is gone.
    NoRow,
    /// The head was moved, or moved back, by somebody else.
    Head { expected: i64, found: i64 },
    /// Nobody knows whether a commit landed, and its callers wait no longer.
    UnknownOutcome,
    /// The task that commits ended by a defect.
    Defect,
}

/// The knowledge of a process about its right to a store.
pub(crate) struct Owner {
    lasts_ms: u64,
    state: State,
}

#[derive(Clone, Copy)]
enum State {
    /// The store is not claimed yet, or given back.
    Seeking,
    Holding(Holding),
    Lost(Loss),
}

#[derive(Clone, Copy)]
struct Holding {
    proof: Proof,
    /// The end of the lease by the clock of this process.
    until_ms: u64,
    /// The number of commits so far.
    head: i64,
    doubt: Doubt,
}

/// The doubt about the present commit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Doubt {
    Nothing,
    /// An attempt may have landed or may land.
    Attempt,
    /// As before, and the head may have been moved without the commit, or may be.
    Void,
}

impl Owner {
    /// A process without a claim. Its leases last so long.
    pub(crate) fn new(lasts_ms: u64) -> Self {
        Self { lasts_ms, state: State::Seeking }
    }

    /// Takes an input. Once the store is lost every further one tells so, but for a commit that landed all the same.
    pub(crate) fn step(&mut self, input: Input) -> Result<Outcome, Loss> {
        match self.next(input) {
            Ok((state, outcome)) => {
                self.state = state;
                Ok(outcome)
            }
            Err(loss) => {
                self.state = State::Lost(loss);
                Err(loss)
            }
        }
    }

    /// The claim that a statement proves, and the head that a commit expects.
    pub(crate) fn held(&self) -> Result<(Proof, i64), Loss> {
        match self.state {
            State::Seeking => Err(Loss::NotOurs),
            State::Holding(holding) => Ok((holding.proof, holding.head)),
            State::Lost(loss) => Err(loss),
        }
    }

    /// The loss that a row shows, which may be that of another server.
    pub(crate) fn loss(&self, row: Option<OwnerRow>) -> Option<Loss> {
        match self.state {
            State::Holding(holding) => holding.expect(row).err(),
            State::Seeking | State::Lost(_) => self.held().err(),
        }
    }

    /// The time for which nobody else may claim the store. An effect begins only while there is some left.
    pub(crate) fn left_ms(&self, now_ms: u64) -> u64 {
        match self.state {
            State::Holding(holding) => holding.until_ms.saturating_sub(now_ms),
            State::Seeking | State::Lost(_) => 0,
        }
    }

    /// The time until the lease is renewed: at the end of its first half, also where the last answer came late.
    pub(crate) fn renew_in_ms(&self, now_ms: u64) -> u64 {
        self.left_ms(now_ms).saturating_sub(self.lasts_ms / 2)
    }

    fn next(&self, input: Input) -> Result<(State, Outcome), Loss> {
        match (self.state, input) {
            // It is durable, whatever was found out since it was sent.
            (state @ (State::Seeking | State::Lost(_)), Input::Commit(CommitEvent::Moved)) => {
                Ok((state, Outcome::Landed))
            }
            (State::Lost(loss), _) => Err(loss),
            (_, Input::Defect) => Err(Loss::Defect),
            (_, Input::GivenBack) => Ok((State::Seeking, Outcome::Stands)),
            (_, Input::Claimed { sent_ms, proof, head }) => {
                let until_ms = sent_ms.saturating_add(self.lasts_ms);
                Ok((State::Holding(Holding { proof, until_ms, head, doubt: Doubt::Nothing }), Outcome::Stands))
            }
            (State::Seeking, Input::Renewed { .. } | Input::NotRenewed(_)) => Ok((State::Seeking, Outcome::Stands)),
            (State::Seeking, Input::Commit(_)) => Ok((State::Seeking, Outcome::Failed)),
            (State::Holding(holding), Input::Renewed { sent_ms }) => {
                // Answers may come in another order than the statements went.
                let until_ms = holding.until_ms.max(sent_ms.saturating_add(self.lasts_ms));
                Ok((State::Holding(Holding { until_ms, ..holding }), Outcome::Stands))
            }
            (State::Holding(holding), Input::NotRenewed(row)) => {
                holding.expect(row)?;
                Ok((State::Holding(holding), Outcome::Stands))
            }
            (State::Holding(mut holding), Input::Commit(event)) => {
                let outcome = holding.settle(event)?;
                Ok((State::Holding(holding), outcome))
            }
        }
    }
}

impl Holding {
    fn settle(&mut self, event: CommitEvent) -> Result<Outcome, Loss> {
        match event {
            CommitEvent::Moved => Ok(self.landed()),
            CommitEvent::Voided => Ok(self.voided()),
            CommitEvent::Still { is_broken, row } => self.explain(is_broken, row),
            CommitEvent::Failed(Failure::Unknown) => {
                if self.doubt == Doubt::Nothing {
                    self.doubt = Doubt::Attempt;
                }
                Ok(Outcome::Repeat(Obstacle::Error))
            }
            CommitEvent::Failed(Failure::Final) if self.doubt == Doubt::Nothing => Ok(Outcome::Failed),
            CommitEvent::Failed(Failure::Again | Failure::Final) => Ok(Outcome::Repeat(Obstacle::Error)),
            CommitEvent::TooLate if self.doubt == Doubt::Nothing => Ok(Outcome::Failed),
            CommitEvent::TooLate => Err(Loss::UnknownOutcome),
        }
    }

    /// The reason why a statement did nothing: the store is lost, an attempt before landed, its conditions do not hold,
    /// or it was no time for it. The order counts: a commit that landed breaks its own conditions.
    fn explain(&mut self, is_broken: bool, row: Option<OwnerRow>) -> Result<Outcome, Loss> {
        let row = self.expect(row)?;
        if self.doubt != Doubt::Nothing && row.head == self.head.saturating_add(1) {
            return Ok(self.landed());
        }
        if self.doubt == Doubt::Void && row.head == self.head.saturating_add(VOID_HEADS) {
            return Ok(self.voided());
        }
        if row.head != self.head {
            return Err(Loss::Head { expected: self.head, found: row.head });
        }
        if is_broken && self.doubt == Doubt::Nothing {
            return Ok(Outcome::Conflicting);
        }
        if is_broken {
            self.doubt = Doubt::Void;
            return Ok(Outcome::Repeat(Obstacle::MayStillLand));
        }
        let ran_out = Obstacle::RanOut { is_renewed: row.is_in_time };
        Ok(Outcome::Repeat(if row.is_durable { ran_out } else { Obstacle::NotDurable }))
    }

    fn landed(&mut self) -> Outcome {
        self.head = self.head.saturating_add(1);
        self.doubt = Doubt::Nothing;
        Outcome::Landed
    }

    fn voided(&mut self) -> Outcome {
        self.head = self.head.saturating_add(VOID_HEADS);
        self.doubt = Doubt::Nothing;
        Outcome::Conflicting
    }

    /// Expects that a row has this claim, on the server of this claim.
    fn expect(&self, row: Option<OwnerRow>) -> Result<OwnerRow, Loss> {
        let row = row.ok_or(Loss::NoRow)?;
        let Proof { epoch, timeline } = self.proof;
        if !row.is_ours {
            return Err(Loss::NotOurs);
        }
        if row.claimed_on != Some(timeline) || row.timeline != timeline {
            return Err(Loss::Promoted { from: timeline, to: row.timeline });
        }
        if row.epoch != epoch {
            return Err(Loss::Reclaimed);
        }
        Ok(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROOF: Proof = Proof { epoch: 3, timeline: 1 };

    fn row(head: i64) -> OwnerRow {
        OwnerRow { is_ours: true, epoch: 3, head, claimed_on: Some(1), timeline: 1, is_in_time: true, is_durable: true }
    }

    fn holding() -> Owner {
        let mut owner = Owner::new(10_000);
        assert_eq!(owner.step(Input::Claimed { sent_ms: 500, proof: PROOF, head: 7 }), Ok(Outcome::Stands));
        owner
    }

    #[test]
    fn a_lease_is_counted_from_before_its_statement_and_ends_with_a_loss() {
        let mut owner = holding();
        let left = |owner: &Owner, now| (owner.left_ms(now), owner.renew_in_ms(now));
        assert_eq!(
            [left(&owner, 500), left(&owner, 5_500), left(&owner, 10_500)],
            [(10_000, 5_000), (5_000, 0), (0, 0)]
        );
        assert_eq!(owner.step(Input::Renewed { sent_ms: 4_000 }), Ok(Outcome::Stands));
        assert_eq!(owner.step(Input::Renewed { sent_ms: 3_000 }), Ok(Outcome::Stands));
        assert_eq!(left(&owner, 9_000), (5_000, 0), "an answer that comes late takes nothing away");
        assert_eq!(owner.step(Input::NotRenewed(Some(row(7)))), Ok(Outcome::Stands));
        assert_eq!(owner.step(Input::NotRenewed(None)), Err(Loss::NoRow));
        assert_eq!(owner.step(Input::Renewed { sent_ms: 9_000 }), Err(Loss::NoRow));
        assert_eq!((owner.left_ms(9_000), owner.held()), (0, Err(Loss::NoRow)));
        let mut owner = holding();
        assert_eq!(owner.step(Input::GivenBack), Ok(Outcome::Stands));
        assert_eq!(owner.step(Input::Renewed { sent_ms: 600 }), Ok(Outcome::Stands));
        assert_eq!(owner.left_ms(600), 0, "what was given back is not renewed");
    }

    #[test]
    fn a_row_of_another_claim_or_server_is_a_loss() {
        let check = |row: OwnerRow, expected| assert_eq!(holding().loss(Some(row)), expected, "{row:?}");
        check(row(7), None);
        check(OwnerRow { is_in_time: false, is_durable: false, ..row(9) }, None);
        check(OwnerRow { is_ours: false, timeline: 2, ..row(7) }, Some(Loss::NotOurs));
        check(OwnerRow { epoch: 4, ..row(7) }, Some(Loss::Reclaimed));
        let promoted = Some(Loss::Promoted { from: 1, to: 2 });
        check(OwnerRow { timeline: 2, ..row(7) }, promoted);
        check(OwnerRow { timeline: 2, claimed_on: Some(2), ..row(7) }, promoted);
        assert_eq!((holding().loss(None), Owner::new(1).loss(Some(row(7)))), (Some(Loss::NoRow), Some(Loss::NotOurs)));
    }

    #[test]
    fn what_became_of_a_commit_is_told_by_the_head_and_never_guessed() {
        let still = |is_broken, row| CommitEvent::Still { is_broken, row: Some(row) };
        let unknown = CommitEvent::Failed(Failure::Unknown);
        let again = Ok(Outcome::Repeat(Obstacle::Error));
        let check = |events: &[CommitEvent], expected: Result<Outcome, Loss>, head: Result<i64, Loss>| {
            let mut owner = holding();
            let mut last = None;
            for event in events {
                last = Some(owner.step(Input::Commit(*event)));
            }
            assert_eq!(last, Some(expected), "{events:?}");
            assert_eq!(owner.held().map(|(_, head)| head), head, "{events:?}");
        };
        check(&[CommitEvent::Moved], Ok(Outcome::Landed), Ok(8));
        check(&[unknown], again, Ok(7));
        check(&[unknown, still(true, row(8))], Ok(Outcome::Landed), Ok(8));
        check(&[still(true, row(7))], Ok(Outcome::Conflicting), Ok(7));
        check(&[still(true, row(7)), CommitEvent::TooLate], Ok(Outcome::Failed), Ok(7));
        let elsewhere = Loss::Head { expected: 7, found: 8 };
        check(&[still(false, row(8))], Err(elsewhere), Err(elsewhere));
        check(&[CommitEvent::Failed(Failure::Final)], Ok(Outcome::Failed), Ok(7));
        check(&[unknown, CommitEvent::Failed(Failure::Final)], again, Ok(7));
        check(&[CommitEvent::Failed(Failure::Again), CommitEvent::TooLate], Ok(Outcome::Failed), Ok(7));
        check(&[unknown, CommitEvent::TooLate], Err(Loss::UnknownOutcome), Err(Loss::UnknownOutcome));
        check(&[unknown, CommitEvent::TooLate, CommitEvent::Moved], Ok(Outcome::Landed), Err(Loss::UnknownOutcome));
        let ran_out = |is_renewed| Ok(Outcome::Repeat(Obstacle::RanOut { is_renewed }));
        check(&[still(false, row(7))], ran_out(true), Ok(7));
        check(&[still(false, OwnerRow { is_in_time: false, ..row(7) })], ran_out(false), Ok(7));
        let not_durable = OwnerRow { is_durable: false, is_in_time: false, ..row(7) };
        check(&[still(false, not_durable)], Ok(Outcome::Repeat(Obstacle::NotDurable)), Ok(7));
    }

    #[test]
    fn a_conflict_is_told_only_once_no_attempt_before_can_land_any_more() {
        let still = |is_broken, head| CommitEvent::Still { is_broken, row: Some(row(head)) };
        let unknown = CommitEvent::Failed(Failure::Unknown);
        let may_land = Ok(Outcome::Repeat(Obstacle::MayStillLand));
        let check = |events: &[CommitEvent], expected: Result<Outcome, Loss>, head: Result<i64, Loss>| {
            let mut owner = holding();
            let begun = [unknown, still(true, 7)].map(|event| owner.step(Input::Commit(event)));
            assert_eq!(begun[1], may_land);
            let mut last = may_land;
            for event in events {
                last = owner.step(Input::Commit(*event));
            }
            assert_eq!(last, expected, "{events:?}");
            assert_eq!(owner.held().map(|(_, head)| head), head, "{events:?}");
        };
        check(&[], may_land, Ok(7));
        check(&[CommitEvent::Voided], Ok(Outcome::Conflicting), Ok(9));
        check(&[still(false, 8)], Ok(Outcome::Landed), Ok(8));
        check(&[unknown, still(false, 9)], Ok(Outcome::Conflicting), Ok(9));
        check(&[unknown, still(false, 7)], Ok(Outcome::Repeat(Obstacle::RanOut { is_renewed: true })), Ok(7));
        check(&[CommitEvent::Failed(Failure::Final)], Ok(Outcome::Repeat(Obstacle::Error)), Ok(7));
        check(&[CommitEvent::TooLate], Err(Loss::UnknownOutcome), Err(Loss::UnknownOutcome));
        let elsewhere = Loss::Head { expected: 7, found: 10 };
        check(&[still(false, 10)], Err(elsewhere), Err(elsewhere));
    }
}
