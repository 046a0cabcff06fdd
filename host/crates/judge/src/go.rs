//! `go test`.
//!
//! Three runs: the operator's own command; `go list`, which lists the test files that the command builds, and in which
//! no code of the work runs; and the audit by `go test -json`, in which each test has another name, beside twins that
//! must fail and a canary a file. Every chosen test must end there once, by its package and name. Each run has caches
//! of its own: files of the first one could tell the next the expected results. A known gap: a test program can read
//! the audit's files and forge its lines, and then needs only the expected values to tell tests from twins.

mod command;
mod scan;
mod source;
mod stream;
mod twins;

use super::kind::go_test;
use super::runner::{CheckVerdict, JudgeStep, JudgedCheck, Launch, ProgramEnd, Runner};
use command::Command;
use longhaul_core::text::count;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use scan::covered;
use source::{Name, Rewriting, is_called, is_conditional, is_test_file, rewritten, strings, tests};
use std::collections::{BTreeMap, BTreeSet};
use stream::{Outcome, Package, Stream};

/// Twins of one audit, if there are fewer tests than that.
const TWINS_MAX: usize = 60;

/// Calls by which a test reads its own name, for example for a file with expected output.
const ASKS_ITS_NAME: [&str; 6] = ["t.Name()", "tb.Name()", ".T().Name()", "/cupaloy", "/go-snaps", "/goldie"];

pub(crate) struct Go {
    argv: Vec<String>,
    command: Command,
    twins: bool,
    /// Test files by their paths.
    files: BTreeMap<String, String>,
    /// Test files of the base commit.
    base: BTreeMap<String, String>,
    /// Directories that were modules of their own in the base commit.
    base_modules: BTreeSet<String>,
    random: StdRng,
    stage: Stage,
}

enum Stage {
    Start,
    Run,
    List,
    Audit(Vec<Expected>),
}

/// The files of the audit, and its expected results.
#[derive(Default)]
struct Audit {
    over: BTreeMap<String, Vec<u8>>,
    expected: Vec<Expected>,
}

/// A name that the audit must report.
struct Expected {
    package: String,
    path: String,
    name: Name,
}

impl Go {
    pub(crate) fn of(check: &JudgedCheck<'_>) -> Self {
        let now = check.files.paths().into_iter().filter(|path| is_test_file(path));
        let base = check.files.base_paths();
        let modules = base.iter().filter_map(|path| path.strip_suffix("go.mod"));
        let base_modules = modules.filter(|dir| dir.is_empty() || dir.ends_with('/')).map(str::to_owned).collect();
        let base = base.into_iter().filter(|path| is_test_file(path));
        Self {
            argv: check.argv.to_vec(),
            command: go_test(check.argv).map(|at| Command::parse(check.argv, at)).unwrap_or_default(),
            twins: check.twins,
            files: now.filter_map(|path| Some((path.clone(), check.files.read(&path)?))).collect(),
            base: base.filter_map(|path| Some((path.clone(), check.files.read_base(&path)?))).collect(),
            base_modules,
            random: StdRng::from_seed(check.seed),
            stage: Stage::Start,
        }
    }

    fn list(&mut self, ended: &ProgramEnd) -> JudgeStep {
        if ended.exit_code != 0 {
            return CheckVerdict::failed();
        }
        for is_counted in [|_: &str, _: &str| true, |path: &str, text: &str| !is_conditional(path, text)] {
            let of = |files: &BTreeMap<String, String>| {
                let counted = files.iter().filter(|(path, text)| is_counted(path, text));
                counted.map(|(_, text)| source::counted(text)).sum::<usize>()
            };
            let (now, base) = (of(&self.files), of(&self.base));
            if now < base {
                let now = count(now, "test");
                return CheckVerdict::refused(format!(
                    "the test files have {now}, and {base} in the base commit; put them back"
                ));
            }
        }
        self.stage = Stage::List;
        JudgeStep::Launch(Launch { argv: self.command.listing(), is_read_whole: true, ..Launch::default() })
    }

    fn audit(&mut self, ended: &ProgramEnd) -> JudgeStep {
        match self.rewritten(ended) {
            Ok(Audit { over, expected }) => {
                self.stage = Stage::Audit(expected);
                let argv = self.command.auditing();
                JudgeStep::Launch(Launch { argv, over, is_read_whole: true, ..Launch::default() })
            }
            Err(why) => CheckVerdict::refused(why),
        }
    }

