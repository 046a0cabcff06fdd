//! What is asked of the audit log, of trust in the files of projects, of checkouts and of grants, and what is answered.
//! Decides nothing.

use longhaul_core::{Digest, RunId};
use longhaul_security::audit::{AuditRecord, AuditVerification};
use longhaul_security::identity::Checkout;
use longhaul_security::trust::{TrustRecord, TrustStatus};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// What is asked of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SecurityRequest {
    /// The newest records of the audit log.
    AuditLog {
        /// At most so many.
        limit: usize,
    },
    /// Whether the audit log is whole.
    VerifyAudit {
        /// The digest of a record that must be in it.
        expect: Option<Digest>,
    },
    /// Grants of a project and what its runs did of them.
    Grants {
        /// The project.
        directory: PathBuf,
    },
    /// The project that a checkout is; it is known from then on.
    Project {
        /// The checkout.
        directory: PathBuf,
    },
    /// Every checkout that is known.
    Checkouts,
    /// A checkout is the same project as another one.
    SameAs {
        /// The checkout.
        directory: PathBuf,
        /// The other one, or the project's id.
        other: String,
    },
    /// A secret was set, or removed.
    SecretChanged {
        /// Its name.
        name: String,
        /// What it is bound to; none: it was removed.
        bound: Option<String>,
    },
    /// How the file of a project stands.
    Standing {
        /// The project.
        directory: PathBuf,
    },
    /// Refuse a file whose powers nobody agreed to.
    Expect {
        /// The project.
        directory: PathBuf,
    },
    /// Agree to the powers of a file.
    Trust {
        /// The project.
        directory: PathBuf,
        /// The digest of the powers that were shown: a file that changed since is not agreed to. None: as it is.
        digest: Option<Digest>,
    },
    /// Agree to the powers of a file no more.
    Untrust {
        /// The project.
        directory: PathBuf,
    },
    /// Everything that is trusted.
    Trusted,
    /// Know a signer, or do so no more.
    Signer {
        /// The key.
        key: String,
        /// Whether it is known from now on.
        known: bool,
    },
}

/// What it came to.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SecurityResponse {
    /// Records, oldest first.
    Audit(Vec<AuditRecord>),
    /// What a look at the whole log gave.
    Verified(AuditVerification),
    /// What runs did of what they might.
    Grants(Box<GrantUsage>),
    /// A project's id, and what a person should be told.
    Project {
        /// The id.
        id: String,
        /// In one line.
        told: Option<String>,
    },
    /// Checkouts, by directory.
    Checkouts(Vec<Checkout>),
    /// How a file stands.
    Standing(Box<TrustStatus>),
    /// What is trusted.
    Trusted {
        /// Files of projects.
        files: Vec<TrustRecord>,
        /// Keys of signers.
        signers: BTreeSet<String>,
    },
    /// It is done.
    Done,
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
