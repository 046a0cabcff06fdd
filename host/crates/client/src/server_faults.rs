//! The errors of a server elsewhere: one that cannot be reached, one that goes away, and every answer that is no
//! response, each with what to do. A refusal of the service becomes the error that it was there.

use super::server_address::ServerAddress;
use longhaul_api::operations::OTHER_VERSIONS;
use longhaul_core::fault::{Fault, FaultCode};
use longhaul_core::text::{cleaned, truncate};
use reqwest::StatusCode;
use serde::Deserialize;
use serde_json::Value;
use std::error::Error as _;

/// Most bytes of a text of the server that is shown: as much as it sends of one error.
const DETAIL_BYTES_MAX: usize = 64 << 10;

/// The beginning of the answer of every version about a path that it does not have.
const NO_PATH: &str = "there is nothing at this path";

/// The connection to the server broke before its answer was there. What was asked may have been done.
#[derive(Debug, thiserror::Error)]
#[error(
    "the server at {address} went away before it answered ({cause}), and may have done what was asked; look, and try again"
)]
pub struct ServerGone {
    /// The address.
    pub address: String,
    /// The reason, as the connection tells it.
    pub cause: String,
}

/// No connection to the server was made, so nothing was asked.
#[derive(Debug, thiserror::Error)]
#[error("cannot reach the server at {address}: {cause}; start it there with `longhaul serve`, or correct the address")]
pub struct ServerUnreachable {
    /// The address.
    pub address: String,
    /// The reason, as the connection tells it.
    pub cause: String,
    /// True when it answered this process before: it may be about to start again.
    pub has_answered: bool,
}

/// True when the server answered before and is away now, so that it may answer again in a moment.
pub fn is_server_away(fault: &Fault) -> bool {
    fault.is::<ServerGone>() || fault.downcast_ref::<ServerUnreachable>().is_some_and(|away| away.has_answered)
}

/// The error of a request that got no answer.
pub fn of_connection(address: &ServerAddress, error: reqwest::Error, has_answered: bool) -> Fault {
    let (is_connect, address) = (error.is_connect(), address.to_string());
    let cause = longhaul_egress::with_proxy_named(cause_of(error));
    let fault = match is_connect {
        true => Fault::from(ServerUnreachable { address, cause, has_answered }),
        false => Fault::from(ServerGone { address, cause }),
    };
    fault.or_code(FaultCode::Unavailable)
}

/// The causes in one clause. The address is left out: it is told beside.
fn cause_of(error: reqwest::Error) -> String {
    let error = error.without_url();
    let sources = std::iter::successors(error.source(), |&cause| cause.source());
    let causes: Vec<String> = sources.map(ToString::to_string).collect();
    let text = if causes.is_empty() { error.to_string() } else { causes.join(": ") };
    cleaned(&text).into_owned()
}

/// A problem document, as far as it matters here.
#[derive(Deserialize)]
struct ProblemDocument {
    detail: String,
    #[serde(default)]
    code: Option<Value>,
    #[serde(default)]
    field: Option<String>,
}

/// The error that an answer with another status than 200 is. `retry_after_s` is the header `Retry-After`.
pub fn of_answer(address: &ServerAddress, status: StatusCode, retry_after_s: Option<u64>, body: &[u8]) -> Fault {
    if status == StatusCode::UNAUTHORIZED {
        return Fault::forbidden(format!(
            "the server at {address} asks for a token that it knows: set LONGHAUL_TOKEN, or name a file with --token-file; \
             `longhaul token add NAME --scope run` on its machine makes one"
        ));
    }
    if status.is_redirection() {
        return Fault::invalid(format!(
            "the server at {address} sends elsewhere (status {}), and no token follows; name the address that it sends to",
            status.as_u16()
        ));
    }
    let problem = serde_json::from_slice::<ProblemDocument>(body).ok();
    let is_known_path = problem.as_ref().is_some_and(|problem| !problem.detail.starts_with(NO_PATH));
    if matches!(status, StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED) && !is_known_path {
        return Fault::conflict(format!(
            "the server at {address} takes no commands: it is older than this program, or the address lacks the path of a \
             proxy; update it, or correct the address"
        ));
    }
    let fault = match problem {
        Some(problem) => of_problem(status, problem),
        None => Fault::with_code(
            usual_code(status),
            format!(
                "the server at {address} answers {status} and says no more; look at its log, and at what stands in front \
                 of it, and try again"
            ),
        ),
    };
    match retry_after_s {
        Some(seconds) if is_later(status) => {
            Fault::unavailable(format!("{fault:#} (in {seconds} s)")).after(seconds.saturating_mul(1_000))
        }
        _ => fault,
    }
}

