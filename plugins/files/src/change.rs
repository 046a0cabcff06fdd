//! The functions that change files, and how to tell later whether they did.
//!
//! The note that is written before has two digests of each file: of the present and of the future content. When the files
//! have the future digests, the change happened; when they have the present ones, it did not; otherwise a person decides.
//! All faults of a change are found before the first file changes.

use longhaul_sdk::filesystem::types::Descriptor;
use longhaul_sdk::tools::ToolError;
use longhaul_sdk::types::LimitHit;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::arguments::{Delete, Edit, Move, MultiEdit, Patch, Settings, Write, arguments};
use crate::diff::FilePatch;
use crate::path::RelativePath;
use crate::{diff, disk, redo, text};

/// A change, as it is noted before it happens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Change {
    files: Vec<FileChange>,
}

/// The change of one file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct FileChange {
    path: String,
    /// The digest of what is there; none: there is no file yet.
    before: Option<String>,
    /// None: the file goes.
    after: Option<String>,
    /// The size of the file after the change.
    bytes: usize,
    lines_added: usize,
    lines_removed: usize,
}

/// A change, and what is to be written.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) change: Change,
    /// In the order of the files; none: the file goes.
    pub(crate) contents: Vec<Option<String>>,
}

/// The state of a change that was cut off, by the files.
#[derive(Debug, PartialEq)]
pub(crate) enum Verdict {
    Happened,
    /// Or only in part: the same call does the rest.
    DidNot,
    Unknown(String),
}

