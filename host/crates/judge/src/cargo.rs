//! `cargo test` and `cargo nextest run`.
//!
//! Two runs: the operator's own command, and the audit of the same sources with every test under another name beside
//! twins that must fail. Both compile everything, dependencies too: what the first one left in `target` could tell the
//! second one the tests as they were, by the code under test, its build script or its macros. Each program of tests
//! says at first how many tests it has, so that one that the code ends early is noticed, and tests of pinned files must
//! be reported, so that no manifest and no `mod` line of the work leaves them out; see [`expected`]. Open: a program
//! can read its own tests' names and forge their lines, and then needs the expected values only to tell tests from
//! twins. Refuses sources with fewer tests than the base commit has, and a run in which no test ran.

mod expected;
mod words;

use self::expected::{Expected, expected};
use super::clike::{Rewritten, Test, rewritten, tests};
use super::{Check, Ended, Files, Launch, Runner, Step, Verdict};
use longhaul_core::text::count;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use std::collections::BTreeMap;

/// Twins of one audit, if there are fewer tests than that: each is compiled. Of more tests each has one all the same.
const TWINS_MAX: usize = 60;

pub(crate) struct Cargo {
    argv: Vec<String>,
    is_nextest: bool,
    sources: BTreeMap<String, String>,
    expected: Expected,
    base_count: usize,
    twins: bool,
    random: StdRng,
    stage: Stage,
}

enum Stage {
    Start,
    Run,
    Audit(BTreeMap<String, Rewritten>),
}

impl Cargo {
    pub(crate) fn of(check: &Check<'_>) -> Self {
        let read = |path: String| Some((path.clone(), check.files.read(&path)?));
        let is_rust = |path: &String| path.ends_with(".rs");
        let sources = check.files.paths().into_iter().filter(is_rust).filter_map(read);
        Self {
            argv: check.argv.to_vec(),
            is_nextest: check.argv.iter().any(|word| word == "nextest"),
            sources: sources.filter(|(_, text)| text.contains("test")).collect(),
            expected: expected(check.argv, check.files, &check.files.pinned().into_iter().collect()),
            base_count: base_count(check.files),
            twins: check.twins,
            random: StdRng::from_seed(check.seed),
            stage: Stage::Start,
        }
    }

    fn audit(&mut self, ended: &Ended) -> Step {
        if ended.exit_code != 0 {
            return Verdict::failed();
        }
        let found: BTreeMap<&String, Vec<Test>> = self
            .sources
            .iter()
            .map(|(path, text)| (path, tests(text)))
            .filter(|(_, tests)| !tests.is_empty())
            .collect();
        let all: usize = found.values().map(Vec::len).sum();
        if all < self.base_count {
            let (now, base) = (count(all, "test"), self.base_count);
            return Verdict::refused(format!("the sources have {now}, and {base} in the base commit; put them back"));
        }
        if all == 0 {
            return Verdict::refused("there is no test, which shows nothing");
        }
        let twins = if self.twins { (TWINS_MAX / all).clamp(1, 4) } else { 0 };
        let mut files = BTreeMap::new();
        for (path, tests) in found {
            files.insert(path.clone(), rewritten(&self.sources[path], &tests, twins, &mut self.random));
        }
        let launch = Launch {
            argv: self.auditing(),
            over: files.iter().map(|(path, file)| (path.clone(), file.text.clone().into_bytes())).collect(),
            is_read_whole: true,
            ..Launch::default()
        };
        self.stage = Stage::Audit(files);
        Step::Launch(launch)
    }

