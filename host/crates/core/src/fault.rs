//! The error type above the libraries: the sentence about an error, its code, and the remedy.
//!
//! Libraries have enums of their own, whose cases a caller acts on. Above them every error becomes a [`Fault`], which
//! crosses each surface unchanged: the command line takes its exit code from the code, HTTP its status, and the socket
//! carries it as [`FaultWire`]. A `Fault` holds the error that caused it, with the context around it, so that `{}`
//! shows the outermost sentence and `{:#}` all of them.
//!
//! A code comes from one of these places, and never from a text:
//!
//! | written | code |
//! |---|---|
//! | `bail!("...")` | [`FaultCode::Invalid`]: the text refuses the request |
//! | `bail!(Fault::conflict("..."))` and similar | the named one |
//! | `.or_invalid(\|\| "...")`, `.or_unknown`, `.or_internal` | the named one, for an error of another type and for [`None`] |
//! | `?` on a [`StoreError`], and on an [`io::Error`] of a full disk | that of its case |
//! | `?` on another error, `.context("...")` | none |
//!
//! The first code stays: further context, or another code, does not change it. A library's error without a code gets
//! the one of its type where it leaves the service. An error without any code even then is a defect of Longhaul, and is
//! reported as [`FaultCode::Internal`].

use crate::store::StoreError;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::{fmt, io};

/// The result of functions above the libraries.
pub type Result<T, E = Fault> = std::result::Result<T, E>;

type Cause = Box<dyn Error + Send + Sync + 'static>;

/// An error with its code. It does not implement [`Error`], since otherwise `?` could not convert every error to it.
pub struct Fault(Box<Inner>);

struct Inner {
    code: Option<FaultCode>,
    field: Option<String>,
    /// The time until the same call may succeed, in milliseconds from now.
    retry_after_ms: Option<u64>,
    /// The contexts, the innermost first.
    contexts: Vec<String>,
    cause: Cause,
}

/// The code that a caller can act on. The names are part of the interface: they are in responses over HTTP and over the
/// socket.
///
/// A `match` on it names every case, so that the compiler asks about a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultCode {
    /// There is no such thing. HTTP says 404.
    Unknown,
    /// The present state does not allow it; another state would. HTTP says 409.
    Conflict,
    /// The request is invalid: a value, or a file of the caller, is wrong. HTTP says 422.
    Invalid,
    /// The resource changed since the caller read it. HTTP says 412.
    Changed,
    /// The caller, or its agent, lacks the permission; the text names who has it, or the line that would grant it. HTTP
    /// says 403.
    Forbidden,
    /// There is no capacity now, or a required service is unavailable; the same call may succeed later. HTTP says 503,
    /// with the time to wait.
    Unavailable,
    /// Longhaul or its data is at fault. HTTP says 500, with a number under which the log has the text.
    Internal,
}

impl FaultCode {
    /// All codes.
    pub const ALL: [Self; 7] = [
        Self::Unknown,
        Self::Conflict,
        Self::Invalid,
        Self::Changed,
        Self::Forbidden,
        Self::Unavailable,
        Self::Internal,
    ];

    /// The code of a full disk, which is neither the caller's mistake nor a defect. For any other error of the system,
    /// the place where it happened has to choose the code.
    pub fn of_system(error: &io::Error) -> Option<Self> {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge).then_some(Self::Unavailable)
    }
}

impl From<&StoreError> for FaultCode {
    fn from(error: &StoreError) -> Self {
        match error {
            StoreError::Conflict { .. } => Self::Conflict,
            StoreError::KeyTooLong { .. } => Self::Invalid,
            StoreError::Full { .. }
            | StoreError::Fenced { .. }
            | StoreError::Unreachable { .. }
            | StoreError::LeaseEnds { .. } => Self::Unavailable,
            StoreError::Held { .. }
            | StoreError::Format { .. }
            | StoreError::Damaged { .. }
            | StoreError::Refused { .. }
            | StoreError::Failed { .. } => Self::Internal,
        }
    }
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
    /// An error without a code.
    pub fn msg(text: impl fmt::Display) -> Self {
        Self::of(None, Text(text.to_string()))
    }

