//! Live watchers of running work: they receive a model's reply and an invocation's steps as they come.
//!
//! Nothing is stored here. A durable fact is an [`Event`], which the actor stores; a watcher that misses something has
//! lost it.

use crate::model::{Message, MessagePart, ModelReply, ModelRequest, RequestedCall};
use crate::{Event, InvocationId};

/// Receives live updates, beside the stored events.
pub trait Watch: Send + Sync {
    /// A model's reply continues.
    fn heard(&self, invocation: &InvocationId, text: &str);

    /// A model begins a reply: an earlier part of it is void.
    fn begins(&self, _invocation: &InvocationId) {}

    /// A step of the work: a thought, an action or an observation. Counts from 1 within the invocation; a resumed
    /// invocation repeats its first steps, under the same numbers.
    fn step(&self, _invocation: &InvocationId, _number: u32, _step: Event) {}

    /// True when [`Self::content`] is wanted. It is asked first, since contents are large.
    fn wants_content(&self) -> bool {
        false
    }

    /// The whole content of a step whose event keeps only its beginning. It comes before the step of that number.
    fn content(&self, _invocation: &InvocationId, _number: u32, _content: StepContent) {}

    /// A conversation has an update, counted from 0; also when a journal caused it.
    fn said(&self, _conversation: usize, _said: ConversationUpdate<'_>) {}

    /// A conversation, counted from 0, asks a model; also when a journal has the reply. The next call of
    /// `conversation.complete` is this request.
    fn requested(&self, _conversation: usize, _request: &ModelRequest) {}

    /// The guest is about to make a call that is an entry of its journal; also where the journal has the answer. The
    /// arguments are the JSON of which the journal keeps the digest.
    fn called(&self, _name: &'static str, _arguments: &[u8]) {}
}

/// The whole content of a step.
#[derive(Clone, Debug, PartialEq)]
pub enum StepContent {
    /// A request to a model, and the reply.
    Reply {
        /// The request, with the conversation so far.
        request: Box<ModelRequest>,
        /// The reply.
        reply: Box<ModelReply>,
    },
    /// The arguments of a call, as JSON text.
    Arguments(String),
    /// The output of a call, or its error.
    Output(String),
}

impl StepContent {
    /// The content with every text of it changed, for example without secrets.
    #[must_use]
    pub fn with_texts(self, change: &dyn Fn(&str) -> String) -> Self {
        match self {
            Self::Reply { mut request, mut reply } => {
                request.system = change(&request.system);
                for part in request.messages.iter_mut().flat_map(|message| &mut message.parts) {
                    change_part(part, change);
                }
                reply.text = change(&reply.text);
                reply.calls.iter_mut().for_each(|call| change_call(call, change));
                reply.thoughts.iter_mut().for_each(|thought| thought.text = change(&thought.text));
                Self::Reply { request, reply }
            }
            Self::Arguments(text) => Self::Arguments(change(&text)),
            Self::Output(text) => Self::Output(change(&text)),
        }
    }
}

fn change_part(part: &mut MessagePart, change: &dyn Fn(&str) -> String) {
    match part {
        MessagePart::Text(text) => *text = change(text),
        MessagePart::Requested(call) => change_call(call, change),
        MessagePart::Answered { output, .. } => *output = change(output),
        MessagePart::Thought(thought) => thought.text = change(&thought.text),
        MessagePart::Image { .. } => {}
    }
}

fn change_call(call: &mut RequestedCall, change: &dyn Fn(&str) -> String) {
    call.arguments = change(&call.arguments);
}

/// An update of a conversation.
#[derive(Clone, Copy, Debug)]
pub enum ConversationUpdate<'a> {
    /// The conversation started with this system prompt.
    System(&'a str),
    /// The guest or the model added this message.
    Message(&'a Message),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{MessageRole, ReplyFormat, Thought};

    #[test]
    fn every_text_of_a_content_is_changed() {
        let call = || RequestedCall { id: "c".into(), tool: "t".into(), function: "f".into(), arguments: "key".into() };
        let thought = || Thought { text: "key".into(), ..Thought::default() };
        let answered = MessagePart::Answered { id: "c".into(), output: "key".into(), failed: false };
        let parts = vec![
            MessagePart::Text("key".into()),
            MessagePart::Requested(call()),
            answered,
            MessagePart::Thought(thought()),
            MessagePart::Image { media_type: "image/png".into(), data: vec![1] },
        ];
        let request = ModelRequest {
            model: "m".into(),
            system: "key".into(),
            messages: vec![Message { speaker: MessageRole::User, parts }],
            tools: Vec::new(),
            format: ReplyFormat::Text,
            prefill: None,
            stop: Vec::new(),
            output_tokens_max: 1,
            temperature: None,
            seed: None,
        };
        let reply =
            ModelReply { text: "key".into(), calls: vec![call()], thoughts: vec![thought()], ..ModelReply::default() };
        let reply = StepContent::Reply { request: Box::new(request), reply: Box::new(reply) };
        for content in [reply, StepContent::Arguments("key".into()), StepContent::Output("key".into())] {
            let changed = content.with_texts(&|text| text.replace("key", "lock"));
            let shown = format!("{changed:?}");
            assert!(!shown.contains("key") && shown.contains("lock"), "{shown}");
        }
    }
}
