//! The queue of runs: the number that work at once in this process, and the order in which the others get their turn.
//!
//! A run of a higher priority goes first, and of equal ones the run that came first. A run that got its turn and does
//! not find the memory that it needs steps aside, so that it holds up nobody, and keeps its place in the order. It
//! starts and stops no run, and stores nothing; the actor of a run asks, and gives its place back by dropping it.

use longhaul_core::RunId;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// The queue of the runs of one process. Clones are the same queue.
#[derive(Clone, Default)]
pub struct RunQueue(Arc<Shared>);

struct Shared {
    entries: Mutex<Entries>,
    /// Notifies the waiting runs that one of them may go on.
    moved: watch::Sender<()>,
}

impl Default for Shared {
    fn default() -> Self {
        Self { entries: Mutex::default(), moved: watch::Sender::new(()) }
    }
}

#[derive(Default)]
struct Entries {
    /// The next number of an entry, for two that came in one millisecond.
    next: u64,
    runs: BTreeMap<EntryKey, Entry>,
}

/// The order of an entry: the highest priority first, then the time of its arrival, in milliseconds, and a number.
type EntryKey = (Reverse<u8>, u64, u64);

struct Entry {
    run: RunId,
    turn: Turn,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// It has not asked yet, or waits behind others.
    Waits,
    /// It could go on, and waits for memory.
    Aside,
    Works,
}

/// The place of one run. Dropping it gives the place back.
pub(crate) struct RunPlace {
    queue: RunQueue,
    key: EntryKey,
    is_queued: bool,
    moved: watch::Receiver<()>,
}

impl RunQueue {
    /// Enters a run of a priority that arrived at this time. It has no turn before it asks.
    pub(crate) fn enter(&self, run: &RunId, priority: u8, since_ms: u64) -> RunPlace {
        let mut entries = self.lock();
        let key = (Reverse(priority), since_ms, entries.next);
        entries.next += 1;
        entries.runs.insert(key, Entry { run: run.clone(), turn: Turn::Waits });
        drop(entries);
        RunPlace { queue: self.clone(), key, is_queued: false, moved: self.0.moved.subscribe() }
    }

    /// The places of all runs that wait, from 1.
    #[must_use]
    pub fn places(&self) -> HashMap<RunId, u32> {
        let entries = self.lock();
        let waiting = entries.runs.values().filter(|entry| entry.turn != Turn::Works);
        (1..).zip(waiting).map(|(place, entry)| (entry.run.clone(), place)).collect()
    }

    /// The number of runs that have an entry, waiting or at work.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().runs.len()
    }

    /// True when no run waits or works.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.0.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunPlace {
    /// Asks for a turn while at most `runs_max` runs work. None: it may work from now on. Otherwise its place among
    /// those that wait, from 1.
    pub(crate) fn ask(&mut self, runs_max: u32) -> Option<u32> {
        // Before the look, so that no change after it is missed.
        self.moved.mark_unchanged();
        let mut entries = self.queue.lock();
        let working = entries.runs.values().filter(|entry| entry.turn == Turn::Works).count();
        let before = || entries.runs.range(..self.key).map(|(_, entry)| entry.turn);
        let ahead = before().filter(|turn| *turn == Turn::Waits).count();
        let place = before().filter(|turn| *turn != Turn::Works).count() + 1;
        let room = usize::try_from(runs_max).unwrap_or(usize::MAX);
        let own = entries.runs.get_mut(&self.key)?;
        let works = own.turn == Turn::Works || working + ahead < room;
        own.turn = if works { Turn::Works } else { Turn::Waits };
        self.is_queued = !works;
        (!works).then(|| u32::try_from(place).unwrap_or(u32::MAX))
    }

    /// Gives the turn to another run, and keeps the place in the order.
    pub(crate) fn step_aside(&mut self) {
        if let Some(own) = self.queue.lock().runs.get_mut(&self.key) {
            own.turn = Turn::Aside;
        }
        self.is_queued = false;
        self.queue.0.moved.send_replace(());
    }

    /// Returns when the queue has moved since it last asked; never while it is not in the queue.
    pub(crate) async fn moved(&mut self) {
        if !self.is_queued || self.moved.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// The time of its arrival, in milliseconds since 1970-01-01 UTC.
    pub(crate) fn since_ms(&self) -> u64 {
        self.key.1
    }
}

