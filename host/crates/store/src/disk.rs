//! The data directory: its lock, the opening of its database, and the meaning of redb's errors.
//!
//! redb trusts a file that was closed in order and may panic on one that was damaged since, so every
//! call of it goes through [`guarded`]. Only redb's own errors at an opening make a file damaged here, and no panic.

use crate::tables::{
    BLOBS, FORMAT, FORMAT_CLOSED, LOCK_FILE, META, META_FORMAT, META_LOG, META_WRITTEN_BY, NEW_FILE, STATE_FILE,
    definition,
};
use longhaul_core::store::{StoreError, Table};
use redb::{Database, ReadableDatabase as _, TableHandle as _};
use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// redb's page cache, in bytes. Its default of 1 GiB is the whole memory of a small machine; the file
/// is in the system's page cache as well.
const CACHE_BYTES: usize = 64 << 20;

/// The files that an opening believes without reading all of them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trust {
    /// Files that were closed in order, or whose last commit was a quick-repair one.
    Closed,
    /// No file is to be trusted before it is checked.
    Nothing,
}

/// A data directory that this process owns. Dropping this releases it, so the database must be dropped before.
pub(crate) struct Home {
    dir: PathBuf,
    /// redb locks its own file too, but releases it when it has to be opened again after an error.
    _lock: File,
}

impl Home {
    /// Takes the directory, and makes it if it does not exist.
    pub(crate) fn claim(dir: &Path) -> Result<Self, StoreError> {
        let failed = |why: io::Error| io_error(dir, &why);
        DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed)?;
        let lock = private_file(&dir.join(LOCK_FILE)).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { dir: dir.to_owned(), _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(StoreError::Held { path: shown(dir) }),
            Err(TryLockError::Error(why)) => Err(failed(why)),
        }
    }

    /// Opens the database, and makes it if it does not exist. Reads the whole file only where it was not closed in
    /// order, or where redb panics over it.
    pub(crate) fn open(&self) -> Result<Database, StoreError> {
        guarded(|| self.opened(Trust::Closed)).unwrap_or_else(|panic| {
            tracing::error!(%panic, "redb stopped while it opened the store; checking its file");
            self.open_checked(&panic)
        })
    }

    /// Opens the database after all of its file was compared with its checksums, because of `doubt`.
    pub(crate) fn open_checked(&self, doubt: &str) -> Result<Database, StoreError> {
        match guarded(|| self.opened(Trust::Nothing)) {
            Ok(Err(StoreError::Damaged { detail, .. })) => {
                Err(self.damaged(format!("{detail} (found by a check of the file, after it stopped: {doubt})")))
            }
            Ok(opened) => opened,
            Err(panic) => Err(self.failed(format!(
                "it stopped ({doubt}), and the check of its file stopped too ({panic}); keep the directory, and \
                 restore the newest backup beside it"
            ))),
        }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The store's error for an error of the system.
    pub(crate) fn io(&self, why: &io::Error) -> StoreError {
        io_error(&self.dir, why)
    }

    fn opened(&self, trust: Trust) -> Result<Database, StoreError> {
        let path = self.dir.join(STATE_FILE);
        if !path.try_exists().map_err(|why| io_error(&self.dir, &why))? {
            self.create(&path)?;
        }
        let file = private_file(&path).map_err(|why| io_error(&self.dir, &why))?;
        if file.metadata().map_err(|why| io_error(&self.dir, &why))?.len() == 0 {
            return Err(self.damaged(format!("{STATE_FILE} is empty")));
        }
        let db = open_file(file, trust).map_err(|why| self.error(why))?;
        self.check_format(&db)?;
        Ok(db)
    }

    /// The store's error for an error of redb.
    pub(crate) fn error(&self, why: redb::Error) -> StoreError {
        use redb::Error;
        let path = shown(&self.dir);
        match why {
            Error::Io(why) => io_error(&self.dir, &why),
            Error::DatabaseAlreadyOpen | Error::LockProtocolMismatch => StoreError::Held { path },
            Error::UpgradeRequired(_) => self.damaged("it was written by another generation of redb"),
            Error::Corrupted(detail) => self.damaged(detail),
            why @ (Error::TableTypeMismatch { .. }
            | Error::TableIsMultimap(_)
            | Error::TypeDefinitionChanged { .. }
            | Error::TableDoesNotExist(_)) => self.damaged(why.to_string()),
            why => StoreError::Failed { path, detail: why.to_string() },
        }
    }

    /// The error for bytes that differ from those written.
    pub(crate) fn damaged(&self, detail: impl Into<String>) -> StoreError {
        StoreError::Damaged { path: shown(&self.dir), detail: detail.into() }
    }

    /// The error for anything else.
    pub(crate) fn failed(&self, detail: impl Into<String>) -> StoreError {
        StoreError::Failed { path: shown(&self.dir), detail: detail.into() }
    }

    /// Makes the database under another name first: a kill in the middle of it leaves no partial file under the name
    /// that the next start opens.
    fn create(&self, path: &Path) -> Result<(), StoreError> {
        let failed = |why: io::Error| io_error(&self.dir, &why);
        let new = self.dir.join(NEW_FILE);
        match std::fs::remove_file(&new) {
            Err(why) if why.kind() != ErrorKind::NotFound => return Err(failed(why)),
            _ => {}
        }
        let file = private_file(&new).map_err(failed)?;
        database(file).and_then(|db| initialise(&db)).map_err(|why| self.error(why))?;
        std::fs::rename(&new, path).map_err(failed)?;
        File::open(&self.dir).and_then(|dir| dir.sync_all()).map_err(failed)
    }

    fn check_format(&self, db: &Database) -> Result<(), StoreError> {
        let found = stored_format(db).map_err(|why| self.error(why))?;
        let remedy = match found {
            Some(FORMAT | FORMAT_CLOSED) => return Ok(()),
            Some(newer) if newer > FORMAT => "use the longhaul that wrote it, or a newer one",
            Some(_) => "use the longhaul that wrote it",
            None => return Err(self.damaged(format!("{STATE_FILE} was not written by longhaul"))),
        };
        let (found, remedy) = (found.unwrap_or_default(), remedy.to_owned());
        Err(StoreError::Format { path: shown(&self.dir), found, expected: FORMAT, remedy })
    }
}

