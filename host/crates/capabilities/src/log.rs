//! The guest's access to the plugin's log: it yields after each megabyte of lines.

mod book;

pub use book::{LogBook, LogLine};

use crate::ctx::Ctx;
use longhaul_bindings::imports::log;

/// Bytes of lines after which other tasks get the thread, and limits of time are checked.
const YIELD_BYTES: usize = 1 << 20;

impl log::Host for Ctx {
    async fn write(&mut self, level: log::Level, text: String) -> wasmtime::Result<()> {
        let level = match level {
            log::Level::Trace => "trace",
            log::Level::Debug => "debug",
            log::Level::Info => "info",
            log::Level::Warn => "warn",
            log::Level::Error => "error",
        };
        self.log.write(level, &text);
        // A guest yields by its fuel, and one that has megabytes copied uses hardly any.
        self.logged_bytes = self.logged_bytes.saturating_add(text.len());
        if self.logged_bytes >= YIELD_BYTES {
            self.logged_bytes = 0;
            tokio::task::yield_now().await;
        }
        Ok(())
    }
}
