//! Errors about agents and artifacts. Each text has the remedy.

use longhaul_core::name::NotAName;

/// An error about an agent, a change of one, or an artifact.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// An invalid name.
    #[error(transparent)]
    Name(#[from] NotAName),
    /// The name is taken.
    #[error("there is an agent `{name}` already; change it with: longhaul agent update {name}")]
    Exists {
        /// Name of the agent.
        name: String,
    },
    /// There is no such agent.
    #[error("there is no agent `{name}`; `longhaul agent list` shows them")]
    Unknown {
        /// Name of the agent.
        name: String,
    },
    /// Another change came first.
    #[error("{what} of agent `{name}` has version {found}, and the change is for version {expected}; look at it again")]
    Changed {
        /// `the record` or `the artifact`.
        what: &'static str,
        /// Name of the agent.
        name: String,
        /// Version that is stored.
        found: u64,
        /// Version that the caller asked for.
        expected: u64,
    },
    /// The data directory holds the most agents already.
    #[error("there are {count} agents, and more than {count} cannot be; remove one first")]
    TooMany {
        /// The most that may be stored.
        count: usize,
    },
    /// A value out of its range.
    #[error("`{field}` is {value}, and {min} to {max} is allowed")]
    Limit {
        /// The name of the setting.
        field: &'static str,
        /// The requested value.
        value: u64,
        /// Least allowed value.
        min: u64,
        /// Most allowed value.
        max: u64,
    },
    /// A text or a value that is too long.
    #[error("`{field}` has {bytes} bytes, and at most {max} are kept; {remedy}")]
    TooLong {
        /// The name of the setting.
        field: &'static str,
        /// Length in bytes.
        bytes: usize,
        /// Most allowed length in bytes.
        max: usize,
        /// Advice for the caller.
        remedy: &'static str,
    },
    /// A fault of the code.
    #[error("{0}")]
    Code(String),
    /// Schedules run it.
    #[error("agent `{name}` is run by: {}; remove them first with `longhaul schedule remove`", .schedules.join(", "))]
    Used {
        /// Name of the agent.
        name: String,
        /// Names of the schedules.
        schedules: Vec<String>,
    },
    /// The agent is at work.
    #[error("agent `{name}` is at work on task {task}; wait until it has ended: longhaul schedule tasks --task {task}")]
    Busy {
        /// Name of the agent.
        name: String,
        /// The task that the agent works on.
        task: String,
    },
    /// The stored artifact cannot be read.
    #[error(
        "the artifact of agent `{name}` is damaged ({why}), and is not taken for none; look at `longhaul agent artifact history {name}` and put a state in its place with `longhaul agent artifact set {name}`, or start anew with `longhaul agent artifact clear {name}`"
    )]
    Damaged {
        /// Name of the agent.
        name: String,
        /// Cause.
        why: String,
    },
    /// The record cannot be read.
    #[error("the record of agent `{name}` is damaged ({why}); remove it and add it again")]
    DamagedRecord {
        /// Name of the agent.
        name: String,
        /// Cause.
        why: String,
    },
    /// The version does not exist, or not any more.
    #[error(
        "there is no version {version} of the artifact of agent `{name}`; `longhaul agent artifact history {name}` lists those that are kept"
    )]
    NoVersion {
        /// Name of the agent.
        name: String,
        /// The version that does not exist.
        version: u64,
    },
}
