//! The plugin's log: bounded in lines and in bytes a line. Longer lines are cut, further ones dropped and counted.

use longhaul_core::Limits;
use longhaul_core::text::truncate;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// `trace`, `debug`, `info`, `warn`, `error`, or `stdout` and `stderr` for what was printed.
    pub level: String,
    /// The text, cut at `log_entry_bytes_max`.
    pub text: String,
}

#[derive(Debug, Default)]
struct LogLines {
    lines: Vec<LogLine>,
    dropped: u64,
}

/// The log of one invocation; clones share it.
#[derive(Clone, Debug)]
pub struct LogBook {
    book: Arc<Mutex<LogLines>>,
    entries_max: usize,
    pub(crate) entry_bytes_max: usize,
}

impl LogBook {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            book: Arc::default(),
            entries_max: limits.log_entries_max as usize,
            entry_bytes_max: limits.log_entry_bytes_max as usize,
        }
    }

    pub(crate) fn write(&self, level: &str, text: &str) {
        let mut book = self.lock();
        if book.lines.len() >= self.entries_max {
            book.dropped += 1;
        } else {
            book.lines.push(LogLine { level: level.to_owned(), text: truncate(text, self.entry_bytes_max) });
        }
    }

    /// The kept lines, and the number of dropped ones.
    #[must_use]
    pub fn take(&self) -> (Vec<LogLine>, u64) {
        let mut book = self.lock();
        (std::mem::take(&mut book.lines), std::mem::take(&mut book.dropped))
    }

    fn lock(&self) -> MutexGuard<'_, LogLines> {
        // A panic while holding it leaves a valid book.
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_cut_in_length_and_counted_in_number() {
        let log = LogBook::new(&Limits { log_entries_max: 2, log_entry_bytes_max: 4, ..Limits::default() });
        for _ in 0..5 {
            log.write("info", "123456");
        }
        let (lines, dropped) = log.take();
        assert_eq!((lines.len(), dropped), (2, 3));
        assert_eq!(lines[0].text, "1234…[truncated 2 bytes]");
    }
}
