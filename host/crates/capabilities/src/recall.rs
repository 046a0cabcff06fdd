//! Working memory of the run and episodic memory of the project.

use crate::ctx::Ctx;
use crate::gate::Stop;
use crate::remembered::{ranked, relevance};
use longhaul_bindings::imports::recall::{self, RecallError, Remembered, Tier};
use longhaul_bindings::types::LimitHit as BoundLimit;
use longhaul_core::journal::EffectClass;
use longhaul_core::store::{Key, Table};
use serde::{Deserialize, Serialize};

/// Bytes of a key, and of a value.
const KEY_BYTES_MAX: usize = 512;
const VALUE_BYTES_MAX: usize = 64 << 10;

/// A fact as the store holds it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Fact {
    key: String,
    value: String,
    /// Who remembered it.
    plugin: String,
    at_ms: u64,
}

impl recall::Host for Ctx {
    async fn remember(&mut self, tier: Tier, key: String, value: String) -> wasmtime::Result<Result<(), RecallError>> {
        if let Err(refusal) = acceptable(&key, &value) {
            return Ok(Err(refusal));
        }
        let asking = (tier, &key, &value);
        match self.ask_repeatable("recall.remember", key.clone(), &asking, EffectClass::Idempotent).await? {
            Ok(()) => {}
            Err(ticket) => {
                let fact = Fact {
                    key: key.clone(),
                    value,
                    plugin: self.scope.plugin.clone(),
                    at_ms: self.services.clock.now_ms(),
                };
                self.answer_keeping(ticket, Table::Memory, self.tier_key(tier).and(&key), &fact).await?;
            }
        }
        Ok(Ok(()))
    }

    async fn fetch(&mut self, tier: Tier, key: String) -> wasmtime::Result<Result<Option<String>, RecallError>> {
        let value = match self.ask_repeatable("recall.fetch", key.clone(), &(tier, &key), EffectClass::ReadOnly).await?
        {
            Ok(value) => value,
            Err(ticket) => {
                let fact: Option<Fact> = self.record(Table::Memory, &self.tier_key(tier).and(&key))?;
                self.answer(ticket, fact.map(|fact| fact.value)).await?
            }
        };
        Ok(Ok(value))
    }

    async fn search(&mut self, query: String, limit: u32) -> wasmtime::Result<Result<Vec<Remembered>, RecallError>> {
        let found =
            match self.ask_repeatable("recall.search", query.clone(), &(&query, limit), EffectClass::ReadOnly).await? {
                Ok(found) => found,
                Err(ticket) => {
                    let found = self.search_facts(&query, limit)?;
                    self.answer(ticket, found).await?
                }
            };
        Ok(Ok(found))
    }
}

impl Ctx {
    fn tier_key(&self, tier: Tier) -> Key {
        match tier {
            Tier::Working => Key::of("working").and(self.invocation.run().as_str()),
            Tier::Episodic => Key::of("episodic").and(&self.scope.project),
        }
    }

    fn search_facts(&self, query: &str, limit: u32) -> Result<Vec<Remembered>, Stop> {
        let mut facts = Vec::new();
        for tier in [Tier::Working, Tier::Episodic] {
            let found: Vec<Fact> = self.records(Table::Memory, &self.tier_key(tier))?;
            facts.extend(found.into_iter().map(|fact| (tier, fact)));
        }
        let best = ranked(facts, limit, |(_, fact)| relevance(query, &format!("{} {}", fact.key, fact.value)));
        Ok(best
            .into_iter()
            .map(|(score, (tier, fact))| Remembered { key: fact.key, value: fact.value, tier, score })
            .collect())
    }
}

fn acceptable(key: &str, value: &str) -> Result<(), RecallError> {
    for (name, used, max) in
        [("key_bytes_max", key.len(), KEY_BYTES_MAX), ("value_bytes_max", value.len(), VALUE_BYTES_MAX)]
    {
        if used > max {
            return Err(RecallError::Limit(BoundLimit::from(longhaul_core::LimitHit::new(
                name,
                used as u64,
                max as u64,
            ))));
        }
    }
    serde_json::from_str::<serde_json::Value>(value)
        .map(drop)
        .map_err(|error| RecallError::Invalid(format!("the value is not JSON: {error}")))
}
