//! Events of runs, sent to the operator's collector. Nothing waits for a collector.

use super::exporters::TelemetryReporter;
use super::{RunNotification, Service, watch_here};
use longhaul_core::RunId;
use longhaul_core::event::{Event, RunEvent};
use longhaul_core::fault::{self, Context};
use longhaul_core::store::{Batch, Key, Table};
use longhaul_core::watch::StepContent;
use longhaul_home::variable;
use longhaul_records::bus::EventBus;
use longhaul_records::record::RunRecord;
use longhaul_telemetry::{Exporter, Stretches, TelemetryConfig, Watcher};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;

/// Longest wait of the end of the process for the last events of its runs to be exported.
const LAST_EVENTS_WAIT: Duration = Duration::from_secs(2);

/// Exporters without a run that stay connected.
const IDLE_EXPORTERS_MAX: usize = 4;

impl Service {
    /// Looks after a run that is active here, if its project wants that. Events up to `after` were sent before.
    pub(super) async fn report(self: &Arc<Self>, record: &RunRecord, bus: &EventBus, after: u64) {
        let config = match record.config_now() {
            Ok(config) => config.telemetry,
            // A file that cannot be read is said where the run needs it.
            Err(_) => return,
        };
        let Some(exporter) = self.exporter(config) else { return };
        let mut stretches = self.stretches(&record.run).unwrap_or_else(|error| {
            tracing::warn!(%error, "the trace of the run has no links to its earlier work");
            Stretches::default()
        });
        stretches.begin(after);
        let watcher = exporter.watcher(&record.run, after, &stretches);
        stretches.open();
        self.keep_stretches(&record.run, &stretches).await;
        let contents = watcher.wants_content().then(|| {
            bus.want_contents();
            bus.clone()
        });
        let reported = ReportedRun { run: record.run.clone(), watcher, stretches, contents };
        let task = tokio::spawn(follow(Arc::clone(self), reported));
        let mut reporting = self.reporting.lock().unwrap_or_else(PoisonError::into_inner);
        reporting.tasks.push(task);
        drop(reporting);
        self.drop_ended_reports();
    }

    /// Drops what is kept of reports that have ended, and closes exporters that nothing uses any more but for the last
    /// ones. Answers how many runs are reported.
    pub(super) fn drop_ended_reports(&self) -> usize {
        let mut reporting = self.reporting.lock().unwrap_or_else(PoisonError::into_inner);
        reporting.tasks.retain(|task| !task.is_finished());
        let idle = |exporter: &Arc<Exporter>| Arc::strong_count(exporter) == 1;
        let surplus = reporting.exporters.iter().filter(|(_, exporter)| idle(exporter)).count();
        let mut surplus = surplus.saturating_sub(IDLE_EXPORTERS_MAX);
        // The oldest first.
        let closed = reporting.exporters.extract_if(.., |(_, exporter)| {
            let closes = surplus > 0 && idle(exporter);
            surplus -= usize::from(closes);
            closes
        });
        for (_, exporter) in closed {
            tokio::spawn(exporter.close());
        }
        reporting.tasks.len()
    }

    /// The stretches of a run's work that were reported so far.
    fn stretches(&self, run: &RunId) -> fault::Result<Stretches> {
        let Some(bytes) = self.host.store.get(Table::States, &stretches_key(run))? else {
            return Ok(Stretches::default());
        };
        serde_json::from_slice(&bytes).or_internal(|| format!("the row of the stretches of run {run} is damaged"))
    }

    async fn keep_stretches(&self, run: &RunId, stretches: &Stretches) {
        let Ok(bytes) = serde_json::to_vec(stretches) else { return };
        let batch = Batch::new().put(Table::States, stretches_key(run), bytes);
        if let Err(error) = self.host.store.commit(batch).await {
            tracing::warn!(%error, %run, "the trace of the run may have no links to this stretch of its work");
        }
    }

    fn exporter(&self, config: TelemetryConfig) -> Option<Arc<Exporter>> {
        let mut reporting = self.reporting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, exporter)) = reporting.exporters.iter().find(|(known, _)| *known == config) {
            return Some(Arc::clone(exporter));
        }
        let started = config.settings(&variable).and_then(|settings| {
            settings.map(|settings| Exporter::start(settings, &tokio::runtime::Handle::current())).transpose()
        });
        match started {
            Ok(exporter) => {
                let exporter = Arc::new(exporter?);
                reporting.exporters.push((config, Arc::clone(&exporter)));
                Some(exporter)
            }
            Err(error) => {
                tracing::warn!(%error, "no telemetry is sent");
                None
            }
        }
    }

    /// Sends what is not sent yet, within the operator's time.
    pub(super) async fn end_reports(&self) {
        let TelemetryReporter { exporters, tasks } = take(&self.reporting);
        for task in tasks {
            // Its run is gone, so it ends by itself.
            let _ = tokio::time::timeout(LAST_EVENTS_WAIT, task).await;
        }
        for (_, exporter) in exporters {
            exporter.close().await;
        }
    }
}

fn take(reporting: &Mutex<TelemetryReporter>) -> TelemetryReporter {
    std::mem::take(&mut *reporting.lock().unwrap_or_else(PoisonError::into_inner))
}

fn stretches_key(run: &RunId) -> Key {
    RunRecord::key(run).and("traced")
}

/// A run that is active here, and what is reported of it.
struct ReportedRun {
    run: RunId,
    watcher: Watcher,
    /// The stretches of its work, up to this one.
    stretches: Stretches,
    /// Keeps the whole contents of steps; `None` without `content = true`.
    contents: Option<EventBus>,
}

/// Passes the events of a run to its watcher until the run is inactive here.
async fn follow(service: Arc<Service>, mut reported: ReportedRun) {
    let (sender, mut receiver) = mpsc::channel(256);
    let (own, run) = (Arc::clone(&service), reported.run.clone());
    let watching = tokio::spawn(async move { watch_here(&own, &run, 0, &sender).await });
    while let Some(seen) = receiver.recv().await {
        match seen {
            RunNotification::Event(event) => {
                let content = reported.contents.as_ref().and_then(|bus| content_of(&service, bus, &event));
                reported.watcher.take(&event, content);
            }
            RunNotification::Gone(_) => {
                reported.watcher.close();
                reported.stretches.close();
                service.keep_stretches(&reported.run, &reported.stretches).await;
                break;
            }
            RunNotification::Dropped => break,
            RunNotification::Token(_) | RunNotification::Lagged => {}
        }
    }
    watching.abort();
}

/// The whole content of an event's step, without the secrets that the host knows.
fn content_of(service: &Service, bus: &EventBus, event: &RunEvent) -> Option<StepContent> {
    let (invocation, step) = match &event.event {
        Event::Thought { invocation, step, .. }
        | Event::Action { invocation, step, .. }
        | Event::Observation { invocation, step, .. } => (invocation, *step),
        _ => return None,
    };
    let content = bus.take_content(invocation, step)?;
    let redactor = service.host.secrets.redactor();
    Some(content.with_texts(&|text| redactor.scrub(text)))
}
