//! Trust and its records: the audit log, trust in the files of projects and in signers, and the identity of checkouts.

use super::{Service, ServiceOperations};
use longhaul_api::operations::SecurityOperations;
use longhaul_api::security::{
    DistrustProject, ExpectTrust, GrantUsage, IdentifyProject, JoinProject, ListAudit, ListCheckouts, ListTrusted,
    NoteSecret, ProjectIdentity, SetSigner, ShowGrants, ShowTrust, TrustProject, TrustedList, VerifyAudit,
};
use longhaul_config::Config;
use longhaul_config::powers::{self, Power};
use longhaul_core::Digest;
use longhaul_core::fault::{self, Context as _, Fault, bail};
use longhaul_records::record::RunRecord;
use longhaul_security::audit::{AuditEvent, AuditRecord, AuditVerification};
use longhaul_security::identity::{self, Checkout};
use longhaul_security::signing::Signers;
use longhaul_security::trust::{self, TrustStatus};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Records of the audit log that are answered at most.
const RECORDS_MAX: usize = 10_000;

#[async_trait::async_trait]
impl SecurityOperations for ServiceOperations<'_> {
    async fn audit_log(&self, ListAudit { limit }: ListAudit) -> fault::Result<Vec<AuditRecord>> {
        self.0.host.audit.newest(limit.min(RECORDS_MAX))
    }

    async fn verify_audit(&self, VerifyAudit { expect }: VerifyAudit) -> fault::Result<AuditVerification> {
        self.0.host.audit.verify(expect)
    }

    async fn grant_usage(&self, ShowGrants { directory }: ShowGrants) -> fault::Result<GrantUsage> {
        self.0.grants_of(&place(&directory)?)
    }

    async fn identify_project(&self, request: IdentifyProject) -> fault::Result<ProjectIdentity> {
        let directory = place(&request.directory)?;
        let claimed = self.0.claimed(&directory, &Config::read(&directory)?).await?;
        Ok(ProjectIdentity { id: claimed.id, told: claimed.told })
    }

    async fn checkouts(&self, ListCheckouts {}: ListCheckouts) -> fault::Result<Vec<Checkout>> {
        identity::list(&*self.0.host.store)
    }

    async fn join_project(&self, JoinProject { directory, other }: JoinProject) -> fault::Result<ProjectIdentity> {
        let host = &self.0.host;
        let directory = place(&directory)?;
        let config = Config::read(&directory)?;
        let _alone = self.0.locks.take([super::keyed_lock::of_directory(&directory)]).await;
        let id = identity::join(&*host.store, &directory, &config.project.name, &other).await?;
        host.audit.note(AuditEvent::ProjectJoined { directory, id: id.clone() }).await?;
        Ok(ProjectIdentity { id, told: None })
    }

    async fn note_secret(&self, NoteSecret { name, bound }: NoteSecret) -> fault::Result<()> {
        let event = match bound {
            Some(bound) => AuditEvent::SecretSet { name, bound },
            None => AuditEvent::SecretRemoved { name },
        };
        self.0.host.audit.note(event).await
    }

    async fn trust_status(&self, ShowTrust { directory }: ShowTrust) -> fault::Result<TrustStatus> {
        let directory = place(&directory)?;
        let config = Config::read(&directory)?;
        let powers = powers::of_project(&config, &directory);
        trust::of_file(&*self.0.host.store, &directory, &config, &powers)
    }

    async fn expect_trust(&self, ExpectTrust { directory }: ExpectTrust) -> fault::Result<()> {
        let directory = place(&directory)?;
        self.0.expect_trust(&directory, &Config::read(&directory)?)
    }

    async fn trust_project(&self, request: TrustProject) -> fault::Result<TrustStatus> {
        let TrustProject { directory, digest } = request;
        self.0.trust(&place(&directory)?, digest).await
    }

    async fn distrust_project(&self, DistrustProject { directory }: DistrustProject) -> fault::Result<()> {
        let host = &self.0.host;
        let directory = place(&directory).unwrap_or(directory);
        if !trust::withdraw(&*host.store, &directory).await? {
            bail!(Fault::unknown(format!("nothing in `{}` is trusted", directory.display())));
        }
        host.audit.note(AuditEvent::Untrusted { directory }).await
    }

    async fn trusted(&self, ListTrusted {}: ListTrusted) -> fault::Result<TrustedList> {
        let host = &self.0.host;
        Ok(TrustedList { files: trust::list(&*host.store)?, signers: Signers::of(&host.home).list()? })
    }

    async fn set_signer(&self, SetSigner { key, known }: SetSigner) -> fault::Result<()> {
        self.0.signer(key, known).await
    }
}

