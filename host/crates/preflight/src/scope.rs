//! The scope of an examination: a run needs all parts of a project, an ask fewer.

use longhaul_records::pins::PinnedPlugins;

/// The scope of an examination.
#[derive(Clone, Debug)]
pub enum CheckScope {
    /// Everything, with the goal and its plan: before a run.
    Run,
    /// As for a run that has a plan already.
    Planned,
    /// The parts for an ask, which has no goal, no checks and no evaluator.
    Ask,
    /// The unpinned parts of a resumed run with these pins.
    Resume(PinnedPlugins),
}

impl CheckScope {
    /// True when a part is not needed in this scope.
    pub(crate) fn leaves_out(&self, table: &str) -> bool {
        matches!(self, Self::Ask) && table == "evaluator"
    }
}
