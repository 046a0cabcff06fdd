//! The file system of a program with namespaces: a root of its own, with its grants and nothing else.
//!
//! The root is a temporary file system. The system's directories, parts of `/etc`, the scratch directory as `/tmp`, and
//! the grants are bound into it, each at its own path and read-only unless it is writable. Nothing of the machine's
//! root remains. A backend gets a root of its own around the program's, with the system's directories, itself and a
//! directory for its files.

use super::failure::{Failed, to};
use super::{identity, raw};
use crate::spec::{BackendFiles, SCRATCH, Spec};
use crate::toolchains::SYSTEM;
use rustix::fs::{Mode, OFlags};
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, mount_bind_recursive, mount_remount, unmount};
use std::ffi::{CStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Files of `/etc` that programs read. Users, groups and host names are made for the sandbox.
pub(super) const ETC: &[&str] = &[
    "alternatives",
    "ca-certificates",
    "ca-certificates.conf",
    "chromium",
    "chromium.d",
    "crypto-policies",
    "debian_version",
    "fonts",
    "host.conf",
    "java",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "locale.alias",
    "locale.conf",
    "localtime",
    "magic",
    "mime.types",
    "os-release",
    "perl",
    "pki",
    "protocols",
    "python3",
    "python3.11",
    "python3.12",
    "python3.13",
    "services",
    "shells",
    "ssl",
    "terminfo",
    "timezone",
];

/// Keys of the machine's services.
const PRIVATE: &str = "etc/ssl/private";

/// Devices that programs need: the host's others are disks and other users' terminals.
pub(super) const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];

/// Visible parts of `/proc`, besides processes. The rest describes the machine or acts on it.
const PROC: [&str; 13] = [
    "cgroups",
    "cpuinfo",
    "filesystems",
    "loadavg",
    "meminfo",
    "mounts",
    "net",
    "self",
    "stat",
    "sys",
    "thread-self",
    "uptime",
    "version",
];

const PROC_FLAGS: MountFlags = MountFlags::NOSUID.union(MountFlags::NODEV).union(MountFlags::NOEXEC);

/// The directory in the scratch directory in which the root is made, above mounts that others own.
const ROOT: &str = "dev";

/// The mount options of a root, which has files of a few lines.
const ROOT_OPTIONS: &CStr = c"size=1048576,mode=0755";

/// Temporary mount point of the inner process's `/proc`.
const NEW_PROC: &str = "/.proc";

/// The root of the program in a backend's root; beside it is an empty directory for the backend's own files.
pub(super) const BACKEND_ROOT: &str = "/.root";
pub(super) const BACKEND_STATE: &str = "/.state";

/// The path of this binary in the root of a program in a backend.
pub(super) const BINARY: &str = "/.longhaul";

/// The mask of the modes of what is made in the root. Root's program is another user, which could not read `/etc`, open
/// `/dev/null` or reach a grant if the host's own mask applied, such as 077.
const MASK: Mode = Mode::WGRP.union(Mode::WOTH);

/// The outer process: makes the root and enters it.
pub(super) fn arrange(spec: &Spec, owners: Option<&OwnedFd>, user: (u32, u32)) -> Result<(), Failed> {
    let of_host = rustix::process::umask(MASK);
    let done = make_and_enter(spec, owners, user);
    // The program's own files have the modes that the host's mask gives them.
    rustix::process::umask(of_host);
    done
}

