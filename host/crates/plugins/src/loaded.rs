//! Plugins that this process has loaded, each digest once.
//!
//! Refuses to read files: the caller passes the bytes.

use longhaul_core::Digest;
use longhaul_engine::{Engine, LoadError, Plugin};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Loaded plugins, by name and digest.
#[derive(Default)]
pub struct LoadedPlugins {
    plugins: Mutex<HashMap<(String, Digest), Arc<Plugin>>>,
    described: Mutex<HashSet<Digest>>,
}

impl LoadedPlugins {
    /// The plugin of these bytes, loaded now if it was not before.
    pub async fn get(&self, engine: &Engine, name: &str, bytes: &[u8]) -> Result<Arc<Plugin>, LoadError> {
        let key = (name.to_owned(), Digest::of(bytes));
        if let Some(plugin) = self.lock().get(&key) {
            return Ok(Arc::clone(plugin));
        }
        let plugin = Arc::new(engine.load(name, bytes).await?);
        Ok(Arc::clone(self.lock().entry(key).or_insert(plugin)))
    }

    /// Whether the tool of that digest has described itself, as the contract requires, in this process.
    pub fn is_described(&self, digest: Digest) -> bool {
        self.described.lock().unwrap_or_else(PoisonError::into_inner).contains(&digest)
    }

    /// Notes that the tool has described itself.
    pub fn note_described(&self, digest: Digest) {
        self.described.lock().unwrap_or_else(PoisonError::into_inner).insert(digest);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(String, Digest), Arc<Plugin>>> {
        self.plugins.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
