//! The child that confines itself and starts a check, or a program that an agent asked for.
//!
//! Two processes of this binary stand between the host and the check. The outer one makes the namespaces
//! and watches the host: when the host dies it ends everything. The inner one is the first process of the
//! new process namespace, so that all that the check started dies with it; it sets the limits, gives up
//! its rights and starts the check. Where the system refuses namespaces nothing is started, and the host
//! asks again with less. Refuses to guess: what held the check is said on the first line of standard
//! error, before the check runs; and to start anywhere but below the directory that it works in.

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

/// What held a check, besides limits, a cleared environment and a process group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sandbox {
    /// No network, own processes, and a file system that is read-only but for the copy.
    #[default]
    Full,
    /// No network, own processes; the file system as it is.
    Namespaces,
    /// The system has no namespaces for us.
    None,
}

/// What the child is told, as JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Spec {
    pub(crate) sandbox: Sandbox,
    /// True for the inner process.
    pub(crate) is_inner: bool,
    /// How what is started stands to others: as the host does.
    pub(crate) nice: i32,
    /// Arguments that lead to [`check_child`], for the inner process.
    pub(crate) prefix_args: Vec<String>,
    pub(crate) argv: Vec<String>,
    /// Holds `work`, `home`, `tmp` and `dev`; [`SCRATCH`] inside a full sandbox.
    pub(crate) scratch: PathBuf,
    /// What stands for `scratch/work`: a tree that is worked on and not copied.
    pub(crate) tree: Option<PathBuf>,
    /// Where the program starts, from there.
    pub(crate) cwd: PathBuf,
    pub(crate) hidden: Vec<PathBuf>,
    /// Directories that are seen nevertheless, read-only.
    pub(crate) shown: Vec<PathBuf>,
    pub(crate) memory_bytes_max: u64,
    pub(crate) cpu_seconds_max: u64,
    pub(crate) processes_max: u64,
    pub(crate) file_bytes_max: u64,
}

/// Where a full sandbox has its scratch directory. Always the same, so that output does not differ.
pub(crate) const SCRATCH: &str = "/tmp";

/// How the first line of standard error begins.
pub(crate) const SAID: &str = "longhaul-check: ";

/// The word after [`SAID`] when nothing was started.
pub(crate) const REFUSED: &str = "refused";

/// What the host writes into our standard input to have the program asked to end.
pub(crate) const END: u8 = b'e';

/// The signal that the outer process ends itself by when there were more processes than allowed. Nothing inside
/// can reach it, so that nothing inside can pretend it.
pub(crate) const CROWDED: Signal = Signal::USR1;

/// Before all that runs inside; see [`inner`] and [`processes`].
const WATCHER_NICE: i32 = -20;

/// How late the end of the check is noticed.
const POLL: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };

/// The exit code when the child itself failed, as of a shell that cannot start a command.
const FAILED: i32 = 126;

/// The child's whole main function: call it before any thread is started. Answers the exit code.
#[must_use]
pub fn check_child(spec_json: &str) -> i32 {
    let spec: Spec = match serde_json::from_str(spec_json) {
        Ok(spec) => spec,
        Err(error) => return say(REFUSED, &error.to_string()),
    };
    if spec.is_inner { inner(&spec) } else { outer(spec) }
}

fn outer(spec: Spec) -> i32 {
    let nice = rustix::process::getpriority_process(None).unwrap_or(0);
    // Whoever counts processes must be let to, by those that it counts. Only root can, and only root needs it.
    let _ = rustix::process::setpriority_process(None, WATCHER_NICE);
    if let Err((doing, error)) = enter(&spec) {
        return say(REFUSED, &format!("cannot {doing}: {error}"));
    }
    let inner = Spec { is_inner: true, nice, ..spec };
    let Ok(json) = serde_json::to_string(&inner) else { return say(REFUSED, "the specification is no JSON") };
    // The link, not where it leads: the binary may lie in a directory that is hidden now.
    let program = if cfg!(target_os = "linux") { Ok(PathBuf::from("/proc/self/exe")) } else { std::env::current_exe() };
    let child = program
        .and_then(|program| Command::new(program).args(&inner.prefix_args).arg(json).stdin(Stdio::piped()).spawn());
    match child {
        Ok(child) => wait_or_end_with_the_host(child, &inner),
        Err(error) => say(REFUSED, &format!("cannot start the inner process: {error}")),
    }
}

