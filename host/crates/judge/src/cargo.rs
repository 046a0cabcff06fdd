//! `cargo test` and `cargo nextest run`.
//!
//! Two runs: the operator's own command, and the audit of the same sources with every test under another name beside
//! twins that must fail, and a canary a file. Both compile everything, dependencies too: files that the first one left
//! in `target` could tell the second one the original tests, by the code under test, its build script or its macros.
//! Each test program first reports its number of tests, so that one that the code ends early is noticed, and tests of
//! pinned files must be reported, so that no manifest and no `mod` line of the work leaves them out; see [`expected`].
//! Tests that only macros make keep their names, beside canaries. A known gap: a program can read its own tests' names
//! and forge their lines, and then needs only the expected values to tell tests from twins. Refuses sources with fewer
//! tests than the base commit has, a run in which no test ran, and one in which nothing failed that must. Leaves alone
//! files that belong to no program, and vendored crates, whose digests cargo compares.

mod command_line;
mod expected;
mod outcomes;

use self::command_line::{Words, auditing};
use self::expected::Plan;
use self::outcomes::{Outcomes, by_part, libtest, nextest};
use super::clike::{Rewriting, Rewritten, Test, rewritten, tests, with_canary};
use super::runner::{CheckFiles, CheckVerdict, JudgeStep, JudgedCheck, Launch, ProgramEnd, Runner};
use longhaul_core::text::count;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use std::collections::{BTreeMap, BTreeSet};

/// Twins of one audit, if there are fewer tests than that: each is compiled. With more tests each still has one.
const TWINS_MAX: usize = 60;

pub(crate) struct Cargo {
    argv: Vec<String>,
    words: Words,
    is_nextest: bool,
    /// All Rust files by path, except vendored crates.
    sources: BTreeMap<String, String>,
    plan: Plan,
    pinned: BTreeSet<String>,
    base: Base,
    twins: bool,
    random: StdRng,
    stage: Stage,
}

enum Stage {
    Start,
    Run,
    Audit(BTreeMap<String, Rewritten>),
}

/// The tests of the base commit's sources.
#[derive(Debug, Default)]
struct Base {
    count: usize,
    /// True when types of the work are compared with others, or its code may be without the standard library.
    is_special: bool,
}

impl Base {
    fn of(files: &dyn CheckFiles) -> Self {
        let vendored = Vendored::of(files);
        let paths = files.base_paths().into_iter().filter(|path| path.ends_with(".rs") && !vendored.has(path));
        let mut base = Self::default();
        for text in paths.filter_map(|path| files.read_base(&path)) {
            base.count += tests(&text).len();
            base.is_special |= text.contains("PartialEq<") || text.contains("no_std");
        }
        base
    }
}

/// Directories of crates with digests of their files. For a file of the base commit, only the base commit decides.
struct Vendored {
    base: BTreeSet<String>,
    of_base: Vec<String>,
    of_work: Vec<String>,
}

impl Vendored {
    fn of(files: &dyn CheckFiles) -> Self {
        let base: BTreeSet<String> = files.base_paths().into_iter().collect();
        let of_base = Self::dirs(base.iter().map(String::as_str));
        let of_work = Self::dirs(files.paths().iter().map(String::as_str));
        Self { base, of_base, of_work }
    }

    fn dirs<'p>(paths: impl Iterator<Item = &'p str>) -> Vec<String> {
        let dirs = paths.filter_map(|path| path.strip_suffix(".cargo-checksum.json"));
        dirs.filter(|dir| dir.ends_with('/')).map(str::to_owned).collect()
    }

    fn has(&self, path: &str) -> bool {
        let dirs = if self.base.contains(path) { &self.of_base } else { &self.of_work };
        dirs.iter().any(|dir| path.starts_with(dir.as_str()))
    }
}

