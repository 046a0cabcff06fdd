//! Diagnoses a failed step and finds a source that repairs it.
//!
//! A failure is examined with the values that the step reads, which a probe source shows. Rules name the step at fault
//! and possible sources for it; a model of the operator's, if one is named, does so too. Each proposal is tried on a
//! copy of the graph, in the sandbox: it is kept, with the trial's results, when the failure is gone and no step fails
//! that worked before, so that nothing runs a second time. Steps that act are never tried.

use crate::advice::Adviser;
use crate::errors::{refused, replay_refused};
use crate::opened::ReplacedStep;
use crate::run::{ReplayTally, has_failed};
use crate::runner::StepValues;
use crate::views;
use crate::work::GraphChange;
use longhaul_api::graphs::ModelChoice;
use longhaul_core::graph::{
    DiagnosisView, GraphError, PatchView, ReplaySummary, StepEnvironment, StepFailure, StepState, ValueView,
};
use longhaul_core::store::Op;
use longhaul_core::text::{printable, truncate};
use longhaul_graph::analysis::VariableName;
use longhaul_graph::diagnose::{self, Diagnosis, ObservedValue, RaisedFrame};
use longhaul_graph::graph::{Node, StepId};
use longhaul_graph::patch::{self, Candidate};
use longhaul_graph::record::Text;
use longhaul_graph::replay::{NextStep, Replay};
use longhaul_graph::step::StepEnd;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Names whose values are examined, and bytes of a shown value.
const NAMES_MAX: usize = 40;
const SHOWN_BYTES_MAX: usize = 300;

/// Keys and attributes of one value that are examined.
const KEYS_MAX: usize = 200;

/// Sources that a model proposes for one patch, and steps that it is shown.
const PROPOSALS_MAX: u32 = 3;
const SHOWN_STEPS_MAX: usize = 40;

/// Bytes of the reason why a trial failed.
const WHY_BYTES_MAX: usize = 300;

/// A failure, with the data for rules and models.
struct FailureContext {
    step: StepId,
    failure: diagnose::RaisedFailure,
    diagnosis: Diagnosis,
    view: DiagnosisView,
}

/// A trial that repairs the failure.
struct SuccessfulTrial {
    replay: Replay,
    values: StepValues,
    did: ReplaySummary,
    step: StepId,
    before: String,
    source: String,
    why: String,
    /// True when no step fails, including those that were blocked before.
    is_clean: bool,
}

