//! The log of decisions of a project.

use crate::ctx::Ctx;
use crate::remembered::{ranked, relevance};
use longhaul_bindings::imports::decisions::{self, Decision, DecisionError};
use longhaul_core::LimitHit;
use longhaul_core::journal::EffectClass;
use longhaul_core::store::{Key, Table};
use longhaul_core::text::truncate;

/// Bytes of all texts of a decision: as many as of a value in `recall`, since a search reads 2 000 of both.
const DECISION_BYTES_MAX: usize = 64 << 10;

impl decisions::Host for Ctx {
    async fn record(&mut self, decision: Decision) -> wasmtime::Result<Result<String, DecisionError>> {
        let bytes = serde_json::to_vec(&decision).map_or(usize::MAX, |bytes| bytes.len());
        if bytes > DECISION_BYTES_MAX {
            let hit = LimitHit::new("decision_bytes_max", bytes as u64, DECISION_BYTES_MAX as u64);
            return Ok(Err(DecisionError::Limit(hit.into())));
        }
        let summary = truncate(&decision.decision, 120);
        let id = match self.ask_repeatable("decisions.record", summary, &decision, EffectClass::Idempotent).await? {
            Ok(id) => id,
            Err(ticket) => {
                // The ticket's key is the same in every attempt, so a repeated record overwrites itself.
                let id = ticket.key.clone();
                let key = Key::of(&self.scope.project).number(self.services.clock.now_ms()).and(&id);
                self.keep_record(Table::Decisions, key, &decision).await?;
                self.answer(ticket, id).await?
            }
        };
        Ok(Ok(id))
    }

    async fn find(&mut self, query: String, limit: u32) -> wasmtime::Result<Result<Vec<Decision>, DecisionError>> {
        let found = match self
            .ask_repeatable("decisions.find", query.clone(), &(&query, limit), EffectClass::ReadOnly)
            .await?
        {
            Ok(found) => found,
            Err(ticket) => {
                let all: Vec<Decision> = self.records(Table::Decisions, &Key::of(&self.scope.project))?;
                let best = ranked(all, limit, |one| relevance(&query, &described(one)));
                self.answer(ticket, best.into_iter().map(|(_, decision)| decision).collect()).await?
            }
        };
        Ok(Ok(found))
    }
}

fn described(decision: &Decision) -> String {
    let Decision { context, decision: chosen, reasoning, tags, lesson, .. } = decision;
    format!("{context} {chosen} {reasoning} {} {}", tags.join(" "), lesson.as_deref().unwrap_or_default())
}
