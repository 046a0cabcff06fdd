//! The calls of planners and of memory backends; those of the other roles are in `instance.rs`, with
//! what all calls have in common.

use crate::callee::{Called, Start};
use crate::governor::Cancel;
use crate::instance::wrong_role;
use crate::plugin::{Exports, Plugin};
use longhaul_bindings::exports::{memory, planner};
use longhaul_core::memory::{Entry, Hit, MemoryError, Page};
use longhaul_core::work::{Goal, Plan, RoleError, StepResult, Synthesis};

impl Plugin {
    /// Asks a planner for a plan.
    pub async fn plan(&self, start: impl Into<Start>, cancel: &Cancel, goal: Goal) -> Called<Result<Plan, RoleError>> {
        let goal = planner::Goal::from(goal);
        self.call("planner.plan", start, cancel, async move |plugin, store, instance| {
            let Exports::Planner(indices) = &plugin.exports else { return Err(wrong_role()) };
            let answer = indices.load(&mut *store, instance)?.call_plan(store, &goal).await?;
            Ok(answer.map(Plan::from).map_err(RoleError::from))
        })
        .await
    }

    /// Asks a planner for another plan, now that some steps are done.
    pub async fn replan(
        &self,
        start: impl Into<Start>,
        cancel: &Cancel,
        goal: Goal,
        plan: Plan,
        results: Vec<StepResult>,
    ) -> Called<Result<Plan, RoleError>> {
        let (goal, plan) = (planner::Goal::from(goal), planner::WorkPlan::from(plan));
        let results: Vec<planner::StepResult> = results.into_iter().map(Into::into).collect();
        self.call("planner.replan", start, cancel, async move |plugin, store, instance| {
            let Exports::Planner(indices) = &plugin.exports else { return Err(wrong_role()) };
            let answer = indices.load(&mut *store, instance)?.call_replan(store, &goal, &plan, &results).await?;
            Ok(answer.map(Plan::from).map_err(RoleError::from))
        })
        .await
    }

    /// Asks a planner for an answer to the goal, made of the results.
    pub async fn synthesize(
        &self,
        start: impl Into<Start>,
        cancel: &Cancel,
        goal: Goal,
        results: Vec<StepResult>,
    ) -> Called<Result<Synthesis, RoleError>> {
        let goal = planner::Goal::from(goal);
        let results: Vec<planner::StepResult> = results.into_iter().map(Into::into).collect();
        self.call("planner.synthesize", start, cancel, async move |plugin, store, instance| {
            let Exports::Planner(indices) = &plugin.exports else { return Err(wrong_role()) };
            let answer = indices.load(&mut *store, instance)?.call_synthesize(store, &goal, &results).await?;
            Ok(answer.map(Synthesis::from).map_err(RoleError::from))
        })
        .await
    }

    /// Has a memory backend keep an entry, in place of one with the same key.
    pub async fn put(
        &self,
        start: impl Into<Start>,
        cancel: &Cancel,
        namespace: &str,
        entry: Entry,
    ) -> Called<Result<(), MemoryError>> {
        let entry = memory::Entry::from(entry);
        self.call("memory.put", start, cancel, async move |plugin, store, instance| {
            let Exports::Memory(indices) = &plugin.exports else { return Err(wrong_role()) };
            let answer = indices.load(&mut *store, instance)?.call_put(store, namespace, &entry).await?;
            Ok(answer.map_err(MemoryError::from))
        })
        .await
    }

    /// The entry of a key, if there is one that has not expired.
    pub async fn get(
        &self,
        start: impl Into<Start>,
        cancel: &Cancel,
        namespace: &str,
        key: &str,
    ) -> Called<Result<Option<Entry>, MemoryError>> {
        self.call("memory.get", start, cancel, async move |plugin, store, instance| {
            let Exports::Memory(indices) = &plugin.exports else { return Err(wrong_role()) };
            let answer = indices.load(&mut *store, instance)?.call_get(store, namespace, key).await?;
            Ok(answer.map(|found| found.map(Entry::from)).map_err(MemoryError::from))
        })
        .await
    }

    /// At most `limit` entries that fit `query`, the best first.
    pub async fn search(
        &self,
        start: impl Into<Start>,
        cancel: &Cancel,
        namespace: &str,
        query: &str,
        limit: u32,
    ) -> Called<Result<Vec<Hit>, MemoryError>> {
        self.call("memory.search", start, cancel, async move |plugin, store, instance| {
            let Exports::Memory(indices) = &plugin.exports else { return Err(wrong_role()) };
            let answer = indices.load(&mut *store, instance)?.call_search(store, namespace, query, limit).await?;
            Ok(answer.map(|hits| hits.into_iter().map(Hit::from).collect()).map_err(MemoryError::from))
        })
        .await
    }

    /// Whether there was an entry to delete.
    pub async fn delete(
        &self,
        start: impl Into<Start>,
        cancel: &Cancel,
        namespace: &str,
        key: &str,
    ) -> Called<Result<bool, MemoryError>> {
        self.call("memory.delete", start, cancel, async move |plugin, store, instance| {
            let Exports::Memory(indices) = &plugin.exports else { return Err(wrong_role()) };
            let answer = indices.load(&mut *store, instance)?.call_delete(store, namespace, key).await?;
            Ok(answer.map_err(MemoryError::from))
        })
        .await
    }

    /// At most `limit` keys that start with `prefix`, from the one behind `after`.
    pub async fn list(
        &self,
        start: impl Into<Start>,
        cancel: &Cancel,
        namespace: &str,
        prefix: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Called<Result<Page, MemoryError>> {
        self.call("memory.list", start, cancel, async move |plugin, store, instance| {
            let Exports::Memory(indices) = &plugin.exports else { return Err(wrong_role()) };
            let answer = indices.load(&mut *store, instance)?.call_list(store, namespace, prefix, after, limit).await?;
            Ok(answer.map(Page::from).map_err(MemoryError::from))
        })
        .await
    }
}
