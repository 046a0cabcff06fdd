//! The storage format of content under its digest.
//!
//! A value is one byte that names the encoding (0: as it is, 1: zstd), the length of the content as
//! 8 bytes, little-endian, and the encoded content. Content is compressed when that makes it smaller.
//!
//! Stored bytes are not trusted: the length is checked before anything is decompressed, decompression ends at that
//! length, and the digest of the result decides.

use longhaul_core::Digest;

/// The longest content, in bytes: 256 MiB. Longer content is refused when written and damaged when read.
pub(crate) const CONTENT_BYTES_MAX: usize = 256 << 20;

/// Content shorter than this, in bytes, is stored uncompressed: zstd's own frame would eat the gain.
const COMPRESS_BYTES_MIN: usize = 128;

/// zstd's default: about 300 MB a second and core, and a third of the size of typical text.
const LEVEL: i32 = 3;

const PLAIN: u8 = 0;
const ZSTD: u8 = 1;
const HEADER_BYTES: usize = 9;

/// Encodes content; `Err` gives the reason why it cannot be stored.
pub(crate) fn encode(content: &[u8]) -> Result<Vec<u8>, String> {
    if content.len() > CONTENT_BYTES_MAX {
        return Err(format!(
            "content of {} bytes is above the {CONTENT_BYTES_MAX} that one blob may have",
            content.len()
        ));
    }
    let compressed = compress(content);
    let (tag, payload) = compressed.as_deref().map_or((PLAIN, content), |compressed| (ZSTD, compressed));
    let mut value = Vec::with_capacity(HEADER_BYTES + payload.len());
    value.push(tag);
    value.extend((content.len() as u64).to_le_bytes());
    value.extend(payload);
    Ok(value)
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
    let (tag, length) = (header[0], header[1..].try_into().ok()?);
    // The length comes from the file: it bounds what is allocated, so it is bounded first.
    let length = usize::try_from(u64::from_le_bytes(length)).ok().filter(|length| *length <= CONTENT_BYTES_MAX)?;
    let content = match tag {
        PLAIN => payload.to_vec(),
        ZSTD => zstd::bulk::decompress(payload, length).ok()?,
        _ => return None,
    };
    (content.len() == length).then_some(content)
}

fn compress(content: &[u8]) -> Option<Vec<u8>> {
    if content.len() < COMPRESS_BYTES_MIN {
        return None;
    }
    let compressed = zstd::bulk::compress(content, LEVEL).ok()?;
    (compressed.len() < content.len()).then_some(compressed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that do not compress.
    fn noise(length: usize) -> Vec<u8> {
        let blocks = (0_u64..).flat_map(|block| *Digest::of(&block.to_le_bytes()).as_bytes());
        blocks.take(length).collect()
    }

    #[track_caller]
    fn check(content: &[u8], tag: u8) {
        let value = encode(content).unwrap();
        assert_eq!(value[0], tag, "{} bytes", content.len());
        assert!(value.len() <= HEADER_BYTES + content.len());
        assert_eq!(decode(&Digest::of(content), &value).as_deref(), Ok(content));
    }

    #[test]
    fn content_is_compressed_only_when_that_is_smaller() {
        check(b"", PLAIN);
        check(&[b'a'; COMPRESS_BYTES_MIN - 1], PLAIN);
        check(&[b'a'; COMPRESS_BYTES_MIN], ZSTD);
        check(&noise(100_000), PLAIN);
        check(&vec![b'a'; 1 << 20], ZSTD);
    }

    #[test]
    fn content_above_the_maximum_is_refused() {
        assert!(encode(&vec![0; CONTENT_BYTES_MAX + 1]).is_err_and(|why| why.contains("268435457")));
    }

    #[test]
    fn every_damaged_byte_is_noticed() {
        let content = [b"longhaul ".repeat(100), noise(300)].concat();
        let (digest, value) = (Digest::of(&content), encode(&content).unwrap());
        for at in 0..value.len() {
            let mut damaged = value.clone();
            damaged[at] ^= 0x41;
            // A flipped bit that the frame itself ignores leaves the content whole.
            assert!(
                decode(&digest, &damaged).is_ok_and(|found| found == content) || decode(&digest, &damaged).is_err()
            );
            assert!(decode(&digest, &value[..at]).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn a_small_value_cannot_become_a_large_one() {
        let bomb = zstd::bulk::compress(&vec![0; 64 << 20], LEVEL).unwrap();
        for claimed in [0, 1, 1 << 20, (64 << 20) - 1, CONTENT_BYTES_MAX as u64 + 1, u64::MAX] {
            let value = [&[ZSTD][..], &claimed.to_le_bytes(), &bomb].concat();
            assert_eq!(content(&value), None, "{claimed}");
        }
    }
}
