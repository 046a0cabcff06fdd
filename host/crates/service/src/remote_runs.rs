//! The runs that workers have, as the leader knows them: a bus for those that watch a run, and the calls that are under
//! way. It reads no store.

use longhaul_core::RunId;
use longhaul_records::bus::EventBus;
use longhaul_workers::calls::{self, Reply};
use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// The time for which a worker that could not take a run is not asked again.
const REFUSED_FOR: Duration = Duration::from_secs(60);

/// A worker at one claim on its seat.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct WorkerEpoch {
    pub(super) name: String,
    pub(super) epoch: u64,
}

/// A run that a worker has.
pub(super) struct RemoteRun {
    pub(super) at: WorkerEpoch,
    /// The id of its project.
    pub(super) project: String,
    pub(super) bus: EventBus,
    /// The number of the last event that watchers heard of.
    pub(super) last: u64,
    /// False until its claim is stored.
    pub(super) is_claimed: bool,
}

/// The runs that workers have, and the calls to workers.
#[derive(Default)]
pub(crate) struct RemoteRuns {
    runs: HashMap<RunId, RemoteRun>,
    calls: HashMap<(WorkerEpoch, u64), oneshot::Sender<Reply>>,
    /// The number of the last call.
    number: u64,
    /// The time and the reason of each refusal of a run by a worker.
    refusals: HashMap<(RunId, String), (Instant, String)>,
    /// The runs that wait because no server could take them.
    waiting: BTreeSet<RunId>,
    /// The numbers of commits of workers at the last look.
    commits: HashMap<WorkerEpoch, u64>,
}

impl RemoteRuns {
    /// The worker that has a run.
    pub(super) fn worker_of(&self, run: &RunId) -> Option<WorkerEpoch> {
        self.runs.get(run).map(|remote| remote.at.clone())
    }

    /// The bus of a run that a worker has.
    pub(crate) fn bus(&self, run: &RunId) -> Option<EventBus> {
        self.runs.get(run).map(|remote| remote.bus.clone())
    }

