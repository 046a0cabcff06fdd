//! One commit of a run as its changed files, each with the lines that changed.
//!
//! The word that names the commit comes from outside: it has to be hexadecimal digits, and only commits of the run's
//! own history are looked up by it, so that no other object of the repository can be read. The text is bounded in all,
//! by file and by the number of files, and what is left out is counted. Made of blobs without git's filters, drivers
//! and configuration, so that no program they name is started. Changes nothing.

use crate::TreeError;
use crate::git::{Branch, UserRepository, end_of};
use crate::log::{Logged, history, kept, logged};
use crate::names::shown;
use crate::revert::digits;
use git2::{Delta, Diff, DiffDelta, DiffFindOptions, DiffOptions, Odb, Oid, Patch, Repository, Tree};

/// Files that are listed; more are counted. A commit of an agent has some tens.
pub const COMMIT_FILES_MAX: usize = 1_000;

/// Bytes of the text of one file. A longer one is cut behind a line.
pub const COMMIT_FILE_BYTES_MAX: usize = 128 << 10;

/// Bytes of the texts of all files. Files that come after have no text.
pub const COMMIT_BYTES_MAX: usize = 1 << 20;

/// Bytes of the message; a longer one is cut.
pub const COMMIT_MESSAGE_BYTES_MAX: usize = 16 << 10;

/// Bytes of one side of a file that is compared line by line; a larger one has no text.
const COMPARED_BYTES_MAX: u64 = 1 << 20;

/// Bytes of both sides of all files that are compared, so that many files with small changes take no long time.
const COMPARED_ALL_BYTES_MAX: u64 = 64 << 20;

/// Changed files among which renames are searched. The search compares each added file with each deleted one.
const RENAMES_MAX: usize = 200;

/// Lines around a change.
const CONTEXT_LINES: u32 = 3;

/// A commit with its changes against its first parent.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct CommitDiff {
    /// The commit.
    pub logged: Logged,
    /// Its first parent; none of the first commit of a repository, of which every file is added.
    pub parent: Option<String>,
    /// Its whole message, unfiltered; invalid UTF-8 is replaced, and it is cut to [`COMMIT_MESSAGE_BYTES_MAX`].
    pub message: String,
    /// The changed files by path, at most [`COMMIT_FILES_MAX`].
    pub files: Vec<CommitFile>,
    /// Changed files beyond those.
    pub files_left_out: usize,
    /// The counts of all changed files, those that are left out included.
    pub counts: CommitCounts,
}

/// A file that a commit changed.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct CommitFile {
    /// Its path after the commit, or before it if it is deleted; invalid UTF-8 as `\xNN`.
    pub path: String,
    /// Its path before the commit, if that is another one.
    pub old_path: Option<String>,
    /// The kind of the change.
    pub change: CommitChange,
    /// The change in git's unified form, of at most [`COMMIT_FILE_BYTES_MAX`] bytes; invalid UTF-8 is replaced. Empty
    /// if the file is binary or too large.
    pub patch: String,
    /// Its added lines, also those beyond the text; 0 without a text.
    pub added_lines: usize,
    /// Its removed lines, as for the added ones.
    pub removed_lines: usize,
    /// True when one side is no text.
    pub is_binary: bool,
    /// True when text is missing: it was cut, a side is too large to be compared, or the files before took all room.
    pub is_cut: bool,
}

/// The kind of a change in a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommitChange {
    /// The file is new.
    Added,
    /// It has other content, another mode or another type.
    Modified,
    /// It is gone.
    Deleted,
    /// It has another path, and may have other content, too.
    Renamed,
}

/// The numbers of files by their changes, and of lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct CommitCounts {
    /// All changed files.
    pub files: usize,
    /// Those that are new.
    pub added: usize,
    /// Those with other content.
    pub modified: usize,
    /// Those that are gone.
    pub deleted: usize,
    /// Those with another path.
    pub renamed: usize,
    /// The added lines of the listed files.
    pub added_lines: usize,
    /// The removed lines of the listed files.
    pub removed_lines: usize,
}

impl UserRepository {
    /// The changes of one commit of `run`: of its `branch` since `base`, `base` included, or of those that reverts
    /// removed. `word` is the commit's name or 4 digits or more of its beginning. None: no commit of the run has it.
    ///
    /// # Errors
    /// [`TreeError::NotAHash`], [`TreeError::Ambiguous`], or as [`UserRepository::log`].
    pub fn commit_diff(
        &self,
        branch: &Branch,
        base: &str,
        run: &str,
        word: &str,
    ) -> Result<Option<CommitDiff>, TreeError> {
        let wanted = digits(word)?;
        let repo = self.repo()?;
        let mut found = fitting(history(&repo, branch, end_of(&repo, branch, base)?, base)?, &wanted);
        if found.is_empty() {
            for (_, tip) in kept(&repo, run)? {
                found.extend(fitting(history(&repo, branch, tip, base)?, &wanted));
            }
            // An earlier former tip may be an ancestor of a later one.
            found.sort_unstable();
            found.dedup();
        }
        match found.as_slice() {
            [] => Ok(None),
            [id] => changes(&repo, *id).map(Some),
            _ => Err(TreeError::Ambiguous { word: wanted }),
        }
    }
}

