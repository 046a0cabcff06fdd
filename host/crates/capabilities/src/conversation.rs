//! Conversations with a model. The host owns the context, and the journal holds only its new parts.
//!
//! Pushing a message is no entry: the messages are part of the digest of the next request. Replies are entries, and so
//! are the summaries that trim a full context ([`cut`]). An outage is none: the same request is made again later.

mod answers;
mod asking;
mod cut;
mod gauge;
mod halve;
mod messages;
mod prompts;
mod reference;
mod summary;

use crate::ctx::Ctx;
use crate::setup::ConversationUpdate;
use crate::stop::Stop;
use asking::Asking;
use cut::tokens_of;
use longhaul_bindings::imports::conversation::{
    self, Conversation, HostConversation, ModelError, Options, Reply, ReplyFormat,
};
use longhaul_bindings::message_types::Message as BoundMessage;
use longhaul_bindings::types::Usage as BoundUsage;
use longhaul_core::LimitHit;
use longhaul_core::event::Event;
use longhaul_core::journal::{EffectClass, EntryHandle};
use longhaul_core::model::{
    self, Message, MessagePart, MessageRole, Model, ModelReply, ModelRequest, OfferedTool, tools_tokens,
};
use longhaul_core::text::truncate;
use messages::{Context, HeldMessage, MessageKind};
use std::sync::Arc;
use wasmtime::component::Resource;

pub(crate) use messages::Conversations;
pub(crate) use reference::CALL;

/// Tokens of a reply, when neither the guest nor the operator sets them. Enough for a file of 300 lines.
const OUTPUT_TOKENS_DEFAULT: u32 = 4_096;

impl conversation::Host for Ctx {}

impl HostConversation for Ctx {
    async fn new(&mut self, system: String) -> wasmtime::Result<Resource<Conversation>> {
        let open = self.conversations.open.len() as u64;
        if open >= u64::from(self.limits.handles_max) {
            return Err(Stop::from(LimitHit::new("handles_max", open + 1, self.limits.handles_max.into())).into());
        }
        self.hold((size_of::<Context>() + system.len()) as u64)?;
        self.services.watch.said(self.conversations.open.len(), ConversationUpdate::System(&system));
        let notes = self.conversations.notes;
        self.conversations.open.push(Context::new(system, notes));
        // Below `handles_max`, which is a u32.
        Ok(Resource::new_own(u32::try_from(open).unwrap_or(u32::MAX)))
    }

    async fn push(
        &mut self,
        handle: Resource<Conversation>,
        message: BoundMessage,
        pinned: bool,
    ) -> wasmtime::Result<Result<(), ModelError>> {
        let notes = self.conversations.notes;
        let message = Message::from(message);
        self.context(&handle)?;
        self.services.watch.said(handle.rep() as usize, ConversationUpdate::Message(&message));
        let messages = self.context(&handle)?.told(message, pinned, notes);
        self.hold(messages.bytes())?;
        self.context(&handle)?.messages.push(messages);
        Ok(Ok(()))
    }

    async fn complete(
        &mut self,
        handle: Resource<Conversation>,
        options: Options,
    ) -> wasmtime::Result<Result<Reply, ModelError>> {
        // The tools are an entry of their own, so they are asked for before the request is announced.
        let tools = self.offered(&options.offer_tools).await?;
        self.context(&handle)?;
        self.hear_corrections(handle.rep() as usize).await?;
        let asking = Asking {
            at: handle.rep() as usize,
            chosen: self.grants.choose_model(options.model.as_deref()),
            pinned: self.pinned_model(options.model.as_deref()),
            tools_tokens: tools_tokens(&tools),
        };
        self.make_room(&asking, false).await?;
        let first = self.turn(&asking, &options, tools.clone()).await?;
        let Err(model::ModelError::ContextFull(hit)) = &first else { return Ok(first.map_err(Into::into)) };
        // The conversation is longer, or the window smaller, than estimated: try once more, if anything can be trimmed.
        self.told_window(&asking, hit);
        let (model, tokens, window) = (asking.model(), tokens_of(hit.used), tokens_of(hit.max));
        let text = format!(
            "model `{model}` refused a conversation of {tokens} tokens as longer than its window of {window}; it is cut back to that"
        );
        if !self.make_room(&asking, true).await? {
            return Ok(first.map_err(Into::into));
        }
        self.tell(Event::Warning { text });
        Ok(self.turn(&asking, &options, tools).await?.map_err(Into::into))
    }

