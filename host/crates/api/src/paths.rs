//! Every path of a request is whole: whoever owns the data directory stands in another directory than whoever asks,
//! and a relative path would name another project, or another file, there. Surfaces make paths whole; here they are
//! refused where one was forgotten.

use crate::operations::Operation;
use longhaul_core::fault::Fault;
use std::path::Path;

/// Refuses a request with a relative path.
///
/// # Errors
/// The first of them.
pub fn expect_whole_paths(operation: &impl Operation) -> Result<(), Fault> {
    operation.paths().into_iter().try_for_each(expect_whole)
}

/// Refuses a path that means something else in another directory.
///
/// # Errors
/// Where it is relative.
pub fn expect_whole(path: &Path) -> Result<(), Fault> {
    if path.is_absolute() {
        return Ok(());
    }
    Err(Fault::invalid(format!(
        "`{}` is a relative path, which means nothing here; write the whole one",
        path.display()
    )))
}
