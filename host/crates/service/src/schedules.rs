//! Schedules and tasks: requests go to the crate that keeps them.

use super::ServiceOperations;
use longhaul_api::agents::{
    EnableSchedule, FireSchedule, ListSchedules, ListSkipped, ListTasks, PutSchedule, RemoveSchedule, RetryTask,
    ScheduleList, ScheduleView, SchedulerStatus, SetConcurrentMax, ShowSchedule, ShowScheduler, ShowTask, SkippedList,
    TaskList, TaskView,
};
use longhaul_api::operations::ScheduleOperations;
use longhaul_core::fault;

#[async_trait::async_trait]
impl ScheduleOperations for ServiceOperations<'_> {
    async fn put_schedule(&self, request: PutSchedule) -> fault::Result<ScheduleView> {
        self.0.agents.put_schedule(request).await
    }

    async fn schedules(&self, request: ListSchedules) -> fault::Result<ScheduleList> {
        self.0.agents.list_schedules(request).await
    }

    async fn schedule(&self, request: ShowSchedule) -> fault::Result<ScheduleView> {
        self.0.agents.show_schedule(request).await
    }

    async fn remove_schedule(&self, RemoveSchedule { name }: RemoveSchedule) -> fault::Result<ScheduleView> {
        self.0.agents.remove_schedule(name).await
    }

    async fn enable_schedule(&self, request: EnableSchedule) -> fault::Result<ScheduleView> {
        self.0.agents.enable_schedule(request).await
    }

    async fn fire_schedule(&self, FireSchedule { name }: FireSchedule) -> fault::Result<TaskView> {
        self.0.agents.run_now(name).await
    }

    async fn tasks(&self, request: ListTasks) -> fault::Result<TaskList> {
        self.0.agents.tasks(request).await
    }

    async fn task(&self, ShowTask { id }: ShowTask) -> fault::Result<TaskView> {
        self.0.agents.task(&id).await
    }

    async fn retry_task(&self, RetryTask { id }: RetryTask) -> fault::Result<TaskView> {
        self.0.agents.retry(&id).await
    }

    async fn skipped_fires(&self, request: ListSkipped) -> fault::Result<SkippedList> {
        self.0.agents.skipped(request)
    }

    async fn set_concurrent_max(&self, SetConcurrentMax { max }: SetConcurrentMax) -> fault::Result<SchedulerStatus> {
        self.0.agents.set_concurrent_max(max).await
    }

    async fn scheduler_status(&self, ShowScheduler {}: ShowScheduler) -> fault::Result<SchedulerStatus> {
        self.0.agents.scheduler_status().await
    }
}
