//! Who may do what here: the audit log, trust in the files of projects, and which project a checkout is.

use super::Service;
use crate::audit::What;
use crate::config::Config;
use crate::identity;
use crate::powers::{self, Power};
use crate::signing::Signers;
use crate::trust::{self, Standing};
use longhaul_api::answer::Answer;
use longhaul_api::security::{SecurityAsk, SecurityDone};
use longhaul_core::Digest;
use longhaul_core::fault::{self, Context as _, Fault, bail};
use longhaul_records::record::RunRecord;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Records of the audit log that are answered at most.
const RECORDS_MAX: usize = 10_000;

impl Service {
    pub(super) async fn security(&self, wanted: SecurityAsk) -> fault::Result<Answer> {
        let (store, audit) = (&*self.host.store, &self.host.audit);
        let done = match wanted {
            SecurityAsk::AuditLog { limit } => SecurityDone::Audit(audit.newest(limit.min(RECORDS_MAX))?),
            SecurityAsk::VerifyAudit { expect } => SecurityDone::Verified(audit.verify(expect)?),
            SecurityAsk::Grants { directory } => SecurityDone::Grants(Box::new(self.grants_of(&place(&directory)?)?)),
            SecurityAsk::Project { directory } => {
                let directory = place(&directory)?;
                let claimed = self.claimed(&directory, &Config::read(&directory)?).await?;
                SecurityDone::Project { id: claimed.id, told: claimed.told }
            }
            SecurityAsk::Checkouts => SecurityDone::Checkouts(identity::list(store)?),
            SecurityAsk::SameAs { directory, other } => {
                let directory = place(&directory)?;
                let config = Config::read(&directory)?;
                let _alone = self.turns.take([super::turns::of_directory(&directory)]).await;
                let id = identity::join(store, &directory, &config.project.name, &other).await?;
                audit.note(What::ProjectJoined { directory, id: id.clone() }).await?;
                SecurityDone::Project { id, told: None }
            }
            SecurityAsk::SecretChanged { name, bound } => {
                audit
                    .note(match bound {
                        Some(bound) => What::SecretSet { name, bound },
                        None => What::SecretRemoved { name },
                    })
                    .await?;
                SecurityDone::Done
            }
            SecurityAsk::Standing { directory } => {
                let directory = place(&directory)?;
                let config = Config::read(&directory)?;
                let powers = powers::of_project(&config, &directory);
                SecurityDone::Standing(Box::new(trust::of_file(store, &directory, &config, &powers)?))
            }
            SecurityAsk::Expect { directory } => {
                let directory = place(&directory)?;
                self.expect_trust(&directory, &Config::read(&directory)?)?;
                SecurityDone::Done
            }
            SecurityAsk::Trust { directory, digest } => {
                SecurityDone::Standing(Box::new(self.trust(&place(&directory)?, digest).await?))
            }
            SecurityAsk::Untrust { directory } => {
                let directory = place(&directory).unwrap_or(directory);
                if !trust::withdraw(store, &directory).await? {
                    bail!(Fault::unknown(format!("nothing in `{}` is trusted", directory.display())));
                }
                audit.note(What::Untrusted { directory }).await?;
                SecurityDone::Done
            }
            SecurityAsk::Trusted => {
                SecurityDone::Trusted { files: trust::list(store)?, signers: Signers::of(&self.host.home).list()? }
            }
            SecurityAsk::Signer { key, known } => {
                self.signer(key, known).await?;
                SecurityDone::Done
            }
        };
        Ok(Answer::Security { done: Box::new(done) })
    }

    async fn signer(&self, key: String, known: bool) -> fault::Result<()> {
        let signers = Signers::of(&self.host.home);
        if known {
            signers.add(&key)?;
        } else if !signers.remove(&key)? {
            bail!(Fault::unknown("this key is not known here; `longhaul trust list` shows those that are"));
        }
        self.host.audit.note(What::SignerChanged { key, known }).await
    }

    /// The project that a checkout is, which is known from now on.
    pub(super) async fn claimed(&self, directory: &Path, config: &Config) -> fault::Result<identity::Claimed> {
        let host = &self.host;
        identity::claim(&*host.store, directory, &config.project.name, &host.fresh_seed()).await
    }

    /// The configuration of a project, with the id that it has here.
    pub(super) async fn claimed_config(&self, directory: &Path) -> fault::Result<Config> {
        let mut config = Config::read(directory)?;
        config.project.id = self.claimed(&place(directory)?, &config).await?.id;
        Ok(config)
    }

    /// Refuses to work with a file whose powers nobody agreed to.
    pub(super) fn expect_trust(&self, directory: &Path, config: &Config) -> fault::Result<()> {
        trust::expect(&*self.host.store, directory, config)
    }

    async fn trust(&self, directory: &Path, digest: Option<Digest>) -> fault::Result<Standing> {
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
        host.audit.note(What::Trusted { directory: directory.to_owned(), digest: agreed.digest, powers }).await
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
        self.host.audit.note(What::RunWentOn { run, directory, powers }).await
    }

    /// Says in the audit log what a run may do.
    pub(super) async fn note_began(&self, record: &RunRecord, config: &Config) -> fault::Result<()> {
        let powers = powers::of_project(config, &record.directory);
        let powers = powers.iter().filter(|power| !power.is_plain).map(ToString::to_string).collect();
        let (run, directory) = (record.run.clone(), record.directory.clone());
        self.host.audit.note(What::RunBegan { run, directory, powers }).await
    }
}

fn place(directory: &Path) -> fault::Result<PathBuf> {
    directory.canonicalize().or_invalid(|| format!("there is no directory `{}`", directory.display()))
}
