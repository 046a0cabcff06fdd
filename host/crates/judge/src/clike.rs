//! Test functions in Rust source, found and rewritten without a parser; and what languages with such brackets share.
//!
//! Comments, strings and characters are covered first, so that brackets can be counted; what is then cut out and put in
//! is the text itself. Refuses what it is not sure of: such a test keeps its name, and has no twin.

mod twins;

use rand::rngs::StdRng;
use rand::seq::{IndexedRandom as _, SliceRandom as _};
use rand::{Rng as _, RngExt as _};
use regex::Regex;
use std::ops::Range;
use std::sync::LazyLock;

/// A test function of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Test {
    pub(crate) name: String,
    /// From its first attribute to the end of its body.
    whole: Range<usize>,
    /// Its name.
    named: Range<usize>,
    /// Between the brackets of its body.
    body: Range<usize>,
    /// Whether it must panic, so that a failing assertion would have it pass.
    should_panic: bool,
    /// Whether it may not be there, or not run: by its own attributes or by what it stands in.
    pub(crate) is_conditional: bool,
    /// The modules of the file that it stands in.
    pub(crate) modules: Vec<String>,
}

/// `mod name;` or `mod name { ... }`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Module {
    pub(crate) name: String,
    /// The modules of the file that it stands in.
    pub(crate) inside: Vec<String>,
    /// What a `path` attribute says.
    pub(crate) path: Option<String>,
    pub(crate) is_inline: bool,
    pub(crate) is_conditional: bool,
    span: Range<usize>,
}

/// A file with tests under other names, and twins that must fail.
#[derive(Debug, Default)]
pub(crate) struct Rewritten {
    pub(crate) text: String,
    /// The new names, each with the test it was made of and whether it must fail.
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

/// What a macro is called with may be left out by it.
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

/// Whether the file itself, or a macro around, may leave out what stands at a place.
fn is_conditional_at(covered: &[u8], at: usize) -> bool {
    let plain = String::from_utf8_lossy(covered);
    OF_FILE.find_iter(&plain).any(|one| is_condition(one.as_str()))
        || MACRO.captures_iter(&plain).any(|call| {
            let (Some(whole), Some(name)) = (call.get(0), call.get(1)) else { return false };
            let end = closing(covered, whole.end() - 1).unwrap_or(covered.len());
            name.as_str() != "proptest" && (whole.start()..end).contains(&at)
        })
}

/// Whether an attribute may leave out what it stands at, where tests are built.
fn is_condition(attribute: &str) -> bool {
    let words: String = attribute.split_whitespace().collect();
    words.contains("[cfg(") && !words.contains("[cfg(test)]") && !words.contains("[cfg(any(test,")
}

/// The attributes of an item whose keyword stands at a place.
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

/// How the tests of a file are rewritten.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rewriting<'a> {
    /// Twins of each; the file has a canary also without any.
    pub(crate) twins: usize,
    /// The crates of the work; none where its types may be equal to others.
    pub(crate) crates: &'a [String],
}

/// Gives each of `tests` another name and twins, and one of them a canary beside it: a test that fails by an assertion
/// alone.
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

/// The test that a canary stands beside: one that is there for certain, if any is.
fn beside_canary<'t>(tests: &'t [Test], random: &mut StdRng) -> Option<&'t Test> {
    let is_there = |test: &&Test| !test.is_conditional;
    let can_fail = |test: &&Test| !test.should_panic;
    let there: Vec<&Test> = tests.iter().filter(is_there).collect();
    let of = if there.is_empty() { tests.iter().collect() } else { there };
    let failing: Vec<&Test> = of.iter().copied().filter(can_fail).collect();
    if failing.is_empty() { of.choose(random).copied() } else { failing.choose(random).copied() }
}

/// A file with a test at its end that fails by an assertion alone, under a name that begins so.
pub(crate) fn with_canary(text: &str, of: &str, random: &mut StdRng) -> Rewritten {
    let mut new = Rewritten::default();
    let name = fresh(of, &mut new, true, random);
    new.text = format!("{text}\n{}\n", plain_canary(&name, random));
    new
}

fn plain_canary(name: &str, random: &mut StdRng) -> String {
    format!("#[test]\nfn {name}() {{\n    {}\n}}", twins::unequal(random))
}

/// The name that it had comes first: commands may choose tests by a part of it.
fn fresh(of: &str, new: &mut Rewritten, must_fail: bool, random: &mut StdRng) -> String {
    let name = format!("{of}_{:08x}", random.next_u32());
    new.names.push((name.clone(), of.to_owned(), must_fail));
    name
}

/// What comes in the place of a span.
pub(crate) type Edit = (Range<usize>, String);

impl Test {
    fn renamed(&self, text: &str, edit: Option<&Edit>, name: &str) -> String {
        let mut whole = text[self.whole.clone()].to_owned();
        if let Some((span, with)) = edit {
            whole.replace_range(span.start - self.whole.start..span.end - self.whole.start, with);
        }
        whole.replace_range(self.named.start - self.whole.start..self.named.end - self.whole.start, name);
        whole
    }
}

/// Attributes that make a test of a function, by the last name of their path: those of `tokio::test`, `rstest::rstest`.
const TEST_ATTRIBUTES: [&str; 8] =
    ["async_test", "gtest", "parameterized", "quickcheck", "rstest", "test", "test_case", "test_matrix"];

/// Whether an attribute makes a test of what it stands at.
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
    // A name that a macro makes up is not there yet.
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

/// The text with comments, strings and characters blanked out, byte for byte.
fn covered(text: &str) -> Vec<u8> {
    covered_by(text, covered_until)
}

