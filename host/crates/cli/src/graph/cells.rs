//! Sources of steps from files: of one step, or of many as the cells of a notebook in the form of a script.
//!
//! A line that begins with `# %%` begins a cell, and the rest of the line is the name of the cell, as in editors and
//! Jupytext. A cell without a name is called by its number. Text before the first such line is a cell, too, unless it
//! is blank.

use crate::code_file::{self, Refusals};
use longhaul_core::fault::{self, Context as _, bail};
use std::collections::BTreeSet;
use std::path::Path;

/// Longest file of cells, in bytes.
pub const FILE_BYTES_MAX: usize = 64 << 20;

/// Reads UTF-8 text, with or without a byte order mark.
pub fn read(path: &Path, bytes_max: usize) -> fault::Result<String> {
    let refusals = Refusals {
        not_a_file: "is not a file; name one, or `-` for standard input",
        too_long: format!("is longer than {bytes_max} bytes; give the data to the steps as a file with --dir"),
    };
    let bytes = code_file::read(path, bytes_max, &refusals)?;
    text(bytes).with_context(|| format!("`{}`", path.display()))
}

fn text(bytes: Vec<u8>) -> fault::Result<String> {
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        bail!("it is UTF-16, and source is UTF-8; save it as UTF-8");
    }
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
            bail!("it is not UTF-8 in line {line}; save it as UTF-8");
        }
    };
    Ok(text.strip_prefix('\u{feff}').map_or(text.clone(), str::to_owned))
}

/// Splits the text into cells with their names.
pub fn split(text: &str) -> fault::Result<Vec<(String, String)>> {
    let mut cells: Vec<(String, String)> = Vec::new();
    for line in text.split_inclusive('\n') {
        match name(line) {
            Some("") => cells.push((format!("cell-{}", cells.len() + 1), String::new())),
            Some(name) => cells.push((name.to_owned(), String::new())),
            None if cells.is_empty() && line.trim().is_empty() => {}
            None => {
                if cells.is_empty() {
                    cells.push(("cell-1".to_owned(), String::new()));
                }
                if let Some((_, source)) = cells.last_mut() {
                    source.push_str(line);
                }
            }
        }
    }
    let mut seen = BTreeSet::new();
    if let Some((twice, _)) = cells.iter().find(|(name, _)| !seen.insert(name.clone())) {
        bail!("two cells are called `{twice}`; give each its own name after `# %%`");
    }
    if cells.is_empty() {
        bail!("the file has no cells; begin each with a line `# %% NAME`");
    }
    for (_, source) in &mut cells {
        // Blank lines before the next cell are layout, and no source.
        source.truncate(source.trim_end().len());
        source.push('\n');
    }
    Ok(cells)
}

fn name(line: &str) -> Option<&str> {
    line.strip_prefix("# %%").map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_with_marks_becomes_its_cells() {
        let cells = split("\nimport os\n\n# %% load\na = 1\n\n\n# %%\nb = a\n").unwrap();
        let shown: Vec<(&str, &str)> = cells.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        assert_eq!(shown, [("cell-1", "import os\n"), ("load", "a = 1\n"), ("cell-3", "b = a\n")]);
        assert!(split("").unwrap_err().to_string().contains("no cells"));
        assert!(split("# %% a\n# %% a\n").unwrap_err().to_string().contains("two cells are called `a`"));
    }

    #[test]
    fn what_is_not_utf_8_is_said_with_its_line() {
        assert_eq!(text(b"\xef\xbb\xbfa = 1".to_vec()).unwrap(), "a = 1");
        assert!(text(b"a\nb\xff".to_vec()).unwrap_err().to_string().contains("not UTF-8 in line 2"));
        assert!(text(b"\xff\xfea\0".to_vec()).unwrap_err().to_string().contains("UTF-16"));
    }
}