impl Cargo {
    pub(crate) fn of(check: &JudgedCheck<'_>) -> Self {
        let vendored = Vendored::of(check.files);
        let read = |path: String| Some((path.clone(), check.files.read(&path)?));
        let is_rust = |path: &String| path.ends_with(".rs") && !vendored.has(path);
        let sources = check.files.paths().into_iter().filter(is_rust).filter_map(read).collect();
        let pinned: BTreeSet<String> = check.files.pinned().into_iter().collect();
        Self {
            argv: check.argv.to_vec(),
            words: Words::of(check.argv),
            is_nextest: check.argv.iter().any(|word| word == "nextest"),
            sources,
            plan: Plan::of(check.argv, check.files, &pinned),
            pinned,
            base: Base::of(check.files),
            twins: check.twins,
            random: StdRng::from_seed(check.seed),
            stage: Stage::Start,
        }
    }

    /// True when a file may belong to a program, so that it is not just data to the tests.
    fn is_built(&self, path: &str) -> bool {
        let is_expected = || self.plan.expected.iter().any(|(of, _)| of == path);
        self.plan.sources.is_empty() || self.plan.sources.contains(path) || is_expected()
    }

    fn audit(&mut self, ended: &ProgramEnd) -> JudgeStep {
        if ended.exit_code != 0 {
            return CheckVerdict::failed();
        }
        match self.audited() {
            Ok(files) => {
                let launch = Launch {
                    argv: auditing(&self.argv, self.is_nextest),
                    over: files.iter().map(|(path, file)| (path.clone(), file.text.clone().into_bytes())).collect(),
                    is_read_whole: true,
                    ..Launch::default()
                };
                self.stage = Stage::Audit(files);
                JudgeStep::Launch(launch)
            }
            Err(why) => CheckVerdict::refused(why),
        }
    }

    /// The files of the audit.
    fn audited(&mut self) -> Result<BTreeMap<String, Rewritten>, String> {
        let all: usize = self.sources.values().map(|text| tests(text).len()).sum();
        if all < self.base.count {
            let (now, base) = (count(all, "test"), self.base.count);
            return Err(format!("the sources have {now}, and {base} in the base commit; put them back"));
        }
        let is_chosen = |test: &Test| self.words.may_choose(&test.name);
        let mut found: BTreeMap<String, Vec<Test>> = BTreeMap::new();
        for (path, text) in self.sources.iter().filter(|(path, _)| self.is_built(path)) {
            found.insert(path.clone(), tests(text).into_iter().filter(is_chosen).collect());
        }
        found.retain(|_, tests| !tests.is_empty());
        let number: usize = found.values().map(Vec::len).sum();
        if number == 0 {
            return self.with_canaries();
        }
        let twins = if self.twins { (TWINS_MAX / number).clamp(1, 4) } else { 0 };
        let crates: Vec<String> = self.plan.crates.iter().filter(|_| !self.base.is_special).cloned().collect();
        let rewriting = Rewriting { twins, crates: &crates };
        let mut files = BTreeMap::new();
        for (path, tests) in found {
            let file = rewritten(&self.sources[&path], &tests, &rewriting, &mut self.random);
            files.insert(path, file);
        }
        Ok(files)
    }

    /// Pinned files with a canary each, if no test has a known name: macros make them, or comments contain them.
    fn with_canaries(&mut self) -> Result<BTreeMap<String, Rewritten>, String> {
        let is_it = |path: &str| self.pinned.contains(path) && self.plan.sources.contains(path);
        let mut files = BTreeMap::new();
        for (path, text) in self.sources.iter().filter(|(path, _)| is_it(path)) {
            files.insert(path.clone(), with_canary(text, self.words.chosen_name(), &mut self.random));
        }
        if files.is_empty() || self.words.is_of_comments() {
            return Err("no test is found in its sources, which shows nothing; if its command tests something else, \
                        set `evidence = \"exit\"` in its table of [checks]"
                .to_owned());
        }
        Ok(files)
    }

