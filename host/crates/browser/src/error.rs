//! Why there is no page, or not the one that was asked for.

use longhaul_core::text::truncate;
use longhaul_core::tool::ToolError;
use longhaul_core::{LimitHit, Outage};
use longhaul_egress::EgressError;

/// How much of what a browser or a page said is repeated, in bytes.
pub(crate) const SAID_BYTES_MAX: usize = 300;

/// Why a call did not do what it should.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BrowserError {
    /// Its settings cannot be read.
    #[error("its settings are wrong: {why}")]
    Settings {
        /// What is wrong, and what to do.
        why: String,
    },
    /// No browser is installed.
    #[error("there is no browser: looked for {looked_for}; install Chromium, or set `program` in its settings")]
    NoProgram {
        /// Where.
        looked_for: String,
    },
    /// The system does not let it be confined.
    #[error("the browser was not started, since this system does not give {why}")]
    NoSandbox {
        /// What it does not give, what it said, and what to do.
        why: String,
    },
    /// It did not come up.
    #[error("the browser did not start: {why}")]
    NotStarted {
        /// What was tried, or what it said.
        why: String,
    },
    /// It was there, and is not any more.
    #[error("the browser ended{}: {said}", .limit.map(|name| format!(" at its limit `{name}`")).unwrap_or_default())]
    Ended {
        /// The limit that ended it.
        limit: Option<&'static str>,
        /// What it said last.
        said: String,
    },
    /// Nothing is open.
    #[error(
        "no page is open: a browser is ended with the host, after a rest and at its limits, and nothing of it is kept; \
         call `open` again{}", .last.as_ref().map(|url| format!(" (the last page was {url})")).unwrap_or_default()
    )]
    NotOpen {
        /// What was open last, where that is known.
        last: Option<String>,
    },
    /// Not an address that is opened.
    #[error("`{url}` is not opened: only addresses of http and https are")]
    NotHttp {
        /// The address.
        url: String,
    },
    /// The way there is not open.
    #[error(transparent)]
    Egress(#[from] EgressError),
    /// The page could not be had.
    #[error("`{url}` could not be opened: {why}")]
    NotLoaded {
        /// The address.
        url: String,
        /// What the browser says.
        why: String,
    },
    /// The page has no such element, or it cannot be used like that.
    #[error("{0}")]
    Element(String),
    /// Somebody took too long.
    #[error("given up after {ms} ms: {what}")]
    TimedOut {
        /// What was waited for.
        what: &'static str,
        /// How long.
        ms: u64,
    },
    /// All browsers were at work for as long as a call may take.
    #[error("all {browsers_max} browsers were at work for {ms} ms; try again later, or raise browsers_max")]
    Busy {
        /// How many there may be.
        browsers_max: usize,
        /// How long one was waited for.
        ms: u64,
    },
    /// It answered what nobody understands.
    #[error("the browser answered `{method}` with: {said}")]
    Protocol {
        /// What was asked.
        method: &'static str,
        /// What it said.
        said: String,
    },
    /// A cap was reached.
    #[error(transparent)]
    Limit(LimitHit),
}

impl BrowserError {
    /// What the browser answered, short.
    pub(crate) fn protocol(method: &'static str, said: &str) -> Self {
        Self::Protocol { method, said: truncate(said, SAID_BYTES_MAX) }
    }

    /// True when the browser must not be used any more.
    pub(crate) fn is_fatal(&self) -> bool {
        matches!(self, Self::Ended { .. } | Self::Protocol { .. } | Self::TimedOut { .. })
    }

    /// True when the same call may succeed later without anyone changing a file.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Egress(error) => error.is_retryable(),
            Self::Ended { .. }
            | Self::NotLoaded { .. }
            | Self::TimedOut { .. }
            | Self::NotStarted { .. }
            | Self::Busy { .. } => true,
            Self::Settings { .. }
            | Self::NoProgram { .. }
            | Self::NoSandbox { .. }
            | Self::NotOpen { .. }
            | Self::NotHttp { .. }
            | Self::Element(_)
            | Self::Protocol { .. }
            | Self::Limit(_) => false,
        }
    }
}

impl From<BrowserError> for ToolError {
    fn from(error: BrowserError) -> Self {
        match error {
            BrowserError::Egress(EgressError::Denied(denial)) => Self::Denied(denial),
            BrowserError::Egress(EgressError::Limit(hit)) | BrowserError::Limit(hit) => Self::Limit(hit),
            BrowserError::NotHttp { .. } | BrowserError::Element(_) => Self::InvalidArguments(error.to_string()),
            BrowserError::NoProgram { .. } | BrowserError::NoSandbox { .. } | BrowserError::Busy { .. } => {
                Self::Unavailable(Outage { reason: error.to_string(), retry_after_ms: None })
            }
            BrowserError::TimedOut { ms, .. } => Self::TimedOut(u32::try_from(ms).unwrap_or(u32::MAX)),
            other => Self::Failed(other.to_string()),
        }
    }
}
