//! Statements and their answers on the way.

use crate::protocol::{OwnerRow, Proof};

/// The task of a process that sends statements, one at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// Claims the store and renews the lease.
    Keeper,
    /// Commits.
    Writer,
}

/// A statement of `lease.rs`, or the one of `append.rs`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Request {
    Claim {
        nonce: u32,
    },
    Renew {
        nonce: u32,
        proof: Proof,
    },
    /// `is_void`: the head is moved without the commit.
    Append {
        nonce: u32,
        proof: Proof,
        head: i64,
        commit: usize,
        is_void: bool,
    },
    Status {
        nonce: u32,
    },
    GiveBack {
        nonce: u32,
    },
}

/// A claim that landed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claimed {
    pub(super) proof: Proof,
    pub(super) head: i64,
    /// Its number in the record, which no process knows.
    pub(super) number: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Answer {
    Claim(Option<Claimed>),
    Renew { is_renewed: bool },
    Append { has_moved: bool, is_broken: bool },
    Status(OwnerRow),
    GiveBack,
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
