//! The state machine that decides which steps run.
//!
//! It owns the graph, the runs of its steps and the resulting namespace, and runs nothing itself: it returns the next
//! step to run ([`Replay::next`]) and takes the report of it ([`Replay::ran`]). If a step's source and the values that
//! it read are those of a kept run, that run is its result. A step with an unchanged result causes no further run; a
//! changed one marks those steps that had read it, whether analysis knew of them or not. So the cost of a change is in
//! proportion to the steps that it touches.
//!
//! The namespace is the one that Python would have after all steps in insertion order in one process, which continues
//! after a step that raised. A step that a limit stopped changes nothing.
//!
//! It trusts a report only as far as its own graph goes, and refuses one that it did not request.

mod history;
mod inputs;
mod namespace;
mod outcomes;
mod report;
mod request;
#[cfg(test)]
mod tests;

pub use history::{RUNS_MAX, StepHistory, StepRun};
pub use outcomes::{NextStep, ReplayError, ReportOutcome, Skip};

use crate::analysis::VariableName;
use crate::graph::{Graph, MissedEdge, NodeState, StepId};
use crate::step::{SHARING, StepRequest};
use longhaul_core::Digest;
use namespace::{Namespace, Position};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The settings that are the same for all steps of a graph.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReplaySettings {
    /// The source of the steps' random numbers.
    pub seed: Digest,
    /// A digest of limits and grants: when it changes, no earlier run is reused.
    pub grants: Digest,
    /// True when steps may have external effects.
    pub acts: bool,
    /// True when steps that depend on a failed one run, too, as they would in one process. Default false.
    pub keeps_going: bool,
}

/// A graph with the runs of its steps. A clone shares the runs and copies the index.
#[derive(Clone)]
pub struct Replay {
    graph: Graph,
    settings: ReplaySettings,
    histories: BTreeMap<Position, (StepId, StepHistory)>,
    namespace: Namespace,
    failed: BTreeSet<Position>,
    changed: BTreeSet<StepId>,
    /// The content of files as it is now, as far as it was told.
    files: BTreeMap<String, Option<Digest>>,
    /// Files that steps wrote, each with the last of those steps.
    written: BTreeMap<String, Position>,
    walk: Walk,
}

/// One walk over the stale steps.
#[derive(Clone, Default)]
struct Walk {
    /// The step that was the last to be asked for or answered.
    at: Position,
    open: BTreeMap<Position, StepId>,
    blocked: BTreeMap<Position, StepId>,
    asked: Option<Asked>,
    missing: BTreeMap<Position, Missing>,
}

/// The names that a step read without being given them, with the number of such runs.
#[derive(Clone, Default)]
struct Missing {
    attempts: u32,
    names: BTreeSet<VariableName>,
}

#[derive(Clone)]
struct Asked {
    at: Position,
    request: StepRequest,
    given: BTreeSet<VariableName>,
}

impl Replay {
    /// A graph without any run.
    #[must_use]
    pub fn new(graph: Graph, settings: ReplaySettings) -> Self {
        Self {
            graph,
            settings,
            histories: BTreeMap::new(),
            namespace: Namespace::default(),
            failed: BTreeSet::new(),
            changed: BTreeSet::new(),
            files: BTreeMap::new(),
            written: BTreeMap::new(),
            walk: Walk::default(),
        }
    }

    /// A graph from stored data. The graph says which steps are stale; a step without a run that it counts as fresh
    /// becomes stale. The observations of runs are reported to the graph again.
    ///
    /// # Errors
    /// [`UnknownStep`](crate::StepGraphError::UnknownStep) for a history of a step that the graph does not have.
    pub fn restore(
        graph: Graph,
        settings: ReplaySettings,
        histories: impl IntoIterator<Item = (StepId, StepHistory)>,
    ) -> Result<Self, ReplayError> {
        let mut replay = Self::new(graph, settings);
        for (id, history) in histories {
            let at = replay.graph.node(&id)?.position;
            replay.namespace.replace(at, None, history.current.as_deref());
            if history.has_failed() {
                replay.failed.insert(at);
            }
            replay.histories.insert(at, (id, history));
        }
        let ran: Vec<_> = replay
            .histories
            .iter()
            .filter_map(|(at, (id, history))| Some((*at, id.clone(), history.current.clone()?)))
            .collect();
        for (at, id, run) in ran {
            replay.observe(at, &id, &run)?;
        }
        let unrun = replay.graph.steps().filter(|node| !replay.has_run(node.position)).map(|node| node.id.clone());
        unrun.collect::<Vec<_>>().iter().try_for_each(|id| replay.graph.mark_stale_alone(id))?;
        Ok(replay)
    }

    /// The graph.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The settings that are the same for all steps.
    #[must_use]
    pub fn settings(&self) -> &ReplaySettings {
        &self.settings
    }

