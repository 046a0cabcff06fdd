//! The files of a store, changed and copied behind its back.

#![allow(dead_code, reason = "each test uses its part")]

use longhaul_store::STATE_FILE;
use redb::{Database, TableDefinition};
use std::path::Path;

/// Content by digest, as the database has it.
pub const BLOBS: TableDefinition<&[u8], &[u8]> = TableDefinition::new("blobs");

/// Copies the files of a store in use as they are, which is what a kill would leave.
pub fn copy_files(from: &Path, to: &Path) {
    let _ = std::fs::remove_dir_all(to);
    std::fs::create_dir(to).unwrap();
    for name in [STATE_FILE, "state.log.0", "state.log.1"] {
        if from.join(name).exists() {
            std::fs::copy(from.join(name), to.join(name)).unwrap();
        }
    }
}

/// Writes a value into the database of a store that is closed.
pub fn overwrite<K: redb::Key + 'static>(
    dir: &Path,
    table: TableDefinition<K, &[u8]>,
    key: K::SelfType<'_>,
    value: &[u8],
) {
    let db = Database::open(dir.join(STATE_FILE)).unwrap();
    let transaction = db.begin_write().unwrap();
    transaction.open_table(table).unwrap().insert(key, value).unwrap();
    transaction.commit().unwrap();
}
