//! Edits that make a Rust test certainly fail where it passed.
//!
//! The best edit is a near expected value: a literal, or a value made of literals, also in a `let` or a row of a table.
//! Else a comparison that fails unless only one side is of a type of the work, which may be equal to anything. Else a
//! negated condition, else a failing assertion. Refuses assertions that a passing test may not reach.

use super::literal::{is_literal, near};
use super::scan::{Edit, Test, closing, find, is_word, split, trimmed};
use rand::RngExt as _;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use std::ops::Range;

/// Words that leave a test.
const LEAVES: [&[u8]; 2] = [b"return", b"exit("];

/// Words that leave a loop, or an iteration of it.
const LEAVES_LOOP: [&[u8]; 4] = [b"return", b"exit(", b"continue", b"break"];

/// Suffixes of an expected value that keep its content.
const CONVERSIONS: [&str; 9] = [
    ".to_string()",
    ".to_owned()",
    ".into()",
    ".to_vec()",
    ".as_str()",
    ".as_slice()",
    ".iter()",
    ".into_iter()",
    ".copied()",
];

/// Containers that are equal if their sources are.
const CONTAINERS: [&str; 14] = [
    "Arc", "BTreeMap", "BTreeSet", "Box", "Cell", "HashMap", "HashSet", "OsString", "PathBuf", "Rc", "RefCell",
    "String", "Vec", "VecDeque",
];

/// Nesting of values that are searched.
const DEPTH_MAX: usize = 8;

/// The rewriting of the tests of a file.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rewriting<'a> {
    /// Twins of each test; the file has a canary even without any.
    pub(crate) twins: usize,
    /// The crates of the work; none if its types may be equal to others.
    pub(crate) crates: &'a [String],
}

/// Edits each of which makes the test certainly fail where it passed; at least one, if there are twins at all.
pub(super) fn edits(
    test: &Test,
    text: &str,
    covered: &[u8],
    rewriting: &Rewriting<'_>,
    random: &mut StdRng,
) -> Vec<Edit> {
    if rewriting.twins == 0 {
        return Vec::new();
    }
    let search = Search { text, covered, body: test.body.clone(), count: rewriting.twins };
    let (mut values, mut others) = (Vec::new(), Vec::new());
    for assertion in search.assertions(&test.body, &LEAVES) {
        let found = assertion.sides.iter().rev().map(|side| search.changed(side, random)).find(|one| !one.is_empty());
        match found {
            Some(found) => values.extend(found),
            None => others.push(search.turned(&assertion, rewriting.crates)),
        }
    }
    for table in search.tables() {
        values.extend(search.rows(&table, random));
    }
    values.shuffle(random);
    values.truncate(rewriting.twins);
    if values.is_empty() {
        others.shuffle(random);
        values.extend(others.into_iter().take(1));
    }
    if values.is_empty() {
        values.push(failing(test, random));
    }
    values
}

/// An assertion that fails before anything else of a test runs.
pub(super) fn failing(test: &Test, random: &mut StdRng) -> Edit {
    (test.body.start..test.body.start, format!(" {}", unequal(random)))
}

/// A statement that fails.
pub(super) fn unequal(random: &mut StdRng) -> String {
    let left: u32 = random.random_range(0..4_096);
    let right = left + random.random_range(1..5);
    format!("assert_eq!({left}, {right});")
}

struct Search<'a> {
    text: &'a str,
    covered: &'a [u8],
    /// The body of the test.
    body: Range<usize>,
    /// The number of edits of each value.
    count: usize,
}

/// `assert_eq!(left, right, ...)`, or `assert!(condition, ...)`.
struct Assertion {
    /// From its name, or its path, to its closing bracket.
    whole: Range<usize>,
    /// The first argument of `assert!`.
    condition: Option<Range<usize>>,
    /// Both compared expressions, or none.
    sides: Vec<Range<usize>>,
    /// The arguments after the compared ones.
    rest: Range<usize>,
}

