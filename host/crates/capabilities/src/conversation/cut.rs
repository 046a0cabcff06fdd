//! Trims a conversation before a request that it is too full for.
//!
//! The cut follows from the messages, the rules and the windows, all as the journal has them; a summary is an entry of
//! the journal with the digest of the text that it replaced, which is stored in the same transaction. So a resume and a
//! replay trim as before, and nothing is asked twice or lost.

use super::asking::{Asking, Cut};
use super::messages::{Context, HeldMessage, MessageKind, Notes};
use super::prompts::Purpose;
use super::reference::Reach;
use super::summary::Summary;
use super::{halve, prompts};
use crate::ctx::Ctx;
use crate::stop::Stop;
use longhaul_core::LimitHit;
use longhaul_core::context::{Budget, ContextPolicy};
use longhaul_core::event::{ContextCut, Event};
use longhaul_core::model::{Message, MessageRole};

/// Events of one invocation about its contexts; further ones add nothing.
const EVENTS_MAX: usize = 100;

/// A method of trimming a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CutMethod {
    Halve,
    Compact,
    Reset,
}

/// The method for a policy; [`ContextPolicy`] describes it.
fn way(policy: ContextPolicy, context: &Context, notes: Notes) -> CutMethod {
    let (observed, open) = context.observed();
    match policy {
        ContextPolicy::Off | ContextPolicy::Halve => CutMethod::Halve,
        ContextPolicy::Compact => CutMethod::Compact,
        ContextPolicy::Reset => CutMethod::Reset,
        ContextPolicy::Auto if notes.phases_ended > context.noted.phases_ended => CutMethod::Reset,
        ContextPolicy::Auto if notes.decisions_visited > context.noted.decisions_visited => CutMethod::Compact,
        ContextPolicy::Auto if observed > open / 2 => CutMethod::Reset,
        ContextPolicy::Auto => CutMethod::Compact,
    }
}

impl Ctx {
    /// Trims a conversation when it is too full for one more request, or when the provider `refused` it as too long.
    /// Returns whether anything changed.
    pub(super) async fn make_room(&mut self, asking: &Asking, refused: bool) -> Result<bool, Stop> {
        let Some((policy, budget)) = self.budget_of(asking) else { return Ok(false) };
        let at = asking.at;
        let context = &mut self.conversations.open[at];
        let estimated = context.estimated() + asking.tools_tokens;
        // A conversation that is trimmed as far as possible is not tried again before it has grown.
        let is_full = estimated > budget.full_tokens && estimated > context.settled + budget.window_tokens / 20;
        // If the pinned messages alone are too long, nothing helps.
        let is_hopeless = context.fixed() + asking.tools_tokens > budget.window_tokens;
        if is_hopeless || !(is_full || refused) {
            return Ok(false);
        }
        if policy != ContextPolicy::Halve {
            context.pin_task(budget.window_tokens / 4);
        }
        let (tokens_before, bytes_before) = (context.tokens(&asking.pinned, asking.tools_tokens), bytes(context));
        let way = way(policy, context, self.conversations.notes);
        let mut cut = Cut::new(asking.clone(), budget);
        let way = match way {
            CutMethod::Halve => self.halve(&mut cut).await.map(|()| way)?,
            CutMethod::Reset => self.begin_anew(&mut cut).await?,
            CutMethod::Compact => self.compact(&mut cut).await?,
        };
        self.recount(at, bytes_before)?;
        Ok(self.finish_cut(cut, way, policy, tokens_before))
    }

    /// The rules for a model, converted to estimates.
    fn budget_of(&self, asking: &Asking) -> Option<(ContextPolicy, Budget)> {
        let pinned = self.pinned_context.as_ref()?;
        let window = u64::from(*pinned.windows_tokens.get(&asking.pinned)?);
        let window = match self.conversations.windows_told.get(&asking.pinned) {
            Some(told) if window == 0 => *told,
            Some(told) => window.min(*told),
            None => window,
        };
        let budget = pinned.rules.budget(window)?;
        let context = &self.conversations.open[asking.at];
        let estimate = |tokens| context.estimate_of(&asking.pinned, tokens);
        let budget = Budget {
            window_tokens: estimate(budget.window_tokens),
            full_tokens: estimate(budget.full_tokens),
            compact_tokens: estimate(budget.compact_tokens),
            reset_tokens: estimate(budget.reset_tokens),
            summary_tokens: budget.summary_tokens,
        };
        Some((pinned.rules.policy, budget))
    }

