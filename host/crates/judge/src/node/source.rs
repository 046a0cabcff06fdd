//! A test file of node, found as text: its tests, suites and hooks, and the statements that a test reaches.
//!
//! Comments, strings, templates and expressions are blanked first, so that brackets can be counted. Refuses unclear
//! cases: a test that a condition, a loop or a `return` may leave out need not run, and a statement that is not
//! certainly reached is never changed.

mod literals;

use self::literals::covered;
use crate::clike::{blank, is_word, split, trimmed};
use regex::{Captures, Regex};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::LazyLock;

/// Calls that make a test, a suite or a hook.
static CALL: LazyLock<Regex> = LazyLock::new(|| {
    let call =
        r"((?:[\w$]+\s*\.\s*)*)\b(test|it|describe|suite|before|beforeEach)((?:\s*\.\s*(?:skip|todo|only))*)\s*\(";
    Regex::new(call).expect("a pattern of ours")
});

static MARK: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\b(skip|todo)\b").expect("a pattern of ours"));

static CALL_OF_MARK: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\.\s*(skip|todo)\s*\(").expect("a pattern of ours"));

/// Words that leave a function, or the process.
static LEAVE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\breturn\b|\bprocess\s*\.\s*exit\b").expect("a pattern of ours"));

/// The kind of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Test,
    Suite,
    Hook,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) kind: Kind,
    /// From its first word to its closing bracket.
    pub(super) span: Range<usize>,
    /// Name of the called function: `test.only`.
    pub(super) callee: Range<usize>,
    /// Its first argument.
    pub(super) first: Range<usize>,
    /// Between the quotes of its first argument, if that is a written name.
    pub(super) written: Option<Range<usize>>,
    pub(super) function: Option<Function>,
    /// True when it leaves itself out: `skip` or `todo` stands at it or in it.
    pub(super) is_marked: bool,
    /// True when only a mark may leave it out.
    pub(super) is_certain: bool,
    /// True when it is inside a test.
    pub(super) is_within_test: bool,
}

/// A function that is written as an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Function {
    pub(super) params: Range<usize>,
    /// Between the brackets of its body, or the expression of an arrow function.
    pub(super) body: Range<usize>,
}

/// A bracket that closes, and the opening one around both.
#[derive(Debug)]
struct Pair {
    end: usize,
    around: Option<usize>,
}

#[derive(Debug)]
pub(super) struct File {
    pub(super) text: String,
    /// The text with comments and the insides of literals blanked, byte for byte. Each literal is in double quotes.
    pub(super) covered: String,
    /// Closing brackets by opening ones.
    pairs: BTreeMap<usize, Pair>,
    /// Opening brackets by closing ones.
    opens: BTreeMap<usize, usize>,
    /// The first place that leaves a function, by the bracket of its body; none: the file.
    leaves: BTreeMap<Option<usize>, usize>,
    /// The calls, outer ones first.
    pub(super) calls: Vec<Call>,
}

impl File {
    pub(super) fn of(text: String) -> Self {
        let covered = String::from_utf8(covered(text.as_bytes())).unwrap_or_else(|_| " ".repeat(text.len()));
        let pairs = pairs(covered.as_bytes());
        let opens = pairs.iter().map(|(open, pair)| (pair.end, *open)).collect();
        let mut file = Self { text, covered, pairs, opens, leaves: BTreeMap::new(), calls: Vec::new() };
        let leaves = LEAVE.find_iter(&file.covered).map(|leave| leave.start());
        let leaves: Vec<_> = leaves.map(|at| (file.function_around(at), at)).collect();
        for (function, at) in leaves {
            file.leaves.entry(function).or_insert(at);
        }
        let mut calls: Vec<Call> = CALL.captures_iter(&file.covered).filter_map(|found| file.call(&found)).collect();
        let parents = parents(&calls);
        for mark in CALL_OF_MARK.find_iter(&file.covered).map(|mark| mark.start()) {
            let before = calls.partition_point(|call| call.span.start <= mark).checked_sub(1);
            let mut holders = std::iter::successors(before, |number| parents[*number]);
            if let Some(number) = holders.find(|number| calls[*number].span.contains(&mark)) {
                calls[number].is_marked |= calls[number].callee.end <= mark;
            }
        }
        for (number, parent) in parents.iter().enumerate() {
            let at = calls[number].span.start;
            let is_in = |call: &Call| {
                call.kind != Kind::Hook && call.function.as_ref().is_some_and(|one| one.body.contains(&at))
            };
            let mut holders = std::iter::successors(*parent, |number| parents[*number]);
            let holder = holders.find(|number| is_in(&calls[*number])).map(|number| &calls[number]);
            let is_within_test = holder.is_some_and(|one| one.is_within_test || one.kind == Kind::Test);
            let is_certain = file.is_certain(at, holder);
            calls[number].is_within_test = is_within_test;
            calls[number].is_certain = is_certain;
        }
        file.calls = calls;
        file
    }

