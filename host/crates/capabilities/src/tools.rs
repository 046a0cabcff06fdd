//! Calls the granted tools. A whole call of a tool is one entry of the caller's journal.

use crate::approval::Settled;
use crate::conversation::CALL;
use crate::ctx::Ctx;
use crate::gate::JournalReply;
use crate::in_flight::InFlightEffect;
use crate::leased_effect::while_held;
use crate::remembered::keep_missing;
use crate::stop::Stop;
use futures_util::future::join_all;
use longhaul_bindings::imports::tools;
use longhaul_bindings::tool_types::{
    ToolCall as BoundCall, ToolError as BoundError, ToolInfo as BoundInfo, ToolResult,
};
use longhaul_core::journal::{EffectClass, EntryHandle, Journal, JournalError};
use longhaul_core::memory::Trust;
use longhaul_core::store::{Batch, Store};
use longhaul_core::supervisor::{InvocationTotals, Supervisor, UsageDelta};
use longhaul_core::text::truncate;
use longhaul_core::tool::{EffectRows, ToolCall, ToolError, ToolInfo, ToolOutput, Tools, Verification};
use longhaul_core::{Clock, Denial, Digest, InvocationId, LimitHit, Outage};
use std::sync::Arc;

/// Bytes from which on an answer is kept as content, so that an agent that shows its model the beginning can read on.
const KEPT_BYTES_MIN: usize = 4_000;

/// Calls that one `call-many` may make. Each is an entry, so the journal's cap holds as well.
const CALLS_AT_ONCE_MAX: usize = 64;

type Answer = Result<ToolOutput, ToolError>;

impl tools::Host for Ctx {
    async fn list(&mut self) -> wasmtime::Result<Vec<BoundInfo>> {
        let granted = self.granted_tools().await?;
        Ok(self.with_own_tool(granted).into_iter().map(BoundInfo::from).collect())
    }

    async fn call(&mut self, call: BoundCall) -> wasmtime::Result<Result<ToolResult, BoundError>> {
        let [answer] = self
            .call_each(vec![call.into()])
            .await?
            .try_into()
            .map_err(|_| wasmtime::Error::msg("one call, one answer"))?;
        Ok(bound(answer))
    }

    async fn call_many(&mut self, calls: Vec<BoundCall>) -> wasmtime::Result<Vec<Result<ToolResult, BoundError>>> {
        if calls.len() > CALLS_AT_ONCE_MAX {
            let hit = LimitHit::new("calls_at_once_max", calls.len() as u64, CALLS_AT_ONCE_MAX as u64);
            // They count all the same: an agent names an answer by the number of its call.
            calls.iter().for_each(|_| self.note_call());
            let refused = || Err(BoundError::Limit(hit.clone().into()));
            return Ok(calls.iter().map(|_| refused()).collect());
        }
        let calls = calls.into_iter().map(ToolCall::from).collect();
        Ok(self.call_each(calls).await?.into_iter().map(bound).collect())
    }
}

fn bound(answer: Answer) -> Result<ToolResult, BoundError> {
    answer.map(ToolResult::from).map_err(BoundError::from)
}

/// The name of a function that does not exist. A tool without any function is unavailable, and its description says
/// why.
fn unknown_function(call: &ToolCall, tool: Option<&ToolInfo>) -> String {
    let name = truncate(&format!("{}.{}", call.tool, call.function), 120);
    match tool.filter(|info| info.functions.is_empty()) {
        Some(unavailable) => format!("{name}: {}", unavailable.description),
        None => name,
    }
}

/// A call in progress: the known answer, or how to get it.
enum Pending {
    Known(Answer),
    Work(JournalReply<Answer>, EffectClass, ToolCall, Option<InFlightEffect>),
}

