//! Python, which runs pip and lays wheels out by the script `wheels.py`.
//!
//! The script gets JSON and answers JSON. It bounds its own time, and what it writes. What it tells of an index is an
//! index's word: a lock that could not be read again is refused.

use crate::error::PackagesError;
use longhaul_core::packages::{LockedPackage, PackageRequirement};
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// The script. A change of it lays packages out anew.
pub(crate) const SCRIPT: &str = include_str!("wheels.py");

/// Bytes of the reason why it gave no answer.
const REASON_BYTES_MAX: usize = 300;

/// Its answer.
#[derive(Deserialize)]
struct ScriptAnswer {
    refused: Option<String>,
    #[serde(default)]
    packages: Vec<LockedPackage>,
}

/// Every package that the requirements need.
pub(crate) fn resolve(wants: &[PackageRequirement]) -> Result<Vec<LockedPackage>, PackagesError> {
    ask(&json!({ "do": "lock", "requirements": wants }))
}

/// Lays packages out in an empty folder; wheels are kept in the folder `wheels`, and fetched where they are missing.
pub(crate) fn fill(packages: &[LockedPackage], wheels: &Path, folder: &Path) -> Result<(), PackagesError> {
    ask(&json!({ "do": "fill", "packages": packages, "wheels": plain(wheels)?, "folder": plain(folder)? })).map(drop)
}

/// A path as text. One that is none would be another path for the script, and the folder would stay empty.
fn plain(path: &Path) -> Result<&str, PackagesError> {
    path.to_str().ok_or_else(|| {
        let path = path.display();
        PackagesError::Refused(format!("the path `{path}` is not UTF-8; set LONGHAUL_CACHE to a folder whose path is"))
    })
}

fn ask(request: &Value) -> Result<Vec<LockedPackage>, PackagesError> {
    let started = Command::new("python3")
        // Isolated: neither the directory nor the variables of this process decide what it imports.
        .args(["-I", "-c", SCRIPT])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = started.map_err(|error| PackagesError::NoPython(error.to_string()))?;
    if let Some(mut stdin) = child.stdin.take() {
        // One that ended early reports why on its standard error.
        let _ = stdin.write_all(request.to_string().as_bytes());
    }
    let output = child.wait_with_output().map_err(|error| PackagesError::NoPython(error.to_string()))?;
    let answer: ScriptAnswer = serde_json::from_slice(&output.stdout).map_err(|_| {
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().next_back().unwrap_or("it ended without a word");
        PackagesError::NoPython(longhaul_core::text::printable(last, REASON_BYTES_MAX))
    })?;
    match answer.refused {
        Some(reason) => Err(PackagesError::Refused(reason)),
        None => Ok(answer.packages),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    #[test]
    fn a_cache_whose_path_is_no_text_is_refused_and_not_taken_for_another() {
        let path = Path::new(OsStr::from_bytes(b"/cache-\xff"));
        let refused = fill(&[], path, path).expect_err("no text").to_string();
        assert!(refused.contains("is not UTF-8; set LONGHAUL_CACHE"), "{refused}");
    }
}
