//! The storage format of content under its digest, which is that of `state.redb`.
//!
//! A value is one byte that names the encoding (0: as it is, 1: zstd), the length of the content as 8 bytes,
//! little-endian, and the encoded content. Stored bytes are not trusted: the length is checked before anything is
//! decompressed, decompression ends at that length, and the digest of the result decides.

use longhaul_core::Digest;

/// The longest content, in bytes: 256 MiB. Longer content is refused when written and damaged when read.
pub(crate) const CONTENT_BYTES_MAX: usize = 256 << 20;

/// Content shorter than this, in bytes, is stored uncompressed: zstd's own frame would eat the gain.
const COMPRESS_BYTES_MIN: usize = 128;

/// zstd's default, as in `state.redb`. The server does not compress a second time.
const LEVEL: i32 = 3;

const PLAIN: u8 = 0;
const ZSTD: u8 = 1;
const HEADER_BYTES: usize = 9;

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
}
