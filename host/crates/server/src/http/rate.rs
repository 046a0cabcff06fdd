//! Rate limits: a bucket for each token, and for each address that sends none.
//!
//! A bucket fills at `requests_per_second`, up to `requests_burst`. The number of buckets is bounded; the fullest is
//! dropped first, since it limits no client.

use longhaul_config::server::ServerSettings;
use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Most buckets that are kept. An attacker with more addresses has more than a rate to set against.
const BUCKETS_MAX: usize = 10_000;

/// The client whose requests are counted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ClientIdentity {
    /// The holder of a token, by its name.
    Token(String),
    /// A client without a token.
    Address(IpAddr),
}

/// The buckets of all clients.
#[derive(Default)]
pub struct RateLimiter(Mutex<HashMap<ClientIdentity, Bucket>>);

/// The limit of one client.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateLimit {
    /// Requests in a second, at least 1.
    pub per_second: u32,
    /// Requests at once, at least 1.
    pub burst: u32,
}

impl From<&ServerSettings> for RateLimit {
    fn from(settings: &ServerSettings) -> Self {
        Self { per_second: settings.requests_per_second, burst: settings.requests_burst }
    }
}

struct Bucket {
    /// Requests that may come at once.
    filled: f64,
    at: Instant,
}

impl RateLimiter {
    /// Takes a request, or says how long to wait.
    pub fn take(&self, who: ClientIdentity, rate: RateLimit, now: Instant) -> Result<(), Duration> {
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= BUCKETS_MAX && !buckets.contains_key(&who) {
            make_room(&mut buckets, rate, now);
        }
        let bucket = buckets.entry(who).or_insert(Bucket { filled: f64::from(rate.burst), at: now });
        bucket.fill(rate, now);
        if bucket.filled >= 1.0 {
            bucket.filled -= 1.0;
            return Ok(());
        }
        Err(Duration::from_secs_f64((1.0 - bucket.filled) / f64::from(rate.per_second.max(1))))
    }
}

impl Bucket {
    fn fill(&mut self, rate: RateLimit, now: Instant) {
        let since = now.saturating_duration_since(self.at).as_secs_f64();
        self.filled = (self.filled + since * f64::from(rate.per_second)).min(f64::from(rate.burst));
        self.at = now;
    }
}

/// Drops full buckets, which limit no client; where there is none, drops the fullest.
fn make_room(buckets: &mut HashMap<ClientIdentity, Bucket>, rate: RateLimit, now: Instant) {
    buckets.retain(|_, bucket| {
        bucket.fill(rate, now);
        bucket.filled < f64::from(rate.burst)
    });
    if buckets.len() >= BUCKETS_MAX {
        let fullest = buckets.iter().max_by(|a, b| a.1.filled.total_cmp(&b.1.filled)).map(|(who, _)| who.clone());
        fullest.map(|who| buckets.remove(&who));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: RateLimit = RateLimit { per_second: 10, burst: 3 };

    fn who(number: u32) -> ClientIdentity {
        ClientIdentity::Address(IpAddr::from(number.to_be_bytes()))
    }

    #[test]
    fn a_burst_passes_then_so_many_a_second_and_one_holds_up_no_other() {
        let (rates, start) = (RateLimiter::default(), Instant::now());
        let passed = (0..10).filter(|_| rates.take(who(1), RATE, start).is_ok()).count();
        assert_eq!(passed, 3);
        assert_eq!(rates.take(who(1), RATE, start), Err(Duration::from_millis(100)));
        assert_eq!(rates.take(who(2), RATE, start), Ok(()));
        let later = start + Duration::from_millis(100);
        assert_eq!(rates.take(who(1), RATE, later), Ok(()));
        assert!(rates.take(who(1), RATE, later).is_err());
        let passed = (0..10).filter(|_| rates.take(who(1), RATE, start + Duration::from_secs(60)).is_ok()).count();
        assert_eq!(passed, 3, "no more than a burst, however long nobody asked");
    }

    #[test]
    fn buckets_are_bounded_and_one_that_is_empty_stays() {
        let (rates, now) = (RateLimiter::default(), Instant::now());
        while rates.take(who(0), RATE, now).is_ok() {}
        for number in 1..=u32::try_from(2 * BUCKETS_MAX).expect("small") {
            assert!(rates.take(who(number), RATE, now).is_ok());
        }
        assert!(rates.0.lock().expect("ours").len() <= BUCKETS_MAX);
        assert!(rates.take(who(0), RATE, now).is_err());
    }
}