    /// Tests with written names, except those within tests.
    pub(super) fn tests(&self) -> impl Iterator<Item = (&str, &Call)> {
        let is_test = |call: &&Call| call.kind == Kind::Test && !call.is_within_test;
        self.calls.iter().filter(is_test).filter_map(|call| Some((self.name(call)?, call)))
    }

    pub(super) fn name(&self, call: &Call) -> Option<&str> {
        Some(&self.text[call.written.clone()?])
    }

    pub(super) fn close(&self, open: usize) -> Option<usize> {
        self.pairs.get(&open).map(|pair| pair.end)
    }

    /// The arguments of a call whose bracket opens at `open`, without blanks.
    pub(super) fn arguments(&self, open: usize) -> Option<Vec<Range<usize>>> {
        let spans = split(self.covered.as_bytes(), open + 1..self.close(open)?).into_iter();
        Some(spans.map(|span| self.without_comments(&span)).filter(|span| !span.is_empty()).collect())
    }

    /// A span without the blanks and the comments at its ends.
    pub(super) fn without_comments(&self, span: &Range<usize>) -> Range<usize> {
        trimmed(&self.covered, span)
    }

    fn call(&self, found: &Captures<'_>) -> Option<Call> {
        let (whole, receiver, kind, chain) = (found.get(0)?, found.get(1)?, found.get(2)?, found.get(3)?);
        let open = whole.end() - 1;
        let end = self.close(open)?;
        let arguments = self.arguments(open)?;
        let before = self.covered[..whole.start()].trim_end();
        let after = self.covered[end + 1..].trim_start_matches([' ', '\t']);
        if last_word(before) == "function" || after.starts_with('{') {
            return None;
        }
        let function = arguments.iter().rev().find_map(|span| self.function(span));
        let kind = match kind.as_str() {
            "test" | "it" => Kind::Test,
            "describe" | "suite" => Kind::Suite,
            _ => Kind::Hook,
        };
        // An expression has a method of that name too.
        let is_method = !receiver.is_empty() || before.ends_with('.');
        if is_method && kind != Kind::Hook && function.is_none() && !MARK.is_match(chain.as_str()) {
            return None;
        }
        let first = arguments.first().cloned().unwrap_or(end..end);
        let options = arguments.get(1).map(|span| &self.covered[span.clone()]);
        let is_marked =
            MARK.is_match(chain.as_str()) || options.is_some_and(|options| self.is_marked_by(options, arguments.len()));
        Some(Call {
            kind,
            span: whole.start()..end,
            callee: whole.start()..open,
            written: self.written(&first),
            first,
            function,
            is_marked,
            is_certain: false,
            is_within_test: false,
        })
    }

    /// Options that leave a test out: written there, or in a file that has such options somewhere.
    fn is_marked_by(&self, options: &str, arguments: usize) -> bool {
        match options.starts_with('{') {
            true => MARK.is_match(options),
            false => arguments > 2 && MARK.is_match(&self.covered),
        }
    }

