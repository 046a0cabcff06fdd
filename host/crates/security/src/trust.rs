//! Trust in the `longhaul.toml` of a checkout: a person's agreement to its powers, by their digest.
//!
//! The file comes with the repository, so every author of the repository can write it. Plain powers (see `powers.rs`)
//! need no trust, so a project that works on its own tree is never asked about. A file that requests fewer powers than
//! were agreed to is trusted as it is; a file that requests more, or that has lost a guard which runs had, is not, and
//! the difference is shown. Trust belongs to a place in this data directory, and to no repository, for as long as the
//! project that `identity.rs` knows there stays. Refuses to ask a person: surfaces do.

use crate::identity;
use longhaul_config::Config;
use longhaul_config::powers::{self, Power};
use longhaul_core::Digest;
use longhaul_core::fault::{self, Context, Fault, bail};
use longhaul_core::store::{Batch, Key, Op, Store, Table};
use longhaul_home::variable;
use longhaul_records::contended::change;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The variable whose value `all` makes the owner of a data directory trust every file: for containers and tests, whose
/// operator wrote the file too.
pub const VARIABLE: &str = "LONGHAUL_TRUST";

/// Projects that one read returns.
const PROJECTS_MAX: usize = 10_000;

/// An agreement to a project's powers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustRecord {
    /// The directory of the file.
    pub directory: PathBuf,
    /// The id of the project in that directory. A record of an earlier version has none, and is agreed to anew.
    #[serde(default)]
    pub id: String,
    /// The digest of its powers.
    pub digest: Digest,
    /// The powers that are not plain, and the guards that restrict runs.
    pub powers: BTreeSet<Power>,
    /// Its time, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
}

impl TrustRecord {
    fn of(directory: &Path, id: &str, powers: &BTreeSet<Power>, at_ms: u64) -> Self {
        Self {
            directory: directory.to_owned(),
            id: id.to_owned(),
            digest: powers::digest(powers),
            powers: powers.iter().filter(|power| power.is_agreed_on()).cloned().collect(),
            at_ms,
        }
    }
}

/// The trust status of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustStatus {
    /// True when it may be used as it is.
    pub is_trusted: bool,
    /// The digest of its powers, which an agreement refers to.
    pub digest: Digest,
    /// The powers that are not plain.
    pub powers: BTreeSet<Power>,
    /// The powers beyond the agreement, and the guards that are gone, in one line.
    pub beyond: Option<String>,
    /// True when there was no agreement before.
    pub is_new: bool,
}

/// Refuses to work with the file of a project whose powers have no agreement.
///
/// # Errors
/// The powers beyond the agreement, and the remedy.
pub fn expect(store: &dyn Store, directory: &Path, config: &Config) -> fault::Result<()> {
    let standing = of_file(store, directory, config, &powers::of_project(config, directory))?;
    let Some(beyond) = standing.beyond.filter(|_| !standing.is_trusted) else { return Ok(()) };
    let asks = match (standing.is_new, beyond.starts_with('+')) {
        (true, _) => "asks for powers without an agreement here",
        (false, true) => "asks for more powers than were agreed to here",
        (false, false) => "restricts runs less than it did when it was agreed to",
    };
    bail!(Fault::conflict(format!(
        "longhaul.toml {asks} ({beyond}); look at it and agree with `longhaul trust`, or in a script add --trust"
    )))
}

/// True when the environment of this process trusts every file.
fn trusts_all() -> bool {
    variable(VARIABLE).is_some_and(|value| value == "all")
}

/// The trust status of the file in a directory, which has these powers.
///
/// # Errors
/// When the store fails.
pub fn of_file(
    store: &dyn Store,
    directory: &Path,
    config: &Config,
    powers: &BTreeSet<Power>,
) -> fault::Result<TrustStatus> {
    let known = identity::known(store, directory, &config.project.name)?;
    standing(store, directory, known.map(|known| known.id).as_deref(), powers)
}

