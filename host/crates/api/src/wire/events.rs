//! Events: the lines of the stream of a run, which have a version and a schema of their own.

use longhaul_core::stream::StreamLine;
use serde::Serialize;

/// One line of a run's stream, as `longhaul attach --events` prints it. What is durable has `number` and `at_ms`, what is
/// live has `after`. It describes a [`StreamLine`], which writes itself.
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct EventLine {
    /// The version of a line: 1.
    pub version: u32,
    /// The run.
    pub run: String,
    /// Counts from 1 within the run, without gaps.
    pub number: Option<u64>,
    /// The last number before it.
    pub after: Option<u64>,
    /// Counts the parts of one reply of a model, from 1.
    pub part: Option<u64>,
    /// Milliseconds since 1970-01-01 UTC.
    pub at_ms: Option<u64>,
    /// The feature, or step of a plan, that it is about.
    pub task: Option<String>,
    /// The table of `longhaul.toml` whose component did it.
    pub agent: Option<String>,
    /// What it is about, for example `thought`. More may come.
    pub r#type: String,
    /// What it says, by its type.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub payload: serde_json::Value,
}

/// Events of a run.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Events {
    /// In order.
    #[cfg_attr(feature = "schema", schema(value_type = Vec<EventLine>))]
    pub items: Vec<StreamLine>,
    /// What to ask for next as `after`.
    pub next_after: u64,
    /// The newest number of the run.
    pub last: u64,
}
