//! Talk with a model. The host owns the context, and the journal holds only what is new of it.
//!
//! Pushing a message is no entry: what was pushed is part of the digest of the next request. Replies
//! are entries. An outage is none: the same request is made again later.

use crate::ctx::Ctx;
use crate::gate::Stop;
use longhaul_bindings::imports::conversation::{
    self, Conversation, HostConversation, ModelError, Options, ReplyFormat, Turn,
};
use longhaul_bindings::message_types::Message as BoundMessage;
use longhaul_bindings::types::Usage as BoundUsage;
use longhaul_core::journal::{EffectClass, Ticket};
use longhaul_core::model::{self, Message, Model, ModelReply, ModelRequest, OfferedTool, Part, Speaker, Usage};
use longhaul_core::text::truncate;
use longhaul_core::{Digest, LimitHit};
use std::collections::HashMap;
use std::sync::Arc;
use wasmtime::component::Resource;

/// Tokens of a reply, where neither the guest nor the operator says. Enough for a file of 300 lines.
const OUTPUT_TOKENS_DEFAULT: u32 = 4_096;

/// The conversations of one invocation. A handle is an index, so that dropping one means nothing.
#[derive(Default)]
pub(crate) struct Conversations {
    open: Vec<Context>,
    held_bytes: u64,
    /// Requests that were answered, in order: a model that counts within an invocation needs them.
    answered: Vec<Digest>,
    /// The models as this invocation has them, by name.
    models: HashMap<String, Arc<dyn Model>>,
}

/// One context.
struct Context {
    system: String,
    messages: Vec<(Message, bool)>,
    usage: Usage,
    resets: u32,
}

impl Context {
    fn new(system: String) -> Self {
        Self { system, messages: Vec::new(), usage: Usage::default(), resets: 0 }
    }

    fn tokens_estimated(&self) -> u64 {
        let said: u64 = self.messages.iter().map(|(message, _)| message.tokens_estimated()).sum();
        self.system.chars().count() as u64 / 4 + said
    }

    /// Keeps what is pinned, then the summary in the guest's words.
    fn reset(&mut self, summary: String) {
        self.messages.retain(|(_, pinned)| *pinned);
        self.resets = self.resets.saturating_add(1);
        self.messages.push((Message::text(Speaker::User, summary), false));
    }
}

/// Bytes that the host needs for a message: every text of it, and the room of its parts.
fn bytes_held(message: &Message) -> u64 {
    let part = |part: &Part| match part {
        Part::Text(text) => text.len(),
        Part::Image { media_type, data } => media_type.len() + data.len(),
        Part::Requested(call) => call.id.len() + call.tool.len() + call.function.len() + call.arguments.len(),
        Part::Answered { id, output, .. } => id.len() + output.len(),
    };
    let texts: usize = message.parts.iter().map(part).sum();
    (size_of::<Message>() + message.parts.len() * size_of::<Part>() + texts) as u64
}

impl conversation::Host for Ctx {}

impl HostConversation for Ctx {
    async fn new(&mut self, system: String) -> wasmtime::Result<Resource<Conversation>> {
        let open = self.conversations.open.len() as u64;
        if open >= u64::from(self.limits.handles_max) {
            return Err(Stop::from(LimitHit::new("handles_max", open + 1, self.limits.handles_max.into())).into());
        }
        self.hold((size_of::<Context>() + system.len()) as u64)?;
        self.conversations.open.push(Context::new(system));
        // Below `handles_max`, which is a u32.
        Ok(Resource::new_own(u32::try_from(open).unwrap_or(u32::MAX)))
    }

    async fn push(
        &mut self,
        handle: Resource<Conversation>,
        message: BoundMessage,
        pinned: bool,
    ) -> wasmtime::Result<Result<(), ModelError>> {
        let message = Message::from(message);
        self.hold(bytes_held(&message))?;
        self.context(&handle)?.messages.push((message, pinned));
        Ok(Ok(()))
    }

