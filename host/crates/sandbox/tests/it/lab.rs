//! A machine with outside files that must stay unchanged, and the test itself as a host, once for each user.

use longhaul_sandbox::{Level, Program, ProgramReport, SandboxError, SandboxHost, run};
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A user that owns nothing.
pub const NOBODY: u32 = 65_534;

/// The variable that names the lab for the host that a test starts of itself.
const LAB: &str = "LONGHAUL_ATTACK_LAB";

/// The example that stands in for the `longhaul` command.
pub fn child() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().parent().unwrap().join("examples/sandbox_child")
}

pub fn host(lab: &Path) -> SandboxHost {
    let (program, scratch) = (child(), lab.join("scratch"));
    SandboxHost {
        program,
        prefix_args: vec![],
        scratch,
        cache: None,
        hidden: vec![lab.join("hidden")],
        checkout: Some(lab.join("checkout")),
        level_min: Level::Full,
        redact: None,
    }
}

pub fn program(words: &[&str]) -> Program {
    let argv = words.iter().map(|word| (*word).to_owned()).collect();
    let mut program = Program::new("`test`", argv);
    program.env.insert("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned());
    program.limits.memory_bytes_max = u64::MAX;
    program
}

/// A home with keys, a checkout with an ignored file, and a place for temporary files, open to every user.
pub fn lab(user: Option<u32>) -> tempfile::TempDir {
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

/// Runs the test `name` of this program as another process, below `wrapper`, once for each user, and returns what each
/// wrote into `report`. The wrapper gets whether that user is root.
pub fn as_each_user(name: &str, wrapper: impl Fn(bool) -> Vec<String>) -> Vec<String> {
    let run = |user: Option<u32>| {
        let lab = lab(user);
        let wrapper = wrapper(user.is_none() && rustix::process::geteuid().is_root());
        let this = std::env::current_exe().unwrap();
        let mut command = match &wrapper[..] {
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

/// The variable with the directory of the lab, for wrappers.
pub fn attack_path() -> &'static str {
    LAB
}

/// The lab, in a process that [`as_each_user`] started.
pub fn own_lab() -> Option<PathBuf> {
    std::env::var_os(LAB).map(PathBuf::from)
}

pub fn write_report(lab: &Path, text: &str) {
    std::fs::write(lab.join("scratch/report"), text).unwrap();
}

pub fn blocking<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// Carries out the attacks at `level`, and reports.
pub fn attack(lab: &Path, level: Level) -> Result<ProgramReport, SandboxError> {
    let network = TcpListener::bind("127.0.0.1:0").unwrap();
    // Left from an earlier attack.
    ["service", "packets"].iter().for_each(|name| drop(std::fs::remove_file(lab.join(name))));
    let _by_path = UnixListener::bind(lab.join("service")).unwrap();
    let _packets = UnixDatagram::bind(lab.join("packets")).unwrap();
    let name = format!("longhaul-attack-{}", std::process::id());
    let _by_name = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let packets = SocketAddr::from_abstract_name(format!("{name}-packets")).unwrap();
    let _packets_by_name = UnixDatagram::bind_addr(&packets).unwrap();
    let (pid, port) = (std::process::id().to_string(), network.local_addr().unwrap().port().to_string());
    let script = include_str!("../attacks.py");
    let lab_text = lab.to_str().unwrap();
    let words = ["python3", "-c", script, &pid, &port, &name, lab_text, &level.to_string()];
    let program = Program { level_min: level, ..program(&words) };
    blocking(run(&host(lab), &program))
}

#[track_caller]
pub fn check_refused(report: &str) {
    assert!(report.ends_with("end\n"), "{report}");
    let reached: Vec<&str> = report.lines().filter(|line| line.contains("REACHED")).collect();
    assert!(reached.is_empty(), "{reached:#?}");
    assert!(report.matches(": refused").count() > 60, "{report}");
}

/// A command as a wrapper.
pub fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
