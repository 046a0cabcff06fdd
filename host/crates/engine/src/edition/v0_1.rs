//! The edition `0.1`: the bindings' own version of the contract, in the types of the host.
//!
//! Each call loads the functions of the instance, converts, calls and converts back. This module decides nothing.

use super::{
    AgentExports, CallContext, Edition, EvaluatorExports, ExportAnswer, Exports, GuestInstance, MemoryExports,
    MemorySpace, PlannerExports, ToolExports,
};
use crate::role::Role;
use async_trait::async_trait;
use longhaul_bindings::exports::{agent, evaluator, memory, planner, tool};
use longhaul_bindings::{VERSION, types};
use longhaul_capabilities::Ctx;
use longhaul_core::memory::{KeyPage, MemoryEntry, MemoryError, MemoryHit};
use longhaul_core::tool::{ToolCall, ToolError, ToolInfo, ToolOutput, Verification};
use longhaul_core::work::{Goal, Outcome, Plan, RoleError, Rubric, StepResult, Subject, Synthesis, Task, Verdict};
use wasmtime::component::{InstancePre, Linker};

/// The version of the contract in `wit/v0.1`.
#[derive(Clone, Copy, Debug)]
pub struct V0_1;

impl Edition for V0_1 {
    fn version(&self) -> &str {
        VERSION
    }

    fn link(&self, role: Role, linker: &mut Linker<Ctx>) -> wasmtime::Result<()> {
        role.capabilities().iter().try_for_each(|capability| capability.add_to_linker(linker))
    }

    fn exports(&self, role: Role, pre: &InstancePre<Ctx>) -> wasmtime::Result<Exports> {
        Ok(match role {
            Role::Planner => Exports::Planner(Box::new(planner::GuestIndices::new(pre)?)),
            Role::Agent => Exports::Agent(Box::new(agent::GuestIndices::new(pre)?)),
            Role::Evaluator => Exports::Evaluator(Box::new(evaluator::GuestIndices::new(pre)?)),
            Role::Tool => Exports::Tool(Box::new(tool::GuestIndices::new(pre)?)),
            Role::Memory => Exports::Memory(Box::new(memory::GuestIndices::new(pre)?)),
        })
    }
}

#[async_trait]
impl PlannerExports for planner::GuestIndices {
    async fn plan(
        &self,
        GuestInstance { store, instance }: GuestInstance<'_>,
        goal: Goal,
    ) -> ExportAnswer<Plan, RoleError> {
        let answer = self.load(&mut *store, instance)?.call_plan(store, &goal.into()).await?;
        Ok(answer.map_err(RoleError::from).and_then(Plan::try_from))
    }

    async fn replan(
        &self,
        GuestInstance { store, instance }: GuestInstance<'_>,
        goal: Goal,
        plan: Plan,
        results: Vec<StepResult>,
    ) -> ExportAnswer<Plan, RoleError> {
        let (goal, plan, results) = (goal.into(), plan.into(), results_of(results));
        let answer = self.load(&mut *store, instance)?.call_replan(store, &goal, &plan, &results).await?;
        Ok(answer.map_err(RoleError::from).and_then(Plan::try_from))
    }

    async fn synthesize(
        &self,
        GuestInstance { store, instance }: GuestInstance<'_>,
        goal: Goal,
        results: Vec<StepResult>,
    ) -> ExportAnswer<Synthesis, RoleError> {
        let (goal, results) = (goal.into(), results_of(results));
        let answer = self.load(&mut *store, instance)?.call_synthesize(store, &goal, &results).await?;
        Ok(answer.map(Synthesis::from).map_err(RoleError::from))
    }
}

fn results_of(results: Vec<StepResult>) -> Vec<planner::PlanStepResult> {
    results.into_iter().map(planner::PlanStepResult::from).collect()
}

#[async_trait]
impl AgentExports for agent::GuestIndices {
    async fn run(
        &self,
        GuestInstance { store, instance }: GuestInstance<'_>,
        task: Task,
    ) -> ExportAnswer<Outcome, RoleError> {
        let answer = self.load(&mut *store, instance)?.call_run(store, &types::Task::from(task)).await?;
        Ok(answer.map(Outcome::from).map_err(RoleError::from))
    }
}

#[async_trait]
impl EvaluatorExports for evaluator::GuestIndices {
    async fn judge(
        &self,
        GuestInstance { store, instance }: GuestInstance<'_>,
        subject: Subject,
        rubric: Rubric,
    ) -> ExportAnswer<Verdict, RoleError> {
        let (subject, rubric) = (subject.into(), rubric.into());
        let answer = self.load(&mut *store, instance)?.call_judge(store, &subject, &rubric).await?;
        Ok(answer.map(Verdict::from).map_err(RoleError::from))
    }
}

