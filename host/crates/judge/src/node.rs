//! `node --test`.
//!
//! Two runs, each with a reporter that names every test: the operator's own command, and the audit, in which tests have
//! other names and each file copies beside it, in each of which other tests are twins, with an expected value changed,
//! and one is a canary, which fails by the assertions of its file. node reports a file whose code ends the process as
//! passed, but does not report its tests; and a hook of the code under test can skip them, so that the file itself must
//! mark each skipped or todo test. Names and values are found as text: a test with a composed name is only counted.
//! Refuses test files with fewer tests than the base commit has, tests in TypeScript, and a run in which no test with a
//! name of its own passed, or nothing can be made to fail. A known gap: the code can write to the file of events.

mod command_line;
mod marks;
mod source;
mod twins;

use self::command_line::{Words, beside, is_test_file, is_typescript};
use self::marks::Marks;
use self::source::{Call, File};
use super::clike::Edit;
use super::runner::{BESIDE, CheckVerdict, JudgeStep, JudgedCheck, Launch, ProgramEnd, Runner};
use longhaul_core::text::count;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, RngExt as _, SeedableRng as _};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// Files of one audit, where there are few.
const COPIES_MAX: usize = 24;

const REPORTER: &str = include_str!("reporter.mjs");

/// The reporter's file, from the scratch directory.
const EVENTS: &str = "judge/events";

pub(crate) struct Node {
    argv: Vec<String>,
    words: Words,
    twins: bool,
    files: BTreeMap<String, File>,
    /// A file in TypeScript that the command runs.
    typescript: Option<String>,
    base_count: usize,
    random: StdRng,
    stage: Stage,
}

enum Stage {
    Start,
    Run,
    Audit { names: Names, ran: usize },
}

/// Names of the audit.
type Names = BTreeMap<String, Name>;

/// A name of the audit.
#[derive(Clone, Debug)]
struct Name {
    /// The name of the original test, or of the one beside it.
    of: String,
    path: String,
    must_fail: bool,
    /// True when it fails by an assertion alone.
    is_canary: bool,
    /// True when it certainly exists in its file.
    is_certain: bool,
}

/// The copies of a file, with tests under other names.
#[derive(Debug)]
struct Rewritten {
    texts: Vec<String>,
    names: Names,
}

/// The files of the audit.
#[derive(Debug, Default)]
struct Audit {
    over: BTreeMap<String, Vec<u8>>,
    names: Names,
    /// The paths of the files that the work does not have.
    copies: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Event {
    #[serde(default)]
    name: String,
    #[serde(default)]
    passed: bool,
    /// Neither skipped nor todo.
    #[serde(default)]
    is_shown: bool,
    #[serde(default)]
    is_end: bool,
}

impl Node {
    pub(crate) fn of(check: &JudgedCheck<'_>) -> Self {
        let command_line = Words::of(check.argv);
        let paths = check.files.paths();
        let is_test = |path: &String| (is_test_file(path) || command_line.choose_file(path)) && !is_typescript(path);
        let base = check.files.base_paths().into_iter().filter(is_test);
        let counted = base.filter_map(|path| check.files.read_base(&path)).map(|text| File::of(text).tests().count());
        let read = |path: &String| Some((path.clone(), File::of(check.files.read(path)?)));
        Self {
            argv: check.argv.to_vec(),
            twins: check.twins,
            base_count: counted.sum(),
            files: paths.iter().filter(|path| is_test(path)).filter_map(read).collect(),
            typescript: command_line.typescript(&paths).cloned(),
            random: StdRng::from_seed(check.seed),
            stage: Stage::Start,
            words: command_line,
        }
    }

