//! pytest and unittest.
//!
//! Three runs: the operator's own command with a report of each test; a preparation, which collects with stubs in place
//! of the work and rewrites the test files, and in which no code of the work runs; and the audit of the rewritten
//! files. Only the host knows which names of the audit must fail. Refuses a report that is not signed or has no passed
//! test, a runner that was changed while it ran, and test files with fewer tests than the base commit has.

use super::kind::{EvidenceKind, base_name, pytest_word, python_module};
use super::record::{Outcome, RECORD, Reported, fresh_key, opened};
use super::runner::{CheckFiles, CheckVerdict, JudgeStep, JudgedCheck, Launch, ProgramEnd, Runner};
use longhaul_core::text::count;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const PARENT: &str = include_str!("python/longhaul_parent.py");
const REPORT: &str = include_str!("python/longhaul_report.py");
const AUDIT: &str = include_str!("python/longhaul_audit.py");
/// Shared with the plugin `python`, whose checks are audited as well.
const TWINS: &str = include_str!("longhaul_twins.py");

/// The plugin, as arguments of pytest.
const PLUGIN: [&str; 2] = ["-p", "longhaul_report"];

/// The program that replaces unittest.
const PROGRAM: &str = "../judge/longhaul_report.py";

/// Bytes of test files of the base commit that are compared; more are not counted.
const BASE_BYTES_MAX: usize = 8 << 20;

pub(crate) struct Python {
    argv: Vec<String>,
    kind: EvidenceKind,
    twins: bool,
    pinned: Vec<String>,
    test_files: Vec<String>,
    base_files: BaseFiles,
    new_files: Vec<String>,
    random: StdRng,
    key: String,
    stage: Stage,
}

enum Stage {
    Start,
    Run,
    /// The passed tests, by name without parameters, with their number; and the others.
    Prepare(BTreeMap<String, usize>, BTreeSet<String>),
    Audit(Box<Prepared>, usize),
}

/// The result of the preparation.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Prepared {
    /// Tests by name without parameters, with the least number of each.
    expected: BTreeMap<String, usize>,
    /// Tests that may be skipped.
    skips: BTreeSet<String>,
    /// Words of the command that name files.
    args: Vec<String>,
    /// Tests of the base commit's files, and of the same files now.
    base_count: usize,
    count: usize,
    /// The files of the audit.
    files: BTreeMap<String, String>,
    names: BTreeMap<String, Name>,
    renamed: usize,
    renamable: usize,
    modules: Value,
    literals: Value,
}

/// A name of the audit.
#[derive(Debug, Deserialize)]
struct Name {
    kind: NameKind,
    /// The original test; empty for a canary.
    of: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum NameKind {
    Real,
    /// A real test that reads its own name, so that it need not pass under another one.
    Named,
    /// A twin of such a test, whose setup may fail already.
    NamedTwin,
    Twin,
}

impl Python {
    pub(crate) fn of(check: &JudgedCheck<'_>) -> Self {
        let paths = check.files.paths();
        let pinned = check.files.pinned().into_iter().collect::<BTreeSet<_>>();
        let base = check.files.base_paths().into_iter().collect::<BTreeSet<_>>();
        let test_files: Vec<String> = paths.into_iter().filter(|path| is_test_file(path)).collect();
        let new_files = test_files.iter().filter(|path| !base.contains(*path)).cloned().collect();
        Self {
            argv: check.argv.to_vec(),
            kind: check.kind,
            twins: check.twins,
            test_files,
            base_files: BaseFiles::of(check.files, &pinned),
            pinned: pinned.into_iter().collect(),
            new_files,
            random: StdRng::from_seed(check.seed),
            key: String::new(),
            stage: Stage::Start,
        }
    }

