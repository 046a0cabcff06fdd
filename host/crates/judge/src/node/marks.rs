//! Which tests files of node leave out by themselves: `skip` and `todo`, written at the test, around it or in it.
//!
//! Comments, strings and expressions are covered first, so that brackets can be counted. Refuses nothing: a mark that
//! is not found has its test taken as one that the code under test left out.

use crate::clike::{closing, covered_by, split, string_end, trimmed};
use regex::Regex;
use std::ops::Range;
use std::sync::LazyLock;

/// Calls that make a test, a suite or a hook.
static CALL: LazyLock<Regex> = LazyLock::new(|| {
    let call = r"(?:[\w$]+\s*\.\s*)*\b(test|it|describe|suite|before|beforeEach)((?:\s*\.\s*(?:skip|todo|only))*)\s*\(";
    Regex::new(call).expect("a pattern of ours")
});

static MARK: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\b(skip|todo)\b").expect("a pattern of ours"));

static CALL_OF_MARK: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\.\s*(skip|todo)\s*\(").expect("a pattern of ours"));

/// The names that a file, or several, leaves out.
#[derive(Debug, Default)]
pub(super) struct Marks {
    calls: Vec<(Name, bool)>,
}

/// The first argument of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Name {
    Written(String),
    /// Text with anything between its parts.
    Parts(Vec<String>),
}

struct Call {
    span: Range<usize>,
    name: Name,
    is_hook: bool,
    is_marked: bool,
}

impl Marks {
    pub(super) fn add(&mut self, text: &str) {
        let calls = calls(text);
        for call in calls.iter().filter(|call| !call.is_hook) {
            let around = |other: &&Call| {
                let is_around = other.span.start <= call.span.start && call.span.end <= other.span.end;
                let reach = reach(other, &calls);
                is_around && !other.is_hook || other.is_hook && reach != call.span && reach.contains(&call.span.start)
            };
            let is_marked = calls.iter().filter(around).any(|other| other.is_marked);
            self.calls.push((call.name.clone(), is_marked));
        }
    }

    /// Whether a file leaves out a test of this name. One that is written out nowhere may be of any call whose name
    /// is put together.
    pub(super) fn leave_out(&self, name: &str) -> bool {
        let is_written = |one: &Name| matches!(one, Name::Written(written) if written == name);
        let is_known = self.calls.iter().any(|(one, _)| is_written(one));
        self.calls.iter().any(|(one, is_marked)| *is_marked && if is_known { is_written(one) } else { one.fits(name) })
    }

    /// Of how many tests that are called so no file says that they are left out.
    pub(super) fn plain(&self, name: &str) -> usize {
        self.calls.iter().filter(|(one, is_marked)| !is_marked && *one == Name::Written(name.to_owned())).count()
    }
}

/// What a hook runs before: its suite, or the file.
fn reach(hook: &Call, calls: &[Call]) -> Range<usize> {
    let around = |call: &&Call| !call.is_hook && call.span.start < hook.span.start && hook.span.end <= call.span.end;
    calls.iter().filter(around).map(|call| call.span.clone()).min_by_key(Range::len).unwrap_or(0..usize::MAX)
}

impl Name {
    fn of(text: &str) -> Self {
        let inner = |quote: char| text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
        match (inner('\'').or_else(|| inner('"')), inner('`')) {
            (Some(inner), _) if !inner.contains('\\') => Self::Written(inner.to_owned()),
            (_, Some(inner)) if !inner.contains(['\\', '$']) => Self::Written(inner.to_owned()),
            (_, Some(inner)) if !inner.contains('\\') => {
                let mut parts = inner.split("${");
                let first = parts.next().unwrap_or_default().to_owned();
                let rest = parts.map(|part| part.rsplit('}').next().unwrap_or_default().to_owned());
                Self::Parts([first].into_iter().chain(rest).collect())
            }
            _ => Self::Parts(vec![String::new(); 2]),
        }
    }

    fn fits(&self, name: &str) -> bool {
        let parts = match self {
            Self::Written(written) => return written == name,
            Self::Parts(parts) => parts,
        };
        let (Some(first), Some(last)) = (parts.first(), parts.last()) else { return false };
        let Some(mut rest) = name.strip_prefix(first.as_str()).and_then(|rest| rest.strip_suffix(last.as_str())) else {
            return false;
        };
        let between = &parts[1..parts.len().max(2) - 1];
        between.iter().all(|part| {
            let after = rest.split_once(part.as_str()).map(|(_, after)| after);
            rest = after.unwrap_or_default();
            after.is_some()
        })
    }
}

