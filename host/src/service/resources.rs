//! What is used of the machine: asked of who watches it, with the runs that it knows nothing of.

use super::{Answer, Service};
use crate::resources::{ResourceAsk, Resources, RunUse};
use crate::run;

impl Service {
    pub(super) async fn resources(&self, wanted: ResourceAsk) -> anyhow::Result<Answer> {
        let monitor = &self.world.resources;
        Ok(match wanted {
            ResourceAsk::Now => {
                let mut resources = monitor.now().await?;
                resources.runs = self.uses(&resources)?;
                Answer::Resources { resources: Box::new(resources) }
            }
            ResourceAsk::History { after_ms, limit } => {
                Answer::ResourceHistory { samples: monitor.history(after_ms, limit) }
            }
            ResourceAsk::End { pid } => {
                let ended = monitor.end(pid).await?;
                Answer::ChildEnded { asked: ended.asked, killed: ended.killed }
            }
        })
    }

    /// Runs that are worked on here, in the order of their names.
    fn uses(&self, all: &Resources) -> anyhow::Result<Vec<RunUse>> {
        let active: Vec<_> = self.lock().iter().map(|(run, active)| (run.clone(), active.handle.waits())).collect();
        let mut uses = Vec::with_capacity(active.len());
        for (run, waits) in active {
            let project = run::record(&*self.world.store, &run)?.map(|record| record.project).unwrap_or_default();
            uses.push(RunUse::of(run, project, waits, all));
        }
        uses.sort_by(|one, two| one.run.as_str().cmp(two.run.as_str()));
        Ok(uses)
    }
}
