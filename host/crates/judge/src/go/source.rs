//! Test functions in Go source, found and rewritten as text.
//!
//! Refuses unclear cases: a function with another form than in the tool's own documentation is left alone.

use super::scan::{Kind, Test, covered};
use super::twins;
use crate::clike::{Edit, blank, closing, find, is_word};
use rand::Rng as _;
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom as _, SliceRandom as _};
use std::collections::BTreeSet;

/// Endings of file names that are built on some machines alone.
const MACHINES: &[&str] = &[
    "aix",
    "android",
    "darwin",
    "dragonfly",
    "freebsd",
    "illumos",
    "ios",
    "js",
    "linux",
    "netbsd",
    "openbsd",
    "plan9",
    "solaris",
    "wasip1",
    "windows",
    "386",
    "amd64",
    "arm",
    "arm64",
    "loong64",
    "mips",
    "mips64",
    "mips64le",
    "mipsle",
    "ppc64",
    "ppc64le",
    "riscv64",
    "s390x",
    "wasm",
];

/// The prefix of a test that the operator did not choose, which makes it none.
const UNCHOSEN: &str = "unchosen";

/// A name of the audit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) name: String,
    pub(super) of: String,
    pub(super) must_fail: bool,
}

/// The rewriting of the tests of a file.
pub(super) struct Rewriting<'a> {
    /// The names of the tests that the operator chose.
    pub(super) chosen: &'a BTreeSet<String>,
    /// Tests that other functions call by name.
    pub(super) called: &'a BTreeSet<String>,
    /// Tests that read their own names, and so keep them.
    pub(super) kept: &'a BTreeSet<String>,
    /// Twins of each test.
    pub(super) twins: usize,
    /// True when closures of `t.Run` certainly run.
    pub(super) has_subtests: bool,
}

/// Tests of a file.
pub(super) fn tests(text: &str) -> Vec<Test> {
    let covered = covered(text);
    functions(&covered).filter_map(|at| test_at(text, &covered, at)).collect()
}

/// The number of tests in a file, with the methods that a suite runs.
pub(super) fn counted(text: &str) -> usize {
    let covered = covered(text);
    let is_method = |at: &usize| {
        let end = closing(&covered, at + 5).filter(|_| covered.get(at + 5) == Some(&b'('));
        end.is_some_and(|end| covered[end..].starts_with(b") Test"))
    };
    tests(text).len() + functions(&covered).filter(is_method).count()
}

/// True when `path` is a test file that the tool reads.
pub(super) fn is_test_file(path: &str) -> bool {
    let (dirs, name) = path.rsplit_once('/').unwrap_or(("", path));
    let is_left_out = |part: &str| part == "testdata" || part == "vendor" || part.starts_with(['_', '.']);
    let is_hidden = name.starts_with(['_', '.']) || dirs.split('/').filter(|part| !part.is_empty()).any(is_left_out);
    name.ends_with("_test.go") && !is_hidden
}

/// True when a file is built only on some machines, or with some tags.
pub(super) fn is_conditional(path: &str, text: &str) -> bool {
    let stem = path.rsplit('/').next().unwrap_or(path).trim_end_matches("_test.go");
    let of_machine = stem.rsplit_once('_').is_some_and(|(_, last)| MACHINES.contains(&last));
    let is_tag =
        |line: &str| line.starts_with("//go:build") || line.starts_with("// +build") || line.starts_with("//+build");
    of_machine || text.lines().take_while(|line| !line.starts_with("package ")).any(|line| is_tag(line.trim_start()))
}

/// True when a name occurs in a file, except at the beginning of its own function.
pub(super) fn is_called(covered: &[u8], name: &str) -> bool {
    let (mut from, mut is_called) = (0, false);
    while let Some(at) = find(covered, name.as_bytes(), from) {
        from = at + name.len();
        let is_whole = !at.checked_sub(1).is_some_and(|before| is_word(covered[before]))
            && !covered.get(from).is_some_and(|byte| is_word(*byte));
        is_called |= is_whole && !covered[..at].ends_with(b"func ");
    }
    is_called
}

