//! The changes of one commit of a run: every kind of change, the bounds, and words that name nothing of the run.

use crate::repo::Repo;
use longhaul_worktree::{
    Branch, COMMIT_BYTES_MAX, COMMIT_FILE_BYTES_MAX, COMMIT_FILES_MAX, CommitChange, CommitCounts, CommitDiff,
    CommitFile, TreeError, UserRepository, keep_as,
};
use std::fs;

/// A repository whose branch `longhaul/demo` is made with git alone, from a first commit on.
struct History {
    repo: Repo,
    project: UserRepository,
    branch: Branch,
    /// The first commit, at which the run began.
    base: String,
}

impl History {
    fn with(files: &[(&str, &str)]) -> Self {
        let repo = Repo::with(files);
        let project = repo.project();
        let base = project.head().unwrap();
        repo.git(&["checkout", "-q", "-b", "longhaul/demo"]);
        Self { repo, project, branch: Repo::branch(), base }
    }

    /// Commits everything that is there; returns the commit.
    fn commit(&self, message: &str) -> String {
        self.repo.git(&["add", "-A"]);
        self.repo.git(&["commit", "-q", "--allow-empty", "-m", message]);
        self.repo.git(&["rev-parse", "HEAD"]).trim().to_owned()
    }

    fn look(&self, word: &str) -> Result<Option<CommitDiff>, TreeError> {
        self.project.commit_diff(&self.branch, &self.base, "r-1", word)
    }

    fn diff(&self, word: &str) -> CommitDiff {
        self.look(word).unwrap().expect("the commit is one of the run")
    }

    /// The only file that a commit changed.
    fn only(&self, word: &str) -> CommitFile {
        let mut diff = self.diff(word);
        assert_eq!((diff.files.len(), diff.counts.files), (1, 1), "{diff:?}");
        diff.files.remove(0)
    }
}

/// Lines with their numbers, of so many bytes or a few more.
fn lines(bytes: usize) -> String {
    let mut text = String::new();
    let mut number = 0;
    while text.len() < bytes {
        text += &format!("line {number}\n");
        number += 1;
    }
    text
}

#[test]
fn each_kind_of_change_is_told_with_its_lines_and_counted() {
    let history = History::with(&[("a.txt", "one\ntwo\n"), ("gone.txt", "x\n"), ("old.txt", &lines(500))]);
    let files = history.repo.root();
    fs::write(files.join("a.txt"), "one\n2\n").unwrap();
    fs::remove_file(files.join("gone.txt")).unwrap();
    fs::create_dir(files.join("deep")).unwrap();
    fs::rename(files.join("old.txt"), files.join("deep/moved.txt")).unwrap();
    fs::write(files.join("new.txt"), "new\n").unwrap();
    let commit = history.commit("Change\n\nWhy it is so.\n\nLonghaul-Feature: a\nLonghaul-Run: r-1");
    let diff = history.diff(&commit[..10]);
    assert_eq!((diff.logged.commit.as_str(), diff.parent.as_deref()), (commit.as_str(), Some(history.base.as_str())));
    assert_eq!((diff.logged.subject.as_str(), diff.logged.feature.as_deref()), ("Change", Some("a")));
    assert!(diff.message.contains("Why it is so."), "{}", diff.message);
    let told: Vec<_> = diff.files.iter().map(|file| (&*file.path, file.old_path.as_deref(), file.change)).collect();
    let expected = [
        ("a.txt", None, CommitChange::Modified),
        ("deep/moved.txt", Some("old.txt"), CommitChange::Renamed),
        ("gone.txt", None, CommitChange::Deleted),
        ("new.txt", None, CommitChange::Added),
    ];
    assert_eq!(told, expected);
    let counts =
        CommitCounts { files: 4, added: 1, modified: 1, deleted: 1, renamed: 1, added_lines: 2, removed_lines: 2 };
    assert_eq!(diff.counts, counts);
    let changed = diff.files.iter().find(|file| file.path == "a.txt").unwrap();
    assert!(changed.patch.contains("\n-two\n+2\n") && !changed.is_cut && !changed.is_binary, "{}", changed.patch);
    assert_eq!((changed.added_lines, changed.removed_lines), (1, 1));
}

#[test]
fn the_first_commit_of_a_repository_adds_all_its_files() {
    let history = History::with(&[("a.txt", "one\n"), ("b/c.txt", "two\n")]);
    let diff = history.diff(&history.base);
    assert_eq!((diff.parent, diff.counts.files, diff.counts.added, diff.counts.added_lines), (None, 2, 2, 2));
    assert!(diff.files[0].patch.contains("--- /dev/null\n+++ b/a.txt\n"), "{}", diff.files[0].patch);
}

#[test]
fn a_binary_file_has_no_text_and_a_missing_end_of_line_is_told() {
    let history = History::with(&[("a.txt", "one\n")]);
    fs::write(history.repo.root().join("picture"), b"\0\x01\xff\0").unwrap();
    let file = history.only(&history.commit("a picture"));
    assert_eq!((file.is_binary, file.is_cut, file.patch.as_str(), file.added_lines), (true, false, "", 0));
    fs::write(history.repo.root().join("a.txt"), "two").unwrap();
    let file = history.only(&history.commit("no end"));
    assert!(file.patch.ends_with("-one\n+two\n\\ No newline at end of file\n"), "{}", file.patch);
    assert_eq!((file.added_lines, file.removed_lines), (1, 1));
}

