//! Edits that make a node test certainly fail where it passed, and canaries: tests that fail only by an assertion.
//!
//! The best edit is a near expected value, written out, also within a list or an object; else a computed one, replaced
//! as the test runs; else a negated truth value. Refuses statements that a passing test may not reach, and comparisons
//! that are no equality, such as `.not.toBe(5)`.

use super::source::{Call, File};
use crate::clike::{blank, is_literal, near, split};
use rand::RngExt as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use regex::Regex;
use std::ops::Range;
use std::sync::LazyLock;

/// A call at the start of a statement.
static HEAD: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^(?:await\s+)?((?:[\w$]+\s*\.\s*)*)([\w$]+)\s*\(").expect("a pattern of ours"));

static LINK: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^\s*\.\s*([\w$]+)").expect("a pattern of ours"));

/// The name of node's assertions in a file.
static MODULE: LazyLock<Regex> = LazyLock::new(|| {
    let module = [
        r"\b(?:import|const|let|var)\s+(?:\*\s*as\s+)?([\w$]+)\s*(?:from|=\s*require\s*\()\s*",
        r#"['"](?:node:)?assert(?:/strict)?['"]"#,
    ];
    Regex::new(&module.concat()).expect("a pattern of ours")
});

/// Functions that compare the first argument with an expected value.
const EQUALS: [&str; 4] = ["strictEqual", "deepStrictEqual", "equal", "deepEqual"];

/// The same, behind `expect(...)`.
const MATCHERS: [&str; 7] = ["toBe", "toEqual", "toStrictEqual", "equal", "equals", "eql", "eq"];

/// Words between `expect(...)` and one of them.
const CHAIN: [&str; 7] = ["to", "be", "is", "have", "that", "deep", "strictly"];

/// Parts of names of loose comparisons.
const LOOSE: [&str; 5] = ["approx", "almost", "close", "near", "not"];

/// Digits of the largest numbers that are changed: larger ones may equal their neighbours.
const DIGITS_MAX: usize = 15;

/// Nesting of lists that are searched.
const LISTS_MAX: usize = 8;

/// Another value than `v` for each `k` except 0, which nothing equals that equals `v`.
const OTHER: &str = "((v, k) => k === 0 ? v : typeof v === 'number' ? (v + k - v === k ? v + k : k) : typeof v === \
     'bigint' ? v + BigInt(k) : typeof v === 'boolean' ? !v : typeof v === 'string' ? v + k : Array.isArray(v) ? \
     [...v, k] : v !== null && typeof v === 'object' ? { ...v, [k]: k } : k)";

/// The text in one place of a test in each copy of its file, and whether the test must fail there.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) span: Range<usize>,
    pub(super) values: Vec<(String, bool)>,
}

/// A test that must fail, to be inserted at a place.
#[derive(Debug)]
pub(super) struct Canary {
    pub(super) at: usize,
    pub(super) text: String,
}

/// A statement that compares.
#[derive(Debug)]
struct Assertion {
    /// The compared values, the expected one first; a single value must be true.
    values: Vec<Range<usize>>,
    /// Its text before the first value, between both, and after the second.
    form: [String; 3],
    /// The object that it is called on.
    path: String,
}

/// The part of an assertion that can be changed.
#[derive(Clone, Debug)]
enum Change {
    Literal(Range<usize>),
    Computed(Range<usize>),
    Truth(Range<usize>),
}

/// Changes one part of a test in all copies except that at `true_one`; none if no change is known to make it fail.
pub(super) fn row(file: &File, test: &Call, copies: usize, true_one: usize, random: &mut StdRng) -> Option<Row> {
    let mut changes: Vec<Change> = assertions(file, test).iter().flat_map(|one| one.changes(file)).collect();
    let best = changes.iter().map(Change::rank).min()?;
    changes.retain(|change| change.rank() == best);
    let chosen = changes.choose(random)?.clone();
    let (Change::Literal(span) | Change::Computed(span) | Change::Truth(span)) = chosen.clone();
    let text = &file.text[span.clone()];
    let values = match chosen {
        Change::Literal(_) => literals(text, copies, true_one, random)?,
        Change::Computed(_) => (0..copies).map(|copy| (other(text, copy, true_one), copy != true_one)).collect(),
        Change::Truth(_) => truths(text, copies, true_one, random),
    };
    Some(Row { span, values })
}

