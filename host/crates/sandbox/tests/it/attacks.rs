//! Attempts of a confined program to reach outside, each refused: `attacks.py` carries them out.
//!
//! They run in the worst conditions: the host has a controlling terminal and an inherited descriptor of it, no file of
//! the user's is protected by its mode, and services listen. As root they also run once more as an ordinary user.

use crate::lab::{as_each_user, attack, blocking, check_refused, host, lab, own_lab, program, words, write_report};
use longhaul_sandbox::{
    Level, Program, ProgramInput, ProgramOutput, ScratchDirectory, confine_to_descriptors, run, start,
};
use rustix::fs::{CWD, FlockOperation, RenameFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::Read as _;
use std::mem::ManuallyDrop;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Starts a program as on a machine without namespaces: root loses the right to make them, a user gets a limit of zero.
const ROOT_WITHOUT_NAMESPACES: &[&str] = &["setpriv", "--bounding-set=-sys_admin"];
const USER_WITHOUT_NAMESPACES: &[&str] = &[
    "unshare",
    "-U",
    "-c",
    "--keep-caps",
    "sh",
    "-c",
    "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$0\" \"$@\"",
];

fn without_namespaces(is_root: bool) -> &'static [&'static str] {
    if is_root { ROOT_WITHOUT_NAMESPACES } else { USER_WITHOUT_NAMESPACES }
}

/// Simulates a kernel with the same or an older version of Landlock.
const OLDER_LANDLOCK: &str = include_str!("../older_landlock.py");

fn kernel_with_landlock(version: &str) -> Vec<String> {
    words(&["python3", "-c", OLDER_LANDLOCK, version])
}

/// Stops its keeper if it can, and starts processes each of which starts another one and ends: a search for live
/// processes only finds those that have ended. All of them hold a file; they end by themselves in a minute.
const CHAINS: &str = r#"
import fcntl, os, signal, time
held = open("held", "w")
fcntl.flock(held, fcntl.LOCK_EX)
end = time.monotonic() + 60
try:
    os.kill(os.getppid(), signal.SIGSTOP)
except PermissionError:
    pass
for _ in range(32):
    if os.fork() == 0:
        while time.monotonic() < end:
            if os.fork():
                os._exit(0)
        os._exit(0)
print("begun", flush=True)
time.sleep(60)
"#;

/// Directories of a tree that are swapped with links.
const PLACES: usize = 256;

/// With a scratch directory on an overlay, and everything except the lab read-only.
const ON_AN_OVERLAY: &str = r#"
    mount --make-rprivate / && mount --bind "$LONGHAUL_ATTACK_LAB" "$LONGHAUL_ATTACK_LAB" || exit 1
    mount -o remount,bind,ro / && mount -o remount,bind,ro /dev || exit 1
    cd "$LONGHAUL_ATTACK_LAB/scratch" && mkdir parts && mount -t tmpfs parts parts || exit 1
    mkdir over parts/lower parts/upper parts/work
    mount -t overlay over -o lowerdir=parts/lower,upperdir=parts/upper,workdir=parts/work over || rmdir over
    exec "$0" "$@"
"#;

/// Below a terminal of its own, which is also inherited as a descriptor.
const IN_A_TERMINAL: &[&str] =
    &["python3", "-c", "import pty, sys; pty.spawn(sys.argv[1:])", "sh", "-c", "exec 3<>/dev/tty; exec \"$0\" \"$@\""];

#[test]
fn every_attack_from_inside_is_refused() {
    if let Some(lab) = own_lab() {
        let done = attack(&lab, Level::Full).unwrap();
        return write_report(&lab, &format!("{:?}\n{}{}", done.level, done.stderr, done.stdout));
    }
    for report in as_each_user("attacks::every_attack_from_inside_is_refused", |_| words(IN_A_TERMINAL)) {
        assert!(report.starts_with("Full\n"), "{report}");
        check_refused(&report);
    }
}

