//! A request that the proxy refused, with its target.
//!
//! A program may ask for more than its user knows of. The target says which of its requests a refusal explains.

use crate::error::EgressError;
use http::Uri;
use longhaul_core::Digest;
use reqwest::Url;
use std::fmt;

/// A request or a tunnel that was refused, or that was broken off.
#[derive(Debug)]
pub struct RefusedRequest {
    /// Host and port; none where the request names none.
    target: Option<(String, u16)>,
    /// Digests of the whole addresses whose answer the refusal was; none of a tunnel.
    answered: Vec<Digest>,
    error: EgressError,
}

/// Addresses of one host that are kept for one refusal.
const ANSWERED_MAX: usize = 32;

impl RefusedRequest {
    /// The refusal of a request for `uri`, which for a tunnel is `host:port`.
    #[must_use]
    pub fn new(uri: &Uri, error: EgressError) -> Self {
        let scheme_port = match uri.scheme_str() {
            Some("http") => Some(80),
            Some("https") => Some(443),
            _ => None,
        };
        let host = uri.host().map(str::to_ascii_lowercase);
        let answered = scheme_port.and_then(|_| digest_of(&uri.to_string())).into_iter().collect();
        Self { target: host.zip(uri.port_u16().or(scheme_port)), answered, error }
    }

    /// True when the refused request was for the host and the port of this address.
    #[must_use]
    pub fn is_for(&self, address: &str) -> bool {
        let Some((host, port)) = &self.target else { return false };
        let is_target = |url: &Url| url.host_str() == Some(host.as_str()) && url.port_or_known_default() == Some(*port);
        Url::parse(address).is_ok_and(|url| is_target(&url))
    }

    /// True when the program asked for this very address, and the refusal was the answer. That to a tunnel is none: it
    /// stands for no address in it.
    #[must_use]
    pub fn is_answer_at(&self, address: &str) -> bool {
        digest_of(address).is_some_and(|digest| self.answered.contains(&digest))
    }

    /// The reason for the refusal.
    #[must_use]
    pub fn into_error(self) -> EgressError {
        self.error
    }

    /// True when the other one says the same of the same target.
    pub(crate) fn repeats(&self, other: &Self) -> bool {
        self.target == other.target && self.error.to_string() == other.error.to_string()
    }

    /// Takes over what a repetition answered.
    pub(crate) fn join(&mut self, repetition: Self) {
        for digest in repetition.answered {
            if self.answered.len() < ANSWERED_MAX && !self.answered.contains(&digest) {
                self.answered.push(digest);
            }
        }
    }
}

impl fmt::Display for RefusedRequest {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.error, to)
    }
}

/// The digest of an address as a request sends it: without a fragment and credentials.
fn digest_of(address: &str) -> Option<Digest> {
    let mut url = Url::parse(address).ok()?;
    url.set_fragment(None);
    url.set_username("").ok()?;
    url.set_password(None).ok()?;
    Some(Digest::of(url.as_str().as_bytes()))
}
