//! The metrics of a data directory, as Prometheus text: counts of its runs, schedules and tasks, and the space that it
//! takes, and the servers that work on its runs. A server adds what only it knows.

use super::Service;
use super::run_table::RunTable;
use longhaul_api::agents::{ListTasks, SchedulerStatus, StatusFilter};
use longhaul_api::resources::MetricsText;
use longhaul_api::workers::{WorkerList, WorkerView};
use longhaul_core::fault;
use longhaul_core::store::StoreMetrics;
use longhaul_resources::DiskSpace;
use longhaul_telemetry::MetricsWriter;
use std::path::Path;

/// The file of the store in the data directory.
const STORE: &str = "state.redb";

impl Service {
    pub(super) async fn metrics(&self) -> fault::Result<MetricsText> {
        // The totals keep what was counted of a run that is removed.
        let mut text = self.of_runs(RunTable::totals_text)?;
        self.keep_repaired_sums().await;
        let mut writer = MetricsWriter::default();
        put_scheduler(&mut writer, &self.agents.scheduler_status().await?);
        put_ended(&mut writer, self.ended(StatusFilter::Completed).await?, self.ended(StatusFilter::Failed).await?);
        put_space(&mut writer, self.host.home.path());
        put_store(&mut writer, self.host.store.metrics().as_ref());
        put_workers(&mut writer, &self.worker_list()?);
        writer.gauge("longhaul_run_entries", "What is kept in memory for runs at work; 0 while there are none.");
        writer.line("longhaul_run_entries", &[], self.run_entries());
        text.push_str(&writer.finish());
        Ok(MetricsText { text })
    }

    /// Everything that this process keeps of runs only while they are worked on, counted: their actors, places, locks,
    /// followers, reports, and the tasks that remember them.
    fn run_entries(&self) -> usize {
        let active = self.lock().len();
        let (followed, reported) = (self.served.followed(), self.drop_ended_reports());
        active + self.queue.len() + self.locks.len() + followed + reported + self.remembering_now()
    }

    /// Ended tasks of this status that are kept.
    async fn ended(&self, status: StatusFilter) -> fault::Result<usize> {
        let request = ListTasks { agent: None, status: Some(status), limit: 0, offset: 0 };
        Ok(self.agents.tasks(request).await?.total_count)
    }
}

fn put_scheduler(to: &mut MetricsWriter, status: &SchedulerStatus) {
    to.gauge("longhaul_schedules", "Schedules of agents, disabled ones included.");
    to.line("longhaul_schedules", &[], status.schedules);
    to.gauge("longhaul_scheduler_working", "1 while a scheduler works; due tasks wait while it is 0.");
    to.line("longhaul_scheduler_working", &[], u8::from(status.working));
    to.gauge("longhaul_schedule_tasks_max", "Tasks of schedules that may run at once.");
    to.line("longhaul_schedule_tasks_max", &[], status.concurrent_max);
    to.gauge("longhaul_schedule_tasks_open", "Tasks of schedules that have not ended, by status.");
    to.line("longhaul_schedule_tasks_open", &[("status", "pending")], status.pending);
    to.line("longhaul_schedule_tasks_open", &[("status", "running")], status.running);
}

fn put_ended(to: &mut MetricsWriter, completed: usize, failed: usize) {
    to.gauge("longhaul_schedule_tasks_ended", "Ended tasks that are kept, by status; the oldest are deleted.");
    to.line("longhaul_schedule_tasks_ended", &[("status", "completed")], completed);
    to.line("longhaul_schedule_tasks_ended", &[("status", "failed")], failed);
}

