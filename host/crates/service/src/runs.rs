//! The operations on runs. Each is carried out by the file that its subject has; see `service.rs`.

use super::ServiceOperations;
use longhaul_api::commits::ShowCommit;
use longhaul_api::comparison::{CompareRuns, RunComparison};
use longhaul_api::forks::{ForkOutcome, ForkRun};
use longhaul_api::operations::RunOperations;
use longhaul_api::rehearsals::{MoveRun, MovedRun};
use longhaul_api::run_lists::{CountRuns, ListInterrupted, ListRunPage, RunCounts, RunPage};
use longhaul_api::runs::{
    AbandonRun, AffectedRun, AnswerRun, ArchiveRun, AskRequest, BeginRun, CancelTask, CommitLog, CostList, ListCommits,
    ListCosts, ListRuns, PauseRun, RereadGoal, RereadOutcome, ResumeRun, RevertOutcome, RevertRun, RunList, ShowRun,
    Status, SteerRun, TakeBackAnswer,
};
use longhaul_core::fault;
use longhaul_harness::Input;
use longhaul_records::stop_condition::StopCondition;
use longhaul_worktree::CommitDiff;
use std::sync::Arc;

#[async_trait::async_trait]
impl RunOperations for ServiceOperations<'_> {
    async fn begin_run(&self, request: BeginRun) -> fault::Result<AffectedRun> {
        let BeginRun { directory, models, plan, plan_only, sessions, again } = request;
        let until = if plan_only { StopCondition::Plan } else { StopCondition::sessions(sessions) };
        self.0.start(&directory, models, plan, until, again, None).await
    }

    async fn begin_ask(&self, request: AskRequest) -> fault::Result<AffectedRun> {
        self.0.start_ask(request, None).await
    }

    async fn runs(&self, ListRuns {}: ListRuns) -> fault::Result<RunList> {
        let runs = self.0.all_runs()?;
        self.0.keep_repaired_sums().await;
        Ok(RunList { runs })
    }

    async fn run_page(&self, request: ListRunPage) -> fault::Result<RunPage> {
        let page = self.0.run_page(&request)?;
        self.0.keep_repaired_sums().await;
        Ok(page)
    }

    async fn run_counts(&self, CountRuns {}: CountRuns) -> fault::Result<RunCounts> {
        let counts = self.0.run_counts()?;
        self.0.keep_repaired_sums().await;
        Ok(counts)
    }

    async fn interrupted_runs(&self, ListInterrupted {}: ListInterrupted) -> fault::Result<RunList> {
        let runs = self.0.interrupted()?;
        self.0.keep_repaired_sums().await;
        Ok(RunList { runs })
    }

    async fn costs(&self, request: ListCosts) -> fault::Result<CostList> {
        let list = self.0.costs(&request)?;
        self.0.keep_repaired_sums().await;
        Ok(list)
    }

    async fn run_status(&self, ShowRun { run }: ShowRun) -> fault::Result<Status> {
        self.0.status(&self.0.find(&run)?)
    }

    async fn steer_run(&self, SteerRun { run, task, text }: SteerRun) -> fault::Result<AffectedRun> {
        self.0.order(&run, Input::Steered { feature: task, text }).await
    }

    async fn cancel_task(&self, CancelTask { run, task }: CancelTask) -> fault::Result<AffectedRun> {
        self.0.order(&run, Input::TaskCancelled { feature: task }).await
    }

    async fn resume_run(&self, request: ResumeRun) -> fault::Result<AffectedRun> {
        self.0.resume(&request).await
    }

    async fn reread_goal(&self, RereadGoal { run }: RereadGoal) -> fault::Result<RereadOutcome> {
        self.0.reread_goal(&run).await
    }

    async fn pause_run(&self, PauseRun { run }: PauseRun) -> fault::Result<AffectedRun> {
        self.0.order(&run, Input::PauseRequested).await
    }

    async fn abandon_run(&self, AbandonRun { run, reason }: AbandonRun) -> fault::Result<AffectedRun> {
        self.0.order(&run, Input::Abandon { reason }).await
    }

    async fn archive_run(&self, ArchiveRun { run, archived }: ArchiveRun) -> fault::Result<AffectedRun> {
        self.0.archive(&run, archived).await
    }

    async fn answer_run(&self, request: AnswerRun) -> fault::Result<AffectedRun> {
        let AnswerRun { run, feature, question, resolution, text } = request;
        match resolution {
            Some(known) => self.0.resolved(&run, feature.as_deref(), question.as_deref(), &known).await,
            None => self.0.answered(&run, feature, question, text).await,
        }
    }

    async fn take_back_answer(&self, request: TakeBackAnswer) -> fault::Result<AffectedRun> {
        let TakeBackAnswer { run, feature, question } = request;
        self.0.take_back(&run, feature.as_deref(), question.as_deref()).await
    }

    async fn fork_run(&self, request: ForkRun) -> fault::Result<ForkOutcome> {
        self.0.fork(request).await
    }

    async fn revert_run(&self, RevertRun { run, to, stash }: RevertRun) -> fault::Result<RevertOutcome> {
        self.0.revert(&run, &to, stash).await
    }

    async fn move_run(&self, request: MoveRun) -> fault::Result<MovedRun> {
        self.0.move_run(&request).await
    }

    async fn commit_log(&self, ListCommits { run, limit, reverted }: ListCommits) -> fault::Result<CommitLog> {
        self.0.log(&self.0.find(&run)?, limit, reverted).await
    }

    async fn commit_diff(&self, ShowCommit { run, commit }: ShowCommit) -> fault::Result<CommitDiff> {
        self.0.commit_diff(&self.0.find(&run)?, commit).await
    }

    async fn compare_runs(&self, request: CompareRuns) -> fault::Result<RunComparison> {
        let service = Arc::clone(self.0);
        tokio::task::spawn_blocking(move || service.compare(&request)).await?
    }
}
