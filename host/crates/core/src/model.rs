//! The types of a model's requests and replies, independent of providers.

mod tokens;
mod usage;

use crate::{Denial, Digest, InvocationId, LimitHit, Outage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, PoisonError};

pub use tokens::text_tokens_most;
pub use usage::Usage;

/// The speaker of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MessageRole {
    /// The guest, on behalf of a person or the harness.
    User,
    /// The model.
    Assistant,
    /// A tool that the model called.
    Tool,
}

/// A tool call that the model asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestedCall {
    /// The id that the result refers to.
    pub id: String,
    /// The id of the tool.
    pub tool: String,
    /// The name of the function.
    pub function: String,
    /// The arguments as the model wrote them. They may not be JSON.
    pub arguments: String,
}

/// A model's reasoning before its reply, as far as its provider shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thought {
    /// The text. Empty if the provider hides it.
    pub text: String,
    /// The provider's own name of the model: no other model gets it back.
    pub model: String,
    /// The signature that the provider needs back, unchanged. None: it needs nothing back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// True when the text is hidden, and only the signature is known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
}

/// One part of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MessagePart {
    /// A text.
    Text(String),
    /// An image.
    Image {
        /// The media type, for example `image/png`.
        media_type: String,
        /// The bytes of the file.
        data: Vec<u8>,
    },
    /// A tool call that the model asks for.
    Requested(RequestedCall),
    /// The result of a tool call.
    Answered {
        /// The id of the [`RequestedCall`].
        id: String,
        /// The result, as JSON text.
        output: String,
        /// True when the tool failed.
        failed: bool,
    },
    /// A model's thought. Only the host makes one, from a reply that its provider needs back whole.
    Thought(Thought),
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// The speaker.
    pub speaker: MessageRole,
    /// The content.
    pub parts: Vec<MessagePart>,
}

impl Message {
    /// A message of one text.
    #[must_use]
    pub fn text(speaker: MessageRole, text: impl Into<String>) -> Self {
        Self { speaker, parts: vec![MessagePart::Text(text.into())] }
    }

    /// A rough count of tokens: that of its texts, 500 an image, 4 for the frame.
    #[must_use]
    pub fn tokens_estimated(&self) -> u64 {
        let part = |part: &MessagePart| match part {
            MessagePart::Text(text) => text_tokens(text),
            MessagePart::Image { .. } => 500,
            MessagePart::Requested(call) => text_tokens(&call.arguments) + 8,
            MessagePart::Answered { output, .. } => text_tokens(output) + 4,
            MessagePart::Thought(thought) => text_tokens(&thought.text),
        };
        4 + self.parts.iter().map(part).sum::<u64>()
    }
}

/// A rough count of tokens: a quarter of the characters. It decides when a context is trimmed, and may be too low;
/// reservations and caps use [`text_tokens_most`].
#[must_use]
pub fn text_tokens(text: &str) -> u64 {
    text.chars().count() as u64 / 4
}

/// The required form of a reply.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReplyFormat {
    /// Plain text.
    #[default]
    Text,
    /// Any JSON value.
    Json,
    /// JSON that satisfies a JSON Schema.
    Schema(serde_json::Value),
}

/// A function that the model may call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OfferedTool {
    /// The id of the tool.
    pub tool: String,
    /// The name of the function.
    pub function: String,
    /// The description of the function.
    pub description: String,
    /// JSON Schema of its arguments.
    pub parameters: serde_json::Value,
}

/// A rough count of the tokens that offered functions cost.
#[must_use]
pub fn tools_tokens(tools: &[OfferedTool]) -> u64 {
    let one = |tool: &OfferedTool| text_tokens(&tool.description) + text_tokens(&tool.parameters.to_string()) + 8;
    tools.iter().map(one).sum()
}

/// One request to a model: everything that its reply can depend on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelRequest {
    /// The name in `longhaul.toml`, for example `local` or `gpt`.
    pub model: String,
    /// The system prompt.
    pub system: String,
    /// The conversation so far.
    pub messages: Vec<Message>,
    /// The functions that the model may call.
    pub tools: Vec<OfferedTool>,
    /// The required form of the reply.
    pub format: ReplyFormat,
    /// The required beginning of the reply; it is part of [`ModelReply::text`].
    pub prefill: Option<String>,
    /// Texts that end the reply; they are not part of it.
    pub stop: Vec<String>,
    /// The most tokens that the reply may have.
    pub output_tokens_max: u32,
    /// 0: the most likely token each time. None: not requested, and the model's own default applies.
    ///
    /// Its JSON is a number, 0 if there is none: recordings and journals identify a request by that.
    #[serde(with = "temperature")]
    pub temperature: Option<f32>,
    /// Equal seeds and requests give equal replies if the provider can promise that.
    pub seed: Option<u32>,
}

