//! `node --test`.
//!
//! Two runs, each with a reporter that names every test: the operator's own command, and the audit, in which tests have
//! other names and each file copies beside it, in each of which other tests are twins, with an expected value changed.
//! A file whose code ends the process is reported as passed by node, but its tests are not; and a hook of the code
//! under test can skip them, so that one which is skipped or to be done must be so by the words of its own file. Names
//! and values are found as text: a test whose name is put together, or which compares no literal, is only counted.
//! Refuses test files with fewer tests than the base commit has, and a run in which no test with a name of its own
//! passed. Open: the events lie in a file that the code can write to.

mod marks;

use self::marks::Marks;
use super::kind::base_name;
use super::{BESIDE, Check, Ended, Launch, Runner, Step, Verdict};
use longhaul_core::text::count;
use rand::rngs::StdRng;
use rand::{Rng as _, RngExt as _, SeedableRng as _};
use regex::Regex;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// Files of one audit, where there are few.
const COPIES_MAX: usize = 24;

const REPORTER: &str = include_str!("reporter.mjs");

/// Where the reporter writes, from the scratch directory.
const EVENTS: &str = "judge/events";

/// Calls that compare what comes first with what comes second.
const COMPARISONS: [&str; 7] =
    ["strictEqual(", "deepStrictEqual(", ".equal(", ".deepEqual(", ".toBe(", ".toEqual(", ".toStrictEqual("];

pub(crate) struct Node {
    argv: Vec<String>,
    twins: bool,
    files: BTreeMap<String, String>,
    base_count: usize,
    random: StdRng,
    stage: Stage,
}

enum Stage {
    Start,
    Run,
    Audit { names: BTreeMap<String, Name>, ran: usize },
}

/// What a name of the audit is.
#[derive(Clone, Debug)]
struct Name {
    of: String,
    must_fail: bool,
}

#[derive(Debug, Deserialize)]
struct Event {
    #[serde(default)]
    name: String,
    #[serde(default)]
    passed: bool,
    /// Neither skipped nor to be done.
    #[serde(default)]
    is_shown: bool,
    #[serde(default)]
    is_end: bool,
}

impl Node {
    pub(crate) fn of(check: &Check<'_>) -> Self {
        let read = |path: String| Some((path.clone(), check.files.read(&path)?));
        let base = check.files.base_paths().into_iter().filter(|path| is_test_file(path));
        Self {
            argv: check.argv.to_vec(),
            twins: check.twins,
            files: check.files.paths().into_iter().filter(|path| is_test_file(path)).filter_map(read).collect(),
            base_count: base.filter_map(|path| check.files.read_base(&path)).map(|text| named(&text).len()).sum(),
            random: StdRng::from_seed(check.seed),
            stage: Stage::Start,
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

    fn audit(&mut self, ended: &Ended) -> Step {
        if ended.exit_code != 0 {
            return Verdict::failed();
        }
        let events = match events(ended) {
            Ok(events) => events,
            Err(why) => return Verdict::refused(why),
        };
        let all: usize = self.files.values().map(|text| named(text).len()).sum();
        if all < self.base_count {
            let (now, base) = (count(all, "test"), self.base_count);
            return Verdict::refused(format!(
                "the test files have {now}, and {base} in the base commit; put them back"
            ));
        }
        let passed = match self.passed(&events) {
            Ok(passed) => passed,
            Err(why) => return Verdict::refused(why),
        };
        let copies = if self.twins { (COPIES_MAX / self.files.len().max(1)).clamp(2, 5) } else { 1 };
        let mut over = BTreeMap::new();
        let (mut names, mut argv) = (BTreeMap::new(), self.argv.clone());
        for (path, text) in &self.files {
            let tests = named(text);
            if !tests.iter().any(|test| passed.contains(test.name.as_str())) {
                continue;
            }
            let (texts, kinds) = rewritten(text, &tests, &passed, copies, &mut self.random);
            names.extend(kinds);
            let mut texts = texts.into_iter().map(String::into_bytes);
            over.extend(texts.next().map(|text| (path.clone(), text)));
            for text in texts {
                let copy = beside(path, self.random.next_u32());
                if let Some(at) = argv.iter().position(|word| word.trim_start_matches("./") == path) {
                    argv.insert(at + 1, copy.clone());
                }
                over.insert(copy, text);
            }
        }
        if passed.is_empty() || names.is_empty() {
            return Verdict::refused("no test passed that has a name of its own, which shows nothing");
        }
        let launch = Launch { over, ..self.launch(&argv) };
        self.stage = Stage::Audit { names, ran: passed.len() };
        Step::Launch(launch)
    }

    /// The names of the tests that passed. Each must be one, but for those that their files leave out themselves, or
    /// the words of the command.
    fn passed<'e>(&self, events: &'e [Event]) -> Result<BTreeSet<&'e str>, String> {
        let mut marks = Marks::default();
        let is_told = |name: &str| events.iter().any(|event| event.name == name);
        let is_there = |path: &str, text: &str| self.is_run(path) || named(text).iter().any(|test| is_told(&test.name));
        let there: Vec<_> = self.files.iter().filter(|(path, text)| is_there(path, text)).collect();
        there.iter().for_each(|(_, text)| marks.add(text));
        let chosen = Chosen::of(&self.argv)?;
        let is_free = |name: &str| marks.leave_out(name) || !chosen.holds(name);
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
        for (path, text) in there {
            for Named { name, .. } in named(text) {
                let is_missing = shown().filter(|one| *one == name).count() < marks.plain(&name).max(1);
                if is_missing && !is_free(&name) && (self.is_run(path) || is_told(&name)) {
                    return Err(format!("`{name}` of {path} was not reported (did the code end its process?)"));
                }
            }
        }
        Ok(shown().collect())
    }

