//! Working memory of the run and episodic memory of the project, in the operator's backend.
//!
//! An entry is stored as a note: with its author, its run and invocation, and the lowest trust of any text that the
//! agent had read by then. Recalled text counts as read too: an agent that notes a web page's text again after finding
//! it here notes text of the web. If the backend is the store itself, a note and the entry of the journal are one
//! transaction; elsewhere the note is put first, and put again after a kill, which changes nothing. A fact replaces the
//! one that it was made from and no other: where another process noted the key meanwhile, it is made again. An
//! unavailable backend ends the attempt, like an unavailable model; a backend's refusal is an answer.

use crate::ctx::Ctx;
use crate::noting::turns;
use crate::stop::Stop;
use longhaul_bindings::imports::recall::{self, RecallError, Remembered, Tier};
use longhaul_bindings::types::LimitHit as BoundLimit;
use longhaul_core::counted::{CountReservation, CountedKind};
use longhaul_core::journal::{EffectClass, EntryHandle, JournalError};
use longhaul_core::memory::{MemoryEntry, MemoryError, MemoryHit, MemoryNote, StagedEntry, Trust};
use longhaul_core::store::{Batch, StoreError, Table};
use longhaul_core::{LimitHit, Outage};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Bytes of a key, and of a value.
const KEY_BYTES_MAX: usize = 512;
const VALUE_BYTES_MAX: usize = 64 << 10;

/// An answer in the journal. A journal of an earlier version has no refusals in it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Answer<T> {
    Refused { refused: MemoryError },
    Fine(T),
}

/// Attempts at a note while other processes note the same key. Each one that fails is another's that did not.
const NOTED_MAX: u32 = 20;

/// Recalled memory. A journal of an earlier version does not record its trust.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Recalled<T> {
    Said { found: T, words_of: Trust },
    Before(T),
}

impl<T> From<Answer<T>> for Result<T, RecallError> {
    fn from(answer: Answer<T>) -> Self {
        match answer {
            Answer::Fine(value) => Ok(value),
            Answer::Refused { refused } => Err(refusal(refused)),
        }
    }
}

impl recall::Host for Ctx {
    async fn remember(&mut self, tier: Tier, key: String, value: String) -> wasmtime::Result<Result<(), RecallError>> {
        if let Err(refusal) = acceptable(&key, &value) {
            return Ok(Err(refusal));
        }
        let asking = (tier, &key, &value);
        let known = self.ask_repeatable("recall.remember", key.clone(), &asking, EffectClass::Idempotent).await?;
        let answer: Answer<()> = match known {
            Ok(answer) => answer,
            Err(handle) => self.keep_note(handle, tier, &key, &value).await?,
        };
        Ok(answer.into())
    }

    async fn fetch(&mut self, tier: Tier, key: String) -> wasmtime::Result<Result<Option<String>, RecallError>> {
        let known = self.ask_repeatable("recall.fetch", key.clone(), &(tier, &key), EffectClass::ReadOnly).await?;
        let answer: Answer<Recalled<Option<String>>> = match known {
            Ok(answer) => answer,
            Err(handle) => {
                let found = self.services.memory.get(&self.namespace(tier), &key).await;
                let note = |entry: Option<MemoryEntry>| entry.map(|entry| MemoryNote::read(&entry));
                let recalled = |note: Option<MemoryNote>| Recalled::Said {
                    words_of: note.as_ref().map_or(Trust::OwnWords, |note| note.trust),
                    found: note.map(|note| note.value.to_string()),
                };
                let answer = answered(found.map(note).map(recalled))?;
                self.answer(handle, answer).await?
            }
        };
        Ok(Result::from(answer).map(|recalled| self.recalls(recalled, Option::is_none)))
    }

    async fn search(&mut self, query: String, limit: u32) -> wasmtime::Result<Result<Vec<Remembered>, RecallError>> {
        let asking = (&query, limit);
        let known = self.ask_repeatable("recall.search", query.clone(), &asking, EffectClass::ReadOnly).await?;
        let answer: Answer<Recalled<Vec<Remembered>>> = match known {
            Ok(answer) => answer,
            Err(handle) => {
                let answer = answered(self.search_tiers(&query, limit).await)?;
                self.answer(handle, answer).await?
            }
        };
        Ok(Result::from(answer).map(|recalled| self.recalls(recalled, Vec::is_empty)))
    }
}

impl Ctx {
    fn namespace(&self, tier: Tier) -> String {
        match tier {
            Tier::Working => format!("working/{}", self.invocation.run()),
            Tier::Episodic => format!("episodic/{}", self.scope.project),
        }
    }

    /// Returns recalled memory, which the agent has read from then on.
    fn recalls<T>(&mut self, recalled: Recalled<T>, is_nothing: impl Fn(&T) -> bool) -> T {
        let (found, words_of) = match recalled {
            Recalled::Said { found, words_of } => (found, words_of),
            Recalled::Before(found) => {
                let words_of = if is_nothing(&found) { Trust::OwnWords } else { Trust::Unknown };
                (found, words_of)
            }
        };
        self.hears(words_of, "memory");
        found
    }

