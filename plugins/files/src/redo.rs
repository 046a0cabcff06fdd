//! A change of several files that is made whole although each file is put in place by itself.
//!
//! A note with the new contents is written to one file at the top first. When a call that was cut off is made again, it
//! finds the note and completes the change. A note that no longer fits the files is dropped.

use longhaul_sdk::filesystem::types::Descriptor;
use longhaul_sdk::tools::ToolError;
use serde::{Deserialize, Serialize};

use crate::change::{Change, Planned, Verdict};
use crate::disk;
use crate::path::TEMPORARY;

#[derive(Serialize, Deserialize)]
struct Note {
    change: Change,
    /// In the order of the change's files; none: the file is deleted.
    contents: Vec<Option<String>>,
}

/// The change that a cut-off call had begun. None: it had begun none, or the files have changed since.
pub(crate) fn begun(root: &Descriptor, arguments: &str) -> Result<Option<Planned>, ToolError> {
    let name = name(arguments);
    let Some(bytes) = disk::read_own(root, &name) else { return Ok(None) };
    let note: Option<Note> = serde_json::from_slice(&bytes).ok();
    if let Some(note) = note
        && !matches!(note.change.verdict(|path| disk::digest(root, path))?, Verdict::Unknown(_))
    {
        return Ok(Some(Planned { change: note.change, contents: note.contents }));
    }
    disk::remove_own(root, &name);
    Ok(None)
}

/// Notes what is about to be done.
pub(crate) fn begin(root: &Descriptor, arguments: &str, planned: &Planned) -> Result<(), ToolError> {
    let note = Note { change: planned.change.clone(), contents: planned.contents.clone() };
    let bytes = serde_json::to_vec(&note).map_err(|error| ToolError::Failed(error.to_string()))?;
    disk::write_own(root, &name(arguments), &bytes)
}

/// All of it is done.
pub(crate) fn end(root: &Descriptor, arguments: &str) {
    disk::remove_own(root, &name(arguments));
}

/// The same for every attempt of one call.
fn name(arguments: &str) -> String {
    format!("{TEMPORARY}{}", &disk::hex_of(arguments.as_bytes())[..24])
}
