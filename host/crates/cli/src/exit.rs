//! The ends of a command, and the exit code of each.

/// The end of a command; the help of the program lists the exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Everything is done.
    Done,
    /// An error.
    Error,
    /// Wrong arguments.
    Misused,
    /// Features do not pass.
    Incomplete,
    /// The run is paused.
    Paused,
    /// The run waits for an answer.
    Waiting,
    /// Another process took over the database that holds the state.
    LeaseLost,
    /// The end of code that `longhaul exec` ran; the help of that command lists the exit codes.
    OfCode(u8),
}

impl Exit {
    /// The process's exit code.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Error => 1,
            Self::Misused => 2,
            Self::Incomplete => 3,
            Self::Paused => 4,
            Self::Waiting => 5,
            Self::LeaseLost => 6,
            Self::OfCode(code) => code,
        }
    }
}
