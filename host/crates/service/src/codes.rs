//! The code of whatever leaves the service. An error of a library has none of its own: it gets the one of its type
//! here, and in no other place, so that every surface tells the same of it.
//!
//! An error whose type is not listed, and a case that is not, has no code and is a defect of ours:
//! [`FaultCode::Internal`]. It refuses to look at a text.

use longhaul_agents::AgentError;
use longhaul_approval::ApprovalError;
use longhaul_build::BuildError;
use longhaul_config::Diagnostic;
use longhaul_core::Outage;
use longhaul_core::decision::LogError;
use longhaul_core::fault::{Fault, FaultCode};
use longhaul_core::graph::GraphError;
use longhaul_core::journal::JournalError;
use longhaul_core::memory::MemoryError;
use longhaul_core::shared::SharedError;
use longhaul_core::store::StoreError;
use longhaul_engine::LoadError;
use longhaul_exec::{ExecError, SandboxError};
use longhaul_harness::{OrderRefusal, StateError};
use longhaul_journal::ResolveError;
use longhaul_mcp::McpError;
use longhaul_models::ModelsError;
use longhaul_redis::RedisError;
use longhaul_resources::ResourceError;
use longhaul_schedule::ScheduleError;
use longhaul_worktree::TreeError;
use std::io;

/// The fault with its code, and with what else its cause knows: the field at fault, and the time to wait.
pub fn classified(fault: Fault) -> Fault {
    let code = code_of(&fault);
    let field = fault.field().or_else(|| field_of(&fault)).map(str::to_owned);
    let retry_after_ms = fault.retry_after_ms().or_else(|| retry_after_ms_of(&fault));
    let mut fault = fault.or_code(code);
    if let Some(field) = field {
        fault = fault.at(field);
    }
    match retry_after_ms {
        Some(ms) => fault.after(ms),
        None => fault,
    }
}

/// The code that somebody gave, else the one of the type of its cause.
pub fn code_of(fault: &Fault) -> FaultCode {
    let by_type = || TYPES.iter().find_map(|code_of| code_of(fault));
    fault.code().or_else(by_type).unwrap_or(FaultCode::Internal)
}

/// One for each type. What others wrap comes last.
const TYPES: &[fn(&Fault) -> Option<FaultCode>] = &[
    |fault| fault.downcast_ref().map(of_refusal),
    |fault| fault.downcast_ref().map(of_approval),
    |fault| fault.downcast_ref().map(of_agent),
    |fault| fault.downcast_ref().map(of_schedule),
    |fault| fault.downcast_ref::<Diagnostic>().map(|_| FaultCode::Invalid),
    |fault| fault.downcast_ref().map(of_tree),
    |fault| fault.downcast_ref().map(of_models),
    |fault| fault.downcast_ref().map(of_plugin),
    |fault| fault.downcast_ref().map(of_build),
    |fault| fault.downcast_ref().map(of_mcp),
    |fault| fault.downcast_ref().map(of_memory),
    |fault| fault.downcast_ref().map(of_shared),
    |fault| fault.downcast_ref().map(of_redis),
    |fault| fault.downcast_ref().map(of_graph),
    |fault| fault.downcast_ref().map(of_exec),
    |fault| fault.downcast_ref().map(of_processes),
    |fault| fault.downcast_ref().map(of_answer_to_effect),
    |fault| fault.downcast_ref().map(of_journal),
    |fault| fault.downcast_ref().map(of_decisions),
    |fault| fault.downcast_ref().map(of_state),
    |fault| fault.downcast_ref::<StoreError>().map(FaultCode::from),
    |fault| fault.downcast_ref().and_then(FaultCode::of_system),
];