/// A test beside `test` that fails by an assertion like those of its file.
pub(super) fn canary(file: &File, test: &Call, name: &str, options: &str, random: &mut StdRng) -> Option<Canary> {
    let left: u32 = random.random_range(0..4_096);
    let right = left + random.random_range(1..5);
    let forms: Vec<(Assertion, &Call)> =
        file.calls.iter().flat_map(|call| assertions(file, call).into_iter().map(move |one| (one, call))).collect();
    let (param, statement) = match forms.choose(random) {
        Some((Assertion { form: [head, between, tail], path, .. }, call)) => {
            (param(file, call, path), format!("{head}{left}{between}{right}{tail}"))
        }
        None => match MODULE.captures(&file.text).and_then(|found| found.get(1)) {
            Some(module) => (None, format!("{}.strictEqual({left}, {right})", module.as_str())),
            None => (None, format!("if ({left} !== {right}) throw new Error('{left} is not {right}')")),
        },
    };
    let written = test.written.clone()?;
    let quote = &file.text[written.start - 1..written.start];
    let callee = &file.text[test.callee.clone()];
    let param = param.unwrap_or_default();
    let call = format!("{callee}({quote}{name}{quote}, {options}({param}) => {{ {statement}; }});\n");
    Some(match file.statement(test.span.start) {
        Some(at) => Canary { at, text: call },
        None => Canary { at: file.text.len(), text: format!("\n;{call}") },
    })
}

/// The parameter of a test at the beginning of a path, as `t` of `t.assert.equal`.
fn param(file: &File, test: &Call, path: &str) -> Option<String> {
    let root = path.split('.').next().unwrap_or_default().trim();
    let params = &file.covered[test.function.as_ref()?.params.clone()];
    let mut words = params.split(|char: char| !(char.is_alphanumeric() || matches!(char, '_' | '$')));
    words.any(|word| !root.is_empty() && word == root).then(|| root.to_owned())
}

fn assertions(file: &File, test: &Call) -> Vec<Assertion> {
    let Some(function) = &test.function else { return Vec::new() };
    let body = &function.body;
    file.statements(body).into_iter().filter_map(|at| assertion(file, at, body.end)).collect()
}

/// The assertion in a statement, in a body that ends at `end`.
fn assertion(file: &File, at: usize, end: usize) -> Option<Assertion> {
    let found = HEAD.captures(&file.covered[at..end])?;
    let (path, word) = (found.get(1)?, found.get(2)?.as_str());
    let open = at + found.get(0)?.end() - 1;
    let close = file.close(open).filter(|close| *close < end)?;
    let arguments = file.arguments(open)?;
    let is_loose = |name: &str| LOOSE.iter().any(|part| name.to_ascii_lowercase().contains(part));
    let is_spread = |span: &Range<usize>| file.covered[span.clone()].starts_with("...");
    if is_loose(path.as_str()) || arguments.iter().any(is_spread) {
        return None;
    }
    let start = at + path.start();
    let head = file.text[start..=open].to_owned();
    let called_on = format!("{}{word}", path.as_str());
    if word == "expect" {
        return matched(file, &head, &called_on, close, &arguments, end);
    }
    if !file.is_ended(close + 1, end) || (path.is_empty() && !file.text.contains("assert")) {
        return None;
    }
    let with = |values: Vec<Range<usize>>, between: &str| Assertion {
        values,
        form: [head.clone(), between.to_owned(), ")".to_owned()],
        path: called_on.clone(),
    };
    let is_of_truth = word == "ok" && (path.is_empty() || path.as_str().contains("assert") || path.as_str() == "t.");
    match arguments.as_slice() {
        [value, ..] if is_of_truth || called_on == "assert" => Some(with(vec![value.clone()], " === ")),
        [actual, expected, rest @ ..] if EQUALS.contains(&word) => {
            // A third number is the tolerance of two others.
            let is_exact = rest.iter().all(|span| !is_number(&file.text[span.clone()]));
            is_exact.then(|| with(vec![expected.clone(), actual.clone()], ", "))
        }
        _ => None,
    }
}

