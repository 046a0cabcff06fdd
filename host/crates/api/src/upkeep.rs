//! Upkeep of a data directory: copied into a file, read from end to end, cleared of expired data. Carries nothing out.

use longhaul_core::store::CollectedContent;
use longhaul_core::{Digest, RunId};
use longhaul_security::audit::AuditVerification;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Write a backup.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WriteBackup {
    /// The file, with its full path.
    pub file: PathBuf,
    /// Whether secrets are in it.
    pub with_secrets: bool,
}

/// Read the whole store.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CheckStore {}

/// Delete expired data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GcOptions {
    /// Only say what would go.
    pub dry_run: bool,
    /// Saved checkpoints that are older, in milliseconds.
    pub checkpoints_older_ms: u64,
    /// Runs that ended longer ago, in milliseconds; none: no run.
    pub runs_older_ms: Option<u64>,
    /// Compiled code above so many bytes, the longest unused first; none: all of it stays.
    pub cache_bytes_max: Option<u64>,
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenArchive {
    /// Where.
    pub file: PathBuf,
    /// Its length.
    pub bytes: u64,
    /// Files in it.
    pub files: usize,
    /// Rows of the store.
    pub rows: u64,
    /// Whether secrets are in it.
    pub has_secrets: bool,
    /// What is not in it and cannot be made again.
    pub left_out: Vec<String>,
    /// The public key that it is signed by.
    pub signer: String,
    /// Head of the audit log when the backup was made.
    pub audit: AuditHead,
}

/// The end of an audit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditHead {
    /// Records of its chain.
    pub records: u64,
    /// The digest of the last of them.
    pub last: Digest,
    /// Whether the chain breaks behind that record.
    pub is_broken: bool,
}

impl AuditHead {
    /// What a look at the whole log gave.
    pub fn of(verified: &AuditVerification) -> Self {
        Self { records: verified.records, last: verified.last, is_broken: verified.broken.is_some() }
    }

    /// The digest of a record that a log which goes on from here has.
    pub fn expected(&self) -> Option<Digest> {
        (self.records > 0).then_some(self.last)
    }
}

/// What went, or would.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GcReport {
    /// Whether nothing was removed in truth.
    pub dry_run: bool,
    /// Saved checkpoints.
    pub checkpoints: usize,
    /// Entries of memory that were over; none: not counted, since that is done only in earnest.
    pub memories: Option<usize>,
    /// Runs, with their journals and trees.
    pub runs: Vec<RunId>,
    /// Rows of them.
    pub rows: usize,
    /// Trees that belong to no run.
    pub trees: usize,
    /// Bytes of all trees that went.
    pub tree_bytes: u64,
    /// Content; none: `content_kept_for` says why it was not looked at.
    pub content: Option<CollectedContent>,
    /// Why content was not looked at.
    pub content_kept_for: Option<String>,
    /// Files of compiled code.
    pub compiled: usize,
    /// Their bytes.
    pub compiled_bytes: u64,
}
