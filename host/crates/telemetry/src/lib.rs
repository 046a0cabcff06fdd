//! Runs in standard formats: OpenTelemetry's traces, metrics and logs, and Prometheus text.
//!
//! All of it comes only from the durable events of runs, so no other part of the host depends on OpenTelemetry:
//! [`Spans`] turns events into spans, [`Instruments`] counts them, [`Totals`] sums them up for Prometheus, and
//! [`Exporter`] sends the results. Off unless the operator names a collector. Nothing here ever waits for a collector:
//! signals that do not fit the queue are dropped, and the end waits a bounded time. The content of people and models is
//! sent only if the operator asks for it.

mod attributes;
mod client;
mod config;
mod content;
mod conventions;
mod draft;
mod error;
mod export;
mod ids;
mod instruments;
mod label;
mod metrics_writer;
mod prometheus;
mod spans;
mod stretches;

pub use config::{TelemetryConfig, TelemetrySettings};
pub use error::TelemetryError;
pub use export::{Exporter, Watcher};
pub use instruments::Instruments;
pub use metrics_writer::MetricsWriter;
pub use prometheus::Totals;
pub use spans::Spans;
pub use stretches::Stretches;
