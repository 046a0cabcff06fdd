//! Conversations as the host holds them: speakers, turns, and sizes.
//!
//! Plain data and arithmetic: nothing here asks a model, a journal or a store.

use super::answers::Answers;
use super::gauge::Gauge;
use super::halve::Size;
use longhaul_core::Digest;
use longhaul_core::model::{Message, MessagePart, MessageRole, Model, ModelRequest, Usage, text_tokens};
use longhaul_core::text::truncate;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Failed approaches that a conversation keeps, the newest ones.
const FAILED_MAX: usize = 12;
/// Bytes of a failed approach; the rest is cut.
const FAILED_BYTES_MAX: usize = 160;

/// The origin of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MessageKind {
    /// The guest pushed it.
    Told,
    /// The guest pushed it after a tool call: the tool's answer, in any words.
    Observed,
    /// The model replied with it.
    Replied,
    /// The host put it in place of other messages.
    Summary {
        /// Its short form when it is old; none when it is short already.
        brief: Option<String>,
    },
}

/// One message.
#[derive(Clone, Debug)]
pub(super) struct HeldMessage {
    pub(super) message: Message,
    pub(super) pinned: bool,
    pub(super) kind: MessageKind,
}

impl HeldMessage {
    pub(super) fn new(message: Message, pinned: bool, kind: MessageKind) -> Self {
        Self { message, pinned, kind }
    }

    fn tokens(&self) -> u64 {
        self.message.tokens_estimated()
    }

    fn is_summary(&self) -> bool {
        matches!(self.kind, MessageKind::Summary { .. })
    }

    fn answers_a_call(&self) -> bool {
        self.message.parts.iter().any(|part| matches!(part, MessagePart::Answered { .. }))
    }

    /// Bytes that the host needs for it: all its texts, and the memory of its parts.
    pub(super) fn bytes(&self) -> u64 {
        let part = |part: &MessagePart| match part {
            MessagePart::Text(text) => text.len(),
            MessagePart::Image { media_type, data } => media_type.len() + data.len(),
            MessagePart::Requested(call) => {
                call.id.len() + call.tool.len() + call.function.len() + call.arguments.len()
            }
            MessagePart::Answered { id, output, .. } => id.len() + output.len(),
            MessagePart::Thought(thought) => thought.text.len() + thought.signature.as_ref().map_or(0, String::len),
        };
        let brief = if let MessageKind::Summary { brief: Some(brief) } = &self.kind { brief.len() } else { 0 };
        let texts: usize = self.message.parts.iter().map(part).sum();
        (size_of::<Self>() + self.message.parts.len() * size_of::<MessagePart>() + texts + brief) as u64
    }
}

/// Events of an invocation so far that decide how a conversation is trimmed. Each counts up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Notes {
    /// Tool calls.
    pub(crate) tools_called: u32,
    /// Entries of `progress` and saved artifacts.
    pub(crate) phases_ended: u32,
    /// Recorded or looked-up decisions.
    pub(crate) decisions_visited: u32,
}

/// The conversations of one invocation. A handle is an index, so that a drop has no effect.
#[derive(Default)]
pub(crate) struct Conversations {
    pub(super) open: Vec<Context>,
    pub(super) held_bytes: u64,
    /// Answered requests, in order, for models that count within an invocation.
    pub(super) answered: Vec<Digest>,
    /// The models of this invocation, by name.
    pub(super) models: HashMap<String, Arc<dyn Model>>,
    /// The events that decide how a context is trimmed.
    pub(crate) notes: Notes,
    /// Texts that were replaced in contexts and may be read again, by the first digits of their digest.
    pub(super) put_away: BTreeMap<String, Digest>,
    /// Windows that providers reported when they refused a request as too long, by model.
    pub(super) windows_told: BTreeMap<String, u64>,
}

/// One conversation.
pub(super) struct Context {
    pub(super) system: String,
    pub(super) messages: Vec<HeldMessage>,
    pub(super) usage: Usage,
    pub(super) resets: u32,
    pub(super) answers: Answers,
    pub(super) failed: Failed,
    /// By model: each counts in its own way.
    gauges: BTreeMap<String, Gauge>,
    /// The counters at the last cut.
    pub(super) noted: Notes,
    /// Tool calls before the last reply.
    tools_called: u32,
    /// The estimate just after the last cut: no new cut before it has grown.
    pub(super) settled: u64,
}

impl Context {
    pub(super) fn new(system: String, notes: Notes) -> Self {
        Self {
            system,
            messages: Vec::new(),
            usage: Usage::default(),
            resets: 0,
            answers: Answers::default(),
            failed: Failed::default(),
            gauges: BTreeMap::new(),
            noted: notes,
            tools_called: notes.tools_called,
            settled: 0,
        }
    }

    /// Adds a message that the guest pushes.
    pub(super) fn told(&self, message: Message, pinned: bool, notes: Notes) -> HeldMessage {
        let told = HeldMessage::new(message, pinned, MessageKind::Told);
        let observes = told.answers_a_call() || notes.tools_called > self.tools_called;
        if observes { HeldMessage { kind: MessageKind::Observed, ..told } } else { told }
    }