    fn written(&self, span: &Range<usize>) -> Option<Range<usize>> {
        let text = &self.text[span.clone()];
        let quote = text.chars().next().filter(|quote| matches!(quote, '\'' | '"' | '`'))?;
        let inner = text[1..].strip_suffix(quote)?;
        let is_plain = !inner.is_empty() && !inner.contains(['\\', '$', '\n', quote]);
        is_plain.then(|| span.start + 1..span.end - 1)
    }

    fn function(&self, span: &Range<usize>) -> Option<Function> {
        let bytes = self.covered.as_bytes();
        let part = &self.covered[span.clone()];
        if part.strip_prefix("async").unwrap_or(part).trim_start().starts_with("function") {
            let open = span.start + part.find('(')?;
            let close = self.close(open)?;
            let start = close + 1 + blank(&bytes[close + 1..]);
            let end = self.close(start).filter(|_| bytes[start] == b'{')?;
            return Some(Function { params: open..close, body: start + 1..end });
        }
        let mut at = span.start;
        while at < span.end && !bytes[at..].starts_with(b"=>") {
            let end = if is_open(bytes[at]) { self.close(at)? } else { at };
            at = end + 1;
        }
        if at >= span.end {
            return None;
        }
        let start = at + 2 + blank(&bytes[at + 2..span.end]);
        let body = match bytes.get(start)? {
            b'{' => start + 1..self.close(start)?,
            _ => start..span.end,
        };
        Some(Function { params: span.start..at, body })
    }

    /// The innermost brackets around a place.
    fn around(&self, at: usize) -> Option<usize> {
        let mut open = self.pairs.range(..at).next_back().map(|(open, _)| *open);
        while let Some(start) = open {
            let pair = self.pairs.get(&start)?;
            if pair.end >= at {
                return Some(start);
            }
            open = pair.around;
        }
        None
    }

    /// The bracket of the body of the function that a place is in.
    fn function_around(&self, at: usize) -> Option<usize> {
        let mut at = at;
        while let Some(open) = self.around(at) {
            if self.covered.as_bytes()[open] == b'{' && self.is_body(open) {
                return Some(open);
            }
            at = open;
        }
        None
    }

    /// True when a bracket begins the body of a function, and not that of a loop or an object.
    fn is_body(&self, open: usize) -> bool {
        let before = self.covered[..open].trim_end();
        before.ends_with("=>") || before.ends_with(')') && !self.is_control(before.len() - 1)
    }

    /// True when a closing bracket ends the header of `if`, `for` and similar statements.
    fn is_control(&self, close: usize) -> bool {
        let Some(open) = self.opens.get(&close) else { return false };
        let word = last_word(self.covered[..*open].trim_end());
        matches!(word, "if" | "for" | "while" | "with" | "await" | "switch" | "catch")
    }

    /// True when the code at a place runs whenever the body of `holder`, or the file, does.
    fn is_certain(&self, at: usize, holder: Option<&Call>) -> bool {
        let body = holder.and_then(|call| call.function.as_ref()).map(|function| function.body.start);
        let block = body.and_then(|start| start.checked_sub(1)).filter(|open| self.pairs.contains_key(open));
        let is_left = |function: Option<usize>| self.leaves.get(&function).is_some_and(|leave| *leave < at);
        if holder.is_some_and(|one| !one.is_certain) || (body.is_none() || block.is_some()) && is_left(block) {
            return false;
        }
        let mut place = at;
        loop {
            if Some(place) != body && !self.is_unconditional(place) {
                return false;
            }
            match self.around(place) {
                None => return holder.is_none(),
                Some(open) if Some(open) == block => return true,
                Some(open) if body.is_some_and(|start| open < start) => return block.is_none(),
                Some(open) if self.covered.as_bytes()[open] == b'{' => return false,
                Some(open) => place = self.path_start(open),
            }
        }
    }