    /// A provider refused a conversation as too long: its numbers replace the estimates.
    pub(super) fn told_window(&mut self, asking: &Asking, hit: &LimitHit) {
        let max = tokens_of(hit.max);
        if max > 0 {
            let told = self.conversations.windows_told.entry(asking.pinned.clone()).or_insert(max);
            *told = max.min(*told);
        }
    }

    /// Summarises the older half, twice; then drops the oldest messages.
    async fn halve(&mut self, cut: &mut Cut) -> Result<(), Stop> {
        let at = cut.asking.at;
        let beside =
            |context: &Context| context.estimated() - context.sizes().iter().map(|size| size.tokens).sum::<u64>();
        let mut passes = 0;
        loop {
            let context = &mut self.conversations.open[at];
            let room = cut.budget.full_tokens.saturating_sub(beside(context) + cut.asking.tools_tokens);
            match halve::next(&context.sizes(), room, passes) {
                halve::Step::Done => return Ok(()),
                halve::Step::Drop(places) => cut.count(&context.replace(&places, None)),
                halve::Step::Summarise(places) => {
                    let summary = self.summarise(cut, Purpose::Halve, &places).await?;
                    self.put_summary(cut, Purpose::Halve, &places, summary);
                    passes += 1;
                }
            }
        }
    }

    /// Replaces older tool outputs by references; if that is not enough, summarises the older turns and shortens
    /// earlier summaries; if that is not enough either, resets the conversation.
    async fn compact(&mut self, cut: &mut Cut) -> Result<CutMethod, Stop> {
        let at = cut.asking.at;
        let turns = self.conversations.open[at].turns();
        let older: Vec<usize> = turns.iter().take(turns.len().saturating_sub(1)).flatten().copied().collect();
        cut.texts_referred += self.refer(at, &older, Reach::ToolOutputs).await?;
        if self.conversations.open[at].estimated() + cut.asking.tools_tokens <= cut.budget.compact_tokens {
            return Ok(CutMethod::Compact);
        }
        let context = &self.conversations.open[at];
        // Half of the remainder is for the newest turns; the rest for summaries, and for growth.
        let whole = context.newest(&turns, cut.budget.compact_tokens / 2).max(1);
        let older: Vec<usize> = turns.iter().take(turns.len().saturating_sub(whole)).flatten().copied().collect();
        if !older.is_empty() {
            let summary = self.summarise(cut, Purpose::Compact, &older).await?;
            self.put_summary(cut, Purpose::Compact, &older, summary);
        }
        self.shorten(cut);
        if self.conversations.open[at].estimated() + cut.asking.tools_tokens > cut.budget.full_tokens {
            return self.begin_anew(cut).await;
        }
        Ok(CutMethod::Compact)
    }

    /// Replaces old summaries by their briefs, and drops the oldest of these, as far as needed.
    fn shorten(&mut self, cut: &mut Cut) {
        let context = &mut self.conversations.open[cut.asking.at];
        cut.count(&context.shorten_summaries());
        while context.estimated() + cut.asking.tools_tokens > cut.budget.compact_tokens {
            let Some(oldest) = context.briefs().first().copied() else { return };
            cut.count(&context.replace(&[oldest], None));
        }
    }

    /// Keeps the system prompt, the pinned messages, a hand-off summary, and the newest turns as far as they fit.
    async fn begin_anew(&mut self, cut: &mut Cut) -> Result<CutMethod, Stop> {
        let at = cut.asking.at;
        let all = self.conversations.open[at].open();
        let turns = self.conversations.open[at].turns();
        if turns.first().is_none_or(|first| *first == all) {
            // One turn is no history to summarise.
            cut.texts_referred += self.refer(at, &all, Reach::Everything).await?;
            return Ok(CutMethod::Compact);
        }
        let summary = self.summarise(cut, Purpose::Reset, &all).await?;
        let context = &self.conversations.open[at];
        let taken = context.fixed() + cut.asking.tools_tokens + summary.tokens();
        // Without a hand-off summary the turns are all that is known.
        let room = if summary.is_written() { cut.budget.reset_tokens } else { cut.budget.compact_tokens };
        let mut whole = context.newest(&turns, room.saturating_sub(taken));
        if let (0, Some(newest)) = (whole, turns.last()) {
            // The model has to answer it, so it stays even if it is too long, without its long texts.
            cut.texts_referred += self.refer(at, newest, Reach::Everything).await?;
            whole = self.conversations.open[at].newest(&turns, cut.budget.full_tokens.saturating_sub(taken)).min(1);
        }
        let stays: Vec<usize> = turns.iter().skip(turns.len() - whole).flatten().copied().collect();
        let goes: Vec<usize> = all.into_iter().filter(|place| !stays.contains(place)).collect();
        if !goes.is_empty() {
            self.put_summary(cut, Purpose::Reset, &goes, summary);
        }
        Ok(CutMethod::Reset)
    }

