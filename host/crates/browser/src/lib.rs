//! `builtin:browser`: a headless Chromium with which an agent opens pages.
//!
//! Each task that calls it has a browser of its own, with an empty profile, in the sandbox of native checks: no
//! network, no user files, its own processes. Its only connection is a socket to the host, behind which is the proxy of
//! the egress guard; so the kernel refuses traffic that a switch of the browser misses. It is controlled through a pipe
//! and listens nowhere. Refuses addresses that are not http or https, downloads, windows that a page opens, dialogs,
//! and to run without network namespaces. It outlives neither its task's idle time nor the host, and a page is not
//! reopened automatically: the agent is told to open it.

mod child;
mod environment;
mod error;
mod events;
mod page;
mod pipe;
mod process;
mod program;
mod refusals;
mod session;
mod settings;
mod tool;

pub use child::browser_child;
pub use environment::BrowserEnvironment;
pub use error::BrowserError;
pub use settings::BrowserSettings;
pub use tool::Browser;