impl GraphChange<'_> {
    pub(super) async fn diagnose(
        &mut self,
        step: Option<String>,
        model: Option<ModelChoice>,
    ) -> Result<DiagnosisView, GraphError> {
        let mut found = self.find(step).await?;
        if let Some(adviser) = self.adviser(model.as_ref())?
            && let Some(said) = adviser.ask(&found.view, &self.sources(&found), &[]).await
        {
            found.view.why = format!("{} (a model says: {})", found.view.why, said.why);
            found.view.culprit = said.culprit;
        }
        Ok(found.view)
    }

    /// Tries the proposals of the rules and then of a model, and keeps the first source that repairs everything, or
    /// else the first that repairs the failure and breaks no working step.
    pub(super) async fn patch(
        &mut self,
        step: Option<String>,
        model: Option<ModelChoice>,
        tries_max: u32,
    ) -> Result<PatchView, GraphError> {
        if self.opened.head.surroundings.may_act() {
            let text = "steps of this graph may write files or ask hosts, so that no source is tried on a copy; change \
                        the step yourself";
            return Err(GraphError::Invalid(text.to_owned()));
        }
        let found = self.find(step).await?;
        let adviser = self.adviser(model.as_ref())?;
        let rules = patch::candidates(self.opened.graph(), &found.failure).map_err(refused)?;
        let (mut tries, mut failed, mut best) = (0, Vec::new(), None::<SuccessfulTrial>);
        for candidate in rules {
            if tries >= tries_max || best.as_ref().is_some_and(|best| best.is_clean) {
                break;
            }
            tries += 1;
            let Candidate { step, source, change, reason, .. } = candidate;
            match self.attempt(&found, step, source.clone(), format!("{change}; {reason}")).await? {
                Ok(mended) => best = better(best, mended),
                Err(why) => failed.push((source, why)),
            }
        }
        let mut asked = 0;
        while let Some(adviser) = adviser.as_ref().filter(|_| best.is_none())
            && tries < tries_max
            && asked < PROPOSALS_MAX
        {
            asked += 1;
            let Some(said) = adviser.ask(&found.view, &self.sources(&found), &failed).await else { break };
            let Some(source) = said.source else { break };
            tries += 1;
            match self.attempt(&found, StepId::new(said.culprit), source.clone(), said.why).await? {
                Ok(mended) => best = better(best, mended),
                Err(why) => failed.push((source, why)),
            }
        }
        match best {
            Some(mended) => self.keep(mended, tries),
            None => Err(GraphError::Failed(no_patch(&found.view, tries, adviser.is_some()))),
        }
    }

    /// The failure to repair, with the rules' findings.
    async fn find(&mut self, step: Option<String>) -> Result<FailureContext, GraphError> {
        let states = views::states(&self.opened.replay);
        let step = match step {
            Some(step) => {
                let id = StepId::new(step);
                self.opened.node(&id)?;
                if !has_failed(states.get(&id)) {
                    let state = states.get(&id).copied().unwrap_or_default().as_str();
                    return Err(GraphError::Invalid(format!("`{id}` did not fail, it is {state}")));
                }
                id
            }
            None => {
                let first = self.opened.graph().steps().find(|node| has_failed(states.get(&node.id)));
                first.map(|node| node.id.clone()).ok_or_else(|| {
                    GraphError::Invalid("no step of this graph failed; `longhaul graph run` runs what is stale".into())
                })?
            }
        };
        let node = self.opened.node(&step)?;
        let state = states.get(&step).copied().unwrap_or_default();
        let failure = views::failure(self.opened, node, state).unwrap_or_default();
        let frame = views::innermost(self.opened, node, state);
        let values = self.values_of(&step).await?;
        let told = diagnose::RaisedFailure {
            step: step.clone(),
            exception: failure.kind.clone(),
            message: failure.message.clone(),
            line: failure.line,
            frame: frame.as_ref().map(|frame| RaisedFrame {
                step: StepId::new(frame.step.as_str()),
                line: frame.line,
                function: frame.function.clone(),
            }),
            values,
        };
        let diagnosis = diagnose::diagnose(self.opened.graph(), &told).map_err(refused)?;
        let view = DiagnosisView { frame, ..view(&diagnosis, failure) };
        Ok(FailureContext { step, failure: told, diagnosis, view })
    }

    /// The values of the names that a step reads, as far as they are visible without running it.
    async fn values_of(&mut self, step: &StepId) -> Result<BTreeMap<VariableName, ObservedValue>, GraphError> {
        let node = self.opened.node(step)?;
        let names = names_of(node);
        let mut seen: BTreeMap<VariableName, ObservedValue> = BTreeMap::new();
        if let Ok(Some(history)) = self.opened.replay.history(step)
            && let Some(run) = &history.current
        {
            for (name, shown) in &run.report.values {
                seen.insert(
                    Arc::clone(name),
                    ObservedValue { shown: truncate(shown, SHOWN_BYTES_MAX), ..ObservedValue::default() },
                );
            }
        }
        if !names.is_empty() {
            for (name, found) in self.probe(step, &names).await.unwrap_or_default() {
                seen.insert(name, found);
            }
        }
        Ok(seen)
    }

    /// Runs a probe source in the place of the step, on a copy and without its grants, which prints the values of the
    /// names. None when that would need other steps to run first, or does not end.
    async fn probe(
        &self,
        step: &StepId,
        names: &BTreeSet<VariableName>,
    ) -> Option<BTreeMap<VariableName, ObservedValue>> {
        let mut copy = self.opened.replay.clone();
        let settings = copy.settings().clone();
        copy.set_settings(longhaul_graph::replay::ReplaySettings { acts: false, keeps_going: true, ..settings });
        copy.change_step(step, probe_source(names)).ok()?;
        copy.start().ok()?;
        let sees =
            StepEnvironment { limits: self.opened.head.surroundings.limits.clone(), ..StepEnvironment::default() };
        let values = self.services.runner.values();
        loop {
            let request = match copy.next().ok()? {
                NextStep::Run(request) if request.step == *step => request,
                NextStep::Run(_) | NextStep::Done => return None,
                NextStep::Skipped { step: skipped, .. } | NextStep::Answered { step: skipped, .. }
                    if skipped == *step =>
                {
                    return None;
                }
                NextStep::Skipped { .. } | NextStep::Answered { .. } => continue,
            };
            let report = self.services.runner.run(&request, &sees, &values, None).await.ok()?;
            if report.ended != StepEnd::Well {
                return None;
            }
            let printed = report.stdout.clone();
            // It may have read a value that was not given, and is then run once more.
            if let longhaul_graph::replay::ReportOutcome::Kept { .. } = copy.ran(report).ok()? {
                return Some(read_probe(&printed));
            }
        }
    }

    /// The sources that a model sees: the failed step and its dependencies, the nearest last.
    fn sources(&self, found: &FailureContext) -> Vec<(String, String)> {
        let mut steps = self.opened.graph().ancestors(&found.step, None).unwrap_or_default();
        steps.drain(..steps.len().saturating_sub(SHOWN_STEPS_MAX));
        if !steps.contains(&found.diagnosis.culprit) && found.diagnosis.culprit != found.step {
            steps.push(found.diagnosis.culprit.clone());
        }
        steps.push(found.step.clone());
        let source = |id: StepId| self.opened.node(&id).ok().map(|node| (id.to_string(), node.source.to_string()));
        steps.into_iter().filter_map(source).collect()
    }

    /// Runs the graph with another source for a step, on a copy; or says why that fails.
    async fn attempt(
        &self,
        found: &FailureContext,
        step: StepId,
        source: String,
        why: String,
    ) -> Result<Result<SuccessfulTrial, String>, GraphError> {
        let before = views::states(&self.opened.replay);
        let mut copy = self.opened.replay.clone();
        let old = self.opened.node(&step)?.source.clone();
        if old == source {
            return Ok(Err("it is the source that failed".to_owned()));
        }
        if let Err(error) = copy.change_step(&step, source.clone()) {
            return Ok(Err(error.to_string()));
        }
        let mut values = self.services.runner.values();
        let did = self.walk(&mut copy, &mut values).await?;
        let after = views::states(&copy);
        let is_well = |id: &StepId| after.get(id) == Some(&StepState::Fresh);
        if !is_well(&found.step) || !is_well(&step) {
            return Ok(Err(why_not(&copy, &found.step, &step, &after)));
        }
        let breaks = before.iter().find(|(id, state)| **state == StepState::Fresh && has_failed(after.get(*id)));
        if let Some((id, _)) = breaks {
            return Ok(Err(format!("`{id}`, which was well, fails with it")));
        }
        let is_clean = !after.iter().any(|(id, state)| has_failed(Some(state)) && !has_failed(before.get(id)));
        Ok(Ok(SuccessfulTrial { replay: copy, values, did, step, before: old, source, why, is_clean }))
    }

    /// Runs the stale steps of a copy. Their results are in no store.
    async fn walk(&self, copy: &mut Replay, values: &mut StepValues) -> Result<ReplaySummary, GraphError> {
        let settings = longhaul_graph::replay::ReplaySettings { keeps_going: false, ..copy.settings().clone() };
        copy.set_settings(settings);
        copy.start().map_err(replay_refused)?;
        let mut tally = ReplayTally::default();
        loop {
            match copy.next().map_err(replay_refused)? {
                NextStep::Done => return Ok(tally.replayed(copy)),
                NextStep::Skipped { step, why } => tally.skipped(step, why),
                NextStep::Answered { step, .. } => tally.answered(step),
                NextStep::Run(request) => {
                    let report =
                        self.services.runner.run(&request, &self.opened.head.surroundings, values, None).await?;
                    values.tried.extend(report.blobs.iter().map(|(digest, bytes)| (*digest, Arc::clone(bytes))));
                    tally.ran(copy, report)?;
                }
            }
        }
    }

    /// Replaces the graph by the copy, with all results of its runs.
    fn keep(&mut self, mended: SuccessfulTrial, tries: u32) -> Result<PatchView, GraphError> {
        let SuccessfulTrial { replay, values, did, step, before, source, why, .. } = mended;
        self.opened.replay = replay;
        self.batch.ops.extend(values.tried.iter().map(|(digest, bytes)| Op::Blob(*digest, bytes.to_vec())));
        self.opened.write_staleness(&mut self.batch)?;
        self.opened.write_step(&step, &mut self.batch)?;
        self.opened.write_changed(&mut self.batch)?;
        let before = ReplacedStep { source: Text::keep(&before, &mut self.batch), step: step.clone() };
        let kept = PatchView { step: step.to_string(), source, why: why.clone(), tries, replay: did };
        // The output of its steps is in their rows, and needs no second place.
        let replay = ReplaySummary { outputs: Vec::new(), ..kept.replay.clone() };
        let patch = PatchView { replay, ..kept.clone() };
        self.noted(format!("patched `{step}`: {}", truncate(&why, WHY_BYTES_MAX)), Some(before), Some(patch))?;
        Ok(kept)
    }

    fn adviser(&self, model: Option<&ModelChoice>) -> Result<Option<Adviser>, GraphError> {
        let Some(choice) = model else { return Ok(None) };
        Adviser::open(&*self.services.models, choice).map_err(|error| GraphError::Invalid(format!("{error:#}")))
    }
}