    /// Changes the settings of all steps. Runs with other grants or another seed are not reused from now on, but no
    /// step becomes stale.
    pub fn set_settings(&mut self, settings: ReplaySettings) {
        self.settings = settings;
    }

    /// The stored history of a step.
    ///
    /// # Errors
    /// [`UnknownStep`](crate::StepGraphError::UnknownStep).
    pub fn history(&self, id: &StepId) -> Result<Option<&StepHistory>, ReplayError> {
        let at = self.graph.node(id)?.position;
        Ok(self.histories.get(&at).map(|(_, history)| history))
    }

    /// The steps whose history has changed since the last call, in no particular order.
    pub fn take_changed(&mut self) -> Vec<StepId> {
        std::mem::take(&mut self.changed).into_iter().collect()
    }

    /// The files that kept runs read.
    #[must_use]
    pub fn files(&self) -> BTreeSet<&str> {
        let runs = self.histories.values().flat_map(|(_, history)| history.runs());
        runs.flat_map(|run| run.report.files.keys()).map(String::as_str).collect()
    }

    /// Takes in the present content of files, none for a file that does not exist. A kept run is a step's result only
    /// if it read the same content; of a file that is not named here, any content counts as the same, and so does any
    /// of a file that this step or a later one wrote. Returns the steps that became stale because of it, in replay
    /// order. Steps among them that lie behind the present place of a walk are part of it.
    ///
    /// # Errors
    /// [`UnknownStep`](crate::StepGraphError::UnknownStep).
    pub fn set_files(&mut self, files: BTreeMap<String, Option<Digest>>) -> Result<Vec<StepId>, ReplayError> {
        self.files = files;
        self.written.clear();
        for (at, (_, history)) in &self.histories {
            let written = history.current.iter().flat_map(|run| &run.report.written);
            self.written.extend(written.map(|path| (path.clone(), *at)));
        }
        let differs = |at: Position, history: &StepHistory| {
            history.current.as_ref().is_some_and(|run| !self.has_files_of(at, run))
        };
        let readers: Vec<StepId> = self
            .histories
            .iter()
            .filter(|(at, (_, history))| differs(**at, history))
            .map(|(_, (id, _))| id.clone())
            .collect();
        let before: BTreeSet<StepId> = self.graph.stale().into_iter().collect();
        for id in &readers {
            self.graph.mark_stale(id)?;
        }
        let mut stale = self.graph.stale();
        stale.retain(|id| !before.contains(id));
        for id in &stale {
            let at = self.graph.node(id)?.position;
            if at > self.walk.at {
                self.walk.open.insert(at, id.clone());
            }
        }
        Ok(stale)
    }

    /// Adds a step at the end.
    ///
    /// # Errors
    /// As [`Graph::add_step`].
    pub fn add_step(&mut self, id: StepId, source: String) -> Result<(), ReplayError> {
        Ok(self.graph.add_step(id, source)?)
    }

    /// Adds steps at the end, all or none.
    ///
    /// # Errors
    /// As [`Graph::add_steps`].
    pub fn add_steps(&mut self, steps: impl IntoIterator<Item = (StepId, String)>) -> Result<(), ReplayError> {
        Ok(self.graph.add_steps(steps)?)
    }

    /// Gives a step another source; returns the steps that became stale because of it. Its last run's changes stay
    /// until it runs.
    ///
    /// # Errors
    /// As [`Graph::change_step`].
    pub fn change_step(&mut self, id: &StepId, source: String) -> Result<Vec<StepId>, ReplayError> {
        Ok(self.graph.change_step(id, source)?)
    }

    /// Adds a requested edge.
    ///
    /// # Errors
    /// As [`Graph::add_edge`].
    pub fn add_edge(
        &mut self,
        from: &StepId,
        to: &StepId,
        variables: BTreeSet<VariableName>,
    ) -> Result<(), ReplayError> {
        Ok(self.graph.add_edge(from, to, variables)?)
    }

    /// Removes a step, with its runs and its values; returns the steps that became stale because of it.
    ///
    /// # Errors
    /// As [`Graph::remove_step`].
    pub fn remove_step(&mut self, id: &StepId) -> Result<Vec<StepId>, ReplayError> {
        let at = self.graph.node(id)?.position;
        let mut stale: BTreeSet<StepId> = self.graph.remove_step(id)?.into_iter().collect();
        self.failed.remove(&at);
        if let Some((_, history)) = self.histories.remove(&at) {
            let readers = self.namespace.replace(at, history.current.as_deref(), None);
            stale.extend(self.mark_stale(&readers)?);
        }
        self.changed.remove(id);
        Ok(stale.into_iter().collect())
    }