    fn launch(&mut self, mode: &str, argv: Vec<String>, more: &Value) -> Launch {
        self.key = fresh_key(&mut self.random);
        let mut plan = json!({ "key": self.key, "mode": mode, "argv": argv, "kept": self.pinned });
        if let (Some(plan), Some(more)) = (plan.as_object_mut(), more.as_object()) {
            plan.extend(more.clone());
        }
        let files = [
            ("longhaul_parent.py", PARENT.to_owned()),
            ("longhaul_report.py", REPORT.to_owned()),
            ("longhaul_audit.py", AUDIT.to_owned()),
            ("longhaul_twins.py", TWINS.to_owned()),
            ("plan.json", plan.to_string()),
        ];
        let argv = [&self.interpreter(), "-I", "-S", "../judge/longhaul_parent.py"].map(str::to_owned).to_vec();
        Launch {
            argv,
            beside: files.into_iter().map(|(name, text)| (name.to_owned(), text.into_bytes())).collect(),
            reads: vec![RECORD.to_owned()],
            ..Launch::default()
        }
    }

    /// The interpreter of the parent: any Python works, so the check's own if it is named.
    fn interpreter(&self) -> String {
        let first = self.argv.first().map_or("", String::as_str);
        if base_name(first).starts_with("python") {
            return first.to_owned();
        }
        let beside = Path::new(first).parent().filter(|dir| dir.is_absolute()).map(|dir| dir.join("python3"));
        let beside = beside.filter(|python| python.exists()).and_then(|python| python.to_str().map(str::to_owned));
        beside.unwrap_or_else(|| "python3".to_owned())
    }

    /// The operator's command with a report of each test.
    fn reporting(&self) -> Vec<String> {
        let mut argv = self.argv.clone();
        if let (EvidenceKind::Unittest, Some(at)) = (self.kind, python_module(&argv)) {
            argv.splice(at - 1..=at, [PROGRAM.to_owned()]);
        } else if let Some(at) = pytest_word(&argv) {
            argv.splice(at + 1..at + 1, PLUGIN.map(str::to_owned));
        }
        argv
    }

    fn collecting(&self) -> Vec<String> {
        let mut argv = self.reporting();
        if self.kind == EvidenceKind::Pytest {
            argv.extend(["--collect-only", "-p", "no:cacheprovider"].map(str::to_owned));
        }
        argv
    }

    /// The same command on the rewritten files: nothing is deselected, and the first failure ends nothing.
    fn auditing(&self, prepared: &Prepared) -> Vec<String> {
        let mut argv = self.reporting();
        if self.kind == EvidenceKind::Unittest {
            return without_patterns(argv).iter().map(|word| module_of(word, &prepared.files)).collect();
        }
        let start = pytest_word(&argv).map_or(0, |at| at + 1);
        let words = argv.split_off(start);
        argv.extend(words.into_iter().filter(|word| !prepared.args.contains(word)));
        argv.extend(prepared.files.keys().cloned());
        argv.extend(["--maxfail=0", "-k", "", "-m", ""].map(str::to_owned));
        argv
    }

    fn prepare(&mut self, ended: &ProgramEnd) -> JudgeStep {
        if ended.exit_code != 0 {
            return CheckVerdict::failed();
        }
        let reported: Reported = match self.record(ended) {
            Ok(reported) => reported,
            Err(why) => return CheckVerdict::refused(why),
        };
        let (mut passed, mut others) = (BTreeMap::new(), BTreeSet::new());
        for (id, outcome) in reported.tests() {
            let name = without_parameters(id).to_owned();
            match outcome {
                Outcome::Passed => *passed.entry(name).or_insert(0) += 1,
                Outcome::Skipped => _ = others.insert(name),
                Outcome::Failed | Outcome::Broken => {
                    return CheckVerdict::refused(format!("`{id}` did not pass, and the exit code is 0"));
                }
            }
        }
        if passed.is_empty() {
            return CheckVerdict::refused("no test passed, which shows nothing");
        }
        let wholly: Vec<&String> = passed.keys().filter(|name| !others.contains(*name)).collect();
        let more = json!({
            "test_files": self.test_files, "base_files": self.base_files.changed, "same": self.base_files.same,
            "new_files": self.new_files, "passed": wholly, "twins": self.twins,
        });
        let launch = self.launch("prepare", self.collecting(), &more);
        self.stage = Stage::Prepare(passed, others);
        JudgeStep::Launch(launch)
    }