fn inner(spec: &Spec) -> i32 {
    if let Err((doing, error)) = give_up_rights(spec) {
        return say(REFUSED, &format!("cannot {doing}: {error}"));
    }
    // Only what is started stands to others as the host does, which is a matter of threads. We stay before it: all of
    // it dies with us, and among thousands of processes we would have to wait for our turn to die.
    let started = std::thread::scope(|scope| {
        let starter = std::thread::Builder::new().spawn_scoped(scope, || start(spec));
        starter.map(|starter| starter.join().unwrap_or(Err(FAILED)))
    });
    match started {
        Ok(Ok(child)) => wait_or_ask_to_end(child, spec.sandbox),
        Ok(Err(code)) => code,
        Err(error) => say(REFUSED, &format!("cannot start a thread: {error}")),
    }
}

/// Starts what is asked for; else the exit code.
fn start(spec: &Spec) -> Result<Child, i32> {
    let _ = rustix::process::setpriority_process(None, spec.nice);
    limit(spec).map_err(|error| say(REFUSED, &format!("cannot set a limit: {error}")))?;
    say("ready", "");
    let (program, arguments) = spec.argv.split_first().ok_or(FAILED)?;
    if let Err(error) = go_to(&spec.work(), &spec.cwd) {
        eprintln!("cannot start in `{}`: {error}", spec.cwd.display());
        return Err(FAILED);
    }
    let mut command = Command::new(program);
    if spec.sandbox != Sandbox::None {
        // It dies with us, so that it can have a group of its own, which is asked to end as one.
        command.process_group(0);
    }
    command.args(arguments).stdin(Stdio::null()).spawn().map_err(|error| {
        eprintln!("cannot start `{program}`: {error}");
        127
    })
}

impl Spec {
    /// The directory that is worked in, as the inner process sees it.
    fn work(&self) -> PathBuf {
        match (&self.tree, self.sandbox) {
            (_, Sandbox::Full) => Path::new(SCRATCH).join("work"),
            (Some(tree), _) => tree.clone(),
            (None, _) => self.scratch.join("work"),
        }
    }
}

/// Looks where it is once it is there: a directory may become a link between a look and a step.
fn go_to(work: &Path, cwd: &Path) -> std::io::Result<()> {
    std::env::set_current_dir(work)?;
    let top = std::env::current_dir()?;
    std::env::set_current_dir(cwd)?;
    if std::env::current_dir()?.starts_with(&top) {
        return Ok(());
    }
    Err(std::io::Error::other("it leads out of the tree"))
}

/// Says one line to the host, and answers the exit code for it.
fn say(word: &str, why: &str) -> i32 {
    let line = format!("{SAID}{word} {}\n", why.replace('\n', " "));
    let _ = std::io::stderr().write_all(line.as_bytes());
    FAILED
}

/// As shells do it: 128 and the signal.
fn code_of(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

/// Standard input is a pipe whose other end the host holds and never writes to: it ends with the host,
/// however the host ends. A parent death signal would not do, since it counts from the host's thread; and
/// a thread that waits cannot be had, since a process that made a process namespace may start none.
fn wait_or_end_with_the_host(mut child: Child, spec: &Spec) -> i32 {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return code_of(status),
            Ok(None) => {}
            Err(_) => return FAILED,
        }
        if processes().is_some_and(|count| count > spec.processes_max.saturating_add(1)) {
            let _ = child.kill();
            let _ = child.wait();
            let _ = rustix::process::kill_process(rustix::process::getpid(), CROWDED);
        }
        match heard() {
            Heard::Nothing => {}
            Heard::End => {
                // It is gone, which the next turn sees.
                let _ = child.stdin.as_ref().map(|mut stdin| stdin.write_all(&[END]));
            }
            Heard::HostIsGone => {
                let _ = rustix::process::kill_current_process_group(Signal::KILL);
            }
        }
    }
}

