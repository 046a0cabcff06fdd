//! Points in the past of a run: how they are written, and the run as it was at one.
//!
//! A point is a text such as `feature:login` on every surface. This module reads no run; `resolve` of `longhaul-forks`
//! finds a point in one.

use crate::runs::RunRef;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use longhaul_agents::rfc3339;
use longhaul_core::model::Usage;
use longhaul_core::text::printable;
use longhaul_core::{InvocationId, RunId};
use longhaul_harness::{Feature, RunStatus};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The forms of a point, for people.
const FORMS: &str = "entry:N, entry:KEY:N, step:N, feature:ID, commit:HEX, time:2026-11-22T01:00:00Z or event:N";

/// Longest id of a feature or key of an invocation, in bytes.
const WORD_BYTES_MAX: usize = 500;

/// Fewest and most digits of a commit. Fewer mean many commits, and git's longest have so many.
const COMMIT_DIGITS_MIN: usize = 4;
const COMMIT_DIGITS_MAX: usize = 64;

/// Characters of a date, such as `2026-11-22`.
const DATE_CHARS: usize = 10;

/// A point in the past of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Point {
    /// An entry of a journal was answered: `entry:N`, or `entry:KEY:N`.
    Entry {
        /// The invocation, with or without the id of the run. None: the only one of the run.
        invocation: Option<String>,
        /// The number of the entry, from 1.
        entry: u32,
    },
    /// A step of an agent was made: `step:N`. Thoughts, actions and observations of all agents count, from 1.
    Step(u64),
    /// The first session of a feature was about to begin its work: `feature:ID`.
    Feature(String),
    /// A commit was made: `commit:HEX`, the beginning of its id.
    Commit(String),
    /// A time, in milliseconds since 1970-01-01 UTC: `time:2026-11-22T01:00:00Z`. Without an offset it is in UTC, and a
    /// date alone is its midnight.
    Time(u64),
    /// An event was stored: `event:N`.
    Event(u64),
}

impl FromStr for Point {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parsed(text).ok_or_else(|| format!("`{}` is no point of a run; write one of {FORMS}", printable(text, 80)))
    }
}

impl TryFrom<String> for Point {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Point> for String {
    fn from(point: Point) -> Self {
        point.to_string()
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Entry { invocation: Some(invocation), entry } => write!(f, "entry:{invocation}:{entry}"),
            Self::Entry { invocation: None, entry } => write!(f, "entry:{entry}"),
            Self::Step(number) => write!(f, "step:{number}"),
            Self::Feature(id) => write!(f, "feature:{id}"),
            Self::Commit(digits) => write!(f, "commit:{digits}"),
            Self::Time(at_ms) => write!(f, "time:{}", rfc3339(*at_ms)),
            Self::Event(number) => write!(f, "event:{number}"),
        }
    }
}

/// Show a run as it was at a point of its past.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShowPoint {
    /// The run.
    pub run: RunRef,
    /// The point.
    pub point: Point,
}

/// A run as it was at a point of its past.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunAtPoint {
    /// The id of the run.
    pub run: RunId,
    /// The point.
    pub point: Point,
    /// The number of the last event at the point.
    pub event: u64,
    /// The time of the point, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// The status of the run.
    pub status: RunStatus,
    /// The features. Those of before the plan are none.
    pub features: Vec<Feature>,
    /// The work in flight.
    pub lanes: Vec<LaneAtPoint>,
    /// The open questions to people.
    pub questions: Vec<String>,
    /// The tokens and the cost of all replies of models until then.
    pub usage: Usage,
    /// The newest commit of the branch. None: an ask, which has no branch.
    pub commit: Option<String>,
}

/// A piece of work that was in flight.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LaneAtPoint {
    /// The id of its invocation.
    pub invocation: InvocationId,
    /// The id of its feature. None: it belongs to no single feature.
    pub feature: Option<String>,
    /// The number of entries of its journal that were answered by then, without a gap.
    pub entries: u32,
    /// The reason for which it was held back, in one line. None: it was not.
    pub waiting_for: Option<String>,
}

fn parsed(text: &str) -> Option<Point> {
    let (form, rest) = text.split_once(':')?;
    match form {
        "entry" => entry(rest),
        "step" => number(rest).map(Point::Step),
        "feature" => word(rest).map(Point::Feature),
        "commit" => commit(rest).map(Point::Commit),
        "time" => time(rest).map(Point::Time),
        "event" => number(rest).map(Point::Event),
        _ => None,
    }
}

