//! A project, a data directory and a fake world, all in a folder that goes with the test; and the
//! program, started as a process of its own.

use super::fake::Fake;
use super::repository;
use serde_json::Value;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Longest time for a process before its test fails instead of hanging.
const PATIENCE: Duration = Duration::from_secs(240);

/// The folder.
pub struct Lab {
    /// The world outside.
    pub fake: Fake,
    cache: PathBuf,
    outputs: AtomicU32,
    directory: TempDir,
}

/// The end of a process, with its output.
#[derive(Clone, Debug)]
pub struct Ran {
    /// As the system says it.
    pub status: ExitStatus,
    /// The standard output.
    pub stdout: String,
    /// The standard error.
    pub stderr: String,
}

impl Ran {
    /// The exit code; none after a signal.
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// True when SIGKILL ended it.
    pub fn was_killed(&self) -> bool {
        self.status.signal() == Some(9)
    }

    /// Lines on standard error, without those of the log: the first process compiles a plugin and logs it.
    pub fn error_lines(&self) -> usize {
        self.stderr.lines().filter(|line| !line.trim_start().starts_with("INFO ")).count()
    }

    /// Everything that it printed.
    pub fn said(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }

    /// This, if it ended with that code.
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code(), Some(code), "{:?}\n{}", self.status, self.said());
        self
    }
}

/// A process that goes on.
pub struct Started {
    child: Option<Child>,
    output: PathBuf,
}

impl Lab {
    /// A project that is a git repository with these two files in its first commit.
    pub fn new(config: &str, goal: &str) -> Self {
        let lab = Self::empty();
        lab.make_project("project", config, goal);
        lab
    }

    /// Without a project.
    pub fn empty() -> Self {
        let directory = tempfile::Builder::new().prefix("longhaul-").tempdir().expect("a directory");
        private(directory.path());
        let cache = super::test_cache();
        Self { fake: Fake::start(), cache, outputs: AtomicU32::new(0), directory }
    }

    /// With a cache of compiled plugins that holds only the largest of the shared one, the interpreter. Of two that are
    /// as large, which two builds of it are, the newer one is in use.
    pub fn with_cold_cache(mut self) -> Self {
        let own = self.path("cache");
        fs::DirBuilder::new().recursive(true).mode(0o700).create(own.join("compiled")).expect("ours");
        let warm = fs::read_dir(self.cache.join("compiled")).expect("the shared cache is warm").filter_map(Result::ok);
        let size_and_time = |entry: &fs::DirEntry| entry.metadata().ok().map(|it| (it.len(), it.modified().ok()));
        let largest = warm.max_by_key(size_and_time).expect("not empty");
        let copy = own.join("compiled").join(largest.file_name());
        fs::hard_link(largest.path(), &copy).or_else(|_| fs::copy(largest.path(), &copy).map(drop)).expect("a copy");
        // Without its seal, and the key of that, it would be compiled anew.
        fs::copy(largest.path().with_extension("seal"), copy.with_extension("seal")).expect("a copy");
        fs::copy(self.cache.join("compiled/key"), own.join("compiled/key")).expect("a copy");
        self.cache = own;
        self
    }

    /// A path in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The project.
    pub fn project(&self) -> PathBuf {
        self.path("project")
    }

    /// The data directory.
    pub fn home(&self) -> PathBuf {
        self.path("home")
    }

    /// Keeps a secret, which comes over standard input.
    pub fn set_secret(&self, name: &str, value: &str) {
        self.set_secret_for(&["secrets", "set", name], value);
    }

    /// Keeps a secret for every project of the data directory.
    pub fn set_own_secret(&self, name: &str, value: &str) {
        self.set_secret_for(&["secrets", "set", name, "--any-project"], value);
    }

    /// The same, said in other words.
    pub fn set_secret_for(&self, args: &[&str], value: &str) {
        let mut command = self.command(args);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("started");
        child.stdin.take().expect("piped").write_all(format!("{value}\n").as_bytes()).expect("taken");
        assert!(child.wait().expect("ended").success());
    }

