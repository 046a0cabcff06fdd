//! A repository, a tree of it, things outside that must stay as they are, and the tools on them.

use longhaul_core::tool::{HostTool, ToolCall, ToolInfo};
use longhaul_core::{Clock, InvocationId};
use longhaul_sandbox::{Level, SandboxHost};
use longhaul_tools::ToolRoot;
use longhaul_worktree::{Tree, TreeCaps, UserRepository, no_hook};
use serde_json::{Value, json};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// The content of a file outside of the tree.
pub const SECRET: &str = "TOP-SECRET-LINE";

/// Programs that most tests list.
const PROGRAMS: &[&str] = &["ls", "cat", "sh", "bash", "env", "sleep", "yes"];

pub struct Lab {
    dir: tempfile::TempDir,
    listener: TcpListener,
}

struct Noon;

impl Clock for Noon {
    fn now_ms(&self) -> u64 {
        1_700_000_000_000
    }
}

impl Lab {
    pub fn new() -> Self {
        // Not in `/tmp`, which programs do not see: what they see and may not touch is to be tested.
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let lab = Self { dir, listener };
        for name in ["repo", "outside/sub", "hidden", "scratch"] {
            std::fs::create_dir_all(lab.at(name)).unwrap();
        }
        std::fs::write(lab.at("outside/secret.txt"), SECRET).unwrap();
        std::fs::write(lab.at("hidden/key"), SECRET).unwrap();
        std::fs::write(lab.at("repo/a.txt"), "one\n").unwrap();
        lab.git(&["init", "-q", "-b", "main"]);
        lab.commit("start");
        lab.git(&["checkout", "-q", "-b", "private"]);
        std::fs::write(lab.at("repo/private.txt"), SECRET).unwrap();
        lab.commit("private");
        lab.git(&["checkout", "-q", "main"]);
        // Commands that a diff or a commit of git's own would start.
        let evil = format!("touch {}", lab.at("outside/escaped").display());
        for key in ["diff.evil.command", "diff.external", "filter.evil.clean", "core.fsmonitor"] {
            lab.git(&["config", key, &evil]);
        }
        let project = UserRepository::open(&lab.at("repo")).unwrap();
        Tree::checkout(&project, &lab.tree(), &project.head().unwrap(), &TreeCaps::default(), &no_hook).unwrap();
        lab
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn tree(&self) -> PathBuf {
        self.at("trees/r-1")
    }

    pub fn outside(&self) -> PathBuf {
        self.at("outside")
    }

    pub fn repo(&self) -> PathBuf {
        self.at("repo")
    }

    pub fn hidden(&self) -> PathBuf {
        self.at("hidden")
    }

    pub fn port(&self) -> u16 {
        self.listener.local_addr().unwrap().port()
    }

    pub fn private(&self) -> String {
        self.git(&["rev-parse", "private"]).trim().to_owned()
    }

    pub fn git(&self, args: &[&str]) -> String {
        let mut command = Command::new("git");
        command.args([
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@t",
            "-c",
            "core.fsmonitor=false",
            "-c",
            "diff.external=",
        ]);
        let ran = command.args(args).current_dir(self.at("repo")).output().unwrap();
        assert!(ran.status.success(), "{args:?}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap()
    }

    fn commit(&self, message: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", message]);
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.tree().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub fn link(&self, target: impl AsRef<Path>, name: &str) {
        std::os::unix::fs::symlink(target, self.tree().join(name)).unwrap();
    }

    pub fn pipe(&self, name: &str) {
        let made = Command::new("mkfifo").arg(self.tree().join(name)).status().unwrap();
        assert!(made.success());
    }

    pub fn deep(&self, levels: usize) {
        self.write(&format!("{}x", "d/".repeat(levels)), "x");
    }

    /// A program of an agent's, under a name of the list.
    pub fn evil_ls(&self) {
        use std::os::unix::fs::PermissionsExt;
        self.write("ls", "#!/bin/sh\necho EVIL\n");
        std::fs::set_permissions(self.tree().join("ls"), std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub fn host(&self) -> SandboxHost {
        // The example of `sandbox` that stands in for the command.
        let test = std::env::current_exe().unwrap();
        let program = test.parent().unwrap().parent().unwrap().join("examples/sandbox_child");
        let (scratch, hidden, checkout) = (self.at("scratch"), vec![self.hidden()], Some(self.repo()));
        let level_min = Level::Full;
        SandboxHost { program, prefix_args: vec![], scratch, cache: None, hidden, checkout, level_min, redact: None }
    }

    fn place(&self) -> ToolRoot {
        ToolRoot {
            project: self.at("repo"),
            tree: self.tree(),
            branch: "longhaul/kept".into(),
            host: self.host(),
            clock: Arc::new(Noon),
        }
    }

    pub fn tool(&self, name: &str, settings: &Value) -> Arc<dyn HostTool> {
        let mut settings = settings.clone();
        if name == "shell" && settings["programs"].is_null() {
            settings["programs"] = json!(PROGRAMS);
        }
        longhaul_tools::open(name, &settings, &self.place()).unwrap()
    }

    pub async fn info(&self, name: &str) -> ToolInfo {
        self.tool(name, &json!({})).info(name).await.unwrap()
    }

    /// The answer or the error, as text.
    pub async fn call(&self, tool: &str, function: &str, arguments: &Value, settings: &Value) -> String {
        self.call_as("key", tool, function, arguments, settings).await
    }

    pub async fn call_as(&self, key: &str, tool: &str, function: &str, arguments: &Value, settings: &Value) -> String {
        let call = ToolCall { tool: tool.to_owned(), function: function.to_owned(), arguments: arguments.to_string() };
        let caller = InvocationId::from_text("r-000000000001/f-one/1/generate");
        match self.tool(tool, settings).call(&call, &caller, key, 1).await {
            Ok(output) => output.output,
            Err(error) => error.to_string(),
        }
    }

    pub async fn call_with(&self, programs: &[&str], arguments: &Value) -> String {
        self.call("shell", "run", arguments, &json!({ "programs": programs })).await
    }

    /// Files outside are unchanged, and no outside host was reached.
    #[track_caller]
    pub fn untouched(&self, name: &str) {
        assert!(!self.at("outside/escaped").exists(), "{name} wrote outside");
        assert_eq!(std::fs::read_to_string(self.at("outside/secret.txt")).unwrap(), SECRET, "{name}");
        assert!(self.listener.accept().is_err(), "{name} reached the machine");
        let refs = self.git(&["for-each-ref", "--format=%(refname)", "refs/heads"]);
        assert_eq!(refs, "refs/heads/main\nrefs/heads/private\n", "{name} moved a branch");
    }
}

/// No `sleep` of these arguments runs any more. Each attempt has numbers of its own, since others run beside it.
#[track_caller]
pub fn ended(name: &str, arguments: &Value) {
    let arguments = arguments.to_string();
    let numbers = arguments.split(|letter: char| !letter.is_ascii_digit());
    let marks: Vec<&str> = numbers.filter(|number| number.starts_with(MARK)).collect();
    // The kernel ends what was in a namespace after its first process: not at once.
    for _ in 0..100 {
        if running(&marks).is_empty() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("{name} left {:?}", running(&marks));
}

/// The first digits of the seconds that attempts sleep for.
const MARK: &str = "77700";

/// Command lines of processes that sleep for one of these.
fn running(marks: &[&str]) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.starts_with("sleep ") && marks.iter().any(|mark| line.contains(mark)))
        .collect()
}
