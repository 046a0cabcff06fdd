//! The words of a journal, and the trait through which a capability keeps one.
//!
//! The journal of an invocation is a list of entries. Entry 0 says what was called with which seed;
//! each further entry is one call of an import: what was asked and, once it is known, what came back.

use crate::context::PinnedContext;
use crate::memory::Trust;
use crate::store::{Batch, StoreError};
use crate::{Digest, InvocationId, LimitHit};
use serde::{Deserialize, Serialize};

/// What is known about an effect that was cut off; it decides what a resume does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EffectClass {
    /// Touches nothing: it may be repeated. A call of a model is one too, though it may be paid twice.
    ReadOnly,
    /// The same key has the effect once: it is sent again with the same key.
    Idempotent,
    /// Can be asked whether it happened: it is asked first.
    Verifiable,
    /// Acts on the world: it is never repeated without a person.
    Acts,
}

impl EffectClass {
    /// Whether `started` must be durable before the effect leaves.
    #[must_use]
    pub fn starts_durably(self) -> bool {
        matches!(self, Self::Verifiable | Self::Acts)
    }
}

/// Entry 0: what was called, and all that the guest could tell apart from another call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Began {
    /// The plugin's name, for people.
    pub plugin: String,
    /// The table of `longhaul.toml` that it plays in, for example `agents.code`: its limits and grants.
    #[serde(default)]
    pub table: String,
    /// The digest of the component's bytes.
    pub component: Digest,
    /// The export, for example `agent.run`.
    pub export: String,
    /// The digest of its arguments.
    pub input: Digest,
    /// Where randomness comes from.
    pub seed: [u8; 32],
    /// The engine's version and settings: equal fuel is promised within one fingerprint.
    pub fingerprint: String,
    /// How its conversations are cut back, as it was then. None in journals from before there was such a
    /// thing: never.
    #[serde(default)]
    pub context: Option<PinnedContext>,
    /// The least trusted words in what it is handed, beside those of the goal. None: there are no others, or the journal
    /// is from before there was such a thing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<Trust>,
    /// When, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
}

/// What an import was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportCall {
    /// The capability and verb, for example `tools.call`.
    pub name: String,
    /// What a person reads in the journal, at most 200 bytes, for example `files.write notes.md`.
    pub summary: String,
    /// The digest of the arguments.
    pub arguments: Digest,
    /// The class of the effect.
    pub class: EffectClass,
    /// What `verify` will need; only for verifiable effects.
    pub prepared: Option<String>,
    /// Fuel used by the guest up to this call.
    pub fuel_used: u64,
    /// When it was asked.
    pub at_ms: u64,
    /// How often it was started.
    pub attempt: u32,
}

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportAnswer {
    /// The answer as JSON, an error of the capability included.
    pub answer: String,
    /// When it was known.
    pub at_ms: u64,
}

/// One call of an import.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalEntry {
    /// What was asked.
    pub asked: ImportCall,
    /// What came back; none while the effect is in flight.
    pub answered: Option<ImportAnswer>,
    /// What a person said about an effect whose outcome was unknown.
    pub resolution: Option<Resolution>,
}

/// How the invocation ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finished {
    /// The result as JSON: what the export returned, or the error that ended it.
    pub result: String,
    /// Fuel used in all.
    pub fuel_used: u64,
    /// True when a clock, a cancel or the machine ended it, which a replay cannot find by itself.
    pub interrupted: bool,
    /// When it ended.
    pub at_ms: u64,
}

/// What a person, or the operator's policy, says about an effect with an unknown outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Resolution {
    /// It happened, and this (JSON) is to be the tool's output.
    Happened(String),
    /// It did not happen: do it.
    DidNotHappen,
    /// Whatever it was, do not do it; the guest gets an error.
    Skip,
}

/// An effect that cannot be repeated and whose outcome nobody knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EffectQuestion {
    /// Whose journal holds the entry.
    pub invocation: InvocationId,
    /// The entry.
    pub entry: u32,
    /// The question, for a person.
    pub text: String,
    /// The approval that it asks for. None: it asks whether an effect happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<String>,
    /// The attempt that was cut off.
    #[serde(default)]
    pub attempt: u32,
}

impl EffectQuestion {
    /// Names this question and no other, not even the next one about the same call: an answer that comes late is not
    /// taken for another question's.
    #[must_use]
    pub fn id(&self) -> String {
        let Self { invocation, entry, attempt, .. } = self;
        let digest = Digest::of(format!("{invocation} {entry} {attempt}").as_bytes());
        format!("q-{}", &digest.to_string()[..QUESTION_DIGITS])
    }

    /// What a person types to answer it: one of three commands.
    #[must_use]
    pub fn answer_with(&self) -> String {
        let (run, id) = (self.invocation.run(), self.id());
        format!("longhaul answer {run} --question {id} --happened JSON | --did-not-happen | --skip")
    }
}

/// Digits of a question's name. It is looked for among the open ones of a run, of which there are few.
const QUESTION_DIGITS: usize = 8;

