//! Sends finished signals to the collector, on threads of its own; no other code waits for them.

use crate::client::ExportClient;
use crate::config::TelemetrySettings;
use crate::draft::time;
use crate::instruments::Instruments;
use crate::spans::Spans;
use crate::stretches::Stretches;
use crate::{TelemetryError, ids};
use longhaul_core::RunId;
use longhaul_core::event::{Event, RunEvent};
use longhaul_core::stream;
use longhaul_core::watch::StepContent;
use opentelemetry::KeyValue;
use opentelemetry::logs::{AnyValue, LogRecord as _, Logger as _, LoggerProvider as _, Severity};
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry::trace::TraceFlags;
use opentelemetry_otlp::{
    LogExporter, MetricExporter, Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::logs::{BatchConfigBuilder as LogBatch, BatchLogProcessor, SdkLogger, SdkLoggerProvider};
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider};
use opentelemetry_sdk::trace::{BatchConfigBuilder as SpanBatch, BatchSpanProcessor, SpanData, SpanProcessor};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

/// The time that a span or a log record waits for others, to be sent together.
const BATCH_EVERY: Duration = Duration::from_secs(1);

/// The spans of one request, and of one with content, whose spans are large: collectors bound the size of a request.
const SPANS_AT_ONCE: usize = 512;
const SPANS_WITH_CONTENT_AT_ONCE: usize = 32;

/// An exporter to one collector.
pub struct Exporter {
    settings: TelemetrySettings,
    spans: Option<BatchSpanProcessor>,
    meters: Option<SdkMeterProvider>,
    instruments: Option<Instruments>,
    logs: Option<SdkLoggerProvider>,
    logger: Option<SdkLogger>,
}

impl Exporter {
    /// Starts the threads that send. Requests are made on `runtime`.
    ///
    /// # Errors
    /// [`TelemetryError::Client`].
    pub fn start(settings: TelemetrySettings, runtime: &Handle) -> Result<Self, TelemetryError> {
        let time_max = Duration::from_millis(settings.export_ms_max);
        let client = Arc::new(ExportClient::new(&settings.endpoint, time_max, runtime.clone())?);
        let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        let resource =
            Resource::builder().with_service_name(settings.service_name.clone()).with_attribute(version).build();
        let spans = settings.traces.then(|| spans(&settings, &client, &resource)).transpose()?;
        let meters = settings.metrics.then(|| meters(&settings, &client, &resource)).transpose()?;
        let logs = settings.logs.then(|| logs(&settings, &client, &resource)).transpose()?;
        let instruments = meters.as_ref().map(|meters| Instruments::new(&meters.meter("longhaul")));
        let logger = logs.as_ref().map(|logs| logs.logger("longhaul"));
        Ok(Self { settings, spans, meters, instruments, logs, logger })
    }

    /// Watches one run in the stretch of work that begins after the event of this number. `stretches` are those up to
    /// this one.
    #[must_use]
    pub fn watcher(self: &Arc<Self>, run: &RunId, after: u64, stretches: &Stretches) -> Watcher {
        let is_traced = self.spans.is_some() && ids::is_sampled(run, self.settings.sample_ratio);
        let content_bytes_max = self.settings.content.then_some(self.settings.content_bytes_max);
        let spans = is_traced.then(|| Spans::new(run.clone(), content_bytes_max, stretches));
        Watcher { exporter: Arc::clone(self), spans, after }
    }

    /// Sends unsent data, and ends. It takes at most the operator's timeout.
    pub async fn close(self: Arc<Self>) {
        let time_max = Duration::from_millis(self.settings.flush_ms_max);
        // All three wait in parallel, each on a thread of its own.
        let (spans, meters, logs) = (Arc::clone(&self), Arc::clone(&self), self);
        let each: [Box<dyn FnOnce() + Send>; 3] = [
            Box::new(move || spans.tell(spans.spans.as_ref().map(|spans| spans.shutdown_with_timeout(time_max)))),
            Box::new(move || meters.tell(meters.meters.as_ref().map(SdkMeterProvider::shutdown))),
            Box::new(move || logs.tell(logs.logs.as_ref().map(|logs| logs.shutdown_with_timeout(time_max)))),
        ];
        let ending = each.map(|end| tokio::task::spawn_blocking(end));
        let all = async {
            for one in ending {
                let _ = one.await;
            }
        };
        if tokio::time::timeout(time_max, all).await.is_err() {
            tracing::warn!("telemetry was not all sent within flush_ms_max; the rest is lost");
        }
    }

    /// Logs the outcome of the last sending.
    fn tell(&self, ended: Option<OTelSdkResult>) {
        if let Some(Err(error)) = ended {
            let endpoint = &self.settings.endpoint;
            tracing::warn!(%error, "telemetry was not all sent to the collector at {endpoint}; look whether it is there");
        }
    }
}

/// Makes telemetry of the events of one run.
pub struct Watcher {
    exporter: Arc<Exporter>,
    spans: Option<Spans>,
    /// Events up to here only restore the state.
    after: u64,
}

impl Watcher {
    /// True when whole contents of steps are wanted beside the events, which have their beginnings.
    #[must_use]
    pub fn wants_content(&self) -> bool {
        self.spans.is_some() && self.exporter.settings.content
    }