impl Change {
    pub(crate) fn from_json(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    pub(crate) fn to_json(&self) -> Value {
        json!(self)
    }

    /// By the digests of the files as they are.
    pub(crate) fn verdict(
        &self,
        mut present: impl FnMut(&RelativePath) -> Result<Option<String>, ToolError>,
    ) -> Result<Verdict, ToolError> {
        let mut is_done = true;
        for file in &self.files {
            let present = present(&path(&file.path)?)?;
            if present == file.after {
                continue;
            }
            is_done = false;
            if present != file.before {
                return Ok(Verdict::Unknown(format!(
                    "the file `{}` is neither as it was before the change nor as it should be after it; \
                     was it changed by hand?",
                    file.path
                )));
            }
        }
        Ok(if is_done { Verdict::Happened } else { Verdict::DidNot })
    }

    /// The output of the call.
    pub(crate) fn answer(&self, function: &str) -> Value {
        let sum = |count: fn(&FileChange) -> usize| self.files.iter().map(count).sum::<usize>();
        let lines =
            json!({ "lines_added": sum(|file| file.lines_added), "lines_removed": sum(|file| file.lines_removed) });
        let mut answer = match (function, self.files.as_slice()) {
            ("move", [from, to]) => json!({ "from": from.path, "path": to.path, "bytes": to.bytes }),
            ("delete", [file]) => json!({ "path": file.path, "deleted": true }),
            ("patch", files) => {
                json!({ "files": files.iter().map(|file| &file.path).collect::<Vec<_>>() })
            }
            (_, [file, ..]) => json!({ "path": file.path, "bytes": file.bytes, "sha256": file.after }),
            (_, []) => json!({}),
        };
        if function == "write" {
            answer["created"] = self.files.iter().any(|file| file.before.is_none()).into();
        }
        if let (Some(answer), Value::Object(lines)) = (answer.as_object_mut(), lines) {
            answer.extend(lines.into_iter().filter(|_| function != "move"));
        }
        answer
    }
}

/// The functions that change files.
const CHANGES: [&str; 6] = ["write", "edit", "multi_edit", "patch", "delete", "move"];

/// The change that a call would make; none for functions that make none.
pub(crate) fn of(function: &str, text: &str, settings: &Settings) -> Result<Option<Planned>, ToolError> {
    if !CHANGES.contains(&function) {
        return Ok(None);
    }
    let root = disk::root()?;
    let planner = Planner { root: &root, settings };
    let planned = match function {
        "write" => {
            let write: Write = arguments(text)?;
            let path = path(&write.path)?;
            let before = planner.lossy(&path)?;
            planner.planned([(path, before, Some(write.content))])
        }
        "edit" => {
            let edit: Edit = arguments(text)?;
            planner.edited(&edit.path, |content| text::replaced(content, &edit.old, &edit.new))
        }
        "multi_edit" => {
            let edit: MultiEdit = arguments(text)?;
            if edit.edits.is_empty() {
                return Err(ToolError::InvalidArguments("`edits` is empty; give at least one".to_owned()));
            }
            let edits: Vec<(&str, &str)> = edit.edits.iter().map(|one| (one.old.as_str(), one.new.as_str())).collect();
            planner.edited(&edit.path, |content| text::replaced_all(content, &edits))
        }
        "patch" => match redo::begun(&root, text)? {
            Some(begun) => Ok(begun),
            None => planner.patched(&arguments::<Patch>(text)?.patch),
        },
        "delete" => {
            let path = path(&arguments::<Delete>(text)?.path)?;
            planner.must_be(&path)?;
            let before = planner.lossy(&path)?;
            planner.planned([(path, before, None)])
        }
        _ => planner.moved(&arguments(text)?),
    };
    planned.map(Some)
}

/// Makes the change. `key` is the same for every attempt of one call.
pub(crate) fn apply(function: &str, text: &str, key: &str, settings: &Settings) -> Result<Value, ToolError> {
    let Some(planned) = of(function, text, settings)? else {
        return Err(ToolError::UnknownFunction(format!(
            "`{function}`; the tool `files` has read, write, list, search, edit, multi_edit, patch, delete and move"
        )));
    };
    let root = disk::root()?;
    let change = &planned.change;
    match (function, change.files.as_slice()) {
        ("move", [from, to]) => disk::rename(&root, &path(&from.path)?, &path(&to.path)?)?,
        (_, [_]) => put(&root, &planned, key)?,
        _ => {
            redo::begin(&root, text, &planned)?;
            let put = put_all(&root, &planned, key);
            redo::end(&root, text);
            put?;
        }
    }
    Ok(change.answer(function))
}

/// All files, or none where one cannot be put in place.
fn put_all(root: &Descriptor, planned: &Planned, key: &str) -> Result<(), ToolError> {
    let mut before: Vec<(RelativePath, Option<Vec<u8>>)> = Vec::new();
    for file in &planned.change.files {
        let path = path(&file.path)?;
        let is_there = disk::stat(root, &path)?.is_some();
        let bytes = is_there.then(|| disk::read(root, &path, 0, u64::MAX)).transpose()?;
        before.push((path, bytes));
    }
    put(root, planned, key).inspect_err(|_| {
        // The first error also covers files that cannot be restored.
        for (path, bytes) in &before {
            let _ = match bytes {
                Some(bytes) => disk::write(root, path, bytes, key),
                None => disk::delete(root, path),
            };
        }
    })
}

/// Each file by itself; one that is as it should be already is written again, to the same effect.
fn put(root: &Descriptor, planned: &Planned, key: &str) -> Result<(), ToolError> {
    for (file, content) in planned.change.files.iter().zip(&planned.contents) {
        let path = path(&file.path)?;
        match content {
            Some(content) => disk::write(root, &path, content.as_bytes(), key)?,
            None => disk::delete(root, &path)?,
        }
    }
    Ok(())
}

fn path(text: &str) -> Result<RelativePath, ToolError> {
    RelativePath::file(text).map_err(ToolError::InvalidArguments)
}

/// Finds out what a call would do.
struct Planner<'a> {
    root: &'a Descriptor,
    settings: &'a Settings,
}

