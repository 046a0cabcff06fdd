//! Changes of rows that several processes write: read, change, and commit on the condition that the rows are still as
//! they were read.
//!
//! The store decides about the condition, so a lock within one process saves attempts at most. A writer that was
//! overtaken reads again, after a pause of random length. This module refuses to try for ever.

use longhaul_core::fault::{self, Context as _, Fault};
use longhaul_core::store::{Batch, Store, StoreError, Table};
use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

/// Attempts at one change. Each one that fails is another writer's that did not, so 64 writers that begin at once are
/// through by then, even without the pauses.
const ATTEMPTS_MAX: u32 = 64;

/// The longest pause grows by this with each attempt, up to the second value: all attempts take some 3 s on average.
const PAUSE_STEP_MS: u64 = 4;
const PAUSE_MS_MAX: u64 = 100;

/// Commits the batch of `stage`, which it makes anew from what is stored whenever a condition in it does not hold. A
/// batch without changes is not committed. Returns the second value of `stage`.
///
/// # Errors
/// The error of `stage`, or of the store; its conflict, when other writers were faster each time.
pub async fn change<T>(store: &dyn Store, mut stage: impl FnMut() -> fault::Result<(Batch, T)>) -> fault::Result<T> {
    let mut attempts = ChangeAttempts::default();
    loop {
        let (batch, outcome) = stage()?;
        if batch.is_empty() {
            return Ok(outcome);
        }
        match store.commit(batch).await {
            Ok(()) => return Ok(outcome),
            Err(error) => attempts.again(error.into()).await?,
        }
    }
}

/// The attempts at one change, for callers that do not commit by [`change`].
#[derive(Debug, Default)]
pub struct ChangeAttempts {
    made: u32,
    /// The table of the conditions that may fail without an error; none: every table.
    table: Option<Table>,
}

impl ChangeAttempts {
    /// Attempts at a batch whose conditions in other tables must hold.
    pub fn in_table(table: Table) -> Self {
        Self { made: 0, table: Some(table) }
    }

    /// Waits until another attempt may be made, after one that failed with this error.
    ///
    /// # Errors
    /// The error, where it is none of a condition, or the attempts are used up.
    pub async fn again(&mut self, why: Fault) -> fault::Result<()> {
        if !self.is_overtaken(&why) {
            return Err(why);
        }
        self.made = self.made.saturating_add(1);
        if self.made >= ATTEMPTS_MAX {
            return Err(why).context(format!("other writers were faster {ATTEMPTS_MAX} times; try again later"));
        }
        tokio::time::sleep(pause(self.made)).await;
        Ok(())
    }

    fn is_overtaken(&self, why: &Fault) -> bool {
        let of = |table: &Table| self.table.is_none_or(|own| own == *table);
        matches!(why.downcast_ref::<StoreError>(), Some(StoreError::Conflict { table, .. }) if of(table))
    }
}

/// A random pause, so that writers which were overtaken together do not meet again.
fn pause(made: u32) -> Duration {
    let max_ms = PAUSE_STEP_MS.saturating_mul(made.into()).min(PAUSE_MS_MAX);
    // Each state has other keys, and its hash is as random as a pause has to be.
    Duration::from_micros(RandomState::new().hash_one(()) % (max_ms * 1_000 + 1))
}

#[cfg(test)]
mod tests;
