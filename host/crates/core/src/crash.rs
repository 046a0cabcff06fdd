//! Points at which a crash test ends the process.
//!
//! A crate that writes durable data names such points and calls a hook at each of them. It does not know the hook,
//! which returns nothing: outside of crash tests there is none.

use std::sync::Arc;

/// A hook that tests set: it is called with the name of a point that is reached, for example `store.before-commit`.
pub type CrashHook = Arc<dyn Fn(&'static str) + Send + Sync>;