impl Ctx {
    /// The tools' descriptions, one entry of the journal, fetched once for each invocation.
    pub(crate) async fn granted_tools(&mut self) -> Result<Vec<ToolInfo>, Stop> {
        if let Some(infos) = &self.tool_infos {
            return Ok(infos.clone());
        }
        let granted = self.grants.tools.clone();
        // The grants are no argument: a replay gets the recorded list, whatever was granted since.
        let known = self.ask_repeatable("tools.list", granted.join(" "), &(), EffectClass::ReadOnly).await?;
        let infos: Vec<ToolInfo> = match known {
            Ok(infos) => infos,
            Err(handle) => {
                let infos = self.services.tools.list().await.map_err(not_listed)?;
                let infos = infos.into_iter().filter(|info| granted.contains(&info.id)).collect();
                self.answer(handle, infos).await?
            }
        };
        self.tool_infos = Some(infos.clone());
        Ok(infos)
    }

    /// Announces all calls in order, runs them in parallel, and returns the answers in order.
    async fn call_each(&mut self, calls: Vec<ToolCall>) -> Result<Vec<Answer>, Stop> {
        let replays = self.is_replaying();
        self.may_call(calls.len())?;
        let settled = self.approve_each(&calls).await?;
        let told = calls.clone();
        let steps: Vec<u32> = told.iter().map(|call| self.tell_action(call)).collect();
        let first = self.conversations.notes.tools_called.saturating_add(1);
        let mut pending = Vec::with_capacity(calls.len());
        self.set_cleared(true);
        for (call, settled) in calls.into_iter().zip(settled) {
            let answer = match settled {
                Settled::Answered(answer) => Some(answer),
                Settled::Allowed => None,
                Settled::Free => self.undecided_repeat(&call).await?.map(Err),
            };
            pending.push(match answer {
                None => {
                    self.services.approvals.leaves(&call);
                    self.announce(call).await?
                }
                Some(answer) => self.settled(call, answer).await?,
            });
        }
        self.set_cleared(false);
        let doer = Doer {
            invocation: self.invocation.clone(),
            supervisor: Arc::clone(&self.services.supervisor),
            tools: Arc::clone(&self.services.tools),
            journal: self.journal()?,
            store: Arc::clone(&self.services.store),
            clock: Arc::clone(&self.services.clock),
            output_bytes_max: self.limits.host_bytes_max,
            keeps_long: self.can_read(),
        };
        // All are awaited, even when one stops the invocation: a sibling's answer is stored.
        let done = join_all(pending.into_iter().map(|one| doer.finish(one))).await;
        self.clock.entry_was_answered();
        let done = done.into_iter().collect::<Result<Vec<_>, Stop>>()?;
        for ((call, of), (answer, took_ms)) in told.iter().zip(steps).zip(&done) {
            self.tell_observation(of, call, answer, *took_ms);
        }
        let mut known = Batch::new();
        for (number, (answer, took_ms)) in (first..).zip(&done) {
            self.remember_long(number, answer)?;
            if let Some(output) = long(answer).filter(|_| replays && took_ms.is_none() && self.can_read()) {
                known.blob(output.as_bytes().to_vec());
            }
        }
        keep_missing(Arc::clone(&self.services.store), known).await?;
        Ok(done.into_iter().map(|(answer, _)| answer).collect())
    }

    /// Lets the guest read a long answer again, by the number of its call.
    fn remember_long(&mut self, number: u32, answer: &Answer) -> Result<(), Stop> {
        match long(answer) {
            Some(output) if self.can_read() => {
                self.remember_as(format!("{CALL}{number}"), Digest::of(output.as_bytes()))
            }
            _ => Ok(()),
        }
    }

    async fn announce(&mut self, call: ToolCall) -> Result<Pending, Stop> {
        self.note_call();
        let words = if self.services.tools.is_web(&call.tool) { Trust::Web } else { Trust::ToolOutput };
        let origins = call.origins();
        if origins.is_empty() {
            self.hears(words, &call.tool);
        }
        origins.iter().for_each(|origin| self.hears(words, &format!("{} {origin}", call.tool)));
        let infos = self.granted_tools().await?;
        if self.is_own_call(&call, &infos) {
            return self.answer_itself(call).await;
        }
        if let Err(denial) = self.grants.check_tool(&call.tool) {
            return self.keep_answer(call, Err(ToolError::Denied(denial))).await;
        }
        let tool = infos.iter().find(|info| info.id == call.tool);
        let function = tool.and_then(|info| info.functions.iter().find(|function| function.name == call.function));
        let Some(class) = function.map(|function| function.effect) else {
            let unknown = ToolError::UnknownFunction(unknown_function(&call, tool));
            return self.keep_answer(call, Err(unknown)).await;
        };
        // Before its start is durable: from then on its outcome must not get lost.
        let on_its_way = self.in_flight.leave(class);
        let asked = self.ask("tools.call", call.summary(), &call, class).await?;
        Ok(Pending::Work(asked, class, call, on_its_way))
    }
}