    /// Adds the model's reply to a request.
    pub(super) fn heard(&mut self, reply: HeldMessage, usage: Usage, notes: Notes) {
        self.usage = self.usage.plus(usage);
        self.tools_called = notes.tools_called;
        self.messages.push(reply);
    }

    /// Records a provider's count of a request; 0 is none.
    pub(super) fn counted(&mut self, model: &str, request: &ModelRequest, tokens: u64) {
        if let Some(gauge) = Gauge::of(tokens, request.tokens_estimated()) {
            self.gauges.insert(model.to_owned(), gauge);
        }
    }

    /// An estimate of its tokens.
    pub(super) fn estimated(&self) -> u64 {
        text_tokens(&self.system) + self.messages.iter().map(HeldMessage::tokens).sum::<u64>()
    }

    /// Its tokens for a model, with `tools_tokens` of offered functions.
    pub(super) fn tokens(&self, model: &str, tools_tokens: u64) -> u64 {
        let estimated = self.estimated() + tools_tokens;
        self.gauges.get(model).map_or(estimated, |gauge| gauge.tokens(estimated))
    }

    /// The estimate for this number of a model's tokens.
    pub(super) fn estimate_of(&self, model: &str, tokens: u64) -> u64 {
        self.gauges.get(model).map_or(tokens, |gauge| gauge.estimate(tokens))
    }

    /// The estimate of the part that always stays: the system prompt, and the pinned messages.
    pub(super) fn fixed(&self) -> u64 {
        let pinned = self.messages.iter().filter(|held| held.pinned);
        text_tokens(&self.system) + pinned.map(HeldMessage::tokens).sum::<u64>()
    }

    /// Pins the first message if none is pinned: it is the task, unless it is too long for that.
    pub(super) fn pin_task(&mut self, tokens_max: u64) {
        if self.messages.iter().any(|held| held.pinned) {
            return;
        }
        if let Some(first) = self.messages.first_mut().filter(|held| held.kind == MessageKind::Told)
            && first.tokens() <= tokens_max
        {
            first.pinned = true;
        }
    }

    /// Places of unpinned messages.
    pub(super) fn open(&self) -> Vec<usize> {
        (0..self.messages.len()).filter(|place| !self.messages[*place].pinned).collect()
    }

    /// The unpinned messages except summaries, in turns: a reply with all that follows it, since an answer must not
    /// stand without its call. Messages before the first reply are turns of their own.
    pub(super) fn turns(&self) -> Vec<Vec<usize>> {
        let mut turns: Vec<Vec<usize>> = Vec::new();
        let mut replied = false;
        for place in self.open() {
            let held = &self.messages[place];
            if held.is_summary() {
                continue;
            }
            let begins = held.message.speaker == MessageRole::Assistant || !replied;
            replied |= held.message.speaker == MessageRole::Assistant;
            match turns.last_mut() {
                Some(last) if !begins => last.push(place),
                _ => turns.push(vec![place]),
            }
        }
        turns
    }

    fn tokens_of(&self, places: &[usize]) -> u64 {
        places.iter().map(|place| self.messages[*place].tokens()).sum()
    }

    /// The number of newest turns that have together at most `tokens_max`.
    pub(super) fn newest(&self, turns: &[Vec<usize>], tokens_max: u64) -> usize {
        let mut sum = 0;
        let fits = |turn: &&Vec<usize>| {
            sum += self.tokens_of(turn);
            sum <= tokens_max
        };
        turns.iter().rev().take_while(fits).count()
    }

    /// Tokens of the unpinned tool outputs, and of all unpinned messages.
    pub(super) fn observed(&self) -> (u64, u64) {
        let open = || self.messages.iter().filter(|held| !held.pinned);
        let observed = open().filter(|held| held.kind == MessageKind::Observed).map(HeldMessage::tokens).sum();
        (observed, open().map(HeldMessage::tokens).sum())
    }

    pub(super) fn sizes(&self) -> Vec<Size> {
        let size =
            |held: &HeldMessage| Size { tokens: held.tokens(), pinned: held.pinned, glued: held.answers_a_call() };
        self.messages.iter().map(size).collect()
    }

    /// Puts one message, or none, in place of others, at the first of their places, and returns the replaced ones.
    pub(super) fn replace(&mut self, places: &[usize], by: Option<HeldMessage>) -> Vec<HeldMessage> {
        let mut removed: Vec<HeldMessage> = places.iter().rev().map(|place| self.messages.remove(*place)).collect();
        removed.reverse();
        if let (Some(first), Some(held)) = (places.first(), by) {
            self.messages.insert(*first, held);
        }
        removed
    }

