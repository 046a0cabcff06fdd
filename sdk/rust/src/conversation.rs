//! Conversations with models: texts in, replies out.
//!
//! The host holds the context. [`Conversation::raw`] has all functions of the contract.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Error;
pub use crate::bindings::conversation::{
    ContextUsage, Conversation as RawConversation, ModelError, Options, Reply, ReplyFormat, StopReason,
};
use crate::bindings::message_types::{Image, Message, Part, Role, ToolCallResult};

/// The first granted model, its default temperature, and a reply as text of at most 4 096 tokens.
impl Default for Options {
    fn default() -> Self {
        Self {
            model: None,
            output_tokens_max: None,
            temperature: None,
            seed: None,
            format: ReplyFormat::Text,
            prefill: None,
            stop: Vec::new(),
            offer_tools: Vec::new(),
            extra: "{}".to_owned(),
        }
    }
}

/// A conversation with a model, whose context the host holds.
pub struct Conversation {
    raw: RawConversation,
}

impl Conversation {
    /// Starts a conversation with a system prompt, which may be empty.
    #[must_use]
    pub fn new(system: &str) -> Self {
        Self { raw: RawConversation::new(system) }
    }

    /// The conversation of the contract, with all its functions.
    #[must_use]
    pub fn raw(&self) -> &RawConversation {
        &self.raw
    }

    /// Adds a text of the user.
    ///
    /// # Errors
    /// The errors of `push`.
    pub fn user(&self, text: impl Into<String>) -> Result<(), Error> {
        self.push(Role::User, Part::Text(text.into()), false)
    }

    /// Adds a text of the user that stays when the context is cut back or reset: the task itself, for example.
    ///
    /// # Errors
    /// The errors of `push`.
    pub fn pinned(&self, text: impl Into<String>) -> Result<(), Error> {
        self.push(Role::User, Part::Text(text.into()), true)
    }

    /// Adds the result of a call that the model asked for.
    ///
    /// # Errors
    /// The errors of `push`.
    pub fn answer(&self, answer: ToolCallResult) -> Result<(), Error> {
        self.push(Role::Tool, Part::ToolResult(answer), false)
    }

    /// Adds images, in a message of the user.
    ///
    /// # Errors
    /// The errors of `push`.
    pub fn pictures(&self, pictures: Vec<Image>) -> Result<(), Error> {
        let words = Part::Text("What the tools answered with:".to_owned());
        let parts = std::iter::once(words).chain(pictures.into_iter().map(Part::Image)).collect();
        Ok(self.raw.push(&Message { role: Role::User, parts }, false)?)
    }

    /// Asks the model for a reply, and adds the reply to the context.
    ///
    /// # Errors
    /// The errors of `complete`.
    pub fn complete(&self, options: &Options) -> Result<Reply, Error> {
        Ok(self.raw.complete(options)?)
    }

    /// Adds `prompt` as a text of the user, and returns the text of the reply.
    ///
    /// # Errors
    /// The errors of `push` and `complete`.
    pub fn text(&self, prompt: &str) -> Result<String, Error> {
        self.user(prompt)?;
        Ok(self.complete(&Options::default())?.text)
    }

    /// Adds `prompt` as a text of the user, asks for a reply that satisfies `schema`, and reads it.
    ///
    /// # Errors
    /// The errors of `push` and `complete`; [`Error::Invalid`] when the reply is not a `T`, for example because it was
    /// cut.
    pub fn schema<T: DeserializeOwned>(&self, prompt: &str, schema: &Value) -> Result<T, Error> {
        self.user(prompt)?;
        let format = ReplyFormat::Schema(schema.to_string());
        let reply = self.complete(&Options { format, ..Options::default() })?;
        crate::json::read("the model's reply", &reply.text)
    }

    fn push(&self, role: Role, part: Part, pinned: bool) -> Result<(), Error> {
        Ok(self.raw.push(&Message { role, parts: vec![part] }, pinned)?)
    }
}
