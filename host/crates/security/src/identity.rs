//! The identity of a checkout's project: an id that this data directory drew at random, by the place of the checkout.
//!
//! The author of a repository chooses the name in `longhaul.toml`, so nothing may depend on it: secrets, memory,
//! decisions, progress and accepted MCP servers are found by the id. A place keeps its checkout for as long as its
//! repository has the commit that was last seen there; another repository in its place is another project. A directory
//! without a repository, which is enough for an ask, is known by its place alone: SECURITY.md says so. None of this is
//! in the repository, where another repository could copy it.
//!
//! A data directory of an earlier version knew projects by name. The checkout of a name's oldest run keeps the data
//! under that name: its id is the name, which no drawn id can be equal to. Refuses to decide by itself that two
//! checkouts are one project: a person does, with `longhaul project same-as`.

use longhaul_config::{Config, FILE};
use longhaul_core::fault::{self, Context, Fault, bail};
use longhaul_core::ids::{drawn, is_drawn};
use longhaul_core::store::{Batch, Key, Store, Table};
use longhaul_records::contended::change;
use longhaul_records::record::{ProjectRecord, RunRecord, records};
use longhaul_worktree::UserRepository;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Checkouts that one read returns.
const CHECKOUTS_MAX: usize = 10_000;

/// A known checkout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkout {
    /// The project's id.
    pub id: String,
    /// The project's name when the checkout was last used.
    pub name: String,
    /// Its directory.
    pub directory: PathBuf,
    /// A commit that its repository has; none without a repository.
    #[serde(default)]
    pub commit: Option<String>,
}

/// A checkout in use, with the notice for its user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedCheckout {
    /// The project's id.
    pub id: String,
    /// The notice on first use, in one line.
    pub told: Option<String>,
}

/// The project in a directory, if it is known here. Writes nothing.
pub fn known(store: &dyn Store, directory: &Path, name: &str) -> fault::Result<Option<Checkout>> {
    match row(store, directory)? {
        Some(checkout) if is_still_there(&checkout) => Ok(Some(checkout)),
        Some(_) => Ok(None),
        None => of_before(store, directory, name),
    }
}

/// The project in a directory, which is known from now on. Its id is drawn from `seed`; of several that claim one
/// directory at once, all get the id of the first.
pub async fn claim(store: &dyn Store, directory: &Path, name: &str, seed: &[u8; 32]) -> fault::Result<ClaimedCheckout> {
    change(store, || {
        // Read first: what is decided below holds only if this row is still there when it is stored.
        let row = store.get(Table::States, &key(directory))?;
        let before = known(store, directory, name)?;
        let told = if before.is_none() { told(store, directory, name)? } else { None };
        let id = before.as_ref().map_or_else(|| drawn(seed), |before| before.id.clone());
        let checkout = Checkout {
            id: id.clone(),
            name: name.to_owned(),
            directory: directory.to_owned(),
            // A repository that is missing for a moment keeps its last commit.
            commit: commit_of(directory).or_else(|| before.as_ref().and_then(|before| before.commit.clone())),
        };
        let mut batch = Batch::new();
        if before.as_ref() != Some(&checkout) || row.is_none() {
            batch = batch.replace(Table::States, key(directory), row.as_deref(), serde_json::to_vec(&checkout)?);
        }
        Ok((batch, ClaimedCheckout { id, told }))
    })
    .await
}

/// Declares the checkout in a directory to be the same project as another one, named by its directory or its id.
pub async fn join(store: &dyn Store, directory: &Path, name: &str, other: &str) -> fault::Result<String> {
    let checkouts = list(store)?;
    let place = Path::new(other).canonicalize().unwrap_or_else(|_| PathBuf::from(other));
    let found = checkouts.iter().find(|known| known.id == other || known.directory == place).cloned();
    let found = match found {
        Some(found) => Some(found),
        // No newer version has used this checkout since projects were known by name alone.
        None => {
            Config::read(&place).ok().and_then(|config| of_before(store, &place, &config.project.name).ok().flatten())
        }
    };
    let id = match found {
        Some(found) => found.id,
        // A project of another machine, for data that both keep on a server.
        None if is_drawn(other) => other.to_owned(),
        None => bail!(Fault::unknown(format!(
            "no project is known in `{0}` or by that id; `longhaul projects` shows those that are",
            longhaul_core::text::printable(other, 200)
        ))),
    };
    let checkout = Checkout {
        id: id.clone(),
        name: name.to_owned(),
        directory: directory.to_owned(),
        commit: commit_of(directory),
    };
    // A person's word holds, whatever was claimed meanwhile.
    store.commit(Batch::new().put(Table::States, key(directory), serde_json::to_vec(&checkout)?)).await?;
    Ok(id)
}