    fn judge(&self, ended: &ProgramEnd, files: &BTreeMap<String, Rewritten>) -> JudgeStep {
        match self.judged(ended, files) {
            Ok(why) => CheckVerdict::pass(why),
            Err(why) => CheckVerdict::refused(why),
        }
    }

    fn judged(&self, ended: &ProgramEnd, files: &BTreeMap<String, Rewritten>) -> Result<String, String> {
        let outcomes = if self.is_nextest { nextest(&ended.stderr) } else { libtest(&ended.stdout) };
        let outcomes = outcomes.map_err(|why| format!("in the audit {why} (did the code end their process?)"))?;
        let parts = by_part(&outcomes);
        let (mut renamed, mut failed) = (0, 0);
        for (path, file) in files {
            let reals: BTreeMap<&str, &str> = file
                .names
                .iter()
                .filter(|(.., fails)| !fails)
                .map(|(name, of, _)| (of.as_str(), name.as_str()))
                .collect();
            let is_run = |of: &str| reals.get(of).is_some_and(|real| parts.contains_key(real));
            for (name, of, must_fail) in &file.names {
                match (parts.get(name.as_str()), must_fail) {
                    (Some(true), false) => renamed += 1,
                    (Some(false), true) => failed += 1,
                    (Some(false), false) => {
                        return Err(format!(
                            "`{of}` of {path} passed and does not pass under another name beside its twins; if its \
                             tests share state, set `twins = false` in its table of [checks]"
                        ));
                    }
                    (Some(true), true) => return Err(format!("`{of}` of {path} passes where it must fail")),
                    // A test that is not chosen, not compiled or ignored has no twin either.
                    (None, false) if !self.plan.expected.contains(&(path.clone(), of.clone())) => {}
                    (None, true) if !is_run(of) => {}
                    (None, _) => {
                        return Err(format!(
                            "in the audit `{of}` of {path} was not reported; if manifests or `mod` lines leave it out, \
                             put them back, choose tests by words of the command, or set `evidence = \"exit\"`"
                        ));
                    }
                }
            }
        }
        let is_known = files.values().flat_map(|file| &file.names).any(|(.., must_fail)| !must_fail);
        let passed = if is_known { renamed } else { of_others(&outcomes, files)? };
        if passed == 0 {
            return Err("no test was run, which shows nothing".to_owned());
        }
        if failed == 0 || ended.exit_code == 0 {
            return Err("in the audit tests that must fail did not end it with a failure".to_owned());
        }
        let whose = if is_known { "" } else { ", which macros make," };
        Ok(format!("{}{whose} passed by name, where {failed} that must fail did", count(passed, "test")))
    }
}

/// Counts the tests that passed beside canaries.
fn of_others(outcomes: &Outcomes, files: &BTreeMap<String, Rewritten>) -> Result<usize, String> {
    let names: BTreeSet<&str> = files.values().flat_map(|file| &file.names).map(|(name, ..)| name.as_str()).collect();
    let is_other = |name: &str| !name.split("::").any(|part| names.contains(part));
    let others: Vec<_> = outcomes.iter().filter(|(name, _)| is_other(name)).collect();
    match others.iter().find(|(_, passed)| !**passed) {
        Some((name, _)) => Err(format!("`{name}` passed and does not pass beside tests that must fail")),
        None => Ok(others.len()),
    }
}

