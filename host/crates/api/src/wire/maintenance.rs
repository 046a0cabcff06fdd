//! Written backups, restored data directories and reopened databases, whose paths and addresses are texts for any
//! reader.

use crate::upkeep::{AuditHead, BackupManifest, RestoreReport, WrittenArchive};
use longhaul_core::store::ReadTotals;
use longhaul_security::signing::Signer;
use serde::{Deserialize, Serialize};

/// A written backup.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BackupView {
    /// The path of the file.
    pub file: String,
    /// The length of the file, in bytes.
    pub bytes: u64,
    /// Number of files in it.
    pub files: usize,
    /// Number of rows of the store in it.
    pub rows: u64,
    /// True when it contains secrets.
    pub has_secrets: bool,
    /// The data that it does not contain and that cannot be made again, one line each.
    pub left_out: Vec<String>,
    /// The public key of its signature.
    pub signer: String,
    /// The head of the audit log at the time of the backup.
    pub audit: AuditHead,
}

impl From<WrittenArchive> for BackupView {
    fn from(inner: WrittenArchive) -> Self {
        let WrittenArchive { file, bytes, files, rows, has_secrets, left_out, signer, audit } = inner;
        Self { file: file.display().to_string(), bytes, files, rows, has_secrets, left_out, signer, audit }
    }
}

/// The result of a restore.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RestoreView {
    /// The path of the restored data directory.
    pub home: String,
    /// The manifest of the backup.
    pub manifest: BackupManifest,
    /// Number of restored files.
    pub files: usize,
    /// The rows that were read of the store, which are all of it.
    pub read: ReadTotals,
    /// The signer of the backup.
    pub signer: Signer,
    /// The powers that its projects ask for, each with its directory. The restore trusts none of them.
    pub powers: Vec<String>,
    /// The parts that act by themselves and were not restored, one line each.
    pub dropped: Vec<String>,
}

impl From<RestoreReport> for RestoreView {
    fn from(inner: RestoreReport) -> Self {
        let RestoreReport { home, manifest, files, read, signer, powers, dropped } = inner;
        Self { home: home.display().to_string(), manifest, files, read, signer, powers, dropped }
    }
}

/// A database that is in use again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReopenedStoreView {
    /// Its address, without a password.
    pub address: String,
}
