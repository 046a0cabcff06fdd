//! Forks of runs: told, and made.

use super::super::gate::{By, Caller};
use super::super::input::{Json, which};
use super::super::problem::Problem;
use super::super::reply::{CreatedResponse, Out};
use super::super::state::SharedState;
use super::projects::absolute;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use longhaul_api::forks::{ForkOutcome, ForkRun};
use longhaul_api::operations::RunOperations as _;
use longhaul_api::points::Point;
use longhaul_api::tokens::TokenScope;
use longhaul_api::wire::forks::ForkView;
use longhaul_models::set::ModelOptions;
use serde::Deserialize;
use utoipa::ToSchema;

/// The fork that is made.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewFork {
    /// The point: `entry:N` or `entry:KEY:N` of an invocation, `step:N` of the agents, `feature:ID`, `commit:HEX`,
    /// `time:2026-11-22T01:00:00Z`, or `event:N`.
    at: String,
    /// The answer in the place of the one at the point: JSON as text. Only for the point of an entry.
    #[serde(default)]
    answer: Option<String>,
    /// Guidance that the agents at work at the point read at their next step.
    #[serde(default)]
    message: Option<String>,
    /// The model that answers in the place of all others, by its name in longhaul.toml.
    #[serde(default)]
    model: Option<String>,
    /// Plugins that the fork takes as they are installed now, by their names in longhaul.toml.
    #[serde(default)]
    plugins: Vec<String>,
    /// Its branch; null: `longhaul/NAME-fork-N`.
    #[serde(default)]
    branch: Option<String>,
    /// Repeat what the other run did after the point without asking a person. Needs the scope `approve`.
    #[serde(default)]
    repeat_effects: bool,
    /// Answer with the plan, and make nothing.
    #[serde(default)]
    dry_run: bool,
    /// Answer every model from this recording on the server's machine. Needs the scope `admin`.
    #[serde(default)]
    recorded: Option<String>,
}

/// Make a run that goes on from a point of another one
///
/// The fork is paused: resume it. `later_effects` of its plan are what the other run did after the point, and what the
/// fork does not undo.
#[utoipa::path(
    post,
    path = "/api/v1/runs/{run}/fork",
    tag = "runs",
    params(("run" = String, Path, description = "The name of the other run, or the beginning of it")),
    request_body = NewFork,
    responses(
        (status = 200, description = "The plan; nothing is made", body = ForkView),
        (status = 201, description = "It is made", body = ForkView)
    )
)]
pub async fn fork(
    State(state): State<SharedState>,
    Path(run): Path<String>,
    By(caller): By,
    Json(new): Json<NewFork>,
) -> Result<Response, Problem> {
    if new.repeat_effects {
        caller.expect(TokenScope::Approve)?;
    }
    let at: Point = new.at.parse().map_err(|error: String| Problem::invalid("at", error))?;
    let request = ForkRun {
        run: which(&run)?,
        at,
        answer: new.answer,
        message: new.message,
        model: new.model,
        plugins: new.plugins,
        models: recorded(&caller, new.recorded)?,
        branch: new.branch,
        repeat_effects: new.repeat_effects,
        dry_run: new.dry_run,
    };
    let outcome: ForkOutcome = state.fork_run(request).await?;
    let location = outcome.run.as_ref().map(|run| format!("/api/v1/runs/{run}"));
    let told = ForkView::from(outcome);
    Ok(match location {
        Some(_) => CreatedResponse { told, location }.into_response(),
        None => Out(told).into_response(),
    })
}

fn recorded(caller: &Caller, file: Option<String>) -> Result<Option<ModelOptions>, Problem> {
    let Some(file) = file else { return Ok(None) };
    caller.expect(TokenScope::Admin)?;
    Ok(Some(ModelOptions { replay_from: Some(absolute("recorded", &file)?), record_to: None }))
}
