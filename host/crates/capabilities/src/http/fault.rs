//! Failures as an error of `wasi:http` for the guest and a line of the plugin's log.
//!
//! A refusal of the host is `internal-error`: of the variants that could say "denied" (`HTTP-request-denied`,
//! `destination-IP-prohibited`) none carries a text, and without its text a denial could not say which line of
//! `longhaul.toml` would allow the request.

use crate::log::LogBook;
use longhaul_core::LimitHit;
use longhaul_core::text::truncate;
use longhaul_egress::EgressError;
use std::io::ErrorKind;
use wasmtime_wasi_http::Error;

/// Bytes of a foreign message that an error repeats.
const TEXT_BYTES_MAX: usize = 500;

/// A request's body exceeded the cap while it was sent.
#[derive(Debug, thiserror::Error)]
#[error("the body of the request is over host_bytes_max")]
pub(super) struct TooMuchSent(pub(super) u64);

/// A refusal that no line of `longhaul.toml` lifts.
fn refused(text: &str) -> Error {
    Error::InternalError(Some(truncate(text, TEXT_BYTES_MAX)))
}

/// The guard's error, in the form that a guest expects.
pub(super) fn of_guard(error: EgressError) -> Error {
    match error {
        EgressError::BadAddress => Error::HttpRequestUriInvalid,
        EgressError::BadMethod(_) => Error::HttpRequestMethodInvalid,
        EgressError::Unresolved { reason, .. } => Error::DnsError { rcode: Some(reason), info_code: None },
        EgressError::NoAddress(_) => Error::DestinationNotFound,
        EgressError::Client(error) => of_client(error),
        other => refused(&other.to_string()),
    }
}

/// A cap of the whole run has no budget for the outgoing bytes.
pub(super) fn of_cap(hit: &LimitHit) -> Error {
    refused(&format!(
        "the run: {hit}; to allow it, raise {} under [run.limits], of an ask under [ask.limits]",
        hit.name
    ))
}

/// Logs the guest's error in the plugin's log; `host` is the requested host.
pub(super) fn told(log: &LogBook, host: &str, error: Error) -> Error {
    let text = match &error {
        Error::InternalError(Some(text)) => text.clone(),
        Error::HttpRequestBodySize(_) | Error::HttpResponseBodySize(_) => format!("{error}, over host_bytes_max"),
        other => other.to_string(),
    };
    log.write("warn", &format!("http to `{}`: {text}", truncate(host, 200)));
    error
}

/// An error of the client, without the address, which may hold a secret in its query.
pub(super) fn of_client(error: reqwest::Error) -> Error {
    if error.is_timeout() {
        return if error.is_connect() { Error::ConnectionTimeout } else { Error::HttpResponseTimeout };
    }
    let error = error.without_url();
    let mut text = error.to_string();
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    while let Some(inner) = cause {
        if let Some(known) = known(inner) {
            return known;
        }
        text = inner.to_string();
        cause = inner.source();
    }
    // The innermost cause is the most specific.
    refused(&text)
}

fn known(cause: &(dyn std::error::Error + 'static)) -> Option<Error> {
    if let Some(TooMuchSent(bytes)) = cause.downcast_ref() {
        return Some(Error::HttpRequestBodySize(Some(*bytes)));
    }
    if let Some(hit) = cause.downcast_ref() {
        return Some(of_cap(hit));
    }
    let io: &std::io::Error = cause.downcast_ref()?;
    if let Some(tls) = io.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        return Some(of_tls(tls));
    }
    match io.kind() {
        ErrorKind::ConnectionRefused => Some(Error::ConnectionRefused),
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => Some(Error::DestinationUnavailable),
        ErrorKind::BrokenPipe
        | ErrorKind::ConnectionAborted
        | ErrorKind::ConnectionReset
        | ErrorKind::UnexpectedEof => Some(Error::ConnectionTerminated),
        _ => None,
    }
}

fn of_tls(error: &rustls::Error) -> Error {
    match error {
        rustls::Error::InvalidCertificate(_) => Error::TlsCertificateError,
        rustls::Error::AlertReceived(alert) => {
            Error::TlsAlertReceived { alert_id: Some(u8::from(*alert)), alert_message: Some(format!("{alert:?}")) }
        }
        _ => Error::TlsProtocolError,
    }
}
