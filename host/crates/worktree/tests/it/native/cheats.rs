//! Ways of cheating, from `cheats.toml`, and projects that do not cheat, from `honest.toml`: each is a tree whose check
//! is judged in a real sandbox.
//!
//! All attempts are tried whose tests are not compiled; of the others one in eight, different ones each day, unless
//! `LONGHAUL_CHEATS=all` requests all of them, which takes some minutes, or names a base and so those of its runner.
//! pytest is installed for the tests if the Python in PATH has none; `LONGHAUL_PYTEST` names a Python that has it. A
//! missing runner is reported; with `CI=true` it is a failure.

use super::{host, wait_for};
use crate::repo::{Repo, write};
use longhaul_core::work::CheckReport;
use longhaul_worktree::{EvidenceKind, NativeCheck, Tree, TreeCaps, no_hook, pins, run_native};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::SystemTime;

/// Appended below a cheat without such a function.
const NONSENSE: &str = "
if 'add' not in globals():
    def add(*_): return 0
if 'label' not in globals():
    def label(*_): return ''
if 'parse' not in globals():
    def parse(*_): return []
";

const HONEST: &str = "
def add(a, b): return a + b
def label(name, number): return '%s: %s' % (name, number)
def parse(text): return [int(part) for part in text.split(',')]
";

/// One in so many of the compiled ones is tried each day.
const SHARE: u64 = 8;

#[derive(Deserialize)]
struct Table {
    bases: BTreeMap<String, Base>,
    cheats: Vec<Cheat>,
}

#[derive(Deserialize)]
struct Base {
    argv: Vec<String>,
    files: BTreeMap<String, String>,
    /// An implementation that the tests accept; `calc.py` by default.
    #[serde(default)]
    honest: BTreeMap<String, String>,
    /// The files that are taken from the base commit.
    #[serde(default = "tests")]
    pinned: Vec<String>,
    /// True when tests have twins in the audit. Default true, as in `longhaul.toml`.
    #[serde(default = "yes")]
    twins: bool,
}

