//! A cache of shared values: those in use stay, and of the others the ones that were used last, up to a number.
//!
//! It knows nothing of its values, and never drops one that somebody holds.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

/// Values by key.
pub(crate) struct BoundedCache<K, V> {
    values: HashMap<K, CachedValue<V>>,
    unused_max: usize,
    /// Counts the uses, so that of two values the one that was used later is known.
    uses: u64,
}

struct CachedValue<V> {
    value: Arc<V>,
    used: u64,
}

impl<K: Eq + Hash + Clone, V> BoundedCache<K, V> {
    /// A cache of at most so many values that nobody holds.
    pub(crate) fn new(unused_max: usize) -> Self {
        Self { values: HashMap::new(), unused_max, uses: 0 }
    }

    /// The value of a key, which counts as used now.
    pub(crate) fn get(&mut self, key: &K) -> Option<Arc<V>> {
        self.uses += 1;
        let found = self.values.get_mut(key)?;
        found.used = self.uses;
        Some(Arc::clone(&found.value))
    }

    /// Keeps a value, unless there is one of that key; answers the one that is kept.
    pub(crate) fn keep(&mut self, key: K, value: Arc<V>) -> Arc<V> {
        if let Some(known) = self.get(&key) {
            return known;
        }
        self.values.insert(key, CachedValue { value: Arc::clone(&value), used: self.uses });
        self.drop_unused();
        value
    }

    fn drop_unused(&mut self) {
        let is_unused = |cached: &CachedValue<V>| Arc::strong_count(&cached.value) == 1;
        let mut unused: Vec<(u64, K)> = self
            .values
            .iter()
            .filter(|(_, cached)| is_unused(cached))
            .map(|(key, cached)| (cached.used, key.clone()))
            .collect();
        let surplus = unused.len().saturating_sub(self.unused_max);
        unused.sort_by_key(|(used, _)| *used);
        for (_, key) in unused.into_iter().take(surplus) {
            self.values.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_of_the_rest_what_was_used_last() {
        let mut cache = BoundedCache::new(2);
        let held = cache.keep("held", Arc::new(0));
        for (number, key) in ["a", "b", "c", "d"].into_iter().enumerate() {
            drop(cache.keep(key, Arc::new(number)));
            cache.get(&"a").expect("it is used again and again");
        }
        drop(cache.keep("e", Arc::new(9)));
        let found: Vec<&str> =
            ["held", "a", "b", "c", "d", "e"].into_iter().filter(|key| cache.get(key).is_some()).collect();
        assert_eq!(found, ["held", "a", "d", "e"], "the newest is held while it is kept");
        assert_eq!(*cache.keep("held", Arc::new(7)), 0, "the first one of a key is the one");
        drop(held);
    }
}