/// The file with its tests under other names, beside twins, and one canary.
pub(super) fn rewritten(text: &str, rewriting: &Rewriting<'_>, random: &mut StdRng) -> (String, Vec<Name>) {
    let (tests, covered) = (tests(text), covered(text));
    let (mut new, mut at, mut names) = (String::new(), 0, Vec::new());
    let is_chosen = |test: &&Test| rewriting.chosen.contains(&test.name);
    let can_fail: Vec<&Test> = tests.iter().filter(is_chosen).filter(|test| test.kind != Kind::Example).collect();
    let canary = can_fail.choose(random).map(|test| test.name.clone());
    for test in &tests {
        new.push_str(&text[at..test.whole.start]);
        at = test.whole.end;
        let is_called = rewriting.called.contains(&test.name);
        if !is_chosen(&test) {
            let name = if is_called { test.name.clone() } else { format!("{UNCHOSEN}{}", test.name) };
            new.push_str(&test.renamed(text, &[], &name));
            continue;
        }
        let has_canary = canary.as_ref() == Some(&test.name);
        let mut variants = variants(test, text, &covered, rewriting, has_canary, &mut names, random);
        if is_called && !rewriting.kept.contains(&test.name) {
            variants.push(text[test.whole.clone()].to_owned());
        }
        variants.shuffle(random);
        new.push_str(&variants.join("\n\n"));
    }
    new.push_str(&text[at..]);
    (new, names)
}

fn variants(
    test: &Test,
    text: &str,
    covered: &[u8],
    rewriting: &Rewriting<'_>,
    has_canary: bool,
    names: &mut Vec<Name>,
    random: &mut StdRng,
) -> Vec<String> {
    let mut edits = if rewriting.twins > 0 {
        twins::edits(test, text, covered, rewriting.twins, rewriting.has_subtests, random)
    } else {
        Vec::new()
    };
    if has_canary {
        edits.push(twins::canary(test, random));
    }
    let told = twins::masks(test, text, covered);
    let mut variant = |edit: Option<Edit>| {
        let must_fail = edit.is_some();
        let is_kept = rewriting.kept.contains(&test.name) && !must_fail;
        let name = if is_kept { test.name.clone() } else { format!("{}_{:08x}", test.name, random.next_u32()) };
        names.push(Name { name: name.clone(), of: test.name.clone(), must_fail });
        let is_apart = |(span, _): &&Edit| {
            edit.as_ref().is_none_or(|(other, _)| span.end <= other.start || other.end <= span.start)
        };
        let edits: Vec<Edit> = told
            .iter()
            .filter(is_apart)
            .chain(&edit)
            .cloned()
            .chain(twins::panics_alone(test).filter(|_| !is_kept))
            .collect();
        test.renamed(text, &edits, &name)
    };
    let real = variant(None);
    std::iter::once(real).chain(edits.into_iter().map(|edit| variant(Some(edit)))).collect()
}

fn test_at(text: &str, covered: &[u8], start: usize) -> Option<Test> {
    let named = start + 5..start + 5 + covered[start + 5..].iter().take_while(|byte| is_letter(**byte)).count();
    let name = &text[named.clone()];
    let kinds = [("Test", Kind::Test, "T"), ("Fuzz", Kind::Fuzz, "F"), ("Example", Kind::Example, "")];
    let (_, kind, letter) = kinds.into_iter().find(|(prefix, ..)| is_named(name, prefix))?;
    let close = closing(covered, named.end).filter(|_| covered.get(named.end) == Some(&b'('))?;
    let params = named.end + 1..close;
    let param = param(&text[params.clone()], letter)?;
    let open = close + 1 + blank(&covered[close + 1..]);
    let end = closing(covered, open).filter(|_| covered[open] == b'{')?;
    let body = open + 1..end;
    if kind == Kind::Example && twins::output(text, body.clone()).is_none() {
        return None;
    }
    Some(Test { name: name.to_owned(), kind, whole: start..end + 1, named, params, param, body })
}

/// A function's name for its only parameter, of the type `*testing.T`; an unnamed one gets a name.
fn param(params: &str, letter: &str) -> Option<String> {
    let words: Vec<&str> = params.split_whitespace().collect();
    let (name, kind) = match words.as_slice() {
        [] => return letter.is_empty().then(String::new),
        [kind] => ("_", *kind),
        [name, kind] => (*name, *kind),
        _ => return None,
    };
    let is_it = kind.strip_prefix('*').is_some_and(|kind| kind.rsplit('.').next() == Some(letter));
    let name = if name == "_" { "longhaul" } else { name };
    is_it.then(|| name.to_owned())
}

/// Names as the tool reads them: a lower-case letter may not come next.
fn is_named(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix).is_some_and(|rest| !rest.starts_with(char::is_lowercase))
}

/// The beginnings of functions at the start of a line.
fn functions(covered: &[u8]) -> impl Iterator<Item = usize> {
    let is_start = |at: &usize| covered[*at..].starts_with(b"func ") && (*at == 0 || covered[*at - 1] == b'\n');
    (0..covered.len()).filter(is_start)
}

