//! The output of steps while they run, as numbered events of each graph.
//!
//! Events are in memory alone and bounded in bytes: the oldest leave, and a reader is told how many it missed. Numbers
//! begin at the time of the clock, so that a reader that comes from an earlier owner of the data directory with its
//! last number misses nothing and gets nothing twice. A step never waits for a reader, and nothing here changes what is
//! stored of it.

use longhaul_api::graph_output::{
    GraphOutputContent, GraphOutputEvent, GraphOutputPage, OUTPUT_WAIT_MS_MAX, ReadGraphOutput, StepOutcome,
};
use longhaul_core::Clock;
use longhaul_core::output::{LossyDecoder, OutputSink, StandardStream};
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// Bytes of the events that are kept of one graph: 1 MiB, as much as is kept of one stream of one step.
const LOG_BYTES_MAX: usize = 1 << 20;

/// Graphs whose events are kept while nothing runs or reads them.
const LOGS_MAX: usize = 16;

/// Bytes of the events of one answer.
const PAGE_BYTES_MAX: usize = 256 << 10;

/// Bytes of the text of one event, and of a line that is kept until its end comes.
const TEXT_BYTES_MAX: usize = 4 << 10;

/// Bytes that an event takes beside its texts, about.
const EVENT_BYTES: usize = 100;

/// Runs of a graph whose tokens are known. One runs at a time; more are only those that have just ended.
const RUNS_MAX: usize = 16;

/// Numbers for each millisecond of the clock: more events than a graph can have in that time.
const NUMBERS_PER_MS: u64 = 1_000;

/// The logs of a data directory's graphs.
pub(super) struct OutputLogs {
    clock: Arc<dyn Clock>,
    open: Mutex<OpenLogs>,
}

#[derive(Default)]
struct OpenLogs {
    by_graph: HashMap<String, Arc<OutputLog>>,
    /// The highest number of a log that was let go.
    highest: u64,
}

impl OutputLogs {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, open: Mutex::default() }
    }

    /// Begins a run of a graph, for the request of this token.
    pub(super) fn begin(&self, graph: &str, token: &str, steps: usize) -> RunOutput {
        let log = self.of(graph);
        let token: Arc<str> = token.into();
        log.change(|state| state.begin(&token));
        RunOutput { log, token, place: 0, steps: u32::try_from(steps).unwrap_or(u32::MAX) }
    }

    /// The next events of a graph, at once or when one comes within the time that the reader waits.
    pub(super) async fn read(&self, request: &ReadGraphOutput) -> GraphOutputPage {
        let log = self.of(&request.name);
        let mut changes = log.changes.subscribe();
        let page = log.page(request);
        if !page.events.is_empty() || page.dropped > 0 {
            return page;
        }
        let wait = Duration::from_millis(request.wait_ms.min(OUTPUT_WAIT_MS_MAX));
        // The page says that there is nothing new where nothing changed.
        let _ = tokio::time::timeout(wait, changes.changed()).await;
        log.page(&ReadGraphOutput { after: page.last, ..request.clone() })
    }

    /// Lets go of the events of a graph that was removed: another one may get its name.
    pub(super) fn forget(&self, graph: &str) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(graph);
    }

    fn of(&self, graph: &str) -> Arc<OutputLog> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(log) = open.by_graph.get(graph) {
            return Arc::clone(log);
        }
        if open.by_graph.len() >= LOGS_MAX {
            open.make_room();
        }
        let start = self.clock.now_ms().saturating_mul(NUMBERS_PER_MS).max(open.highest);
        let log = Arc::new(OutputLog::new(start));
        open.by_graph.insert(graph.to_owned(), Arc::clone(&log));
        log
    }
}

impl OpenLogs {
    /// Lets go of the log with the oldest last event that nothing uses.
    fn make_room(&mut self) {
        let idle = self.by_graph.iter().filter(|(_, log)| Arc::strong_count(log) == 1);
        if let Some((_, graph)) = idle.map(|(graph, log)| (log.state().last, graph.clone())).min() {
            self.remove(&graph);
        }
    }

    /// Lets go of a log. Its numbers are not given a second time.
    fn remove(&mut self, graph: &str) {
        if let Some(log) = self.by_graph.remove(graph) {
            self.highest = self.highest.max(log.state().last);
        }
    }
}

