//! A component as the memory backend: each call in a fresh instance, with its granted directories and hosts, and a
//! key-value space of its own. Its answers have the limits of an entry, and are not trusted beyond that.

use longhaul_capabilities::InvocationSetup;
use longhaul_config::memory::PLUGIN;
use longhaul_core::InvocationId;
use longhaul_core::memory::{KeyPage, MemoryBackend, MemoryEntry, MemoryError, MemoryHit};
use longhaul_engine::{CallError, Called, Cancel, MemorySpace};
use longhaul_plugins::plugin_set::{PluginSet, PreparedPlugin};

/// A component as the memory backend; see the module.
pub(super) struct PluginMemory {
    plugin_set: PluginSet,
}

impl PluginMemory {
    pub(super) fn new(plugin_set: PluginSet) -> Self {
        Self { plugin_set }
    }

    fn start(&self) -> Result<(&PreparedPlugin, InvocationSetup), MemoryError> {
        let missing = || MemoryError::Failed(format!("[{PLUGIN}] is not loaded"));
        let part = self.plugin_set.part(PLUGIN).ok_or_else(missing)?;
        let setup = self.plugin_set.setup_tool(part, &InvocationId::from_text("memory"), part.grants.clone());
        Ok((part, setup))
    }
}

#[async_trait::async_trait]
impl MemoryBackend for PluginMemory {
    async fn put(&self, namespace: &str, entry: MemoryEntry) -> Result<(), MemoryError> {
        entry.check(namespace)?;
        let (part, setup) = self.start()?;
        answer(part.plugin.put(setup, &Cancel::default(), space(part, namespace), entry).await)
    }

    async fn get(&self, namespace: &str, key: &str) -> Result<Option<MemoryEntry>, MemoryError> {
        let (part, setup) = self.start()?;
        let found = answer(part.plugin.get(setup, &Cancel::default(), space(part, namespace), key).await)?;
        found.map(|entry| checked(namespace, entry)).transpose()
    }

    async fn search(&self, namespace: &str, query: &str, limit: u32) -> Result<Vec<MemoryHit>, MemoryError> {
        let (part, setup) = self.start()?;
        let asked = space(part, namespace);
        let mut hits = answer(part.plugin.search(setup, &Cancel::default(), asked, query, limit).await)?;
        hits.truncate(limit as usize);
        hits.into_iter().map(|hit| Ok(MemoryHit { entry: checked(namespace, hit.entry)?, score: hit.score })).collect()
    }

    async fn delete(&self, namespace: &str, key: &str) -> Result<bool, MemoryError> {
        let (part, setup) = self.start()?;
        answer(part.plugin.delete(setup, &Cancel::default(), space(part, namespace), key).await)
    }

    async fn list(
        &self,
        namespace: &str,
        prefix: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<KeyPage, MemoryError> {
        let (part, setup) = self.start()?;
        let asked = space(part, namespace);
        let mut page = answer(part.plugin.list(setup, &Cancel::default(), asked, prefix, after, limit).await)?;
        page.keys.truncate(limit as usize);
        Ok(page)
    }
}

fn space<'a>(part: &'a PreparedPlugin, namespace: &'a str) -> MemorySpace<'a> {
    MemorySpace { namespace, settings: &part.settings }
}

/// An entry that a component returns has the same limits as one that it gets.
fn checked(namespace: &str, entry: MemoryEntry) -> Result<MemoryEntry, MemoryError> {
    let wrong = |error| MemoryError::Failed(format!("the memory plugin gave an entry that is none: {error}"));
    entry.check(namespace).map_err(wrong)?;
    Ok(entry)
}

fn answer<T>(called: Called<Result<T, MemoryError>>) -> Result<T, MemoryError> {
    called.result.map_err(|error| match error {
        CallError::Limit { hit, .. } => MemoryError::Limit(hit),
        CallError::Unavailable(outage) => MemoryError::Unavailable(outage),
        CallError::Host { reason, .. } => {
            MemoryError::Unavailable(longhaul_core::Outage { reason, retry_after_ms: None })
        }
        other => MemoryError::Failed(other.to_string()),
    })?
}
