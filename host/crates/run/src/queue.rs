//! The queue of runs: the number that work at once in this process, and the order in which the others get their turn.
//!
//! A run of a higher priority goes first, and of equal ones the run that came first. A run that got its turn and does
//! not find the memory that it needs steps aside, so that it holds up nobody, and keeps its place in the order. So does
//! one whose project has as many runs at work as it may have. It starts and stops no run, and stores nothing; the actor
//! of a run asks, and gives its place back by dropping it.

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
    project: String,
    turn: Turn,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// It has not asked yet, or waits behind others.
    Waits,
    /// As many runs of its project work as may.
    Capped,
    /// It could go on, and waits for memory.
    Aside,
    Works,
}

/// The cap of a project on its runs that work at once.
pub(crate) struct ProjectCap<'a> {
    pub(crate) runs_max: u32,
    /// The number of them that other servers work on.
    pub(crate) elsewhere: &'a dyn Fn() -> u32,
}

/// The answer to a run that has to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueWait {
    /// Its place among those that wait, from 1.
    pub(crate) place: u32,
    /// True when it waits for a run of its project.
    pub(crate) is_capped: bool,
}

/// The place of one run. Dropping it gives the place back.
pub(crate) struct RunPlace {
    queue: RunQueue,
    key: EntryKey,
    is_queued: bool,
    moved: watch::Receiver<()>,
}

