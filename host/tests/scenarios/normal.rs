//! Values that differ from run to run in the text of a scenario, replaced by fixed rules: places, names, times,
//! amounts.

use crate::common::lab::Lab;
use crate::common::repository;
use regex::{Captures, Regex};
use std::collections::HashMap;
use std::path::Path;
use std::sync::LazyLock;

/// A number as people read it, with the letter of its magnitude.
const AMOUNT: &str = "[0-9]+(?:\\.[0-9]+)?(?: [kMG])?";

/// A number of bytes in the same way.
const BYTES: &str = "[0-9]+(?:\\.[0-9]+)? [kMG]?B";

/// The replacements, in this order.
static RULES: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let rules = [
        (r"\b[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z| UTC)?".to_owned(), "TIME"),
        // Milliseconds since 1970.
        (r"\b1[0-9]{12}\b".to_owned(), "TIME"),
        // Public keys of signers.
        (r"\bRW[0-9A-Za-z+/]{54}".to_owned(), "KEY"),
        (r"\b[0-9a-f]{64}\b".to_owned(), "DIGEST"),
        (r"\b[0-9a-f]{40}\b".to_owned(), "HASH"),
        (r"\b[0-9a-f]{32}\b".to_owned(), "ID"),
        // The used amounts differ from machine to machine, and the limits do not.
        (format!(r"\b{AMOUNT}((?: of {AMOUNT})? fuel)\b"), "N${1}"),
        (r"\b[0-9]+((?: of [0-9]+)?) tokens?\b".to_owned(), "N${1} tokens"),
        (r"\$[0-9]+\.[0-9]+((?: of \$[0-9]+\.[0-9]+)?)".to_owned(), "$$N${1}"),
        (r"\b[0-9]+( s(?: of [0-9]+ s)? worked)\b".to_owned(), "N${1}"),
        (format!(r"\b{BYTES}((?: of {BYTES})? (?:sent|of answers stored))"), "N B${1}"),
        (format!(r"\bpeak memory {BYTES}"), "peak memory N B"),
    ];
    rules.into_iter().map(|(pattern, by)| (Regex::new(&pattern).expect("a pattern"), by)).collect()
});

static COMMIT: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\b[0-9a-f]{7,40}\b").expect("a pattern"));

/// The prefixes of ids of runs, approvals, rules, proposals, questions, tasks and notifications.
static ID: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\b([a-z])-[0-9a-f]{8,32}\b").expect("a pattern"));

/// The text as it is on every machine and at any time.
pub fn normal(text: &str, lab: &Lab) -> String {
    let mut text = without_places(text, lab);
    text = commits_numbered(&text, &commits(lab));
    for (pattern, by) in RULES.iter() {
        text = pattern.replace_all(&text, *by).into_owned();
    }
    text = ids_numbered(&text);
    text.push('\n');
    text
}

fn without_places(text: &str, lab: &Lab) -> String {
    let project = lab.project();
    let place = project.parent().expect("it is in a folder");
    let real = place.canonicalize().expect("it is there");
    let mut text = text.to_owned();
    for place in [real.as_path(), place] {
        let path = |path: &Path| path.display().to_string();
        text = text.replace(&path(&place.join("project")), "PROJECT").replace(&path(&place.join("home")), "HOME");
        text = text.replace(&path(place), "LAB");
    }
    text.replace(&lab.fake.address, "SERVER").replace(&repository().display().to_string(), "REPOSITORY")
}

/// Every commit that the project has or had.
fn commits(lab: &Lab) -> Vec<String> {
    if !lab.project().join(".git").exists() {
        return Vec::new();
    }
    lab.git(&["rev-list", "--all", "--reflog"]).lines().map(str::to_owned).collect()
}

/// Commits in the order of their appearance, whether whole or short.
fn commits_numbered(text: &str, commits: &[String]) -> String {
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    let by = |found: &Captures<'_>| match commits.iter().find(|commit| commit.starts_with(&found[0])) {
        Some(commit) => {
            let next = numbers.len() + 1;
            format!("commit-{}", numbers.entry(commit).or_insert(next))
        }
        None => found[0].to_owned(),
    };
    COMMIT.replace_all(text, by).into_owned()
}

/// Ids of each kind in the order of their appearance.
fn ids_numbered(text: &str) -> String {
    let mut kinds: HashMap<String, Vec<String>> = HashMap::new();
    let by = |found: &Captures<'_>| {
        let known = kinds.entry(found[1].to_owned()).or_default();
        let at = known.iter().position(|id| *id == found[0]).unwrap_or_else(|| {
            known.push(found[0].to_owned());
            known.len() - 1
        });
        format!("{}-{}", &found[1], at + 1)
    };
    ID.replace_all(text, by).into_owned()
}