    /// The same command, which goes on after a failure and names each test.
    fn auditing(&self) -> Vec<String> {
        let mut words = self.argv.iter();
        let own: Vec<&String> = words.by_ref().take_while(|word| *word != "--").collect();
        let quiet = |word: &&String| !matches!(word.as_str(), "-q" | "--quiet" | "--nocapture" | "--show-output");
        let mut argv: Vec<String> = own.into_iter().filter(quiet).cloned().collect();
        argv.retain(|word| word != "--no-fail-fast" && word != "--fail-fast");
        argv.push("--no-fail-fast".to_owned());
        let rest: Vec<String> = words.filter(quiet).cloned().collect();
        if !rest.is_empty() {
            argv.push("--".to_owned());
            argv.extend(rest);
        }
        argv
    }

    fn judge(&self, ended: &Ended, files: &BTreeMap<String, Rewritten>) -> Step {
        let stream = if self.is_nextest { nextest(&ended.stderr) } else { libtest(&ended.stdout) };
        let stream = match stream {
            Ok(stream) => stream,
            Err(why) => return Verdict::refused(format!("in the audit {why} (did the code end their process?)")),
        };
        let (mut renamed, mut failed) = (0, 0);
        for (path, file) in files {
            let reals: BTreeMap<&str, &str> = file
                .names
                .iter()
                .filter(|(.., fails)| !fails)
                .map(|(name, of, _)| (of.as_str(), name.as_str()))
                .collect();
            for (name, of, must_fail) in &file.names {
                match (stream.get(name.as_str()), must_fail) {
                    (Some(true), false) => renamed += 1,
                    (Some(false), true) => failed += 1,
                    (Some(false), false) => {
                        return Verdict::refused(format!(
                            "`{of}` of {path} passed and does not pass under another name beside its twins; if its tests \
                             share state, set `twins = false` in its table of [checks]"
                        ));
                    }
                    (Some(true), true) => {
                        return Verdict::refused(format!("`{of}` of {path} passes where it must fail"));
                    }
                    // A test that is not chosen, not compiled or ignored has no twin either.
                    (None, false) if !self.expected.contains(&(path.clone(), of.clone())) => {}
                    (None, true) if !reals.get(of.as_str()).is_some_and(|real| stream.contains_key(*real)) => {}
                    (None, _) => {
                        return Verdict::refused(format!(
                            "in the audit `{of}` of {path} was not reported; if manifests or `mod` lines leave it out, \
                             put them back, choose tests by words of the command, or set `evidence = \"exit\"`"
                        ));
                    }
                }
            }
        }
        if renamed == 0 {
            return Verdict::refused("no test was run, which shows nothing");
        }
        let code = ended.exit_code;
        if failed > 0 && code == 0 {
            return Verdict::refused("in the audit tests failed, and its exit code is 0");
        }
        Verdict::pass(format!("{} passed by name, where {failed} that must fail did", count(renamed, "test")))
    }
}

impl Runner for Cargo {
    fn next(&mut self, ended: Option<Ended>) -> Step {
        let ended = ended.unwrap_or_default();
        match std::mem::replace(&mut self.stage, Stage::Start) {
            Stage::Start => {
                self.stage = Stage::Run;
                Step::Launch(Launch { argv: self.argv.clone(), ..Launch::default() })
            }
            Stage::Run => self.audit(&ended),
            Stage::Audit(files) => self.judge(&ended, &files),
        }
    }
}

fn base_count(files: &dyn Files) -> usize {
    let paths = files.base_paths().into_iter().filter(|path| path.ends_with(".rs"));
    paths.filter_map(|path| files.read_base(&path)).map(|text| tests(&text).len()).sum()
}

/// Whether each test passed, by the last part of its name.
type Outcomes = BTreeMap<String, bool>;

/// The lines of libtest: `running 2 tests`, `test a::b ... ok`, `test result: ...`.
fn libtest(stdout: &str) -> Result<Outcomes, String> {
    let (mut outcomes, mut expected, mut seen) = (Outcomes::new(), None::<usize>, 0);
    for line in stdout.lines() {
        if let Some(number) = running(line) {
            if expected.is_some() {
                return Err("a program of tests did not come to its end".to_owned());
            }
            (expected, seen) = (Some(number), 0);
        } else if line.starts_with("test result: ") {
            if expected.take() != Some(seen) {
                return Err("a program of tests did not report each test".to_owned());
            }
        } else if let Some((name, outcome)) = outcome(line) {
            seen += 1;
            record(&mut outcomes, name, outcome);
        }
    }
    match expected {
        None => Ok(outcomes),
        Some(_) => Err("a program of tests did not come to its end".to_owned()),
    }
}

