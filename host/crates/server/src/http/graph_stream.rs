//! The output of the steps of a graph as server-sent events, while they run.
//!
//! Each event carries its number as `id`, so a client that lost its connection resumes after the last that it has. A
//! step never waits for a reader: a slow one is told with `lagged` how many events it missed, and one that does not
//! read for 30 s is disconnected.

use super::gate::Caller;
use super::problem::Problem;
use super::sse::{ClientGone, Pulse, RETRY_MS, frame, of_task, refused, send};
use super::state::{Place, SharedState};
use axum::response::Response;
use bytes::Bytes;
use longhaul_api::graph_output::{GraphOutputPage, OUTPUT_WAIT_MS_MAX, ReadGraphOutput};
use longhaul_api::operations::GraphOperations as _;
use longhaul_api::wire::graphs::GraphOutputLine;
use serde_json::json;
use tokio::sync::mpsc;

/// Answers of the service that wait for a client, of 256 KiB each.
const FRAMES_MAX: usize = 2;

/// Streams the events of a graph after a number. With `follow` the stream stays open while nothing of the graph runs;
/// otherwise it ends then.
pub fn of_graph(
    state: &SharedState,
    caller: Caller,
    place: Place,
    graph: String,
    after: u64,
    follow: bool,
) -> Response {
    let reading = GraphReading { state: state.clone(), graph, after, follow, is_running: false, is_idle: false };
    of_task(Pulse::new(state, caller), place, FRAMES_MAX, |sender| reading.gather(sender))
}

/// A client that reads the output of a graph.
struct GraphReading {
    state: SharedState,
    graph: String,
    /// Number of the last event that was sent.
    after: u64,
    follow: bool,
    is_running: bool,
    /// True when the client was told that nothing runs, and received no event since.
    is_idle: bool,
}

impl GraphReading {
    async fn gather(mut self, sender: mpsc::Sender<Bytes>) {
        let _ = self.send_all(&sender).await;
    }

    async fn send_all(&mut self, sender: &mpsc::Sender<Bytes>) -> Result<(), ClientGone> {
        send(sender, format!("retry: {RETRY_MS}\n\n")).await?;
        loop {
            let wait_ms = if self.follow || self.is_running { OUTPUT_WAIT_MS_MAX } else { 0 };
            let request = ReadGraphOutput { name: self.graph.clone(), after: self.after, token: None, wait_ms };
            let frames = match self.state.graph_output(request).await {
                Ok(page) => self.take(page),
                // It was removed, or the store does not answer.
                Err(error) => return send(sender, refused(&Problem::from(error))).await,
            };
            if !frames.is_empty() {
                send(sender, frames).await?;
            }
            if self.is_idle && !self.follow {
                return Ok(());
            }
        }
    }

    /// Writes frames of the next events.
    fn take(&mut self, page: GraphOutputPage) -> String {
        let GraphOutputPage { events, last, dropped, is_running } = page;
        (self.after, self.is_running) = (last, is_running);
        let mut frames = String::new();
        if dropped > 0 {
            frame(&mut frames, None, "lagged", &json!({ "dropped": dropped }));
        }
        let was_idle = std::mem::replace(&mut self.is_idle, events.is_empty() && !is_running);
        for event in events {
            let line = GraphOutputLine::from(event);
            frame(&mut frames, Some(line.number), &line.r#type, &line);
        }
        if self.is_idle && !was_idle {
            frame(&mut frames, None, "idle", &json!({ "after": last }));
        }
        frames
    }
}