/// `for pattern in rows { ... }`.
struct Table {
    names: Vec<Range<usize>>,
    /// True when a row is destructured.
    is_tuple: bool,
    rows: Vec<Range<usize>>,
    body: Range<usize>,
}

/// The literals of a value.
#[derive(Default)]
struct Made {
    literals: Vec<Range<usize>>,
    /// True when a type of its own contains them; such a type may not compare each.
    is_own: bool,
}

impl Search<'_> {
    /// Assertions that are certainly reached: directly in a body, before anything that may leave it.
    fn assertions(&self, body: &Range<usize>, leaves: &[&[u8]]) -> Vec<Assertion> {
        let mut found = Vec::new();
        let (mut depth, mut at) = (0_usize, body.start);
        while at < body.end && !leaves.iter().any(|leave| self.is_at(at, leave)) {
            let name = ["assert_eq!(", "assert!("].into_iter().find(|name| self.is_at(at, name.as_bytes()));
            if let (0, Some(name)) = (depth, name)
                && let Some(end) = closing(self.covered, at + name.len() - 1)
            {
                found.extend(self.assertion(at, name, at + name.len()..end));
                at = end;
            }
            match self.covered[at] {
                b'(' | b'[' | b'{' => depth += 1,
                b')' | b']' | b'}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            at += 1;
        }
        found
    }

    fn assertion(&self, at: usize, name: &str, arguments: Range<usize>) -> Option<Assertion> {
        let is_of_path = |byte: &u8| is_word(*byte) || *byte == b':';
        let path = self.covered[..at].iter().rev().take_while(|byte| is_of_path(byte)).count();
        let whole = at - path..arguments.end + 1;
        let spans = split(self.covered, arguments.clone());
        let (sides, first, last) = match (name, spans.as_slice()) {
            ("assert_eq!(", [left, right, ..]) => (vec![left.clone(), right.clone()], None, right),
            ("assert!(", [condition, ..]) => (self.equality(condition), Some(condition), condition),
            _ => return None,
        };
        let condition = first.map(|span| trimmed(self.text, span));
        Some(Assertion { whole, condition, sides, rest: last.end..arguments.end })
    }

    /// True when a word begins at a place.
    fn is_at(&self, at: usize, word: &[u8]) -> bool {
        self.covered[at..].starts_with(word) && (at == 0 || !is_word(self.covered[at - 1]))
    }

    /// Both sides of `left == right`, if that is the whole condition.
    fn equality(&self, condition: &Range<usize>) -> Vec<Range<usize>> {
        let plain: Vec<u8> = self.outer(condition);
        let Some(at) = find(&plain, b"==", 0) else { return Vec::new() };
        let sides = [condition.start..condition.start + at, condition.start + at + 2..condition.end];
        let is_plain = |side: &Range<usize>| {
            let bare = self.bare(side);
            !self.outer(&bare).iter().any(|byte| b"|&<>=?".contains(byte)) && !bare.is_empty()
        };
        if sides.iter().all(is_plain) { sides.to_vec() } else { Vec::new() }
    }

    /// A part with the content of brackets blanked.
    fn outer(&self, span: &Range<usize>) -> Vec<u8> {
        let mut depth = 0_usize;
        let of = |byte: &u8| {
            match byte {
                b'(' | b'[' | b'{' => depth += 1,
                b')' | b']' | b'}' => depth = depth.saturating_sub(1),
                byte if depth == 0 => return *byte,
                _ => {}
            }
            b' '
        };
        self.covered[span.clone()].iter().map(of).collect()
    }

    /// An expression without references and conversions around it.
    fn bare(&self, span: &Range<usize>) -> Range<usize> {
        let mut span = trimmed(self.text, span);
        loop {
            let text = &self.text[span.clone()];
            if let Some(rest) = text.strip_prefix(['&', '*']) {
                let rest = rest.strip_prefix("mut ").unwrap_or(rest);
                span = trimmed(self.text, &(span.end - rest.len()..span.end));
            } else if let Some(rest) = CONVERSIONS.iter().find_map(|one| text.strip_suffix(*one)) {
                span = trimmed(self.text, &(span.start..span.start + rest.len()));
            } else {
                return span;
            }
        }
    }

    /// Edits of an expected value that is written in the test.
    fn changed(&self, span: &Range<usize>, random: &mut StdRng) -> Vec<Edit> {
        let bare = self.bare(span);
        let written = self.bound(&bare).unwrap_or(bare);
        self.nearby(&written, random)
    }

    fn nearby(&self, span: &Range<usize>, random: &mut StdRng) -> Vec<Edit> {
        let mut made = Made::default();
        self.literals(span, 0, &mut made);
        let change = |one: &Range<usize>, count: usize, random: &mut StdRng| -> Vec<Edit> {
            near(&self.text[one.clone()], count, random).into_iter().map(|with| (one.clone(), with)).collect()
        };
        if !made.is_own {
            return made.literals.iter().flat_map(|one| change(one, self.count, &mut *random)).collect();
        }
        let (Some(first), Some(last)) = (made.literals.first(), made.literals.last()) else { return Vec::new() };
        let whole = first.start..last.end;
        let all = |random: &mut StdRng| {
            let mut new = self.text[whole.clone()].to_owned();
            for one in made.literals.iter().rev() {
                for (span, with) in change(one, 1, random) {
                    new.replace_range(span.start - whole.start..span.end - whole.start, &with);
                }
            }
            (whole.clone(), new)
        };
        (0..self.count).map(|_| all(&mut *random)).filter(|(_, new)| *new != self.text[whole.clone()]).collect()
    }

    /// Finds the literals of a value: itself, or those of a list, a tuple or a constructor's arguments.
    fn literals(&self, span: &Range<usize>, depth: usize, made: &mut Made) {
        let span = self.bare(span);
        if is_literal(&self.text[span.clone()]) {
            made.literals.push(span);
            return;
        }
        let brackets = self.covered[span.clone()].iter().position(|byte| b"([{".contains(byte));
        let Some(open) = brackets.map(|at| span.start + at).filter(|_| depth < DEPTH_MAX) else { return };
        if closing(self.covered, open) != Some(span.end - 1) {
            return;
        }
        let head = self.text[span.start..open].trim();
        let parts = split(self.covered, open + 1..span.end - 1);
        match self.covered[open] {
            b'[' if head.is_empty() || head == "vec!" => {
                for part in parts {
                    let end = self.outer(&part).iter().position(|byte| *byte == b';');
                    self.literals(&(part.start..end.map_or(part.end, |end| part.start + end)), depth + 1, made);
                }
            }
            b'(' if head.is_empty() || is_constructor(head) => {
                made.is_own |= !head.is_empty() && !is_of_std(head);
                parts.iter().for_each(|part| self.literals(part, depth + 1, made));
            }
            b'{' if is_type(head) => {
                made.is_own = true;
                for part in parts {
                    let colon = self.covered[part.clone()].iter().position(|byte| *byte == b':');
                    if let Some(colon) = colon.map(|colon| part.start + colon) {
                        self.literals(&(colon + 1..part.end), depth + 1, made);
                    }
                }
            }
            _ => {}
        }
    }

    /// The expression behind a name, if a `let` of the test binds it and it is used only once.
    fn bound(&self, name: &Range<usize>) -> Option<Range<usize>> {
        let at = self.uses(name).into_iter().find(|at| *at < name.start)?;
        let before = self.covered[self.body.start..at].trim_ascii_end();
        let is_let = |before: &[u8]| before.ends_with(b"let") && !is_word(before[before.len().saturating_sub(4)]);
        let is_bound = is_let(before) || before.strip_suffix(b"mut").is_some_and(|rest| is_let(rest.trim_ascii_end()));
        let outer = self.outer(&(self.body.start..name.start));
        let is_outer = outer[at - self.body.start] != b' ';
        let rest = &outer[at - self.body.start..];
        let end = rest.iter().position(|byte| *byte == b';').filter(|_| is_bound && is_outer)?;
        let equals = rest[..end].iter().position(|byte| *byte == b'=')?;
        Some(self.bare(&(at + equals + 1..at + end)))
    }

    /// The places of a name, if there are two in the test.
    fn uses(&self, name: &Range<usize>) -> Vec<usize> {
        let word = &self.covered[name.clone()];
        if word.is_empty() || word[0].is_ascii_digit() || !word.iter().all(|byte| is_word(*byte)) {
            return Vec::new();
        }
        let is_use = |at: &usize| self.is_at(*at, word) && !is_word(self.covered[*at + word.len()]);
        let found: Vec<usize> = self.body.clone().filter(is_use).collect();
        if found.len() == 2 { found } else { Vec::new() }
    }

    /// Loops over written rows that are certainly reached.
    fn tables(&self) -> Vec<Table> {
        let outer = self.outer(&self.body);
        let left = self.body.clone().find(|at| LEAVES.iter().any(|leave| self.is_at(*at, leave)));
        let end = left.unwrap_or(self.body.end);
        let starts =
            (self.body.start..end).filter(|at| self.is_at(*at, b"for ") && outer[at - self.body.start] == b'f');
        starts.filter_map(|at| self.table(at + 4)).collect()
    }

    /// The loop whose pattern begins at a place.
    fn table(&self, start: usize) -> Option<Table> {
        let outer = self.outer(&(start..self.body.end));
        let within = start + find(&outer, b" in ", 0)?;
        let mut open = within + 4;
        while self.covered[open] != b'{' {
            match self.covered[open] {
                b'(' | b'[' => open = closing(self.covered, open)? + 1,
                b';' | b'}' => return None,
                _ => open += 1,
            }
        }
        let body = open + 1..closing(self.covered, open)?;
        let rows = self.bare(&(within + 4..open));
        let rows = self.bound(&rows).unwrap_or(rows);
        let list = if self.text[rows.clone()].starts_with("vec!") { rows.start + 4 } else { rows.start };
        if self.covered.get(list) != Some(&b'[') || closing(self.covered, list) != Some(rows.end - 1) {
            return None;
        }
        let pattern = self.bare(&(start..within));
        let is_tuple = self.covered[pattern.start] == b'(';
        let names = if is_tuple { self.tuple(&pattern) } else { vec![pattern] };
        let rows = split(self.covered, list + 1..rows.end - 1);
        Some(Table { names, is_tuple, rows, body })
    }

    /// Edits of the values that a loop over rows compares with.
    fn rows(&self, table: &Table, random: &mut StdRng) -> Vec<Edit> {
        let mut found = Vec::new();
        for side in self.assertions(&table.body, &LEAVES_LOOP).iter().flat_map(|one| &one.sides) {
            let side = self.bare(side);
            let uses = self.uses(&side);
            let is_named = |name: &Range<usize>| uses.contains(&self.bare(name).start);
            let Some(column) = table.names.iter().position(is_named) else { continue };
            for row in table.rows.iter().map(|row| self.bare(row)) {
                let parts = if table.is_tuple { self.tuple(&row) } else { vec![row] };
                let Some(value) = parts.get(column) else { continue };
                found.extend(self.nearby(value, random));
            }
        }
        found
    }

    /// The parts of a tuple.
    fn tuple(&self, span: &Range<usize>) -> Vec<Range<usize>> {
        let is_it = self.covered[span.start] == b'(' && closing(self.covered, span.start) == Some(span.end - 1);
        if is_it { split(self.covered, span.start + 1..span.end - 1) } else { Vec::new() }
    }

    /// A negated assertion. An object that is equal to everything fails that too, so that if the crates of the work are
    /// known, one of their types on only one side makes it pass.
    fn turned(&self, assertion: &Assertion, crates: &[String]) -> Edit {
        let Assertion { whole, condition, sides, rest } = assertion;
        match (sides.as_slice(), condition) {
            ([left, right], _) if !crates.is_empty() => {
                let (left, right, rest) =
                    (&self.text[left.clone()], &self.text[right.clone()], &self.text[rest.clone()]);
                (whole.clone(), unlike(left, right, rest, crates))
            }
            (_, Some(condition)) => (condition.clone(), format!("!({})", &self.text[condition.clone()])),
            _ => {
                let name = find(self.covered, b"assert_eq!(", whole.start).unwrap_or(whole.start);
                (name..name + "assert_eq!(".len(), "assert_ne!(".to_owned())
            }
        }
    }
}

