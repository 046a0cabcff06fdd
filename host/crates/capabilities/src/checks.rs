//! Runs the pinned checks. The caller can neither change nor add one.

use crate::ctx::Ctx;
use longhaul_bindings::imports::checks;
use longhaul_core::journal::EffectClass;
use longhaul_core::text::truncate;
use longhaul_core::tool::{CheckError, CheckInfo};
use longhaul_core::work::CheckReport;

impl checks::Host for Ctx {
    async fn list(&mut self) -> wasmtime::Result<Vec<checks::CheckInfo>> {
        // An entry, since an operator's edit between two attempts may change the answer.
        let infos: Vec<CheckInfo> =
            match self.ask_repeatable("checks.list", String::new(), &(), EffectClass::ReadOnly).await? {
                Ok(infos) => infos,
                Err(handle) => {
                    let infos = self.services.checks.list();
                    self.answer(handle, infos).await?
                }
            };
        Ok(infos.into_iter().map(checks::CheckInfo::from).collect())
    }

    async fn run(&mut self, name: String) -> wasmtime::Result<Result<checks::CheckReport, checks::CheckError>> {
        let summary = truncate(&name, 120);
        let report: Result<CheckReport, CheckError> =
            match self.ask_repeatable("checks.run", summary, &name, EffectClass::ReadOnly).await? {
                Ok(report) => report,
                Err(handle) => {
                    let begun_ms = self.services.clock.now_ms();
                    let report = self.services.checks.run(&name).await;
                    let took_ms = self.services.clock.now_ms().saturating_sub(begun_ms);
                    let duration_ms = u32::try_from(took_ms).unwrap_or(u32::MAX);
                    self.answer(handle, report.map(|report| CheckReport { duration_ms, ..report })).await?
                }
            };
        Ok(report.map(checks::CheckReport::from).map_err(checks::CheckError::from))
    }
}
