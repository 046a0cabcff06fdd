//! Backups and restores of a data directory, and the deletion of its expired data.

use super::security::SignerView;
use crate::upkeep::{AuditHead, BackupManifest, GcReport, RestoreReport, WrittenArchive};
use longhaul_core::store::{CollectedContent, ReadTotals};
use serde::{Deserialize, Serialize};

/// The head of an audit log.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AuditHeadView {
    /// Number of records of its chain.
    pub records: u64,
    /// The digest of the last record.
    pub last: String,
    /// Whether the chain is broken after that record.
    pub is_broken: bool,
}

impl From<AuditHead> for AuditHeadView {
    fn from(inner: AuditHead) -> Self {
        let AuditHead { records, last, is_broken } = inner;
        Self { records, last: last.to_string(), is_broken }
    }
}

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
    /// Whether it contains secrets.
    pub has_secrets: bool,
    /// The data that it does not contain and that cannot be made again, one line each.
    pub left_out: Vec<String>,
    /// The public key of its signature.
    pub signer: String,
    /// The head of the audit log at the time of the backup.
    pub audit: AuditHeadView,
}

impl From<WrittenArchive> for BackupView {
    fn from(inner: WrittenArchive) -> Self {
        let WrittenArchive { file, bytes, files, rows, has_secrets, left_out, signer, audit } = inner;
        let (file, audit) = (file.display().to_string(), audit.into());
        Self { file, bytes, files, rows, has_secrets, left_out, signer, audit }
    }
}

/// The manifest of a backup, without its files.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BackupManifestView {
    /// The version of the archive.
    pub longhaul_backup: u32,
    /// The version of the program that wrote it.
    pub written_by: String,
    /// Time of the copy of the store, in milliseconds since 1970-01-01 UTC.
    pub taken_ms: u64,
    /// Number of rows of the store.
    pub rows: u64,
    /// Whether it contains secrets.
    pub has_secrets: bool,
    /// The data that it does not contain and that cannot be made again, one line each.
    pub left_out: Vec<String>,
    /// The head of the audit log just before the store was copied. Missing: an earlier version wrote the archive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<AuditHeadView>,
    /// The public key that it is signed by. Missing: it is unsigned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signer: Option<String>,
}

impl From<BackupManifest> for BackupManifestView {
    fn from(inner: BackupManifest) -> Self {
        let BackupManifest {
            longhaul_backup,
            written_by,
            taken_ms,
            rows,
            has_secrets,
            left_out,
            audit,
            signer,
            files: _,
        } = inner;
        let audit = audit.map(Into::into);
        Self { longhaul_backup, written_by, taken_ms, rows, has_secrets, left_out, audit, signer }
    }
}

/// The rows that were read of a store.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ReadTotalsView {
    /// Number of rows, of all tables and of content.
    pub rows: u64,
    /// The length of their keys and values, in bytes.
    pub bytes: u64,
}

impl From<ReadTotals> for ReadTotalsView {
    fn from(inner: ReadTotals) -> Self {
        let ReadTotals { rows, bytes } = inner;
        Self { rows, bytes }
    }
}

/// The result of a restore.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RestoreView {
    /// The path of the restored data directory.
    pub home: String,
    /// The manifest of the backup.
    pub manifest: BackupManifestView,
    /// Number of restored files.
    pub files: usize,
    /// The rows that were read of the store, which are all of it.
    pub read: ReadTotalsView,
    /// The signer of the backup.
    pub signer: SignerView,
    /// The powers that its projects ask for, each with its directory. The restore trusts none of them.
    pub powers: Vec<String>,
    /// The parts that act by themselves and were not restored, one line each.
    pub dropped: Vec<String>,
}

impl From<RestoreReport> for RestoreView {
    fn from(inner: RestoreReport) -> Self {
        let RestoreReport { home, manifest, files, read, signer, powers, dropped } = inner;
        Self {
            home: home.display().to_string(),
            manifest: manifest.into(),
            files,
            read: read.into(),
            signer: signer.into(),
            powers,
            dropped,
        }
    }
}

/// The counts of content in the store.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct CollectedContentView {
    /// Number of referenced contents.
    pub kept: u64,
    /// Number of unreferenced contents, which are deleted.
    pub removed: u64,
    /// The length of the unreferenced contents, in bytes. The file keeps its length, and reuses the space.
    pub bytes: u64,
}

impl From<CollectedContent> for CollectedContentView {
    fn from(inner: CollectedContent) -> Self {
        let CollectedContent { kept, removed, bytes } = inner;
        Self { kept, removed, bytes }
    }
}

/// The deletions of `longhaul gc`, made or planned.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GcView {
    /// Whether the deletions were not made.
    pub dry_run: bool,
    /// Number of saved checkpoints.
    pub checkpoints: usize,
    /// Number of expired entries of memory; null: a dry run does not count them.
    pub memories: Option<usize>,
    /// The ids of the runs, which are deleted with their journals and trees.
    pub runs: Vec<String>,
    /// Number of rows of these runs.
    pub rows: usize,
    /// Number of trees that belong to no run.
    pub trees: usize,
    /// The length of all deleted trees, in bytes.
    pub tree_bytes: u64,
    /// The counts of content; null: it was not examined, as `content_kept_for` says.
    pub content: Option<CollectedContentView>,
    /// The reason for which content was not examined; null: it was.
    pub content_kept_for: Option<String>,
    /// Number of files of compiled code.
    pub compiled: usize,
    /// The length of these files, in bytes.
    pub compiled_bytes: u64,
}

impl From<GcReport> for GcView {
    fn from(inner: GcReport) -> Self {
        Self {
            dry_run: inner.dry_run,
            checkpoints: inner.checkpoints,
            memories: inner.memories,
            runs: inner.runs.iter().map(ToString::to_string).collect(),
            rows: inner.rows,
            trees: inner.trees,
            tree_bytes: inner.tree_bytes,
            content: inner.content.map(Into::into),
            content_kept_for: inner.content_kept_for,
            compiled: inner.compiled,
            compiled_bytes: inner.compiled_bytes,
        }
    }
}