/// The processes that build the sandbox are outside of it: a library that they load, or a file that their loader
/// writes, is outside.
#[test]
fn no_variable_of_a_program_is_obeyed_by_what_starts_it() {
    let lab = lab(None);
    let mut program = program(&["/bin/sh", "-c", "echo \"$LD_DEBUG_OUTPUT\""]);
    let trace = lab.path().join("home/trace").display().to_string();
    program.env.extend([("LD_DEBUG".to_owned(), "files".to_owned()), ("LD_DEBUG_OUTPUT".to_owned(), trace.clone())]);
    let done = blocking(run(&host(lab.path()), &program)).unwrap();
    assert!(done.stdout.contains(&trace), "the program itself has it: {done:?}");
    let found = lab.path().join("home").read_dir().unwrap().map(|entry| entry.unwrap().file_name());
    let traces: Vec<_> = found.filter(|name| name.to_string_lossy().starts_with("trace")).collect();
    assert!(traces.is_empty(), "{traces:?}");
}

/// Root's program is another user, who needs what the host makes for it. A grant may lie below `/tmp`, which inside is
/// the scratch directory.
#[test]
fn a_host_that_closes_its_files_to_others_runs_programs_with_their_grants() {
    if let Some(lab) = own_lab() {
        let below_tmp = tempfile::tempdir_in("/tmp").unwrap();
        std::fs::write(below_tmp.path().join("seen"), "BELOW").unwrap();
        let granted = [lab.join("granted"), below_tmp.path().to_owned()];
        // Its owner grants it to others.
        std::fs::set_permissions(&granted[1], PermissionsExt::from_mode(0o755)).unwrap();
        std::fs::set_permissions(granted[1].join("seen"), PermissionsExt::from_mode(0o644)).unwrap();
        let script = "cat \"$0/seen\" \"$1/seen\" /etc/passwd < /dev/null; echo x > \"$1/new\"; umask";
        let [first, second] = granted.each_ref().map(|path| path.to_str().unwrap());
        let program = Program { read: granted.to_vec(), ..program(&["sh", "-c", script, first, second]) };
        let done = blocking(run(&host(&lab), &program)).unwrap();
        return write_report(&lab, &format!("{:?}\n{}{}", done.level, done.stderr, done.stdout));
    }
    let name = "attacks::a_host_that_closes_its_files_to_others_runs_programs_with_their_grants";
    for report in as_each_user(name, |_| words(&["sh", "-c", "umask 077 && exec \"$0\" \"$@\""])) {
        let is_whole = ["Full\n", "SECRETBELOWuser:x:", "Read-only", "0077\n"].iter().all(|part| report.contains(part));
        assert!(is_whole, "{report}");
    }
}

/// Simulates a machine whose user namespaces are used up.
#[test]
fn without_namespaces_nothing_runs_but_what_the_operator_accepts_by_name() {
    if let Some(lab) = own_lab() {
        let refused = attack(&lab, Level::Full).unwrap_err().to_string();
        let done = attack(&lab, Level::Landlock).unwrap();
        return write_report(&lab, &format!("{refused}\n{:?}\n{}{}", done.level, done.stderr, done.stdout));
    }
    let name = "attacks::without_namespaces_nothing_runs_but_what_the_operator_accepts_by_name";
    for report in as_each_user(name, |is_root| words(without_namespaces(is_root))) {
        let (refused, rest) = report.split_once('\n').unwrap();
        assert!(
            refused.contains("was not started, since this system does not give the sandbox level `full`"),
            "{refused}"
        );
        assert!(refused.contains("cannot make namespaces") && refused.contains("`sandbox_min`"), "{refused}");
        assert!(rest.starts_with("Landlock\n"), "{rest}");
        check_refused(rest);
    }
}

