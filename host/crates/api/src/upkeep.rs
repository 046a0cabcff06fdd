//! Requests and responses about the maintenance of a data directory: backups, restores, verification, the deletion of
//! expired data, and the move of all state into another store. This module carries nothing out.
//!
//! `--json` prints [`AuditHead`], [`BackupManifest`], [`GcReport`] and [`MigrationReport`] as they are: their fields
//! are published.

use longhaul_core::store::{CollectedContent, ReadTotals};
use longhaul_core::{Digest, RunId};
use longhaul_security::audit::AuditVerification;
use longhaul_security::signing::Signer;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Write a backup of the data directory into a new file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WriteBackup {
    /// The absolute path of the file.
    pub file: PathBuf,
    /// True when the backup contains secrets.
    pub with_secrets: bool,
}

/// Read the whole store and verify it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CheckStore {}

/// Delete expired data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GcOptions {
    /// True when the report lists deletions without making them.
    pub dry_run: bool,
    /// The age from which saved checkpoints are deleted, in milliseconds.
    pub checkpoints_older_ms: u64,
    /// The time since the end of a run after which it is deleted, in milliseconds. None: no run is deleted.
    pub runs_older_ms: Option<u64>,
    /// The bytes of compiled code that stay; the files that were unused for longest are deleted first. None: all of
    /// them stay.
    pub cache_bytes_max: Option<u64>,
}

/// A written backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenArchive {
    /// The path of the file.
    pub file: PathBuf,
    /// The length of the file in bytes.
    pub bytes: u64,
    /// The number of files in it.
    pub files: usize,
    /// The number of rows of the store in it.
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

/// The head of an audit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditHead {
    /// The number of records of its chain.
    pub records: u64,
    /// The digest of the last record.
    pub last: Digest,
    /// True when the chain is broken after that record.
    pub is_broken: bool,
}

impl AuditHead {
    /// The head that a verification of the whole log found.
    pub fn of(verified: &AuditVerification) -> Self {
        Self { records: verified.records, last: verified.last, is_broken: verified.broken.is_some() }
    }

    /// The digest of a record that every continuation of the log contains. None: the log has no records.
    pub fn expected(&self) -> Option<Digest> {
        (self.records > 0).then_some(self.last)
    }
}

/// The manifest of an archive, without its files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupManifest {
    /// The version of the archive.
    pub longhaul_backup: u32,
    /// The version of the program that wrote it.
    pub written_by: String,
    /// The time of the copy of the store, in milliseconds since 1970-01-01 UTC.
    pub taken_ms: u64,
    /// The number of rows of the store.
    pub rows: u64,
    /// True when it contains secrets.
    pub has_secrets: bool,
    /// The data that it does not contain and that cannot be made again, one line each.
    pub left_out: Vec<String>,
    /// The head of the audit log just before the store was copied; none: an earlier version wrote the archive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<AuditHead>,
    /// The public key that the manifest is signed by; none: it is unsigned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signer: Option<String>,
}

/// The result of a restore.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreReport {
    /// The restored data directory.
    pub home: PathBuf,
    /// The archive's manifest.
    pub manifest: BackupManifest,
    /// Restored files.
    pub files: usize,
    /// The rows that were read of the store, which are all of it.
    pub read: ReadTotals,
    /// The archive's signer.
    pub signer: Signer,
    /// The powers that its projects request, each with its directory; the restore trusts none of them.
    pub powers: Vec<String>,
    /// The parts that act by themselves and were not restored.
    pub dropped: Vec<String>,
}

/// Parts that act by themselves, and are restored only on request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RestoreOptions {
    /// API tokens.
    pub tokens: bool,
    /// `server.toml`, with the programs that it names, and trust in the files of projects.
    pub commands: bool,
}

/// A kind of store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoreKind {
    /// Files of the data directory.
    Redb,
    /// The database that `[store]` of `server.toml` names.
    Postgres,
}

/// All state of a data directory that was moved into another store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MigrationReport {
    /// The former place of the state: a file, or the address of a database.
    pub from: String,
    /// Its present place.
    pub to: String,
    /// The rows and contents that were copied, and compared with those that they were copied from.
    pub copied: ReadTotals,
    /// The number of runs whose trees are on other machines.
    pub runs_elsewhere: usize,
    /// The remaining step of a person, if there is one.
    pub next: Option<String>,
    /// The way back to the state as it was before.
    pub undo: String,
}

/// The deletions, made or planned.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GcReport {
    /// True when the deletions were not made.
    pub dry_run: bool,
    /// The number of saved checkpoints.
    pub checkpoints: usize,
    /// The number of expired entries of memory. None: not counted, because a dry run does not count them.
    pub memories: Option<usize>,
    /// The ids of the runs, which are deleted with their journals and trees.
    pub runs: Vec<RunId>,
    /// The number of rows of these runs.
    pub rows: usize,
    /// The number of trees that belong to no run.
    pub trees: usize,
    /// The bytes of all deleted trees.
    pub tree_bytes: u64,
    /// The counts of content. None: it was not examined; see `content_kept_for`.
    pub content: Option<CollectedContent>,
    /// The reason for which content was not examined. None: it was.
    pub content_kept_for: Option<String>,
    /// The number of files of compiled code.
    pub compiled: usize,
    /// The bytes of these files.
    pub compiled_bytes: u64,
}