impl Planner<'_> {
    /// The change from what is there: each file with its text before, as far as it has one, and after.
    fn planned(
        &self,
        files: impl IntoIterator<Item = (RelativePath, String, Option<String>)>,
    ) -> Result<Planned, ToolError> {
        let mut planned = Planned { change: Change { files: Vec::new() }, contents: Vec::new() };
        for (path, before, after) in files {
            let length = after.as_ref().map_or(0, String::len);
            self.check_size(length)?;
            let (lines_added, lines_removed) = text::changed_lines(&before, after.as_deref().unwrap_or_default());
            planned.change.files.push(FileChange {
                path: path.to_string(),
                before: disk::digest(self.root, &path)?,
                after: after.as_ref().map(|text| disk::hex_of(text.as_bytes())),
                bytes: length,
                lines_added,
                lines_removed,
            });
            planned.contents.push(after);
        }
        Ok(planned)
    }

    fn edited(&self, file: &str, edit: impl FnOnce(&str) -> Result<String, String>) -> Result<Planned, ToolError> {
        let path = path(file)?;
        let before = self.text(&path)?;
        let after = edit(&before).map_err(|wrong| ToolError::InvalidArguments(format!("`{path}`: {wrong}")))?;
        self.planned([(path, before, Some(after))])
    }

    fn patched(&self, patch: &str) -> Result<Planned, ToolError> {
        let mut files: Vec<(RelativePath, String, Option<String>)> = Vec::new();
        for file in diff::parse(patch).map_err(ToolError::InvalidArguments)? {
            let path = path(file.name())?;
            if files.iter().any(|(other, ..)| *other == path) {
                return Err(ToolError::InvalidArguments(format!(
                    "`{path}` is there twice; give all its hunks together"
                )));
            }
            let before = self.before(&file, &path)?;
            let after = file.applied(&before).map_err(ToolError::InvalidArguments)?;
            let after = match &file.to {
                Some(_) => Some(after),
                None if after.is_empty() => None,
                None => {
                    let left = format!("`{path}` is to go, but the patch leaves lines of it; use `delete`");
                    return Err(ToolError::InvalidArguments(left));
                }
            };
            files.push((path, before, after));
        }
        self.planned(files)
    }

    fn before(&self, file: &FilePatch, path: &RelativePath) -> Result<String, ToolError> {
        let wrong = match (&file.from, &file.to) {
            (Some(from), Some(to)) if from != to => format!("`{from}` becomes `{to}` in it; use `move` first"),
            (None, _) if disk::stat(self.root, path)?.is_some() => disk::is_there(path),
            (None, _) => return Ok(String::new()),
            (Some(_), _) => return self.text(path),
        };
        Err(ToolError::InvalidArguments(wrong))
    }

    /// Two files: the one that goes and the one that comes. Nothing is read but for the digest, so any file can be moved.
    fn moved(&self, wanted: &Move) -> Result<Planned, ToolError> {
        let (from, to) = (path(&wanted.from)?, path(&wanted.to)?);
        let size = self.must_be(&from)?;
        if disk::stat(self.root, &to)?.is_some() {
            return Err(ToolError::InvalidArguments(disk::is_there(&to)));
        }
        let digest = disk::digest(self.root, &from)?;
        let file = |path: &RelativePath, before, after, bytes| FileChange {
            path: path.to_string(),
            before,
            after,
            bytes,
            lines_added: 0,
            lines_removed: 0,
        };
        let bytes = usize::try_from(size).unwrap_or(usize::MAX);
        let files = vec![file(&from, digest.clone(), None, 0), file(&to, None, digest, bytes)];
        Ok(Planned { change: Change { files }, contents: Vec::new() })
    }

    /// The size of the file in bytes, which must exist.
    fn must_be(&self, path: &RelativePath) -> Result<u64, ToolError> {
        let stat = disk::stat(self.root, path)?;
        stat.map(|stat| stat.size).ok_or_else(|| ToolError::Failed(format!("`{path}` does not exist")))
    }

    /// The whole text of a file.
    fn text(&self, path: &RelativePath) -> Result<String, ToolError> {
        // One byte more than allowed, to see that there is more.
        let bytes = disk::read(self.root, path, 0, self.settings.write_bytes_max.saturating_add(1))?;
        self.check_size(bytes.len())?;
        let content = text::part(&bytes, true, true).map(|(_, content)| content.to_owned());
        content.ok_or_else(|| ToolError::Failed(format!("`{path}` is a binary file; it has no text")))
    }

    /// The text for counting lines: empty where there is none.
    fn lossy(&self, path: &RelativePath) -> Result<String, ToolError> {
        match disk::stat(self.root, path)? {
            Some(stat) if stat.size <= self.settings.write_bytes_max => Ok(self.text(path).unwrap_or_default()),
            _ => Ok(String::new()),
        }
    }

    fn check_size(&self, length: usize) -> Result<(), ToolError> {
        let max = self.settings.write_bytes_max;
        if length as u64 <= max {
            return Ok(());
        }
        let number = |number: u64| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
        let used = number(length as u64);
        Err(ToolError::Limit(LimitHit { name: "write_bytes_max".to_owned(), used, max: number(max) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, before: Option<&str>, after: Option<&str>) -> FileChange {
        let digest = |text: Option<&str>| text.map(str::to_owned);
        FileChange {
            path: path.to_owned(),
            before: digest(before),
            after: digest(after),
            bytes: 3,
            lines_added: 2,
            lines_removed: 1,
        }
    }

    fn change(files: Vec<FileChange>) -> Change {
        Change { files }
    }

    #[track_caller]
    fn check(change: &Change, present: &[(&str, &str)], expected: &str) {
        let digest = |path: &RelativePath| {
            let found = present.iter().find(|(name, _)| *name == path.to_string());
            Ok(found.map(|(_, digest)| (*digest).to_owned()))
        };
        let verdict = match change.verdict(digest) {
            Ok(Verdict::Unknown(_)) => "unknown",
            Ok(Verdict::Happened) => "happened",
            Ok(Verdict::DidNot) => "did not",
            Err(_) => "error",
        };
        assert_eq!(verdict, expected, "{present:?}");
    }

    #[test]
    fn the_digest_tells_whether_it_happened() {
        let edit = change(vec![file("a.py", Some("old"), Some("new"))]);
        check(&edit, &[("a.py", "new")], "happened");
        check(&edit, &[("a.py", "old")], "did not");
        check(&edit, &[("a.py", "other")], "unknown");
        check(&edit, &[], "unknown");
        let new = change(vec![file("a.py", None, Some("new"))]);
        check(&new, &[], "did not");
        check(&new, &[("a.py", "x")], "unknown");
        let same = change(vec![file("a.py", Some("new"), Some("new"))]);
        check(&same, &[("a.py", "new")], "happened");
        let gone = change(vec![file("a.py", Some("old"), None)]);
        check(&gone, &[], "happened");
        check(&gone, &[("a.py", "old")], "did not");
    }

    #[test]
    fn a_change_of_several_files_that_was_made_in_part_goes_on() {
        let both = change(vec![file("a", Some("a1"), Some("a2")), file("b", None, Some("b2"))]);
        check(&both, &[("a", "a2"), ("b", "b2")], "happened");
        check(&both, &[("a", "a2")], "did not");
        check(&both, &[("a", "a1")], "did not");
        check(&both, &[("a", "a2"), ("b", "x")], "unknown");
    }

    #[test]
    fn an_answer_says_how_many_lines_changed() {
        let edit = change(vec![file("a.py", Some("old"), Some("new"))]);
        assert_eq!(Change::from_json(&edit.to_json().to_string()), Some(edit.clone()));
        assert_eq!(Change::from_json("{}"), None);
        let answer = edit.answer("edit");
        assert_eq!(
            (&answer["path"], &answer["lines_added"], &answer["lines_removed"]),
            (&json!("a.py"), &json!(2), &json!(1))
        );
        assert_eq!(change(vec![file("a", None, Some("x"))]).answer("write")["created"], true);
        let both = change(vec![file("a", None, Some("x")), file("b", Some("y"), None)]);
        assert_eq!(both.answer("patch"), json!({ "files": ["a", "b"], "lines_added": 4, "lines_removed": 2 }));
        assert_eq!(both.answer("move"), json!({ "from": "a", "path": "b", "bytes": 3 }));
    }
}