/// Older versions do not restrict signals: a program could end every process of its user. Such a kernel is simulated on
/// this one.
#[test]
fn a_landlock_that_holds_no_signals_is_a_second_wall_and_never_the_only_one() {
    if let Some(lab) = own_lab() {
        let at = |level_min| blocking(run(&host(&lab), &Program { level_min, ..program(&["true"]) }));
        let said = |level| at(level).map_or_else(|error| error.to_string(), |done| done.level.to_string());
        return write_report(&lab, &format!("{}\n{}", said(Level::Full), said(Level::Landlock)));
    }
    let test = "attacks::a_landlock_that_holds_no_signals_is_a_second_wall_and_never_the_only_one";
    let alone = |version: &'static str| {
        move |is_root| [kernel_with_landlock(version), words(without_namespaces(is_root))].concat()
    };
    for report in as_each_user(test, |_| kernel_with_landlock("5")) {
        assert_eq!(report, "full\nfull");
    }
    for report in as_each_user(test, alone("5")) {
        let (_, refused) = report.split_once('\n').unwrap();
        assert!(refused.contains("does not give the sandbox level `landlock`"), "{report}");
        assert!(refused.contains("it must hold signals and abstract sockets"), "{report}");
        assert!(refused.contains("takes kernel 6.12 or newer") && refused.lines().count() == 1, "{report}");
    }
    for report in as_each_user(test, alone("6")) {
        assert!(report.ends_with("\nlandlock"), "{report}");
    }
}

/// Only the file system and the filter confine there. Such a kernel is simulated on this one.
#[test]
fn without_landlock_namespaces_hold_where_the_operator_accepts_them_by_name() {
    if let Some(lab) = own_lab() {
        let refused = attack(&lab, Level::Full).unwrap_err().to_string();
        let done = attack(&lab, Level::Namespaces).unwrap();
        return write_report(&lab, &format!("{refused}\n{:?}\n{}{}", done.level, done.stderr, done.stdout));
    }
    let test = "attacks::without_landlock_namespaces_hold_where_the_operator_accepts_them_by_name";
    for report in as_each_user(test, |_| kernel_with_landlock("0")) {
        let (refused, rest) = report.split_once('\n').unwrap();
        assert!(refused.contains("does not give the sandbox level `full`: cannot restrict files"), "{refused}");
        assert!(refused.contains("this kernel does not offer it") && refused.contains("`sandbox_min`"), "{refused}");
        assert!(rest.starts_with("Namespaces\n"), "{rest}");
        check_refused(rest);
    }
}

/// For example that of a container. There the program's files change owner one by one, below a directory in which the
/// machine's are mounted; here those are read-only, so that a change of one is an error without harm.
#[test]
fn root_on_a_file_system_that_maps_no_owners_changes_no_file_of_the_machine() {
    if let Some(lab) = own_lab() {
        let mut host = host(&lab);
        host.scratch = lab.join("scratch/over");
        if !host.scratch.is_dir() {
            return write_report(&lab, "skipped");
        }
        let done = blocking(run(&host, &program(&["sh", "-c", "echo new > file && cat file && stat -c %u file"])));
        return write_report(&lab, &done.map_or_else(|error| error.to_string(), |done| done.stdout));
    }
    let test = "attacks::root_on_a_file_system_that_maps_no_owners_changes_no_file_of_the_machine";
    let wrapper = |is_root| if is_root { words(&["unshare", "-m", "sh", "-c", ON_AN_OVERLAY]) } else { vec![] };
    for report in as_each_user(test, wrapper) {
        if report == "skipped" {
            eprintln!("skipped: not root, or it cannot mount an overlay");
            continue;
        }
        assert_eq!(report, "new\n1000\n");
    }
}