    /// Reduces each summary except the newest to its brief. Returns the replaced ones.
    pub(super) fn shorten_summaries(&mut self) -> Vec<HeldMessage> {
        let summaries: Vec<usize> =
            (0..self.messages.len()).filter(|place| self.messages[*place].is_summary()).collect();
        let mut replaced = Vec::new();
        for place in summaries.iter().rev().skip(1) {
            let held = &self.messages[*place];
            if let MessageKind::Summary { brief: Some(brief) } = &held.kind {
                let message = Message::text(held.message.speaker, brief.clone());
                let short = HeldMessage::new(message, false, MessageKind::Summary { brief: None });
                replaced.push(std::mem::replace(&mut self.messages[*place], short));
            }
        }
        replaced
    }

    /// Places of the summaries that are only a brief, oldest first.
    pub(super) fn briefs(&self) -> Vec<usize> {
        let is_brief = |place: &usize| self.messages[*place].kind == (MessageKind::Summary { brief: None });
        (0..self.messages.len()).filter(is_brief).collect()
    }

    /// Keeps the pinned messages, then a summary in the guest's words.
    pub(super) fn reset(&mut self, summary: String) {
        self.messages.retain(|held| held.pinned);
        self.resets = self.resets.saturating_add(1);
        self.messages.push(HeldMessage::new(Message::text(MessageRole::User, summary), false, MessageKind::Told));
    }
}

/// The failed attempts, so that no summary of a summary forgets them.
#[derive(Debug, Default)]
pub(super) struct Failed(Vec<String>);

impl Failed {
    pub(super) fn add(&mut self, lines: Vec<String>) {
        for line in lines {
            let line = truncate(&line, FAILED_BYTES_MAX);
            if !self.0.contains(&line) {
                self.0.push(line);
            }
        }
        let over = self.0.len().saturating_sub(FAILED_MAX);
        self.0.drain(..over);
    }

    /// As items of a list, without those that `text` contains already.
    pub(super) fn lines_not_in(&self, text: &str) -> Vec<String> {
        self.0.iter().filter(|line| !text.contains(line.as_str())).map(|line| format!("- {line}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(speakers: &[(MessageRole, bool)]) -> Context {
        let mut context = Context::new(String::new(), Notes::default());
        for (number, (speaker, pinned)) in speakers.iter().enumerate() {
            let kind = if *speaker == MessageRole::Assistant { MessageKind::Replied } else { MessageKind::Told };
            context.messages.push(HeldMessage::new(Message::text(*speaker, format!("m{number}")), *pinned, kind));
        }
        context
    }

    #[test]
    fn a_turn_is_a_reply_with_all_that_came_after_it() {
        use MessageRole::{Assistant, Tool, User};
        let context = context(&[
            (User, true),
            (User, false),
            (User, false),
            (Assistant, false),
            (Tool, false),
            (User, true),
            (Tool, false),
            (Assistant, false),
        ]);
        assert_eq!(context.turns(), [vec![1], vec![2], vec![3, 4, 6], vec![7]]);
        let one = context.messages[1].tokens();
        let newest = |tokens| context.newest(&context.turns(), tokens);
        assert_eq!([newest(0), newest(one), newest(one * 4 - 1), newest(one * 4)], [0, 1, 1, 2]);
    }

    #[test]
    fn the_task_is_pinned_where_nobody_pinned_anything() {
        let mut unpinned = context(&[(MessageRole::User, false), (MessageRole::User, false)]);
        unpinned.pin_task(0);
        assert_eq!(unpinned.open(), [0, 1], "it is too long");
        unpinned.pin_task(100);
        assert_eq!(unpinned.open(), [1]);
        let mut pinned = context(&[(MessageRole::User, false), (MessageRole::User, true)]);
        pinned.pin_task(100);
        assert_eq!(pinned.open(), [0]);
    }

    #[test]
    fn an_old_summary_is_its_brief_and_the_newest_is_whole() {
        let mut context = context(&[]);
        for name in ["a", "b", "c"] {
            let kind = MessageKind::Summary { brief: Some(format!("brief {name}")) };
            context.messages.push(HeldMessage::new(Message::text(MessageRole::User, name), false, kind));
        }
        assert_eq!(context.shorten_summaries().len(), 2);
        assert_eq!(context.shorten_summaries().len(), 0);
        assert_eq!(context.briefs(), [0, 1]);
        let texts: Vec<&MessagePart> = context.messages.iter().map(|held| &held.message.parts[0]).collect();
        assert_eq!(
            texts,
            [
                &MessagePart::Text("brief a".into()),
                &MessagePart::Text("brief b".into()),
                &MessagePart::Text("c".into())
            ]
        );
    }

    #[test]
    fn what_failed_is_kept_once_and_the_newest_of_it() {
        let mut failed = Failed::default();
        failed.add(vec!["sed".into(), "sed".into()]);
        failed.add((0..20).map(|number| format!("try {number}")).collect());
        assert_eq!(failed.0.len(), FAILED_MAX);
        assert_eq!(failed.0.last().unwrap(), "try 19");
        assert_eq!(failed.lines_not_in("try 19").len(), FAILED_MAX - 1);
        failed.add(vec!["x".repeat(1_000_000)]);
        assert!(failed.0.last().unwrap().len() < 200);
    }
}