    /// The command with one more reporter; people keep theirs.
    fn launch(&self, argv: &[String]) -> Launch {
        let has = |option: &str| argv.iter().any(|word| word.starts_with(option));
        let mut options = Vec::new();
        if !has("--test-reporter") {
            options.extend(["--test-reporter=spec", "--test-reporter-destination=stdout"].map(str::to_owned));
        } else if !has("--test-reporter-destination") {
            options.push("--test-reporter-destination=stdout".to_owned());
        }
        options.push(format!("--test-reporter=../{BESIDE}/reporter.mjs"));
        options.push(format!("--test-reporter-destination=../{EVENTS}"));
        let mut argv = argv.to_vec();
        let at = argv.iter().position(|word| word == "--test").map_or(1, |at| at + 1);
        argv.splice(at..at, options);
        Launch {
            argv,
            beside: [("reporter.mjs".to_owned(), REPORTER.as_bytes().to_vec())].into(),
            reads: vec![EVENTS.to_owned()],
            ..Launch::default()
        }
    }

    fn audit(&mut self, ended: &ProgramEnd) -> JudgeStep {
        if ended.exit_code != 0 {
            return CheckVerdict::failed();
        }
        match self.audited(ended) {
            Ok((launch, names, ran)) => {
                self.stage = Stage::Audit { names, ran };
                JudgeStep::Launch(launch)
            }
            Err(why) => CheckVerdict::refused(why),
        }
    }

    /// The audit, the required results of its names, and the number of passed tests before.
    fn audited(&mut self, ended: &ProgramEnd) -> Result<(Launch, Names, usize), String> {
        if let Some(text) = &self.words.unread {
            return Err(format!("`{text}` of its words is no pattern that can be read here"));
        }
        if let Some(path) = &self.typescript {
            return Err(format!(
                "{path} is in TypeScript, whose tests are not judged by name; compile them first, or set `evidence = \
                 \"exit\"` in its table of [checks]"
            ));
        }
        let events = events(ended)?;
        let all: usize = self.files.values().map(|file| file.tests().count()).sum();
        if all < self.base_count {
            let (now, base) = (count(all, "test"), self.base_count);
            return Err(format!("the test files have {now}, and {base} in the base commit; put them back"));
        }
        let passed = self.passed(&events)?;
        let Audit { over, names, copies } = self.rewrite(&passed);
        if names.is_empty() {
            return Err("no test passed that has a name of its own, which shows nothing".to_owned());
        }
        if !names.values().any(|name| name.must_fail) {
            return Err("nothing in its tests can be made to fail, which shows nothing".to_owned());
        }
        let argv = self.words.auditing(&self.argv, copies.iter());
        Ok((Launch { over, ..self.launch(&argv) }, names, passed.len()))
    }

    fn rewrite(&mut self, passed: &BTreeSet<&str>) -> Audit {
        let has_passed = |file: &File| file.tests().any(|(name, _)| passed.contains(name));
        let number = self.files.values().filter(|file| has_passed(file)).count();
        let copies = if self.twins { (COPIES_MAX / number.max(1)).clamp(2, 5) } else { 1 };
        let options = if self.words.is_only { "{ only: true }, " } else { "" };
        let mut audit = Audit::default();
        for (path, file) in self.files.iter().filter(|(_, file)| has_passed(file)) {
            // A file that only others load is loaded once.
            let copies = if self.words.choose_file(path) { copies } else { 1 };
            let new = rewritten(path, file, passed, copies, options, &mut self.random);
            audit.names.extend(new.names);
            let mut texts = new.texts.into_iter().map(String::into_bytes);
            audit.over.extend(texts.next().map(|text| (path.clone(), text)));
            for text in texts {
                let copy = beside(path, self.random.next_u32());
                audit.copies.push(copy.clone());
                audit.over.insert(copy, text);
            }
        }
        audit
    }