/// Every known checkout, by its directory.
pub fn list(store: &dyn Store) -> fault::Result<Vec<Checkout>> {
    let rows = store.scan(Table::States, &prefix(), None, CHECKOUTS_MAX)?;
    rows.iter()
        .map(|(_, bytes)| serde_json::from_slice(bytes).or_internal(|| "the record of a checkout is damaged"))
        .collect()
}

fn told(store: &dyn Store, directory: &Path, name: &str) -> fault::Result<Option<String>> {
    if row(store, directory)?.is_some() {
        return Ok(Some(format!(
            "another repository was in `{}` before, so this is a project of its own: it has none of the other one's \
             secrets and memories",
            directory.display()
        )));
    }
    let of_checkout = |known: Checkout| (known.directory, known.name);
    let of_run = |record: RunRecord| (record.directory, record.project);
    let mut known = list(store)?.into_iter().map(of_checkout).chain(records(store)?.into_iter().map(of_run));
    let other = known.find(|(place, known)| known == name && place != directory && place.join(FILE).exists());
    Ok(other.map(|(place, _)| {
        format!(
            "there is a project `{name}` in `{0}`, too; this checkout is a project of its own, with none of that one's \
             secrets and memories; if they are one, run: longhaul project same-as {0}",
            place.display()
        )
    }))
}

/// Data under a name from an earlier version belongs to the checkout of its oldest run that still exists, or else to
/// the one that was created with that name.
fn of_before(store: &dyn Store, directory: &Path, name: &str) -> fault::Result<Option<Checkout>> {
    let is_of = |project: &str, place: &Path| project == name && (place == directory || place.join(FILE).exists());
    let runs = records(store)?.into_iter().filter(|record| record.id.is_empty());
    let mut places: Vec<PathBuf> =
        runs.filter(|record| is_of(&record.project, &record.directory)).map(|record| record.directory).collect();
    if places.is_empty() {
        let mut made = ProjectRecord::list(store)?;
        made.retain(|record| is_of(&record.project, &record.directory));
        made.sort_by_key(|record| record.created_ms);
        places.extend(made.into_iter().map(|record| record.directory));
    }
    let is_taken = || Ok::<_, Fault>(list(store)?.iter().any(|known| known.id == name));
    if places.first().map(PathBuf::as_path) != Some(directory) || is_taken()? {
        return Ok(None);
    }
    let (id, name) = (name.to_owned(), name.to_owned());
    Ok(Some(Checkout { id, name, directory: directory.to_owned(), commit: None }))
}

/// True when the repository is the one that was last seen there.
fn is_still_there(checkout: &Checkout) -> bool {
    let Some(commit) = &checkout.commit else { return true };
    // A directory without a repository holds nothing that could be taken for the project.
    UserRepository::open(&checkout.directory).map_or(true, |project| project.has_commit(commit))
}

fn commit_of(directory: &Path) -> Option<String> {
    UserRepository::open(directory).ok()?.head().ok()
}

fn row(store: &dyn Store, directory: &Path) -> fault::Result<Option<Checkout>> {
    let bytes = store.get(Table::States, &key(directory))?;
    bytes.map(|bytes| serde_json::from_slice(&bytes).or_internal(|| "the record of a checkout is damaged")).transpose()
}

fn prefix() -> Key {
    Key::of("checkouts")
}

