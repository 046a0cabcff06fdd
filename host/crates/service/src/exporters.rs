//! The exporters of telemetry in use. Sends nothing; `telemetry.rs` does.

use longhaul_telemetry::{Exporter, TelemetryConfig};
use std::sync::Arc;
use tokio::task::JoinHandle;

/// The exporters in use, and the tasks that feed them.
#[derive(Default)]
pub(super) struct TelemetryReporter {
    /// One for each table that is in use: projects may have collectors of their own.
    pub(super) exporters: Vec<(TelemetryConfig, Arc<Exporter>)>,
    pub(super) tasks: Vec<JoinHandle<()>>,
}
