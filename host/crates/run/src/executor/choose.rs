//! A choice that the host itself asks a model for. No plugin is called; the call is a journal entry like any other, so
//! that an answered call is not repeated after a kill.

use super::WorkExecutor;
use super::ending::{Closing, EndedWork, WorkEnd};
use super::invocation_context::began;
use longhaul_capabilities::{Models as _, Watch as _};
use longhaul_core::Digest;
use longhaul_core::event::WorkUsage;
use longhaul_core::fault::{self, Context as _, bail};
use longhaul_core::journal::{CallVerdict, EffectClass, EntryHandle, Finished, Journal as _, NewCall};
use longhaul_core::model::{Message, MessageRole, ModelError, ModelReply, ModelRequest, ReplyFormat};
use longhaul_core::supervisor::{InvocationTotals, Supervisor as _, Tries, UsageDelta};
use longhaul_core::text::truncate;
use longhaul_engine::Cancel;
use longhaul_harness::{Work, WorkFailure, WorkReport};
use longhaul_journal::{Opened, Recorder};
use longhaul_records::invocation::{CHOICE, JournaledResult};
use serde_json::json;

/// The name that stands for the host, where others name a plugin and its table.
pub(super) const CHOOSER: &str = "longhaul";

/// Output tokens of a choice. The answer is one word; the rest is for models that think before they answer.
const CHOICE_TOKENS_MAX: u32 = 1_024;

/// The model's reply, or why there is none.
type Chosen = Result<ModelReply, ModelError>;

impl WorkExecutor {
    /// Asks the configured model for the choice.
    pub(super) async fn choose(
        &self,
        work: &Work,
        system: &str,
        prompt: &str,
        among: &[String],
        cancel: &Cancel,
    ) -> fault::Result<EndedWork> {
        let name = self.config.chooser().context(
            "no model chooses between agents; add to longhaul.toml: [ask] model = \"NAME\", or ask with --agent NAME",
        )?;
        let request = request(&name, system, prompt, among);
        // The digest leaves out the model's name: another model may be configured at a resume, and a recorded answer
        // stays valid.
        let input = serde_json::to_vec(&ModelRequest { model: String::new(), ..request.clone() })?;
        let began = began(&self.host, CHOOSER, CHOOSER, Digest::of(CHOOSER.as_bytes()), CHOICE, &input);
        let (store, clock) = (self.host.store.clone(), self.host.clock.clone());
        let opened = Recorder::open(store, clock, self.invocation(work), began, &self.config.limits)?;
        let recorder = match opened {
            Opened::Running(recorder) => recorder,
            Opened::Finished { finished, .. } => return Ok(EndedWork::of(WorkEnd::Report(kept(&finished.result)?))),
        };
        let call = NewCall {
            name: "conversation.complete",
            summary: truncate(&format!("{name} {}", prompt.replace('\n', " ")), 160),
            arguments: request.digest(),
            class: EffectClass::ReadOnly,
            fuel_used: 0,
        };
        let (chosen, twice) = match recorder.ask(call).await {
            Ok(CallVerdict::Answered(answer)) => (serde_json::from_str(&answer)?, 0),
            Ok(
                CallVerdict::Go(handle)
                | CallVerdict::Verify(handle, _)
                | CallVerdict::Happened(handle, _)
                | CallVerdict::Skipped(handle),
            ) => {
                tokio::select! {
                    asked = self.ask_chooser(&recorder, handle, &request) => match asked? {
                        Ok(chosen) => chosen,
                        Err(ended) => return Ok(ended),
                    },
                    () = cancel.waited() => return Ok(EndedWork::of(WorkEnd::Cancelled)),
                }
            }
            Err(error) => return Ok(EndedWork::of(super::ending::stuck(error))),
        };
        Ok(ended(recorder, chosen, twice, self.host.clock.now_ms()))
    }

