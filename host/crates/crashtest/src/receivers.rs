//! Requests as receivers outside of the process saw them: those to the stand-in of all hosts, and those that the
//! recording of the models answered.
//!
//! A request that only reads (`GET`, `HEAD`, `OPTIONS`) is no effect and not counted. Requests with one idempotency key
//! are one effect. Notifications are received and not counted: they are sent at least once, by design.

use longhaul_core::Digest;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The methods that change nothing.
const READING: [&str; 3] = ["GET", "HEAD", "OPTIONS"];

/// A request that the stand-in of all hosts received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedRequest {
    /// Its time, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// Its method.
    pub method: String,
    /// The address that it was meant for.
    pub url: String,
    /// The digest of its body.
    pub body: Digest,
    /// Its idempotency key, if it has one in the header `idempotency-key`.
    pub key: Option<String>,
}

/// The degree to which requests of two runs without a kill are alike: by it those of a killed run are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Likeness {
    /// Method, address and body.
    Whole,
    /// Method and address without its query.
    Address,
    /// They are not alike, so they are not compared.
    Nothing,
}

impl Likeness {
    /// The finest likeness in which two runs without a kill agree.
    #[must_use]
    pub fn of(first: &[ReceivedRequest], second: &[ReceivedRequest]) -> Self {
        let agree = |likeness: &Self| counted(first, *likeness) == counted(second, *likeness);
        [Self::Whole, Self::Address].into_iter().find(agree).unwrap_or(Self::Nothing)
    }
}

impl ReceivedRequest {
    /// The words by which it is told apart; none when it is no effect, or when requests are not compared.
    pub(crate) fn told(&self, likeness: Likeness) -> Option<String> {
        let Self { method, url, body, .. } = self;
        if READING.contains(&method.as_str()) {
            return None;
        }
        let address = url.split(['?', '#']).next().unwrap_or_default();
        match likeness {
            Likeness::Whole => Some(format!("{method} {url} {}", body.short())),
            Likeness::Address => Some(format!("{method} {address}")),
            Likeness::Nothing => None,
        }
    }
}

/// The number of effects of each kind.
pub(crate) fn counted(requests: &[ReceivedRequest], likeness: Likeness) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    let mut keys = BTreeSet::new();
    for request in requests {
        let Some(told) = request.told(likeness) else { continue };
        if let Some(key) = &request.key
            && !keys.insert((told.clone(), key.clone()))
        {
            continue;
        }
        *counts.entry(told).or_default() += 1;
    }
    counts
}

/// The number of requests to models that each invocation made, by the invocation without its run, of the lines that a
/// recording wrote.
#[must_use]
pub fn model_requests(log: &str) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    for (_, within) in log.lines().filter_map(|line| line.split_once(' ')) {
        *counts.entry(within.to_owned()).or_default() += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::request;

    #[test]
    fn requests_are_told_apart_as_finely_as_two_runs_agree() {
        let first = [request(1, "POST", "http://a.example/pay?t=1", "{}", None)];
        let other_query = [request(1, "POST", "http://a.example/pay?t=2", "{}", None)];
        let twice = [&first[..], &other_query].concat();
        assert_eq!(Likeness::of(&first, &first), Likeness::Whole);
        assert_eq!(Likeness::of(&first, &other_query), Likeness::Address);
        assert_eq!(Likeness::of(&first, &twice), Likeness::Nothing);
    }

    #[test]
    fn a_request_with_the_same_key_is_one_effect_and_a_read_is_none() {
        let keyed = request(1, "POST", "http://a.example/pay", "{}", Some("k"));
        let other = request(2, "POST", "http://a.example/pay", "{}", Some("l"));
        let read = request(3, "GET", "http://a.example/pay", "", None);
        let counts = counted(&[keyed.clone(), keyed, other, read], Likeness::Address);
        assert_eq!(counts, [("POST http://a.example/pay".to_owned(), 2)].into());
    }

    #[test]
    fn requests_to_models_are_counted_by_invocation() {
        let counts = model_requests("0123 f-a/1/generate\n4567 f-a/1/generate\n89ab plan\n");
        assert_eq!(counts, [("f-a/1/generate".to_owned(), 2), ("plan".to_owned(), 1)].into());
    }
}