    fn audit(&mut self, ended: &ProgramEnd, passed: &BTreeMap<String, usize>, others: &BTreeSet<String>) -> JudgeStep {
        let body = ended.files.get(RECORD).and_then(|bytes| opened(bytes, &self.key));
        let Some(prepared) = body.and_then(|body| serde_json::from_slice::<Prepared>(body).ok()) else {
            let said = ended.stderr.trim().lines().last().unwrap_or("nothing");
            return CheckVerdict::refused(format!("its tests could not be collected: {said}"));
        };
        for (name, number) in &prepared.expected {
            let ran = passed.get(name).copied().unwrap_or(0);
            if ran < *number && !(others.contains(name) && prepared.skips.contains(name)) {
                let became = if others.contains(name) { "was skipped, which shows nothing" } else { "did not run" };
                return CheckVerdict::refused(format!("`{name}` {became}"));
            }
        }
        if prepared.count < prepared.base_count {
            let (now, base) = (count(prepared.count, "test"), prepared.base_count);
            return CheckVerdict::refused(format!(
                "the test files have {now}, and {base} in the base commit; put them back"
            ));
        }
        let ran = passed.values().sum();
        if prepared.files.is_empty() {
            return CheckVerdict::pass(format!("{} passed by name; none could be audited", count(ran, "test")));
        }
        let more = json!({ "modules": prepared.modules, "literals": prepared.literals });
        let mut launch = self.launch("audit", self.auditing(&prepared), &more);
        launch.over = prepared.files.iter().map(|(path, text)| (path.clone(), text.clone().into_bytes())).collect();
        self.stage = Stage::Audit(Box::new(prepared), ran);
        JudgeStep::Launch(launch)
    }

    fn judge(&self, ended: &ProgramEnd, prepared: &Prepared, ran: usize) -> JudgeStep {
        let reported: Reported = match self.record(ended) {
            Ok(reported) => reported,
            Err(why) => return CheckVerdict::refused(format!("in the audit {why}")),
        };
        if ended.exit_code != 1 {
            let code = ended.exit_code;
            return CheckVerdict::refused(format!("in the audit tests must fail, and its exit code is {code}"));
        }
        let tests = reported.tests();
        let of = |name: &str| {
            tests.iter().filter(move |(id, _)| last_name(id) == name).map(|(_, outcome)| *outcome).collect::<Vec<_>>()
        };
        let mut renamed = 0;
        for (name, Name { kind, of: test }) in &prepared.names {
            let outcomes = of(name);
            if outcomes.is_empty() {
                return CheckVerdict::refused(format!("in the audit {} was not reported", told(*kind, test)));
            }
            let passed = outcomes.iter().all(|outcome| *outcome == Outcome::Passed);
            let is_right = match kind {
                NameKind::Real => passed,
                NameKind::Named => true,
                NameKind::NamedTwin => !passed,
                NameKind::Twin => outcomes.contains(&Outcome::Failed),
            };
            renamed += usize::from(passed && matches!(kind, NameKind::Real | NameKind::Named));
            if !is_right {
                return CheckVerdict::refused(wrong(*kind, test));
            }
        }
        let (renamable, made) = (prepared.renamable, prepared.names.len() - prepared.renamed);
        let of_all = if renamed < renamable { format!(" of {renamable}") } else { String::new() };
        CheckVerdict::pass(format!(
            "{} passed by name; {renamed}{of_all} passed under other names too, where {made} that must fail did",
            count(ran, "test")
        ))
    }