/// The text with everything except strings and characters blanked.
pub(super) fn strings(text: &str) -> Vec<u8> {
    let covered = covered(text);
    let mut strings: Vec<u8> =
        text.bytes().zip(covered).map(|(byte, seen)| if seen == byte { b' ' } else { byte }).collect();
    for span in twins::comments(text, 0..text.len()) {
        strings[span].fill(b' ');
    }
    strings
}

fn is_letter(byte: u8) -> bool {
    is_word(byte) || !byte.is_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng as _;

    const FILE: &str = "package calc\n\n// func TestNot(t *testing.T) {}\nfunc TestMain(m *testing.M) { m.Run() }\n\
        func TestAdd(t *testing.T) {\n\tif got := Add(2, 3); got != 5 { // five\n\
        \t\tt.Errorf(\"got %d, want 5\", got)\n\t}\n}\n\
        func Testing(t *testing.T) {}\nfunc Test(*testing.T) {}\nfunc (s *Suite) TestIt() {}\n\
        func FuzzIt(f *testing.F) { f.Add(1) }\nfunc ExampleAdd() {\n\tfmt.Println(`}`)\n\t// Output: 5\n}\n\
        func ExampleNot() {}\nfunc TestOther(t *testing.T, n int) {}\n";

    fn names(text: &str) -> Vec<String> {
        tests(text).into_iter().map(|test| test.name).collect()
    }

    #[test]
    fn tests_are_found_by_name_and_form() {
        assert_eq!(names(FILE), ["TestAdd", "Test", "FuzzIt", "ExampleAdd"]);
        assert_eq!(counted(FILE), 5, "with the method of a suite");
    }

    #[test]
    fn a_file_is_rewritten_with_other_names_twins_and_a_canary() {
        let chosen = ["TestAdd", "FuzzIt", "ExampleAdd"].map(str::to_owned).into();
        let called = BTreeSet::new();
        let rewriting = Rewriting { chosen: &chosen, called: &called, kept: &called, twins: 2, has_subtests: true };
        let (new, made) = rewritten(FILE, &rewriting, &mut StdRng::from_seed([5; 32]));
        let count = |of: &str, fails| made.iter().filter(|name| name.of == of && name.must_fail == fails).count();
        assert_eq!((count("TestAdd", false), count("FuzzIt", false), count("ExampleAdd", false)), (1, 1, 1));
        assert_eq!(count("TestAdd", true) + count("FuzzIt", true), 4, "two, one and a canary: {new}");
        assert_eq!(count("ExampleAdd", true), 2, "{new}");
        assert!(new.contains("func unchosenTest(longhaul *testing.T) {}"), "{new}");
        assert_eq!(new.matches("got != 5 ").count(), new.matches("func TestAdd_").count() - 2, "{new}");
        assert!(!new.contains("want 5") && !new.contains("// five"), "nothing tells what is expected: {new}");
        assert!(made.iter().all(|name| names(&new).contains(&name.name)), "{new}");
        let kept = Rewriting { kept: &chosen, twins: 0, ..rewriting };
        let (new, made) = rewritten(FILE, &kept, &mut StdRng::from_seed([5; 32]));
        assert!(new.contains("func TestAdd(t *testing.T)") && made.iter().any(|name| name.must_fail), "{new}");
    }

    #[test]
    fn a_file_of_tests_may_be_built_only_sometimes() {
        assert!(is_test_file("a/calc_test.go") && is_test_file("x_test.go"));
        for path in ["a/testdata/x_test.go", "_a/x_test.go", "vendor/b/x_test.go", "_x_test.go", "test.go"] {
            assert!(!is_test_file(path), "{path}");
        }
        assert!(
            is_conditional("a_windows_test.go", "") && is_conditional("a_test.go", "//go:build ignore\n\npackage a\n")
        );
        assert!(!is_conditional("windows_test.go", "") && !is_conditional("a_b_test.go", "package a\n//go:build x\n"));
    }

    #[test]
    fn a_test_that_others_call_is_known() {
        let covered = covered("func TestA(t *testing.T) {}\nfunc TestB(t *testing.T) { t.Run(\"a\", TestA) }\n");
        let text = "// TestA is it\nfunc TestA(t *testing.T) { is(\"p.TestA.func1\", TestB) }\n";
        assert!(is_called(&strings(text), "TestA") && !is_called(&strings(text), "TestB"));
        assert!(is_called(&covered, "TestA") && !is_called(&covered, "TestB") && !is_called(&covered, "Test"));
    }
}
