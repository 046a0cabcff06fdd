//! The calls of planners and of memory backends; `instance.rs` has those of the other roles, and the code that all
//! calls share.

use crate::callee::{CallStart, Called};
use crate::edition::{Exports, MemorySpace};
use crate::governor::Cancel;
use crate::instance::wrong_role;
use crate::plugin::Plugin;
use longhaul_core::memory::{KeyPage, MemoryEntry, MemoryError, MemoryHit};
use longhaul_core::work::{Goal, Plan, RoleError, StepResult, Synthesis};

impl Plugin {
    /// Asks a planner for a plan.
    pub async fn plan(
        &self,
        start: impl Into<CallStart>,
        cancel: &Cancel,
        goal: Goal,
    ) -> Called<Result<Plan, RoleError>> {
        self.call("planner.plan", start, cancel, async move |exports, guest| {
            let Exports::Planner(planner) = exports else { return Err(wrong_role()) };
            planner.plan(guest, goal).await
        })
        .await
    }

    /// Asks a planner for another plan, now that some steps are done.
    pub async fn replan(
        &self,
        start: impl Into<CallStart>,
        cancel: &Cancel,
        goal: Goal,
        plan: Plan,
        results: Vec<StepResult>,
    ) -> Called<Result<Plan, RoleError>> {
        self.call("planner.replan", start, cancel, async move |exports, guest| {
            let Exports::Planner(planner) = exports else { return Err(wrong_role()) };
            planner.replan(guest, goal, plan, results).await
        })
        .await
    }

    /// Asks a planner for an answer to the goal, made of the results.
    pub async fn synthesize(
        &self,
        start: impl Into<CallStart>,
        cancel: &Cancel,
        goal: Goal,
        results: Vec<StepResult>,
    ) -> Called<Result<Synthesis, RoleError>> {
        self.call("planner.synthesize", start, cancel, async move |exports, guest| {
            let Exports::Planner(planner) = exports else { return Err(wrong_role()) };
            planner.synthesize(guest, goal, results).await
        })
        .await
    }

    /// Asks a memory backend to store an entry, in place of one with the same key.
    pub async fn put(
        &self,
        start: impl Into<CallStart>,
        cancel: &Cancel,
        space: MemorySpace<'_>,
        entry: MemoryEntry,
    ) -> Called<Result<(), MemoryError>> {
        self.call("memory.put", start, cancel, async move |exports, guest| {
            let Exports::Memory(memory) = exports else { return Err(wrong_role()) };
            memory.put(guest, space, entry).await
        })
        .await
    }

    /// The entry of a key, if there is one that has not expired.
    pub async fn get(
        &self,
        start: impl Into<CallStart>,
        cancel: &Cancel,
        space: MemorySpace<'_>,
        key: &str,
    ) -> Called<Result<Option<MemoryEntry>, MemoryError>> {
        self.call("memory.get", start, cancel, async move |exports, guest| {
            let Exports::Memory(memory) = exports else { return Err(wrong_role()) };
            memory.get(guest, space, key).await
        })
        .await
    }

    /// At most `limit` entries that fit `query`, the best first.
    pub async fn search(
        &self,
        start: impl Into<CallStart>,
        cancel: &Cancel,
        space: MemorySpace<'_>,
        query: &str,
        limit: u32,
    ) -> Called<Result<Vec<MemoryHit>, MemoryError>> {
        self.call("memory.search", start, cancel, async move |exports, guest| {
            let Exports::Memory(memory) = exports else { return Err(wrong_role()) };
            memory.search(guest, space, query, limit).await
        })
        .await
    }

    /// Deletes an entry. True when there was one.
    pub async fn delete(
        &self,
        start: impl Into<CallStart>,
        cancel: &Cancel,
        space: MemorySpace<'_>,
        key: &str,
    ) -> Called<Result<bool, MemoryError>> {
        self.call("memory.delete", start, cancel, async move |exports, guest| {
            let Exports::Memory(memory) = exports else { return Err(wrong_role()) };
            memory.delete(guest, space, key).await
        })
        .await
    }

    /// At most `limit` keys that start with `prefix`, from the one behind `after`.
    pub async fn list(
        &self,
        start: impl Into<CallStart>,
        cancel: &Cancel,
        space: MemorySpace<'_>,
        prefix: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Called<Result<KeyPage, MemoryError>> {
        self.call("memory.list", start, cancel, async move |exports, guest| {
            let Exports::Memory(memory) = exports else { return Err(wrong_role()) };
            memory.list(guest, space, prefix, after, limit).await
        })
        .await
    }
}
