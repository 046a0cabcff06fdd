//! Test functions in Rust source, found and rewritten without a parser.
//!
//! | file | holds |
//! |---|---|
//! | `clike/scan.rs` | blanked text, brackets, arguments, and a test function |
//! | `clike/literal.rs` | literals, and other values near them |
//! | `clike/twins.rs` | edits that make a test fail |
//!
//! Other languages with such brackets use the first two. Refuses unclear cases: such a test keeps its name, and has
//! no twin.

mod literal;
mod scan;
mod twins;

pub(crate) use literal::{is_literal, near};
pub(crate) use scan::{Edit, Test, blank, closing, covered_by, find, is_word, split, string_end, trimmed};
pub(crate) use twins::Rewriting;

use rand::Rng as _;
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom as _, SliceRandom as _};
use regex::Regex;
use scan::covered;
use std::ops::Range;
use std::sync::LazyLock;

/// `mod name;` or `mod name { ... }`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Module {
    pub(crate) name: String,
    /// The modules of the file around it.
    pub(crate) inside: Vec<String>,
    /// The value of a `path` attribute.
    pub(crate) path: Option<String>,
    pub(crate) is_inline: bool,
    pub(crate) is_conditional: bool,
    span: Range<usize>,
}

/// A file with tests under other names, and twins that must fail.
#[derive(Debug, Default)]
pub(crate) struct Rewritten {
    pub(crate) text: String,
    /// The new names, each with its original test and whether it must fail.
    pub(crate) names: Vec<(String, String, bool)>,
}

/// Tests of a file of Rust.
pub(crate) fn tests(text: &str) -> Vec<Test> {
    let covered = covered(text);
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = find(&covered, b"#[", from) {
        from = at + 2;
        if let Some(test) = test_at(text, &covered, at) {
            from = test.whole.end;
            found.push(test);
        }
    }
    let modules = modules(text);
    for test in &mut found {
        let around: Vec<&Module> = modules.iter().filter(|one| one.span.contains(&test.whole.start)).collect();
        test.modules = around.iter().map(|one| one.name.clone()).collect();
        test.is_conditional |=
            around.iter().any(|one| one.is_conditional) || is_conditional_at(&covered, test.whole.start);
    }
    found
}

