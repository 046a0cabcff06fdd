//! Whose turn it is to note a fact.
//!
//! A note keeps what it takes the place of, so it is read before it is written. Two who note one key at once would each
//! keep what was there before both, and one of them would be lost without a trace. Within this process a key has one of
//! a few turns; between processes a backend compares, see
//! [`MemoryBackend::replace`](longhaul_core::memory::MemoryBackend::replace).

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use tokio::sync::{Mutex, MutexGuard};

/// Turns. Two keys that share one wait for each other for nothing; more of them than there are agents at work helps
/// nobody.
const TURNS: usize = 64;

static ALL: [Mutex<()>; TURNS] = [const { Mutex::const_new(()) }; TURNS];

/// Waits until nobody else notes these keys; they are free again when what is returned is dropped.
pub async fn turns<'k>(namespace: &str, keys: impl IntoIterator<Item = &'k str>) -> Vec<MutexGuard<'static, ()>> {
    // In one order for everybody, or two who want several would wait for each other.
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
