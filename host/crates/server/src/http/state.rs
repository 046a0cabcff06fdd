//! The state that all requests of the HTTP server share: the service, the settings, the counters of what is open.
//!
//! It decides nothing about a request; handlers say how many streams and jobs may be open.

use super::latency::RequestLatencies;
use super::rate::RateLimiter;
use longhaul_api::operations::{Operation, Transport};
use longhaul_config::server::ServerSettings;
use longhaul_core::fault;
use longhaul_exec::{ExecError, Executor, ExecutorPaths};
use longhaul_service::Service;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use tokio::sync::{OnceCell, watch};

/// The state that all requests share.
pub struct AppState {
    pub(super) service: Arc<Service>,
    settings: RwLock<Arc<ServerSettings>>,
    pub(super) rates: RateLimiter,
    /// Directory of the page's files, in place of those in the binary.
    pub(super) page: Option<PathBuf>,
    /// The data directory, for the lookup of plugins and interpreters.
    pub(super) home: longhaul_home::Home,
    /// Becomes true when the server is to end.
    pub(super) stop: watch::Receiver<bool>,
    /// Open streams.
    pub(super) streams: AtomicUsize,
    /// Running jobs of `exec`.
    pub(super) jobs: AtomicUsize,
    /// Operations that are called by their names and carried out.
    pub(super) calls: AtomicUsize,
    executor: OnceCell<Executor>,
    /// Requests since the server started, for their ids.
    pub(super) requests: AtomicU64,
    /// Their durations.
    pub(super) latencies: RequestLatencies,
}

/// The state, as handlers receive it.
pub type SharedState = Arc<AppState>;

/// One of a limited number of streams or jobs; dropping it makes room for the next.
pub(crate) struct Place {
    state: SharedState,
    of: fn(&AppState) -> &AtomicUsize,
}

impl Drop for Place {
    fn drop(&mut self) {
        (self.of)(&self.state).fetch_sub(1, Ordering::Relaxed);
    }
}

impl Transport for AppState {
    async fn call<O: Operation>(&self, request: O) -> fault::Result<O::Response> {
        self.service.call(request).await
    }
}

impl AppState {
    /// State of a server that asks this service and ends when `stop` becomes true.
    pub fn new(
        service: Arc<Service>,
        home: longhaul_home::Home,
        settings: ServerSettings,
        page: Option<PathBuf>,
        stop: watch::Receiver<bool>,
    ) -> SharedState {
        Arc::new(Self {
            service,
            settings: RwLock::new(Arc::new(settings)),
            rates: RateLimiter::default(),
            page,
            home,
            stop,
            streams: AtomicUsize::new(0),
            jobs: AtomicUsize::new(0),
            calls: AtomicUsize::new(0),
            executor: OnceCell::new(),
            requests: AtomicU64::new(0),
            latencies: RequestLatencies::default(),
        })
    }

    /// The settings as they are now.
    pub fn settings(&self) -> Arc<ServerSettings> {
        Arc::clone(&self.settings.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the settings; requests that come from now on see the new ones.
    pub fn set(&self, settings: ServerSettings) {
        *self.settings.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(settings);
    }

    /// True when the server is to end.
    pub(super) fn ends(&self) -> bool {
        *self.stop.borrow()
    }

    /// The executor of jobs, which the first job makes.
    pub(super) async fn executor(&self) -> Result<&Executor, ExecError> {
        let runtimes = longhaul_home::plugin_directories(&self.home);
        let data_directory = Some(self.home.path().to_owned());
        let open = || async { Executor::new(ExecutorPaths { runtimes, data_directory, ..ExecutorPaths::usual()? }) };
        self.executor.get_or_try_init(open).await
    }
}

/// Takes one more of at most `most`; none when all are taken.
pub(super) fn place(state: &SharedState, most: usize, of: fn(&AppState) -> &AtomicUsize) -> Option<Place> {
    let taken = of(state).fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| (now < most).then_some(now + 1));
    taken.ok().map(|_| Place { state: Arc::clone(state), of })
}
