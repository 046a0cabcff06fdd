//! What is wrong with a request, as RFC 9457 has it: `application/problem+json`.
//!
//! The text for the caller says what to do. What is wrong here and not there goes to the log, and the caller is told no
//! more than that.

use crate::agents::record::AgentError;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::{HeaderName, HeaderValue, StatusCode, header};
use longhaul_approval::ApprovalError;
use longhaul_core::fault::{Fault, FaultCode};
use longhaul_core::store::StoreError;
use longhaul_core::text::truncate;
use longhaul_harness::Refusal;
use longhaul_schedule::ScheduleError;
use serde::Serialize;
use std::time::Duration;
use utoipa::ToSchema;

/// The media type.
pub const MEDIA_TYPE: &str = "application/problem+json";

/// Longest detail, in bytes.
const DETAIL_BYTES_MAX: usize = 2_000;

/// A problem.
#[derive(Debug, Serialize, ToSchema)]
pub struct Problem {
    /// Names the kind of problem; nothing is to be found there.
    #[serde(rename = "type")]
    kind: String,
    /// The kind in words.
    title: &'static str,
    /// The status of the answer.
    status: u16,
    /// What is wrong, and what to do.
    detail: String,
    /// The parameter or field at fault, with dots between a field and the one that it is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    #[serde(skip)]
    header: Option<Box<(HeaderName, HeaderValue)>>,
}

impl Problem {
    /// One of a kind that the status tells.
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        let (word, title) = words(status);
        let detail = truncate(&detail.into(), DETAIL_BYTES_MAX).to_owned();
        let kind = format!("https://longhaul.invalid/problems/{word}");
        Self { kind, title, status: status.as_u16(), detail, field: None, header: None }
    }

    /// A parameter, or a field of the body, is wrong.
    pub fn invalid(field: impl Into<String>, detail: impl Into<String>) -> Self {
        let field = Some(field.into()).filter(|field| !field.is_empty() && field != ".");
        Self { field, ..Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail) }
    }

    /// There is no such thing.
    pub fn unknown(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    /// Whoever asks must say who they are.
    pub fn unauthenticated() -> Self {
        let detail = "send a token as `Authorization: Bearer lh_...`; `longhaul token add NAME --scope read` makes one";
        let header = Some(Box::new((header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"longhaul\""))));
        Self { header, ..Self::new(StatusCode::UNAUTHORIZED, detail) }
    }

    /// Too much at once, or not now: come again after a while.
    pub fn later(status: StatusCode, after: Duration, detail: impl Into<String>) -> Self {
        let seconds = after.as_secs().max(1);
        Self { header: Some(Box::new((header::RETRY_AFTER, HeaderValue::from(seconds)))), ..Self::new(status, detail) }
    }

    /// The service answered something that fits no such request, which is our own fault.
    pub fn odd() -> Self {
        tracing::error!("the service answered something else than was asked for");
        Self::internal()
    }

    /// Our own fault.
    pub fn internal() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "the server failed; its log says more, under the request's id")
    }

    /// For a status that came without a problem.
    pub fn of_status(status: StatusCode) -> Self {
        let detail = match status {
            StatusCode::NOT_FOUND => "there is nothing at this path; /api/v1/openapi.json lists what there is",
            StatusCode::METHOD_NOT_ALLOWED => "the path takes other methods; see the header `Allow`",
            StatusCode::BAD_REQUEST => "the request cannot be understood",
            StatusCode::INTERNAL_SERVER_ERROR => return Self::internal(),
            _ => "the request is refused",
        };
        Self::new(status, detail)
    }
}

fn words(status: StatusCode) -> (&'static str, &'static str) {
    match status {
        StatusCode::BAD_REQUEST => ("bad-request", "The request cannot be understood"),
        StatusCode::UNAUTHORIZED => ("unauthenticated", "A token is needed"),
        StatusCode::FORBIDDEN => ("forbidden", "Not allowed"),
        StatusCode::NOT_FOUND => ("not-found", "There is no such thing"),
        StatusCode::METHOD_NOT_ALLOWED => ("method-not-allowed", "Not with this method"),
        StatusCode::REQUEST_TIMEOUT => ("timeout", "The request came too slowly"),
        StatusCode::CONFLICT => ("conflict", "Not as things stand"),
        StatusCode::PRECONDITION_FAILED => ("precondition-failed", "It was changed meanwhile"),
        StatusCode::PAYLOAD_TOO_LARGE => ("too-large", "The request is too large"),
        StatusCode::UNSUPPORTED_MEDIA_TYPE => ("unsupported-media-type", "Not in this form"),
        StatusCode::UNPROCESSABLE_ENTITY => ("invalid", "Something in the request is wrong"),
        StatusCode::PRECONDITION_REQUIRED => ("precondition-required", "The version that is meant is needed"),
        StatusCode::TOO_MANY_REQUESTS => ("too-many-requests", "Too many requests"),
        StatusCode::SERVICE_UNAVAILABLE => ("unavailable", "Not now"),
        status if status.is_server_error() => ("internal", "The server failed"),
        _ => ("refused", "The request is refused"),
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let text = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = Response::new(Body::from(text));
        *response.status_mut() = status;
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        if let Some((name, value)) = self.header.map(|header| *header) {
            response.headers_mut().insert(name, value);
        }
        response
    }
}

