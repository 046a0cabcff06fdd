//! Deletes expired data: old runs, orphaned trees, unreferenced content, and compiled code that was not used for long.
//!
//! It keeps the newest run of a project, which is the project's status; a run that is worked on, or is still to be
//! remembered; and all content while any run is worked on.

use longhaul_core::RunId;
use longhaul_core::fault;
use longhaul_core::store::Store;
use longhaul_harness::RunStatus;
use longhaul_home::Home;
use longhaul_records::record::{self, StoredRun};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The runs that are old enough, and that nothing uses any more.
pub fn old_runs(store: &dyn Store, now_ms: u64, active: &[RunId], older_ms: u64) -> fault::Result<Vec<RunId>> {
    let all = record::list(store)?;
    let newest = newest(&all);
    let mut old = Vec::new();
    for StoredRun { record, state } in &all {
        use RunStatus::{Abandoned, Completed, Failed, Incomplete};
        let has_ended = matches!(state.status(), Completed | Incomplete | Failed | Abandoned);
        if !has_ended || newest.contains(&record.run) || active.contains(&record.run) {
            continue;
        }
        let is_due = longhaul_memory::is_due(store, &record.run)?;
        let last_ms = record::last_event_ms(store, &record.run)?.unwrap_or(record.created_ms);
        if !is_due && now_ms.saturating_sub(last_ms) > older_ms {
            old.push(record.run.clone());
        }
    }
    Ok(old)
}

/// The newest run of each project on its own branch. A fork has another one, and no run follows it there.
fn newest(all: &[StoredRun]) -> BTreeSet<RunId> {
    let mut newest: std::collections::BTreeMap<&Path, (u64, &RunId)> = std::collections::BTreeMap::new();
    let is_of_project = |stored: &&StoredRun| stored.record.branch == format!("longhaul/{}", stored.record.project);
    for StoredRun { record, .. } in all.iter().filter(is_of_project) {
        let this = (record.created_ms, &record.run);
        let known = newest.entry(&record.directory).or_insert(this);
        *known = (*known).max(this);
    }
    newest.into_values().map(|(_, run)| run.clone()).collect()
}

/// Removes a run with its trees; returns its rows, and the bytes of its trees. Forks get the entries that they share.
pub async fn remove_run(home: &Home, store: &dyn Store, run: &RunId, dry_run: bool) -> fault::Result<(usize, u64)> {
    let rows = longhaul_checkpoints::rows_of_run(store, run)?.ops.len();
    let trees = trees_of(home, |name| name.split('.').next() == Some(run.as_str()));
    let bytes = trees.iter().map(|tree| bytes_below(tree)).sum();
    if !dry_run {
        // The rows first: the next sweep removes a tree without a run.
        record::hand_over(store, run).await?;
        store.commit(longhaul_checkpoints::removal(store, run)?).await?;
        trees.iter().for_each(|tree| remove(tree));
    }
    Ok((rows, bytes))
}

/// Removes the trees of runs that are not in `known`; returns how many, and their bytes.
pub fn sweep_trees(home: &Home, known: &BTreeSet<String>, dry_run: bool) -> (usize, u64) {
    let orphans = trees_of(home, |name| !known.iter().any(|run| name.contains(run.as_str())));
    let bytes = orphans.iter().map(|tree| bytes_below(tree)).sum();
    if !dry_run {
        orphans.iter().for_each(|tree| remove(tree));
    }
    (orphans.len(), bytes)
}

fn trees_of(home: &Home, is_wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let entries = home.path().join("trees").read_dir().into_iter().flatten().flatten();
    entries.filter(|entry| is_wanted(&entry.file_name().to_string_lossy())).map(|entry| entry.path()).collect()
}

