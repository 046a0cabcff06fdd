//! The storage format of content under its digest, which is that of `state.redb`.
//!
//! A value is one byte that names the encoding (0: as it is, 1: zstd), the length of the content as 8 bytes,
//! little-endian, and the encoded content. Stored bytes are not trusted: the length is checked before anything is
//! decompressed, decompression ends at that length, and the digest of the result decides.
//!
//! A row may also have a marker, which says that the value is an object outside of the database: 2, the length of the
//! content, the length of that value as 8 bytes, little-endian, and the generation of the object.

use crate::outside::{GENERATION_BYTES, Generation};
use longhaul_core::Digest;

/// The longest content, in bytes: 256 MiB. Longer content is refused when written and damaged when read.
pub(crate) const CONTENT_BYTES_MAX: usize = 256 << 20;

/// Content shorter than this, in bytes, is stored uncompressed: zstd's own frame would eat the gain.
const COMPRESS_BYTES_MIN: usize = 128;

/// zstd's default, as in `state.redb`. The server does not compress a second time.
const LEVEL: i32 = 3;

const PLAIN: u8 = 0;
const ZSTD: u8 = 1;
const OUTSIDE: u8 = 2;
const HEADER_BYTES: usize = 9;

/// The length of a marker.
pub(crate) const MARKER_BYTES: usize = HEADER_BYTES + 8 + GENERATION_BYTES;

/// A value that is an object outside of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marker {
    /// The length of the content, in bytes.
    pub(crate) length: usize,
    /// The length of the encoded content, which is that of the object, in bytes.
    pub(crate) stored: usize,
    pub(crate) generation: Generation,
}

/// The value of a row that names an object.
pub(crate) fn encode_marker(marker: &Marker) -> Vec<u8> {
    let Marker { length, stored, generation } = marker;
    [&[OUTSIDE], &(*length as u64).to_le_bytes()[..], &(*stored as u64).to_le_bytes(), &generation.0].concat()
}

/// The marker that a value is; none for any other value. One that names more than an object can have is none.
pub(crate) fn marker(value: &[u8]) -> Option<Marker> {
    let (header, rest) = value.split_first_chunk::<HEADER_BYTES>()?;
    let (stored, generation) = rest.split_first_chunk::<8>()?;
    let length = usize::try_from(u64::from_le_bytes(header[1..].try_into().ok()?)).ok()?;
    let stored = usize::try_from(u64::from_le_bytes(*stored)).ok()?;
    let generation = Generation(generation.try_into().ok()?);
    let is_possible = length <= CONTENT_BYTES_MAX && stored <= CONTENT_BYTES_MAX + HEADER_BYTES;
    (header[0] == OUTSIDE && is_possible).then_some(Marker { length, stored, generation })
}

/// Encodes content; `Err` gives the reason why it cannot be stored.
pub(crate) fn encode(content: &[u8]) -> Result<Vec<u8>, String> {
    let length = content.len();
    if length > CONTENT_BYTES_MAX {
        return Err(format!("content of {length} bytes is above the {CONTENT_BYTES_MAX} that one blob may have"));
    }
    let compressed = (length >= COMPRESS_BYTES_MIN).then(|| zstd::bulk::compress(content, LEVEL).ok()).flatten();
    let (tag, payload) = match &compressed {
        Some(compressed) if compressed.len() < length => (ZSTD, compressed.as_slice()),
        _ => (PLAIN, content),
    };
    Ok([&[tag], &(length as u64).to_le_bytes()[..], payload].concat())
}

/// Decodes the value stored under `digest`; `Err` describes the damage.
pub(crate) fn decode(digest: &Digest, value: &[u8]) -> Result<Vec<u8>, String> {
    let content = content(value).ok_or_else(|| format!("blob {} cannot be decoded", digest.short()))?;
    let found = Digest::of(&content);
    if found != *digest {
        return Err(format!("blob {} has the digest {}", digest.short(), found.short()));
    }
    Ok(content)
}

fn content(value: &[u8]) -> Option<Vec<u8>> {
    let (header, payload) = value.split_first_chunk::<HEADER_BYTES>()?;
    let length = u64::from_le_bytes(header[1..].try_into().ok()?);
    // The length comes from the database: it bounds what is allocated, so it is bounded first.
    let length = usize::try_from(length).ok().filter(|length| *length <= CONTENT_BYTES_MAX)?;
    let content = match header[0] {
        PLAIN => payload.to_vec(),
        ZSTD => zstd::bulk::decompress(payload, length).ok()?,
        _ => return None,
    };
    (content.len() == length).then_some(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_comes_back_and_every_damage_is_noticed() {
        for (content, tag) in [(Vec::new(), PLAIN), (vec![7; 127], PLAIN), (b"longhaul ".repeat(100), ZSTD)] {
            let (digest, value) = (Digest::of(&content), encode(&content).expect("short enough"));
            assert_eq!(value[0], tag);
            assert_eq!(decode(&digest, &value).as_deref(), Ok(&content[..]));
            for at in 0..value.len() {
                assert!(decode(&digest, &value[..at]).is_err(), "cut at {at}");
            }
            assert!(decode(&Digest::of(b"other"), &value).is_err_and(|why| why.contains("has the digest")));
        }
        let bomb = zstd::bulk::compress(&vec![0; 64 << 20], LEVEL).expect("compressed");
        for claimed in [0, 1 << 20, CONTENT_BYTES_MAX as u64 + 1, u64::MAX] {
            assert_eq!(content(&[&[ZSTD][..], &claimed.to_le_bytes(), &bomb].concat()), None, "{claimed}");
        }
        assert!(encode(&vec![0; CONTENT_BYTES_MAX + 1]).is_err_and(|why| why.contains("268435457")));
    }

    #[test]
    fn a_marker_is_read_as_it_was_written_and_nothing_else_is_one() {
        let written = Marker { length: CONTENT_BYTES_MAX, stored: 300, generation: Generation([9; GENERATION_BYTES]) };
        let value = encode_marker(&written);
        assert_eq!((value.len(), marker(&value)), (MARKER_BYTES, Some(written)));
        for at in 0..value.len() {
            assert_eq!(marker(&value[..at]), None, "cut at {at}");
        }
        assert_eq!(marker(&encode(&value).expect("short enough")), None, "content that looks like a marker");
        let hostile = Marker { stored: CONTENT_BYTES_MAX + HEADER_BYTES + 1, ..written };
        assert_eq!(marker(&encode_marker(&hostile)), None);
        assert!(decode(&Digest::of(b"x"), &value).is_err(), "a marker is no content");
    }
}
