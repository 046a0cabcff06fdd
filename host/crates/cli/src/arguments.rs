//! Arguments that several commands share: a run, the recording of models, and the form of a run's events.

use clap::Args;
use longhaul_models::set::ModelOptions;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(super) struct RunArg {
    /// The run, or the beginning of its name. Default: the newest of this project.
    #[arg(id = "run", value_name = "RUN")]
    pub(super) named: Option<String>,
}

#[derive(Args, Debug)]
pub(super) struct FormArg {
    /// Print the event stream of the run as JSON lines: every event with its number, and the words of models as they
    /// come.
    #[arg(long)]
    pub(super) events: bool,
}

impl FormArg {
    /// The form for a command with or without `--json`.
    pub(super) fn form(&self, json: bool) -> OutputFormat {
        match (self.events, json) {
            (true, _) => OutputFormat::Stream,
            (false, true) => OutputFormat::Json,
            (false, false) => OutputFormat::Words,
        }
    }
}

/// The form in which a run is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutputFormat {
    /// Lines for people.
    Words,
    /// The events of the run, as lines of [`longhaul_core::stream`].
    Json,
    /// The events, and the words of models as they come.
    Stream,
}

impl OutputFormat {
    pub(super) fn is_for_programs(self) -> bool {
        self != Self::Words
    }
}

#[derive(Args, Debug)]
pub(super) struct ModelArgs {
    /// Answer every model from this recording; nothing is sent anywhere.
    #[arg(long, value_name = "FILE", conflicts_with = "record")]
    recorded: Option<PathBuf>,
    /// Write the replies of models to this recording.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
}

impl ModelArgs {
    /// The options, with paths that `whole` made absolute.
    pub(super) fn options(self, whole: impl Fn(PathBuf) -> PathBuf) -> ModelOptions {
        ModelOptions { replay_from: self.recorded.map(&whole), record_to: self.record.map(&whole) }
    }
}
