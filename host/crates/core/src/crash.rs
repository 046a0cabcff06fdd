//! Points at which a crash test ends the process.
//!
//! A crate that writes durable data names such points and calls a hook at each of them. It does not know the hook,
//! which returns nothing: outside of crash tests there is none.

use std::sync::Arc;

/// Called with the name of a point when it is reached, for example `store.before-commit`.
pub type CrashHook = Arc<dyn Fn(&'static str) + Send + Sync>;
