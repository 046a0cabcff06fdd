//! The order of the steps in which the two processes confine themselves.

use super::failure::{Failed, to};
use super::identity::{self, Identity};
use super::{access, files, raw, syscalls};
use crate::backend::Place;
use crate::spec::{Role, SCRATCH, Spec};
use crate::{Level, sealed};
use rustix::io::Errno;
use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, sendto, socket_with};
use rustix::process::{
    DumpableBehavior, Pid, Signal, getegid, geteuid, getpid, getppid, set_parent_process_death_signal,
};
use rustix::thread::{CapabilitySet, UnshareFlags, capabilities, set_capabilities};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

/// The inner process's capabilities: to mount its own `/proc`, to limit namespaces, and to drop capabilities.
const INNER_RIGHTS: CapabilitySet =
    CapabilitySet::SYS_ADMIN.union(CapabilitySet::SETPCAP).union(CapabilitySet::SYS_RESOURCE);

/// Kinds of namespaces that the kernel counts.
const COUNTED: [&str; 8] = ["user", "mnt", "pid", "net", "ipc", "uts", "cgroup", "time"];

/// The failed step when root's programs, without mounts of their own, may not traverse a directory of root's.
const UNREACHABLE: &str = "reach the work directory as user 65533, which programs of root are: run longhaul as an \
                           ordinary user, or with a --home such as /var/lib/longhaul that this user may pass (chgrp 65533 \
                           DIRECTORY && chmod 710 DIRECTORY)";

/// The outer process.
pub(super) fn enter(spec: &Spec) -> Result<(), Failed> {
    if !sealed::is_sealed().map_err(to("look at this program"))? {
        return Err(("confine a program", io::Error::other("this program was not started from a sealed copy")));
    }
    if spec.level.has_namespaces() {
        return enter_namespaces(spec);
    }
    take_over_orphans()?;
    keep_signals(spec.level)?;
    Identity::hand_over_all(spec)
}

/// With Landlock alone: restricts the signals of this thread, and of all that it starts, to these processes. The outer
/// process does it, so that it can end all of them with [`end_all_held`]; the inner one does it as it confines itself;
/// and the process that starts the program does it, so that no program stops or ends the inner process.
pub(super) fn keep_signals(level: Level) -> Result<(), Failed> {
    if level != Level::Landlock {
        return Ok(());
    }
    access::keep_signals().map_err(to("restrict signals with Landlock"))
}

/// After [`keep_signals`]: ends all restricted processes except this one, at once and with all that they start
/// meanwhile. A signal to all processes reaches no others.
pub(super) fn end_all_held() {
    // If the first process can be reached, or this process's parent, which has the same user, signals are not
    // restricted, and the signal would end every process of this user.
    let is_kept_from = |process| rustix::process::test_kill_process(process) == Err(Errno::PERM);
    if is_kept_from(Pid::INIT) && getppid().is_none_or(is_kept_from) {
        let _ = rustix::process::kill_process_group(Pid::INIT, Signal::KILL);
    }
}

/// Orphans become children of this process, so that it can end them: nothing else does.
fn take_over_orphans() -> Result<(), Failed> {
    rustix::process::set_child_subreaper(Some(getpid())).map_err(to("take over orphans"))
}

fn enter_namespaces(spec: &Spec) -> Result<(), Failed> {
    let identity = Identity::of_us().map_err(to("look at the user"))?;
    let outside = (geteuid().as_raw(), getegid().as_raw());
    let mut flags = UnshareFlags::NEWNET | UnshareFlags::NEWIPC | UnshareFlags::NEWUTS;
    flags |= UnshareFlags::NEWPID | UnshareFlags::NEWNS | UnshareFlags::NEWCGROUP;
    let owners = match identity {
        Identity::Stuck => return Err(identity::stuck()),
        // It gets a user namespace once root's work is done; see `confine`.
        Identity::Changed => Some(identity::owners().map_err(to("make a user namespace"))?),
        Identity::Same { .. } => {
            flags |= UnshareFlags::NEWUSER;
            None
        }
    };
    unshare(flags).map_err(to("make namespaces"))?;
    let proc = files::open_proc("/proc").map_err(to("open /proc"))?;
    if let Identity::Same { uid, gid } = identity {
        identity::map(&proc, (uid, gid), outside).map_err(to("set up the user namespace"))?;
    }
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(to("keep mounts private"))?;
    // A program that uses its own loopback needs it; a failure does not stop others.
    let _ = raise_loopback();
    // A name that resolves without a network.
    let _ = rustix::system::sethostname(b"localhost");
    files::arrange(spec, owners.as_ref(), identity::inside(identity))?;
    if identity == Identity::Changed {
        return identity::hand_over_output().map_err(to("hand the output over"));
    }
    keep_for_inner(INNER_RIGHTS).map_err(to("hand rights to the inner process"))
}

