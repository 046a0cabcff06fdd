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

/// Answers requests in place of the network, in tests. Only requests that passed their grant reach it.
#[async_trait::async_trait]
pub trait Exchange: Send + Sync {
    /// The answer to a request.
    async fn answer(&self, request: Request<Bytes>) -> Response<Bytes>;
}

/// The services behind the capabilities.
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
    /// Replaces the network; none: the network itself.
    pub exchange: Option<Arc<dyn Exchange>>,
}

/// The scope of an invocation's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvocationScope {
    /// The project: decisions, progress and episodes are shared within it.
    pub project: String,
    /// The plugin's name in `longhaul.toml`: artifacts and key-value spaces are its own.
    pub plugin: String,
}

/// The setup of an invocation.
#[derive(Clone)]
pub struct InvocationSetup {
    /// Its id.
    pub invocation: InvocationId,
    /// The scope of its memory.
    pub scope: InvocationScope,
    /// Its grants.
    pub grants: Grants,
    /// Its limits.
    pub limits: Limits,
    /// The services behind its capabilities.
    pub services: Services,
    /// Its journal; none for tools and memory backends, whose whole call is an entry of the caller's.
    pub journal: Option<Arc<dyn Journal>>,
    /// The seed of its randomness.
    pub seed: [u8; 32],
    /// The rules that trim its conversations, as its journal has them; none: never.
    pub context: Option<PinnedContext>,
    /// Its standard streams, when they do not go to its log.
    pub console: Option<Console>,
    /// Secrets that it may send, and their placeholders.
    pub placeholders: Arc<SecretPlaceholders>,
    /// The lowest trust of text in its input, beside the text of its caller; none: there is no other.
    pub told: Option<Trust>,
}
