//! The history of a tree, kept and made again.

use super::*;
use longhaul_core::RunId;
use longhaul_core::store::Store;
use longhaul_records::record::{RunRecord, newest_tree, tree_at};
use longhaul_testkit::{HandClock, MemoryStore};
use longhaul_worktree::{TreeCaps, UserRepository, no_hook};
use std::path::{Path, PathBuf};

/// A project with one commit, a tree of it, and the carrier that keeps its history in a store that nobody shares.
struct Lab {
    folder: tempfile::TempDir,
    store: Arc<MemoryStore>,
    clock: Arc<HandClock>,
    carrier: TreeCarrier,
}

fn git(directory: &Path, arguments: &[&str]) {
    let mut command = std::process::Command::new("git");
    command.current_dir(directory).args(arguments);
    for (key, value) in [("NAME", "User"), ("EMAIL", "user@localhost")] {
        command.env(format!("GIT_AUTHOR_{key}"), value).env(format!("GIT_COMMITTER_{key}"), value);
    }
    assert!(command.status().unwrap().success(), "git {arguments:?}");
}

fn run() -> RunId {
    RunId::from_text("r-1")
}

impl Lab {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("repo");
        std::fs::create_dir(&root).unwrap();
        std::fs::write(root.join("a.txt"), "start").unwrap();
        git(&root, &["init", "-q", "-b", "main"]);
        git(&root, &["add", "-A"]);
        git(&root, &["commit", "-q", "-m", "start"]);
        let project = UserRepository::open(&root).unwrap();
        let base = project.head().unwrap();
        let dir = folder.path().join("trees/r-1");
        std::fs::create_dir(folder.path().join("trees")).unwrap();
        let tree = Tree::checkout(&project, &dir, &base, &TreeCaps::default(), &no_hook).unwrap().tree;
        let record = serde_json::json!({
            "run": "r-1", "project": "demo", "directory": root, "branch": "longhaul/demo", "base": base, "config": "",
            "goal": "", "pins": {}, "models": {}, "created_ms": 0,
        });
        let record: RunRecord = serde_json::from_value(record).unwrap();
        let (store, clock) = (Arc::new(MemoryStore::new()), Arc::new(HandClock::at(1_000)));
        let commits = CommitCarrier::open(store.clone(), &record).unwrap();
        let carrier = TreeCarrier::new(commits, 0, tree, Some(clock.clone()));
        Self { folder, store, clock, carrier }
    }

    fn tree(&self) -> PathBuf {
        self.folder.path().join("trees/r-1")
    }

    fn write(&self, path: &str, text: &str) {
        std::fs::write(self.tree().join(path), text).unwrap();
    }

    /// Stores what follows an effect; returns the number of changes.
    async fn effect(&self) -> usize {
        let rows = self.carrier.after_effect(true).await.unwrap();
        let count = rows.batch.ops.len();
        self.store.commit(rows.batch).await.unwrap();
        count
    }

    /// The files of the tree at a time, made again elsewhere; none if they are not known.
    fn files_at(&self, at_ms: u64) -> Option<Vec<(String, String)>> {
        let row = tree_at(&*self.store, &run(), 0, at_ms).unwrap()?;
        let project = UserRepository::open(&self.folder.path().join("repo")).unwrap();
        let dir = self.folder.path().join("trees/again");
        let mut fetch =
            |digest: &Digest| -> Result<Vec<u8>, TreeError> { Ok(self.store.blob(digest).unwrap().expect("stored")) };
        Tree::remove(&dir).unwrap();
        Tree::rebuild(&project, &dir, &row.base, &row.root, &mut fetch).unwrap();
        let entries = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap());
        let text = |path: &Path| std::fs::read_to_string(path).unwrap();
        let mut files: Vec<(String, String)> = entries
            .filter(|entry| entry.file_type().unwrap().is_file())
            .map(|entry| (entry.file_name().to_string_lossy().into_owned(), text(&entry.path())))
            .collect();
        files.sort();
        Some(files)
    }
}

fn files(all: &[(&str, &str)]) -> Option<Vec<(String, String)>> {
    Some(all.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect())
}

#[tokio::test]
async fn a_tree_is_made_again_as_it_was_after_any_effect() {
    let lab = Lab::new();
    lab.write("b.txt", "first");
    assert!(lab.effect().await > 0);
    lab.clock.advance_ms(10);
    assert_eq!(lab.effect().await, 0, "an effect that changed nothing stores nothing");
    lab.clock.advance_ms(10);
    lab.write("b.txt", &"second".repeat(1_000));
    lab.write("a.txt", "changed");
    lab.effect().await;
    lab.clock.advance_ms(10);
    std::fs::remove_file(lab.tree().join("a.txt")).unwrap();
    lab.effect().await;
    assert_eq!(lab.files_at(999), None);
    for at_ms in [1_000, 1_010, 1_019] {
        assert_eq!(lab.files_at(at_ms), files(&[("a.txt", "start"), ("b.txt", "first")]), "{at_ms}");
    }
    let second = "second".repeat(1_000);
    assert_eq!(lab.files_at(1_020), files(&[("a.txt", "changed"), ("b.txt", second.as_str())]));
    assert_eq!(lab.files_at(u64::MAX), files(&[("b.txt", second.as_str())]));
    let current = record::carried_tree(&*lab.store, &run(), 0).unwrap();
    assert_eq!(current, None, "nobody shares the state, so nothing is kept for others");
    assert_eq!(record::carried_commits(&*lab.store, &run()).unwrap(), None);
}

#[tokio::test]
async fn a_tree_that_cannot_be_read_is_not_known_until_it_can_be() {
    let lab = Lab::new();
    lab.write("b.txt", "first");
    lab.effect().await;
    lab.clock.advance_ms(10);
    let away = lab.folder.path().join("trees/away");
    std::fs::rename(lab.tree(), &away).unwrap();
    assert_eq!(lab.effect().await, 1);
    assert_eq!(lab.effect().await, 0, "it is told once");
    assert_eq!((lab.files_at(1_010), newest_tree(&*lab.store, &run(), 0).unwrap()), (None, Some((1_010, None))));
    assert!(lab.files_at(1_009).is_some());
    std::fs::rename(&away, lab.tree()).unwrap();
    lab.clock.advance_ms(10);
    lab.effect().await;
    assert_eq!(lab.files_at(1_020), files(&[("a.txt", "start"), ("b.txt", "first")]));
}