    fn rewritten(&mut self, ended: &ProgramEnd) -> Result<Audit, String> {
        let packages = stream::packages(&ended.stdout)?;
        let listed: Vec<Vec<String>> = packages.iter().map(|package| self.places(package)).collect::<Result<_, _>>()?;
        let paths: BTreeSet<&String> = listed.iter().flatten().collect();
        if let Some(path) = self.left_out(&paths) {
            return Err(format!(
                "`{path}` is no part of `./...` any more, as it is in the base commit; see its build constraints, and \
                 go.mod"
            ));
        }
        let names: Vec<String> =
            paths.iter().flat_map(|path| tests(&self.files[*path])).map(|test| test.name).collect();
        let chosen = self.chosen(&names)?;
        let number = names.iter().filter(|name| chosen.contains(*name)).count();
        if number == 0 {
            return Err("there is no test, which shows nothing".to_owned());
        }
        let twins = if self.twins { (TWINS_MAX / number).clamp(1, 4) } else { 0 };
        let mut audit = Audit::default();
        for (package, paths) in packages.iter().zip(&listed) {
            self.rewrite(package, paths, &chosen, twins, &mut audit);
        }
        Ok(audit)
    }

    fn chosen(&self, names: &[String]) -> Result<BTreeSet<String>, String> {
        let mut chosen = BTreeSet::new();
        for name in names {
            if self.command.chooses(name)? {
                chosen.insert(name.clone());
            }
        }
        Ok(chosen)
    }

    fn rewrite(
        &mut self,
        package: &Package,
        paths: &[String],
        chosen: &BTreeSet<String>,
        twins: usize,
        audit: &mut Audit,
    ) {
        let (called, kept) = (&self.called(paths), &self.kept(paths));
        let rewriting = Rewriting { chosen, called, kept, twins, has_subtests: self.command.has_subtests() };
        for path in paths {
            let (text, names) = rewritten(&self.files[path], &rewriting, &mut self.random);
            audit.over.insert(path.clone(), text.into_bytes());
            let package = &package.import_path;
            let of_file = |name| Expected { package: package.clone(), path: path.clone(), name };
            audit.expected.extend(names.into_iter().map(of_file));
        }
    }

    /// The paths of a package's test files in the work: the list has full paths of the sandbox.
    fn places(&self, package: &Package) -> Result<Vec<String>, String> {
        let dirs = package.dir.match_indices('/').map(|(at, _)| format!("{}/", &package.dir[at + 1..]));
        let in_dir = |dir: String| {
            let paths: Vec<String> = package.files().map(|file| format!("{dir}{file}")).collect();
            paths.iter().all(|path| self.files.contains_key(path)).then_some(paths)
        };
        let found = dirs.chain([String::new()]).find_map(in_dir);
        found.ok_or_else(|| {
            format!("the test files of {} are no plain files of the work, or too large", package.import_path)
        })
    }

    /// A test file of the base commit that `./...` would have built before, and does not build now.
    fn left_out(&self, listed: &BTreeSet<&String>) -> Option<&String> {
        let is_of_top = |path: &str| {
            let modules = self.base_modules.iter().filter(|dir| path.starts_with(dir.as_str()));
            modules.max_by_key(|dir| dir.len()).is_some_and(String::is_empty)
        };
        let of_base = self.base.iter().filter(|(path, text)| is_of_top(path) && !is_conditional(path, text));
        let is_left_out = |path: &&String| self.files.contains_key(*path) && !listed.contains(*path);
        of_base.map(|(path, _)| path).find(is_left_out).filter(|_| self.command.is_of_everything())
    }

    /// Tests of a package that other functions call.
    fn called(&self, paths: &[String]) -> BTreeSet<String> {
        let texts: Vec<&String> = paths.iter().map(|path| &self.files[path]).collect();
        let covered: Vec<Vec<u8>> = texts.iter().map(|text| covered(text)).collect();
        let names = texts.iter().flat_map(|text| tests(text)).map(|test| test.name);
        names.filter(|name| covered.iter().any(|text| is_called(text, name))).collect()
    }

    /// Tests that read their own names, by the base commit alone: the work could claim it of all.
    fn kept(&self, paths: &[String]) -> BTreeSet<String> {
        let base: Vec<&String> = self.of_base(paths).collect();
        let asks = base.iter().any(|text| ASKS_ITS_NAME.iter().any(|asked| text.contains(asked)));
        let strings: Vec<Vec<u8>> = base.iter().map(|text| strings(text)).collect();
        let names = paths.iter().flat_map(|path| tests(&self.files[path])).map(|test| test.name);
        names.filter(|name| asks || strings.iter().any(|text| is_called(text, name))).collect()
    }

    /// Test files of the base commit in the directory of these.
    fn of_base<'a>(&'a self, paths: &'a [String]) -> impl Iterator<Item = &'a String> {
        let dir = |path: &str| path.rsplit_once('/').map_or(String::new(), |(dir, _)| dir.to_owned());
        let own = paths.first().map(|path| dir(path)).unwrap_or_default();
        self.base.iter().filter(move |(path, _)| dir(path) == own).map(|(_, text)| text)
    }

    fn judge(&self, ended: &ProgramEnd, expected: &[Expected]) -> JudgeStep {
        match self.judged(ended, expected) {
            Ok(why) => CheckVerdict::pass(why),
            Err(why) => CheckVerdict::refused(why),
        }
    }

