//! The operations of the service, each declared once.
//!
//! A declaration by `operations!` names the method, its request, its response, its [`Handling`], and the run that it
//! has to be carried out beside, if there is one. From it follow:
//!
//! | what | for whom |
//! |---|---|
//! | the trait of the resource, with one typed method an operation | the service, which implements it |
//! | the same trait for every [`Transport`] | callers: this is the client |
//! | [`Operation`] for each request | transports: the name on the wire, and the type of the response |
//! | [`handler`], [`names`] | the owner of a data directory: the operation of a name on the wire |
//!
//! Requests and responses are types of the modules of their resource. This file opens no connection and answers
//! nothing.

use crate::agents::{
    ActivateAgent, AgentExecution, AgentList, AgentView, ArtifactList, ClearArtifact, EnableSchedule, ExecuteAgent,
    FireSchedule, HandedArtifact, ListAgents, ListArtifacts, ListSchedules, ListSkipped, ListTasks, PutSchedule,
    RegisterAgent, RemoveAgent, RemoveSchedule, RetryTask, ScheduleList, ScheduleView, SchedulerStatus, SetArtifact,
    SetConcurrentMax, ShowAgent, ShowArtifact, ShowSchedule, ShowScheduler, ShowTask, SkippedList, TaskList, TaskView,
    UpdateAgent,
};
use crate::approvals::{AnswerApproval, ApprovalList, ApprovalOutcome, ListApprovals, RevokeRule, ShowApproval};
use crate::checkpoints::{
    CheckpointDocument, CheckpointList, ExportCheckpoint, ImportCheckpoint, ImportedRun, ListCheckpoints, ListShared,
    SaveCheckpoint, ShowCheckpoint, ShowSaved, TakeOverRun,
};
use crate::commits::ShowCommit;
use crate::comparison::{CompareRuns, RunComparison};
use crate::decisions::{JudgeDecision, ListDecisions, ShowDecision};
use crate::features::{
    AcceptProposal, AddFeature, DropFeature, EditFeature, KeptWork, ListProposals, RecheckFeatures, RecheckOutcome,
    RejectProposal, ShowKept,
};
use crate::forks::{ForkOutcome, ForkRun};
use crate::graph_output::{GraphOutputPage, ReadGraphOutput};
use crate::graphs::{
    AddSteps, CreateGraph, DiagnoseStep, DrawGraph, ExportGraph, GraphPage, ListGraphs, ListSteps, OperateGraph,
    PatchStep, RemoveGraph, RunGraph, ShowGraph, ShowHistory,
};
use crate::journal::{
    InvocationEntries, InvocationList, ListCarried, ListEntries, ListEvents, ListInvocations, RecordInvocation,
    RecordedInvocation, ReplayInvocations, ReplayOutcome,
};
use crate::memory::{ForgetMemory, ListMemory, MemoryItem, PromoteMemory, SearchMemory, ShowMemory};
use crate::points::{RunAtPoint, ShowPoint};
use crate::projects::{
    AcceptMcp, AcceptedMcp, CheckProject, CreateProject, CreatedProject, DescribeMcp, ListProjects, McpTools,
    ProjectCheck, ProjectList,
};
use crate::rehearsals::{MoveRun, MovedRun, RehearsalReport, RehearseRuns};
use crate::resources::{ChildEnd, EndChild, ListSamples, MetricsText, ReadMetrics, ReadResources, ResourcesView};
use crate::run_lists::{CountRuns, ListInterrupted, ListRunPage, RunCounts, RunPage};
use crate::runs::{
    AbandonRun, AffectedRun, AnswerRun, ArchiveRun, AskRequest, BeginRun, CancelTask, CarriedInvocation, CommitLog,
    CostList, ListCommits, ListCosts, ListRuns, PauseRun, RereadGoal, RereadOutcome, ResumeRun, RevertOutcome,
    RevertRun, RunList, RunSubject, ShowRun, Status, SteerRun, TakeBackAnswer,
};
use crate::security::{
    DistrustProject, ExpectTrust, GrantUsage, IdentifyProject, JoinProject, ListAudit, ListCheckouts, ListTrusted,
    NoteSecret, ProjectIdentity, SetSigner, ShowGrants, ShowTrust, TrustProject, TrustedList, VerifyAudit,
};
use crate::tokens::{AddToken, ListTokens, NewToken, RemoveToken, TokenList};
use crate::trajectories::{AnnotateTrajectory, ListTrajectories, ShowTrajectory, Trajectory};
use crate::upkeep::{CheckStore, GcOptions, GcReport, WriteBackup, WrittenArchive};
use crate::workers::{ListWorkers, WorkerList};
use longhaul_approval::Approval;
use longhaul_core::decision::DecisionHit;
use longhaul_core::event::RunEvent;
use longhaul_core::fault::{self, Fault};
use longhaul_core::graph::{GraphAnswer, GraphSummary, GraphVersion, StepView};
use longhaul_core::store::ReadTotals;
use longhaul_records::proposals::Proposal;
use longhaul_resources::Sample;
use longhaul_security::audit::{AuditRecord, AuditVerification};
use longhaul_security::identity::Checkout;
use longhaul_security::trust::TrustStatus;
use longhaul_worktree::CommitDiff;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;
use std::pin::Pin;

