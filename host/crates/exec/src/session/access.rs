//! The power behind the steps of a session, by which it is decided who goes on with it.
//!
//! Loading a value runs code of the step that made it, with the grants of the step that loads it. So steps with grants,
//! and steps of callers who may grant nothing, are refused in one session, whichever came first. It does not know who
//! calls.

use crate::error::ExecError;
use serde::{Deserialize, Serialize};

/// The power behind a step, or behind all steps of a session so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SessionAccess {
    /// True when it had directories or hosts.
    pub(super) is_granted: bool,
    /// True when its caller may grant none.
    pub(super) is_shared: bool,
}

impl SessionAccess {
    pub(super) fn and(self, other: Self) -> Self {
        Self { is_granted: self.is_granted || other.is_granted, is_shared: self.is_shared || other.is_shared }
    }

    /// Refuses a step of a session that had steps with this access.
    pub(super) fn admit(self, step: Self, name: &str) -> Result<(), ExecError> {
        match (self.and(step), step.is_shared) {
            (Self { is_granted: true, is_shared: true }, true) => {
                Err(ExecError::SessionGranted { name: name.to_owned() })
            }
            (Self { is_granted: true, is_shared: true }, false) => {
                Err(ExecError::SessionShared { name: name.to_owned() })
            }
            _ => Ok(()),
        }
    }
}