    async fn complete(
        &mut self,
        handle: Resource<Conversation>,
        options: Options,
    ) -> wasmtime::Result<Result<Turn, ModelError>> {
        let chosen = self.grants.choose_model(options.model.as_deref());
        let model = chosen.as_ref().map_or_else(|_| String::new(), String::clone);
        // The tools are an entry of their own, so they are asked for before the request is announced.
        let tools = self.offered(&options.offer_tools).await?;
        let request = match self.request(&handle, model, &options, tools)? {
            Ok(request) => request,
            Err(error) => return Ok(Err(error.into())),
        };
        let (digest, summary) = (request.digest(), summary(&request));
        // The model that the guest named, not the one it got: a refusal that was mended stays an answer.
        let asking = (handle.rep(), &options.model, digest);
        let known = self.ask_repeatable("conversation.complete", summary, &asking, EffectClass::ReadOnly).await?;
        let reply: Result<ModelReply, model::ModelError> = match known {
            Ok(reply) => reply,
            Err(ticket) => match chosen {
                Ok(_) => self.reply(ticket, &request).await?,
                Err(denial) => self.answer(ticket, Err(model::ModelError::Denied(denial))).await?,
            },
        };
        match reply {
            Ok(reply) => {
                self.conversations.answered.push(digest);
                Ok(Ok(self.heard(&handle, reply)?))
            }
            Err(error) => Ok(Err(error.into())),
        }
    }

    async fn usage(&mut self, handle: Resource<Conversation>) -> wasmtime::Result<conversation::ContextUsage> {
        let context = self.context(&handle)?;
        let total: BoundUsage = context.usage.into();
        let context_tokens = u32::try_from(context.tokens_estimated()).unwrap_or(u32::MAX);
        let resets = context.resets;
        let context_tokens_max = self.window().await?;
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
        // When a handle is dropped differs between languages, so it must not mean anything.
        Ok(())
    }
}

impl Ctx {
    fn context(&mut self, handle: &Resource<Conversation>) -> wasmtime::Result<&mut Context> {
        let unknown = || wasmtime::Error::msg("unknown conversation handle");
        self.conversations.open.get_mut(handle.rep() as usize).ok_or_else(unknown)
    }

    /// Counts what the host keeps for the guest.
    fn hold(&mut self, bytes: u64) -> Result<(), Stop> {
        let held = self.conversations.held_bytes.saturating_add(bytes);
        let max = self.limits.host_bytes_held_max;
        if held > max {
            return Err(LimitHit::new("host_bytes_held_max", held, max).into());
        }
        self.conversations.held_bytes = held;
        Ok(())
    }

    /// Asks the model and keeps what it said.
    async fn reply(
        &mut self,
        ticket: Ticket,
        request: &ModelRequest,
    ) -> wasmtime::Result<Result<ModelReply, model::ModelError>> {
        let reply = match self.check_model_limits() {
            Err(hit) => Err(model::ModelError::Limit(hit)),
            Ok(()) => self.complete_live(request).await,
        };
        if let Err(model::ModelError::Unavailable(outage)) = reply {
            return Err(Stop::Unavailable(outage).into());
        }
        self.used.possibly_paid_twice += u32::from(ticket.repeated);
        Ok(self.answer(ticket, reply).await?)
    }

    fn check_model_limits(&self) -> Result<(), LimitHit> {
        let (calls, calls_max) = (self.used.model_calls, self.limits.model_calls_max);
        if calls >= calls_max {
            return Err(LimitHit::new("model_calls_max", u64::from(calls) + 1, calls_max.into()));
        }
        let used = self.used.usage.plus(self.delegated.usage);
        let (tokens, tokens_max) = (used.tokens(), self.limits.tokens_max);
        if tokens >= tokens_max { Err(LimitHit::new("tokens_max", tokens, tokens_max)) } else { Ok(()) }
    }