#[test]
fn names_and_texts_that_are_no_utf_8_are_shown_all_the_same() {
    use std::os::unix::ffi::OsStrExt as _;
    let history = History::with(&[("a.txt", "one\n")]);
    let name = std::ffi::OsStr::from_bytes(b"gr\xfcn\n.txt");
    fs::write(history.repo.root().join(name), b"caf\xe9\n").unwrap();
    let file = history.only(&history.commit("latin"));
    assert_eq!((file.path.as_str(), file.is_binary), ("gr\\xfcn\\x0a.txt", false));
    assert!(file.patch.contains("+caf\u{fffd}\n"), "{}", file.patch);
}

#[test]
fn a_long_text_is_cut_behind_a_line_with_its_lines_counted() {
    let history = History::with(&[]);
    let text = lines(COMMIT_FILE_BYTES_MAX + 1);
    fs::write(history.repo.root().join("long.txt"), &text).unwrap();
    let file = history.only(&history.commit("long"));
    assert!(file.is_cut && file.patch.ends_with('\n'));
    let expected = COMMIT_FILE_BYTES_MAX - 20..=COMMIT_FILE_BYTES_MAX;
    assert!(expected.contains(&file.patch.len()), "{}", file.patch.len());
    assert_eq!(file.added_lines, text.lines().count());
    // Neither side of it is read.
    fs::write(history.repo.root().join("huge.txt"), lines((1 << 20) + 1)).unwrap();
    let file = history.only(&history.commit("huge"));
    assert_eq!((file.is_cut, file.is_binary, file.patch.as_str(), file.added_lines), (true, false, "", 0));
}

#[test]
fn the_texts_of_a_commit_are_bounded_together_and_files_beyond_are_listed_without() {
    let history = History::with(&[]);
    for number in 0..12 {
        let path = history.repo.root().join(format!("{number:02}.txt"));
        fs::write(path, format!("{number}\n{}", lines(100 << 10))).unwrap();
    }
    let diff = history.diff(&history.commit("much"));
    let bytes: usize = diff.files.iter().map(|file| file.patch.len()).sum();
    assert!(bytes <= COMMIT_BYTES_MAX && bytes > COMMIT_BYTES_MAX - (200 << 10), "{bytes}");
    assert_eq!((diff.files.len(), diff.counts.files, diff.files_left_out), (12, 12, 0));
    let last = &diff.files[11];
    assert_eq!((last.path.as_str(), last.is_cut, last.patch.as_str()), ("11.txt", true, ""));
    assert!(!diff.files[0].is_cut);
}

#[test]
fn files_beyond_the_cap_are_counted() {
    let history = History::with(&[]);
    for number in 0..=COMMIT_FILES_MAX {
        fs::write(history.repo.root().join(format!("{number:05}.txt")), format!("{number}\n")).unwrap();
    }
    let diff = history.diff(&history.commit("many"));
    assert_eq!((diff.files.len(), diff.files_left_out), (COMMIT_FILES_MAX, 1));
    assert_eq!((diff.counts.files, diff.counts.added), (COMMIT_FILES_MAX + 1, COMMIT_FILES_MAX + 1));
}

#[test]
fn a_commit_that_changes_no_file_has_none() {
    let history = History::with(&[("a.txt", "one\n")]);
    let diff = history.diff(&history.commit("nothing"));
    assert_eq!((diff.files, diff.counts), (Vec::new(), CommitCounts::default()));
}

#[test]
fn only_commits_of_the_run_are_shown_however_they_are_named() {
    let history = History::with(&[("a.txt", "one\n")]);
    fs::write(history.repo.root().join("a.txt"), "two\n").unwrap();
    let own = history.commit("own");
    history.repo.git(&["checkout", "-q", "-b", "private", "main"]);
    fs::write(history.repo.root().join("a.txt"), "secret\n").unwrap();
    let other = history.commit("of another branch");
    let blob = history.repo.git(&["rev-parse", "private:a.txt"]).trim().to_owned();
    for word in [other.as_str(), &other[..12], &blob, "0000", &"0".repeat(40)] {
        assert_eq!(history.look(word).unwrap(), None, "{word}");
    }
    for word in ["", "abc", "HEAD", "main", "--all", "../a", "private:a.txt", &format!("{own}0"), "12g4", "\u{1b}[2J"] {
        let error = history.look(word).unwrap_err();
        assert!(matches!(error, TreeError::NotAHash { .. }), "{word:?}: {error}");
        assert!(!error.to_string().contains(['\n', '\u{1b}']), "{error:?}");
    }
    assert_eq!(history.diff(&own.to_uppercase()).logged.commit, own);
}

#[test]
fn a_commit_that_a_revert_removed_is_still_shown() {
    let history = History::with(&[("a.txt", "one\n")]);
    fs::write(history.repo.root().join("a.txt"), "two\n").unwrap();
    let removed = history.commit("two");
    history.repo.git(&["update-ref", &keep_as("r-1", 1), &removed]);
    history.repo.git(&["update-ref", &keep_as("r-1", 2), &removed]);
    history.repo.git(&["reset", "-q", "--hard", &history.base]);
    assert_eq!(history.diff(&removed).logged.subject, "two");
    let of_another = history.project.commit_diff(&history.branch, &history.base, "r-2", &removed).unwrap();
    assert_eq!(of_another, None, "reverts of another run are not this one's");
}