static MODULE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\bmod\s+(?:r#)?(\w+)\s*([;{])").expect("a pattern of ours"));

/// A macro may leave out its arguments.
static MACRO: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\b(\w+)\s*!\s*(?:\w+\s*)?[({\[]").expect("a pattern of ours"));

static OF_FILE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"#!\s*\[[^\]]*\]").expect("a pattern of ours"));

/// The modules of a file of Rust, outer ones first.
pub(crate) fn modules(text: &str) -> Vec<Module> {
    let covered = covered(text);
    let plain = String::from_utf8_lossy(&covered);
    let mut found: Vec<Module> = Vec::new();
    for module in MODULE.captures_iter(&plain) {
        let (Some(whole), Some(name), Some(open)) = (module.get(0), module.get(1), module.get(2)) else { continue };
        let is_inline = open.as_str() == "{";
        let end = if is_inline { closing(&covered, open.start()).unwrap_or(covered.len()) } else { whole.end() };
        let around: Vec<&Module> = found.iter().filter(|one| one.span.contains(&whole.start())).collect();
        let attributes = attributes_before(&covered, whole.start());
        let is_condition = |span: &Range<usize>| is_condition(&String::from_utf8_lossy(&covered[span.clone()]));
        let is_conditional = attributes.iter().any(is_condition)
            || around.iter().any(|one| one.is_conditional)
            || is_conditional_at(&covered, whole.start());
        let mut path = attributes.iter().filter_map(|span| {
            let said = text[span.clone()].strip_prefix("#[path")?.trim_start().strip_prefix('=')?;
            Some(said.trim_start().strip_prefix('"')?.split('"').next()?.to_owned())
        });
        found.push(Module {
            name: name.as_str().to_owned(),
            inside: around.iter().map(|one| one.name.clone()).collect(),
            path: path.next(),
            is_inline,
            is_conditional,
            span: whole.start()..end,
        });
    }
    found
}

/// True when the file itself, or a macro around, may leave out the code at a place.
fn is_conditional_at(covered: &[u8], at: usize) -> bool {
    let plain = String::from_utf8_lossy(covered);
    OF_FILE.find_iter(&plain).any(|one| is_condition(one.as_str()))
        || MACRO.captures_iter(&plain).any(|call| {
            let (Some(whole), Some(name)) = (call.get(0), call.get(1)) else { return false };
            let end = closing(covered, whole.end() - 1).unwrap_or(covered.len());
            name.as_str() != "proptest" && (whole.start()..end).contains(&at)
        })
}

/// True when an attribute may leave out its item when tests are built.
fn is_condition(attribute: &str) -> bool {
    let words: String = attribute.split_whitespace().collect();
    words.contains("[cfg(") && !words.contains("[cfg(test)]") && !words.contains("[cfg(any(test,")
}

/// The attributes of an item with its keyword at a place.
fn attributes_before(covered: &[u8], at: usize) -> Vec<Range<usize>> {
    let trimmed = |end: usize| end - covered[..end].iter().rev().take_while(|byte| byte.is_ascii_whitespace()).count();
    let mut end = trimmed(at);
    if covered[..end].ends_with(b")") {
        end = trimmed(covered[..end].iter().rposition(|byte| *byte == b'(').unwrap_or(end));
    }
    if covered[..end].ends_with(b"pub") {
        end = trimmed(end - 3);
    }
    let mut found = Vec::new();
    while covered[..end].ends_with(b"]") {
        let mut starts = (0..end).rev().filter(|start| covered[*start..].starts_with(b"#["));
        let Some(start) = starts.find(|start| closing(covered, start + 1) == Some(end - 1)) else { break };
        found.push(start..end);
        end = trimmed(start);
    }
    found
}

/// Gives each of `tests` another name and twins, and one of them a canary beside it: a test that fails only by an
/// assertion.
pub(crate) fn rewritten(text: &str, tests: &[Test], rewriting: &Rewriting<'_>, random: &mut StdRng) -> Rewritten {
    let covered = covered(text);
    let (mut new, mut at) = (Rewritten::default(), 0);
    let canary = beside_canary(tests, random).cloned();
    for test in tests {
        new.text.push_str(&text[at..test.whole.start]);
        let mut variants = vec![test.renamed(text, None, &fresh(&test.name, &mut new, false, random))];
        if !test.should_panic {
            for edit in twins::edits(test, text, &covered, rewriting, random) {
                variants.push(test.renamed(text, Some(&edit), &fresh(&test.name, &mut new, true, random)));
            }
        }
        if canary.as_ref() == Some(test) {
            let name = fresh(&test.name, &mut new, true, random);
            variants.push(match test.should_panic {
                true => plain_canary(&name, random),
                false => test.renamed(text, Some(&twins::failing(test, random)), &name),
            });
        }
        variants.shuffle(random);
        new.text.push_str(&variants.join("\n"));
        at = test.whole.end;
    }
    new.text.push_str(&text[at..]);
    new
}

/// The test beside the canary: one that certainly exists, if there is one.
fn beside_canary<'t>(tests: &'t [Test], random: &mut StdRng) -> Option<&'t Test> {
    let is_there = |test: &&Test| !test.is_conditional;
    let can_fail = |test: &&Test| !test.should_panic;
    let there: Vec<&Test> = tests.iter().filter(is_there).collect();
    let of = if there.is_empty() { tests.iter().collect() } else { there };
    let failing: Vec<&Test> = of.iter().copied().filter(can_fail).collect();
    if failing.is_empty() { of.choose(random).copied() } else { failing.choose(random).copied() }
}

/// A file with a test at its end that fails only by an assertion, under a name with this prefix.
pub(crate) fn with_canary(text: &str, of: &str, random: &mut StdRng) -> Rewritten {
    let mut new = Rewritten::default();
    let name = fresh(of, &mut new, true, random);
    new.text = format!("{text}\n{}\n", plain_canary(&name, random));
    new
}

fn plain_canary(name: &str, random: &mut StdRng) -> String {
    format!("#[test]\nfn {name}() {{\n    {}\n}}", twins::unequal(random))
}

/// The original name comes first: commands may choose tests by a part of it.
fn fresh(of: &str, new: &mut Rewritten, must_fail: bool, random: &mut StdRng) -> String {
    let name = format!("{of}_{:08x}", random.next_u32());
    new.names.push((name.clone(), of.to_owned(), must_fail));
    name
}

/// Attributes that make a function a test, by the last name of their path: those of `tokio::test`, `rstest::rstest`.
const TEST_ATTRIBUTES: [&str; 8] =
    ["async_test", "gtest", "parameterized", "quickcheck", "rstest", "test", "test_case", "test_matrix"];