/// A live program may replace a directory by a link, at any moment, while the files of its tree are handed over to the
/// next one.
#[test]
fn files_handed_over_to_a_program_of_roots_are_those_of_its_tree_whatever_comes_in_their_place() {
    const STARTS: usize = 20;
    if let Some(lab) = own_lab() {
        let (tree, key) = (lab.join("tree"), lab.join("home/api-key"));
        let place = |number| ["dir", "link"].map(|name| tree.join(format!("{name}-{number}")));
        let places: Vec<[PathBuf; 2]> = (0..PLACES).map(place).collect();
        for [dir, link] in &places {
            std::fs::create_dir_all(dir).unwrap();
            symlink(lab.join("home"), link).unwrap();
        }
        let before = key.metadata().unwrap().uid();
        let program = Program { level_min: Level::Landlock, tree: Some(tree.clone()), ..program(&["true"]) };
        let is_over = AtomicBool::new(false);
        let started = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    swap(&places);
                }
            });
            let start = |_| blocking(run(&host(&lab), &program)).map(|done| done.level);
            let started: Result<Vec<Level>, _> = (0..STARTS).map(start).collect();
            is_over.store(true, Ordering::Relaxed);
            started.map_err(|error| error.to_string())
        });
        let is_kept = before == key.metadata().unwrap().uid();
        return write_report(&lab, &format!("{:?} {is_kept}", started.map(|levels| levels.len())));
    }
    let test = "attacks::files_handed_over_to_a_program_of_roots_are_those_of_its_tree_whatever_comes_in_their_place";
    for report in as_each_user(test, |is_root| words(without_namespaces(is_root))) {
        assert_eq!(report, format!("Ok({STARTS}) true"));
    }
}

