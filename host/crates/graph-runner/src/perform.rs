//! Carries out an operation on a graph.

use crate::task::GraphTask;
use crate::views;
use crate::work::GraphChange;
use longhaul_api::graphs::TRIES_MAX;
use longhaul_core::graph::{GraphAnswer, GraphError, GraphOperation};

impl GraphChange<'_> {
    pub(super) async fn carry_out(&mut self, task: GraphTask) -> Result<GraphAnswer, GraphError> {
        match task {
            GraphTask::Ask(GraphOperation::Add { step, source }) => self.add(vec![(step, source)]),
            GraphTask::AddMany(steps) => self.add(steps),
            GraphTask::Ask(GraphOperation::Change { step, source }) => self.change(&step, source),
            GraphTask::Ask(GraphOperation::Remove { step }) => self.remove(&step),
            GraphTask::Ask(GraphOperation::Run { keep_going }) => {
                self.run(None, None, keep_going).await.map(GraphAnswer::Replayed)
            }
            GraphTask::Run { keep_going, again } => self.run(None, again, keep_going).await.map(GraphAnswer::Replayed),
            GraphTask::Ask(GraphOperation::Replay { step, keep_going }) => {
                self.run(Some(step), None, keep_going).await.map(GraphAnswer::Replayed)
            }
            GraphTask::Ask(GraphOperation::Diagnose { step }) => {
                self.diagnose(step, None).await.map(GraphAnswer::Diagnosed)
            }
            GraphTask::Diagnose { step, model } => self.diagnose(step, model).await.map(GraphAnswer::Diagnosed),
            GraphTask::Ask(GraphOperation::Patch { step }) => {
                self.patch(step, None, TRIES_MAX).await.map(GraphAnswer::Patched)
            }
            GraphTask::Patch { step, model, tries_max } => {
                self.patch(step, model, tries_max).await.map(GraphAnswer::Patched)
            }
            task @ GraphTask::Ask(GraphOperation::Stale | GraphOperation::Show | GraphOperation::Export { .. }) => {
                views::look(self.opened, &task)
            }
        }
    }
}