    /// Stores a note and the answer about it.
    async fn keep_note(&mut self, handle: EntryHandle, tier: Tier, key: &str, value: &str) -> Result<Answer<()>, Stop> {
        let namespace = self.namespace(tier);
        // Held until it is durable: another note of the key by this process replaces this one, and finds it there.
        let _turn = turns(&namespace, [key]).await;
        let note = match self.note(value) {
            Ok(note) => note,
            Err(error) => {
                let answer = answered(Err(error))?;
                return self.answer(handle, answer).await;
            }
        };
        for _ in 0..NOTED_MAX {
            let (batch, room) = match self.put_note(tier, &namespace, key, &note).await {
                Ok(Some(kept)) => kept,
                Ok(None) => continue,
                Err(error) => {
                    let answer = answered(Err(error))?;
                    return self.answer(handle, answer).await;
                }
            };
            match self.answer_with(handle.clone(), Answer::Fine(()), room.counted(batch)).await {
                Err(Stop::Journal(JournalError::Store(StoreError::Conflict { table: Table::Memory, .. }))) => {}
                kept => return kept,
            }
        }
        let reason = format!("others note `{key}` all the time");
        Err(Stop::Unavailable(Outage { reason, retry_after_ms: None }))
    }

    fn note(&self, value: &str) -> Result<MemoryNote, MemoryError> {
        let value = serde_json::from_str(value).map_err(|error| MemoryError::Invalid(error.to_string()))?;
        let (run, now_ms) = (self.invocation.run(), self.services.clock.now_ms());
        Ok(MemoryNote::new(value, &self.scope.plugin, run.as_str(), self.invocation.action(), self.heard, now_ms))
    }

    /// Stores a note, or returns the batch that stores it; none if another process noted the key meanwhile. A run may
    /// change its own notes freely, since no other process writes them; a fact of the project that contradicts an
    /// earlier one is stored with that one beside it.
    async fn put_note(
        &mut self,
        tier: Tier,
        namespace: &str,
        key: &str,
        note: &MemoryNote,
    ) -> Result<Option<(Batch, CountReservation)>, MemoryError> {
        let memory = Arc::clone(&self.services.memory);
        let before = memory.get(namespace, key).await?;
        let over = before.as_ref().filter(|_| tier == Tier::Episodic).map(MemoryNote::read);
        let entry = note.clone().over(over).entry(key, Vec::new(), None);
        let bytes = |entry: &MemoryEntry| (entry.key.len() + entry.value.len()) as u64;
        let room = self.room(CountedKind::Memory, bytes(&entry), before.as_ref().map(bytes)).await;
        let room = room.map_err(|error| MemoryError::Failed(error.to_string()))?.map_err(MemoryError::Limit)?;
        if tier == Tier::Working {
            let staged = memory.staged(namespace, &entry)?;
            if staged.is_none() {
                memory.put(namespace, entry).await?;
            }
            return Ok(Some((staged.unwrap_or_default(), room)));
        }
        let batch = match memory.staged_replace(namespace, before.as_ref(), &entry)? {
            StagedEntry::Rows(batch) => Some(batch),
            StagedEntry::Changed => None,
            StagedEntry::Elsewhere => memory.replace(namespace, before.as_ref(), entry).await?.then(Batch::new),
        };
        Ok(batch.map(|batch| (batch, room)))
    }

    async fn search_tiers(&mut self, query: &str, limit: u32) -> Result<Recalled<Vec<Remembered>>, MemoryError> {
        let (mut found, mut words_of) = (Vec::new(), Trust::OwnWords);
        for tier in [Tier::Working, Tier::Episodic] {
            let hits = self.services.memory.search(&self.namespace(tier), query, limit).await?;
            for MemoryHit { entry, score } in hits.into_iter().filter(|hit| hit.score > 0.0) {
                let note = MemoryNote::read(&entry);
                let remembered = Remembered { value: note.value.to_string(), key: entry.key, tier, score };
                found.push((remembered, note.trust));
            }
        }
        found.sort_by(|(a, _), (b, _)| b.score.total_cmp(&a.score));
        found.truncate(limit as usize);
        for (_, trust) in &found {
            words_of = words_of.max(*trust);
        }
        Ok(Recalled::Said { found: found.into_iter().map(|(one, _)| one).collect(), words_of })
    }
}

/// The journal's answer. An unavailable backend is asked again by the next attempt.
fn answered<T>(result: Result<T, MemoryError>) -> Result<Answer<T>, Stop> {
    match result {
        Ok(value) => Ok(Answer::Fine(value)),
        Err(MemoryError::Unavailable(outage)) => Err(Stop::Unavailable(outage)),
        Err(refused) => Ok(Answer::Refused { refused }),
    }
}

fn refusal(error: MemoryError) -> RecallError {
    match error {
        MemoryError::Denied(denial) => RecallError::Denied(denial.into()),
        MemoryError::Limit(hit) => RecallError::Limit(hit.into()),
        MemoryError::Unavailable(outage) => RecallError::Unavailable(outage.into()),
        MemoryError::Invalid(why) => RecallError::Invalid(why),
        MemoryError::Failed(why) => RecallError::Failed(why),
    }
}

fn acceptable(key: &str, value: &str) -> Result<(), RecallError> {
    for (name, used, max) in
        [("key_bytes_max", key.len(), KEY_BYTES_MAX), ("value_bytes_max", value.len(), VALUE_BYTES_MAX)]
    {
        if used > max {
            return Err(RecallError::Limit(BoundLimit::from(LimitHit::new(name, used as u64, max as u64))));
        }
    }
    serde_json::from_str::<serde_json::Value>(value)
        .map(drop)
        .map_err(|error| RecallError::Invalid(format!("the value is not JSON: {error}")))
}

#[cfg(test)]
mod tests;
