//! The functions that change nothing: read, list, search.
//!
//! Each has caps on what it looks at and on what it gives, and says `truncated` when one was reached.

use longhaul_sdk::filesystem::types::{Descriptor, DescriptorType};
use longhaul_sdk::tools::ToolError;
use serde_json::{Value, json};

use crate::arguments::{List, Read, Search, Settings};
use crate::path::RelativePath;
use crate::{disk, text};

/// Most entries that one `list` gives.
const LISTED_MAX: usize = 1_000;
/// Deepest directory that `list` and `search` go into: a tree deeper than this is no source tree.
const DEPTH_MAX: usize = 32;
/// Most lines that one `search` gives.
const MATCHES_MAX: usize = 200;
/// Most files that one `search` reads.
const SEARCHED_MAX: usize = 5_000;
/// Largest file that `search` reads; longer ones are seldom written by hand.
const SEARCHED_BYTES_MAX: u64 = 1024 * 1024;

pub(crate) fn read(arguments: &Read, settings: &Settings) -> Result<Value, ToolError> {
    let path = file(&arguments.path)?;
    let root = disk::root()?;
    let Some(stat) = disk::stat(&root, &path)? else {
        return Err(ToolError::Failed(format!("`{path}` does not exist")));
    };
    // `limit` is the caller's: never more than the operator's.
    let limit = arguments.limit.unwrap_or(u64::MAX).clamp(1, settings.read_bytes_max);
    let bytes = disk::read(&root, &path, arguments.offset, limit)?;
    let end = arguments.offset.saturating_add(bytes.len() as u64);
    let path = path.to_string();
    let Some((skipped, content)) = text::part(&bytes, arguments.offset == 0, end >= stat.size) else {
        return Ok(json!({ "path": path, "size": stat.size, "binary": true, "truncated": false }));
    };
    let start = arguments.offset + skipped as u64;
    let next = start + content.len() as u64;
    let is_cut = next < stat.size && !content.is_empty();
    let mut answer = json!({
        "path": path, "content": content, "offset": start, "size": stat.size, "truncated": is_cut,
    });
    if is_cut {
        answer["next_offset"] = next.into();
    }
    Ok(answer)
}

pub(crate) fn list(arguments: &List) -> Result<Value, ToolError> {
    let path = directory(&arguments.path)?;
    let depth = if arguments.recursive { DEPTH_MAX } else { 1 };
    let mut listed = Vec::new();
    let is_whole = walk(&disk::root()?, &path, depth, &mut |path, entry| {
        if listed.len() >= LISTED_MAX {
            return false;
        }
        let mut shown = json!({ "path": path.to_string(), "type": kind(entry.kind) });
        if entry.kind == DescriptorType::RegularFile {
            shown["size"] = entry.size.into();
        }
        listed.push(shown);
        true
    })?;
    Ok(json!({ "path": path.to_string(), "entries": listed, "truncated": !is_whole }))
}

pub(crate) fn search(arguments: &Search) -> Result<Value, ToolError> {
    if arguments.query.is_empty() {
        return Err(ToolError::InvalidArguments("`query` is empty; say what to look for".to_owned()));
    }
    let path = directory(&arguments.path)?;
    let root = disk::root()?;
    let query = text::Query::new(&arguments.query, arguments.glob, arguments.ignore_case);
    let (mut found, mut searched) = (Vec::new(), 0_usize);
    let is_whole = walk(&root, &path, DEPTH_MAX, &mut |path, entry| {
        if found.len() >= MATCHES_MAX || searched >= SEARCHED_MAX {
            return false;
        }
        let is_wanted = entry.kind == DescriptorType::RegularFile
            && entry.size <= SEARCHED_BYTES_MAX
            && is_named(&arguments.files, path);
        if is_wanted {
            searched += 1;
            let room = MATCHES_MAX - found.len();
            found.extend(lines_of(&root, path, &query, room));
        }
        true
    })?;
    let is_whole = is_whole && found.len() < MATCHES_MAX;
    Ok(json!({ "matches": found, "files_searched": searched, "truncated": !is_whole }))
}

/// Visits what is below `path`, parents before children, until `visit` says stop.
///
/// False when something was left out. A directory that cannot be opened counts as left out.
fn walk(
    root: &Descriptor,
    path: &RelativePath,
    depth: usize,
    visit: &mut dyn FnMut(&RelativePath, &disk::Entry) -> bool,
) -> Result<bool, ToolError> {
    let mut is_whole = true;
    for entry in disk::entries(root, path)? {
        let path = path.join(&entry.name);
        if !visit(&path, &entry) {
            return Ok(false);
        }
        if entry.kind == DescriptorType::Directory && depth > 1 {
            is_whole &= walk(root, &path, depth - 1, visit).unwrap_or(false);
        }
    }
    Ok(is_whole)
}

/// The lines of one file that match; none of a file that cannot be read or is not text.
fn lines_of(root: &Descriptor, path: &RelativePath, query: &text::Query, room: usize) -> Vec<Value> {
    let Ok(bytes) = disk::read(root, path, 0, SEARCHED_BYTES_MAX) else {
        return Vec::new();
    };
    let content = text::part(&bytes, true, true);
    content.map_or_else(Vec::new, |(_, content)| text::matches(&path.to_string(), content, query, room))
}

/// True when a pattern means this file: by its whole path if the pattern has a `/`, else by its name.
fn is_named(pattern: &str, path: &RelativePath) -> bool {
    match pattern {
        "" => true,
        pattern if pattern.contains('/') => text::glob(pattern, &path.to_string()),
        pattern => text::glob(pattern, path.name()),
    }
}

fn kind(kind: DescriptorType) -> &'static str {
    match kind {
        DescriptorType::RegularFile => "file",
        DescriptorType::Directory => "directory",
        DescriptorType::SymbolicLink => "symlink",
        _ => "other",
    }
}

fn file(text: &str) -> Result<RelativePath, ToolError> {
    RelativePath::file(text).map_err(ToolError::InvalidArguments)
}

fn directory(text: &str) -> Result<RelativePath, ToolError> {
    RelativePath::directory(text).map_err(ToolError::InvalidArguments)
}
