//! Kernel calls without a safe interface: closing a range of descriptors, and mounts that map owners.

use rustix::fs::CWD;
use rustix::mount::{MoveMountFlags, OpenTreeFlags, move_mount, open_tree};
use rustix::thread::UnshareFlags;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::Path;

/// The first descriptor after the standard ones.
const FIRST_OTHER: u32 = 3;

/// Descriptors are numbers of 31 bits, and gVisor refuses a larger one.
const LAST: u32 = i32::MAX.unsigned_abs();

/// Marks every descriptor except the standard ones as closed at the start of another program: the host may have
/// inherited some, such as a terminal.
pub(super) fn close_others_at_exec() -> io::Result<()> {
    const CLOEXEC: u32 = 4;
    // SAFETY: it takes numbers only, and closes nothing in this process.
    checked(unsafe { libc::syscall(libc::SYS_close_range, FIRST_OTHER, LAST, CLOEXEC) })
}

/// Closes every descriptor except the standard ones and `kept`: for a process that has opened no other, and inherited
/// some.
pub(super) fn close_others(kept: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let kept = kept.and_then(|kept| u32::try_from(kept.as_raw_fd()).ok()).filter(|kept| *kept >= FIRST_OTHER);
    if let Some(before) = kept.filter(|kept| *kept > FIRST_OTHER).map(|kept| kept - 1) {
        close(FIRST_OTHER, before)?;
    }
    close(kept.map_or(FIRST_OTHER, |kept| kept + 1), LAST)
}

fn close(first: u32, last: u32) -> io::Result<()> {
    // SAFETY: it takes numbers only. If the process does own one of them, later uses of it are errors, and the process
    // opens no other that could be taken for it.
    checked(unsafe { libc::syscall(libc::SYS_close_range, first, last, 0_u32) })
}

/// A user namespace in which root is `user`: mounts that have it give root's files to `user`.
pub(super) fn namespace_of(user: u32) -> io::Result<OwnedFd> {
    let (mut ready, mut says_ready) = io::pipe()?;
    let (mut until, until_dropped) = io::pipe()?;
    // SAFETY: this process has one thread, so that the new one may do everything that this one could.
    let child = unsafe { libc::fork() };
    if child < 0 {
        return Err(io::Error::last_os_error());
    }
    if child == 0 {
        drop(until_dropped);
        #[expect(deprecated, reason = "only FILES makes it unsound, and the other one is an unsafe function")]
        let made = rustix::thread::unshare(UnshareFlags::NEWUSER);
        let _ = says_ready.write_all(&[u8::from(made.is_ok())]);
        let _ = until.read(&mut [0]);
        std::process::exit(0);
    }
    drop(says_ready);
    let made = map(&mut ready, child, user);
    drop(until_dropped);
    let _ = rustix::process::waitpid(rustix::process::Pid::from_raw(child), rustix::process::WaitOptions::empty());
    made
}

fn map(ready: &mut impl Read, child: i32, user: u32) -> io::Result<OwnedFd> {
    let mut made = [0];
    ready.read_exact(&mut made)?;
    if made == [0] {
        return Err(io::Error::other("the system refuses a user namespace"));
    }
    std::fs::write(format!("/proc/{child}/setgroups"), "deny")?;
    std::fs::write(format!("/proc/{child}/uid_map"), format!("0 {user} 1"))?;
    std::fs::write(format!("/proc/{child}/gid_map"), format!("0 {user} 1"))?;
    Ok(std::fs::File::open(format!("/proc/{child}/ns/user"))?.into())
}

/// Binds `source` to `target` as a mount whose owners are mapped by `namespace`. Not every file system can.
pub(super) fn bind_mapped(source: &Path, target: &Path, namespace: &OwnedFd) -> io::Result<()> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let tree = open_tree(CWD, source, flags)?;
    let attributes = libc::mount_attr {
        attr_set: libc::MOUNT_ATTR_IDMAP,
        attr_clr: 0,
        propagation: 0,
        userns_fd: u64::try_from(namespace.as_raw_fd()).map_err(io::Error::other)?,
    };
    // SAFETY: path and attributes outlive the call, and the size is that of the attributes.
    checked(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    })?;
    Ok(move_mount(&tree, c"", CWD, target, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?)
}

fn checked(answer: libc::c_long) -> io::Result<()> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
