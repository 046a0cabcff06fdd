//! The output of a job as server-sent events while it runs, and its report at the end.
//!
//! The job never waits for its reader: output waits in a queue that is bounded, and a slow reader is told with `lagged`
//! how much of it was left out; the report has it. The job ends with its stream, since nobody else gets its report.

use super::problem::Problem;
use super::sse::{ClientGone, FRAMES_BYTES_MAX, Pulse, frame, of_task, refused, send};
use super::state::Place;
use axum::response::Response;
use bytes::Bytes;
use longhaul_exec::{Job, JobReport, LossyDecoder, OutputSink, StandardStream};
use serde::Serialize;
use serde_json::json;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, mpsc};
use tokio::task::{JoinError, JoinSet};
use utoipa::ToSchema;

/// Frames that wait for a client beside the queue, each of [`FRAMES_BYTES_MAX`] and one event.
const FRAMES_MAX: usize = 2;

/// Bytes of output that wait for a client: 1 MiB, as much as is kept of the output of a graph.
const QUEUE_BYTES_MAX: usize = 1 << 20;

/// Bytes of the text of one event.
const TEXT_BYTES_MAX: usize = 4 << 10;

/// Bytes that a piece of output takes beside its text, about.
const PIECE_BYTES: usize = 64;

/// The data of the events `stdout` and `stderr` of a job that runs.
#[derive(Serialize, ToSchema)]
pub struct PrintedText {
    /// The next text of that stream, as the code printed it, of at most 4 KiB.
    text: String,
}

/// Runs a job, and streams what it prints and then its report. The job is stopped when the client goes away.
pub(super) fn of_job<F>(pulse: Pulse, place: Place, job: Job, run: impl FnOnce(Job) -> F) -> Response
where
    F: Future<Output = Result<JobReport, Problem>> + Send + 'static,
{
    let queue = Arc::new(OutputQueue::default());
    let sink: Arc<dyn OutputSink> = Arc::<OutputQueue>::clone(&queue);
    let running = run(Job { sink: Some(sink), ..job });
    of_task(pulse, place, FRAMES_MAX, move |sender| async move {
        let _ = gather(&queue, running, &sender).await;
    })
}

/// Sends the output of a job until its end, and then how it ended.
async fn gather<F>(queue: &OutputQueue, running: F, sender: &mpsc::Sender<Bytes>) -> Result<(), ClientGone>
where
    F: Future<Output = Result<JobReport, Problem>> + Send + 'static,
{
    // A task of its own, so that a slow reader does not hold the job up. It is aborted when the set is dropped.
    let mut job = JoinSet::new();
    job.spawn(running);
    loop {
        tokio::select! {
            () = queue.changed.notified() => queue.send_all(sender).await?,
            Some(ended) = job.join_next() => {
                queue.send_all(sender).await?;
                return send(sender, last(ended)).await;
            }
        }
    }
}

/// The last frame: the report, or the problem of a job without one.
fn last(ended: Result<Result<JobReport, Problem>, JoinError>) -> String {
    match ended {
        Ok(Ok(report)) => {
            let mut text = String::new();
            frame(&mut text, None, "result", &report);
            text
        }
        Ok(Err(problem)) => refused(&problem),
        Err(_) => refused(&Problem::internal()),
    }
}

/// Output that waits for its reader.
#[derive(Debug, Default)]
struct OutputQueue {
    waiting: Mutex<WaitingOutput>,
    changed: Notify,
}

impl OutputSink for OutputQueue {
    fn write(&self, stream: StandardStream, bytes: &[u8]) {
        self.waiting().push(stream, bytes);
        self.changed.notify_one();
    }
}

impl OutputQueue {
    async fn send_all(&self, sender: &mpsc::Sender<Bytes>) -> Result<(), ClientGone> {
        loop {
            let frames = self.waiting().take();
            if frames.is_empty() {
                return Ok(());
            }
            send(sender, frames).await?;
        }
    }