impl ModelRequest {
    /// A rough count of the input tokens, the offered functions included.
    #[must_use]
    pub fn tokens_estimated(&self) -> u64 {
        let said: u64 = self.messages.iter().map(Message::tokens_estimated).sum();
        text_tokens(&self.system) + said + tools_tokens(&self.tools)
    }

    /// The digest that a recording finds the reply by. The model's name is left out, so that a recording of one
    /// provider serves for another name.
    ///
    /// # Panics
    /// Never: the fields are plain data, whose JSON exists.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let nameless = Self { model: String::new(), ..self.clone() };
        Digest::of(&serde_json::to_vec(&nameless).expect("plain data has JSON"))
    }
}

mod temperature {
    use serde::{Deserialize as _, Deserializer, Serializer};

    #[expect(clippy::ref_option, clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    pub(super) fn serialize<S: Serializer>(temperature: &Option<f32>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f32(temperature.unwrap_or(0.0))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f32>, D::Error> {
        Ok(Option::<f32>::deserialize(deserializer)?.filter(|temperature| *temperature != 0.0))
    }
}

/// The reason why a reply ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StopReason {
    /// The model ended it.
    #[default]
    End,
    /// It reached `output_tokens_max`.
    Length,
    /// It calls tools.
    Tools,
    /// The provider filtered the rest.
    Filtered,
    /// The provider gave another reason.
    Other,
}

/// A reply of a model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelReply {
    /// The text, `prefill` included.
    pub text: String,
    /// The tool calls that the model asks for, in its order.
    pub calls: Vec<RequestedCall>,
    /// The reason why it ended.
    pub reason: StopReason,
    /// The tokens and the cost of the reply.
    pub usage: Usage,
    /// The model's reasoning before the reply, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thoughts: Vec<Thought>,
    /// Notes for people, each reported once, for example about a parameter that the provider does not accept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The route of the reply. None: the requested model itself replied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<Route>,
    /// The endpoint that replied, and its own account of the reply. None: no endpoint, or an older reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<ReplyEndpoint>,
}

/// The endpoint of a reply, and its own names of the model and of the reply, for telemetry. Nothing depends on it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReplyEndpoint {
    /// The model that replied, by the endpoint's account. It may be more exact than the requested name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The endpoint's id of the reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The host name or address. None: it was not asked, since the cache had the reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// True when the reply was requested as a stream.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub streamed: bool,
}

/// The facts about a reply that its event keeps, without any words of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReplyDetails {
    /// The reason why the reply ended.
    pub reason: StopReason,
    /// The seed of the request. None: it had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u32>,
    /// True when the request asked for JSON.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub json: bool,
    /// The endpoint. None: no endpoint replied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<ReplyEndpoint>,
}

impl ReplyDetails {
    /// Those of a reply to a request.
    #[must_use]
    pub fn of(request: &ModelRequest, reply: &ModelReply) -> Self {
        Self {
            reason: reply.reason,
            seed: request.seed,
            json: request.format != ReplyFormat::Text,
            endpoint: reply.endpoint.clone(),
        }
    }
}

/// The origin of a reply. It is kept with the reply, so that a replay reports the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Route {
    /// The name in `longhaul.toml` of the model that replied.
    pub served_by: String,
    /// The name that the provider gives the model.
    #[serde(default)]
    pub provider_model: String,
    /// The models that were asked before and failed, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<(String, String)>,
    /// True when the cache answered with an earlier reply to the same request.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cached: bool,
}

