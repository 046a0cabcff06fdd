//! A fake collector: it receives OTLP over HTTP, reads it with the published definitions of the protocol, keeps it, and
//! always answers with success.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::metrics::v1::Metric;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// All received requests.
#[derive(Default)]
pub struct Received {
    pub spans: Vec<Span>,
    pub metrics: Vec<Metric>,
    pub logs: Vec<LogRecord>,
    /// Attributes of the senders.
    pub resources: Vec<String>,
    pub requests: usize,
    /// All of it as text, to look for what must not be there.
    pub text: String,
}

/// A receiver on loopback. Its thread ends with the test.
pub struct Receiver {
    pub address: String,
    received: Arc<Mutex<Received>>,
}

impl Receiver {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("bound").to_string();
        let received = Arc::new(Mutex::new(Received::default()));
        let own = Arc::clone(&received);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let received = Arc::clone(&own);
                std::thread::spawn(move || serve(&stream, &received));
            }
        });
        Self { address, received }
    }

    pub fn received(&self) -> MutexGuard<'_, Received> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One request a connection.
fn serve(stream: &TcpStream, received: &Mutex<Received>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        if header.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = header.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    received.lock().unwrap_or_else(PoisonError::into_inner).take(&path, &body);
    let mut stream = stream;
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").ok()
}

impl Received {
    fn take(&mut self, path: &str, body: &[u8]) {
        self.requests += 1;
        match path {
            "/v1/traces" => {
                let request = ExportTraceServiceRequest::decode(body).expect("OTLP");
                self.text.push_str(&format!("{request:?}"));
                for resource in request.resource_spans {
                    self.resources.extend(resource.resource.map(|resource| shown(&resource.attributes)));
                    self.spans.extend(resource.scope_spans.into_iter().flat_map(|scope| scope.spans));
                }
            }
            "/v1/metrics" => {
                let request = ExportMetricsServiceRequest::decode(body).expect("OTLP");
                self.text.push_str(&format!("{request:?}"));
                let scopes = request.resource_metrics.into_iter().flat_map(|resource| resource.scope_metrics);
                self.metrics.extend(scopes.flat_map(|scope| scope.metrics));
            }
            "/v1/logs" => {
                let request = ExportLogsServiceRequest::decode(body).expect("OTLP");
                self.text.push_str(&format!("{request:?}"));
                let scopes = request.resource_logs.into_iter().flat_map(|resource| resource.scope_logs);
                self.logs.extend(scopes.flat_map(|scope| scope.log_records));
            }
            other => panic!("`{other}` is no path of OTLP"),
        }
    }

    /// The spans as a tree, the children of each in the order of their starts.
    pub fn tree(&self) -> String {
        let mut text = String::new();
        self.branch(&[], 0, &mut text);
        text
    }

    fn branch(&self, parent: &[u8], depth: usize, text: &mut String) {
        let mut children: Vec<&Span> = self.spans.iter().filter(|span| span.parent_span_id == parent).collect();
        children.sort_by_key(|span| (span.start_time_unix_nano, span.end_time_unix_nano));
        for span in children {
            let took_ms = span.end_time_unix_nano.saturating_sub(span.start_time_unix_nano) / 1_000_000;
            let of = attribute(&span.attributes, "longhaul.task_id").map(|task| format!(" [{task}]"));
            let failed = if span.status.as_ref().is_some_and(|status| status.code == 2) { " failed" } else { "" };
            let tokens = attribute(&span.attributes, "gen_ai.usage.input_tokens").filter(|tokens| tokens != "0");
            let tokens = tokens.map(|tokens| format!(", {tokens} tokens in")).unwrap_or_default();
            let (name, of) = (&span.name, of.unwrap_or_default());
            text.push_str(&format!("{}{name}{of} {took_ms} ms{tokens}{failed}\n", "  ".repeat(depth)));
            self.branch(&span.span_id, depth + 1, text);
        }
    }
}

/// One attribute as text.
pub fn attribute(attributes: &[KeyValue], key: &str) -> Option<String> {
    let found = attributes.iter().find(|pair| pair.key == key)?;
    Some(value(found.value.as_ref()?))
}

fn value(value: &AnyValue) -> String {
    match &value.value {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::IntValue(number)) => number.to_string(),
        Some(Value::DoubleValue(number)) => number.to_string(),
        Some(Value::BoolValue(is)) => is.to_string(),
        other => format!("{other:?}"),
    }
}

fn shown(attributes: &[KeyValue]) -> String {
    let pair = |pair: &KeyValue| format!("{}={}", pair.key, pair.value.as_ref().map(value).unwrap_or_default());
    attributes.iter().map(pair).collect::<Vec<_>>().join(" ")
}
