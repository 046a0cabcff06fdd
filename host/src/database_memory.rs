//! The memory of a data directory: the database that has its state, and the newest commit that it saw there.
//!
//! The file `state.postgres` has it. The commit is written when the database is taken into use, every few seconds while
//! it is used, and when it is closed in order. A process that is killed leaves one that is some seconds old, so a loss
//! of the commits since then is not noticed. Refuses to judge what it remembers: `commit_loss.rs` of `longhaul-records`
//! does.

use longhaul_core::fault::{self, Context as _};
use longhaul_home::{Home, text_file};
use longhaul_postgres::{CommitCount, PostgresConfig};
use longhaul_records::commit_loss::SeenCommit;
use serde_json::{Value, json};
use std::io::ErrorKind;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

/// The file by which a data directory remembers the database that has its state.
pub(crate) const DATABASE_FILE: &str = "state.postgres";

/// Bytes of that file.
const DATABASE_FILE_BYTES_MAX: u64 = 16 << 10;

/// The time between two looks at the number of commits. Each write of the file reaches the disk.
const WRITE_EVERY: Duration = Duration::from_secs(5);

/// The database that a data directory remembers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DatabaseMemory {
    pub(crate) url: String,
    pub(crate) address: String,
    pub(crate) schema: String,
    /// None after a migration, until the database is taken into use.
    pub(crate) seen: Option<SeenCommit>,
}

impl DatabaseMemory {
    /// The memory of a database of which nothing was seen yet.
    pub(crate) fn of(config: &PostgresConfig) -> Self {
        // The settings were checked, so there is no password in the address.
        Self { url: config.url.clone(), address: config.address(), schema: config.schema.clone(), seen: None }
    }

    /// The memory of a data directory, if it has one.
    pub(crate) fn read(home: &Home) -> fault::Result<Option<Self>> {
        let path = home.path().join(DATABASE_FILE);
        let text = match text_file::read(&path, DATABASE_FILE_BYTES_MAX) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            read => read.with_context(|| format!("cannot read `{}`", path.display()))?,
        };
        let damaged = || {
            format!("`{}` is damaged; write its database into [store] of server.toml, and remove it", path.display())
        };
        let written: Value = serde_json::from_str(&text).or_invalid(damaged)?;
        Ok(Some(Self::from_json(&written).or_invalid(damaged)?))
    }

    fn from_json(written: &Value) -> Option<Self> {
        let field = |name: &str| written[name].as_str().map(str::to_owned);
        let seen = serde_json::from_value(written["seen"].clone()).ok()?;
        Some(Self { url: field("url")?, address: field("address")?, schema: field("schema")?, seen })
    }

    /// True when it is of the database that the settings name.
    pub(crate) fn is_of(&self, config: &PostgresConfig) -> bool {
        self.url == config.url && self.schema == config.schema
    }

    /// Writes the file, unless it is `known` to have this.
    pub(crate) fn write(&self, home: &Home, known: Option<&Self>) -> fault::Result<()> {
        if known == Some(self) {
            return Ok(());
        }
        let Self { url, address, schema, seen } = self;
        let written = json!({ "url": url, "address": address, "schema": schema, "seen": seen });
        home.write_whole(DATABASE_FILE, &written.to_string())
    }
}

/// Keeps the commit in the memory up to date. It is dropped after the store, and writes the last commit then.
pub(crate) struct MemoryKeeper {
    /// None only while this is dropped.
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl MemoryKeeper {
    /// Begins with a memory that was written, of the history with this id.
    pub(crate) fn start(
        home: &Home,
        memory: DatabaseMemory,
        history: String,
        commits: CommitCount,
    ) -> fault::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let (home, mut memory) = (home.clone(), memory);
        let keep = move || loop {
            // The sender is dropped and sends nothing.
            let is_last = stopped.recv_timeout(WRITE_EVERY) != Err(RecvTimeoutError::Timeout);
            let seen = SeenCommit { history: history.clone(), commits: commits.get() };
            let now = DatabaseMemory { seen: Some(seen), ..memory.clone() };
            match now.write(&home, Some(&memory)) {
                Ok(()) => memory = now,
                Err(error) => tracing::warn!("the newest commit of the database is not remembered: {error:#}"),
            }
            if is_last {
                return;
            }
        };
        let named = std::thread::Builder::new().name("longhaul-memory".to_owned());
        let thread = named.spawn(keep).context("cannot start a thread")?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for MemoryKeeper {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // Its panic was told where it happened.
            let _ = thread.join();
        }
    }
}
