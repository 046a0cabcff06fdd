//! What was done, for whoever works on the project next.

use crate::ctx::Ctx;
use longhaul_bindings::imports::progress::{self, ProgressError};
use longhaul_core::journal::EffectClass;
use longhaul_core::store::{Key, Table};
use longhaul_core::text::truncate;
use serde_json::json;

/// Bytes of one text of an entry; the rest is cut.
const TEXT_BYTES_MAX: usize = 4_096;
/// Files that one entry names; the rest is left out.
const FILES_MAX: usize = 100;

impl progress::Host for Ctx {
    async fn log(
        &mut self,
        action: String,
        outcome: String,
        files: Vec<String>,
    ) -> wasmtime::Result<Result<(), ProgressError>> {
        self.note_phase();
        let summary = truncate(&action, 120);
        match self
            .ask_repeatable("progress.log", summary, &(&action, &outcome, &files), EffectClass::Idempotent)
            .await?
        {
            Ok(()) => {}
            Err(ticket) => {
                let at_ms = self.services.clock.now_ms();
                let entry = json!({
                    "at_ms": at_ms,
                    "plugin": self.scope.plugin,
                    "action": truncate(&action, TEXT_BYTES_MAX),
                    "outcome": truncate(&outcome, TEXT_BYTES_MAX),
                    "files": files.iter().take(FILES_MAX).map(|file| truncate(file, TEXT_BYTES_MAX)).collect::<Vec<_>>(),
                });
                let key = Key::of(&self.scope.project).number(at_ms).and(&ticket.key);
                self.answer_keeping(ticket, Table::Progress, key, &entry).await?;
            }
        }
        Ok(Ok(()))
    }
}
