//! Runs at points of their past.

use super::features::FeatureView;
use super::runs::RunStatus;
use super::usage::UsageView;
use crate::points::{LaneAtPoint, RunAtPoint};
use serde::Serialize;

/// A run as it was at a point of its past.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = RunAtPoint))]
pub struct RunAtPointView {
    /// Its name.
    pub run: String,
    /// The point, as `feature:login`.
    pub point: String,
    /// The number of the last event at the point.
    pub event: u64,
    /// Time of the point, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// Its status.
    pub status: RunStatus,
    /// Its features; none before its plan.
    pub features: Vec<FeatureView>,
    /// The work in flight.
    pub lanes: Vec<LaneAtPointView>,
    /// The open questions to people.
    pub questions: Vec<String>,
    /// Tokens and money of all replies of models until then.
    pub usage: UsageView,
    /// The newest commit of its branch; null for an ask, which has no branch.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub commit: Option<String>,
}

/// A piece of work that was in flight.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = LaneAtPoint))]
pub struct LaneAtPointView {
    /// The name of its invocation.
    pub invocation: String,
    /// Its feature; null if it belongs to no single one.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub feature: Option<String>,
    /// Number of entries of its journal that were answered by then, without a gap.
    pub entries: u32,
    /// The reason for which it was held back, in one line; null if it was not.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub waiting_for: Option<String>,
}

impl From<RunAtPoint> for RunAtPointView {
    fn from(inner: RunAtPoint) -> Self {
        let RunAtPoint { run, point, event, at_ms, status, features, lanes, questions, usage, commit } = inner;
        Self {
            run: run.to_string(),
            point: point.to_string(),
            event,
            at_ms,
            status: status.into(),
            features: features.into_iter().map(Into::into).collect(),
            lanes: lanes.into_iter().map(Into::into).collect(),
            questions,
            usage: usage.into(),
            commit,
        }
    }
}

impl From<LaneAtPoint> for LaneAtPointView {
    fn from(inner: LaneAtPoint) -> Self {
        let LaneAtPoint { invocation, feature, entries, waiting_for } = inner;
        Self { invocation: invocation.as_str().to_owned(), feature, entries, waiting_for }
    }
}