    async fn usage(&mut self, handle: Resource<Conversation>) -> wasmtime::Result<conversation::ContextUsage> {
        // In a journal from before contexts were trimmed, the guest saw the estimate.
        let model = self.pinned_model(None);
        let is_cut_back = self.pinned_context.is_some();
        let context = self.context(&handle)?;
        let total: BoundUsage = context.usage.into();
        let tokens = if is_cut_back { context.tokens(&model, 0) } else { context.estimated() };
        let context_tokens = u32::try_from(tokens).unwrap_or(u32::MAX);
        let resets = context.resets;
        // Entries of the journal have 0 for a window that is unknown.
        let context_tokens_max = Some(self.window().await?).filter(|tokens| *tokens > 0);
        Ok(conversation::ContextUsage { total, context_tokens, context_tokens_max, resets })
    }

    async fn reset(
        &mut self,
        handle: Resource<Conversation>,
        summary: String,
    ) -> wasmtime::Result<Result<(), ModelError>> {
        self.hold(summary.len() as u64)?;
        self.context(&handle)?.reset(summary);
        Ok(Ok(()))
    }

    async fn drop(&mut self, _handle: Resource<Conversation>) -> wasmtime::Result<()> {
        // The time of a handle's drop differs between languages, so it must have no effect.
        Ok(())
    }
}

impl Ctx {
    fn context(&mut self, handle: &Resource<Conversation>) -> wasmtime::Result<&mut Context> {
        let unknown = || wasmtime::Error::msg("unknown conversation handle");
        self.conversations.open.get_mut(handle.rep() as usize).ok_or_else(unknown)
    }

    /// Counts the bytes that the host keeps for the guest.
    fn hold(&mut self, bytes: u64) -> Result<(), Stop> {
        let messages = self.conversations.held_bytes.saturating_add(bytes);
        let max = self.limits.host_bytes_held_max;
        if messages > max {
            return Err(LimitHit::new("host_bytes_held_max", messages, max).into());
        }
        self.conversations.held_bytes = messages;
        Ok(())
    }

    /// The chosen model at the beginning of the invocation.
    fn pinned_model(&self, named: Option<&str>) -> String {
        let default = || self.pinned_context.as_ref().and_then(|pinned| pinned.model.clone());
        named.map(str::to_owned).or_else(default).unwrap_or_default()
    }

    /// A phase of the work ended.
    pub(crate) fn note_phase(&mut self) {
        let notes = &mut self.conversations.notes;
        notes.phases_ended = notes.phases_ended.saturating_add(1);
    }

    /// A decision was recorded or looked up.
    pub(crate) fn note_decision(&mut self) {
        let notes = &mut self.conversations.notes;
        notes.decisions_visited = notes.decisions_visited.saturating_add(1);
    }

    /// One request and its reply: from the journal, or from the model.
    async fn turn(
        &mut self,
        asking: &Asking,
        options: &Options,
        tools: Vec<OfferedTool>,
    ) -> wasmtime::Result<Result<Reply, model::ModelError>> {
        let request = match self.request(asking, options, tools) {
            Ok(request) => request,
            Err(error) => return Ok(Err(error)),
        };
        let (digest, summary) = (request.digest(), summary(&request));
        self.services.watch.requested(asking.at, &request);
        // The model that the guest named, not the one it got: a refusal stays the answer even after its cause is
        // corrected.
        let arguments = (asking.at, &options.model, digest);
        let known = self.ask_repeatable("conversation.complete", summary, &arguments, EffectClass::ReadOnly).await?;
        let (reply, took_ms): (Result<ModelReply, model::ModelError>, _) = match known {
            Ok(reply) => (reply, None),
            Err(handle) => {
                let _asked = self.in_flight.ask_model();
                let asked_ms = self.services.clock.now_ms();
                let reply = self.ask_model(&handle, asking, &request).await?;
                let took_ms = self.services.clock.now_ms().saturating_sub(asked_ms);
                let usage = reply.as_ref().ok().map(|reply| reply.usage);
                let spent = self.spent_for(usage);
                (self.answer_with(handle, reply, spent).await?, Some(took_ms))
            }
        };
        if let Ok(reply) = &reply {
            self.tell_thought(&request, reply, took_ms);
            for note in &reply.notes {
                self.tell(Event::Warning { text: note.clone() });
            }
        }
        let context = &mut self.conversations.open[asking.at];
        match &reply {
            Ok(reply) => context.counted(&asking.pinned, &request, reply.usage.input_tokens.into()),
            Err(model::ModelError::ContextFull(hit)) => context.counted(&asking.pinned, &request, tokens_of(hit.used)),
            Err(_) => {}
        }
        let Ok(reply) = reply else { return Ok(reply.map(Reply::from)) };
        self.conversations.answered.push(digest);
        Ok(Ok(self.heard(asking, reply)?))
    }

