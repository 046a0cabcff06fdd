//! Delegates work to a sub-agent, which is an invocation of its own with a journal of its own.
//!
//! Its name is derived from the parent's entry, so an unfinished delegation resumes its child. The end
//! of the child's journal and the parent's answer are one transaction, so neither is there alone.

use crate::ctx::Ctx;
use crate::stop::Stop;
use futures_util::future::join_all;
use longhaul_bindings::imports::delegate::{self, Assignment};
use longhaul_bindings::types::Outcome as BoundOutcome;
use longhaul_core::event::WorkUsage;
use longhaul_core::journal::{EffectClass, EntryHandle};
use longhaul_core::memory::Trust;
use longhaul_core::text::truncate;
use longhaul_core::tool::{Delegate, DelegateError, Delegated, Interrupted};
use longhaul_core::work::{Outcome, Task};
use longhaul_core::{InvocationId, LimitHit};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Sub-agents that one `run-many` may start.
const ASSIGNMENTS_AT_ONCE_MAX: usize = 64;

type Answer = Result<Outcome, DelegateError>;

/// The journal's record of a delegation.
#[derive(Serialize, Deserialize)]
struct StoredDelegation {
    answer: Answer,
    used: WorkUsage,
    /// A journal of an earlier version has no such field.
    #[serde(default)]
    heard: Trust,
}

impl delegate::Host for Ctx {
    async fn run(&mut self, assignment: Assignment) -> wasmtime::Result<Result<BoundOutcome, delegate::DelegateError>> {
        let mut answers = self.delegate_each(vec![assignment]).await?;
        Ok(bound(answers.pop().unwrap_or_else(|| Err(DelegateError::Failed("no answer".into())))))
    }

    async fn run_many(
        &mut self,
        assignments: Vec<Assignment>,
    ) -> wasmtime::Result<Vec<Result<BoundOutcome, delegate::DelegateError>>> {
        if assignments.len() > ASSIGNMENTS_AT_ONCE_MAX {
            let text =
                format!("at most {ASSIGNMENTS_AT_ONCE_MAX} assignments at once, asked for {}", assignments.len());
            return Ok(assignments.iter().map(|_| Err(delegate::DelegateError::Failed(text.clone()))).collect());
        }
        Ok(self.delegate_each(assignments).await?.into_iter().map(bound).collect())
    }
}

fn bound(answer: Answer) -> Result<BoundOutcome, delegate::DelegateError> {
    answer.map(BoundOutcome::from).map_err(delegate::DelegateError::from)
}

/// A delegation in progress: the known answer, or how to get it.
enum Pending {
    Known(Answer),
    Work(EntryHandle, String, Box<Task>),
}

/// The result of a delegation.
enum DelegationResult {
    Known(Answer),
    Worked(EntryHandle, String, Result<Delegated, Interrupted>),
}

async fn work(delegate: &dyn Delegate, caller: &InvocationId, told: Trust, pending: Pending) -> DelegationResult {
    match pending {
        Pending::Known(answer) => DelegationResult::Known(answer),
        Pending::Work(handle, agent, task) => {
            let child = caller.child(handle.entry);
            let delegated = delegate.run(child, &agent, *task, told).await;
            DelegationResult::Worked(handle, agent, delegated)
        }
    }
}

impl Ctx {
    /// Announces all in order, runs them in parallel, and returns the answers in order.
    async fn delegate_each(&mut self, assignments: Vec<Assignment>) -> Result<Vec<Answer>, Stop> {
        let told = self.heard;
        let mut pending = Vec::with_capacity(assignments.len());
        for assignment in assignments {
            pending.push(self.announce_delegation(assignment).await?);
        }
        // A cancelled sub-agent waits for its effects in flight, so its caller waits for it.
        let on_its_way = self.in_flight.leave(EffectClass::Acts);
        let (delegate, invocation) = (Arc::clone(&self.services.delegate), self.invocation.clone());
        let done = join_all(pending.into_iter().map(|one| work(&*delegate, &invocation, told, one))).await;
        drop(on_its_way);
        self.keep_each(done).await
    }

    /// Stores all available answers, even when a sibling ends the invocation.
    async fn keep_each(&mut self, done: Vec<DelegationResult>) -> Result<Vec<Answer>, Stop> {
        let (mut answers, mut broken) = (Vec::new(), None);
        for one in done {
            match one {
                DelegationResult::Known(answer) => answers.push(answer),
                DelegationResult::Worked(handle, agent, Ok(delegated)) => {
                    answers.push(self.keep_delegated(handle, &agent, delegated).await?);
                }
                DelegationResult::Worked(_, _, Err(why)) => broken = broken.or(Some(why)),
            }
        }
        broken.map_or(Ok(answers), |why| Err(Stop::from(why)))
    }

    async fn announce_delegation(&mut self, assignment: Assignment) -> Result<Pending, Stop> {
        self.hears(Trust::ToolOutput, "");
        self.delegations_asked = self.delegations_asked.saturating_add(1);
        let (agent, task) = (assignment.agent, Task::from(assignment.task));
        let summary = truncate(&format!("{agent} {}", task.instruction), 160);
        let known = self.ask_repeatable("delegate.run", summary, &(&agent, &task), EffectClass::Idempotent).await?;
        let handle = match known {
            Ok(kept) => return Ok(Pending::Known(self.delegated(&agent, kept))),
            Err(handle) => handle,
        };
        if let Some(refusal) = self.refuse_delegation(&agent) {
            // A refusal is an entry too: a replay gives the same refusal, even if the grant was corrected since.
            let refused = Delegated::refused(refusal);
            return Ok(Pending::Known(self.keep_delegated(handle, &agent, refused).await?));
        }
        Ok(Pending::Work(handle, agent, Box::new(task)))
    }

    fn refuse_delegation(&self, agent: &str) -> Option<DelegateError> {
        if let Err(denial) = self.grants.check_agent(agent) {
            return Some(DelegateError::Denied(denial));
        }
        let (depth, depth_max) = (self.invocation.depth().saturating_add(1), self.limits.delegation_depth_max);
        if depth > depth_max {
            let hit = LimitHit::new("delegation_depth_max", depth.into(), depth_max.into());
            return Some(DelegateError::Limit(hit));
        }
        let (asked, asked_max) = (self.delegations_asked, self.limits.delegations_max);
        (asked > asked_max)
            .then(|| DelegateError::Limit(LimitHit::new("delegations_max", asked.into(), asked_max.into())))
    }

    async fn keep_delegated(&mut self, handle: EntryHandle, agent: &str, delegated: Delegated) -> Result<Answer, Stop> {
        let Delegated { answer, used, heard, closing } = delegated;
        let kept = self.answer_with(handle, StoredDelegation { answer, used, heard }, closing).await?;
        Ok(self.delegated(agent, kept))
    }

    fn delegated(&mut self, agent: &str, kept: StoredDelegation) -> Answer {
        self.delegated = self.delegated.plus(kept.used);
        self.hears(kept.heard, &format!("the agent `{agent}`"));
        kept.answer
    }
}

impl From<Interrupted> for Stop {
    fn from(why: Interrupted) -> Self {
        match why {
            Interrupted::Parked(question) => Self::Journal(longhaul_core::journal::JournalError::Parked(question)),
            Interrupted::Unavailable(outage) => Self::Unavailable(outage),
            Interrupted::Budget(hit) => Self::Budget(hit),
            Interrupted::Rejected(denial) => Self::Rejected(denial),
            Interrupted::Journal(error) => Self::Journal(error),
            Interrupted::Cancelled => Self::Cancelled,
        }
    }
}

#[cfg(test)]
mod tests;
