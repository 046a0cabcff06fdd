//! Events of runs as server-sent events. A run never waits for its readers.
//!
//! Durable events carry their number as `id`, so a client that lost its connection resumes after the last it has, also
//! at another process. Slow readers lose live parts and receive `lagged`; after 30 s without reading they are
//! disconnected.

use super::gate::Caller;
use super::sse::{ClientGone, FRAMES_BYTES_MAX, OwnedTask, Pulse, RETRY_MS, frame, of_task, respond, send};
use super::state::{Place, SharedState};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream::unfold;
use longhaul_api::seen::RunNotification;
use longhaul_core::RunId;
use longhaul_core::event::RunEvent;
use longhaul_core::stream::{Content, StreamLine};
use longhaul_records::bus::BusMessage;
use longhaul_service::watch_here;
use serde_json::json;
use std::collections::HashSet;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, mpsc};
use tokio::task::JoinSet;

/// Frames of all runs that wait for a client.
const FRAMES_MAX: usize = 256;

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
    let shared = state.clone();
    of_task(Pulse::new(state, caller), place, FRAMES_MAX, |sender| gather(shared, sender))
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
