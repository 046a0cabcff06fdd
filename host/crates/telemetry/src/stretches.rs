//! The stretches of work of a run: from the moment a process takes it up until the run ends, waits, is paused, or its
//! process dies.
//!
//! A span is sent when it has ended, and a run that waits for a person may wait for months. So each stretch has a span
//! of its own. The events alone do not say where a stretch began, so whoever takes up a run keeps this row.

use serde::{Deserialize, Serialize};

/// The most stretches that are remembered. Links lead to the newest of them.
const STRETCHES_MAX: usize = 1_000;

/// The stretches of a run so far, as its row keeps them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stretches {
    /// For each stretch, in order, the number of the last event before it.
    #[serde(default)]
    starts: Vec<u64>,
    /// True when all spans of the last one were made. False: its process died, or it is under way.
    #[serde(default)]
    closed: bool,
}

impl Stretches {
    /// A stretch begins after the event of this number.
    pub fn begin(&mut self, after: u64) {
        // A stretch without an event has no span, and the next one begins in its place. A number that is not higher
        // than the one before is a damaged row.
        self.starts.retain(|start| *start < after);
        if self.starts.len() >= STRETCHES_MAX {
            self.starts.remove(0);
        }
        self.starts.push(after);
    }

    /// The last stretch is over, and its spans were made.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// The stretch that began last is under way.
    pub fn open(&mut self) {
        self.closed = false;
    }

    /// True when the spans of the last stretch were made.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// The number of the last event before each stretch.
    pub(crate) fn starts(&self) -> &[u64] {
        &self.starts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_without_an_event_is_none_and_the_oldest_are_forgotten() {
        let mut stretches = Stretches::default();
        for after in [0, 7, 7, 9] {
            stretches.begin(after);
        }
        assert_eq!(stretches.starts(), [0, 7, 9]);
        for after in 10..3_000 {
            stretches.begin(after);
        }
        assert_eq!((stretches.starts().len(), stretches.starts().last()), (STRETCHES_MAX, Some(&2_999)));
    }

    #[test]
    fn the_row_of_a_later_version_and_an_empty_row_are_read() {
        let read: Stretches = serde_json::from_str(r#"{"starts":[0],"closed":true,"later":1}"#).unwrap();
        assert_eq!((read.starts(), read.is_closed()), (&[0][..], true));
        assert_eq!(serde_json::from_str::<Stretches>("{}").unwrap(), Stretches::default());
    }
}