fn make_and_enter(spec: &Spec, owners: Option<&OwnedFd>, user: (u32, u32)) -> Result<(), Failed> {
    // An empty directory of the host, below which there is no source.
    let top = spec.scratch.join(ROOT);
    mount_tmpfs(&top, ROOT_OPTIONS).map_err(to("make a root of its own"))?;
    let root = match &spec.backend {
        Some(files) => arrange_backend(&top, files, owners).map_err(to("make a root for the backend"))?,
        None => top.clone(),
    };
    arrange_system(&root).map_err(to("show the system's directories"))?;
    arrange_etc(&root, user).map_err(to("make an /etc of its own"))?;
    arrange_devices(&root).map_err(to("make a /dev of its own"))?;
    let dirs = ["proc", "run", "var", "tmp"].map(|dir| root.join(dir));
    for dir in dirs.into_iter().chain(["proc", &NEW_PROC[1..]].map(|dir| top.join(dir))) {
        std::fs::create_dir_all(dir).map_err(to("make a directory"))?;
    }
    std::os::unix::fs::symlink("/tmp/tmp", root.join("var/tmp")).map_err(to("make a link"))?;
    // The inner process mounts its own, which the kernel allows only if one is visible.
    mount_bind_recursive("/proc", top.join("proc")).map_err(to("show /proc"))?;
    bind_owned(spec, &spec.scratch, &root.join("tmp"), owners).map_err(to("mount the scratch directory"))?;
    if let Some(tree) = &spec.tree {
        bind_owned(spec, tree, &root.join("tmp/work"), owners).map_err(to("mount the tree"))?;
    }
    grant(spec, &root, owners).map_err(to("show what was granted"))?;
    make_read_only(spec, &top, &root).map_err(to("make the file system read-only"))?;
    go_to_root(&top).map_err(to("change the root"))
}

/// Opens the directory of a `/proc` as a path only.
pub(super) fn open_proc(path: &str) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

/// The inner process: mounts a `/proc` of its own in place of the machine's, whole, for a backend: the kernel allows
/// another mount only if a whole one is visible.
pub(super) fn mount_whole_proc() -> io::Result<()> {
    mount(c"proc", NEW_PROC, c"proc", PROC_FLAGS, None)?;
    unmount("/proc", UnmountFlags::DETACH)?;
    mount_bind(NEW_PROC, "/proc")?;
    Ok(unmount(NEW_PROC, UnmountFlags::DETACH)?)
}

/// The inner process: mounts a `/proc` of its own in place of the machine's, read-only, with the parts that programs
/// need. Returns a writable one.
pub(super) fn mount_proc() -> io::Result<OwnedFd> {
    let flags = PROC_FLAGS;
    mount(c"proc", NEW_PROC, c"proc", flags, c"hidepid=2")?;
    let writable = open_proc(NEW_PROC)?;
    unmount("/proc", UnmountFlags::DETACH)?;
    mount_bind(NEW_PROC, "/proc")?;
    mount_remount("/proc", flags | MountFlags::BIND | MountFlags::RDONLY, c"")?;
    for entry in std::fs::read_dir("/proc")? {
        let entry = entry?;
        let name = entry.file_name();
        let is_process = name.as_encoded_bytes().iter().all(u8::is_ascii_digit);
        if is_process || PROC.iter().any(|seen| name == *seen) {
            continue;
        }
        let kind = entry.file_type()?;
        if kind.is_dir() {
            mount_tmpfs(&entry.path(), c"size=4096,mode=0555,ro")?;
        } else if kind.is_file() {
            mount_bind("/dev/null", entry.path())?;
        }
    }
    unmount(NEW_PROC, UnmountFlags::DETACH)?;
    Ok(writable)
}

/// Makes the root of a backend; returns the path of the program's.
fn arrange_backend(top: &Path, files: &BackendFiles, owners: Option<&OwnedFd>) -> io::Result<PathBuf> {
    arrange_system(top)?;
    arrange_devices(top)?;
    // It may have helpers beside it. Those of the system are there already.
    if let Some(dir) = files.program.parent().filter(|dir| !beneath(top, dir).exists()) {
        bind(dir, &beneath(top, dir))?;
    }
    let [state, root] = [BACKEND_STATE, BACKEND_ROOT].map(|dir| beneath(top, Path::new(dir)));
    for dir in [&state, &root, &top.join("tmp")] {
        std::fs::create_dir_all(dir)?;
    }
    mount_tmpfs(&state, ROOT_OPTIONS)?;
    if owners.is_some() {
        identity::hand_over(&state, None)?;
    }
    mount(c"tmpfs", &root, c"tmpfs", MountFlags::empty(), ROOT_OPTIONS)?;
    // gVisor mounts one there, and cannot make the directory.
    std::fs::create_dir(root.join("sys"))?;
    bind(&files.binary, &beneath(&root, Path::new(BINARY)))?;
    Ok(root)
}

