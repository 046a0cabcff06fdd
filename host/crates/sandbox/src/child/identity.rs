//! The user of a confined program: never root, inside or outside.

use super::failure::{Failed, to};
use crate::USER_OF_ROOTS_PROGRAMS as UNPRIVILEGED;
use crate::spec::Spec;
use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::path::Arg;
use rustix::process::{DumpableBehavior, Gid, Uid, getegid, geteuid};
use rustix::thread::{CapabilitySet, capabilities};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;

/// The user's number inside.
const INSIDE: u32 = 1_000;

/// Nesting of directories whose files change owner. Each takes a descriptor, of which most systems give 1024.
const DEPTH_MAX: usize = 256;

/// Capabilities for changing the user.
const CHANGING: CapabilitySet = CapabilitySet::SETUID.union(CapabilitySet::SETGID);

/// The program's user, relative to the host's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Identity {
    /// The same user. The number is the one inside: tools behave differently for root.
    Same { uid: u32, gid: u32 },
    /// The host is root; the program is [`UNPRIVILEGED`].
    Changed,
    /// The host is root and cannot change its user.
    Stuck,
}

impl Identity {
    /// The identity of a program that this process starts.
    pub(super) fn of_us() -> io::Result<Self> {
        if !geteuid().is_root() {
            return Ok(Self::Same { uid: geteuid().as_raw(), gid: getegid().as_raw() });
        }
        let map = std::fs::read_to_string("/proc/self/uid_map")?;
        let ranges = map.lines().filter_map(|line| {
            let mut numbers = line.split_whitespace().map(|word| word.parse::<u64>().unwrap_or(0));
            Some((numbers.next()?, numbers.next()?, numbers.next()?))
        });
        let ranges: Vec<(u64, u64, u64)> = ranges.collect();
        let is_mapped = ranges
            .iter()
            .any(|(from, _, count)| u64::from(UNPRIVILEGED).checked_sub(*from).is_some_and(|above| above < *count));
        if is_mapped && capabilities(None)?.effective.contains(CHANGING) {
            return Ok(Self::Changed);
        }
        // Root of a user namespace is an ordinary user outside.
        let is_root_outside = ranges.iter().any(|(from, outside, _)| (*from, *outside) == (0, 0));
        Ok(if is_root_outside { Self::Stuck } else { Self::Same { uid: INSIDE, gid: INSIDE } })
    }

    /// The outer process, for a program without namespaces: its user must own its writable paths.
    pub(super) fn hand_over_all(spec: &Spec) -> Result<(), Failed> {
        match Self::of_us().map_err(to("look at the user"))? {
            Self::Same { .. } => Ok(()),
            Self::Stuck => Err(stuck()),
            Self::Changed => {
                let places = std::iter::once(&spec.scratch).chain(&spec.tree).chain(&spec.write);
                places.into_iter().try_for_each(|place| hand_over(place, None)).map_err(to("hand files over"))?;
                hand_over_output().map_err(to("hand the output over"))
            }
        }
    }
}

pub(super) fn stuck() -> Failed {
    let why = "longhaul runs as root and may not change its user; run it as an ordinary user";
    ("run a program as an unprivileged user", io::Error::other(why))
}

