//! The input of an invocation: the services that work for it, its scope, its grants and its limits.
//!
//! Traits and data. Nothing here does any work.

pub use longhaul_core::model::Models;
pub use longhaul_core::watch::{ConversationUpdate, Watch};

use crate::console::Console;
use ::http::{Request, Response};
use bytes::Bytes;
use longhaul_core::approval::Approvals;
use longhaul_core::context::PinnedContext;
use longhaul_core::grant::Grants;
use longhaul_core::graph::Graphs;
use longhaul_core::journal::Journal;
use longhaul_core::memory::{MemoryBackend, Trust};
use longhaul_core::store::Store;
use longhaul_core::supervisor::Supervisor;
use longhaul_core::tool::{Checks, Delegate, Tools};
use longhaul_core::{Clock, InvocationId, Limits};
use longhaul_egress::SecretPlaceholders;
use std::sync::Arc;

/// Answers requests in place of the network, in tests. What gets here has passed its grant.
#[async_trait::async_trait]
pub trait Exchange: Send + Sync {
    /// The answer to a request.
    async fn answer(&self, request: Request<Bytes>) -> Response<Bytes>;
}

/// Everything that does work for capabilities.
#[derive(Clone)]
#[expect(missing_docs, reason = "each field is its trait")]
pub struct Services {
    pub models: Arc<dyn Models>,
    pub tools: Arc<dyn Tools>,
    pub checks: Arc<dyn Checks>,
    pub delegate: Arc<dyn Delegate>,
    pub graphs: Arc<dyn Graphs>,
    pub approvals: Arc<dyn Approvals>,
    pub supervisor: Arc<dyn Supervisor>,
    pub store: Arc<dyn Store>,
    pub memory: Arc<dyn MemoryBackend>,
    pub clock: Arc<dyn Clock>,
    pub watch: Arc<dyn Watch>,
    /// In place of the network; none: the network itself.
    pub exchange: Option<Arc<dyn Exchange>>,
}

/// Whose memory an invocation reads and writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvocationScope {
    /// The project: decisions, progress and episodes are shared within it.
    pub project: String,
    /// The plugin's name in `longhaul.toml`: hand-offs and key-value spaces are its own.
    pub plugin: String,
}

/// What an invocation starts with.
#[derive(Clone)]
pub struct InvocationSetup {
    /// Which one.
    pub invocation: InvocationId,
    /// Whose memory.
    pub scope: InvocationScope,
    /// What it may do.
    pub grants: Grants,
    /// What it may use.
    pub limits: Limits,
    /// Who does the work.
    pub services: Services,
    /// Its journal; none for tools and memory backends, whose whole call is an entry of the caller's.
    pub journal: Option<Arc<dyn Journal>>,
    /// Where randomness comes from.
    pub seed: [u8; 32],
    /// How its conversations are cut back, as its journal has it; none: never.
    pub context: Option<PinnedContext>,
    /// What it reads and prints, when that is not its log.
    pub console: Option<Console>,
    /// Secrets that it may send, and what stands for them in it.
    pub placeholders: Arc<SecretPlaceholders>,
    /// The least trusted words in what it is handed, beside those of who asks it; none: there are no others.
    pub told: Option<Trust>,
}
