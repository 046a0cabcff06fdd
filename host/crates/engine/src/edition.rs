//! The versions of the contract that a host speaks, and what one of them is.
//!
//! An edition is one version: what it links for a role, and how the exports of a component that was built
//! for it are called, in the words of the host. A host that speaks one more adds it to its [`Editions`], and
//! the components of the others run as before. Nothing here reads a component; `inspect` finds the version
//! that one was built for. An edition grants nothing: it links what the host has, behind the host's gates.

mod v0_1;

pub use v0_1::V0_1;

use crate::role::Role;
use async_trait::async_trait;
use longhaul_capabilities::Ctx;
use longhaul_core::memory::{Entry, Hit, MemoryError, Page};
use longhaul_core::tool::{ToolCall, ToolError, ToolInfo, ToolOutput, Verification};
use longhaul_core::work::{Goal, Outcome, Plan, RoleError, Rubric, StepResult, Subject, Synthesis, Task, Verdict};
use semver::Version;
use std::sync::Arc;
use wasmtime::Store;
use wasmtime::component::{Instance, InstancePre, Linker};

/// One version of the contract.
pub trait Edition: Send + Sync {
    /// The version, for example `0.1.0`. Components of every version that is compatible with it are this
    /// edition's, as wasmtime matches names: those of `0.1.7` are, those of `0.2.0` are not.
    fn version(&self) -> &str;

    /// Links what the world of a role imports of the contract. WASI is linked before.
    ///
    /// # Errors
    /// When the linker has one of the interfaces already.
    fn link(&self, role: Role, linker: &mut Linker<Ctx>) -> wasmtime::Result<()>;

    /// Finds the functions of a role in a component that is linked.
    ///
    /// # Errors
    /// When one is not there.
    fn exports(&self, role: Role, pre: &InstancePre<Ctx>) -> wasmtime::Result<Exports>;
}

/// The editions that a host speaks. Default: `0.1` alone. Clones share them.
#[derive(Clone)]
pub struct Editions(Arc<[Arc<dyn Edition>]>);

impl Default for Editions {
    fn default() -> Self {
        let v0_1: Arc<dyn Edition> = Arc::new(V0_1);
        Self(Arc::from([v0_1]))
    }
}

impl Editions {
    /// With one more. It takes the place of one whose version is compatible with its own.
    #[must_use]
    pub fn and(self, edition: impl Edition + 'static) -> Self {
        let edition: Arc<dyn Edition> = Arc::new(edition);
        let others = self.0.iter().filter(|other| line(other.version()) != line(edition.version()));
        Self(others.chain([&edition]).cloned().collect())
    }

    /// Their versions.
    pub fn versions(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|edition| edition.version())
    }

    /// The edition of components of this version.
    pub(crate) fn serving(&self, version: &str) -> Option<&dyn Edition> {
        self.0.iter().find(|edition| line(edition.version()) == line(version)).map(|edition| &**edition)
    }
}

/// The part of a version that is the same in all that are compatible with it.
///
/// wasmtime goes by the same when it matches names, so that what is found here can also be linked and called.
fn line(version: &str) -> &str {
    let numbers = match Version::parse(version) {
        Ok(Version { major: 1.., pre, .. }) if pre.is_empty() => 1,
        Ok(Version { major: 0, minor: 1.., pre, .. }) if pre.is_empty() => 2,
        // What comes before a release, and `0.0`, is compatible with itself alone.
        _ => return version,
    };
    version.match_indices('.').nth(numbers - 1).map_or(version, |(end, _)| &version[..end])
}

/// True when `version` came out after `than`. What is no version came out never.
pub(crate) fn is_later(version: &str, than: &str) -> bool {
    matches!((Version::parse(version), Version::parse(than)), (Ok(one), Ok(other)) if one > other)
}

/// The functions that a component of a role exports.
#[expect(missing_docs, reason = "each case is its role")]
pub enum Exports {
    Planner(Box<dyn Planner>),
    Agent(Box<dyn Agent>),
    Evaluator(Box<dyn Evaluator>),
    Tool(Box<dyn Tool>),
    Memory(Box<dyn Memory>),
}

/// The instance that a function is called in. It serves one call.
#[expect(missing_docs, reason = "each field is its type")]
pub struct Guest<'a> {
    pub store: &'a mut Store<Ctx>,
    pub instance: &'a Instance,
}

/// What a function answered: its value, or its typed error. The error around it ended the instance.
pub type Answer<T, E> = wasmtime::Result<Result<T, E>>;

