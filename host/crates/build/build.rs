//! Lists the sources that the program embeds: the contract, the SDKs, the templates and the two interpreters. They are
//! included unchanged, so that there is no second copy to keep in step.
//!
//! They lie below `embedded` as links to the places in the repository, and `cargo package` puts the files themselves in
//! the archive. It leaves out folders with a `Cargo.toml`, which it takes for other packages, so that file is linked
//! under another name there.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The folder with the links, or with the files in a published package. The paths below it are those of the repository.
const EMBEDDED: &str = "embedded";

/// The end of a file's name that is no part of it.
const ENDING: &str = ".embedded";

/// The folder of the templates; folders of any name in it are part of a written project.
const TEMPLATES: &str = "sdk/templates";

/// Folders that an author's project does not need. `exclude` in `Cargo.toml` has the same.
const LEFT_OUT: [&str; 7] = ["examples", "test", "tests", "testkit", "target", "node_modules", "__pycache__"];

/// A file of each part, so that no part is missing.
const PARTS: [&str; 12] = [
    "plugins/javascript/app.js",
    "plugins/python/app.py",
    "sdk/c/longhaul.h",
    "sdk/js/README.md",
    "sdk/python/README.md",
    "sdk/rust/Cargo.toml",
    "sdk/rust/src/lib.rs",
    "sdk/templates/c/README.md",
    "sdk/templates/js/README.md",
    "sdk/templates/python/README.md",
    "sdk/templates/rust/Cargo.toml",
    "wit/v0.1/worlds.wit",
];

/// A file that is embedded.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Embedded {
    /// Its path from the top of the repository.
    name: String,
    place: PathBuf,
}

fn main() -> io::Result<()> {
    let top = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join(EMBEDDED);
    println!("cargo::rerun-if-changed={}", top.display());
    let mut files = Vec::new();
    if top.is_dir() {
        list(&top, Path::new(""), &mut files)?;
    }
    files.sort();
    if let Some(missing) = PARTS.iter().find(|part| !files.iter().any(|file| file.name == **part)) {
        // Cargo fails the build with this line.
        println!(
            "cargo::error=`{EMBEDDED}/{missing}` is missing in `{}`; check the repository out with symbolic links, or take the published package whole",
            top.parent().unwrap_or(&top).display()
        );
    }
    let lines = files.iter().map(|file| format!("({:?}, include_bytes!({:?})),\n", file.name, file.place));
    let text = format!("[\n{}]", lines.collect::<String>());
    fs::write(PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("files.rs"), text)
}

fn list(top: &Path, folder: &Path, files: &mut Vec<Embedded>) -> io::Result<()> {
    for entry in fs::read_dir(top.join(folder))? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = folder.join(name.strip_suffix(ENDING).unwrap_or(&name));
        let left_out = !path.starts_with(TEMPLATES) && LEFT_OUT.contains(&name.as_str());
        if name.starts_with('.') || left_out || name == "Cargo.lock" && !path.starts_with(TEMPLATES) {
            continue;
        }
        let place = entry.path();
        if let (true, Ok(target)) = (entry.file_type()?.is_symlink(), place.canonicalize()) {
            // The target of a link lies outside of the watched folder.
            println!("cargo::rerun-if-changed={}", target.display());
        }
        if place.is_dir() {
            list(top, &path, files)?;
        } else if let Some(name) = path.to_str() {
            files.push(Embedded { name: name.to_owned(), place });
        }
    }
    Ok(())
}