    /// Whether the command runs a file for certain: it names no other.
    fn is_run(&self, path: &str) -> bool {
        let named = words_of(&self.argv);
        named.is_empty() || named.iter().any(|word| word.trim_start_matches("./") == path)
    }
}

/// Words of node that take the next one as theirs.
const TAKES_A_WORD: [&str; 14] = [
    "-r",
    "--require",
    "--import",
    "--loader",
    "--experimental-loader",
    "-C",
    "--conditions",
    "--env-file",
    "--test-concurrency",
    "--test-name-pattern",
    "--test-reporter",
    "--test-reporter-destination",
    "--test-shard",
    "--test-skip-pattern",
];

/// The files and directories that a command names.
fn words_of(argv: &[String]) -> Vec<&String> {
    let pairs = argv.windows(2).filter(|pair| !TAKES_A_WORD.contains(&pair[0].as_str()));
    pairs.map(|pair| &pair[1]).filter(|word| !word.starts_with('-')).collect()
}

/// Which tests the words of a command choose.
struct Chosen {
    patterns: Vec<Regex>,
    /// Whether others may be left out besides, by marks and numbers.
    is_open: bool,
}

impl Chosen {
    fn of(argv: &[String]) -> Result<Self, String> {
        let mut chosen = Self { patterns: Vec::new(), is_open: false };
        for (at, word) in argv.iter().enumerate() {
            let (option, value) =
                word.split_once('=').map_or((word.as_str(), None), |(option, value)| (option, Some(value)));
            match option {
                "--test-name-pattern" => {
                    let value = value.or_else(|| argv.get(at + 1).map(String::as_str)).unwrap_or_default();
                    chosen.patterns.push(pattern(value)?);
                }
                "--test-only" | "--test-shard" | "--test-skip-pattern" => chosen.is_open = true,
                _ => {}
            }
        }
        Ok(chosen)
    }

    /// Whether a test of this name must run. What a pattern says of the suites around it may leave it out.
    fn holds(&self, name: &str) -> bool {
        let is_chosen = |one: &Regex| one.is_match(name) && !one.as_str().contains('^');
        !self.is_open && (self.patterns.is_empty() || self.patterns.iter().any(is_chosen))
    }
}

/// `one` or `/one/i`, as node reads it.
fn pattern(text: &str) -> Result<Regex, String> {
    let written = text.strip_prefix('/').and_then(|rest| rest.rsplit_once('/'));
    let (inner, flags) = written.unwrap_or((text, ""));
    let flags: String = flags.chars().filter(|flag| "ims".contains(*flag)).collect();
    let whole = if flags.is_empty() { inner.to_owned() } else { format!("(?{flags}-u){inner}") };
    Regex::new(&whole).map_err(|_| format!("`{text}` of its words is no pattern that can be read here"))
}

impl Runner for Node {
    fn next(&mut self, ended: Option<Ended>) -> Step {
        let ended = ended.unwrap_or_default();
        match std::mem::replace(&mut self.stage, Stage::Start) {
            Stage::Start => {
                self.stage = Stage::Run;
                Step::Launch(self.launch(&self.argv))
            }
            Stage::Run => self.audit(&ended),
            Stage::Audit { names, ran } => judged(&ended, &names, ran),
        }
    }
}

