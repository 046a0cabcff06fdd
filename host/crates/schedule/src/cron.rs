//! Cron expressions with a time zone.
//!
//! Five fields, six with seconds in front; names of months and weekdays; `@hourly` and the like; 0 and 7 are Sunday; a
//! day of the month and a weekday that are both given are alternatives, as in Vixie cron. When a clock goes forward, a
//! fixed time that does not exist that day fires at the first moment after the gap; when it goes back, a fixed time
//! fires once, and `*` and steps fire in both hours.

use crate::ScheduleError;
use croner::errors::CronError;
use croner::parser::{CronParser, Seconds, Year};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// Bytes of an expression. Lists of all minutes fit.
const EXPRESSION_BYTES_MAX: usize = 512;

/// An expression and its time zone.
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct Cron {
    written: Written,
    parsed: Arc<croner::Cron>,
    zone: TimeZone,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    cron: String,
    #[serde(default = "utc")]
    timezone: String,
}

fn utc() -> String {
    "UTC".to_owned()
}

/// No further fire can be found.
#[derive(Debug, thiserror::Error)]
#[error("`{expression}` never fires again")]
pub struct NextError {
    expression: String,
}

impl Cron {
    /// Reads an expression, in the zone of that IANA name, such as `Europe/Berlin`.
    ///
    /// # Errors
    /// When the expression cannot be read or never fires, and when the zone is unknown.
    pub fn parse(expression: &str, zone: &str) -> Result<Self, ScheduleError> {
        Self::try_from(Written { cron: expression.to_owned(), timezone: zone.to_owned() })
    }

    /// The first fire after `after_ms`, in milliseconds since 1970.
    ///
    /// # Errors
    /// When there is none, for example for a past year.
    pub fn next_after(&self, after_ms: u64) -> Result<u64, NextError> {
        let never = || NextError { expression: self.written.cron.clone() };
        let after = Timestamp::from_millisecond(i64::try_from(after_ms).map_err(|_| never())?).map_err(|_| never())?;
        let start = Zoned::new(after, self.zone.clone());
        let next = self.parsed.find_next_occurrence(&start, false).map_err(|_| never())?;
        // The search uses whole seconds, and `after_ms` may be between two.
        u64::try_from(next.timestamp().as_second()).ok().and_then(|s| s.checked_mul(1000)).ok_or_else(never)
    }

    /// The expression as it was written.
    #[must_use]
    pub fn expression(&self) -> &str {
        &self.written.cron
    }

    /// The IANA name of the zone.
    #[must_use]
    pub fn zone(&self) -> &str {
        &self.written.timezone
    }
}

impl TryFrom<Written> for Cron {
    type Error = ScheduleError;

    fn try_from(written: Written) -> Result<Self, ScheduleError> {
        let wrong = |why: String| ScheduleError::Cron { expression: shorten(&written.cron), why };
        if written.cron.len() > EXPRESSION_BYTES_MAX {
            return Err(wrong(format!("it is longer than {EXPRESSION_BYTES_MAX} bytes")));
        }
        let parser = CronParser::builder().seconds(Seconds::Optional).year(Year::Disallowed).build();
        let parsed = parser.parse(&written.cron).map_err(|error| wrong(reason(&error)))?;
        let zone =
            TimeZone::get(&written.timezone).map_err(|_| ScheduleError::Zone { name: shorten(&written.timezone) })?;
        let cron = Self { parsed: Arc::new(parsed), zone, written };
        // An expression such as 30 February has no next fire, and is refused here.
        cron.next_after(0).map_err(|_| ScheduleError::Cron {
            expression: shorten(&cron.written.cron),
            why: "it never fires".to_owned(),
        })?;
        Ok(cron)
    }
}

impl From<Cron> for Written {
    fn from(cron: Cron) -> Self {
        cron.written
    }
}

impl PartialEq for Cron {
    fn eq(&self, other: &Self) -> bool {
        self.written == other.written
    }
}

impl Eq for Cron {}

impl fmt::Debug for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cron({self})")
    }
}

impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cron `{}` in {}", self.written.cron, self.written.timezone)
    }
}

/// The parser's error as a part of a sentence: it has no full stop, and the expression is not named by a type's name.
fn reason(error: &CronError) -> String {
    let text = match error {
        CronError::InvalidPattern(text) | CronError::IllegalCharacters(text) | CronError::ComponentError(text) => {
            text.clone()
        }
        CronError::EmptyPattern
        | CronError::InvalidDate
        | CronError::InvalidTime
        | CronError::TimeSearchLimitExceeded => error.to_string(),
    };
    let text = text.trim_end_matches('.');
    if let Some(rest) = ["CronPattern ", "Pattern "].iter().find_map(|name| text.strip_prefix(name)) {
        return format!("it {rest}");
    }
    let mut letters = text.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

fn shorten(text: &str) -> String {
    text.chars().take(80).collect()
}