    /// There is no such thing.
    pub fn unknown(text: impl fmt::Display) -> Self {
        Self::with_code(FaultCode::Unknown, text)
    }

    /// The present state does not allow it.
    pub fn conflict(text: impl fmt::Display) -> Self {
        Self::with_code(FaultCode::Conflict, text)
    }

    /// The request is invalid.
    pub fn invalid(text: impl fmt::Display) -> Self {
        Self::with_code(FaultCode::Invalid, text)
    }

    /// The caller lacks the permission.
    pub fn forbidden(text: impl fmt::Display) -> Self {
        Self::with_code(FaultCode::Forbidden, text)
    }

    /// There is no capacity now, or a required service is unavailable.
    pub fn unavailable(text: impl fmt::Display) -> Self {
        Self::with_code(FaultCode::Unavailable, text)
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

    /// Names the field or parameter at fault; a nested field has a dotted path.
    #[must_use]
    pub fn at(mut self, field: impl Into<String>) -> Self {
        self.0.field = Some(field.into());
        self
    }

    /// Sets when the same call may succeed, in milliseconds from now.
    #[must_use]
    pub fn after(mut self, retry_after_ms: u64) -> Self {
        self.0.retry_after_ms = Some(retry_after_ms);
        self
    }

    /// Adds the context of the error.
    #[must_use]
    pub fn context(mut self, doing: impl Into<String>) -> Self {
        self.0.contexts.push(doing.into());
        self
    }

    /// The code, if one was set.
    pub fn code(&self) -> Option<FaultCode> {
        self.0.code
    }

    /// The field or parameter at fault.
    pub fn field(&self) -> Option<&str> {
        self.0.field.as_deref()
    }

    /// The time until the same call may succeed, in milliseconds from now, if it is known.
    pub fn retry_after_ms(&self) -> Option<u64> {
        self.0.retry_after_ms
    }

    /// The cause, if it has this type.
    pub fn downcast_ref<E: Error + 'static>(&self) -> Option<&E> {
        self.causes().find_map(<dyn Error>::downcast_ref)
    }