    /// Marks a step and the steps that depend on it stale. A step that is unchanged, with the same input, still reuses
    /// its run; see [`Replay::again`].
    ///
    /// # Errors
    /// [`UnknownStep`](crate::StepGraphError::UnknownStep).
    pub fn stale(&mut self, id: &StepId) -> Result<Vec<StepId>, ReplayError> {
        Ok(self.graph.mark_stale(id)?)
    }

    /// Forgets the runs of a step, so that it runs although nothing changed; also one that may have had effects when it
    /// was interrupted. Its dependents run if its result changes.
    ///
    /// # Errors
    /// [`UnknownStep`](crate::StepGraphError::UnknownStep).
    pub fn again(&mut self, id: &StepId) -> Result<(), ReplayError> {
        let at = self.graph.node(id)?.position;
        self.graph.mark_stale_alone(id)?;
        if let Some((_, history)) = self.histories.get_mut(&at) {
            history.started = false;
            history.earlier.clear();
            // Its values stay until it runs; no input matches this run.
            if let Some(run) = &mut history.current {
                Arc::make_mut(run).source = Digest::of(b"to be run again");
            }
            self.changed.insert(id.clone());
        }
        Ok(())
    }

    /// Starts a walk over all stale steps. Requests of an earlier walk are forgotten.
    ///
    /// # Errors
    /// [`UnknownStep`](crate::StepGraphError::UnknownStep) when the graph names a stale step that it does not have.
    pub fn start(&mut self) -> Result<(), ReplayError> {
        self.walk = Walk::default();
        for id in self.graph.stale() {
            self.walk.open.insert(self.graph.node(&id)?.position, id);
        }
        let waiting = self.failed.iter().filter(|at| !self.walk.open.contains_key(at));
        let failed: Vec<StepId> = waiting.filter_map(|at| Some(self.histories.get(at)?.0.clone())).collect();
        failed.iter().try_for_each(|by| self.block_after(by))
    }

    /// The next thing to do, in insertion order.
    ///
    /// # Errors
    /// [`UnknownStep`](crate::StepGraphError::UnknownStep) when a step was removed during the walk; then call
    /// [`Replay::start`] again.
    #[expect(clippy::should_implement_trait, reason = "it can fail, and says itself that it is done")]
    pub fn next(&mut self) -> Result<NextStep, ReplayError> {
        self.walk.asked = None;
        let Some((at, step)) = self.walk.open.pop_first() else { return Ok(NextStep::Done) };
        self.walk.at = at;
        if let Some(why) = self.why_not(at, &step)? {
            return Ok(NextStep::Skipped { step, why });
        }
        if let Some(run) = self.answer(at, &step)? {
            return self.take_answer(at, step, &run);
        }
        let (request, given) = match self.request(at, &step)? {
            Ok(request) => request,
            Err(why) => {
                self.block_after(&step)?;
                return Ok(NextStep::Skipped { step, why });
            }
        };
        if request.acts {
            self.history_mut(at, &step).started = true;
            self.changed.insert(step);
        }
        self.walk.asked = Some(Asked { at, request: request.clone(), given });
        Ok(NextStep::Run(request))
    }

    fn has_run(&self, at: Position) -> bool {
        self.histories.get(&at).is_some_and(|(_, history)| history.current.is_some())
    }

    fn history_mut(&mut self, at: Position, step: &StepId) -> &mut StepHistory {
        &mut self.histories.entry(at).or_insert_with(|| (step.clone(), StepHistory::default())).1
    }

    fn why_not(&mut self, at: Position, step: &StepId) -> Result<Option<Skip>, ReplayError> {
        if let Some(by) = self.walk.blocked.get(&at) {
            return Ok(Some(Skip::Blocked { by: by.clone() }));
        }
        let why = if matches!(self.graph.node(step)?.state, NodeState::Broken(_)) {
            Skip::Broken
        } else if self.histories.get(&at).is_some_and(|(_, history)| history.started) {
            Skip::Unknown
        } else {
            return Ok(None);
        };
        self.block_after(step)?;
        Ok(Some(why))
    }

    /// Blocks every step that depends on this one.
    fn block_after(&mut self, by: &StepId) -> Result<(), ReplayError> {
        if self.settings.keeps_going {
            return Ok(());
        }
        for id in self.graph.descendants(by)? {
            let position = self.graph.node(&id)?.position;
            self.walk.blocked.entry(position).or_insert_with(|| by.clone());
        }
        Ok(())
    }

    /// A kept run with the step's present input.
    fn answer(&self, at: Position, step: &StepId) -> Result<Option<Arc<StepRun>>, ReplayError> {
        let source = self.source_digest(&self.graph.node(step)?.source);
        let Some((_, history)) = self.histories.get(&at) else { return Ok(None) };
        Ok(history.runs().find(|run| self.fits(at, &source, run)).cloned())
    }