    fn waiting(&self) -> MutexGuard<'_, WaitingOutput> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, Default)]
struct WaitingOutput {
    /// The pieces, in the order of the writes.
    pieces: VecDeque<OutputPiece>,
    /// Bytes of the pieces.
    bytes: usize,
    /// Bytes of text that left the queue unread since the reader was last told.
    bytes_dropped: usize,
    stdout: LossyDecoder,
    stderr: LossyDecoder,
}

#[derive(Debug)]
struct OutputPiece {
    stream: StandardStream,
    text: String,
}

impl OutputPiece {
    fn bytes(&self) -> usize {
        PIECE_BYTES + self.text.len()
    }
}

impl WaitingOutput {
    /// Adds output. The oldest output leaves a queue that is full.
    fn push(&mut self, stream: StandardStream, bytes: &[u8]) {
        let text = match stream {
            StandardStream::Output => self.stdout.push(bytes),
            StandardStream::Error => self.stderr.push(bytes),
        };
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let (piece, more) = rest.split_at(rest.floor_char_boundary(TEXT_BYTES_MAX));
            self.add(stream, piece);
            rest = more;
        }
        while self.bytes > QUEUE_BYTES_MAX
            && let Some(oldest) = self.pop()
        {
            self.bytes_dropped += oldest.text.len();
        }
    }

    /// Adds text to the last piece if it fits, else as a new one.
    fn add(&mut self, stream: StandardStream, text: &str) {
        match self.pieces.back_mut() {
            Some(last) if last.stream == stream && last.text.len() + text.len() <= TEXT_BYTES_MAX => {
                last.text.push_str(text);
                self.bytes += text.len();
            }
            _ => {
                let piece = OutputPiece { stream, text: text.to_owned() };
                self.bytes += piece.bytes();
                self.pieces.push_back(piece);
            }
        }
    }

    fn pop(&mut self) -> Option<OutputPiece> {
        let piece = self.pieces.pop_front()?;
        self.bytes -= piece.bytes();
        Some(piece)
    }

    /// Frames of what waits, the oldest first, and of what left unread before it. Empty when nothing waits.
    fn take(&mut self) -> String {
        let mut frames = String::new();
        let bytes_dropped = std::mem::take(&mut self.bytes_dropped);
        if bytes_dropped > 0 {
            frame(&mut frames, None, "lagged", &json!({ "bytes_dropped": bytes_dropped }));
        }
        while frames.len() < FRAMES_BYTES_MAX
            && let Some(OutputPiece { stream, text }) = self.pop()
        {
            frame(&mut frames, None, name_of(stream), &PrintedText { text });
        }
        frames
    }
}

fn name_of(stream: StandardStream) -> &'static str {
    match stream {
        StandardStream::Output => "stdout",
        StandardStream::Error => "stderr",
    }
}

#[cfg(test)]
mod tests {
    use super::StandardStream::{Error, Output};
    use super::*;
    use serde_json::Value;
    use tokio::sync::oneshot;

    /// The events of frames, each with its data.
    fn events(frames: &str) -> Vec<(String, Value)> {
        let event = |text: &str| {
            let (name, data) = text.strip_prefix("event: ")?.split_once("\ndata: ")?;
            Some((name.to_owned(), serde_json::from_str(data).expect("JSON")))
        };
        frames.split_terminator("\n\n").map(|text| event(text).expect("an event")).collect()
    }

    #[test]
    fn output_keeps_its_order_and_its_characters_and_small_writes_become_one_event() {
        let mut waiting = WaitingOutput::default();
        let writes = [
            (Output, &b"one\n"[..]),
            (Output, b"Zo\xc3"),
            (Error, b"warned\n"),
            (Output, b"\xab\n"),
            (Output, b"\xe6"),
        ];
        for (stream, bytes) in writes {
            waiting.push(stream, bytes);
        }
        let expected = [("stdout", "one\nZo"), ("stderr", "warned\n"), ("stdout", "ë\n")];
        let expected = expected.map(|(name, text)| (name.to_owned(), json!({ "text": text })));
        assert_eq!(events(&waiting.take()), expected);
        assert_eq!((waiting.take(), waiting.bytes), (String::new(), 0));
    }