    /// True when the cause has this type.
    pub fn is<E: Error + 'static>(&self) -> bool {
        self.downcast_ref::<E>().is_some()
    }

    /// The cause, and its own causes.
    fn causes(&self) -> impl Iterator<Item = &(dyn Error + 'static)> {
        let first: &(dyn Error + 'static) = &*self.0.cause;
        std::iter::successors(Some(first), |&cause| cause.source())
    }

    fn of(code: Option<FaultCode>, cause: impl Into<Cause>) -> Self {
        let (field, retry_after_ms, contexts) = (None, None, Vec::new());
        Self(Box::new(Inner { code, field, retry_after_ms, contexts, cause: cause.into() }))
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for Fault {
    fn from(error: E) -> Self {
        let cause: &(dyn Error + 'static) = &error;
        let of_store = cause.downcast_ref::<StoreError>().map(FaultCode::from);
        let code = of_store.or_else(|| cause.downcast_ref().and_then(FaultCode::of_system));
        Self::of(code, error)
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
        let mut before = cause.to_string();
        for cause in self.causes().skip(1) {
            let text = cause.to_string();
            // Some errors have the words of their cause in their own; said once more, they would be noise.
            if !before.contains(&format!(": {text}")) {
                write!(f, ": {text}")?;
            }
            before = text;
        }
        Ok(())
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:#}")
    }
}

/// A [`Fault`] in transit to another process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum FaultWire {
    /// An error without a code. Earlier versions write and read every error in this form, which makes a refusal of
    /// another version a sentence on both sides.
    Text(String),
    /// An error with its code.
    Coded {
        /// The code that a caller can act on.
        code: FaultCode,
        /// The error, with its remedy.
        text: String,
        /// The field or parameter at fault.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        field: Option<String>,
        /// The time until the same call may succeed, in milliseconds from now.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after_ms: Option<u64>,
    },
}

impl From<&Fault> for FaultWire {
    fn from(fault: &Fault) -> Self {
        let text = format!("{fault:#}");
        let Inner { code, field, retry_after_ms, .. } = &*fault.0;
        match *code {
            Some(code) => Self::Coded { code, text, field: field.clone(), retry_after_ms: *retry_after_ms },
            None => Self::Text(text),
        }
    }
}

impl From<FaultWire> for Fault {
    fn from(wire: FaultWire) -> Self {
        match wire {
            FaultWire::Text(text) => Self::msg(text),
            FaultWire::Coded { code, text, field, retry_after_ms } => {
                let mut fault = Self::with_code(code, text);
                (fault.0.field, fault.0.retry_after_ms) = (field, retry_after_ms);
                fault
            }
        }
    }
}

/// Adds the context to an error, or names an absent value.
pub trait Context<T>: Sized {
    /// With a given text, and no code.
    ///
    /// # Errors
    /// The error, or a new one for [`None`].
    fn context(self, doing: impl Into<String>) -> Result<T>;

    /// With a lazily made text, and no code.
    ///
    /// # Errors
    /// The error, or a new one for [`None`].
    fn with_context<D: Into<String>>(self, doing: impl FnOnce() -> D) -> Result<T>;

    /// With a code, unless the error has one.
    ///
    /// # Errors
    /// The error, or a new one for [`None`].
    fn or_code<D: Into<String>>(self, code: FaultCode, doing: impl FnOnce() -> D) -> Result<T> {
        self.with_context(doing).map_err(|fault| fault.or_code(code))
    }

    /// The caller is at fault: its file, value or repository is unusable.
    ///
    /// # Errors
    /// As [`Context::or_code`].
    fn or_invalid<D: Into<String>>(self, doing: impl FnOnce() -> D) -> Result<T> {
        self.or_code(FaultCode::Invalid, doing)
    }

    /// There is no such thing.
    ///
    /// # Errors
    /// As [`Context::or_code`].
    fn or_unknown<D: Into<String>>(self, doing: impl FnOnce() -> D) -> Result<T> {
        self.or_code(FaultCode::Unknown, doing)
    }

    /// Longhaul or its data is at fault: stored data is damaged, or missing.
    ///
    /// # Errors
    /// As [`Context::or_code`].
    fn or_internal<D: Into<String>>(self, doing: impl FnOnce() -> D) -> Result<T> {
        self.or_code(FaultCode::Internal, doing)
    }
}

impl<T, E: Into<Fault>> Context<T> for std::result::Result<T, E> {
    fn context(self, doing: impl Into<String>) -> Result<T> {
        self.map_err(|error| error.into().context(doing))
    }

    fn with_context<D: Into<String>>(self, doing: impl FnOnce() -> D) -> Result<T> {
        self.map_err(|error| error.into().context(doing()))
    }
}

impl<T> Context<T> for Option<T> {
    fn context(self, doing: impl Into<String>) -> Result<T> {
        self.with_context(|| doing)
    }

    fn with_context<D: Into<String>>(self, doing: impl FnOnce() -> D) -> Result<T> {
        self.ok_or_else(|| {
            let missing: String = doing().into();
            Fault::msg(missing)
        })
    }
}

/// Returns with a [`Fault`]: a text, as [`format!`] takes it, refuses the request ([`FaultCode::Invalid`]), and an
/// error keeps its code or has none.
#[macro_export]
macro_rules! bail {
    ($text:literal $($arguments:tt)*) => {
        return Err($crate::fault::Fault::invalid(format_args!($text $($arguments)*)))
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
        Err(io::Error::other("disk"))?
    }

    #[test]
    fn a_fault_shows_its_outermost_sentence_or_all_of_them() {
        let fault = refused().context("read it").with_context(|| "begin").unwrap_err();
        assert_eq!(fault.to_string(), "begin");
        assert_eq!(format!("{fault:#}"), "begin: read it: `a` is unknown");
        assert_eq!(None::<u8>.context("nothing is there").unwrap_err().to_string(), "nothing is there");
    }

    /// An error of a library that tells its cause itself, as one that a file cannot be read.
    #[derive(Debug, thiserror::Error)]
    #[error("cannot read `a`: {source}; look for it")]
    struct Telling {
        source: io::Error,
    }

    #[test]
    fn a_cause_that_an_error_tells_itself_is_told_once() {
        let fault = Fault::from(Telling { source: io::Error::other("disk") }).context("begin");
        assert_eq!(format!("{fault:#}"), "begin: cannot read `a`: disk; look for it");
    }

    #[test]
    fn a_fault_keeps_its_cause_and_its_first_code() {
        let fault = failed().context("read it").unwrap_err();
        assert!(fault.is::<io::Error>() && !fault.is::<StoreError>());
        let fault = Fault::conflict("it runs").context("begin").or_code(FaultCode::Internal).at("run.id");
        assert_eq!((fault.code(), fault.field()), (Some(FaultCode::Conflict), Some("run.id")));
    }

    #[test]
    fn a_refusal_is_invalid_and_another_error_has_the_code_that_is_said_of_it_or_none() {
        use FaultCode::{Internal, Invalid, Unavailable, Unknown};
        let full = || Err::<(), _>(StoreError::Full { path: "d".into() });
        for (what, result, expected) in [
            ("a text", refused(), Some(Invalid)),
            ("a foreign error", failed(), None),
            ("with context", failed().context("read it"), None),
            ("of the caller", failed().or_invalid(|| "read it"), Some(Invalid)),
            ("of ours", failed().or_internal(|| "it is damaged"), Some(Internal)),
            ("nothing", None.context("it is missing"), None),
            ("no such thing", None.or_unknown(|| "there is no `a`"), Some(Unknown)),
            ("the first code stays", refused().or_internal(|| "begin"), Some(Invalid)),
            ("a full store", full().or_invalid(|| "keep it"), Some(Unavailable)),
            ("a full disk", Err(io::Error::from(io::ErrorKind::StorageFull)).or_invalid(|| "w"), Some(Unavailable)),
        ] {
            assert_eq!(result.expect_err(what).code(), expected, "{what}");
        }
    }

    #[track_caller]
    fn crosses(fault: &Fault, written: &str) {
        let wire = serde_json::to_string(&FaultWire::from(fault)).expect("it is written");
        assert_eq!(wire, written);
        let read: FaultWire = serde_json::from_str(&wire).expect("it is read");
        let same = Fault::from(read);
        assert_eq!(format!("{same:#}"), format!("{fault:#}"));
        assert_eq!(
            (same.code(), same.field(), same.retry_after_ms()),
            (fault.code(), fault.field(), fault.retry_after_ms())
        );
    }

    #[test]
    fn a_fault_is_the_same_in_another_process_and_one_without_a_code_is_a_text_as_in_earlier_versions() {
        crosses(&Fault::conflict("it runs").context("begin"), r#"{"code":"conflict","text":"begin: it runs"}"#);
        crosses(
            &Fault::invalid("it is 0").at("limits.timeout_ms"),
            r#"{"code":"invalid","text":"it is 0","field":"limits.timeout_ms"}"#,
        );
        crosses(
            &Fault::unavailable("it is not there").after(1_500),
            r#"{"code":"unavailable","text":"it is not there","retry_after_ms":1500}"#,
        );
        crosses(&failed().unwrap_err(), r#""disk""#);
    }

    #[test]
    fn the_codes_have_the_names_that_stand_in_answers() {
        let names = serde_json::to_string(&FaultCode::ALL).expect("they are written");
        let expected = r#"["unknown","conflict","invalid","changed","forbidden","unavailable","internal"]"#;
        assert_eq!(names, expected);
    }
}
