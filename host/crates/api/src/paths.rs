//! Refuses relative paths in requests, and paths that are not UTF-8. The owner of the data directory has another working
//! directory than the caller, so a relative path would name another project or file there; surfaces make paths absolute
//! before they send a request. Requests and records are JSON, which has no other text than UTF-8.

use crate::operations::Operation;
use longhaul_core::fault::Fault;
use std::path::Path;

/// Refuses a request with a relative path, or one that is not UTF-8.
///
/// # Errors
/// The first such path, as an invalid request.
pub fn expect_whole_paths(operation: &impl Operation) -> Result<(), Fault> {
    operation.paths().into_iter().try_for_each(expect_whole)
}

/// Refuses a relative path, which would mean another file in another working directory, and a path that is not UTF-8.
///
/// # Errors
/// The path is relative, or not UTF-8.
pub fn expect_whole(path: &Path) -> Result<(), Fault> {
    if path.to_str().is_none() {
        return Err(Fault::invalid(format!(
            "`{}` has bytes that are not UTF-8 in its path, which cannot be stored; rename it, or work elsewhere",
            path.display()
        )));
    }
    if path.is_absolute() {
        return Ok(());
    }
    Err(Fault::invalid(format!(
        "`{}` is a relative path, which means nothing here; write the whole one",
        path.display()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    /// A project below a directory with such a name used to end with `path contains invalid UTF-8 characters`.
    #[test]
    fn a_path_is_absolute_and_text_or_is_refused_with_what_to_do() {
        let refused =
            |path: &[u8]| expect_whole(Path::new(OsStr::from_bytes(path))).err().map(|error| error.to_string());
        assert_eq!(refused(b"/with spaces/shop"), None);
        assert!(refused(b"shop").is_some_and(|error| error.contains("relative path")));
        assert!(refused(b"/shop-\xff").is_some_and(|error| error.contains("not UTF-8") && error.contains("rename it")));
    }
}