/// Figures of a store on a server. One in files has the families without a line, so that alert rules find them.
fn put_store(to: &mut MetricsWriter, of: Option<&StoreMetrics>) {
    let gauges = [
        (
            "longhaul_store_held",
            "1 while no other process may claim the store.",
            of.map(|of| u8::from(of.lease_left_ms > 0).to_string()),
        ),
        (
            "longhaul_store_lease_remaining_seconds",
            "Time for which no other process may claim the store.",
            of.map(|of| seconds(of.lease_left_ms).to_string()),
        ),
        (
            "longhaul_store_epoch",
            "Claims of the store by any process, up to that of this one.",
            of.map(|of| of.epoch.to_string()),
        ),
        (
            "longhaul_store_commits_waiting",
            "Commits that wait for the server of the store, or are on their way.",
            of.map(|of| of.commits_waiting.to_string()),
        ),
    ];
    for (name, help, value) in gauges {
        to.gauge(name, help);
        if let Some(value) = value {
            to.line(name, &[], value);
        }
    }
    let counters = [
        ("longhaul_store_lease_renewals_total", "Renewals of the lease on the store.", of.map(|of| of.lease_renewals)),
        (
            "longhaul_store_lease_renewals_failed_total",
            "Attempts to renew the lease that failed.",
            of.map(|of| of.lease_renewals_failed),
        ),
        ("longhaul_store_commits_total", "Commits that became durable.", of.map(|of| of.commits.count())),
        (
            "longhaul_store_commits_failed_total",
            "Commits that failed otherwise than by a conflict.",
            of.map(|of| of.commits_failed),
        ),
        (
            "longhaul_store_fenced_writes_total",
            "Statements that came after the end of the lease, and changed nothing.",
            of.map(|of| of.fenced_writes),
        ),
        (
            "longhaul_store_reconnects_total",
            "Connections for commits in the place of one that was broken.",
            of.map(|of| of.reconnects),
        ),
    ];
    for (name, help, value) in counters {
        to.counter(name, help);
        if let Some(value) = value {
            to.line(name, &[], value);
        }
    }
    to.durations("longhaul_store_commit_seconds", "Time from a commit to its answer.", of.map(|of| &of.commits));
}

/// The servers that work on runs, by name. A server that works alone has the families by worker without a line, so that
/// alert rules find them.
fn put_workers(to: &mut MetricsWriter, WorkerList { workers, runs_waiting }: &WorkerList) {
    to.gauge("longhaul_workers", "Servers that work on runs of the store and renew their lease.");
    to.line("longhaul_workers", &[], workers.iter().filter(|worker| worker.is_alive).count());
    to.gauge("longhaul_runs_waiting_for_worker", "Runs that wait for a server with their labels and a free place.");
    to.line("longhaul_runs_waiting_for_worker", &[], runs_waiting.len());
    to.gauge("longhaul_worker_runs", "Runs that a server has, by worker.");
    for WorkerView { name, runs, .. } in workers {
        to.line("longhaul_worker_runs", &[("worker", name)], runs.len());
    }
    to.gauge(
        "longhaul_worker_lease_left_seconds",
        "Time until the lease of a server ends, by worker; 0: it has ended.",
    );
    for WorkerView { name, lease_left_ms, .. } in workers {
        to.line("longhaul_worker_lease_left_seconds", &[("worker", name)], seconds(*lease_left_ms));
    }
}

fn seconds(ms: u64) -> f64 {
    f64::from(u32::try_from(ms).unwrap_or(u32::MAX)) / 1e3
}