fn better(best: Option<SuccessfulTrial>, mended: SuccessfulTrial) -> Option<SuccessfulTrial> {
    match best {
        Some(best) if best.is_clean || !mended.is_clean => Some(best),
        _ => Some(mended),
    }
}

fn no_patch(view: &DiagnosisView, tries: u32, asked_a_model: bool) -> String {
    let DiagnosisView { step, failure, culprit, .. } = view;
    let more = if asked_a_model { "" } else { "; a model may know more: --model NAME, in a project that has one" };
    let message = printable(&failure.message, WHY_BYTES_MAX);
    format!("no source mends `{step}` ({}: {message}), {tries} tried; change `{culprit}` yourself{more}", failure.kind)
}

fn why_not(copy: &Replay, failed: &StepId, changed: &StepId, after: &HashMap<StepId, StepState>) -> String {
    let said = |id: &StepId| match &copy.history(id).ok().flatten()?.current.as_ref()?.report.ended {
        StepEnd::Raised(exception) => Some(format!("{}: {}", exception.kind, exception.message)),
        StepEnd::Stopped { message, .. } => Some(message.clone()),
        StepEnd::Well => None,
    };
    for id in [changed, failed] {
        if has_failed(after.get(id)) {
            let why = said(id).unwrap_or_else(|| "its source cannot be read".to_owned());
            return truncate(&format!("`{id}` fails: {why}"), WHY_BYTES_MAX);
        }
    }
    format!("`{failed}` does not run with it")
}