    /// The chosen model's reply to a request. An outage ends the invocation, and so does a refusal that a person has to
    /// correct: the guest would turn it into a round that could never pass.
    async fn ask_model(
        &mut self,
        handle: &EntryHandle,
        asking: &Asking,
        request: &ModelRequest,
    ) -> Result<Result<ModelReply, model::ModelError>, Stop> {
        if let Err(denial) = &asking.chosen {
            return Ok(Err(model::ModelError::Denied(denial.clone())));
        }
        let reply = match self.check_model_limits() {
            Err(hit) => Err(model::ModelError::Limit(hit)),
            Ok(()) => self.complete_live(request, handle.repeated).await?,
        };
        let stop = match reply {
            Err(model::ModelError::Unavailable(outage)) => Stop::Unavailable(outage),
            Err(model::ModelError::Rejected(denial)) => Stop::Rejected(denial),
            reply => return Ok(reply),
        };
        self.let_go();
        Err(stop)
    }

    /// `again`: the request may have been made before.
    async fn complete_live(
        &mut self,
        request: &ModelRequest,
        again: bool,
    ) -> Result<Result<ModelReply, model::ModelError>, Stop> {
        let Some(model) = self.model(&request.model) else {
            let name = &request.model;
            let text = format!("there is no model `{name}`; add to longhaul.toml: [models.{name}] provider = \"...\"");
            return Ok(Err(model::ModelError::Invalid(text)));
        };
        if let Err(hit) = fits(request, model.info().context_tokens_max) {
            return Ok(Err(model::ModelError::ContextFull(hit)));
        }
        self.reserve(model.cost_most(request), again).await?;
        let (watch, invocation) = (Arc::clone(&self.services.watch), self.invocation.clone());
        watch.begins(&invocation);
        let mut heard = move |text: &str| watch.heard(&invocation, text);
        let reply = self.watched.ask(&*model, request, &mut heard).await;
        reply.map_err(|hit| {
            self.let_go();
            Stop::Budget(hit)
        })
    }

    /// Adds a person's guidance to the context; it stays when the context is trimmed.
    pub(crate) fn guided(&mut self, at: usize, message: Message) -> Result<(), Stop> {
        let notes = self.conversations.notes;
        let messages = self.conversations.open[at].told(message, true, notes);
        self.hold(messages.bytes())?;
        self.conversations.open[at].messages.push(messages);
        Ok(())
    }

    /// The window of the default model, an entry: another attempt may find another model configured.
    async fn window(&mut self) -> Result<u32, Stop> {
        let known = self.ask_repeatable("conversation.window", String::new(), &(), EffectClass::ReadOnly).await?;
        match known {
            Ok(tokens) => Ok(tokens),
            Err(handle) => {
                let model = self.grants.models.first().and_then(|name| self.services.models.model(name));
                self.answer(handle, model.map_or(0, |model| model.info().context_tokens_max)).await
            }
        }
    }

    /// The model of this invocation, looked up once.
    fn model(&mut self, name: &str) -> Option<Arc<dyn Model>> {
        if let Some(model) = self.conversations.models.get(name) {
            return Some(Arc::clone(model));
        }
        let shared = self.services.models.model(name)?;
        let own = shared.within(&self.invocation, &self.conversations.answered).unwrap_or(shared);
        self.conversations.models.insert(name.to_owned(), Arc::clone(&own));
        Some(own)
    }

    fn request(
        &self,
        asking: &Asking,
        options: &Options,
        tools: Vec<OfferedTool>,
    ) -> Result<ModelRequest, model::ModelError> {
        check_extra(&options.extra).map_err(model::ModelError::Invalid)?;
        let context = &self.conversations.open[asking.at];
        Ok(ModelRequest {
            model: asking.model(),
            system: context.system.clone(),
            messages: context.messages.iter().map(|messages| messages.message.clone()).collect(),
            tools,
            format: reply_format(&options.format).map_err(model::ModelError::Invalid)?,
            prefill: options.prefill.clone(),
            stop: options.stop.clone(),
            output_tokens_max: options.output_tokens_max.unwrap_or(OUTPUT_TOKENS_DEFAULT),
            // Guest-controlled: outside of 0 to 2, or not a number, no provider takes it.
            temperature: options.temperature.map(|t| if t.is_finite() { t.clamp(0.0, 2.0) } else { 0.0 }),
            seed: options.seed,
        })
    }