fn arrange_system(root: &Path) -> io::Result<()> {
    for dir in SYSTEM.iter().map(Path::new) {
        let Ok(found) = std::fs::symlink_metadata(dir) else { continue };
        let target = beneath(root, dir);
        if found.is_symlink() {
            std::os::unix::fs::symlink(std::fs::read_link(dir)?, target)?;
        } else {
            bind(dir, &target)?;
        }
    }
    Ok(())
}

fn arrange_etc(root: &Path, (user, group): (u32, u32)) -> io::Result<()> {
    let etc = root.join("etc");
    std::fs::create_dir(&etc)?;
    for name in ETC {
        let source = Path::new("/etc").join(name);
        let Ok(found) = std::fs::symlink_metadata(&source) else { continue };
        if found.is_symlink() {
            std::os::unix::fs::symlink(std::fs::read_link(&source)?, etc.join(name))?;
        } else {
            bind(&source, &etc.join(name))?;
        }
    }
    let nobody = "nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n";
    let us = format!("user:x:{user}:{group}:user:/tmp/home:/bin/sh\n");
    let root_user = if user == 0 { "" } else { "root:x:0:0:root:/:/usr/sbin/nologin\n" };
    std::fs::write(etc.join("passwd"), format!("{us}{root_user}{nobody}"))?;
    std::fs::write(etc.join("group"), format!("user:x:{group}:\nroot:x:0:\nnogroup:x:65534:\n"))?;
    std::fs::write(etc.join("hosts"), "127.0.0.1 localhost\n::1 localhost\n")?;
    std::fs::write(etc.join("nsswitch.conf"), "passwd: files\ngroup: files\nhosts: files\n")?;
    let private = root.join(PRIVATE);
    if private.is_dir() { mount_tmpfs(&private, c"size=4096,mode=0555,ro") } else { Ok(()) }
}

fn arrange_devices(root: &Path) -> io::Result<()> {
    let dev = root.join("dev");
    for name in ["shm", "pts"] {
        std::fs::create_dir_all(dev.join(name))?;
    }
    for name in DEVICES {
        std::fs::write(dev.join(name), [])?;
        mount_bind(Path::new("/dev").join(name), dev.join(name))?;
    }
    for (name, target) in [("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")] {
        std::os::unix::fs::symlink(format!("/proc/self/fd{target}"), dev.join(name))?;
    }
    mount_tmpfs(&dev.join("shm"), c"size=268435456,mode=1777")?;
    // Not every kernel allows this, and few programs open a terminal.
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    let options = c"newinstance,ptmxmode=0666";
    if mount(c"devpts", dev.join("pts"), c"devpts", flags, options).is_ok() {
        std::os::unix::fs::symlink("pts/ptmx", dev.join("ptmx"))?;
    }
    Ok(())
}

/// Binds the grants, outer directories first.
fn grant(spec: &Spec, root: &Path, owners: Option<&OwnedFd>) -> io::Result<()> {
    let read = spec.read.iter().map(|path| (path, false));
    let mut all: Vec<(&PathBuf, bool)> = read.chain(spec.write.iter().map(|path| (path, true))).collect();
    all.sort_by_key(|(path, _)| path.components().count());
    for (path, is_writable) in all {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("`{}`: {error}", path.display()));
        // The scratch directory may belong to another user where it is mounted, so the file is written at its original
        // path.
        let target = beneath(root, path);
        let place = path.strip_prefix(SCRATCH).map_or_else(|_| target.clone(), |below| spec.scratch.join(below));
        make_target(path, &place).map_err(named)?;
        if is_writable { bind_owned(spec, path, &target, owners) } else { Ok(mount_bind_recursive(path, &target)?) }
            .map_err(named)?;
    }
    Ok(())
}

fn bind(source: &Path, target: &Path) -> io::Result<()> {
    make_target(source, target)?;
    Ok(mount_bind_recursive(source, target)?)
}

/// A directory or an empty file, to mount on.
fn make_target(source: &Path, target: &Path) -> io::Result<()> {
    let is_dir = std::fs::metadata(source)?.is_dir();
    if target.exists() {
        return Ok(());
    }
    if is_dir {
        return std::fs::create_dir_all(target);
    }
    target.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    std::fs::write(target, [])
}