/// What the service refuses.
impl From<Fault> for Problem {
    fn from(fault: Fault) -> Self {
        let text = format!("{fault:#}");
        if let Some(store) = fault.downcast_ref::<StoreError>() {
            return of_store(store, &text);
        }
        if let Some(told) = fault.downcast_ref::<AgentError>().and_then(|error| of_agent(error, &text)) {
            return told;
        }
        let schedule = || fault.downcast_ref::<ScheduleError>().map(of_schedule);
        let refusal = || fault.downcast_ref::<Refusal>().map(of_refusal);
        let approval = || fault.downcast_ref::<ApprovalError>().map(of_approval);
        match fault.code().or_else(refusal).or_else(approval).or_else(schedule) {
            Some(FaultCode::Unknown) => Self::unknown(text),
            Some(FaultCode::Conflict) => Self::new(StatusCode::CONFLICT, text),
            Some(FaultCode::Changed) => Self::new(StatusCode::PRECONDITION_FAILED, text),
            Some(FaultCode::Unavailable) => Self::later(StatusCode::SERVICE_UNAVAILABLE, Duration::from_secs(60), text),
            // What the service refuses without a code is wrong with what was asked.
            Some(FaultCode::Invalid) | None => Self::invalid(fault.field().unwrap_or_default(), text),
            Some(_) => {
                tracing::error!("{text}");
                Self::internal()
            }
        }
    }
}

fn of_store(error: &StoreError, text: &str) -> Problem {
    match error {
        StoreError::Conflict { .. } => Problem::new(StatusCode::CONFLICT, "somebody else was faster; try again"),
        StoreError::Full { .. } => {
            tracing::error!("{text}");
            let detail = "there is no space left on the server's disk; nothing is lost";
            Problem::later(StatusCode::SERVICE_UNAVAILABLE, Duration::from_secs(60), detail)
        }
        _ => {
            tracing::error!("{text}");
            Problem::internal()
        }
    }
}

fn of_refusal(refusal: &Refusal) -> FaultCode {
    match refusal {
        Refusal::UnknownFeature { .. } => FaultCode::Unknown,
        Refusal::UnusableLimit { .. } | Refusal::NoGoal | Refusal::Plan(_) | Refusal::UnknownAgent { .. } => {
            FaultCode::Invalid
        }
        _ => FaultCode::Conflict,
    }
}

/// None where the kind of the error says all.
fn of_agent(error: &AgentError, text: &str) -> Option<Problem> {
    Some(match error {
        AgentError::Unknown { .. } | AgentError::NoVersion { .. } => Problem::unknown(text),
        AgentError::Exists { .. }
        | AgentError::TooMany { .. }
        | AgentError::Used { .. }
        | AgentError::Busy { .. }
        | AgentError::Damaged { .. } => Problem::new(StatusCode::CONFLICT, text),
        AgentError::Changed { .. } => Problem::new(StatusCode::PRECONDITION_FAILED, text),
        AgentError::Limit { field, .. } | AgentError::TooLong { field, .. } => Problem::invalid(*field, text),
        AgentError::Name(_) => Problem::invalid("name", text),
        AgentError::Code(_) => Problem::invalid("code", text),
        _ => return None,
    })
}

fn of_schedule(error: &ScheduleError) -> FaultCode {
    match error {
        ScheduleError::Unknown { .. } => FaultCode::Unknown,
        ScheduleError::TooMany { .. } | ScheduleError::Retries { .. } | ScheduleError::NotFailed { .. } => {
            FaultCode::Conflict
        }
        _ => FaultCode::Invalid,
    }
}

fn of_approval(error: &ApprovalError) -> FaultCode {
    match error {
        ApprovalError::NoAnswer(_) | ApprovalError::NoRule(_) => FaultCode::Invalid,
        ApprovalError::NotOpen { .. } | ApprovalError::OtherSubject(_) => FaultCode::Conflict,
    }
}
