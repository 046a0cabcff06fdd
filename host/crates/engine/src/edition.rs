//! The versions of the contract that a host supports, and the trait of one version.
//!
//! An edition is one version: the interfaces that it links for a role, and the calls of the exports of a component that
//! was built for it, in the types of the host. A host that supports another version adds it to its [`Editions`], and
//! the components of the others run as before. Nothing here reads a component; `inspect` finds the version that a
//! component was built for. An edition grants nothing: it links the host's services behind the host's gates.

mod editions;
mod v0_1;

pub use editions::Editions;
pub use v0_1::V0_1;

use crate::role::Role;
use async_trait::async_trait;
use longhaul_capabilities::Ctx;
use longhaul_core::memory::{KeyPage, MemoryEntry, MemoryError, MemoryHit};
use longhaul_core::tool::{ToolCall, ToolError, ToolInfo, ToolOutput, Verification};
use longhaul_core::work::{Goal, Outcome, Plan, RoleError, Rubric, StepResult, Subject, Synthesis, Task, Verdict};
use semver::Version;
use wasmtime::Store;
use wasmtime::component::{Instance, InstancePre, Linker};

/// One version of the contract.
pub trait Edition: Send + Sync {
    /// The version, for example `0.1.0`. Components of every version that is compatible with it are this
    /// edition's, as wasmtime matches names: those of `0.1.7` are, those of `0.2.0` are not.
    fn version(&self) -> &str;

    /// Links the imports of a role's world. WASI is linked before.
    ///
    /// # Errors
    /// When the linker has one of the interfaces already.
    fn link(&self, role: Role, linker: &mut Linker<Ctx>) -> wasmtime::Result<()>;

    /// Finds the functions of a role in a linked component.
    ///
    /// # Errors
    /// When a function is missing.
    fn exports(&self, role: Role, pre: &InstancePre<Ctx>) -> wasmtime::Result<Exports>;
}

/// True when `version` is later than `than`. An invalid version is never later.
pub(crate) fn is_later(version: &str, than: &str) -> bool {
    matches!((Version::parse(version), Version::parse(than)), (Ok(one), Ok(other)) if one > other)
}

/// The functions that a component of a role exports.
pub enum Exports {
    /// The exports of a planner.
    Planner(Box<dyn PlannerExports>),
    /// The exports of an agent.
    Agent(Box<dyn AgentExports>),
    /// The exports of an evaluator.
    Evaluator(Box<dyn EvaluatorExports>),
    /// The exports of a tool.
    Tool(Box<dyn ToolExports>),
    /// The exports of a memory backend.
    Memory(Box<dyn MemoryExports>),
}

/// The instance for one call of an export.
pub struct GuestInstance<'a> {
    /// The store of the instance, with the state of its invocation.
    pub store: &'a mut Store<Ctx>,
    /// The instance of the component.
    pub instance: &'a Instance,
}

/// The answer of a function: its value, or its typed error. The outer error ended the instance.
pub type ExportAnswer<T, E> = wasmtime::Result<Result<T, E>>;

/// The exports of a planner.
#[async_trait]
pub trait PlannerExports: Send + Sync {
    /// A plan for a goal.
    async fn plan(&self, guest: GuestInstance<'_>, goal: Goal) -> ExportAnswer<Plan, RoleError>;

    /// Another plan, now that some steps are done.
    async fn replan(
        &self,
        guest: GuestInstance<'_>,
        goal: Goal,
        plan: Plan,
        results: Vec<StepResult>,
    ) -> ExportAnswer<Plan, RoleError>;

    /// An answer to the goal, made of the results.
    async fn synthesize(
        &self,
        guest: GuestInstance<'_>,
        goal: Goal,
        results: Vec<StepResult>,
    ) -> ExportAnswer<Synthesis, RoleError>;
}

/// The exports of an agent.
#[async_trait]
pub trait AgentExports: Send + Sync {
    /// Does a task.
    async fn run(&self, guest: GuestInstance<'_>, task: Task) -> ExportAnswer<Outcome, RoleError>;
}

/// The exports of an evaluator.
#[async_trait]
pub trait EvaluatorExports: Send + Sync {
    /// Judges an output.
    async fn judge(
        &self,
        guest: GuestInstance<'_>,
        subject: Subject,
        rubric: Rubric,
    ) -> ExportAnswer<Verdict, RoleError>;
}

/// The exports of a tool.
#[async_trait]
pub trait ToolExports: Send + Sync {
    /// Describes the tool and its functions.
    async fn describe(
        &self,
        guest: GuestInstance<'_>,
        settings: &serde_json::Value,
    ) -> ExportAnswer<ToolInfo, ToolError>;

