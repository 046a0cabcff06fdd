//! Locks for keys of memory while a fact is noted.
//!
//! A note keeps the one that it replaces, so it is read before it is written. Of two concurrent notes under one key,
//! one would be lost without a trace if nothing compared: a backend does, see
//! [`MemoryBackend::replace`](longhaul_core::memory::MemoryBackend::replace), and one of the two is made again. Within
//! this process a key has one of a few locks, which saves those attempts, and is all that there is for a backend that
//! cannot compare.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use tokio::sync::{Mutex, MutexGuard};

/// Locks. Two keys that share one wait for each other without need; more locks than agents at work do not help.
const TURNS: usize = 64;

static ALL: [Mutex<()>; TURNS] = [const { Mutex::const_new(()) }; TURNS];

/// Waits until no other task notes these keys; dropping the returned value releases them.
pub async fn turns<'k>(namespace: &str, keys: impl IntoIterator<Item = &'k str>) -> Vec<MutexGuard<'static, ()>> {
    // Locked in a global order, or two tasks with several keys would wait for each other.
    let places: BTreeSet<usize> = keys.into_iter().map(|key| place(namespace, key)).collect();
    let mut held = Vec::with_capacity(places.len());
    for place in places {
        held.push(ALL[place].lock().await);
    }
    held
}

fn place(namespace: &str, key: &str) -> usize {
    let mut hasher = DefaultHasher::new();
    (namespace, key).hash(&mut hasher);
    usize::try_from(hasher.finish() % TURNS as u64).unwrap_or_default()
}
