//! The types of a journal, and the trait through which a capability uses one.
//!
//! The journal of an invocation is a list of entries. Entry 0 records the call and its seed; each further entry is one
//! call of an import: its arguments and, once known, its answer.

use crate::context::PinnedContext;
use crate::memory::Trust;
use crate::store::{Batch, StoreError};
use crate::{Digest, InvocationId, LimitHit};
use serde::{Deserialize, Serialize};

/// The class of an effect, which decides what happens to an interrupted call on a resume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EffectClass {
    /// It changes nothing, so the call is repeated. Requests to models belong here, although they may be paid twice.
    ReadOnly,
    /// Calls with the same key have the effect once, so the call is repeated with that key.
    Idempotent,
    /// The tool can tell whether the effect happened, so the tool is asked first.
    Verifiable,
    /// It changes something outside, so it is never repeated without a person.
    Acts,
}

impl EffectClass {
    /// True when `started` must be durable before the effect begins.
    #[must_use]
    pub fn starts_durably(self) -> bool {
        matches!(self, Self::Verifiable | Self::Acts)
    }
}

/// Entry 0: the call, with everything that distinguishes it for the guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Began {
    /// The plugin's name, for people.
    pub plugin: String,
    /// The table of `longhaul.toml` of its part, for example `agents.code`: its limits and grants.
    #[serde(default)]
    pub table: String,
    /// The digest of the component's bytes.
    pub component: Digest,
    /// The export, for example `agent.run`.
    pub export: String,
    /// The digest of its arguments.
    pub input: Digest,
    /// The seed of its randomness.
    pub seed: [u8; 32],
    /// The engine's version and settings: equal fuel is promised within one fingerprint.
    pub fingerprint: String,
    /// The rules that trim its conversations, at that time. None in journals from before this field: never.
    #[serde(default)]
    pub context: Option<PinnedContext>,
    /// The lowest trust of text in its input, beside the goal. None: there is no other text, or the journal is from
    /// before this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<Trust>,
    /// The time of the start, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
}

/// The call of an import.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportCall {
    /// The capability and verb, for example `tools.call`.
    pub name: String,
    /// The summary for a person in the journal, at most 200 bytes, for example `files.write notes.md`.
    pub summary: String,
    /// The digest of the arguments.
    pub arguments: Digest,
    /// The class of the effect.
    pub class: EffectClass,
    /// The note for `verify`; only for verifiable effects.
    pub prepared: Option<String>,
    /// Fuel used by the guest up to this call.
    pub fuel_used: u64,
    /// The time of the call, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// The number of times that it was started.
    pub attempt: u32,
}

/// The answer of an import.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportAnswer {
    /// The answer as JSON, an error of the capability included.
    pub answer: String,
    /// The time of the answer, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// True when a person wrote it for a fork, in the place of the answer that the call got.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub edited: bool,
}

/// One call of an import.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalEntry {
    /// The call of the import.
    pub asked: ImportCall,
    /// The answer; none while the effect is in flight.
    pub answered: Option<ImportAnswer>,
    /// A person's resolution of an effect with an unknown outcome.
    pub resolution: Option<Resolution>,
}

/// The end of an invocation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finished {
    /// The result as JSON: the export's return value, or the error that ended it.
    pub result: String,
    /// The fuel of the whole invocation.
    pub fuel_used: u64,
    /// True when a clock, a cancel or the machine ended it, which a replay cannot reproduce.
    pub interrupted: bool,
    /// The time of the end, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
}

/// The resolution of an effect with an unknown outcome, by a person or the operator's policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Resolution {
    /// The effect happened. The text becomes the tool's output, as JSON.
    Happened(String),
    /// The effect did not happen. The call is made again.
    DidNotHappen,
    /// The call is not made again, whatever happened. The guest gets an error.
    Skip,
}

/// An effect that cannot be repeated and has an unknown outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EffectQuestion {
    /// The invocation of the journal.
    pub invocation: InvocationId,
    /// The number of the entry.
    pub entry: u32,
    /// The question, for a person.
    pub text: String,
    /// The approval that it asks for. None: it asks whether an effect happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<String>,
    /// The number of the interrupted attempt, from 1.
    #[serde(default)]
    pub attempt: u32,
}

impl EffectQuestion {
    /// Identifies this question and no other, not even the next one about the same call: a late answer is not taken for
    /// another question's.
    #[must_use]
    pub fn id(&self) -> String {
        let Self { invocation, entry, attempt, .. } = self;
        let digest = Digest::of(format!("{invocation} {entry} {attempt}").as_bytes());
        format!("q-{}", &digest.to_string()[..QUESTION_DIGITS])
    }

    /// The commands that answer it: one of three.
    #[must_use]
    pub fn answer_with(&self) -> String {
        let (run, id) = (self.invocation.run(), self.id());
        format!("longhaul answer {run} --question {id} --happened JSON | --did-not-happen | --skip")
    }
}

/// Digits of a question's id. It is searched among the open questions of a run, which are few.
const QUESTION_DIGITS: usize = 8;

/// A call that a capability is about to make.
#[derive(Clone, Debug)]
pub struct NewCall {
    /// The capability and verb.
    pub name: &'static str,
    /// The summary for people, see [`ImportCall::summary`].
    pub summary: String,
    /// The digest of the arguments.
    pub arguments: Digest,
    /// The class of the effect.
    pub class: EffectClass,
    /// Fuel used up to here.
    pub fuel_used: u64,
}