/// What a planner exports.
#[async_trait]
pub trait Planner: Send + Sync {
    /// A plan for a goal.
    async fn plan(&self, guest: Guest<'_>, goal: Goal) -> Answer<Plan, RoleError>;

    /// Another plan, now that some steps are done.
    async fn replan(
        &self,
        guest: Guest<'_>,
        goal: Goal,
        plan: Plan,
        results: Vec<StepResult>,
    ) -> Answer<Plan, RoleError>;

    /// An answer to the goal, made of the results.
    async fn synthesize(&self, guest: Guest<'_>, goal: Goal, results: Vec<StepResult>) -> Answer<Synthesis, RoleError>;
}

/// What an agent exports.
#[async_trait]
pub trait Agent: Send + Sync {
    /// Does a task.
    async fn run(&self, guest: Guest<'_>, task: Task) -> Answer<Outcome, RoleError>;
}

/// What an evaluator exports.
#[async_trait]
pub trait Evaluator: Send + Sync {
    /// Judges an output.
    async fn judge(&self, guest: Guest<'_>, subject: Subject, rubric: Rubric) -> Answer<Verdict, RoleError>;
}

/// What a tool exports.
#[async_trait]
pub trait Tool: Send + Sync {
    /// What it can do.
    async fn describe(&self, guest: Guest<'_>) -> wasmtime::Result<ToolInfo>;

    /// Notes what `verify` will need.
    async fn prepare(&self, guest: Guest<'_>, call: &ToolCall) -> Answer<String, ToolError>;

    /// Whether a call that was cut off has happened.
    async fn verify(&self, guest: Guest<'_>, call: &ToolCall, prepared: &str) -> Answer<Verification, ToolError>;

    /// Does something.
    async fn call(&self, guest: Guest<'_>, call: &ToolCall, about: &CallContext) -> Answer<ToolOutput, ToolError>;
}

/// What a tool is told beside the call.
#[derive(Clone, Debug, PartialEq)]
pub struct CallContext {
    /// The same for every attempt of one call, different for every other call.
    pub idempotency_key: String,
    /// How long the call may take, in milliseconds.
    pub remaining_ms: u32,
    /// Counts from 1.
    pub attempt: u32,
    /// What the operator set for this tool, an object.
    pub settings: serde_json::Value,
}

/// What a memory backend exports.
#[async_trait]
pub trait Memory: Send + Sync {
    /// Keeps an entry, in place of one with the same key.
    async fn put(&self, guest: Guest<'_>, namespace: &str, entry: Entry) -> Answer<(), MemoryError>;

    /// The entry of a key, if there is one that has not expired.
    async fn get(&self, guest: Guest<'_>, namespace: &str, key: &str) -> Answer<Option<Entry>, MemoryError>;

    /// At most `limit` entries that fit `query`, the best first.
    async fn search(&self, guest: Guest<'_>, namespace: &str, query: &str, limit: u32)
    -> Answer<Vec<Hit>, MemoryError>;

    /// Whether there was an entry to delete.
    async fn delete(&self, guest: Guest<'_>, namespace: &str, key: &str) -> Answer<bool, MemoryError>;

    /// At most `limit` keys that start with `prefix`, from the one behind `after`.
    async fn list(
        &self,
        guest: Guest<'_>,
        namespace: &str,
        prefix: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Answer<Page, MemoryError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_of_one_line_when_semver_calls_them_compatible() {
        for (version, expected) in [
            ("0.1.0", "0.1"),
            ("0.1.7", "0.1"),
            ("0.1.7+build.1", "0.1"),
            ("0.10.0", "0.10"),
            ("1.0.0", "1"),
            ("1.9.3", "1"),
            ("12.0.0", "12"),
            ("0.0.1", "0.0.1"),
            ("0.2.0-draft", "0.2.0-draft"),
            ("1.0.0-rc.1", "1.0.0-rc.1"),
            ("0.1", "0.1"),
            ("0.01.0", "0.01.0"),
            ("next", "next"),
            ("", ""),
        ] {
            assert_eq!(line(version), expected, "{version}");
        }
    }

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

    /// An edition of nothing but its version.
    struct Empty(&'static str);

    impl Edition for Empty {
        fn version(&self) -> &str {
            self.0
        }

        fn link(&self, _: Role, _: &mut Linker<Ctx>) -> wasmtime::Result<()> {
            Ok(())
        }

        fn exports(&self, _: Role, _: &InstancePre<Ctx>) -> wasmtime::Result<Exports> {
            Err(wasmtime::Error::msg("it has none"))
        }
    }

    #[test]
    fn a_host_speaks_what_was_added_and_one_edition_of_each_line() {
        let editions = Editions::default().and(Empty("0.2.0")).and(Empty("0.2.4")).and(Empty("1.0.0-rc.1"));
        assert_eq!(editions.versions().collect::<Vec<_>>(), ["0.1.0", "0.2.4", "1.0.0-rc.1"]);
        for (version, expected) in [
            ("0.1.9", Some("0.1.0")),
            ("0.2.0", Some("0.2.4")),
            ("0.3.0", None),
            ("1.0.0", None),
            ("1.0.0-rc.1", Some("1.0.0-rc.1")),
            ("", None),
        ] {
            assert_eq!(editions.serving(version).map(Edition::version), expected, "{version}");
        }
    }
}
