//! Globs on paths, as `.gitignore` and `[checks]` write them.
//!
//! Agents write `.gitignore` files, so a glob must not take long: matching is a table of parts by parts, and within a
//! name it backtracks to the last `*` only. libgit2's own matcher takes exponential time on `**/a/**/a/**/a/..`. Every
//! step is counted, for callers that bound them all together.

use std::cell::Cell;

/// A pattern, cut at its slashes.
#[derive(Debug)]
pub(crate) struct Glob {
    parts: Vec<Part>,
}

#[derive(Debug)]
enum Part {
    /// `**`: any number of directories.
    Deep,
    Name(Vec<Token>),
}

#[derive(Debug)]
enum Token {
    /// `*`
    Star,
    /// `?`
    Any,
    Byte(u8),
    /// `[a-z]`, and whether it begins with `!` or `^`.
    Class(Vec<(u8, u8)>, bool),
}

impl Glob {
    /// Parses any text; an open `[` stands for itself.
    pub(crate) fn parse(text: &[u8]) -> Self {
        let names = text.split(|byte| *byte == b'/').filter(|part| !matches!(*part, b"" | b"."));
        let part = |name| if name == b"**" { Part::Deep } else { Part::Name(tokens(name)) };
        Self { parts: names.map(part).collect() }
    }

    /// True when it matches `path`, or with `or_above`, a directory above it.
    pub(crate) fn matches(&self, path: &[u8], or_above: bool, steps: &Cell<u64>) -> bool {
        let names: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
        // `reached[n]`: the parts so far match the first n names.
        let mut reached = vec![false; names.len() + 1];
        reached[0] = true;
        for (at, part) in self.parts.iter().enumerate() {
            // `a/**` matches the content of `a`, and not `a` itself.
            let is_last = at + 1 == self.parts.len();
            let mut next = vec![false; names.len() + 1];
            let mut any_before = false;
            for n in 0..=names.len() {
                steps.set(steps.get() + 1);
                next[n] = match part {
                    Part::Deep => any_before || (reached[n] && !is_last),
                    Part::Name(tokens) => n > 0 && reached[n - 1] && is_name(tokens, names[n - 1], steps),
                };
                any_before |= reached[n];
            }
            reached = next;
        }
        let named = if or_above { &reached[1..] } else { &reached[names.len()..] };
        !self.parts.is_empty() && named.contains(&true)
    }
}

/// Backtracks to the last `*` only, so that it takes at most n times m steps.
fn is_name(tokens: &[Token], name: &[u8], steps: &Cell<u64>) -> bool {
    let (mut t, mut n, mut star) = (0, 0, None);
    while n < name.len() {
        steps.set(steps.get() + 1);
        match tokens.get(t) {
            Some(Token::Star) => {
                star = Some((t + 1, n));
                t += 1;
            }
            Some(token) if is_byte(token, name[n]) => {
                t += 1;
                n += 1;
            }
            _ => {
                let Some((after, from)) = star else { return false };
                star = Some((after, from + 1));
                (t, n) = (after, from + 1);
            }
        }
    }
    tokens[t..].iter().all(|token| matches!(token, Token::Star))
}

fn is_byte(token: &Token, byte: u8) -> bool {
    match token {
        Token::Star => false,
        Token::Any => true,
        Token::Byte(wanted) => *wanted == byte,
        Token::Class(ranges, negated) => ranges.iter().any(|(from, to)| (*from..=*to).contains(&byte)) != *negated,
    }
}

fn tokens(name: &[u8]) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = name;
    while let Some((first, after)) = rest.split_first() {
        let class = if *first == b'[' { class(after) } else { None };
        let (token, next) = match (first, class) {
            (_, Some(class)) => class,
            (b'*', _) => (Token::Star, after),
            (b'?', _) => (Token::Any, after),
            (b'\\', _) => match after.split_first() {
                Some((escaped, after)) => (Token::Byte(*escaped), after),
                None => (Token::Byte(b'\\'), after),
            },
            (byte, _) => (Token::Byte(*byte), after),
        };
        // `**` within a name is `*`.
        if !(matches!(token, Token::Star) && matches!(tokens.last(), Some(Token::Star))) {
            tokens.push(token);
        }
        rest = next;
    }
    tokens
}

/// The class after a `[`, and the text after its `]`. A `]` that comes first stands for itself.
fn class(text: &[u8]) -> Option<(Token, &[u8])> {
    let negated = matches!(text.first(), Some(b'!' | b'^'));
    let mut rest = if negated { &text[1..] } else { text };
    let mut ranges = Vec::new();
    loop {
        let (first, after) = literal(rest)?;
        if first == b']' && rest[0] == b']' && !ranges.is_empty() {
            return Some((Token::Class(ranges, negated), after));
        }
        let range = after.strip_prefix(b"-").filter(|after| after.first() != Some(&b']'));
        let (last, after) = match range {
            Some(after) => literal(after)?,
            None => (first, after),
        };
        ranges.push((first, last));
        rest = after;
    }
}

fn literal(text: &[u8]) -> Option<(u8, &[u8])> {
    let text = text.strip_prefix(b"\\").unwrap_or(text);
    text.split_first().map(|(first, after)| (*first, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(glob: &str, path: &str, expected: bool) {
        let found = Glob::parse(glob.as_bytes()).matches(path.as_bytes(), true, &Cell::new(0));
        assert_eq!(found, expected, "{glob} {path}");
    }

    #[test]
    fn a_glob_names_files_and_directories() {
        check("tests/**", "tests/a.rs", true);
        check("tests/**", "tests/deep/a.rs", true);
        check("tests/**", "tests", false);
        check("tests/**", "src/tests/a.rs", false);
        check("tests", "tests/a.rs", true);
        check("tests/", "tests/a.rs", true);
        check("tests", "tests.rs", false);
        check("**/test_*.py", "test_a.py", true);
        check("**/test_*.py", "a/b/test_a.py", true);
        check("**/test_*.py", "a/b/atest_a.py", false);
        check("a/**/b", "a/b", true);
        check("a/**/b", "a/x/y/b", true);
        check("*.toml", "Cargo.toml", true);
        check("*.toml", "sub/Cargo.toml", false);
        check("a?c", "abc", true);
        check("a[a-c]c", "abc", true);
        check("a[!a-c]c", "abc", false);
        check("a[]x]c", "a]c", true);
        check("a[b", "a[b", true);
        check("a\\*c", "abc", false);
        check("a\\*c", "a*c", true);
        check("", "abc", false);
        check("/", "abc", false);
        check("./a", "a", true);
    }

    #[test]
    fn no_glob_takes_long() {
        let steps = Cell::new(0);
        let glob = Glob::parse(format!("{}b", "*a".repeat(200)).as_bytes());
        assert!(!glob.matches("a".repeat(5_000).as_bytes(), false, &steps));
        let glob = Glob::parse(format!("{}b", "**/a/".repeat(60)).as_bytes());
        assert!(!glob.matches("a/".repeat(200).as_bytes(), false, &steps));
        assert!(steps.get() < 2_000_000, "{}", steps.get());
    }
}