/// The request of one operation.
pub trait Operation: Clone + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The answer to it.
    type Response: Serialize + DeserializeOwned + Send + 'static;

    /// Name on the wire.
    const NAME: &'static str;

    /// The rule for the end of the owner, and for repetition by a transport.
    const HANDLING: Handling;

    /// The paths of the request that must be absolute, and that no later code checks.
    fn paths(&self) -> Vec<&Path> {
        Vec::new()
    }

    /// The run beside which the operation is carried out: where it is at work, since its rows are written there alone,
    /// and its tree and its branch are there. None: any service on the same store carries it out.
    fn run(&self) -> Option<RunSubject> {
        None
    }

    /// Has a service carry it out.
    fn carry_out<S: Api + ?Sized>(self, service: &S) -> impl Future<Output = fault::Result<Self::Response>> + Send;
}

/// The treatment of an operation while the owner of the data directory ends, and its repetition by transports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handling {
    /// Carried out even while the owner hands over, so that a watcher of a run can read the outcome.
    Look,
    /// Not begun while the owner hands over. The same request may go to the next owner.
    Repeat,
    /// As [`Handling::Repeat`], but a second request would be carried out twice.
    Once,
    /// As [`Handling::Once`]. It may delete unreferenced content, so no operation that adds references runs meanwhile.
    Maintain,
}

/// Carries requests to a service, and its responses back. Every transport has all operations as methods.
pub trait Transport: Send + Sync {
    /// Sends a request, and waits for the response.
    fn call<O: Operation>(&self, request: O) -> impl Future<Output = fault::Result<O::Response>> + Send;
}

/// A request as it crosses a socket.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OperationCall {
    /// The name of the operation.
    pub name: String,
    /// The request.
    pub request: Value,
}

impl OperationCall {
    /// The call of a request.
    ///
    /// # Errors
    /// When the request cannot be written as JSON.
    pub fn of<O: Operation>(request: &O) -> serde_json::Result<Self> {
        Ok(Self { name: O::NAME.to_owned(), request: serde_json::to_value(request)? })
    }
}

/// The operation of one name, with its request and its response as JSON.
pub struct Handler<T> {
    /// Reads a request and writes it as its type does. JSON has several forms of one request: a type is also read from
    /// the list of its fields, and knows no others than its own. Whoever looks at a request looks at this form.
    pub normal: fn(Value) -> fault::Result<Value>,
    /// Carries a request out.
    pub carry_out: for<'a> fn(&'a T, Value) -> PendingResponse<'a>,
}

/// The response of an operation that is being carried out.
pub type PendingResponse<'a> = Pin<Box<dyn Future<Output = fault::Result<Value>> + Send + 'a>>;

/// Carries out an operation whose request and response are JSON.
fn in_json<O: Operation, T: Transport>(transport: &T, request: Value) -> PendingResponse<'_> {
    Box::pin(async move {
        let request: O = serde_json::from_value(request).map_err(not_understood)?;
        Ok(serde_json::to_value(transport.call(request).await?)?)
    })
}