impl Runner for Cargo {
    fn next(&mut self, ended: Option<ProgramEnd>) -> JudgeStep {
        let ended = ended.unwrap_or_default();
        match std::mem::replace(&mut self.stage, Stage::Start) {
            Stage::Start => {
                self.stage = Stage::Run;
                JudgeStep::Launch(Launch { argv: self.argv.clone(), ..Launch::default() })
            }
            Stage::Run => self.audit(&ended),
            Stage::Audit(files) => self.judge(&ended, &files),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{self, FakeFiles};
    use crate::{EvidenceKind, Judge};

    const MANIFEST: (&str, &str) = ("Cargo.toml", "[package]\nname = \"demo\"\nedition = \"2024\"\n");
    const LIB: (&str, &str) = ("src/lib.rs", "pub fn add(a: i32, b: i32) -> i32 {\n    a + b\n}\n");
    const IT: &str = "#[test]\nfn adds() {\n    assert_eq!(demo::add(2, 3), 5);\n}\n";

    /// A judge of a work whose first run ended well, and its next request or verdict.
    fn audit(argv: &str, base: &[(&str, &str)], now: &[(&str, &str)]) -> (Judge, Result<Launch, String>) {
        let files = FakeFiles::of(&[&[MANIFEST, LIB][..], base].concat(), &[&[MANIFEST, LIB][..], now].concat());
        let argv: Vec<String> = argv.split(' ').map(str::to_owned).collect();
        let mut judge = Judge::of(&fake::check(&argv, EvidenceKind::Cargo, &files));
        assert!(matches!(judge.next(None), JudgeStep::Launch(_)));
        let next = match judge.next(Some(ProgramEnd::default())) {
            JudgeStep::Launch(launch) => Ok(launch),
            JudgeStep::Judged(verdict) => Err(verdict.why),
        };
        (judge, next)
    }

    fn text(launch: &Launch, path: &str) -> String {
        String::from_utf8(launch.over[path].clone()).unwrap()
    }

    /// The lines of tests, which fail if `fails` returns true.
    fn ran(names: &[String], fails: impl Fn(&str) -> bool) -> ProgramEnd {
        let of = |name: &String| format!("test it::{name} ... {}\n", if fails(name) { "FAILED" } else { "ok" });
        let lines: String = names.iter().map(of).collect();
        let stdout = format!("running {} tests\n{lines}\ntest result: FAILED. x\n", names.len());
        ProgramEnd { exit_code: 101, stdout, ..ProgramEnd::default() }
    }

    fn verdict(judge: &mut Judge, ended: ProgramEnd) -> (bool, String) {
        match judge.next(Some(ended)) {
            JudgeStep::Judged(verdict) => (verdict.passed, verdict.why),
            JudgeStep::Launch(launch) => panic!("{launch:?}"),
        }
    }

    fn names(text: &str) -> Vec<String> {
        tests(text).into_iter().map(|test| test.name).collect()
    }

    #[test]
    fn fewer_tests_than_in_the_base_commit_are_no_pass() {
        let two = format!("{IT}#[test]\nfn says() {{}}\n");
        let why = audit("cargo test", &[("tests/it.rs", &*two)], &[("tests/it.rs", IT)]).1.unwrap_err();
        assert!(why.contains("the sources have 1 test, and 2 in the base commit; put them back"), "{why}");
        for now in
            [&[("tests/it.rs", &*two)][..], &[("tests/it.rs", IT), ("tests/more.rs", "#[test]\nfn a() {}\n")][..]]
        {
            let launch = audit("cargo test", &[("tests/it.rs", &*two)], now).1.unwrap();
            assert_eq!(launch.argv, ["cargo", "test", "--no-fail-fast"]);
        }
    }

    #[test]
    fn files_that_no_program_is_made_of_are_left_alone() {
        let now = [
            ("src/more.rs", "#[cfg(test)]\nmod tests {\n    #[test]\n    fn a() {}\n}\n"),
            ("src/main.rs", "mod more;\n\n#[test]\nfn b() {}\n"),
            ("tests/it.rs", IT),
            ("tests/fixtures/sample.rs", IT),
            ("tests/ui/pass.rs", IT),
            ("tests/fixtures/other/Cargo.toml", "[package]\nname = \"other\"\n"),
            ("tests/fixtures/other/src/lib.rs", IT),
            ("vendor/other/.cargo-checksum.json", "{}"),
            ("vendor/other/Cargo.toml", "[package]\nname = \"other\"\n"),
            ("vendor/other/src/lib.rs", IT),
        ];
        let launch = audit("cargo test", &now, &now).1.unwrap();
        assert_eq!(launch.over.keys().collect::<Vec<_>>(), ["src/main.rs", "src/more.rs", "tests/it.rs"]);
        // The work's own claim of being vendored does not count.
        let hidden = [&now[..], &[("tests/.cargo-checksum.json", "{}")][..]].concat();
        assert!(audit("cargo test", &now, &hidden).1.unwrap().over.contains_key("tests/it.rs"));
    }

    #[test]
    fn a_canary_must_fail_also_without_twins() {
        let text_of = |twins: bool| {
            let files = FakeFiles::of(&[MANIFEST, LIB, ("tests/it.rs", IT)], &[MANIFEST, LIB, ("tests/it.rs", IT)]);
            let argv = ["cargo", "test"].map(str::to_owned);
            let mut judge = Judge::of(&JudgedCheck { twins, ..fake::check(&argv, EvidenceKind::Cargo, &files) });
            judge.next(None);
            let JudgeStep::Launch(launch) = judge.next(Some(ProgramEnd::default())) else { panic!("no audit") };
            (judge, text(&launch, "tests/it.rs"))
        };
        for (twins, number) in [(true, 6), (false, 2)] {
            let (mut judge, text) = text_of(twins);
            let names = names(&text);
            assert_eq!(names.len(), number, "{text}");
            let is_real = |name: &str| {
                let body = text.split_once(&format!("fn {name}()")).unwrap().1.split_once('}').unwrap().0;
                body.trim_start_matches([' ', '{', '\n']).starts_with("assert_eq!(demo::add(2, 3), 5);")
            };
            let (passed, why) = verdict(&mut judge, ran(&names, |name| !is_real(name)));
            assert!(
                passed && why == format!("1 test passed by name, where {} that must fail did", number - 1),
                "{why}"
            );
            let (mut judge, _) = text_of(twins);
            let (passed, why) = verdict(&mut judge, ran(&names, |_| false));
            assert!(!passed && why.contains("`adds` of tests/it.rs passes where it must fail"), "{why}");
            let (mut judge, _) = text_of(twins);
            let real: Vec<String> = names.iter().filter(|name| is_real(name)).cloned().collect();
            assert!(!verdict(&mut judge, ran(&real, |_| false)).0, "nothing that must fail shows nothing");
        }
    }

    #[test]
    fn a_name_that_is_asked_for_as_a_whole_is_found_in_the_audit() {
        let two = format!("{IT}#[test]\nfn adds_all() {{}}\n");
        let launch =
            audit("cargo test adds -- --exact", &[("tests/it.rs", &*two)], &[("tests/it.rs", &*two)]).1.unwrap();
        assert_eq!(launch.argv, ["cargo", "test", "adds", "--no-fail-fast"]);
        let text = text(&launch, "tests/it.rs");
        assert!(text.contains("fn adds_all()") && !text.contains("fn adds()"), "{text}");
    }

    #[test]
    fn tests_that_macros_make_pass_beside_a_canary() {
        let it = "demo::cases!(adds, 2, 3, 5);\n";
        let (mut judge, launch) = audit("cargo test", &[("tests/it.rs", it)], &[("tests/it.rs", it)]);
        let text = text(&launch.unwrap(), "tests/it.rs");
        let names = [names(&text), vec!["adds".to_owned()]].concat();
        assert!(names.len() == 2 && text.starts_with(it), "{text}");
        let (passed, why) = verdict(&mut judge, ran(&names, |name| name != "adds"));
        assert!(
            passed && why.contains("1 test, which macros make, passed by name, where 1 that must fail did"),
            "{why}"
        );
        let (mut judge, _) = audit("cargo test", &[("tests/it.rs", it)], &[("tests/it.rs", it)]);
        assert!(!verdict(&mut judge, ran(&names[1..], |_| false)).0, "a canary that is not run shows nothing");
        let why = audit("cargo test --doc", &[], &[]).1.unwrap_err();
        assert!(why.contains("no test is found in its sources") && why.contains("evidence = \"exit\""), "{why}");
    }
}