    /// True when nothing right before a place decides whether it is reached.
    fn is_unconditional(&self, at: usize) -> bool {
        let before = self.covered[..at].trim_end();
        match before.bytes().last() {
            None | Some(b';' | b'{' | b'}' | b'(' | b'[' | b']' | b',' | b'=' | b'"') => true,
            Some(b')') => !self.is_control(before.len() - 1),
            Some(byte) if is_word(byte) => !matches!(last_word(before), "else" | "do"),
            Some(_) => false,
        }
    }

    /// The beginning of `a.b` that ends at a place.
    fn path_start(&self, end: usize) -> usize {
        let is_of_path = |byte: &u8| is_word(*byte) || matches!(*byte, b'.' | b'$');
        end - self.covered.as_bytes()[..end].iter().rev().take_while(|byte| is_of_path(byte)).count()
    }

    /// The beginning of the statement that starts at a place; none if the place is inside one.
    pub(super) fn statement(&self, at: usize) -> Option<usize> {
        let mut at = at;
        loop {
            let before = self.covered[..at].trim_end();
            match last_word(before) {
                word @ ("await" | "void") => at = before.len() - word.len(),
                _ => return self.is_start(at).then_some(at),
            }
        }
    }

    /// True when a statement may begin at a place: after a bracket, a semicolon, or a line that ends one.
    fn is_start(&self, at: usize) -> bool {
        let before = self.covered[..at].trim_end();
        let is_new_line = self.covered[before.len()..at].contains('\n');
        match before.bytes().last() {
            None | Some(b';' | b'{' | b'}') => true,
            Some(b')') => is_new_line && !self.is_control(before.len() - 1),
            Some(b']' | b'"') => is_new_line,
            Some(byte) if is_word(byte) => is_new_line && !CONTINUES.contains(&last_word(before)),
            Some(_) => false,
        }
    }

    /// The beginnings of statements that a passing test certainly reaches.
    pub(super) fn statements(&self, body: &Range<usize>) -> Vec<usize> {
        let bytes = self.covered.as_bytes();
        let block = body.start.checked_sub(1).filter(|open| self.pairs.contains_key(open));
        if block.is_none() {
            return vec![body.start];
        }
        let left = self.leaves.get(&block).copied().unwrap_or(body.end);
        let marked = MARK.find(&self.covered[body.clone()]).map_or(body.end, |mark| body.start + mark.start());
        let (mut at, end, mut found) = (body.start, left.min(marked).min(body.end), Vec::new());
        while at < end {
            if is_open(bytes[at]) {
                let Some(close) = self.close(at) else { break };
                at = close + 1;
                continue;
            }
            let is_first = is_letter(bytes[at]) && (at == body.start || !is_letter(bytes[at - 1]));
            if is_first && self.is_start(at) {
                found.push(at);
            }
            at += 1;
        }
        found
    }

    /// True when a statement ends before `at`, in a body that ends at `end`.
    pub(super) fn is_ended(&self, at: usize, end: usize) -> bool {
        let rest = &self.covered[at..end];
        let next = rest.trim_start();
        match next.bytes().next() {
            None | Some(b';' | b'}') => true,
            Some(byte) => is_letter(byte) && rest[..rest.len() - next.len()].contains('\n'),
        }
    }
}

/// The enclosing call of each, by their numbers.
fn parents(calls: &[Call]) -> Vec<Option<usize>> {
    let (mut found, mut open): (_, Vec<usize>) = (Vec::new(), Vec::new());
    for (number, call) in calls.iter().enumerate() {
        while open.pop_if(|other| calls[*other].span.end < call.span.start).is_some() {}
        found.push(open.last().copied());
        open.push(number);
    }
    found
}

/// Words that do not end a statement.
const CONTINUES: [&str; 12] =
    ["else", "do", "await", "new", "typeof", "void", "in", "of", "instanceof", "yield", "delete", "case"];

fn is_open(byte: u8) -> bool {
    matches!(byte, b'(' | b'[' | b'{')
}

fn is_letter(byte: u8) -> bool {
    is_word(byte) || byte == b'$' || !byte.is_ascii()
}