impl Ctx {
    /// A call of the host's own tool, which is an entry like any other.
    async fn answer_itself(&mut self, call: ToolCall) -> Result<Pending, Stop> {
        let known = self.ask_repeatable("tools.call", call.summary(), &call, EffectClass::ReadOnly).await?;
        Ok(Pending::Known(match known {
            Ok(answer) => answer,
            Err(handle) => {
                let answer = self.own_call(&call)?;
                self.answer(handle, answer).await?
            }
        }))
    }

    /// A person's answer or refusal takes the place of the call.
    async fn settled(&mut self, call: ToolCall, answer: Answer) -> Result<Pending, Stop> {
        self.note_call();
        self.keep_answer(call, answer).await
    }

    /// A refusal is an entry: a replay gives the same refusal, even if the grant was corrected since.
    async fn keep_answer(&mut self, call: ToolCall, answer: Answer) -> Result<Pending, Stop> {
        let known = self.ask_repeatable("tools.call", call.summary(), &call, EffectClass::ReadOnly).await?;
        Ok(Pending::Known(match known {
            Ok(answer) => answer,
            Err(handle) => {
                let also = kept_long(&answer, self.can_read());
                self.answer_with(handle, answer, also).await?
            }
        }))
    }

    fn note_call(&mut self) {
        let notes = &mut self.conversations.notes;
        notes.tools_called = notes.tools_called.saturating_add(1);
    }
}

/// Executes calls, and stores their answers.
struct Doer {
    invocation: InvocationId,
    supervisor: Arc<dyn Supervisor>,
    tools: Arc<dyn Tools>,
    journal: Arc<dyn Journal>,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    output_bytes_max: u64,
    /// True when the guest can read kept content again.
    keeps_long: bool,
}

impl Doer {
    /// The answer, and how long it took unless it was known before.
    async fn finish(&self, pending: Pending) -> Result<(Answer, Option<u64>), Stop> {
        let begun_ms = self.clock.now_ms();
        let (asked, class, call, _on_its_way) = match pending {
            Pending::Known(answer) => return Ok((answer, None)),
            Pending::Work(asked, class, call, on_its_way) => (asked, class, call, on_its_way),
        };
        let (handle, answer) = match asked {
            JournalReply::Answered(answer) => return Ok((answer, None)),
            JournalReply::Happened(handle, output) => (handle, Ok(ToolOutput { output, truncated: false })),
            JournalReply::Skipped(handle) => (handle, Err(ToolError::Failed("a person decided not to do this".into()))),
            JournalReply::Go(handle) => self.go(handle, class, &call).await?,
            JournalReply::Verify(handle, prepared) => self.verify(handle, &call, &prepared).await?,
        };
        let answer = self.keep(handle, class, &call, bounded(answer, self.output_bytes_max)).await?;
        Ok((answer, Some(self.clock.now_ms().saturating_sub(begun_ms))))
    }

    async fn go(
        &self,
        handle: EntryHandle,
        class: EffectClass,
        call: &ToolCall,
    ) -> Result<(EntryHandle, Answer), Stop> {
        let mut prepared = String::new();
        if class == EffectClass::Verifiable {
            prepared = match self.tools.prepare(call, &handle.key, handle.attempt).await {
                Ok(prepared) => prepared,
                // A call that cannot be prepared has no effect: the error is its answer.
                Err(error) => return Ok((handle, Err(error))),
            };
            self.journal.prepared(&handle, prepared.clone()).await?;
        }
        let calling = self.tools.call(call, &handle.key, handle.attempt);
        let answer = match class {
            EffectClass::Verifiable => while_held(&*self.store, calling).await.map_err(JournalError::Store)?,
            // Whoever takes the store over repeats these with the same key, or asks a person about them.
            EffectClass::ReadOnly | EffectClass::Idempotent | EffectClass::Acts => calling.await,
        };
        // As after a kill: an answer would invite the agent to do it once more.
        match (answer, class) {
            (Err(ToolError::OutcomeUnknown(why)), EffectClass::Acts) => Err(self.question(&handle, &why)),
            (Err(ToolError::OutcomeUnknown(why)), EffectClass::Verifiable) => {
                self.settle(handle, call, &prepared, why).await
            }
            (answer, _) => Ok((handle, answer)),
        }
    }