/// The journal's verdict on a call.
#[derive(Clone, Debug)]
pub enum CallVerdict {
    /// The journal has the answer, as JSON.
    Answered(String),
    /// The call is new, or may be repeated. Execute it and record the answer with [`Journal::answer`].
    Go(EntryHandle),
    /// The call was in flight when the host died. Call `verify` with this note of `prepare`.
    Verify(EntryHandle, String),
    /// A person gave the answer, as JSON of the tool's output.
    Happened(EntryHandle, String),
    /// A person said to skip it.
    Skipped(EntryHandle),
}

/// The right to answer one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryHandle {
    /// The number of the entry.
    pub entry: u32,
    /// The idempotency key: the same for every attempt of one call, and different for every other call.
    pub key: String,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// True when the effect may have been paid before.
    pub repeated: bool,
}

/// The reason for which the journal ends an invocation.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The component made another call than before.
    #[error(
        "diverged at entry {entry}: journal has {recorded}, plugin asked {asked}; resume with the plugin's earlier bytes, or start a new run"
    )]
    Diverged {
        /// The number of the entry.
        entry: u32,
        /// The call in the journal.
        recorded: String,
        /// The call that the plugin makes.
        asked: String,
    },
    /// An effect's outcome is unknown and it must not be repeated.
    #[error("{}", .0.text)]
    Parked(EffectQuestion),
    /// A cap of the journal was reached.
    #[error(transparent)]
    Limit(#[from] LimitHit),
    /// The store refused it.
    #[error("the journal could not be kept: {0}")]
    Store(#[from] StoreError),
    /// A record of the journal is invalid.
    #[error(
        "the journal of `{invocation}` is damaged at entry {entry}: {detail}; restore the store from a backup, or start a new run"
    )]
    Damaged {
        /// The invocation of the journal.
        invocation: InvocationId,
        /// The number of the entry.
        entry: u32,
        /// The fault, for people.
        detail: String,
    },
    /// A replay reached an interrupted call; it executes nothing, so it ends there.
    #[error(
        "entry {entry}, {recorded}, was cut off before its answer was known, so a replay ends there; resume the run to go on"
    )]
    Unanswered {
        /// The number of the entry.
        entry: u32,
        /// The call in the journal.
        recorded: String,
    },
    /// A fork is to share entries that are not there, or that are not answered yet.
    #[error(
        "entry {entry} of `{invocation}` has no answer, so a fork cannot share it; name an earlier entry of `longhaul \
         journal {}`", .invocation.run()
    )]
    NotAnswered {
        /// The invocation of the journal.
        invocation: InvocationId,
        /// The number of the first such entry.
        entry: u32,
    },
    /// A replay cannot write.
    #[error("the journal of `{0}` is only being replayed and takes nothing new; resume the run to go on")]
    ReplayOnly(InvocationId),
}

/// The journal of one invocation, as its capabilities see it.
#[async_trait::async_trait]
pub trait Journal: Send + Sync {
    /// Announces a call, in the order in which the guest makes them.
    ///
    /// When the call is new and its class requires it, `started` is durable when this returns.
    ///
    /// # Errors
    /// Every [`JournalError`]; the invocation must then end without the effect.
    async fn ask(&self, call: NewCall) -> Result<CallVerdict, JournalError>;

    /// Records the note for `verify`, durably, before a verifiable effect begins.
    ///
    /// # Errors
    /// [`JournalError::Limit`] when the journal is full, [`JournalError::Store`]; then the effect must not begin.
    async fn prepared(&self, handle: &EntryHandle, prepared: String) -> Result<(), JournalError>;

    /// Records the answer, durably, before the guest may see it.
    ///
    /// # Errors
    /// [`JournalError::Limit`] when the journal is full, [`JournalError::Store`].
    async fn answer(&self, handle: EntryHandle, answer: String) -> Result<(), JournalError> {
        self.answer_with(handle, answer, Batch::new()).await
    }

    /// Records an answer as [`Journal::answer`] does, in one transaction with `also`: a delegation's answer with the
    /// end of its child.
    ///
    /// # Errors
    /// As [`Journal::answer`]; then nothing of `also` was written, except for [`JournalError::Limit`] of an effect that
    /// may not be repeated, whose answer is stored. A [`StoreError::Conflict`] means that a condition in `also` does
    /// not hold: nothing was written, the entry still waits, and it may be answered again with another batch. One in
    /// the table of journals means that another process works on the invocation, and ends it.
    async fn answer_with(&self, handle: EntryHandle, answer: String, also: Batch) -> Result<(), JournalError>;

    /// The question to end an invocation with, as [`JournalError::Parked`], when `verify` could not find out whether
    /// the effect of `handle` happened; `why` is its finding.
    fn question(&self, handle: &EntryHandle, why: &str) -> EffectQuestion;

    /// The time of the last entry, for the guest's clock.
    fn time_ms(&self) -> u64;

    /// True when the next call is answered from the journal, where limits of time are off.
    fn is_replaying(&self) -> bool;

    /// The name and the digest of the arguments of the next call, where the journal holds it already.
    fn upcoming(&self) -> Option<(String, Digest)>;
}