/// The status of a file with these powers in a directory with this project; none: an unknown project.
fn standing(
    store: &dyn Store,
    directory: &Path,
    id: Option<&str>,
    powers: &BTreeSet<Power>,
) -> fault::Result<TrustStatus> {
    let digest = powers::digest(powers);
    let asked: BTreeSet<Power> = powers.iter().filter(|power| !power.is_plain).cloned().collect();
    let before = agreed(store, directory)?.filter(|before| Some(before.id.as_str()) == id);
    let agreed = before.as_ref().map(|before| before.powers.clone()).unwrap_or_default();
    let lost = agreed.iter().filter(|guard| guard.is_guard() && is_lost(guard, powers));
    let beyond = powers::difference(agreed.intersection(&asked).chain(lost), &asked);
    Ok(TrustStatus {
        is_trusted: beyond.is_none() || trusts_all(),
        digest,
        powers: asked,
        beyond,
        is_new: before.is_none(),
    })
}

/// True when a guard is gone while the guarded power remains.
fn is_lost(guard: &Power, powers: &BTreeSet<Power>) -> bool {
    let has_one_table = !guard.table.contains('.');
    !powers.contains(guard) && (has_one_table || powers.iter().any(|power| power.table == guard.table))
}

/// Stores the guards of a file that needed no agreement, so that a person is asked when one is lost.
///
/// # Errors
/// When the store fails.
pub async fn keep_guards(
    store: &dyn Store,
    directory: &Path,
    id: &str,
    powers: &BTreeSet<Power>,
    at_ms: u64,
) -> fault::Result<()> {
    let guards: BTreeSet<Power> = powers.iter().filter(|power| power.is_guard()).cloned().collect();
    change(store, || {
        // A person may agree or withdraw meanwhile, which must not be taken back.
        let row = store.get(Table::States, &key(directory))?;
        let before = row.as_deref().map(read).transpose()?.filter(|before| before.id == id);
        let mut kept = before.map(|before| before.powers).unwrap_or_default();
        if guards.is_subset(&kept) || standing(store, directory, Some(id), powers)?.beyond.is_some() {
            return Ok((Batch::new(), ()));
        }
        kept.extend(guards.iter().cloned());
        let agreed = serde_json::to_vec(&TrustRecord::of(directory, id, &kept, at_ms))?;
        Ok((Batch::new().replace(Table::States, key(directory), row.as_deref(), agreed), ()))
    })
    .await
}

/// Agrees to the powers of the file of a project with this id.
///
/// # Errors
/// When the store fails.
pub async fn agree(
    store: &dyn Store,
    directory: &Path,
    id: &str,
    powers: &BTreeSet<Power>,
    at_ms: u64,
) -> fault::Result<TrustRecord> {
    let agreed = TrustRecord::of(directory, id, powers, at_ms);
    store.commit(Batch::new().put(Table::States, key(directory), serde_json::to_vec(&agreed)?)).await?;
    Ok(agreed)
}

/// Withdraws an agreement; returns whether there was one.
///
/// # Errors
/// When the store fails.
pub async fn withdraw(store: &dyn Store, directory: &Path) -> fault::Result<bool> {
    let was_agreed = agreed(store, directory)?.is_some();
    store.commit(Batch { ops: vec![Op::Delete(Table::States, key(directory))] }).await?;
    Ok(was_agreed)
}

/// All agreements, by directory.
///
/// # Errors
/// When the store fails.
pub fn list(store: &dyn Store) -> fault::Result<Vec<TrustRecord>> {
    let rows = store.scan(Table::States, &prefix(), None, PROJECTS_MAX)?;
    rows.iter().map(|(_, bytes)| read(bytes)).collect()
}

fn agreed(store: &dyn Store, directory: &Path) -> fault::Result<Option<TrustRecord>> {
    store.get(Table::States, &key(directory))?.map(|bytes| read(&bytes)).transpose()
}

fn read(bytes: &[u8]) -> fault::Result<TrustRecord> {
    serde_json::from_slice(bytes)
        .or_internal(|| "what was agreed to is damaged; agree to it again with `longhaul trust`")
}

fn prefix() -> Key {
    Key::of("trust")
}

