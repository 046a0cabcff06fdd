//! One piece of work: what people hear before it starts, and who carries it out.

use super::Stage;
use super::choose::CHOOSER;
use super::ending::Ended;
use super::place::Place;
use longhaul_core::InvocationId;
use longhaul_core::event::Event;
use longhaul_core::fault::{self, bail};
use longhaul_engine::Cancel;
use longhaul_harness::{Job, State, Work};
use longhaul_records::invocation::CHOICE;

impl Stage {
    /// What people hear before work starts.
    pub fn announcement(&self, work: &Work) -> Option<Event> {
        let (table, export, round) = match &work.job {
            Job::Plan { .. } => ("planner".to_owned(), "planner.plan", 1),
            Job::Replan { .. } => ("planner".to_owned(), "planner.replan", 1),
            Job::Synthesize { .. } => ("planner".to_owned(), "planner.synthesize", 1),
            Job::Propose { agent, .. } => (format!("agents.{agent}"), "agent.run", 0),
            Job::Generate { agent, round, .. } => (format!("agents.{agent}"), "agent.run", *round),
            Job::Agree { .. } => ("evaluator".to_owned(), "evaluator.judge", 0),
            Job::Judge { round, .. } => ("evaluator".to_owned(), "evaluator.judge", *round),
            Job::Choose { .. } => (CHOOSER.to_owned(), CHOICE, 0),
            Job::TryChecks { .. }
            | Job::Prepare { .. }
            | Job::Merge { .. }
            | Job::Commit { .. }
            | Job::Discard { .. } => return None,
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

    /// Carries one piece of work out.
    pub async fn perform(&self, work: &Work, state: &State, cancel: &Cancel) -> Ended {
        self.host.crash.reach("work.start");
        let done = self.carry_out(work, state, cancel).await;
        self.host.crash.reach("work.end");
        done.unwrap_or_else(|error| Ended::failed(format!("{error:#}")))
    }

    async fn carry_out(&self, work: &Work, state: &State, cancel: &Cancel) -> fault::Result<Ended> {
        self.ledger.set_caps(&state.limits);
        if let Job::Choose { system, prompt, among, .. } = &work.job {
            return self.choose(work, system, prompt, among, cancel).await;
        }
        let (desk, base) = self.desk_of(state, work).await?;
        // A session that an earlier version began, or one that was not prepared, is compared with the tip.
        let base = match base {
            Some(base) => base,
            None => desk.repository()?.tip().await?,
        };
        let place = Place { stage: self, desk: &desk, base: &base, work, state, cancel };
        match &work.job {
            Job::Choose { .. } => bail!("a choice is made without a desk"),
            Job::Plan { goal } => place.plan(goal.clone()).await,
            Job::Replan { goal, plan, results } => place.replan(goal.clone(), plan.clone(), results).await,
            Job::Synthesize { goal, results } => place.synthesize(goal.clone(), results).await,
            Job::Propose { agent, task, .. } => place.propose(agent, task.clone()).await,
            Job::TryChecks { plan, proposed, .. } => place.try_checks(plan, proposed).await,
            Job::Prepare { checks, .. } => place.prepare(checks).await,
            Job::Agree { instruction, output, criteria, .. } => {
                place.ask_evaluator(instruction, output, criteria).await
            }
            Job::Generate { agent, task, .. } => place.generate(agent, task.clone()).await,
            Job::Judge { feature, generated, instruction, criteria, .. } => {
                place.judge(feature, generated, instruction, criteria).await
            }
            Job::Merge { .. } => desk.repository()?.merge(&base).await,
            Job::Commit { message, .. } => desk.repository()?.commit(&self.config, work, message, &base).await,
            Job::Discard { feature } => desk.repository()?.discard(feature, &base).await,
        }
    }
}
