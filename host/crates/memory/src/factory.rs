//! The parts of memory that are not this crate's own: sentence models, and servers that several machines share. The
//! program that opens the data directory makes them.

use longhaul_config::memory::MemoryConfig;
use longhaul_core::Clock;
use longhaul_core::fault;
use longhaul_core::memory::{MemoryBackend, Ranking};
use longhaul_core::store::Store;
use std::path::Path;
use std::sync::Arc;

/// Makes what memory of a project is kept and found with.
pub trait MemoryFactory: Send + Sync {
    /// What says which memories bear on a question: their words, and with the name of a sentence model what they mean
    /// too.
    ///
    /// # Errors
    /// As [`MemoryFactory::check_embeddings`].
    fn ranking(&self, model: Option<&str>, store: &Arc<dyn Store>) -> fault::Result<Arc<dyn Ranking>>;

    /// Memory on the server that `[memory.redis]` names; none where there is no such table. Relative paths of the table
    /// are below `directory`.
    ///
    /// # Errors
    /// When the table names something that is not there, such as a variable. The server itself is not asked.
    fn on_server(
        &self,
        config: &MemoryConfig,
        directory: &Path,
        clock: Arc<dyn Clock>,
        ranking: Arc<dyn Ranking>,
    ) -> fault::Result<Option<Arc<dyn MemoryBackend>>>;

    /// Refuses a sentence model that cannot be had.
    ///
    /// # Errors
    /// When there is no such model, it is not on this machine, or the program was built without sentence models.
    fn check_embeddings(&self, model: Option<&str>) -> fault::Result<()>;
}