/// The field or parameter that the cause names.
fn field_of(fault: &Fault) -> Option<&str> {
    let of_agent = |error: &AgentError| match error {
        AgentError::Limit { field, .. } | AgentError::TooLong { field, .. } => Some(*field),
        AgentError::Name(_) => Some("name"),
        AgentError::Code(_) => Some("code"),
        _ => None,
    };
    let of_schedule = |error: &ScheduleError| match error {
        ScheduleError::Limit { field, .. } | ScheduleError::Range { field, .. } => Some(*field),
        ScheduleError::Name(_) => Some("name"),
        _ => None,
    };
    fault.downcast_ref().and_then(of_agent).or_else(|| fault.downcast_ref().and_then(of_schedule))
}

/// The time that a service which is not there asked for.
fn retry_after_ms_of(fault: &Fault) -> Option<u64> {
    let of = |outage: &Outage| outage.retry_after_ms.map(u64::from);
    let of_memory = |error: &MemoryError| if let MemoryError::Unavailable(outage) = error { of(outage) } else { None };
    let of_shared = |error: &SharedError| if let SharedError::Unavailable(outage) = error { of(outage) } else { None };
    let of_redis = |error: &RedisError| if let RedisError::Unavailable(outage) = error { of(outage) } else { None };
    fault
        .downcast_ref()
        .and_then(of_memory)
        .or_else(|| fault.downcast_ref().and_then(of_shared))
        .or_else(|| fault.downcast_ref().and_then(of_redis))
}

fn of_refusal(error: &OrderRefusal) -> FaultCode {
    match error {
        OrderRefusal::UnknownFeature { .. } => FaultCode::Unknown,
        OrderRefusal::UnusableLimit { .. }
        | OrderRefusal::NoGoal
        | OrderRefusal::Plan(_)
        | OrderRefusal::UnknownAgent { .. } => FaultCode::Invalid,
        OrderRefusal::NotBegun
        | OrderRefusal::NoPlanYet
        | OrderRefusal::Ended { .. }
        | OrderRefusal::TooManyEdits { .. }
        | OrderRefusal::BeingCommitted { .. }
        | OrderRefusal::Working
        | OrderRefusal::AlreadyPasses { .. }
        | OrderRefusal::NoBranch
        | OrderRefusal::NothingToSteer
        | OrderRefusal::NoQuestion { .. }
        | OrderRefusal::AnswerUsed
        | OrderRefusal::WhichQuestion { .. } => FaultCode::Conflict,
        _ => FaultCode::Internal,
    }
}

fn of_approval(error: &ApprovalError) -> FaultCode {
    match error {
        ApprovalError::NoAnswer(_) | ApprovalError::NoRule(_) => FaultCode::Invalid,
        ApprovalError::NotOpen { .. } | ApprovalError::OtherSubject(_) => FaultCode::Conflict,
    }
}

/// Damaged data here is a conflict: the caller replaces it by the call that the text names.
fn of_agent(error: &AgentError) -> FaultCode {
    match error {
        AgentError::Unknown { .. } | AgentError::NoVersion { .. } => FaultCode::Unknown,
        AgentError::Exists { .. }
        | AgentError::TooMany { .. }
        | AgentError::Used { .. }
        | AgentError::Busy { .. }
        | AgentError::Damaged { .. }
        | AgentError::DamagedRecord { .. } => FaultCode::Conflict,
        AgentError::Changed { .. } => FaultCode::Changed,
        AgentError::Name(_) | AgentError::Limit { .. } | AgentError::TooLong { .. } | AgentError::Code(_) => {
            FaultCode::Invalid
        }
        _ => FaultCode::Internal,
    }
}

fn of_schedule(error: &ScheduleError) -> FaultCode {
    match error {
        ScheduleError::Unknown { .. } => FaultCode::Unknown,
        ScheduleError::TooMany { .. } | ScheduleError::Retries { .. } | ScheduleError::NotFailed { .. } => {
            FaultCode::Conflict
        }
        ScheduleError::Cron { .. }
        | ScheduleError::Zone { .. }
        | ScheduleError::Interval { .. }
        | ScheduleError::Name(_)
        | ScheduleError::Cycle { .. }
        | ScheduleError::Limit { .. }
        | ScheduleError::Range { .. } => FaultCode::Invalid,
        _ => FaultCode::Internal,
    }
}

