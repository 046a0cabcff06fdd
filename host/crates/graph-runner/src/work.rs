//! One change of a graph in progress: steps are added, changed and removed, and each change is noted.

use crate::files::FileDigests;
use crate::opened::{OpenGraph, ReplacedStep, bytes};
use crate::output_log::OutputLogs;
use crate::runner::LazyExecutor;
use longhaul_core::Clock;
use longhaul_core::graph::{GraphAnswer, GraphChanges, GraphError, PatchView, check_name};
use longhaul_core::project_models::ProjectModels;
use longhaul_core::store::{Batch, Op, Store, Table};
use longhaul_core::text::count;
use longhaul_graph::record::{self, VersionRow};
use std::sync::Arc;

/// The services that graphs are kept and run with.
pub(super) struct Services {
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) runner: LazyExecutor,
    pub(super) files: Arc<FileDigests>,
    pub(super) models: Arc<dyn ProjectModels>,
    pub(super) outputs: OutputLogs,
}

impl Services {
    /// Has a graph look at the files that its steps read.
    pub(super) fn look_at_files(&self, opened: &mut OpenGraph) -> Result<(), GraphError> {
        opened.look_at_files(&self.files, self.clock.now_ms())
    }
}

/// One change of a graph in progress.
pub(super) struct GraphChange<'a> {
    pub(super) services: &'a Services,
    pub(super) opened: &'a mut OpenGraph,
    pub(super) token: &'a str,
    /// The batch that the caller commits.
    pub(super) batch: Batch,
}

impl GraphChange<'_> {
    pub(super) fn add(&mut self, steps: Vec<(String, String)>) -> Result<GraphAnswer, GraphError> {
        steps.iter().try_for_each(|(step, source)| acceptable(step, source))?;
        let (added, failure) = self.opened.add(steps, &mut self.batch)?;
        let what = match &added[..] {
            [one] => format!("added `{one}`"),
            all => format!("added {}", count(all.len(), "step")),
        };
        self.changed(what, None)?;
        let stale = added.iter().map(ToString::to_string).collect();
        Ok(GraphAnswer::Changed(GraphChanges { stale, failure }))
    }

    pub(super) fn change(&mut self, step: &str, source: String) -> Result<GraphAnswer, GraphError> {
        acceptable(step, &source)?;
        let (stale, failure, before) = self.opened.change(step, source, &mut self.batch)?;
        self.changed(format!("changed `{step}`"), Some(before))?;
        Ok(GraphAnswer::Changed(GraphChanges { stale, failure }))
    }

    pub(super) fn remove(&mut self, step: &str) -> Result<GraphAnswer, GraphError> {
        let (stale, before) = self.opened.remove(step, &mut self.batch)?;
        self.changed(format!("removed `{step}`"), Some(before))?;
        Ok(GraphAnswer::Changed(GraphChanges { stale, failure: None }))
    }

    /// Adds a version.
    pub(super) fn changed(&mut self, what: String, before: Option<ReplacedStep>) -> Result<(), GraphError> {
        self.noted(what, before, None)
    }

    pub(super) fn noted(
        &mut self,
        what: String,
        before: Option<ReplacedStep>,
        patch: Option<PatchView>,
    ) -> Result<(), GraphError> {
        self.opened.head.note(self.token, patch);
        self.opened.head.version += 1;
        let now_ms = self.services.clock.now_ms();
        let (step, before) = before.map_or((None, None), |before| (Some(before.step), Some(before.source)));
        let row = VersionRow { at_ms: now_ms, what, step, before };
        let head = &self.opened.head;
        let key = record::version_key(&head.name, head.version);
        self.batch.push(Op::Put(Table::Graphs, key, bytes(&row)?));
        if let Some(old) = head.version.checked_sub(record::VERSIONS_MAX) {
            self.batch.push(Op::Delete(Table::Graphs, record::version_key(&head.name, old)));
        }
        self.opened.write_head(now_ms, &mut self.batch)
    }
}

fn acceptable(step: &str, source: &str) -> Result<(), GraphError> {
    check_name("step", step).and_then(|()| check_source(step, source)).map_err(GraphError::Invalid)
}

/// Refuses the source of a step that is too long to keep.
pub(super) fn check_source(step: &str, source: &str) -> Result<(), String> {
    let (bytes, max) = (source.len(), longhaul_core::graph::SOURCE_BYTES_MAX);
    if bytes > max {
        return Err(format!(
            "the source of `{step}` has {bytes} bytes, and at most {max} are kept; read data from a file with --dir"
        ));
    }
    Ok(())
}
