//! Rows of journals that stand for themselves, for a place that does not have the journals that they share.
//!
//! Refuses to leave a record out that cannot be read: the journal would be another one.

use crate::share::copies;
use crate::shared::{self, sharer_of};
use longhaul_core::journal::JournalError;
use longhaul_core::store::{Op, Row, Store};

/// Rows of the table of journals, in the order of their keys, with the shared entries in the place of the records that
/// refer to them.
///
/// # Errors
/// [`JournalError::Store`] or [`JournalError::Damaged`].
pub fn whole(store: &dyn Store, rows: Vec<Row>) -> Result<Vec<Row>, JournalError> {
    let mut found: Vec<Row> = Vec::with_capacity(rows.len());
    for (key, value) in rows {
        let Some(invocation) = sharer_of(&key) else {
            found.push((key, value));
            continue;
        };
        let through = shared::decode(&invocation, &value)?.through;
        let ops = shared::read(store, &invocation, |segments| copies(store, segments, &invocation, through))?;
        found.extend(ops.into_iter().filter_map(|op| match op {
            Op::Insert(_, key, value) => Some((key.as_bytes().to_vec(), value)),
            _ => None,
        }));
    }
    // Entries that were handed over meanwhile are among the rows, too.
    found.sort();
    found.dedup_by(|one, other| one.0 == other.0);
    Ok(found)
}
