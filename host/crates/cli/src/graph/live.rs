//! The output of a graph's steps while they run.
//!
//! Standard output has what it had if the steps were printed at their end: the name of a step, the lines that it
//! prints, and its value. Standard error has which step begins, which ends and after what time, and the steps' standard
//! error. The service is asked with the number of the last event, so a new owner of the data directory goes on where
//! the last one ended. A run never waits for this: what the service has dropped by then is told in a line.

use super::super::context::Context;
use super::show;
use longhaul_api::graph_output::{
    GraphOutputContent, GraphOutputEvent, GraphOutputPage, OUTPUT_WAIT_MS_MAX, ReadGraphOutput, StepOutcome,
};
use longhaul_api::operations::GraphOperations as _;
use longhaul_core::fault;
use longhaul_core::graph::GraphAnswer;
use longhaul_core::output::StandardStream;
use longhaul_core::text::count;
use std::collections::BTreeSet;
use std::pin::pin;
use std::time::Duration;

/// Time between two questions while output comes, so that a step that prints a lot is not asked for each line.
const PAUSE: Duration = Duration::from_millis(50);

/// Waits for the answer to the request of this token, and prints the output of its run meanwhile. Returns the answer,
/// and the steps whose output was printed.
pub(super) async fn follow(
    context: &Context,
    name: &str,
    token: &str,
    run: impl Future<Output = fault::Result<GraphAnswer>>,
) -> (fault::Result<GraphAnswer>, BTreeSet<String>) {
    // One client, so that both requests are answered by the same owner.
    context.client.keep();
    let mut live = LiveOutput::new(name, token);
    let mut run = pin!(run);
    let answer = loop {
        tokio::select! {
            answer = &mut run => break answer,
            page = live.read(context, OUTPUT_WAIT_MS_MAX), if live.is_readable => live.take(page),
        }
    };
    // The last events are there, and nothing is waited for.
    live.is_flowing = false;
    while live.is_readable {
        let page = live.read(context, 0).await;
        live.take(page);
        if !std::mem::take(&mut live.is_flowing) {
            break;
        }
    }
    (answer, live.printed)
}

/// The output of one run, as far as it was read.
struct LiveOutput {
    name: String,
    token: String,
    /// Number of the last event.
    after: u64,
    /// False when the service cannot be asked: then the answer has the output.
    is_readable: bool,
    /// True when the last page had events.
    is_flowing: bool,
    step: StepOutput,
    printed: BTreeSet<String>,
}

/// The step whose events were read last.
#[derive(Default)]
struct StepOutput {
    name: String,
    place: u32,
    steps: u32,
    has_heading: bool,
    stdout: StepLines,
    stderr: StepLines,
}

/// The lines of one stream of a step.
#[derive(Default)]
struct StepLines {
    /// The beginning of a line.
    pending: String,
    count: usize,
}

impl LiveOutput {
    fn new(name: &str, token: &str) -> Self {
        Self {
            name: name.to_owned(),
            token: token.to_owned(),
            after: 0,
            is_readable: true,
            is_flowing: false,
            step: StepOutput::default(),
            printed: BTreeSet::new(),
        }
    }

    async fn read(&self, context: &Context, wait_ms: u64) -> fault::Result<GraphOutputPage> {
        if self.is_flowing {
            tokio::time::sleep(PAUSE).await;
        }
        let (name, token) = (self.name.clone(), Some(self.token.clone()));
        context.graph_output(ReadGraphOutput { name, after: self.after, token, wait_ms }).await
    }

    fn take(&mut self, page: fault::Result<GraphOutputPage>) {
        // Such as an owner of an earlier version, or no graph of this name, which the answer tells.
        let Ok(GraphOutputPage { events, last, dropped, .. }) = page else {
            self.is_readable = false;
            return;
        };
        (self.after, self.is_flowing) = (last, !events.is_empty());
        if dropped > 0 {
            let (events, name) =
                (count(usize::try_from(dropped).unwrap_or(usize::MAX), "event"), show::name(&self.name));
            errln!("(too slow for {events} of the output, which `longhaul graph show {name} STEP` has)");
        }
        events.into_iter().for_each(|event| self.print(event));
    }

    fn print(&mut self, event: GraphOutputEvent) {
        let GraphOutputEvent { step, content, .. } = event;
        match content {
            GraphOutputContent::Began { place, steps } => {
                errln!("[{place}/{steps}] {}", show::name(&step));
                self.step = StepOutput { name: step, place, steps, ..StepOutput::default() };
            }
            GraphOutputContent::Printed { stream, text } => self.step_of(&step).write(stream, &text),
            GraphOutputContent::Ended { outcome, duration_ms, value } => {
                self.step_of(&step).end(outcome, duration_ms, value);
                if outcome != StepOutcome::Again {
                    self.printed.insert(step);
                }
            }
        }
    }