/// The repository, its branches and its files are the caller's, and so is what git says of them.
fn of_tree(error: &TreeError) -> FaultCode {
    match error {
        TreeError::NotARepository { .. }
        | TreeError::Bare { .. }
        | TreeError::Owner { .. }
        | TreeError::Unborn { .. }
        | TreeError::Dirty { .. }
        | TreeError::CheckedOut { .. }
        | TreeError::BranchName { .. }
        | TreeError::NameTaken { .. }
        | TreeError::BranchExists { .. }
        | TreeError::Detached { .. }
        | TreeError::NoBranch { .. }
        | TreeError::Conflicts { .. }
        | TreeError::InTheWay { .. }
        | TreeError::NoIdentity { .. }
        | TreeError::BranchMoved { .. }
        | TreeError::Locked { .. }
        | TreeError::TreeChanged { .. }
        | TreeError::Raced { .. }
        | TreeError::LinkLeaves { .. }
        | TreeError::UnsafePath { .. }
        | TreeError::Limit { .. }
        | TreeError::NoCommit { .. }
        | TreeError::NotAHash { .. }
        | TreeError::Ambiguous { .. }
        | TreeError::NotOfBranch { .. }
        | TreeError::InProgress { .. }
        | TreeError::NotNew { .. }
        | TreeError::Git { .. } => FaultCode::Invalid,
        TreeError::Io { source, .. } => of_place(source),
        _ => FaultCode::Internal,
    }
}

/// The code of an error of a place that the caller named, who has to mend it where it is absent or not as it has to be.
fn of_place(error: &io::Error) -> FaultCode {
    use io::ErrorKind::{
        AlreadyExists, DirectoryNotEmpty, IsADirectory, NotADirectory, NotFound, PermissionDenied, ReadOnlyFilesystem,
    };
    FaultCode::of_system(error).unwrap_or_else(|| match error.kind() {
        AlreadyExists | DirectoryNotEmpty | IsADirectory | NotADirectory | NotFound | PermissionDenied
        | ReadOnlyFilesystem => FaultCode::Invalid,
        _ => FaultCode::Internal,
    })
}

fn of_models(error: &ModelsError) -> FaultCode {
    match error {
        ModelsError::KeyMissing { .. }
        | ModelsError::KeyFileMode { .. }
        | ModelsError::KeyFile { .. }
        | ModelsError::KeyUnusable { .. }
        | ModelsError::Setting { .. }
        | ModelsError::Unknown { .. }
        | ModelsError::LocalNotBuilt { .. }
        | ModelsError::ModelFileMissing { .. }
        | ModelsError::Recording { .. }
        | ModelsError::PullUnknown { .. }
        | ModelsError::PullDigest { .. }
        | ModelsError::PipMissing { .. } => FaultCode::Invalid,
        ModelsError::PullFailed { .. } => FaultCode::Unavailable,
        _ => FaultCode::Internal,
    }
}

fn of_plugin(error: &LoadError) -> FaultCode {
    match error {
        // The caller's file names it.
        LoadError::Unreadable { .. } => FaultCode::Invalid,
        error if error.is_of_the_host() => FaultCode::Internal,
        _ => FaultCode::Invalid,
    }
}

fn of_build(error: &BuildError) -> FaultCode {
    match error {
        BuildError::Project(_) => FaultCode::Invalid,
        BuildError::NotFetched { .. } => FaultCode::Unavailable,
        _ => FaultCode::Internal,
    }
}

fn of_mcp(error: &McpError) -> FaultCode {
    match error {
        McpError::Config { .. } | McpError::TooMany { .. } | McpError::Limit { .. } => FaultCode::Invalid,
        McpError::Changed { .. } | McpError::Unapproved { .. } => FaultCode::Forbidden,
        McpError::Down { .. } => FaultCode::Unavailable,
        _ => FaultCode::Internal,
    }
}

