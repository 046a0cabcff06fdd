//! `[telemetry]` of `longhaul.toml`, and OpenTelemetry's own environment variables, which apply if the table has no
//! value.
//!
//! Headers for a collector are often secrets, so they are read from `OTEL_EXPORTER_OTLP_HEADERS` only.

use crate::TelemetryError;
use longhaul_egress::stand_in;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// The table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TelemetryConfig {
    /// The collector, for example `http://localhost:4318`, which gets OTLP over HTTP as protobuf. Default:
    /// `OTEL_EXPORTER_OTLP_ENDPOINT`; without either nothing is sent.
    pub otlp_endpoint: Option<String>,
    /// Name of this service. Default: `OTEL_SERVICE_NAME`, else `longhaul`.
    pub service_name: Option<String>,
    /// Also sends the words of people, models and tools: messages, instructions, arguments and results. Default: false,
    /// or the value of `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`.
    pub content: Option<bool>,
    /// Bytes of one attribute with content, such as the messages of a request. Default 65 536, at least 1 024. In
    /// longer ones, long texts are cut, and then the oldest messages are left out.
    pub content_bytes_max: Option<usize>,
    /// Share of the runs that is traced, 0 to 1. Default 1, or the value of `OTEL_TRACES_SAMPLER`. A run is traced as a
    /// whole or not at all, even when it continues in another process.
    #[schemars(range(min = 0, max = 1))]
    pub sample_ratio: Option<f64>,
    /// Sends traces. Default true, unless `OTEL_TRACES_EXPORTER` is `none`.
    pub traces: Option<bool>,
    /// Sends metrics. Default true, unless `OTEL_METRICS_EXPORTER` is `none`.
    pub metrics: Option<bool>,
    /// Sends logs. Default true, unless `OTEL_LOGS_EXPORTER` is `none`.
    pub logs: Option<bool>,
    /// Interval of sending metrics, in milliseconds. Default 60 000.
    pub metrics_every_ms: Option<u64>,
    /// Longest time for one request to the collector, in milliseconds. Default 5 000.
    pub export_ms_max: Option<u64>,
    /// Longest time that the end of a run's process waits for unsent data, in milliseconds. Default 3 000. Data that is
    /// unsent by then is lost.
    pub flush_ms_max: Option<u64>,
    /// Spans, and log records, that wait to be sent. Default 2 048 of each. More are dropped.
    pub queue_max: Option<usize>,
}

/// The signals to send, and their destination.
#[derive(Clone, Debug, PartialEq)]
pub struct TelemetrySettings {
    pub(crate) endpoint: String,
    pub(crate) service_name: String,
    pub(crate) content: bool,
    pub(crate) content_bytes_max: usize,
    pub(crate) sample_ratio: f64,
    pub(crate) traces: bool,
    pub(crate) metrics: bool,
    pub(crate) logs: bool,
    pub(crate) metrics_every_ms: u64,
    pub(crate) export_ms_max: u64,
    pub(crate) flush_ms_max: u64,
    pub(crate) queue_max: usize,
}

