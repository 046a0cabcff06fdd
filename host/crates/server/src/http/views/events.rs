//! Events: the lines of the stream of a run, which have a version and a schema of their own.

use longhaul_core::stream::StreamLine;
use serde::Serialize;
use utoipa::ToSchema;

/// One line of a run's stream, as `longhaul attach --events` prints it. What is durable has `number` and `at_ms`, what is
/// live has `after`.
#[derive(ToSchema)]
#[expect(dead_code, reason = "says what a line looks like; the line writes itself")]
pub struct EventLine {
    /// The version of a line: 1.
    version: u32,
    /// The run.
    run: String,
    /// Counts from 1 within the run, without gaps.
    number: Option<u64>,
    /// The last number before it.
    after: Option<u64>,
    /// Counts the parts of one reply of a model, from 1.
    part: Option<u64>,
    /// Milliseconds since 1970-01-01 UTC.
    at_ms: Option<u64>,
    /// The feature, or step of a plan, that it is about.
    task: Option<String>,
    /// The table of `longhaul.toml` whose component did it.
    agent: Option<String>,
    /// What it is about, for example `thought`. More may come.
    r#type: String,
    /// What it says, by its type.
    #[schema(value_type = Object)]
    payload: serde_json::Value,
}

/// Events of a run.
#[derive(Serialize, ToSchema)]
pub struct Events {
    /// In order.
    #[schema(value_type = Vec<EventLine>)]
    pub items: Vec<StreamLine>,
    /// What to ask for next as `after`.
    pub next_after: u64,
    /// The newest number of the run.
    pub last: u64,
}
