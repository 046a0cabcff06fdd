//! Memory of a project beyond its runs: where it is kept, what is told of it, and what a run leaves.
//!
//! | file | holds |
//! |---|---|
//! | `memory.rs` | the backend that `[memory]` names |
//! | `memory/factory.rs` | what the program makes for it: sentence models, servers |
//! | `memory/plugin.rs` | a component as the backend |
//! | `memory/recollect.rs` | what planners and sessions are told of earlier runs |
//! | `memory/remember.rs` | what is kept of a run when it ends |
//! | `memory/extract.rs` | how facts and an episode are made of what a run left |
//!
//! Three namespaces: `working/RUN` and `episodic/PROJECT` are what `recall` gives agents, `episodes/PROJECT` what runs
//! came to. What is remembered is data wherever it is told; a backend that is away stops no run, which then goes on
//! with less.

mod extract;
mod factory;
mod plugin;
mod recollect;
mod remember;

pub use extract::words_heard;
pub use factory::MemoryFactory;
pub use recollect::{recollect, told_words};
pub use remember::{Rememberer, is_due, put_due};

use crate::toolbox::plugin_host::PluginHost;
use crate::toolbox::plugin_set::Cast;
use longhaul_config::Config;
use longhaul_config::memory::{BackendName, MemoryConfig};
use longhaul_core::fault;
use longhaul_core::memory::{Embedded, MemoryBackend};
use longhaul_records::pins::Pins;
use plugin::PluginMemory;
use std::path::Path;
use std::sync::Arc;

/// The backend of a project, for the runs that have these pins.
pub async fn open(
    host: &Arc<PluginHost>,
    factory: &dyn MemoryFactory,
    config: &Config,
    pins: &Pins,
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
            let cast = Cast::of_memory(Arc::clone(host), config, pins, directory).await?;
            Arc::new(PluginMemory::new(cast))
        }
        _ => Arc::new(Embedded::new(Arc::clone(&host.store), clock).ranked_by(ranking)),
    })
}

/// The namespace of the facts of a project.
pub fn facts_of(project: &str) -> String {
    format!("episodic/{project}")
}

/// The namespace of the episodes of a project.
pub fn episodes_of(project: &str) -> String {
    format!("episodes/{project}")
}
