//! Runs, as the tools of others know them: OpenTelemetry's traces, metrics and logs, and Prometheus text.
//!
//! All of it is made of the durable events of runs and of nothing else, so nothing else in the host knows of
//! OpenTelemetry: [`Spans`] turns events into spans, [`Instruments`] counts them, [`Totals`] sums them up for
//! Prometheus, and [`Exporter`] sends what was made. Off unless the operator names a collector. Nothing here
//! ever waits for a collector: what does not fit the queue is dropped, and the end waits a bounded time. What
//! people and models say is sent only where the operator asks for content.

mod client;
mod config;
mod error;
mod export;
mod ids;
mod instruments;
mod label;
mod prometheus;
mod spans;

pub use config::{TelemetryConfig, TelemetrySettings};
pub use error::TelemetryError;
pub use export::{Exporter, Watcher};
pub use instruments::Instruments;
pub use prometheus::Totals;
pub use spans::Spans;
