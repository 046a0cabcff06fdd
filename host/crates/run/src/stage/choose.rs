//! A choice that the host itself asks a model for: no plugin is called, and the call is an entry of a journal like any
//! other, so that a kill repeats none that has an answer.

use super::Stage;
use super::ending::{Closing, End, Ended};
use super::troupe::began;
use longhaul_capabilities::{Models as _, Watch as _};
use longhaul_core::Digest;
use longhaul_core::event::Used;
use longhaul_core::fault::{self, Context as _, bail};
use longhaul_core::journal::{EffectClass, Finished, Journal as _, NewCall, Next, Ticket};
use longhaul_core::model::{Message, ModelError, ModelReply, ModelRequest, ReplyFormat, Speaker};
use longhaul_core::supervisor::{Done, More, Supervisor as _, Tries};
use longhaul_core::text::truncate;
use longhaul_engine::Cancel;
use longhaul_harness::{Failure, Report, Work};
use longhaul_journal::{Opened, Recorder};
use longhaul_records::invocation::{CHOICE, Kept};
use serde_json::json;

/// Who makes it, where others name a plugin and its table.
pub(super) const CHOOSER: &str = "longhaul";

/// Tokens of a choice. It is one word; the rest is for models that think before it.
const CHOICE_TOKENS_MAX: u32 = 1_024;

/// The model's words, or why there are none.
type Chosen = Result<ModelReply, ModelError>;

impl Stage {
    /// Asks the model that chooses.
    pub(super) async fn choose(
        &self,
        work: &Work,
        system: &str,
        prompt: &str,
        among: &[String],
        cancel: &Cancel,
    ) -> fault::Result<Ended> {
        let name = self.config.chooser().context(
            "no model chooses between agents; add to longhaul.toml: [ask] model = \"NAME\", or ask with --agent NAME",
        )?;
        let request = request(&name, system, prompt, among);
        // Without the model's name: another one may be configured when this goes on, and an answer that is there holds.
        let input = serde_json::to_vec(&ModelRequest { model: String::new(), ..request.clone() })?;
        let began = began(&self.host, CHOOSER, CHOOSER, Digest::of(CHOOSER.as_bytes()), CHOICE, &input);
        let (store, clock) = (self.host.store.clone(), self.host.clock.clone());
        let opened = Recorder::open(store, clock, self.invocation(work), began, &self.config.limits)?;
        let recorder = match opened {
            Opened::Running(recorder) => recorder,
            Opened::Finished { finished, .. } => return Ok(Ended::of(End::Report(kept(&finished.result)?))),
        };
        let call = NewCall {
            name: "conversation.complete",
            summary: truncate(&format!("{name} {}", prompt.replace('\n', " ")), 160),
            arguments: request.digest(),
            class: EffectClass::ReadOnly,
            fuel_used: 0,
        };
        let (chosen, twice) = match recorder.ask(call).await {
            Ok(Next::Answered(answer)) => (serde_json::from_str(&answer)?, 0),
            Ok(Next::Go(ticket) | Next::Verify(ticket, _) | Next::Happened(ticket, _) | Next::Skipped(ticket)) => {
                tokio::select! {
                    asked = self.ask_chooser(&recorder, ticket, &request) => match asked? {
                        Ok(chosen) => chosen,
                        Err(ended) => return Ok(ended),
                    },
                    () = cancel.waited() => return Ok(Ended::of(End::Cancelled)),
                }
            }
            Err(error) => return Ok(Ended::of(super::ending::stuck(error))),
        };
        Ok(ended(recorder, chosen, twice, self.host.clock.now_ms()))
    }

    /// The answer once it is durable, with the calls for it that were cut off before; or why the work breaks off.
    async fn ask_chooser(
        &self,
        recorder: &Recorder,
        ticket: Ticket,
        request: &ModelRequest,
    ) -> fault::Result<Result<(Chosen, u32), Ended>> {
        let Some(shared) = self.models.model(&request.model) else {
            bail!("there is no model `{}`; add [models.{}]", request.model, request.model);
        };
        let invocation = recorder.invocation();
        let model = shared.within(invocation, &[]).unwrap_or(shared);
        let again = ticket.repeated;
        let held = match self.ledger.reserve(invocation, model.cost_most(request), again).await {
            Ok(held) => held,
            Err(hit) => return Ok(Err(Ended::of(End::Report(Report::Failed(Failure::Budget(hit)))))),
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
        let done = Done { model_calls: u32::from(chosen.is_ok()), ..Done::default() };
        let more = More {
            usage: usage.plus(tally.wasted()),
            egress_bytes: tally.sent_bytes(),
            stored_bytes: answer.len() as u64,
            ..More::default()
        };
        let end = match (&chosen, over) {
            (_, Some(hit)) => Some(End::Report(Report::Failed(Failure::Budget(hit)))),
            (Err(ModelError::Unavailable(outage)), None) => Some(End::Outage(outage.clone())),
            (Err(ModelError::Rejected(denial)), None) => {
                Some(End::Report(Report::Failed(Failure::Rejected(denial.clone()))))
            }
            _ => None,
        };
        if let Some(end) = end {
            let batch = self.ledger.close(invocation, done, More { stored_bytes: 0, ..more });
            held.settle();
            return Ok(Err(Ended { batch, ..Ended::of(end) }));
        }
        let batch = self.ledger.spent(invocation, done, more);
        let cut_off = u32::from(held.was_cut_off());
        held.settle();
        recorder.answer_with(ticket, answer, batch).await?;
        Ok(Ok((chosen, cut_off)))
    }
}

fn request(model: &str, system: &str, prompt: &str, among: &[String]) -> ModelRequest {
    ModelRequest {
        model: model.to_owned(),
        system: system.to_owned(),
        messages: vec![Message::text(Speaker::User, prompt)],
        tools: Vec::new(),
        format: format_of(among),
        prefill: None,
        stop: Vec::new(),
        output_tokens_max: CHOICE_TOKENS_MAX,
        temperature: None,
        seed: Some(0),
    }
}

/// Small models keep to a list only when they cannot leave it.
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

fn ended(recorder: Recorder, chosen: Chosen, twice: u32, at_ms: u64) -> Ended {
    let usage = chosen.as_ref().map(|reply| reply.usage).unwrap_or_default();
    let kept: Kept<String> = match chosen {
        Ok(reply) => Kept::Returned(reply.text),
        Err(error) => Kept::Trapped(error.to_string()),
    };
    let result = serde_json::to_string(&kept).unwrap_or_default();
    let used = Used { model_calls: 1, usage, possibly_paid_twice: twice, ..Used::default() };
    let finished = Finished { result, fuel_used: 0, interrupted: false, at_ms };
    let end = End::Report(super::ending::reported(kept, Report::Chosen));
    Ended { used, closing: Some(Closing { recorder, finished }), ..Ended::of(end) }
}

fn kept(result: &str) -> fault::Result<Report> {
    Ok(super::ending::reported(serde_json::from_str::<Kept<String>>(result)?, Report::Chosen))
}
