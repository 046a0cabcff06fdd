//! Replacement of personal data and keys in recorded texts, by rule.
//!
//! The same value gets the same word wherever it stands, so that a recording stays consistent: what a prompt quotes of
//! an answer is still a quotation. A word is never replaced again. A text that is JSON is taken apart: in it the letter
//! of an escape would be taken for the beginning of what follows. The values of stored secrets are no matter of this
//! file: the service has removed them before. It refuses a rule whose pattern is no regular expression or fits nothing.

use longhaul_core::fault::{self, Context as _, Fault, bail};
use longhaul_report::messages;
use regex::{Match, Regex};
use serde::de::IgnoredAny;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, Ipv6Addr};

/// The beginning of the word of a key.
const TOKEN_WORD: &str = "replaced-token-";

/// The beginning of the word of a user.
const USER_WORD: &str = "user-";

/// Keys by their shapes: `value` is what is replaced, or all of it.
const TOKENS: [&str; 15] = [
    // Its headers may have single dashes.
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?<value>(?:[^-]|-[^-])+)-----END [A-Z0-9 ]*PRIVATE KEY",
    // One that a limit cut has no end.
    concat!(
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----\s*",
        r"(?<value>[A-Za-z0-9+/=]{32,}(?:\s+[A-Za-z0-9+/=]{32,})*(?:\s+[A-Za-z0-9+/=]+\z)?)",
    ),
    r"://(?<value>[^\s/:@'\x22]*:[^\s/@'\x22]+)@",
    r"(?i:\bauthorization['\x22]?[ \t]*[:=][ \t]*['\x22]?basic[ \t]+)(?<value>[A-Za-z0-9+/_-]{8,}={0,2})",
    r"\b[Bb][Ee][Aa][Rr][Ee][Rr][ \t]+(?<value>[A-Za-z0-9._~+/=-]{16,})",
    r"\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,}",
    r"\bgh[pousr]_[A-Za-z0-9]{20,}",
    r"\bgithub_pat_[A-Za-z0-9_]{20,}",
    r"\bglpat-[A-Za-z0-9_-]{16,}",
    r"\bxox[abprs]-[A-Za-z0-9-]{10,}",
    r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    r"\bAIza[0-9A-Za-z_-]{30,}",
    r"\b(?:hf|npm)_[A-Za-z0-9]{20,}",
    r"\blh_[A-Za-z0-9_]{16,}",
    r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",
];

const MAIL: &str = r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}";
const IPV4: &str = r"\b[0-9]{1,3}(?:\.[0-9]{1,3}){3}\b";
const IPV6: &str = r"(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4}";
const HOME: &str = r"(?:/home/|/Users/|\\Users\\)(?<value>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9_-])?)";

/// Domains that nobody has.
const FOR_DOCUMENTS: [&str; 6] = ["example.com", "example.org", "example.net", "example", "test", "invalid"];

/// Names of users that are words of many texts.
const COMMON: [&str; 20] = [
    "admin", "build", "builder", "code", "data", "debian", "default", "guest", "home", "longhaul", "main", "nobody",
    "node", "public", "root", "runner", "shared", "test", "ubuntu", "user",
];

/// The shortest name of a user that is replaced outside of a path. Shorter ones are parts of other words too often.
const USER_BYTES_MIN: usize = 4;

/// The kind of a value, which names its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ValueKind {
    Token,
    Mail,
    Ipv4,
    Ipv6,
    User,
}

/// The replacement of what a rule finds.
enum Word {
    /// The same text each time.
    Fixed(String),
    /// A word with a number for each value.
    Numbered(ValueKind),
}

struct Rule {
    pattern: Regex,
    word: Word,
    /// The name for people: `token`, which is counted.
    name: String,
}

/// The word of each value, by its kind.
type Words = BTreeMap<ValueKind, BTreeMap<String, String>>;

/// Replaces by rules, and counts.
pub(super) struct Replacer {
    rules: Vec<Rule>,
    words: Words,
    counts: BTreeMap<String, usize>,
}

