//! Points at which a crash test ends this process with SIGKILL.
//!
//! `LONGHAUL_CRASH_AT=NAME:N` kills at the N-th time that point NAME is reached; `LONGHAUL_CRASH_LOG=FILE`
//! writes a line for each point that is reached, so that a test can enumerate them. Without these two
//! variables a point costs one look at an empty option.
//!
//! `LONGHAUL_CRASH_RECEIVER=ADDRESS:PORT` names a receiver on loopback that stands in for every host, and
//! `LONGHAUL_CRASH_MODELS=FILE` a file with a line for each request that a recording of models answered. Both are for
//! `longhaul crashtest`, which counts effects there. This file sends nothing.

use crate::machine::variable;
use longhaul_core::crash::CrashHook;
use longhaul_core::fault::{self, bail};
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// The variable that names the occurrence of a point at which the process ends.
pub const CRASH_AT: &str = "LONGHAUL_CRASH_AT";

/// The variable that names the file of the points that are reached.
pub const CRASH_LOG: &str = "LONGHAUL_CRASH_LOG";

/// The variable that names the receiver which stands in for every host.
pub const CRASH_RECEIVER: &str = "LONGHAUL_CRASH_RECEIVER";

/// The variable that names the file of the requests that a recording of models answered.
pub const CRASH_MODELS: &str = "LONGHAUL_CRASH_MODELS";

/// The receiver that stands in for every host, if the environment names one.
///
/// # Errors
/// It is no address of loopback: requests carry what was meant for others, and leave this machine to nobody else.
pub fn receiver() -> fault::Result<Option<SocketAddr>> {
    variable(CRASH_RECEIVER).map(|text| loopback(&text)).transpose()
}

fn loopback(text: &str) -> fault::Result<SocketAddr> {
    match text.parse::<SocketAddr>() {
        Ok(address) if address.ip().is_loopback() => Ok(address),
        _ => bail!(
            "{CRASH_RECEIVER} is `{text}`, which is no address of this machine; write 127.0.0.1:PORT, or unset it"
        ),
    }
}

/// The file of the requests that a recording of models answered, if the environment names one.
pub fn model_log() -> Option<PathBuf> {
    variable(CRASH_MODELS).map(PathBuf::from)
}

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
        let at = std::env::var(CRASH_AT).ok().and_then(|text| {
            let (name, count) = text.rsplit_once(':')?;
            Some((name.to_owned(), count.parse().ok()?))
        });
        let log = std::env::var_os(CRASH_LOG)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receiver_is_on_loopback_or_refused() {
        assert_eq!(loopback("127.0.0.1:8080").ok(), Some(SocketAddr::from(([127, 0, 0, 1], 8_080))));
        assert!(loopback("[::1]:8080").is_ok());
        for other in ["192.168.0.1:8080", "localhost:8080", "127.0.0.1"] {
            let refused = loopback(other).expect_err(other).to_string();
            assert!(refused.contains("write 127.0.0.1:PORT, or unset it"), "{refused}");
        }
    }
}
