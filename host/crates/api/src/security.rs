//! What is asked of the audit log, of trust in the files of projects, of checkouts and of grants, and what is answered.
//! Decides nothing.

use longhaul_core::{Digest, RunId};
use longhaul_security::trust::TrustRecord;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// List the newest records of the audit log.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListAudit {
    /// At most so many.
    pub limit: usize,
}

/// Verify the audit log.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VerifyAudit {
    /// The digest of a record that must be in it.
    pub expect: Option<Digest>,
}

/// Show the grants of a project.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShowGrants {
    /// The project.
    pub directory: PathBuf,
}

/// Find the project of a checkout.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct IdentifyProject {
    /// The checkout.
    pub directory: PathBuf,
}

/// List the checkouts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListCheckouts {}

/// Link a checkout to the project of another one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JoinProject {
    /// The checkout.
    pub directory: PathBuf,
    /// The other one, or the id of the project.
    pub other: String,
}

/// Note that a secret was set, or removed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NoteSecret {
    /// Its name.
    pub name: String,
    /// What it is bound to; none: it was removed.
    pub bound: Option<String>,
}

/// Show the trust in the file of a project.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShowTrust {
    /// The project.
    pub directory: PathBuf,
}

/// Refuse a file whose powers nobody agreed to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExpectTrust {
    /// The project.
    pub directory: PathBuf,
}

/// Agree to the powers of a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TrustProject {
    /// The project.
    pub directory: PathBuf,
    /// The digest of the powers that were shown: a file that changed since is not agreed to. None: as it is.
    pub digest: Option<Digest>,
}

/// Withdraw the agreement to the powers of a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DistrustProject {
    /// The project.
    pub directory: PathBuf,
}

/// List everything that is trusted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListTrusted {}

/// Trust the key of a signer, or do so no more.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SetSigner {
    /// The key.
    pub key: String,
    /// Whether it is trusted from now on.
    pub known: bool,
}

/// The project that a checkout belongs to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProjectIdentity {
    /// The id.
    pub id: String,
    /// What a person should be told, in one line.
    pub told: Option<String>,
}

/// Everything that is trusted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TrustedList {
    /// Files of projects.
    pub files: Vec<TrustRecord>,
    /// Keys of signers.
    pub signers: BTreeSet<String>,
}

/// Grants of a project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantUsage {
    /// What longhaul.toml gives and no run of those that are listed used.
    pub unused: Vec<String>,
    /// What it gives, and nobody can tell whether one of them used it.
    #[serde(default)]
    pub unknown: Vec<String>,
    /// Runs, oldest first.
    pub runs: Vec<RunGrants>,
}

/// What a run could do, and did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunGrants {
    /// The run.
    pub run: RunId,
    /// Powers that it used.
    pub used: Vec<String>,
    /// Powers that it had, and nobody can tell whether it used them.
    #[serde(default)]
    pub unknown: Vec<String>,
    /// Powers that it had and did not use.
    pub unused: Vec<String>,
}
