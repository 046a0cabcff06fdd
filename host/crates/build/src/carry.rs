//! A component holds its manifest in a custom section, so that a plugin is one file. Nothing else of the component
//! changes.

use crate::error::BuildError;
use longhaul_core::section::{MANIFEST, MANIFEST_BYTES_MAX};
use std::borrow::Cow;
use wasm_encoder::{ComponentSection as _, CustomSection};

/// The component with the manifest's text at its end.
///
/// # Errors
/// When the text is longer than a component may hold.
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

/// The component without its manifests. Bytes that are no component come back unchanged: their reader reports it.
#[must_use]
pub fn without_manifest(component: &[u8]) -> Vec<u8> {
    strip(component).unwrap_or_else(|| component.to_vec())
}

/// None if the sections are malformed.
fn strip(component: &[u8]) -> Option<Vec<u8>> {
    let (mut kept, mut rest) = component.split_at_checked(8).map(|(head, rest)| (head.to_vec(), rest))?;
    while let Some((&id, behind)) = rest.split_first() {
        let (len, behind) = number(behind)?;
        let (content, next) = behind.split_at_checked(len)?;
        let is_manifest =
            id == 0 && number(content).is_some_and(|(len, name)| name.get(..len) == Some(MANIFEST.as_bytes()));
        if !is_manifest {
            kept.extend_from_slice(&rest[..rest.len() - next.len()]);
        }
        rest = next;
    }
    Some(kept)
}

/// A LEB128 number of at most 32 bits, and the bytes after it.
fn number(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut value = 0_u64;
    for (at, byte) in bytes.iter().take(5).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Some((usize::try_from(value).ok()?, &bytes[at + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_is_taken_out_and_nothing_else_changes() {
        let bare = wasm_encoder::Component::new().finish();
        let other = CustomSection { name: "producers".into(), data: Cow::Borrowed(b"longhaul-manifest") };
        let mut with_other = bare.clone();
        other.append_to_component(&mut with_other);
        let packed =
            with_manifest(with_manifest(with_other.clone(), "name = \"a\"").unwrap(), &"#".repeat(300)).unwrap();
        assert_eq!(without_manifest(&packed), with_other);
        assert_eq!(without_manifest(&bare), bare);
        // Cut at any place, the bytes stay unchanged or lose whole sections; nothing panics.
        for end in 0..packed.len() {
            assert!(without_manifest(&packed[..end]).len() <= end);
        }
    }
}
