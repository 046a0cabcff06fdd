//! What is used of the machine: asked of who watches it, with the runs that it knows nothing of.

use super::Service;
use longhaul_api::agents::{ScheduleRequest, ScheduleResponse, StatusFilter};
use longhaul_api::answer::Answer;
use longhaul_api::resources::{ResourceRequest, ResourcesView, RunUse, TaskUse};
use longhaul_core::fault::{self, Fault, bail};
use longhaul_records::record;

/// Tasks that are shown of each kind.
const TASKS_MAX: usize = 50;

impl Service {
    pub(super) async fn resources(&self, wanted: ResourceRequest) -> fault::Result<Answer> {
        let monitor = &self.resources;
        Ok(match wanted {
            ResourceRequest::Now => {
                let mut resources = monitor.now().await?;
                resources.runs = self.uses(&resources)?;
                resources.tasks = self.tasks(StatusFilter::Running).await?;
                let pending = self.tasks(StatusFilter::Pending).await?;
                resources.tasks.extend(pending.into_iter().filter(|task| task.waits.is_some()));
                Answer::Resources { resources: Box::new(resources) }
            }
            ResourceRequest::History { after_ms, limit } => {
                Answer::ResourceHistory { samples: monitor.history(after_ms, limit) }
            }
            ResourceRequest::End { pid } => {
                let ended = monitor.end(pid).await?;
                Answer::ChildEnded { asked: ended.asked, killed: ended.killed }
            }
        })
    }

    async fn tasks(&self, status: StatusFilter) -> fault::Result<Vec<TaskUse>> {
        let runs = matches!(status, StatusFilter::Running);
        let wanted = ScheduleRequest::Tasks { agent: None, status: Some(status), limit: TASKS_MAX, offset: 0 };
        let ScheduleResponse::Tasks { tasks, .. } = self.agents.schedules(wanted).await? else {
            bail!(Fault::internal("the desk of agents answered something else"));
        };
        let uses = tasks.into_iter().map(|task| TaskUse {
            task: task.id.to_string(),
            agent: task.agent.to_string(),
            runs,
            waits: task.waits_for,
        });
        Ok(uses.collect())
    }

    /// Runs that are worked on here, in the order of their names.
    fn uses(&self, all: &ResourcesView) -> fault::Result<Vec<RunUse>> {
        let active: Vec<_> = self.lock().iter().map(|(run, active)| (run.clone(), active.handle.waits())).collect();
        let mut uses = Vec::with_capacity(active.len());
        for (run, waits) in active {
            let project = record::record(&*self.host.store, &run)?.map(|record| record.project).unwrap_or_default();
            uses.push(RunUse::of(run, project, waits, all));
        }
        uses.sort_by(|one, two| one.run.as_str().cmp(two.run.as_str()));
        Ok(uses)
    }
}
