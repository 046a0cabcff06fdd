//! The interpreter of steps, and the source of their values.

use crate::steps::{Blobs, StepError, Steps};
use longhaul_core::graph::{GraphError, StepEnvironment, StepLimits};
use longhaul_core::store::Store;
use longhaul_core::{Denial, Digest};
use longhaul_exec::{ExecError, Executor, ExecutorPaths, JobLimits};
use longhaul_graph::step::{StepReport, StepRequest};
use longhaul_home::{Home, plugin_directories};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::OnceCell;

/// The interpreter, loaded when the first step runs.
pub(super) struct LazyExecutor {
    store: Arc<dyn Store>,
    home: Home,
    executor: OnceCell<Executor>,
}

/// The values of the store, and those of a trial, which are in no store.
pub(super) struct StepValues {
    store: Arc<dyn Store>,
    pub(super) tried: HashMap<Digest, Arc<[u8]>>,
}

impl Blobs for StepValues {
    fn blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, String> {
        match self.tried.get(digest) {
            Some(bytes) => Ok(Some(bytes.to_vec())),
            None => self.store.blob(digest).map_err(|error| error.to_string()),
        }
    }
}

impl LazyExecutor {
    pub(super) fn new(store: Arc<dyn Store>, home: Home) -> Self {
        Self { store, home, executor: OnceCell::new() }
    }

    /// The values of the store.
    pub(super) fn values(&self) -> StepValues {
        StepValues { store: Arc::clone(&self.store), tried: HashMap::new() }
    }

    pub(super) async fn run(
        &self,
        request: &StepRequest,
        sees: &StepEnvironment,
        values: &StepValues,
    ) -> Result<StepReport, GraphError> {
        let StepLimits { timeout_ms, memory_bytes_max, fuel_max } = sees.limits;
        let limits = JobLimits { timeout_ms, memory_bytes_max, fuel_max, ..JobLimits::default() };
        let steps = Steps::new(self.executor().await?.clone(), limits);
        let steps = steps.with_grants(sees.directories.clone(), sees.hosts.clone());
        steps.run(request, values).await.map_err(|error| match error {
            StepError::Exec(error) => not_there(error),
            other => GraphError::Failed(other.to_string()),
        })
    }

    async fn executor(&self) -> Result<&Executor, GraphError> {
        let open = || async {
            let mut places = ExecutorPaths::usual()?;
            places.runtimes = plugin_directories(&self.home);
            Executor::new(places)
        };
        self.executor.get_or_try_init(open).await.map_err(not_there)
    }
}

/// A missing requirement of every step is a denial with its remedy; other errors are the host's.
fn not_there(error: ExecError) -> GraphError {
    match error {
        ExecError::NoRuntime { name, searched } => GraphError::Denied(Denial {
            reason: format!("there is no `{name}.wasm` in {searched}"),
            fix: format!("fetch it with: longhaul runtimes pull {name}"),
        }),
        other => GraphError::Failed(other.to_string()),
    }
}
