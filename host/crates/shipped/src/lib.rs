//! The components that a released program carries: the shipped plugins, and the interpreters of generated code.
//!
//! They are compressed in the program and unpacked into the cache when they are first looked for. Without the feature
//! `components` there are none, and nothing has to be built before the host. This crate neither searches for plugins
//! nor installs them, and no file that it did not make is removed.

#[cfg(feature = "components")]
mod dependencies;
mod error;
#[cfg(any(feature = "components", test))]
mod unpack;

pub use error::ShippedError;

use std::path::{Path, PathBuf};

/// True when this program carries components.
pub const HAS_COMPONENTS: bool = cfg!(feature = "components");

/// The directory of the components, each as `NAME.wasm`, below `cache`. The first call unpacks them; a copy that was
/// changed, cut or opened to other users is unpacked anew. None: this program carries none.
///
/// # Errors
/// When the cache cannot be written, or the program is damaged.
#[cfg(feature = "components")]
pub fn directory(cache: &Path) -> Result<Option<PathBuf>, ShippedError> {
    dependencies::keep();
    unpack::directory(cache, COMPONENTS).map(Some)
}

/// The directory of the components: none, since this program carries none.
///
/// # Errors
/// Never.
#[cfg(not(feature = "components"))]
pub fn directory(_cache: &Path) -> Result<Option<PathBuf>, ShippedError> {
    Ok(None)
}

#[cfg(feature = "components")]
use unpack::Packed;

#[cfg(feature = "components")]
static COMPONENTS: &[Packed<'static>] = include!(concat!(env!("OUT_DIR"), "/components.rs"));
