//! Days of a project in UTC: their numbers, their ends, and the caps that hold for one of them.
//!
//! The caps are the project's, so they are in no [`crate::HarnessLimits`], and the ledger holds them. Here stands only
//! their consequence for a run. Nothing here reads a clock.

/// Milliseconds of a day. UTC of computers has no leap seconds.
const DAY_MS: u64 = 86_400_000;

/// The time after midnight in which a refusal may still be of the day before: work that was refused takes a moment to
/// come to rest.
const GRACE_MS: u64 = 60_000;

/// The caps of a day, by the names of their keys under `[project]`.
pub const CAPS: [&str; 2] = [COST_MAX, TOKENS_MAX];

/// Money of a project's day, in millionths of a US dollar.
pub const COST_MAX: &str = "cost_microdollars_per_day_max";

/// Tokens of a project's day.
pub const TOKENS_MAX: &str = "tokens_per_day_max";

/// The number of the day of a time, from 1970-01-01 UTC.
#[must_use]
pub fn number(at_ms: u64) -> u64 {
    at_ms / DAY_MS
}

/// The time until which work waits that was refused because its project used up its day: the next 00:00 UTC. A refusal
/// of the first minute may be of the day before, so such work is tried again when that minute is over.
#[must_use]
pub fn wait_until_ms(at_ms: u64) -> u64 {
    let begun_ms = number(at_ms) * DAY_MS;
    let wait_ms = if at_ms - begun_ms < GRACE_MS { GRACE_MS } else { DAY_MS };
    begun_ms.saturating_add(wait_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_ends_at_midnight_and_a_refusal_just_after_it_may_be_of_the_day_before() {
        let noon = 20_000 * DAY_MS + DAY_MS / 2;
        let midnight = 20_001 * DAY_MS;
        assert_eq!((number(noon), number(midnight - 1), number(midnight)), (20_000, 20_000, 20_001));
        let cases = [
            (noon, midnight),
            (midnight - 1, midnight),
            (midnight, midnight + GRACE_MS),
            (midnight + GRACE_MS - 1, midnight + GRACE_MS),
            (midnight + GRACE_MS, midnight + DAY_MS),
            (u64::MAX, u64::MAX),
        ];
        for (at_ms, until_ms) in cases {
            assert_eq!(wait_until_ms(at_ms), until_ms, "{at_ms}");
        }
    }
}
