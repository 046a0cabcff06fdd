//! The output of the steps of a graph while they run: numbered events, read with a cursor.
//!
//! The owner of the data directory keeps the newest events of a graph in memory, and none of them is stored: what a
//! step printed is in the step once it has ended. A reader that lost its connection reads on after the last number that
//! it has, at the same owner or at the next one. A reader that is too slow is told how many events it missed.

use longhaul_core::output::StandardStream;
use serde::{Deserialize, Serialize};

/// The longest time that a reader may have an answer wait for a new event, in milliseconds.
pub const OUTPUT_WAIT_MS_MAX: u64 = 1_000;

/// Read the output of the steps of a graph while they run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReadGraphOutput {
    /// The name of the graph.
    pub name: String,
    /// The number of the last event that the reader has. 0, or a number that no event has yet: none.
    pub after: u64,
    /// The token of the request whose run is read. None: all runs of the graph.
    pub token: Option<String>,
    /// The time to wait for an event where there is none, in milliseconds: at most [`OUTPUT_WAIT_MS_MAX`].
    pub wait_ms: u64,
}

/// The next events of a graph.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphOutputPage {
    /// The events in order.
    pub events: Vec<GraphOutputEvent>,
    /// The number to read on after.
    pub last: u64,
    /// The number of events before these that the reader missed.
    pub dropped: u64,
    /// True while a run of the graph is at work.
    pub is_running: bool,
}

/// An event of a step that runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphOutputEvent {
    /// The number. It grows by one from event to event, and further where the owner of the data directory changes.
    pub number: u64,
    /// The name of the step.
    pub step: String,
    /// The content.
    pub content: GraphOutputContent,
}

/// The content of an event of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GraphOutputContent {
    /// The step begins.
    Began {
        /// The place of the step in the run, from 1.
        place: u32,
        /// The number of steps that the run looks at, as far as it is known.
        steps: u32,
    },
    /// The step printed whole lines. A line without its end comes when the step ends, or has 4 KiB.
    Printed {
        /// The stream.
        stream: StandardStream,
        /// The text, at most 4 KiB. It may have escape sequences.
        text: String,
    },
    /// The step ended.
    Ended {
        /// The outcome.
        outcome: StepOutcome,
        /// The time of the step, in milliseconds.
        duration_ms: u64,
        /// The value of the last expression as the language prints it, cut at 10 000 bytes. None: there is none.
        value: Option<String>,
    },
}

/// The outcome of one run of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepOutcome {
    /// Its values are kept.
    Done,
    /// It raised an exception or reached a limit.
    Failed,
    /// It read variables that its source does not show, and runs once more with them. This run counts for nothing.
    Again,
}
