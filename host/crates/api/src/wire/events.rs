//! Events: the lines of the stream of a run, which have a version and a schema of their own.

use longhaul_core::stream::StreamLine;
use serde::Serialize;

/// One line of the event stream of a run, as `longhaul attach --events` prints it. A durable event has `number` and
/// `at_ms`; a live part has `after`.
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct EventLine {
    /// The version of a line: 1.
    pub version: u32,
    /// The run.
    pub run: String,
    /// Counts from 1 within the run, without gaps.
    pub number: Option<u64>,
    /// Number of the last durable event before it.
    pub after: Option<u64>,
    /// Counts the parts of one reply of a model, from 1.
    pub part: Option<u64>,
    /// Time of the event, in milliseconds since 1970-01-01 UTC.
    pub at_ms: Option<u64>,
    /// The feature, or step of a plan, of the event.
    pub task: Option<String>,
    /// The table of `longhaul.toml` of the component.
    pub agent: Option<String>,
    /// The kind of the event, for example `thought`. New kinds may appear.
    pub r#type: String,
    /// The fields of the event, by its kind.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub payload: serde_json::Value,
}

/// Events of a run.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Events {
    /// The events in order.
    #[cfg_attr(feature = "schema", schema(value_type = Vec<EventLine>))]
    pub items: Vec<StreamLine>,
    /// The value of `after` for the next page.
    pub next_after: u64,
    /// Number of the newest event of the run.
    pub last: u64,
}