    /// Takes the next event, from the first on, with the content of its step. Never waits.
    pub fn take(&mut self, event: &RunEvent, content: Option<StepContent>) {
        let ended = self.spans.as_mut().map(|spans| spans.take(event, content)).unwrap_or_default();
        if event.number <= self.after {
            return;
        }
        self.send(ended);
        if let Some(instruments) = &self.exporter.instruments {
            instruments.take(event);
        }
        self.log(event);
    }

    /// Ends the spans of a run that no process works on any more, and those of its open invocations.
    pub fn close(&mut self) {
        let ended = self.spans.as_mut().map(Spans::close).unwrap_or_default();
        self.send(ended);
    }

    fn send(&self, ended: Vec<SpanData>) {
        if let Some(processor) = &self.exporter.spans {
            ended.into_iter().for_each(|span| processor.on_end(span));
        }
    }

    fn log(&self, event: &RunEvent) {
        let Some(logger) = &self.exporter.logger else { return };
        let mut record = logger.create_log_record();
        record.set_event_name(stream::tag(&event.event));
        record.set_timestamp(time(event.at_ms));
        record.set_severity_number(severity(&event.event));
        record.add_attribute("longhaul.run_id", event.run.as_str().to_owned());
        record.add_attribute("longhaul.number", i64::try_from(event.number).unwrap_or(i64::MAX));
        if let Some(task) = stream::task(&event.event) {
            record.add_attribute("longhaul.task_id", task.to_owned());
        }
        if let Some(invocation) = stream::invocation(&event.event) {
            record.add_attribute("longhaul.invocation", invocation.as_str().to_owned());
        }
        let content = self.exporter.settings.content.then(|| serde_json::to_string(&event.event).ok()).flatten();
        let body = content.unwrap_or_else(|| stream::tag(&event.event).to_owned());
        record.set_body(AnyValue::String(body.into()));
        if let Some(spans) = &self.spans {
            record.set_trace_context(ids::trace(&event.run), spans.place(), Some(TraceFlags::SAMPLED));
        }
        logger.emit(record);
    }
}

fn severity(event: &Event) -> Severity {
    match event {
        Event::RunEnded { status, .. } if status == "failed" => Severity::Error,
        Event::Warning { .. } | Event::Limit { .. } | Event::VacuousCheck { .. } => Severity::Warn,
        Event::InvocationEnded { ok: false, .. } | Event::Observation { ok: false, .. } => Severity::Warn,
        Event::Thought { .. } | Event::Action { .. } | Event::Observation { .. } => Severity::Debug,
        _ => Severity::Info,
    }
}

fn spans(
    settings: &TelemetrySettings,
    client: &Arc<ExportClient>,
    resource: &Resource,
) -> Result<BatchSpanProcessor, TelemetryError> {
    let exporter = SpanExporter::builder()
        .with_http()
        .with_shared_http_client(client.clone())
        .with_endpoint(signal(settings, "traces"))
        .with_protocol(Protocol::HttpBinary)
        .build()
        .map_err(|error| TelemetryError::Client(error.to_string()))?;
    let at_once = if settings.content { SPANS_WITH_CONTENT_AT_ONCE } else { SPANS_AT_ONCE };
    let batch = SpanBatch::default()
        .with_max_queue_size(settings.queue_max)
        .with_max_export_batch_size(settings.queue_max.min(at_once))
        .with_scheduled_delay(BATCH_EVERY)
        .build();
    let mut processor = BatchSpanProcessor::builder(exporter).with_batch_config(batch).build();
    processor.set_resource(resource);
    Ok(processor)
}

fn meters(
    settings: &TelemetrySettings,
    client: &Arc<ExportClient>,
    resource: &Resource,
) -> Result<SdkMeterProvider, TelemetryError> {
    let exporter = MetricExporter::builder()
        .with_http()
        .with_shared_http_client(client.clone())
        .with_endpoint(signal(settings, "metrics"))
        .with_protocol(Protocol::HttpBinary)
        .build()
        .map_err(|error| TelemetryError::Client(error.to_string()))?;
    let every = Duration::from_millis(settings.metrics_every_ms);
    let reader = PeriodicReader::builder(exporter).with_interval(every).build();
    Ok(SdkMeterProvider::builder().with_reader(reader).with_resource(resource.clone()).build())
}

fn logs(
    settings: &TelemetrySettings,
    client: &Arc<ExportClient>,
    resource: &Resource,
) -> Result<SdkLoggerProvider, TelemetryError> {
    let exporter = LogExporter::builder()
        .with_http()
        .with_shared_http_client(client.clone())
        .with_endpoint(signal(settings, "logs"))
        .with_protocol(Protocol::HttpBinary)
        .build()
        .map_err(|error| TelemetryError::Client(error.to_string()))?;
    let batch = LogBatch::default()
        .with_max_queue_size(settings.queue_max)
        .with_max_export_batch_size(settings.queue_max.min(512))
        .with_scheduled_delay(BATCH_EVERY)
        .build();
    let processor = BatchLogProcessor::builder(exporter).with_batch_config(batch).build();
    Ok(SdkLoggerProvider::builder().with_log_processor(processor).with_resource(resource.clone()).build())
}

/// The address for one kind of signal.
fn signal(settings: &TelemetrySettings, kind: &str) -> String {
    format!("{}/v1/{kind}", settings.endpoint.trim_end_matches('/'))
}
