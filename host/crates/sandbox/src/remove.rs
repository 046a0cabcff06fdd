//! Removes the files of programs: directories nested deeper than any stack, and without permissions.

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Removes the directory `dir` with its content, at any depth; succeeds when there is none. Follows no link.
///
/// # Errors
/// When the file system refuses.
pub fn remove_all(dir: &Path) -> io::Result<()> {
    match rustix::fs::open(dir, directory(), Mode::empty()) {
        Ok(open) => empty(&open)?,
        Err(rustix::io::Errno::NOENT) => return Ok(()),
        Err(error) => return Err(error.into()),
    }
    std::fs::remove_dir(dir)
}

/// Empties a directory. Directories below are moved up before they are emptied: a guest may nest them deeper than the
/// stack or the open files allow.
///
/// # Errors
/// When the file system refuses.
pub fn empty(dir: &OwnedFd) -> io::Result<()> {
    let mut waiting = unlink_files(dir, dir)?;
    while let Some(name) = waiting.pop() {
        let below = match open_dir_at(dir, &name) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                rustix::fs::chmodat(dir, name.as_slice(), Mode::from_raw_mode(0o700), AtFlags::empty())?;
                open_dir_at(dir, &name)?
            }
            other => other?,
        };
        waiting.extend(unlink_files(&below, dir)?);
        rustix::fs::unlinkat(dir, name.as_slice(), AtFlags::REMOVEDIR)?;
    }
    Ok(())
}

/// Removes the files of `dir` and moves its directories into `top`; returns their names there.
fn unlink_files(dir: &OwnedFd, top: &OwnedFd) -> io::Result<Vec<Vec<u8>>> {
    let same = std::ptr::eq(dir, top);
    if !same {
        // Renaming and unlinking need this mode, and a program may have removed it.
        rustix::fs::fchmod(dir, Mode::from_raw_mode(0o700))?;
    }
    let mut directories = Vec::new();
    for entry in Dir::read_from(dir)? {
        let name = entry?.file_name().to_bytes().to_vec();
        if name == b"." || name == b".." {
            continue;
        }
        let stat = rustix::fs::statat(dir, name.as_slice(), AtFlags::SYMLINK_NOFOLLOW)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
            rustix::fs::unlinkat(dir, name.as_slice(), AtFlags::empty())?;
        } else if same {
            directories.push(name);
        } else {
            let moved = fresh_name();
            rustix::fs::renameat(dir, name.as_slice(), top, moved.as_slice())?;
            directories.push(moved);
        }
    }
    Ok(directories)
}

fn open_dir_at(dir: &OwnedFd, name: &[u8]) -> io::Result<OwnedFd> {
    Ok(rustix::fs::openat(dir, name, directory(), Mode::empty())?)
}

fn directory() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

/// With the time: another process may have had the same number, and have been killed.
fn fresh_name() -> Vec<u8> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let nanos = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |now| now.as_nanos());
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!(".longhaul-tmp-{}-{nanos}-{number}", std::process::id()).into_bytes()
}
