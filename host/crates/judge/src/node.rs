//! `node --test`.
//!
//! Two runs, each with a reporter that names every test: the operator's own command, and the audit, in which tests have
//! other names and each file a twin beside it, whose expected values were changed. A file whose code ends the process is
//! reported as passed by node, but its tests are not. Names and values are found as text: a test whose name is put
//! together, or which compares no literal, is only counted. Open: the events lie in a file that the code can write to.

use super::kind::base_name;
use super::{BESIDE, Check, Ended, Launch, Runner, Step, Verdict};
use longhaul_core::text::count;
use rand::rngs::StdRng;
use rand::{Rng as _, RngExt as _, SeedableRng as _};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

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
        let passed: BTreeSet<&str> =
            events.iter().filter(|event| event.passed && event.is_shown).map(|event| event.name.as_str()).collect();
        let told: BTreeSet<&str> = events.iter().map(|event| event.name.as_str()).collect();
        let all: usize = self.files.values().map(|text| named(text).len()).sum();
        if all < self.base_count {
            let (now, base) = (count(all, "test"), self.base_count);
            return Verdict::refused(format!(
                "the test files have {now}, and {base} in the base commit; put them back"
            ));
        }
        let mut over = BTreeMap::new();
        let (mut names, mut argv) = (BTreeMap::new(), self.argv.clone());
        for (path, text) in &self.files {
            let tests = named(text);
            if tests.is_empty() {
                continue;
            }
            let missing = tests.iter().find(|test| !told.contains(test.name.as_str()));
            if let Some(test) = missing.filter(|_| self.is_run(path)) {
                return Verdict::refused(format!(
                    "`{}` of {path} was not reported (did the code end its process?)",
                    test.name
                ));
            }
            if !tests.iter().all(|test| passed.contains(test.name.as_str())) {
                continue;
            }
            let (real, kinds) = rewritten(text, &tests, false, &mut self.random);
            over.insert(path.clone(), real.into_bytes());
            names.extend(kinds);
            if self.twins {
                let (twin, kinds) = rewritten(text, &tests, true, &mut self.random);
                let twin_path = beside(path, self.random.next_u32());
                if let Some(at) = argv.iter().position(|word| word.trim_start_matches("./") == path) {
                    argv.insert(at + 1, twin_path.clone());
                }
                over.insert(twin_path, twin.into_bytes());
                names.extend(kinds);
            }
        }
        if passed.is_empty() || names.is_empty() {
            return Verdict::refused("no test passed that has a name of its own, which shows nothing");
        }
        let launch = Launch { over, ..self.launch(&argv) };
        self.stage = Stage::Audit { names, ran: passed.len() };
        Step::Launch(launch)
    }

    /// Whether the command runs a file for certain: it names no other.
    fn is_run(&self, path: &str) -> bool {
        let mut words =
            self.argv.iter().filter(|word| word.contains(".js") || word.contains(".mjs") || word.contains(".cjs"));
        words.clone().next().is_none() && !self.argv.iter().any(|word| word.starts_with("--test-"))
            || words.any(|word| word.trim_start_matches("./") == path)
    }
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
        let passed = of_name.iter().all(|event| event.passed && event.is_shown);
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

/// The text with other names, and, in a twin, with other expected values.
fn rewritten(text: &str, tests: &[Named], is_twin: bool, random: &mut StdRng) -> (String, BTreeMap<String, Name>) {
    let (mut new, mut names) = (text[..tests.first().map_or(0, |test| test.at)].to_owned(), BTreeMap::new());
    for (number, test) in tests.iter().enumerate() {
        let end = tests.get(number + 1).map_or(text.len(), |next| next.at);
        let body = &text[test.at + test.name.len()..end];
        let changed = if is_twin { with_other_value(body, random) } else { None };
        let name = format!("{} {:08x}", test.name, random.next_u32());
        new.push_str(&name);
        new.push_str(changed.as_deref().unwrap_or(body));
        if !is_twin || changed.is_some() {
            names.insert(name, Name { of: test.name.clone(), must_fail: is_twin });
        }
    }
    (new, names)
}

/// The first comparison with a literal in a body, changed. Only one that stands on a line of its own, where nothing
/// before it may leave the body.
fn with_other_value(body: &str, random: &mut StdRng) -> Option<String> {
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
            let other = value + random.random_range(1..5) * if random.random() { 1 } else { -1 };
            let mut changed = body.to_owned();
            changed.replace_range(start + at..start + at + literal.len(), &other.to_string());
            return Some(changed);
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
    fn a_twin_expects_another_value() {
        let mut random = StdRng::from_seed([1; 32]);
        let (real, names) = rewritten(FILE, &named(FILE), false, &mut random);
        assert!(real.contains("strictEqual(add(2, 3), 5)") && names.len() == 2, "{real}");
        let (twin, names) = rewritten(FILE, &named(FILE), true, &mut random);
        assert!(!twin.contains("strictEqual(add(2, 3), 5)") && twin.contains("strictEqual(add(2, 3), "), "{twin}");
        assert!(names.len() == 1 && names.values().all(|name| name.must_fail && name.of == "adds"), "{names:?}");
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
