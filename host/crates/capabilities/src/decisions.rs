//! The log of decisions of a project.

mod stored;

use crate::counted::StoredReply;
use crate::ctx::Ctx;
use crate::stop::Stop;
use longhaul_bindings::imports::decisions::{self, Decision, DecisionError, FoundDecision};
use longhaul_core::LimitHit;
use longhaul_core::counted::CountedKind;
use longhaul_core::decision::{self, relevant};
use longhaul_core::journal::{EffectClass, EntryHandle};
use longhaul_core::store::Batch;
use longhaul_core::text::truncate;
use std::sync::Arc;
use stored::{StoredDecision, StoredFound};

/// Bytes of all texts of a decision: as many as of a value in `recall`, since a search reads 2 000 of both.
const DECISION_BYTES_MAX: usize = 64 << 10;

/// Newest decisions that a search considers. Older ones are not found.
const SEARCHED_MAX: usize = 2_000;

impl decisions::Host for Ctx {
    async fn record(&mut self, decision: Decision) -> wasmtime::Result<Result<String, DecisionError>> {
        let decision = StoredDecision::from(decision);
        let bytes = serde_json::to_vec(&decision).map_or(usize::MAX, |bytes| bytes.len());
        if bytes > DECISION_BYTES_MAX {
            let hit = LimitHit::new("decision_bytes_max", bytes as u64, DECISION_BYTES_MAX as u64);
            return Ok(Err(DecisionError::Limit(hit.into())));
        }
        self.note_decision();
        let summary = truncate(&decision.decision, 120);
        let known = self.ask_repeatable("decisions.record", summary, &decision, EffectClass::Idempotent).await?;
        let answer = match known {
            Ok(answer) => answer,
            Err(handle) => self.keep_decision(handle, decision, bytes as u64).await?,
        };
        Ok(answer.into_result().map_err(|hit| DecisionError::Limit(hit.into())))
    }

    async fn find(&mut self, query: String, limit: u32) -> wasmtime::Result<Result<Vec<FoundDecision>, DecisionError>> {
        self.note_decision();
        let found: Vec<StoredFound> = match self
            .ask_repeatable("decisions.find", query.clone(), &(&query, limit), EffectClass::ReadOnly)
            .await?
        {
            Ok(found) => found,
            Err(handle) => {
                let newest = decision::newest(&*self.services.store, &self.scope.project, SEARCHED_MAX);
                let best = relevant(newest.map_err(broken)?, &query, self.services.clock.now_ms(), limit as usize);
                self.answer(handle, best.into_iter().map(|hit| hit.decision.into()).collect()).await?
            }
        };
        Ok(Ok(found.into_iter().map(FoundDecision::from).collect()))
    }
}

impl Ctx {
    /// Stores a decision, or returns the cap that is full.
    async fn keep_decision(
        &mut self,
        handle: EntryHandle,
        decision: StoredDecision,
        bytes: u64,
    ) -> Result<StoredReply<String>, Stop> {
        // The handle's key is the same in every attempt, so a repeated record overwrites itself.
        let id = handle.key.clone();
        let kept = self.kept(&id, decision);
        let (store, project) = (Arc::clone(&self.services.store), self.scope.project.clone());
        let before = decision::get(&*store, &project, &id).map_err(broken)?.map(|_| bytes);
        match self.room(CountedKind::Decisions, bytes, before).await? {
            Ok(room) => {
                let batch = decision::put(&*store, Batch::new(), &project, &kept).map_err(broken)?;
                self.answer_with(handle, StoredReply::Fine(id), room.counted(batch)).await
            }
            Err(refused) => self.answer(handle, StoredReply::Refused { refused }).await,
        }
    }

    /// The decision as it is kept.
    fn kept(&self, id: &str, decision: StoredDecision) -> decision::Decision {
        let StoredDecision { context, decision, reasoning, tags, outcome, lesson } = decision;
        decision::Decision {
            id: id.to_owned(),
            at_ms: self.services.clock.now_ms(),
            run: self.invocation.run().to_string(),
            feature: self.invocation.feature().map(str::to_owned),
            by: self.scope.plugin.clone(),
            context,
            decision,
            reasoning,
            tags,
            outcome,
            score: None,
            lesson,
        }
    }
}

fn broken(error: impl std::fmt::Display) -> Stop {
    Stop::Broken(error.to_string())
}
