//! The files of the repository, and how a rule that they break is told.

use std::fs;
use std::path::{Path, PathBuf};

pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package is in a folder of the repository").to_owned()
}

/// Files below a folder of the repository that are ours: nothing built, nothing of git.
pub fn files(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![repository().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let entry = entry.expect("readable");
            let (path, name) = (entry.path(), entry.file_name());
            let built = name == "target" || name == ".git" || name == "node_modules" || name == "__pycache__";
            match entry.file_type().expect("readable") {
                kind if kind.is_dir() && !built => folders.push(path),
                kind if kind.is_file() => found.push(path),
                _ => {}
            }
        }
    }
    found.sort();
    found
}

pub fn rust_files(folder: &str) -> impl Iterator<Item = PathBuf> {
    files(folder).into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
}

pub fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The text of a file by its path from the top of the repository; none where there is no such file.
pub fn source(path: &Path) -> Option<String> {
    let path = repository().join(path);
    path.is_file().then(|| read(&path))
}

/// The path from the top of the repository.
pub fn shown(path: &Path) -> String {
    path.strip_prefix(repository()).unwrap_or(path).display().to_string()
}

#[track_caller]
pub fn none(wrong: &[String], rule: &str) {
    assert!(wrong.is_empty(), "{rule}:\n{}", wrong.join("\n"));
}