fn running(line: &str) -> Option<usize> {
    let number = line.strip_prefix("running ")?;
    number.strip_suffix(" tests").or_else(|| number.strip_suffix(" test"))?.parse().ok()
}

/// The name, and whether it passed; none: it was ignored. What a test printed may stand before its line.
fn outcome(line: &str) -> Option<(&str, Option<bool>)> {
    let (before, outcome) = line.rsplit_once(" ... ")?;
    let name = before[before.rfind("test ")? + 5..].split(" - ").next()?;
    match outcome.split([',', ' ']).next()? {
        "ok" => Some((name, Some(true))),
        "FAILED" => Some((name, Some(false))),
        "ignored" => Some((name, None)),
        _ => None,
    }
}

/// The lines of nextest: `PASS [   0.004s] package::program a::b`, and `Summary [...] 2 tests run: ...`.
fn nextest(stderr: &str) -> Result<Outcomes, String> {
    let mut outcomes = Outcomes::new();
    let mut is_ended = false;
    for line in stderr.lines().map(str::trim) {
        let (word, rest) = line.split_once(" [").unwrap_or_default();
        let name = rest.rsplit(' ').next().unwrap_or_default();
        match word {
            "PASS" | "LEAK" => record(&mut outcomes, name, Some(true)),
            "FAIL" | "SIGABRT" | "SIGSEGV" | "TIMEOUT" | "ABORT" => record(&mut outcomes, name, Some(false)),
            "Summary" => is_ended = true,
            _ => {}
        }
    }
    if is_ended { Ok(outcomes) } else { Err("nextest did not come to its end".to_owned()) }
}

/// A test of several programs passes when it passes in each.
fn record(outcomes: &mut Outcomes, name: &str, passed: Option<bool>) {
    if let Some(passed) = passed {
        let last = name.rsplit("::").next().unwrap_or(name).to_owned();
        *outcomes.entry(last).or_insert(true) &= passed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(stdout: &str, expected: Result<&[(&str, bool)], &str>) {
        let expected: Result<Outcomes, String> = expected
            .map(|tests| tests.iter().map(|(name, passed)| ((*name).to_owned(), *passed)).collect())
            .map_err(str::to_owned);
        assert_eq!(libtest(stdout), expected, "{stdout}");
    }

    #[test]
    fn each_program_reports_as_many_tests_as_it_has() {
        let end = "test result: FAILED. 1 passed\n";
        let two = "running 2 tests\ntest a::b ... ok\nnoisetest c - should panic ... FAILED\n";
        check(&format!("{two}{end}"), Ok(&[("b", true), ("c", false)]));
        check(two, Err("a program of tests did not come to its end"));
        check(&format!("{two}running 0 tests\n{end}"), Err("a program of tests did not come to its end"));
        check(&format!("running 3 tests\ntest a ... ok\n{end}"), Err("a program of tests did not report each test"));
        check(&format!("running 1 test\ntest a ... ignored, later\n{end}"), Ok(&[]));
        check("", Ok(&[]));
    }

    #[test]
    fn outcomes_of_nextest_count_once_its_summary_is_there() {
        let text = "        PASS [   0.004s] demo tests::a\n        FAIL [   0.005s] (2/2) demo::it b\n     Summary [   0.0s] 2";
        let expected = [("a".to_owned(), true), ("b".to_owned(), false)];
        assert_eq!(nextest(text), Ok(expected.into()));
        assert!(nextest("PASS [ 0.1s] demo a").is_err());
    }
}
