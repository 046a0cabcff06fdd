//! The world outside: it counts what reaches it by the key of the effect.

use super::guest::Checked;
use longhaul_core::InvocationId;
use longhaul_core::journal::{EffectClass, EntryHandle};
use std::collections::BTreeMap;

/// An entry of a journal.
pub(super) type Place = (InvocationId, u32);

/// The effect at a key.
pub(super) struct Received {
    place: Place,
    /// The number of times that it happened. Requests with one key have an idempotent effect once.
    pub(super) times: u32,
    pub(super) answer: String,
    /// True when the journal acknowledged the answer.
    is_finished: bool,
}

/// The receiver of all effects of a world.
#[derive(Default)]
pub(super) struct Receiver {
    by_key: BTreeMap<String, Received>,
    keys: BTreeMap<Place, String>,
}

impl Receiver {
    /// Takes a request; returns the answer, which is the same for one key.
    pub(super) fn take(
        &mut self,
        of: &InvocationId,
        handle: &EntryHandle,
        class: EffectClass,
        answer: String,
    ) -> Checked<String> {
        let place = (of.clone(), handle.entry);
        let known = self.keys.entry(place.clone()).or_insert_with(|| handle.key.clone());
        if *known != handle.key {
            return Err(format!("entry {} of `{of}` has two keys", handle.entry));
        }
        let fresh = || Received { place: place.clone(), times: 0, answer, is_finished: false };
        let received = self.by_key.entry(handle.key.clone()).or_insert_with(fresh);
        if received.place != place {
            return Err(format!("entry {} of `{of}` has the key of {:?}", handle.entry, received.place));
        }
        if received.is_finished {
            return Err(format!("I1: entry {} of `{of}` was finished and is done again", handle.entry));
        }
        received.times = if class == EffectClass::Idempotent { 1 } else { received.times + 1 };
        Ok(received.answer.clone())
    }

    /// The journal acknowledged the answer.
    pub(super) fn finish(&mut self, key: &str) {
        if let Some(received) = self.by_key.get_mut(key) {
            received.is_finished = true;
        }
    }

    /// The outcome of the effect of an entry.
    pub(super) fn of(&self, invocation: &InvocationId, entry: u32) -> Option<&Received> {
        self.by_key.get(self.keys.get(&(invocation.clone(), entry))?)
    }

    /// An effect that happened twice, if there is one.
    pub(super) fn doubled(&self) -> Option<&Place> {
        self.by_key.values().find(|received| received.times > 1).map(|received| &received.place)
    }
}
