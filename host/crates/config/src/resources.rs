//! `resources.toml` of the data directory: reserved resources, and the limits of child processes.
//!
//! A changed file is read again, so a limit can be changed while the host runs. Refuses a misspelt field: the last
//! valid settings stay, and the log names the fault.

use crate::toml_text;
use longhaul_core::fault::{self, Context, Fault, bail};
use longhaul_core::process_registry::{Child, ChildKind};
use longhaul_resources::admission::RUNS_MAX;
use longhaul_resources::{PartialLimits, Reserve, mb};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// The file of the operator of a data directory.
pub const FILE: &str = "resources.toml";

/// Bytes that are read of it.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ResourceSettings {
    /// The reserve for the rest of the machine when work wants to begin. Default 256 MB, and nothing of graphics cards.
    pub reserve: Reserve,
    /// The most runs that work at once, asks included; the others wait in a queue. Default: four for each core, as far
    /// as the memory of the machine has 256 MB for each of them beside the reserve, and at least 2. From 1 to 10 000.
    #[serde(rename = "runs_max", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub runs_max: Option<u32>,
    /// The time for which a child may use more of the processors than `max_cpu_percent`, in seconds. Default 60.
    #[serde(rename = "busy_s_max")]
    pub busy_s_max: u64,
    /// The limits of a compiler. Default: those of `[compile]`.
    pub compiler: PartialLimits,
    /// The limits of a check, or an agent's program, with all that it starts. Default: four times the memory that each
    /// of its processes may have, and as many processes as its own limit says.
    pub program: PartialLimits,
    /// The limits of a program that lives on between calls, such as a browser.
    pub kept: PartialLimits,
    /// The limits of an MCP server. Default 1,024 MB and 64 processes.
    pub mcp_server: PartialLimits,
    /// The limits of a model on this machine. Default: its own limit.
    pub model: PartialLimits,
}

impl Default for ResourceSettings {
    fn default() -> Self {
        let own = PartialLimits::default();
        let mcp_server = PartialLimits { max_memory_mb: Some(1_024.0), max_processes: Some(64), max_cpu_percent: None };
        let reserve = Reserve::default();
        Self { reserve, runs_max: None, busy_s_max: 60, compiler: own, program: own, kept: own, mcp_server, model: own }
    }
}

impl ResourceSettings {
    /// The settings of a data directory; the defaults without a file.
    ///
    /// # Errors
    /// The file cannot be read, or is invalid.
    pub fn read(home: &Path) -> fault::Result<Self> {
        let path = home.join(FILE);
        let text = match std::fs::metadata(&path) {
            Ok(found) if found.len() > FILE_BYTES_MAX => {
                bail!("`{}` has {} bytes, more than {FILE_BYTES_MAX}", path.display(), found.len())
            }
            Ok(_) => std::fs::read_to_string(&path).or_invalid(|| format!("cannot read `{}`", path.display()))?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(error).or_invalid(|| format!("cannot read `{}`", path.display())),
        };
        Self::parse(&text).or_invalid(|| format!("`{}`", path.display()))
    }

    pub(crate) fn parse(text: &str) -> fault::Result<Self> {
        let read: Self = toml_text::read(text).map_err(Fault::invalid)?;
        match read.runs_max.filter(|max| !(1..=RUNS_MAX).contains(max)) {
            Some(max) => bail!("runs_max is {max}; write a number from 1 to {RUNS_MAX}"),
            None => Ok(read),
        }
    }

    /// The limits of a child: the lower one of these settings and of those that it was started with.
    pub fn rule(&self, child: &Child) -> PartialLimits {
        let named = match child.kind {
            ChildKind::Compiler => self.compiler,
            ChildKind::Program => self.program,
            ChildKind::Kept => self.kept,
            ChildKind::McpServer => self.mcp_server,
            ChildKind::Model => self.model,
        };
        let own = PartialLimits {
            max_memory_mb: child.memory_bytes_max.map(mb),
            max_processes: child.processes_max,
            max_cpu_percent: None,
        };
        named.and(own)
    }
}

/// Settings that are read again when the file changes.
pub struct WatchedSettings {
    home: PathBuf,
    last: Mutex<Last>,
}

struct Last {
    stamp: Option<(SystemTime, u64)>,
    settings: Arc<ResourceSettings>,
    has_read: bool,
}

impl WatchedSettings {
    /// The settings of a data directory. Nothing is read yet.
    pub fn of(home: PathBuf) -> Self {
        let last = Last { stamp: None, settings: Arc::default(), has_read: false };
        Self { home, last: Mutex::new(last) }
    }

    /// The current settings.
    pub fn now(&self) -> Arc<ResourceSettings> {
        let found = std::fs::metadata(self.home.join(FILE)).ok();
        let stamp = found.and_then(|found| Some((found.modified().ok()?, found.len())));
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if !last.has_read || last.stamp != stamp {
            (last.stamp, last.has_read) = (stamp, true);
            match ResourceSettings::read(&self.home) {
                Ok(settings) => last.settings = Arc::new(settings),
                Err(error) => tracing::warn!("the settings of resources stay as they were: {error:#}"),
            }
        }
        Arc::clone(&last.settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_again_when_they_change_and_stay_when_they_are_wrong() {
        let home = tempfile::tempdir().unwrap();
        let watched = WatchedSettings::of(home.path().to_owned());
        assert_eq!(*watched.now(), ResourceSettings::default());
        let write = |text: &str| std::fs::write(home.path().join(FILE), text).unwrap();
        write("[reserve]\nmemory_mb = 5.0\n[mcp-server]\nmax_processes = 3\n");
        let read = watched.now();
        assert!((read.reserve.memory_mb - 5.0).abs() < f64::EPSILON);
        assert_eq!(read.mcp_server, PartialLimits { max_processes: Some(3), ..PartialLimits::default() });
        write("reserved = 1\n");
        assert_eq!(watched.now(), read);
        assert!(ResourceSettings::read(home.path()).unwrap_err().to_string().contains("resources.toml"));
    }

    #[test]
    fn a_number_of_runs_at_which_none_could_work_is_refused() {
        let home = tempfile::tempdir().unwrap();
        for (written, expected) in [("0", None), ("1", Some(1)), ("10000", Some(10_000)), ("10001", None)] {
            std::fs::write(home.path().join(FILE), format!("runs_max = {written}\n")).unwrap();
            match ResourceSettings::read(home.path()) {
                Ok(read) => assert_eq!((read.runs_max, expected.is_some()), (expected, true), "{written}"),
                Err(error) => assert!(expected.is_none() && format!("{error:#}").contains("1 to 10000"), "{error:#}"),
            }
        }
    }

    #[test]
    fn a_child_is_held_to_the_lower_limit() {
        let mut child = Child::new(1, ChildKind::McpServer, "files");
        child.memory_bytes_max = Some(100 << 20);
        let rule = ResourceSettings::default().rule(&child);
        assert_eq!((rule.max_memory_mb, rule.max_processes), (Some(100.0), Some(64)));
    }
}
