//! The open database: readers and the writer share it, and it is opened again after an error or a panic.
//!
//! redb panics over some damaged files, and where one of its own checks fails. Which of the two it was, its panic does
//! not say. So after a panic the file is opened afresh and all of it is compared with its checksums. This module calls
//! nothing damaged before that, and does not open again in this process what was found damaged.

use crate::disk::{Home, guarded};
use longhaul_core::store::StoreError;
use redb::Database;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The database of a data directory.
pub(crate) struct OpenDatabase {
    /// Dropped before `home`, which has the lock of the directory.
    state: RwLock<State>,
    pub(crate) home: Home,
}

struct State {
    /// The database, or the reason why there is none.
    db: Result<Database, StoreError>,
    /// The number of times that it was closed. A caller that met an error compares it, so that of several callers with
    /// the same error one opens the database again.
    opening: u64,
}

impl OpenDatabase {
    pub(crate) fn open(home: Home) -> Result<Self, StoreError> {
        let state = RwLock::new(State { db: Ok(home.open()?), opening: 0 });
        Ok(Self { state, home })
    }

    /// Runs `what` with the database. Nothing of it may be kept: an open read pins pages.
    pub(crate) fn with<T>(&self, what: impl FnOnce(&Database) -> Result<T, redb::Error>) -> Result<T, StoreError> {
        let state = self.read();
        let db = state.db.as_ref().map_err(Clone::clone)?;
        let opening = state.opening;
        let outcome = guarded(|| what(db));
        drop(state);
        let doubt = match outcome {
            Ok(Ok(done)) => return Ok(done),
            // redb reports the first also of state in memory that a failed commit left, the second after a panic.
            Ok(Err(why @ (redb::Error::Corrupted(_) | redb::Error::LockPoisoned(_)))) => why.to_string(),
            Ok(Err(why)) => return Err(self.home.error(why)),
            Err(panic) => panic,
        };
        Err(self.check(opening, &doubt))
    }

    /// The number of the present opening, after another try to open the database if that failed before.
    pub(crate) fn ready(&self) -> Result<u64, StoreError> {
        let state = self.read();
        let opening = state.opening;
        match &state.db {
            Ok(_) => return Ok(opening),
            // A plain opening would trust what the check refused.
            Err(why @ StoreError::Damaged { .. }) => return Err(why.clone()),
            Err(_) => {}
        }
        drop(state);
        self.reopen(opening)
    }

    /// Opens the database again after an error, unless that was done since `opening`; returns the number of the present
    /// opening.
    pub(crate) fn reopen(&self, opening: u64) -> Result<u64, StoreError> {
        let mut state = self.write();
        if state.opening == opening {
            self.discard(&mut state);
            state.db = self.home.open();
        }
        state.db.as_ref().map(|_| state.opening).map_err(Clone::clone)
    }

    /// Closes the database, which makes it quick to open.
    pub(crate) fn close(&self) {
        self.discard(&mut self.write());
    }

    /// Opens the database again with a check of the whole file; returns the error for the call that gave the doubt.
    fn check(&self, opening: u64, doubt: &str) -> StoreError {
        let mut state = self.write();
        if state.opening == opening {
            tracing::error!(%doubt, "the store stopped; checking its file");
            self.discard(&mut state);
            state.db = self.home.open_checked(doubt);
            match &state.db {
                Ok(_) => tracing::warn!("the file of the store is whole; going on with it"),
                Err(why) => tracing::error!(error = %why, "the store cannot go on"),
            }
        }
        match &state.db {
            Ok(_) => {
                self.home.failed(format!("it stopped ({doubt}), and its file was checked and is whole; try this again"))
            }
            Err(why) => why.clone(),
        }
    }

    fn discard(&self, state: &mut State) {
        let closed = Err(self.home.failed("it was closed"));
        let db = std::mem::replace(&mut state.db, closed);
        state.opening += 1;
        // redb may panic here too after a panic; committed rows are in the file.
        if guarded(|| drop(db)).is_err() {
            tracing::warn!("the store could not be closed in order; its next opening reads the whole file");
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}