    /// The functions of the tools that the guest offers to the model, as far as they were granted.
    async fn offered(&mut self, wanted: &[String]) -> wasmtime::Result<Vec<OfferedTool>> {
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let granted = self.granted_tools().await?;
        let infos = self.with_own_tool(granted);
        let mut offered = Vec::new();
        for info in infos.iter().filter(|info| wanted.contains(&info.id)) {
            for function in &info.functions {
                offered.push(OfferedTool {
                    tool: info.id.clone(),
                    function: function.name.clone(),
                    description: function.description.clone(),
                    parameters: serde_json::from_str(&function.parameters)
                        .unwrap_or_else(|_| serde_json::json!({"type": "object"})),
                });
            }
        }
        Ok(offered)
    }

    /// Takes a reply, new or from the journal, into the context.
    fn heard(&mut self, asking: &Asking, reply: ModelReply) -> wasmtime::Result<Reply> {
        self.used.model_calls = self.used.model_calls.saturating_add(1);
        self.used.usage = self.used.usage.plus(reply.usage);
        // Parts that a provider needs back stand before the reply's text, unchanged.
        let sealed = reply.thoughts.iter().filter(|thought| thought.signature.is_some());
        let mut parts: Vec<MessagePart> = sealed.cloned().map(MessagePart::Thought).collect();
        parts.push(MessagePart::Text(reply.text.clone()));
        parts.extend(reply.calls.iter().cloned().map(MessagePart::Requested));
        let message = Message { speaker: MessageRole::Assistant, parts };
        self.services.watch.said(asking.at, ConversationUpdate::Message(&message));
        let messages = HeldMessage::new(message, false, MessageKind::Replied);
        self.hold(messages.bytes())?;
        let notes = self.conversations.notes;
        let context = &mut self.conversations.open[asking.at];
        context.heard(messages, reply.usage, notes);
        if let Some(sign) = context.answers.next(&reply) {
            self.tell(Event::ContextAnxiety { invocation: self.invocation.clone(), sign });
        }
        Ok(reply.into())
    }
}

/// The summary for people in the journal: the model and the end of the request.
fn summary(request: &ModelRequest) -> String {
    let last = request.messages.last().and_then(|message| {
        message
            .parts
            .iter()
            .find_map(|part| if let MessagePart::Text(text) = part { Some(text.as_str()) } else { None })
    });
    truncate(&format!("{} {}", request.model, last.unwrap_or_default().replace('\n', " ")), 160)
}

/// Options that this host does not know are ignored, and so are no part of the request.
fn check_extra(extra: &str) -> Result<(), String> {
    if extra.trim().is_empty() {
        return Ok(());
    }
    let read = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(extra);
    read.map(drop).map_err(|error| format!("`extra` of the options is no JSON object: {error}"))
}

fn reply_format(format: &ReplyFormat) -> Result<model::ReplyFormat, String> {
    Ok(match format {
        ReplyFormat::Text => model::ReplyFormat::Text,
        ReplyFormat::Json => model::ReplyFormat::Json,
        ReplyFormat::Schema(schema) => {
            let schema = serde_json::from_str(schema).map_err(|error| format!("the schema is not JSON: {error}"))?;
            model::ReplyFormat::Schema(schema)
        }
    })
}

/// Refuses a request that exceeds the window, by a rough count; the provider's count is exact.
fn fits(request: &ModelRequest, window: u32) -> Result<(), LimitHit> {
    let (wanted, window) = (request.tokens_estimated(), u64::from(window));
    if window > 0 && wanted > window { Err(LimitHit::new("context_tokens_max", wanted, window)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_options_are_an_object_or_nothing() {
        for fine in ["", " ", "{}", "{\"later\":[1]}"] {
            assert_eq!(check_extra(fine), Ok(()), "{fine}");
        }
        for wrong in ["[]", "1", "{", "null"] {
            let error = check_extra(wrong).expect_err(wrong);
            assert!(error.starts_with("`extra` of the options is no JSON object: "), "{error}");
        }
    }
}
