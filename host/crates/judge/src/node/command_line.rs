//! Parses the words of `node --test`: chosen files and tests.
//!
//! Refuses to guess the meaning of a pattern that it cannot parse.

use crate::kind::base_name;
use regex::Regex;

/// Options whose value is the next word, unless it follows a `=`.
const TAKES_A_WORD: [&str; 25] = [
    "-C",
    "-r",
    "--conditions",
    "--disable-warning",
    "--env-file",
    "--env-file-if-exists",
    "--experimental-loader",
    "--import",
    "--input-type",
    "--loader",
    "--require",
    "--test-concurrency",
    "--test-coverage-branches",
    "--test-coverage-exclude",
    "--test-coverage-functions",
    "--test-coverage-include",
    "--test-coverage-lines",
    "--test-global-setup",
    "--test-isolation",
    "--test-name-pattern",
    "--test-reporter",
    "--test-reporter-destination",
    "--test-shard",
    "--test-skip-pattern",
    "--test-timeout",
];

/// Chooses the tests of an audit by their suffix, even if the command's own pattern anchors the end.
const OF_AUDIT: &str = "--test-name-pattern=/ [0-9a-f]{8}$/";

/// The choice of a command.
#[derive(Debug, Default)]
pub(super) struct Words {
    places: Vec<Place>,
    /// Patterns for the names of tests.
    patterns: Vec<Regex>,
    /// True when marks and numbers may leave out further tests.
    is_open: bool,
    /// True when only tests marked `only` run.
    pub(super) is_only: bool,
    /// A pattern that cannot be parsed.
    pub(super) unread: Option<String>,
}

/// Files that a command names.
#[derive(Debug)]
enum Place {
    /// A file, or a directory.
    Path(String),
    Pattern(Regex),
}

impl Words {
    pub(super) fn of(argv: &[String]) -> Self {
        let mut words = Self::default();
        let mut rest = argv.iter().skip(1);
        while let Some(word) = rest.next() {
            let (option, value) =
                word.split_once('=').map_or((word.as_str(), None), |(option, value)| (option, Some(value)));
            let value =
                if TAKES_A_WORD.contains(&option) && value.is_none() { rest.next().map(String::as_str) } else { value };
            match option {
                "--test-name-pattern" => words.add_pattern(value.unwrap_or_default()),
                "--test-only" => (words.is_open, words.is_only) = (true, true),
                "--test-shard" | "--test-skip-pattern" => words.is_open = true,
                _ if !word.starts_with('-') => words.add_place(word),
                _ => {}
            }
        }
        words
    }

    fn add_pattern(&mut self, text: &str) {
        match pattern(text) {
            Some(pattern) => self.patterns.push(pattern),
            None => self.unread = Some(text.to_owned()),
        }
    }

    fn add_place(&mut self, word: &str) {
        let is_pattern = word.contains(['*', '?', '[', '{']) || ["@(", "+(", "!("].iter().any(|one| word.contains(one));
        let path = word.trim_start_matches("./");
        match (is_pattern, glob(path)) {
            (false, _) => self.places.push(Place::Path(path.trim_end_matches(['/', '.']).to_owned())),
            (true, Some(pattern)) => self.places.push(Place::Pattern(pattern)),
            (true, None) => self.unread = Some(word.to_owned()),
        }
    }

    /// True when node runs a file: one that is named, or is found by its name.
    pub(super) fn choose_file(&self, path: &str) -> bool {
        let is_chosen = |place: &Place| match place {
            Place::Path(named) if named == path => true,
            Place::Path(dir) if dir.is_empty() => is_test_file(path),
            Place::Path(dir) => {
                let is_below = path.strip_prefix(dir.as_str()).is_some_and(|rest| rest.starts_with('/'));
                is_below && is_test_file(&path[dir.len() - base_name(dir).len()..])
            }
            Place::Pattern(pattern) => pattern.is_match(path) && !is_of_modules(path),
        };
        if self.places.is_empty() { is_test_file(path) } else { self.places.iter().any(is_chosen) }
    }

    /// True when a test of this name must run. A pattern for the suites around it may leave it out.
    pub(super) fn choose(&self, name: &str) -> bool {
        let is_chosen = |one: &Regex| one.is_match(name) && !one.as_str().contains('^');
        !self.is_open && (self.patterns.is_empty() || self.patterns.iter().any(is_chosen))
    }

