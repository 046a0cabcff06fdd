//! System calls that no confined program may make, refused by seccomp.
//!
//! A filter has one answer, so there are several. Calls that inspect or change the kernel, other processes or mounts
//! are not permitted. Calls that a library tries first and can do without return "not implemented", as do those of
//! other instruction sets and newer ones than this list knows. Sockets are available for few families. A program
//! without namespaces has them only as pairs that lead nowhere else, and reaches neither other processes nor resources
//! that processes of the machine share.

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    apply_filter, sock_filter,
};
use std::collections::BTreeMap;
use std::io;

/// The first number that this list does not know: the kernel's numbers are the same on all machines from 424 on.
const UNKNOWN: u32 = 470;

/// Requests of terminals: type into one, act on a console, change the line discipline.
const TERMINAL_REQUESTS: [u64; 3] = [0x5412, 0x541c, 0x5423];

const NOT_PERMITTED: &[libc::c_long] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_adjtimex,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_fanotify_init,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_kcmp,
    libc::SYS_kexec_file_load,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_lookup_dcookie,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_name_to_handle_at,
    libc::SYS_nfsservctl,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pivot_root,
    libc::SYS_process_madvise,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
    libc::SYS_vhangup,
];

#[cfg(target_arch = "x86_64")]
const NOT_PERMITTED_HERE: &[libc::c_long] = &[libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_modify_ldt];
#[cfg(not(target_arch = "x86_64"))]
const NOT_PERMITTED_HERE: &[libc::c_long] = &[];

/// Calls that start a process or a program, besides `clone`.
const STARTS: &[libc::c_long] = &[libc::SYS_execve, libc::SYS_execveat];

#[cfg(target_arch = "x86_64")]
const STARTS_HERE: &[libc::c_long] = &[libc::SYS_fork, libc::SYS_vfork];
#[cfg(not(target_arch = "x86_64"))]
const STARTS_HERE: &[libc::c_long] = &[];

/// `clone3` has its flags where no filter can look; libraries fall back to `clone`. No limit of a program counts the
/// pages of a memory file; libraries, and browsers, fall back to `/dev/shm`, which has a size limit.
const ABSENT: &[libc::c_long] = &[
    libc::SYS_clone3,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_memfd_create,
    libc::SYS_memfd_secret,
];

/// Bytes of one segment of shared memory, whose pages no limit counts while it is not attached. A namespace has 4096
/// segments: together they have the size of `/dev/shm`. PostgreSQL needs less than one page.
const SEGMENT_BYTES_MAX: u64 = 64 << 10;

/// Shared memory, message queues and semaphores, which every process of a user can find by their numbers and names.
const SHARED: [libc::c_long; 18] = [
    libc::SYS_mq_getsetattr,
    libc::SYS_mq_notify,
    libc::SYS_mq_open,
    libc::SYS_mq_timedreceive,
    libc::SYS_mq_timedsend,
    libc::SYS_mq_unlink,
    libc::SYS_msgctl,
    libc::SYS_msgget,
    libc::SYS_msgrcv,
    libc::SYS_msgsnd,
    libc::SYS_semctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_shmdt,
    libc::SYS_shmget,
];

/// Changes of the process in the first argument; 0 is the caller.
const OF_A_PROCESS: [libc::c_long; 5] = [
    libc::SYS_prlimit64,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
];

/// Changes of the target in the second argument, with the value of the first argument that makes it a process.
const OF_SOME_PROCESSES: [(libc::c_long, u64); 2] = [(libc::SYS_setpriority, 0), (libc::SYS_ioprio_set, 1)];

const NEW_NAMESPACES: [libc::c_int; 8] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
    // The flag of a time namespace.
    0x80,
];

/// Refuses them to this process and all that it starts. Without namespaces of its own, sockets are refused too, and all
/// calls that act on other processes.
pub(super) fn refuse(has_namespaces: bool) -> io::Result<()> {
    let mut refused = not_permitted()?;
    refused.extend(if has_namespaces { large_segments()? } else { of_others()? });
    apply(&filter(refused, libc::EPERM)?)?;
    apply(&filter(ABSENT.iter().map(|call| (*call, Vec::new())).collect(), libc::ENOSYS)?)?;
    let sockets = [(libc::SYS_socket, sockets(has_namespaces)?), (libc::SYS_socketpair, pairs(has_namespaces)?)];
    apply(&filter(BTreeMap::from(sockets), libc::EAFNOSUPPORT)?)?;
    apply(&no_unknown_calls())
}

