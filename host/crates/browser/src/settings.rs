//! `[tools.NAME.settings]` of `longhaul.toml`.

use crate::error::BrowserError;
use serde::Deserialize;
use serde_json::Value;
use std::path::PathBuf;

/// The operator's settings of the browser.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BrowserSettings {
    /// The program, a full path. Default: Chromium or Chrome by their usual names in PATH.
    pub program: Option<PathBuf>,
    /// Bytes of text in one answer. Default 32 768, at most 262 144. `offset` reads further parts.
    pub text_bytes_max: usize,
    /// Time for a page to load, in milliseconds. Default 20 000. Afterwards the present content is read.
    pub load_ms_max: u64,
    /// Time of one call, the start of the browser included, in milliseconds. Default 60 000. Beyond it the browser is
    /// ended.
    pub call_ms_max: u64,
    /// Idle time after which a browser is ended, in milliseconds. Default 300 000.
    pub idle_ms_max: u64,
    /// Lifetime after which a browser is ended, in milliseconds. Default 3 600 000.
    pub wall_ms_max: u64,
    /// Parallel browsers of one session of a run, or of all tasks of an ask. Default 2. A further one ends the one that
    /// was idle longest, or waits for it.
    pub browsers_max: usize,
    /// Bytes that one browser may send and receive. Default 256 MiB.
    pub traffic_bytes_max: u64,
    /// Private memory of all processes of one browser, in bytes. Default 2 GiB. Checked four times a second; beyond it
    /// the browser is ended. No single process gets more either.
    pub memory_bytes_max: u64,
    /// Processes of one browser; its threads too, except for root. Default 512.
    pub processes_max: u64,
    /// Bytes that the disk may lose while a browser runs, to any process. Default 1 GiB. Checked each half second.
    pub disk_bytes_max: u64,
}

impl Default for BrowserSettings {
    fn default() -> Self {
        Self {
            program: None,
            text_bytes_max: 32 << 10,
            load_ms_max: 20_000,
            call_ms_max: 60_000,
            idle_ms_max: 300_000,
            wall_ms_max: 3_600_000,
            browsers_max: 2,
            traffic_bytes_max: 256 << 20,
            memory_bytes_max: 2 << 30,
            processes_max: 512,
            disk_bytes_max: 1 << 30,
        }
    }
}

impl BrowserSettings {
    /// Reads settings strictly.
    ///
    /// # Errors
    /// Their faults.
    pub fn read(settings: &Value) -> Result<Self, BrowserError> {
        let wrong = |why: String| BrowserError::Settings { why };
        let read: Self = serde_json::from_value(settings.clone()).map_err(|error| wrong(error.to_string()))?;
        if let Some(program) = read.program.as_ref().filter(|program| !program.is_absolute()) {
            return Err(wrong(format!("`program` is no full path: `{}`", program.display())));
        }
        if read.browsers_max == 0 {
            return Err(wrong("`browsers_max` is 0; remove the tool instead".to_owned()));
        }
        if !(1_024..=262_144).contains(&read.text_bytes_max) {
            return Err(wrong(format!("`text_bytes_max` is {}; take 1 024 to 262 144", read.text_bytes_max)));
        }
        Ok(read)
    }
}