fn key(directory: &Path) -> Key {
    prefix().and(&directory.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_testkit::{MemoryStore, ProcessStore};
    use std::fs;
    use std::sync::Arc;

    fn checkout(folder: &tempfile::TempDir, name: &str) -> PathBuf {
        let place = folder.path().join(name);
        fs::create_dir_all(&place).expect("ours");
        fs::write(place.join(FILE), "[project]\nname = \"app\"\n[agents.code]\nplugin = \"react\"\n").expect("ours");
        place.canonicalize().expect("there")
    }

    #[tokio::test]
    async fn a_second_checkout_with_the_same_name_is_a_project_of_its_own_until_a_person_says_otherwise() {
        let (folder, store) = (tempfile::tempdir().expect("a folder"), MemoryStore::new());
        let (first, second) = (checkout(&folder, "first"), checkout(&folder, "second"));
        let one = claim(&store, &first, "app", &[1; 32]).await.expect("claimed");
        assert_eq!(one, ClaimedCheckout { id: "p-01010101010101010101".into(), told: None });
        assert_eq!(claim(&store, &first, "app", &[9; 32]).await.expect("claimed").id, one.id, "it keeps its id");
        assert_eq!(known(&store, &second, "app").expect("read"), None);
        let two = claim(&store, &second, "app", &[2; 32]).await.expect("claimed");
        assert_ne!(two.id, one.id);
        assert!(two.told.expect("told").contains("longhaul project same-as"));
        assert_eq!(claim(&store, &second, "app", &[3; 32]).await.expect("claimed").told, None, "once");
        let other = first.to_str().expect("text");
        assert_eq!(join(&store, &second, "app", other).await.expect("joined"), one.id);
        assert_eq!(known(&store, &second, "app").expect("read").expect("known").id, one.id);
        assert!(join(&store, &second, "app", "/nowhere").await.is_err());
        // A name that looks like an id stays a name.
        let sly = checkout(&folder, "sly");
        assert_ne!(claim(&store, &sly, &one.id, &[4; 32]).await.expect("claimed").id, one.id);
    }

    #[tokio::test]
    async fn another_repository_in_the_place_of_one_is_another_project() {
        let (folder, store) = (tempfile::tempdir().expect("a folder"), MemoryStore::new());
        let place = folder.path().join("app");
        longhaul_worktree::new_project(&place, "app").expect("made");
        let place = place.canonicalize().expect("there");
        let one = claim(&store, &place, "app", &[1; 32]).await.expect("claimed");
        fs::remove_dir_all(&place).expect("ours");
        longhaul_worktree::new_project_with(&place, "app", &[("other.txt", "x")]).expect("made");
        let two = claim(&store, &place, "app", &[2; 32]).await.expect("claimed");
        assert_ne!(one.id, two.id);
        assert!(two.told.expect("told").contains("another repository was in"));
    }

    #[tokio::test]
    async fn what_was_kept_under_a_name_stays_with_the_checkout_that_was_made_with_it() {
        let (folder, store) = (tempfile::tempdir().expect("a folder"), MemoryStore::new());
        let (first, second) = (checkout(&folder, "first"), checkout(&folder, "second"));
        for (directory, created_ms) in [(&second, 2), (&first, 1)] {
            let record = ProjectRecord { project: "app".into(), directory: directory.clone(), created_ms };
            store.commit(record.put(Batch::new()).expect("a row")).await.expect("kept");
        }
        assert_ne!(claim(&store, &second, "app", &[2; 32]).await.expect("claimed").id, "app");
        assert_eq!(claim(&store, &first, "app", &[1; 32]).await.expect("claimed").id, "app");
        assert_eq!(claim(&store, &first, "app", &[1; 32]).await.expect("claimed").id, "app");
    }

    /// Two asks that were the first ones in a directory used to get two ids, of which one was lost with its memory.
    #[tokio::test]
    async fn all_that_claim_a_directory_at_once_get_one_id() {
        let (folder, store) = (tempfile::tempdir().expect("a folder"), Arc::new(MemoryStore::new()));
        let place = checkout(&folder, "app");
        let claiming: Vec<_> = (1..=6)
            .map(|seed| {
                let (process, place) = (ProcessStore::of(&store), place.clone());
                tokio::spawn(async move { claim(&process, &place, "app", &[seed; 32]).await })
            })
            .collect();
        let mut ids = Vec::new();
        for one in claiming {
            ids.push(one.await.expect("no panic").expect("claimed").id);
        }
        let known = known(&*store, &place, "app").expect("read").expect("known");
        assert!(ids.iter().all(|id| *id == known.id), "{ids:?}, and {} is kept", known.id);
    }

    #[tokio::test]
    async fn a_claim_does_not_take_back_what_a_person_says_meanwhile() {
        let (folder, store) = (tempfile::tempdir().expect("a folder"), Arc::new(MemoryStore::new()));
        let (first, second) = (checkout(&folder, "first"), checkout(&folder, "second"));
        let one = claim(&*store, &first, "app", &[1; 32]).await.expect("claimed");
        let process = ProcessStore::of(&store);
        let joins = async { join(&*store, &second, "app", &one.id).await };
        // The claim has read that nothing is known of the second directory when the person says what it is.
        let (claimed, joined) = tokio::join!(claim(&process, &second, "app", &[2; 32]), joins);
        assert_eq!((claimed.expect("claimed").id, joined.expect("joined")), (one.id.clone(), one.id.clone()));
        assert_eq!(known(&*store, &second, "app").expect("read").expect("known").id, one.id);
    }
}
