//! `builtin:browser`: a headless Chromium that an agent opens pages with.
//!
//! Each task that calls it has a browser of its own, with an empty profile, in the sandbox of native checks: no
//! network, no files of people, its own processes. Its only way out is a socket to the host, behind which is the
//! proxy of the egress guard; so what a switch of the browser forgets, the kernel still refuses. It is driven through a
//! pipe and listens nowhere. Refuses addresses that are not http or https, downloads, windows that a page opens,
//! dialogs, and to run where the system has no network namespaces. It outlives neither its task's rest nor the host,
//! and a page is not opened again by itself: who finds it gone is told to open it.

mod child;
mod environment;
mod error;
mod page;
mod pipe;
mod process;
mod program;
mod session;
mod settings;
mod tool;

pub use child::browser_child;
pub use environment::BrowserEnvironment;
pub use error::BrowserError;
pub use settings::BrowserSettings;
pub use tool::Browser;
