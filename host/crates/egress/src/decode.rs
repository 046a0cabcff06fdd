//! What a body passes through on its way in: decompression that stops at a cap instead of filling the memory first,
//! and the search for secrets.

use crate::error::EgressError;
use crate::stream_redactor::StreamRedactor;
use bytes::Bytes;
use flate2::write::{MultiGzDecoder, ZlibDecoder};
use http::{HeaderMap, header};
use longhaul_core::LimitHit;
use std::io::Write as _;

/// How much is given to the decoder at once: deflate makes at most 1032 bytes of one, so this bounds what is held
/// beyond the cap to half a mebibyte.
const STEP_BYTES: usize = 512;

/// What a body passes through.
pub struct Cleaner {
    decoder: Option<Decoder>,
    stream_redactor: Option<StreamRedactor>,
}

impl Cleaner {
    /// For an answer with this head, which says no more of a compression that is undone, or of a length that changes.
    pub(crate) fn new(headers: &mut HeaderMap, stream_redactor: Option<StreamRedactor>) -> Result<Self, EgressError> {
        let decoder = Decoder::of(headers)?;
        if decoder.is_some() {
            headers.remove(header::CONTENT_ENCODING);
        }
        if decoder.is_some() || stream_redactor.is_some() {
            headers.remove(header::CONTENT_LENGTH);
        }
        Ok(Self { decoder, stream_redactor })
    }

    /// What a piece becomes, which may be nothing yet.
    ///
    /// # Errors
    /// More than `bytes_max` bytes, or a body that cannot be read.
    pub fn push(&mut self, piece: Bytes, bytes_max: u64) -> Result<Bytes, EgressError> {
        let plain = match &mut self.decoder {
            Some(decoder) => decoder.push(&piece, bytes_max)?,
            None => piece,
        };
        Ok(match &mut self.stream_redactor {
            Some(stream_redactor) => stream_redactor.push(&plain).into(),
            None => plain,
        })
    }

    /// What was held back. A body that ends in the middle of its compression is damaged.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub fn finish(&mut self, bytes_max: u64) -> Result<Bytes, EgressError> {
        let rest = match self.decoder.take() {
            Some(decoder) => decoder.finish(bytes_max)?,
            None => Bytes::new(),
        };
        let Some(stream_redactor) = &mut self.stream_redactor else { return Ok(rest) };
        let mut clean = stream_redactor.push(&rest);
        clean.extend(stream_redactor.finish());
        Ok(clean.into())
    }
}

/// Undoes the compression of a body.
enum Decoder {
    Gzip(MultiGzDecoder<Vec<u8>>),
    Deflate(ZlibDecoder<Vec<u8>>),
}

impl Decoder {
    /// The decoder that the head of an answer asks for; none where nothing is compressed.
    fn of(headers: &HeaderMap) -> Result<Option<Self>, EgressError> {
        let mut codings = headers.get_all(header::CONTENT_ENCODING).iter();
        let Some(coding) = codings.next() else { return Ok(None) };
        let coding = coding.to_str().unwrap_or_default().trim().to_ascii_lowercase();
        match (coding.as_str(), codings.next()) {
            ("" | "identity", None) => Ok(None),
            ("gzip" | "x-gzip", None) => Ok(Some(Self::Gzip(MultiGzDecoder::new(Vec::new())))),
            ("deflate", None) => Ok(Some(Self::Deflate(ZlibDecoder::new(Vec::new())))),
            // One layer in another is how a small body becomes a large one twice.
            _ => Err(EgressError::refused(&format!(
                "the answer is compressed as `{coding}`, which is not undone; only gzip and deflate are, and one at a time"
            ))),
        }
    }

    /// What a piece becomes.
    fn push(&mut self, piece: &[u8], bytes_max: u64) -> Result<Bytes, EgressError> {
        for step in piece.chunks(STEP_BYTES) {
            let written = match self {
                Self::Gzip(decoder) => decoder.write_all(step),
                Self::Deflate(decoder) => decoder.write_all(step),
            };
            written.map_err(|error| damaged(&error))?;
            check(self.held().len(), bytes_max)?;
        }
        Ok(std::mem::take(self.held()).into())
    }

    /// What was held back. A body that ends in the middle is damaged.
    fn finish(self, bytes_max: u64) -> Result<Bytes, EgressError> {
        let rest = match self {
            Self::Gzip(decoder) => decoder.finish(),
            Self::Deflate(decoder) => decoder.finish(),
        };
        let rest = rest.map_err(|error| damaged(&error))?;
        check(rest.len(), bytes_max)?;
        Ok(rest.into())
    }

    fn held(&mut self) -> &mut Vec<u8> {
        match self {
            Self::Gzip(decoder) => decoder.get_mut(),
            Self::Deflate(decoder) => decoder.get_mut(),
        }
    }
}

fn check(held: usize, max: u64) -> Result<(), EgressError> {
    if held as u64 > max {
        return Err(EgressError::Limit(LimitHit::new("response_bytes_max", held as u64, max)));
    }
    Ok(())
}

fn damaged(error: &std::io::Error) -> EgressError {
    EgressError::Damaged(longhaul_core::text::truncate(&error.to_string(), 200))
}