fn judged(ended: &Ended, names: &BTreeMap<String, Name>, ran: usize) -> Step {
    let events = match events(ended) {
        Ok(events) => events,
        Err(why) => return Verdict::refused(format!("in the audit {why}")),
    };
    let mut failed = 0;
    for (name, Name { of, must_fail }) in names {
        let of_name: Vec<&Event> = events.iter().filter(|event| event.name == *name).collect();
        if of_name.is_empty() {
            return Verdict::refused(format!("in the audit `{of}` was not reported under another name"));
        }
        if let Some(event) = of_name.iter().find(|event| !event.is_shown) {
            let name = &event.name;
            return Verdict::refused(format!("in the audit `{of}` was skipped or is to be done, as `{name}`"));
        }
        let passed = of_name.iter().all(|event| event.passed);
        match (passed, must_fail) {
            (true, true) => return Verdict::refused(format!("`{of}` passes with another expected value too")),
            (false, false) => {
                return Verdict::refused(format!(
                    "`{of}` passed and does not pass under another name beside its twin; if its tests share state, set \
                     `twins = false` in its table of [checks]"
                ));
            }
            (_, true) => failed += 1,
            (_, false) => {}
        }
    }
    if failed > 0 && ended.exit_code == 0 {
        return Verdict::refused("in the audit tests failed, and its exit code is 0");
    }
    let renamed = names.len() - failed;
    Verdict::pass(format!(
        "{} passed by name; {renamed} passed under other names too, where {failed} that must fail did",
        count(ran, "test")
    ))
}

fn events(ended: &Ended) -> Result<Vec<Event>, &'static str> {
    let bytes = ended.files.get(EVENTS).ok_or("no report of its tests was left (is this node older than 20?)")?;
    let lines = std::str::from_utf8(bytes).map_err(|_| "the report of its tests is no text")?.lines();
    let events: Result<Vec<Event>, _> = lines.map(serde_json::from_str).collect();
    let events = events.map_err(|_| "something else wrote into the report of its tests")?;
    match events.split_last() {
        Some((last, rest)) if last.is_end && !rest.iter().any(|event| event.is_end) => Ok(events),
        _ => Err("the report of its tests did not come to its end"),
    }
}

/// As node finds them.
fn is_test_file(path: &str) -> bool {
    let name = base_name(path);
    let Some((stem, "js" | "mjs" | "cjs")) = name.rsplit_once('.') else { return false };
    let is_named = stem == "test"
        || stem.starts_with("test-")
        || [".test", "-test", "_test"].iter().any(|ending| stem.ends_with(ending))
        || path.split('/').rev().skip(1).any(|dir| dir == "test");
    is_named && !path.split('/').any(|dir| dir == "node_modules")
}

/// A name by which node finds the file too.
fn beside(path: &str, number: u32) -> String {
    let (dir, name) = path.rsplit_once('/').map_or(("", path), |(dir, name)| (dir, name));
    let extension = name.rsplit('.').next().unwrap_or("js");
    let slash = if dir.is_empty() { "" } else { "/" };
    format!("{dir}{slash}twin_{number:08x}.test.{extension}")
}

/// A test whose name is written out.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Named {
    name: String,
    /// Where the name stands, without its quotes.
    at: usize,
}

/// `test('name', ...)` and `it('name', ...)`, at the start of a line.
fn named(text: &str) -> Vec<Named> {
    let mut found = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim_start();
        let call = ["test(", "it("].into_iter().find_map(|call| trimmed.strip_prefix(call));
        if let Some(rest) = call
            && let Some(quote) = rest.chars().next().filter(|quote| matches!(quote, '\'' | '"' | '`'))
            && let Some((name, _)) = rest[1..].split_once(quote)
            && !name.is_empty()
            && !name.contains(['\\', '$'])
        {
            found.push(Named { name: name.to_owned(), at: start + line.len() - rest.len() + 1 });
        }
        start += line.len();
    }
    found
}

/// So many copies of the text with other names for what passed. In each a test expects another value, and in one, which
/// may be any, the true one: no copy is one of twins alone, so that nothing but the value tells them.
fn rewritten(
    text: &str,
    tests: &[Named],
    passed: &BTreeSet<&str>,
    copies: usize,
    random: &mut StdRng,
) -> (Vec<String>, BTreeMap<String, Name>) {
    let before = text[..tests.first().map_or(0, |test| test.at)].to_owned();
    let (mut texts, mut names) = (vec![before; copies], BTreeMap::new());
    for (number, test) in tests.iter().enumerate() {
        let end = tests.get(number + 1).map_or(text.len(), |next| next.at);
        let body = &text[test.at + test.name.len()..end];
        let is_renamed = passed.contains(test.name.as_str());
        let true_one = random.random_range(0..copies);
        let bodies = with_values(body, copies, true_one).filter(|_| is_renamed);
        for (copy, new) in texts.iter_mut().enumerate() {
            if !is_renamed {
                new.push_str(&text[test.at..end]);
                continue;
            }
            let name = format!("{} {:08x}", test.name, random.next_u32());
            new.push_str(&name);
            new.push_str(bodies.as_ref().map_or(body, |bodies| &bodies[copy]));
            let must_fail = copy != true_one;
            if bodies.is_some() || !must_fail {
                names.insert(name, Name { of: test.name.clone(), must_fail });
            }
        }
    }
    (texts, names)
}