/// The events of one graph.
#[derive(Debug)]
struct OutputLog {
    state: Mutex<LogState>,
    /// Changes with every event, and when a run begins or ends.
    changes: watch::Sender<()>,
}

#[derive(Debug)]
struct LogState {
    /// Their numbers have no gaps.
    events: VecDeque<LoggedEvent>,
    bytes: usize,
    /// The number before the first event.
    start: u64,
    /// The number of the last event.
    last: u64,
    /// The highest number that a reader has: later events may still grow.
    read: u64,
    runs: VecDeque<LoggedRun>,
    at_work: usize,
}

#[derive(Debug)]
struct LoggedEvent {
    token: Arc<str>,
    event: GraphOutputEvent,
}

#[derive(Debug)]
struct LoggedRun {
    token: Arc<str>,
    /// The number before its first event.
    before: u64,
}

impl LoggedEvent {
    fn bytes(&self) -> usize {
        let text = match &self.event.content {
            GraphOutputContent::Began { .. } => 0,
            GraphOutputContent::Printed { text, .. } => text.len(),
            GraphOutputContent::Ended { value, .. } => value.as_ref().map_or(0, String::len),
        };
        EVENT_BYTES + self.event.step.len() + text
    }
}

impl OutputLog {
    fn new(start: u64) -> Self {
        let state = LogState {
            events: VecDeque::new(),
            bytes: 0,
            start,
            last: start,
            read: start,
            runs: VecDeque::new(),
            at_work: 0,
        };
        Self { state: Mutex::new(state), changes: watch::Sender::new(()) }
    }

    fn state(&self) -> MutexGuard<'_, LogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut LogState)) {
        change(&mut self.state());
        self.changes.send_replace(());
    }

    fn page(&self, request: &ReadGraphOutput) -> GraphOutputPage {
        self.state().page(request.after, request.token.as_deref())
    }
}

impl LogState {
    fn begin(&mut self, token: &Arc<str>) {
        self.at_work += 1;
        if self.runs.len() >= RUNS_MAX {
            self.runs.pop_front();
        }
        self.runs.push_back(LoggedRun { token: Arc::clone(token), before: self.last });
    }

    fn push(&mut self, token: &Arc<str>, step: &str, content: GraphOutputContent) {
        self.last += 1;
        let event = GraphOutputEvent { number: self.last, step: step.to_owned(), content };
        let logged = LoggedEvent { token: Arc::clone(token), event };
        self.bytes += logged.bytes();
        self.events.push_back(logged);
        while self.bytes > LOG_BYTES_MAX
            && let Some(oldest) = self.events.pop_front()
        {
            self.bytes -= oldest.bytes();
        }
    }

    /// Adds text to the last event if no reader has it yet, else as a new event.
    fn print(&mut self, token: &Arc<str>, step: &str, stream: StandardStream, text: &str) {
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, more) = rest.split_at(rest.floor_char_boundary(TEXT_BYTES_MAX));
            if !self.extend(token, step, stream, piece) {
                self.push(token, step, GraphOutputContent::Printed { stream, text: piece.to_owned() });
            }
            rest = more;
        }
    }

    fn extend(&mut self, token: &Arc<str>, step: &str, stream: StandardStream, more: &str) -> bool {
        let Some(LoggedEvent { token: of_token, event }) = self.events.back_mut() else { return false };
        if event.number <= self.read || !Arc::ptr_eq(of_token, token) || event.step != step {
            return false;
        }
        match &mut event.content {
            GraphOutputContent::Printed { stream: of_stream, text }
                if *of_stream == stream && text.len() + more.len() <= TEXT_BYTES_MAX =>
            {
                text.push_str(more);
                self.bytes += more.len();
                true
            }
            _ => false,
        }
    }

    fn page(&mut self, after: u64, token: Option<&str>) -> GraphOutputPage {
        // A number that no event has yet is of another owner, whose clock was ahead.
        let after = if after > self.last { self.start } else { after };
        let from = after.max(self.before(token));
        let first = self.events.front().map_or(self.last + 1, |logged| logged.event.number);
        let mut page = GraphOutputPage {
            last: from,
            dropped: first.saturating_sub(from + 1),
            is_running: self.at_work > 0,
            ..GraphOutputPage::default()
        };
        let known = usize::try_from((from + 1).saturating_sub(first)).unwrap_or(usize::MAX);
        let mut bytes = 0;
        for logged in self.events.iter().skip(known) {
            if bytes > PAGE_BYTES_MAX {
                break;
            }
            page.last = logged.event.number;
            if token.is_none_or(|token| *token == *logged.token) {
                bytes += logged.bytes();
                page.events.push(logged.event.clone());
            }
        }
        page.last = page.last.max(first - 1);
        self.read = self.read.max(page.last);
        page
    }

    /// The number before the first event that a reader of this token may want.
    fn before(&self, token: Option<&str>) -> u64 {
        let Some(token) = token else { return self.start };
        let run = self.runs.iter().find(|run| *run.token == *token);
        run.map_or(self.last, |run| run.before)
    }
}

