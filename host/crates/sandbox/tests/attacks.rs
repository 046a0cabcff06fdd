//! Attempts of a confined program to reach what is outside, each refused: `attacks.py` carries them out.
//!
//! They run where it is worst: the host has a controlling terminal and was given it as a further descriptor, nothing of
//! the user's is protected by its modes, and services listen. Run as root they run once more as an ordinary user.

use longhaul_sandbox::{Input, Level, Output, Program, Report, Room, SandboxError, SandboxHost, run, start};
use std::io::Read as _;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// A user that owns nothing.
const NOBODY: u32 = 65_534;

/// Has the lab of the host that a test starts of itself.
const LAB: &str = "LONGHAUL_ATTACK_LAB";

/// Start a program as a machine without namespaces would: root loses the right to make them, a user the number of them.
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

/// The example that stands in for the `longhaul` command.
fn child() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().parent().unwrap().join("examples/sandbox_child")
}

fn host(lab: &Path) -> SandboxHost {
    let (program, scratch) = (child(), lab.join("scratch"));
    SandboxHost {
        program,
        prefix_args: vec![],
        scratch,
        hidden: vec![lab.join("hidden")],
        level_min: Level::Full,
        redact: None,
    }
}

fn program(words: &[&str]) -> Program {
    let argv = words.iter().map(|word| (*word).to_owned()).collect();
    let mut program = Program::new("`test`", argv);
    program.env.insert("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned());
    program.limits.memory_bytes_max = u64::MAX;
    program
}

/// A home with keys, a checkout with an ignored file, and a place for temporary files, open to everybody.
fn lab(user: Option<u32>) -> tempfile::TempDir {
    let lab = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    for file in ["home/.ssh/id", "home/api-key", "checkout/.env", "hidden/key", "granted/seen", "scratch/.keep"] {
        let path = lab.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "SECRET").unwrap();
    }
    let mut waiting = vec![lab.path().to_owned()];
    while let Some(path) = waiting.pop() {
        chown(&path, user, user).unwrap();
        if path.is_dir() {
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
            waiting.extend(path.read_dir().unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    lab
}

/// The users that tests run as.
fn users() -> Vec<Option<u32>> {
    let is_root = rustix::process::geteuid().is_root();
    if is_root { vec![None, Some(NOBODY)] } else { vec![None] }
}

/// Runs the test `name` of this program as another process, below `wrapper`, once for each user, and answers what
/// each wrote into `report`. The wrapper is told whether that user is root.
fn as_each_user(name: &str, wrapper: impl Fn(bool) -> &'static [&'static str]) -> Vec<String> {
    let run = |user: Option<u32>| {
        let lab = lab(user);
        let wrapper = wrapper(user.is_none() && rustix::process::geteuid().is_root());
        let this = std::env::current_exe().unwrap();
        let mut command = match wrapper {
            [] => Command::new(&this),
            [first, rest @ ..] => {
                let mut command = Command::new(first);
                command.args(rest).arg(&this);
                command
            }
        };
        command.args([name, "--exact", "--nocapture"]).env(LAB, lab.path()).env("HOME", lab.path().join("home"));
        if let Some(user) = user {
            command.uid(user).gid(user);
        }
        let ran = command.current_dir("/").output().unwrap();
        let report = std::fs::read_to_string(lab.path().join("scratch/report"));
        report.unwrap_or_else(|_| {
            panic!("{user:?}: {}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr))
        })
    };
    users().into_iter().map(run).collect()
}

/// The lab, in a process that [`as_each_user`] started.
fn own_lab() -> Option<PathBuf> {
    std::env::var_os(LAB).map(PathBuf::from)
}

fn write_report(lab: &Path, text: &str) {
    std::fs::write(lab.join("scratch/report"), text).unwrap();
}

fn blocking<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// Carries the attacks out by `level`, and reports.
fn attack(lab: &Path, level: Level) -> Result<Report, SandboxError> {
    let network = TcpListener::bind("127.0.0.1:0").unwrap();
    let _by_path = UnixListener::bind(lab.join("service")).unwrap();
    let name = format!("longhaul-attack-{}", std::process::id());
    let _by_name = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let (pid, port) = (std::process::id().to_string(), network.local_addr().unwrap().port().to_string());
    let script = include_str!("attacks.py");
    let lab_text = lab.to_str().unwrap();
    let words = ["python3", "-c", script, &pid, &port, &name, lab_text, &level.to_string()];
    let program = Program { level_min: level, ..program(&words) };
    blocking(run(&host(lab), &program))
}

#[track_caller]
fn check_refused(report: &str) {
    assert!(report.ends_with("end\n"), "{report}");
    let reached: Vec<&str> = report.lines().filter(|line| line.contains("REACHED")).collect();
    assert!(reached.is_empty(), "{reached:#?}");
    assert!(report.matches(": refused").count() > 60, "{report}");
}

/// Below a terminal of its own, which is also handed down as a descriptor.
const IN_A_TERMINAL: &[&str] =
    &["python3", "-c", "import pty, sys; pty.spawn(sys.argv[1:])", "sh", "-c", "exec 3<>/dev/tty; exec \"$0\" \"$@\""];

#[test]
fn every_attack_from_inside_is_refused() {
    if let Some(lab) = own_lab() {
        let done = attack(&lab, Level::Full).unwrap();
        return write_report(&lab, &format!("{:?}\n{}{}", done.level, done.stderr, done.stdout));
    }
    for report in as_each_user("every_attack_from_inside_is_refused", |_| IN_A_TERMINAL) {
        assert!(report.starts_with("Full\n"), "{report}");
        check_refused(&report);
    }
}

/// A machine whose user namespaces are used up, made of one that has some.
#[test]
fn without_namespaces_nothing_runs_but_what_the_operator_accepts_by_name() {
    if let Some(lab) = own_lab() {
        let refused = attack(&lab, Level::Full).unwrap_err().to_string();
        std::fs::remove_file(lab.join("service")).unwrap();
        let done = attack(&lab, Level::Landlock).unwrap();
        return write_report(&lab, &format!("{refused}\n{:?}\n{}{}", done.level, done.stderr, done.stdout));
    }
    let name = "without_namespaces_nothing_runs_but_what_the_operator_accepts_by_name";
    let wrapper = |is_root| if is_root { ROOT_WITHOUT_NAMESPACES } else { USER_WITHOUT_NAMESPACES };
    for report in as_each_user(name, wrapper) {
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

#[test]
fn a_program_reads_what_is_granted_and_changes_what_may_be_changed() {
    if let Some(lab) = own_lab() {
        let script = "cat $0/granted/seen && cat && (echo x > $0/granted/seen || echo kept) 2>/dev/null; \
                      echo new > $0/checkout/new; cat $0/home/api-key || id -u; cat > /dev/stderr < $0/checkout/new";
        let mut program = program(&["sh", "-c", script, lab.to_str().unwrap()]);
        program.read = vec![lab.join("granted")];
        program.write = vec![lab.join("checkout")];
        program.input = Input::Pipe;
        program.output = Output::Pipe;
        let host = host(&lab);
        let said = blocking(async {
            let mut running = start(&host, Room::new(&host).unwrap(), &program).await.unwrap();
            let (mut input, mut output) = (running.take_stdin().unwrap(), running.take_stdout().unwrap());
            input.write_all(b"-input-").await.unwrap();
            drop(input);
            let mut said = String::new();
            output.read_to_string(&mut said).await.unwrap();
            let (limit, errors) = running.ended().await;
            format!("{said}{limit:?}{errors}")
        });
        let mut new = String::new();
        std::fs::File::open(lab.join("checkout/new")).unwrap().read_to_string(&mut new).unwrap();
        return write_report(&lab, &format!("{said}{new}"));
    }
    for report in as_each_user("a_program_reads_what_is_granted_and_changes_what_may_be_changed", |_| &[]) {
        assert!(report.starts_with("SECRET-input-kept\n"), "{report}");
        assert!(report.contains("No such file") && report.ends_with("new\nnew\n"), "{report}");
        assert!(!report.contains("\n0\n"), "it is not root: {report}");
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
