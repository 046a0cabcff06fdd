//! Events of runs as server-sent events. A run never waits for its readers.
//!
//! Durable events carry their number as `id`, so a client that lost its connection resumes after the last it has, also
//! at another process. Slow readers lose live parts and receive `lagged`; after 30 s without reading they are
//! disconnected. The token of a client is checked again at each heartbeat, when it expires, and when any is removed.

use super::gate::Caller;
use super::problem::Problem;
use super::state::{Place, SharedState};
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream::unfold;
use http::{HeaderValue, header};
use longhaul_api::seen::RunNotification;
use longhaul_api::tokens::TokenScope;
use longhaul_core::RunId;
use longhaul_core::event::RunEvent;
use longhaul_core::stream::{Content, StreamLine};
use longhaul_listen::stopped;
use longhaul_records::bus::BusMessage;
use longhaul_service::watch_here;
use serde_json::json;
use std::collections::HashSet;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, Interval, MissedTickBehavior};

/// Time between two heartbeats, so that no proxy takes a silent stream for a dead one.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Time without reading after which a client is disconnected.
const READER_WAIT: Duration = Duration::from_secs(30);

/// Bytes of frames that are gathered before they are sent.
const FRAMES_BYTES_MAX: usize = 64 << 10;

/// Time that a client waits before it reconnects, in milliseconds.
const RETRY_MS: u32 = 1_000;

/// Streams the events of a run after a number. With `follow` the stream stays open while no process works on the run,
/// and goes on with it; otherwise it ends then.
pub fn of_run(state: &SharedState, caller: Caller, place: Place, run: RunId, after: u64, follow: bool) -> Response {
    let reading = Reading {
        state: state.clone(),
        run,
        last: after,
        follow,
        seen: None,
        news: state.service.news(),
        pulse: Pulse::new(state, caller),
        began: false,
        is_gone: false,
        is_over: false,
        _place: place,
    };
    respond(unfold(reading, async |mut reading| reading.next().await.map(|frames| (Ok(frames), reading))))
}

