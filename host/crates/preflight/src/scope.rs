//! The parts of a project that are looked at: a run needs all of them, an ask fewer.

use longhaul_records::pins::PinnedPlugins;

/// What is looked at.
#[derive(Clone, Debug)]
pub enum CheckScope {
    /// All of it, with the goal and its plan: before a run.
    Run,
    /// As for a run that follows a plan of its own.
    Planned,
    /// What an ask needs, which has no goal, no checks and no evaluator.
    Ask,
    /// What is not pinned, of a run with these pins that is to go on.
    Resume(PinnedPlugins),
}

impl CheckScope {
    /// Whether a part is of no use there.
    pub(crate) fn leaves_out(&self, table: &str) -> bool {
        matches!(self, Self::Ask) && table == "evaluator"
    }
}