    /// Puts a summary in place of messages.
    fn put_summary(&mut self, cut: &mut Cut, purpose: Purpose, places: &[usize], summary: Summary) {
        let context = &mut self.conversations.open[cut.asking.at];
        let following = places.first().and_then(|first| {
            let rest = (*first..context.messages.len()).filter(|place| !places.contains(place));
            rest.map(|place| &context.messages[place]).find(|held| !held.pinned)
        });
        let speaker = match purpose {
            Purpose::Halve => prompts::speaker_before(following.map(|held| held.message.speaker)),
            Purpose::Compact | Purpose::Reset => MessageRole::User,
        };
        cut.replaced = Some(summary.replaced);
        cut.unsummarised = cut.unsummarised.take().or_else(|| summary.unsummarised.clone());
        let held = HeldMessage::new(
            Message::text(speaker, summary.text),
            false,
            MessageKind::Summary { brief: summary.brief },
        );
        context.failed.add(summary.failed);
        cut.count(&context.replace(places, Some(held)));
    }

    /// Updates the count of the bytes that the host holds.
    fn recount(&mut self, at: usize, bytes_before: u64) -> Result<(), Stop> {
        let conversations = &mut self.conversations;
        conversations.held_bytes = conversations.held_bytes.saturating_sub(bytes_before);
        let bytes = bytes(&conversations.open[at]);
        self.hold(bytes)
    }

    /// Counts and reports a cut. Returns whether there is anything to report.
    fn finish_cut(&mut self, cut: Cut, way: CutMethod, policy: ContextPolicy, tokens_before: u64) -> bool {
        let Cut { asking, messages_replaced, texts_referred, replaced, unsummarised, .. } = cut;
        let notes = self.conversations.notes;
        let context = &mut self.conversations.open[asking.at];
        context.noted = notes;
        context.settled = context.estimated() + asking.tools_tokens;
        if messages_replaced == 0 && texts_referred == 0 {
            return false;
        }
        let tokens_after = context.tokens(&asking.pinned, asking.tools_tokens);
        let done = ContextCut {
            policy,
            tokens_before,
            tokens_after,
            messages_replaced,
            texts_referred,
            replaced,
            unsummarised,
        };
        let invocation = self.invocation.clone();
        if way == CutMethod::Reset {
            context.resets = context.resets.saturating_add(1);
            self.used.context_resets += 1;
            self.tell(Event::ContextReset { invocation, cut: done });
        } else {
            self.used.context_compactions += 1;
            self.tell(Event::ContextCompacted { invocation, cut: done });
        }
        true
    }

    /// Reports an event to watchers.
    pub(super) fn tell(&mut self, event: Event) {
        if self.events.len() < EVENTS_MAX {
            self.events.push(event);
        }
    }
}

/// A number of a limit as tokens. An endpoint may have sent it, so it may be anything.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` keeps to the range, and NaN is 0")]
pub(super) fn tokens_of(number: f64) -> u64 {
    number as u64
}

fn bytes(context: &Context) -> u64 {
    context.messages.iter().map(HeldMessage::bytes).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(notes: Notes, observed_chars: usize, expected: CutMethod) {
        let mut context = Context::new(String::new(), Notes::default());
        for (kind, chars) in [(MessageKind::Replied, 1_000), (MessageKind::Observed, observed_chars)] {
            let message = Message::text(MessageRole::User, "x".repeat(chars));
            context.messages.push(HeldMessage::new(message, false, kind));
        }
        assert_eq!(way(ContextPolicy::Auto, &context, notes), expected);
    }

    #[test]
    fn auto_chooses_by_what_the_conversation_holds() {
        let none = Notes::default();
        check(none, 1_000, CutMethod::Compact);
        check(none, 1_100, CutMethod::Reset);
        check(Notes { phases_ended: 1, ..none }, 0, CutMethod::Reset);
        check(Notes { decisions_visited: 1, ..none }, 9_000, CutMethod::Compact);
        check(Notes { decisions_visited: 1, phases_ended: 1, ..none }, 0, CutMethod::Reset);
        check(Notes { tools_called: 9, ..none }, 0, CutMethod::Compact);
    }
}