fn calls(text: &str) -> Vec<Call> {
    let covered = covered_by(text, covered_until);
    let Ok(plain) = std::str::from_utf8(&covered) else { return Vec::new() };
    let mut found: Vec<(Call, Vec<Range<usize>>)> = Vec::new();
    for call in CALL.captures_iter(plain) {
        let (Some(whole), Some(kind), Some(chain)) = (call.get(0), call.get(1), call.get(2)) else { continue };
        let Some(end) = closing(&covered, whole.end() - 1) else { continue };
        let arguments: Vec<_> =
            split(&covered, whole.end()..end).into_iter().map(|span| trimmed(text, &span)).collect();
        let name = arguments.first().map_or("", |span| &text[span.clone()]);
        let is_marked = MARK.is_match(chain.as_str())
            || arguments.len() > 1 && is_marked_by(&plain[arguments[1].clone()], plain, arguments.len());
        let is_hook = kind.as_str().starts_with("before");
        found.push((Call { span: whole.start()..end, name: Name::of(name), is_hook, is_marked }, arguments));
    }
    let spans: Vec<Range<usize>> = found.iter().map(|(call, _)| call.span.clone()).collect();
    for (call, _) in &mut found {
        let is_own = |at: usize| !spans.iter().any(|other| call.span.start < other.start && other.contains(&at));
        let inner = CALL_OF_MARK.find_iter(&plain[call.span.clone()]).map(|mark| call.span.start + mark.start());
        let head = plain[call.span.clone()].find('(').map_or(call.span.end, |open| call.span.start + open);
        call.is_marked |= inner.filter(|at| *at > head).any(is_own);
    }
    found.into_iter().map(|(call, _)| call).collect()
}

/// Options that leave a test out: written there, or in a file that has such options somewhere.
fn is_marked_by(options: &str, file: &str, arguments: usize) -> bool {
    match options.trim_start().starts_with('{') {
        true => MARK.is_match(options),
        false => arguments > 2 && MARK.is_match(file),
    }
}

/// The end of the comment, string, template or expression that begins at `at`; `at` itself where none does.
fn covered_until(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    let line = || at + rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
    match rest {
        [b'/', b'/', ..] => line(),
        [b'/', b'*', ..] => crate::clike::find(bytes, b"*/", at + 2).map_or(bytes.len(), |end| end + 2),
        [quote @ (b'\'' | b'"' | b'`'), ..] => string_end(bytes, at, *quote),
        [b'/', ..] if is_expression(&bytes[..at]) => expression_end(bytes, at).min(line()),
        _ => at,
    }
}

/// Whether a `/` after this begins an expression and divides nothing.
fn is_expression(before: &[u8]) -> bool {
    let last = before.iter().rev().find(|byte| !byte.is_ascii_whitespace());
    last.is_none_or(|last| b"(,=:[!&|?{};+".contains(last))
}

fn expression_end(bytes: &[u8], start: usize) -> usize {
    let (mut at, mut in_class) = (start + 1, false);
    while at < bytes.len() && (in_class || bytes[at] != b'/') {
        match bytes[at] {
            b'\\' => at += 1,
            b'[' => in_class = true,
            b']' => in_class = false,
            _ => {}
        }
        at += 1;
    }
    (at + 1).min(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r"
test('plain', () => { assert.ok(/'\(skip/.test('skip')); });
test('of an option', { skip: 'a reason' }, () => {});
test.todo('of a call');
test('of its body', (t) => { if (!there) return t.skip('later'); });
test('around', async (t) => {
  await t.test('within', { todo: true }, () => {});
});
// test('noted', { skip: true });
describe.skip('suite', () => { it('in a suite', () => {}); });
describe('hooked', () => {
  beforeEach((t) => t.skip());
  it('behind a hook', () => {});
});
for (const n of [1, 2]) it.skip(`is of ${n} parts`, () => {});
";

    #[test]
    fn a_test_is_left_out_by_its_own_file_alone() {
        let mut marks = Marks::default();
        marks.add(FILE);
        let names = [
            "of an option",
            "of a call",
            "of its body",
            "within",
            "suite",
            "in a suite",
            "behind a hook",
            "is of 2 parts",
        ];
        for name in names {
            assert!(marks.leave_out(name), "{name}");
        }
        for name in ["plain", "around", "noted", "hooked", "other", "is of 2"] {
            assert!(!marks.leave_out(name), "{name}");
        }
        assert_eq!((marks.plain("plain"), marks.plain("within")), (1, 0));
    }
}