#[async_trait]
impl ToolExports for tool::GuestIndices {
    async fn describe(
        &self,
        GuestInstance { store, instance }: GuestInstance<'_>,
        settings: &serde_json::Value,
    ) -> ExportAnswer<ToolInfo, ToolError> {
        let settings = settings.to_string();
        let answer = self.load(&mut *store, instance)?.call_describe(store, &settings).await?;
        Ok(answer.map(ToolInfo::from).map_err(ToolError::from))
    }

    async fn prepare(
        &self,
        GuestInstance { store, instance }: GuestInstance<'_>,
        ToolCall { function, arguments, .. }: &ToolCall,
        about: &CallContext,
    ) -> ExportAnswer<String, ToolError> {
        let context = context_of(about);
        let answer = self.load(&mut *store, instance)?.call_prepare(store, function, arguments, &context).await?;
        Ok(answer.map_err(ToolError::from))
    }

    async fn verify(
        &self,
        GuestInstance { store, instance }: GuestInstance<'_>,
        ToolCall { function, arguments, .. }: &ToolCall,
        prepared: &str,
        about: &CallContext,
    ) -> ExportAnswer<Verification, ToolError> {
        let (prepared, context) = (prepared.to_owned(), context_of(about));
        let guest = self.load(&mut *store, instance)?;
        let answer = guest.call_verify(store, function, arguments, &prepared, &context).await?;
        Ok(answer.map(Verification::from).map_err(ToolError::from))
    }

    async fn call(
        &self,
        GuestInstance { store, instance }: GuestInstance<'_>,
        ToolCall { function, arguments, .. }: &ToolCall,
        about: &CallContext,
    ) -> ExportAnswer<ToolOutput, ToolError> {
        let context = context_of(about);
        let answer = self.load(&mut *store, instance)?.call_call(store, function, arguments, &context).await?;
        Ok(answer.map(ToolOutput::from).map_err(ToolError::from))
    }
}

fn context_of(about: &CallContext) -> tool::CallContext {
    tool::CallContext {
        idempotency_key: about.idempotency_key.clone(),
        remaining_ms: about.remaining_ms,
        attempt: about.attempt,
        settings: about.settings.to_string(),
    }
}

fn memory_context_of(space: MemorySpace<'_>) -> memory::MemoryContext {
    memory::MemoryContext { settings: space.settings.to_string() }
}

#[async_trait]
impl MemoryExports for memory::GuestIndices {
    async fn put(
        &self,
        GuestInstance { store, instance }: GuestInstance<'_>,
        space: MemorySpace<'_>,
        entry: MemoryEntry,
    ) -> ExportAnswer<(), MemoryError> {
        let context = memory_context_of(space);
        let answer =
            self.load(&mut *store, instance)?.call_put(store, space.namespace, &entry.into(), &context).await?;
        Ok(answer.map_err(MemoryError::from))
    }

    async fn get(
        &self,
        GuestInstance { store, instance }: GuestInstance<'_>,
        space: MemorySpace<'_>,
        key: &str,
    ) -> ExportAnswer<Option<MemoryEntry>, MemoryError> {
        let context = memory_context_of(space);
        let answer = self.load(&mut *store, instance)?.call_get(store, space.namespace, key, &context).await?;
        Ok(answer.map(|found| found.map(MemoryEntry::from)).map_err(MemoryError::from))
    }

    async fn search(
        &self,
        GuestInstance { store, instance }: GuestInstance<'_>,
        space: MemorySpace<'_>,
        query: &str,
        limit: u32,
    ) -> ExportAnswer<Vec<MemoryHit>, MemoryError> {
        let context = memory_context_of(space);
        let answer =
            self.load(&mut *store, instance)?.call_search(store, space.namespace, query, limit, &context).await?;
        Ok(answer.map(|hits| hits.into_iter().map(MemoryHit::from).collect()).map_err(MemoryError::from))
    }

    async fn delete(
        &self,
        GuestInstance { store, instance }: GuestInstance<'_>,
        space: MemorySpace<'_>,
        key: &str,
    ) -> ExportAnswer<bool, MemoryError> {
        let context = memory_context_of(space);
        let answer = self.load(&mut *store, instance)?.call_delete(store, space.namespace, key, &context).await?;
        Ok(answer.map_err(MemoryError::from))
    }

    async fn list(
        &self,
        GuestInstance { store, instance }: GuestInstance<'_>,
        space: MemorySpace<'_>,
        prefix: &str,
        after: Option<&str>,
        limit: u32,
    ) -> ExportAnswer<KeyPage, MemoryError> {
        let context = memory_context_of(space);
        let guest = self.load(&mut *store, instance)?;
        let answer = guest.call_list(store, space.namespace, prefix, after, limit, &context).await?;
        Ok(answer.map(KeyPage::from).map_err(MemoryError::from))
    }
}
