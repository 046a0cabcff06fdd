//! Whether the place of objects answers.
//!
//! Once an operation waited in vain, the place is away. From then on one operation at a time asks it, without
//! repetitions, and those that come meanwhile wait for its outcome alone. Otherwise the callers of a long outage would
//! pile up, each with a thread that waits for all repetitions.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::{Mutex, MutexGuard};

/// The outage of a place, if there is one.
#[derive(Debug, Default)]
pub(crate) struct Outage {
    is_away: AtomicBool,
    /// The number of operations that waited in vain.
    failures: AtomicU64,
    /// Held by the operation that asks a place that is away.
    asking: Mutex<()>,
}

/// The turn of an operation. It is held until the outcome was noted.
pub(crate) struct Turn<'a> {
    asking: Option<MutexGuard<'a, ()>>,
}

impl Turn<'_> {
    /// True for the operation that finds out whether the place is back.
    pub(crate) fn is_probe(&self) -> bool {
        self.asking.is_some()
    }
}

impl Outage {
    /// Waits for the turn of an operation; none where the place is away, and another one found that out meanwhile.
    pub(crate) async fn turn(&self) -> Option<Turn<'_>> {
        if !self.is_away() {
            return Some(Turn { asking: None });
        }
        let seen = self.failures();
        let asking = self.asking.lock().await;
        if !self.is_away() {
            return Some(Turn { asking: None });
        }
        (self.failures() == seen).then_some(Turn { asking: Some(asking) })
    }

    /// Notes an operation that waited in vain; true: the outage begins.
    pub(crate) fn failed(&self) -> bool {
        self.failures.fetch_add(1, Ordering::Relaxed);
        !self.is_away.swap(true, Ordering::Relaxed)
    }

    /// Notes an answer of the place; true: the outage ends.
    pub(crate) fn answered(&self) -> bool {
        self.is_away.swap(false, Ordering::Relaxed)
    }

    fn is_away(&self) -> bool {
        self.is_away.load(Ordering::Relaxed)
    }

    fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::runtime::Builder;

    /// The turn of an operation: may it begin, and does it ask a place that is away?
    async fn turn(outage: &Outage) -> Option<bool> {
        outage.turn().await.map(|turn| turn.is_probe())
    }

    #[test]
    fn a_place_that_is_away_is_asked_by_one_at_a_time_and_the_others_share_its_outcome() {
        let (outage, runtime) = (Outage::default(), Builder::new_current_thread().build().expect("a runtime"));
        runtime.block_on(async {
            assert_eq!(turn(&outage).await, Some(false));
            assert!(outage.failed() && !outage.failed(), "it begins once");
            let probe = outage.turn().await.expect("nobody asks");
            assert!(probe.is_probe());
            let in_vain = async {
                outage.failed();
                drop(probe);
            };
            let (first, second, ()) = tokio::join!(turn(&outage), turn(&outage), in_vain);
            assert_eq!((first, second), (None, None), "they were told");
            let probe = outage.turn().await.expect("nobody asks");
            let answered = async {
                assert!(outage.answered() && !outage.answered(), "it ends once");
                drop(probe);
            };
            let (first, second, ()) = tokio::join!(turn(&outage), turn(&outage), answered);
            assert_eq!((first, second), (Some(false), Some(false)));
        });
    }

    #[test]
    fn a_probe_that_is_given_up_leaves_its_turn_to_the_next_one() {
        let (outage, runtime) = (Outage::default(), Builder::new_current_thread().build().expect("a runtime"));
        runtime.block_on(async {
            outage.failed();
            let probe = outage.turn().await.expect("nobody asks");
            let given_up = async { drop(probe) };
            assert_eq!(tokio::join!(turn(&outage), given_up).0, Some(true));
        });
    }
}