/// Refuses this process the start of another process or program. It may have threads.
pub(super) fn refuse_starts() -> io::Result<()> {
    let thread = u64::from(libc::CLONE_THREAD.unsigned_abs());
    let mut rules: Rules = STARTS.iter().chain(STARTS_HERE).map(|call| (*call, Vec::new())).collect();
    rules.insert(libc::SYS_clone, vec![rule(&[(0, SeccompCmpOp::MaskedEq(thread), 0)])?]);
    apply(&filter(rules, libc::EPERM)?)
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn not_permitted() -> io::Result<Rules> {
    let calls = NOT_PERMITTED.iter().chain(NOT_PERMITTED_HERE);
    let mut rules: Rules = calls.map(|call| (*call, Vec::new())).collect();
    let requests = TERMINAL_REQUESTS.iter().map(|request| rule(&[(1, SeccompCmpOp::Eq, *request)]));
    rules.insert(libc::SYS_ioctl, requests.collect::<io::Result<_>>()?);
    let flags = NEW_NAMESPACES.iter().map(|flag| u64::from(flag.unsigned_abs()));
    let flags = flags.map(|flag| rule(&[(0, SeccompCmpOp::MaskedEq(flag), flag)]));
    rules.insert(libc::SYS_clone, flags.collect::<io::Result<_>>()?);
    // Asking for the present one and setting the usual one are harmless.
    let strange = rule(&[(0, SeccompCmpOp::Ne, 0), (0, SeccompCmpOp::Ne, u64::from(u32::MAX))])?;
    rules.insert(libc::SYS_personality, vec![strange]);
    Ok(rules)
}

/// Calls that act on other processes of the machine, which Landlock does not check. Threads too have numbers, so that
/// only the calling one can be named.
fn of_others() -> io::Result<Rules> {
    let mut rules: Rules = SHARED.iter().map(|call| (*call, Vec::new())).collect();
    for call in OF_A_PROCESS {
        rules.insert(call, vec![rule(&[(0, SeccompCmpOp::Ne, 0)])?]);
    }
    for (call, of_a_process) in OF_SOME_PROCESSES {
        let groups_and_users = rule(&[(0, SeccompCmpOp::Ne, of_a_process)])?;
        rules.insert(call, vec![groups_and_users, rule(&[(1, SeccompCmpOp::Ne, 0)])?]);
    }
    Ok(rules)
}

fn large_segments() -> io::Result<Rules> {
    let large = rule_of(SeccompCmpArgLen::Qword, &[(1, SeccompCmpOp::Gt, SEGMENT_BYTES_MAX)])?;
    Ok(BTreeMap::from([(libc::SYS_shmget, vec![large])]))
}

fn sockets(has_network: bool) -> io::Result<Vec<SeccompRule>> {
    if !has_network {
        return Ok(Vec::new());
    }
    let number = |family: libc::c_int| u64::from(family.unsigned_abs());
    let families = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK].map(number);
    let other: Vec<_> = families.iter().map(|family| (0, SeccompCmpOp::Ne, *family)).collect();
    // Of netlink only the protocol for its own network, which is 0.
    let netlink = [(0, SeccompCmpOp::Eq, number(libc::AF_NETLINK)), (2, SeccompCmpOp::Ne, 0)];
    // Raw sockets need a capability that no process here has, and packets are another family.
    Ok(vec![rule(&other)?, rule(&netlink)?])
}

/// One of a pair of datagram sockets sends to any name, as a single socket would.
fn pairs(has_network: bool) -> io::Result<Vec<SeccompRule>> {
    let number = |number: libc::c_int| u64::from(number.unsigned_abs());
    let mut refused = vec![rule(&[(0, SeccompCmpOp::Ne, number(libc::AF_UNIX))])?];
    if has_network {
        return Ok(refused);
    }
    // The rest of the argument are flags.
    const TYPE: u64 = 0xf;
    let connected = [libc::SOCK_STREAM, libc::SOCK_SEQPACKET].map(number);
    for other in (0..=TYPE).filter(|kind| !connected.contains(kind)) {
        refused.push(rule(&[(1, SeccompCmpOp::MaskedEq(TYPE), other)])?);
    }
    Ok(refused)
}

/// Conditions on arguments by their places, all of which must hold.
type Conditions<'a> = &'a [(u8, SeccompCmpOp, u64)];

/// A rule for arguments of 32 bits.
fn rule(conditions: Conditions<'_>) -> io::Result<SeccompRule> {
    rule_of(SeccompCmpArgLen::Dword, conditions)
}

fn rule_of(len: SeccompCmpArgLen, conditions: Conditions<'_>) -> io::Result<SeccompRule> {
    let conditions = conditions.iter().map(|(argument, compare, value)| {
        SeccompCondition::new(*argument, len.clone(), compare.clone(), *value).map_err(io::Error::other)
    });
    SeccompRule::new(conditions.collect::<io::Result<_>>()?).map_err(io::Error::other)
}

fn filter(rules: Rules, error: libc::c_int) -> io::Result<BpfProgram> {
    let arch = std::env::consts::ARCH.try_into().map_err(io::Error::other)?;
    let answer = SeccompAction::Errno(error.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, answer, arch).map_err(io::Error::other)?;
    filter.try_into().map_err(io::Error::other)
}

/// Numbers of the second instruction set of x86-64 machines begin high, so that one comparison covers them too.
fn no_unknown_calls() -> BpfProgram {
    const LOAD_NUMBER: u16 = 0x20;
    const JUMP_IF_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const ALLOW: u32 = 0x7fff_0000;
    const ERRNO: u32 = 0x0005_0000;
    let step = |code, jt, k| sock_filter { code, jt, jf: 0, k };
    vec![
        step(LOAD_NUMBER, 0, 0),
        step(JUMP_IF_AT_LEAST, 1, UNKNOWN),
        step(RETURN, 0, ALLOW),
        step(RETURN, 0, ERRNO | libc::ENOSYS.unsigned_abs()),
    ]
}

fn apply(program: &BpfProgram) -> io::Result<()> {
    apply_filter(program).map_err(io::Error::other)
}
