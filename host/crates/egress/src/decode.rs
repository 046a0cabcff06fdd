//! The processing of an incoming body: decompression that stops at a cap instead of filling the memory first, and the
//! search for secrets.

use crate::error::EgressError;
use crate::stream_redactor::StreamRedactor;
use bytes::Bytes;
use flate2::write::{MultiGzDecoder, ZlibDecoder};
use http::{HeaderMap, header};
use longhaul_core::LimitHit;
use std::io::Write as _;

/// Bytes that the decoder gets at once: deflate makes at most 1032 bytes of one, so this bounds the memory beyond the
/// cap to half a mebibyte.
const STEP_BYTES: usize = 512;

/// The processing of an incoming body.
pub struct Cleaner {
    decoder: Option<Decoder>,
    stream_redactor: Option<StreamRedactor>,
}

impl Cleaner {
    /// For a response with this head, from which the headers of an undone compression, or of a changing length, are
    /// removed.
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

    /// The processed piece, which may be empty yet.
    ///
    /// # Errors
    /// More than `bytes_max` bytes, or an unreadable body.
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

    /// The remaining bytes. A body that ends in the middle of its compression is damaged.
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
    /// The decoder for the head of a response; none without compression.
    fn of(headers: &HeaderMap) -> Result<Option<Self>, EgressError> {
        let mut codings = headers.get_all(header::CONTENT_ENCODING).iter();
        let Some(coding) = codings.next() else { return Ok(None) };
        let coding = coding.to_str().unwrap_or_default().trim().to_ascii_lowercase();
        match (coding.as_str(), codings.next()) {
            ("" | "identity", None) => Ok(None),
            ("gzip" | "x-gzip", None) => Ok(Some(Self::Gzip(MultiGzDecoder::new(Vec::new())))),
            ("deflate", None) => Ok(Some(Self::Deflate(ZlibDecoder::new(Vec::new())))),
            // Nested compression would let a small body grow twice.
            _ => Err(EgressError::refused(&format!(
                "the answer is compressed as `{coding}`, which is not undone; only gzip and deflate are, and one at a time"
            ))),
        }
    }

    /// The decompressed piece.
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

    /// The remaining bytes. A body that ends in the middle is damaged.
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
