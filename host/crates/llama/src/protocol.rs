//! The protocol between the host and the model's child process: JSON lines over stdin and stdout.
//!
//! One line is one [`ChildCall`] or one [`ChildAnswer`]. The child starts by saying [`AnswerBody::Info`] (or
//! [`AnswerBody::Error`], and then ends) with no id; after that every answer carries the id of its
//! call. A completion is any number of [`AnswerBody::Token`] and then one [`AnswerBody::Done`] or
//! one [`AnswerBody::Error`]. Calls are served in order, one at a time; only [`CallBody::Cancel`]
//! overtakes. This module holds types only: it opens nothing and knows no tensor.

use serde::{Deserialize, Serialize};

/// Longest line that the child accepts, in bytes without the line's end. A longer one is answered
/// with [`ErrorKind::LineTooLong`] and skipped.
///
/// 4 MiB is about a hundred times the text that fits into the largest context used here.
pub const LINE_BYTES_MAX: usize = 4 << 20;

/// Calls that may wait while one is served. One more is answered with [`ErrorKind::Busy`].
pub const CALLS_WAITING_MAX: usize = 64;

/// The environment that limits the child to `threads` threads; 0 counts as 1.
///
/// The thread pools of the tensor library read these variables once, when they start, and spin
/// while they wait: give them no more threads than there are cores to spare.
pub fn thread_environment(threads: usize) -> [(&'static str, String); 2] {
    let threads = threads.max(1).to_string();
    [("CANDLE_NUM_THREADS", threads.clone()), ("RAYON_NUM_THREADS", threads)]
}

/// A line from the host to the child.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChildCall {
    /// Chosen by the host; repeated in every answer to this call.
    pub id: u64,
    /// The request.
    #[serde(flatten)]
    pub body: CallBody,
}

/// A request of the host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallBody {
    /// Continue a conversation. Answered by tokens, then `done`.
    Complete(Box<Completion>),
    /// The token ids of a text, in which special tokens stay text. Answered by `tokens`.
    Tokenize(String),
    /// Asks for the loaded model. Answered by `info`.
    Info {},
    /// End the completion with this id, running or waiting. It has no answer of its own: the
    /// completion ends with [`CompletionStop::Cancelled`], unless it had ended before.
    Cancel(u64),
}

/// A line from the child to the host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChildAnswer {
    /// The id of the call; `None` for the greeting and for a line whose id could not be read.
    pub id: Option<u64>,
    /// The reply.
    #[serde(flatten)]
    pub body: AnswerBody,
}

/// A reply of the child.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerBody {
    /// The next piece of a completion's text: whole characters, never empty.
    Token(String),
    /// The end of a completion.
    Done(CompletionReply),
    /// The token ids of a text.
    Tokens(Vec<u32>),
    /// The loaded model.
    Info(Info),
    /// The call has failed, and nothing else follows for it.
    Error(ChildFailure),
}

/// A completion to make, with its settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Completion {
    /// Name of the conversation, whose computed tokens are kept for the next turn. The empty name
    /// (the default) keeps nothing. It changes the cost of an answer, not what is asked.
    pub session: String,
    /// The conversation so far, oldest first. Text in it that spells a special token stays text.
    pub messages: Vec<ChatMessage>,
    /// Text that the assistant's answer starts with. It is not repeated in the reply. Excludes
    /// `schema` and `json`.
    pub prefill: Option<String>,
    /// A JSON schema that the answer obeys, unless it is cut off by `output_tokens_max` or `stop`.
    /// References are local (`#/...`). Whitespace is fixed, since small models drown in it.
    pub schema: Option<serde_json::Value>,
    /// The answer is some JSON object. Ignored when there is a `schema`.
    pub json: bool,
    /// 0 (the default) takes the likeliest token each time; 1 samples as the model was trained.
    pub temperature: f32,
    /// Sample among the likeliest tokens that together have this probability. Default 0.95.
    pub top_p: f32,
    /// Sample among this many of the likeliest tokens; 0 is all of them. Default 40.
    pub top_k: u32,
    /// Seed of the random numbers. Default 0. The same request, model and kind of CPU give the same text.
    pub seed: u64,
    /// Longest answer, in tokens. Default 512. The answer then ends with [`CompletionStop::Length`],
    /// as it does when the context is full.
    pub output_tokens_max: u32,
    /// The answer ends before the first of these texts. Empty ones are ignored.
    pub stop: Vec<String>,
}