fn view(diagnosis: &Diagnosis, failure: StepFailure) -> DiagnosisView {
    let values = diagnosis.variables.iter().map(|involved| ValueView {
        name: involved.name.to_string(),
        shown: involved
            .shown
            .as_deref()
            .map_or_else(|| "(not known)".to_owned(), |shown| truncate(shown, SHOWN_BYTES_MAX)),
        made_by: involved.producers.last().map(ToString::to_string),
    });
    DiagnosisView {
        step: diagnosis.step.to_string(),
        values: values.collect(),
        culprit: diagnosis.culprit.to_string(),
        why: diagnosis.reason.clone(),
        frame: None,
        failure,
    }
}

/// The names that the step reads of others, as far as a probe source can contain them.
fn names_of(node: &Node) -> BTreeSet<VariableName> {
    let names = node.analysis.reads().chain(node.analysis.mutates()).chain(&node.observed().reads);
    let is_plain = |name: &&VariableName| {
        name.chars().all(|char| char == '_' || char.is_ascii_alphanumeric()) && !name.starts_with("__")
    };
    names.filter(is_plain).take(NAMES_MAX).cloned().collect()
}

/// Prints one line of JSON. A value that cannot be shown is left out: its class may be the step's own, and do anything.
fn probe_source(names: &BTreeSet<VariableName>) -> String {
    let mut source = String::from(
        "def _longhaul_shown(value):\n    \
         shown = {'shown': repr(value)[:300], 'kind': type(value).__name__[:100]}\n    \
         names = lambda value: [name[:100] for name in dir(value) if not name.startswith('__')][:200]\n    \
         keys = lambda values: [repr(key)[:100] for key in list(values)[:200]]\n    \
         parts = []\n    \
         if type(value) is dict:\n        shown['keys'], parts = keys(value), list(value.values())[:3]\n    \
         if type(value) in (list, tuple):\n        parts = list(value[:3])\n    \
         if type(value) in (list, tuple, str, bytes, set, frozenset, dict):\n        shown['len'] = len(value)\n    \
         else:\n        shown['attributes'] = names(value)\n        \
         try:\n            shown['columns'] = keys(value.columns)\n        \
         except BaseException:\n            pass\n    \
         if parts:\n        \
         shown['part_kind'], shown['part_attributes'] = type(parts[0]).__name__[:100], names(parts[0])\n        \
         shown['columns'] = [key for part in parts if type(part) is dict for key in keys(part)][:200]\n    \
         return shown\n_longhaul_values = {}\n",
    );
    for name in names {
        source.push_str(&format!(
            "try:\n    _longhaul_values['{name}'] = _longhaul_shown({name})\nexcept BaseException:\n    pass\n"
        ));
    }
    source.push_str("import json as _longhaul_json\nprint(_longhaul_json.dumps(_longhaul_values))\n");
    source
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ProbedValue {
    shown: String,
    kind: String,
    keys: Vec<String>,
    len: Option<u64>,
    attributes: Vec<String>,
    columns: Vec<String>,
    part_kind: String,
    part_attributes: Vec<String>,
}

/// Parses a probe's output. A step's own `__repr__` may print as well, and its output is not trusted.
fn read_probe(printed: &str) -> BTreeMap<VariableName, ObservedValue> {
    let line = printed.lines().last().unwrap_or_default();
    let values: BTreeMap<String, ProbedValue> = serde_json::from_str(line).unwrap_or_default();
    let cut =
        |texts: Vec<String>| texts.into_iter().take(KEYS_MAX).map(|text| truncate(&text, SHOWN_BYTES_MAX)).collect();
    let seen = |shown: ProbedValue| ObservedValue {
        shown: truncate(&shown.shown, SHOWN_BYTES_MAX),
        kind: truncate(&shown.kind, SHOWN_BYTES_MAX),
        keys: cut(shown.keys),
        len: shown.len,
        attributes: cut(shown.attributes),
        columns: cut(shown.columns),
        part_kind: truncate(&shown.part_kind, SHOWN_BYTES_MAX),
        part_attributes: cut(shown.part_attributes),
    };
    values.into_iter().take(NAMES_MAX).map(|(name, shown)| (VariableName::from(name), seen(shown))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_asks_for_plain_names_and_what_it_prints_is_bounded() {
        let names = BTreeSet::from([VariableName::from("rows"), VariableName::from("a1")]);
        let source = probe_source(&names);
        assert!(source.contains("_longhaul_values['rows'] = _longhaul_shown(rows)"), "{source}");
        let long = "x".repeat(1_000);
        let printed = format!("noise\n{{\"rows\": {{\"shown\": \"{long}\", \"kind\": \"list\", \"len\": 3}}}}\n");
        let seen = read_probe(&printed);
        let shown = &seen["rows"].shown;
        assert!(shown.starts_with("xxx") && shown.len() < SHOWN_BYTES_MAX + 50, "{shown}");
        assert_eq!(seen["rows"].len, Some(3));
        assert!(read_probe("{\"rows\": 5}").is_empty() && read_probe("").is_empty());
    }
}