impl Replacer {
    /// A replacer with rules of its own in front, each `PATTERN=WORD`.
    pub(super) fn new(own: &[String]) -> fault::Result<Self> {
        let mut rules = own.iter().map(|rule| own_rule(rule)).collect::<fault::Result<Vec<_>>>()?;
        for pattern in TOKENS {
            rules.push(rule(pattern, ValueKind::Token, "token")?);
        }
        rules.push(rule(MAIL, ValueKind::Mail, "e-mail address")?);
        rules.push(rule(IPV4, ValueKind::Ipv4, "IP address")?);
        rules.push(rule(IPV6, ValueKind::Ipv6, "IP address")?);
        rules.push(rule(HOME, ValueKind::User, "user name")?);
        Ok(Self { rules, words: Words::new(), counts: BTreeMap::new() })
    }

    /// Adds a rule for the names of users: those that are known, and those of home directories in the values.
    pub(super) fn learn_users<'a>(
        &mut self,
        known: impl IntoIterator<Item = String>,
        values: impl IntoIterator<Item = &'a Value>,
    ) -> fault::Result<()> {
        let home = Regex::new(HOME)?;
        let mut users: BTreeSet<String> = known.into_iter().collect();
        for value in values {
            each_text(value, &mut |text| {
                let found = home.captures_iter(text).filter_map(|found| found.name("value"));
                users.extend(found.map(|name| name.as_str().to_owned()));
            });
        }
        users.retain(|name| name.len() >= USER_BYTES_MIN && !COMMON.contains(&name.as_str()) && !is_user_word(name));
        if users.is_empty() {
            return Ok(());
        }
        let names: Vec<String> = users.iter().map(|name| regex::escape(name)).collect();
        self.rules.push(rule(&format!(r"\b(?:{})\b", names.join("|")), ValueKind::User, "user name")?);
        Ok(())
    }

    /// Replaces in all texts of a value, its names of fields included.
    pub(super) fn value(&mut self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(values) => values.iter_mut().for_each(|value| self.value(value)),
            Value::Object(fields) => {
                for (name, mut value) in std::mem::take(fields) {
                    self.value(&mut value);
                    fields.insert(self.text(&name), value);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// A text with the words in the places of the values. JSON stays JSON.
    pub(super) fn text(&mut self, text: &str) -> String {
        if !is_json(text) {
            return self.by_rules(text, |_| true);
        }
        let clean = self.in_literals(text);
        // A pattern of the caller may be about several values of it.
        let counted = self.counts.clone();
        let by_own = self.by_rules(&clean, |rule| matches!(rule.word, Word::Fixed(_)));
        if is_json(&by_own) {
            return by_own;
        }
        self.counts = counted;
        clean
    }

    /// JSON with the words in its texts; all else of it stays byte for byte.
    fn in_literals(&mut self, json: &str) -> String {
        let (mut clean, mut copied) = (String::with_capacity(json.len()), 0);
        while let Some(begin) = json[copied..].find('"').map(|at| copied + at) {
            let end = end_of_literal(json, begin);
            clean += &json[copied..begin];
            clean += &self.literal(&json[begin..end]);
            copied = end;
        }
        clean + &json[copied..]
    }

    /// A text of JSON with its quotes.
    fn literal(&mut self, literal: &str) -> String {
        let Ok(text) = serde_json::from_str::<String>(literal) else { return literal.to_owned() };
        let clean = self.text(&text);
        if clean == text { literal.to_owned() } else { Value::from(clean).to_string() }
    }

    fn by_rules(&mut self, text: &str, is_meant: impl Fn(&Rule) -> bool) -> String {
        let Self { rules, words, counts } = self;
        let mut clean = text.to_owned();
        for rule in rules.iter().filter(|rule| is_meant(rule)) {
            if let Some((replaced, count)) = rule.replaced(&clean, words) {
                clean = replaced;
                *counts.entry(rule.name.clone()).or_default() += count;
            }
        }
        clean
    }

    /// The replaced values, with the number of times.
    pub(super) fn counts(&self) -> &BTreeMap<String, usize> {
        &self.counts
    }
}

/// The counts in words, such as `2 tokens`.
pub(super) fn counts_in_words(counts: &BTreeMap<String, usize>) -> String {
    if counts.is_empty() {
        return "nothing".to_owned();
    }
    let one = |(name, count): (&String, &usize)| match (name, *count) {
        (pattern, 1) if pattern.starts_with('`') => format!("{pattern} once"),
        (pattern, times) if pattern.starts_with('`') => format!("{pattern} {times} times"),
        (name, several) if name.ends_with("address") && several > 1 => format!("{several} {name}es"),
        (name, number) => messages::counted(number, name),
    };
    counts.iter().map(one).collect::<Vec<_>>().join(", ")
}

impl Rule {
    /// The text after this rule, and the number of replacements; none: it fits nowhere.
    fn replaced(&self, text: &str, words: &mut Words) -> Option<(String, usize)> {
        let (mut clean, mut copied, mut count) = (String::new(), 0, 0);
        for found in self.pattern.captures_iter(text) {
            let Some(value) = found.name("value").or_else(|| found.get(0)) else { continue };
            let Some(word) = self.word(text, value, words) else { continue };
            clean += &text[copied..value.start()];
            clean += &word;
            (copied, count) = (value.end(), count + 1);
        }
        (count > 0).then(|| (clean + &text[copied..], count))
    }

    /// The word for a value; none where the value may stay.
    fn word(&self, text: &str, value: Match<'_>, words: &mut Words) -> Option<String> {
        let kind = match &self.word {
            Word::Fixed(word) => return Some(word.clone()),
            Word::Numbered(kind) => *kind,
        };
        if kind.may_stay(value.as_str()) || !kind.stands_alone(text, value) {
            return None;
        }
        let known = words.entry(kind).or_default();
        let number = 1 + known.len();
        Some(known.entry(value.as_str().to_owned()).or_insert_with(|| kind.word(number)).clone())
    }
}

impl ValueKind {
    /// True for a value that names nobody, such as a word of ours or an address for documents.
    fn may_stay(self, value: &str) -> bool {
        match self {
            Self::Token => value.contains(TOKEN_WORD),
            Self::Mail => {
                let (person, host) = value.split_once('@').unwrap_or_default();
                let is_below =
                    |name: &str| host.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
                FOR_DOCUMENTS.into_iter().any(is_below) || person == "git" || person.starts_with(TOKEN_WORD)
            }
            Self::Ipv4 => value.parse::<Ipv4Addr>().ok().is_none_or(|address| {
                address.is_loopback()
                    || address.is_unspecified()
                    || address.is_broadcast()
                    || address.is_documentation()
            }),
            Self::Ipv6 => {
                let has_digit = value.bytes().any(|byte| byte.is_ascii_digit());
                let is_for_documents = |address: Ipv6Addr| address.segments()[..2] == [0x2001, 0xdb8];
                value.parse::<Ipv6Addr>().ok().is_none_or(|address| {
                    !has_digit || address.is_loopback() || address.is_unspecified() || is_for_documents(address)
                })
            }
            Self::User => is_user_word(value),
        }
    }

    /// True unless the value is a piece of a longer word: a version such as `1.2.3.4.5` has no address in it.
    fn stands_alone(self, text: &str, value: Match<'_>) -> bool {
        let before = text[..value.start()].chars().next_back();
        let mut after = text[value.end()..].chars();
        let (next, second) = (after.next(), after.next());
        let is_digit = |char: Option<char>| char.is_some_and(|char| char.is_ascii_digit());
        match self {
            Self::Ipv4 => before != Some('.') && !(next == Some('.') && is_digit(second)),
            Self::Ipv6 => ![before, next].into_iter().flatten().any(|char| char.is_alphanumeric() || char == ':'),
            Self::Token | Self::Mail | Self::User => true,
        }
    }

    fn word(self, number: usize) -> String {
        match self {
            Self::Token => format!("{TOKEN_WORD}{number}"),
            Self::Mail => format!("person-{number}@example.com"),
            // The three nets for documents have 254 addresses each.
            Self::Ipv4 => match number {
                1..=254 => format!("192.0.2.{number}"),
                255..=508 => format!("198.51.100.{}", number - 254),
                509..=762 => format!("203.0.113.{}", number - 508),
                more => format!("address-{more}.example"),
            },
            Self::Ipv6 => format!("2001:db8::{number:x}"),
            Self::User => format!("{USER_WORD}{number}"),
        }
    }
}

/// True for a text that is an object or an array of JSON.
fn is_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '[']) && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// The place behind the text of JSON that begins at a quote.
fn end_of_literal(json: &str, begin: usize) -> usize {
    let mut is_escaped = false;
    for (at, byte) in json.bytes().enumerate().skip(begin + 1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    json.len()
}

fn is_user_word(name: &str) -> bool {
    name.strip_prefix(USER_WORD).is_some_and(|rest| rest.starts_with(|char: char| char.is_ascii_digit()))
}

fn rule(pattern: &str, kind: ValueKind, name: &str) -> fault::Result<Rule> {
    Ok(Rule { pattern: Regex::new(pattern)?, word: Word::Numbered(kind), name: name.to_owned() })
}

/// A rule `PATTERN=WORD`; the word is what follows the last `=`.
fn own_rule(text: &str) -> fault::Result<Rule> {
    let Some((pattern, word)) = text.rsplit_once('=').filter(|(pattern, _)| !pattern.is_empty()) else {
        bail!(Fault::invalid(format!("`{text}` is no rule; write PATTERN=WORD, such as `ACME-[0-9]+=ACME-1`")));
    };
    let found = Regex::new(pattern).with_context(|| format!("`{pattern}` is no regular expression"))?;
    if found.is_match("") {
        bail!(Fault::invalid(format!("`{pattern}` fits the empty text, so the word would stand everywhere")));
    }
    Ok(Rule { pattern: found, word: Word::Fixed(word.to_owned()), name: format!("`{pattern}`") })
}

fn each_text(value: &Value, hear: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => hear(text),
        Value::Array(values) => values.iter().for_each(|value| each_text(value, hear)),
        Value::Object(fields) => fields.iter().for_each(|(name, value)| {
            hear(name);
            each_text(value, hear);
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let mut replacer = Replacer::new(&[]).expect("the patterns are valid");
        let replaced = replacer.text(text);
        assert_eq!(replaced, expected);
        assert_eq!(Replacer::new(&[]).expect("valid").text(&replaced), expected, "a word stays as it is");
    }

    #[test]
    fn the_same_value_gets_the_same_word() {
        check(
            "ada@lovelace.org asks bob@site.io; Ada: ada@lovelace.org",
            "person-1@example.com asks person-2@example.com; Ada: person-1@example.com",
        );
        check("ada@myexample.com, (c) /home/ada.", "person-1@example.com, (c) /home/user-1.");
        check("10.0.0.7 and 10.0.0.8, then 10.0.0.7.", "192.0.2.1 and 192.0.2.2, then 192.0.2.1.");
        check("fe80::1 [2a00:1450::8a]:443", "2001:db8::1 [2001:db8::2]:443");
        check("/home/ada/x /Users/bob /home/ada", "/home/user-1/x /Users/user-2 /home/user-1");
    }

    #[test]
    fn keys_are_known_by_their_shapes() {
        let word = "replaced-token-1";
        check("Authorization: Bearer abcdefghij0123456789", &format!("Authorization: Bearer {word}"));
        check("key sk-proj-abcdefghij0123456789!", &format!("key {word}!"));
        check("ghp_abcdefghij0123456789", word);
        check("AKIAABCDEFGHIJKLMNOP", word);
        check("https://ada:secret@host.org/x", &format!("https://{word}@host.org/x"));
        check("eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0", word);
        check(
            "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----",
            &format!("-----BEGIN PRIVATE KEY-----{word}-----END PRIVATE KEY-----"),
        );
    }

    #[test]
    fn a_key_is_known_without_its_user_with_headers_and_without_its_end() {
        let word = "replaced-token-1";
        check("redis://:secret@host.org/0", &format!("redis://{word}@host.org/0"));
        check("authorization: Basic YWRhOnNlY3JldA==", &format!("authorization: Basic {word}"));
        check(
            "-----BEGIN RSA PRIVATE KEY-----\nDEK-Info: AES-128-CBC,00\n\nMIIE\n-----END RSA PRIVATE KEY-----",
            &format!("-----BEGIN RSA PRIVATE KEY-----{word}-----END RSA PRIVATE KEY-----"),
        );
        let cut = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC";
        check(&format!("-----BEGIN PRIVATE KEY-----\n{cut}"), &format!("-----BEGIN PRIVATE KEY-----\n{word}"));
        check("-----BEGIN PRIVATE KEY----- is a line", "-----BEGIN PRIVATE KEY----- is a line");
    }

    /// The letter of an escape is no part of what follows it: in `\nada@lovelace.org` the person is `ada`.
    #[test]
    fn in_json_that_is_a_text_values_are_found_behind_escapes_and_it_stays_json() {
        let mut replacer = Replacer::new(&[]).unwrap();
        replacer.learn_users(["lovelace".to_owned()], []).unwrap();
        let told = "x\nada@lovelace.org\n10.0.0.7\tlovelace\nsk-proj-abcdefghij0123456789\n\"\\end";
        let inner = json!({ "content": told, "more": json!({ "deep": told }).to_string() }).to_string();
        let clean = replacer.text(&inner);
        let read: Value = serde_json::from_str(&clean).expect("JSON");
        let expected = "x\nperson-1@example.com\n192.0.2.1\tuser-1\nreplaced-token-1\n\"\\end";
        assert_eq!(read["content"], expected, "{clean}");
        let deep: Value = serde_json::from_str(read["more"].as_str().unwrap()).expect("JSON");
        assert_eq!(deep["deep"], expected, "{clean}");
        assert_eq!(replacer.text(told), expected, "the same words as outside of JSON");
        let form = "{ \"a\" : \"\\u00e4\", \"b\":[1.0, \"me@acme.io\"] }";
        assert_eq!(replacer.text(form), form.replace("me@acme.io", "person-2@example.com"), "the rest stays as it is");
    }

    #[test]
    fn a_rule_of_the_caller_may_be_about_json_and_never_breaks_it() {
        let rules = ["\"id\":[0-9]+=\"id\":7", "\"name\":=x", "secret=word"].map(str::to_owned);
        let mut replacer = Replacer::new(&rules[..1]).unwrap();
        assert_eq!(replacer.text("{\"id\":123,\"a\":1}"), "{\"id\":7,\"a\":1}");
        let mut breaking = Replacer::new(&rules[1..]).unwrap();
        assert_eq!(breaking.text("{\"name\":\"a secret\"}"), "{\"name\":\"a word\"}");
        assert_eq!(counts_in_words(breaking.counts()), "`secret` once");
    }

    #[test]
    fn what_names_nobody_stays() {
        for text in [
            "a bearer of news",
            "std::fs::read and a::b",
            "12:30:45",
            "version 1.2.3.4.5",
            "127.0.0.1 0.0.0.0 ::1 192.0.2.9",
            "300.1.1.1",
            "git@github.com:a/b",
            "someone@example.com",
            "someone@mail.example",
            "/home/user-3",
            "sk-short",
            "@param x",
        ] {
            check(text, text);
        }
    }

    #[test]
    fn names_of_users_are_replaced_where_they_stand_alone() {
        let mut value = json!({ "path": "/home/lovelace/x", "text": "lovelace wrote lovelaces", "root": "root bob" });
        let mut replacer = Replacer::new(&[]).unwrap();
        let known = ["root", "bob", "turing"].map(str::to_owned);
        replacer.learn_users(known, [&value.clone()]).unwrap();
        replacer.value(&mut value);
        let expected = json!({ "path": "/home/user-1/x", "text": "user-1 wrote lovelaces", "root": "root bob" });
        assert_eq!(value, expected);
        assert_eq!(counts_in_words(replacer.counts()), "2 user names");
    }

    #[test]
    fn rules_of_the_caller_come_first_and_names_of_fields_are_texts_too() {
        let mut replacer = Replacer::new(&["ACME-[0-9]+=ACME-1".to_owned(), "a=b=c".to_owned()]).unwrap();
        let mut value = json!({ "ACME-77": ["ACME-8 by me@acme.io", 1, null], "x": "a=b" });
        replacer.value(&mut value);
        assert_eq!(value, json!({ "ACME-1": ["ACME-1 by person-1@example.com", 1, null], "x": "c" }));
        assert_eq!(counts_in_words(replacer.counts()), "`ACME-[0-9]+` 2 times, `a=b` once, 1 e-mail address");
        assert_eq!(counts_in_words(&BTreeMap::new()), "nothing");
        assert_eq!(counts_in_words(&BTreeMap::from([("IP address".to_owned(), 2)])), "2 IP addresses");
    }

    #[test]
    fn a_rule_that_fits_nothing_or_everything_is_refused() {
        let refused = |rule: &str, words: &str| {
            let error = Replacer::new(&[rule.to_owned()]).map(drop).expect_err(rule);
            assert!(format!("{error:#}").contains(words), "{error:#}");
        };
        refused("no rule", "write PATTERN=WORD");
        refused("=word", "write PATTERN=WORD");
        refused("(=word", "`(` is no regular expression");
        refused("x*=word", "fits the empty text");
    }
}
