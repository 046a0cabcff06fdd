//! Bodies of requests and responses, counted piece by piece and never collected.

use super::fault::{self, TooMuchSent};
use crate::log::LogBook;
use ::http::header::CONTENT_LENGTH;
use ::http::{HeaderMap, Request, Response};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http_body::{Body as _, Frame};
use http_body_util::{BodyDataStream, BodyExt as _, Limited, StreamBody};
use longhaul_core::supervisor::Supervisor;
use longhaul_core::{InvocationId, LimitHit};
use longhaul_egress::{Cleaner, FIELD_BYTES_MAX};
use reqwest::{Body, Url};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;
use wasmtime_wasi_http::{Error, WasiBody};

/// Counts outgoing bytes for the tool's run.
#[derive(Clone)]
pub(super) struct Meter {
    pub(super) supervisor: Arc<dyn Supervisor>,
    pub(super) caller: InvocationId,
}

impl Meter {
    /// The fourth gate: a cap of the whole run.
    pub(super) fn sends(&self, bytes: usize) -> Result<(), LimitHit> {
        self.supervisor.sends(&self.caller, bytes as u64)
    }
}

/// The limits of a response's body.
pub(super) struct Count {
    pub(super) host: String,
    pub(super) max: u64,
    pub(super) between: Duration,
    pub(super) log: LogBook,
    /// Redacts secrets.
    pub(super) cleaner: Option<Cleaner>,
    /// Released when the body is dropped.
    #[expect(dead_code, reason = "held, not read")]
    pub(super) permit: OwnedSemaphorePermit,
}

/// Bytes of a request before its body, as HTTP/1 writes them.
pub(super) fn head_bytes(request: &Request<WasiBody>) -> usize {
    let fields = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum::<usize>();
    let path = request.uri().path_and_query().map_or(1, |path| path.as_str().len());
    request.method().as_str().len() + path + fields + 12
}

/// The third gate, for outgoing bodies: a request of the client that breaks off at `bytes_max`.
pub(super) fn limited(
    url: Url,
    request: Request<WasiBody>,
    bytes_max: u64,
    meter: Meter,
) -> Result<reqwest::Request, Error> {
    let (parts, body) = request.into_parts();
    if let Some(said) = length(&parts.headers).filter(|said| *said > bytes_max) {
        return Err(Error::HttpRequestBodySize(Some(said)));
    }
    let mut request = reqwest::Request::new(parts.method, url);
    *request.headers_mut() = parts.headers;
    // An empty body must not become a chunked one: servers refuse a GET that has one.
    if !body.is_end_stream() {
        *request.body_mut() = Some(outgoing(body, bytes_max, meter));
    }
    Ok(request)
}

/// The third gate, for outgoing bodies to an [`super::Exchange`]: a request with its whole body.
pub(super) async fn whole(request: Request<WasiBody>, bytes_max: u64, meter: &Meter) -> Result<Request<Bytes>, Error> {
    let (parts, body) = request.into_parts();
    let limit = usize::try_from(bytes_max).unwrap_or(usize::MAX);
    let collected = Limited::new(body, limit).collect().await;
    let bytes = collected.map_err(|_| Error::HttpRequestBodySize(Some(bytes_max.saturating_add(1))))?.to_bytes();
    meter.sends(bytes.len()).map_err(|hit| fault::of_cap(&hit))?;
    Ok(Request::from_parts(parts, bytes))
}

/// The third gate, for incoming bodies.
pub(super) fn counted(response: reqwest::Response, count: Count) -> Result<Response<WasiBody>, Error> {
    let (parts, body) = Response::<Body>::from(response).into_parts();
    let bytes: usize = parts.headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    if bytes > FIELD_BYTES_MAX {
        return Err(Error::HttpResponseHeaderSectionSize(u32::try_from(bytes).ok()));
    }
    Ok(Response::from_parts(parts, incoming(body, count)))
}

fn outgoing(body: WasiBody, bytes_max: u64, meter: Meter) -> Body {
    let mut used: u64 = 0;
    Body::wrap_stream(BodyDataStream::new(body).map(
        move |piece| -> Result<Bytes, Box<dyn std::error::Error + Send + Sync>> {
            let piece = piece?;
            used = used.saturating_add(piece.len() as u64);
            if used > bytes_max {
                return Err(Box::new(TooMuchSent(used)));
            }
            meter.sends(piece.len())?;
            Ok(piece)
        },
    ))
}

fn incoming(body: Body, count: Count) -> WasiBody {
    let frames = stream::try_unfold((body, count, 0_u64), |(mut body, mut count, used)| async move {
        match next(&mut body, &mut count, used).await {
            Ok(None) => Ok(None),
            Ok(Some((frame, used))) => Ok(Some((frame, (body, count, used)))),
            Err(error) => Err(fault::told(&count.log, &count.host, error)),
        }
    });
    StreamBody::new(frames).boxed_unsync()
}

async fn next(body: &mut Body, count: &mut Count, used: u64) -> Result<Option<(Frame<Bytes>, u64)>, Error> {
    let frame = timeout(count.between, body.frame()).await.map_err(|_| Error::ConnectionReadTimeout)?;
    let frame = frame.transpose().map_err(fault::of_client)?;
    let Some(frame) = cleaned(frame, count, used)? else { return Ok(None) };
    let used = used.saturating_add(frame.data_ref().map_or(0, Bytes::len) as u64);
    if used > count.max {
        return Err(Error::HttpResponseBodySize(Some(used)));
    }
    Ok(Some((frame, used)))
}

/// A piece without secrets. Withheld bytes follow at the end, and trailers are dropped.
fn cleaned(frame: Option<Frame<Bytes>>, count: &mut Count, used: u64) -> Result<Option<Frame<Bytes>>, Error> {
    let Some(cleaner) = &mut count.cleaner else { return Ok(frame) };
    let room = count.max.saturating_sub(used);
    let piece = match frame {
        Some(frame) => cleaner.push(frame.into_data().unwrap_or_default(), room),
        None => {
            let rest = cleaner.finish(room).map_err(fault::of_guard)?;
            count.cleaner = None;
            return Ok(Some(rest).filter(|rest| !rest.is_empty()).map(Frame::data));
        }
    };
    piece.map(|piece| Some(Frame::data(piece))).map_err(fault::of_guard)
}

fn length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