/// The reason why there is no reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum ModelError {
    /// The operator does not allow it: for example, the model was not granted.
    #[error(transparent)]
    Denied(Denial),
    /// Its provider refuses it permanently: an invalid key, an unknown model, an unsupported request. It refuses the
    /// same again until a person corrects something, so that the guest never sees it.
    #[error("{}; {}", .0.reason, .0.fix)]
    Rejected(Denial),
    /// A limit of the invocation was reached.
    #[error(transparent)]
    Limit(LimitHit),
    /// The model is not available now, after all retries.
    #[error(transparent)]
    Unavailable(Outage),
    /// The request is longer than the window of the model.
    #[error("the conversation is longer than the model's window: {0}")]
    ContextFull(LimitHit),
    /// The model refused. The text is its own.
    #[error("the model refused: {0}")]
    Refused(String),
    /// The request cannot be made as written.
    #[error("the request to the model is invalid: {0}")]
    Invalid(String),
    /// Any other failure.
    #[error("the model failed: {0}")]
    Failed(String),
}

/// The facts about a model that are known before a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelInfo {
    /// The name that the provider gives the model, for example `openai/gpt-5` or `local/smollm2`.
    pub id: String,
    /// The window of the model, in tokens. 0: unknown.
    pub context_tokens_max: u32,
}

/// Receives the costs of a request beside its reply.
#[async_trait::async_trait]
pub trait Cost: Send + Sync {
    /// Returns when the request may be retried, with this model or the next one.
    ///
    /// # Errors
    /// The cap without budget for it.
    async fn again(&self) -> Result<(), LimitHit> {
        Ok(())
    }

    /// Counts bytes that were sent to the provider.
    fn sent(&self, _bytes: u64) {}

    /// Counts the usage of a reply that was paid for and cannot be used.
    fn wasted(&self, _usage: Usage) {}
}

/// The costs of a request beside its reply, added up.
#[derive(Debug, Default)]
pub struct UsageTally(Mutex<(Usage, u64)>);

impl UsageTally {
    /// Usage of unusable answers.
    pub fn wasted(&self) -> Usage {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0
    }

    /// Sent bytes, those of each attempt.
    pub fn sent_bytes(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1
    }
}

impl Cost for UsageTally {
    fn sent(&self, bytes: u64) {
        let mut tally = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tally.1 = tally.1.saturating_add(bytes);
    }

    fn wasted(&self, usage: Usage) {
        let mut tally = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tally.0 = tally.0.plus(usage);
    }
}

/// Receives a reply as it comes. A type alias, since `async_trait` gives the `&str` of a written-out type a lifetime
/// from outside, which would exclude local texts.
pub type ReplyListener<'a> = &'a mut (dyn FnMut(&str) + Send);

/// A model. Dropping the future of [`Model::complete`] cancels the request.
#[async_trait::async_trait]
pub trait Model: Send + Sync {
    /// The facts of the model.
    fn info(&self) -> ModelInfo;

    /// The highest cost of a request, as far as it is known before it is sent.
    fn cost_most(&self, request: &ModelRequest) -> Usage {
        Usage {
            input_tokens: u32::try_from(request.tokens_most()).unwrap_or(u32::MAX),
            output_tokens: request.output_tokens_max,
            ..Usage::default()
        }
    }

    /// Asks the model. `heard` gets the text as it comes, for watchers; the reply has all of it. `cost` gets the costs
    /// that the reply does not contain: unusable answers, and earlier attempts.
    ///
    /// # Errors
    /// Every [`ModelError`].
    async fn ask(
        &self,
        request: &ModelRequest,
        heard: ReplyListener<'_>,
        cost: &dyn Cost,
    ) -> Result<ModelReply, ModelError>;

    /// As [`Self::ask`], without counting costs.
    ///
    /// # Errors
    /// Every [`ModelError`].
    async fn complete(&self, request: &ModelRequest, heard: ReplyListener<'_>) -> Result<ModelReply, ModelError> {
        self.ask(request, heard, &UsageTally::default()).await
    }

    /// The model for one invocation, if that makes a difference: a recording counts its replies within an invocation.
    /// `answered` are the requests that the invocation's journal has answered already, so that a resumed one continues
    /// at its place. None: the model itself serves.
    fn within(&self, _invocation: &InvocationId, _answered: &[Digest]) -> Option<Arc<dyn Model>> {
        None
    }
}

/// The models of the operator, by their names in `longhaul.toml`.
pub trait Models: Send + Sync {
    /// The model of that name.
    fn model(&self, name: &str) -> Option<Arc<dyn Model>>;
}
