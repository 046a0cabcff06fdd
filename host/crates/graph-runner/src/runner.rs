//! The interpreter of steps, and the source of their values.

use crate::files::FileDigests;
use crate::steps::{Blobs, StepError, Steps};
use longhaul_core::graph::{GraphError, StepEnvironment, StepLimits};
use longhaul_core::output::OutputSink;
use longhaul_core::store::Store;
use longhaul_core::{Clock, Denial, Digest};
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
    clock: Arc<dyn Clock>,
    files: Arc<FileDigests>,
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
    pub(super) fn new(store: Arc<dyn Store>, home: Home, clock: Arc<dyn Clock>, files: Arc<FileDigests>) -> Self {
        Self { store, home, clock, files, executor: OnceCell::new() }
    }

    /// The values of the store.
    pub(super) fn values(&self) -> StepValues {
        StepValues { store: Arc::clone(&self.store), tried: HashMap::new() }
    }

    /// Runs a step, and passes its output to the sink meanwhile, if there is one. The report has the digests of the
    /// files that it read, as they are at its end.
    pub(super) async fn run(
        &self,
        request: &StepRequest,
        sees: &StepEnvironment,
        values: &StepValues,
        sink: Option<Arc<dyn OutputSink>>,
    ) -> Result<StepReport, GraphError> {
        let StepLimits { timeout_ms, memory_bytes_max, fuel_max } = sees.limits;
        let limits = JobLimits { timeout_ms, memory_bytes_max, fuel_max, ..JobLimits::default() };
        let steps = Steps::new(self.executor().await?.clone(), limits);
        let steps = steps.with_grants(sees.directories.clone(), sees.hosts.clone()).with_sink(sink);
        let ran = steps.run(request, values).await.map_err(|error| match error {
            StepError::Exec(error) => not_there(error),
            other => GraphError::Failed(other.to_string()),
        });
        self.with_files(ran?, sees).await
    }

    async fn with_files(&self, mut report: StepReport, sees: &StepEnvironment) -> Result<StepReport, GraphError> {
        if report.files.is_empty() {
            return Ok(report);
        }
        let (files, directories, now_ms) = (Arc::clone(&self.files), sees.directories.clone(), self.clock.now_ms());
        let paths: Vec<String> = std::mem::take(&mut report.files).into_keys().collect();
        let read = move || files.of(&directories, paths.iter().map(String::as_str), now_ms);
        let read = tokio::task::spawn_blocking(read).await;
        report.files =
            read.map_err(|error| GraphError::Failed(format!("the files of a step cannot be read: {error}")))?;
        Ok(report)
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
