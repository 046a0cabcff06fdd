//! The page of the contract: its worlds, and each interface with its functions and types.
//!
//! The files are read line by line, as they are written here: an item begins a line, and its documentation precedes it.

use super::page::{cell, joined, opened};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

const FOLDER: &str = "wit/v0.1";

/// Words that begin a type.
const TYPES: [&str; 6] = ["record", "variant", "enum", "flags", "resource", "type"];

/// Words that begin a line of a world.
const LINKS: [&str; 3] = ["include", "import", "export"];

/// A world or an interface.
#[derive(Default)]
struct Part {
    is_world: bool,
    name: String,
    file: String,
    docs: String,
    /// Signatures with their documentation.
    functions: Vec<(String, String)>,
    /// Types, with the word that begins them, and their documentation.
    types: Vec<(String, String)>,
    /// The interfaces that a world includes, imports and exports, each with that word.
    links: Vec<(String, String)>,
}

pub(crate) fn page(root: &Path) -> Result<String> {
    let mut parts = Vec::new();
    for path in files(&root.join(FOLDER))? {
        let text = fs::read_to_string(&path).with_context(|| format!("read `{}`", path.display()))?;
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        read(&file, &text, &mut parts);
    }
    let mut text = opened(FOLDER, "WIT");
    text += "The contract between the host and a plugin, package `longhaul`, version 0.1. The files in\n\
             [wit/v0.1](../../../../wit/v0.1) are the truth; this page lists their worlds, interfaces and functions.\n";
    text += "\n## Worlds\n";
    parts.iter().filter(|part| part.is_world).for_each(|world| text += &of_world(world));
    parts.iter().filter(|part| !part.is_world).for_each(|interface| text += &of_interface(interface));
    Ok(text)
}

fn of_world(world: &Part) -> String {
    let mut text = format!("\n### world {}\n\n{}\n\n", world.name, world.docs);
    for kind in LINKS {
        let names = world.links.iter().filter(|(word, _)| word == kind);
        let names: Vec<String> = names.map(|(_, name)| format!("`{name}`")).collect();
        if !names.is_empty() {
            text += &format!("- {kind}: {}\n", names.join(", "));
        }
    }
    text
}

fn of_interface(interface: &Part) -> String {
    let Part { name, file, docs, functions, types, .. } = interface;
    let mut text = format!("\n## interface {name}\n\n{docs} File: [{file}](../../../../{FOLDER}/{file}).\n");
    if !functions.is_empty() {
        let signatures: Vec<&str> = functions.iter().map(|(signature, _)| signature.as_str()).collect();
        text += &format!("\n```wit\n{}\n```\n\n", signatures.join("\n"));
        for (signature, docs) in functions {
            let name = signature.split(':').next().unwrap_or_default().trim_start_matches('%');
            text += &format!("- `{name}`: {docs}\n");
        }
    }
    if !types.is_empty() {
        text += "\n| type | what |\n|---|---|\n";
        types.iter().for_each(|(name, docs)| text += &format!("| {name} | {} |\n", cell(docs)));
    }
    text
}

/// Files of the contract, by name.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("read `{}`", folder.display()))?;
    let mut files = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "wit"));
    files.sort();
    Ok(files)
}

fn read(file: &str, text: &str, parts: &mut Vec<Part>) {
    let mut docs = Vec::new();
    let (first, mut goes_on) = (parts.len(), false);
    for line in text.lines() {
        let code = line.trim();
        if goes_on {
            if let Some((signature, _)) = parts.last_mut().and_then(|part| part.functions.last_mut()) {
                *signature += " ";
                *signature += code;
            }
            goes_on = !code.ends_with(';');
            continue;
        }
        if let Some(said) = code.strip_prefix("///") {
            docs.push(said);
            continue;
        }
        if code.starts_with('@') {
            continue;
        }
        let said = joined(&docs.join("\n"));
        docs.clear();
        let words: Vec<&str> = code.trim_end_matches('{').split_whitespace().collect();
        if let [kind @ ("world" | "interface"), name] = words.as_slice()
            && !line.starts_with(' ')
        {
            let (is_world, name, file) = (*kind == "world", (*name).to_owned(), file.to_owned());
            parts.push(Part { is_world, name, file, docs: said, ..Part::default() });
            continue;
        }
        let is_first = parts.len() == first;
        let Some(part) = parts.last_mut().filter(|_| !is_first) else { continue };
        match words.as_slice() {
            [word, name] if LINKS.contains(word) => {
                part.links.push(((*word).to_owned(), name.trim_end_matches(';').to_owned()));
            }
            _ if code.contains(": func(") => {
                goes_on = !code.ends_with(';');
                part.functions.push((code.to_owned(), said));
            }
            [word, name, ..] if TYPES.contains(word) => part.types.push((format!("{word} `{name}`"), said)),
            _ => {}
        }
    }
}

#[test]
fn a_function_is_read_over_lines_with_its_documentation() {
    let text = "/// Keeps\n/// things.\ninterface keeper {\n  /// One.\n  @since(version = 0.1.0)\n  record one {\n    a: u8,\n  }\n\n  \
                /// Finds.\n  find: func(a: u8)\n    -> u8;\n}\n";
    let mut parts = Vec::new();
    read("keeper.wit", text, &mut parts);
    let part = &parts[0];
    assert_eq!((part.name.as_str(), part.docs.as_str()), ("keeper", "Keeps things."));
    assert_eq!(part.functions, [("find: func(a: u8) -> u8;".to_owned(), "Finds.".to_owned())]);
    assert_eq!(part.types, [("record `one`".to_owned(), "One.".to_owned())]);
}
