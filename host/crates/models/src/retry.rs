//! Retries: exponential backoff with jitter, bounded in count and in time.
//!
//! Only a retryable failure is retried. A provider that names a time is never asked earlier; if that time exceeds the
//! limit, there is no second request, and the caller gets the time. This module sends nothing and knows no HTTP.

use crate::problem::Problem;
use longhaul_core::Outage;
use longhaul_core::model::ModelError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;
use tokio::time::Instant;

/// The limits of retries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RetryConfig {
    /// Requests after the first one. Default 5; 0 asks once.
    pub retries_max: u32,
    /// The wait before the second request, in milliseconds. Default 500. It doubles each time; a random part of up to a
    /// half is subtracted, so that many runs do not retry at the same moment.
    pub backoff_ms_first: u64,
    /// The longest wait of the backoff, in milliseconds. Default 30 000.
    pub backoff_ms_max: u64,
    /// The longest wait that a provider may request with `Retry-After`, in milliseconds. Default 120 000. Beyond it,
    /// the request fails at once and the run gets the time.
    pub retry_after_ms_max: u64,
}

impl Default for RetryConfig {
    fn default() -> Self {
        Self { retries_max: 5, backoff_ms_first: 500, backoff_ms_max: 30_000, retry_after_ms_max: 120_000 }
    }
}

/// The reason why one request failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A retry cannot help.
    Final(ModelError),
    /// A retry may help, after the time that the provider named, if it did.
    Passing { reason: String, after: Option<Duration> },
    /// Another request may be accepted; if there is none, this is final.
    Refused { error: ModelError, problem: Box<Problem> },
}

impl Failure {
    pub(crate) fn passing(reason: impl Into<String>) -> Self {
        Self::Passing { reason: reason.into(), after: None }
    }
}

/// The requests made so far for one reply.
pub(crate) struct Retries {
    config: RetryConfig,
    started: Instant,
    deadline: Instant,
    made: u32,
}

impl Retries {
    /// No wait exceeds `total`.
    pub(crate) fn new(config: RetryConfig, total: Duration) -> Self {
        let started = Instant::now();
        // An unrepresentable total becomes a year.
        let deadline = started.checked_add(total).unwrap_or_else(|| started + Duration::from_secs(31_536_000));
        Self { config, started, deadline, made: 0 }
    }

    /// The deadline of all attempts.
    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Waits until the next request is due.
    ///
    /// # Errors
    /// The caller's error instead of a reply, when there will be no next request.
    pub(crate) async fn wait(&mut self, failure: Failure) -> Result<(), ModelError> {
        let (reason, after) = match failure {
            Failure::Final(error) | Failure::Refused { error, .. } => return Err(error),
            Failure::Passing { reason, after } => (reason, after),
        };
        self.made += 1;
        let wait = self.next_wait(&reason, after)?;
        tracing::warn!(attempt = self.made, wait_ms = millis(wait), %reason, "the model is asked again");
        tokio::time::sleep(wait).await;
        Ok(())
    }

    /// The reply did not arrive in time.
    pub(crate) fn timed_out(&self, total: Duration) -> ModelError {
        outage(
            format!("no whole reply within total_ms_max = {} ms, in {} requests", millis(total), self.made + 1),
            None,
        )
    }

    fn next_wait(&self, reason: &str, after: Option<Duration>) -> Result<Duration, ModelError> {
        let after_max = Duration::from_millis(self.config.retry_after_ms_max);
        if let Some(asked) = after.filter(|asked| *asked > after_max) {
            let text = format!("{reason}; asks for a wait of {} ms, more than retry_after_ms_max", millis(asked));
            return Err(outage(text, after));
        }
        if self.made > self.config.retries_max {
            return Err(outage(format!("{reason}; gave up after {}", self.effort()), after));
        }
        let wait = self.backoff(random()).max(after.unwrap_or_default());
        if wait >= self.deadline.saturating_duration_since(Instant::now()) {
            let text =
                format!("{reason}; gave up after {}, since the next wait would pass total_ms_max", self.effort());
            return Err(outage(text, after));
        }
        Ok(wait)
    }

