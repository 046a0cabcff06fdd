//! The state that the writer, the readers and the thread that fills the database share.
//!
//! Every commit of the database is a quick-repair one, so a file that was killed at any moment opens without being
//! read.

use crate::database::OpenDatabase;
use crate::disk::{Home, stored_log};
use crate::log::{self, Found, Token, Unreadable};
use crate::recent::{Layer, Recent};
use crate::tables::{FORMAT, FORMAT_CLOSED, META, META_FORMAT, META_LOG};
use longhaul_core::store::StoreError;
use redb::{Database, WriteTransaction};

pub use longhaul_core::crash::CrashHook;

/// The open store of a data directory.
pub(crate) struct Shared {
    pub(crate) database: OpenDatabase,
    pub(crate) recent: Recent,
    crash_hook: Option<CrashHook>,
}

/// A log of an earlier process, which the writer goes on with.
pub(crate) struct Left {
    pub(crate) log: log::Log,
    pub(crate) index: usize,
    /// The token of the log before, whose rows are the lower layer.
    pub(crate) lower: Option<Token>,
}

impl Shared {
    /// Opens the database, and reads the logs if it was not closed in order.
    pub(crate) fn open(home: Home, crash_hook: Option<CrashHook>) -> Result<(Self, Option<Left>), StoreError> {
        let database = OpenDatabase::open(home)?;
        let home = &database.home;
        let (recent, left) = match database.with(stored_log)? {
            Some(last) => {
                let found = log::find(home.dir(), last).map_err(|why| match why {
                    Unreadable::Io(why) => home.io(&why),
                    Unreadable::Damaged(detail) => home.damaged(detail),
                })?;
                recovered(found)
            }
            None => {
                // A kill between the last commit of a closing and the removal of the logs leaves them.
                log::remove(home.dir()).map_err(|why| home.io(&why))?;
                (Recent::default(), None)
            }
        };
        Ok((Self { database, recent, crash_hook }, left))
    }

    pub(crate) fn home(&self) -> &Home {
        &self.database.home
    }

    /// Runs `what` with the open database. Nothing of it may be kept: an open read pins pages.
    pub(crate) fn with<T>(&self, what: impl FnOnce(&Database) -> Result<T, redb::Error>) -> Result<T, StoreError> {
        self.database.with(what)
    }

    /// Writes the rows of the lower layer into the database, those of the log with this token, and forgets the layer.
    ///
    /// The layer stays after an error, and readers see it as before.
    pub(crate) fn fold(&self, token: Token) -> Result<(), StoreError> {
        let lower = self.recent.lower();
        self.crash_point("store.before-fold");
        self.commit(|transaction| {
            lower.write(transaction)?;
            transaction.open_table(META)?.insert(META_LOG, &token[..])?;
            Ok(())
        })?;
        self.crash_point("store.after-fold");
        self.recent.drop_lower();
        Ok(())
    }

    /// Records that there are logs, of which the first one follows `token`.
    pub(crate) fn begin_logs(&self, token: Token) -> Result<(), StoreError> {
        self.commit(|transaction| {
            let mut meta = transaction.open_table(META)?;
            meta.insert(META_LOG, &token[..])?;
            meta.insert(META_FORMAT, FORMAT.to_string().as_bytes())?;
            Ok(())
        })
    }

    /// Records that there are no logs. All of their rows must be in the database.
    pub(crate) fn end_logs(&self) -> Result<(), StoreError> {
        self.commit(|transaction| {
            let mut meta = transaction.open_table(META)?;
            meta.remove(META_LOG)?;
            meta.insert(META_FORMAT, FORMAT_CLOSED.to_string().as_bytes())?;
            Ok(())
        })
    }

    /// One commit of the database for the store itself.
    pub(crate) fn commit(
        &self,
        what: impl FnOnce(&WriteTransaction) -> Result<(), redb::Error>,
    ) -> Result<(), StoreError> {
        let opening = self.database.ready()?;
        let made = self.with(|db| {
            let mut transaction = db.begin_write()?;
            transaction.set_quick_repair(true);
            what(&transaction)?;
            Ok(transaction.commit()?)
        });
        made.inspect_err(|why| {
            tracing::warn!(error = %why, "a commit of the store's own failed; opening the store again");
            self.recover(opening);
        })
    }

    /// Opens the database again after an error.
    pub(crate) fn recover(&self, opening: u64) {
        // A failure is kept and returned to the next commit, which tries again.
        let _ = self.database.reopen(opening);
    }

    pub(crate) fn crash_point(&self, name: &'static str) {
        if let Some(hook) = &self.crash_hook {
            hook(name);
        }
    }
}

/// The rows of one log, or of two of which the first was being written into the database.
fn recovered(found: Vec<Found>) -> (Recent, Option<Left>) {
    let (mut lower, mut upper, mut left) = (Layer::default(), Layer::default(), None::<Left>);
    for Found { log, layer, index } in found {
        lower = std::mem::replace(&mut upper, layer);
        left = Some(Left { lower: left.map(|before| before.log.token()), log, index });
    }
    (Recent::new(upper, lower), left)
}