/// The inner process: drops all capabilities, so that it cannot undo the steps above.
pub(super) fn confine(spec: &Spec) -> Result<(), Failed> {
    match spec.role {
        Role::Innermost { user } => {
            // A backend sees it as root without capabilities, who owns the program's files.
            let outside = (geteuid().as_raw(), getegid().as_raw());
            unshare(UnshareFlags::NEWUSER).map_err(to("make a user namespace in the backend"))?;
            let proc = files::open_proc("/proc").map_err(to("open /proc"))?;
            identity::map(&proc, user, outside).map_err(to("set up the user namespace in the backend"))?;
        }
        _ if spec.backend.is_some() => {
            files::mount_whole_proc().map_err(to("mount a /proc of its own"))?;
            identity::change().map_err(to("become an unprivileged user"))?;
        }
        _ if spec.level.has_namespaces() => settle()?,
        _ => settle_without_namespaces(spec)?,
    }
    if spec.level.has_namespaces() {
        // Everything inside dies with this process. Without namespaces it has to outlive the outer process, to end what
        // runs.
        set_parent_process_death_signal(Some(Signal::KILL)).map_err(to("ask for a signal"))?;
    }
    raw::close_others_at_exec().map_err(to("close descriptors"))?;
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(to("hide our memory"))?;
    if spec.level == Level::None {
        return Ok(());
    }
    give_up_rights().map_err(to("give up rights"))?;
    if spec.backend.is_some() {
        // It confines itself, for which it needs calls that no program gets.
        return Ok(());
    }
    if spec.level.has_landlock() {
        access::restrict(spec).map_err(to("restrict files with Landlock"))?;
    }
    syscalls::refuse(spec.level.has_namespaces()).map_err(to("refuse system calls with seccomp"))
}

/// The inner process in namespaces.
fn settle() -> Result<(), Failed> {
    let proc = files::mount_proc().map_err(to("mount a /proc of its own"))?;
    if identity::change().map_err(to("become an unprivileged user"))? {
        unshare(UnshareFlags::NEWUSER).map_err(to("make a user namespace"))?;
        identity::map_changed(&proc).map_err(to("set up the user namespace"))?;
    }
    for kind in COUNTED {
        let file = format!("sys/user/max_{kind}_namespaces");
        identity::write(&proc, &file, "0").map_err(to("forbid further namespaces"))?;
    }
    Ok(())
}

fn settle_without_namespaces(spec: &Spec) -> Result<(), Failed> {
    if identity::change().map_err(to("become an unprivileged user"))? {
        rustix::fs::access(spec.work(), rustix::fs::Access::EXEC_OK).map_err(to(UNREACHABLE))?;
    }
    take_over_orphans()
}