    /// The cache of compiled plugins.
    pub fn compiled(&self) -> PathBuf {
        self.cache.join("compiled")
    }

    /// Makes a project beside the others.
    pub fn make_project(&self, name: &str, config: &str, goal: &str) {
        let project = self.path(name);
        fs::create_dir_all(&project).expect("ours");
        fs::write(project.join("longhaul.toml"), config.replace("{server}", &self.fake.address)).expect("ours");
        fs::write(project.join("GOAL.md"), goal).expect("ours");
        for args in [&["init", "-q", "-b", "main"][..], &["add", "-A"], &["commit", "-q", "-m", "start"]] {
            self.git_in(&project, args);
        }
    }

    /// The output of git in the project.
    pub fn git(&self, args: &[&str]) -> String {
        self.git_in(&self.project(), args)
    }

    /// The output of git in another directory.
    #[track_caller]
    pub fn git_in(&self, directory: &Path, args: &[&str]) -> String {
        let mut git = Command::new("git");
        git.args(args).current_dir(directory).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        for who in ["AUTHOR", "COMMITTER"] {
            git.env(format!("GIT_{who}_NAME"), "Test").env(format!("GIT_{who}_EMAIL"), "test@example.com");
        }
        let output = git.output().expect("git is installed");
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The program, about to start in the project.
    pub fn command(&self, args: &[&str]) -> Command {
        self.command_at(&self.home(), args)
    }

    /// Runs the program through others, the last of which starts what it is handed.
    pub fn run_through(&self, wrapper: &[&str], args: &[&str]) -> Ran {
        let inner = self.command(args);
        let mut command = Command::new(wrapper[0]);
        command.args(&wrapper[1..]).arg(inner.get_program()).args(inner.get_args());
        command.current_dir(inner.get_current_dir().unwrap_or(self.directory.path()));
        for (name, value) in inner.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        self.start_command(command).wait()
    }

    /// The program with another data directory, about to start in the project.
    pub fn command_at(&self, home: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
        command.arg("--home").arg(home).args(args).stdin(Stdio::null());
        let project = self.project();
        command.current_dir(if project.is_dir() { &project } else { self.directory.path() });
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("LONGHAUL_") || name.contains("PROXY")) {
            command.env_remove(name);
        }
        let plugins = repository().join("target/plugins");
        let tests = plugins.join("tests");
        assert!(tests.join("doer.wasm").is_file(), "the guests are not built; run: cargo xtask plugins --tests");
        command.env("LONGHAUL_PLUGINS", std::env::join_paths([plugins, tests]).expect("no colon in it"));
        command.env("LONGHAUL_CACHE", &self.cache);
        // The tests write their files themselves; those about trust take this away.
        command.env("LONGHAUL_TRUST", "all");
        // Where the user's own files would be.
        command.env("HOME", self.directory.path()).env("XDG_RUNTIME_DIR", self.directory.path());
        command
    }

    /// Starts the program.
    pub fn start(&self, args: &[&str]) -> Started {
        self.start_with(args, &[])
    }

    /// Starts the program with something in its environment.
    pub fn start_with(&self, args: &[&str], environment: &[(&str, &str)]) -> Started {
        let mut command = self.command(args);
        command.envs(environment.iter().copied());
        self.start_command(command)
    }

    /// Starts a command, its output kept in files, which no pipe can block.
    pub fn start_command(&self, mut command: Command) -> Started {
        let number = self.outputs.fetch_add(1, Ordering::Relaxed);
        let output = self.path(&format!("output-{number}"));
        let file = |what: &str| File::create(output.with_extension(what)).expect("ours");
        let child = command.stdout(file("out")).stderr(file("err")).spawn().expect("the program starts");
        Started { child: Some(child), output }
    }

    /// Runs the program to its end.
    pub fn run(&self, args: &[&str]) -> Ran {
        self.start(args).wait()
    }

    /// Runs the program with another data directory.
    pub fn run_at(&self, home: &Path, args: &[&str]) -> Ran {
        self.start_command(self.command_at(home, args)).wait()
    }