    fn record(&self, ended: &ProgramEnd) -> Result<Reported, String> {
        let bytes =
            ended.files.get(RECORD).ok_or("no report of its tests was left (did the code end their process?)")?;
        let body =
            opened(bytes, &self.key).ok_or("the report of its tests is not signed by the process that holds it")?;
        let reported: Reported = serde_json::from_slice(body).map_err(|error| format!("its report is {error}"))?;
        if let Some(broken) = reported.broken {
            return Err(format!("{broken} (did the code end their process?)"));
        }
        match reported.changed() {
            [] => Ok(reported),
            changed => Err(format!("the runner was changed while it ran: {}", changed.join(", "))),
        }
    }
}

impl Runner for Python {
    fn next(&mut self, ended: Option<ProgramEnd>) -> JudgeStep {
        let ended = ended.unwrap_or_default();
        match std::mem::replace(&mut self.stage, Stage::Start) {
            Stage::Start => {
                self.stage = Stage::Run;
                JudgeStep::Launch(self.launch("run", self.reporting(), &Value::Null))
            }
            Stage::Run => self.prepare(&ended),
            Stage::Prepare(passed, others) => self.audit(&ended, &passed, &others),
            Stage::Audit(prepared, ran) => self.judge(&ended, &prepared, ran),
        }
    }
}

fn told(kind: NameKind, test: &str) -> String {
    match (kind, test) {
        (_, "") => "a canary".to_owned(),
        (NameKind::Real | NameKind::Named, test) => format!("`{test}` under another name"),
        (NameKind::Twin | NameKind::NamedTwin, test) => format!("a twin of `{test}`"),
    }
}

fn wrong(kind: NameKind, test: &str) -> String {
    match (kind, test) {
        (_, "") => "a test that must fail passed".to_owned(),
        (NameKind::Real | NameKind::Named, test) => format!(
            "`{test}` passed and does not pass under another name beside its twins; if its tests share state, set \
             `twins = false` in its table of [checks]"
        ),
        (NameKind::Twin | NameKind::NamedTwin, test) => format!(
            "`{test}` passes with another expected value too; if it is to, set `twins = false` in its table of [checks]"
        ),
    }
}

/// The words of unittest without those that choose tests by name, since the audit uses other names.
fn without_patterns(mut argv: Vec<String>) -> Vec<String> {
    // A wrapper before it may have its own `-k`.
    let own = argv.iter().position(|word| word == PROGRAM).map_or(argv.len(), |at| at + 1);
    let (words, mut is_pattern) = (argv.split_off(own), false);
    for word in words {
        let was_pattern = std::mem::replace(&mut is_pattern, word == "-k");
        if !was_pattern && !word.starts_with("-k") {
            argv.push(word);
        }
    }
    argv
}

/// `tests.test_a.TestX.test_y` names a method that has another name in the audit: its module is run.
fn module_of(word: &str, files: &BTreeMap<String, String>) -> String {
    let modules = files.keys().filter_map(|path| Some(path.strip_suffix(".py")?.replace('/', ".")));
    let named = modules.filter(|module| word.strip_prefix(module.as_str()).is_some_and(|rest| rest.starts_with('.')));
    named.max_by_key(String::len).unwrap_or_else(|| word.to_owned())
}

fn without_parameters(id: &str) -> &str {
    id.split_once('[').map_or(id, |(name, _)| name)
}

fn last_name(id: &str) -> &str {
    let name = without_parameters(id);
    name.rsplit("::").next().unwrap_or(name)
}

fn is_test_file(path: &str) -> bool {
    let name = base_name(path);
    let in_tests = path.split('/').rev().skip(1).any(|dir| dir == "tests" || dir == "test");
    Path::new(name).extension().is_some_and(|extension| extension == "py")
        && name != "conftest.py"
        && (name.starts_with("test") || name.ends_with("_test.py") || name.ends_with("_tests.py") || in_tests)
}

/// Test files of the base commit that may differ now.
#[derive(Default)]
struct BaseFiles {
    /// The changed files, as they were.
    changed: BTreeMap<String, String>,
    /// The unchanged files.
    same: Vec<String>,
}

impl BaseFiles {
    fn of(files: &dyn CheckFiles, pinned: &BTreeSet<String>) -> Self {
        let (mut found, mut bytes) = (Self::default(), 0);
        for path in files.base_paths() {
            let is_of_tests = is_test_file(&path) || base_name(&path) == "conftest.py";
            if !is_of_tests || pinned.contains(&path) {
                continue;
            }
            let Some(text) = files.read_base(&path) else { continue };
            bytes += text.len();
            if bytes > BASE_BYTES_MAX {
                break;
            }
            if files.read(&path).as_deref() == Some(text.as_str()) {
                found.same.push(path);
            } else if is_test_file(&path) {
                found.changed.insert(path, text);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(argv: &str, expected: &str) {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(without_patterns(words(argv)), words(expected), "{argv}");
    }

    #[test]
    fn the_audit_of_unittest_chooses_no_test_by_its_name() {
        let program = format!("timeout -k 5 60 python3 {PROGRAM}");
        check(&format!("{program} -k adds -v -kmore tests.test_a -k -v"), &format!("{program} -v tests.test_a"));
        check("python3 -m pytest -k adds", "python3 -m pytest -k adds");
    }
}