/// The commits whose names begin with the digits.
fn fitting(history: Vec<Oid>, wanted: &str) -> Vec<Oid> {
    history.into_iter().filter(|id| id.to_string().starts_with(wanted)).collect()
}

fn changes(repo: &Repository, id: Oid) -> Result<CommitDiff, TreeError> {
    let failed = || TreeError::git("read a commit");
    let commit = repo.find_commit(id).map_err(failed())?;
    let before = match commit.parent_count() {
        0 => None,
        _ => Some(commit.parent(0).and_then(|parent| parent.tree()).map_err(failed())?),
    };
    let after = commit.tree().map_err(failed())?;
    let Compared { files, files_left_out, counts } = compared(repo, before.as_ref(), &after)?;
    Ok(CommitDiff {
        logged: logged(repo, id)?,
        parent: commit.parent_id(0).ok().map(|id| id.to_string()),
        message: text_of(commit.message_bytes(), COMMIT_MESSAGE_BYTES_MAX).0,
        files,
        files_left_out,
        counts,
    })
}

/// The changed files of two trees, within the bounds.
pub(crate) struct Compared {
    pub(crate) files: Vec<CommitFile>,
    pub(crate) files_left_out: usize,
    pub(crate) counts: CommitCounts,
}

/// Compares two trees. Without the one before, every file is added.
pub(crate) fn compared(repo: &Repository, before: Option<&Tree<'_>>, after: &Tree<'_>) -> Result<Compared, TreeError> {
    let odb = repo.odb().map_err(TreeError::git("read the objects"))?;
    let diff = diff_of(repo, before, after, &odb)?;
    let (mut counts, mut files) = (CommitCounts::default(), Vec::<CommitFile>::new());
    let mut room = Room { text_bytes: COMMIT_BYTES_MAX, compared_bytes: COMPARED_ALL_BYTES_MAX };
    for (at, delta) in diff.deltas().enumerate() {
        counts.add(change_of(&delta));
        if files.len() < COMMIT_FILES_MAX {
            files.push(file(&diff, at, &delta, &odb, &mut room)?);
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    counts.added_lines = files.iter().map(|file| file.added_lines).sum();
    counts.removed_lines = files.iter().map(|file| file.removed_lines).sum();
    Ok(Compared { files_left_out: counts.files - files.len(), files, counts })
}

fn diff_of<'repo>(
    repo: &'repo Repository,
    before: Option<&Tree<'_>>,
    after: &Tree<'_>,
    odb: &Odb<'_>,
) -> Result<Diff<'repo>, TreeError> {
    let failed = || TreeError::git("compare two trees");
    let mut options = DiffOptions::new();
    // All that `diff.*` of the user's configuration would decide is said.
    options.context_lines(CONTEXT_LINES).old_prefix("a").new_prefix("b");
    let diff = repo.diff_tree_to_tree(before, Some(after), Some(&mut options));
    let mut diff = diff.map_err(failed())?;
    let sizes = diff.deltas().flat_map(|delta| sides_of(odb, &delta));
    let bytes = sizes.fold(0, u64::saturating_add);
    if diff.deltas().len() <= RENAMES_MAX && bytes <= COMPARED_ALL_BYTES_MAX {
        let mut renames = DiffFindOptions::new();
        renames.renames(true).rename_limit(RENAMES_MAX);
        diff.find_similar(Some(&mut renames)).map_err(failed())?;
    }
    Ok(diff)
}

/// The room that is left for the files that come next.
struct Room {
    text_bytes: usize,
    compared_bytes: u64,
}

impl Room {
    /// Takes what a comparison of so many bytes costs. False: there is no room for it.
    fn take(&mut self, sides: [u64; 2]) -> bool {
        let both = sides[0].saturating_add(sides[1]);
        let fits = sides.iter().all(|bytes| *bytes <= COMPARED_BYTES_MAX)
            && both <= self.compared_bytes
            && self.text_bytes > 0;
        if fits {
            self.compared_bytes -= both;
        }
        fits
    }
}