/// A call that a capability is about to make.
#[derive(Clone, Debug)]
pub struct NewCall {
    /// The capability and verb.
    pub name: &'static str,
    /// For people, see [`ImportCall::summary`].
    pub summary: String,
    /// The digest of the arguments.
    pub arguments: Digest,
    /// The class of the effect.
    pub class: EffectClass,
    /// Fuel used up to here.
    pub fuel_used: u64,
}

/// What the journal says to a call.
#[derive(Clone, Debug)]
pub enum CallVerdict {
    /// It was answered before: this is the answer, as JSON.
    Answered(String),
    /// It is new, or may be repeated: do it and hand in the answer with [`Journal::answer`].
    Go(EntryHandle),
    /// It was in flight when the host died; ask `verify`, which gets this.
    Verify(EntryHandle, String),
    /// A person said what to answer, as JSON of the tool's output.
    Happened(EntryHandle, String),
    /// A person said not to do it.
    Skipped(EntryHandle),
}

/// The right to answer one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryHandle {
    /// The entry.
    pub entry: u32,
    /// The same for every attempt, different for every other call.
    pub key: String,
    /// Counts from 1.
    pub attempt: u32,
    /// True when the effect may have been paid before.
    pub repeated: bool,
}

/// Why the journal ends an invocation.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The component asked something else than it did before.
    #[error(
        "diverged at entry {entry}: journal has {recorded}, plugin asked {asked}; resume with the plugin's earlier bytes, or start a new run"
    )]
    Diverged {
        /// The entry.
        entry: u32,
        /// What the journal holds there.
        recorded: String,
        /// What the plugin asked.
        asked: String,
    },
    /// An effect's outcome is unknown and it must not be repeated.
    #[error("{}", .0.text)]
    Parked(EffectQuestion),
    /// A cap of the journal was reached.
    #[error(transparent)]
    Limit(#[from] LimitHit),
    /// The store did not take it.
    #[error("the journal could not be kept: {0}")]
    Store(#[from] StoreError),
    /// A record of the journal does not say what it should.
    #[error(
        "the journal of `{invocation}` is damaged at entry {entry}: {detail}; restore the store from a backup, or start a new run"
    )]
    Damaged {
        /// Whose journal.
        invocation: InvocationId,
        /// The entry.
        entry: u32,
        /// What is wrong.
        detail: String,
    },
    /// A replay came to a call that was cut off; it executes nothing, so it ends there.
    #[error(
        "entry {entry}, {recorded}, was cut off before its answer was known, so a replay ends there; resume the run to go on"
    )]
    Unanswered {
        /// The entry.
        entry: u32,
        /// What the journal holds there.
        recorded: String,
    },
    /// A replay was asked to write.
    #[error("the journal of `{0}` is only being replayed and takes nothing new; resume the run to go on")]
    ReplayOnly(InvocationId),
}

/// The journal of one invocation, as its capabilities see it.
#[async_trait::async_trait]
pub trait Journal: Send + Sync {
    /// Announces a call, in the order in which the guest makes them.
    ///
    /// When the call is new and its class asks for it, `started` is durable when this returns.
    ///
    /// # Errors
    /// Every [`JournalError`]; the invocation must then end without doing the effect.
    async fn ask(&self, call: NewCall) -> Result<CallVerdict, JournalError>;

    /// Notes what `verify` will need, durably, before a verifiable effect leaves.
    ///
    /// # Errors
    /// [`JournalError::Limit`] when the journal is full, [`JournalError::Store`]; the effect must not leave then.
    async fn prepared(&self, handle: &EntryHandle, prepared: String) -> Result<(), JournalError>;

    /// Keeps the answer, durably, before the guest may see it.
    ///
    /// # Errors
    /// [`JournalError::Limit`] when the journal is full, [`JournalError::Store`].
    async fn answer(&self, handle: EntryHandle, answer: String) -> Result<(), JournalError> {
        self.answer_with(handle, answer, Batch::new()).await
    }

    /// Keeps an answer as [`Journal::answer`] does, in one transaction with `also`: a delegation's
    /// answer with the end of its child.
    ///
    /// # Errors
    /// As [`Journal::answer`]; nothing of `also` was written then, but for [`JournalError::Limit`] of
    /// an effect that may not be repeated, whose answer is kept.
    async fn answer_with(&self, handle: EntryHandle, answer: String, also: Batch) -> Result<(), JournalError>;

    /// The question to end an invocation with, as [`JournalError::Parked`], when `verify` could not
    /// tell whether the effect of `ticket` happened; `why` says what it found.
    fn question(&self, handle: &EntryHandle, why: &str) -> EffectQuestion;

    /// The time of the last entry, for the guest's clock.
    fn time_ms(&self) -> u64;

    /// Whether the next call is answered from the journal, where limits of time are off.
    fn is_replaying(&self) -> bool;

    /// The name and the digest of the arguments of the next call, where the journal holds it already.
    fn upcoming(&self) -> Option<(String, Digest)>;
}
