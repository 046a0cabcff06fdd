//! The progress of the demo's run, as its journals and its ledger tell it.

use crate::context::Context;
use longhaul_api::journal::ListCarried;
use longhaul_api::operations::{JournalOperations as _, RunOperations as _};
use longhaul_api::runs::{RunRef, ShowRun};
use longhaul_api::wire::onboarding::DemoProgress;
use longhaul_core::RunId;
use longhaul_core::fault;
use longhaul_report::messages;
use std::collections::BTreeMap;
use std::path::Path;

/// The finished work of a run at one moment.
pub(super) struct Account {
    run: RunId,
    /// Each invocation that has finished, with the time of its end in milliseconds.
    ends: BTreeMap<String, u64>,
    /// Replies of models.
    model_calls: u32,
}

impl Account {
    /// Reads it of the newest run of a project. The data directory is free again afterwards.
    pub(super) async fn read(context: &Context, directory: &Path) -> fault::Result<Self> {
        context.client.keep();
        let account = Self::ask(context, directory).await;
        context.client.release().await;
        account
    }

    async fn ask(context: &Context, directory: &Path) -> fault::Result<Self> {
        let run = RunRef::NewestIn(directory.to_owned());
        let status = context.run_status(ShowRun { run: run.clone() }).await?;
        let invocations = context.carried_invocations(ListCarried { run }).await?;
        let ended = invocations.into_iter().filter_map(|one| Some((one.invocation.as_str().to_owned(), one.until_ms?)));
        Ok(Self { run: status.summary.run, ends: ended.collect(), model_calls: status.ledger.total.model_calls })
    }

    pub(super) fn run(&self) -> &RunId {
        &self.run
    }

    pub(super) fn progress(&self) -> DemoProgress {
        DemoProgress { invocations: self.ends.len(), model_calls: self.model_calls }
    }

    /// The progress in words.
    pub(super) fn words(&self) -> String {
        let invocations = messages::counted(self.ends.len(), "finished invocation");
        format!("{invocations}, and {} to the model", messages::counted(self.model_calls, "request"))
    }

    /// The invocations that had finished here and were executed again by then: each has another end there.
    pub(super) fn repeated(&self, later: &Self) -> Vec<String> {
        let again = self.ends.iter().filter(|(invocation, end)| later.ends.get(*invocation) != Some(*end));
        again.map(|(invocation, _)| invocation.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(ends: &[(&str, u64)]) -> Account {
        let ends = ends.iter().map(|(invocation, end)| ((*invocation).to_owned(), *end)).collect();
        Account { run: RunId::from_text("r-1"), ends, model_calls: 1 }
    }

    #[test]
    fn an_invocation_is_repeated_if_it_has_another_end() {
        let before = account(&[("plan", 1), ("generate", 2)]);
        assert_eq!(before.repeated(&account(&[("plan", 1), ("generate", 2), ("judge", 3)])), Vec::<String>::new());
        assert_eq!(before.repeated(&account(&[("plan", 1), ("generate", 3)])), ["generate"]);
        assert_eq!(before.repeated(&account(&[("plan", 1)])), ["generate"]);
    }
}