/// A body so many times: the first comparison in it with a literal has values in a row, of which that at `true_one` is
/// the true one. Only a comparison that stands on a line of its own, where nothing before it may leave the body.
fn with_values(body: &str, copies: usize, true_one: usize) -> Option<Vec<String>> {
    let mut start = 0;
    for line in body.split_inclusive('\n') {
        let is_left = ["return", "if ", "if(", "for ", "for(", "while", "skip", "todo", "?"]
            .iter()
            .any(|word| line.contains(word));
        if is_left {
            return None;
        }
        let is_comparison = COMPARISONS.iter().any(|call| line.contains(call));
        if is_comparison && let Some((at, literal)) = last_number(line.trim_end().trim_end_matches([';', ')', '}'])) {
            let value: i64 = literal.parse().ok()?;
            let first = value.checked_sub(i64::try_from(true_one).ok()?)?;
            let with = |other: i64| {
                let mut changed = body.to_owned();
                changed.replace_range(start + at..start + at + literal.len(), &other.to_string());
                changed
            };
            return (first..).take(copies).map(|other| Some(with(other))).collect();
        }
        start += line.len();
    }
    None
}

/// The whole number that ends a text as an argument of its own: after a comma or an opening bracket.
fn last_number(text: &str) -> Option<(usize, &str)> {
    let text = text.trim_end();
    let digits = text.len() - text.bytes().rev().take_while(u8::is_ascii_digit).count();
    if digits == text.len() {
        return None;
    }
    let at = if text[..digits].ends_with('-') { digits - 1 } else { digits };
    let before = text[..at].trim_end();
    (before.ends_with(',') || before.ends_with('(')).then_some((at, &text[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "import test from 'node:test';\ntest('adds', () => {\n  assert.strictEqual(add(2, 3), 5);\n});\n\
                        test(\"says\", () => {\n  assert.equal(/a/.test('b'), false);\n});\n  it(`is ${x}`, f);\n";

    #[test]
    fn names_that_are_written_out_are_found() {
        let names: Vec<String> = named(FILE).into_iter().map(|test| test.name).collect();
        assert_eq!(names, ["adds", "says"]);
        assert!(named(FILE).iter().all(|test| FILE[test.at..].starts_with(&test.name)));
    }

    #[test]
    fn one_copy_of_a_test_has_the_true_value_and_the_others_are_twins() {
        let (mut random, passed) = (StdRng::from_seed([1; 32]), BTreeSet::from(["adds", "says"]));
        let (texts, names) = rewritten(FILE, &named(FILE), &passed, 1, &mut random);
        assert!(texts[0].contains("strictEqual(add(2, 3), 5)") && names.len() == 2, "{texts:?}");
        let (texts, names) = rewritten(FILE, &named(FILE), &passed, 4, &mut random);
        let with_true = texts.iter().filter(|text| text.contains("strictEqual(add(2, 3), 5)")).count();
        assert!(with_true == 1 && texts.iter().all(|text| text.contains("strictEqual(add(2, 3), ")), "{texts:?}");
        let failing = names.values().filter(|name| name.must_fail);
        assert!(names.len() == 5 && failing.clone().count() == 3 && failing.clone().all(|name| name.of == "adds"));
        let (texts, names) = rewritten(FILE, &named(FILE), &BTreeSet::from(["says"]), 2, &mut random);
        assert!(names.len() == 1 && texts.iter().all(|text| text.contains("test('adds', ")), "{names:?}");
    }

    #[test]
    fn words_choose_files_and_tests() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<String>>();
        assert!(words_of(&words("node --import ./setup.mjs --test --test-reporter=spec")).is_empty());
        assert_eq!(words_of(&words("node --test --test-name-pattern add a.test.js ./b.js")), ["a.test.js", "./b.js"]);
        let holds = |text: &str, name: &str| Chosen::of(&words(text)).unwrap().holds(name);
        assert!(holds("node --test", "adds") && holds("node --test --test-name-pattern=/ADD/i", "adds"));
        assert!(!holds("node --test --test-name-pattern add", "says") && !holds("node --test --test-only", "adds"));
        assert!(Chosen::of(&words("node --test --test-name-pattern=(")).is_err());
    }

    #[test]
    fn test_files_are_those_of_node() {
        for path in ["a.test.js", "test/b.mjs", "test-x.cjs", "lib/c_test.js", "test.js"] {
            assert!(is_test_file(path), "{path}");
        }
        for path in ["a.js", "testing/a.js", "node_modules/x/a.test.js", "a.test.ts"] {
            assert!(!is_test_file(path), "{path}");
        }
        assert!(is_test_file(&beside("lib/a.test.js", 1)) && is_test_file(&beside("test.js", 1)));
    }
}