    pub(crate) fn has(&self, run: &RunId) -> bool {
        self.runs.contains_key(run)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The runs that workers have.
    pub(crate) fn names(&self) -> impl Iterator<Item = &RunId> {
        self.runs.keys()
    }

    pub(super) fn add(&mut self, run: RunId, remote: RemoteRun) {
        self.waiting.remove(&run);
        self.runs.insert(run, remote);
    }

    pub(super) fn remove(&mut self, run: &RunId, at: &WorkerEpoch) -> Option<RemoteRun> {
        // It may be another worker's by now.
        self.runs.get(run).filter(|remote| remote.at == *at)?;
        self.runs.remove(run)
    }

    /// Notes that the claim on a run is stored.
    pub(super) fn claimed(&mut self, run: &RunId) {
        if let Some(remote) = self.runs.get_mut(run) {
            remote.is_claimed = true;
        }
    }

    /// Notes the last event that watchers of a run heard of.
    pub(super) fn told(&mut self, run: &RunId, last: u64) {
        if let Some(remote) = self.runs.get_mut(run) {
            remote.last = last;
        }
    }

    /// The runs that a worker has a claim on, each with its bus and the last event that watchers heard of.
    pub(super) fn of_worker(&self, at: &WorkerEpoch) -> Vec<(RunId, EventBus, u64)> {
        let own = self.runs.iter().filter(|(_, remote)| remote.at == *at && remote.is_claimed);
        own.map(|(run, remote)| (run.clone(), remote.bus.clone(), remote.last)).collect()
    }

    /// The workers that have runs, or are asked something.
    pub(super) fn workers(&self) -> BTreeSet<WorkerEpoch> {
        let asked = self.calls.keys().map(|(at, _)| at.clone());
        self.runs.values().map(|remote| remote.at.clone()).chain(asked).collect()
    }

    /// The numbers of runs of a worker: all, and those of a project.
    pub(super) fn count(&self, worker: &str, project: &str) -> (u32, u32) {
        let own = || self.runs.values().filter(|remote| remote.at.name == worker);
        let of_project = own().filter(|remote| remote.project == project).count();
        (u32::try_from(own().count()).unwrap_or(u32::MAX), u32::try_from(of_project).unwrap_or(u32::MAX))
    }

    /// The number of runs of a project that workers have.
    pub(super) fn count_of(&self, project: &str) -> u32 {
        let of_project = self.runs.values().filter(|remote| remote.project == project).count();
        u32::try_from(of_project).unwrap_or(u32::MAX)
    }

    /// As [`Self::add`], unless workers have as many runs of its project as `max`.
    pub(super) fn add_within(&mut self, max: u32, run: RunId, remote: RemoteRun) -> bool {
        let has_room = self.count_of(&remote.project) < max;
        if has_room {
            self.add(run, remote);
        }
        has_room
    }

    /// Notes a call, and returns its number and what brings its reply. The sender is dropped where none will come.
    pub(super) fn call(&mut self, at: &WorkerEpoch, now_ms: u64) -> (u64, oneshot::Receiver<Reply>) {
        self.number = calls::next_number(self.number, now_ms);
        let (sender, receiver) = oneshot::channel();
        self.calls.insert((at.clone(), self.number), sender);
        (self.number, receiver)
    }

    /// Takes a reply to whoever waits for it.
    pub(super) fn reply(&mut self, at: &WorkerEpoch, number: u64, reply: Reply) {
        if let Some(waiting) = self.calls.remove(&(at.clone(), number)) {
            // The caller may have gone.
            let _ = waiting.send(reply);
        }
    }

    /// Forgets a call that was not sent.
    pub(super) fn forget_call(&mut self, at: &WorkerEpoch, number: u64) {
        self.calls.remove(&(at.clone(), number));
    }

    /// Forgets a worker that is gone: its calls get no reply. Returns its runs.
    pub(super) fn forget_worker(&mut self, at: &WorkerEpoch) -> Vec<RunId> {
        self.calls.retain(|(asked, _), _| asked != at);
        self.commits.remove(at);
        self.runs.iter().filter(|(_, remote)| remote.at == *at).map(|(run, _)| run.clone()).collect()
    }

    /// True where a worker committed since the last look. The look before is forgotten once it is taken over.
    pub(super) fn has_committed(&self, at: &WorkerEpoch, commits: u64) -> bool {
        self.commits.get(at) != Some(&commits)
    }

    /// Notes a look at a worker.
    pub(super) fn looked(&mut self, at: WorkerEpoch, commits: u64) {
        self.commits.insert(at, commits);
    }

    /// Notes a run that no server could take.
    pub(super) fn waits(&mut self, run: &RunId) {
        self.waiting.insert(run.clone());
    }

    pub(super) fn waits_no_more(&mut self, run: &RunId) {
        self.waiting.remove(run);
    }

    /// The runs that no server could take when it was last tried.
    pub(super) fn waiting(&self) -> BTreeSet<RunId> {
        self.waiting.clone()
    }

    /// Notes that a worker could not take a run.
    pub(super) fn refused(&mut self, run: &RunId, worker: &str, why: String, now: Instant) {
        self.refusals.retain(|_, (since, _)| now.duration_since(*since) < REFUSED_FOR);
        self.refusals.insert((run.clone(), worker.to_owned()), (now, why));
    }

    /// The reason why a worker could not take a run a moment ago.
    pub(super) fn refusal(&self, run: &RunId, worker: &str, now: Instant) -> Option<String> {
        let (since, why) = self.refusals.get(&(run.clone(), worker.to_owned()))?;
        (now.duration_since(*since) < REFUSED_FOR).then(|| why.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn at(name: &str, epoch: u64) -> WorkerEpoch {
        WorkerEpoch { name: name.to_owned(), epoch }
    }

    fn run(name: &str) -> RunId {
        RunId::from_text(name)
    }

    fn with(runs: &[(&str, &str, u64)]) -> RemoteRuns {
        let mut remote = RemoteRuns::default();
        for (name, worker, epoch) in runs {
            let (at, project, bus) = (at(worker, *epoch), "p-1".into(), EventBus::default());
            remote.add(run(name), RemoteRun { at, project, bus, last: 0, is_claimed: false });
            remote.claimed(&run(name));
        }
        remote
    }

    #[test]
    fn a_worker_that_is_gone_takes_its_calls_with_it_and_leaves_its_runs() {
        let mut remote = with(&[("r-1", "a", 1), ("r-2", "a", 2), ("r-3", "b", 1)]);
        let (first, mut lost) = remote.call(&at("a", 1), 5);
        let (second, mut kept) = remote.call(&at("a", 2), 5);
        assert!(second > first);
        assert_eq!(remote.forget_worker(&at("a", 1)), [run("r-1")]);
        assert!(lost.try_recv().is_err_and(|why| why == oneshot::error::TryRecvError::Closed));
        remote.reply(&at("a", 2), second, Reply::Done(json!(7)));
        assert!(matches!(kept.try_recv(), Ok(Reply::Done(value)) if value == json!(7)));
        assert!(remote.has(&run("r-1")), "its runs go once their claims do");
        assert!(remote.remove(&run("r-1"), &at("a", 2)).is_none(), "a claim of another epoch");
        assert!(remote.remove(&run("r-1"), &at("a", 1)).is_some() && !remote.has(&run("r-1")));
    }

    #[test]
    fn runs_are_counted_by_worker_and_project_and_a_refusal_is_forgotten() {
        let mut remote = with(&[("r-1", "a", 1), ("r-2", "a", 1), ("r-3", "b", 1)]);
        assert_eq!(
            (remote.count("a", "p-1"), remote.count("a", "p-2"), remote.count("c", "p-1")),
            ((2, 2), (2, 0), (0, 0))
        );
        let now = Instant::now();
        remote.refused(&run("r-4"), "a", "no such directory".into(), now);
        let refused = |remote: &RemoteRuns, later: Duration| remote.refusal(&run("r-4"), "a", now + later);
        assert_eq!(refused(&remote, Duration::ZERO).as_deref(), Some("no such directory"));
        assert_eq!((refused(&remote, REFUSED_FOR), remote.refusal(&run("r-4"), "b", now)), (None, None));
    }

    #[test]
    fn no_more_runs_of_a_project_are_given_away_than_it_may_have_at_once() {
        let mut remote = with(&[("r-1", "a", 1), ("r-2", "b", 1)]);
        let given = |remote: &mut RemoteRuns, name: &str, project: &str| {
            let (at, project, bus) = (at("c", 1), project.to_owned(), EventBus::default());
            remote.add_within(3, run(name), RemoteRun { at, project, bus, last: 0, is_claimed: false })
        };
        assert!(given(&mut remote, "r-3", "p-1") && !given(&mut remote, "r-4", "p-1"));
        assert!(given(&mut remote, "r-4", "p-2"), "another project");
        assert_eq!((remote.count_of("p-1"), remote.count_of("p-2"), remote.has(&run("r-4"))), (3, 1, true));
        remote.remove(&run("r-1"), &at("a", 1));
        assert!(given(&mut remote, "r-5", "p-1"));
    }

    #[test]
    fn a_worker_is_looked_at_again_once_it_committed() {
        let mut remote = RemoteRuns::default();
        assert!(remote.has_committed(&at("a", 1), 0));
        remote.looked(at("a", 1), 4);
        assert!(!remote.has_committed(&at("a", 1), 4) && remote.has_committed(&at("a", 1), 5));
        assert!(remote.has_committed(&at("a", 2), 4), "another claim");
    }
}