fn remove(path: &Path) {
    let is_dir = fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
    let removed = if is_dir { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    if let Err(error) = removed {
        tracing::warn!(path = %path.display(), %error, "cannot be removed");
    }
}

fn bytes_below(path: &Path) -> u64 {
    let (mut bytes, mut paths) = (0, vec![path.to_owned()]);
    while let Some(path) = paths.pop() {
        let Ok(found) = fs::symlink_metadata(&path) else { continue };
        if found.is_dir() {
            paths.extend(path.read_dir().into_iter().flatten().flatten().map(|entry| entry.path()));
        } else {
            bytes += found.len();
        }
    }
    bytes
}

/// Removes files of a directory, the longest unused first, until at most `bytes_max` are left; returns how many, and
/// their bytes. A file that is in use stays readable for every process that has it open.
pub fn shrink(directory: &Path, bytes_max: u64, dry_run: bool) -> (usize, u64) {
    let mut files: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
    for entry in directory.read_dir().into_iter().flatten().flatten() {
        if let Ok(found) = fs::symlink_metadata(entry.path())
            && found.is_file()
        {
            let used = found.accessed().into_iter().chain(found.modified()).max().unwrap_or(SystemTime::UNIX_EPOCH);
            files.push((used, found.len(), entry.path()));
        }
    }
    files.sort();
    let mut left: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
    let (mut removed, mut freed) = (0, 0);
    for (_, bytes, path) in files {
        if left <= bytes_max {
            break;
        }
        if dry_run || fs::remove_file(&path).is_ok() {
            (removed, freed, left) = (removed + 1, freed + bytes, left - bytes);
        }
    }
    (removed, freed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_core::event::{Event, RunEvent};
    use longhaul_core::store::{Batch, Table};
    use longhaul_harness::RunState;
    use longhaul_testkit::MemoryStore;

    /// A run with so many states, of which each has its goal; the last event of each is its number.
    async fn states(store: &MemoryStore, run: &RunId, goals: u64) {
        for number in 1..=goals {
            let state = RunState { goal: goal(number), ..RunState::new() };
            let events = [RunEvent { run: run.clone(), number, at_ms: number, event: Event::Paused }];
            let mut batch = record::put_state(store, Batch::new(), run, &state, &events).unwrap();
            record::put_events(&mut batch, run, &events).unwrap();
            store.commit(batch).await.unwrap();
        }
    }

    fn goal(number: u64) -> String {
        format!("goal {number} ").repeat(1_000)
    }

    /// A copy without the content that nothing names, as a store deletes it.
    async fn collected(store: &MemoryStore) -> MemoryStore {
        let (copy, mut batch, mut texts) = (MemoryStore::new(), Batch::new(), Vec::new());
        for table in Table::ALL {
            for (key, value) in store.rows(table) {
                texts.extend([key.clone(), value.clone()]);
                batch = batch.put(table, longhaul_core::store::Key::from_bytes(key), value);
            }
        }
        let mut seen = BTreeSet::new();
        while let Some(text) = texts.pop() {
            for digest in longhaul_checkpoints::digests(&text).into_iter().filter(|digest| seen.insert(*digest)) {
                if let Some(content) = store.blob(&digest).unwrap() {
                    texts.push(content.clone());
                    batch.blob(content);
                }
            }
        }
        copy.commit(batch).await.unwrap();
        copy
    }

    #[tokio::test]
    async fn what_past_states_are_made_of_stays_until_their_run_is_deleted() {
        let store = MemoryStore::new();
        let (run, other) = (RunId::from_text("r-1"), RunId::from_text("r-12"));
        states(&store, &run, 3).await;
        states(&store, &other, 2).await;
        let copy = collected(&store).await;
        for number in 1..=3 {
            let (event, state) = record::state_at(&copy, &run, number).unwrap().expect("a state");
            assert_eq!((event, state.goal), (number, goal(number)));
        }
        let content =
            |store: &MemoryStore, number| store.blob(&longhaul_core::Digest::of(goal(number).as_bytes())).unwrap();
        assert!(content(&copy, 3).is_some());

        copy.commit(longhaul_checkpoints::removal(&copy, &run).unwrap()).await.unwrap();
        assert!(record::state_at(&copy, &run, 3).unwrap().is_none());
        let copy = collected(&copy).await;
        assert_eq!((content(&copy, 2).is_some(), content(&copy, 3)), (true, None), "the other run has the second goal");
        assert!(record::state_at(&copy, &other, 2).unwrap().is_some());
        assert!(!copy.rows(Table::States).iter().any(|(key, _)| key.starts_with(b"r-1\0")), "no row of it is left");
    }

    #[test]
    fn the_longest_unused_goes_first_and_only_as_much_as_must() {
        let directory = tempfile::tempdir().unwrap();
        for (name, days) in [("new", 1_u64), ("old", 30), ("middle", 10)] {
            let path = directory.path().join(name);
            fs::write(&path, [0; 100]).unwrap();
            let time = SystemTime::now() - std::time::Duration::from_secs(days * 86_400);
            let times = fs::FileTimes::new().set_accessed(time).set_modified(time);
            fs::File::options().write(true).open(&path).unwrap().set_times(times).unwrap();
        }
        assert_eq!(shrink(directory.path(), 150, true), (2, 200), "only said");
        assert_eq!(shrink(directory.path(), 300, false), (0, 0));
        assert_eq!(shrink(directory.path(), 150, false), (2, 200));
        assert!(directory.path().join("new").exists());
    }
}