fn of_memory(error: &MemoryError) -> FaultCode {
    match error {
        MemoryError::Denied(_) => FaultCode::Forbidden,
        MemoryError::Limit(_) | MemoryError::Invalid(_) => FaultCode::Invalid,
        MemoryError::Unavailable(_) => FaultCode::Unavailable,
        MemoryError::Failed(_) => FaultCode::Internal,
    }
}

fn of_shared(error: &SharedError) -> FaultCode {
    match error {
        SharedError::Unavailable(_) => FaultCode::Unavailable,
        SharedError::Held { .. } | SharedError::Moved { .. } | SharedError::Fenced { .. } => FaultCode::Conflict,
        _ => FaultCode::Internal,
    }
}

fn of_redis(error: &RedisError) -> FaultCode {
    match error {
        RedisError::Config(_) => FaultCode::Invalid,
        RedisError::Unavailable(_) => FaultCode::Unavailable,
        _ => FaultCode::Internal,
    }
}

fn of_graph(error: &GraphError) -> FaultCode {
    match error {
        GraphError::UnknownStep(_) => FaultCode::Unknown,
        GraphError::Denied(_) => FaultCode::Forbidden,
        GraphError::Limit(_) | GraphError::Invalid(_) => FaultCode::Invalid,
        GraphError::Failed(_) => FaultCode::Internal,
    }
}

fn of_exec(error: &ExecError) -> FaultCode {
    match error {
        ExecError::SessionBusy { .. } | ExecError::SessionRuntime { .. } | ExecError::SessionShared { .. } => {
            FaultCode::Conflict
        }
        ExecError::SessionGranted { .. } => FaultCode::Forbidden,
        ExecError::SessionsFull { .. } => FaultCode::Unavailable,
        ExecError::NoRuntime { .. } | ExecError::NoPython | ExecError::Sandbox(SandboxError::Refused { .. }) => {
            FaultCode::Unavailable
        }
        ExecError::SourceTooLong { .. }
        | ExecError::ContextNotObject { .. }
        | ExecError::ContextTooDeep
        | ExecError::CompileLimit { .. }
        | ExecError::NotNative
        | ExecError::NoEnvironment { .. }
        | ExecError::DirectoryElsewhere { .. }
        | ExecError::BadFile { .. }
        | ExecError::RichProgram
        | ExecError::SessionOfPython
        | ExecError::SessionFiles
        | ExecError::SessionName { .. }
        | ExecError::SessionTooLarge { .. }
        | ExecError::SessionCrowded { .. }
        | ExecError::Sandbox(SandboxError::Absent { .. })
        | ExecError::Load(_) => FaultCode::Invalid,
        _ => FaultCode::Internal,
    }
}

fn of_processes(error: &ResourceError) -> FaultCode {
    match error {
        ResourceError::Absent { .. } => FaultCode::Unknown,
        ResourceError::NotOurs { .. } => FaultCode::Forbidden,
        ResourceError::StillThere { .. } => FaultCode::Unavailable,
        _ => FaultCode::Internal,
    }
}

fn of_answer_to_effect(error: &ResolveError) -> FaultCode {
    match error {
        ResolveError::Unknown { .. } => FaultCode::Unknown,
        ResolveError::NotOpen { .. } => FaultCode::Conflict,
        ResolveError::NotJson { .. } => FaultCode::Invalid,
        ResolveError::Journal(error) => of_journal(error),
        _ => FaultCode::Internal,
    }
}

fn of_journal(error: &JournalError) -> FaultCode {
    match error {
        JournalError::Diverged { .. }
        | JournalError::Parked(_)
        | JournalError::Unanswered { .. }
        | JournalError::NotAnswered { .. } => FaultCode::Conflict,
        JournalError::Limit(_) => FaultCode::Invalid,
        JournalError::Store(error) => error.into(),
        _ => FaultCode::Internal,
    }
}

