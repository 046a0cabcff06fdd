//! Locks for keys of memory while a fact is noted.
//!
//! A note keeps the one that it replaces, so it is read before it is written. Two concurrent notes under one key would
//! each keep the note before both, and one of them would be lost without a trace. Within this process a key has one of
//! a few locks; between processes a backend compares, see
//! [`MemoryBackend::replace`](longhaul_core::memory::MemoryBackend::replace).

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
