//! Recovery of runs by a server: it resumes runs that should go on and on which no process works.
//!
//! Those are runs that a kill or a shutdown interrupted, and runs whose question was answered. Runs that a person
//! paused, that have ended or that wait for a person stay as they are. Runs that were at work go on first, then those
//! that waited for their turn, in the order of their arrival. A run goes as far as it was asked to: to its
//! plan, for the sessions that are left, or to its end. A resume that fails is retried, each time after twice the wait.
//! A run whose trees are on another machine, and cannot be made again here, waits for that machine, and one of which
//! commits may be lost waits for a person.

use longhaul_api::run_lists::ListInterrupted;
use longhaul_api::runs::{ResumeRun, RunRef, RunSummary};
use longhaul_core::RunId;
use longhaul_listen::stopped;
use longhaul_service::{NoServer, Service, TreesElsewhere};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;
use tokio::time::Instant;

/// Time between two scans of all runs, while none changes.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// Wait after a run could not be resumed; it doubles each time, up to [`RETRY_WAIT_MAX`].
const RETRY_WAIT: Duration = Duration::from_secs(5);
const RETRY_WAIT_MAX: Duration = Duration::from_secs(600);

/// Wait after no server could take a run.
const SERVER_WAIT: Duration = Duration::from_secs(2);

/// A run that could not be resumed.
struct BlockedRun {
    wait: Duration,
    again: Instant,
}

/// Resumes runs until `stop` becomes true.
pub async fn keep(service: Arc<Service>, mut stop: watch::Receiver<bool>) {
    let mut news = service.news();
    let mut held: HashMap<RunId, BlockedRun> = HashMap::new();
    loop {
        tokio::select! {
            () = stopped(&mut stop) => return,
            () = look(&service, &mut held) => {}
        }
        let wakes = held.values().map(|held| held.again).min();
        let next = Instant::now() + LOOK_EVERY;
        tokio::select! {
            () = stopped(&mut stop) => return,
            () = tokio::time::sleep_until(wakes.map_or(next, |wakes| wakes.min(next))) => {}
            new = news.recv() => match new {
                Err(RecvError::Closed) => return,
                Ok(_) | Err(RecvError::Lagged(_)) => {
                    // The same scan sees everything else that is new by now.
                    while news.try_recv().is_ok() {}
                }
            },
        }
    }
}

async fn look(service: &Arc<Service>, held: &mut HashMap<RunId, BlockedRun>) {
    let mut broken = match service.call(ListInterrupted {}).await {
        Ok(list) => list.runs,
        Err(error) => return tracing::error!("the runs cannot be read: {error:#}"),
    };
    broken.sort_by_key(turn);
    let broken: Vec<RunId> = broken.into_iter().map(|summary| summary.run).collect();
    held.retain(|run, _| broken.contains(run));
    for run in broken {
        if held.get(&run).is_some_and(|held| held.again > Instant::now()) {
            continue;
        }
        let request = ResumeRun { run: RunRef::Named(run.to_string()), retry_failing: false, sessions: None };
        match service.call(request).await {
            Ok(_) => {
                held.remove(&run);
                tracing::info!(%run, "an interrupted run goes on");
            }
            // It waits for a server, which may join at any moment.
            Err(error) if error.is::<NoServer>() => {
                let blocked = BlockedRun { wait: SERVER_WAIT, again: Instant::now() + SERVER_WAIT };
                if held.insert(run, blocked).is_none() {
                    tracing::warn!("{error:#}");
                }
            }
            // It waits for a machine, or for a person, and not for another attempt.
            Err(error) if error.is::<TreesElsewhere>() => {
                if held
                    .insert(run, BlockedRun { wait: RETRY_WAIT_MAX, again: Instant::now() + RETRY_WAIT_MAX })
                    .is_none()
                {
                    tracing::warn!("{error:#}");
                }
            }
            Err(error) => {
                let wait = held.get(&run).map_or(RETRY_WAIT, |held| (held.wait * 2).min(RETRY_WAIT_MAX));
                tracing::warn!(%run, "an interrupted run cannot go on; the next attempt is in {wait:?}: {error:#}");
                held.insert(run, BlockedRun { wait, again: Instant::now() + wait });
            }
        }
    }
}

/// The order in which interrupted runs go on, as the queue has it.
fn turn(summary: &RunSummary) -> (u64, u64) {
    (summary.queued_ms.unwrap_or(0), summary.created_ms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_core::project::ProjectStatus;
    use longhaul_core::supervisor::InvocationUsage;
    use longhaul_harness::RunStatus;

    fn interrupted(name: &str, created_ms: u64, queued_ms: Option<u64>) -> RunSummary {
        RunSummary {
            run: RunId::from_text(name),
            project: "p".into(),
            directory: "/p".into(),
            status: RunStatus::Working,
            project_status: ProjectStatus::Active,
            passing: (0, 1),
            created_ms,
            last_ms: created_ms,
            is_ask: false,
            active: false,
            wakes_at_ms: None,
            queue_place: None,
            queued_ms,
            archived_ms: None,
            title: "a goal".into(),
            agents: Vec::new(),
            spent: InvocationUsage::default(),
            wall_ms: 0,
            budget_microdollars: None,
            forked_from: None,
        }
    }

    #[test]
    fn runs_that_were_at_work_go_on_before_those_that_waited_for_their_turn() {
        let mut runs = [
            interrupted("r-late", 10, Some(90)),
            interrupted("r-early", 30, Some(40)),
            interrupted("r-second", 20, None),
            interrupted("r-first", 5, None),
        ];
        runs.sort_by_key(turn);
        assert_eq!(runs.map(|run| run.run.to_string()), ["r-first", "r-second", "r-early", "r-late"]);
    }
}