fn file(
    diff: &Diff<'_>,
    at: usize,
    delta: &DiffDelta<'_>,
    odb: &Odb<'_>,
    room: &mut Room,
) -> Result<CommitFile, TreeError> {
    let failed = || TreeError::git("compare a file");
    let path = |side: git2::DiffFile<'_>| side.path_bytes().map(shown);
    let (old, new) = (path(delta.old_file()), path(delta.new_file()));
    let change = change_of(delta);
    let mut file = CommitFile {
        path: new.or_else(|| old.clone()).unwrap_or_default(),
        old_path: old.filter(|_| change == CommitChange::Renamed),
        change,
        patch: String::new(),
        added_lines: 0,
        removed_lines: 0,
        is_binary: false,
        is_cut: false,
    };
    if !room.take(sides_of(odb, delta)) {
        file.is_cut = true;
        return Ok(file);
    }
    let Some(mut patch) = Patch::from_diff(diff, at).map_err(failed())? else { return Ok(file) };
    file.is_binary = patch.delta().flags().is_binary();
    if file.is_binary {
        return Ok(file);
    }
    (_, file.added_lines, file.removed_lines) = patch.line_stats().map_err(failed())?;
    let text = patch.to_buf().map_err(failed())?;
    let bytes_max = COMMIT_FILE_BYTES_MAX.min(room.text_bytes);
    (file.patch, file.is_cut) = text_of(&text, bytes_max);
    let is_full = file.is_cut && bytes_max < COMMIT_FILE_BYTES_MAX;
    // What is left behind the last whole line is no room for another file.
    room.text_bytes = if is_full { 0 } else { room.text_bytes - file.patch.len() };
    Ok(file)
}

/// The sizes of a file before and after.
fn sides_of(odb: &Odb<'_>, delta: &DiffDelta<'_>) -> [u64; 2] {
    [delta.old_file().id(), delta.new_file().id()].map(|id| bytes_of(odb, id))
}

/// The size of a blob. What the object database does not have, as the commit of a submodule, has none.
fn bytes_of(odb: &Odb<'_>, id: Oid) -> u64 {
    odb.read_header(id).map_or(0, |(bytes, _)| bytes as u64)
}

fn change_of(delta: &DiffDelta<'_>) -> CommitChange {
    match delta.status() {
        Delta::Added => CommitChange::Added,
        Delta::Deleted => CommitChange::Deleted,
        Delta::Renamed => CommitChange::Renamed,
        _ => CommitChange::Modified,
    }
}

/// Bytes as text, cut behind a line to a number of bytes; true when it was cut. Invalid UTF-8 is replaced before, since
/// that makes it longer.
fn text_of(bytes: &[u8], bytes_max: usize) -> (String, bool) {
    let text = String::from_utf8_lossy(bytes);
    if text.len() <= bytes_max {
        return (text.into_owned(), false);
    }
    let head = &text[..text.floor_char_boundary(bytes_max)];
    let end = head.rfind('\n').map_or(head.len(), |at| at + 1);
    (head[..end].to_owned(), true)
}

impl CommitCounts {
    fn add(&mut self, change: CommitChange) {
        self.files += 1;
        match change {
            CommitChange::Added => self.added += 1,
            CommitChange::Modified => self.modified += 1,
            CommitChange::Deleted => self.deleted += 1,
            CommitChange::Renamed => self.renamed += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_behind_a_line_and_a_lone_line_where_it_must() {
        let check = |text: &str, bytes_max: usize, expected: (&str, bool)| {
            let (cut, is_cut) = text_of(text.as_bytes(), bytes_max);
            assert_eq!((cut.as_str(), is_cut), expected, "{text:?} to {bytes_max}");
        };
        check("one\ntwo\n", 8, ("one\ntwo\n", false));
        check("one\ntwo\n", 7, ("one\n", true));
        check("one\ntwo\n", 4, ("one\n", true));
        check("one\ntwo\n", 3, ("one", true));
        check("", 0, ("", false));
        check("\u{e9}\u{e9}", 3, ("\u{e9}", true));
    }

    #[test]
    fn files_are_compared_up_to_the_size_of_one_and_of_all() {
        let room = || Room { text_bytes: 1, compared_bytes: COMPARED_ALL_BYTES_MAX };
        assert!(room().take([COMPARED_BYTES_MAX, COMPARED_BYTES_MAX]));
        assert!(!room().take([0, COMPARED_BYTES_MAX + 1]) && !room().take([COMPARED_BYTES_MAX + 1, 0]));
        let mut small = Room { text_bytes: 1, compared_bytes: 10 };
        assert!(small.take([4, 4]) && !small.take([2, 1]) && small.take([1, 1]) && !small.take([0, 1]));
        assert!(!Room { text_bytes: 0, compared_bytes: 10 }.take([1, 1]));
    }
}
