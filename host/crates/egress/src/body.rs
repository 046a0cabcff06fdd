//! The response of a server, read piece by piece within its caps.

use crate::decode::Cleaner;
use crate::error::EgressError;
use crate::guard::{FIELD_BYTES_MAX, Guard, RequestLimits};
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use longhaul_core::LimitHit;
use reqwest::{Response, Url};
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};

/// A response with its head; its body still follows.
pub struct Fetched {
    /// The status of the response.
    pub status: StatusCode,
    /// The server's headers, except those of a compression that is undone.
    pub headers: HeaderMap,
    /// The URL that finally answered, after all redirects.
    pub url: Url,
    response: Response,
    cleaner: Option<Cleaner>,
    caps: RequestLimits,
    until: Instant,
    sent_bytes: u64,
    read_bytes: u64,
}

/// The head of a response has the same cap as that of a request.
pub(crate) fn check_head(headers: &HeaderMap) -> Result<(), EgressError> {
    let bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    if bytes > FIELD_BYTES_MAX {
        return Err(EgressError::Limit(LimitHit::new("field_bytes_max", bytes as u64, FIELD_BYTES_MAX as u64)));
    }
    Ok(())
}

impl Fetched {
    pub(crate) fn new(guard: &Guard, url: Url, response: Response, until: Instant) -> Result<Self, EgressError> {
        let (status, mut headers) = (response.status(), response.headers().clone());
        guard.placeholders.clean_head(&mut headers);
        let cleaner = Some(Cleaner::new(&mut headers, guard.placeholders.stream_redactor())?);
        let caps = guard.caps.clone();
        Ok(Self { status, headers, url, response, cleaner, caps, until, sent_bytes: 0, read_bytes: 0 })
    }

    /// The next piece of the body; none at its end.
    ///
    /// # Errors
    /// A cap, a timeout, or a broken connection. Nothing follows after an error.
    pub async fn next(&mut self) -> Result<Option<Bytes>, EgressError> {
        loop {
            let Some(piece) = self.receive().await? else { return self.finish() };
            self.sent_bytes = self.count(self.sent_bytes, &piece)?;
            let max = self.caps.response_bytes_max.saturating_sub(self.read_bytes);
            let piece = match &mut self.cleaner {
                Some(cleaner) => cleaner.push(piece, max)?,
                None => piece,
            };
            if !piece.is_empty() {
                self.read_bytes = self.count(self.read_bytes, &piece)?;
                return Ok(Some(piece));
            }
        }
    }

    /// The whole body.
    ///
    /// # Errors
    /// As [`Self::next`].
    pub async fn read_all(&mut self) -> Result<Vec<u8>, EgressError> {
        let mut all = Vec::new();
        while let Some(piece) = self.next().await? {
            all.extend_from_slice(&piece);
        }
        Ok(all)
    }

    /// The beginning of the body, up to `bytes_max`, and whether that is all of it.
    ///
    /// # Errors
    /// As [`Self::next`], up to there.
    pub async fn read_up_to(&mut self, bytes_max: usize) -> Result<(Vec<u8>, bool), EgressError> {
        let mut all = Vec::new();
        while let Some(piece) = self.next().await? {
            let room = bytes_max - all.len();
            all.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.len() > room {
                return Ok((all, false));
            }
        }
        Ok((all, true))
    }

    async fn receive(&mut self) -> Result<Option<Bytes>, EgressError> {
        let (between, total) = (self.caps.between_bytes_ms_max, self.caps.total_ms_max);
        let piece = timeout(Duration::from_millis(between), self.response.chunk());
        let piece = timeout_at(self.until, piece).await;
        let piece = piece.map_err(|_| EgressError::TimedOut { what: "the exchange did not end", ms: total })?;
        Ok(piece.map_err(|_| EgressError::TimedOut { what: "the body stopped coming", ms: between })??)
    }

    fn finish(&mut self) -> Result<Option<Bytes>, EgressError> {
        // A response to HEAD names the compression of its body, and has none.
        let Some(mut cleaner) = self.cleaner.take().filter(|_| self.sent_bytes > 0) else { return Ok(None) };
        let rest = cleaner.finish(self.caps.response_bytes_max.saturating_sub(self.read_bytes))?;
        self.read_bytes = self.count(self.read_bytes, &rest)?;
        Ok(Some(rest).filter(|rest| !rest.is_empty()))
    }

    fn count(&self, before: u64, piece: &Bytes) -> Result<u64, EgressError> {
        let (now, max) = (before.saturating_add(piece.len() as u64), self.caps.response_bytes_max);
        if now > max { Err(EgressError::Limit(LimitHit::new("response_bytes_max", now, max))) } else { Ok(now) }
    }
}
