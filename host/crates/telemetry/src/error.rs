//! Errors of the setup of telemetry. Later errors are logged and end nothing.

/// Telemetry cannot be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TelemetryError {
    /// A setting cannot be used as written.
    #[error("[telemetry] {field} is `{value}`: {remedy}")]
    Setting {
        /// The field.
        field: &'static str,
        /// The setting's value.
        value: String,
        /// The advice.
        remedy: String,
    },
    /// The client cannot be made.
    #[error("cannot set up the client for the collector: {0}; look at [telemetry] otlp_endpoint")]
    Client(String),
}