/// The error that the service answered.
fn of_problem(status: StatusCode, ProblemDocument { detail, code, field }: ProblemDocument) -> Fault {
    // A server of another version may have further codes.
    let code = code.and_then(|code| serde_json::from_value(code).ok()).unwrap_or_else(|| usual_code(status));
    let fault = Fault::with_code(code, truncate(&detail, DETAIL_BYTES_MAX));
    match field {
        Some(field) => fault.at(field),
        None => fault,
    }
}

/// True for statuses after which the same call may succeed.
fn is_later(status: StatusCode) -> bool {
    matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE)
}

/// The code of a status that came without one.
fn usual_code(status: StatusCode) -> FaultCode {
    match status {
        StatusCode::NOT_FOUND => FaultCode::Unknown,
        StatusCode::FORBIDDEN => FaultCode::Forbidden,
        StatusCode::CONFLICT => FaultCode::Conflict,
        StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT => FaultCode::Unavailable,
        status if is_later(status) => FaultCode::Unavailable,
        status if status.is_server_error() => FaultCode::Internal,
        _ => FaultCode::Invalid,
    }
}

/// The error of an answer that is too long, or no response of the operation.
pub fn not_understood(address: &ServerAddress, why: &str) -> Fault {
    Fault::internal(format!("the answer of the server at {address} is not understood ({why}); {OTHER_VERSIONS}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn answered(status: u16, retry_after_s: Option<u64>, body: &str) -> Fault {
        let address = ServerAddress::parse("https://a.example").expect("an address");
        of_answer(&address, StatusCode::from_u16(status).expect("a status"), retry_after_s, body.as_bytes())
    }

    #[track_caller]
    fn check(status: u16, body: &str, code: FaultCode, words: &str) {
        let fault = answered(status, None, body);
        assert_eq!(fault.code(), Some(code), "{status}: {fault}");
        assert!(fault.to_string().contains(words), "{status}: {fault}");
    }

    #[test]
    fn a_refusal_of_the_service_is_the_error_that_it_was_there() {
        let body = json!({ "status": 422, "detail": "it is 0; write 1", "code": "invalid", "field": "limits.max" });
        let fault = answered(422, None, &body.to_string());
        assert_eq!((fault.code(), fault.field()), (Some(FaultCode::Invalid), Some("limits.max")));
        assert_eq!(format!("{fault:#}"), "it is 0; write 1");
        let unknown = json!({ "detail": "there is no run `r-1`", "code": "unknown" }).to_string();
        check(404, &unknown, FaultCode::Unknown, "there is no run `r-1`");
        let newer = json!({ "detail": "of tomorrow", "code": "of-tomorrow" }).to_string();
        check(409, &newer, FaultCode::Conflict, "of tomorrow");
    }

    #[test]
    fn each_answer_of_another_kind_says_what_to_do() {
        let path = json!({ "detail": "there is nothing at this path; /api/v1/openapi.json lists what there is" });
        check(401, "", FaultCode::Forbidden, "set LONGHAUL_TOKEN, or name a file with --token-file");
        check(302, "", FaultCode::Invalid, "no token follows; name the address that it sends to");
        check(404, &path.to_string(), FaultCode::Conflict, "it is older than this program");
        check(404, "<html>", FaultCode::Conflict, "or the address lacks the path of a proxy");
        check(405, "", FaultCode::Conflict, "takes no commands");
        check(502, "<html>", FaultCode::Unavailable, "answers 502 Bad Gateway and says no more");
        check(500, "", FaultCode::Internal, "look at its log");
        check(413, &json!({ "detail": "too large" }).to_string(), FaultCode::Invalid, "too large");
    }

    #[test]
    fn a_server_that_has_no_room_says_when_to_come_again() {
        let fault = answered(429, Some(3), &json!({ "detail": "more requests than allowed" }).to_string());
        assert_eq!((fault.code(), fault.retry_after_ms()), (Some(FaultCode::Unavailable), Some(3_000)));
        assert_eq!(fault.to_string(), "more requests than allowed (in 3 s)");
        assert_eq!(answered(503, Some(u64::MAX), "").retry_after_ms(), Some(u64::MAX));
    }

    #[test]
    fn only_a_server_that_was_there_is_waited_for() {
        let (address, cause) = (|| "https://a.example".to_owned(), || "refused".to_owned());
        let unreachable =
            |has_answered| Fault::from(ServerUnreachable { address: address(), cause: cause(), has_answered });
        assert!(is_server_away(&ServerGone { address: address(), cause: cause() }.into()));
        assert!(is_server_away(&unreachable(true)) && !is_server_away(&unreachable(false)));
        assert!(!is_server_away(&Fault::unavailable("not now")));
    }
}
