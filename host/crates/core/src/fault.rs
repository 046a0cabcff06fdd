//! The one error of what people, services and surfaces do: what happened, of which kind it is, and what to do.
//!
//! Libraries below have enums of their own, whose cases a caller acts on. Above them everything ends in a [`Fault`], which
//! crosses each surface as it is: the command line takes its exit code from the code, HTTP its status. A `Fault` holds
//! the error that caused it, with what was being done around it, so that `{}` shows the outermost sentence and `{:#}` all
//! of them. It refuses to guess: what nobody gave a code has none, and no code is ever read out of a text.

use crate::store::StoreError;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::fmt;

/// What functions above the libraries return.
pub type Result<T, E = Fault> = std::result::Result<T, E>;

type Cause = Box<dyn Error + Send + Sync + 'static>;

/// An error with its code. It does not implement [`Error`], or it could not be made of every error by `?`.
pub struct Fault(Box<Inner>);

struct Inner {
    code: Option<FaultCode>,
    field: Option<String>,
    /// What was being done, the innermost first.
    contexts: Vec<String>,
    cause: Cause,
}

/// What a caller can act on. The names are part of the interface: they stand in answers over HTTP and over the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FaultCode {
    /// There is no such thing.
    Unknown,
    /// It cannot be done in the present state; another state would allow it.
    Conflict,
    /// It is wrong in itself, and no state would allow it.
    Invalid,
    /// Somebody changed the thing since the caller read it.
    Changed,
    /// The machine has no room or no time for it now; the same call may succeed later.
    Unavailable,
    /// Longhaul or its data is at fault.
    Internal,
}

/// A sentence that is an error.
#[derive(Debug)]
struct Text(String);

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Text {}

impl Fault {
    /// An error of which nobody has said the code.
    pub fn msg(text: impl fmt::Display) -> Self {
        Self::of(None, Text(text.to_string()))
    }

    /// There is no such thing.
    pub fn unknown(text: impl fmt::Display) -> Self {
        Self::with_code(FaultCode::Unknown, text)
    }

    /// It cannot be done in the present state.
    pub fn conflict(text: impl fmt::Display) -> Self {
        Self::with_code(FaultCode::Conflict, text)
    }

    /// It is wrong in itself.
    pub fn invalid(text: impl fmt::Display) -> Self {
        Self::with_code(FaultCode::Invalid, text)
    }

    /// Longhaul or its data is at fault.
    pub fn internal(text: impl fmt::Display) -> Self {
        Self::with_code(FaultCode::Internal, text)
    }

    /// An error with a code.
    pub fn with_code(code: FaultCode, text: impl fmt::Display) -> Self {
        Self::of(Some(code), Text(text.to_string()))
    }

    /// Gives the code to an error that has none.
    #[must_use]
    pub fn or_code(mut self, code: FaultCode) -> Self {
        self.0.code.get_or_insert(code);
        self
    }

    /// Names the field or parameter at fault, with dots between a field and the one that holds it.
    #[must_use]
    pub fn at(mut self, field: impl Into<String>) -> Self {
        self.0.field = Some(field.into());
        self
    }

    /// Says what was being done.
    #[must_use]
    pub fn context(mut self, doing: impl fmt::Display) -> Self {
        self.0.contexts.push(doing.to_string());
        self
    }

    /// The code, where somebody gave one.
    pub fn code(&self) -> Option<FaultCode> {
        self.0.code
    }

    /// The field or parameter at fault.
    pub fn field(&self) -> Option<&str> {
        self.0.field.as_deref()
    }