    /// Notes what `verify` will need.
    async fn prepare(
        &self,
        guest: GuestInstance<'_>,
        call: &ToolCall,
        about: &CallContext,
    ) -> ExportAnswer<String, ToolError>;

    /// Finds out if an interrupted call has happened.
    async fn verify(
        &self,
        guest: GuestInstance<'_>,
        call: &ToolCall,
        prepared: &str,
        about: &CallContext,
    ) -> ExportAnswer<Verification, ToolError>;

    /// Executes a call.
    async fn call(
        &self,
        guest: GuestInstance<'_>,
        call: &ToolCall,
        about: &CallContext,
    ) -> ExportAnswer<ToolOutput, ToolError>;
}

/// Facts about a call for the tool, beside the call itself.
#[derive(Clone, Debug, PartialEq)]
pub struct CallContext {
    /// The same key for every attempt of one call, different for every other call.
    pub idempotency_key: String,
    /// The timeout of the call, in milliseconds.
    pub remaining_ms: u32,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The operator's settings for this tool, an object.
    pub settings: serde_json::Value,
}

/// Facts about a call for the memory backend.
#[derive(Clone, Copy, Debug)]
pub struct MemorySpace<'a> {
    /// The namespace that the question is about.
    pub namespace: &'a str,
    /// The settings that the operator wrote for this backend, an object.
    pub settings: &'a serde_json::Value,
}

/// The exports of a memory backend.
#[async_trait]
pub trait MemoryExports: Send + Sync {
    /// Keeps an entry, in place of one with the same key.
    async fn put(
        &self,
        guest: GuestInstance<'_>,
        space: MemorySpace<'_>,
        entry: MemoryEntry,
    ) -> ExportAnswer<(), MemoryError>;

    /// The entry of a key, if there is one that has not expired.
    async fn get(
        &self,
        guest: GuestInstance<'_>,
        space: MemorySpace<'_>,
        key: &str,
    ) -> ExportAnswer<Option<MemoryEntry>, MemoryError>;

    /// At most `limit` entries that fit `query`, the best first.
    async fn search(
        &self,
        guest: GuestInstance<'_>,
        space: MemorySpace<'_>,
        query: &str,
        limit: u32,
    ) -> ExportAnswer<Vec<MemoryHit>, MemoryError>;

    /// Deletes an entry. True when there was one.
    async fn delete(
        &self,
        guest: GuestInstance<'_>,
        space: MemorySpace<'_>,
        key: &str,
    ) -> ExportAnswer<bool, MemoryError>;

    /// At most `limit` keys that start with `prefix`, from the one behind `after`.
    async fn list(
        &self,
        guest: GuestInstance<'_>,
        space: MemorySpace<'_>,
        prefix: &str,
        after: Option<&str>,
        limit: u32,
    ) -> ExportAnswer<KeyPage, MemoryError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_later_by_its_numbers() {
        for (version, than, expected) in [
            ("0.1.1", "0.1.0", true),
            ("0.10.0", "0.9.0", true),
            ("0.1.0", "0.1.0", false),
            ("0.1.0", "0.2.0", false),
            ("0.2.0-draft", "0.2.0", false),
            ("next", "0.1.0", false),
        ] {
            assert_eq!(is_later(version, than), expected, "{version} and {than}");
        }
    }
}
