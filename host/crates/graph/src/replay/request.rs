//! The request to run a step: the values that it is given, and the steps that have to run before it once more.
//!
//! A step is given the names that it is expected to read. After some runs that read other names, it is given
//! everything. Nothing is changed here, and nothing is run.

use super::Replay;
use super::namespace::Position;
use super::outcomes::{ReplayError, Skip};
use crate::analysis::VariableName;
use crate::graph::StepId;
use crate::step::{DECIMAL, KeptValues, PrecedingStep, RANDOM, StepRequest};
use longhaul_core::Digest;
use std::collections::BTreeSet;

/// Runs of one step in a row that read a name outside the given ones. After them it is given everything.
const ATTEMPTS_MAX: u32 = 3;

impl Replay {
    /// The request to a runner, and every name that the step may then read.
    pub(super) fn request(
        &self,
        at: Position,
        step: &StepId,
    ) -> Result<Result<(StepRequest, BTreeSet<VariableName>), Skip>, ReplayError> {
        let node = self.graph.node(step)?;
        let attempt = self.walk.missing.get(&at).map_or(0, |missing| missing.attempts);
        let wants_all = self.settings.acts || node.analysis.sees_all().is_some() || attempt >= ATTEMPTS_MAX;
        let mut names =
            if wants_all { self.namespace.names(at) } else { self.namespace.with_needs(self.predicted(at, step)?, at) };
        let (mut given, live) = self.namespace.groups(&names, at);
        let mut before = Vec::new();
        if let Some(first) = live.filter(|_| !self.settings.acts || !self.is_only_offered(&names, at, step)) {
            let first = self.first_of_live(first, at);
            if self.settings.acts {
                return Ok(Err(Skip::LiveActs { producer: self.histories[&first].0.clone() }));
            }
            names = self.namespace.names(at);
            given = self.namespace.groups(&self.namespace.names(first), first).0;
            before = self.before(first, at);
        }
        let request = StepRequest {
            step: step.clone(),
            source: node.source.as_str().into(),
            seed: self.seed_of(step),
            given,
            before,
            attempt,
            acts: self.settings.acts,
        };
        Ok(Ok((request, names)))
    }

    /// True when the step is not known to read any of the live values among `names`.
    fn is_only_offered(&self, names: &BTreeSet<VariableName>, at: Position, step: &StepId) -> bool {
        let Ok(predicted) = self.predicted(at, step) else { return false };
        let wanted = self.namespace.with_needs(predicted, at);
        let is_live = |name: &&VariableName| {
            self.namespace.find(name, at).is_some_and(|(_, group)| matches!(group.kept, KeptValues::Live { .. }))
        };
        !names.intersection(&wanted).any(|name| is_live(&name))
    }

    /// The names that the step is expected to read.
    fn predicted(&self, at: Position, step: &StepId) -> Result<BTreeSet<VariableName>, ReplayError> {
        let node = self.graph.node(step)?;
        let analysis = &node.analysis;
        let mut names: BTreeSet<VariableName> = [RANDOM, DECIMAL].into_iter().map(VariableName::from).collect();
        names.extend(analysis.reads().chain(analysis.builtins()).chain(analysis.mutates()).cloned());
        names.extend(analysis.deletes().chain(&node.observed().reads).cloned());
        names.extend(self.walk.missing.get(&at).into_iter().flat_map(|missing| &missing.names).cloned());
        if let Some(run) = self.histories.get(&at).and_then(|(_, history)| history.current.as_ref()) {
            names.extend(run.reads.keys().cloned());
        }
        Ok(names)
    }

    /// The first step to rerun so that the values that cannot be stored exist again.
    fn first_of_live(&self, first: Position, at: Position) -> Position {
        let mut first = first;
        loop {
            let runs = || self.histories.range(first..at).filter_map(|(_, (_, history))| history.current.as_ref());
            let mut names: BTreeSet<VariableName> = runs().flat_map(|run| run.reads.keys().cloned()).collect();
            if runs().any(|run| run.all.is_some()) {
                names.extend(self.namespace.names(first));
            }
            match self.namespace.groups(&names, first).1 {
                Some(earlier) if earlier < first => first = earlier,
                _ => return first,
            }
        }
    }

    /// The steps in this range that ran and have to run again.
    fn before(&self, first: Position, at: Position) -> Vec<PrecedingStep> {
        let ran = self
            .histories
            .range(first..at)
            .filter(|(_, (_, history))| history.current.as_ref().is_some_and(|run| !run.is_stopped()));
        ran.filter_map(|(_, (id, _))| self.graph.node(id).ok())
            .map(|node| PrecedingStep {
                step: node.id.clone(),
                source: node.source.as_str().into(),
                seed: self.seed_of(&node.id),
            })
            .collect()
    }

    fn seed_of(&self, step: &StepId) -> Digest {
        Digest::of_parts(&[self.settings.seed.as_bytes(), step.as_str().as_bytes()])
    }
}