/// The inner process: what the host has to say comes through the outer one.
fn wait_or_ask_to_end(mut child: Child, sandbox: Sandbox) -> i32 {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return code_of(status),
            Ok(None) => {}
            Err(_) => return FAILED,
        }
        match (heard(), pid) {
            (Heard::End, Some(pid)) if sandbox == Sandbox::None => {
                let _ = rustix::process::kill_process(pid, Signal::TERM);
            }
            (Heard::End, Some(pid)) => {
                let _ = rustix::process::kill_process_group(pid, Signal::TERM);
            }
            (Heard::HostIsGone, _) => {
                let _ = child.kill();
                return FAILED;
            }
            _ => {}
        }
    }
}

/// What came through standard input.
enum Heard {
    Nothing,
    /// [`END`].
    End,
    HostIsGone,
}

/// Waits for at most [`POLL`].
fn heard() -> Heard {
    let mut stdin = std::io::stdin();
    let ready = rustix::event::poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&POLL));
    if !matches!(ready, Ok(1..)) {
        return Heard::Nothing;
    }
    match stdin.read(&mut [0]) {
        Ok(1..) => Heard::End,
        _ => Heard::HostIsGone,
    }
}

/// How many processes there are inside, where that can be told: a limit of the kernel does not hold for root.
fn processes() -> Option<u64> {
    // The `/proc` of a namespace that we are not in knows nothing of us.
    if std::fs::symlink_metadata("/proc/self").is_err() || std::fs::read_link("/proc/self").is_ok() {
        return None;
    }
    let names = std::fs::read_dir("/proc").ok()?.filter_map(|entry| Some(entry.ok()?.file_name()));
    let count = names.filter(|name| name.as_encoded_bytes().iter().all(u8::is_ascii_digit)).count();
    u64::try_from(count).ok()
}

fn limit(spec: &Spec) -> std::io::Result<()> {
    only(Resource::As, spec.memory_bytes_max)?;
    only(Resource::Core, 0)?;
    only(Resource::Fsize, spec.file_bytes_max)?;
    // The signal comes at the first and can be told apart, the kill at the second.
    let kill = within(Resource::Cpu, spec.cpu_seconds_max.saturating_add(5));
    setrlimit(Resource::Cpu, Rlimit { current: Some(spec.cpu_seconds_max.min(kill)), maximum: Some(kill) })?;
    if spec.sandbox != Sandbox::None {
        // Counted within the user namespace. Without one it would count all that the user runs. The two of us are in
        // it, and, while the first program starts, the thread that starts it.
        only(Resource::Nproc, spec.processes_max.max(2).saturating_add(2))?;
    }
    Ok(())
}

fn only(resource: Resource, max: u64) -> std::io::Result<()> {
    let max = Some(within(resource, max));
    Ok(setrlimit(resource, Rlimit { current: max, maximum: max })?)
}

/// What the host itself is held to cannot be raised, and need not be.
fn within(resource: Resource, max: u64) -> u64 {
    getrlimit(resource).maximum.map_or(max, |hard| max.min(hard))
}

