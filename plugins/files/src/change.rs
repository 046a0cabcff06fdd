//! The functions that change a file, and how to tell later whether they did.
//!
//! What is noted before is the digest of the file as it is and as it will be. Who finds the second
//! one there finds the work done; who finds the first may do it; anything else is for a person.

use longhaul_sdk::filesystem::types::Descriptor;
use longhaul_sdk::tools::{ToolError, ToolResult};
use longhaul_sdk::types::LimitHit;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::arguments::{Edit, Settings, Write, arguments};
use crate::path::RelativePath;
use crate::{disk, text};

/// A change of one file, as it is noted before it happens.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Change {
    path: String,
    /// None: there is no file yet.
    before: Option<String>,
    after: String,
    /// How long the file will be.
    bytes: usize,
}

/// What a look at the file says about a change that was cut off.
#[derive(Debug, PartialEq)]
pub(crate) enum Verdict {
    Happened,
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

    pub(crate) fn path(&self) -> Result<RelativePath, ToolError> {
        RelativePath::file(&self.path).map_err(ToolError::InvalidArguments)
    }

    pub(crate) fn verdict(&self, present: Option<&str>) -> Verdict {
        if present == Some(self.after.as_str()) {
            Verdict::Happened
        } else if present == self.before.as_deref() {
            Verdict::DidNot
        } else {
            Verdict::Unknown(format!(
                "the file `{}` is neither as it was before the change nor as it should be after it; \
                 was it changed by hand?",
                self.path
            ))
        }
    }

    /// What the call answers.
    pub(crate) fn answer(&self, function: &str) -> Value {
        let mut answer = json!({ "path": self.path, "bytes": self.bytes, "sha256": self.after });
        if function == "write" {
            answer["created"] = self.before.is_none().into();
        } else {
            answer["replaced"] = 1.into();
        }
        answer
    }
}

/// The change that a call would make and the bytes it would write; none for other functions.
pub(crate) fn of(function: &str, text: &str, settings: &Settings) -> Result<Option<(Change, Vec<u8>)>, ToolError> {
    let (path, content) = match function {
        "write" => {
            let write: Write = arguments(text)?;
            (path(&write.path)?, write.content)
        }
        "edit" => {
            let edit: Edit = arguments(text)?;
            let path = path(&edit.path)?;
            let content = edited(&disk::root()?, &path, &edit, settings)?;
            (path, content)
        }
        _ => return Ok(None),
    };
    check_size(content.len(), settings)?;
    let bytes = content.into_bytes();
    let before = disk::digest(&disk::root()?, &path)?;
    let after = disk::hex_of(&bytes);
    let change = Change { path: path.to_string(), before, after, bytes: bytes.len() };
    Ok(Some((change, bytes)))
}

/// Makes the change. `key` is the same for every attempt of one call.
pub(crate) fn apply(function: &str, text: &str, key: &str, settings: &Settings) -> Result<ToolResult, ToolError> {
    let Some((change, bytes)) = of(function, text, settings)? else {
        return Err(ToolError::UnknownFunction(format!(
            "`{function}`; the tool `files` has read, write, list, search and edit"
        )));
    };
    disk::write(&disk::root()?, &change.path()?, &bytes, key)?;
    Ok(ToolResult { output: change.answer(function).to_string(), truncated: false })
}

fn path(text: &str) -> Result<RelativePath, ToolError> {
    RelativePath::file(text).map_err(ToolError::InvalidArguments)
}

fn edited(root: &Descriptor, path: &RelativePath, edit: &Edit, settings: &Settings) -> Result<String, ToolError> {
    let max = settings.write_bytes_max;
    // One byte more than allowed, to see that there is more.
    let bytes = disk::read(root, path, 0, max.saturating_add(1))?;
    check_size(bytes.len(), settings)?;
    let (_, content) = text::part(&bytes, true, true)
        .ok_or_else(|| ToolError::Failed(format!("`{path}` is a binary file; it has no text")))?;
    text::replaced(content, &edit.old, &edit.new)
        .map_err(|wrong| ToolError::InvalidArguments(format!("`{path}`: {wrong}")))
}

fn check_size(length: usize, settings: &Settings) -> Result<(), ToolError> {
    let max = settings.write_bytes_max;
    if length as u64 <= max {
        return Ok(());
    }
    let number = |number: u64| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
    let used = number(length as u64);
    Err(ToolError::Limit(LimitHit { name: "write_bytes_max".to_owned(), used, max: number(max) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(before: Option<&str>) -> Change {
        Change { path: "a.py".to_owned(), before: before.map(str::to_owned), after: "new".to_owned(), bytes: 3 }
    }

    #[test]
    fn the_digest_tells_whether_it_happened() {
        assert_eq!(change(Some("old")).verdict(Some("new")), Verdict::Happened);
        assert_eq!(change(Some("old")).verdict(Some("old")), Verdict::DidNot);
        assert_eq!(change(None).verdict(None), Verdict::DidNot);
        for (before, present) in [(Some("old"), Some("other")), (Some("old"), None), (None, Some("x"))] {
            assert!(matches!(change(before).verdict(present), Verdict::Unknown(_)));
        }
        let same = Change { before: Some("new".to_owned()), ..change(None) };
        assert_eq!(same.verdict(Some("new")), Verdict::Happened, "a write of what is there");
    }

    #[test]
    fn what_is_noted_is_read_back() {
        let noted = change(None);
        assert_eq!(Change::from_json(&noted.to_json().to_string()), Some(noted));
        assert_eq!(Change::from_json("{}"), None);
        assert_eq!(change(None).answer("write")["created"], true);
        assert_eq!(change(Some("old")).answer("edit")["replaced"], 1);
    }
}
