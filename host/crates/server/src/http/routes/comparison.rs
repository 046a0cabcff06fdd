//! Runs beside each other.

use super::super::input::{Query, which};
use super::super::problem::Problem;
use super::super::reply::{ApiResult, Out};
use super::super::state::SharedState;
use axum::extract::State;
use longhaul_api::comparison::CompareRuns;
use longhaul_api::operations::RunOperations as _;
use longhaul_api::wire::comparison::ComparisonView;
use serde::Deserialize;

/// The only parameter, which stands once for each run.
const RUN: &str = "run";

/// The parameters of a request, one by one: a name that stands several times is no field of an object.
#[derive(Deserialize)]
#[serde(transparent)]
pub struct ComparisonQuery(Vec<(String, String)>);

/// Compare runs step by step
///
/// Steps are matched by their work, whatever the order in which features ran, and aligned within it. Texts are bounded;
/// `steps_left_out`, `skipped_bytes` and `is_cut` tell what is missing. Files are compared for runs of one directory.
#[utoipa::path(
    get,
    path = "/api/v1/comparison",
    tag = "runs",
    params(("run" = Vec<String>, Query, description = "The names of the runs, or the beginnings of them: `run=A&run=B`. The others are compared with the first", min_items = 2, max_items = 8)),
    responses((status = 200, description = "The runs beside each other", body = ComparisonView))
)]
pub async fn compare(
    State(state): State<SharedState>,
    Query(query): Query<ComparisonQuery>,
) -> ApiResult<ComparisonView> {
    let mut runs = Vec::with_capacity(query.0.len());
    for (name, run) in query.0 {
        if name != RUN {
            let text = format!("unknown field `{name}`, expected `{RUN}`");
            return Err(Problem::invalid(name, text));
        }
        which(&run)?;
        runs.push(run);
    }
    let mut runs = runs.into_iter();
    let Some(first) = runs.next() else {
        return Err(Problem::invalid(RUN, "no run is named; write two or more: ?run=A&run=B"));
    };
    let request = CompareRuns { run: which(&first)?, others: runs.collect() };
    Ok(Out(state.compare_runs(request).await?.into()))
}
