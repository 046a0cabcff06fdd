//! The resource usage of the machine, as the monitor reports it, with the runs, which the monitor does not know.

use super::{Service, ServiceOperations};
use longhaul_api::agents::{ListTasks, StatusFilter};
use longhaul_api::operations::ResourceOperations;
use longhaul_api::resources::{
    ChildEnd, EndChild, ListSamples, MetricsText, ReadMetrics, ReadResources, ResourcesView, RunUse, TaskUse,
};
use longhaul_core::fault;
use longhaul_records::record;
use longhaul_resources::Sample;

/// Tasks that are shown of each kind.
const TASKS_MAX: usize = 50;

#[async_trait::async_trait]
impl ResourceOperations for ServiceOperations<'_> {
    async fn resources(&self, ReadResources {}: ReadResources) -> fault::Result<ResourcesView> {
        let service = self.0;
        let mut resources = service.resources.now().await?;
        resources.runs = service.uses(&resources)?;
        resources.tasks = service.tasks(StatusFilter::Running).await?;
        let pending = service.tasks(StatusFilter::Pending).await?;
        resources.tasks.extend(pending.into_iter().filter(|task| task.waiting_for.is_some()));
        Ok(resources)
    }

    async fn resource_history(&self, request: ListSamples) -> fault::Result<Vec<Sample>> {
        let ListSamples { after_ms, limit } = request;
        Ok(self.0.resources.history(after_ms, limit))
    }

    async fn end_child(&self, EndChild { pid }: EndChild) -> fault::Result<ChildEnd> {
        let ended = self.0.resources.end(pid).await?;
        Ok(ChildEnd { asked: ended.asked, killed: ended.killed })
    }

    async fn metrics(&self, ReadMetrics {}: ReadMetrics) -> fault::Result<MetricsText> {
        self.0.metrics().await
    }
}

impl Service {
    async fn tasks(&self, status: StatusFilter) -> fault::Result<Vec<TaskUse>> {
        let runs = matches!(status, StatusFilter::Running);
        let request = ListTasks { agent: None, status: Some(status), limit: TASKS_MAX, offset: 0 };
        let tasks = self.agents.tasks(request).await?.tasks;
        let uses = tasks.into_iter().map(|task| TaskUse {
            task: task.id.to_string(),
            agent: task.agent.to_string(),
            runs,
            waiting_for: task.waits_for,
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
