//! A conversation with a model, for plugins that ask and read the answer.
//!
//! The host keeps the context. What is missing here can be done on [`Conversation::raw`].

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Error;
pub use crate::bindings::conversation::{
    ContextUsage, Conversation as RawConversation, ModelError, Options, Reply, ReplyFormat, StopReason,
};
use crate::bindings::message_types::{Image, Message, Part, Role, ToolCallResult};

/// The operator's model and limits, a reply as text.
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

/// A context of its own, held by the host.
pub struct Conversation {
    raw: RawConversation,
}

impl Conversation {
    /// Opens a conversation with a system prompt.
    #[must_use]
    pub fn new(system: &str) -> Self {
        Self { raw: RawConversation::new(system) }
    }

    /// Everything that the contract offers.
    #[must_use]
    pub fn raw(&self) -> &RawConversation {
        &self.raw
    }

    /// Adds a text of the user.
    ///
    /// # Errors
    /// Those of `push`.
    pub fn user(&self, text: impl Into<String>) -> Result<(), Error> {
        self.push(Role::User, Part::Text(text.into()), false)
    }

    /// Adds a text of the user that survives compaction and reset: the task itself.
    ///
    /// # Errors
    /// Those of `push`.
    pub fn pinned(&self, text: impl Into<String>) -> Result<(), Error> {
        self.push(Role::User, Part::Text(text.into()), true)
    }

    /// Answers a tool that the model asked for.
    ///
    /// # Errors
    /// Those of `push`.
    pub fn answer(&self, answer: ToolCallResult) -> Result<(), Error> {
        self.push(Role::Tool, Part::ToolResult(answer), false)
    }

    /// Shows pictures, as the user.
    ///
    /// # Errors
    /// Those of `push`.
    pub fn pictures(&self, pictures: Vec<Image>) -> Result<(), Error> {
        let words = Part::Text("What the tools answered with:".to_owned());
        let parts = std::iter::once(words).chain(pictures.into_iter().map(Part::Image)).collect();
        Ok(self.raw.push(&Message { role: Role::User, parts }, false)?)
    }

    /// Asks the model.
    ///
    /// # Errors
    /// Those of `complete`.
    pub fn complete(&self, options: &Options) -> Result<Reply, Error> {
        Ok(self.raw.complete(options)?)
    }

    /// Says `prompt` and gives the model's reply.
    ///
    /// # Errors
    /// Those of `push` and `complete`.
    pub fn text(&self, prompt: &str) -> Result<String, Error> {
        self.user(prompt)?;
        Ok(self.complete(&Options::default())?.text)
    }

    /// Says `prompt` and reads the model's reply, which the host holds to `schema`.
    ///
    /// # Errors
    /// Those of `push` and `complete`; [`Error::Invalid`] when the reply is not a `T` even so, for
    /// example because it was cut.
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