impl Service {
    async fn signer(&self, key: String, known: bool) -> fault::Result<()> {
        let signers = Signers::of(&self.host.home);
        if known {
            signers.add(&key)?;
        } else if !signers.remove(&key)? {
            bail!(Fault::unknown("this key is not known here; `longhaul trust list` shows those that are"));
        }
        self.host.audit.note(AuditEvent::SignerChanged { key, known }).await
    }

    /// The project that a checkout is, which is known from now on.
    pub(super) async fn claimed(&self, directory: &Path, config: &Config) -> fault::Result<identity::ClaimedCheckout> {
        let host = &self.host;
        identity::claim(&*host.store, directory, &config.project.name, &host.fresh_seed()).await
    }

    /// The configuration of a project, with the id that it has here.
    pub(super) async fn claimed_config(&self, directory: &Path) -> fault::Result<Config> {
        let mut config = Config::read(directory)?;
        config.project.id = self.claimed(&place(directory)?, &config).await?.id;
        Ok(config)
    }

    /// Refuses a file whose powers no person agreed to.
    pub(super) fn expect_trust(&self, directory: &Path, config: &Config) -> fault::Result<()> {
        trust::expect(&*self.host.store, directory, config)
    }

    async fn trust(&self, directory: &Path, digest: Option<Digest>) -> fault::Result<TrustStatus> {
        let config = Config::read(directory)?;
        let powers = powers::of_project(&config, directory);
        if digest.is_some_and(|shown| shown != powers::digest(&powers)) {
            bail!(Fault::conflict("longhaul.toml was changed since it was shown; look at it again"));
        }
        self.trust_powers(directory, &config, &powers).await?;
        trust::of_file(&*self.host.store, directory, &config, &powers)
    }

    /// Agrees to powers, and says so in the audit log.
    pub(super) async fn trust_powers(
        &self,
        directory: &Path,
        config: &Config,
        powers: &BTreeSet<Power>,
    ) -> fault::Result<()> {
        let (host, id) = (&self.host, self.claimed(directory, config).await?.id);
        let agreed = trust::agree(&*host.store, directory, &id, powers, host.clock.now_ms()).await?;
        let powers = agreed.powers.iter().map(ToString::to_string).collect();
        host.audit.note(AuditEvent::Trusted { directory: directory.to_owned(), digest: agreed.digest, powers }).await
    }

    /// Keeps what holds the runs of a project back, which is asked about when it is gone.
    pub(super) async fn keep_guards(&self, directory: &Path, id: &str, config: &Config) -> fault::Result<()> {
        let (host, powers) = (&self.host, powers::of_project(config, directory));
        trust::keep_guards(&*host.store, directory, id, &powers, host.clock.now_ms()).await
    }

    /// Says in the audit log which powers a run went on with that it had not before.
    pub(super) async fn note_more(&self, record: &RunRecord, powers: Vec<String>) -> fault::Result<()> {
        if powers.is_empty() {
            return Ok(());
        }
        let (run, directory) = (record.run.clone(), record.directory.clone());
        self.host.audit.note(AuditEvent::RunWentOn { run, directory, powers }).await
    }

    /// Says in the audit log what a run may do.
    pub(super) async fn note_began(&self, record: &RunRecord, config: &Config) -> fault::Result<()> {
        let powers = powers::of_project(config, &record.directory);
        let powers = powers.iter().filter(|power| !power.is_plain).map(ToString::to_string).collect();
        let (run, directory) = (record.run.clone(), record.directory.clone());
        self.host.audit.note(AuditEvent::RunBegan { run, directory, powers }).await
    }
}

fn place(directory: &Path) -> fault::Result<PathBuf> {
    directory.canonicalize().or_invalid(|| format!("there is no directory `{}`", directory.display()))
}
