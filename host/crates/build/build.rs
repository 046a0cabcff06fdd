//! Lists the sources that the program embeds: the contract, the SDKs, the templates and the two interpreters. They are
//! included unchanged, so that there is no second copy to keep in step.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The embedded folders, from the top of the repository.
const ROOTS: [&str; 4] = ["wit/v0.1", "sdk", "plugins/python", "plugins/javascript"];

/// The folder of the templates; folders of any name in it are part of a written project.
const TEMPLATES: &str = "sdk/templates";

/// Folders that an author's project does not need.
const LEFT_OUT: [&str; 7] = ["examples", "test", "tests", "testkit", "target", "node_modules", "__pycache__"];

fn main() -> io::Result<()> {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let top = here.join("../../..").canonicalize()?;
    let mut files = Vec::new();
    for root in ROOTS {
        println!("cargo::rerun-if-changed={}", top.join(root).display());
        if top.join(root).is_dir() {
            list(&top, Path::new(root), &mut files)?;
        }
    }
    files.sort();
    let lines = files.iter().map(|file| format!("({file:?}, include_bytes!({:?})),\n", top.join(file)));
    let text = format!("[\n{}]", lines.collect::<String>());
    fs::write(PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("files.rs"), text)
}

fn list(top: &Path, folder: &Path, files: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(top.join(folder))? {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        let (name, path_text) = (entry.file_name().into_string(), path.to_str());
        let (Ok(name), Some(path_text)) = (name, path_text) else { continue };
        let left_out = !path.starts_with(TEMPLATES) && LEFT_OUT.contains(&name.as_str());
        if name.starts_with('.') || left_out || name == "Cargo.lock" && !path.starts_with(TEMPLATES) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            list(top, &path, files)?;
        } else {
            files.push(path_text.to_owned());
        }
    }
    Ok(())
}