fn of_decisions(error: &LogError) -> FaultCode {
    match error {
        LogError::Store(error) => error.into(),
        _ => FaultCode::Internal,
    }
}

fn of_state(error: &StateError) -> FaultCode {
    match error {
        StateError::Newer { .. } => FaultCode::Conflict,
        _ => FaultCode::Internal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use FaultCode::{Changed, Conflict, Forbidden, Internal, Invalid, Unavailable, Unknown};
    use longhaul_approval::NoAnswer;
    use longhaul_core::fault::Context as _;
    use longhaul_core::{Denial, LimitHit};
    use longhaul_harness::PlanError;

    fn io_error(kind: io::ErrorKind) -> TreeError {
        TreeError::Io { doing: "write", path: "x".into(), source: kind.into() }
    }

    fn full() -> StoreError {
        StoreError::Full { path: "d".into() }
    }

    fn not_json() -> serde_json::Error {
        serde_json::from_str::<u8>("x").expect_err("no number")
    }

    fn lock() -> StoreError {
        StoreError::Conflict { table: longhaul_core::store::Table::States, key: "k".into() }
    }

    #[test]
    fn an_error_has_the_code_of_its_type_wherever_it_comes_from() {
        let name = || "a".to_owned();
        let outage = Outage { reason: "gone".into(), retry_after_ms: Some(1_500) };
        let denial = Denial { reason: "no".into(), fix: "write a line".into() };
        let hit = LimitHit::new("bytes_max", 2, 1);
        let cases: Vec<(Fault, FaultCode)> = vec![
            (OrderRefusal::UnknownFeature { feature: name() }.into(), Unknown),
            (OrderRefusal::NoGoal.into(), Invalid),
            (OrderRefusal::Plan(PlanError::Empty).into(), Invalid),
            (OrderRefusal::Working.into(), Conflict),
            (ApprovalError::NoAnswer(NoAnswer::Empty).into(), Invalid),
            (ApprovalError::NotOpen { id: name(), was: name() }.into(), Conflict),
            (AgentError::Unknown { name: name() }.into(), Unknown),
            (AgentError::Exists { name: name() }.into(), Conflict),
            (AgentError::Damaged { name: name(), why: name() }.into(), Conflict),
            (AgentError::Changed { what: "the record", name: name(), found: 2, expected: 1 }.into(), Changed),
            (AgentError::Code(name()).into(), Invalid),
            (ScheduleError::Unknown { name: name() }.into(), Unknown),
            (ScheduleError::TooMany { count: 1 }.into(), Conflict),
            (ScheduleError::Zone { name: name() }.into(), Invalid),
            (Diagnostic { line: Some(1), text: name() }.into(), Invalid),
            (TreeError::NotARepository { dir: "d".into() }.into(), Invalid),
            (io_error(io::ErrorKind::PermissionDenied).into(), Invalid),
            (io_error(io::ErrorKind::StorageFull).into(), Unavailable),
            (io_error(io::ErrorKind::Other).into(), Internal),
            (TreeError::EffectId { id: name() }.into(), Internal),
            (ModelsError::Unknown { model: name() }.into(), Invalid),
            (ModelsError::Tls(name()).into(), Internal),
            (LoadError::NotAComponent { name: name(), reason: name() }.into(), Invalid),
            (LoadError::Host { name: name(), reason: name() }.into(), Internal),
            (BuildError::Project(name()).into(), Invalid),
            (McpError::Down { server: name(), reason: name() }.into(), Unavailable),
            (McpError::Unapproved { server: name(), found: name() }.into(), Forbidden),
            (McpError::Store(name()).into(), Internal),
            (MemoryError::Denied(denial.clone()).into(), Forbidden),
            (MemoryError::Limit(hit.clone()).into(), Invalid),
            (MemoryError::Unavailable(outage.clone()).into(), Unavailable),
            (MemoryError::Failed(name()).into(), Internal),
            (SharedError::Held { key: name(), holder: name(), left_ms: 1 }.into(), Conflict),
            (SharedError::Failed(name()).into(), Internal),
            (RedisError::Config(name()).into(), Invalid),
            (RedisError::Unavailable(outage).into(), Unavailable),
            (GraphError::UnknownStep(name()).into(), Unknown),
            (GraphError::Denied(denial).into(), Forbidden),
            (GraphError::Failed(name()).into(), Internal),
            (ExecError::NoRuntime { name: "python", searched: name() }.into(), Unavailable),
            (ExecError::ContextTooDeep.into(), Invalid),
            (ExecError::Host(name()).into(), Internal),
            (ResourceError::Absent { pid: 1 }.into(), Unknown),
            (ResourceError::NotOurs { pid: 1 }.into(), Forbidden),
            (ResourceError::Untold { why: name() }.into(), Internal),
            (ResolveError::NotJson { entry: 1, detail: name() }.into(), Invalid),
            (ResolveError::Journal(JournalError::Store(full())).into(), Unavailable),
            (JournalError::Unanswered { entry: 1, recorded: name() }.into(), Conflict),
            (JournalError::Limit(hit).into(), Invalid),
            (JournalError::Store(full()).into(), Unavailable),
            (LogError::Store(lock()).into(), Conflict),
            (LogError::Damaged { id: name(), detail: name() }.into(), Internal),
            (StateError::Newer { found: 99 }.into(), Conflict),
            (StateError::Damaged(not_json()).into(), Internal),
            (full().into(), Unavailable),
            (lock().into(), Conflict),
            (StoreError::Failed { path: name(), detail: name() }.into(), Internal),
            (StoreError::Fenced { path: name(), detail: name() }.into(), Unavailable),
            (StoreError::Unreachable { path: name(), detail: name() }.into(), Unavailable),
            (StoreError::LeaseEnds { left_ms: 1 }.into(), Unavailable),
            (StoreError::Refused { detail: name(), remedy: name() }.into(), Internal),
            (
                StoreError::KeyTooLong { table: longhaul_core::store::Table::Runs, bytes: 2, bytes_max: 1 }.into(),
                Invalid,
            ),
        ];
        for (fault, expected) in cases {
            let text = format!("{fault:#}");
            assert_eq!(code_of(&fault.context("while it was done")), expected, "{text}");
        }
    }

    #[test]
    fn what_nobody_classified_is_internal_and_a_code_that_somebody_gave_stays() {
        assert_eq!(code_of(&Fault::from(not_json())), Internal);
        assert_eq!(code_of(&Fault::from(io::Error::from(io::ErrorKind::NotFound))), Internal);
        assert_eq!(code_of(&Fault::msg("an error")), Internal);
        assert_eq!(code_of(&None::<u8>.context("it is missing").expect_err("nothing")), Internal);
        let fault = Fault::from(AgentError::Unknown { name: "a".into() }).or_code(Invalid);
        assert_eq!(classified(fault).code(), Some(Invalid));
    }

    #[test]
    fn a_fault_leaves_with_the_field_and_the_time_that_its_cause_knows() {
        let limit = AgentError::Limit { field: "timeout_ms", value: 0, min: 1, max: 2 };
        let fault = classified(Fault::from(limit).context("the agent"));
        assert_eq!((fault.code(), fault.field()), (Some(Invalid), Some("timeout_ms")));
        let fault = classified(Fault::from(AgentError::Code("no".into())).at("code.source"));
        assert_eq!(fault.field(), Some("code.source"));
        let outage = Outage { reason: "gone".into(), retry_after_ms: Some(1_500) };
        let fault = classified(MemoryError::Unavailable(outage).into());
        assert_eq!((fault.code(), fault.retry_after_ms()), (Some(Unavailable), Some(1_500)));
    }
}