fn entry(text: &str) -> Option<Point> {
    let (invocation, entry) = match text.rsplit_once(':') {
        Some((invocation, entry)) => (Some(word(invocation)?), entry),
        None => (None, text),
    };
    Some(Point::Entry { invocation, entry: u32::try_from(number(entry)?).ok()? })
}

/// A number from 1, in digits alone.
fn number(text: &str) -> Option<u64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| is_plain && *number > 0)
}

fn word(text: &str) -> Option<String> {
    let fits = (1..=WORD_BYTES_MAX).contains(&text.len()) && !text.chars().any(char::is_control);
    fits.then(|| text.to_owned())
}

fn commit(text: &str) -> Option<String> {
    let fits = (COMMIT_DIGITS_MIN..=COMMIT_DIGITS_MAX).contains(&text.len());
    (fits && text.bytes().all(|byte| byte.is_ascii_hexdigit())).then(|| text.to_ascii_lowercase())
}

fn time(text: &str) -> Option<u64> {
    let moment = text.parse::<Timestamp>().ok().or_else(|| in_utc(text))?;
    u64::try_from(moment.as_millisecond()).ok()
}

/// A date, or a date and a time, without an offset.
fn in_utc(text: &str) -> Option<Timestamp> {
    let is_plain = text.get(DATE_CHARS..).is_some_and(|time| !time.contains(['+', '-', '[']));
    let civil = text.parse::<DateTime>().ok().filter(|_| is_plain)?;
    Some(civil.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Point, written: &str) {
        let point: Point = text.parse().unwrap();
        assert_eq!((&point, point.to_string()), (&expected, written.to_owned()));
        assert_eq!(written.parse::<Point>().unwrap(), expected, "it is read as it is written");
        let json = serde_json::to_string(&point).unwrap();
        assert_eq!(json, format!("\"{written}\""));
        assert_eq!(serde_json::from_str::<Point>(&json).unwrap(), expected);
    }

    #[test]
    fn a_point_is_read_in_each_form_and_written_as_it_is_read() {
        let of = |key: &str, entry| Point::Entry { invocation: Some(key.to_owned()), entry };
        check("entry:7", Point::Entry { invocation: None, entry: 7 }, "entry:7");
        check("entry:f-sum/1/generate:7", of("f-sum/1/generate", 7), "entry:f-sum/1/generate:7");
        check("entry:r-12/plan#3:4294967295", of("r-12/plan#3", u32::MAX), "entry:r-12/plan#3:4294967295");
        check("step:012", Point::Step(12), "step:12");
        check("feature:a:b", Point::Feature("a:b".to_owned()), "feature:a:b");
        check("commit:0AbC", Point::Commit("0abc".to_owned()), "commit:0abc");
        check("event:18446744073709551615", Point::Event(u64::MAX), "event:18446744073709551615");
        let midnight = Point::Time(1_795_305_600_000);
        for text in ["2026-11-22", "2026-11-22 00:00:00", "2026-11-22T00:00:00Z", "2026-11-22T01:00:00+01:00"] {
            check(&format!("time:{text}"), midnight.clone(), "time:2026-11-22T00:00:00Z");
        }
        check("time:2026-11-22T00:00:00.007Z", Point::Time(1_795_305_600_007), "time:2026-11-22T00:00:00.007Z");
    }

    #[test]
    fn what_is_no_point_is_refused_with_the_forms_that_there_are() {
        let long = format!("feature:{}", "x".repeat(WORD_BYTES_MAX + 1));
        let wrong = [
            "",
            "12",
            "last",
            "entry:",
            "entry:0",
            "entry:-1",
            "entry:+1",
            "entry:4294967296",
            "entry::1",
            "entry:1:",
            "entry:plan",
            "step:0",
            "step:1.5",
            "step: 1",
            "event:0",
            "event:18446744073709551616",
            "feature:",
            "feature:a\nb",
            "commit:abc",
            "commit:wxyz",
            "commit:0123 ",
            "time:",
            "time:now",
            "time:1969-12-31",
            "time:2026-11-22+01:00",
            "time:2026-13-01",
            "Step:1",
            &long,
        ];
        for text in wrong {
            let refused = text.parse::<Point>().unwrap_err();
            assert!(refused.ends_with(FORMS) && refused.len() < 400, "{text}: {refused}");
        }
        assert!(serde_json::from_str::<Point>("\"step:0\"").unwrap_err().to_string().contains(FORMS));
    }
}