    /// The names of the passed tests. Each test must pass, except those that their files, or the words of the command,
    /// leave out.
    fn passed<'e>(&self, events: &'e [Event]) -> Result<BTreeSet<&'e str>, String> {
        let told: BTreeSet<&str> = events.iter().map(|event| event.name.as_str()).collect();
        let is_there =
            |path: &str, file: &File| self.words.choose_file(path) || file.tests().any(|(name, _)| told.contains(name));
        let there: Vec<_> = self.files.iter().filter(|(path, file)| is_there(path, file)).collect();
        let mut marks = Marks::default();
        there.iter().for_each(|(_, file)| marks.add(file));
        let is_free = |name: &str| marks.leave_out(name) || !self.words.choose(name);
        for event in events.iter().filter(|event| !event.is_end) {
            let name = &event.name;
            if !event.is_shown && !is_free(name) {
                return Err(format!(
                    "`{name}` was skipped or is to be done, which its own file does not say of it (did the code?)"
                ));
            }
            if event.is_shown && !event.passed {
                return Err(format!("`{name}` failed, and the exit code is 0"));
            }
        }
        let shown = || events.iter().filter(|event| event.passed && event.is_shown).map(|event| event.name.as_str());
        for (path, file) in there {
            for (name, _) in file.tests() {
                let is_missing = shown().filter(|one| *one == name).count() < marks.plain(name);
                if is_missing && !is_free(name) && (self.words.choose_file(path) || told.contains(name)) {
                    return Err(format!("`{name}` of {path} was not reported (did the code end its process?)"));
                }
            }
        }
        Ok(shown().collect())
    }
}

impl Runner for Node {
    fn next(&mut self, ended: Option<ProgramEnd>) -> JudgeStep {
        let ended = ended.unwrap_or_default();
        match std::mem::replace(&mut self.stage, Stage::Start) {
            Stage::Start => {
                self.stage = Stage::Run;
                JudgeStep::Launch(self.launch(&self.argv))
            }
            Stage::Run => self.audit(&ended),
            Stage::Audit { names, ran } => judged(&ended, &names, ran),
        }
    }
}

fn judged(ended: &ProgramEnd, names: &Names, ran: usize) -> JudgeStep {
    match outcome(ended, names) {
        Ok((renamed, failed)) => CheckVerdict::pass(format!(
            "{} passed by name; {renamed} passed under other names too, where {failed} that must fail did",
            count(ran, "test")
        )),
        Err(why) => CheckVerdict::refused(why),
    }
}

/// The number of passed tests under other names, and of failed ones that must fail.
fn outcome(ended: &ProgramEnd, names: &Names) -> Result<(usize, usize), String> {
    let events = events(ended).map_err(|why| format!("in the audit {why}"))?;
    let mut told: BTreeMap<&str, Vec<&Event>> = BTreeMap::new();
    events.iter().for_each(|event| told.entry(&event.name).or_default().push(event));
    let known: BTreeSet<&str> = names.iter().filter(|(name, _)| told.contains_key(name.as_str())).map(of).collect();
    let (mut renamed, mut failed, mut blind) = (0, 0, None);
    for (name, Name { of, path, must_fail, is_canary, is_certain }) in names {
        let Some(of_name) = told.get(name.as_str()) else {
            // Of two tests with this name one may be for another system.
            if !is_certain && known.contains(of.as_str()) {
                continue;
            }
            return Err(format!("in the audit `{of}` was not reported under another name"));
        };
        if of_name.iter().any(|event| !event.is_shown) {
            return Err(format!("in the audit `{of}` was skipped or is to be done, as `{name}`"));
        }
        match (of_name.iter().all(|event| event.passed), must_fail) {
            (true, true) if *is_canary => blind = Some(path),
            (true, true) => return Err(format!("`{of}` passes with another expected value too")),
            (false, false) => {
                return Err(format!(
                    "`{of}` passed and does not pass under another name beside its twin; if its tests share state, set \
                     `twins = false` in its table of [checks]"
                ));
            }
            (_, true) => failed += 1,
            (_, false) => renamed += 1,
        }
    }
    if let Some(path) = blind {
        return Err(format!("a test of {path} that must fail passes (did the code change its assertions?)"));
    }
    if failed == 0 || ended.exit_code == 0 {
        return Err("in the audit tests that must fail did not end it with a failure".to_owned());
    }
    Ok((renamed, failed))
}

fn of<'n>((_, name): (&String, &'n Name)) -> &'n str {
    &name.of
}

