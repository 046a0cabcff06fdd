//! The whole contents of steps, until the watcher that wants them has seen the events of the steps.
//!
//! Nothing is kept unless somebody wants it, and never more than a bounded number of bytes: the oldest contents go
//! first. An event whose content is gone is still complete in itself.

use longhaul_core::InvocationId;
use longhaul_core::model::{Message, MessagePart, ModelReply, ModelRequest};
use longhaul_core::watch::StepContent;
use std::collections::{BTreeMap, VecDeque};

/// Bytes of all contents of a run. A resumed invocation repeats its steps, and nobody takes the contents of those.
const BYTES_MAX: usize = 32 << 20;

type Place = (InvocationId, u32);

/// Contents, by invocation and number of the step.
#[derive(Default)]
pub(crate) struct StepContents {
    wanted: bool,
    /// Each content with its bytes.
    kept: BTreeMap<Place, (StepContent, usize)>,
    /// The places from the oldest on. A place whose content was taken may still stand here.
    order: VecDeque<Place>,
    bytes: usize,
}

impl StepContents {
    /// Keeps contents from now on.
    pub(crate) fn want(&mut self) {
        self.wanted = true;
    }

    pub(crate) fn are_wanted(&self) -> bool {
        self.wanted
    }

    pub(crate) fn keep(&mut self, invocation: &InvocationId, number: u32, content: StepContent) {
        let bytes = bytes_of(&content);
        if !self.wanted || bytes > BYTES_MAX {
            return;
        }
        let place = (invocation.clone(), number);
        self.drop_at(&place);
        self.bytes += bytes;
        self.kept.insert(place.clone(), (content, bytes));
        self.order.push_back(place);
        while self.bytes > BYTES_MAX {
            let Some(oldest) = self.order.pop_front() else { return };
            self.drop_at(&oldest);
        }
        // The places of taken contents would grow without end otherwise.
        if self.order.len() > 2 * self.kept.len() + 64 {
            let kept = &self.kept;
            self.order.retain(|place| kept.contains_key(place));
        }
    }

    pub(crate) fn take(&mut self, invocation: &InvocationId, number: u32) -> Option<StepContent> {
        self.drop_at(&(invocation.clone(), number))
    }

    fn drop_at(&mut self, place: &Place) -> Option<StepContent> {
        let (content, bytes) = self.kept.remove(place)?;
        self.bytes -= bytes;
        Some(content)
    }
}

fn bytes_of(content: &StepContent) -> usize {
    match content {
        StepContent::Reply { request, reply } => of_request(request) + of_reply(reply),
        StepContent::Arguments(text) | StepContent::Output(text) => text.len(),
    }
}

fn of_request(request: &ModelRequest) -> usize {
    let messages: usize = request.messages.iter().map(of_message).sum();
    // The description and the schema of an offered function are counted as a page of text.
    request.system.len() + messages + request.tools.len() * 4_096 + 512
}

fn of_message(message: &Message) -> usize {
    let part = |part: &MessagePart| match part {
        MessagePart::Text(text) => text.len(),
        MessagePart::Image { data, .. } => data.len(),
        MessagePart::Requested(call) => call.arguments.len() + 256,
        MessagePart::Answered { output, .. } => output.len(),
        MessagePart::Thought(thought) => thought.text.len() + thought.signature.as_ref().map_or(0, String::len),
    };
    64 + message.parts.iter().map(part).sum::<usize>()
}

fn of_reply(reply: &ModelReply) -> usize {
    let calls: usize = reply.calls.iter().map(|call| call.arguments.len() + 256).sum();
    let thoughts: usize = reply.thoughts.iter().map(|thought| thought.text.len()).sum();
    reply.text.len() + calls + thoughts + 512
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> InvocationId {
        InvocationId::from_text(text)
    }

    #[test]
    fn contents_are_kept_only_where_somebody_wants_them_and_are_taken_once() {
        let mut contents = StepContents::default();
        contents.keep(&id("r-1/plan"), 1, StepContent::Output("a".into()));
        assert_eq!(contents.take(&id("r-1/plan"), 1), None);
        contents.want();
        contents.keep(&id("r-1/plan"), 1, StepContent::Output("a".into()));
        contents.keep(&id("r-1/plan"), 1, StepContent::Output("b".into()));
        assert_eq!(contents.take(&id("r-1/plan"), 1), Some(StepContent::Output("b".into())));
        assert_eq!((contents.take(&id("r-1/plan"), 1), contents.bytes), (None, 0));
    }

    #[test]
    fn the_oldest_contents_go_where_there_are_too_many() {
        let mut contents = StepContents::default();
        contents.want();
        let half = "x".repeat(BYTES_MAX / 2);
        for number in 1..=3 {
            contents.keep(&id("r-1/plan"), number, StepContent::Output(half.clone()));
        }
        assert_eq!(contents.take(&id("r-1/plan"), 1), None);
        assert!(contents.take(&id("r-1/plan"), 2).is_some() && contents.take(&id("r-1/plan"), 3).is_some());
        contents.keep(&id("r-1/plan"), 4, StepContent::Output("x".repeat(BYTES_MAX + 1)));
        assert_eq!(contents.take(&id("r-1/plan"), 4), None);
        for number in 0..1_000 {
            contents.keep(&id("r-1/plan"), number, StepContent::Output("x".into()));
            assert!(contents.take(&id("r-1/plan"), number).is_some());
        }
        assert!(contents.order.len() < 100, "{}", contents.order.len());
    }
}
