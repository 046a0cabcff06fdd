//! One piece of work: the announcement before it starts, and the dispatch to its executor.

use super::WorkExecutor;
use super::choose::CHOOSER;
use super::ending::EndedWork;
use super::work_place::WorkPlace;
use longhaul_core::InvocationId;
use longhaul_core::event::Event;
use longhaul_core::fault::{self, bail};
use longhaul_engine::Cancel;
use longhaul_harness::{RunState, Work, WorkKind};
use longhaul_records::invocation::CHOICE;
use longhaul_records::ledger::DayCaps;

impl WorkExecutor {
    /// The event that is reported before work starts.
    pub fn announcement(&self, work: &Work) -> Option<Event> {
        let (table, export, round) = match &work.job {
            WorkKind::Plan { .. } => ("planner".to_owned(), "planner.plan", 1),
            WorkKind::Replan { .. } => ("planner".to_owned(), "planner.replan", 1),
            WorkKind::Synthesize { .. } => ("planner".to_owned(), "planner.synthesize", 1),
            WorkKind::Propose { agent, .. } => (format!("agents.{agent}"), "agent.run", 0),
            WorkKind::Generate { agent, round, .. } => (format!("agents.{agent}"), "agent.run", *round),
            WorkKind::Agree { .. } => ("evaluator".to_owned(), "evaluator.judge", 0),
            WorkKind::Judge { round, .. } => ("evaluator".to_owned(), "evaluator.judge", *round),
            WorkKind::Choose { .. } => (CHOOSER.to_owned(), CHOICE, 0),
            WorkKind::TryChecks { .. }
            | WorkKind::Prepare { .. }
            | WorkKind::Merge { .. }
            | WorkKind::Commit { .. }
            | WorkKind::Discard { .. } => return None,
        };
        Some(Event::InvocationStarted {
            invocation: InvocationId::of_action(&self.record.run, &work.key()),
            plugin: self.record.pins.get(&table).map_or_else(|| table.clone(), |pin| pin.plugin.clone()),
            export: export.to_owned(),
            feature: work.feature().map(str::to_owned),
            round,
            agent: table,
        })
    }

    /// Executes one piece of work.
    pub async fn perform(&self, work: &Work, state: &RunState, cancel: &Cancel) -> EndedWork {
        self.host.crash.reach("work.start");
        let done = self.carry_out(work, state, cancel).await;
        self.host.crash.reach("work.end");
        done.unwrap_or_else(|error| EndedWork::failed(format!("{error:#}")))
    }

    async fn carry_out(&self, work: &Work, state: &RunState, cancel: &Cancel) -> fault::Result<EndedWork> {
        self.ledger.set_caps(&state.limits);
        // The file may have other caps of the project by now. One that cannot be read changes none of them.
        if let Ok(config) = self.record.config_now() {
            self.ledger.set_day_caps(DayCaps::of(&config.project));
        }
        if let WorkKind::Choose { system, prompt, among, .. } = &work.job {
            return self.choose(work, system, prompt, among, cancel).await;
        }
        let (workspace, base) = self.workspace_of(state, work).await?;
        // A session of an earlier version, or one that was not prepared, is compared with the tip.
        let base = match base {
            Some(base) => base,
            None => workspace.repository()?.tip().await?,
        };
        let place = WorkPlace { executor: self, workspace: &workspace, base: &base, work, state, cancel };
        match &work.job {
            WorkKind::Choose { .. } => bail!("a choice is made without a workspace"),
            WorkKind::Plan { goal } => place.plan(goal.clone()).await,
            WorkKind::Replan { goal, plan, results } => place.replan(goal.clone(), plan.clone(), results).await,
            WorkKind::Synthesize { goal, results } => place.synthesize(goal.clone(), results).await,
            WorkKind::Propose { agent, task, .. } => place.propose(agent, task.clone()).await,
            WorkKind::TryChecks { plan, proposed, .. } => place.try_checks(plan, proposed).await,
            WorkKind::Prepare { checks, .. } => place.prepare(checks).await,
            WorkKind::Agree { instruction, output, criteria, .. } => {
                place.ask_evaluator(instruction, output, criteria).await
            }
            WorkKind::Generate { agent, task, .. } => place.generate(agent, task.clone()).await,
            WorkKind::Judge { feature, generated, instruction, criteria, .. } => {
                place.judge(feature, generated, instruction, criteria).await
            }
            WorkKind::Merge { .. } => workspace.repository()?.merge(&base).await,
            WorkKind::Commit { message, .. } => {
                workspace.repository()?.commit(&self.config, work, message, &base).await
            }
            WorkKind::Discard { feature } => workspace.repository()?.discard(feature, &base).await,
        }
    }
}