fn normal<O: Operation>(request: Value) -> fault::Result<Value> {
    let request: O = serde_json::from_value(request).map_err(not_understood)?;
    Ok(serde_json::to_value(request)?)
}

/// The error of a client or an owner that does not understand the other, as after an update.
pub const OTHER_VERSIONS: &str = "client and owner may be of different versions: end the owner, such as `longhaul serve` or a \
                                  run in another terminal, and start it again";

/// Without a code, so that callers of every version read it.
fn not_understood(error: serde_json::Error) -> Fault {
    Fault::msg(format!("the call is not understood ({error}); {OTHER_VERSIONS}"))
}

/// Declares the operations of one resource. After the response stands the [`Handling`]; then, for a request with paths,
/// the function that lists them; then, for an operation that is carried out beside a run, the case of [`RunSubject`]
/// and the field of the request that it is made of.
macro_rules! operations {
    (
        $(#[$trait_meta:meta])*
        pub trait $resource:ident {
            $(
                $(#[$meta:meta])*
                fn $method:ident($request:ty) -> $response:ty, $handling:ident
                    $(, paths $paths:path)? $(, run $subject:ident($field:ident))?;
            )+
        }
    ) => {
        $(#[$trait_meta])*
        #[async_trait::async_trait]
        pub trait $resource: Send + Sync {
            $(
                $(#[$meta])*
                async fn $method(&self, request: $request) -> fault::Result<$response>;
            )+
        }

        #[async_trait::async_trait]
        impl<T: Transport> $resource for T {
            $(
                async fn $method(&self, request: $request) -> fault::Result<$response> {
                    self.call(request).await
                }
            )+
        }

        impl dyn $resource {
            /// The names of these operations.
            const NAMES: &'static [&'static str] = &[$(stringify!($method)),+];

            /// The operations of these that are carried out beside a run, each with the case of its [`RunSubject`].
            #[cfg(test)]
            const BESIDE_A_RUN: &'static [(&'static str, &'static str)] =
                &[$($((stringify!($method), stringify!($subject)),)?)+];

            /// The handler of the operation of a name, if it is one of these.
            fn handler<T: Transport>(name: &str) -> Option<Handler<T>> {
                match name {
                    $(stringify!($method) => {
                        Some(Handler { normal: normal::<$request>, carry_out: in_json::<$request, T> })
                    })+
                    _ => None,
                }
            }
        }

        $(
            impl Operation for $request {
                type Response = $response;

                const NAME: &'static str = stringify!($method);

                const HANDLING: Handling = Handling::$handling;

                $(
                    fn paths(&self) -> Vec<&Path> {
                        $paths(self)
                    }
                )?

                $(
                    fn run(&self) -> Option<RunSubject> {
                        Some(RunSubject::$subject(self.$field.clone()))
                    }
                )?

                async fn carry_out<S: Api + ?Sized>(self, service: &S) -> fault::Result<$response> {
                    $resource::$method(service, self).await
                }
            }
        )+
    };
}

operations! {
    /// The tokens of the HTTP API.
    pub trait TokenOperations {
        /// Make a token. Its value is shown by this response alone.
        fn add_token(AddToken) -> NewToken, Once;
        /// All tokens by name, expired ones included.
        fn tokens(ListTokens) -> TokenList, Once;
        /// Revoke a token at once. The response lists it.
        fn remove_token(RemoveToken) -> TokenList, Once;
    }
}

operations! {
    /// Maintenance of the data directory.
    pub trait MaintenanceOperations {
        /// Write the whole data directory into a new file.
        fn write_backup(WriteBackup) -> WrittenArchive, Maintain;
        /// Read the whole store.
        fn check_store(CheckStore) -> ReadTotals, Maintain;
        /// Delete expired data: saved checkpoints, old runs, orphaned worktrees, unreferenced content, compiled code.
        fn collect_garbage(GcOptions) -> GcReport, Maintain;
    }
}

operations! {
    /// The resources of the machine, and sums over all runs.
    pub trait ResourceOperations {
        /// The present use of resources by the machine, runs, child processes and instances.
        fn resources(ReadResources) -> ResourcesView, Repeat;
        /// Samples of the last two hours, one every five seconds, the oldest first.
        fn resource_history(ListSamples) -> Vec<Sample>, Repeat;
        /// End a child process of the owner with all that it started.
        fn end_child(EndChild) -> ChildEnd, Repeat;
        /// All runs summed up, in the text format of Prometheus.
        fn metrics(ReadMetrics) -> MetricsText, Repeat;
    }
}

operations! {
    /// The servers that work on runs of the same store.
    pub trait WorkerOperations {
        /// The servers by name with their runs, and the runs that wait for one of them.
        fn workers(ListWorkers) -> WorkerList, Look;
    }
}

operations! {
    /// The audit log, grants, trust in files and signers, and the identity of projects.
    pub trait SecurityOperations {
        /// The newest records of the audit log, the oldest of them first.
        fn audit_log(ListAudit) -> Vec<AuditRecord>, Repeat;
        /// Verify the chain of the audit log.
        fn verify_audit(VerifyAudit) -> AuditVerification, Repeat;
        /// The grants of a project, and their use by its runs.
        fn grant_usage(ShowGrants) -> GrantUsage, Repeat;
        /// The project that a checkout belongs to. The data directory records the checkout.
        fn identify_project(IdentifyProject) -> ProjectIdentity, Repeat;
        /// Every known checkout, by directory.
        fn checkouts(ListCheckouts) -> Vec<Checkout>, Repeat;
        /// Link a checkout to the project of another one.
        fn join_project(JoinProject) -> ProjectIdentity, Repeat;
        /// Record in the audit log that a secret was set, or removed.
        fn note_secret(NoteSecret) -> (), Repeat;
        /// The trust in the file of a project.
        fn trust_status(ShowTrust) -> TrustStatus, Repeat;
        /// Refuse a file whose powers no person agreed to.
        fn expect_trust(ExpectTrust) -> (), Repeat;
        /// Agree to the powers of a file.
        fn trust_project(TrustProject) -> TrustStatus, Repeat;
        /// Withdraw the agreement to the powers of a file.
        fn distrust_project(DistrustProject) -> (), Repeat;
        /// All trusted files and signers.
        fn trusted(ListTrusted) -> TrustedList, Repeat;
        /// Trust the key of a signer, or stop trusting it.
        fn set_signer(SetSigner) -> (), Repeat;
    }
}

operations! {
    /// The memory of a project.
    pub trait MemoryOperations {
        /// All items of memory, sorted by key.
        fn memories(ListMemory) -> Vec<MemoryItem>, Repeat;
        /// The items that fit a query, the best first.
        fn search_memory(SearchMemory) -> Vec<MemoryItem>, Repeat;
        /// The items of a key: at most one of each scope.
        fn memory(ShowMemory) -> Vec<MemoryItem>, Repeat;
        /// Mark the items of a key as a person's own words. The response has the changed items.
        fn promote_memory(PromoteMemory) -> Vec<MemoryItem>, Repeat;
        /// Delete the items of a key. The response has the deleted items.
        fn forget_memory(ForgetMemory) -> Vec<MemoryItem>, Repeat;
    }
}

operations! {
    /// Trajectories: the records of agents' work, and people's annotations of them.
    pub trait TrajectoryOperations {
        /// Trajectories of a run or of its project, without the messages, in the order of their start.
        fn trajectories(ListTrajectories) -> Vec<Trajectory>, Repeat;
        /// One trajectory with its messages.
        fn trajectory(ShowTrajectory) -> Trajectory, Repeat;
        /// Rate or correct a trajectory.
        fn annotate_trajectory(AnnotateTrajectory) -> Trajectory, Repeat, run Run(run);
    }
}

operations! {
    /// The decisions of a project.
    pub trait DecisionOperations {
        /// Decisions, each with the reason for which it is listed.
        fn decisions(ListDecisions) -> Vec<DecisionHit>, Repeat;
        /// One decision.
        fn decision(ShowDecision) -> DecisionHit, Repeat;
        /// Record the outcome of a decision.
        fn judge_decision(JudgeDecision) -> DecisionHit, Repeat;
    }
}

operations! {
    /// Approvals of tool calls, and the rules that answers made.
    pub trait ApprovalOperations {
        /// Approvals and rules, the oldest of each run first.
        fn approvals(ListApprovals) -> ApprovalList, Look;
        /// One approval.
        fn approval(ShowApproval) -> Approval, Look;
        /// Answer an approval.
        fn answer_approval(AnswerApproval) -> ApprovalOutcome, Repeat, run Approval(id);
        /// Revoke a rule of a run.
        fn revoke_rule(RevokeRule) -> AffectedRun, Repeat, run Run(run);
    }
}

operations! {
    /// Checkpoints: snapshots of runs, exported and imported.
    pub trait CheckpointOperations {
        /// The checkpoints of a run, and the snapshots in the data directory.
        fn checkpoints(ListCheckpoints) -> CheckpointList, Repeat;
        /// The runs on the shared server of a project.
        fn shared_checkpoints(ListShared) -> CheckpointList, Repeat, paths ListShared::paths;
        /// A snapshot of a run or a part of it, also while a process works on it.
        fn checkpoint(ShowCheckpoint) -> CheckpointDocument, Repeat, run Checkpoint(key);
        /// A signed snapshot of a run, or of the part of one agent.
        fn export_checkpoint(ExportCheckpoint) -> CheckpointDocument, Repeat, run Checkpoint(key);
        /// Save a snapshot in the data directory.
        fn save_checkpoint(SaveCheckpoint) -> CheckpointList, Repeat, run Checkpoint(key);
        /// A saved snapshot.
        fn saved_checkpoint(ShowSaved) -> CheckpointDocument, Repeat;
        /// Import a run from a snapshot.
        fn import_checkpoint(ImportCheckpoint) -> ImportedRun, Repeat, paths ImportCheckpoint::paths;
        /// Import a run from the shared server, and become its holder: other machines do not work on it from then on.
        fn take_over_run(TakeOverRun) -> ImportedRun, Repeat, paths TakeOverRun::paths;
    }
}

operations! {
    /// Graphs of steps of code.
    pub trait GraphOperations {
        /// Make a graph.
        fn create_graph(CreateGraph) -> GraphSummary, Repeat;
        /// All graphs by name.
        fn graphs(ListGraphs) -> Vec<GraphSummary>, Repeat;
        /// Remove a graph. The response has its last state.
        fn remove_graph(RemoveGraph) -> GraphSummary, Repeat;
        /// The changes of a graph, the newest first.
        fn graph_history(ShowHistory) -> Vec<GraphVersion>, Repeat;
        /// The steps in the order of the graph.
        fn graph_steps(ListSteps) -> Vec<StepView>, Repeat;
        /// A graph with a page of its steps.
        fn graph_page(ShowGraph) -> GraphPage, Repeat;
        /// The graph as text.
        fn export_graph(ExportGraph) -> String, Repeat;
        /// The steps as lines for a terminal.
        fn draw_graph(DrawGraph) -> String, Repeat;
        /// Carry out an operation that agents have, too.
        fn operate_graph(OperateGraph) -> GraphAnswer, Repeat;
        /// Add several steps: all of them, or none.
        fn add_steps(AddSteps) -> GraphAnswer, Repeat;
        /// Run the stale steps.
        fn run_graph(RunGraph) -> GraphAnswer, Repeat;
        /// The output of the steps while they run, after a number. It waits for new output a moment, and for no run.
        fn graph_output(ReadGraphOutput) -> GraphOutputPage, Look;
        /// Diagnose the failure of a step.
        fn diagnose_step(DiagnoseStep) -> GraphAnswer, Repeat, paths DiagnoseStep::paths;
        /// Repair the failure of a step by another source.
        fn patch_step(PatchStep) -> GraphAnswer, Repeat, paths PatchStep::paths;
    }
}

operations! {
    /// Agents, and the artifacts that they pass from run to run.
    pub trait AgentOperations {
        /// Register an agent.
        fn register_agent(RegisterAgent) -> AgentView, Once;
        /// Change an agent. Fields that are none stay as they are.
        fn update_agent(UpdateAgent) -> AgentView, Once;
        /// A page of agents by name.
        fn agents(ListAgents) -> AgentList, Once;
        /// One agent.
        fn agent(ShowAgent) -> AgentView, Once;
        /// Switch an agent on or off. Waiting tasks of its schedules are then noted as skipped.
        fn activate_agent(ActivateAgent) -> AgentView, Once;
        /// Remove an agent with its artifacts. Its tasks stay. The response has its last state.
        fn remove_agent(RemoveAgent) -> AgentView, Once;
        /// Run an agent now, and wait for the end. The response says so where there is nothing to run.
        fn execute_agent(ExecuteAgent) -> AgentExecution, Once;
        /// The artifact of an agent.
        fn artifact(ShowArtifact) -> HandedArtifact, Once;
        /// Replace the artifact of an agent.
        fn set_artifact(SetArtifact) -> HandedArtifact, Once;
        /// Clear the artifact of an agent, so that its next run starts without one.
        fn clear_artifact(ClearArtifact) -> HandedArtifact, Once;
        /// The kept versions of the artifact of an agent, the newest first.
        fn artifacts(ListArtifacts) -> ArtifactList, Once;
    }
}

operations! {
    /// Schedules of agents, and their tasks.
    pub trait ScheduleOperations {
        /// Make a schedule, or replace the one with the same name.
        fn put_schedule(PutSchedule) -> ScheduleView, Once;
        /// A page of schedules by name.
        fn schedules(ListSchedules) -> ScheduleList, Once;
        /// One schedule.
        fn schedule(ShowSchedule) -> ScheduleView, Once;
        /// Remove a schedule with its waiting tasks. The response has its last state.
        fn remove_schedule(RemoveSchedule) -> ScheduleView, Once;
        /// Switch a schedule on or off.
        fn enable_schedule(EnableSchedule) -> ScheduleView, Once;
        /// Fire a schedule now.
        fn fire_schedule(FireSchedule) -> TaskView, Once;
        /// A page of tasks: those that have not ended, then the ended ones, the newest first.
        fn tasks(ListTasks) -> TaskList, Once;
        /// One task with the results of its attempts.
        fn task(ShowTask) -> TaskView, Once;
        /// Retry a failed task under its own id.
        fn retry_task(RetryTask) -> TaskView, Once;
        /// The fires of a schedule that became no task, the newest first.
        fn skipped_fires(ListSkipped) -> SkippedList, Once;
        /// Set the number of tasks that may run at once.
        fn set_concurrent_max(SetConcurrentMax) -> SchedulerStatus, Once;
        /// The status of the scheduler.
        fn scheduler_status(ShowScheduler) -> SchedulerStatus, Once;
    }
}

operations! {
    /// Projects and their MCP servers.
    pub trait ProjectOperations {
        /// Create a project.
        fn create_project(CreateProject) -> CreatedProject, Repeat, paths CreateProject::paths;
        /// All projects, the most recent first.
        fn projects(ListProjects) -> ProjectList, Look;
        /// Check a project without asking a model.
        fn check_project(CheckProject) -> ProjectCheck, Repeat;
        /// Start an MCP server and read the descriptions of its tools.
        fn describe_mcp(DescribeMcp) -> McpTools, Repeat, paths DescribeMcp::paths;
        /// Accept the tools of an MCP server as it describes them now.
        fn accept_mcp(AcceptMcp) -> AcceptedMcp, Repeat, paths AcceptMcp::paths;
    }
}

operations! {
    /// Runs and asks.
    pub trait RunOperations {
        /// Start a run of a project.
        fn begin_run(BeginRun) -> AffectedRun, Repeat, paths BeginRun::paths;
        /// Start an ask: a run without a repository.
        fn begin_ask(AskRequest) -> AffectedRun, Repeat, paths AskRequest::paths;
        /// Summaries of all runs, the oldest first.
        fn runs(ListRuns) -> RunList, Look;
        /// A page of the runs that match, the newest first.
        fn run_page(ListRunPage) -> RunPage, Look;
        /// The numbers of runs, and of approvals that they wait for.
        fn run_counts(CountRuns) -> RunCounts, Look;
        /// The runs that should go on and that no process works on, the oldest first.
        fn interrupted_runs(ListInterrupted) -> RunList, Look;
        /// The costs of runs, the newest first, with sums over all of them.
        fn costs(ListCosts) -> CostList, Look;
        /// One run with its details.
        fn run_status(ShowRun) -> Status, Look;
        /// Give guidance to the agents at work, which read it at their next step.
        fn steer_run(SteerRun) -> AffectedRun, Repeat, run Run(run);
        /// Stop the work on one task or feature. A resume continues it.
        fn cancel_task(CancelTask) -> AffectedRun, Repeat, run Run(run);
        /// Resume a run.
        fn resume_run(ResumeRun) -> AffectedRun, Repeat, run Run(run);
        /// Read the goal's file of a run again: features are added, changed and dropped; unchanged passing ones stay.
        fn reread_goal(RereadGoal) -> RereadOutcome, Repeat, run Run(run);
        /// Pause a run: start no new work, and stop the work in progress, which continues from its journal later.
        fn pause_run(PauseRun) -> AffectedRun, Repeat, run Run(run);
        /// Abandon a run.
        fn abandon_run(AbandonRun) -> AffectedRun, Repeat, run Run(run);
        /// Archive a run that does not work or wait, or take it back. An archived run keeps all that it has.
        fn archive_run(ArchiveRun) -> AffectedRun, Repeat, run Run(run);
        /// Answer a question of a run.
        fn answer_run(AnswerRun) -> AffectedRun, Repeat, run Run(run);
        /// Withdraw the answer to a question about an effect, as long as no work used it.
        fn take_back_answer(TakeBackAnswer) -> AffectedRun, Repeat, run Run(run);
        /// Make a run that goes on from a point of another one, or tell what it would share and repeat.
        fn fork_run(ForkRun) -> ForkOutcome, Once, paths ForkRun::paths;
        /// Go back to an earlier commit of a run that no process works on.
        fn revert_run(RevertRun) -> RevertOutcome, Repeat, run Run(run);
        /// Move a run that no process works on to other bytes of a plugin.
        fn move_run(MoveRun) -> MovedRun, Repeat, run Run(run);
        /// The commits of a run, the newest first.
        fn commit_log(ListCommits) -> CommitLog, Repeat, run Run(run);
        /// The files that a commit of a run changed, with their changed lines.
        fn commit_diff(ShowCommit) -> CommitDiff, Repeat, run Run(run);
        /// Compare runs step by step, with their features, verdicts, files, costs and times.
        fn compare_runs(CompareRuns) -> RunComparison, Repeat, run Run(run);
    }
}

operations! {
    /// The features of a run, and the proposals of its agents.
    pub trait FeatureOperations {
        /// Add a feature.
        fn add_feature(AddFeature) -> AffectedRun, Repeat, run Run(run);
        /// Replace the definition of a feature.
        fn edit_feature(EditFeature) -> AffectedRun, Repeat, run Run(run);
        /// Drop a feature from the run.
        fn drop_feature(DropFeature) -> AffectedRun, Repeat, run Run(run);
        /// Run the checks of passing features again.
        fn recheck_features(RecheckFeatures) -> RecheckOutcome, Repeat, run Run(run);
        /// The kept work of a failing feature, or of a revert.
        fn kept_work(ShowKept) -> KeptWork, Repeat;
        /// The proposals of the agents of a run, the oldest first.
        fn proposals(ListProposals) -> Vec<Proposal>, Repeat;
        /// Accept a proposal and carry it out.
        fn accept_proposal(AcceptProposal) -> AffectedRun, Repeat, run Run(run);
        /// Reject a proposal.
        fn reject_proposal(RejectProposal) -> AffectedRun, Repeat, run Run(run);
    }
}

operations! {
    /// The journal and the events of a run.
    pub trait JournalOperations {
        /// The invocations of a run, in the order of their start.
        fn invocations(ListInvocations) -> InvocationList, Look;
        /// The entries of one invocation.
        fn journal_entries(ListEntries) -> InvocationEntries, Look;
        /// The calls of an invocation with their arguments and answers, for a test. It is replayed to learn them.
        fn record_invocation(RecordInvocation) -> RecordedInvocation, Repeat;
        /// Run finished invocations again from their journals, and compare the results.
        fn replay(ReplayInvocations) -> ReplayOutcome, Repeat, paths ReplayInvocations::paths;
        /// Replay runs, also those that have not ended, on other bytes, settings or this version, and compare.
        fn rehearse_runs(RehearseRuns) -> RehearsalReport, Repeat, paths RehearseRuns::paths;
        /// A page of the events of a run.
        fn events(ListEvents) -> Vec<RunEvent>, Look;
        /// A run as it was at a point of its past.
        fn run_at_point(ShowPoint) -> RunAtPoint, Look;
        /// The plugin and the table of `longhaul.toml` that carried out each invocation of a run.
        fn carried_invocations(ListCarried) -> Vec<CarriedInvocation>, Repeat;
    }
}

/// All operations of the service.
pub trait Api:
    AgentOperations
    + ApprovalOperations
    + CheckpointOperations
    + DecisionOperations
    + FeatureOperations
    + GraphOperations
    + JournalOperations
    + MaintenanceOperations
    + MemoryOperations
    + ProjectOperations
    + ResourceOperations
    + RunOperations
    + ScheduleOperations
    + SecurityOperations
    + TokenOperations
    + TrajectoryOperations
    + WorkerOperations
{
}

impl<
    S: AgentOperations
        + ApprovalOperations
        + CheckpointOperations
        + DecisionOperations
        + FeatureOperations
        + GraphOperations
        + JournalOperations
        + MaintenanceOperations
        + MemoryOperations
        + ProjectOperations
        + ResourceOperations
        + RunOperations
        + ScheduleOperations
        + SecurityOperations
        + TokenOperations
        + TrajectoryOperations
        + WorkerOperations,
> Api for S
{
}

/// The names of all operations.
pub fn names() -> impl Iterator<Item = &'static str> {
    let resources = [
        <dyn AgentOperations>::NAMES,
        <dyn ApprovalOperations>::NAMES,
        <dyn CheckpointOperations>::NAMES,
        <dyn DecisionOperations>::NAMES,
        <dyn FeatureOperations>::NAMES,
        <dyn GraphOperations>::NAMES,
        <dyn JournalOperations>::NAMES,
        <dyn MaintenanceOperations>::NAMES,
        <dyn MemoryOperations>::NAMES,
        <dyn ProjectOperations>::NAMES,
        <dyn ResourceOperations>::NAMES,
        <dyn RunOperations>::NAMES,
        <dyn ScheduleOperations>::NAMES,
        <dyn SecurityOperations>::NAMES,
        <dyn TokenOperations>::NAMES,
        <dyn TrajectoryOperations>::NAMES,
        <dyn WorkerOperations>::NAMES,
    ];
    resources.into_iter().flatten().copied()
}

/// The handler of the operation of a name; none if there is no such operation.
pub fn handler<T: Transport>(name: &str) -> Option<Handler<T>> {
    <dyn AgentOperations>::handler(name)
        .or_else(|| <dyn ApprovalOperations>::handler(name))
        .or_else(|| <dyn CheckpointOperations>::handler(name))
        .or_else(|| <dyn DecisionOperations>::handler(name))
        .or_else(|| <dyn FeatureOperations>::handler(name))
        .or_else(|| <dyn GraphOperations>::handler(name))
        .or_else(|| <dyn JournalOperations>::handler(name))
        .or_else(|| <dyn MaintenanceOperations>::handler(name))
        .or_else(|| <dyn MemoryOperations>::handler(name))
        .or_else(|| <dyn ProjectOperations>::handler(name))
        .or_else(|| <dyn ResourceOperations>::handler(name))
        .or_else(|| <dyn RunOperations>::handler(name))
        .or_else(|| <dyn ScheduleOperations>::handler(name))
        .or_else(|| <dyn SecurityOperations>::handler(name))
        .or_else(|| <dyn TokenOperations>::handler(name))
        .or_else(|| <dyn TrajectoryOperations>::handler(name))
        .or_else(|| <dyn WorkerOperations>::handler(name))
}

#[cfg(test)]
mod tests;