    /// The error that caused it, as its type.
    pub fn downcast_ref<E: Error + 'static>(&self) -> Option<&E> {
        self.causes().find_map(<dyn Error>::downcast_ref)
    }

    /// Whether an error of a type caused it.
    pub fn is<E: Error + 'static>(&self) -> bool {
        self.downcast_ref::<E>().is_some()
    }

    /// The error that caused it, and what caused that.
    fn causes(&self) -> impl Iterator<Item = &(dyn Error + 'static)> {
        let first: &(dyn Error + 'static) = &*self.0.cause;
        std::iter::successors(Some(first), |&cause| cause.source())
    }

    fn of(code: Option<FaultCode>, cause: impl Into<Cause>) -> Self {
        Self(Box::new(Inner { code, field: None, contexts: Vec::new(), cause: cause.into() }))
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for Fault {
    fn from(error: E) -> Self {
        let code = (&error as &dyn Error).downcast_ref::<StoreError>().map(code_of_store);
        Self::of(code, error)
    }
}

fn code_of_store(error: &StoreError) -> FaultCode {
    match error {
        StoreError::Conflict { .. } => FaultCode::Conflict,
        StoreError::Full { .. } => FaultCode::Unavailable,
        _ => FaultCode::Internal,
    }
}

impl From<Fault> for Cause {
    fn from(fault: Fault) -> Self {
        Box::new(Text(format!("{fault:#}")))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { contexts, cause, .. } = &*self.0;
        if !f.alternate() {
            return match contexts.last() {
                Some(outermost) => f.write_str(outermost),
                None => write!(f, "{cause}"),
            };
        }
        for doing in contexts.iter().rev() {
            write!(f, "{doing}: ")?;
        }
        write!(f, "{cause}")?;
        self.causes().skip(1).try_for_each(|cause| write!(f, ": {cause}"))
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:#}")
    }
}

/// Says of an error what was being done, or of an absent value what is missing.
pub trait Context<T> {
    /// With a text at hand.
    ///
    /// # Errors
    /// The error, or a new one for [`None`].
    fn context(self, doing: impl fmt::Display) -> Result<T>;

    /// With a text that is made where it is needed.
    ///
    /// # Errors
    /// The error, or a new one for [`None`].
    fn with_context<D: fmt::Display>(self, doing: impl FnOnce() -> D) -> Result<T>;
}

impl<T, E: Into<Fault>> Context<T> for std::result::Result<T, E> {
    fn context(self, doing: impl fmt::Display) -> Result<T> {
        self.map_err(|error| error.into().context(doing))
    }

    fn with_context<D: fmt::Display>(self, doing: impl FnOnce() -> D) -> Result<T> {
        self.map_err(|error| error.into().context(doing()))
    }
}

impl<T> Context<T> for Option<T> {
    fn context(self, doing: impl fmt::Display) -> Result<T> {
        self.ok_or_else(|| Fault::msg(doing))
    }

    fn with_context<D: fmt::Display>(self, doing: impl FnOnce() -> D) -> Result<T> {
        self.ok_or_else(|| Fault::msg(doing()))
    }
}

/// Returns with a [`Fault`] of a text, as [`format!`] takes it, or of an error.
#[macro_export]
macro_rules! bail {
    ($text:literal $($arguments:tt)*) => {
        return Err($crate::fault::Fault::msg(format_args!($text $($arguments)*)))
    };
    ($error:expr) => {
        return Err($crate::fault::Fault::from($error))
    };
}

pub use crate::bail;

#[cfg(test)]
mod tests {
    use super::*;

    fn refused() -> Result<()> {
        let name = "a";
        bail!("`{name}` is {}", "unknown");
    }

    fn failed() -> Result<()> {
        Err(std::io::Error::other("disk"))?
    }

    #[test]
    fn a_fault_shows_its_outermost_sentence_or_all_of_them() {
        let fault = refused().context("read it").with_context(|| "begin").unwrap_err();
        assert_eq!(fault.to_string(), "begin");
        assert_eq!(format!("{fault:#}"), "begin: read it: `a` is unknown");
        assert_eq!(fault.code(), None);
        assert_eq!(None::<u8>.context("nothing is there").unwrap_err().to_string(), "nothing is there");
    }

    #[test]
    fn a_fault_keeps_its_cause_and_its_code() {
        let fault = failed().context("read it").unwrap_err();
        assert!(fault.is::<std::io::Error>() && !fault.is::<StoreError>());
        let fault = Fault::conflict("it runs").context("begin").or_code(FaultCode::Internal).at("run.id");
        assert_eq!((fault.code(), fault.field()), (Some(FaultCode::Conflict), Some("run.id")));
        let fault = refused().unwrap_err().or_code(FaultCode::Invalid);
        assert_eq!(fault.code(), Some(FaultCode::Invalid));
        let full = StoreError::Full { path: "d".into() };
        assert_eq!(Fault::from(full).code(), Some(FaultCode::Unavailable));
    }
}
