//! Live watchers of running work: they receive a model's reply and an invocation's steps as they come.
//!
//! Nothing is stored here. A durable fact is an [`Event`], which the actor stores; a watcher that misses something has
//! lost it.

use crate::model::Message;
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

    /// A conversation has an update, counted from 0; also when a journal caused it.
    fn said(&self, _conversation: usize, _said: ConversationUpdate<'_>) {}
}

/// An update of a conversation.
#[derive(Clone, Copy, Debug)]
pub enum ConversationUpdate<'a> {
    /// The conversation started with this system prompt.
    System(&'a str),
    /// The guest or the model added this message.
    Message(&'a Message),
}
