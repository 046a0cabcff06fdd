//! The problem document of a refused request, as in RFC 9457: `application/problem+json`.
//!
//! The text for the caller says what to do. The text of a fault of our own goes to the log, and the caller gets the
//! number under which the log has it. A fault becomes a problem by its code alone.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::{HeaderName, HeaderValue, StatusCode, header};
use longhaul_core::fault::{Fault, FaultCode};
use longhaul_core::text::truncate;
use longhaul_service::{classified, code_of};
use serde::Serialize;
use std::fmt;
use std::time::Duration;
use utoipa::ToSchema;

/// The media type.
pub const MEDIA_TYPE: &str = "application/problem+json";

/// Longest detail, in bytes.
const DETAIL_BYTES_MAX: usize = 2_000;

/// Longest detail for a command line, in bytes: it prints the whole error, such as all findings about a project.
const COMMAND_DETAIL_BYTES_MAX: usize = 64 << 10;

/// Time until the same call may succeed, where the error names none.
const RETRY_AFTER: Duration = Duration::from_secs(60);

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
    /// The fault and its remedy.
    detail: String,
    /// The code for programs, the same at every surface: `unknown`, `conflict`, `invalid`, `changed`, `forbidden`,
    /// `unavailable` or `internal`. It is left out where the fault is in HTTP itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    code: Option<FaultCode>,
    /// The parameter or field at fault, with dots between a field and the one that it is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    #[serde(skip)]
    header: Option<Box<(HeaderName, HeaderValue)>>,
}

impl Problem {
    /// One of a kind that the status tells.
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self::within(DETAIL_BYTES_MAX, status, &detail.into())
    }

    fn within(detail_bytes_max: usize, status: StatusCode, detail: &str) -> Self {
        let (word, title) = words(status);
        let detail = truncate(detail, detail_bytes_max);
        let kind = format!("https://longhaul.invalid/problems/{word}");
        let code = FaultCode::ALL.into_iter().find(|code| status_of(*code) == status);
        Self { kind, title, status: status.as_u16(), detail, code, field: None, header: None }
    }

    /// A parameter, or a field of the body, is wrong.
    pub fn invalid(field: impl Into<String>, detail: impl Into<String>) -> Self {
        let field = Some(field.into()).filter(|field| !field.is_empty() && field != ".");
        Self { field, ..Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail) }
    }

    /// The requested object does not exist.
    pub fn unknown(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    /// The caller must identify itself.
    pub fn unauthenticated() -> Self {
        let detail = "send a token as `Authorization: Bearer lh_...`; `longhaul token add NAME --scope read` makes one";
        let header = Some(Box::new((header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"longhaul\""))));
        Self { header, ..Self::new(StatusCode::UNAUTHORIZED, detail) }
    }

    /// The request comes too early, or beside too many others: it may be repeated after a while.
    pub fn later(status: StatusCode, after: Duration, detail: impl Into<String>) -> Self {
        let seconds = after.as_secs().max(1);
        Self { header: Some(Box::new((header::RETRY_AFTER, HeaderValue::from(seconds)))), ..Self::new(status, detail) }
    }

    /// The problem of a refusal or a failure of the service, with all that a command line prints of it.
    pub fn for_command(fault: Fault) -> Self {
        Self::of(fault, COMMAND_DETAIL_BYTES_MAX)
    }

    fn of(fault: Fault, detail_bytes_max: usize) -> Self {
        let fault = classified(fault);
        let (code, text) = (code_of(&fault), format!("{fault:#}"));
        let problem = match code {
            FaultCode::Internal => return Self::failed(text),
            FaultCode::Unavailable => {
                tracing::warn!("{text}");
                let after = fault.retry_after_ms().map_or(RETRY_AFTER, Duration::from_millis);
                Self::later(status_of(code), after, text)
            }
            code => Self::within(detail_bytes_max, status_of(code), &text),
        };
        Self { field: fault.field().map(str::to_owned), ..problem }
    }

    /// Our own fault: the log has the text, under the number that the caller gets.
    pub fn failed(text: impl fmt::Display) -> Self {
        let number = number();
        tracing::error!(number, "{text}");
        let detail = format!("the server failed; its log says more, under the number {number}");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
    }

    /// Our own fault, of which the log says no more than that the request failed.
    pub fn internal() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "the server failed; its log says more, under the request's id")
    }

    /// The problem of a status that came without one.
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

