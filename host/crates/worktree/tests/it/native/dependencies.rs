//! Dependencies that are installed in the checkout: an environment of Python, and modules of Node.js.

use super::{run, run_on, scratch, shell, wait_for};
use crate::repo::{Repo, read, write};
use longhaul_worktree::{NativeCheck, pins};
use std::os::unix::fs::symlink;

/// The environment is ignored by git, so that no copy has it, and not activated, so that PATH does not name it.
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

pub(super) fn has_node() -> bool {
    std::process::Command::new("node").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// A project whose dependency, with one of its own, is installed in the user's checkout and ignored.
pub(super) fn node_project() -> (Repo, NativeCheck) {
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

/// A repository may bring such links along when it does not ignore them, and a checkout may have them.
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