/// Figures that the system does not tell are left out.
fn put_space(to: &mut MetricsWriter, home: &Path) {
    to.gauge("longhaul_store_bytes", "Size of the store's file.");
    if let Ok(found) = home.join(STORE).metadata() {
        to.line("longhaul_store_bytes", &[], found.len());
    }
    let space = DiskSpace::of(home);
    to.gauge("longhaul_disk_free_bytes", "Free space of the disk that the data directory lies on.");
    if let Some(space) = space {
        to.line("longhaul_disk_free_bytes", &[], space.free_bytes);
    }
    to.gauge("longhaul_disk_bytes", "Size of that disk.");
    if let Some(space) = space {
        to.line("longhaul_disk_bytes", &[], space.total_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_core::RunId;
    use longhaul_core::store::DurationCounts;

    #[test]
    fn schedules_tasks_and_space_are_told_in_figures() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join(STORE), [0; 1_234]).unwrap();
        let status = SchedulerStatus {
            working: false,
            concurrent_max: 5,
            running: 1,
            pending: 7,
            queue_max: 9,
            schedules: 3,
            next_wake_ms: None,
        };
        let mut writer = MetricsWriter::default();
        put_scheduler(&mut writer, &status);
        put_ended(&mut writer, 4, 2);
        put_space(&mut writer, home.path());
        let text = writer.finish();
        for line in [
            "longhaul_schedules 3",
            "longhaul_scheduler_working 0",
            "longhaul_schedule_tasks_max 5",
            "longhaul_schedule_tasks_open{status=\"pending\"} 7",
            "longhaul_schedule_tasks_open{status=\"running\"} 1",
            "longhaul_schedule_tasks_ended{status=\"failed\"} 2",
            "longhaul_store_bytes 1234",
        ] {
            assert!(text.lines().any(|one| one == line), "no `{line}` in\n{text}");
        }
        assert!(text.contains("\nlonghaul_disk_free_bytes ") && text.contains("\nlonghaul_disk_bytes "), "{text}");
    }

    #[test]
    fn a_store_on_a_server_is_told_with_its_lease_and_its_commits() {
        let of = StoreMetrics {
            epoch: 7,
            lease_left_ms: 8_250,
            lease_renewals: 11,
            lease_renewals_failed: 2,
            commits: DurationCounts { within_ms: vec![(1, 40), (5, 1)], above: 1, total_micros: 61_500_000 },
            commits_failed: 3,
            commits_waiting: 4,
            fenced_writes: 5,
            reconnects: 6,
        };
        let mut writer = MetricsWriter::default();
        put_store(&mut writer, Some(&of));
        let text = writer.finish();
        for line in [
            "longhaul_store_held 1",
            "longhaul_store_epoch 7",
            "longhaul_store_lease_remaining_seconds 8.25",
            "longhaul_store_lease_renewals_total 11",
            "longhaul_store_lease_renewals_failed_total 2",
            "longhaul_store_commits_total 42",
            "longhaul_store_commits_failed_total 3",
            "longhaul_store_commits_waiting 4",
            "longhaul_store_fenced_writes_total 5",
            "longhaul_store_reconnects_total 6",
            "longhaul_store_commit_seconds_bucket{le=\"0.005\"} 41",
            "longhaul_store_commit_seconds_sum 61.500000",
            "longhaul_store_commit_seconds_count 42",
            "# TYPE longhaul_store_commits_waiting gauge",
            "# TYPE longhaul_store_reconnects_total counter",
        ] {
            assert!(text.lines().any(|one| one == line), "no `{line}` in\n{text}");
        }
        let mut writer = MetricsWriter::default();
        put_store(&mut writer, Some(&StoreMetrics { lease_left_ms: 0, ..of }));
        assert!(writer.finish().contains("\nlonghaul_store_held 0\n"), "its lease ran out");
        let mut writer = MetricsWriter::default();
        put_store(&mut writer, None);
        let text = writer.finish();
        assert_eq!(text.matches("# TYPE longhaul_store_").count(), 11, "an alert rule finds its family: {text}");
        assert!(!text.contains("\nlonghaul_"), "{text}");
    }

    #[test]
    fn a_server_that_is_gone_keeps_its_figures_and_counts_no_more() {
        let worker = |name: &str, lease_left_ms: u64| WorkerView {
            name: name.to_owned(),
            host: "alpha".to_owned(),
            process: 7,
            version: "0.1.0".to_owned(),
            labels: Vec::new(),
            runs_max: 4,
            runs: vec![RunId::from_text("r-1"), RunId::from_text("r-2")],
            is_leader: false,
            is_alive: lease_left_ms > 0,
            lease_left_ms,
            commits: 12,
            url: None,
        };
        let list = WorkerList {
            workers: vec![worker("d-one", 8_250), worker("d-two", 0)],
            runs_waiting: vec![RunId::from_text("r-3")],
        };
        let mut writer = MetricsWriter::default();
        put_workers(&mut writer, &list);
        let text = writer.finish();
        for line in [
            "longhaul_workers 1",
            "longhaul_runs_waiting_for_worker 1",
            "longhaul_worker_runs{worker=\"d-one\"} 2",
            "longhaul_worker_runs{worker=\"d-two\"} 2",
            "longhaul_worker_lease_left_seconds{worker=\"d-one\"} 8.25",
            "longhaul_worker_lease_left_seconds{worker=\"d-two\"} 0",
        ] {
            assert!(text.lines().any(|one| one == line), "no `{line}` in\n{text}");
        }
    }

    #[test]
    fn a_server_that_works_alone_has_the_families_of_workers() {
        let mut writer = MetricsWriter::default();
        put_workers(&mut writer, &WorkerList::default());
        let text = writer.finish();
        assert_eq!(text.matches("# TYPE longhaul_").count(), 4, "an alert rule finds its family: {text}");
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(lines, ["longhaul_workers 0", "longhaul_runs_waiting_for_worker 0"]);
    }

    #[test]
    fn a_store_that_is_not_there_has_no_size() {
        let home = tempfile::tempdir().unwrap();
        let mut writer = MetricsWriter::default();
        put_space(&mut writer, home.path());
        let text = writer.finish();
        assert!(text.contains("# TYPE longhaul_store_bytes gauge"), "an alert rule finds its family: {text}");
        assert!(!text.contains("\nlonghaul_store_bytes "), "{text}");
    }
}
