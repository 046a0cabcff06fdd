//! The pages of the configuration files, from the types that read them.
//!
//! A key's name, type and text are those of its field: the documentation of a field says its unit, its default and its
//! bounds. The sources are read line by line, as rustfmt writes them. A table that has no section, and a type that no
//! source has, are errors.

mod sections;
mod types;

use super::page::{KEYS, opened};
use anyhow::Result;
use sections::{FILES, File, SOURCES};
use std::collections::BTreeMap;
use std::path::Path;
use types::Types;

/// A page a file.
pub(crate) fn pages(root: &Path) -> Result<BTreeMap<String, String>> {
    let types = Types::read(&root.join("host/crates"), &SOURCES)?;
    let pages = FILES.iter().map(|file| -> Result<_> { Ok((file.page.to_owned(), page(file, &types)?)) });
    pages.collect()
}

fn page(file: &File, types: &Types) -> Result<String> {
    let mut text = opened("the types that read the file", file.name);
    text += file.about;
    text += "\n";
    for (heading, kind, about) in file.sections {
        text += &format!("\n## {heading}\n\n");
        if !about.is_empty() {
            text += &format!("{about}\n\n");
        }
        text += KEYS;
        for key in types.keys(kind)? {
            let needed = if key.is_required { ", required" } else { "" };
            text += &format!("| `{}` | {}{needed} | {} |\n", key.name, key.shown, key.about);
        }
    }
    Ok(text)
}
