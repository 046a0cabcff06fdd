//! The event bus of a run. Events are in the store; the bus only announces new ones, and the text that a model is
//! producing right now. A slow watcher loses the live view, never an event.
//!
//! It also buffers the steps of running components until the run's actor stores them.

use crate::step_contents::StepContents;
use longhaul_core::InvocationId;
use longhaul_core::event::{Event, RunEvent};
use longhaul_core::stream::StreamToken;
use longhaul_core::watch::{StepContent, Watch};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, broadcast};

/// Messages that a watcher may lag behind before it has to read the store again.
const BACKLOG: usize = 1_024;

/// Bytes of a reply that are kept for late subscribers: as many as a model's reply may have by default, so that they
/// receive all of it. A longer reply loses its beginning.
const SPEECH_BYTES_MAX: usize = 32 << 20;

/// Bytes that are kept of all replies of a run together.
const SPEECHES_BYTES_MAX: usize = 64 << 20;

/// A message to a watcher.
#[derive(Clone, Debug)]
pub enum BusMessage {
    /// A durable event.
    Event(RunEvent),
    /// A part of a model's reply, which is not durable.
    Token(StreamToken),
    /// The run's actor is gone: it ended, was paused, or its process stops.
    Gone {
        /// The reason, if the run itself did not end.
        why: Option<String>,
    },
}

/// A step of a component's work, not stored yet.
#[derive(Clone, Debug)]
pub struct PendingStep {
    /// The invocation that the component works in.
    pub invocation: InvocationId,
    /// Counts up within the invocation; a repeated step has the same number.
    pub number: u32,
    /// The thought, call or observation.
    pub event: Event,
}

/// The watchers of one run.
#[derive(Clone)]
pub struct EventBus(Arc<Inner>);

struct Inner {
    sender: broadcast::Sender<BusMessage>,
    live: Mutex<LiveReplies>,
    steps: Mutex<Vec<PendingStep>>,
    has_steps: Notify,
    contents: Mutex<StepContents>,
}

/// The replies that models are producing.
#[derive(Default)]
struct LiveReplies {
    /// The number of the last reported event.
    number: u64,
    speeches: BTreeMap<InvocationId, StreamToken>,
    /// Bytes of all replies.
    bytes: usize,
}

/// Every message from now on, and the replies so far.
pub struct Subscription {
    /// Receives the messages.
    pub receiver: broadcast::Receiver<BusMessage>,
    /// The replies so far, each as one part.
    pub so_far: Vec<StreamToken>,
}

impl Default for EventBus {
    fn default() -> Self {
        Self(Arc::new(Inner {
            sender: broadcast::Sender::new(BACKLOG),
            live: Mutex::default(),
            steps: Mutex::default(),
            has_steps: Notify::new(),
            contents: Mutex::default(),
        }))
    }
}

impl EventBus {
    /// Sends a message to every watcher.
    pub fn tell(&self, heard: BusMessage) {
        if let BusMessage::Event(event) = &heard {
            let mut live = lock(&self.0.live);
            live.number = event.number;
            if let Event::Thought { invocation, .. } | Event::InvocationEnded { invocation, .. } = &event.event {
                live.forget(invocation);
            }
        }
        // A send without receivers is no error.
        let _ = self.0.sender.send(heard);
    }

    /// Subscribes to every message from now on.
    pub fn watch(&self) -> Subscription {
        // Under the lock, so that each part of a reply is either in the backlog or in the channel, and never in both.
        let live = lock(&self.0.live);
        Subscription { receiver: self.0.sender.subscribe(), so_far: live.so_far() }
    }

    /// The replies so far, each as one part.
    pub fn so_far(&self) -> Vec<StreamToken> {
        lock(&self.0.live).so_far()
    }

    /// Takes the buffered steps, in the order in which they were made.
    pub fn take_steps(&self) -> Vec<PendingStep> {
        std::mem::take(&mut lock(&self.0.steps))
    }

    /// Returns when there are buffered steps.
    pub async fn has_steps(&self) {
        self.0.has_steps.notified().await;
    }

    /// Keeps the whole contents of steps from now on, within a bound, for [`Self::take_content`].
    pub fn want_contents(&self) {
        lock(&self.0.contents).want();
    }

    /// Takes the whole content of a step whose event was seen. None: it is not kept, or not any more.
    pub fn take_content(&self, invocation: &InvocationId, number: u32) -> Option<StepContent> {
        lock(&self.0.contents).take(invocation, number)
    }

