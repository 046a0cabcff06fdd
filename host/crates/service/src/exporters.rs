//! The exporters of telemetry in use, and the sums for Prometheus. Sends and counts nothing; `telemetry.rs` does.

use longhaul_core::RunId;
use longhaul_telemetry::{Exporter, TelemetryConfig, Totals};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::task::JoinHandle;

/// The exporters in use, and the tasks that feed them.
#[derive(Default)]
pub(super) struct TelemetryReporter {
    /// One for each table that is in use: projects may have collectors of their own.
    pub(super) exporters: Vec<(TelemetryConfig, Arc<Exporter>)>,
    pub(super) tasks: Vec<JoinHandle<()>>,
}

/// The sums of the events so far.
#[derive(Default)]
pub(super) struct EventTotals {
    pub(super) totals: Totals,
    /// The number of the last event of each run that is in them.
    pub(super) last: HashMap<RunId, u64>,
}