impl RunQueue {
    /// Enters a run of a project, with a priority, that arrived at this time. It has no turn before it asks.
    pub(crate) fn enter(&self, run: &RunId, project: &str, priority: u8, since_ms: u64) -> RunPlace {
        let mut entries = self.lock();
        let key = (Reverse(priority), since_ms, entries.next);
        entries.next += 1;
        entries.runs.insert(key, Entry { run: run.clone(), project: project.to_owned(), turn: Turn::Waits });
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

    /// Calls `decide` with the number of runs of a project that work. No other one begins to work meanwhile.
    pub fn with_working<T>(&self, project: &str, decide: impl FnOnce(u32) -> T) -> T {
        let entries = self.lock();
        decide(count(entries.of(project).filter(|entry| entry.turn == Turn::Works)))
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

impl Entries {
    fn of(&self, project: &str) -> impl Iterator<Item = &Entry> {
        self.runs.values().filter(move |entry| entry.project == project)
    }

    /// True when the project of an entry has as many runs at work, or before this one, as it may have.
    fn is_capped(&self, key: &EntryKey, cap: &ProjectCap<'_>) -> bool {
        let Some(own) = self.runs.get(key) else { return false };
        let working = count(self.of(&own.project).filter(|entry| entry.turn == Turn::Works));
        let is_first = |entry: &&Entry| entry.project == own.project && entry.waits_for_a_turn();
        let before = count(self.runs.range(..*key).map(|(_, entry)| entry).filter(is_first));
        // Counted under the lock, so that no run is given to another server in between.
        working.saturating_add(before).saturating_add((cap.elsewhere)()) >= cap.runs_max
    }
}

impl Entry {
    fn waits_for_a_turn(&self) -> bool {
        matches!(self.turn, Turn::Waits | Turn::Capped)
    }
}

impl RunPlace {
    /// Asks for a turn while at most `runs_max` runs work, and no more of its project than that allows. None: it may
    /// work from now on.
    pub(crate) fn ask(&mut self, runs_max: u32, cap: Option<&ProjectCap<'_>>) -> Option<QueueWait> {
        // Before the look, so that no change after it is missed.
        self.moved.mark_unchanged();
        let mut entries = self.queue.lock();
        let working = entries.runs.values().filter(|entry| entry.turn == Turn::Works).count();
        let before = || entries.runs.range(..self.key).map(|(_, entry)| entry.turn);
        let ahead = before().filter(|turn| *turn == Turn::Waits).count();
        let place = before().filter(|turn| *turn != Turn::Works).count() + 1;
        let room = usize::try_from(runs_max).unwrap_or(usize::MAX);
        let is_capped = cap.is_some_and(|cap| entries.is_capped(&self.key, cap));
        let own = entries.runs.get_mut(&self.key)?;
        let works = own.turn == Turn::Works || (!is_capped && working + ahead < room);
        own.turn = match (works, is_capped) {
            (true, _) => Turn::Works,
            (false, true) => Turn::Capped,
            (false, false) => Turn::Waits,
        };
        self.is_queued = !works;
        (!works).then(|| QueueWait { place: u32::try_from(place).unwrap_or(u32::MAX), is_capped })
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

fn count<'a>(entries: impl Iterator<Item = &'a Entry>) -> u32 {
    u32::try_from(entries.count()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::{Context, Waker};

    impl RunQueue {
        fn add(&self, name: &str, priority: u8, since_ms: u64) -> RunPlace {
            self.enter(&run(name), "p", priority, since_ms)
        }
    }

    impl RunPlace {
        /// Asks as a run of a project without a cap.
        fn turn(&mut self, runs_max: u32) -> Option<u32> {
            let wait = self.ask(runs_max, None)?;
            assert!(!wait.is_capped);
            Some(wait.place)
        }

        /// Asks as one of a project with a cap, of which other servers work on so many.
        fn turn_of(&mut self, runs_max: u32, elsewhere: u32) -> Option<QueueWait> {
            self.ask(8, Some(&ProjectCap { runs_max, elsewhere: &|| elsewhere }))
        }
    }

    fn capped(place: u32) -> Option<QueueWait> {
        Some(QueueWait { place, is_capped: true })
    }

    fn is_ready(future: impl Future<Output = ()>) -> bool {
        std::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    fn run(name: &str) -> RunId {
        RunId::from_text(name)
    }

    #[test]
    fn as_many_work_as_may_and_the_others_wait_in_the_order_of_their_arrival() {
        let queue = RunQueue::default();
        let mut places: Vec<RunPlace> = (0..4).map(|at| queue.add(&format!("r-{at}"), 4, 10 + at)).collect();
        let asked: Vec<_> = places.iter_mut().map(|place| place.turn(2)).collect();
        assert_eq!(asked, [None, None, Some(1), Some(2)]);
        assert_eq!(places[0].turn(1), None, "a run at work keeps its turn when fewer may work");
        assert_eq!(queue.places(), HashMap::from([(run("r-2"), 1), (run("r-3"), 2)]));
        drop(places.remove(0));
        assert_eq!(places[2].turn(2), Some(2), "the next one goes first");
        assert_eq!((places[1].turn(2), places[2].turn(2)), (None, Some(1)));
        drop(places);
        assert!(queue.is_empty(), "nothing is kept of runs that are gone");
    }

    #[test]
    fn a_run_that_waited_before_a_kill_goes_before_one_that_came_later() {
        let queue = RunQueue::default();
        let mut late = queue.add("r-late", 4, 900);
        let mut working = queue.add("r-working", 4, 0);
        let mut early = queue.add("r-early", 4, 100);
        assert_eq!((working.turn(1), late.turn(1), early.turn(1)), (None, Some(2), Some(1)));
        drop(working);
        assert_eq!((late.turn(1), early.turn(1)), (Some(2), None));
    }

    #[test]
    fn a_run_of_a_higher_priority_goes_before_those_that_came_earlier_and_takes_no_turn_away() {
        let queue = RunQueue::default();
        let mut working = queue.add("r-working", 0, 1);
        assert_eq!(working.turn(1), None);
        let mut usual = queue.add("r-usual", 4, 2);
        assert_eq!(usual.turn(1), Some(1));
        let mut urgent = queue.add("r-urgent", 9, 3);
        assert_eq!((urgent.turn(1), usual.turn(1), working.turn(1)), (Some(1), Some(2), None));
        drop(working);
        assert_eq!((usual.turn(1), urgent.turn(1)), (Some(2), None));
    }

    #[test]
    fn who_waits_for_memory_holds_up_nobody_and_keeps_its_place() {
        let queue = RunQueue::default();
        let (mut large, mut small) = (queue.add("r-large", 4, 1), queue.add("r-small", 4, 2));
        assert_eq!((large.turn(1), small.turn(1)), (None, Some(1)));
        large.step_aside();
        assert_eq!((small.turn(1), large.turn(1)), (None, Some(1)));
        let mut next = queue.add("r-next", 4, 3);
        assert_eq!(next.turn(1), Some(2));
        drop(small);
        assert_eq!((next.turn(1), large.turn(1)), (Some(2), None));
    }

    #[test]
    fn a_run_hears_of_a_free_place_whenever_it_came_free_since_it_asked() {
        let queue = RunQueue::default();
        let (mut one, mut two) = (queue.add("r-1", 4, 1), queue.add("r-2", 4, 2));
        assert_eq!((one.turn(1), two.turn(1)), (None, Some(1)));
        assert!(!is_ready(two.moved()));
        drop(one);
        assert!(is_ready(two.moved()));
        assert_eq!(two.turn(1), None);
        assert!(!is_ready(two.moved()), "a run at work waits for nothing");
    }

    #[test]
    fn of_a_project_with_a_cap_as_many_work_and_the_others_hold_up_nobody() {
        let queue = RunQueue::default();
        let (mut one, mut two) = (queue.add("r-1", 4, 1), queue.add("r-2", 4, 2));
        let mut three = queue.add("r-3", 4, 3);
        let mut other = queue.enter(&run("r-other"), "another", 4, 4);
        assert_eq!((one.turn_of(1, 0), two.turn_of(1, 0), three.turn_of(1, 0)), (None, capped(1), capped(2)));
        assert_eq!(other.turn(2), None, "those that wait for their project are not ahead of it");
        assert_eq!(queue.with_working("p", |working| working), 1);
        assert_eq!(queue.places(), HashMap::from([(run("r-2"), 1), (run("r-3"), 2)]));
        assert_eq!(one.turn_of(1, 5), None, "a run at work keeps its turn");
        drop(one);
        assert!(is_ready(two.moved()));
        assert_eq!(three.turn_of(1, 0), capped(2), "the one that came first goes first");
        assert_eq!((two.turn_of(1, 0), three.turn_of(1, 0)), (None, capped(1)));
        assert_eq!(three.turn_of(2, 0), None, "the cap was raised");
    }

    #[test]
    fn runs_of_a_project_on_other_servers_count_for_its_cap() {
        let queue = RunQueue::default();
        let (mut one, mut two) = (queue.add("r-1", 4, 1), queue.add("r-2", 4, 2));
        assert_eq!(one.turn_of(2, 2), capped(1));
        assert_eq!(one.turn_of(2, 1), None);
        assert_eq!(two.turn_of(2, 1), capped(1));
        assert_eq!(two.turn_of(2, 0), None);
    }

    #[test]
    fn who_waits_for_the_machine_is_not_told_of_its_project() {
        let queue = RunQueue::default();
        let (mut one, mut two) = (queue.add("r-1", 4, 1), queue.add("r-2", 4, 2));
        let cap = ProjectCap { runs_max: 2, elsewhere: &|| 0 };
        assert_eq!(
            (one.ask(1, Some(&cap)), two.ask(1, Some(&cap))),
            (None, Some(QueueWait { place: 1, is_capped: false }))
        );
    }
}
