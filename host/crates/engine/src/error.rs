//! Errors of a plugin: before it is called, and while it is called.

use longhaul_capabilities::Stop;
use longhaul_core::journal::{EffectQuestion, JournalError};
use longhaul_core::{Denial, LimitHit, Outage};
use std::path::PathBuf;

/// The reason why a file is not a plugin that can be called.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file cannot be read.
    #[error("plugin `{name}`: cannot read `{}`: {source}", path.display())]
    Unreadable {
        /// The plugin.
        name: String,
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// A cap on what is compiled was reached.
    #[error("plugin `{name}`: {hit}; raise it in longhaul.toml under [compile] if you trust the file")]
    Limit {
        /// The plugin.
        name: String,
        /// The cap.
        hit: LimitHit,
    },
    /// The bytes are no component.
    #[error("plugin `{name}` is not a component: {reason}")]
    NotAComponent {
        /// The plugin.
        name: String,
        /// The actual form of the bytes.
        reason: String,
    },
    /// The manifest that it carries cannot be read.
    #[error("plugin `{name}` carries a manifest that cannot be used: {reason}")]
    Manifest {
        /// The plugin.
        name: String,
        /// The fault.
        reason: String,
    },
    /// The component has no known role.
    #[error("plugin `{name}` is no plugin of Longhaul: {reason}")]
    WrongWorld {
        /// The plugin.
        name: String,
        /// The missing or surplus export.
        reason: String,
    },
    /// The plugin was called for a role that it does not have.
    #[error("plugin `{name}` is a {found}, and a {wanted} is needed here")]
    WrongRole {
        /// The plugin.
        name: String,
        /// Its role.
        found: &'static str,
        /// The required role.
        wanted: &'static str,
    },
    /// The compiler refused it.
    #[error("plugin `{name}` cannot be compiled: {reason}")]
    Compile {
        /// The plugin.
        name: String,
        /// The compiler's reason.
        reason: String,
    },
    /// It nests so deep that the compiler ran out of stack, which no setting raises.
    #[error(
        "plugin `{name}` cannot be compiled: it nests too deep for the compiler's stack of {stack_bytes_max} bytes; \
         build it with less nesting"
    )]
    TooDeep {
        /// The plugin.
        name: String,
        /// The size of the stack, in bytes.
        stack_bytes_max: u64,
    },
    /// The compiler died, and not of one of its limits.
    #[error(
        "plugin `{name}` cannot be compiled: the compiler died ({said}); if the machine has memory to spare, report it \
         together with the file"
    )]
    Died {
        /// The plugin.
        name: String,
        /// Its end, and its last output.
        said: String,
    },
    /// The host could not compile it: its compiler did not start, could not be confined or could not write.
    #[error("plugin `{name}` was not compiled, through no fault of its own: {reason}")]
    Host {
        /// The plugin.
        name: String,
        /// The fault and its remedy.
        reason: String,
    },
    /// The cache of compiled code is not safe to use.
    #[error("the cache of compiled plugins `{}` cannot be used: {reason}", path.display())]
    Cache {
        /// The directory.
        path: PathBuf,
        /// The fault and its remedy.
        reason: String,
    },
}

impl LoadError {
    /// True when the error concerns the host, and not the file.
    #[must_use]
    pub fn is_of_the_host(&self) -> bool {
        match self {
            Self::Unreadable { .. } | Self::Host { .. } | Self::Cache { .. } => true,
            Self::Limit { .. }
            | Self::NotAComponent { .. }
            | Self::Manifest { .. }
            | Self::WrongWorld { .. }
            | Self::WrongRole { .. }
            | Self::Compile { .. }
            | Self::TooDeep { .. }
            | Self::Died { .. } => false,
        }
    }
}

/// The reason why a call of a plugin failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// A cap was reached; the instance was dropped.
    #[error("plugin `{plugin}` used {} of {} {} in `{export}`", hit.used, hit.max, hit.name)]
    Limit {
        /// The plugin.
        plugin: String,
        /// The export.
        export: &'static str,
        /// The cap.
        hit: LimitHit,
    },
    /// It trapped: a crash of the plugin, not of the host.
    #[error("plugin `{plugin}` trapped in `{export}`: {reason}")]
    Trapped {
        /// The plugin.
        plugin: String,
        /// The export.
        export: &'static str,
        /// wasmtime's message, without addresses.
        reason: String,
    },
    /// The return value breaks the contract.
    #[error("plugin `{plugin}` broke the contract in `{export}`: {breach}")]
    Contract {
        /// The plugin.
        plugin: String,
        /// The export.
        export: &'static str,
        /// The field that breaks it, and how.
        breach: String,
    },
    /// A person is asked.
    #[error("{}", .0.text)]
    Parked(EffectQuestion),
    /// A service is unavailable; the same invocation continues later.
    #[error(transparent)]
    Unavailable(Outage),
    /// A cap of the run leaves no budget for its next effect; the same invocation continues with a higher one.
    #[error("{0}")]
    Budget(LimitHit),
    /// A provider refuses a request until a person corrects something; the same invocation continues then.
    #[error(transparent)]
    Rejected(Denial),
    /// The journal ended the call.
    #[error(transparent)]
    Journal(JournalError),
    /// The call was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// The host is exhausted or broken; the same invocation continues later.
    #[error("plugin `{plugin}` could not run in `{export}`: {reason}")]
    Host {
        /// The plugin.
        plugin: String,
        /// The export.
        export: &'static str,
        /// The fault.
        reason: String,
    },
}

impl CallError {
    /// True when the same call may succeed later without anyone changing a file.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Unavailable(_) | Self::Cancelled | Self::Host { .. } => true,
            Self::Limit { .. }
            | Self::Budget(_)
            | Self::Rejected(_)
            | Self::Trapped { .. }
            | Self::Contract { .. }
            | Self::Parked(_)
            | Self::Journal(_) => false,
        }
    }

    pub(crate) fn of_stop(plugin: &str, export: &'static str, stop: Stop) -> Self {
        match stop {
            Stop::Journal(JournalError::Parked(question)) => Self::Parked(question),
            Stop::Journal(JournalError::Limit(hit)) | Stop::Limit(hit) => {
                Self::Limit { plugin: plugin.to_owned(), export, hit }
            }
            Stop::Journal(error) => Self::Journal(error),
            Stop::Unavailable(outage) => Self::Unavailable(outage),
            Stop::Budget(hit) => Self::Budget(hit),
            Stop::Rejected(denial) => Self::Rejected(denial),
            Stop::Cancelled => Self::Cancelled,
            other => Self::Host { plugin: plugin.to_owned(), export, reason: other.to_string() },
        }
    }
}
