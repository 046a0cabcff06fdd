//! Memory parts that this crate does not implement: sentence models, and servers that several machines share. The
//! program that opens the data directory makes them.

use longhaul_config::memory::MemoryConfig;
use longhaul_core::Clock;
use longhaul_core::fault;
use longhaul_core::memory::{MemoryBackend, Ranking};
use longhaul_core::store::Store;
use std::path::Path;
use std::sync::Arc;

/// Makes the storage and the ranking of a project's memory.
pub trait MemoryFactory: Send + Sync {
    /// The ranking of memories for a question: by their words, and with the name of a sentence model also by their
    /// meaning.
    ///
    /// # Errors
    /// As [`MemoryFactory::check_embeddings`].
    fn ranking(&self, model: Option<&str>, store: &Arc<dyn Store>) -> fault::Result<Arc<dyn Ranking>>;

    /// Memory on the server that `[memory.redis]` names; none without such a table. Relative paths of the table are
    /// below `directory`.
    ///
    /// # Errors
    /// When the table names something missing, such as a variable. The server itself is not contacted.
    fn on_server(
        &self,
        config: &MemoryConfig,
        directory: &Path,
        clock: Arc<dyn Clock>,
        ranking: Arc<dyn Ranking>,
    ) -> fault::Result<Option<Arc<dyn MemoryBackend>>>;

    /// Refuses an unavailable sentence model.
    ///
    /// # Errors
    /// When there is no such model, it is not on this machine, or the program was built without sentence models.
    fn check_embeddings(&self, model: Option<&str>) -> fault::Result<()>;
}
