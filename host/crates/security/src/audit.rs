//! The audit log of permissions and security changes: a chain of records, each with the digest of the one before.
//!
//! A record that is changed, moved or removed breaks the chain at its number. Records that are cut off at the end do
//! not break it: to detect that, keep the digest of the last record elsewhere, as each backup does, and give it to
//! `longhaul audit verify`. A process of this user can still write the store; the log makes such a change traceable. No
//! record holds the value of a secret. Refuses to rewrite anything.

use longhaul_core::fault;
use longhaul_core::store::{Batch, Key, Store, Table};
use longhaul_core::{Clock, Digest, RunId};
use longhaul_records::contended::change;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Records that one read returns.
const PAGE: usize = 1_000;

/// An audited event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum AuditEvent {
    /// A run began with these powers.
    RunBegan {
        /// The run.
        run: RunId,
        /// The project's directory.
        directory: PathBuf,
        /// Its powers beyond its tree.
        powers: Vec<String>,
    },
    /// A run continued with new powers.
    RunWentOn {
        /// The run.
        run: RunId,
        /// The project's directory.
        directory: PathBuf,
        /// The new powers.
        powers: Vec<String>,
    },
    /// A person answered an approval.
    ApprovalAnswered {
        /// The run.
        run: RunId,
        /// The approval.
        approval: String,
        /// The tool and function that it is about.
        call: String,
        /// The decision: `allowed`, `denied` and the like.
        decision: String,
    },
    /// A person allowed something for the rest of a run.
    RuleMade {
        /// The run.
        run: RunId,
        /// The rule.
        rule: String,
        /// The permission, as text. Records of earlier versions have none.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        text: String,
    },
    /// A rule was revoked.
    RuleRevoked {
        /// The run.
        run: RunId,
        /// The rule.
        rule: String,
    },
    /// A person accepted an MCP server's description of its tools.
    McpAccepted {
        /// The project's directory.
        directory: PathBuf,
        /// The server.
        server: String,
        /// The digest of the description.
        digest: String,
    },
    /// A token of the HTTP API was created.
    TokenMade {
        /// Its name.
        name: String,
        /// Its scopes.
        scopes: Vec<String>,
    },
    /// A token was removed.
    TokenRemoved {
        /// Its name.
        name: String,
    },
    /// A secret was set.
    SecretSet {
        /// Its name.
        name: String,
        /// The tools and hosts that it is bound to.
        bound: String,
    },
    /// A secret was removed.
    SecretRemoved {
        /// Its name.
        name: String,
    },
    /// A run gave a secret to a tool, as a placeholder, or to a server, for the first time.
    SecretUsed {
        /// The run.
        run: RunId,
        /// The table of the tool or server.
        table: String,
        /// The secret's name.
        secret: String,
    },
    /// A run was imported.
    Imported {
        /// The run.
        run: RunId,
        /// Its project's directory here.
        directory: PathBuf,
        /// The signer.
        signer: String,
    },
    /// The data directory was restored from a backup.
    Restored {
        /// The signer.
        signer: String,
    },
    /// A person trusted the file of a project.
    Trusted {
        /// The project's directory.
        directory: PathBuf,
        /// The digest of its powers.
        digest: Digest,
        /// The powers.
        powers: Vec<String>,
    },
    /// A person withdrew the trust in the file of a project.
    Untrusted {
        /// The project's directory.
        directory: PathBuf,
    },
    /// A signer was accepted or removed.
    SignerChanged {
        /// The key.
        key: String,
        /// True when it is accepted now.
        known: bool,
    },
    /// A person declared a checkout to be the same project as another one.
    ProjectJoined {
        /// The checkout.
        directory: PathBuf,
        /// The project's id.
        id: String,
    },
}

/// A record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRecord {
    /// From 1 on, without gaps.
    pub number: u64,
    /// Its time, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// The event.
    #[serde(flatten)]
    pub what: AuditEvent,
    /// The digest of the stored record before it; the first has the digest of nothing.
    pub before: Digest,
}

/// The result of a verification of the whole chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditVerification {
    /// Valid records.
    pub records: u64,
    /// The digest of the last valid record, to be kept elsewhere.
    pub last: Digest,
    /// The first number at which the chain breaks, and how; none: it is intact.
    pub broken: Option<(u64, String)>,
    /// True when a record has the expected digest; none: no digest was given.
    pub has_expected: Option<bool>,
}