/// Binds a writable path, with the program's user as its owner.
fn bind_owned(spec: &Spec, source: &Path, target: &Path, owners: Option<&OwnedFd>) -> io::Result<()> {
    let Some(owners) = owners else { return Ok(mount_bind(source, target)?) };
    match raw::bind_mapped(source, target, owners) {
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::INVAL.raw_os_error()) => {
            identity::hand_over(source, Some(&spec.scratch.join(ROOT)))?;
            Ok(mount_bind(source, target)?)
        }
        other => other,
    }
}

/// Makes everything read-only except the program's writable paths in its root, and a backend's in its own, which is
/// `top` then.
fn make_read_only(spec: &Spec, top: &Path, root: &Path) -> io::Result<()> {
    let mounts = std::fs::read("/proc/self/mountinfo")?;
    let open = ["tmp", "dev", "proc"].map(|dir| root.join(dir));
    let of_backend = spec.backend.iter().flat_map(|_| [&BACKEND_STATE[1..], "dev", "proc"].map(|dir| top.join(dir)));
    let granted = spec.write.iter().map(|dir| beneath(root, dir));
    let writable: Vec<PathBuf> = open.into_iter().chain(of_backend).chain(granted).collect();
    let shown: Vec<PathBuf> = spec.read.iter().map(|path| beneath(root, path)).collect();
    // A grant within another one decides for its own content.
    let depth = |places: &[PathBuf], target: &Path| {
        let above = places.iter().filter(|place| target.starts_with(place));
        above.map(|place| place.components().count()).max().unwrap_or(0)
    };
    let mut is_root_met = false;
    for line in mounts.split(|byte| *byte == b'\n') {
        let Some((target, flags)) = parse_mount(line) else { continue };
        is_root_met |= target == root;
        // A backend makes this one read-only itself, and older versions of gVisor fail if options are already set.
        let is_of_backend = target == root && spec.backend.is_some();
        if target.starts_with(top) && !is_of_backend && depth(&writable, &target) <= depth(&shown, &target) {
            remount_read_only(&target, flags)?;
        }
    }
    // A list with another name for the root would leave all of it writable.
    if is_root_met { Ok(()) } else { Err(io::Error::other(format!("`{}` is no mount", root.display()))) }
}

fn remount_read_only(target: &Path, flags: MountFlags) -> io::Result<()> {
    let more = MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
    match mount_remount(target, flags | more, c"") {
        // Covered by another mount, so that nothing can reach it, or unmounted.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOENT | rustix::io::Errno::ACCESS) => Ok(()),
        other => Ok(other?),
    }
}

fn go_to_root(root: &Path) -> io::Result<()> {
    rustix::process::chdir(root)?;
    // The old root then covers the new one, and is unmounted.
    rustix::process::pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    Ok(rustix::process::chdir("/")?)
}

fn mount_tmpfs(path: &Path, options: &CStr) -> io::Result<()> {
    Ok(mount(c"tmpfs", path, c"tmpfs", MountFlags::NOSUID | MountFlags::NODEV, options)?)
}

/// A full path below another root.
pub(super) fn beneath(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// The fifth and sixth field: the mount point and its options. The kernel requires the locked ones again.
fn parse_mount(line: &[u8]) -> Option<(PathBuf, MountFlags)> {
    let mut fields = line.split(|byte| *byte == b' ').skip(4);
    let target = PathBuf::from(OsString::from_vec(unescape(fields.next()?)));
    let mut flags = MountFlags::empty();
    for option in fields.next()?.split(|byte| *byte == b',') {
        flags |= match option {
            b"nosuid" => MountFlags::NOSUID,
            b"nodev" => MountFlags::NODEV,
            b"noexec" => MountFlags::NOEXEC,
            b"noatime" => MountFlags::NOATIME,
            b"nodiratime" => MountFlags::NODIRATIME,
            b"relatime" => MountFlags::RELATIME,
            _ => MountFlags::empty(),
        };
    }
    Some((target, flags))
}

/// The kernel writes spaces and the like as three octal digits.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()).filter(|_| *first == b'\\');
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &after[3..] } else { after };
    }
    bytes
}