/// `expect(actual).to.equal(expected)`, whose first bracket closes at `close`.
fn matched(
    file: &File,
    head: &str,
    called_on: &str,
    close: usize,
    arguments: &[Range<usize>],
    end: usize,
) -> Option<Assertion> {
    let (mut at, mut word) = (close + 1, "");
    while let Some(link) = LINK.captures(&file.covered[at..end]) {
        if !(word.is_empty() || CHAIN.contains(&word)) {
            return None;
        }
        word = link.get(1)?.as_str();
        at += link.get(0)?.end();
    }
    let open = at + blank(&file.covered.as_bytes()[at..end]);
    let inner = file.arguments(open).filter(|_| MATCHERS.contains(&word))?;
    file.close(open).filter(|last| *last < end && file.is_ended(last + 1, end))?;
    let (actual, expected) = (arguments.first()?, inner.first().filter(|_| inner.len() == 1)?);
    Some(Assertion {
        values: vec![expected.clone(), actual.clone()],
        form: [head.to_owned(), file.text[close..=open].to_owned(), ")".to_owned()],
        path: called_on.to_owned(),
    })
}

impl Assertion {
    fn changes(&self, file: &File) -> Vec<Change> {
        let [expected, actual] = self.values.as_slice() else {
            return self.values.iter().cloned().map(Change::Truth).collect();
        };
        for value in [expected, actual] {
            let mut found = Vec::new();
            within(file, value, 0, &mut found);
            if !found.is_empty() {
                return found.into_iter().map(Change::Literal).collect();
            }
        }
        vec![Change::Computed(expected.clone())]
    }
}

impl Change {
    fn rank(&self) -> u8 {
        match self {
            Self::Literal(_) => 0,
            Self::Computed(_) => 1,
            Self::Truth(_) => 2,
        }
    }
}

/// The literals of a value: itself, or those written in its lists and objects.
fn within(file: &File, span: &Range<usize>, depth: usize, found: &mut Vec<Range<usize>>) {
    let span = file.without_comments(span);
    let (bytes, text) = (file.covered.as_bytes(), &file.text[span.clone()]);
    if is_value(text) {
        found.push(span);
        return;
    }
    let is_whole = file.close(span.start).is_some_and(|close| close + 1 == span.end);
    if !is_whole || depth == LISTS_MAX {
        return;
    }
    let parts = split(bytes, span.start + 1..span.end - 1);
    match bytes[span.start] {
        b'[' => parts.iter().for_each(|part| within(file, part, depth + 1, found)),
        // Values after `...` may replace earlier ones.
        b'{' if !parts.iter().any(|part| file.covered[part.clone()].trim_start().starts_with("...")) => {
            for part in parts {
                if let Some(colon) = file.covered[part.clone()].find(':') {
                    within(file, &(part.start + colon + 1..part.end), depth + 1, found);
                }
            }
        }
        _ => {}
    }
}

/// A string, a number or a truth value that can be changed as text.
fn is_value(text: &str) -> bool {
    if text.starts_with(|char: char| char.is_ascii_digit() || char == '-') {
        return is_number(text);
    }
    let quote = text.chars().next().filter(|quote| matches!(quote, '\'' | '"' | '`'));
    let inner = quote.and_then(|quote| text[1..].strip_suffix(quote).map(|inner| (quote, inner)));
    inner.is_some_and(|(quote, inner)| !inner.contains(['\\', '$', '\n', quote])) || text == "true" || text == "false"
}

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_old = digits.starts_with('0') && digits[1..].starts_with(|char: char| char.is_ascii_digit());
    digits.starts_with(|char: char| char.is_ascii_digit()) && digits.len() <= DIGITS_MAX && !is_old && is_literal(text)
}