    /// Buffers a step, under its own number in the invocation.
    pub fn note(&self, step: PendingStep) {
        lock(&self.0.steps).push(step);
        self.0.has_steps.notify_one();
    }
}

impl LiveReplies {
    fn so_far(&self) -> Vec<StreamToken> {
        self.speeches.values().cloned().collect()
    }

    fn forget(&mut self, invocation: &InvocationId) {
        let bytes = self.speeches.remove(invocation).map_or(0, |speech| speech.text.len());
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Appends a piece to the reply of an invocation's model; returns it as a part.
    fn hear(&mut self, invocation: &InvocationId, text: &str) -> StreamToken {
        let fresh =
            || StreamToken { invocation: invocation.clone(), after: 0, part: 0, text: String::new(), whole: true };
        let speech = self.speeches.entry(invocation.clone()).or_insert_with(fresh);
        (speech.after, speech.part) = (self.number, speech.part + 1);
        speech.text.push_str(text);
        self.bytes += text.len();
        // Drops half of it at once, so that an endless reply does not move all of it with each piece.
        if speech.text.len() > SPEECH_BYTES_MAX || self.bytes > SPEECHES_BYTES_MAX {
            let half = speech.text.ceil_char_boundary(speech.text.len() / 2);
            speech.text.drain(..half);
            self.bytes -= half;
        }
        let StreamToken { after, part, .. } = *speech;
        StreamToken { invocation: invocation.clone(), after, part, text: text.to_owned(), whole: false }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watch for EventBus {
    fn heard(&self, invocation: &InvocationId, text: &str) {
        let mut live = lock(&self.0.live);
        let token = live.hear(invocation, text);
        // Under the lock: parts are sent in the order of their numbers.
        let _ = self.0.sender.send(BusMessage::Token(token));
    }

    fn begins(&self, invocation: &InvocationId) {
        lock(&self.0.live).forget(invocation);
    }

    fn wants_content(&self) -> bool {
        lock(&self.0.contents).are_wanted()
    }

    fn content(&self, invocation: &InvocationId, number: u32, content: StepContent) {
        lock(&self.0.contents).keep(invocation, number, content);
    }

    fn step(&self, invocation: &InvocationId, number: u32, event: Event) {
        self.note(PendingStep { invocation: invocation.clone(), number, event });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> InvocationId {
        InvocationId::from_text(text)
    }

    #[test]
    fn who_comes_late_gets_what_was_said_so_far_as_one_part_and_then_the_next_ones() {
        let bus = EventBus::default();
        let one = id("r-1/plan");
        bus.begins(&one);
        bus.heard(&one, "Once ");
        bus.heard(&one, "upon ");
        let mut late = bus.watch();
        bus.heard(&one, "a time");
        let [so_far] = late.so_far.as_slice() else { panic!("{:?}", late.so_far) };
        assert_eq!((so_far.text.as_str(), so_far.part, so_far.whole), ("Once upon ", 2, true));
        let Ok(BusMessage::Token(next)) = late.receiver.try_recv() else { panic!("a part was lost") };
        assert_eq!((next.text.as_str(), next.part, next.whole), ("a time", 3, false));
        bus.begins(&one);
        assert!(bus.so_far().is_empty(), "the next reply begins anew");
    }

    /// The beginning of the reply used to be missing.
    #[test]
    fn who_comes_late_to_a_long_reply_gets_the_whole_of_it() {
        let bus = EventBus::default();
        let one = id("r-1/plan");
        let parts: Vec<String> =
            (0..10_000).map(|number| format!("part {number}, of many as long as this one; ")).collect();
        parts.iter().for_each(|part| bus.heard(&one, part));
        let [so_far] = bus.watch().so_far.try_into().expect("one");
        assert!(so_far.text.len() > 256 << 10 && so_far.text == parts.concat());
    }

    #[test]
    fn replies_without_end_are_not_kept_without_end() {
        let bus = EventBus::default();
        let piece = "é".repeat(512 << 10);
        for _ in 0..40 {
            for number in 0..4 {
                bus.heard(&id(&format!("r-1/{number}")), &piece);
            }
        }
        let so_far = bus.so_far();
        assert!(so_far.iter().all(|one| one.text.len() <= SPEECH_BYTES_MAX && one.part == 40));
        assert!(so_far.iter().map(|one| one.text.len()).sum::<usize>() <= SPEECHES_BYTES_MAX);
        for number in 0..4 {
            bus.begins(&id(&format!("r-1/{number}")));
        }
        assert_eq!(lock(&bus.0.live).bytes, 0);
    }
}
