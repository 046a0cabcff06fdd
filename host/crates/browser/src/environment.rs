//! The parts of the host that every browser is started with: the sandbox, the guard of requests and the supervisor.
//!
//! The host makes one value for a tool. This file starts nothing and knows no setting of the tool.

use longhaul_core::supervisor::Supervisor;
use longhaul_egress::Guard;
use longhaul_sandbox::SandboxHost;
use std::sync::Arc;

/// What a browser needs of the host.
#[derive(Clone)]
pub struct BrowserEnvironment {
    /// How programs are confined on this machine.
    pub host: SandboxHost,
    /// Arguments of this very binary that lead to [`crate::browser_child`]; the specification comes after them.
    pub child_args: Vec<String>,
    /// What everything of it passes.
    pub guard: Guard,
    /// Who is told how much leaves.
    pub supervisor: Arc<dyn Supervisor>,
}
