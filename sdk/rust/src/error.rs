//! One error for the errors of all imports, so that `?` works from an import to an export.
//!
//! Cases that a caller can act on keep their type: a denial with its fix, a limit with its numbers, an outage with its
//! wait. The others are text. Errors of imports convert to the error of each role in the same way, so an export can use
//! `?` without naming [`Error`].

use std::fmt;

use crate::bindings::types::{Denial, LimitHit, Outage};
use crate::bindings::{
    agent, artifact, checks, conversation, decisions, delegate, evaluator, graph, keyvalue, memory, planner, progress,
    recall, timer, tool_types,
};

/// The reason for which a call of an import, or the plugin itself, failed.
#[derive(Clone, Debug)]
pub enum Error {
    /// The operator does not allow it.
    Denied(Denial),
    /// A limit was reached.
    Limit(LimitHit),
    /// A service is not available now.
    Unavailable(Outage),
    /// A person must answer a question first. The text is the question.
    Blocked(String),
    /// The request or a value is not valid.
    Invalid(String),
    /// Any other failure.
    Failed(String),
}

impl Error {
    /// Returns [`Error::Failed`] with a text.
    pub fn failed(text: impl Into<String>) -> Self {
        Self::Failed(text.into())
    }

    /// Returns [`Error::Invalid`] with a text.
    pub fn invalid(text: impl Into<String>) -> Self {
        Self::Invalid(text.into())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Denied(denial) => write!(f, "{}; to allow it, {}", denial.reason, denial.fix),
            Self::Limit(hit) => {
                write!(f, "limit `{}` reached: {} of {}", hit.name, hit.used, hit.max)
            }
            Self::Unavailable(outage) => f.write_str(&outage.reason),
            Self::Blocked(text) | Self::Invalid(text) | Self::Failed(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Error {}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::Invalid(format!("not the expected JSON: {error}"))
    }
}

/// Maps the cases that every error of the contract has, then the ones that only this one has.
macro_rules! from_import {
    ($error:path { $($case:ident),* } $(, $pattern:pat => $made:expr)* $(,)?) => {
        impl From<$error> for Error {
            fn from(error: $error) -> Self {
                use $error as E;
                match error {
                    $(E::$case(inner) => Self::$case(inner),)*
                    $($pattern => $made,)*
                }
            }
        }
    };
}

from_import!(conversation::ModelError { Denied, Limit, Unavailable, Invalid, Failed },
    E::ContextFull(hit) => Self::Limit(hit),
    E::Refused(words) => Self::Failed(format!("the model refused: {words}")));
from_import!(tool_types::ToolError { Denied, Limit, Unavailable, Failed },
    E::UnknownFunction(text) => Self::Invalid(format!("unknown function: {text}")),
    E::InvalidArguments(text) => Self::Invalid(format!("invalid arguments: {text}")),
    E::TimedOut(ms) => Self::Failed(format!("timed out after {ms} ms")),
    E::OutcomeUnknown(text) => Self::Failed(format!("{text}, and what the call did is unknown")));
from_import!(checks::CheckError { Denied, Limit, Unavailable, Failed },
    E::UnknownCheck(text) => Self::Invalid(format!("unknown check: {text}")));
from_import!(delegate::DelegateError { Denied, Limit, Unavailable, Blocked, Failed },
    E::UnknownAgent(text) => Self::Invalid(format!("unknown agent: {text}")));
from_import!(recall::RecallError { Denied, Limit, Unavailable, Invalid, Failed });
from_import!(decisions::DecisionError { Denied, Limit, Invalid, Failed });
from_import!(progress::ProgressError { Denied, Limit, Failed });
from_import!(artifact::ArtifactError { Denied, Limit, Invalid, Failed });
from_import!(graph::GraphError { Denied, Limit, Invalid, Failed },
    E::UnknownStep(step) => Self::Invalid(format!("there is no step `{step}` in this graph")));
from_import!(keyvalue::KeyvalueError { Denied, Limit, Failed });
from_import!(timer::TimerError { Denied, Limit, Failed });

/// Maps [`Error`] to the error of a role; `Blocked` and `Invalid` go where the role has a place.
macro_rules! to_export {
    ($error:path, blocked: $blocked:ident, invalid: $invalid:ident) => {
        impl From<Error> for $error {
            fn from(error: Error) -> Self {
                match error {
                    Error::Denied(denial) => Self::Denied(denial),
                    Error::Limit(hit) => Self::Limit(hit),
                    Error::Unavailable(outage) => Self::Unavailable(outage),
                    Error::Blocked(text) => Self::$blocked(text),
                    Error::Invalid(text) => Self::$invalid(text),
                    Error::Failed(text) => Self::Failed(text),
                }
            }
        }
    };
}

to_export!(agent::AgentError, blocked: Blocked, invalid: Failed);
to_export!(planner::PlanError, blocked: Unclear, invalid: Failed);
to_export!(evaluator::JudgeError, blocked: Failed, invalid: Failed);
to_export!(tool_types::ToolError, blocked: Failed, invalid: InvalidArguments);
to_export!(memory::MemoryError, blocked: Failed, invalid: Invalid);

/// Maps the errors of the imports to the error of a role, through [`Error`].
macro_rules! through {
    ($role:ty: $($import:ty),+ $(,)?) => {
        $(impl From<$import> for $role {
            fn from(error: $import) -> Self {
                Error::from(error).into()
            }
        })+
    };
}

/// [`through`] for all that [`Error`] takes but the errors of tools, which are a role's own.
macro_rules! through_all {
    ($($role:ty),+ $(,)?) => {
        $(through!($role:
            artifact::ArtifactError,
            checks::CheckError,
            conversation::ModelError,
            decisions::DecisionError,
            delegate::DelegateError,
            graph::GraphError,
            keyvalue::KeyvalueError,
            progress::ProgressError,
            recall::RecallError,
            timer::TimerError,
            serde_json::Error,
        );)+
    };
}

through_all!(agent::AgentError, planner::PlanError, evaluator::JudgeError, tool_types::ToolError, memory::MemoryError,);
through!(agent::AgentError: tool_types::ToolError);
