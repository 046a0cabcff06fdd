//! The backend that `[memory]` of a project names: the store, a server, or a component. Refuses to fall back to another
//! one.

use crate::factory::MemoryFactory;
use crate::plugin::PluginMemory;
use longhaul_config::Config;
use longhaul_config::memory::{BackendName, MemoryConfig};
use longhaul_core::fault;
use longhaul_core::memory::{Embedded, MemoryBackend};
use longhaul_plugins::plugin_host::PluginHost;
use longhaul_plugins::plugin_set::PluginSet;
use longhaul_records::pins::PinnedPlugins;
use std::path::Path;
use std::sync::Arc;

/// The backend of a project, for the runs with these pins.
///
/// # Errors
/// When the table names a missing sentence model, variable or component. A server is not contacted.
pub async fn open(
    host: &Arc<PluginHost>,
    factory: &dyn MemoryFactory,
    config: &Config,
    pins: &PinnedPlugins,
    directory: &Path,
) -> fault::Result<Arc<dyn MemoryBackend>> {
    let clock = Arc::clone(&host.clock);
    let MemoryConfig { backend, embeddings, .. } = &config.memory;
    let ranking = factory.ranking(embeddings.as_deref(), &host.store)?;
    let on_server = match backend {
        BackendName::Redis => factory.on_server(&config.memory, directory, Arc::clone(&clock), Arc::clone(&ranking))?,
        BackendName::Embedded | BackendName::Plugin => None,
    };
    Ok(match (backend, on_server) {
        (_, Some(server)) => server,
        (BackendName::Plugin, _) => {
            let plugin_set = PluginSet::of_memory(Arc::clone(host), config, pins, directory).await?;
            Arc::new(PluginMemory::new(plugin_set))
        }
        _ => Arc::new(Embedded::new(Arc::clone(&host.store), clock).ranked_by(ranking)),
    })
}