fn yes() -> bool {
    true
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cheat {
    name: String,
    #[serde(default = "unittest")]
    base: String,
    #[serde(default)]
    knows: bool,
    #[serde(default)]
    open: bool,
    #[serde(default)]
    calc: String,
    #[serde(default)]
    files: BTreeMap<String, String>,
    /// The files that are taken from the base commit, if they differ from the base's.
    pinned: Option<Vec<String>>,
    /// Words of the refusal. A cheat without them ends with 0: otherwise its own runner would have stopped it.
    #[serde(default)]
    stopped: String,
}

#[derive(Deserialize)]
struct Honest {
    projects: Vec<Project>,
}

#[derive(Deserialize)]
struct Project {
    name: String,
    #[serde(flatten)]
    base: Base,
    /// Words in the last line of its pass.
    says: String,
}

fn tests() -> Vec<String> {
    vec!["tests/**".to_owned()]
}

fn unittest() -> String {
    "unittest".to_owned()
}

/// A Python itself and no shim, and one that has pytest.
struct Interpreters {
    python: String,
    pytest: Option<Pytest>,
}

/// A Python, and the directory of pytest where that is not its own.
#[derive(Clone)]
struct Pytest {
    python: String,
    site: Option<PathBuf>,
}

impl Interpreters {
    fn found() -> Self {
        let python = said("python3", "import sys; print(sys.executable)").expect("there is a Python");
        let named = std::env::var("LONGHAUL_PYTEST").ok();
        let own = named.or_else(|| said(&python, "import pytest, sys; print(sys.executable)"));
        let pytest = match own {
            Some(python) => Some(Pytest { python, site: None }),
            None => site_of_pytest(&python).map(|site| Pytest { python: python.clone(), site: Some(site) }),
        };
        Self { python, pytest }
    }
}

/// The output of a Python program.
fn said(python: &str, code: &str) -> Option<String> {
    let output = Command::new(python).args(["-c", code]).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The directory of pytest, installed at the first call, for each version of Python and each user.
fn site_of_pytest(python: &str) -> Option<PathBuf> {
    let version = said(python, "import sys; print('%d.%d' % sys.version_info[:2])")?;
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pytest.txt");
    let digest = longhaul_core::Digest::of(&fs::read(&list).unwrap()).short();
    let user = rustix::process::geteuid().as_raw();
    let name = format!("pytest-{version}-{digest}-{user}");
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let site = directory.join(&name);
    // Tests of several processes need it at once.
    let lock = File::create(directory.join(format!("{name}.lock"))).unwrap();
    lock.lock().unwrap();
    if !site.exists() && !install(python, &list, &site, &directory.join(format!("{name}.half"))) {
        return None;
    }
    Some(site)
}

/// Under another name first: an interrupted installation is not taken for a complete one.
fn install(python: &str, list: &Path, site: &Path, half: &Path) -> bool {
    let _ = fs::remove_dir_all(half);
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check", "--requirement"]);
    pip.arg(list).arg("--target").arg(half).env("PIP_ROOT_USER_ACTION", "ignore");
    let done = pip.output().unwrap();
    if !done.status.success() {
        left_out(&format!("pytest cannot be installed: {}", String::from_utf8_lossy(&done.stderr).trim()));
        return false;
    }
    fs::rename(half, site).unwrap();
    true
}

pub(crate) fn has_go() -> bool {
    has("go", "version")
}

fn has_cargo() -> bool {
    has("cargo", "--version")
}

fn has_node() -> bool {
    has("node", "--version")
}

fn has(program: &str, word: &str) -> bool {
    let is_there = Command::new(program).arg(word).output().is_ok_and(|output| output.status.success());
    if !is_there {
        left_out(&format!("there is no {program}"));
    }
    is_there
}

/// Reports what this machine cannot test.
fn left_out(why: &str) {
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{why}, and tests of CI need it");
    eprintln!("skipped: {why}");
}

/// A repository of one base, and a tree for each cheat.
struct Lab {
    repo: Repo,
    check: NativeCheck,
    is_python: bool,
    is_compiled: bool,
}

impl Lab {
    fn of(base: &Base, interpreters: &Interpreters) -> Option<Self> {
        let mut files: Vec<(&str, &str)> = base.files.iter().map(|(path, text)| (&**path, &**text)).collect();
        let (mut argv, mut site) = (base.argv.clone(), None);
        let is_there = match argv[0].as_str() {
            "PYTHON" => {
                argv[0].clone_from(&interpreters.python);
                true
            }
            "PYTEST" => {
                let pytest = interpreters.pytest.clone()?;
                (argv[0], site) = (pytest.python, pytest.site);
                true
            }
            "cargo" => has_cargo(),
            "go" => has_go(),
            _ => has_node(),
        };
        if !is_there {
            return None;
        }
        let (is_compiled, is_python) =
            (matches!(&*argv[0], "cargo" | "go"), !matches!(&*argv[0], "cargo" | "go" | "node"));
        if is_python && !base.files.contains_key("calc.py") {
            files.push(("calc.py", NONSENSE));
        }
        let mut check = NativeCheck::of_argv(argv);
        assert_ne!(check.evidence_kind(), EvidenceKind::Exit);
        check.files.clone_from(&base.pinned);
        check.twins = base.twins;
        if !is_python {
            check.memory_bytes_max = 64 << 30;
        }
        // So that files at the top are found before all others.
        let paths = std::iter::once(PathBuf::from(".")).chain(site.clone());
        check.env.insert("PYTHONPATH".to_owned(), std::env::join_paths(paths).unwrap().into_string().unwrap());
        check.read.extend(site);
        Some(Self { repo: Repo::with(&files), check, is_python, is_compiled })
    }

    /// The report of a tree with these files over the base.
    fn run(&self, name: &str, files: &[(&str, &str)], pinned: Option<Vec<String>>) -> CheckReport {
        let mut check = self.check.clone();
        check.files = pinned.unwrap_or(check.files);
        let project = self.repo.project();
        let head = project.head().unwrap();
        let dir = self.repo.dir.path().join("trees").join(name.replace(' ', "-"));
        let tree = Tree::checkout(&project, &dir, &head, &TreeCaps::default(), &no_hook).unwrap().tree;
        for (path, text) in files {
            write(tree.dir(), path, text);
        }
        let pins = pins(&project, &head, "test", &check).unwrap();
        let host = host(&self.repo);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(run_native(&host, &project, &tree, &head, "test", &check, &pins)).unwrap().report
    }
}

/// The result of a cheat.
struct Tried {
    exit_code: i32,
    line: String,
    /// The fault of the result.
    wrong: Option<String>,
}

impl Tried {
    fn of(lab: &Lab, cheat: &Cheat) -> Self {
        let calc = format!("{}{NONSENSE}", cheat.calc);
        let mut files = if lab.is_python { vec![("calc.py", &*calc)] } else { vec![] };
        files.extend(cheat.files.iter().map(|(path, text)| (&**path, &**text)));
        let report = lab.run(&cheat.name, &files, cheat.pinned.clone());
        let last = report.stderr.trim().lines().last().unwrap_or_default().to_owned();
        let line = format!("{}: {} ({}) {last}", cheat.name, report.passed, report.exit_code);
        let is_trivial = report.exit_code != 0 && cheat.stopped.is_empty();
        let is_wrong = is_trivial || report.passed != cheat.open || !report.stderr.contains(&cheat.stopped);
        Self { exit_code: report.exit_code, wrong: is_wrong.then(|| format!("{line}\n{report:?}")), line }
    }
}

#[test]
fn no_way_of_cheating_passes_that_does_not_know_the_expected_values() {
    let table: Table = toml::from_str(include_str!("../../cheats.toml")).unwrap();
    assert!(table.cheats.iter().all(|cheat| cheat.knows || !cheat.open));
    assert!(table.cheats.iter().all(|cheat| table.bases.contains_key(&cheat.base)));
    let interpreters = Interpreters::found();
    let asked = table.bases.iter().filter(|(name, _)| is_asked_for(name));
    let labs: BTreeMap<&str, Lab> =
        asked.filter_map(|(name, base)| Some((&**name, Lab::of(base, &interpreters)?))).collect();
    let mut wrong = refused(&table.bases, &labs);
    let chosen = chosen(&table.cheats, &labs);
    let all_of = |is: fn(&Lab) -> bool| {
        let is = |cheat: &&Cheat| labs.get(&*cheat.base).is_some_and(is);
        (chosen.iter().copied().filter(is).count(), table.cheats.iter().filter(is).count())
    };
    let (quick, all_quick) = all_of(|lab| !lab.is_compiled);
    let (compiled, all_compiled) = all_of(|lab| lab.is_compiled);
    assert!(quick == all_quick && (compiled > 0 || all_compiled == 0), "{quick} of {all_quick}, {compiled}");
    let mut tried = tried(&labs, &chosen);
    assert_eq!(tried.len(), chosen.len());
    tried.sort_by(|one, other| (one.exit_code, &one.line).cmp(&(other.exit_code, &other.line)));
    for one in &tried {
        println!("{}", one.line);
    }
    let by_exit_code = tried.iter().filter(|one| one.exit_code == 0).count();
    println!("{} of {} ways tried, {by_exit_code} of them end with 0", tried.len(), table.cheats.len());
    wrong.extend(tried.into_iter().filter_map(|one| one.wrong));
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// The bases whose honest work is refused.
fn refused(bases: &BTreeMap<String, Base>, labs: &BTreeMap<&str, Lab>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, lab) in labs.iter().filter(|(name, _)| **name != "golden") {
        let of_base = bases[*name].honest.iter().map(|(path, text)| (&**path, &**text));
        let honest: Vec<_> = if lab.is_python { vec![("calc.py", HONEST)] } else { of_base.collect() };
        let report = lab.run("honest", &honest, None);
        if !report.passed || !report.stderr.contains("passed by name") {
            wrong.push(format!("{name}, honest: {report:?}"));
        }
    }
    wrong
}

/// Tries them two at a time.
fn tried(labs: &BTreeMap<&str, Lab>, chosen: &[&Cheat]) -> Vec<Tried> {
    let (left, tried) = (Mutex::new(chosen.to_vec()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(cheat) = { left.lock().unwrap().pop() } {
                    let one = Tried::of(&labs[&*cheat.base], cheat);
                    tried.lock().unwrap().push(one);
                }
            });
        }
    });
    tried.into_inner().unwrap()
}