fn events(ended: &ProgramEnd) -> Result<Vec<Event>, &'static str> {
    let bytes = ended.files.get(EVENTS).ok_or("no report of its tests was left (is this node older than 20?)")?;
    let lines = std::str::from_utf8(bytes).map_err(|_| "the report of its tests is no text")?.lines();
    let events: Result<Vec<Event>, _> = lines.map(serde_json::from_str).collect();
    let events = events.map_err(|_| "something else wrote into the report of its tests")?;
    match events.split_last() {
        Some((last, rest)) if last.is_end && !rest.iter().any(|event| event.is_end) => Ok(events),
        _ => Err("the report of its tests did not come to its end"),
    }
}

/// Copies of a file with other names for the passed tests, and a canary in each. In each copy a test expects another
/// value, and in one, which may be any, the true one: no copy has only twins, so that nothing except the value tells
/// them apart.
fn rewritten(
    path: &str,
    file: &File,
    passed: &BTreeSet<&str>,
    copies: usize,
    options: &str,
    random: &mut StdRng,
) -> Rewritten {
    let tests: Vec<(&str, &Call)> = file.tests().filter(|(name, _)| passed.contains(name)).collect();
    let of_test = |of: &str, test: &Call, must_fail: bool, is_canary: bool| {
        let (of, path, is_certain) = (of.to_owned(), path.to_owned(), test.is_certain);
        Name { of, path, must_fail, is_canary, is_certain }
    };
    let (mut names, mut edits) = (Names::new(), vec![Vec::<Edit>::new(); copies]);
    for (of, test) in &tests {
        let true_one = random.random_range(0..copies);
        let row = if copies > 1 { twins::row(file, test, copies, true_one, random) } else { None };
        let end = test.written.as_ref().map_or(test.span.start, |written| written.end);
        for (copy, edits) in edits.iter_mut().enumerate() {
            let name = fresh(of, random);
            edits.push((end..end, name[of.len()..].to_owned()));
            let must_fail = row.as_ref().map_or(copy != true_one, |row| row.values[copy].1);
            if row.is_some() || !must_fail {
                names.insert(name, of_test(of, test, must_fail, false));
            }
            edits.extend(row.as_ref().map(|row| (row.span.clone(), row.values[copy].0.clone())));
        }
    }
    let certain: Vec<(&str, &Call)> = tests.iter().filter(|(_, test)| test.is_certain).copied().collect();
    for edits in &mut edits {
        let Some((of, test)) = certain.choose(random).or_else(|| tests.choose(random)) else { break };
        let name = fresh(of, random);
        if let Some(canary) = twins::canary(file, test, &name, options, random) {
            edits.push((canary.at..canary.at, canary.text));
            names.insert(name, of_test(of, test, true, true));
        }
    }
    Rewritten { texts: edits.into_iter().map(|edits| edited(&file.text, edits)).collect(), names }
}

/// The original name comes first: commands may choose tests by a part of it.
fn fresh(of: &str, random: &mut StdRng) -> String {
    format!("{of} {:08x}", random.next_u32())
}

