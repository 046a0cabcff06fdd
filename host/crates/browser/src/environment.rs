//! The environment of every browser: the sandbox, the guard of requests and the supervisor.
//!
//! The host makes one value for a tool. This file starts nothing and knows no setting of the tool.

use longhaul_core::supervisor::Supervisor;
use longhaul_egress::Guard;
use longhaul_sandbox::SandboxHost;
use std::sync::Arc;

/// The environment of a browser.
#[derive(Clone)]
pub struct BrowserEnvironment {
    /// The sandboxes of this machine.
    pub host: SandboxHost,
    /// Arguments of this very binary that lead to [`crate::browser_child`]; the specification comes after them.
    pub child_args: Vec<String>,
    /// The guard of all its traffic.
    pub guard: Guard,
    /// Counts outgoing bytes.
    pub supervisor: Arc<dyn Supervisor>,
}
