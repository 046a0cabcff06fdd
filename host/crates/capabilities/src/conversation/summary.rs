//! Asks a model for a summary, which is an entry of the journal.
//!
//! The request goes to the model of the conversation, through the same limits as the guest's own, and counts for the
//! invocation. A model that cannot or will not write a summary does not end anything: the beginning of the text takes
//! its place, and an event reports that. Only an outage is awaited.

use super::asking::Cut;
use super::prompts::{self, Purpose};
use super::reference;
use crate::ctx::Ctx;
use crate::stop::Stop;
use longhaul_core::Digest;
use longhaul_core::journal::{EffectClass, EntryHandle};
use longhaul_core::model::{Message, ModelError, ModelReply, ModelRequest, Usage, text_tokens};
use longhaul_core::store::Batch;
use longhaul_core::text::truncate;
use serde::{Deserialize, Serialize};

/// The model gets the length of its summary. Text beyond this multiple of it in bytes is cut.
const BYTES_A_TOKEN_MAX: usize = 8;

/// The replacement of messages.
pub(super) struct Summary {
    /// The text for the conversation.
    pub(super) text: String,
    /// The short form for when it is old.
    pub(super) brief: Option<String>,
    /// The failures that it lists.
    pub(super) failed: Vec<String>,
    /// The replaced messages.
    pub(super) replaced: Digest,
    /// The reason why the beginning stands there instead of a summary.
    pub(super) unsummarised: Option<String>,
}

impl Summary {
    pub(super) fn is_written(&self) -> bool {
        self.unsummarised.is_none()
    }

    /// Its estimated tokens, as a message.
    pub(super) fn tokens(&self) -> u64 {
        text_tokens(&self.text) + 4
    }
}

/// The journal's record.
#[derive(Serialize, Deserialize)]
struct Kept {
    written: Result<Written, ModelError>,
    /// The replaced messages: JSON, in the store's content.
    replaced: Digest,
}

#[derive(Serialize, Deserialize)]
struct Written {
    text: String,
    usage: Usage,
}

impl Ctx {
    /// Asks the model to summarise messages, by their places.
    pub(super) async fn summarise(&mut self, cut: &Cut, purpose: Purpose, places: &[usize]) -> Result<Summary, Stop> {
        let context = &self.conversations.open[cut.asking.at];
        let messages: Vec<Message> = places.iter().map(|place| context.messages[*place].message.clone()).collect();
        let bytes_max = transcript_bytes_max(cut);
        let request = prompts::request(purpose, cut.asking.model(), &messages, bytes_max, &cut.budget);
        let written = self.written(cut, purpose, &request, &messages).await?;
        self.remember(written.replaced)?;
        let (words, unsummarised) = match said(written.written) {
            Ok(words) => (words, None),
            Err(why) => (prompts::beginning(&messages), Some(why)),
        };
        let link = reference::link(&written.replaced, self.can_read());
        let failed = &self.conversations.open[cut.asking.at].failed;
        Ok(Summary {
            text: prompts::record(purpose, messages.len(), &link, &words, failed),
            brief: (purpose == Purpose::Compact).then(|| prompts::brief(&words)),
            failed: prompts::failed_lines(&words),
            replaced: written.replaced,
            unsummarised,
        })
    }

    /// The recorded answer, or the model's reply now.
    async fn written(
        &mut self,
        cut: &Cut,
        purpose: Purpose,
        request: &ModelRequest,
        messages: &[Message],
    ) -> Result<Kept, Stop> {
        let digest = request.digest();
        let summary = format!("{}, {} messages", request.model, messages.len());
        let asking = (cut.asking.at, digest);
        let kept = match self.ask_repeatable(purpose.entry(), summary, &asking, EffectClass::ReadOnly).await? {
            Ok(kept) => kept,
            Err(handle) => self.write(cut, handle, request, messages).await?,
        };
        if let Kept { written: Ok(Written { usage, .. }), .. } = &kept {
            self.used.model_calls = self.used.model_calls.saturating_add(1);
            self.used.usage = self.used.usage.plus(*usage);
            let context = &mut self.conversations.open[cut.asking.at];
            context.usage = context.usage.plus(*usage);
            self.conversations.answered.push(digest);
        }
        Ok(kept)
    }

    async fn write(
        &mut self,
        cut: &Cut,
        handle: EntryHandle,
        request: &ModelRequest,
        messages: &[Message],
    ) -> Result<Kept, Stop> {
        let _asked = self.in_flight.ask_model();
        let reply = self.ask_model(&handle, &cut.asking, request).await?;
        let bytes_max = usize::try_from(cut.budget.summary_tokens).unwrap_or(usize::MAX);
        let bytes_max = bytes_max.saturating_mul(BYTES_A_TOKEN_MAX);
        let written =
            reply.map(|ModelReply { text, usage, .. }| Written { text: truncate(text.trim(), bytes_max), usage });
        let mut batch = Batch::new();
        let json = serde_json::to_vec(messages).map_err(|error| Stop::Broken(error.to_string()))?;
        let replaced = batch.blob(json);
        let usage = written.as_ref().ok().map(|written| written.usage);
        batch.ops.extend(self.spent_for(usage).ops);
        self.answer_with(handle, Kept { written, replaced }, batch).await
    }
}

/// The text of a summary, or why there is none.
fn said(written: Result<Written, ModelError>) -> Result<String, String> {
    match written {
        Ok(Written { text, .. }) if text.trim().is_empty() => Err("the model wrote nothing".to_owned()),
        Ok(Written { text, .. }) => Ok(text),
        Err(error) => Err(truncate(&error.to_string(), 200)),
    }
}

/// Bytes of a transcript that fit into the window beside the instruction and the summary.
fn transcript_bytes_max(cut: &Cut) -> usize {
    let beside = prompts::PROMPT_TOKENS + cut.budget.summary_tokens;
    let tokens = cut.budget.window_tokens.saturating_sub(beside).max(64);
    // Four bytes a token is an estimate on the safe side: text outside of ASCII has more bytes than characters.
    usize::try_from(tokens.saturating_mul(4)).unwrap_or(usize::MAX)
}
