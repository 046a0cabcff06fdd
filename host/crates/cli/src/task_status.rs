//! The statuses that `longhaul agent tasks` and `longhaul schedule tasks` list tasks by.

use longhaul_api::agents::StatusFilter;

/// The names of the statuses.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum StatusArg {
    /// It waits.
    Pending,
    /// It is being done.
    Running,
    /// It was done.
    Completed,
    /// It failed, without another automatic retry.
    Failed,
}

impl From<StatusArg> for StatusFilter {
    fn from(argument: StatusArg) -> Self {
        match argument {
            StatusArg::Pending => Self::Pending,
            StatusArg::Running => Self::Running,
            StatusArg::Completed => Self::Completed,
            StatusArg::Failed => Self::Failed,
        }
    }
}
