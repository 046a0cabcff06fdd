//! Why telemetry cannot be set up. What goes wrong later is told in the log and ends nothing.

/// Telemetry cannot be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TelemetryError {
    /// A setting cannot be used as written.
    #[error("[telemetry] {field} is `{value}`: {remedy}")]
    Setting {
        /// The field.
        field: &'static str,
        /// What it is.
        value: String,
        /// What it should be.
        remedy: String,
    },
    /// The client cannot be made.
    #[error("cannot set up the client for the collector: {0}; look at [telemetry] otlp_endpoint")]
    Client(String),
}
