//! Makes one core module of a component that was linked of several.
//!
//! `componentize-py` links shared libraries: a dozen core modules, each an instance of its own, which share a memory
//! and a table, and call each other through that table if the caller comes first. Every start of such a component pays
//! for it: a dozen instances, thousands of references to functions that are written into the table one by one, since an
//! engine fills a table lazily only if it belongs to the module, and calls through that table. This makes one module of
//! them, with the same functions, the same initial memory, and a table of its own.
//!
//! It moves code and rewrites none. It refuses unknown structures (a second start function, memory or table, a passive
//! segment), and it leaves out the one export that is no role: the helper that made the image.

mod error;
mod image;
mod linked;

use self::error::{MergeError, Result};
use crate::error::BuildError;
use linked::Linked;
use wit_component::{ComponentEncoder, DecodedWasm, StringEncoding};
use wit_parser::{Resolve, WorldId, WorldKey};

/// The same component with one core module.
///
/// # Errors
/// When the component is linked in an unknown way.
pub(crate) fn into_one_module(plugin: &str, component: &[u8]) -> std::result::Result<Vec<u8>, BuildError> {
    merged(component).map_err(|why| {
        BuildError::component(format!("the libraries of plugin `{plugin}` cannot be merged into one module: {why}"))
    })
}

fn merged(component: &[u8]) -> Result<Vec<u8>> {
    let (resolve, world) = roles(component)?;
    let mut module = image::of(&Linked::read(component)?)?;
    // The errors of these two are chains of causes; the alternate form shows all of them.
    wit_component::embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)
        .map_err(|error| MergeError::new(format!("{error:#}")))?;
    ComponentEncoder::default()
        .module(&module)
        .and_then(|encoder| encoder.validate(true).encode())
        .map_err(|error| MergeError::new(format!("{error:#}")))
}

/// The types of the component, with the exports that are interfaces.
fn roles(component: &[u8]) -> Result<(Resolve, WorldId)> {
    let decoded = wit_component::decode(component).map_err(|error| MergeError::new(format!("{error:#}")))?;
    let DecodedWasm::Component(mut resolve, world) = decoded else {
        return Err(MergeError::new("it is a WIT package and no component"));
    };
    resolve.worlds[world].exports.retain(|key, _| matches!(key, WorldKey::Interface(_)));
    Ok((resolve, world))
}

#[cfg(test)]
mod tests;
