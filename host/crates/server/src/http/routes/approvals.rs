//! Approvals: listed, shown and answered; the rules that answers made, listed and revoked.

use super::super::input::{Json, PageParams, Query, which};
use super::super::problem::Problem;
use super::super::reply::{ApiResult, Out, Page};
use super::super::state::SharedState;
use axum::extract::{Path, State};
use longhaul_api::approvals::{AnswerApproval, ApprovalList, ListApprovals, RevokeRule, ShowApproval};
use longhaul_api::operations::ApprovalOperations as _;
use longhaul_api::runs::AffectedRun;
use longhaul_api::wire::approvals::{ApprovalView, Approved, RunRuleView};
use longhaul_approval::ApprovalStatus;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

/// Filter and page of the list of approvals.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ApprovalsQuery {
    /// Only those of this run.
    run: Option<String>,
    /// Only the open ones, or only the others.
    open: Option<bool>,
    /// Items of a page. Default 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Items before it. Default 0.
    offset: Option<usize>,
}

/// List approvals
///
/// The newest comes first.
#[utoipa::path(get, path = "/api/v1/approvals", tag = "approvals", params(ApprovalsQuery), responses((status = 200, description = "A page of approvals", body = Page<ApprovalView>)))]
pub async fn list(
    State(state): State<SharedState>,
    Query(query): Query<ApprovalsQuery>,
) -> ApiResult<Page<ApprovalView>> {
    let window = PageParams::of(query.limit, query.offset)?;
    let is_open = query.open == Some(true);
    let ApprovalList { mut approvals, .. } = listed(&state, query.run.as_deref(), is_open).await?;
    approvals.retain(|one| query.open.is_none_or(|open| open == (one.standing == ApprovalStatus::Open)));
    approvals.sort_by(|a, b| b.at_ms.cmp(&a.at_ms).then_with(|| a.id.cmp(&b.id)));
    Ok(Out(Page::of(approvals, window, ApprovalView::from)))
}

async fn listed(state: &SharedState, run: Option<&str>, open: bool) -> Result<ApprovalList, Problem> {
    let run = run.map(which).transpose()?;
    Ok(state.approvals(ListApprovals { run, open }).await?)
}

/// Show an approval
#[utoipa::path(get, path = "/api/v1/approvals/{approval}", tag = "approvals", params(("approval" = String, Path, description = "Its id, or the beginning of it")), responses((status = 200, description = "The approval", body = ApprovalView)))]
pub async fn show(State(state): State<SharedState>, Path(approval): Path<String>) -> ApiResult<ApprovalView> {
    Ok(Out(state.approval(ShowApproval { id: approval }).await?.into()))
}

/// The answer of a person.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ApprovalAnswer)]
pub struct ApprovalAnswerBody {
    /// `y`: this once. `a`: this, and by rule what is like it, for the rest of the run. `n`, with a reason or without.
    /// Anything else: what to do instead. To a question: the answer.
    text: String,
}

/// Answer an approval
#[utoipa::path(post, path = "/api/v1/approvals/{approval}/answer", tag = "approvals", params(("approval" = String, Path, description = "Its id, or the beginning of it")), request_body = ApprovalAnswerBody, responses((status = 200, description = "It is answered, and its run goes on", body = Approved)))]
pub async fn answer(
    State(state): State<SharedState>,
    Path(id): Path<String>,
    Json(said): Json<ApprovalAnswerBody>,
) -> ApiResult<Approved> {
    let request = AnswerApproval { id, text: said.text };
    Ok(Out(state.answer_approval(request).await?.into()))
}

/// Filter and page of the list of rules.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RulesQuery {
    /// Only those of this run.
    run: Option<String>,
    /// Items of a page. Default 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Items before it. Default 0.
    offset: Option<usize>,
}

/// List the rules that came of approvals
///
/// The revoked ones included.
#[utoipa::path(get, path = "/api/v1/rules", tag = "approvals", params(RulesQuery), responses((status = 200, description = "A page of rules", body = Page<RunRuleView>)))]
pub async fn rules(State(state): State<SharedState>, Query(query): Query<RulesQuery>) -> ApiResult<Page<RunRuleView>> {
    let window = PageParams::of(query.limit, query.offset)?;
    let rules = listed(&state, query.run.as_deref(), false).await?.rules;
    Ok(Out(Page::of(rules, window, RunRuleView::from)))
}

/// Revoke a rule of a run
#[utoipa::path(
    delete,
    path = "/api/v1/runs/{run}/rules/{rule}",
    tag = "approvals",
    params(("run" = String, Path, description = "The run's name, or the beginning of it"), ("rule" = String, Path, description = "The rule's id")),
    responses((status = 200, description = "It holds no more", body = AffectedRun))
)]
pub async fn revoke(
    State(state): State<SharedState>,
    Path((run, rule)): Path<(String, String)>,
) -> ApiResult<AffectedRun> {
    Ok(Out(state.revoke_rule(RevokeRule { run: which(&run)?, rule }).await?))
}