    /// The step of an event, whose beginning may have been dropped.
    fn step_of(&mut self, step: &str) -> &mut StepOutput {
        if self.step.name != step {
            let StepOutput { place, steps, .. } = self.step;
            self.step = StepOutput { name: step.to_owned(), place, steps, ..StepOutput::default() };
        }
        &mut self.step
    }
}

impl StepOutput {
    fn write(&mut self, stream: StandardStream, text: &str) {
        match stream {
            StandardStream::Output => {
                for line in self.stdout.push(text) {
                    self.print_line(&line);
                }
            }
            StandardStream::Error => self.stderr.push(text).iter().for_each(|line| errln!("{}", show::indented(line))),
        }
    }

    fn end(&mut self, outcome: StepOutcome, duration_ms: u64, value: Option<String>) {
        if let Some(line) = self.stdout.finish() {
            self.print_line(&line);
        }
        if let Some(line) = self.stderr.finish() {
            errln!("{}", show::indented(&line));
        }
        if let Some(lines) = self.stdout.left_out() {
            outln!("{}", show::left_out(lines));
        }
        if let Some(lines) = self.stderr.left_out() {
            errln!("{}", show::left_out(lines));
        }
        // A run that counts for nothing has no value, either.
        if let Some(value) = value.filter(|_| outcome != StepOutcome::Again) {
            self.head();
            show::value(&value);
        }
        let (name, time) = (show::name(&self.name), seconds(duration_ms));
        let words = match outcome {
            StepOutcome::Done => format!("done in {time}"),
            StepOutcome::Failed => format!("failed after {time}"),
            StepOutcome::Again => "reads variables that its source does not show, and runs again with them".to_owned(),
        };
        errln!("[{}/{}] {name}: {words}", self.place, self.steps);
    }

    fn print_line(&mut self, line: &str) {
        self.head();
        outln!("{}", show::indented(line));
    }

    fn head(&mut self) {
        if !self.has_heading {
            show::heading(&self.name);
            self.has_heading = true;
        }
    }
}

impl StepLines {
    /// The lines that are whole now and are printed.
    fn push(&mut self, text: &str) -> Vec<String> {
        self.pending.push_str(text);
        let Some(end) = self.pending.rfind('\n') else { return Vec::new() };
        let whole: String = self.pending.drain(..=end).collect();
        whole.lines().filter(|_| self.counts()).map(str::to_owned).collect()
    }

    /// The last line, if it has no end and is printed.
    fn finish(&mut self) -> Option<String> {
        let rest = std::mem::take(&mut self.pending);
        Some(rest).filter(|rest| !rest.is_empty() && self.counts())
    }

    /// Counts a line. False when it is one too many.
    fn counts(&mut self) -> bool {
        self.count += 1;
        self.count <= show::LINES_MAX
    }

    /// The number of lines that were not printed, if there are any.
    fn left_out(&self) -> Option<usize> {
        self.count.checked_sub(show::LINES_MAX).filter(|lines| *lines > 0)
    }
}

/// A time for people.
fn seconds(duration_ms: u64) -> String {
    match duration_ms {
        0..1_000 => format!("{duration_ms} ms"),
        _ => format!("{}.{} s", duration_ms / 1_000, duration_ms % 1_000 / 100),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_printed_whole_and_no_more_than_an_answer_has() {
        let mut lines = StepLines::default();
        assert_eq!(lines.push("o"), [""; 0]);
        assert_eq!(lines.push("ne\n\ntw"), ["one", ""]);
        assert_eq!(lines.push("o\r\n"), ["two"]);
        let many = "x\n".repeat(show::LINES_MAX - 4);
        assert_eq!(lines.push(&many).len(), show::LINES_MAX - 4);
        assert_eq!((lines.push("last\nmore\nla"), lines.left_out()), (vec!["last".to_owned()], Some(1)));
        assert_eq!((lines.finish(), lines.left_out()), (None, Some(2)));
        assert_eq!(lines.finish(), None, "nothing is left");
        let mut short = StepLines::default();
        assert_eq!((short.push("end"), short.finish(), short.left_out()), (Vec::new(), Some("end".to_owned()), None));
    }

    #[test]
    fn times_are_short() {
        assert_eq!([0, 999, 1_000, 61_260].map(seconds), ["0 ms", "999 ms", "1.0 s", "61.2 s"]);
    }
}
