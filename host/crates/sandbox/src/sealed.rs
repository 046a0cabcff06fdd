//! This binary as a sealed copy in memory, so that nothing inside can reach the file on disk through `/proc/PID/exe`.
//!
//! A host makes one copy and starts each child from it. The copy ends with the loaded segments: debug information stays
//! on disk.

use std::io;
use std::path::{Path, PathBuf};

/// The path to start a child of `program` from.
#[cfg(not(target_os = "linux"))]
pub(crate) fn copy_of(program: &Path) -> io::Result<PathBuf> {
    Ok(program.to_owned())
}

/// The path to start a child of `program` from.
#[cfg(target_os = "linux")]
pub(crate) fn copy_of(program: &Path) -> io::Result<PathBuf> {
    use std::collections::HashMap;
    use std::os::fd::{AsRawFd as _, OwnedFd};
    use std::sync::{Mutex, PoisonError};
    static COPIES: Mutex<Option<HashMap<PathBuf, OwnedFd>>> = Mutex::new(None);
    let mut copies = COPIES.lock().unwrap_or_else(PoisonError::into_inner);
    let copies = copies.get_or_insert_default();
    let copy = match copies.entry(program.to_owned()) {
        std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
        std::collections::hash_map::Entry::Vacant(entry) => entry.insert(linux::seal(program)?),
    };
    Ok(PathBuf::from(format!("/proc/self/fd/{}", copy.as_raw_fd())))
}

/// True when this process was started from a sealed copy.
#[cfg(target_os = "linux")]
pub(crate) fn is_sealed() -> io::Result<bool> {
    let binary = std::fs::File::open("/proc/self/exe")?;
    // A file on a disk has no seals.
    Ok(rustix::fs::fcntl_get_seals(&binary).is_ok_and(|seals| seals.contains(rustix::fs::SealFlags::WRITE)))
}

#[cfg(target_os = "linux")]
mod linux {
    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
    use rustix::io::Errno;
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    use std::fs::File;
    use std::io::{self, Read, Seek};
    use std::os::fd::OwnedFd;
    use std::path::Path;

    pub(super) fn seal(program: &Path) -> io::Result<OwnedFd> {
        let mut from = File::open(program)?;
        let len = loaded_len(&mut from)?.unwrap_or(u64::MAX);
        from.rewind()?;
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        // Kernels before 6.3 have neither the flag nor the seal: there every such file can be executed.
        let (copy, is_new) = match memfd_create("longhaul", flags | MemfdFlags::EXEC) {
            Ok(copy) => (copy, true),
            Err(Errno::INVAL) => (memfd_create("longhaul", flags)?, false),
            Err(error) => return Err(error.into()),
        };
        let mut copy = File::from(copy);
        without_limit(|| io::copy(&mut from.take(len), &mut copy))?;
        let mut seals = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
        if is_new {
            seals |= SealFlags::EXEC;
        }
        fcntl_add_seals(&copy, seals)?;
        Ok(copy.into())
    }

    /// Works without the soft limit on the size of files, which concerns disks: the copy is memory.
    fn without_limit<T>(work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let limit = getrlimit(Resource::Fsize);
        if limit.current == limit.maximum {
            return work();
        }
        setrlimit(Resource::Fsize, Rlimit { current: limit.maximum, maximum: limit.maximum })?;
        let done = work();
        setrlimit(Resource::Fsize, limit)?;
        done
    }

    /// The bytes of a 64-bit ELF file up to the end of its last loaded segment; none for any other file.
    fn loaded_len(file: &mut File) -> io::Result<Option<u64>> {
        const LOAD: u32 = 1;
        const IS_64_BIT: u8 = 2;
        let mut header = [0; 64];
        if file.read_exact(&mut header).is_err() || !header.starts_with(b"\x7fELF") || header[4] != IS_64_BIT {
            return Ok(None);
        }
        let (at, size, count) = (number(&header[32..40]), number(&header[54..56]), number(&header[56..58]));
        let mut table = vec![0; usize::try_from(size.saturating_mul(count)).map_err(io::Error::other)?];
        file.seek(io::SeekFrom::Start(at))?;
        file.read_exact(&mut table)?;
        let size = usize::try_from(size).map_err(io::Error::other)?;
        let ends = table.chunks_exact(size.max(40)).filter(|entry| number(&entry[..4]) == u64::from(LOAD));
        Ok(ends.map(|entry| number(&entry[8..16]).saturating_add(number(&entry[32..40]))).max())
    }

    /// A number in the machine's byte order, of at most eight bytes.
    fn number(bytes: &[u8]) -> u64 {
        let fold = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        if cfg!(target_endian = "little") { bytes.iter().rev().fold(0, fold) } else { bytes.iter().fold(0, fold) }
    }
}
