//! Keys, values, statements and their answers.

use crate::protocol::{OwnerRow, Proof};

/// The seat of the owner; those of workers follow.
pub(super) const OWNER: usize = 0;
pub(super) const WORKERS: usize = 2;
pub(super) const SEATS: usize = 1 + WORKERS;

/// Runs that are given to workers.
pub(super) const RUNS: usize = 2;
pub(super) const KEYS: usize = 1 + 2 * RUNS;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// The one that every seat writes with conditions.
    Shared,
    /// The claim of a run.
    Claim(usize),
    /// The row of a run.
    Run(usize),
}

impl Key {
    pub(super) fn place(self) -> usize {
        match self {
            Self::Shared => 0,
            Self::Claim(run) => 1 + run,
            Self::Run(run) => 1 + RUNS + run,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Value {
    /// There is no row.
    #[default]
    Absent,
    Number(u64),
    /// A run is that of a worker, by this claim of its seat.
    Claimed {
        seat: usize,
        epoch: i64,
    },
}

/// The change of a commit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    pub(super) key: Key,
    /// The condition; none: whatever there is.
    pub(super) expected: Option<Value>,
    pub(super) value: Value,
}

/// The task of a process that sends statements, one at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// Claims the seat and renews its lease.
    Keeper,
    /// Commits, looks and evicts.
    Writer,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Request {
    Claim {
        seat: usize,
        nonce: u32,
    },
    Renew {
        seat: usize,
        nonce: u32,
        proof: Proof,
    },
    Status {
        seat: usize,
        nonce: u32,
    },
    Look,
    Evict {
        seat: usize,
        epoch: i64,
        /// That of the claim of the process that evicts.
        timeline: i32,
    },
    Append(Append),
}

/// The statement of `append.rs`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Append {
    pub(super) seat: usize,
    pub(super) nonce: u32,
    pub(super) proof: Proof,
    pub(super) head: i64,
    pub(super) commit: usize,
    /// True where the head is moved without the commit.
    pub(super) is_void: bool,
}

/// All keys and seats at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub(super) values: [Value; KEYS],
    /// The epoch of each seat, and true where its lease ran out.
    pub(super) seats: [(i64, bool); SEATS],
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Answer {
    Claim(Option<(Proof, i64)>),
    Renew {
        is_renewed: bool,
    },
    Status(OwnerRow),
    Look(Look),
    Evict {
        is_evicted: bool,
    },
    Append {
        has_moved: bool,
        is_broken: bool,
    },
    /// A row that it writes was changed since it began.
    Overtaken,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Message {
    Request(Request),
    Answer(Answer),
}

/// A message on its way between a process and the database.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    pub(super) process: usize,
    pub(super) lane: Lane,
    /// The number of the call that it belongs to.
    pub(super) call: u32,
    pub(super) message: Message,
}
