//! The granted directory, through `wasi:filesystem`.
//!
//! Every directory on the way is opened by itself and without following links, so no component of
//! a path can lead outside. What is not a regular file is never opened: a pipe would hang.

use longhaul_sdk::filesystem::preopens::get_directories;
use longhaul_sdk::filesystem::types::{
    Descriptor, DescriptorFlags, DescriptorStat, DescriptorType, ErrorCode, OpenFlags, PathFlags,
};
use longhaul_sdk::tools::ToolError;
use longhaul_sdk::types::Denial;
use sha2::{Digest, Sha256};

use crate::path::{RelativePath, TEMPORARY, is_reserved};

/// The path of the working tree, unless the operator granted one other directory only.
const ROOT: &str = "/work";

/// Bytes that are read at once: within any sensible cap of the host on one answer.
const CHUNK_BYTES: u32 = 64 * 1024;

/// The granted directory.
pub(crate) fn root() -> Result<Descriptor, ToolError> {
    let mut granted = get_directories();
    let only = (granted.len() == 1).then_some(0);
    let found = granted.iter().position(|(_, path)| path == ROOT).or(only);
    found.map(|at| granted.swap_remove(at).0).ok_or_else(|| {
        ToolError::Denied(Denial {
            reason: format!("the tool `files` has no directory `{ROOT}`"),
            fix: format!(
                "add to longhaul.toml: [tools.files] directories = [{{ guest = \"{ROOT}\", access = \"write\" }}]"
            ),
        })
    })
}

/// One entry of a directory.
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) kind: DescriptorType,
    pub(crate) size: u64,
}