type Failed = (&'static str, std::io::Error);

#[cfg(not(target_os = "linux"))]
fn enter(spec: &Spec) -> Result<(), Failed> {
    match spec.sandbox {
        Sandbox::None => Ok(()),
        Sandbox::Full | Sandbox::Namespaces => Err(("make namespaces", std::io::Error::other("this system has none"))),
    }
}

#[cfg(not(target_os = "linux"))]
fn give_up_rights(_spec: &Spec) -> Result<(), Failed> {
    Ok(())
}

#[cfg(target_os = "linux")]
use linux::{enter, give_up_rights};

#[cfg(target_os = "linux")]
mod linux {
    use super::{Failed, SCRATCH, Sandbox, Spec};
    use rustix::mount::{
        MountFlags, MountPropagationFlags, mount, mount_bind, mount_bind_recursive, mount_change, mount_move,
        mount_remount,
    };
    use rustix::net::netlink::SocketAddrNetlink;
    use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, sendto, socket_with};
    use rustix::process::{Signal, getgid, getuid, set_parent_process_death_signal};
    use rustix::thread::{CapabilitySet, UnshareFlags, capabilities, set_capabilities};
    use std::ffi::{CString, OsString};
    use std::io;
    use std::os::unix::ffi::OsStringExt;
    use std::path::{Path, PathBuf};

    /// Sockets of services that would act for the user outside.
    const SERVICES: &[&str] =
        &["/run/user", "/run/dbus", "/run/docker.sock", "/run/podman", "/run/containerd", "/run/snapd.socket"];

    /// What the inner process needs: to mount its own `/proc`, and to give up rights.
    const INNER_RIGHTS: CapabilitySet = CapabilitySet::SYS_ADMIN.union(CapabilitySet::SETPCAP);

    pub(super) fn enter(spec: &Spec) -> Result<(), Failed> {
        if spec.sandbox == Sandbox::None {
            return Ok(());
        }
        let (user, group) = (getuid().as_raw(), getgid().as_raw());
        let mut flags = UnshareFlags::NEWUSER | UnshareFlags::NEWNET | UnshareFlags::NEWIPC;
        flags |= UnshareFlags::NEWUTS | UnshareFlags::NEWPID | UnshareFlags::NEWNS;
        #[expect(deprecated, reason = "only FILES makes it unsound, and the other one is an unsafe function")]
        rustix::thread::unshare(flags).map_err(|error| ("make namespaces", error.into()))?;
        // The same number inside: tools behave differently for root.
        let write = |file: &str, text: String| std::fs::write(format!("/proc/self/{file}"), text);
        write("setgroups", "deny".to_owned()).map_err(|error| ("set up the user namespace", error))?;
        write("uid_map", format!("{user} {user} 1")).map_err(|error| ("set up the user namespace", error))?;
        write("gid_map", format!("{group} {group} 1")).map_err(|error| ("set up the user namespace", error))?;
        mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
            .map_err(|error| ("keep mounts private", error.into()))?;
        // A check that talks to itself over the network needs it; one that does not is not held up.
        let _ = raise_loopback();
        if spec.sandbox == Sandbox::Full {
            arrange_files(spec)?;
        }
        keep_for_inner(INNER_RIGHTS).map_err(|error| ("hand rights to the inner process", error))
    }

    /// The inner process: without rights, so that it can undo nothing of the above.
    pub(super) fn give_up_rights(spec: &Spec) -> Result<(), Failed> {
        if spec.sandbox == Sandbox::None {
            return Ok(());
        }
        set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| ("ask for a signal", error.into()))?;
        // In a container whose own `/proc` is masked the kernel refuses; then the old one stays.
        let _ = mount(c"proc", c"/proc", c"proc", MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC, None);
        rustix::thread::clear_ambient_capability_set().map_err(|error| ("give up rights", error.into()))?;
        for bit in 0..64 {
            let one = CapabilitySet::from_bits_retain(1 << bit);
            // An error says that this kernel has no such right.
            if rustix::thread::capability_is_in_bounding_set(one).unwrap_or(false) {
                rustix::thread::remove_capability_from_bounding_set(one)
                    .map_err(|error| ("give up rights", error.into()))?;
            }
        }
        rustix::thread::set_no_new_privs(true).map_err(|error| ("give up rights", error.into()))?;
        let mut sets = capabilities(None).map_err(|error| ("give up rights", io::Error::from(error)))?;
        sets.effective = CapabilitySet::empty();
        sets.permitted = CapabilitySet::empty();
        sets.inheritable = CapabilitySet::empty();
        set_capabilities(None, sets).map_err(|error| ("give up rights", error.into()))
    }

    /// Rights survive the start of another program only as ambient ones, unless one is root.
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

    /// The scratch directory becomes `/tmp`, what must not be seen is covered, all else is read-only.
    fn arrange_files(spec: &Spec) -> Result<(), Failed> {
        if let Some(tree) = &spec.tree {
            // First: the tree itself may lie where the scratch directory goes.
            mount_bind(tree, spec.scratch.join("work")).map_err(|error| ("mount the tree", error.into()))?;
        }
        set_aside(spec).map_err(|error| ("set aside what is to be seen", error))?;
        mount_bind_recursive(&spec.scratch, SCRATCH).map_err(|error| ("mount the scratch directory", error.into()))?;
        let services = SERVICES.iter().map(PathBuf::from);
        for path in spec.hidden.iter().cloned().chain(services) {
            hide(&path).map_err(|error| ("hide a directory", error))?;
        }
        show(spec).map_err(|error| ("show a directory", error))?;
        arrange_devices().map_err(|error| ("make a /dev of its own", error))?;
        let mounts = std::fs::read("/proc/self/mountinfo").map_err(|error| ("read the list of mounts", error))?;
        for line in mounts.split(|byte| *byte == b'\n') {
            if let Some((target, flags)) = parse_mount(line)
                && !is_writable_by_design(&target)
            {
                make_read_only(&target, flags).map_err(|error| ("make the file system read-only", error))?;
            }
        }
        Ok(())
    }

    /// What is to be seen, where it stays reachable when the directories above it are covered.
    fn aside(scratch: &Path, number: usize) -> PathBuf {
        scratch.join("dev").join(format!("shown-{number}"))
    }

    fn set_aside(spec: &Spec) -> io::Result<()> {
        for (number, path) in spec.shown.iter().enumerate() {
            let aside = aside(&spec.scratch, number);
            std::fs::create_dir(&aside)?;
            mount_bind_recursive(path, &aside)?;
        }
        Ok(())
    }

    fn show(spec: &Spec) -> io::Result<()> {
        for (number, path) in spec.shown.iter().enumerate() {
            // Where something covers it, this makes it in there.
            std::fs::create_dir_all(path)?;
            mount_bind_recursive(aside(Path::new(SCRATCH), number), path)?;
        }
        Ok(())
    }

    /// A `/dev` with what programs need: the host's has disks and other people's terminals.
    fn arrange_devices() -> io::Result<()> {
        let dev = Path::new(SCRATCH).join("dev");
        mount_tmpfs(&dev, c"size=65536,mode=0755")?;
        for name in ["null", "zero", "full", "random", "urandom", "tty"] {
            std::fs::write(dev.join(name), [])?;
            mount_bind(Path::new("/dev").join(name), dev.join(name))?;
        }
        for (name, target) in [("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")] {
            std::os::unix::fs::symlink(format!("/proc/self/fd{target}"), dev.join(name))?;
        }
        std::fs::create_dir(dev.join("shm"))?;
        mount_tmpfs(&dev.join("shm"), c"size=268435456,mode=1777")?;
        std::fs::create_dir(dev.join("pts"))?;
        // Not every kernel lets us, and few checks open a terminal.
        if mount(
            c"devpts",
            dev.join("pts"),
            c"devpts",
            MountFlags::NOSUID | MountFlags::NOEXEC,
            c"newinstance,ptmxmode=0666",
        )
        .is_ok()
        {
            std::os::unix::fs::symlink("pts/ptmx", dev.join("ptmx"))?;
        }
        Ok(mount_move(&dev, "/dev")?)
    }

    fn hide(path: &Path) -> io::Result<()> {
        // Through links, as the check would go. Under our `/tmp` it cannot be seen anyway.
        let Ok(path) = path.canonicalize() else { return Ok(()) };
        if path.starts_with(SCRATCH) {
            return Ok(());
        }
        if path.is_dir() { mount_tmpfs(&path, c"size=4096,mode=0555") } else { Ok(mount_bind("/dev/null", &path)?) }
    }

    fn mount_tmpfs(path: &Path, options: &std::ffi::CStr) -> io::Result<()> {
        Ok(mount(c"tmpfs", path, c"tmpfs", MountFlags::NOSUID | MountFlags::NODEV, options)?)
    }

    /// `/dev` is ours and small, and `/proc` is mounted anew.
    fn is_writable_by_design(target: &Path) -> bool {
        [SCRATCH, "/dev", "/proc"].iter().any(|top| target.starts_with(top))
    }

    fn make_read_only(target: &Path, flags: MountFlags) -> io::Result<()> {
        let flags = flags | MountFlags::BIND | MountFlags::RDONLY;
        match mount_remount(target, flags, c"") {
            // Covered by another mount, so that nobody can reach it, or gone.
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOENT | rustix::io::Errno::ACCESS) => Ok(()),
            other => Ok(other?),
        }
    }

    /// The fifth and sixth field: where, and with which options. The kernel wants the locked ones again.
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
        CString::new(target.as_os_str().as_encoded_bytes()).ok()?;
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
}
