//! The two logs in use: one takes groups, the rows of the other are written into the database meanwhile.
//!
//! The logs change turns when one is full, and at rest. A log is used again only when the database has its rows, so two
//! always suffice; a writer that is faster than the database waits here. Where the disk is full, the rows stay in the
//! log and in memory, and can be read.

use crate::log::{self, Log, Record, Token, random};
use crate::shared::{Left, Shared};
use longhaul_core::store::StoreError;
use std::sync::Arc;
use std::thread::JoinHandle;

/// The logs of an open store.
pub(crate) struct Logs {
    shared: Arc<Shared>,
    active: Log,
    /// The index of the active log's file.
    index: usize,
    lower: Lower,
    /// The length of a log above which the other takes its turn, in bytes.
    bytes_max: u64,
}

/// The rows of the log that takes no groups.
enum Lower {
    /// All of them are in the database.
    Stored,
    /// They wait to be written into the database, under this token.
    Waiting(Token),
    /// A thread writes them into the database.
    Folding(Token, JoinHandle<Result<(), StoreError>>),
}

impl Logs {
    /// Makes the first log of an opening.
    pub(crate) fn begin(shared: &Arc<Shared>, bytes_max: u64) -> Result<Self, StoreError> {
        let io = |why| shared.home().io(&why);
        let before = random().map_err(io)?;
        // The log is there before the database says so.
        let active = Log::start(&log::path(shared.home().dir(), 0), before).map_err(io)?;
        shared.begin_logs(before)?;
        Ok(Self { shared: Arc::clone(shared), active, index: 0, lower: Lower::Stored, bytes_max })
    }

    /// Goes on with the logs of an earlier process.
    pub(crate) fn resume(shared: &Arc<Shared>, left: Left, bytes_max: u64) -> Self {
        let lower = left.lower.map_or(Lower::Stored, Lower::Waiting);
        Self { shared: Arc::clone(shared), active: left.log, index: left.index, lower, bytes_max }
    }

    /// Makes room for a group in the active log.
    pub(crate) fn make_room(&mut self, records: &[&Record]) -> Result<(), StoreError> {
        if self.active.end() + log::room(records) <= self.bytes_max {
            return Ok(());
        }
        self.finish_fold()?;
        self.turn()?;
        self.start_fold();
        Ok(())
    }

    /// Writes a group to the active log, and returns when it is durable.
    pub(crate) fn append(&mut self, records: &[&Record]) -> std::io::Result<()> {
        self.active.append(records)
    }

    /// Writes all rows into the database; true when there were some.
    pub(crate) fn settle(&mut self) -> Result<bool, StoreError> {
        let had_lower = self.finish_fold()?;
        if !self.shared.recent.has_upper() {
            return Ok(had_lower);
        }
        self.turn()?;
        self.finish_fold()
    }

    /// Writes all rows into the database, and removes the files.
    pub(crate) fn end(mut self) -> Result<(), StoreError> {
        self.settle()?;
        self.shared.end_logs()?;
        log::remove(self.shared.home().dir()).map_err(|why| self.shared.home().io(&why))
    }

    /// Starts the other log, whose rows must be in the database.
    fn turn(&mut self) -> Result<(), StoreError> {
        let other = 1 - self.index;
        let before = self.active.token();
        let path = log::path(self.shared.home().dir(), other);
        self.active = Log::start(&path, before).map_err(|why| self.shared.home().io(&why))?;
        self.index = other;
        self.shared.recent.freeze();
        self.lower = Lower::Waiting(before);
        Ok(())
    }

    /// Lets a thread write the lower rows into the database.
    fn start_fold(&mut self) {
        if let Lower::Waiting(token) = self.lower {
            let shared = Arc::clone(&self.shared);
            let thread = std::thread::Builder::new().name("longhaul-fold".to_owned());
            match thread.spawn(move || shared.fold(token)) {
                Ok(thread) => self.lower = Lower::Folding(token, thread),
                Err(why) => tracing::warn!(error = %why, "no thread for the rows of a log; they are written later"),
            }
        }
    }

    /// Waits until the lower rows are in the database, or writes them; true when there were some.
    fn finish_fold(&mut self) -> Result<bool, StoreError> {
        let token = match std::mem::replace(&mut self.lower, Lower::Stored) {
            Lower::Stored => return Ok(false),
            Lower::Waiting(token) => token,
            Lower::Folding(token, thread) => match thread.join() {
                Ok(Ok(())) => return Ok(true),
                // The cause may be gone: a disk that was full, for example.
                Ok(Err(_)) | Err(_) => token,
            },
        };
        let folded = self.shared.fold(token);
        if folded.is_err() {
            self.lower = Lower::Waiting(token);
        }
        folded.map(|()| true)
    }
}