/// Near values, with the true one at its place.
fn literals(text: &str, copies: usize, true_one: usize, random: &mut StdRng) -> Option<Vec<(String, bool)>> {
    if matches!(text, "true" | "false") {
        return Some(truths(text, copies, true_one, random));
    }
    let mut values: Vec<String> = match text.parse::<i64>() {
        Ok(value) => {
            let first = value.checked_sub(i64::try_from(true_one).ok()?)?;
            let last = first.checked_add(i64::try_from(copies).ok()?)?;
            (first..last).filter(|other| *other != value).map(|other| other.to_string()).collect()
        }
        Err(_) => others(text, copies.checked_sub(1)?, random)?,
    };
    values.insert(true_one, text.to_owned());
    Some(values.into_iter().enumerate().map(|(copy, value)| (value, copy != true_one)).collect())
}

/// Other texts of a string, or of a number that is not whole.
fn others(text: &str, count: usize, random: &mut StdRng) -> Option<Vec<String>> {
    let quote = text.chars().next().filter(|quote| matches!(quote, '\'' | '"' | '`'));
    let found: Vec<String> = match quote {
        Some(quote) => {
            let found = near(&format!("\"{}\"", &text[1..text.len() - 1]), count, random);
            found.iter().map(|one| format!("{quote}{}{quote}", &one[1..one.len() - 1])).collect()
        }
        None => near(text, count, random),
    };
    (!found.is_empty()).then(|| found.into_iter().cycle().take(count).collect())
}

/// Random truth values, with at least one of both.
fn truths(text: &str, copies: usize, true_one: usize, random: &mut StdRng) -> Vec<(String, bool)> {
    let false_one = (true_one + 1) % copies;
    let of = |copy: usize| {
        let must_fail = copy != true_one && (copy == false_one || random.random_range(0..2) == 0);
        let value = match (text, must_fail) {
            ("true", true) | ("false", false) => "false".to_owned(),
            ("true", false) | ("false", true) => "true".to_owned(),
            (_, true) => format!("!({text})"),
            (_, false) => format!("!!({text})"),
        };
        (value, must_fail)
    };
    (0..copies).map(of).collect()
}

