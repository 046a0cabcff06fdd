//! Native checks: their copies, their sandboxes, and their reports at a limit.

mod cheats;
mod go;

use crate::repo::{Repo, read, write};
use expect_test::{Expect, expect};
use longhaul_sandbox::{Level, SandboxHost};
use longhaul_worktree::{NativeCheck, NativeError, NativeReport, PinnedFiles, Tree, pins, run_native};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The example of `sandbox` that stands in for the `longhaul` command.
fn child() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().parent().unwrap().join("examples/sandbox_child")
}

fn host(repo: &Repo) -> SandboxHost {
    let scratch = repo.dir.path().join("scratch");
    std::fs::create_dir_all(&scratch).unwrap();
    let hidden = vec![repo.dir.path().join("hidden")];
    let (program, checkout, cache) = (child(), Some(repo.root()), Some(shared_cache()));
    SandboxHost { program, prefix_args: vec![], scratch, cache, hidden, checkout, level_min: Level::None, redact: None }
}

/// The cache of all tests of a user, so that one of them compiles Go's standard library.
fn shared_cache() -> PathBuf {
    let name = format!("checks-{}", rustix::process::geteuid().as_raw());
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn shell(script: &str) -> NativeCheck {
    NativeCheck::of_argv(["sh", "-c", script].map(str::to_owned).to_vec())
}

async fn run_with(repo: &Repo, check: &NativeCheck, pins: &PinnedFiles) -> Result<NativeReport, NativeError> {
    let report = run_on(repo, &repo.checkout(), check, pins).await;
    // The tree no longer exists, and neither does its copy.
    wait_for(|| scratch(repo).is_empty()).await;
    report
}

async fn run_on(
    repo: &Repo,
    tree: &Tree,
    check: &NativeCheck,
    pins: &PinnedFiles,
) -> Result<NativeReport, NativeError> {
    let project = repo.project();
    run_native(&host(repo), &project, tree, &project.head().unwrap(), "test", check, pins).await
}

/// The directories of checks.
fn scratch(repo: &Repo) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(repo.dir.path().join("scratch")).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// Cleaning continues in the background.
async fn wait_for(is_done: impl Fn() -> bool) {
    for _ in 0..500 {
        if is_done() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the copy was not tidied");
}

async fn run(repo: &Repo, check: &NativeCheck) -> Result<NativeReport, NativeError> {
    let project = repo.project();
    let pins = pins(&project, &project.head().unwrap(), "test", check).unwrap();
    run_with(repo, check, &pins).await
}

/// The refusal of a check before it runs.
fn run_with_invalid(repo: &Repo, check: &NativeCheck) -> String {
    let project = repo.project();
    pins(&project, &project.head().unwrap(), "test", check).unwrap_err().to_string()
}

/// Runs a script on a repository and shows the report.
async fn check(repo: &Repo, script: &str, expected: Expect) -> NativeReport {
    let done = run(repo, &shell(script)).await.unwrap();
    let report = &done.report;
    expected.assert_eq(&format!("{} {}\n{}---\n{}", report.passed, report.exit_code, report.stdout, report.stderr));
    done
}

/// The sandbox level here: each test states what holds in which.
async fn sandbox() -> Level {
    run(&Repo::with(&[]), &shell("true")).await.unwrap().sandbox
}

#[tokio::test]
async fn a_check_sees_exactly_what_would_be_committed() {
    let repo = Repo::with(&[("a.txt", "one"), ("gone", "x"), ("d/same", "same"), (".gitignore", "target/\n")]);
    repo.write("local.txt", "only in the user's checkout");
    let tree = repo.checkout();
    write(tree.dir(), "a.txt", "agent");
    write(tree.dir(), "new/b.txt", "new");
    write(tree.dir(), "target/cache", "ignored");
    std::fs::remove_file(tree.dir().join("gone")).unwrap();
    let done = check(
        &repo,
        "find . -type f | sort; cat a.txt d/same; echo err >&2; exit 3",
        expect![[r"
            false 3
            ./.gitignore
            ./a.txt
            ./d/same
            ./new/b.txt
            agentsame---
            err
        "]],
    )
    .await;
    let project = repo.project();
    assert_eq!(done.subject, tree.scan(&project, &project.head().unwrap()).unwrap().digest);
}

#[tokio::test]
async fn a_check_changes_neither_the_tree_nor_the_repository() {
    let repo = Repo::with(&[("a.txt", "one")]);
    let before = repo.users_view();
    check(&repo, "echo changed > a.txt; rm -rf .git; echo x > $HOME/y; echo x > $TMPDIR/y", expect![["true 0\n---\n"]])
        .await;
    assert_eq!(repo.users_view(), before);
    assert_eq!(read(&repo.tree_dir(), "a.txt"), "one");
}

/// A tree whose checks each get one script, on the copy of the previous one.
struct Again {
    repo: Repo,
    tree: Tree,
}

impl Again {
    fn of(files: &[(&str, &str)]) -> Self {
        let repo = Repo::with(files);
        let tree = repo.checkout();
        Self { repo, tree }
    }

    /// Returns the inode and the birth time of the script's directory, and its output: inodes are reused.
    async fn run(&self, script: &str) -> (String, String) {
        let check = shell(&format!("stat -c '%i %w' .; {script}; echo left > ../left"));
        let project = self.repo.project();
        let pins = pins(&project, &project.head().unwrap(), "test", &check).unwrap();
        let report = run_on(&self.repo, &self.tree, &check, &pins).await.unwrap().report;
        wait_for(|| scratch(&self.repo).iter().all(|dir| !dir.join("left").exists())).await;
        let (directory, output) = report.stdout.split_once('\n').expect("the directory comes first");
        (directory.to_owned(), format!("{output}{}", report.stderr))
    }
}

#[tokio::test]
async fn what_a_check_leaves_does_not_reach_the_next() {
    let again = Again::of(&[("a.txt", "one"), ("d/e/f", "deep"), ("g", "x"), ("h", "y")]);
    let (first, _) = again
        .run(
            "mkdir -p new/dir; echo x > new/dir/x; ln -s /etc d/there; mkdir d/i; chmod 711 d; touch -d 2001-01-01 d; \
             echo x > $HOME/x; echo x > $TMPDIR/x; mkfifo pipe",
        )
        .await;
    // Changes of the agent in between arrive too.
    write(again.tree.dir(), "i/new", "agent");
    let script = "find . | sort; cat a.txt d/e/f g h i/new; ls -A $HOME $TMPDIR; stat -c '%a %y' d";
    let (mut second, mut seen) = again.run(script).await;
    // The copy may not be back yet when the next check needs it.
    for _ in 0..50 {
        if second == first {
            break;
        }
        (second, seen) = again.run(script).await;
    }
    assert_eq!(first, second, "the same directory");
    let listed = seen.split_once("./i/new\n").expect("the agent's file").0;
    assert_eq!(listed.lines().collect::<Vec<_>>(), [".", "./a.txt", "./d", "./d/e", "./d/e/f", "./g", "./h", "./i"]);
    assert!(seen.contains("onedeepxyagent"), "{seen}");
    assert!(!seen.contains("\nx\n") && seen.contains("755 ") && !seen.contains("2001"), "{seen}");
}

#[tokio::test]
async fn a_directory_in_which_a_check_changed_what_was_there_is_given_to_no_other() {
    let again = Again::of(&[("a.txt", "one"), ("d/e/f", "deep"), ("g", "x"), ("h", "y")]);
    for script in ["printf two > a.txt", "mv d/e d/moved; ln -s /etc d/e", "rm g; mkdir g; echo x > g/x", "chmod 0 h"] {
        let (first, said) = again.run(script).await;
        let (second, seen) = again.run("find . -type f | sort; cat a.txt d/e/f g h").await;
        assert!(first != second && seen == "./a.txt\n./d/e/f\n./g\n./h\nonedeepxy", "{script}: {said} {seen}");
    }
}

#[tokio::test]
async fn a_directory_that_a_check_marked_is_given_to_no_other() {
    for script in ["chmod 2755 d", "chmod 1777 .", "chmod 300 d", "setfattr -n user.seen -v 1 d"] {
        let again = Again::of(&[("d/f", "x")]);
        let (first, said) = again.run(script).await;
        if said.contains("not found") || said.contains("not supported") {
            continue;
        }
        let (second, seen) = again.run("stat -c %a . d; cat d/f").await;
        assert!(first != second && seen.ends_with('x') && seen.starts_with("755\n755"), "{script}: {said} {seen}");
    }
}

#[tokio::test]
async fn pinned_files_come_from_the_base_whatever_lies_in_the_tree() {
    let repo =
        Repo::with(&[("src/a", "one"), ("tests/test_a", "strict"), ("tests/deep/b", "strict"), ("tests/c", "strict")]);
    let tree = repo.checkout();
    write(tree.dir(), "src/a", "agent");
    write(tree.dir(), "tests/test_a", "weak");
    write(tree.dir(), "tests/conftest.py", "skip all");
    std::fs::remove_file(tree.dir().join("tests/c")).unwrap();
    std::fs::remove_dir_all(tree.dir().join("tests/deep")).unwrap();
    symlink("../src", tree.dir().join("tests/deep")).unwrap();
    let mut pinned = shell("find . -type f | sort | xargs grep -H .");
    pinned.files = vec!["tests/**".to_owned(), "absent/**".to_owned()];
    let project = repo.project();
    let base = project.head().unwrap();
    let pins_then = pins(&project, &base, "test", &pinned).unwrap();
    assert_eq!(pins_then.files, ["tests/c", "tests/deep/b", "tests/test_a"]);
    assert!(pins_then.notes[0].contains("`absent/**` matches no file"), "{:?}", pins_then.notes);
    let done = run_with(&repo, &pinned, &pins_then).await.unwrap();
    expect![[r"
        ./src/a:agent
        ./tests/c:strict
        ./tests/deep/b:strict
        ./tests/test_a:strict
    "]]
    .assert_eq(&done.report.stdout);
    pinned.argv[2] = "true".to_owned();
    let error = run_with(&repo, &pinned, &pins_then).await.unwrap_err();
    assert!(matches!(error, NativeError::NotPinned { .. }), "{error}");
}

#[tokio::test]
async fn files_of_a_test_runner_are_pinned_unasked() {
    let repo = Repo::with(&[("conftest.py", "strict"), ("pyproject.toml", "old"), ("src/a", "old")]);
    let tree = repo.checkout();
    for path in ["conftest.py", "tests/conftest.py", "pyproject.toml", "sitecustomize.py", "lib/x.pth", "src/a"] {
        write(tree.dir(), path, "agent");
    }
    let project = repo.project();
    let run = async |check: &NativeCheck| {
        let pins = pins(&project, &project.head().unwrap(), "test", check).unwrap();
        run_on(&repo, &tree, check, &pins).await.unwrap().report
    };
    let mut check = shell("grep -r . | sort");
    let report = run(&check).await;
    assert_eq!(report.stdout, "conftest.py:strict\npyproject.toml:agent\nsrc/a:agent\n");
    expect![[r"
        changes to `conftest.py`, `lib/x.pth`, `sitecustomize.py`, `tests/conftest.py` were not seen by this check: files of a test runner are taken from the base commit; to allow one, name it in `unpinned` of [checks.test]
    "]]
    .assert_eq(&report.stderr);
    // A project without one is not affected.
    check.unpinned = vec!["**".into()];
    let report = run(&check).await;
    assert_eq!((report.stdout.lines().count(), report.stderr.as_str()), (6, ""), "{report:?}");
}

#[tokio::test]
async fn the_environment_is_empty_but_for_what_a_program_needs() {
    let repo = Repo::with(&[]);
    let mut check = shell(
        "env | cut -d= -f1 | grep -v -E '^(CARGO|RUSTUP|PYENV|GO)' | grep -v -e '^_$' -e PWD -e SHLVL | sort; echo $MINE; pwd",
    );
    check.env.insert("MINE".to_owned(), "a value".to_owned());
    let done = run(&repo, &check).await.unwrap();
    if done.sandbox == Level::Full {
        assert_eq!(done.report.stdout, "HOME\nLANG\nMINE\nPATH\nTMPDIR\na value\n/tmp/work\n");
    }
}

#[tokio::test]
async fn a_check_at_its_deadline_is_killed_with_all_it_started() {
    let repo = Repo::with(&[]);
    let mark = repo.dir.path().join("scratch/alive");
    // Others may run this test at the same time.
    let own = std::process::id();
    let mut check = shell(&format!("(sleep 30.{own}; echo late) & setsid sleep 31.{own} & echo begun; sleep 32.{own}"));
    check.wall_ms_max = 700;
    let started = Instant::now();
    let done = run(&repo, &check).await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(6), "{:?}", started.elapsed());
    assert!(!mark.exists());
    expect![["limit `wall_ms_max` reached: 700 of 700; raise it in [checks.test], or make the check use less\n"]]
        .assert_eq(&done.report.stderr);
    assert_eq!((done.report.passed, done.report.exit_code, done.report.stdout.as_str()), (false, -1, "begun\n"));
    let left = std::process::Command::new("pgrep").args(["-f", &format!("sleep 3[012].{own}")]).output().unwrap();
    if done.sandbox != Level::None {
        assert_eq!(String::from_utf8_lossy(&left.stdout), "");
    }
}

#[tokio::test]
async fn what_a_check_leaves_running_neither_delays_nor_outlives_it() {
    let repo = Repo::with(&[]);
    let started = Instant::now();
    let done = run(&repo, &shell("sleep 60 & echo done")).await.unwrap();
    assert!(done.report.passed && done.report.stdout == "done\n", "{done:?}");
    assert!(started.elapsed() < Duration::from_secs(8), "{:?}", started.elapsed());
}

#[tokio::test]
async fn limits_are_named_where_the_kernel_names_them() {
    let repo = Repo::with(&[]);
    let mut memory = NativeCheck::of_argv(["python3", "-c", "x = bytearray(1 << 30)"].map(str::to_owned).to_vec());
    memory.memory_bytes_max = 256 << 20;
    let done = run(&repo, &memory).await.unwrap();
    assert!(!done.report.passed && done.report.stderr.contains("MemoryError"), "{done:?}");
    let mut disk = shell("exec dd if=/dev/zero of=big bs=1M count=64 2>/dev/null");
    disk.disk_bytes_max = 16 << 20;
    let done = run(&repo, &disk).await.unwrap();
    assert_eq!(done.report.exit_code, -1, "{done:?}");
    let mut cpu = shell("while :; do :; done");
    cpu.wall_ms_max = 1_000;
    assert_eq!(run(&repo, &cpu).await.unwrap().report.exit_code, -1);
}

#[tokio::test]
async fn what_a_program_reserves_is_not_what_it_may_write_to() {
    let repo = Repo::with(&[]);
    let code = "import mmap\n\
                def take(bytes, more=0):\n    return mmap.mmap(\n        -1, bytes, flags=mmap.MAP_PRIVATE | \
                mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ | more)\n\
                held = [take(8 << 30) for _ in range(8)]\nprint('reserved', flush=True)\n\
                for bytes, more in [(1 << 40, 0), (1 << 30, mmap.PROT_WRITE)]:\n    try: held.append(take(bytes, more))\n    \
                except OSError as error: print(error.errno)\n";
    let mut python = NativeCheck::of_argv(["python3", "-c", code].map(str::to_owned).to_vec());
    python.memory_bytes_max = 256 << 20;
    let done = run(&repo, &python).await.unwrap();
    assert_eq!(done.report.stdout, "reserved\n12\n12\n", "{done:?}");
    if !has_node() {
        eprintln!("skipped: there is no node");
        return;
    }
    // With the defaults of a check.
    let usual =
        "new WebAssembly.Memory({ initial: 1 }); fetch('http://127.0.0.1:9').catch(() => console.log('fetched'))";
    for (script, passed) in [(usual, true), ("new ArrayBuffer(3 * 2 ** 30)", false)] {
        let done = run(&repo, &NativeCheck::of_argv(["node", "-e", script].map(str::to_owned).to_vec())).await.unwrap();
        assert_eq!((done.report.passed, done.report.stdout.contains("fetched")), (passed, passed), "{done:?}");
    }
}

#[tokio::test]
async fn output_is_cut_in_the_middle_and_made_text() {
    let repo = Repo::with(&[]);
    let mut long = shell("printf 'first\\377'; head -c 3000000 /dev/zero | tr '\\0' x; printf last; printf 'e' >&2");
    long.output_bytes_max = 40;
    let done = run(&repo, &long).await.unwrap();
    assert!(done.report.passed && done.report.truncated, "{done:?}");
    assert_eq!(
        done.report.stdout,
        format!("first\u{fffd}{}\n[2999970 bytes left out]\n{}last", "x".repeat(14), "x".repeat(16))
    );
    assert_eq!(done.report.stderr, "e");
}

#[tokio::test]
async fn a_sandboxed_check_reaches_no_network_no_file_and_no_process_outside() {
    if sandbox().await != Level::Full {
        eprintln!("skipped: this system has no namespaces for us");
        return;
    }
    let repo = Repo::with(&[("a.txt", "one")]);
    let outside = repo.dir.path().join("outside.txt");
    std::fs::write(&outside, "the user's").unwrap();
    write(repo.dir.path(), "hidden/secret", "secret");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let script = format!(
        "cat /proc/net/dev | grep -c eth; \
         python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}))' 2>&1 | tail -1; \
         (echo evil > {outside}) 2>/dev/null || echo absent; \
         (echo evil > {home}/evil-of-a-check) 2>/dev/null || echo home too; \
         ls {hidden} 2>/dev/null | wc -l; \
         python3 -c 'import socket as s; l = s.create_server((\"127.0.0.1\", 0)); s.create_connection(l.getsockname())' && echo but itself; \
         kill -0 {pid} 2>/dev/null || echo no such process; \
         mount -o remount,rw / 2>/dev/null || echo no mounts; \
         grep CapEff /proc/self/status | cut -f2; grep NoNewPrivs /proc/self/status | cut -f2; \
         ls /dev | tr '\\n' ' '",
        port = listener.local_addr().unwrap().port(),
        outside = outside.display(),
        home = std::env::var("HOME").unwrap(),
        hidden = repo.dir.path().join("hidden").display(),
        pid = std::process::id(),
    );
    let done = run(&repo, &shell(&script)).await.unwrap();
    assert_eq!(done.sandbox, Level::Full);
    assert!(done.report.stdout.starts_with("0\n"), "{}", done.report.stdout);
    expect![[r"
        0
        ConnectionRefusedError: [Errno 111] Connection refused
        absent
        home too
        0
        but itself
        no such process
        no mounts
        0000000000000000
        1
        fd full null ptmx pts random shm stderr stdin stdout urandom zero "]]
    .assert_eq(&done.report.stdout);
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "the user's");
}

/// A machine without namespaces, simulated on one with them: this test as another process.
#[test]
fn without_namespaces_a_check_runs_where_that_is_accepted_and_the_report_says_so() {
    let name = "native::without_namespaces_a_check_runs_where_that_is_accepted_and_the_report_says_so";
    if std::env::var_os("LONGHAUL_TEST_HOST").is_some() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        return runtime.block_on(run_without_namespaces());
    }
    // Root loses the right to make them, a user gets a limit of zero.
    let script = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$0\" \"$@\"";
    let wrapper = match rustix::process::geteuid().is_root() {
        true => vec!["setpriv", "--bounding-set=-sys_admin"],
        false => vec!["unshare", "-U", "-c", "--keep-caps", "sh", "-c", script],
    };
    let mut host = std::process::Command::new(wrapper[0]);
    host.args(&wrapper[1..]).arg(std::env::current_exe().unwrap()).args([name, "--exact"]);
    let ran = host.env("LONGHAUL_TEST_HOST", "1").output().unwrap();
    assert!(ran.status.success(), "{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
}

async fn run_without_namespaces() {
    let repo = Repo::with(&[("a.txt", "one")]);
    // Without mounts of its own the check has to reach its copy by its path.
    std::fs::set_permissions(repo.dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let sleep = format!("sleep 40.{}", std::process::id());
    let mut check = shell(&format!("cat a.txt; pwd; (setsid {sleep} &) ; {sleep} & exec {sleep}"));
    check.wall_ms_max = 700;
    let done = run(&repo, &check).await.unwrap();
    assert_eq!((done.sandbox, done.report.exit_code), (Level::Landlock, -1), "{done:?}");
    assert_eq!(done.report.sandbox.as_deref(), Some("landlock"));
    assert!(done.report.stderr.contains("held by the sandbox level `landlock`"), "{done:?}");
    assert!(done.report.stdout.starts_with("one") && done.report.stdout.ends_with("/work\n"), "{done:?}");
    let left = std::process::Command::new("pgrep").args(["-x", "-f", &sleep]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&left.stdout), "");
    let (repo, check) = node_project();
    std::fs::set_permissions(repo.dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let done = run(&repo, &check).await.unwrap();
    assert!(done.sandbox == Level::Landlock && (done.report.passed || !has_node()), "{done:?}");
    run(&repo, &shell("rm -r node_modules/*; echo evil > node_modules/dep/index.js")).await.unwrap();
    assert!(read(&repo.root(), "node_modules/dep/index.js").starts_with("import"));
}

/// Stands in for the child of a machine that gives `full` once and less from then on, as when the first run of a check
/// uses up a limit of the kernel: runs programs bare.
fn child_that_falls_back(repo: &Repo, python: &str) -> (PathBuf, Vec<String>) {
    let code = "import json, os, sys\nspec, mark = json.loads(sys.argv[1]), 'LONGHAUL_OF_PROGRAM_'\nos.chdir('work')\n\
                env = {name[len(mark):]: value for name, value in os.environ.items() if name.startswith(mark)}\n\
                os.execvpe(spec['argv'][0], spec['argv'], env)\n";
    let script = format!(
        "case \"$1\" in *'\"level\":\"full\"'*) \
         if [ -e {mark} ]; then echo 'longhaul-check: refused it is used up' >&2; exit 126; fi; : > {mark};; esac; \
         echo 'longhaul-check: ready' >&2; exec {python} -c \"$0\" \"$1\"",
        mark = repo.dir.path().join("mark").display(),
    );
    ("/bin/sh".into(), vec!["-c".to_owned(), script, code.to_owned()])
}

#[tokio::test]
async fn a_check_is_told_to_be_held_by_the_least_that_held_one_of_its_runs() {
    let test = "import unittest\n\nclass Test(unittest.TestCase):\n    def test_adds(self):\n        \
                self.assertEqual(1 + 2, 3)\n";
    let repo = Repo::with(&[("tests/__init__.py", ""), ("tests/test_a.py", test)]);
    let output = std::process::Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
    let python = String::from_utf8(output.unwrap().stdout).unwrap().trim().to_owned();
    let words = [python.as_str(), "-m", "unittest", "discover", "-s", "tests", "-t", "."];
    let check = NativeCheck::of_argv(words.map(str::to_owned).to_vec());
    let mut host = host(&repo);
    (host.program, host.prefix_args) = child_that_falls_back(&repo, &python);
    let (project, tree) = (repo.project(), repo.checkout());
    let base = project.head().unwrap();
    let pins = pins(&project, &base, "test", &check).unwrap();
    let done = run_native(&host, &project, &tree, &base, "test", &check, &pins).await.unwrap();
    assert!(repo.dir.path().join("mark").exists(), "the first run was held by all: {done:?}");
    assert_eq!((done.sandbox, done.report.sandbox.as_deref()), (Level::Namespaces, Some("namespaces")), "{done:?}");
    let told = "this check was held by the sandbox level `namespaces`, and not by `full`\n";
    assert!(done.report.stderr.contains(told), "{done:?}");
}

/// Ignored by git, so that no copy has it, and not activated, so that PATH does not name it.
#[tokio::test]
async fn a_virtual_environment_of_the_checkout_runs_checks_that_name_its_program() {
    let test = "import unittest\nimport dependency\n\nclass Test(unittest.TestCase):\n    def test_doubles(self):\n        \
                self.assertEqual(dependency.double(2), 4)\n";
    let repo = Repo::with(&[(".gitignore", ".venv\n.env\n"), ("tests/__init__.py", ""), ("tests/test_a.py", test)]);
    let venv = repo.root().join(".venv");
    let made = std::process::Command::new("/usr/bin/python3").args(["-m", "venv", "--without-pip"]).arg(&venv).output();
    if !made.is_ok_and(|made| made.status.success()) {
        eprintln!("skipped: this Python makes no environments");
        return;
    }
    let packages = venv.join("lib").read_dir().unwrap().next().unwrap().unwrap().path().join("site-packages");
    write(&packages, "dependency.py", "def double(number):\n    return 2 * number\n");
    repo.write(".env", "SECRET");
    let check = |words: &[&str]| NativeCheck::of_argv(words.iter().map(|word| (*word).to_owned()).collect());
    for program in [".venv/bin/python", "./.venv/bin/python3"] {
        let done =
            run(&repo, &check(&[program, "-m", "unittest", "discover", "-s", "tests", "-t", "."])).await.unwrap();
        assert!(done.report.passed && done.report.stderr.contains("1 test passed by name"), "{program}: {done:?}");
    }
    let look = format!("import sys\nprint(sys.prefix)\nopen('{}')", repo.root().join(".env").display());
    let done = run(&repo, &check(&[".venv/bin/python", "-c", &look])).await.unwrap();
    assert_eq!(done.report.stdout.trim(), venv.display().to_string(), "{done:?}");
    assert!(done.report.stderr.contains("No such file"), "nothing beside it is seen: {done:?}");
    // A repository may bring these along: a foreign environment, and the checkout as one.
    std::fs::rename(&venv, repo.dir.path().join("elsewhere")).unwrap();
    symlink("../elsewhere", &venv).unwrap();
    repo.write("pyvenv.cfg", "home = /usr/bin\n");
    std::fs::create_dir(repo.root().join("bin")).unwrap();
    symlink("/usr/bin/python3", repo.root().join("bin/python")).unwrap();
    for program in [".venv/bin/python", "bin/python", "tests/../.venv/bin/python"] {
        let error = run(&repo, &check(&[program, "-c", "0"])).await.unwrap_err().to_string();
        assert!(error.contains(&format!("cannot find the program `{program}`")), "{error}");
    }
}

#[tokio::test]
async fn a_check_reads_what_its_table_names() {
    let repo = Repo::with(&[]);
    write(repo.dir.path(), "hidden/key", "key");
    let key = repo.dir.path().join("hidden/key");
    let mut check = shell(&format!("cat {}", key.display()));
    assert!(!run(&repo, &check).await.unwrap().report.passed);
    check.read = vec![key];
    let done = run(&repo, &check).await.unwrap();
    assert_eq!((done.report.stdout.as_str(), done.report.exit_code), ("key", 0), "{done:?}");
}

/// As a pull or a merge may make it, long after the person agreed.
#[tokio::test]
async fn a_grant_of_the_project_is_no_way_to_what_a_link_in_it_leads_to() {
    let repo = Repo::with(&[("docs/page", "page")]);
    write(repo.dir.path(), "keys/page", "SECRET");
    symlink("docs", repo.root().join("within")).unwrap();
    symlink("../keys", repo.root().join("out")).unwrap();
    let (root, keys) = (repo.root(), repo.dir.path().canonicalize().unwrap().join("keys"));
    let full = root.join("out").display().to_string();
    for (read, seen, expected) in [
        ("docs", root.join("docs"), Some("page")),
        ("within", root.join("within"), Some("page")),
        ("../keys", repo.dir.path().join("keys"), Some("SECRET")),
        ("out", root.join("out"), None),
        (full.as_str(), root.join("out"), None),
    ] {
        let mut check = shell(&format!("cat {}/page", seen.display()));
        check.read = vec![read.into()];
        match (run(&repo, &check).await, expected) {
            (Ok(done), Some(text)) => assert_eq!(done.report.stdout, text, "{read}: {done:?}"),
            (Err(error), None) => {
                let told = format!("leads out of the project by a link, to `{}`; to allow it, name", keys.display());
                assert!(error.to_string().contains(&told), "{read}: {error}");
            }
            (ran, _) => panic!("{read}: {ran:?}"),
        }
    }
}

#[tokio::test]
async fn cargo_test_runs_in_the_sandbox() {
    let manifest = "[package]\nname = \"demo\"\nedition = \"2024\"\n";
    let lib = "#[test]\nfn holds() {\n    assert_eq!(std::fs::read_to_string(\"a.txt\").unwrap(), \"one\");\n}\n";
    let repo = Repo::with(&[("Cargo.toml", manifest), ("src/lib.rs", lib), ("a.txt", "one")]);
    let check = NativeCheck::of_argv(["cargo", "test", "--offline", "--quiet"].map(str::to_owned).to_vec());
    let done = run(&repo, &check).await.unwrap();
    assert!(done.report.passed && done.report.stdout.contains("1 passed"), "{done:?}");
    assert!(done.report.stderr.contains("1 test passed by name"), "{done:?}");
    write(repo.checkout().dir(), "a.txt", "two");
    let done = run(&repo, &check).await.unwrap();
    assert_eq!((done.report.passed, done.report.exit_code), (false, 101), "{done:?}");
}

/// The version of a dependency in this workspace's lock file, if the user's registry has it unpacked.
fn registered(name: &str) -> Option<(String, String)> {
    let lock = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../Cargo.lock")).unwrap();
    let package = lock.split("\n\n").find(|package| package.contains(&format!("name = \"{name}\"\n")))?;
    let version = package.lines().find_map(|line| line.strip_prefix("version = \"")?.strip_suffix('"'))?;
    let in_home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo"));
    let registry = std::env::var_os("CARGO_HOME").map(PathBuf::from).or_else(in_home)?.join("registry");
    let has = |kind: &str, path: &str| {
        let indexes = registry.join(kind).read_dir().into_iter().flatten().flatten();
        indexes.map(|index| index.path().join(path)).any(|path| path.exists())
    };
    let unpacked = format!("{name}-{version}/.cargo-ok");
    let is_there = has("src", &unpacked) && has("index", &format!(".cache/{}/{}/{name}", &name[..2], &name[2..4]));
    is_there.then(|| (package.to_owned(), version.to_owned()))
}

#[tokio::test]
async fn cargo_test_runs_in_the_sandbox_with_a_crate_of_the_registry() {
    let Some((package, version)) = registered("itoa") else {
        eprintln!("skipped: the registry does not hold itoa as this workspace has it");
        return;
    };
    let manifest = format!("[package]\nname = \"demo\"\nedition = \"2024\"\n[dependencies]\nitoa = \"={version}\"\n");
    let lock = format!(
        "# This file is automatically @generated by Cargo.\n# It is not intended for manual editing.\nversion = 4\n\n\
         [[package]]\nname = \"demo\"\nversion = \"0.0.0\"\ndependencies = [\n \"itoa\",\n]\n\n{}\n",
        package.trim_end(),
    );
    let lib = "#[test]\nfn formats() {\n    assert_eq!(itoa::Buffer::new().format(42), \"42\");\n}\n";
    let repo = Repo::with(&[("Cargo.toml", &*manifest), ("Cargo.lock", &*lock), ("src/lib.rs", lib)]);
    let words = ["cargo", "test", "--offline", "--locked", "--quiet"];
    let done = run(&repo, &NativeCheck::of_argv(words.map(str::to_owned).to_vec())).await.unwrap();
    assert!(done.report.passed && done.report.stderr.contains("1 test passed by name"), "{done:?}");
}

fn has_node() -> bool {
    std::process::Command::new("node").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// A project whose dependency, with one of its own, is installed in the user's checkout and ignored.
fn node_project() -> (Repo, NativeCheck) {
    let test = "import test from 'node:test';\nimport assert from 'node:assert';\nimport { add } from '../calc.js';\n\
                test('adds', () => {\n  assert.strictEqual(add(2, 3), 5);\n});\n";
    let repo = Repo::with(&[
        (".gitignore", "node_modules/\n"),
        ("package.json", r#"{"type": "module", "dependencies": {"dep": "1"}}"#),
        ("calc.js", "import { plus } from 'dep';\nexport const add = plus;\n"),
        ("test/calc.test.js", test),
    ]);
    for (name, code) in [
        ("dep", "import { zero } from 'other';\nexport const plus = (a, b) => a + b + zero;\n"),
        ("other", "export const zero = 0;\n"),
    ] {
        let package = format!(r#"{{"name": "{name}", "type": "module", "exports": "./index.js"}}"#);
        repo.write(&format!("node_modules/{name}/package.json"), &package);
        repo.write(&format!("node_modules/{name}/index.js"), code);
    }
    (repo, NativeCheck::of_argv(["node", "--test"].map(str::to_owned).to_vec()))
}

#[tokio::test]
async fn modules_import_dependencies_that_are_installed_in_the_checkout() {
    if !has_node() {
        eprintln!("skipped: there is no node");
        return;
    }
    let (repo, check) = node_project();
    let done = run(&repo, &check).await.unwrap();
    assert!(done.report.passed && done.report.stderr.contains("1 test passed by name"), "{done:?}");
}

#[tokio::test]
async fn dependencies_of_the_checkout_are_read_only_and_no_part_of_the_work() {
    const LISTED: &str = "dep\nother\nindex.js\npackage.json\n";
    let (repo, _) = node_project();
    let tree = repo.checkout();
    let project = repo.project();
    let script = shell(
        "ls node_modules; touch node_modules/dep/new; echo broken >> node_modules/dep/index.js; ls node_modules/dep/; \
         echo cache > node_modules/.cache; rm -rf node_modules; mkdir node_modules; git status 2>/dev/null",
    );
    let pins = pins(&project, &project.head().unwrap(), "test", &script).unwrap();
    let before = tree.scan(&project, &project.head().unwrap()).unwrap().digest;
    for _ in 0..3 {
        let done = run_on(&repo, &tree, &script, &pins).await.unwrap();
        assert_eq!((done.report.stdout.as_str(), &done.subject), (LISTED, &before), "{done:?}");
        wait_for(|| scratch(&repo).iter().all(|dir| !dir.join("work/node_modules").exists())).await;
    }
    let code = read(&repo.root(), "node_modules/dep/index.js");
    assert!(code.starts_with("import") && !code.contains("broken"), "{code}");
    assert!(!repo.root().join("node_modules/.cache").exists());
}

#[tokio::test]
async fn a_package_of_the_workspace_is_that_of_the_work() {
    let (repo, _) = node_project();
    symlink("../packages/own", repo.root().join("node_modules/own")).unwrap();
    repo.write("packages/own/index.js", "of the checkout");
    write(repo.checkout().dir(), "packages/own/index.js", "of the work");
    let done = run(&repo, &shell("cat node_modules/own/index.js")).await.unwrap();
    assert_eq!(done.report.stdout, "of the work", "{done:?}");
}

/// As repositories may bring them along when they do not ignore them, and as a checkout may have them.
#[tokio::test]
async fn dependencies_are_no_way_to_what_lies_elsewhere() {
    let (repo, _) = node_project();
    write(repo.dir.path(), "hidden/key", "SECRET");
    std::fs::remove_dir_all(repo.root().join("node_modules")).unwrap();
    symlink(repo.dir.path().join("hidden"), repo.root().join("node_modules")).unwrap();
    let look = shell("ls -a node_modules; cat node_modules/key");
    let done = run(&repo, &look).await.unwrap();
    assert!(!done.report.stdout.contains("key") && !done.report.stdout.contains("SECRET"), "{done:?}");
    std::fs::remove_file(repo.root().join("node_modules")).unwrap();
    repo.write("node_modules/.keep", "");
    symlink(repo.dir.path().join("hidden"), repo.root().join("node_modules/out")).unwrap();
    let done = run(&repo, &shell("ls -a node_modules; cat node_modules/out/key")).await.unwrap();
    assert!(done.report.stdout.contains("out") && !done.report.stdout.contains("SECRET"), "{done:?}");
    // The project's own directory stays its own.
    write(repo.checkout().dir(), ".gitignore", "");
    write(repo.checkout().dir(), "node_modules/own", "own");
    let done = run(&repo, &shell("ls -A node_modules; cat node_modules/own")).await.unwrap();
    assert_eq!(done.report.stdout, "own\nown", "{done:?}");
}

/// A module with a version of its own, in a module cache that go filled itself, and one that needs it.
fn module_cache(dir: &std::path::Path) -> Vec<(&'static str, String)> {
    let proxy = dir.join("proxy/example.com/dep/@v");
    std::fs::create_dir_all(&proxy).unwrap();
    let module = "module example.com/dep\n\ngo 1.18\n";
    std::fs::write(proxy.join("list"), "v1.2.3\n").unwrap();
    std::fs::write(proxy.join("v1.2.3.info"), r#"{"Version":"v1.2.3","Time":"2024-01-01T00:00:00Z"}"#).unwrap();
    std::fs::write(proxy.join("v1.2.3.mod"), module).unwrap();
    let code = "import sys, zipfile\nwith zipfile.ZipFile(sys.argv[1], 'w') as file:\n    for name, text in \
                zip(sys.argv[2::2], sys.argv[3::2]): file.writestr('example.com/dep@v1.2.3/' + name, text)\n";
    let dep = "package dep\n\nfunc Twice(a int) int { return 2 * a }\n";
    let zip = proxy.join("v1.2.3.zip");
    let words = [std::ffi::OsStr::new("-c"), code.as_ref(), zip.as_os_str()];
    let words = words.into_iter().chain(["go.mod", module, "dep.go", dep].map(std::ffi::OsStr::new));
    assert!(std::process::Command::new("python3").args(words).status().unwrap().success());
    let files = [
        ("go.mod", "module example.com/demo\n\ngo 1.18\n\nrequire example.com/dep v1.2.3\n"),
        ("demo.go", "package demo\n\nimport \"example.com/dep\"\n\nfunc Four() int { return dep.Twice(2) }\n"),
        (
            "demo_test.go",
            "package demo\n\nimport \"testing\"\n\nfunc TestFour(t *testing.T) {\n\tif got := Four(); got != 4 {\n\
             \t\tt.Error(got)\n\t}\n}\n",
        ),
    ];
    let demo = dir.join("demo");
    std::fs::create_dir(&demo).unwrap();
    files.iter().for_each(|(name, text)| std::fs::write(demo.join(name), text).unwrap());
    let filled = std::process::Command::new("go")
        .args(["mod", "tidy"])
        .current_dir(&demo)
        .env("GOPROXY", format!("file://{}", dir.join("proxy").display()))
        .env("GOMODCACHE", dir.join("cache"))
        .envs([("GOSUMDB", "off"), ("GOTOOLCHAIN", "local"), ("GOFLAGS", "-modcacherw")])
        .status();
    assert!(filled.unwrap().success());
    let names = ["go.mod", "go.sum", "demo.go", "demo_test.go"];
    names.iter().map(|name| (*name, std::fs::read_to_string(demo.join(name)).unwrap())).collect()
}

/// With the defaults of a check, except the path of the module cache.
#[tokio::test]
async fn go_test_runs_in_the_sandbox_with_a_module_of_the_cache() {
    if !cheats::has_go() {
        eprintln!("skipped: there is no go");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let files = module_cache(dir.path());
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, &**text)).collect();
    let repo = Repo::with(&files);
    let cache = dir.path().join("cache").display().to_string();
    for words in [&["go", "build", "./..."][..], &["go", "vet", "./..."], &["go", "test", "./..."]] {
        let mut check = NativeCheck::of_argv(words.iter().map(|word| (*word).to_owned()).collect());
        check.env.insert("GOMODCACHE".to_owned(), cache.clone());
        assert!(!run(&repo, &check).await.unwrap().report.passed, "a variable shows nothing");
        check.read = vec![cache.clone().into()];
        let done = run(&repo, &check).await.unwrap();
        assert!(done.report.passed, "{words:?}: {done:?}");
        let said = &done.report.stderr;
        assert!(words[1] != "test" || said.contains("1 test passed by name, where 5 that must fail did"), "{done:?}");
        check.env.remove("GOMODCACHE");
        check.read.clear();
        assert!(!run(&repo, &check).await.unwrap().report.passed, "the dependency comes from nowhere else");
    }
    let mut check = shell("touch \"$GOMODCACHE/new\"");
    check.env.insert("GOMODCACHE".to_owned(), cache.clone());
    check.read = vec![cache.into()];
    assert!(!run(&repo, &check).await.unwrap().report.passed, "the cache is read-only");
}

#[tokio::test]
async fn a_check_that_cannot_be_run_is_an_error_that_says_what_to_do() {
    let repo = Repo::with(&[]);
    let project = repo.project();
    let base = project.head().unwrap();
    let told = |error: NativeError| error.to_string();
    let absent = NativeCheck::of_argv(vec!["no-such-program-here".to_owned()]);
    expect!["check `test` cannot find the program `no-such-program-here`; install it, or give its full path"]
        .assert_eq(&told(run(&repo, &absent).await.unwrap_err()));
    let refused = |check: &NativeCheck| told(pins(&project, &base, "test", check).unwrap_err());
    expect![[r#"check `test` has no program; write for example: argv = ["cargo", "test"]"#]]
        .assert_eq(&refused(&NativeCheck::of_argv(vec![])));
    let mut lazy = shell("true");
    lazy.wall_ms_max = 0;
    expect!["check `test` may use no time or no memory; remove the limit or set it above 0"].assert_eq(&refused(&lazy));
    expect!["check `test` has a word or variable that no program can be given; remove NUL, and `=` from names"]
        .assert_eq(&refused(&shell("a\0b")));
    let mut host = host(&repo);
    host.program = "/bin/true".into();
    let check = shell("true");
    let pins = pins(&project, &base, "test", &check).unwrap();
    let error = run_native(&host, &project, &repo.checkout(), &base, "test", &check, &pins).await.unwrap_err();
    expect!["check `test` could not be run: the child said nothing; this is the host's fault and not the program's"]
        .assert_eq(&told(error));
}

#[test]
fn a_check_is_written_as_a_list_or_a_table() {
    let read = |text: &str| serde_json::from_str::<NativeCheck>(text);
    assert_eq!(read(r#"["cargo", "test"]"#).unwrap(), NativeCheck::of_argv(vec!["cargo".into(), "test".into()]));
    let table = read(r#"{"argv": ["pytest"], "files": ["tests/**"], "wall_ms_max": 5}"#).unwrap();
    assert_eq!((table.files[0].as_str(), table.wall_ms_max, table.processes_max), ("tests/**", 5, 256));
    expect!["unknown field `arg`, expected one of `argv`, `files`, `evidence`, `twins`, `report`, `tests_min`, `unpinned`, `env`, `read`, `wall_ms_max`, `memory_bytes_max`, `output_bytes_max`, `processes_max`, `disk_bytes_max` at line 1 column 6"]
        .assert_eq(&read(r#"{"arg": ["pytest"]}"#).unwrap_err().to_string());
    expect![[r#"invalid type: integer `3`, expected a list of words, such as ["cargo", "test"], or a table with `argv` at line 1 column 1"#]].assert_eq(&read("3").unwrap_err().to_string());
}

/// The host is killed in the middle of a check: its children end too.
#[test]
fn a_check_ends_with_the_host() {
    if std::env::var_os("LONGHAUL_TEST_HOST").is_some() {
        let repo = Repo::with(&[]);
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let _ = runtime.block_on(run(&repo, &shell("setsid sleep 47; sleep 47")));
        return;
    }
    let mut host = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["native::a_check_ends_with_the_host", "--exact"])
        .env("LONGHAUL_TEST_HOST", "1")
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let running =
        || !std::process::Command::new("pgrep").args(["-x", "-f", "sleep 47"]).output().unwrap().stdout.is_empty();
    let wait_for = |wanted: bool| {
        let started = Instant::now();
        while running() != wanted && started.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(20));
        }
        running()
    };
    assert!(wait_for(true), "the check did not start");
    host.kill().unwrap();
    host.wait().unwrap();
    assert!(!wait_for(false), "the check outlived its host");
}