    /// The first of these files that is in TypeScript and that the command runs, or would run if there were others of
    /// them.
    pub(super) fn typescript<'p>(&self, paths: &'p [String]) -> Option<&'p String> {
        let is_script = |path: &&String| is_typescript(path) && !path.ends_with(".d.ts");
        if !self.places.is_empty() {
            return paths.iter().filter(is_script).find(|path| self.choose_file(path));
        }
        let as_script =
            |path: &String| path.rsplit_once('.').is_some_and(|(stem, _)| is_test_file(&format!("{stem}.js")));
        let has_others = paths.iter().any(|path| is_test_file(path));
        paths.iter().filter(is_script).find(|path| as_script(path) && !has_others)
    }

    /// The command of the audit: with these copies of files, and without a choice by numbers.
    pub(super) fn auditing<'c>(&self, argv: &[String], copies: impl Iterator<Item = &'c String>) -> Vec<String> {
        let mut new: Vec<String> = Vec::new();
        let mut words = argv.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--test-shard" => drop(words.next()),
                word if word.starts_with("--test-shard=") => {}
                _ => new.push(word.clone()),
            }
        }
        if !self.patterns.is_empty() {
            let at = new.iter().position(|word| word == "--test").map_or(1, |at| at + 1);
            new.insert(at, OF_AUDIT.to_owned());
        }
        new.extend(copies.filter(|copy| !self.choose_file(copy)).cloned());
        new
    }
}

/// True when node finds the file by itself.
pub(super) fn is_test_file(path: &str) -> bool {
    let name = base_name(path);
    let Some((stem, "js" | "mjs" | "cjs")) = name.rsplit_once('.') else { return false };
    let is_named = stem == "test"
        || stem.starts_with("test-")
        || [".test", "-test", "_test"].iter().any(|ending| stem.ends_with(ending))
        || path.split('/').rev().skip(1).any(|dir| dir == "test");
    is_named && !is_of_modules(path)
}

pub(super) fn is_typescript(path: &str) -> bool {
    [".ts", ".mts", ".cts", ".tsx"].iter().any(|ending| path.ends_with(ending))
}

fn is_of_modules(path: &str) -> bool {
    path.split('/').any(|dir| dir == "node_modules")
}

/// A name for a copy of a file, in its directory, with the same beginning and end: patterns find it too.
pub(super) fn beside(path: &str, number: u32) -> String {
    let (dir, name) = path.rsplit_once('/').map_or(("", path), |(dir, name)| (dir, name));
    let (stem, ending) = name.split_at(name.find('.').unwrap_or(name.len()));
    let slash = if dir.is_empty() { "" } else { "/" };
    let marked = ["_test", "-test"].into_iter().find_map(|mark| Some((stem.strip_suffix(mark)?, mark)));
    let (stem, mark) = marked.unwrap_or((stem, ""));
    format!("{dir}{slash}{stem}-{number:08x}{mark}{ending}")
}

/// `one` or `/one/i`, as node parses it.
fn pattern(text: &str) -> Option<Regex> {
    let written = text.strip_prefix('/').and_then(|rest| rest.rsplit_once('/'));
    let (inner, flags) = written.unwrap_or((text, ""));
    let flags: String = flags.chars().filter(|flag| "ims".contains(*flag)).collect();
    let whole = if flags.is_empty() { inner.to_owned() } else { format!("(?{flags}-u){inner}") };
    Regex::new(&whole).ok()
}

