//! The files that a program may reach, by Landlock: the same list as that of the mounts, as a second barrier, or as the
//! only one without namespaces.

use super::files::{DEVICES, ETC};
use crate::spec::Spec;
use crate::toolchains::SYSTEM;
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetStatus, Scope, path_beneath_rules,
};
use std::io;
use std::path::{Path, PathBuf};

/// The newest version whose rights this code knows. An older kernel enforces those that it has.
const NEWEST: ABI = ABI::V10;

/// The first version that restricts signals and abstract sockets, which nothing else does without namespaces.
const SCOPED: ABI = ABI::V6;

/// Files of `/etc` that programs read besides [`ETC`], when the machine's are visible.
const USERS: [&str; 4] = ["passwd", "group", "hosts", "nsswitch.conf"];

/// Restricts this process and all that it starts.
pub(super) fn restrict(spec: &Spec) -> io::Result<()> {
    if !spec.level.has_namespaces() {
        require_scopes()?;
    }
    enforced(restrict_to(spec))
}

/// Refuses a kernel that would leave the user's processes open to signals.
fn require_scopes() -> io::Result<()> {
    let scoped = Ruleset::default().set_compatibility(CompatLevel::HardRequirement).scope(Scope::from_all(SCOPED));
    let why = "without namespaces it must hold signals and abstract sockets, which it does from Linux 6.12 on (ABI 6)";
    scoped.map(drop).map_err(|_| io::Error::other(why))
}

fn restrict_to(spec: &Spec) -> Result<RulesetStatus, landlock::RulesetError> {
    let all = AccessFs::from_all(NEWEST);
    let ruleset = Ruleset::default().handle_access(all)?.scope(Scope::from_all(NEWEST))?;
    // With a network of its own it may listen and connect there.
    let ruleset =
        if spec.level.has_namespaces() { ruleset } else { ruleset.handle_access(AccessNet::from_all(NEWEST))? };
    let read: BitFlags<AccessFs> = AccessFs::from_read(NEWEST) | AccessFs::ResolveUnix;
    let change = all & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev);
    let device = AccessFs::ReadFile | AccessFs::WriteFile;
    let terminals = if spec.level.has_namespaces() { &["/dev/pts", "/dev/ptmx"][..] } else { &[] };
    let listed = if spec.level.has_namespaces() { &["/"][..] } else { &[] };
    let status = ruleset
        .create()?
        .add_rules(path_beneath_rules(readable(spec), read))?
        .add_rules(path_beneath_rules(changeable(spec), change))?
        .add_rules(path_beneath_rules(DEVICES.map(|name| Path::new("/dev").join(name)), device))?
        .add_rules(path_beneath_rules(terminals, device | AccessFs::ReadDir | AccessFs::IoctlDev))?
        .add_rules(path_beneath_rules(listed, AccessFs::ReadDir))?
        .restrict_self()?;
    Ok(status.ruleset)
}

/// Restricts the signals of this thread, and of all that it starts, to these processes. If the kernel cannot restrict
/// signals, that is an error and nothing is restricted.
pub(super) fn keep_signals() -> io::Result<()> {
    require_scopes()?;
    let kept = || {
        let signals = Ruleset::default().set_compatibility(CompatLevel::HardRequirement).scope(Scope::Signal)?;
        signals.create()?.restrict_self()
    };
    enforced(kept().map(|status| status.ruleset))
}

/// Restricts this process to its open files, sockets and processes.
pub(super) fn restrict_to_none() -> io::Result<()> {
    let no_rules = || {
        let all = Ruleset::default().handle_access(AccessFs::from_all(NEWEST))?;
        all.handle_access(AccessNet::from_all(NEWEST))?.scope(Scope::from_all(NEWEST))?.create()?.restrict_self()
    };
    enforced(no_rules().map(|status| status.ruleset))
}

fn enforced(status: Result<RulesetStatus, landlock::RulesetError>) -> io::Result<()> {
    match status {
        Ok(RulesetStatus::NotEnforced) => Err(io::Error::other("this kernel does not offer it")),
        Ok(_) => Ok(()),
        Err(error) => Err(io::Error::other(error)),
    }
}

fn readable(spec: &Spec) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = SYSTEM.iter().chain(&["/proc"]).map(PathBuf::from).collect();
    if spec.level.has_namespaces() {
        paths.push("/etc".into());
    } else {
        paths.extend(ETC.iter().chain(&USERS).map(|name| Path::new("/etc").join(name)));
    }
    paths.extend(spec.read.iter().cloned());
    paths
}

fn changeable(spec: &Spec) -> Vec<PathBuf> {
    let mut paths = vec![spec.scratch_inside().to_owned()];
    if spec.level.has_namespaces() {
        // The machine's directory has the shared memory of all its programs.
        paths.push("/dev/shm".into());
    }
    paths.extend(spec.tree.iter().filter(|_| !spec.level.has_namespaces()).cloned());
    paths.extend(spec.write.iter().cloned());
    paths
}
