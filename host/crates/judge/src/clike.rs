//! Test functions in Rust source, found and rewritten without a parser; and what languages with such brackets share.
//!
//! Comments, strings and characters are covered first, so that brackets can be counted; what is then cut out and put in
//! is the text itself. Refuses what it is not sure of: such a test keeps its name, and has no twin.

use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{Rng, RngExt as _};
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

/// Gives each of `tests` another name, and so many twins each.
pub(crate) fn rewritten(text: &str, tests: &[Test], twins: usize, random: &mut StdRng) -> Rewritten {
    let covered = covered(text);
    let (mut new, mut at) = (Rewritten::default(), 0);
    for test in tests {
        new.text.push_str(&text[at..test.whole.start]);
        let mut variants = vec![test.renamed(text, None, &fresh(&test.name, &mut new, false, random))];
        if !test.should_panic {
            for edit in test.edits(text, &covered, twins, random) {
                variants.push(test.renamed(text, Some(&edit), &fresh(&test.name, &mut new, true, random)));
            }
        }
        variants.shuffle(random);
        new.text.push_str(&variants.join("\n"));
        at = test.whole.end;
    }
    new.text.push_str(&text[at..]);
    new
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

    /// Edits each of which has the test fail for certain where it passed.
    fn edits(&self, text: &str, covered: &[u8], twins: usize, random: &mut StdRng) -> Vec<Edit> {
        let mut values: Vec<Edit> = Vec::new();
        let mut others: Vec<Edit> = Vec::new();
        for (name, arguments) in self.assertions(covered) {
            let spans = split(covered, arguments.clone());
            match (name, spans.as_slice()) {
                ("assert_eq!(", [left, right, ..]) => {
                    let literal = [right, left]
                        .into_iter()
                        .map(|span| trimmed(text, span))
                        .find(|span| is_literal(&text[span.clone()]));
                    if let Some(span) = literal {
                        let new = near(&text[span.clone()], twins, random);
                        values.extend(new.into_iter().map(|with| (span.clone(), with)));
                    } else {
                        others.push((arguments.start - name.len()..arguments.start, "assert_ne!(".to_owned()));
                    }
                }
                ("assert!(", [condition, ..]) => {
                    let span = trimmed(text, condition);
                    others.push((span.clone(), format!("!({})", &text[span])));
                }
                _ => {}
            }
        }
        values.shuffle(random);
        values.truncate(twins);
        if values.is_empty() {
            others.shuffle(random);
            values.extend(others.into_iter().take(1));
        }
        if values.is_empty() && twins > 0 {
            let left: u32 = random.random_range(0..4_096);
            let right = left + random.random_range(1..5);
            values.push((self.body.start..self.body.start, format!(" assert_eq!({left}, {right});")));
        }
        values
    }

    /// Assertions that are reached for certain: in the body itself, before anything that may leave it.
    fn assertions(&self, covered: &[u8]) -> Vec<(&'static str, Range<usize>)> {
        let mut found = Vec::new();
        let (mut depth, mut at) = (0_usize, self.body.start);
        while at < self.body.end {
            let rest = &covered[at..self.body.end];
            if rest.starts_with(b"return") || rest.starts_with(b"exit(") {
                break;
            }
            let starts = at == self.body.start || !is_word(covered[at - 1]);
            let name = ["assert_eq!(", "assert!("].into_iter().find(|name| rest.starts_with(name.as_bytes()));
            if let (0, true, Some(name)) = (depth, starts, name)
                && let Some(end) = closing(covered, at + name.len() - 1)
            {
                found.push((name, at + name.len()..end));
                at = end;
            }
            match covered[at] {
                b'(' | b'[' | b'{' => depth += 1,
                b')' | b']' | b'}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            at += 1;
        }
        found
    }
}

fn test_at(text: &str, covered: &[u8], start: usize) -> Option<Test> {
    let (mut at, mut attributes, mut spans) = (start, Vec::new(), Vec::new());
    while covered[at..].starts_with(b"#[") {
        let end = closing(covered, at + 1)? + 1;
        attributes.push(&text[at..end]);
        spans.push(at..end);
        at = end + blank(&covered[end..]);
    }
    let is_test =
        |one: &&str| matches!(one.trim_start_matches("#[").split(['(', ']']).next(), Some("test" | "tokio::test"));
    attributes.iter().find(|one| is_test(one))?;
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
        should_panic: attributes.iter().any(|one| one.contains("should_panic")),
        is_conditional: spans
            .iter()
            .map(|span| String::from_utf8_lossy(&covered[span.clone()]))
            .any(|one| is_condition(&one) || one.contains("cfg_attr") || one.contains("ignore")),
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
            let letter = char::from(random.random_range(b'a'..=b'z'));
            let places: Vec<usize> =
                at.char_indices().filter(|(_, char)| char.is_ascii_alphanumeric()).map(|(place, _)| place).collect();
            if places.is_empty() {
                at.push(letter);
            } else {
                let place = places[random.random_range(0..places.len())];
                at.replace_range(place..=place, &letter.to_string());
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

    #[test]
    fn a_twin_differs_in_what_must_fail() {
        let found = tests(FILE);
        let new = rewritten(FILE, &found, 2, &mut StdRng::from_seed([7; 32]));
        let again = tests(&new.text);
        assert_eq!(again.len(), new.names.len());
        let count =
            |of: &str, fails: bool| new.names.iter().filter(|(_, one, must)| one == of && *must == fails).count();
        assert_eq!((count("adds", false), count("adds", true)), (1, 2));
        assert_eq!((count("refuses", false), count("refuses", true)), (1, 0));
        assert_eq!((count("holds", true), count("leaves_early", true), count("waits", true)), (1, 1, 2));
        assert_eq!(new.text.matches("assert_eq!(add(2, 3), 5, ").count(), 1);
        assert!(new.text.contains("assert!(!(is_even(2)));"), "{}", new.text);
        assert!(new.text.contains("fn lifetime<'a>"), "{}", new.text);
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
