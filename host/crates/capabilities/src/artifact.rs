//! The artifact that an agent passes to its next run.

use crate::ctx::Ctx;
use longhaul_bindings::imports::artifact::{self, ArtifactError, SavedArtifact};
use longhaul_core::LimitHit;
use longhaul_core::journal::EffectClass;
use longhaul_core::store::{Key, Table};
use serde::{Deserialize, Serialize};

/// Bytes of the state. Default of the contract, so that an artifact never needs a blob.
const STATE_BYTES_MAX: usize = 1 << 20;

/// Bytes of the summary, which people read.
const SUMMARY_BYTES_MAX: usize = 64 << 10;

/// An artifact as stores and journals hold it. The names are those of the first data directories, whatever the contract
/// calls the fields.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct StoredArtifact {
    #[serde(rename = "run_number")]
    save_number: u32,
    state: String,
    summary: String,
}

impl From<StoredArtifact> for SavedArtifact {
    fn from(StoredArtifact { save_number, state, summary }: StoredArtifact) -> Self {
        Self { save_number, state, summary }
    }
}

impl artifact::Host for Ctx {
    async fn load(&mut self) -> wasmtime::Result<Result<Option<SavedArtifact>, ArtifactError>> {
        let known = self.ask_repeatable("artifact.load", String::new(), &(), EffectClass::ReadOnly).await?;
        let stored: Option<StoredArtifact> = match known {
            Ok(stored) => stored,
            Err(handle) => {
                let stored = self.record(Table::Artifacts, &self.artifact_key())?;
                self.answer(handle, stored).await?
            }
        };
        Ok(Ok(stored.map(SavedArtifact::from)))
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
        let save_number: u32 = match known {
            Ok(number) => number,
            Err(handle) => {
                let last: Option<StoredArtifact> = self.record(Table::Artifacts, &self.artifact_key())?;
                self.answer(handle, last.map_or(0, |last| last.save_number).saturating_add(1)).await?
            }
        };
        let stored = StoredArtifact { save_number, state, summary };
        match self.ask_repeatable("artifact.save", String::new(), &stored, EffectClass::Idempotent).await? {
            Ok(()) => {}
            Err(handle) => {
                self.answer_keeping(handle, Table::Artifacts, self.artifact_key(), &stored).await?;
            }
        }
        Ok(Ok(()))
    }
}

impl Ctx {
    fn artifact_key(&self) -> Key {
        Key::of(&self.scope.project).and(&self.scope.plugin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_artifact_is_stored_as_in_the_first_data_directories() {
        let stored = StoredArtifact { save_number: 3, state: "{}".into(), summary: "half".into() };
        let text = r#"{"run_number":3,"state":"{}","summary":"half"}"#;
        assert_eq!(serde_json::to_string(&stored).unwrap(), text);
        assert_eq!(serde_json::from_str::<StoredArtifact>(text).unwrap(), stored);
    }
}