fn last_word(text: &str) -> &str {
    let count = text.bytes().rev().take_while(|byte| is_word(*byte)).count();
    &text[text.len() - count..]
}

fn pairs(covered: &[u8]) -> BTreeMap<usize, Pair> {
    let (mut found, mut open) = (BTreeMap::new(), Vec::new());
    for (at, byte) in covered.iter().enumerate() {
        match byte {
            b'(' | b'[' | b'{' => open.push(at),
            b')' | b']' | b'}' => {
                if let Some(start) = open.pop() {
                    found.insert(start, Pair { end: at, around: open.last().copied() });
                }
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"#!/usr/bin/env node
import test, { describe, it } from 'node:test';
/*
test('within a comment', () => {});
*/
test('is plain', async (t) => {
  const text = `${`}` + "`"} )`;
  await t.test('is within', () => { check(text); });
});
if (process.platform === 'win32') {
  test('is of a system', () => {});
}
if (process.platform === 'win32')
  test('is of a system too', () => {});
for (const one of [1, 2]) test('is of a loop', () => one);
describe('suite', () => {
  it.only("is in a suite", function () { if (/[/']/.test('in a suite')) { return; } });
  const later = () => { return 1; };
  it(`has a template`, () => {});
  if (later) return;
  it('is behind a return', () => {});
});
describe('arrow', () => it('is an expression', () => {}));
await Promise.all([test('is in a list', () => {})]);
function test(name, run) { return run(name); }
"#;

    fn names(is_certain: bool) -> Vec<String> {
        let file = File::of(FILE.to_owned());
        let chosen = file.tests().filter(|(_, call)| call.is_certain == is_certain);
        chosen.map(|(name, _)| name.to_owned()).collect()
    }

    #[test]
    fn tests_are_found_wherever_they_are_called() {
        let certain = ["is plain", "is in a suite", "has a template", "is an expression", "is in a list"];
        assert_eq!(names(true), certain);
        assert_eq!(names(false), ["is of a system", "is of a system too", "is of a loop", "is behind a return"]);
        let file = File::of(FILE.to_owned());
        assert!(file.tests().all(|(name, call)| FILE[call.first.clone()][1..].starts_with(name)));
        let within: Vec<_> = file.calls.iter().filter(|call| call.is_within_test).collect();
        assert!(within.len() == 1 && file.name(within[0]) == Some("is within"), "{within:?}");
    }

    #[test]
    fn only_statements_that_are_reached_are_found() {
        let body = "\n  const a = 1\n  check(a)\n  if (a)\n    not(a);\n  if (a) { not(); } else not();\n  \
                    more(a).\n    not(); last()\n  if (a) return;\n  not();\n";
        let file = File::of(format!("test('one', () => {{{body}}});"));
        let body = file.calls[0].function.as_ref().unwrap().body.clone();
        let found: Vec<&str> = file.statements(&body).into_iter().map(|at| file.text[at..].trim_end()).collect();
        let words: Vec<&str> = found.iter().map(|text| text.split([' ', '(']).next().unwrap()).collect();
        assert_eq!(words, ["const", "check", "if", "if", "else", "more", "last", "if"]);
    }

    #[test]
    fn literals_and_comments_hide_brackets() {
        let text = "f('(', \"it's\", `a ${g({ b: `}` })} (`, /[/)]\\//g, a / b, a++ / (b)); // (\n/* ( */";
        let file = File::of(text.to_owned());
        assert_eq!(file.covered.len(), text.len());
        let arguments = file.arguments(1).unwrap();
        assert_eq!(arguments.len(), 6, "{}", file.covered);
        assert!(text[arguments[5].clone()].starts_with("a++ / (b)"), "{}", file.covered);
        for odd in ["'", "`", "`${", "f(", "/", "'\\", "é'é", "/*"] {
            assert_eq!(File::of(odd.to_owned()).covered.len(), odd.len(), "{odd}");
        }
    }
}