/// The output of one run of a graph. The run has ended when this is dropped.
pub(super) struct RunOutput {
    log: Arc<OutputLog>,
    token: Arc<str>,
    /// Steps that were looked at.
    place: u32,
    steps: u32,
}

impl RunOutput {
    /// The run goes past a step without running it.
    pub(super) fn pass(&mut self) {
        self.place = self.place.saturating_add(1);
        self.steps = self.steps.max(self.place);
    }

    /// A step begins, not for the first time if there were earlier attempts in this run.
    pub(super) fn begin_step(&mut self, step: &str, attempt: u32) -> Arc<StepSink> {
        if attempt == 0 {
            self.pass();
        }
        let began = GraphOutputContent::Began { place: self.place, steps: self.steps };
        self.log.change(|state| state.push(&self.token, step, began));
        Arc::new(StepSink {
            log: Arc::clone(&self.log),
            token: Arc::clone(&self.token),
            step: step.to_owned(),
            lines: Mutex::default(),
        })
    }
}

impl Drop for RunOutput {
    fn drop(&mut self) {
        self.log.change(|state| state.at_work = state.at_work.saturating_sub(1));
    }
}

/// Takes the output of one step into the log of its graph.
pub(super) struct StepSink {
    log: Arc<OutputLog>,
    token: Arc<str>,
    step: String,
    lines: Mutex<StepLines>,
}

#[derive(Default)]
struct StepLines {
    stdout: LineBuffer,
    stderr: LineBuffer,
}

impl StepSink {
    /// The step has ended, and its outcome is stored.
    pub(super) fn end(&self, outcome: StepOutcome, duration_ms: u64, value: Option<String>) {
        let rest = {
            let mut lines = self.lines();
            [(StandardStream::Output, lines.stdout.finish()), (StandardStream::Error, lines.stderr.finish())]
        };
        self.log.change(|state| {
            for (stream, text) in rest {
                state.print(&self.token, &self.step, stream, &text);
            }
            state.push(&self.token, &self.step, GraphOutputContent::Ended { outcome, duration_ms, value });
        });
    }

    fn lines(&self) -> MutexGuard<'_, StepLines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for StepSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepSink").field("step", &self.step).finish_non_exhaustive()
    }
}

impl OutputSink for StepSink {
    fn write(&self, stream: StandardStream, bytes: &[u8]) {
        let mut lines = self.lines();
        let buffer = match stream {
            StandardStream::Output => &mut lines.stdout,
            StandardStream::Error => &mut lines.stderr,
        };
        let text = buffer.push(bytes);
        if !text.is_empty() {
            self.log.change(|state| state.print(&self.token, &self.step, stream, &text));
        }
    }
}

/// Gathers the pieces of a stream to whole lines.
#[derive(Default)]
struct LineBuffer {
    decoder: LossyDecoder,
    pending: String,
}

impl LineBuffer {
    /// The lines that are whole now. A line of [`TEXT_BYTES_MAX`] or more is not waited for.
    fn push(&mut self, bytes: &[u8]) -> String {
        self.pending.push_str(&self.decoder.push(bytes));
        let end = self.pending.rfind('\n').map_or(0, |at| at + 1);
        let end = if self.pending.len() - end >= TEXT_BYTES_MAX { self.pending.len() } else { end };
        self.pending.drain(..end).collect()
    }

    /// The last line, which has no end.
    fn finish(&mut self) -> String {
        let mut rest = std::mem::take(&mut self.pending);
        rest.push_str(&self.decoder.finish());
        rest
    }
}

#[cfg(test)]
mod tests;
