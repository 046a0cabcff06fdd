//! The text of one directory's differences to a commit, which names the manifests of the directories below by digest.
//!
//! Equal differences have equal bytes: entries are sorted, and each has one spelling. A manifest comes from a store
//! that others write to, so reading one refuses other bytes than its digest says, names that are no names of files,
//! entries out of order, and unknown fields.

use crate::TreeError;
use crate::caps::cap;
use crate::names::shown;
use crate::scan::{count, is_unsafe};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use longhaul_core::Digest;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Bytes of one manifest. The most entries that a tree may have, with usual names, take some 50 MiB.
pub(crate) const MANIFEST_BYTES_MAX: usize = 64 << 20;

/// Bytes of a name on Linux.
const NAME_BYTES_MAX: usize = 255;

/// Bytes of a link's target: `PATH_MAX` is 4 096 with its end.
const TARGET_BYTES_MAX: usize = 4_095;

const VERSION: u32 = 1;

/// A difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum ManifestEntry {
    /// A regular file with this content.
    File { digest: Digest, bytes: u64, executable: bool },
    /// A symbolic link.
    Link { target: RawBytes },
    /// The commit has a file or a directory of this name, and the tree has not.
    Gone,
    /// A directory, and the digest of its manifest. An empty manifest says only that the directory exists.
    Directory { manifest: Digest },
}

/// A name or a target: text if it is UTF-8, else base64.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Encoded", into = "Encoded")]
pub(crate) struct RawBytes(pub(crate) Vec<u8>);

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Encoded {
    Text(String),
    Base64 { base64: String },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    version: u32,
    entries: Vec<(RawBytes, ManifestEntry)>,
}

impl From<RawBytes> for Encoded {
    fn from(raw: RawBytes) -> Self {
        let as_base64 = |bytes: &[u8]| Self::Base64 { base64: STANDARD.encode(bytes) };
        String::from_utf8(raw.0).map_or_else(|error| as_base64(error.as_bytes()), Self::Text)
    }
}

impl TryFrom<Encoded> for RawBytes {
    type Error = base64::DecodeError;

    fn try_from(encoded: Encoded) -> Result<Self, Self::Error> {
        match encoded {
            Encoded::Text(text) => Ok(Self(text.into_bytes())),
            Encoded::Base64 { base64 } => STANDARD.decode(base64).map(Self),
        }
    }
}

/// The manifest of the directory `dir`.
pub(crate) fn encode(dir: &[u8], entries: BTreeMap<Vec<u8>, ManifestEntry>) -> Result<(Digest, Vec<u8>), TreeError> {
    let entries = entries.into_iter().map(|(name, entry)| (RawBytes(name), entry)).collect();
    let encoded = serde_json::to_vec(&Manifest { version: VERSION, entries });
    let bytes = encoded.map_err(|error| TreeError::stored(told(dir), format!("cannot be written: {error}")))?;
    cap("manifest_bytes_max", count(bytes.len()), count(MANIFEST_BYTES_MAX), dir)?;
    Ok((Digest::of(&bytes), bytes))
}

/// The entries of the manifest of the directory `dir`, sorted by name.
pub(crate) fn decode(dir: &[u8], digest: &Digest, bytes: &[u8]) -> Result<Vec<(Vec<u8>, ManifestEntry)>, TreeError> {
    let refuse = |why: String| TreeError::stored(told(dir), why);
    if bytes.len() > MANIFEST_BYTES_MAX {
        return Err(refuse(format!("has {} bytes, and {MANIFEST_BYTES_MAX} are the most", bytes.len())));
    }
    let found = Digest::of(bytes);
    if found != *digest {
        return Err(refuse(format!("should have the digest {} and has {}", digest.short(), found.short())));
    }
    let manifest: Manifest =
        serde_json::from_slice(bytes).map_err(|error| refuse(format!("is no manifest: {error}")))?;
    if manifest.version != VERSION {
        return Err(refuse(format!("has format {}, and this version reads {VERSION}", manifest.version)));
    }
    let mut entries: Vec<(Vec<u8>, ManifestEntry)> = Vec::with_capacity(manifest.entries.len());
    for (RawBytes(name), entry) in manifest.entries {
        if is_unsafe(&name) || name.len() > NAME_BYTES_MAX {
            return Err(refuse(format!("has the name `{}`, which no file may have", shown(cut(&name)))));
        }
        if entries.last().is_some_and(|(before, _)| *before >= name) {
            return Err(refuse(format!("has `{}` twice or out of order", shown(&name))));
        }
        if let ManifestEntry::Link { target: RawBytes(target) } = &entry
            && (target.is_empty() || target.contains(&0) || target.len() > TARGET_BYTES_MAX)
        {
            return Err(refuse(format!("has the link `{}` with a target that no link may have", shown(&name))));
        }
        entries.push((name, entry));
    }
    Ok(entries)
}

/// The stored file or directory of a path, for people.
pub(crate) fn told(dir: &[u8]) -> String {
    if dir.is_empty() { "the stored tree".to_owned() } else { format!("the stored tree at `{}`", shown(dir)) }
}

/// The beginning of a name, which may have any length.
fn cut(name: &[u8]) -> &[u8] {
    &name[..name.len().min(NAME_BYTES_MAX)]
}