/// Streams the durable events of all runs from now on.
pub fn of_all(state: &SharedState, caller: Caller, place: Place) -> Response {
    let (sender, frames) = mpsc::channel(256);
    let gathering = OwnedTask(tokio::spawn(gather(state.clone(), sender)));
    let reading = (frames, Pulse::new(state, caller), gathering, place);
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

fn respond(frames: impl futures_util::Stream<Item = Result<Bytes, Infallible>> + Send + 'static) -> Response {
    let mut response = Response::new(Body::from_stream(frames));
    let fields = response.headers_mut();
    fields.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    // Tells proxies not to keep a frame until there are more.
    fields.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// A task that is aborted when its owner is dropped.
struct OwnedTask(JoinHandle<()>);

impl Drop for OwnedTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The heartbeats of a stream, and the checks that end it.
struct Pulse {
    state: SharedState,
    caller: Caller,
    beat: Interval,
    stop: watch::Receiver<bool>,
    removed: watch::Receiver<u64>,
    /// Expiry of the caller's token; none once it has passed.
    expires: Option<Instant>,
    is_refused: bool,
}

impl Pulse {
    fn new(state: &SharedState, caller: Caller) -> Self {
        let mut beat = tokio::time::interval_at(Instant::now() + HEARTBEAT, HEARTBEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let left_ms = caller.expires_ms().map(|until| until.saturating_sub(state.service.now_ms()));
        let expires = left_ms.and_then(|left| Instant::now().checked_add(Duration::from_millis(left)));
        let (stop, removed) = (state.stop.clone(), state.service.tokens_removed());
        Self { state: state.clone(), caller, beat, stop, removed, expires, is_refused: false }
    }

    /// A heartbeat, or the problem of a client that is admitted no more; none when the stream is to end.
    async fn next(&mut self) -> Option<Bytes> {
        if self.is_refused {
            return None;
        }
        tokio::select! {
            _ = self.beat.tick() => {}
            Ok(()) = self.removed.changed() => {}
            () = passed(self.expires) => self.expires = None,
            () = stopped(&mut self.stop) => return None,
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

/// The last frame of a stream whose client is admitted no more.
fn refused(problem: &Problem) -> String {
    // A problem that cannot be written would be our own fault; the stream ends all the same.
    let text = serde_json::to_string(problem).unwrap_or_default();
    format!("event: problem\ndata: {text}\n\n")
}

/// A client that reads a run.
struct Reading {
    state: SharedState,
    run: RunId,
    /// Number of the last event that was sent.
    last: u64,
    follow: bool,
    /// The watcher of the run; none while no process works on it.
    seen: Option<(mpsc::Receiver<RunNotification>, OwnedTask)>,
    news: broadcast::Receiver<RunId>,
    pulse: Pulse,
    began: bool,
    /// True when the client was told that no process works on the run, and received no event since.
    is_gone: bool,
    is_over: bool,
    _place: Place,
}

impl Reading {
    /// The next frames; none at the end.
    async fn next(&mut self) -> Option<Bytes> {
        if self.is_over || self.pulse.is_refused {
            return None;
        }
        if !self.began {
            self.began = true;
            self.watch();
            return Some(format!("retry: {RETRY_MS}\n\n").into());
        }
        loop {
            let is_idle = self.seen.is_none();
            tokio::select! {
                seen = next_seen(&mut self.seen) => {
                    let frames = self.take(seen);
                    if !frames.is_empty() {
                        return Some(frames.into());
                    }
                    if self.is_over {
                        return None;
                    }
                }
                news = self.news.recv(), if is_idle => match news {
                    Ok(run) if run != self.run => {}
                    Ok(_) | Err(RecvError::Lagged(_)) => self.watch(),
                    Err(RecvError::Closed) => return None,
                },
                beat = self.pulse.next() => return beat,
            }
        }
    }

    fn watch(&mut self) {
        let (sender, receiver) = mpsc::channel(256);
        let (state, run, after) = (self.state.clone(), self.run.clone(), self.last);
        let task = tokio::spawn(async move { watch_here(&state.service, &run, after, &sender).await });
        self.seen = Some((receiver, OwnedTask(task)));
    }

    /// Writes frames of what was seen, and of everything else that has arrived.
    fn take(&mut self, seen: Option<RunNotification>) -> String {
        let mut frames = String::new();
        let mut next = seen;
        loop {
            let Some(seen) = next else {
                // The watcher ended without `Gone`: the store does not answer.
                self.is_over = true;
                return frames;
            };
            self.write(seen, &mut frames);
            let Some((receiver, _)) = self.seen.as_mut().filter(|_| !self.is_over) else { return frames };
            if frames.len() > FRAMES_BYTES_MAX {
                return frames;
            }
            match receiver.try_recv() {
                Ok(seen) => next = Some(seen),
                Err(_) => return frames,
            }
        }
    }

    fn write(&mut self, seen: RunNotification, frames: &mut String) {
        let after = self.last;
        let (name, id, content) = match seen {
            RunNotification::Event(event) => {
                (self.last, self.is_gone) = (event.number, false);
                return frame(frames, Some(event.number), "event", &StreamLine::of(event));
            }
            RunNotification::Token(token) => ("token", None, Content::Token(token)),
            RunNotification::Lagged => ("lagged", None, Content::Lagged { after }),
            RunNotification::Dropped => {
                self.is_over = true;
                ("dropped", None, Content::Dropped { after })
            }
            RunNotification::Gone(error) => {
                (self.seen, self.is_over) = (None, !self.follow);
                if std::mem::replace(&mut self.is_gone, true) {
                    return;
                }
                ("gone", None, Content::End { after, error })
            }
        };
        frame(frames, id, name, &StreamLine { run: self.run.clone(), content });
    }
}

async fn next_seen(seen: &mut Option<(mpsc::Receiver<RunNotification>, OwnedTask)>) -> Option<RunNotification> {
    match seen {
        Some((receiver, _)) => receiver.recv().await,
        None => std::future::pending().await,
    }
}

fn frame(frames: &mut String, id: Option<u64>, name: &str, line: &StreamLine) {
    // A line that cannot be written would be our own fault; the stream goes on without it.
    let Ok(text) = serde_json::to_string(line) else { return };
    if let Some(id) = id {
        let _ = writeln!(frames, "id: {id}");
    }
    let _ = write!(frames, "event: {name}\ndata: {text}\n\n");
}

/// Sends the durable events of all runs until the client is gone.
async fn gather(state: SharedState, sender: mpsc::Sender<Bytes>) {
    let mut news = state.service.news();
    let mut gathering = Gathering { state, sender, at_work: JoinSet::new(), watched: HashSet::new() };
    let _ = gathering.all(&mut news).await;
}

/// A client that reads all runs.
struct Gathering {
    state: SharedState,
    sender: mpsc::Sender<Bytes>,
    at_work: JoinSet<RunId>,
    watched: HashSet<RunId>,
}

/// The client is gone, or does not read.
struct ClientGone;

impl Gathering {
    async fn all(&mut self, news: &mut broadcast::Receiver<RunId>) -> Result<(), ClientGone> {
        let active = self.state.service.active();
        let runs: Vec<_> = active.iter().map(|run| json!({ "run": run, "last": self.last(run) })).collect();
        let hello = format!("retry: {RETRY_MS}\nevent: hello\ndata: {}\n\n", json!({ "runs": runs }));
        send(&self.sender, hello).await?;
        active.into_iter().for_each(|run| self.follow(run));
        loop {
            tokio::select! {
                new = news.recv() => match new {
                    Ok(run) => self.changed(run).await?,
                    Err(RecvError::Lagged(_)) => send(&self.sender, "event: lagged\ndata: {}\n\n".to_owned()).await?,
                    Err(RecvError::Closed) => return Ok(()),
                },
                Some(ended) = self.at_work.join_next() => {
                    if let Ok(run) = ended {
                        self.watched.remove(&run);
                    }
                }
            }
        }
    }

    async fn changed(&mut self, run: RunId) -> Result<(), ClientGone> {
        let active = self.state.service.active().contains(&run);
        let changed = json!({ "run": run, "last": self.last(&run), "active": active });
        send(&self.sender, format!("event: run\ndata: {changed}\n\n")).await?;
        if active {
            self.follow(run);
        }
        Ok(())
    }

    fn last(&self, run: &RunId) -> u64 {
        self.state.service.last_event(run).unwrap_or(0)
    }

    fn follow(&mut self, run: RunId) {
        if !self.watched.insert(run.clone()) {
            return;
        }
        // Watched before the number is read, so that no event falls between.
        let watching = self.state.service.watch(&run);
        let last = self.last(&run);
        let (state, sender) = (self.state.clone(), self.sender.clone());
        self.at_work.spawn(async move {
            if let Some(watching) = watching {
                let _ = one(&state, &run, last, watching.receiver, &sender).await;
            }
            run
        });
    }
}

/// Sends the durable events of one run until no process works on it.
async fn one(
    state: &SharedState,
    run: &RunId,
    mut last: u64,
    mut heard: broadcast::Receiver<BusMessage>,
    sender: &mpsc::Sender<Bytes>,
) -> Result<(), ClientGone> {
    loop {
        let is_over = match heard.recv().await {
            Ok(BusMessage::Event(event)) if event.number == last + 1 => {
                last = event.number;
                send_event(sender, event).await?;
                continue;
            }
            Ok(BusMessage::Token(_)) => continue,
            Ok(BusMessage::Event(_)) | Err(RecvError::Lagged(_)) => false,
            Ok(BusMessage::Gone { .. }) | Err(RecvError::Closed) => true,
        };
        for event in state.service.events(run, last).map_err(|_| ClientGone)? {
            last = event.number;
            send_event(sender, event).await?;
        }
        if is_over {
            return Ok(());
        }
    }
}

async fn send_event(sender: &mpsc::Sender<Bytes>, event: RunEvent) -> Result<(), ClientGone> {
    let mut text = String::new();
    frame(&mut text, None, "event", &StreamLine::of(event));
    send(sender, text).await
}

async fn send(sender: &mpsc::Sender<Bytes>, text: String) -> Result<(), ClientGone> {
    sender.send_timeout(text.into(), READER_WAIT).await.map_err(|_| ClientGone)
}
