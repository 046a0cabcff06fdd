//! The report of a run: accepted, dropped because the step read names that it was not given, or refused.
//!
//! A report is trusted only as far as its own graph goes, since its process also ran untrusted code.

use super::namespace::Position;
use super::outcomes::{ReplayError, ReportOutcome};
use super::{Asked, Replay, StepRun, inputs};
use crate::analysis::VariableName;
use crate::step::{FILES_MAX, KeptValues, NAMES_MAX, StepEnd, StepReport, StepRequest, ValueGroup};
use longhaul_core::Digest;
use std::collections::BTreeSet;
use std::sync::Arc;

impl Replay {
    /// Takes in the report of the requested run.
    ///
    /// # Errors
    /// [`ReplayError::NotAsked`] and [`ReplayError::BadReport`]; nothing is changed then, and after the second the step
    /// still has to run.
    pub fn ran(&mut self, report: StepReport) -> Result<ReportOutcome, ReplayError> {
        let asked = self.walk.asked.take().filter(|asked| asked.request.step == report.step);
        let Some(asked) = asked else { return Err(ReplayError::NotAsked { step: report.step }) };
        if let Some(reason) = what_is_wrong(&report) {
            self.walk.open.insert(asked.at, report.step.clone());
            return Err(ReplayError::BadReport { step: report.step, reason });
        }
        let missing = self.missing(&asked, &report);
        if !missing.is_empty() {
            let known = self.walk.missing.entry(asked.at).or_default();
            known.attempts += 1;
            known.names.extend(missing.iter().cloned());
            self.walk.open.insert(asked.at, report.step);
            return Ok(ReportOutcome::Again { missing });
        }
        let step = report.step.clone();
        let run = Arc::new(self.run_of(asked.at, &asked.request, report)?);
        self.files.extend(run.report.files.clone());
        for path in &run.report.written {
            let last = self.written.entry(path.clone()).or_default();
            *last = asked.at.max(*last);
        }
        let missed = self.observe(asked.at, &step, &run)?;
        let (stale, is_same) = self.put(asked.at, &step, &run)?;
        self.graph_fresh(&step, &run)?;
        Ok(ReportOutcome::Kept { missed, stale, is_same })
    }

    /// Existing names that the step read and was not given.
    fn missing(&self, asked: &Asked, report: &StepReport) -> BTreeSet<VariableName> {
        let is_missing =
            |name: &&VariableName| !asked.given.contains(*name) && self.namespace.find(name, asked.at).is_some();
        let mut missing: BTreeSet<VariableName> = report.reads.iter().filter(is_missing).cloned().collect();
        if report.sees_all {
            missing.extend(self.namespace.names(asked.at).iter().filter(is_missing).cloned());
        }
        // It acted: its effects cannot be undone, and it was given every value that can be stored.
        if asked.request.acts { BTreeSet::new() } else { missing }
    }

    /// The run of a report, with its input.
    fn run_of(&self, at: Position, request: &StepRequest, mut report: StepReport) -> Result<StepRun, ReplayError> {
        let source = self.source_digest(&self.graph.node(&report.step)?.source);
        report.blobs = Vec::new();
        let (reads, alone) = inputs::values_of(&self.namespace, at, &report);
        let all = report.sees_all.then(|| self.namespace.seen_all(at));
        let input = inputs::digest(&source, &reads, all.as_ref(), &report.files);
        for group in &mut report.delta.groups {
            let names: Vec<&[u8]> = group.names.iter().map(|name| name.as_bytes()).collect();
            if let KeptValues::Live { reason, .. } = &group.kept {
                let value = Digest::of_parts(&[input.as_bytes(), Digest::of_parts(&names).as_bytes()]);
                let kept = KeptValues::Live { reason: reason.clone(), value };
                *group = Arc::new(ValueGroup { kept, ..ValueGroup::clone(group) });
            }
        }
        debug_assert_eq!(request.step, report.step, "asked for");
        report.reads = BTreeSet::new();
        Ok(StepRun { source, reads, alone, all, report })
    }
}

/// A report comes from a process that also runs untrusted code.
fn what_is_wrong(report: &StepReport) -> Option<&'static str> {
    let delta = &report.delta;
    if report.reads.len().max(delta.names().count()).max(report.rebound.len()) > NAMES_MAX {
        return Some("it has too many names");
    }
    if report.files.len().max(report.written.len()) > FILES_MAX {
        return Some("it has too many files");
    }
    let mut names = BTreeSet::new();
    if !delta.names().all(|name| names.insert(name)) {
        return Some("it has a name twice");
    }
    if delta.groups.iter().any(|group| group.names.is_empty()) {
        return Some("it has a group without a name");
    }
    if matches!(report.ended, StepEnd::Stopped { .. }) && names.first().is_some() {
        return Some("it was stopped and changed something");
    }
    None
}