/// Gives root's files of a directory to [`UNPRIVILEGED`], for file systems that cannot map owners. Files mounted at its
/// `except` belong to others.
///
/// Uses descriptors and follows no link: a program that runs in the directory already may replace a file at any moment,
/// and missing files are skipped.
pub(super) fn hand_over(top: &Path, except: Option<&Path>) -> io::Result<()> {
    let except = except.map(rustix::fs::stat).transpose()?;
    let mut open: Vec<Dir> = hand_over_entry(CWD, top, except.as_ref())?.into_iter().collect();
    while let Some(dir) = open.last_mut() {
        let Some(entry) = dir.next() else {
            open.pop();
            continue;
        };
        let entry = entry?;
        if [c".", c".."].contains(&entry.file_name()) {
            continue;
        }
        let below = hand_over_entry(dir.fd()?, entry.file_name(), except.as_ref());
        match below {
            Ok(Some(_)) if open.len() >= DEPTH_MAX => return Err(too_deep(top)),
            Ok(below) => open.extend(below),
            Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// One entry of a directory, returned open if it is a directory itself.
fn hand_over_entry(
    dir: BorrowedFd<'_>,
    name: impl Arg + Copy,
    except: Option<&Stat>,
) -> rustix::io::Result<Option<Dir>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let below = match rustix::fs::openat(dir, name, flags, Mode::empty()) {
        Ok(below) => below,
        // A file or a link.
        Err(Errno::NOTDIR | Errno::LOOP) => {
            if rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?.st_uid == 0 {
                rustix::fs::chownat(dir, name, uid(), gid(), AtFlags::SYMLINK_NOFOLLOW)?;
            }
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let found = rustix::fs::fstat(&below)?;
    if except.is_some_and(|except| (except.st_dev, except.st_ino) == (found.st_dev, found.st_ino)) {
        return Ok(None);
    }
    if found.st_uid == 0 {
        rustix::fs::fchown(&below, uid(), gid())?;
    }
    Dir::new(below).map(Some)
}

fn too_deep(top: &Path) -> io::Error {
    io::Error::other(format!("`{}` has directories more than {DEPTH_MAX} deep; remove them", top.display()))
}

/// Pipes have owners too, which matters for programs that open `/dev/stderr`.
pub(super) fn hand_over_output() -> io::Result<()> {
    rustix::fs::fchown(io::stdout(), uid(), gid())?;
    Ok(rustix::fs::fchown(io::stderr(), uid(), gid())?)
}

/// A user namespace for mounts that give root's files to the program.
pub(super) fn owners() -> io::Result<OwnedFd> {
    super::raw::namespace_of(UNPRIVILEGED)
}

/// The inner process: becomes [`UNPRIVILEGED`], and returns whether it was another user.
pub(super) fn change() -> io::Result<bool> {
    if !geteuid().is_root() || Identity::of_us()? != Identity::Changed {
        return Ok(false);
    }
    rustix::thread::set_thread_groups(&[])?;
    rustix::thread::set_thread_res_gid(gid(), gid(), gid())?;
    rustix::thread::set_thread_res_uid(uid(), uid(), uid())?;
    // Otherwise its files in `/proc` would be root's.
    rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    Ok(true)
}

/// Maps the user inside of this process's namespace to `outside`.
pub(super) fn map(proc: &OwnedFd, inside: (u32, u32), outside: (u32, u32)) -> io::Result<()> {
    match write(proc, "self/setgroups", "deny") {
        // gVisor has no such file, and does not need it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        other => other?,
    }
    write(proc, "self/uid_map", &format!("{} {} 1", inside.0, outside.0))?;
    write(proc, "self/gid_map", &format!("{} {} 1", inside.1, outside.1))
}

/// Maps the user after [`change`].
pub(super) fn map_changed(proc: &OwnedFd) -> io::Result<()> {
    map(proc, (INSIDE, INSIDE), (UNPRIVILEGED, UNPRIVILEGED))
}

/// Writes into a file of `/proc`.
pub(super) fn write(proc: &OwnedFd, file: &str, text: &str) -> io::Result<()> {
    let opened = rustix::fs::openat(proc, file, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    let named = |error: io::Error| io::Error::new(error.kind(), format!("`{file}`: {error}"));
    File::from(opened).write_all(text.as_bytes()).map_err(named)
}

/// The numbers of the innermost process, equal to those of other levels. For the inner process, once it has its final
/// user.
pub(super) fn innermost() -> (u32, u32) {
    match (geteuid().as_raw(), getegid().as_raw()) {
        (UNPRIVILEGED, _) => (INSIDE, INSIDE),
        other => other,
    }
}

/// The numbers inside, for the list of users there.
pub(super) fn inside(identity: Identity) -> (u32, u32) {
    match identity {
        Identity::Same { uid, gid } => (uid, gid),
        Identity::Changed | Identity::Stuck => (INSIDE, INSIDE),
    }
}

fn uid() -> Option<Uid> {
    Some(Uid::from_raw(UNPRIVILEGED))
}

fn gid() -> Option<Gid> {
    Some(Gid::from_raw(UNPRIVILEGED))
}
