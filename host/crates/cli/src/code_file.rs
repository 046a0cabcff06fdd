//! Reading code from a file that the command line names; `-` is standard input.
//!
//! Refuses pipes, devices and directories, and files that are longer than their use allows. It does not look at what it
//! reads.

use longhaul_core::fault::{self, Context as _, bail};
use std::io::Read as _;
use std::path::Path;

/// The rest of the error after the path, which says what a person can do.
pub(super) struct Refusals {
    pub(super) not_a_file: &'static str,
    pub(super) too_long: String,
}

/// Reads at most `bytes_max` bytes.
pub(super) fn read(path: &Path, bytes_max: usize, refusals: &Refusals) -> fault::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let context = || format!("read `{}`", path.display());
    // One byte more than the limit shows that the file is longer.
    let most = bytes_max as u64 + 1;
    if path == Path::new("-") {
        std::io::stdin().lock().take(most).read_to_end(&mut bytes).context("read standard input")?;
    } else {
        // A pipe would hang, and a device has no end.
        if !std::fs::metadata(path).with_context(context)?.is_file() {
            bail!("`{}` {}", path.display(), refusals.not_a_file);
        }
        std::fs::File::open(path).with_context(context)?.take(most).read_to_end(&mut bytes).with_context(context)?;
    }
    if bytes.len() > bytes_max {
        bail!("`{}` {}", path.display(), refusals.too_long);
    }
    Ok(bytes)
}
