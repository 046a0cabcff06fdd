//! Lists the pages of the book, which the program carries. They are included unchanged, so that there is no second copy
//! to keep in step.
//!
//! They lie below `embedded` as a link to their place in the repository, and `cargo package` puts the files themselves
//! in the archive.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The link to the pages, or the pages in a published package.
const BOOK: &str = "embedded/book";

/// Files that other modules include, and a page of the book, so that nothing is missing.
const PARTS: [&str; 3] = ["embedded/SKILL.md", "embedded/book/SUMMARY.md", "embedded/recording.jsonl"];

fn main() -> io::Result<()> {
    let top = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let book = top.join(BOOK);
    // The target of the link is watched, and not the link.
    let watched = book.canonicalize().unwrap_or_else(|_| book.clone());
    println!("cargo::rerun-if-changed={}", watched.display());
    if let Some(missing) = PARTS.iter().find(|part| !top.join(part).is_file()) {
        // Cargo fails the build with this line.
        println!(
            "cargo::error=`{missing}` is missing in `{}`; check the repository out with symbolic links, or take the published package whole",
            top.display()
        );
    }
    let mut pages = Vec::new();
    if book.is_dir() {
        list(&book, Path::new(""), &mut pages)?;
    }
    pages.sort();
    let lines = pages.iter().map(|page| format!("({page:?}, include_str!({:?})),\n", book.join(page)));
    let text = format!("[\n{}]", lines.collect::<String>());
    fs::write(PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("chapters.rs"), text)
}

/// The paths of all pages below a folder.
fn list(book: &Path, folder: &Path, pages: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(book.join(folder))? {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        if entry.path().is_dir() {
            list(book, &path, pages)?;
        } else if let Some(name) = path.to_str().filter(|name| name.ends_with(".md")) {
            pages.push(name.to_owned());
        }
    }
    Ok(())
}
