//! A task carried out on a graph.

use crate::task::Task;
use crate::views;
use crate::work::Work;
use longhaul_api::graphs::TRIES_MAX;
use longhaul_core::graph::{Answer, Ask, GraphError};

impl Work<'_> {
    pub(super) async fn carry_out(&mut self, task: Task) -> Result<Answer, GraphError> {
        match task {
            Task::Ask(Ask::Add { step, source }) => self.add(vec![(step, source)]),
            Task::AddMany(steps) => self.add(steps),
            Task::Ask(Ask::Change { step, source }) => self.change(&step, source),
            Task::Ask(Ask::Remove { step }) => self.remove(&step),
            Task::Ask(Ask::Run { keep_going }) => self.run(None, None, keep_going).await.map(Answer::Replayed),
            Task::Run { keep_going, again } => self.run(None, again, keep_going).await.map(Answer::Replayed),
            Task::Ask(Ask::Replay { step, keep_going }) => {
                self.run(Some(step), None, keep_going).await.map(Answer::Replayed)
            }
            Task::Ask(Ask::Diagnose { step }) => self.diagnose(step, None).await.map(Answer::Diagnosed),
            Task::Diagnose { step, model } => self.diagnose(step, model).await.map(Answer::Diagnosed),
            Task::Ask(Ask::Patch { step }) => self.patch(step, None, TRIES_MAX).await.map(Answer::Patched),
            Task::Patch { step, model, tries_max } => self.patch(step, model, tries_max).await.map(Answer::Patched),
            task @ (Task::Draw { .. } | Task::Ask(Ask::Stale | Ask::Show | Ask::Export { .. })) => {
                views::look(self.opened, &task)
            }
        }
    }
}
