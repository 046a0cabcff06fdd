//! The output of a followed run: lines and a live display for a person, one JSON object a line for a program.
//!
//! It asks the service for nothing.

use crate::arguments::OutputFormat;
use crate::progress::Progress;
use crate::terminal;
use indicatif::{ProgressBar, ProgressStyle};
use longhaul_core::RunId;
use longhaul_core::event::{Event, RunEvent};
use longhaul_core::fault;
use longhaul_core::stream::{Content, StreamLine, StreamToken};
use longhaul_core::text::{cleaned, printable};
use rustix::termios::tcgetwinsize;
use std::io::IsTerminal as _;
use std::time::Duration;

/// The output for a run. A person sees lines and, on a terminal, a live display below them. A program sees one JSON
/// object a line.
pub(super) struct RunDisplay {
    pub(super) form: OutputFormat,
    /// True when lines go to standard error.
    beside: bool,
    run: RunId,
    pub(super) progress: Progress,
    /// True when the end of the run was shown. Its neighbour says the same of a question.
    pub(super) has_said_end: bool,
    pub(super) has_said_question: bool,
    live: Option<LiveLines>,
}

impl RunDisplay {
    pub(super) fn new(form: OutputFormat, beside: bool, run: RunId, progress: Progress) -> Self {
        let (has_said_end, has_said_question) = (false, false);
        let mut view = Self { form, beside, run, progress, has_said_end, has_said_question, live: None };
        view.begin();
        view
    }

    /// Draws the live display, if a person can see it.
    pub(super) fn begin(&mut self) {
        let is_read = self.beside || std::io::stdout().is_terminal();
        self.live = (self.form == OutputFormat::Words && is_read && is_drawn_on()).then(LiveLines::new);
        self.draw();
    }

    pub(super) fn event(&mut self, event: &RunEvent) -> fault::Result<()> {
        match self.form {
            OutputFormat::Words => {}
            OutputFormat::Json | OutputFormat::Stream => return print(&StreamLine::of(event.clone())),
        }
        if let Event::ContextAnxiety { invocation, sign } = &event.event {
            tracing::debug!(%invocation, ?sign, "a model seems to hurry because its context fills");
        }
        self.has_said_end |= matches!(event.event, Event::RunEnded { .. });
        self.has_said_question |= matches!(event.event, Event::Parked { .. });
        if let Some(line) = self.progress.see(event) {
            self.say(&line);
        }
        self.draw();
        Ok(())
    }

    /// Takes a part of the words of a model.
    pub(super) fn token(&mut self, run: &RunId, token: StreamToken) -> fault::Result<()> {
        if self.form == OutputFormat::Stream {
            return print(&StreamLine { run: run.clone(), content: Content::Token(token) });
        }
        if self.live.is_some() {
            self.progress.hear(&token);
            self.draw();
        }
        Ok(())
    }

    /// Reports that parts of the words of models were lost.
    pub(super) fn lagged(&mut self, run: &RunId, after: u64) -> fault::Result<()> {
        if self.form == OutputFormat::Stream {
            print(&StreamLine { run: run.clone(), content: Content::Lagged { after } })?;
        }
        Ok(())
    }

    /// Reports that no process works on the run any more.
    pub(super) fn gone(&mut self, run: &RunId, after: u64, error: Option<&str>) -> fault::Result<()> {
        if self.form == OutputFormat::Stream {
            let error = error.map(str::to_owned);
            print(&StreamLine { run: run.clone(), content: Content::End { after, error } })?;
        }
        Ok(())
    }

    pub(super) fn say(&self, line: &str) {
        match &self.live {
            Some(live) => live.bar.println(cleaned(line)),
            None if self.form.is_for_programs() => {}
            None if self.beside => terminal::error_text(line),
            None => outtext!(line),
        }
    }

    fn draw(&self) {
        if let Some(live) = &self.live {
            live.draw(&self.progress, &self.run);
        }
    }

    pub(super) fn finish(&mut self) {
        if let Some(live) = self.live.take() {
            live.bar.finish_and_clear();
        }
    }
}

/// Lines of a model's words in the live display.
const SAYING_LINES_MAX: usize = 4;

/// Columns beside the label, for the spinner, the time, and spaces.
const BESIDE_LABEL: usize = 12;

/// Width of a terminal that does not tell it, in columns.
const COLUMNS: usize = 80;

/// The live display at the end of a terminal: the current work, and the words of a model.
struct LiveLines {
    bar: ProgressBar,
}

impl LiveLines {
    fn new() -> Self {
        let bar = ProgressBar::new_spinner();
        bar.set_style(
            ProgressStyle::with_template("{spinner} {prefix} {elapsed}{msg}")
                .unwrap_or_else(|_| ProgressStyle::default_spinner()),
        );
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar }
    }

    fn draw(&self, progress: &Progress, run: &RunId) {
        let columns = tcgetwinsize(std::io::stderr()).map_or(0, |size| usize::from(size.ws_col));
        let columns = if columns == 0 { COLUMNS } else { columns };
        let room = columns.saturating_sub(BESIDE_LABEL).max(BESIDE_LABEL);
        self.bar.set_prefix(printable(&progress.label(run, room), usize::MAX));
        let saying = progress.saying(SAYING_LINES_MAX, room);
        self.bar.set_message(
            saying.iter().map(|line| format!("\n  | {}", printable(line, usize::MAX))).collect::<String>(),
        );
    }
}

/// True when the live display can be drawn: on standard error, if that is a terminal that can move its cursor.
fn is_drawn_on() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

fn print(line: &StreamLine) -> fault::Result<()> {
    outln!("{}", serde_json::to_string(line)?);
    Ok(())
}