fn key(directory: &Path) -> Key {
    prefix().and(&directory.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_testkit::{MemoryStore, ProcessStore};
    use std::sync::Arc;

    const ID: Option<&str> = Some("p-1");

    fn powers_of(more: &str) -> BTreeSet<Power> {
        let text = format!("[project]\nname = \"p\"\n[agents.code]\nplugin = \"react\"\n{more}");
        powers::of(&Config::parse(&text).expect("it is read"))
    }

    #[tokio::test]
    async fn what_is_plain_needs_nobody_and_what_is_more_than_was_agreed_to_is_told() {
        let (store, place) = (MemoryStore::new(), Path::new("/p"));
        let stands = |powers: &BTreeSet<Power>| standing(&store, place, ID, powers).expect("read");
        assert!(stands(&powers_of("[checks]\nunit = { argv = [\"cargo\", \"test\"] }")).is_trusted);
        let (one, both) = (
            powers_of("[notify]\ncommand = [\"a\"]"),
            powers_of("[notify]\ncommand = [\"a\"]\nwebhook = \"https://x.example\""),
        );
        let new = stands(&both);
        assert_eq!((new.is_trusted, new.is_new, new.powers.len()), (false, true, 2));
        agree(&store, place, "p-1", &one, 1).await.expect("kept");
        let more = stands(&both);
        assert_eq!((more.is_trusted, more.is_new), (false, false));
        assert_eq!(more.beyond.as_deref(), Some("+ [notify] posts to https://x.example"));
        agree(&store, place, "p-1", &both, 2).await.expect("kept");
        assert!(stands(&both).is_trusted && stands(&one).is_trusted, "less than was agreed to is fine");
        let elsewhere = standing(&store, Path::new("/other"), ID, &one).expect("read");
        assert!(!elsewhere.is_trusted, "another place is another file");
        for id in [Some("p-2"), None] {
            assert!(!standing(&store, place, id, &one).expect("read").is_trusted, "another project is there");
        }
        assert!(withdraw(&store, place).await.expect("gone"));
        assert!(!stands(&one).is_trusted);
    }

    /// The removal of a question, a protected path or a quarantine from the file used to need no agreement.
    #[tokio::test]
    async fn what_held_runs_back_and_is_gone_is_asked_about() {
        let reader = "agents = [\"reader\"]\n[agents.reader]\nplugin = \"react\"\n";
        let schema = "schema = { type = \"object\", properties = { n = { type = \"integer\" } }, required = [\"n\"] }";
        let tool = "[tools.t]\nplugin = \"t\"\nhosts = [\"https://a.example\"]\n";
        let cases = [
            (
                format!("{tool}approval = {{ default = \"ask\" }}"),
                tool.to_owned(),
                "[tools.t] asks a person before calls",
            ),
            ("[plan]\naccept = \"ask\"".into(), String::new(), "[plan] asks a person to agree to a plan"),
            ("[protect]\npaths = [\"/deploy/**\"]".into(), String::new(), "[protect] protects `/deploy/**`"),
            (
                format!("{reader}quarantine = true\n{schema}"),
                reader.to_owned(),
                "[agents.reader] hears untrusted words in quarantine",
            ),
        ];
        for (with, without, lost) in cases {
            let (store, place) = (MemoryStore::new(), Path::new("/p"));
            let (with, without) = (powers_of(&with), powers_of(&without));
            // Powers beyond the plain ones are agreed to; the others are stored when a run begins.
            if standing(&store, place, ID, &with).expect("read").is_trusted {
                keep_guards(&store, place, "p-1", &with, 1).await.expect("kept");
            } else {
                agree(&store, place, "p-1", &with, 1).await.expect("kept");
            }
            assert!(standing(&store, place, ID, &with).expect("read").is_trusted, "{lost}");
            let now = standing(&store, place, ID, &without).expect("read");
            assert_eq!((now.is_trusted, now.beyond), (false, Some(format!("- {lost}"))));
            keep_guards(&store, place, "p-1", &without, 2).await.expect("nothing is kept of it");
            assert!(!standing(&store, place, ID, &without).expect("read").is_trusted, "{lost}");
            agree(&store, place, "p-1", &without, 3).await.expect("kept");
            assert!(standing(&store, place, ID, &without).expect("read").is_trusted, "{lost}");
        }
    }

    #[tokio::test]
    async fn a_guard_goes_with_what_it_guarded() {
        let (store, place) = (MemoryStore::new(), Path::new("/p"));
        let tool = "[tools.t]\nplugin = \"t\"\nhosts = [\"https://a.example\"]\napproval = { default = \"deny\" }";
        agree(&store, place, "p-1", &powers_of(tool), 1).await.expect("kept");
        assert!(standing(&store, place, ID, &powers_of("")).expect("read").is_trusted);
        let refused = powers_of(&tool.replace("deny", "ask"));
        let beyond = standing(&store, place, ID, &refused).expect("read").beyond;
        assert_eq!(beyond.as_deref(), Some("- [tools.t] refuses calls"));
    }

    /// Another repository in the same place, with the same powers, used to need no agreement.
    #[tokio::test]
    async fn another_repository_in_the_place_of_one_is_asked_about() {
        let (folder, store) = (tempfile::tempdir().expect("a folder"), MemoryStore::new());
        let place = folder.path().join("p");
        longhaul_worktree::new_project(&place, "p").expect("made");
        let place = place.canonicalize().expect("there");
        let text = "[project]\nname = \"p\"\n[agents.code]\nplugin = \"react\"\n[notify]\ncommand = [\"a\"]\n";
        let config = Config::parse(text).expect("it is read");
        let claimed = identity::claim(&store, &place, "p", &[1; 32]).await.expect("claimed");
        agree(&store, &place, &claimed.id, &powers::of_project(&config, &place), 1).await.expect("kept");
        expect(&store, &place, &config).expect("it is trusted");
        std::fs::remove_dir_all(&place).expect("ours");
        longhaul_worktree::new_project_with(&place, "p", &[("other.txt", "x")]).expect("made");
        let refused = expect(&store, &place, &config).expect_err("another project").to_string();
        assert!(refused.contains("asks for powers without an agreement here (+ [notify] starts `a`"), "{refused}");
        let claimed = identity::claim(&store, &place, "p", &[2; 32]).await.expect("claimed");
        assert!(expect(&store, &place, &config).is_err(), "also once it is known");
        agree(&store, &place, &claimed.id, &powers::of_project(&config, &place), 2).await.expect("kept");
        expect(&store, &place, &config).expect("it is trusted");
    }

    #[tokio::test]
    async fn guards_that_are_kept_while_a_person_agrees_or_withdraws_take_nothing_of_that_back() {
        let (store, place) = (Arc::new(MemoryStore::new()), Path::new("/p"));
        let process = ProcessStore::of(&store);
        let plain = powers_of("[plan]\naccept = \"ask\"");
        let more = powers_of("[notify]\ncommand = [\"a\"]\n[plan]\naccept = \"ask\"");
        let stands = |powers: &BTreeSet<Power>| standing(&*store, place, ID, powers).expect("read").is_trusted;
        // Each person's word comes when the guards of a run are read and not yet stored.
        let agrees = async { agree(&*store, place, "p-1", &more, 1).await };
        let (kept, agreed) = tokio::join!(keep_guards(&process, place, "p-1", &plain, 2), agrees);
        kept.and(agreed.map(drop)).expect("stored");
        assert!(stands(&more) && stands(&plain) && !stands(&powers_of("")));
        let guards = "[plan]\naccept = \"ask\"\n[protect]\npaths = [\"/deploy/**\"]";
        let (guarded, both) = (powers_of(guards), powers_of(&format!("[notify]\ncommand = [\"a\"]\n{guards}")));
        let withdraws = async { withdraw(&*store, place).await };
        let (kept, withdrawn) = tokio::join!(keep_guards(&process, place, "p-1", &guarded, 3), withdraws);
        kept.expect("stored");
        assert!(withdrawn.expect("withdrawn"));
        assert!(stands(&guarded) && !stands(&plain), "the guards are kept");
        assert!(!stands(&both), "and what was agreed to before is not");
    }
}