    async fn complete_live(&mut self, request: &ModelRequest) -> Result<ModelReply, model::ModelError> {
        let Some(model) = self.model(&request.model) else {
            let name = &request.model;
            let text = format!("there is no model `{name}`; add to longhaul.toml: [models.{name}] provider = \"...\"");
            return Err(model::ModelError::Invalid(text));
        };
        fits(request, model.info().context_tokens_max).map_err(model::ModelError::ContextFull)?;
        let (watch, invocation) = (Arc::clone(&self.services.watch), self.invocation.clone());
        let mut heard = move |text: &str| watch.heard(&invocation, text);
        model.complete(request, &mut heard).await
    }

    /// The window of the default model, an entry: another attempt may find another model configured.
    async fn window(&mut self) -> Result<u32, Stop> {
        let known = self.ask_repeatable("conversation.window", String::new(), &(), EffectClass::ReadOnly).await?;
        match known {
            Ok(tokens) => Ok(tokens),
            Err(ticket) => {
                let model = self.grants.models.first().and_then(|name| self.services.models.model(name));
                self.answer(ticket, model.map_or(0, |model| model.info().context_tokens_max)).await
            }
        }
    }

    /// The model as this invocation has it, found once.
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
        &mut self,
        handle: &Resource<Conversation>,
        model: String,
        options: &Options,
        tools: Vec<OfferedTool>,
    ) -> wasmtime::Result<Result<ModelRequest, model::ModelError>> {
        let format = match reply_format(&options.format) {
            Ok(format) => format,
            Err(text) => return Ok(Err(model::ModelError::Invalid(text))),
        };
        let context = self.context(handle)?;
        Ok(Ok(ModelRequest {
            model,
            system: context.system.clone(),
            messages: context.messages.iter().map(|(message, _)| message.clone()).collect(),
            tools,
            format,
            prefill: options.prefill.clone(),
            stop: options.stop.clone(),
            output_tokens_max: options.output_tokens_max.unwrap_or(OUTPUT_TOKENS_DEFAULT),
            // Guest-controlled: outside of 0 to 2, or not a number, no provider takes it.
            temperature: options.temperature.filter(|t| t.is_finite()).unwrap_or(0.0).clamp(0.0, 2.0),
            seed: options.seed,
        }))
    }

    /// The functions of the tools that the guest wants offered, of those that were granted.
    async fn offered(&mut self, wanted: &[String]) -> wasmtime::Result<Vec<OfferedTool>> {
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let infos = self.granted_tools().await?;
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
    fn heard(&mut self, handle: &Resource<Conversation>, reply: ModelReply) -> wasmtime::Result<Turn> {
        self.used.model_calls = self.used.model_calls.saturating_add(1);
        self.used.usage = self.used.usage.plus(reply.usage);
        let mut parts = vec![Part::Text(reply.text.clone())];
        parts.extend(reply.calls.iter().cloned().map(Part::Requested));
        let message = Message { speaker: Speaker::Assistant, parts };
        self.hold(bytes_held(&message))?;
        let context = self.context(handle)?;
        context.usage = context.usage.plus(reply.usage);
        context.messages.push((message, false));
        Ok(reply.into())
    }
}

/// What a person reads in the journal: the model and the end of what it was told.
fn summary(request: &ModelRequest) -> String {
    let last = request.messages.last().and_then(|message| {
        message.parts.iter().find_map(|part| if let Part::Text(text) = part { Some(text.as_str()) } else { None })
    });
    truncate(&format!("{} {}", request.model, last.unwrap_or_default().replace('\n', " ")), 160)
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

/// Whether the request and its reply fit the window, by a rough count; the provider knows better.
fn fits(request: &ModelRequest, window: u32) -> Result<(), LimitHit> {
    let said: u64 = request.messages.iter().map(Message::tokens_estimated).sum();
    let wanted = said + request.system.chars().count() as u64 / 4;
    let window = u64::from(window);
    if window > 0 && wanted > window { Err(LimitHit::new("context_tokens_max", wanted, window)) } else { Ok(()) }
}