    /// The answer once it is durable, with the earlier interrupted calls; or why the work breaks off.
    async fn ask_chooser(
        &self,
        recorder: &Recorder,
        handle: EntryHandle,
        request: &ModelRequest,
    ) -> fault::Result<Result<(Chosen, u32), EndedWork>> {
        let Some(shared) = self.models.model(&request.model) else {
            bail!("there is no model `{}`; add [models.{}]", request.model, request.model);
        };
        let invocation = recorder.invocation();
        let model = shared.within(invocation, &[]).unwrap_or(shared);
        let again = handle.repeated;
        let held = match self.ledger.reserve(invocation, model.cost_most(request), again).await {
            Ok(held) => held,
            Err(hit) => return Ok(Err(EndedWork::of(WorkEnd::Report(WorkReport::Failed(WorkFailure::Budget(hit)))))),
        };
        let bus = self.bus.clone();
        let own = invocation.clone();
        bus.begins(&own);
        let mut heard = move |text: &str| bus.heard(&own, text);
        let tries = Tries::new(&*held);
        let chosen = model.ask(request, &mut heard, &tries).await;
        let (tally, over) = tries.end();
        let usage = chosen.as_ref().map(|reply| reply.usage).unwrap_or_default();
        let answer = serde_json::to_string(&chosen)?;
        let done = InvocationTotals { model_calls: u32::from(chosen.is_ok()), ..InvocationTotals::default() };
        let more = UsageDelta {
            usage: usage.plus(tally.wasted()),
            egress_bytes: tally.sent_bytes(),
            stored_bytes: answer.len() as u64,
            ..UsageDelta::default()
        };
        let end = match (&chosen, over) {
            (_, Some(hit)) => Some(WorkEnd::Report(WorkReport::Failed(WorkFailure::Budget(hit)))),
            (Err(ModelError::Unavailable(outage)), None) => Some(WorkEnd::Outage(outage.clone())),
            (Err(ModelError::Rejected(denial)), None) => {
                Some(WorkEnd::Report(WorkReport::Failed(WorkFailure::Rejected(denial.clone()))))
            }
            _ => None,
        };
        if let Some(end) = end {
            let batch = self.ledger.close(invocation, done, UsageDelta { stored_bytes: 0, ..more });
            held.settle();
            return Ok(Err(EndedWork { batch, ..EndedWork::of(end) }));
        }
        let batch = self.ledger.spent(invocation, done, more);
        let cut_off = u32::from(held.was_cut_off());
        held.settle();
        recorder.answer_with(handle, answer, batch).await?;
        Ok(Ok((chosen, cut_off)))
    }
}

fn request(model: &str, system: &str, prompt: &str, among: &[String]) -> ModelRequest {
    ModelRequest {
        model: model.to_owned(),
        system: system.to_owned(),
        messages: vec![Message::text(MessageRole::User, prompt)],
        tools: Vec::new(),
        format: format_of(among),
        prefill: None,
        stop: Vec::new(),
        output_tokens_max: CHOICE_TOKENS_MAX,
        temperature: None,
        seed: Some(0),
    }
}

/// Restricts the reply to the list: small models keep to a list only when the format forces them.
fn format_of(among: &[String]) -> ReplyFormat {
    if among.is_empty() {
        return ReplyFormat::Text;
    }
    ReplyFormat::Schema(json!({
        "type": "object",
        "properties": { "answer": { "type": "string", "enum": among } },
        "required": ["answer"],
        "additionalProperties": false,
    }))
}

fn ended(recorder: Recorder, chosen: Chosen, twice: u32, at_ms: u64) -> EndedWork {
    let usage = chosen.as_ref().map(|reply| reply.usage).unwrap_or_default();
    let kept: JournaledResult<String> = match chosen {
        Ok(reply) => JournaledResult::Returned(reply.text),
        Err(error) => JournaledResult::Trapped(error.to_string()),
    };
    let result = serde_json::to_string(&kept).unwrap_or_default();
    let used = WorkUsage { model_calls: 1, usage, possibly_paid_twice: twice, ..WorkUsage::default() };
    let finished = Finished { result, fuel_used: 0, interrupted: false, at_ms };
    let end = WorkEnd::Report(super::ending::reported(kept, WorkReport::Chosen));
    EndedWork { used, closing: Some(Closing { recorder, finished }), ..EndedWork::of(end) }
}

fn kept(result: &str) -> fault::Result<WorkReport> {
    Ok(super::ending::reported(serde_json::from_str::<JournaledResult<String>>(result)?, WorkReport::Chosen))
}
