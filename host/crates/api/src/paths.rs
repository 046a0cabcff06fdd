//! Refuses relative paths in requests. The owner of the data directory has another working directory than the caller, so
//! a relative path would name another project or file there. Surfaces make paths absolute before they send a request.

use crate::operations::Operation;
use longhaul_core::fault::Fault;
use std::path::Path;

/// Refuses a request with a relative path.
///
/// # Errors
/// The first relative path, as an invalid request.
pub fn expect_whole_paths(operation: &impl Operation) -> Result<(), Fault> {
    operation.paths().into_iter().try_for_each(expect_whole)
}

/// Refuses a relative path, which would mean another file in another working directory.
///
/// # Errors
/// The path is relative.
pub fn expect_whole(path: &Path) -> Result<(), Fault> {
    if path.is_absolute() {
        return Ok(());
    }
    Err(Fault::invalid(format!(
        "`{}` is a relative path, which means nothing here; write the whole one",
        path.display()
    )))
}