impl TelemetryConfig {
    /// The table, with the environment for missing values. None: nothing has to be sent.
    ///
    /// # Errors
    /// A value that cannot be used.
    pub fn settings(
        &self,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<TelemetrySettings>, TelemetryError> {
        if is_off(variable, stand_in::receiver()) {
            return Ok(None);
        }
        let Some(endpoint) = self.otlp_endpoint.clone().or_else(|| variable("OTEL_EXPORTER_OTLP_ENDPOINT")) else {
            return Ok(None);
        };
        let scheme = ["http://", "https://"].iter().any(|scheme| endpoint.starts_with(scheme));
        if !scheme {
            return Err(wrong("otlp_endpoint", &endpoint, "it starts with http:// or https://"));
        }
        if let Some(protocol) = variable("OTEL_EXPORTER_OTLP_PROTOCOL").filter(|protocol| protocol != "http/protobuf") {
            return Err(wrong(
                "OTEL_EXPORTER_OTLP_PROTOCOL",
                &protocol,
                "there is http/protobuf, usually on port 4318",
            ));
        }
        let is_on = |signal: &str| variable(signal).is_none_or(|exporter| exporter != "none");
        let captures = || variable("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT");
        let sample_ratio = match self.sample_ratio {
            Some(ratio) => ratio,
            None => sampler(variable)?,
        };
        if !(0.0..=1.0).contains(&sample_ratio) {
            return Err(wrong("sample_ratio", &sample_ratio.to_string(), "give a number from 0 to 1"));
        }
        let name = self.service_name.clone().or_else(|| variable("OTEL_SERVICE_NAME"));
        Ok(Some(TelemetrySettings {
            endpoint,
            service_name: name.unwrap_or_else(|| "longhaul".to_owned()),
            content: self.content.unwrap_or_else(|| captures().is_some_and(|value| value.eq_ignore_ascii_case("true"))),
            content_bytes_max: self.content_bytes_max.unwrap_or(65_536).max(1_024),
            sample_ratio,
            traces: self.traces.unwrap_or_else(|| is_on("OTEL_TRACES_EXPORTER")),
            metrics: self.metrics.unwrap_or_else(|| is_on("OTEL_METRICS_EXPORTER")),
            logs: self.logs.unwrap_or_else(|| is_on("OTEL_LOGS_EXPORTER")),
            metrics_every_ms: self.metrics_every_ms.unwrap_or(60_000).max(100),
            export_ms_max: self.export_ms_max.unwrap_or(5_000).max(1),
            flush_ms_max: self.flush_ms_max.unwrap_or(3_000),
            queue_max: self.queue_max.unwrap_or(2_048).max(1),
        }))
    }
}

/// True when nothing may be sent: by OpenTelemetry's switch, or because this is a process of a crash test, which has a
/// stand-in for every host and whose runs nobody wants to see beside real ones.
fn is_off(variable: &dyn Fn(&str) -> Option<String>, stand_in: Option<SocketAddr>) -> bool {
    stand_in.is_some() || variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"))
}

/// The ratio from OpenTelemetry's variables.
fn sampler(variable: &dyn Fn(&str) -> Option<String>) -> Result<f64, TelemetryError> {
    let Some(name) = variable("OTEL_TRACES_SAMPLER") else { return Ok(1.0) };
    match name.trim_start_matches("parentbased_") {
        "always_on" => Ok(1.0),
        "always_off" => Ok(0.0),
        "traceidratio" => {
            let ratio = variable("OTEL_TRACES_SAMPLER_ARG").unwrap_or_else(|| "1".to_owned());
            ratio.trim().parse().map_err(|_| wrong("OTEL_TRACES_SAMPLER_ARG", &ratio, "give a number from 0 to 1"))
        }
        _ => Err(wrong("OTEL_TRACES_SAMPLER", &name, "there are always_on, always_off and traceidratio")),
    }
}

fn wrong(field: &'static str, value: &str, remedy: &str) -> TelemetryError {
    TelemetryError::Setting { field, value: value.to_owned(), remedy: remedy.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(table: &str, environment: &[(&str, &str)]) -> Result<Option<TelemetrySettings>, String> {
        let config: TelemetryConfig = toml::from_str(table).map_err(|error| error.to_string())?;
        let variable = |name: &str| {
            let found = environment.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        config.settings(&variable).map_err(|error| error.to_string())
    }

    const HERE: &str = "otlp_endpoint = \"http://localhost:4318\"\n";
    const THERE: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://there.example");

    #[test]
    fn nothing_is_sent_unless_a_collector_is_named() {
        assert_eq!(settings("", &[]), Ok(None));
        assert_eq!(settings("content = true", &[("OTEL_SERVICE_NAME", "x")]), Ok(None));
        assert_eq!(settings(HERE, &[("OTEL_SDK_DISABLED", "true")]), Ok(None));
    }

    #[test]
    fn a_process_of_a_crash_test_sends_nothing() {
        let nothing = |_: &str| None;
        assert!(is_off(&nothing, Some(SocketAddr::from(([127, 0, 0, 1], 8_080)))));
        assert!(!is_off(&nothing, None));
    }

    #[test]
    fn the_table_goes_before_the_environment() {
        let both = settings(&format!("{HERE}sample_ratio = 0.5"), &[THERE, ("OTEL_TRACES_SAMPLER", "always_off")]);
        let both = both.unwrap().unwrap();
        assert_eq!((both.endpoint.as_str(), both.sample_ratio), ("http://localhost:4318", 0.5));
        let content = ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "True");
        let sampler = ("OTEL_TRACES_SAMPLER", "parentbased_traceidratio");
        let environment = [THERE, content, sampler, ("OTEL_TRACES_SAMPLER_ARG", "0.25"), ("OTEL_SERVICE_NAME", "s")];
        let other = settings("", &environment).unwrap().unwrap();
        assert_eq!((other.endpoint.as_str(), other.service_name.as_str()), ("https://there.example", "s"));
        assert_eq!((other.content, other.sample_ratio), (true, 0.25));
        assert!(!settings("", &[THERE]).unwrap().unwrap().content, "content is by choice only");
        let off = settings("logs = true", &[THERE, ("OTEL_TRACES_EXPORTER", "none"), ("OTEL_LOGS_EXPORTER", "none")]);
        let off = off.unwrap().unwrap();
        assert_eq!((off.traces, off.metrics, off.logs), (false, true, true));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (table, environment, expected) in [
            (
                "otlp_endpoint = \"localhost:4318\"",
                &[][..],
                "otlp_endpoint is `localhost:4318`: it starts with http://",
            ),
            (&format!("{HERE}sample_ratio = 2.0"), &[], "sample_ratio is `2`: give a number from 0 to 1"),
            (HERE, &[("OTEL_TRACES_SAMPLER", "sometimes")], "there are always_on"),
            (HERE, &[("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")], "is `grpc`: there is http/protobuf"),
            ("endpoint = \"x\"", &[], "unknown field `endpoint`"),
        ] {
            let error = settings(table, environment).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