/// The entries of the directory `path`, by name, without reserved names.
pub(crate) fn entries(root: &Descriptor, path: &RelativePath) -> Result<Vec<Entry>, ToolError> {
    let dir = open_directory(root, path.parts(), DescriptorFlags::READ).map_err(|missing| missing.on(path))?;
    let dir = dir.as_ref().unwrap_or(root);
    let stream = dir.read_directory().map_err(|code| wrong(code, path))?;
    let mut entries = Vec::new();
    while let Some(entry) = stream.read_directory_entry().map_err(|code| wrong(code, path))? {
        if is_reserved(&entry.name) {
            continue;
        }
        // An entry that is gone by now is none.
        if let Ok(stat) = dir.stat_at(PathFlags::empty(), &entry.name) {
            entries.push(Entry { name: entry.name, kind: stat.type_, size: stat.size });
        }
        if entries.len() >= ENTRIES_MAX {
            break;
        }
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}

/// Most entries of one directory that are looked at.
const ENTRIES_MAX: usize = 10_000;

/// The metadata of the regular file `path`. None: it does not exist.
pub(crate) fn stat(root: &Descriptor, path: &RelativePath) -> Result<Option<DescriptorStat>, ToolError> {
    let (dir, name) = path.split();
    let dir = match open_directory(root, dir, DescriptorFlags::READ) {
        Ok(dir) => dir,
        Err(Missing::Directory) => return Ok(None),
        Err(Missing::Other(error)) => return Err(error),
    };
    stat_in(dir.as_ref().unwrap_or(root), name, path)
}

/// At most `length` bytes of the file `path`, from `offset`.
pub(crate) fn read(root: &Descriptor, path: &RelativePath, offset: u64, length: u64) -> Result<Vec<u8>, ToolError> {
    let file = open_file(root, path)?;
    let mut bytes = Vec::new();
    let mut left = length;
    while left > 0 {
        let at = offset.saturating_add(bytes.len() as u64);
        let (chunk, is_end) = file.read(left.min(CHUNK_BYTES.into()), at).map_err(|code| wrong(code, path))?;
        left = left.saturating_sub(chunk.len() as u64);
        let is_empty = chunk.is_empty();
        bytes.extend(chunk);
        if is_end || is_empty {
            break;
        }
    }
    Ok(bytes)
}

/// The digest of the file `path`; none when there is none.
pub(crate) fn digest(root: &Descriptor, path: &RelativePath) -> Result<Option<String>, ToolError> {
    if stat(root, path)?.is_none() {
        return Ok(None);
    }
    let file = open_file(root, path)?;
    let mut hasher = Sha256::new();
    let mut at = 0_u64;
    loop {
        let (chunk, is_end) = file.read(CHUNK_BYTES.into(), at).map_err(|code| wrong(code, path))?;
        hasher.update(&chunk);
        at = at.saturating_add(chunk.len() as u64);
        if is_end || chunk.is_empty() {
            return Ok(Some(hex(&hasher.finalize())));
        }
    }
}

/// Puts `bytes` at `path` in one step, making the directories that are missing.
///
/// `key` is the same for every attempt of one call: what an attempt left behind is taken away by
/// the next.
pub(crate) fn write(root: &Descriptor, path: &RelativePath, bytes: &[u8], key: &str) -> Result<(), ToolError> {
    let (dir, name) = path.split();
    let dir = make_directory(root, dir)?;
    let dir = dir.as_ref().unwrap_or(root);
    // Refuses links and directories in the place of the file.
    stat_in(dir, name, path)?;
    let temporary = format!("{TEMPORARY}{}", &hex_of(key.as_bytes())[..16]);
    match dir.unlink_file_at(&temporary) {
        Ok(()) | Err(ErrorCode::NoEntry) => {}
        Err(code) => return Err(wrong(code, path)),
    }
    let written = write_new(dir, &temporary, bytes).and_then(|()| dir.rename_at(&temporary, dir, name));
    written.map_err(|code| {
        // The leftover file is harmless; the failure to report is `code`.
        let _ = dir.unlink_file_at(&temporary);
        wrong(code, path)
    })
}

/// Deletes the regular file `path`; fine when it is gone.
pub(crate) fn delete(root: &Descriptor, path: &RelativePath) -> Result<(), ToolError> {
    let (dir, name) = path.split();
    let flags = DescriptorFlags::READ | DescriptorFlags::MUTATE_DIRECTORY;
    let dir = match open_directory(root, dir, flags) {
        Ok(dir) => dir,
        Err(Missing::Directory) => return Ok(()),
        Err(Missing::Other(error)) => return Err(error),
    };
    let dir = dir.as_ref().unwrap_or(root);
    if stat_in(dir, name, path)?.is_none() {
        return Ok(());
    }
    match dir.unlink_file_at(name) {
        Ok(()) | Err(ErrorCode::NoEntry) => Ok(()),
        Err(code) => Err(wrong(code, path)),
    }
}

/// Moves the regular file `from` to `to`, where nothing may be, making the directories that are missing.
pub(crate) fn rename(root: &Descriptor, from: &RelativePath, to: &RelativePath) -> Result<(), ToolError> {
    let ((from_dir, from_name), (to_dir, to_name)) = (from.split(), to.split());
    let flags = DescriptorFlags::READ | DescriptorFlags::MUTATE_DIRECTORY;
    let from_dir = open_directory(root, from_dir, flags).map_err(|missing| missing.on(from))?;
    let from_dir = from_dir.as_ref().unwrap_or(root);
    if stat_in(from_dir, from_name, from)?.is_none() {
        return Err(wrong(ErrorCode::NoEntry, from));
    }
    let to_dir = make_directory(root, to_dir)?;
    let to_dir = to_dir.as_ref().unwrap_or(root);
    if stat_in(to_dir, to_name, to)?.is_some() {
        return Err(ToolError::InvalidArguments(is_there(to)));
    }
    from_dir.rename_at(from_name, to_dir, to_name).map_err(|code| wrong(code, from))
}

/// The error about a file that is in the way.
pub(crate) fn is_there(path: &RelativePath) -> String {
    format!("there is a file `{path}` already; delete it first, or choose another name")
}

/// A file of ours at the top, where no path of a caller leads; none when it is not there.
pub(crate) fn read_own(root: &Descriptor, name: &str) -> Option<Vec<u8>> {
    let file = root.open_at(PathFlags::empty(), name, OpenFlags::empty(), DescriptorFlags::READ).ok()?;
    let mut bytes = Vec::new();
    loop {
        let (chunk, is_end) = file.read(CHUNK_BYTES.into(), bytes.len() as u64).ok()?;
        let is_empty = chunk.is_empty();
        bytes.extend(chunk);
        if is_end || is_empty {
            return Some(bytes);
        }
    }
}

/// Writes such a file, complete or not at all.
pub(crate) fn write_own(root: &Descriptor, name: &str, bytes: &[u8]) -> Result<(), ToolError> {
    let temporary = format!("{name}.new");
    let _ = root.unlink_file_at(&temporary);
    let written = write_new(root, &temporary, bytes).and_then(|()| root.rename_at(&temporary, root, name));
    written.map_err(|code| wrong_at(code, "."))
}

/// Removes such a file.
pub(crate) fn remove_own(root: &Descriptor, name: &str) {
    // One that stays is found by the same call alone, which looks whether it still fits.
    let _ = root.unlink_file_at(name);
}

/// The digest of `bytes`, as 64 hexadecimal digits.
pub(crate) fn hex_of(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn write_new(dir: &Descriptor, name: &str, bytes: &[u8]) -> Result<(), ErrorCode> {
    let open = OpenFlags::CREATE | OpenFlags::EXCLUSIVE;
    let file = dir.open_at(PathFlags::empty(), name, open, DescriptorFlags::WRITE)?;
    let mut at = 0;
    while at < bytes.len() {
        let end = bytes.len().min(at + CHUNK_BYTES as usize);
        let count = usize::try_from(file.write(&bytes[at..end], at as u64)?).unwrap_or(0);
        if count == 0 {
            return Err(ErrorCode::Io);
        }
        at += count;
    }
    // The name must not point to bytes that a power cut can lose.
    file.sync_data()
}

fn open_file(root: &Descriptor, path: &RelativePath) -> Result<Descriptor, ToolError> {
    let (dir, name) = path.split();
    let dir = open_directory(root, dir, DescriptorFlags::READ).map_err(|missing| missing.on(path))?;
    let dir = dir.as_ref().unwrap_or(root);
    if stat_in(dir, name, path)?.is_none() {
        return Err(wrong(ErrorCode::NoEntry, path));
    }
    dir.open_at(PathFlags::empty(), name, OpenFlags::empty(), DescriptorFlags::READ).map_err(|code| wrong(code, path))
}

/// The metadata of `name` in `dir`, refusing all but regular files. None: it does not exist.
fn stat_in(dir: &Descriptor, name: &str, path: &RelativePath) -> Result<Option<DescriptorStat>, ToolError> {
    match dir.stat_at(PathFlags::empty(), name) {
        Ok(stat) if stat.type_ == DescriptorType::RegularFile => Ok(Some(stat)),
        Ok(stat) => Err(not_a_file(stat.type_, path)),
        Err(ErrorCode::NoEntry) => Ok(None),
        Err(code) => Err(wrong(code, path)),
    }
}

/// The reason why a directory was not opened.
enum Missing {
    Directory,
    Other(ToolError),
}

impl Missing {
    fn on(self, path: &RelativePath) -> ToolError {
        match self {
            Self::Directory => wrong(ErrorCode::NoEntry, path),
            Self::Other(error) => error,
        }
    }
}

/// Opens the directory that `parts` lead to; none for the granted directory itself.
fn open_directory(root: &Descriptor, parts: &[String], flags: DescriptorFlags) -> Result<Option<Descriptor>, Missing> {
    let mut dir: Option<Descriptor> = None;
    for (at, part) in parts.iter().enumerate() {
        let parent = dir.as_ref().unwrap_or(root);
        let opened = open_part(parent, part, flags).map_err(|code| match code {
            ErrorCode::NoEntry => Missing::Directory,
            code => Missing::Other(part_error(parent, code, &parts[..=at])),
        })?;
        dir = Some(opened);
    }
    Ok(dir)
}

fn make_directory(root: &Descriptor, parts: &[String]) -> Result<Option<Descriptor>, ToolError> {
    let flags = DescriptorFlags::READ | DescriptorFlags::MUTATE_DIRECTORY;
    let mut dir: Option<Descriptor> = None;
    for (at, part) in parts.iter().enumerate() {
        let parent = dir.as_ref().unwrap_or(root);
        let opened = match open_part(parent, part, flags) {
            Err(ErrorCode::NoEntry) => match parent.create_directory_at(part) {
                Ok(()) | Err(ErrorCode::Exist) => open_part(parent, part, flags),
                Err(code) => Err(code),
            },
            opened => opened,
        };
        dir = Some(opened.map_err(|code| part_error(parent, code, &parts[..=at]))?);
    }
    Ok(dir)
}

fn open_part(parent: &Descriptor, part: &str, flags: DescriptorFlags) -> Result<Descriptor, ErrorCode> {
    parent.open_at(PathFlags::empty(), part, OpenFlags::DIRECTORY, flags)
}

/// Systems name a link in the way differently, so we look what it is.
fn part_error(parent: &Descriptor, code: ErrorCode, parts: &[String]) -> ToolError {
    let path = parts.join("/");
    let name = parts.last().map(String::as_str).unwrap_or_default();
    match parent.stat_at(PathFlags::empty(), name) {
        Ok(stat) if stat.type_ == DescriptorType::SymbolicLink => link(&path),
        Ok(stat) if stat.type_ != DescriptorType::Directory => {
            ToolError::InvalidArguments(format!("`{path}` is not a directory"))
        }
        _ => wrong_at(code, &path),
    }
}

fn not_a_file(kind: DescriptorType, path: &RelativePath) -> ToolError {
    match kind {
        DescriptorType::SymbolicLink => link(&path.to_string()),
        DescriptorType::Directory => ToolError::InvalidArguments(format!("`{path}` is a directory, not a file")),
        _ => ToolError::InvalidArguments(format!("`{path}` is not a regular file")),
    }
}

fn link(path: &str) -> ToolError {
    ToolError::InvalidArguments(format!("`{path}` is a symbolic link; links are not followed"))
}

fn wrong(code: ErrorCode, path: &RelativePath) -> ToolError {
    wrong_at(code, &path.to_string())
}

fn wrong_at(code: ErrorCode, path: &str) -> ToolError {
    match code {
        ErrorCode::NoEntry => ToolError::Failed(format!("`{path}` does not exist")),
        ErrorCode::Loop => link(path),
        ErrorCode::NotDirectory => ToolError::InvalidArguments(format!("a part of `{path}` is not a directory")),
        ErrorCode::Access | ErrorCode::NotPermitted | ErrorCode::ReadOnly => ToolError::Denied(Denial {
            reason: format!("the granted directory does not allow this on `{path}`"),
            fix: format!(
                "write in longhaul.toml: [tools.files] directories = [{{ guest = \"{ROOT}\", access = \"write\" }}]"
            ),
        }),
        ErrorCode::InsufficientSpace | ErrorCode::Quota => {
            ToolError::Failed(format!("there is no space left to write `{path}`"))
        }
        code => ToolError::Failed(format!("`{path}`: {}", code.name())),
    }
}