/// A computed value in one copy: the value itself at `true_one`.
fn other(text: &str, copy: usize, true_one: usize) -> String {
    let sign = if copy < true_one { "-" } else { "" };
    format!("{OTHER}({text}, {sign}{})", copy.abs_diff(true_one))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng as _;

    /// The edits of the first statement of a test, in four copies of which the third is the true one.
    fn rows(statement: &str) -> Vec<(String, bool)> {
        let text = format!("const assert = require('assert');\ntest('one', async (t) => {{\n  {statement}\n}});\n");
        let file = File::of(text.clone());
        let row = row(&file, &file.calls[0], 4, 2, &mut StdRng::from_seed([4; 32]));
        let Some(Row { span, values }) = row else { return Vec::new() };
        let of = |(value, must_fail): (String, bool)| {
            let mut new = text.clone();
            new.replace_range(span.clone(), &value);
            let body = new.split_once("{\n  ").map_or("", |(_, body)| body);
            (body.split_once("\n});").map_or("", |(body, _)| body).to_owned(), must_fail)
        };
        values.into_iter().map(of).collect()
    }

    #[track_caller]
    fn check_changed(statement: &str, before: &str, after: &str) {
        let rows = rows(statement);
        assert_eq!(rows.len(), 4, "{statement}");
        assert_eq!(rows[2], (statement.to_owned(), false));
        for (other, must_fail) in rows {
            assert_eq!(other != statement, must_fail, "{other}");
            assert!(other.starts_with(before) && other.ends_with(after), "{other} of {statement}");
        }
    }

    #[test]
    fn an_expected_value_that_is_written_out_is_changed_nearby() {
        check_changed("assert.strictEqual(add(2, 3), 5);", "assert.strictEqual(add(2, 3), ", ");");
        check_changed("assert.equal(label('a', 3), \"a: 3\")", "assert.equal(label('a', 3), \"", "\")");
        check_changed("assert.strictEqual('odd', parity(5));", "assert.strictEqual('", "', parity(5));");
        check_changed("assert.strictEqual(a(1), -2, 'of 1');", "assert.strictEqual(a(1), ", ", 'of 1');");
        check_changed("expect(add(2, 3)).toBe(5);", "expect(add(2, 3)).toBe(", ");");
        check_changed("await t.assert.equal(await add(2), 2.5);", "await t.assert.equal(await add(2), ", ");");
        check_changed("assert.deepEqual(parse('1'), [[f(1), 7]]);", "assert.deepEqual(parse('1'), [[f(1), ", "]]);");
        check_changed(
            "expect(a).to.deep.equal({ b: g(2), 'c:': `d` });",
            "expect(a).to.deep.equal({ b: g(2), 'c:': `",
            "` });",
        );
        let of_parts = rows("assert.deepStrictEqual(parse('1,2'), [1, 2]);");
        assert!(of_parts.iter().filter(|(text, _)| text.ends_with(", [1, 2]);")).count() == 1, "{of_parts:?}");
    }

    #[test]
    fn an_expected_value_that_is_computed_is_another_one_as_the_test_runs() {
        for value in ["expected", "new Date(5)", "{ ...a, b: 1 }", "[f(1)]", "12345678901234567"] {
            let rows = rows(&format!("assert.deepEqual(a, {value});"));
            let last = |text: &str| text.rsplit_once(")(").map(|(_, last)| last.to_owned());
            let expected = ["-2", "-1", "0", "1"].map(|step| Some(format!("{value}, {step}));")));
            let found: Vec<_> = rows.iter().map(|(text, _)| last(text)).collect();
            assert_eq!(found, expected, "{value}");
            assert_eq!(rows.iter().map(|(_, must_fail)| *must_fail).collect::<Vec<_>>(), [true, true, false, true]);
        }
        for truth in ["assert(is(2), 'said')", "assert.ok(is(2));", "assert.strictEqual(is(2), true);"] {
            let rows = rows(truth);
            let failing = rows.iter().filter(|(_, must_fail)| *must_fail).count();
            assert!((1..4).contains(&failing) && !rows[2].1 && rows[3].1, "{rows:?}");
        }
    }

    #[test]
    fn what_may_not_fail_is_not_changed() {
        for statement in [
            "expect(add(2, 3)).not.toBe(5);",
            "expect(add(2, 3)).to.not.equal(5);",
            "assert.notStrictEqual(add(2, 3), 5);",
            "assert.almost.equal(add(2, 3), 5);",
            "assert.equal(add(2, 3), 5, 0.5);",
            "assert.equal(...both);",
            "if (there) assert.equal(add(2, 3), 5);",
            "if (there) return;\n  assert.equal(add(2, 3), 5);",
            "for (const a of all)\n    assert.equal(add(2, 3), 5);",
            "there || assert.equal(add(2, 3), 5);",
            "t.skip(); assert.equal(add(2, 3), 5);",
            "const is = () => { assert.equal(add(2, 3), 5); };",
        ] {
            assert!(rows(statement).is_empty(), "{statement}");
        }
    }

    #[test]
    fn a_canary_fails_by_an_assertion_of_its_file() {
        let canary = |text: &str| {
            let file = File::of(text.to_owned());
            let (_, test) = file.tests().next().unwrap();
            let canary = canary(&file, test, "two", "", &mut StdRng::from_seed([6; 32])).unwrap();
            (canary.at, canary.text.replace(|char: char| char.is_ascii_digit(), ""))
        };
        let said = |call: &str| format!("test('two', () => {{ {call}; }});\n");
        let text = "test('one', () => {\n  assert.equal(add(2, 3), 5);\n});\n";
        assert_eq!(canary(text), (0, said("assert.equal(, )")));
        let text = "before(f);\nawait it.only(\"one\", () => expect(f()).toBe('a'));\n";
        assert_eq!(canary(text), (11, "it.only(\"two\", () => { expect().toBe(); });\n".to_owned()));
        let text = "test('one', (t) => { t.assert.equal(f(), 'a') });\n";
        assert_eq!(canary(text).1, "test('two', (t) => { t.assert.equal(, ); });\n");
        let text = "import check from 'node:assert/strict';\ntest('one', () => check.throws(f));\n";
        assert_eq!(canary(text), (40, said("check.strictEqual(, )")));
        let text = "describe('all', () => test('one', f));";
        let (at, said) = canary(text);
        assert!(at == text.len() && said.starts_with("\n;test('two', () => { if ( !== ) throw "), "{said}");
    }
}
