//! What is wrong with an agent or its artifact, in words that say what to do.

use longhaul_core::name::NotAName;

/// An agent, a change of one, or an artifact that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// A name that cannot be one.
    #[error(transparent)]
    Name(#[from] NotAName),
    /// The name is taken.
    #[error("there is an agent `{name}` already; change it with: longhaul agent update {name}")]
    Exists {
        /// Of the agent.
        name: String,
    },
    /// There is none.
    #[error("there is no agent `{name}`; `longhaul agent list` shows them")]
    Unknown {
        /// Of the agent.
        name: String,
    },
    /// Somebody else was quicker.
    #[error("{what} of agent `{name}` has version {found}, and the change is for version {expected}; look at it again")]
    Changed {
        /// `the record` or `the artifact`.
        what: &'static str,
        /// Of the agent.
        name: String,
        /// What it has.
        found: u64,
        /// What was asked for.
        expected: u64,
    },
    /// Nothing more can be stored.
    #[error("there are {count} agents, and more than {count} cannot be; remove one first")]
    TooMany {
        /// How many there may be.
        count: usize,
    },
    /// A figure that is out of its range.
    #[error("`{field}` is {value}, and {min} to {max} is allowed")]
    Limit {
        /// The name of the setting.
        field: &'static str,
        /// What was asked for.
        value: u64,
        /// What may be at least.
        min: u64,
        /// What may be at most.
        max: u64,
    },
    /// A text or a value that is too long.
    #[error("`{field}` has {bytes} bytes, and at most {max} are kept; {remedy}")]
    TooLong {
        /// The name of the setting.
        field: &'static str,
        /// How long it is.
        bytes: usize,
        /// How long it may be.
        max: usize,
        /// What to do.
        remedy: &'static str,
    },
    /// Something about the code that cannot be.
    #[error("{0}")]
    Code(String),
    /// Schedules run it.
    #[error("agent `{name}` is run by: {}; remove them first with `longhaul schedule remove`", .schedules.join(", "))]
    Used {
        /// Of the agent.
        name: String,
        /// Of the schedules.
        schedules: Vec<String>,
    },
    /// It is at work.
    #[error("agent `{name}` is at work on task {task}; wait until it has ended: longhaul schedule tasks --task {task}")]
    Busy {
        /// Of the agent.
        name: String,
        /// What it works on.
        task: String,
    },
    /// What is stored cannot be read.
    #[error(
        "the artifact of agent `{name}` is damaged ({why}), and is not taken for none; look at `longhaul agent artifact history {name}` and put a state in its place with `longhaul agent artifact set {name}`, or start anew with `longhaul agent artifact clear {name}`"
    )]
    Damaged {
        /// Of the agent.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// The record cannot be read.
    #[error("the record of agent `{name}` is damaged ({why}); remove it and add it again")]
    DamagedRecord {
        /// Of the agent.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// A version that is not there, or no more.
    #[error(
        "there is no version {version} of the artifact of agent `{name}`; `longhaul agent artifact history {name}` lists those that are kept"
    )]
    NoVersion {
        /// Of the agent.
        name: String,
        /// Which.
        version: u64,
    },
}
