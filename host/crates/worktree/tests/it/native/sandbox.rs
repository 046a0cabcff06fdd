//! Sandboxes of checks: what a check reaches at each level, and what its table opens to it.

use super::dependencies::{has_node, node_project};
use super::{host, run, shell};
use crate::repo::{Repo, read, write};
use expect_test::expect;
use longhaul_sandbox::Level;
use longhaul_worktree::{NativeCheck, pins, run_native};
use std::os::unix::fs::symlink;
use std::path::PathBuf;

/// The sandbox level here: each test states what holds in which.
async fn level() -> Level {
    run(&Repo::with(&[]), &shell("true")).await.unwrap().sandbox
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
async fn a_sandboxed_check_reaches_no_network_no_file_and_no_process_outside() {
    if level().await != Level::Full {
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
    let name = "native::sandbox::without_namespaces_a_check_runs_where_that_is_accepted_and_the_report_says_so";
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

/// A pull or a merge may make such a link, long after the person agreed.
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