    /// Asks a tool what came of the call whose answer it lost. A call without an effect is not made again here: whether
    /// the service is there again is for the agent to find out.
    async fn settle(
        &self,
        handle: EntryHandle,
        call: &ToolCall,
        prepared: &str,
        why: String,
    ) -> Result<(EntryHandle, Answer), Stop> {
        match self.tools.verify(call, prepared, &handle.key, handle.attempt).await {
            Ok(Verification::Happened(output)) => Ok((handle, Ok(output))),
            Ok(Verification::DidNotHappen) => {
                let reason = format!("{why}; the call had no effect");
                Ok((handle, Err(ToolError::Unavailable(Outage { reason, retry_after_ms: None }))))
            }
            Ok(Verification::Unknown(why)) => Err(self.question(&handle, &why)),
            Err(error) => Err(self.question(&handle, &error.to_string())),
        }
    }

    async fn verify(
        &self,
        handle: EntryHandle,
        call: &ToolCall,
        prepared: &str,
    ) -> Result<(EntryHandle, Answer), Stop> {
        match self.tools.verify(call, prepared, &handle.key, handle.attempt).await {
            Ok(Verification::Happened(output)) => Ok((handle, Ok(output))),
            Ok(Verification::DidNotHappen) => self.go(handle, EffectClass::Verifiable, call).await,
            Ok(Verification::Unknown(why)) => Err(self.question(&handle, &why)),
            Err(error) => Err(self.question(&handle, &error.to_string())),
        }
    }

    fn question(&self, handle: &EntryHandle, why: &str) -> Stop {
        JournalError::Parked(self.journal.question(handle, why)).into()
    }

    async fn keep(
        &self,
        handle: EntryHandle,
        class: EffectClass,
        call: &ToolCall,
        answer: Answer,
    ) -> Result<Answer, Stop> {
        let text = serde_json::to_string(&answer).map_err(|error| Stop::Broken(error.to_string()))?;
        // The caller reports its tool's usage; this is the row that is stored with the answer.
        let more = UsageDelta { stored_bytes: text.len() as u64, ..UsageDelta::default() };
        let mut also = self.supervisor.spent(&self.invocation, InvocationTotals::default(), more);
        also.ops.extend(kept_long(&answer, self.keeps_long).ops);
        // A failed call may have had an effect as well.
        let EffectRows { batch, held: _until_stored } =
            self.tools.settle(call, class).await.map_err(JournalError::Store)?;
        also.ops.extend(batch.ops);
        self.journal.answer_with(handle, text, also).await?;
        Ok(answer)
    }
}

/// An unavailable tool may come back later; every other error of a tool is a fault of a file.
fn not_listed(error: ToolError) -> Stop {
    match error {
        ToolError::Unavailable(outage) => Stop::Unavailable(outage),
        ToolError::TimedOut(_) | ToolError::Limit(_) => Stop::Broken(error.to_string()),
        other => {
            let fix = "mend what it names, then resume the run".to_owned();
            Stop::Rejected(Denial { reason: other.to_string(), fix })
        }
    }
}

/// The batch that keeps a long answer, for guests that can read it again.
fn kept_long(answer: &Answer, can_read: bool) -> Batch {
    let mut batch = Batch::new();
    if let Some(output) = long(answer).filter(|_| can_read) {
        batch.blob(output.as_bytes().to_vec());
    }
    batch
}

/// The output of an answer that is long enough to be kept.
fn long(answer: &Answer) -> Option<&str> {
    answer.as_ref().ok().map(|output| output.output.as_str()).filter(|output| output.len() >= KEPT_BYTES_MIN)
}

