//! Points at which a crash test ends this process with SIGKILL.
//!
//! `LONGHAUL_CRASH_AT=NAME:N` kills at the N-th time that point NAME is reached; `LONGHAUL_CRASH_LOG=FILE`
//! writes a line for each point that is reached, so that a test can enumerate them. Without these two
//! variables a point costs one look at an empty option.

use longhaul_core::crash::CrashHook;
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

/// The points of this process.
#[derive(Clone, Default)]
pub struct CrashPoints(Option<Arc<Inner>>);

struct Inner {
    at: Option<(String, u32)>,
    log: Option<Mutex<File>>,
    reached: Mutex<HashMap<String, u32>>,
}

impl CrashPoints {
    /// The crash points that the environment sets.
    pub fn from_environment() -> Self {
        let at = std::env::var("LONGHAUL_CRASH_AT").ok().and_then(|text| {
            let (name, count) = text.rsplit_once(':')?;
            Some((name.to_owned(), count.parse().ok()?))
        });
        let log = std::env::var_os("LONGHAUL_CRASH_LOG")
            .and_then(|path| OpenOptions::new().create(true).append(true).open(path).ok())
            .map(Mutex::new);
        if at.is_none() && log.is_none() {
            return Self(None);
        }
        Self(Some(Arc::new(Inner { at, log, reached: Mutex::default() })))
    }

    /// Reports that a point is reached.
    pub fn reach(&self, name: &str) {
        if let Some(inner) = &self.0 {
            inner.reach(name);
        }
    }

    /// The same as a function, for crates that do not know this type.
    pub fn hook(&self) -> Option<CrashHook> {
        let points = self.clone();
        points.0.is_some().then(|| -> CrashHook { Arc::new(move |name| points.reach(name)) })
    }
}

impl Inner {
    fn reach(&self, name: &str) {
        let count = {
            let mut reached = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
            let count = reached.entry(name.to_owned()).or_default();
            *count += 1;
            *count
        };
        if let Some(log) = &self.log {
            let _ = writeln!(log.lock().unwrap_or_else(PoisonError::into_inner), "{name}:{count}");
        }
        if self.at.as_ref().is_some_and(|(at, n)| at == name && *n == count) {
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        }
    }
}
