//! Plugins that this process has loaded, each digest once. Those that no run uses any more are dropped but for the last
//! ones.
//!
//! Refuses to read files: the caller passes the bytes.

use crate::bounded_cache::BoundedCache;
use longhaul_core::Digest;
use longhaul_core::fault;
use longhaul_engine::{Engine, LoadError, Plugin};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Plugins without a use that stay loaded: about 1 to 30 MB each.
const UNUSED_MAX: usize = 32;

type Cache = BoundedCache<(String, Digest), Plugin>;

/// Loaded plugins, by name and digest.
pub struct LoadedPlugins {
    plugins: Mutex<Cache>,
    described: Mutex<HashSet<Digest>>,
}

impl Default for LoadedPlugins {
    fn default() -> Self {
        Self { plugins: Mutex::new(BoundedCache::new(UNUSED_MAX)), described: Mutex::default() }
    }
}

impl LoadedPlugins {
    /// The plugin of these bytes, loaded now if it was not before.
    pub async fn get(&self, engine: &Engine, name: &str, bytes: &[u8]) -> Result<Arc<Plugin>, LoadError> {
        let digest = Digest::of(bytes);
        if let Some(plugin) = self.known(name, digest) {
            return Ok(plugin);
        }
        let plugin = Arc::new(engine.load_digested(name, digest, bytes).await?);
        Ok(self.lock().keep((name.to_owned(), digest), plugin))
    }

    /// The plugin of a pinned digest. One that is loaded already costs neither the reading of its bytes, which an
    /// interpreter has 24 MB of, nor their digest: it was loaded from bytes that had this digest. `bytes` reads those
    /// that are missing.
    pub async fn get_pinned(
        &self,
        engine: &Engine,
        name: &str,
        digest: Digest,
        bytes: impl FnOnce() -> fault::Result<Vec<u8>>,
    ) -> fault::Result<Arc<Plugin>> {
        if let Some(plugin) = self.known(name, digest) {
            return Ok(plugin);
        }
        let bytes = bytes()?;
        Ok(self.get(engine, name, &bytes).await?)
    }

    fn known(&self, name: &str, digest: Digest) -> Option<Arc<Plugin>> {
        self.lock().get(&(name.to_owned(), digest))
    }

    /// True when the tool of that digest has described itself, as the contract requires, in this process.
    pub fn is_described(&self, digest: Digest) -> bool {
        self.described.lock().unwrap_or_else(PoisonError::into_inner).contains(&digest)
    }

    /// Notes that the tool has described itself.
    pub fn note_described(&self, digest: Digest) {
        self.described.lock().unwrap_or_else(PoisonError::into_inner).insert(digest);
    }

    fn lock(&self) -> MutexGuard<'_, Cache> {
        self.plugins.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