/// As the compiling child does it.
#[test]
fn a_process_that_keeps_to_its_descriptors_has_no_others_and_starts_nothing() {
    const IS_CONFINED: &str = "LONGHAUL_CONFINED";
    let test = "attacks::a_process_that_keeps_to_its_descriptors_has_no_others_and_starts_nothing";
    if let Some(lab) = own_lab() {
        if std::env::var_os(IS_CONFINED).is_some() {
            return println!("\nconfined: {:?}", attempts_of_a_confined_process(&lab));
        }
        let mut command = Command::new(std::env::current_exe().unwrap());
        let done = command.args([test, "--exact", "--nocapture"]).env(IS_CONFINED, "1").output().unwrap();
        let said = [done.stdout, done.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        return write_report(&lab, &said.concat());
    }
    let errors = [Errno::BADF, Errno::ACCESS, Errno::PERM, Errno::PERM, Errno::NOSYS].map(|errno| errno.raw_os_error());
    for report in as_each_user(test, |_| vec![]) {
        assert!(report.contains(&format!("confined: ({errors:?}, true)\n")), "{report}");
    }
}

/// The errors of the refused calls, and whether it has threads.
fn attempts_of_a_confined_process(lab: &Path) -> ([i32; 5], bool) {
    let seen = lab.join("granted/seen");
    // It is closed without its owner, which must not close it again.
    let left_open = ManuallyDrop::new(File::open(&seen).unwrap());
    let parent = rustix::process::getppid();
    confine_to_descriptors().unwrap();
    let errors = [
        left_open.metadata().map(drop).unwrap_err(),
        File::open(&seen).map(drop).unwrap_err(),
        Command::new("/bin/true").status().map(drop).unwrap_err(),
        rustix::process::setpriority_process(parent, 0).unwrap_err().into(),
        rustix::fs::memfd_create("more", rustix::fs::MemfdFlags::CLOEXEC).map(drop).unwrap_err().into(),
    ];
    let has_threads = std::thread::Builder::new().spawn(|| ()).is_ok_and(|thread| thread.join().is_ok());
    (errors.map(|error| error.raw_os_error().unwrap_or(0)), has_threads)
}

/// Once when its host drops it, which ends its keeper without a message, and once at its deadline.
#[test]
fn without_namespaces_nothing_that_a_program_starts_outlives_it() {
    if let Some(lab) = own_lab() {
        let (host, tree) = (host(&lab), lab.join("tree"));
        std::fs::create_dir(&tree).unwrap();
        let mut program = Program {
            level_min: Level::Landlock,
            tree: Some(tree.clone()),
            output: ProgramOutput::Pipe,
            ..program(&["python3", "-c", CHAINS])
        };
        let level = blocking(async {
            let mut running = start(&host, ScratchDirectory::new(&host).unwrap(), &program).await.unwrap();
            let mut begun = [0; 6];
            running.take_stdout().unwrap().read_exact(&mut begun).await.unwrap();
            running.level()
        });
        let is_gone_once_let_go = is_let_go_of(&tree.join("held"));
        program.output = ProgramOutput::Captured;
        (program.limits.wall_ms_max, program.limits.grace_ms) = (2_000, 0);
        let done = blocking(run(&host, &program)).unwrap();
        let are_gone = [is_gone_once_let_go, is_let_go_of(&tree.join("held"))];
        let hit = done.hit.map(|hit| hit.name);
        return write_report(&lab, &format!("{level:?} {:?} {hit:?} {are_gone:?}", done.level));
    }
    let test = "attacks::without_namespaces_nothing_that_a_program_starts_outlives_it";
    for report in as_each_user(test, |is_root| words(without_namespaces(is_root))) {
        assert_eq!(report, "Landlock Landlock Some(\"wall_ms_max\") [true, true]");
    }
}

/// True when no process holds a file any more, after a while: short-lived processes are in no list when it is read.
fn is_let_go_of(held: &Path) -> bool {
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(20) {
        let file = File::open(held).unwrap();
        if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

fn swap(places: &[[PathBuf; 2]]) {
    for [dir, link] in places {
        // Not every file system can do this. Then there is no risk.
        let _ = rustix::fs::renameat_with(CWD, dir, CWD, link, RenameFlags::EXCHANGE);
    }
}

#[test]
fn a_program_reads_what_is_granted_and_changes_what_may_be_changed() {
    if let Some(lab) = own_lab() {
        let script = "cat $0/granted/seen && cat && (echo x > $0/granted/seen || echo kept) 2>/dev/null; \
                      echo new > $0/checkout/new; cat $0/home/api-key || id -u; cat > /dev/stderr < $0/checkout/new";
        let mut program = program(&["sh", "-c", script, lab.to_str().unwrap()]);
        program.read = vec![lab.join("granted")];
        program.write = vec![lab.join("checkout")];
        program.input = ProgramInput::Pipe;
        program.output = ProgramOutput::Pipe;
        let host = host(&lab);
        let said = blocking(async {
            let mut running = start(&host, ScratchDirectory::new(&host).unwrap(), &program).await.unwrap();
            let (mut input, mut output) = (running.take_stdin().unwrap(), running.take_stdout().unwrap());
            input.write_all(b"-input-").await.unwrap();
            drop(input);
            let mut said = String::new();
            output.read_to_string(&mut said).await.unwrap();
            let (limit, errors) = running.ended().await;
            format!("{said}{limit:?}{errors}")
        });
        let mut new = String::new();
        File::open(lab.join("checkout/new")).unwrap().read_to_string(&mut new).unwrap();
        return write_report(&lab, &format!("{said}{new}"));
    }
    for report in as_each_user("attacks::a_program_reads_what_is_granted_and_changes_what_may_be_changed", |_| vec![]) {
        assert!(report.starts_with("SECRET-input-kept\n"), "{report}");
        assert!(report.contains("No such file") && report.ends_with("new\nnew\n"), "{report}");
        assert!(!report.contains("\n0\n"), "it is not root: {report}");
    }
}

/// Its number may be reused by then, which root can force.
#[test]
fn a_program_that_has_ended_is_let_go_of() {
    if let Some(lab) = own_lab() {
        let host = host(&lab);
        let mut program = Program { input: ProgramInput::Pipe, ..program(&["cat"]) };
        program.limits.wall_ms_max = 3_000;
        let said = blocking(async {
            let mut running = start(&host, ScratchDirectory::new(&host).unwrap(), &program).await.unwrap();
            let number = children().pop().unwrap();
            drop(running.take_stdin());
            let (first, _) = running.ended().await;
            tokio::time::sleep(Duration::from_millis(3_500)).await;
            let (then, _) = running.ended().await;
            let other = start_with_number(number);
            drop(running);
            tokio::time::sleep(Duration::from_millis(200)).await;
            let is_kept = other.is_none_or(|mut other| {
                let is_kept = other.try_wait().unwrap().is_none();
                other.kill().unwrap();
                other.wait().unwrap();
                is_kept
            });
            format!("{first:?} {then:?} {is_kept}")
        });
        return write_report(&lab, &said);
    }
    for report in as_each_user("attacks::a_program_that_has_ended_is_let_go_of", |_| vec![]) {
        assert_eq!(report, "None None true");
    }
}

/// The numbers of this process's children.
fn children() -> Vec<u32> {
    let threads = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let lists = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().map(|id| id.parse().unwrap()).collect::<Vec<_>>()).collect()
}

/// A program that leads a group of that number, if numbers can be chosen.
fn start_with_number(number: u32) -> Option<Child> {
    const TRIES: usize = 100;
    for _ in 0..TRIES {
        std::fs::write("/proc/sys/kernel/ns_last_pid", (number - 1).to_string()).ok()?;
        let mut other = Command::new("sleep").arg("60").process_group(0).spawn().unwrap();
        if other.id() == number {
            return Some(other);
        }
        // Another process got the number first.
        other.kill().unwrap();
        other.wait().unwrap();
    }
    None
}

#[test]
fn what_is_granted_and_is_not_there_is_named_at_every_level() {
    let lab = lab(None);
    let absent = lab.path().join("granted/absent");
    for level_min in [Level::Full, Level::Landlock, Level::None] {
        for setting in ["read", "write"] {
            let mut program = Program { level_min, ..program(&["true"]) };
            let grants = if setting == "read" { &mut program.read } else { &mut program.write };
            grants.push(absent.clone());
            let refused = blocking(run(&host(lab.path()), &program)).unwrap_err().to_string();
            let expected = format!(
                "`test` was not started: `{setting}` names `{}`, which is not there; create it or leave it out of \
                 `{setting}`",
                absent.display()
            );
            assert_eq!(refused, expected);
        }
    }
}

#[test]
fn tool_chains_work_without_configuration() {
    let lab = lab(None);
    let tried = [
        ("python3", &["-c", "import ssl, sqlite3, getpass; print(getpass.getuser())"][..]),
        ("node", &["-e", "require('node:https'); console.log(require('os').cpus().length > 0)"][..]),
        ("go", &["version"][..]),
        ("git", &["--version"][..]),
        ("cc", &["--version"][..]),
    ];
    let path = std::env::var("PATH").unwrap();
    for (tool, arguments) in tried {
        if !std::env::split_paths(&path).any(|dir| dir.join(tool).is_file()) {
            continue;
        }
        let mut program = program(&[&[tool], arguments].concat());
        program.env.insert("PATH".to_owned(), path.clone());
        let done = blocking(run(&host(lab.path()), &program)).unwrap();
        assert_eq!((done.exit_code, done.level), (0, Level::Full), "{tool}: {done:?}");
    }
}

#[test]
fn a_virtual_environment_of_a_home_runs() {
    let lab = lab(None);
    let venv = lab.path().join("home/venv");
    let made = Command::new("python3").args(["-m", "venv", "--without-pip"]).arg(&venv).output().unwrap();
    if !made.status.success() {
        eprintln!("skipped: this Python makes no environments");
        return;
    }
    let python = venv.join("bin/python");
    let script = "import sys; print(sys.prefix); import unittest; open(sys.argv[1])";
    let secret = lab.path().join("home/api-key");
    let words = [python.to_str().unwrap(), "-c", script, secret.to_str().unwrap()];
    let done = blocking(run(&host(lab.path()), &program(&words))).unwrap();
    assert_eq!(done.stdout.trim(), venv.to_str().unwrap(), "{done:?}");
    assert!(done.stderr.contains("No such file"), "{done:?}");
}