/// Starts the backend in place of the program, with `control` as its standard input.
pub(super) fn start_backend(spec: &Spec, control: OwnedFd) -> Result<Child, Failed> {
    let absent = || ("start the backend", io::Error::other("this level has none"));
    let (backend, files) = spec.level.backend().zip(spec.backend.as_ref()).ok_or_else(absent)?;
    let told = spec.for_innermost(identity::innermost());
    let json = serde_json::to_string(&told).map_err(to("tell the innermost process"))?;
    let (root, state) = (Path::new(files::BACKEND_ROOT), Path::new(files::BACKEND_STATE));
    let writable = std::iter::once(Path::new(SCRATCH)).chain(spec.write.iter().map(PathBuf::as_path));
    let writable = writable.map(|path| files::beneath(root, path)).collect();
    let argv = std::iter::once(files::BINARY.to_owned()).chain(spec.prefix_args.clone()).chain([json]).collect();
    let start = backend.describe(&Place { root, writable, state, argv, env: std::env::vars().collect() });
    for (name, text) in start.files {
        std::fs::write(state.join(name), text).map_err(to("write the files of the backend"))?;
    }
    let mut command = Command::new(&files.program);
    // The program's variables are not for it.
    command.args(start.args).env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").stdin(control);
    command.current_dir("/").spawn().map_err(to("start the backend"))
}

/// Confines this process, which starts nothing: it keeps its standard descriptors and `kept`, and reaches nothing else.
pub(super) fn keep_to_descriptors(kept: Option<BorrowedFd<'_>>) -> Result<(), Failed> {
    raw::close_others(kept).map_err(to("close descriptors"))?;
    identity::change().map_err(to("become an unprivileged user"))?;
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(to("hide our memory"))?;
    give_up_rights().map_err(to("give up rights"))?;
    access::restrict_to_none().map_err(to("restrict files with Landlock"))?;
    syscalls::refuse(false).map_err(to("refuse system calls with seccomp"))?;
    syscalls::refuse_starts().map_err(to("refuse processes with seccomp"))
}

fn unshare(flags: UnshareFlags) -> io::Result<()> {
    #[expect(deprecated, reason = "only FILES makes it unsound, and the other one is an unsafe function")]
    Ok(rustix::thread::unshare(flags)?)
}

fn give_up_rights() -> io::Result<()> {
    match rustix::thread::clear_ambient_capability_set() {
        // Older versions of gVisor have no such set.
        Err(Errno::INVAL) => {}
        other => other?,
    }
    let mut sets = capabilities(None)?;
    for bit in 0..64 {
        let one = CapabilitySet::from_bits_retain(1 << bit);
        // An error means that this kernel has no such capability. Without the right capability, nothing can be dropped,
        // nor gained.
        let is_bounding = rustix::thread::capability_is_in_bounding_set(one).unwrap_or(false);
        if is_bounding && sets.effective.contains(CapabilitySet::SETPCAP) {
            rustix::thread::remove_capability_from_bounding_set(one)?;
        }
    }
    rustix::thread::set_no_new_privs(true)?;
    sets.effective = CapabilitySet::empty();
    sets.permitted = CapabilitySet::empty();
    sets.inheritable = CapabilitySet::empty();
    Ok(set_capabilities(None, sets)?)
}

/// Capabilities survive the start of another program only as ambient ones, except for root.
fn keep_for_inner(rights: CapabilitySet) -> io::Result<()> {
    let mut sets = capabilities(None)?;
    sets.inheritable |= rights;
    set_capabilities(None, sets)?;
    for right in rights.iter() {
        rustix::thread::configure_capability_in_ambient_set(right, true)?;
    }
    Ok(())
}

/// `ip link set lo up`, as the one message of rtnetlink that it is.
fn raise_loopback() -> io::Result<()> {
    const RTM_NEWLINK: u16 = 16;
    const REQUEST: u16 = 1;
    const IFF_UP: u32 = 1;
    // The first interface of a network namespace.
    const LOOPBACK: u32 = 1;
    let mut message = Vec::new();
    message.extend(32_u32.to_ne_bytes());
    message.extend([RTM_NEWLINK.to_ne_bytes(), REQUEST.to_ne_bytes()].concat());
    // The sequence and the port; then family and type, of which any will do.
    message.extend([0; 8]);
    message.extend([0; 4]);
    message.extend([LOOPBACK.to_ne_bytes(), IFF_UP.to_ne_bytes(), IFF_UP.to_ne_bytes()].concat());
    // Without a protocol it is rtnetlink.
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    sendto(&socket, &message, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    Ok(())
}