/// A pattern of paths, as node's own.
fn glob(text: &str) -> Option<Regex> {
    let (mut found, mut closers, mut rest) = ("^".to_owned(), Vec::new(), text);
    while let Some(char) = rest.chars().next() {
        let next = &rest[char.len_utf8()..];
        rest = next;
        match char {
            '*' if next.starts_with("*/") => {
                found += "(?:.*/)?";
                rest = &next[2..];
            }
            '!' if next.starts_with('(') => return None,
            '?' | '*' | '+' | '@' if next.starts_with('(') => {
                found += "(?:";
                let often = if char == '@' { "" } else { &text[text.len() - next.len() - 1..][..1] };
                closers.push((')', format!("){often}")));
                rest = &next[1..];
            }
            '{' => {
                found += "(?:";
                closers.push(('}', ")".to_owned()));
            }
            ')' | '}' if closers.last().is_some_and(|(closer, _)| *closer == char) => {
                found += &closers.pop()?.1;
            }
            '|' | ',' if closers.last().is_some_and(|(closer, _)| (*closer == ')') == (char == '|')) => found.push('|'),
            '*' if next.starts_with('*') => {
                found += ".*";
                rest = &next[1..];
            }
            '*' => found += "[^/]*",
            '?' => found += "[^/]",
            '[' => {
                let (class, after) = next.split_once(']')?;
                let (not, class) = class.strip_prefix(['!', '^']).map_or(("", class), |class| ("^", class));
                found += &format!("[{not}{}]", class.replace(['[', '\\', '&', '~'], ""));
                rest = after;
            }
            _ => found += &regex::escape(char.encode_utf8(&mut [0; 4])),
        }
    }
    Regex::new(&(found + "$")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    fn of(text: &str) -> Words {
        Words::of(&words(text))
    }

    #[test]
    fn words_choose_tests_by_their_names() {
        let holds = |text: &str, name: &str| of(text).choose(name);
        assert!(holds("node --test", "adds") && holds("node --test --test-name-pattern=/ADD/i", "adds"));
        assert!(!holds("node --test --test-name-pattern add", "says") && !holds("node --test --test-only", "adds"));
        assert_eq!(of("node --test --test-name-pattern=( a.js").unread, Some("(".to_owned()));
        assert!(of("node --test").unread.is_none() && of("node --test !(a).js").unread.is_some());
    }

    #[test]
    fn words_choose_files_directories_and_patterns() {
        let check = |text: &str, chosen: &[&str], others: &[&str]| {
            assert!(chosen.iter().all(|path| of(text).choose_file(path)), "{text}: {chosen:?}");
            assert!(!others.iter().any(|path| of(text).choose_file(path)), "{text}: {others:?}");
        };
        let own = ["a.test.js", "test/b.mjs", "test-x.cjs", "lib/c_test.js", "test.js"];
        let others = ["a.js", "testing/a.js", "node_modules/x/a.test.js", "a.test.ts", "a.spec.js"];
        check("node --import ./setup.mjs --test --test-timeout 500 --test-reporter=spec", &own, &others);
        check("node --test --test-name-pattern add a.test.js ./b.js", &["a.test.js", "b.js"], &["add", "c.test.js"]);
        check("node --test ./test/", &["test/a.js", "test/in/b.mjs"], &["a.test.js", "test/c.json"]);
        check("node --test test/unit", &["test/unit/a.test.js"], &["test/unit/helper.js", "test/unity/a.test.js"]);
        check("node --test .", &own, &others);
        check("node --test **/*.spec.js", &["a.spec.js", "x/y/b.spec.js"], &["a.test.js", "node_modules/a.spec.js"]);
        check("node --test test/**/*.{spec,it}.?(c|m)js", &["test/a.it.js", "test/x/b.spec.cjs"], &["test/a.js"]);
        check("node --test test/[!_]?.js", &["test/ab.js"], &["test/_b.js", "test/abc.js", "test/a/b.js"]);
    }

    #[test]
    fn a_copy_is_found_by_what_finds_the_file() {
        for path in ["lib/a.test.js", "test.js", "test-x.cjs", "c_test.mjs", "d-test.js", "test/helper.js"] {
            assert!(is_test_file(&beside(path, 1)) && beside(path, 1) != path, "{path}");
        }
        assert!(of("node --test x/**/calc*.spec.js").choose_file(&beside("x/calc.spec.js", 255)));
        let copies = ["a-00000001.js", "b-00000001.test.js"].map(str::to_owned);
        let argv = words("node --test --test-shard 1/2 --test-name-pattern=^adds$ ./a.js **/*.test.js");
        let expected =
            ["node", "--test", OF_AUDIT, "--test-name-pattern=^adds$", "./a.js", "**/*.test.js", "a-00000001.js"];
        assert_eq!(Words::of(&argv).auditing(&argv, copies.iter()), expected);
    }

    #[test]
    fn tests_in_typescript_are_told_of() {
        let paths = ["a.test.ts", "b.ts", "c.d.ts"].map(str::to_owned);
        let told = |text: &str, paths: &[String]| of(text).typescript(paths).cloned();
        assert_eq!(told("node --test", &paths), Some("a.test.ts".to_owned()));
        assert_eq!(told("node --import tsx --test b.ts", &paths), Some("b.ts".to_owned()));
        assert_eq!(told("node --test **/*.js", &paths), None);
        assert_eq!(told("node --test", &[&paths[..], &["d.test.js".to_owned()]].concat()), None);
    }
}