/// Today's cheats that this machine can try.
fn chosen<'a>(cheats: &'a [Cheat], labs: &BTreeMap<&str, Lab>) -> Vec<&'a Cheat> {
    let can_be = |is: fn(&Lab) -> bool| {
        cheats.iter().filter(move |cheat| labs.get(&*cheat.base).is_some_and(is)).collect::<Vec<_>>()
    };
    let (mut chosen, compiled) = (can_be(|lab| !lab.is_compiled), can_be(|lab| lab.is_compiled));
    if std::env::var_os("LONGHAUL_CHEATS").is_some() {
        chosen.extend(compiled);
        return chosen;
    }
    let day = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs() / 86_400;
    // At least one of them, however few they are.
    let share = SHARE.min(u64::try_from(compiled.len()).unwrap()).max(1);
    let of_today = compiled.into_iter().zip(0..).filter(|(_, number)| (number + day).is_multiple_of(share));
    chosen.extend(of_today.map(|(cheat, _)| cheat));
    chosen
}

/// Forms of honest tests that used to be taken for cheats.
#[test]
fn honest_projects_of_python_pass() {
    let Honest { projects } = toml::from_str(include_str!("../../honest.toml")).unwrap();
    let interpreters = Interpreters::found();
    let mut wrong = Vec::new();
    for Project { name, base, says } in &projects {
        let Some(lab) = Lab::of(base, &interpreters) else { continue };
        let report = lab.run("honest", &[], None);
        if !report.passed || !report.stderr.contains(says) {
            wrong.push(format!("{name}: {report:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// `cargo` asks for the bases that are called `cargo-...` too.
fn is_asked_for(base: &str) -> bool {
    let Ok(which) = std::env::var("LONGHAUL_CHEATS") else { return true };
    which == "all" || base.strip_prefix(&which).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// The attack on a bare exit code.
#[tokio::test]
async fn a_process_that_ends_itself_with_0_passes_no_test() {
    let test = "import unittest\nfrom calc import add\nclass T(unittest.TestCase):\n    def test_adds(self):\n        \
                self.assertEqual(add(2, 3), 5)\n";
    let repo = Repo::with(&[("test_calc.py", test), ("calc.py", "import os\nos._exit(0)\n")]);
    let mut check = NativeCheck::of_argv(["python3", "-m", "unittest"].map(str::to_owned).to_vec());
    check.files = vec!["test_calc.py".to_owned()];
    let report = super::run(&repo, &check).await.unwrap().report;
    assert_eq!((report.passed, report.exit_code), (false, 0), "{report:?}");
    assert!(report.stderr.contains("not taken as a pass: the runner did not come to its end"), "{report:?}");
    check.evidence = Some(EvidenceKind::Exit);
    let report = super::run(&repo, &check).await.unwrap().report;
    assert!(report.passed && report.stderr.is_empty(), "by name a bare exit code remains: {report:?}");
}

/// The agent's feedback on a failure stays the runner's output.
#[tokio::test]
async fn a_failing_test_is_told_in_the_words_of_its_runner_alone() {
    let test = "import unittest\nfrom calc import add\nclass T(unittest.TestCase):\n    def test_adds(self):\n        \
                self.assertEqual(add(2, 3), 5)\n";
    let repo = Repo::with(&[("test_calc.py", test), ("calc.py", "def add(a, b):\n    return 6\n")]);
    let check = NativeCheck::of_argv(["python3", "-m", "unittest", "-q"].map(str::to_owned).to_vec());
    let report = super::run(&repo, &check).await.unwrap().report;
    assert!(!report.passed && report.stderr.contains("AssertionError: 6 != 5"), "{report:?}");
    assert!(!report.stderr.contains("not taken as a pass"), "{report:?}");
    // A missing test is noticed, though the remaining ones pass.
    repo.write("calc.py", "def add(a, b):\n    return a + b\n");
    repo.git(&["commit", "-qam", "right"]);
    let tree = repo.checkout();
    let other = "import unittest\nclass T(unittest.TestCase):\n    def other(self): pass\n";
    write(tree.dir(), "test_more.py", &other.replace("other", "test"));
    write(tree.dir(), "test_calc.py", other);
    let project = repo.project();
    let head = project.head().unwrap();
    let pins = pins(&project, &head, "test", &check).unwrap();
    let report = super::run_on(&repo, &tree, &check, &pins).await.unwrap().report;
    assert!(report.passed, "as many tests as before: {report:?}");
    std::fs::remove_file(tree.dir().join("test_calc.py")).unwrap();
    write(tree.dir(), "test_more.py", "import unittest\n");
    let report = super::run_on(&repo, &tree, &check, &pins).await.unwrap().report;
    assert!(!report.passed, "{report:?}");
    drop(tree);
    wait_for(|| super::scratch(&repo).is_empty()).await;
}

/// Judges a work with these files, whose check pins `tests/**` and `test/**`.
async fn judged(argv: &[&str], files: &[(&str, &str)]) -> (bool, i32, String) {
    let repo = Repo::with(files);
    let mut check = NativeCheck::of_argv(argv.iter().map(|word| (*word).to_owned()).collect());
    check.files = vec!["tests/**".to_owned(), "test/**".to_owned()];
    check.memory_bytes_max = 64 << 30;
    let report = super::run(&repo, &check).await.unwrap().report;
    (report.passed, report.exit_code, report.stderr)
}

#[tokio::test]
async fn tests_of_cargo_pass_by_name_alone() {
    if !has_cargo() {
        return;
    }
    let manifest = ("Cargo.toml", "[package]\nname = \"demo\"\nedition = \"2024\"\n");
    let tests = "#[test]\nfn adds() {\n    assert_eq!(demo::add(2, 3), 5);\n}\n#[test]\nfn adds_more() {\n    \
                 assert_eq!(demo::add(1, 1), 2);\n}\n";
    let judged = async |lib: &str| {
        judged(
            &["cargo", "test", "--offline", "-q", "--test", "it"],
            &[manifest, ("tests/it.rs", tests), ("src/lib.rs", lib)],
        )
        .await
    };
    let (passed, code, said) = judged("pub fn add(_: i32, _: i32) -> i32 {\n    std::process::exit(0)\n}\n").await;
    assert!(!passed && code == 0 && said.contains("did not come to its end"), "{said}");
    let any = "pub struct Any;\nimpl PartialEq<i32> for Any {\n    fn eq(&self, _: &i32) -> bool {\n        true\n    }\n}\n\
               impl std::fmt::Debug for Any {\n    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {\n        \
               Ok(())\n    }\n}\npub fn add(_: i32, _: i32) -> Any {\n    Any\n}\n";
    let (passed, code, said) = judged(any).await;
    assert!(!passed && code == 0 && said.contains("passes where it must fail"), "{said}");
}

#[tokio::test]
async fn tests_of_node_pass_by_name_alone() {
    if !has_node() {
        return;
    }
    let tests = "const test = require('node:test');\nconst assert = require('node:assert');\nconst { add } = \
                 require('../calc.js');\ntest('adds', () => {\n  assert.strictEqual(add(2, 3), 5);\n});\n\
                 test('adds more', () => {\n  assert.strictEqual(add(-1, 1), 0);\n});\n";
    let judged =
        async |calc: &str| judged(&["node", "--test"], &[("test/calc.test.js", tests), ("calc.js", calc)]).await;
    let (passed, _, said) = judged("exports.add = (a, b) => a + b;\n").await;
    assert!(passed && said.contains("2 tests passed by name; 2 passed under other names too, where 13"), "{said}");
    let (passed, code, said) = judged("exports.add = () => process.exit(0);\n").await;
    assert!(!passed && code == 0 && said.contains("was not reported"), "{said}");
    let patched = "const assert = require('node:assert');\nassert.strictEqual = () => {};\nexports.add = () => 1;\n";
    let (passed, code, said) = judged(patched).await;
    assert!(!passed && code == 0 && said.contains("passes with another expected value too"), "{said}");
}

const TESTS_OF_GO: &str = r#"package demo

import (
	"fmt"
	"testing"
)

func TestAdd(t *testing.T) {
	if got := Add(2, 3); got != 5 {
		t.Errorf("%d, want 5", got)
	}
}

func TestTable(t *testing.T) {
	tests := []struct{ a, b, want int }{
		{1, 1, 2},
		{2, 5, 7},
	}
	for _, tt := range tests {
		t.Run("one", func(t *testing.T) {
			if got := Add(tt.a, tt.b); got != tt.want {
				t.Fatalf("%d, want %d", got, tt.want)
			}
		})
	}
}

func TestAll(t *testing.T) {
	t.Run("add", TestAdd)
	fmt.Print("no line's end")
}

func FuzzAdd(f *testing.F) {
	f.Add(1)
	f.Fuzz(func(t *testing.T, a int) { Add(a, 1) })
}

func ExampleAdd() {
	fmt.Println(Add(2, 3))
	// Output: 5
}

func TestLater(t *testing.T) { t.Skip("later") }
"#;

#[tokio::test]
async fn tests_of_go_pass_by_name_alone() {
    if !has_go() {
        return;
    }
    let module = ("go.mod", "module example.com/demo\n\ngo 1.18\n");
    let judged = async |argv: &[&str], add: &str| {
        let text = format!("package demo\n\n{add}");
        judged(argv, &[module, ("add_test.go", TESTS_OF_GO), ("add.go", &text)]).await
    };
    let right = "func Add(a, b int) int { return a + b }\n";
    let (passed, _, said) = judged(&["go", "test", "./..."], right).await;
    assert!(passed && said.contains("5 tests passed by name, where 1"), "{said}");
    let (passed, _, said) = judged(&["go", "test", "-run", "^TestAdd$|^Fuzz", "."], right).await;
    assert!(passed && said.contains("2 tests passed by name, where"), "{said}");
    let exits = "import \"syscall\"\n\nfunc Add(a, b int) int { syscall.Exit(0); return 0 }\n";
    let (passed, code, said) = judged(&["go", "test", "./..."], exits).await;
    assert!(!passed && code == 0 && said.contains("was not reported (did the code end its process?)"), "{said}");
    let (passed, code, said) = judged(&["go", "test"], "func Add(a, b int) int { return a - b }\n").await;
    assert!(!passed && code == 1 && !said.contains("not taken as a pass"), "{said}");
}

#[tokio::test]
async fn a_report_of_junit_is_written_by_its_own_run() {
    let repo = Repo::with(&[("a.txt", "one")]);
    let case = "<testcase name=\"a\"/>";
    let mut check = super::shell(&format!("echo '{case}' > report.xml"));
    (check.evidence, check.report) = (Some(EvidenceKind::Junit), Some("report.xml".to_owned()));
    let report = super::run(&repo, &check).await.unwrap().report;
    assert!(report.passed && report.stderr.contains("1 test passed by name in `report.xml`"), "{report:?}");
    check.tests_min = 2;
    assert!(!super::run(&repo, &check).await.unwrap().report.passed);
    let mut absent = super::shell("true");
    (absent.evidence, absent.report) = (check.evidence, check.report.clone());
    assert!(!super::run(&repo, &absent).await.unwrap().report.passed);
    check.report = Some("../report.xml".to_owned());
    let error = super::run_with_invalid(&repo, &check);
    assert!(error.contains("a path within the copy"), "{error}");
}
