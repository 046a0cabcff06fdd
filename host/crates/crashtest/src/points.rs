//! The durable points that a process reached, as it lists them in the file that `LONGHAUL_CRASH_LOG` names.

use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// One occurrence of a point.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct PointOccurrence {
    /// The name of the point, for example `git.after-ref-move`.
    pub point: String,
    /// The number of the occurrence in its process, from 1.
    pub number: u32,
}

impl fmt::Display for PointOccurrence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.point, self.number)
    }
}

/// Reads the list of a process, in the order in which it reached the points. A last line that a kill truncated is left
/// out.
#[must_use]
pub fn reached(log: &str) -> Vec<PointOccurrence> {
    let whole = log.rfind('\n').map_or("", |end| &log[..end]);
    let read = |line: &str| {
        let (point, number) = line.rsplit_once(':')?;
        Some(PointOccurrence { point: point.to_owned(), number: number.parse().ok()? })
    };
    whole.lines().filter_map(read).collect()
}

/// How often each point was reached.
#[must_use]
pub fn counts(reached: &[PointOccurrence]) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    for PointOccurrence { point, .. } in reached {
        *counts.entry(point.clone()).or_default() += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_up_to_a_line_that_a_kill_truncated() {
        let reached = reached("work.start:1\nstore.after-commit:1\nstore.after-commit:2\nwork.en");
        assert_eq!(reached.last().map(ToString::to_string).as_deref(), Some("store.after-commit:2"));
        assert_eq!(counts(&reached), [("store.after-commit".to_owned(), 2), ("work.start".to_owned(), 1)].into());
    }
}
