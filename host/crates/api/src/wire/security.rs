//! The audit log, and the trust in files and signers.

use crate::security::TrustedList;
use longhaul_config::powers::Power;
use longhaul_security::audit::{AuditRecord, AuditVerification};
use longhaul_security::trust::{TrustRecord, TrustStatus};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A record of the audit log.
#[derive(Clone, Debug, Serialize)]
pub struct AuditRecordView {
    /// Its number, from 1 on, without gaps.
    pub number: u64,
    /// Its time, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// The event: `what` names its kind, and the other fields depend on the kind.
    #[serde(flatten)]
    pub event: Map<String, Value>,
    /// The digest of the record before it.
    pub before: String,
}

impl From<AuditRecord> for AuditRecordView {
    fn from(inner: AuditRecord) -> Self {
        let AuditRecord { number, at_ms, what, before } = inner;
        let event = match serde_json::to_value(what) {
            Ok(Value::Object(fields)) => fields,
            _ => Map::new(),
        };
        Self { number, at_ms, event, before: before.to_string() }
    }
}

/// The result of a verification of the audit log.
#[derive(Clone, Debug, Serialize)]
pub struct AuditVerificationView {
    /// Number of valid records.
    pub records: u64,
    /// The digest of the last valid record, to be kept elsewhere.
    pub last: String,
    /// The number of the first record at which the chain breaks, and how; null: the chain is intact.
    pub broken: Option<(u64, String)>,
    /// True when a record has the expected digest; null: no digest was given.
    pub has_expected: Option<bool>,
}

impl From<&AuditVerification> for AuditVerificationView {
    fn from(inner: &AuditVerification) -> Self {
        let AuditVerification { records, last, broken, has_expected } = inner;
        Self { records: *records, last: last.to_string(), broken: broken.clone(), has_expected: *has_expected }
    }
}

/// A power that a file asks for.
#[derive(Clone, Debug, Serialize)]
pub struct PowerView {
    /// The kind of its target.
    pub kind: Value,
    /// The table of `longhaul.toml`.
    pub table: String,
    /// Its text for people.
    pub description: String,
    /// True when a run without configuration could reach the same.
    pub is_plain: bool,
}

impl From<&Power> for PowerView {
    fn from(inner: &Power) -> Self {
        let Power { kind, table, what, is_plain } = inner;
        let kind = serde_json::to_value(kind).unwrap_or_default();
        Self { kind, table: table.clone(), description: what.clone(), is_plain: *is_plain }
    }
}

/// The trust status of the file of a project.
#[derive(Clone, Debug, Serialize)]
pub struct TrustStatusView {
    /// True when the file may be used as it is.
    pub is_trusted: bool,
    /// The digest of its powers, which an agreement refers to.
    pub digest: String,
    /// The powers that are not plain.
    pub powers: Vec<PowerView>,
    /// The powers beyond the agreement, and the guards that are gone, in one line.
    pub beyond: Option<String>,
    /// True when there was no agreement before.
    pub is_new: bool,
}

impl From<&TrustStatus> for TrustStatusView {
    fn from(inner: &TrustStatus) -> Self {
        let TrustStatus { is_trusted, digest, powers, beyond, is_new } = inner;
        Self {
            is_trusted: *is_trusted,
            digest: digest.to_string(),
            powers: powers.iter().map(Into::into).collect(),
            beyond: beyond.clone(),
            is_new: *is_new,
        }
    }
}

/// An agreement to the powers of a file.
#[derive(Clone, Debug, Serialize)]
pub struct TrustRecordView {
    /// The directory of the file.
    pub directory: String,
    /// The id of the project in that directory. Empty: the agreement is of an earlier version.
    pub id: String,
    /// The digest of the powers.
    pub digest: String,
    /// The powers that are not plain, and the guards that restrict runs.
    pub powers: Vec<PowerView>,
    /// Time of the agreement, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
}

impl From<TrustRecord> for TrustRecordView {
    fn from(inner: TrustRecord) -> Self {
        let TrustRecord { directory, id, digest, powers, at_ms } = inner;
        Self {
            directory: directory.display().to_string(),
            id,
            digest: digest.to_string(),
            powers: powers.iter().map(Into::into).collect(),
            at_ms,
        }
    }
}

/// Trusted files and signers.
#[derive(Clone, Debug, Serialize)]
pub struct TrustListing {
    /// Files of projects.
    pub files: Vec<TrustRecordView>,
    /// Keys of signers.
    pub signers: Vec<String>,
}

impl From<TrustedList> for TrustListing {
    fn from(inner: TrustedList) -> Self {
        let TrustedList { files, signers } = inner;
        Self { files: files.into_iter().map(Into::into).collect(), signers: signers.into_iter().collect() }
    }
}

/// The key that signs exports of this data directory.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SigningKeyView {
    /// The public key.
    pub key: String,
}