    #[test]
    fn text_of_one_event_is_bounded_and_no_character_is_cut() {
        let mut waiting = WaitingOutput::default();
        let text = format!("x{}", "é".repeat(TEXT_BYTES_MAX));
        waiting.push(Output, text.as_bytes());
        let events = events(&waiting.take());
        let texts: Vec<&str> = events.iter().filter_map(|(_, data)| data["text"].as_str()).collect();
        assert_eq!(texts.concat(), text);
        assert!(texts.iter().all(|text| text.len() <= TEXT_BYTES_MAX), "{}", texts.len());
    }

    #[test]
    fn writes_of_one_byte_do_not_fill_memory() {
        let mut waiting = WaitingOutput::default();
        for _ in 0..QUEUE_BYTES_MAX / PIECE_BYTES {
            waiting.push(Output, b"o");
            waiting.push(Error, b"e");
        }
        assert!(waiting.pieces.len() <= QUEUE_BYTES_MAX / PIECE_BYTES, "{}", waiting.pieces.len());
        assert!(waiting.bytes_dropped > 0);
    }

    #[tokio::test]
    async fn a_job_ends_although_nobody_reads_and_its_reader_is_told_what_was_left_out() {
        const WRITE: &[u8] = &[b'x'; 64 << 10];
        const WRITES: usize = 64;
        let queue = Arc::new(OutputQueue::default());
        let printed = Arc::clone(&queue);
        let (end, ended) = oneshot::channel();
        let running = async move {
            for _ in 0..WRITES {
                printed.write(Output, WRITE);
                tokio::task::yield_now().await;
            }
            end.send(()).expect("it is waited for");
            Err(Problem::unknown("it is over"))
        };
        let (sender, mut frames) = mpsc::channel(FRAMES_MAX);
        let gathering = tokio::spawn(async move { gather(&queue, running, &sender).await.is_ok() });
        ended.await.expect("the job waits for no reader");
        let mut all = String::new();
        while let Some(frame) = frames.recv().await {
            all.push_str(std::str::from_utf8(&frame).expect("text"));
        }
        let events = events(&all);
        let sum = |named: &str, size: fn(&Value) -> usize| -> usize {
            events.iter().filter(|(name, _)| name == named).map(|(_, data)| size(data)).sum()
        };
        let read = sum("stdout", |data| data["text"].as_str().map_or(0, str::len));
        let dropped = sum("lagged", |data| data["bytes_dropped"].as_u64().map_or(0, |bytes| bytes.try_into().unwrap()));
        assert_eq!(read + dropped, WRITES * WRITE.len());
        assert!(dropped > 0 && read >= QUEUE_BYTES_MAX / 2, "{read} bytes were read, {dropped} were left out");
        let (name, problem) = events.last().expect("an event");
        assert_eq!((name.as_str(), &problem["status"]), ("problem", &json!(404)));
        assert!(gathering.await.expect("no panic"), "the client was there");
    }

    #[tokio::test]
    async fn a_client_that_goes_away_ends_its_job() {
        let queue = Arc::new(OutputQueue::default());
        let (alive, mut is_alive) = mpsc::channel::<()>(1);
        let printed = Arc::clone(&queue);
        let running = async move {
            let _alive = alive;
            printed.write(Output, b"first\n");
            std::future::pending().await
        };
        let (sender, mut frames) = mpsc::channel(FRAMES_MAX);
        let gathering = tokio::spawn(async move { gather(&queue, running, &sender).await });
        assert!(frames.recv().await.is_some(), "the output came");
        gathering.abort();
        assert_eq!(is_alive.recv().await, None, "the job is gone");
    }
}