/// A text with replaced parts, none of which overlap.
fn edited(text: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|(span, _)| std::cmp::Reverse(span.start));
    let mut new = text.to_owned();
    edits.into_iter().for_each(|(span, with)| new.replace_range(span, &with));
    new
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{FakeFiles, check};
    use crate::{EvidenceKind, Judge};

    const FILE: &str = "import test from 'node:test';\ntest('adds', () => {\n  assert.strictEqual(add(2, 3), 5);\n});\n\
                        test(\"says\", () => {\n  assert.equal(/a/.test('b'), said);\n});\n  it(`is ${x}`, f);\n\
                        test('runs', (t) => {\n  run();\n});\n\
                        after(() => { assert.equal(left, 7); });\n";

    fn new(passed: &[&str], copies: usize) -> Rewritten {
        let passed = passed.iter().copied().collect();
        rewritten("a.test.js", &File::of(FILE.to_owned()), &passed, copies, "", &mut StdRng::from_seed([1; 32]))
    }

    /// The number of names of a test, with these flags.
    fn number(new: &Rewritten, of: &str, must_fail: bool, is_canary: bool) -> usize {
        let is_it = |name: &&Name| name.of == of && name.must_fail == must_fail && name.is_canary == is_canary;
        new.names.values().filter(is_it).count()
    }

    #[test]
    fn one_copy_of_a_test_has_the_true_value_and_the_others_are_twins() {
        let all = ["adds", "says", "runs"];
        let Rewritten { texts, names } = new(&all, 1);
        assert!(texts[0].contains("strictEqual(add(2, 3), 5)") && names.len() == 4, "{texts:?}");
        let new_all = new(&all, 4);
        let texts = &new_all.texts;
        let with_true = texts.iter().filter(|text| text.contains("strictEqual(add(2, 3), 5)")).count();
        assert!(with_true == 1 && texts.iter().all(|text| text.contains("strictEqual(add(2, 3), ")), "{texts:?}");
        assert!(texts.iter().all(|text| text.contains("assert.equal(left, 7)")), "a hook stays: {texts:?}");
        for (of, twins) in [("adds", 3), ("says", 3), ("runs", 0)] {
            let found = (number(&new_all, of, false, false), number(&new_all, of, true, false));
            assert_eq!(found, (1, twins), "{of}: {texts:?}");
        }
        let of_one = new(&["says"], 2);
        assert!(of_one.texts.iter().all(|text| text.contains("test('adds', ")), "{of_one:?}");
        assert_eq!(number(&of_one, "adds", false, false), 0, "{of_one:?}");
    }

    #[test]
    fn each_copy_has_a_canary_also_without_twins() {
        for copies in [1, 4] {
            let new = new(&["adds", "says", "runs"], copies);
            let canaries: Vec<_> = new.names.iter().filter(|(_, name)| name.is_canary).collect();
            assert!(canaries.len() == copies && canaries.iter().all(|(_, name)| name.must_fail), "{new:?}");
            for text in &new.texts {
                let own: Vec<_> = canaries.iter().filter(|(name, _)| text.contains(name.as_str())).collect();
                assert_eq!(own.len(), 1, "{text}");
                let file = File::of(text.clone());
                let (_, call) = file.tests().find(|(name, _)| *name == own[0].0.as_str()).unwrap();
                assert!(file.text[call.span.clone()].contains("=> { assert."), "{text}");
            }
        }
    }

    /// Judges a work whose first run reports these tests, and returns the audit.
    fn audit(argv: &str, base: &[(&str, &str)], now: &[(&str, &str)], told: &[&str]) -> Result<Launch, String> {
        let files = FakeFiles::of(base, now);
        let argv: Vec<String> = argv.split(' ').map(str::to_owned).collect();
        let mut judge = Judge::of(&check(&argv, EvidenceKind::Node, &files));
        assert!(matches!(judge.next(None), JudgeStep::Launch(_)));
        match judge.next(Some(ran(told, 0))) {
            JudgeStep::Launch(launch) => Ok(launch),
            JudgeStep::Judged(verdict) => Err(verdict.why),
        }
    }

    /// A run in which these tests pass, or fail if a `-` stands before the name.
    fn ran(told: &[&str], exit_code: i32) -> ProgramEnd {
        let of = |name: &&str| match name.strip_prefix('-') {
            Some(name) => format!("{{\"name\":\"{name}\",\"passed\":false,\"is_shown\":true}}\n"),
            None => format!("{{\"name\":\"{name}\",\"passed\":true,\"is_shown\":true}}\n"),
        };
        let events = told.iter().map(of).collect::<String>() + "{\"is_end\":true}\n";
        ProgramEnd { exit_code, files: [(EVENTS.to_owned(), events.into_bytes())].into(), ..ProgramEnd::default() }
    }

    const TEST: &str = "const assert = require('assert');\ntest('adds', () => {\n  assert.equal(add(1), 2);\n});\n";

    #[test]
    fn fewer_tests_than_in_the_base_commit_are_no_pass() {
        let two = format!("{TEST}test('says', f);\n");
        let why = audit("node --test", &[("a.test.js", &*two)], &[("a.test.js", TEST)], &["adds"]).unwrap_err();
        assert!(why.contains("the test files have 1 test, and 2 in the base commit"), "{why}");
        for now in [&[("a.test.js", &*two)][..], &[("a.test.js", TEST), ("b.test.js", "it('says', f);\n")][..]] {
            let launch = audit("node --test", &[("a.test.js", &*two)], now, &["adds", "says"]).unwrap();
            assert!(launch.over.len() > 2 && launch.over.contains_key("a.test.js"), "{launch:?}");
        }
    }

    #[test]
    fn a_test_may_be_missing_only_where_its_file_may_leave_it_out() {
        let more =
            "if (process.platform === 'win32') {\n  test('is of a system', f);\n}\n/*\ntest('is none', f);\n*/\n";
        let text = format!("{more}{TEST}");
        let now = [("a.test.js", &*text)];
        audit("node --test", &now, &now, &["adds"]).unwrap();
        let why = audit("node --test", &now, &now, &["is of a system"]).unwrap_err();
        assert!(why.contains("`adds` of a.test.js was not reported"), "{why}");
        // A directory is searched, so that a file in it cannot stay silent.
        let two = [("test/a.test.js", TEST), ("test/own.test.js", "test('own', f);\n")];
        let why = audit("node --test test/", &two, &two, &["own"]).unwrap_err();
        assert!(why.contains("`adds` of test/a.test.js was not reported"), "{why}");
    }

    #[test]
    fn files_are_those_that_the_command_names() {
        let now = [("a.spec.js", TEST), ("b.ts", TEST)];
        let launch = audit("node --test *.spec.js", &now, &now, &["adds"]).unwrap();
        assert!(launch.over.len() == 5 && launch.over.keys().all(|path| path.ends_with(".spec.js")), "{launch:?}");
        assert_eq!(launch.argv.last().map(String::as_str), Some("*.spec.js"));
        let launch = audit("node --test ./a.spec.js", &now, &now, &["adds"]).unwrap();
        assert_eq!(launch.argv.iter().filter(|word| word.ends_with(".spec.js")).count(), 5, "{launch:?}");
        let why = audit("node --import tsx --test b.ts", &now, &now, &["adds"]).unwrap_err();
        assert!(why.contains("b.ts is in TypeScript") && why.contains("evidence = \"exit\""), "{why}");
    }

    #[test]
    fn what_must_fail_and_does_not_is_no_pass() {
        let new = new(&["adds", "says", "runs"], 4);
        let ended = |is_well: &dyn Fn(&Name) -> bool, exit_code| {
            let of = |(name, of): (&String, &Name)| if is_well(of) { name.clone() } else { format!("-{name}") };
            let told: Vec<String> = new.names.iter().map(of).collect();
            ran(&told.iter().map(String::as_str).collect::<Vec<_>>(), exit_code)
        };
        let (renamed, failed) = outcome(&ended(&|name| !name.must_fail, 1), &new.names).unwrap();
        assert_eq!((renamed, failed), (3, 10), "six twins and four canaries");
        let why =
            |is_well: &dyn Fn(&Name) -> bool, exit_code| outcome(&ended(is_well, exit_code), &new.names).unwrap_err();
        assert!(why(&|_| true, 0).contains("passes with another expected value too"));
        assert!(why(&|name| !name.must_fail || name.is_canary, 1).contains("that must fail passes"));
        assert!(why(&|name| !name.must_fail, 0).contains("did not end it with a failure"));
        assert!(why(&|_| false, 1).contains("does not pass under another name"));
        let none = BTreeMap::new();
        assert!(outcome(&ran(&[], 0), &none).is_err(), "nothing that must fail shows nothing");
    }
}