/// Runs `what`; `Err` has the text of its panic.
pub(crate) fn guarded<T>(what: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(what)).map_err(|panic| said(&*panic))
}

/// The database in a file, which is made if the file is empty.
pub(crate) fn database(file: File) -> Result<Database, redb::Error> {
    open_file(file, Trust::Closed)
}

fn open_file(file: File, trust: Trust) -> Result<Database, redb::Error> {
    let backend = redb::backends::FileBackend::new(file)?;
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES).set_check_integrity_on_open(trust == Trust::Nothing);
    Ok(builder.create_with_backend(backend)?)
}

/// Makes every table, so that readers never find one missing.
fn initialise(db: &Database) -> Result<(), redb::Error> {
    let transaction = db.begin_write()?;
    for table in Table::ALL {
        transaction.open_table(definition(table))?;
    }
    transaction.open_table(BLOBS)?;
    {
        let mut meta = transaction.open_table(META)?;
        meta.insert(META_FORMAT, FORMAT_CLOSED.to_string().as_bytes())?;
        meta.insert(META_WRITTEN_BY, concat!("\"longhaul ", env!("CARGO_PKG_VERSION"), "\"").as_bytes())?;
    }
    Ok(transaction.commit()?)
}

fn stored_format(db: &Database) -> Result<Option<u64>, redb::Error> {
    let transaction = db.begin_read()?;
    if !transaction.list_tables()?.any(|table| table.name() == META.name()) {
        return Ok(None);
    }
    // The value is read while the table and the transaction are there; see `read.rs`.
    let table = transaction.open_table(META)?;
    let stored = table.get(META_FORMAT)?;
    Ok(stored.and_then(|stored| std::str::from_utf8(stored.value()).ok()?.parse().ok()))
}

/// The token of the last log whose batches are all in the database; none when there are no logs.
pub(crate) fn stored_log(db: &Database) -> Result<Option<[u8; 16]>, redb::Error> {
    let transaction = db.begin_read()?;
    let table = transaction.open_table(META)?;
    let Some(stored) = table.get(META_LOG)? else {
        return Ok(None);
    };
    let token = <[u8; 16]>::try_from(stored.value());
    token.map(Some).map_err(|_| redb::Error::Corrupted("the token of its log is not one".to_owned()))
}

/// A new file of the same kind; an existing one is left alone, and is an error.
pub(crate) fn private_new(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)
}

/// A file that only its owner may read: journals hold the data of plugins.
fn private_file(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
    if file.metadata()?.permissions().mode() & 0o077 != 0 {
        file.set_permissions(Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

fn io_error(dir: &Path, why: &io::Error) -> StoreError {
    let path = shown(dir);
    match why.kind() {
        // A quota and `ulimit -f` are limits of the same kind: with less data, or more space, it continues.
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => StoreError::Full { path },
        ErrorKind::UnexpectedEof => StoreError::Damaged { path, detail: "it ends too early".to_owned() },
        // redb's error for a file that does not start as one of its own.
        ErrorKind::InvalidData => StoreError::Damaged { path, detail: why.to_string() },
        _ => StoreError::Failed { path, detail: why.to_string() },
    }
}

fn shown(dir: &Path) -> String {
    dir.display().to_string()
}

fn said(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without a word".to_owned())
}