    /// True when a run is the result of a step of this source with the present input.
    fn fits(&self, at: Position, source: &Digest, run: &StepRun) -> bool {
        run.source == *source
            && !run.is_stopped()
            && inputs::has_values_of(&self.namespace, at, run)
            && self.has_files_of(at, run)
    }

    fn has_files_of(&self, at: Position, run: &StepRun) -> bool {
        let is_same = |path: &String, then: &Option<Digest>| self.files.get(path).is_none_or(|now| now == then);
        let is_written = |path: &String| self.written.get(path).is_some_and(|last| *last >= at);
        run.report.files.iter().all(|(path, then)| is_same(path, then) || is_written(path))
    }

    /// True when the current run of a step is not its result any more.
    fn is_outdated(&self, at: Position) -> bool {
        let Some((id, history)) = self.histories.get(&at) else { return false };
        let (Some(run), Ok(node)) = (&history.current, self.graph.node(id)) else { return true };
        !self.fits(at, &self.source_digest(&node.source), run)
    }

    fn take_answer(&mut self, at: Position, step: StepId, run: &Arc<StepRun>) -> Result<NextStep, ReplayError> {
        let is_same = self
            .histories
            .get(&at)
            .and_then(|(_, history)| history.current.as_ref())
            .is_some_and(|now| Arc::ptr_eq(now, run));
        if is_same {
            if self.failed.contains(&at) {
                self.block_after(&step)?;
            }
        } else {
            self.observe(at, &step, run)?;
            self.put(at, &step, run)?;
        }
        self.graph_fresh(&step, run)?;
        Ok(NextStep::Answered { step, is_same })
    }

    /// Reports the observations of a run to the graph; returns the missed dependencies.
    fn observe(&mut self, at: Position, step: &StepId, run: &StepRun) -> Result<Vec<MissedEdge>, ReplayError> {
        let observed = inputs::observed(&self.namespace, at, run);
        let mut missed = self.graph.observe(step, &observed)?;
        missed.retain(|edge| !edge.variable.starts_with(SHARING));
        Ok(missed)
    }

    /// A step that was stopped stays stale.
    fn graph_fresh(&mut self, step: &StepId, run: &StepRun) -> Result<(), ReplayError> {
        if run.is_stopped() {
            self.graph.mark_stale_alone(step)?
        } else {
            self.graph.mark_fresh(step)?
        }
        Ok(())
    }

    /// Makes a run the current one. Returns the fresh steps that are stale now, and whether the result is unchanged.
    fn put(&mut self, at: Position, step: &StepId, run: &Arc<StepRun>) -> Result<(Vec<StepId>, bool), ReplayError> {
        let old = self.history_mut(at, step).current.clone();
        let mut readers = self.namespace.replace(at, old.as_deref(), Some(run));
        readers.retain(|reader| self.is_outdated(*reader));
        let is_same = old.is_some_and(|old| left(&old) == left(run));
        let history = self.history_mut(at, step);
        history.started = false;
        history.push(Arc::clone(run));
        let has_failed = history.has_failed();
        self.changed.insert(step.clone());
        if has_failed {
            self.failed.insert(at);
            self.block_after(step)?;
        } else {
            self.failed.remove(&at);
        }
        let stale = self.mark_stale(&readers)?;
        for at in readers {
            if let Some((id, _)) = self.histories.get(&at) {
                self.walk.open.insert(at, id.clone());
            }
        }
        Ok((stale, is_same))
    }

    /// Marks fresh steps stale, and returns them.
    fn mark_stale(&mut self, positions: &BTreeSet<Position>) -> Result<Vec<StepId>, ReplayError> {
        let mut marked = Vec::new();
        for at in positions {
            let Some((id, _)) = self.histories.get(at) else { continue };
            if !self.graph.is_stale(id)? {
                self.graph.mark_stale_alone(id)?;
                marked.push(id.clone());
            }
        }
        Ok(marked)
    }

    fn source_digest(&self, source: &str) -> Digest {
        let ReplaySettings { seed, grants, .. } = &self.settings;
        Digest::of_parts(&[source.as_bytes(), seed.as_bytes(), grants.as_bytes()])
    }
}

/// A value's digest, with the names that share it.
type Value<'a> = (Digest, &'a BTreeSet<VariableName>);

/// The result of a run that other steps can see.
fn left(run: &StepRun) -> (BTreeMap<&VariableName, Value<'_>>, &BTreeSet<VariableName>) {
    let groups = run.report.delta.groups.iter();
    let values = groups.flat_map(|group| group.names.iter().map(|name| (name, (group.kept.value(), &group.names))));
    (values.collect(), &run.report.delta.deleted)
}
