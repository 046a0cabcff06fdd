//! The tests that node's test files leave out themselves: `skip` and `todo`, written at the test, around it or in it.
//!
//! Refuses nothing: a test whose mark is not found counts as left out by the code under test.

use super::source::{Call, File, Kind};
use std::ops::Range;

/// The tests and suites of a file, or several.
#[derive(Debug, Default)]
pub(super) struct Marks {
    calls: Vec<Marked>,
}

#[derive(Debug)]
struct Marked {
    name: Name,
    /// True when its file leaves it out.
    is_left_out: bool,
    /// True when nothing else may leave it out.
    is_certain: bool,
}

/// The first argument of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Name {
    Written(String),
    /// Text with any content between its parts.
    Parts(Vec<String>),
}

impl Marks {
    pub(super) fn add(&mut self, file: &File) {
        let (hooks, calls): (Vec<&Call>, Vec<&Call>) = file.calls.iter().partition(|call| call.kind == Kind::Hook);
        let marked: Vec<&Range<usize>> = calls.iter().filter(|call| call.is_marked).map(|call| &call.span).collect();
        let hooks: Vec<Range<usize>> =
            hooks.into_iter().filter(|hook| hook.is_marked).map(|hook| reach(hook, &calls)).collect();
        for call in &calls {
            let is_around = |other: &&Range<usize>| other.start <= call.span.start && call.span.end <= other.end;
            let is_behind = |reach: &Range<usize>| *reach != call.span && reach.contains(&call.span.start);
            self.calls.push(Marked {
                name: Name::of(&file.text[call.first.clone()]),
                is_left_out: marked.iter().any(is_around) || hooks.iter().any(is_behind),
                is_certain: call.is_certain,
            });
        }
    }

    /// True when a file leaves out a test of this name. A name that is written nowhere may belong to any call with a
    /// composed name.
    pub(super) fn leave_out(&self, name: &str) -> bool {
        let is_written = |one: &Name| matches!(one, Name::Written(written) if written == name);
        let is_known = self.calls.iter().any(|one| is_written(&one.name));
        let is_it = |one: &Name| if is_known { is_written(one) } else { one.fits(name) };
        self.calls.iter().any(|one| one.is_left_out && is_it(&one.name))
    }

    /// The number of tests of this name that must run: no file leaves them out, by a mark, a condition or a loop.
    pub(super) fn plain(&self, name: &str) -> usize {
        let is_written = |one: &Name| matches!(one, Name::Written(written) if written == name);
        let is_plain = |one: &&Marked| !one.is_left_out && one.is_certain && is_written(&one.name);
        self.calls.iter().filter(is_plain).count()
    }
}

/// The scope of a hook: its suite, or the file.
fn reach(hook: &Call, calls: &[&Call]) -> Range<usize> {
    let is_around = |call: &&&Call| call.span.start < hook.span.start && hook.span.end <= call.span.end;
    calls.iter().filter(is_around).map(|call| call.span.clone()).min_by_key(Range::len).unwrap_or(0..usize::MAX)
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
for (const n of [1, 2]) it('of a loop', () => {});
";

    #[test]
    fn a_test_is_left_out_by_its_own_file_alone() {
        let mut marks = Marks::default();
        marks.add(&File::of(FILE.to_owned()));
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
        assert_eq!((marks.plain("plain"), marks.plain("within"), marks.plain("of a loop")), (1, 0, 0));
    }
}
