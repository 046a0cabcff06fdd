//! The durations of requests, as histograms for Prometheus: one for each method and route.
//!
//! A route is the router's own pattern, never the path that a client sent, so the number of histograms is bounded. A
//! stream of events counts until its headers are sent. It measures nothing by itself.

use http::{Method, StatusCode};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The upper bounds of the buckets, in microseconds, with their names in seconds.
const BUCKETS: [(u64, &str); 12] = [
    (1_000, "0.001"),
    (5_000, "0.005"),
    (10_000, "0.01"),
    (25_000, "0.025"),
    (50_000, "0.05"),
    (100_000, "0.1"),
    (250_000, "0.25"),
    (500_000, "0.5"),
    (1_000_000, "1"),
    (2_500_000, "2.5"),
    (10_000_000, "10"),
    (30_000_000, "30"),
];

/// The label of requests that matched no route, or that were refused before they were matched.
const UNMATCHED: &str = "none";

const NAME: &str = "longhaul_http_request_seconds";

/// The latencies of all requests since the server started.
#[derive(Default)]
pub(super) struct RequestLatencies(Mutex<BTreeMap<(String, &'static str), RouteLatency>>);

/// The latencies of one route.
#[derive(Default)]
struct RouteLatency {
    /// Requests by the first bucket that they fit in.
    buckets: [u64; BUCKETS.len()],
    requests: u64,
    micros: u64,
    /// Responses by the first digit of their status; 0 is none.
    statuses: [u64; 6],
}

impl RequestLatencies {
    /// Counts a request.
    pub(super) fn add(&self, route: Option<&str>, method: &Method, status: StatusCode, took: Duration) {
        let key = (route.unwrap_or(UNMATCHED).to_owned(), method_name(method));
        self.lock().entry(key).or_default().add(status, took);
    }

    /// The histograms and the responses as text.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        let all = self.lock();
        // Writing into a string cannot fail.
        let _ = writeln!(text, "# HELP {NAME} Time from a request to its response, by route.\n# TYPE {NAME} histogram");
        for ((route, method), latency) in all.iter() {
            latency.put(&mut text, &format!("method=\"{method}\",route=\"{route}\""));
        }
        let name = "longhaul_http_responses_total";
        let _ = writeln!(text, "# HELP {name} Responses, by the class of their status.\n# TYPE {name} counter");
        for class in 1..=5 {
            let count: u64 = all.values().map(|latency| latency.statuses[class]).sum();
            let _ = writeln!(text, "{name}{{class=\"{class}xx\"}} {count}");
        }
        text
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(String, &'static str), RouteLatency>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RouteLatency {
    fn add(&mut self, status: StatusCode, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        if let Some(bucket) = BUCKETS.iter().position(|(most, _)| micros <= *most) {
            self.buckets[bucket] += 1;
        }
        self.requests += 1;
        self.micros = self.micros.saturating_add(micros);
        self.statuses[usize::from(status.as_u16() / 100).min(5)] += 1;
    }

    fn put(&self, text: &mut String, labels: &str) {
        let mut sum = 0;
        for ((_, most), count) in BUCKETS.iter().zip(self.buckets) {
            sum += count;
            let _ = writeln!(text, "{NAME}_bucket{{{labels},le=\"{most}\"}} {sum}");
        }
        let _ = writeln!(text, "{NAME}_bucket{{{labels},le=\"+Inf\"}} {}", self.requests);
        let (seconds, rest) = (self.micros / 1_000_000, self.micros % 1_000_000);
        let _ = writeln!(text, "{NAME}_sum{{{labels}}} {seconds}.{rest:06}");
        let _ = writeln!(text, "{NAME}_count{{{labels}}} {}", self.requests);
    }
}

/// The method, of which a client may make up any.
fn method_name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::PATCH => "PATCH",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(text: &str, line: &str) {
        assert!(text.lines().any(|one| one == line), "no `{line}` in\n{text}");
    }

    #[test]
    fn a_bucket_holds_all_requests_that_took_at_most_its_bound() {
        let latencies = RequestLatencies::default();
        for (micros, status) in [(1_000, 200), (1_001, 200), (40_000_000, 503)] {
            let status = StatusCode::from_u16(status).unwrap();
            latencies.add(Some("/api/v1/runs/{run}"), &Method::GET, status, Duration::from_micros(micros));
        }
        let text = latencies.text();
        let labels = "method=\"GET\",route=\"/api/v1/runs/{run}\"";
        has(&text, &format!("{NAME}_bucket{{{labels},le=\"0.001\"}} 1"));
        has(&text, &format!("{NAME}_bucket{{{labels},le=\"0.005\"}} 2"));
        has(&text, &format!("{NAME}_bucket{{{labels},le=\"30\"}} 2"));
        has(&text, &format!("{NAME}_bucket{{{labels},le=\"+Inf\"}} 3"));
        has(&text, &format!("{NAME}_sum{{{labels}}} 40.002001"));
        has(&text, &format!("{NAME}_count{{{labels}}} 3"));
        has(&text, "longhaul_http_responses_total{class=\"2xx\"} 2");
        has(&text, "longhaul_http_responses_total{class=\"5xx\"} 1");
    }

    #[test]
    fn what_clients_make_up_makes_no_histograms() {
        let latencies = RequestLatencies::default();
        for number in 0..50 {
            let method = Method::from_bytes(format!("M{number}").as_bytes()).unwrap();
            latencies.add(None, &method, StatusCode::NOT_FOUND, Duration::ZERO);
        }
        let text = latencies.text();
        assert_eq!(text.matches("_count{").count(), 1, "{text}");
        has(&text, &format!("{NAME}_count{{method=\"other\",route=\"none\"}} 50"));
    }
}