/// The log of a data directory.
pub struct AuditLog {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    /// Secrets that runs got in this process, so that each is recorded once.
    told: Mutex<BTreeSet<(RunId, String, String)>>,
}

impl AuditLog {
    /// The log in a store.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock, told: Mutex::default() }
    }

    /// Appends a record.
    ///
    /// # Errors
    /// When the store fails, or other writers were faster each time.
    pub async fn note(&self, what: AuditEvent) -> fault::Result<()> {
        change(&*self.store, || {
            let last = self.store.last(Table::States, &prefix(), 1)?;
            let (number, before) = match last.first() {
                Some((key, bytes)) => (Key::last_number(key).unwrap_or(0), Digest::of(bytes)),
                None => (0, Digest::of(&[])),
            };
            let record = AuditRecord { number: number + 1, at_ms: self.clock.now_ms(), what: what.clone(), before };
            // Another writer may append meanwhile: its record is then the one before.
            let key = prefix().number(record.number);
            Ok((Batch::new().insert(Table::States, key, serde_json::to_vec(&record)?), ()))
        })
        .await
    }

    /// Records that a run gave a secret to a tool or server, once for each process.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn secret_used(&self, run: &RunId, table: &str, secret: &str) -> fault::Result<()> {
        let one = (run.clone(), table.to_owned(), secret.to_owned());
        if !self.told.lock().unwrap_or_else(PoisonError::into_inner).insert(one) {
            return Ok(());
        }
        self.note(AuditEvent::SecretUsed { run: run.clone(), table: table.to_owned(), secret: secret.to_owned() }).await
    }

    /// The newest records, oldest first.
    ///
    /// # Errors
    /// When the store fails, or a record cannot be read.
    pub fn newest(&self, limit: usize) -> fault::Result<Vec<AuditRecord>> {
        let mut rows = self.store.last(Table::States, &prefix(), limit)?;
        rows.reverse();
        rows.iter().map(|(_, bytes)| Ok(serde_json::from_slice(bytes)?)).collect()
    }

    /// Secrets that runs got, with the table of the tool or server.
    ///
    /// # Errors
    /// When the store fails.
    pub fn secrets_used(&self) -> fault::Result<BTreeSet<(RunId, String, String)>> {
        let (mut found, mut after) = (BTreeSet::new(), None::<Vec<u8>>);
        loop {
            let page = self.store.scan(Table::States, &prefix(), after.as_deref(), PAGE)?;
            let Some((end, _)) = page.last() else { return Ok(found) };
            after = Some(end.clone());
            // `verify` reports records that cannot be read.
            let records = page.iter().filter_map(|(_, bytes)| serde_json::from_slice::<AuditRecord>(bytes).ok());
            found.extend(records.filter_map(|record| match record.what {
                AuditEvent::SecretUsed { run, table, secret } => Some((run, table, secret)),
                _ => None,
            }));
        }
    }

    /// Verifies every record, from the first, and looks for one with the expected digest.
    ///
    /// # Errors
    /// When the store fails.
    pub fn verify(&self, expect: Option<Digest>) -> fault::Result<AuditVerification> {
        let mut found =
            AuditVerification { records: 0, last: Digest::of(&[]), broken: None, has_expected: expect.map(|_| false) };
        let mut after = None::<Vec<u8>>;
        loop {
            let page = self.store.scan(Table::States, &prefix(), after.as_deref(), PAGE)?;
            let Some((end, _)) = page.last() else { return Ok(found) };
            after = Some(end.clone());
            for (key, bytes) in &page {
                let number = found.records + 1;
                if let Err(how) = fits(number, &found.last, key, bytes) {
                    found.broken = Some((number, how));
                    return Ok(found);
                }
                (found.records, found.last) = (number, Digest::of(bytes));
                if expect == Some(found.last) {
                    found.has_expected = Some(true);
                }
            }
        }
    }
}

/// Checks that a row is the record of this number that follows the record with this digest.
fn fits(number: u64, before: &Digest, key: &[u8], bytes: &[u8]) -> Result<(), String> {
    let stored = Key::last_number(key).unwrap_or(0);
    if stored != number {
        return Err(format!("record {number} is missing; the next one is {stored}"));
    }
    let record: AuditRecord = serde_json::from_slice(bytes).map_err(|error| format!("it cannot be read: {error}"))?;
    if record.number != number {
        return Err(format!("it says that it is record {}", record.number));
    }
    if record.before != *before {
        let earlier = number - 1;
        return Err(format!("it does not follow record {earlier}: one of the two was changed"));
    }
    Ok(())
}