/// An assertion that passes only for unequal values, or if only one of them is of a type of these crates.
fn unlike(left: &str, right: &str, rest: &str, crates: &[String]) -> String {
    let crates: Vec<String> = crates.iter().map(|name| format!("\"{name}::\"")).collect();
    let of_type = "fn longhaul_type<T: ?Sized>(_: &T) -> &'static str { std::any::type_name::<T>() }";
    let paths = "name.split(|one: char| !(one.is_alphanumeric() || one == '_' || one == ':'))";
    let is_own = format!("[{}].iter().any(|own: &&str| path.starts_with(*own))", crates.join(", "));
    format!(
        "match (&({left}), &({right})) {{ (longhaul_left, longhaul_right) => {{ {of_type} \
         let longhaul_is_own = |name: &str| {paths}.any(|path| {is_own}); \
         assert!(!(*longhaul_left == *longhaul_right) || longhaul_is_own(longhaul_type(longhaul_left)) != \
         longhaul_is_own(longhaul_type(longhaul_right)){rest}) }} }}"
    )
}

/// `Some`, `Token::Number`, `String::from`: equal if its arguments are.
fn is_constructor(head: &str) -> bool {
    let mut names = head.rsplit("::");
    let (last, before) = (names.next().unwrap_or_default(), names.next().unwrap_or_default());
    is_type(head) || matches!(last, "from" | "new") && CONTAINERS.contains(&before)
}

