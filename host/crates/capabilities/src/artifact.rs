//! The artifact that an agent passes to its next run.

use crate::ctx::Ctx;
use longhaul_bindings::imports::artifact::{self, ArtifactError, Handoff};
use longhaul_core::LimitHit;
use longhaul_core::journal::EffectClass;
use longhaul_core::store::{Key, Table};

/// Bytes of the state. Default of the contract, so that an artifact never needs a blob.
const STATE_BYTES_MAX: usize = 1 << 20;

/// Bytes of the summary, which people read.
const SUMMARY_BYTES_MAX: usize = 64 << 10;

impl artifact::Host for Ctx {
    async fn load(&mut self) -> wasmtime::Result<Result<Option<Handoff>, ArtifactError>> {
        let handoff = match self.ask_repeatable("artifact.load", String::new(), &(), EffectClass::ReadOnly).await? {
            Ok(handoff) => handoff,
            Err(handle) => {
                let handoff: Option<Handoff> = self.record(Table::Artifacts, &self.handoff_key())?;
                self.answer(handle, handoff).await?
            }
        };
        Ok(Ok(handoff))
    }

    async fn save(&mut self, state: String, summary: String) -> wasmtime::Result<Result<(), ArtifactError>> {
        if state.len() > STATE_BYTES_MAX {
            let hit = LimitHit::new("state_bytes_max", state.len() as u64, STATE_BYTES_MAX as u64);
            return Ok(Err(ArtifactError::Limit(hit.into())));
        }
        if summary.len() > SUMMARY_BYTES_MAX {
            let hit = LimitHit::new("summary_bytes_max", summary.len() as u64, SUMMARY_BYTES_MAX as u64);
            return Ok(Err(ArtifactError::Limit(hit.into())));
        }
        if let Err(error) = serde_json::from_str::<serde_json::Value>(&state) {
            return Ok(Err(ArtifactError::Invalid(format!("the state is not JSON: {error}"))));
        }
        self.note_phase();
        // The number is an answer of the journal, so that a repeated save does not count twice.
        let known = self.ask_repeatable("artifact.number", String::new(), &(), EffectClass::ReadOnly).await?;
        let run_number: u32 = match known {
            Ok(number) => number,
            Err(handle) => {
                let last: Option<Handoff> = self.record(Table::Artifacts, &self.handoff_key())?;
                self.answer(handle, last.map_or(0, |handoff| handoff.run_number).saturating_add(1)).await?
            }
        };
        let handoff = Handoff { run_number, state, summary };
        match self.ask_repeatable("artifact.save", String::new(), &handoff, EffectClass::Idempotent).await? {
            Ok(()) => {}
            Err(handle) => {
                self.answer_keeping(handle, Table::Artifacts, self.handoff_key(), &handoff).await?;
            }
        }
        Ok(Ok(()))
    }
}

impl Ctx {
    fn handoff_key(&self) -> Key {
        Key::of(&self.scope.project).and(&self.scope.plugin)
    }
}