fn prefix() -> Key {
    Key::of("audit")
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_core::store::Op;
    use longhaul_testkit::{HandClock, MemoryStore, ProcessStore};

    fn log() -> (Arc<dyn Store>, AuditLog) {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let log = AuditLog::new(Arc::clone(&store), Arc::new(HandClock::at(HandClock::START_MS)));
        (store, log)
    }

    async fn noted(log: &AuditLog, count: u64) {
        for number in 1..=count {
            log.note(AuditEvent::TokenRemoved { name: format!("t{number}") }).await.expect("kept");
        }
    }

    #[tokio::test]
    async fn a_record_that_is_changed_moved_or_taken_out_breaks_the_chain_at_its_number() {
        let broken = async |change: &dyn Fn(u64, &[u8]) -> Vec<Op>| {
            let (store, log) = log();
            noted(&log, 4).await;
            assert_eq!(log.verify(None).expect("read").broken, None);
            let row = store.get(Table::States, &prefix().number(2)).expect("read").expect("there");
            store.commit(Batch { ops: change(2, &row) }).await.expect("written");
            log.verify(None).expect("read").broken.map(|(number, _)| number)
        };
        let put = |number: u64, bytes: &[u8]| Op::Put(Table::States, prefix().number(number), bytes.to_vec());
        let changed = |_: u64, row: &[u8]| vec![put(2, String::from_utf8_lossy(row).replace("t2", "t9").as_bytes())];
        assert_eq!(broken(&changed).await, Some(3), "the next one has the digest of what was there");
        assert_eq!(broken(&|_, _| vec![Op::Delete(Table::States, prefix().number(2))]).await, Some(2));
        assert_eq!(broken(&|_, row| vec![put(3, row)]).await, Some(3));
        assert_eq!(broken(&|_, _| vec![put(2, b"{}")]).await, Some(2));
        assert_eq!(broken(&|_, _| vec![Op::Delete(Table::States, prefix().number(1))]).await, Some(1));
    }

    #[tokio::test]
    async fn what_is_cut_off_at_the_end_shows_against_a_digest_that_was_kept() {
        let (store, log) = log();
        noted(&log, 3).await;
        let kept = log.verify(None).expect("read");
        assert_eq!(log.verify(Some(kept.last)).expect("read").has_expected, Some(true));
        assert_eq!((kept.records, log.newest(2).expect("read").len()), (3, 2));
        store.commit(Batch { ops: vec![Op::Delete(Table::States, prefix().number(3))] }).await.expect("written");
        let now = log.verify(Some(kept.last)).expect("read");
        assert_eq!((now.records, now.broken.is_none(), now.has_expected), (2, true, Some(false)));
    }

    #[tokio::test]
    async fn a_secret_is_told_once_and_without_its_value() {
        let (_, log) = log();
        for _ in 0..2 {
            log.secret_used(&RunId::from_text("r-1"), "tools.x", "github").await.expect("kept");
        }
        log.secret_used(&RunId::from_text("r-2"), "tools.x", "github").await.expect("kept");
        noted(&log, 1).await;
        let used = ["r-1", "r-2"].map(|run| (RunId::from_text(run), "tools.x".to_owned(), "github".to_owned()));
        assert_eq!(log.secrets_used().expect("read"), BTreeSet::from(used));
        assert_eq!(log.verify(None).expect("read").records, 3);
    }

    /// Eight attempts used to be all, so a record was lost where more processes wrote at once.
    #[tokio::test]
    async fn what_many_processes_note_at_once_is_one_chain_without_gaps() {
        let store = Arc::new(MemoryStore::new());
        let noting: Vec<_> = (0..24)
            .map(|process| {
                let own: Arc<dyn Store> = Arc::new(ProcessStore::of(&store));
                let log = AuditLog::new(own, Arc::new(HandClock::at(HandClock::START_MS)));
                tokio::spawn(async move { log.note(AuditEvent::TokenRemoved { name: format!("t{process}") }).await })
            })
            .collect();
        for one in noting {
            one.await.expect("no panic").expect("kept");
        }
        let log = AuditLog::new(store, Arc::new(HandClock::at(HandClock::START_MS)));
        let verified = log.verify(None).expect("read");
        assert_eq!((verified.records, verified.broken), (24, None));
        let names: BTreeSet<String> =
            log.newest(24).expect("read").iter().map(|one| format!("{:?}", one.what)).collect();
        assert_eq!(names.len(), 24, "each is there once");
    }
}
