//! A component carries its manifest in a custom section, so that a plugin is one file. Nothing else of the
//! component is touched.

use crate::error::BuildError;
use longhaul_core::section::{MANIFEST, MANIFEST_BYTES_MAX};
use std::borrow::Cow;
use wasm_encoder::{ComponentSection as _, CustomSection};

/// The component with the manifest's text at its end.
///
/// # Errors
/// When the text is longer than a component may carry.
pub fn with_manifest(mut component: Vec<u8>, manifest: &str) -> Result<Vec<u8>, BuildError> {
    if manifest.len() > MANIFEST_BYTES_MAX {
        let bytes = manifest.len();
        return Err(BuildError::project(format!(
            "plugin.toml has {bytes} bytes, and at most {MANIFEST_BYTES_MAX} fit"
        )));
    }
    CustomSection { name: MANIFEST.into(), data: Cow::Borrowed(manifest.as_bytes()) }
        .append_to_component(&mut component);
    Ok(component)
}
