//! The reason why a page is missing or wrong.

use longhaul_core::text::truncate;
use longhaul_core::tool::ToolError;
use longhaul_core::{LimitHit, Outage};
use longhaul_egress::EgressError;

/// Bytes of a browser's or a page's text that an error repeats.
pub(crate) const SAID_BYTES_MAX: usize = 300;

/// The browser's errors for a request to a page that another one replaces at that moment.
const REPLACED: [&str; 4] = [
    "Cannot find context with specified id",
    "Execution context was destroyed",
    "Inspected target navigated or closed",
    "No frame for given id found",
];

/// The reason why a call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BrowserError {
    /// Its settings are invalid.
    #[error("its settings are wrong: {why}")]
    Settings {
        /// The fault and its remedy.
        why: String,
    },
    /// No browser is installed.
    #[error("there is no browser: looked for {looked_for}; install Chromium, or set `program` in its settings")]
    NoProgram {
        /// The searched places.
        looked_for: String,
    },
    /// The system cannot confine it.
    #[error("the browser was not started, since this system does not give {why}")]
    NoSandbox {
        /// The missing feature, the system's error, and the remedy.
        why: String,
    },
    /// It did not start.
    #[error("the browser did not start: {why}")]
    NotStarted {
        /// The attempt, or its output.
        why: String,
    },
    /// It ended.
    #[error("the browser ended{}: {said}", .limit.map(|name| format!(" at its limit `{name}`")).unwrap_or_default())]
    Ended {
        /// The limit that ended it.
        limit: Option<&'static str>,
        /// Its last output.
        said: String,
    },
    /// No page is open.
    #[error(
        "no page is open: a browser is ended with the host, after a rest and at its limits, and nothing of it is kept; \
         call `open` again{}", .last.as_ref().map(|url| format!(" (the last page was {url})")).unwrap_or_default()
    )]
    NotOpen {
        /// The last open address, if it is known.
        last: Option<String>,
    },
    /// The address cannot be opened.
    #[error("`{url}` is not opened: only addresses of http and https are")]
    NotHttp {
        /// The address.
        url: String,
    },
    /// The address cannot be reached.
    #[error(transparent)]
    Egress(#[from] EgressError),
    /// The page could not be loaded.
    #[error("`{url}` could not be opened: {why}")]
    NotLoaded {
        /// The address.
        url: String,
        /// The browser's error.
        why: String,
    },
    /// The page has no such element, or it cannot be used in that way.
    #[error("{0}")]
    Element(String),
    /// A timeout.
    #[error("given up after {ms} ms: {what}")]
    TimedOut {
        /// The awaited event.
        what: &'static str,
        /// The timeout, in milliseconds.
        ms: u64,
    },
    /// All browsers were busy for the whole time of a call.
    #[error("all {browsers_max} browsers were at work for {ms} ms; try again later, or raise browsers_max")]
    Busy {
        /// The maximum number of browsers.
        browsers_max: usize,
        /// The length of the wait, in milliseconds.
        ms: u64,
    },
    /// Its response is invalid.
    #[error("the browser answered `{method}` with: {said}")]
    Protocol {
        /// The called method.
        method: &'static str,
        /// Its response.
        said: String,
    },
    /// A cap was reached.
    #[error(transparent)]
    Limit(LimitHit),
}

impl BrowserError {
    /// The browser's response, shortened.
    pub(crate) fn protocol(method: &'static str, said: &str) -> Self {
        Self::Protocol { method, said: truncate(said, SAID_BYTES_MAX) }
    }

    /// True when the page was replaced before it answered: the new one can be asked.
    pub(crate) fn is_of_a_replaced_page(&self) -> bool {
        matches!(self, Self::Protocol { said, .. } if REPLACED.iter().any(|text| said.contains(text)))
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