impl Default for Completion {
    fn default() -> Self {
        Completion {
            session: String::new(),
            messages: Vec::new(),
            prefill: None,
            schema: None,
            json: false,
            temperature: 0.0,
            top_p: 0.95,
            top_k: 40,
            seed: 0,
            output_tokens_max: 512,
            stop: Vec::new(),
        }
    }
}

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatMessage {
    /// Author of the message.
    pub role: ChatRole,
    /// Text of the message.
    pub content: String,
}

impl ChatMessage {
    /// A message of `role` that says `content`.
    pub fn new(role: ChatRole, content: impl Into<String>) -> Self {
        let content = content.into();
        ChatMessage { role, content }
    }
}

/// Author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChatRole {
    /// Instructions for the whole conversation.
    System,
    /// The user.
    User,
    /// The model.
    Assistant,
    /// The result of a tool. Few templates of small models know it.
    Tool,
}

impl ChatRole {
    /// The name that chat templates use.
    pub fn name(self) -> &'static str {
        match self {
            ChatRole::System => "system",
            ChatRole::User => "user",
            ChatRole::Assistant => "assistant",
            ChatRole::Tool => "tool",
        }
    }
}

/// A finished completion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompletionReply {
    /// The whole answer, without the prefill and without the stop text.
    pub text: String,
    /// Reason for the end.
    pub stop_reason: CompletionStop,
    /// Tokens of the prompt, the template and the prefill included.
    pub prompt_tokens: u32,
    /// Tokens of `prompt_tokens` that the session had computed before.
    pub cached_tokens: u32,
    /// Tokens of the answer, those forced by a schema included.
    pub output_tokens: u32,
}

/// Reason for the end of a completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompletionStop {
    /// The model said so, a stop text came, or the schema is complete.
    End,
    /// `output_tokens_max` is reached, or the context is full.
    Length,
    /// The caller asked for it.
    Cancelled,
}

/// The loaded model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Info {
    /// The model's own name, from the file; empty if it has none.
    pub name: String,
    /// Tokens of prompt and answer together that a completion may have.
    pub context_tokens_max: u32,
    /// Memory that the model counts on at most, in bytes: weights, sessions and work space.
    pub memory_bytes_max: u64,
    /// Reason why the child read the file without giving up its powers; none: it gave them up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unconfined: Option<String>,
}

/// A failed call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildFailure {
    /// The case that a caller can act on.
    pub kind: ErrorKind,
    /// A sentence for a person, with the remedy.
    pub message: String,
}

/// A case that a caller can act on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The call is not one that this protocol has, or its values exclude each other.
    BadRequest,
    /// The line is longer than [`LINE_BYTES_MAX`].
    LineTooLong,
    /// More than [`CALLS_WAITING_MAX`] calls wait; the same call may succeed later.
    Busy,
    /// The prompt leaves no room for an answer.
    PromptTooLong,
    /// The schema cannot be obeyed, or is too large.
    BadSchema,
    /// The model's file cannot be used.
    BadModel,
    /// The model does not fit into the memory it may use.
    OutOfMemory,
    /// A fault of the child itself.
    Internal,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_one_line_that_a_person_can_type() {
        let line = r#"{"id":7,"complete":{"messages":[{"role":"user","content":"hi"}],"top_k":5}}"#;
        let call: ChildCall = serde_json::from_str(line).expect("parse the call");
        let CallBody::Complete(completion) = call.body else {
            panic!("not a completion: {call:?}");
        };
        assert_eq!(completion.top_k, 5);
        assert_eq!(completion.output_tokens_max, 512);
        assert_eq!(completion.messages[0].role, ChatRole::User);
    }

    #[test]
    fn every_call_and_answer_survives_its_line() {
        for body in [
            CallBody::Complete(Box::default()),
            CallBody::Tokenize("a\nb".into()),
            CallBody::Info {},
            CallBody::Cancel(3),
        ] {
            let call = ChildCall { id: 9, body };
            let line = serde_json::to_string(&call).expect("write");
            assert!(!line.contains('\n'), "{line}");
            assert_eq!(serde_json::from_str::<ChildCall>(&line).expect("read"), call);
        }
        let answer = ChildAnswer { id: None, body: AnswerBody::Token("\"\n".into()) };
        let line = serde_json::to_string(&answer).expect("write");
        assert_eq!(line, r#"{"id":null,"token":"\"\n"}"#);
        assert_eq!(serde_json::from_str::<ChildAnswer>(&line).expect("read"), answer);
    }

    #[test]
    fn a_misspelt_option_is_refused_rather_than_ignored() {
        let line = r#"{"id":1,"complete":{"mesages":[]}}"#;
        assert!(serde_json::from_str::<ChildCall>(line).is_err());
    }
}