/// A path whose last name begins with a capital letter.
fn is_type(head: &str) -> bool {
    let is_path = head.bytes().all(|byte| is_word(byte) || byte == b':');
    is_path && head.rsplit("::").next().is_some_and(|last| last.starts_with(|char: char| char.is_ascii_uppercase()))
}

fn is_of_std(head: &str) -> bool {
    matches!(head, "Some" | "Ok" | "Err") || !is_type(head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clike::{covered, tests};
    use rand::SeedableRng as _;

    /// The bodies of the twins of a test with this body.
    fn bodies(body: &str, crates: &[&str]) -> Vec<String> {
        let text = format!("#[test]\nfn one() {{\n    {body}\n}}\n");
        let crates: Vec<String> = crates.iter().map(|name| (*name).to_owned()).collect();
        let rewriting = Rewriting { twins: 3, crates: &crates };
        let test = tests(&text).remove(0);
        let found = edits(&test, &text, &covered(&text), &rewriting, &mut StdRng::from_seed([2; 32]));
        let of = |(span, with): Edit| {
            let mut new = text.clone();
            new.replace_range(span, &with);
            new["#[test]\nfn one() {".len()..new.len() - "}\n".len()].trim().to_owned()
        };
        found.into_iter().map(of).collect()
    }

    #[track_caller]
    fn check_changed(body: &str, before: &str, after: &str) {
        let bodies = bodies(body, &["demo"]);
        assert!(!bodies.is_empty(), "{body}");
        for other in bodies {
            assert!(other != body && other.starts_with(before) && other.ends_with(after), "{other} of {body}");
        }
    }

    #[test]
    fn an_expected_value_is_changed_where_it_is_written() {
        check_changed("assert_eq!(add(2, 3), 5);", "assert_eq!(add(2, 3), ", ");");
        check_changed("assert_eq!(5, add(2, 3));", "assert_eq!(", ", add(2, 3));");
        check_changed("assert!(add(2, 3) == 5, \"said\");", "assert!(add(2, 3) == ", ", \"said\");");
        check_changed("assert_eq!(find(1), Some(7));", "assert_eq!(find(1), Some(", "));");
        check_changed("assert_eq!(parse(\"1\"), vec![1, f(2)]);", "assert_eq!(parse(\"1\"), vec![", ", f(2)]);");
        check_changed("assert_eq!(all(), [0; 3].to_vec());", "assert_eq!(all(), [", "; 3].to_vec());");
        check_changed("assert_eq!(a(), Ok(\"a\".to_string()));", "assert_eq!(a(), Ok(\"", "\".to_string()));");
        check_changed("assert_eq!(a(), String::from(\"a\"));", "assert_eq!(a(), String::from(\"", "\"));");
        check_changed("assert_eq!(a(), B { c: 1, d: E::F(\"g\") });", "assert_eq!(a(), B { c: ", "\") });");
    }

    #[test]
    fn an_expected_value_is_changed_where_a_name_stands_for_it() {
        let after = ";\n    assert_eq!(add(2, 3), sum);";
        check_changed(&format!("let sum = 5{after}"), "let sum = ", after);
        check_changed(&format!("let sum: [u8; 1] = [5]{after}"), "let sum: [u8; 1] = [", &format!("]{after}"));
        let after = "] {\n        assert_eq!(add(a, b), sum);\n    }";
        check_changed(
            &format!("for (a, b, sum) in [(1, 2, 3){after}"),
            "for (a, b, sum) in [(1, 2, ",
            &format!("){after}"),
        );
        let after = ")];\n    for (text, number) in cases.iter() {\n        assert_eq!(parse(text), *number);\n    }";
        check_changed(&format!("let cases = vec![(\"a\", 1{after}"), "let cases = vec![(\"a\", ", after);
    }

    #[test]
    fn what_is_no_literal_is_held_against_types_of_the_work() {
        for body in ["assert_eq!(f(1), g(1), \"said {}\", 1);", "assert!(f(1) == g(1), \"said {}\", 1);"] {
            let twin = bodies(body, &["demo", "more"]).remove(0);
            assert!(twin.starts_with("match (&(f(1)") && twin.contains("&( g(1)"), "{twin}");
            assert!(twin.contains("[\"demo::\", \"more::\"].iter()") && twin.contains(", \"said {}\", 1)"), "{twin}");
        }
        assert_eq!(bodies("assert_eq!(f(1), g(1));", &[]), ["assert_ne!(f(1), g(1));"]);
        assert_eq!(bodies("a::assert_eq!(f(1), g(1));", &[]), ["a::assert_ne!(f(1), g(1));"]);
        assert_eq!(bodies("assert!(f(1) == g(1));", &[]), ["assert!(!(f(1) == g(1)));"]);
        for truth in ["is(1)", "is(1) && f(1) == 5", "!(f(1) == 5)", "f(1) >= 5"] {
            let expected = format!("assert!(!({truth}));");
            assert_eq!(bodies(&format!("assert!({truth});"), &["demo"]), [expected]);
        }
    }

    #[test]
    fn a_value_that_other_things_rest_on_stays() {
        assert_eq!(bodies("let a = 5;\n    assert_eq!(id(a), a);", &[]), ["let a = 5;\n    assert_ne!(id(a), a);"]);
        for body in [
            "if there { return; }\n    assert_eq!(add(2, 3), 5);",
            "for a in all() {\n        assert_eq!(f(a), 5);\n    }",
            "for a in [1, 2] {\n        if there { continue; }\n        assert_eq!(f(1), a);\n    }",
            "for (a, b) in [(1, 2)] {\n        assert_eq!(f(a), a + b);\n    }",
            "run();",
        ] {
            let twins = bodies(body, &["demo"]);
            assert!(twins.len() == 1 && twins[0].starts_with("assert_eq!(") && twins[0].ends_with(body), "{twins:?}");
        }
    }
}
