//! The reason why a request was not sent, or got no response.

use longhaul_core::text::truncate;
use longhaul_core::{Denial, LimitHit};

/// Bytes of a foreign message that an error repeats.
const TEXT_BYTES_MAX: usize = 500;

/// The reason why a request was not sent, or its response did not arrive. No case repeats an address with its query or
/// a user, where secrets are.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EgressError {
    /// Not granted; carries the line that would grant it.
    #[error(transparent)]
    Denied(Denial),
    /// Refused regardless of grants.
    #[error("{0}")]
    Refused(String),
    /// Not an HTTP address.
    #[error("this is no address of http or https; write it like `https://api.example.com/path`")]
    BadAddress,
    /// A tunnel through a granted host would end at a host that is not.
    #[error("`{0}` is not a method of plain requests; use GET, POST or another one that the grant names")]
    BadMethod(String),
    /// The name has no address, or cannot be resolved.
    #[error("`{host}` has no address: {reason}")]
    Unresolved {
        /// The name.
        host: String,
        /// The resolver's error.
        reason: String,
    },
    /// The name exists and has no address.
    #[error("`{0}` leads to no address")]
    NoAddress(String),
    /// A timeout.
    #[error("given up after {ms} ms: {what}")]
    TimedOut {
        /// The awaited event.
        what: &'static str,
        /// The timeout, in milliseconds.
        ms: u64,
    },
    /// A cap was reached.
    #[error(transparent)]
    Limit(LimitHit),
    /// The response is not what it claims to be.
    #[error("the answer is damaged: {0}")]
    Damaged(String),
    /// No address of the name accepts connections.
    #[error("it cannot be connected to: {0}")]
    Unconnected(String),
    /// The connection failed.
    #[error("{}", innermost(.0))]
    Client(reqwest::Error),
    /// TLS is unavailable.
    #[error("TLS cannot be used on this machine: {0}; install the package of certificate authorities")]
    Tls(String),
}

impl EgressError {
    /// A refusal that no line of `longhaul.toml` lifts.
    #[must_use]
    pub fn refused(text: &str) -> Self {
        Self::Refused(truncate(text, TEXT_BYTES_MAX))
    }

    /// True when the same request may succeed later without anyone changing a file.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Unresolved { .. }
            | Self::NoAddress(_)
            | Self::TimedOut { .. }
            | Self::Unconnected(_)
            | Self::Client(_) => true,
            Self::Denied(_)
            | Self::Refused(_)
            | Self::BadAddress
            | Self::BadMethod(_)
            | Self::Limit(_)
            | Self::Damaged(_)
            | Self::Tls(_) => false,
        }
    }
}

impl From<reqwest::Error> for EgressError {
    /// Without the address, which may hold a secret in its query.
    fn from(error: reqwest::Error) -> Self {
        Self::Client(error.without_url())
    }
}

/// The innermost cause is the most specific.
fn innermost(error: &reqwest::Error) -> String {
    let mut cause: &(dyn std::error::Error + 'static) = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    truncate(&cause.to_string(), TEXT_BYTES_MAX)
}
