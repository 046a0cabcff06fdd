//! Requests and responses about the audit log, grants, trust in files of projects, and checkouts. This module decides
//! nothing.

use longhaul_core::{Digest, RunId};
use longhaul_security::trust::TrustRecord;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// List the newest records of the audit log.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListAudit {
    /// The most records to list: the newest ones.
    pub limit: usize,
}

/// Verify the chain of the audit log.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VerifyAudit {
    /// The digest of a record that the log must contain. None: any log with a valid chain.
    pub expect: Option<Digest>,
}

/// Show the grants of a project and their use.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShowGrants {
    /// The directory of the project.
    pub directory: PathBuf,
}

/// Find the project of a checkout.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct IdentifyProject {
    /// The directory of the checkout.
    pub directory: PathBuf,
}

/// List the checkouts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListCheckouts {}

/// Link a checkout to the project of another one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JoinProject {
    /// The directory of the checkout.
    pub directory: PathBuf,
    /// The directory of the other checkout, or the id of the project.
    pub other: String,
}

/// Record in the audit log that a secret was set or removed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NoteSecret {
    /// The name of the secret.
    pub name: String,
    /// The hosts or programs that the secret is bound to. None: it was removed.
    pub bound: Option<String>,
}

/// Show the trust in the file of a project.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShowTrust {
    /// The directory of the project.
    pub directory: PathBuf,
}

/// Refuse a file whose powers no person agreed to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExpectTrust {
    /// The directory of the project.
    pub directory: PathBuf,
}

/// Agree to the powers of a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TrustProject {
    /// The directory of the project.
    pub directory: PathBuf,
    /// The digest of the powers that were shown; other powers refuse the request. None: the powers as they are.
    pub digest: Option<Digest>,
}

/// Withdraw the agreement to the powers of a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DistrustProject {
    /// The directory of the project.
    pub directory: PathBuf,
}

/// List all trusted files and signers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListTrusted {}

/// Trust the key of a signer, or stop trusting it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SetSigner {
    /// The public key.
    pub key: String,
    /// True when it is trusted from now on.
    pub known: bool,
}

/// The project that a checkout belongs to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProjectIdentity {
    /// The id of the project.
    pub id: String,
    /// A note for people, in one line. None: there is none.
    pub told: Option<String>,
}

/// All trusted files and signers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TrustedList {
    /// The trusted files of projects.
    pub files: Vec<TrustRecord>,
    /// The public keys of trusted signers.
    pub signers: BTreeSet<String>,
}

/// The grants of a project and their use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantUsage {
    /// The grants of longhaul.toml that none of the listed runs used.
    pub unused: Vec<String>,
    /// The grants whose use cannot be determined.
    #[serde(default)]
    pub unknown: Vec<String>,
    /// The runs, the oldest first.
    pub runs: Vec<RunGrants>,
}

/// The powers of a run and their use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunGrants {
    /// The id of the run.
    pub run: RunId,
    /// The powers that it used.
    pub used: Vec<String>,
    /// The powers whose use cannot be determined.
    #[serde(default)]
    pub unknown: Vec<String>,
    /// The powers that it did not use.
    pub unused: Vec<String>,
}