/// A tool's output is untrusted: one over the cap is an error with the cap's name.
fn bounded(answer: Answer, max: u64) -> Answer {
    match answer {
        Ok(output) if output.output.len() as u64 > max => {
            Err(ToolError::Limit(LimitHit::new("host_bytes_max", output.output.len() as u64, max)))
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poll::tests::{START_MS, guest};
    use std::sync::Mutex;

    /// A tool that loses every answer, and can say only this of what came of the call.
    struct Lossy {
        verification: Mutex<Option<Verification>>,
    }

    #[async_trait::async_trait]
    impl Tools for Lossy {
        async fn list(&self) -> Result<Vec<ToolInfo>, ToolError> {
            unreachable!("calls are made without a list here")
        }

        async fn prepare(&self, _: &ToolCall, _: &str, _: u32) -> Result<String, ToolError> {
            Ok("{}".into())
        }

        async fn verify(&self, _: &ToolCall, _: &str, _: &str, _: u32) -> Result<Verification, ToolError> {
            Ok(self.verification.lock().unwrap().take().expect("asked once"))
        }

        async fn call(&self, _: &ToolCall, _: &str, _: u32) -> Result<ToolOutput, ToolError> {
            Err(ToolError::OutcomeUnknown("the connection broke".into()))
        }
    }

    /// The end of a call of such a function: its answer, or the question for a person.
    async fn lost(class: EffectClass, verification: Option<Verification>) -> Result<Answer, String> {
        let (ctx, journal) = guest(Vec::new(), 100, START_MS);
        let doer = Doer {
            invocation: ctx.invocation.clone(),
            supervisor: Arc::clone(&ctx.services.supervisor),
            tools: Arc::new(Lossy { verification: Mutex::new(verification) }),
            journal,
            store: Arc::clone(&ctx.services.store),
            clock: Arc::clone(&ctx.services.clock),
            output_bytes_max: 1_000,
            keeps_long: false,
        };
        let call = ToolCall { tool: "t".into(), function: "f".into(), arguments: "{}".into() };
        let handle = EntryHandle { entry: 0, key: "k".into(), attempt: 1, repeated: false };
        match doer.go(handle, class, &call).await {
            Ok((_, answer)) => Ok(answer),
            Err(Stop::Journal(JournalError::Parked(question))) => Err(question.text),
            Err(stop) => panic!("{stop}"),
        }
    }

    #[tokio::test]
    async fn a_lost_answer_is_asked_after_by_the_class_of_the_function() {
        let unknown = || ToolError::OutcomeUnknown("the connection broke".into());
        assert_eq!(lost(EffectClass::Acts, None).await, Err("the connection broke".into()));
        assert_eq!(lost(EffectClass::ReadOnly, None).await, Ok(Err(unknown())));
        assert_eq!(lost(EffectClass::Idempotent, None).await, Ok(Err(unknown())));

        let output = ToolOutput { output: "1".into(), truncated: false };
        let happened = Verification::Happened(output.clone());
        assert_eq!(lost(EffectClass::Verifiable, Some(happened)).await, Ok(Ok(output)));
        let outage = Outage { reason: "the connection broke; the call had no effect".into(), retry_after_ms: None };
        let not = lost(EffectClass::Verifiable, Some(Verification::DidNotHappen)).await;
        assert_eq!(not, Ok(Err(ToolError::Unavailable(outage))));
        let unsure = lost(EffectClass::Verifiable, Some(Verification::Unknown("a draft is there".into()))).await;
        assert_eq!(unsure, Err("a draft is there".into()));
    }

    /// A fault that a person has to correct used to be retried again and again, with waits of minutes.
    #[test]
    fn only_what_may_be_there_later_is_waited_for() {
        let outage = Outage { reason: "away".into(), retry_after_ms: None };
        assert!(matches!(not_listed(ToolError::Unavailable(outage)), Stop::Unavailable(_)));
        assert!(matches!(not_listed(ToolError::TimedOut(5)), Stop::Broken(_)));
        let wrong = not_listed(ToolError::Failed("[tools.x.approval] names `wirte`".into()));
        assert!(matches!(&wrong, Stop::Rejected(denial) if denial.reason.contains("wirte")), "{wrong:?}");
    }
}
