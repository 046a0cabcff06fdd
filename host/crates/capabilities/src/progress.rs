//! The log of finished work, for later sessions of the project.

use crate::counted::StoredReply;
use crate::ctx::Ctx;
use longhaul_bindings::imports::progress::{self, ProgressError};
use longhaul_core::counted::CountedKind;
use longhaul_core::journal::EffectClass;
use longhaul_core::store::{Batch, Key, Table};
use longhaul_core::text::truncate;
use serde_json::json;

/// Bytes of one text of an entry; the rest is cut.
const TEXT_BYTES_MAX: usize = 4_096;
/// Files that one entry names; the rest is left out.
const FILES_MAX: usize = 100;

impl progress::Host for Ctx {
    async fn add(
        &mut self,
        action: String,
        outcome: String,
        files: Vec<String>,
    ) -> wasmtime::Result<Result<(), ProgressError>> {
        self.note_phase();
        let summary = truncate(&action, 120);
        let asking = (&action, &outcome, &files);
        // The name that the entries of journals have had from the first on.
        let known = self.ask_repeatable("progress.log", summary, &asking, EffectClass::Idempotent).await?;
        let answer: StoredReply<()> = match known {
            Ok(answer) => answer,
            Err(handle) => {
                let at_ms = self.services.clock.now_ms();
                let entry = json!({
                    "at_ms": at_ms,
                    "plugin": self.scope.plugin,
                    "action": truncate(&action, TEXT_BYTES_MAX),
                    "outcome": truncate(&outcome, TEXT_BYTES_MAX),
                    "files": files.iter().take(FILES_MAX).map(|file| truncate(file, TEXT_BYTES_MAX)).collect::<Vec<_>>(),
                });
                let entry = entry.to_string();
                let key = Key::of(&self.scope.project).number(at_ms).and(&handle.key);
                match self.room(CountedKind::Progress, entry.len() as u64, None).await? {
                    Ok(room) => {
                        let batch = Batch::new().put(Table::Progress, key, entry);
                        self.answer_with(handle, StoredReply::Fine(()), room.counted(batch)).await?
                    }
                    Err(refused) => self.answer(handle, StoredReply::Refused { refused }).await?,
                }
            }
        };
        Ok(answer.into_result().map_err(|hit| ProgressError::Limit(hit.into())))
    }
}
