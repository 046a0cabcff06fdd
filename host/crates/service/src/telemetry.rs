//! Events of runs, sent to the operator's collector. Nothing waits for a collector.

use super::exporters::TelemetryReporter;
use super::{RunNotification, Service, watch_here};
use longhaul_core::RunId;
use longhaul_home::variable;
use longhaul_records::record::RunRecord;
use longhaul_telemetry::{Exporter, TelemetryConfig, Watcher};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;

/// How long the end of the process waits for the last events of its runs to be looked at.
const LAST_EVENTS_WAIT: Duration = Duration::from_secs(2);

/// Exporters without a run that stay connected.
const IDLE_EXPORTERS_MAX: usize = 4;

impl Service {
    /// Looks after a run that is active here, if its project wants that. Events up to `after` were sent before.
    pub(super) fn report(self: &Arc<Self>, record: &RunRecord, after: u64) {
        let config = match record.config_now() {
            Ok(config) => config.telemetry,
            // A file that cannot be read is said where the run needs it.
            Err(_) => return,
        };
        let Some(exporter) = self.exporter(config) else { return };
        let watcher = exporter.watcher(&record.run, after);
        let task = tokio::spawn(follow(Arc::clone(self), record.run.clone(), watcher));
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

/// Passes the events of a run to its watcher until the run is inactive here.
async fn follow(service: Arc<Service>, run: RunId, mut watcher: Watcher) {
    let (sender, mut receiver) = mpsc::channel(256);
    let watching = tokio::spawn(async move { watch_here(&service, &run, 0, &sender).await });
    while let Some(seen) = receiver.recv().await {
        match seen {
            RunNotification::Event(event) => watcher.take(&event),
            RunNotification::Gone(_) | RunNotification::Dropped => break,
            RunNotification::Token(_) | RunNotification::Lagged => {}
        }
    }
    watching.abort();
}