    /// `random` is in 0..1.
    fn backoff(&self, random: f64) -> Duration {
        let doubled = 1_u64.checked_shl(self.made.saturating_sub(1)).unwrap_or(u64::MAX);
        let longest = self.config.backoff_ms_first.saturating_mul(doubled).min(self.config.backoff_ms_max);
        Duration::from_millis(longest).mul_f64(1.0 - random / 2.0)
    }

    fn effort(&self) -> String {
        format!("{} requests in {} ms", self.made, millis(self.started.elapsed()))
    }
}

/// The provider is unavailable.
pub(crate) fn outage(reason: String, after: Option<Duration>) -> ModelError {
    let retry_after_ms = after.map(|after| u32::try_from(after.as_millis()).unwrap_or(u32::MAX));
    ModelError::Unavailable(Outage { reason, retry_after_ms })
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// In 0..1, from the keys that the standard library draws for its hash maps: good enough to spread waits.
fn random() -> f64 {
    let drawn = RandomState::new().hash_one(0_u8);
    f64::from(u32::try_from(drawn >> 32).unwrap_or_default()) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passing(after_ms: Option<u64>) -> Failure {
        Failure::Passing { reason: "HTTP 503".into(), after: after_ms.map(Duration::from_millis) }
    }

    fn retries(total_ms: u64) -> Retries {
        Retries::new(RetryConfig::default(), Duration::from_millis(total_ms))
    }

    async fn waited(retries: &mut Retries, after_ms: Option<u64>) -> u64 {
        let before = Instant::now();
        retries.wait(passing(after_ms)).await.unwrap();
        millis(before.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn waits_double_and_then_the_request_is_given_up() {
        let mut retries = retries(10_000_000);
        for longest in [500, 1000, 2000, 4000, 8000] {
            let waited = waited(&mut retries, None).await;
            assert!((longest / 2..=longest + 1).contains(&waited), "{waited} of {longest}");
        }
        let error = retries.wait(passing(None)).await.unwrap_err().to_string();
        assert!(error.starts_with("HTTP 503; gave up after 6 requests in "), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_provider_is_never_asked_earlier_than_it_said() {
        let mut retries = retries(10_000_000);
        assert!((60_000..60_010).contains(&waited(&mut retries, Some(60_000)).await));
        assert!(waited(&mut retries, Some(120_000)).await >= 120_000);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_longer_than_the_cap_is_passed_on_instead_of_waited() {
        let mut retries = retries(10_000_000);
        let before = Instant::now();
        let error = retries.wait(passing(Some(120_001))).await.unwrap_err();
        assert_eq!(before.elapsed(), Duration::ZERO);
        let ModelError::Unavailable(outage) = error else { panic!("{error}") };
        assert_eq!(outage.retry_after_ms, Some(120_001));
    }

    #[tokio::test(start_paused = true)]
    async fn no_wait_passes_the_total() {
        let mut retries = retries(700);
        waited(&mut retries, None).await;
        let error = retries.wait(passing(None)).await.unwrap_err().to_string();
        assert!(error.contains("would pass total_ms_max"), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn what_cannot_help_is_not_waited_for() {
        let error = retries(1000).wait(Failure::Final(ModelError::Refused("no".into()))).await.unwrap_err();
        assert_eq!(error, ModelError::Refused("no".into()));
    }

    #[test]
    fn no_number_of_requests_overflows_the_wait() {
        let config = RetryConfig { backoff_ms_first: u64::MAX, ..RetryConfig::default() };
        let retries = Retries { config, started: Instant::now(), deadline: Instant::now(), made: u32::MAX };
        assert_eq!(retries.backoff(0.0), Duration::from_secs(30));
        assert_eq!(retries.backoff(1.0), Duration::from_secs(15));
    }
}