/// As `until` finds the end of what begins at a place; the place itself where nothing does.
pub(crate) fn covered_by(text: &str, until: impl Fn(&[u8], usize) -> usize) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut covered = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = until(bytes, at);
        if end > at {
            covered[at..end].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
            // A literal stays one: its quotes bound nothing that is counted.
            at = end;
        } else {
            at += 1;
        }
    }
    covered
}

/// The end of the comment, string or character that begins at `at`; `at` itself where none does.
fn covered_until(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    let is_after_word = at > 0 && is_word(bytes[at - 1]);
    if rest.starts_with(b"//") {
        return at + rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
    }
    if rest.starts_with(b"/*") {
        return find(bytes, b"*/", at + 2).map_or(bytes.len(), |end| end + 2);
    }
    if rest[0] == b'r' && !is_after_word {
        let hashes = rest[1..].iter().take_while(|byte| **byte == b'#').count();
        if rest.get(1 + hashes) == Some(&b'"') {
            let end = [b"\"".to_vec(), vec![b'#'; hashes]].concat();
            return find(bytes, &end, at + hashes + 2).map_or(bytes.len(), |found| found + end.len());
        }
    }
    if rest[0] == b'"' {
        return string_end(bytes, at, b'"');
    }
    // A lifetime has no closing quote.
    if rest[0] == b'\'' && (rest.get(1) == Some(&b'\\') || rest.iter().skip(2).take(4).any(|byte| *byte == b'\'')) {
        return string_end(bytes, at, b'\'');
    }
    at
}

pub(crate) fn string_end(bytes: &[u8], start: usize, quote: u8) -> usize {
    let mut at = start + 1;
    while at < bytes.len() && bytes[at] != quote {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

/// The bracket that closes the one at `open`.
pub(crate) fn closing(covered: &[u8], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in covered.iter().enumerate().skip(open) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// Arguments, by the commas between them.
pub(crate) fn split(covered: &[u8], arguments: Range<usize>) -> Vec<Range<usize>> {
    let (mut spans, mut depth, mut start) = (Vec::new(), 0_usize, arguments.start);
    for at in arguments.clone() {
        match covered[at] {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                spans.push(start..at);
                start = at + 1;
            }
            _ => {}
        }
    }
    spans.push(start..arguments.end);
    spans
}

pub(crate) fn trimmed(text: &str, span: &Range<usize>) -> Range<usize> {
    let part = &text[span.clone()];
    let start = span.start + (part.len() - part.trim_start().len());
    start..start + part.trim().len()
}

/// A number, a string or a truth value that can be changed within its type.
pub(crate) fn is_literal(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_number = digits.starts_with(|char: char| char.is_ascii_digit())
        && !digits.starts_with("0x")
        && !digits.starts_with("0b")
        && !digits.starts_with("0o")
        && digits.chars().all(|char| char.is_ascii_alphanumeric() || char == '_' || char == '.');
    let inner = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let is_string = inner.is_some_and(|inner| !inner.contains(['"', '\\']));
    is_number || is_string || text == "true" || text == "false"
}

/// The most that each type of whole numbers holds.
const MOST: [u64; 8] = [
    i8::MAX as u64,
    u8::MAX as u64,
    i16::MAX as u64,
    u16::MAX as u64,
    i32::MAX as u64,
    u32::MAX as u64,
    i64::MAX as u64,
    u64::MAX,
];

/// Texts of other values nearby.
pub(crate) fn near(literal: &str, count: usize, random: &mut StdRng) -> Vec<String> {
    match literal {
        "true" => return vec!["false".to_owned()],
        "false" => return vec!["true".to_owned()],
        _ => {}
    }
    if let Some(inner) = literal.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        return near_texts(inner, count, random).into_iter().map(|text| format!("\"{text}\"")).collect();
    }
    let (sign, digits) = literal.strip_prefix('-').map_or(("", literal), |digits| ("-", digits));
    let end = digits.find(|char: char| !char.is_ascii_digit() && char != '_').unwrap_or(digits.len());
    let Ok(value) = digits[..end].replace('_', "").parse::<u64>() else { return Vec::new() };
    // Within the smallest type that the value may have, and on both sides of it where there is room.
    let below = value.min(random.random_range(0..=4));
    let above = MOST.iter().find_map(|most| most.checked_sub(value)).unwrap_or(0).min(5);
    let mut values: Vec<u64> = (value - below..=value + above).filter(|other| *other != value).collect();
    if values.is_empty() {
        values.push(value - 1);
    }
    values.shuffle(random);
    values.truncate(count);
    values.into_iter().map(|other| format!("{sign}{other}{}", &digits[end..])).collect()
}

/// A walk of single letters, on which the true text stands anywhere.
fn near_texts(text: &str, count: usize, random: &mut StdRng) -> Vec<String> {
    let before = random.random_range(0..=count);
    let mut found: Vec<String> = Vec::new();
    for steps in [before, count - before] {
        let mut at = text.to_owned();
        for _ in 0..steps {
            let places: Vec<(usize, char)> =
                at.char_indices().filter(|(_, char)| char.is_ascii_alphanumeric()).collect();
            let place = places.choose(random).copied();
            let letter = loop {
                let letter = char::from(random.random_range(b'a'..=b'z'));
                if place.is_none_or(|(_, before)| before != letter) {
                    break letter.to_string();
                }
            };
            match place {
                Some((place, _)) => at.replace_range(place..=place, &letter),
                None => at.push_str(&letter),
            }
            if at != text && !found.contains(&at) {
                found.push(at.clone());
            }
        }
    }
    found
}

pub(crate) fn find(bytes: &[u8], wanted: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    rest.windows(wanted.len()).position(|window| window == wanted).map(|at| from + at)
}

pub(crate) fn blank(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

pub(crate) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
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
