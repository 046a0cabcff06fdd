//! Hand work to a sub-agent, which is an invocation of its own with a journal of its own.
//!
//! Its name is derived from the parent's entry, so an unfinished delegation resumes its child.

use crate::ctx::Ctx;
use crate::gate::Stop;
use futures_util::future::join_all;
use longhaul_bindings::imports::delegate::{self, Assignment};
use longhaul_bindings::types::Outcome as BoundOutcome;
use longhaul_core::journal::{EffectClass, Ticket};
use longhaul_core::text::truncate;
use longhaul_core::tool::DelegateError;
use longhaul_core::work::{Outcome, Task};
use std::sync::Arc;

/// Sub-agents that one `run-many` may start.
const ASSIGNMENTS_AT_ONCE_MAX: usize = 64;

type Answer = Result<Outcome, DelegateError>;

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

enum Pending {
    Known(Answer),
    Work(Ticket, String, Box<Task>),
}

impl Ctx {
    async fn delegate_each(&mut self, assignments: Vec<Assignment>) -> Result<Vec<Answer>, Stop> {
        let mut pending = Vec::with_capacity(assignments.len());
        for assignment in assignments {
            pending.push(self.announce_delegation(assignment).await?);
        }
        let delegate = Arc::clone(&self.services.delegate);
        let invocation = self.invocation.clone();
        let work = pending.into_iter().map(|one| {
            let (delegate, invocation) = (&delegate, &invocation);
            async move {
                match one {
                    Pending::Known(answer) => (None, answer),
                    Pending::Work(ticket, agent, task) => {
                        let child = invocation.child(ticket.entry);
                        (Some(ticket), delegate.run(child, &agent, *task).await)
                    }
                }
            }
        });
        let mut answers = Vec::new();
        for (ticket, answer) in join_all(work).await {
            answers.push(match (ticket, answer) {
                (_, Err(DelegateError::Unavailable(outage))) => return Err(Stop::Unavailable(outage)),
                (Some(ticket), answer) => self.answer(ticket, answer).await?,
                (None, answer) => answer,
            });
        }
        Ok(answers)
    }

    async fn announce_delegation(&mut self, assignment: Assignment) -> Result<Pending, Stop> {
        let (agent, task) = (assignment.agent, Task::from(assignment.task));
        let summary = truncate(&format!("{agent} {}", task.instruction), 160);
        let known = self.ask_repeatable("delegate.run", summary, &(&agent, &task), EffectClass::Idempotent).await?;
        let ticket = match known {
            Ok(answer) => return Ok(Pending::Known(answer)),
            Err(ticket) => ticket,
        };
        if let Err(denial) = self.grants.check_agent(&agent) {
            // A refusal is an entry too: a replay answers it again, also when the grant was mended meanwhile.
            return Ok(Pending::Known(self.answer(ticket, Err(DelegateError::Denied(denial))).await?));
        }
        Ok(Pending::Work(ticket, agent, Box::new(task)))
    }
}
