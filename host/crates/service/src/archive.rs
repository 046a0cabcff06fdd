//! The archive of runs: a mark on a run, by which lists leave it out unless they are asked for archived runs.
//!
//! An archived run keeps its rows, its tree and its branch, counts in costs and metrics, and expires as any other run.
//! This file refuses to archive a run that works or waits, since nobody would see that it does; a resume takes a run
//! out.

use super::{RunRef, Service};
use longhaul_api::runs::AffectedRun;
use longhaul_core::RunId;
use longhaul_core::fault::{self, Fault, bail};
use longhaul_core::store::Batch;
use longhaul_harness::RunStatus;
use longhaul_records::record;

impl Service {
    /// Archives a run, or takes it back. A run that is there already keeps the time at which it was archived.
    pub(super) async fn archive(&self, which: &RunRef, archived: bool) -> fault::Result<AffectedRun> {
        let (_alone, which) = self.alone(which).await?;
        let stored = self.find(&which)?;
        let run = stored.record.run;
        if !archived {
            self.leave_archive(&run).await?;
            return Ok(AffectedRun { run });
        }
        refuse_open(&run, stored.state.status())?;
        if record::archived_ms(&*self.host.store, &run)?.is_none() {
            let batch = record::put_archived(Batch::new(), &run, self.host.clock.now_ms());
            self.host.store.commit(batch).await?;
            self.tell(&run);
        }
        Ok(AffectedRun { run })
    }

    /// Takes a run out of the archive, if it is there.
    pub(super) async fn leave_archive(&self, run: &RunId) -> fault::Result<()> {
        if record::archived_ms(&*self.host.store, run)?.is_some() {
            self.host.store.commit(record::forget_archived(Batch::new(), run)).await?;
            self.tell(run);
        }
        Ok(())
    }
}

/// Refuses a run that is still going on, with the command that stops it.
fn refuse_open(run: &RunId, status: RunStatus) -> fault::Result<()> {
    use RunStatus::{Abandoned, Completed, Failed, Incomplete, New, Parked, Paused, Planning, Working};
    let does = match status {
        Paused | Completed | Incomplete | Failed | Abandoned => return Ok(()),
        Parked => "waits",
        New | Planning | Working => "is working",
    };
    bail!(Fault::conflict(format!(
        "run {run} {does}, so it is not archived; pause or abandon it first: `longhaul pause {run}`"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_works_or_waits_is_refused_with_the_command_that_comes_first() {
        use RunStatus::{Abandoned, Completed, Failed, Incomplete, New, Parked, Paused, Planning, Working};
        let refused = |status| refuse_open(&RunId::from_text("r-1"), status).err().map(|fault| fault.to_string());
        for status in [Paused, Completed, Incomplete, Failed, Abandoned] {
            assert_eq!(refused(status), None, "{status:?}");
        }
        for (status, does) in
            [(New, "is working"), (Planning, "is working"), (Working, "is working"), (Parked, "waits")]
        {
            let expected =
                format!("run r-1 {does}, so it is not archived; pause or abandon it first: `longhaul pause r-1`");
            assert_eq!(refused(status), Some(expected), "{status:?}");
        }
    }
}