impl Drop for RunPlace {
    fn drop(&mut self) {
        self.queue.lock().runs.remove(&self.key);
        self.queue.0.moved.send_replace(());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::{Context, Waker};

    fn is_ready(future: impl Future<Output = ()>) -> bool {
        std::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    fn run(name: &str) -> RunId {
        RunId::from_text(name)
    }

    #[test]
    fn as_many_work_as_may_and_the_others_wait_in_the_order_of_their_arrival() {
        let queue = RunQueue::default();
        let mut places: Vec<RunPlace> = (0..4).map(|at| queue.enter(&run(&format!("r-{at}")), 4, 10 + at)).collect();
        let asked: Vec<_> = places.iter_mut().map(|place| place.ask(2)).collect();
        assert_eq!(asked, [None, None, Some(1), Some(2)]);
        assert_eq!(places[0].ask(1), None, "a run at work keeps its turn when fewer may work");
        assert_eq!(queue.places(), HashMap::from([(run("r-2"), 1), (run("r-3"), 2)]));
        drop(places.remove(0));
        assert_eq!(places[2].ask(2), Some(2), "the next one goes first");
        assert_eq!((places[1].ask(2), places[2].ask(2)), (None, Some(1)));
        drop(places);
        assert!(queue.is_empty(), "nothing is kept of runs that are gone");
    }

    #[test]
    fn a_run_that_waited_before_a_kill_goes_before_one_that_came_later() {
        let queue = RunQueue::default();
        let mut late = queue.enter(&run("r-late"), 4, 900);
        let mut working = queue.enter(&run("r-working"), 4, 0);
        let mut early = queue.enter(&run("r-early"), 4, 100);
        assert_eq!((working.ask(1), late.ask(1), early.ask(1)), (None, Some(2), Some(1)));
        drop(working);
        assert_eq!((late.ask(1), early.ask(1)), (Some(2), None));
    }

    #[test]
    fn a_run_of_a_higher_priority_goes_before_those_that_came_earlier_and_takes_no_turn_away() {
        let queue = RunQueue::default();
        let mut working = queue.enter(&run("r-working"), 0, 1);
        assert_eq!(working.ask(1), None);
        let mut usual = queue.enter(&run("r-usual"), 4, 2);
        assert_eq!(usual.ask(1), Some(1));
        let mut urgent = queue.enter(&run("r-urgent"), 9, 3);
        assert_eq!((urgent.ask(1), usual.ask(1), working.ask(1)), (Some(1), Some(2), None));
        drop(working);
        assert_eq!((usual.ask(1), urgent.ask(1)), (Some(2), None));
    }

    #[test]
    fn who_waits_for_memory_holds_up_nobody_and_keeps_its_place() {
        let queue = RunQueue::default();
        let (mut large, mut small) = (queue.enter(&run("r-large"), 4, 1), queue.enter(&run("r-small"), 4, 2));
        assert_eq!((large.ask(1), small.ask(1)), (None, Some(1)));
        large.step_aside();
        assert_eq!((small.ask(1), large.ask(1)), (None, Some(1)));
        let mut next = queue.enter(&run("r-next"), 4, 3);
        assert_eq!(next.ask(1), Some(2));
        drop(small);
        assert_eq!((next.ask(1), large.ask(1)), (Some(2), None));
    }

    #[test]
    fn a_run_hears_of_a_free_place_whenever_it_came_free_since_it_asked() {
        let queue = RunQueue::default();
        let (mut one, mut two) = (queue.enter(&run("r-1"), 4, 1), queue.enter(&run("r-2"), 4, 2));
        assert_eq!((one.ask(1), two.ask(1)), (None, Some(1)));
        assert!(!is_ready(two.moved()));
        drop(one);
        assert!(is_ready(two.moved()));
        assert_eq!(two.ask(1), None);
        assert!(!is_ready(two.moved()), "a run at work waits for nothing");
    }
}