    /// Imports a checkpoint from the signer that its file names, as a person does after comparing the keys.
    pub fn import(&self, file: &str) -> Ran {
        let whole: Value = serde_json::from_slice(&fs::read(file).expect("written")).expect("JSON");
        let signer = whole["signed"]["signer"].as_str().expect("it is signed");
        self.run(&["checkpoint", "import", file, "--signer", signer])
    }

    /// The output of the program, as JSON.
    #[track_caller]
    pub fn json(&self, args: &[&str]) -> Value {
        let ran = self.run(&[&["--json"], args].concat()).expect(0);
        serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{args:?}: {error}: {}", ran.said()))
    }

    /// The newest run of the project, if there is one.
    pub fn newest(&self) -> Option<Value> {
        let ran = self.run(&["--json", "status"]);
        if ran.code() == Some(1) && ran.stderr.contains("no run of") {
            return None;
        }
        let ran = ran.expect(0);
        Some(serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {}", ran.said())))
    }

    /// The names of all runs, oldest first.
    pub fn runs(&self) -> Vec<String> {
        let answer = self.json(&["runs"]);
        let runs = answer["items"].as_array().expect("a list");
        runs.iter().rev().map(|run| run["run"].as_str().expect("a name").to_owned()).collect()
    }
}

impl Started {
    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("not waited for yet").id()
    }

    /// The output so far.
    pub fn printed(&self) -> String {
        let read = |what: &str| fs::read(self.output.with_extension(what)).unwrap_or_default();
        String::from_utf8_lossy(&[read("out"), read("err")].concat()).into_owned()
    }

    /// True when it has not ended.
    pub fn is_running(&mut self) -> bool {
        self.child.as_mut().is_some_and(|child| child.try_wait().expect("ours").is_none())
    }

    /// Waits until it printed something.
    #[track_caller]
    pub fn wait_for(&mut self, text: &str) {
        let since = Instant::now();
        while !self.printed().contains(text) {
            assert!(self.is_running() && since.elapsed() < PATIENCE, "no `{text}` in:\n{}", self.printed());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until there is a file at a path.
    #[track_caller]
    pub fn wait_for_file(&mut self, path: &Path) {
        let since = Instant::now();
        while !path.exists() {
            assert!(self.is_running() && since.elapsed() < PATIENCE, "no `{}`:\n{}", path.display(), self.printed());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// SIGKILL. True when it was still running.
    pub fn kill(&mut self) -> bool {
        let was_running = self.is_running();
        kill(self.pid());
        was_running
    }

    /// SIGINT, as Ctrl-C sends it.
    pub fn interrupt(&self) {
        interrupt(self.pid());
    }

    /// Waits for its end.
    #[track_caller]
    pub fn wait(mut self) -> Ran {
        let mut child = self.child.take().expect("not waited for yet");
        let since = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().expect("ours") {
                break status;
            }
            if since.elapsed() > PATIENCE {
                kill(child.id());
                let _ = child.wait();
                panic!("it did not end:\n{}", self.printed());
            }
            std::thread::sleep(Duration::from_millis(3));
        };
        let read = |what: &str| {
            String::from_utf8_lossy(&fs::read(self.output.with_extension(what)).unwrap_or_default()).into_owned()
        };
        Ran { status, stdout: read("out"), stderr: read("err") }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// SIGKILL.
pub fn kill(pid: u32) {
    signal(pid, rustix::process::Signal::KILL);
}

/// SIGINT.
pub fn interrupt(pid: u32) {
    signal(pid, rustix::process::Signal::INT);
}

/// SIGTERM, as a service manager sends it.
pub fn terminate(pid: u32) {
    signal(pid, rustix::process::Signal::TERM);
}

/// SIGSTOP: it sleeps until [`resume`].
pub fn stop(pid: u32) {
    signal(pid, rustix::process::Signal::STOP);
}

/// SIGCONT.
pub fn resume(pid: u32) {
    signal(pid, rustix::process::Signal::CONT);
}

fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw).expect("a process");
    let _ = rustix::process::kill_process(pid, signal);
}

fn private(directory: &Path) {
    fs::set_permissions(directory, fs::Permissions::from_mode(0o700)).expect("ours");
}