/// The status for a code.
fn status_of(code: FaultCode) -> StatusCode {
    match code {
        FaultCode::Unknown => StatusCode::NOT_FOUND,
        FaultCode::Conflict => StatusCode::CONFLICT,
        FaultCode::Invalid => StatusCode::UNPROCESSABLE_ENTITY,
        FaultCode::Changed => StatusCode::PRECONDITION_FAILED,
        FaultCode::Forbidden => StatusCode::FORBIDDEN,
        FaultCode::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        FaultCode::Internal => StatusCode::INTERNAL_SERVER_ERROR,
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
        StatusCode::CONFLICT => ("conflict", "Conflict with the current state"),
        StatusCode::PRECONDITION_FAILED => ("precondition-failed", "It was changed meanwhile"),
        StatusCode::PAYLOAD_TOO_LARGE => ("too-large", "The request is too large"),
        StatusCode::UNSUPPORTED_MEDIA_TYPE => ("unsupported-media-type", "Not in this form"),
        StatusCode::UNPROCESSABLE_ENTITY => ("invalid", "Something in the request is wrong"),
        StatusCode::PRECONDITION_REQUIRED => ("precondition-required", "The version that is meant is needed"),
        StatusCode::TOO_MANY_REQUESTS => ("too-many-requests", "Too many requests"),
        StatusCode::BAD_GATEWAY => ("no-answer", "Another server gave no answer"),
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

/// Names a line of the log, in eight hexadecimal digits.
fn number() -> String {
    let mut bytes = [0_u8; 4];
    getrandom::fill(&mut bytes).expect("the system gives randomness");
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The problem of a refusal or a failure of the service.
impl From<Fault> for Problem {
    fn from(fault: Fault) -> Self {
        Self::of(fault, DETAIL_BYTES_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_agents::AgentError;
    use serde_json::{Value, json};

    fn told(fault: Fault) -> (u16, Value, Option<HeaderValue>) {
        let problem = Problem::from(fault);
        let header = problem.header.as_ref().map(|header| header.1.clone());
        (problem.status, serde_json::to_value(problem).expect("it is written"), header)
    }

    #[test]
    fn each_code_has_its_status_and_keeps_its_text() {
        for (code, name, status) in [
            (FaultCode::Unknown, "unknown", 404),
            (FaultCode::Conflict, "conflict", 409),
            (FaultCode::Invalid, "invalid", 422),
            (FaultCode::Changed, "changed", 412),
            (FaultCode::Forbidden, "forbidden", 403),
            (FaultCode::Unavailable, "unavailable", 503),
        ] {
            let (found, problem, _) = told(Fault::with_code(code, "it is so; do this").context("begin"));
            assert_eq!((found, &problem["status"]), (status, &json!(status)), "{name}");
            assert_eq!(status_of(code).as_u16(), status);
            assert_eq!((&problem["code"], &problem["detail"]), (&json!(name), &json!("begin: it is so; do this")));
            assert_eq!(problem.get("field"), None);
        }
    }

    #[test]
    fn a_command_line_gets_all_of_a_long_text_and_other_callers_its_beginning() {
        let fault = || Fault::invalid("a finding\n".repeat(1_000));
        assert_eq!(Problem::for_command(fault()).detail.len(), 10_000);
        assert!(Problem::from(fault()).detail.len() < 2_100);
    }

    #[test]
    fn the_field_at_fault_and_the_time_to_wait_are_told() {
        let limit = AgentError::Limit { field: "timeout_ms", value: 0, min: 1, max: 2 };
        let (status, problem, _) = told(limit.into());
        assert_eq!((status, &problem["field"]), (422, &json!("timeout_ms")));
        assert_eq!(told(Fault::unavailable("not now")).2, Some(HeaderValue::from(60_u64)));
        assert_eq!(told(Fault::unavailable("not now").after(2_500)).2, Some(HeaderValue::from(2_u64)));
    }

    #[test]
    fn what_is_wrong_here_or_what_nobody_classified_is_told_by_a_number_alone() {
        for fault in
            [Fault::internal("the key k is damaged"), Fault::from(std::io::Error::other("the key k is damaged"))]
        {
            let (status, problem, _) = told(fault);
            let detail = problem["detail"].as_str().expect("text");
            assert_eq!((status, &problem["code"]), (500, &json!("internal")));
            assert!(!detail.contains("key"), "{detail}");
            let number = detail.rsplit(' ').next().expect("words");
            assert!(number.len() == 8 && number.bytes().all(|byte| byte.is_ascii_hexdigit()), "{detail}");
        }
    }
}
