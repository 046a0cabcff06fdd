//! Watchers of running work: they are told live what a model says and what an invocation does.
//!
//! Nothing of it is kept here. What has to last is an [`Event`], which whoever does the work puts into the store; a
//! watcher that misses something has lost it.

use crate::model::Message;
use crate::{Event, InvocationId};

/// Who watches live, beside the events that are kept.
pub trait Watch: Send + Sync {
    /// A model said something more.
    fn heard(&self, invocation: &InvocationId, text: &str);

    /// A model begins to reply: what was heard of it before is over.
    fn begins(&self, _invocation: &InvocationId) {}

    /// A step of the work: something thought, done or seen. Counts from 1 within the invocation; an invocation
    /// that is resumed says its first steps again, under the same numbers.
    fn step(&self, _invocation: &InvocationId, _number: u32, _step: Event) {}

    /// Something is new in a conversation, counted from 0; also when what made it so came from a journal.
    fn said(&self, _conversation: usize, _said: ConversationUpdate<'_>) {}
}

/// What is new in a conversation.
#[derive(Clone, Copy, Debug)]
pub enum ConversationUpdate<'a> {
    /// It began, with these words.
    System(&'a str),
    /// A message, of the guest's or of the model's.
    Message(&'a Message),
}
