//! Server-sent events: frames that a task gathers, heartbeats, and what ends a stream.
//!
//! Whatever a stream tells of never waits for its reader: a client that does not read for 30 s is disconnected. The
//! token of a client is checked again at each heartbeat, when it expires, and when any is removed.

use super::gate::Caller;
use super::problem::Problem;
use super::state::{Place, SharedState};
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream::unfold;
use http::{HeaderMap, HeaderValue, header};
use longhaul_api::tokens::TokenScope;
use longhaul_listen::stopped;
use serde::Serialize;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, Interval, MissedTickBehavior};

/// The media type of a stream.
pub(super) const MEDIA_TYPE: &str = "text/event-stream";

/// Time between two heartbeats, so that no proxy takes a silent stream for a dead one.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Time without reading after which a client is disconnected.
const READER_WAIT: Duration = Duration::from_secs(30);

/// Bytes of frames that are gathered before they are sent.
pub(super) const FRAMES_BYTES_MAX: usize = 64 << 10;

/// Time that a client waits before it reconnects, in milliseconds.
pub(super) const RETRY_MS: u32 = 1_000;

/// True for a client whose header `Accept` names a stream, and does not prefer JSON to it.
pub(super) fn is_wanted(headers: &HeaderMap) -> bool {
    let stream = weight(headers, MEDIA_TYPE);
    stream > 0.0 && stream >= weight(headers, "application/json")
}

/// The weight that the header `Accept` gives to a media type by its name; 0 where it does not name it.
fn weight(headers: &HeaderMap, kind: &str) -> f32 {
    let lines = headers.get_all(header::ACCEPT).iter().filter_map(|line| line.to_str().ok());
    let weights = lines.flat_map(|line| line.split(',')).filter_map(|range| {
        let mut parts = range.split(';').map(str::trim);
        parts.next().filter(|named| named.eq_ignore_ascii_case(kind))?;
        parts.find_map(|part| part.strip_prefix("q=")).map_or(Some(1.0), |weight| weight.parse().ok())
    });
    weights.fold(0.0, f32::max)
}

/// Streams the frames that a task sends, until it ends or the client is admitted no more. At most `frames_max` of them
/// wait for the client.
pub(super) fn of_task<F: Future<Output = ()> + Send + 'static>(
    pulse: Pulse,
    place: Place,
    frames_max: usize,
    task: impl FnOnce(mpsc::Sender<Bytes>) -> F,
) -> Response {
    let (sender, frames) = mpsc::channel(frames_max);
    let gathering = OwnedTask(tokio::spawn(task(sender)));
    let reading = (frames, pulse, gathering, place);
    respond(unfold(reading, async |mut reading| {
        let (frames, pulse, ..) = &mut reading;
        if pulse.is_refused {
            return None;
        }
        let frame = tokio::select! {
            frame = frames.recv() => frame?,
            beat = pulse.next() => beat?,
        };
        Some((Ok(frame), reading))
    }))
}

/// A response of these frames.
pub(super) fn respond(
    frames: impl futures_util::Stream<Item = Result<Bytes, Infallible>> + Send + 'static,
) -> Response {
    let mut response = Response::new(Body::from_stream(frames));
    let fields = response.headers_mut();
    fields.insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    // Tells proxies not to keep a frame until there are more.
    fields.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// A task that is aborted when its owner is dropped.
pub(super) struct OwnedTask(pub(super) JoinHandle<()>);

impl Drop for OwnedTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The heartbeats of a stream, and the checks that end it.
pub(super) struct Pulse {
    state: SharedState,
    caller: Caller,
    beat: Interval,
    /// Ends the stream with the server; none when the stream ends by itself.
    stop: Option<watch::Receiver<bool>>,
    removed: watch::Receiver<u64>,
    /// Expiry of the caller's token; none once it has passed.
    expires: Option<Instant>,
    /// True when the client was told that it is admitted no more: nothing follows.
    pub(super) is_refused: bool,
}

impl Pulse {
    /// The pulse of a stream without an end, which ends when the server is to end.
    pub(super) fn new(state: &SharedState, caller: Caller) -> Self {
        let stop = Some(state.stop.clone());
        Self { stop, ..Self::of_request(state, caller) }
    }

    /// The pulse of a stream that ends by itself. A server that is to end lets it go on, as other requests.
    pub(super) fn of_request(state: &SharedState, caller: Caller) -> Self {
        let mut beat = tokio::time::interval_at(Instant::now() + HEARTBEAT, HEARTBEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let left_ms = caller.expires_ms().map(|until| until.saturating_sub(state.service.now_ms()));
        let expires = left_ms.and_then(|left| Instant::now().checked_add(Duration::from_millis(left)));
        let removed = state.service.tokens_removed();
        Self { state: state.clone(), caller, beat, stop: None, removed, expires, is_refused: false }
    }

    /// A heartbeat, or the problem of a client that is admitted no more; none when the stream is to end.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        if self.is_refused {
            return None;
        }
        tokio::select! {
            _ = self.beat.tick() => {}
            Ok(()) = self.removed.changed() => {}
            () = passed(self.expires) => self.expires = None,
            () = ended(&mut self.stop) => return None,
        }
        match self.caller.expect_still(&self.state, TokenScope::Read) {
            Ok(()) => Some(Bytes::from_static(b": hb\n\n")),
            Err(problem) => {
                self.is_refused = true;
                Some(refused(&problem).into())
            }
        }
    }
}

async fn passed(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

async fn ended(stop: &mut Option<watch::Receiver<bool>>) {
    match stop {
        Some(stop) => stopped(stop).await,
        None => std::future::pending().await,
    }
}

/// The last frame of a stream that ends for a problem, such as that its client is admitted no more.
pub(super) fn refused(problem: &Problem) -> String {
    // A problem that cannot be written would be our own fault; the stream ends all the same.
    let text = serde_json::to_string(problem).unwrap_or_default();
    format!("event: problem\ndata: {text}\n\n")
}

/// Writes a frame.
pub(super) fn frame(frames: &mut String, id: Option<u64>, name: &str, line: &impl Serialize) {
    // A line that cannot be written would be our own fault; the stream goes on without it.
    let Ok(text) = serde_json::to_string(line) else { return };
    if let Some(id) = id {
        let _ = writeln!(frames, "id: {id}");
    }
    let _ = write!(frames, "event: {name}\ndata: {text}\n\n");
}

/// The client is gone, or does not read.
pub(super) struct ClientGone;

/// Sends frames to a client that reads.
pub(super) async fn send(sender: &mpsc::Sender<Bytes>, text: String) -> Result<(), ClientGone> {
    sender.send_timeout(text.into(), READER_WAIT).await.map_err(|_| ClientGone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(accept: &'static str, expected: bool) {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
        assert_eq!(is_wanted(&headers), expected, "{accept}");
    }

    #[test]
    fn a_stream_is_answered_to_who_names_it_and_does_not_prefer_json() {
        assert!(!is_wanted(&HeaderMap::new()));
        for accept in ["text/event-stream", "Text/Event-Stream ; q=0.2", "*/*, text/event-stream"] {
            check(accept, true);
        }
        check("application/json;q=0.9, text/event-stream", true);
        for accept in ["", "*/*", "text/*", "application/json", "text/event-stream;q=0", "text/event-stream;q=x"] {
            check(accept, false);
        }
        check("application/json, text/event-stream;q=0.9", false);
    }
}