/// True when an attribute makes its function a test.
fn is_of_test(attribute: &str) -> bool {
    let path = attribute.trim_start_matches("#[").split(['(', ']', '=']).next().unwrap_or_default().trim();
    path.rsplit("::").next().is_some_and(|name| TEST_ATTRIBUTES.contains(&name.trim()))
}

fn test_at(text: &str, covered: &[u8], start: usize) -> Option<Test> {
    let (mut at, mut attributes, mut spans) = (start, Vec::new(), Vec::new());
    while covered[at..].starts_with(b"#[") {
        let end = closing(covered, at + 1)? + 1;
        attributes.push(&text[at..end]);
        spans.push(at..end);
        at = end + blank(&covered[end..]);
    }
    attributes.iter().find(|one| is_of_test(one))?;
    let keyword = find(covered, b"fn ", at).filter(|keyword| {
        covered[at..*keyword].iter().all(|byte| is_word(*byte) || byte.is_ascii_whitespace() || b"()".contains(byte))
    })?;
    let name = keyword + 3 + blank(&covered[keyword + 3..]);
    let name_end = name + covered[name..].iter().take_while(|byte| is_word(**byte)).count();
    // A name that a macro makes does not exist yet.
    if name == name_end {
        return None;
    }
    let open = find(covered, b"{", name_end)?;
    let end = closing(covered, open)?;
    Some(Test {
        name: text[name..name_end].to_owned(),
        whole: start..end + 1,
        named: name..name_end,
        body: open + 1..end,
        should_panic: attributes
            .iter()
            .any(|one| one.contains("should_panic") || one.contains("test_case") && one.contains("panics")),
        is_conditional: spans.iter().map(|span| String::from_utf8_lossy(&covered[span.clone()])).any(|one| {
            is_condition(&one) || ["cfg_attr", "ignore", "inconclusive"].iter().any(|word| one.contains(*word))
        }),
        modules: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng as _;

    const FILE: &str = r##"
        // #[test] fn not_this() {}
        fn lifetime<'a>(text: &'a str) -> char { '{' }
        #[test]
        fn adds() {
            let text = "}";
            assert_eq!(add(2, 3), 5, "sum of {}", text);
        }
        #[test]
        #[should_panic(expected = "no")]
        fn refuses() { parse("x"); }
        #[cfg(windows)]
        #[test]
        fn elsewhere() {}
        #[test]
        fn leaves_early() { if true { return; } assert_eq!(1, 1); }
        #[test]
        fn holds() { assert!(is_even(2)); }
        #[tokio::test]
        async fn waits() -> Result<(), ()> { assert_eq!(label(r#"a"#), "a: }"); Ok(()) }
    "##;

    #[test]
    fn tests_are_found_by_their_attribute() {
        let found = tests(FILE);
        let names: Vec<_> = found.iter().map(|test| test.name.as_str()).collect();
        assert_eq!(names, ["adds", "refuses", "elsewhere", "leaves_early", "holds", "waits"]);
        assert!(found[1].should_panic && found[2].is_conditional && !found[0].is_conditional);
    }

    #[test]
    fn what_may_leave_a_test_out_is_seen_around_it() {
        let text = "#![cfg_attr(docsrs, feature(x))]\n#[cfg(test)]\n#[path = \"of.rs\"]\npub(crate) mod of;\n\
                    #[cfg(windows)] mod there { #[test] fn a() {} }\nmod here { mod deep; #[test] fn b() {} }\n\
                    cfg_rt! { mod rt; #[test] fn c() {} }\n#[cfg_attr(miri, ignore)]\n#[test]\nfn d() {}";
        let found: Vec<_> = modules(text).into_iter().map(|one| (one.name, one.is_conditional, one.path)).collect();
        let module = |name: &str, is_conditional| (name.to_owned(), is_conditional, None);
        let of = ("of".to_owned(), false, Some("of.rs".to_owned()));
        let others = [module("there", true), module("here", false), module("deep", false), module("rt", true)];
        assert_eq!(found, [&[of][..], &others].concat());
        let found: Vec<_> = tests(text).into_iter().map(|one| (one.is_conditional, one.modules.join("::"))).collect();
        let expected = [(true, "there"), (false, "here"), (true, ""), (true, "")];
        assert_eq!(found, expected.map(|(is_conditional, modules)| (is_conditional, modules.to_owned())));
        let all = tests(&format!("#![cfg(feature = \"x\")]\n{text}"));
        assert!(all.iter().all(|one| one.is_conditional));
    }

    fn new(text: &str, twins: usize, seed: u8) -> Rewritten {
        let rewriting = Rewriting { twins, crates: &[] };
        rewritten(text, &tests(text), &rewriting, &mut StdRng::from_seed([seed; 32]))
    }

    #[test]
    fn a_twin_differs_in_what_must_fail() {
        let new = new(FILE, 2, 7);
        let again = tests(&new.text);
        assert_eq!(again.len(), new.names.len());
        let count =
            |of: &str, fails: bool| new.names.iter().filter(|(_, one, must)| one == of && *must == fails).count();
        assert_eq!((count("adds", false), count("refuses", false), count("refuses", true)), (1, 1, 0));
        let twins = [("adds", 2), ("leaves_early", 1), ("holds", 1), ("waits", 2)];
        assert!(twins.iter().all(|(of, number)| count(of, true) >= *number), "{:?}", new.names);
        let failing: usize = twins.iter().map(|(of, _)| count(of, true)).sum();
        assert_eq!(failing, 7, "a canary stands beside one of them: {:?}", new.names);
        assert!(new.text.contains("assert!(!(is_even(2)));"), "{}", new.text);
        assert!(new.text.contains("fn lifetime<'a>"), "{}", new.text);
    }

    #[test]
    fn a_file_has_one_canary_also_without_twins() {
        let panicking = "#[test]\n#[should_panic]\nfn refuses() { parse(); }\n";
        for (text, tests, seed) in [(FILE, 6, 1), (FILE, 6, 2), (FILE, 6, 3), (panicking, 1, 4)] {
            let new = new(text, 0, seed);
            let failing: Vec<_> = new.names.iter().filter(|(.., fails)| *fails).collect();
            assert_eq!((failing.len(), new.names.len()), (1, tests + 1), "{:?}", new.names);
            assert!(tests == 1 || !["refuses", "elsewhere"].contains(&failing[0].1.as_str()), "{failing:?}");
            let (_, rest) = new.text.split_once(&format!("fn {}()", failing[0].0)).unwrap();
            let body = rest.split_once('{').unwrap().1.trim_start();
            assert!(body.starts_with("assert_eq!("), "{body}");
            assert!(!new.text.contains("assert_ne!") && !new.text.contains("(!(is_even"), "{}", new.text);
        }
        let Rewritten { text, names } = with_canary("a!();", "adds", &mut StdRng::from_seed([1; 32]));
        assert!(text.starts_with("a!();\n#[test]\nfn adds_") && names.len() == 1 && names[0].2, "{text}");
    }

    #[test]
    fn tests_of_other_attributes_are_tests_too() {
        let text = "#[rstest]\n#[case(1, 2)]\nfn a(#[case] one: i32, #[case] two: i32) {}\n\
                    #[test_case(1 => 2)]\n#[test_case(0 => panics \"no\"; \"of none\")]\nfn b(one: u8) -> u8 { one }\n\
                    #[sqlx::test]\nasync fn c(pool: Pool) {}\n#[quickcheck]\nfn d(one: u8) -> bool { true }\n\
                    #[test_case(0 => ignore)]\nfn e(one: u8) {}\n#[cfg(test)]\nfn f() {}\n#[bench]\nfn g() {}\n";
        let found = tests(text);
        let names: Vec<_> = found.iter().map(|test| test.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c", "d", "e"]);
        assert!(found[1].should_panic && !found[0].should_panic && found[4].is_conditional && !found[2].is_conditional);
    }

    #[test]
    fn nearby_values_fit_the_smallest_type() {
        let mut random = StdRng::from_seed([3; 32]);
        for literal in ["0", "1u8", "120", "127", "255", "-1", "1_000", "2.5", "\"ab\"", "true"] {
            assert!(is_literal(literal), "{literal}");
            let found = near(literal, 3, &mut random);
            assert!(!found.is_empty() && !found.contains(&literal.to_owned()), "{literal}: {found:?}");
        }
        for (literal, most) in [("0", 127), ("125", 127), ("127", 127), ("250", 255), ("255", 255), ("1_000", 32_767)] {
            let found: Vec<u32> = near(literal, 9, &mut random).iter().filter_map(|value| value.parse().ok()).collect();
            assert!(!found.is_empty() && found.iter().all(|value| *value <= most), "{literal}: {found:?}");
        }
        let above = near("1000", 9, &mut random).iter().any(|one| one.parse::<u32>().is_ok_and(|one| one > 1_000));
        assert!(above, "the true value is not always the largest");
        for other in ["0xff", "x", "\"a\\n\"", "a.b", "\"a\" \"b\"", ""] {
            assert!(!is_literal(other), "{other}");
        }
    }
}