    fn judged(&self, ended: &ProgramEnd, expected: &[Expected]) -> Result<String, String> {
        let stream = Stream::of(&ended.stdout);
        let ends: Vec<Outcome> = expected
            .iter()
            .map(|one| end(&stream, one).map_err(|why| unbuilt(ended).unwrap_or(why)))
            .collect::<Result<_, String>>()?;
        let ended_tests = || expected.iter().zip(&ends);
        let reals: BTreeMap<(&str, &str), Outcome> = ended_tests()
            .filter(|(one, _)| !one.name.must_fail)
            .map(|(one, end)| ((one.path.as_str(), one.name.of.as_str()), *end))
            .collect();
        for (one, end) in ended_tests() {
            self.check_end(one, *end, reals.get(&(one.path.as_str(), one.name.of.as_str())).copied())?;
        }
        let passed = |one: &&Expected| reals[&(one.path.as_str(), one.name.of.as_str())] == Outcome::Passed;
        let (must_fail, reals): (Vec<&Expected>, Vec<&Expected>) = expected.iter().partition(|one| one.name.must_fail);
        let passed: Vec<&Expected> = reals.into_iter().filter(passed).collect();
        let kept = passed.iter().filter(|one| one.name.name == one.name.of).count();
        if passed.is_empty() {
            return Err("no test was run, which shows nothing".to_owned());
        }
        let failing: BTreeSet<&String> =
            ended_tests().filter(|(_, end)| **end == Outcome::Failed).map(|(one, _)| &one.package).collect();
        if let Some(package) = failing.into_iter().find(|package| stream.ends(package, "") != [Outcome::Failed]) {
            return Err(format!("in the audit tests of {package} failed, and it did not"));
        }
        if ended.exit_code == 0 {
            return Err("in the audit tests failed, and its exit code is 0".to_owned());
        }
        let of_kept = if kept > 0 { format!(", {kept} of them under their own names") } else { String::new() };
        let (number, failed) = (count(passed.len(), "test"), must_fail.len());
        Ok(format!("{number} passed by name{of_kept}, where {failed} that must fail did"))
    }

    /// Refuses an end that differs from a name's required one; `real` is the end of the test itself.
    fn check_end(&self, one: &Expected, end: Outcome, real: Option<Outcome>) -> Result<(), String> {
        let Expected { path, name: Name { of, must_fail, .. }, .. } = one;
        match (end, must_fail) {
            (Outcome::Passed, false) | (Outcome::Failed, true) => Ok(()),
            (Outcome::Skipped, false) if self.may_skip(path) => Ok(()),
            (Outcome::Skipped, true) if real == Some(Outcome::Skipped) => Ok(()),
            (Outcome::Failed, false) => Err(format!(
                "`{of}` of {path} passed and does not pass under another name beside its twins; if its tests share \
                 state, set `twins = false` in its table of [checks]"
            )),
            (Outcome::Skipped, false) => Err(format!("`{of}` of {path} was skipped, which shows nothing")),
            (Outcome::Passed | Outcome::Skipped, true) => Err(format!("`{of}` of {path} does not fail where it must")),
        }
    }

    /// True when tests beside `path` skipped in the base commit already, or are new.
    fn may_skip(&self, path: &str) -> bool {
        let paths = [path.to_owned()];
        !self.base.contains_key(path) || self.of_base(&paths).any(|text| text.contains("Skip"))
    }
}

impl Runner for Go {
    fn next(&mut self, ended: Option<ProgramEnd>) -> JudgeStep {
        let ended = ended.unwrap_or_default();
        match std::mem::replace(&mut self.stage, Stage::Start) {
            Stage::Start => {
                self.stage = Stage::Run;
                JudgeStep::Launch(Launch { argv: self.argv.clone(), ..Launch::default() })
            }
            Stage::Run => self.list(&ended),
            Stage::List => self.audit(&ended),
            Stage::Audit(expected) => self.judge(&ended, &expected),
        }
    }
}

/// The end of a test in the audit, if it was reported once.
fn end(stream: &Stream, Expected { package, path, name }: &Expected) -> Result<Outcome, String> {
    match stream.ends(package, &name.name) {
        [end] => Ok(*end),
        [] => {
            let why = stream.panicked.as_deref().unwrap_or("did the code end its process?");
            Err(format!("in the audit `{}` of {path} was not reported ({why})", name.of))
        }
        _ => Err(format!("in the audit `{}` of {path} was reported more than once", name.of)),
    }
}

/// The reason, if the compiler refused the judge's code.
fn unbuilt(ended: &ProgramEnd) -> Option<String> {
    let is_unbuilt = ended.stdout.contains(" [build failed]") || ended.stdout.contains(" [setup failed]");
    let said = ended.stderr.lines().chain(ended.stdout.lines()).find(|line| line.contains("_test.go:"));
    is_unbuilt.then(|| {
        let said = said.unwrap_or("nothing more").trim();
        format!("in the audit its tests are not built, which `twins = false` may mend: {said}")
    })
}
