//! The relevance of files for a task. Whole numbers throughout, so that every machine ranks alike.

use crate::definitions::Definition;
use crate::input::{Purpose, SourceFile};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The weight of each reason.
const PATH_NAMED: u64 = 600;
const WORD_IN_PATH: u64 = 80;
const WORD_IN_DEFINITION: u64 = 40;
const REFERRED: u64 = 6;
const RECENT: u64 = 2;

/// The most recently changed paths that count.
const RECENT_MAX: usize = 30;

/// The most mentioning files that count.
const MENTIONS_MAX: u64 = 30;

/// The most words of the task that are searched for.
const WORDS_MAX: usize = 200;

/// Shortest word and name that count.
const WORD_CHARS_MIN: usize = 3;

/// Words that are in every task.
const COMMON: [&str; 34] = [
    "add", "all", "and", "are", "but", "can", "each", "file", "files", "for", "from", "has", "have", "into", "must",
    "new", "not", "one", "our", "should", "that", "the", "them", "then", "there", "they", "this", "use", "was", "what",
    "when", "which", "with", "write",
];

/// Directories of third-party or generated files.
const FOREIGN: [&str; 10] =
    ["build", "dist", "generated", "node_modules", "out", "site-packages", "target", "third_party", "vendor", "venv"];

/// The files by rank.
pub(crate) struct Ranks {
    /// The indices of the files, the most relevant first.
    pub(crate) order: Vec<usize>,
}

impl Ranks {
    pub(crate) fn of(files: &[&SourceFile], defined: &[Vec<Definition>], purpose: &Purpose<'_>) -> Self {
        let names = Names::of(files, defined);
        let words = words_of_task(purpose.words);
        let rarity = rarity(files, defined, &words);
        let recent: HashMap<&str, u64> =
            purpose.recent.iter().take(RECENT_MAX).map(String::as_str).rev().zip(1..).collect();
        let score = |at: usize| -> u64 {
            let (file, defined) = (files[at], &defined[at]);
            let referred: u64 = defined.iter().map(|one| names.weight(&one.name)).sum();
            let mut score = referred.isqrt() * REFERRED;
            score += u64::from(names_path(purpose.words, &file.path)) * PATH_NAMED;
            score += worth(&parts(&file.path), &rarity) * WORD_IN_PATH / 8;
            let of_definitions: BTreeSet<String> = defined.iter().flat_map(|one| parts(&one.name)).collect();
            score += worth(&of_definitions, &rarity) * WORD_IN_DEFINITION / 8;
            score += recent.get(file.path.as_str()).copied().unwrap_or_default() * RECENT;
            if is_foreign(&file.path) { score / 16 } else { score }
        };
        let scores: Vec<u64> = (0..files.len()).map(score).collect();
        let mut order: Vec<usize> = (0..files.len()).collect();
        // Among equals the one nearer to the top of the repository.
        let depth = |at: usize| files[at].path.matches('/').count();
        order.sort_by(|a, b| {
            scores[*b].cmp(&scores[*a]).then(depth(*a).cmp(&depth(*b))).then(files[*a].path.cmp(&files[*b].path))
        });
        Self { order }
    }
}

/// Names that files define, with the numbers of defining and of mentioning files.
struct Names<'a> {
    known: HashMap<&'a str, Name>,
}

#[derive(Default)]
struct Name {
    definers: u64,
    mentions: u64,
    /// The last file that was counted.
    seen_in: usize,
}

impl<'a> Names<'a> {
    fn of(files: &[&'a SourceFile], defined: &'a [Vec<Definition>]) -> Self {
        let mut known: HashMap<&str, Name> = HashMap::new();
        for (at, definitions) in (1..).zip(defined) {
            for one in definitions.iter().filter(|one| one.name.len() >= WORD_CHARS_MIN) {
                let name = known.entry(&one.name).or_default();
                name.definers += u64::from(name.seen_in != at);
                name.seen_in = at;
            }
        }
        known.values_mut().for_each(|name| name.seen_in = 0);
        for (at, file) in (1..).zip(files) {
            for word in identifiers(file.text.as_deref().unwrap_or_default()) {
                if let Some(name) = known.get_mut(word).filter(|name| name.seen_in != at) {
                    name.mentions += 1;
                    name.seen_in = at;
                }
            }
        }
        Self { known }
    }

    /// A name that many files define, such as `new` or `main`, has little weight.
    fn weight(&self, name: &str) -> u64 {
        let Some(name) = self.known.get(name) else { return 0 };
        // The defining files also mention it.
        let others = name.mentions.saturating_sub(name.definers).min(MENTIONS_MAX);
        others * 16 / (name.definers * name.definers).max(1)
    }
}

fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |one: char| one.is_alphanumeric() || one == '_';
    text.split(move |one: char| !is_part(one)).filter(|word| word.len() >= WORD_CHARS_MIN)
}

fn words_of_task(text: &str) -> BTreeSet<String> {
    let words = identifiers(text).flat_map(parts).filter(|word| !COMMON.contains(&word.as_str()));
    words.take(WORDS_MAX).collect()
}

/// The words within a path or a name, in small letters: `parseHTMLText` is `parse`, `html` and `text`.
fn parts(name: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for word in name.split(|one: char| !one.is_alphanumeric()) {
        let characters: Vec<char> = word.chars().collect();
        let mut part = String::new();
        for (at, one) in characters.iter().enumerate() {
            let before = at.checked_sub(1).map(|at| characters[at]);
            let starts = before.is_some_and(|before| {
                let next_is_small = characters.get(at + 1).is_some_and(|next| next.is_lowercase());
                one.is_uppercase() && (!before.is_uppercase() || next_is_small)
            });
            if starts {
                keep(&mut found, &part);
                part.clear();
            }
            part.extend(one.to_lowercase());
        }
        keep(&mut found, &part);
    }
    found
}

/// Drops the `s` of a plural, so that a task about an invoice finds `invoices.py`.
fn keep(found: &mut BTreeSet<String>, part: &str) {
    let stem =
        part.strip_suffix('s').filter(|stem| stem.len() > WORD_CHARS_MIN && !stem.ends_with('s')).unwrap_or(part);
    if stem.len() >= WORD_CHARS_MIN {
        found.insert(stem.to_owned());
    }
}

/// The weight of each word of the task, from 1 to 8: a word that is everywhere has the least.
fn rarity(files: &[&SourceFile], defined: &[Vec<Definition>], words: &BTreeSet<String>) -> BTreeMap<String, u64> {
    let mut in_files: BTreeMap<&str, u64> = words.iter().map(|word| (word.as_str(), 0)).collect();
    for (file, definitions) in files.iter().zip(defined) {
        let mut of_file = parts(&file.path);
        of_file.extend(definitions.iter().flat_map(|one| parts(&one.name)));
        for word in &of_file {
            if let Some(count) = in_files.get_mut(word.as_str()) {
                *count += 1;
            }
        }
    }
    let all = files.len() as u64;
    let worth = |count: u64| (8 * all / (all + count * 8).max(1)).max(1);
    in_files.into_iter().map(|(word, count)| (word.to_owned(), worth(count))).collect()
}

fn worth(of_file: &BTreeSet<String>, rarity: &BTreeMap<String, u64>) -> u64 {
    of_file.iter().filter_map(|word| rarity.get(word)).sum()
}

/// True when the task names the file, by its path or by its name.
fn names_path(words: &str, path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_name = |one: char| one.is_alphanumeric() || matches!(one, '_' | '-' | '.' | '/');
    name.contains('.')
        && words.split(|one: char| !is_name(one)).any(|word| {
            let word = word.trim_end_matches('.');
            word == path || word == name || (word.contains('/') && path.ends_with(&format!("/{word}")))
        })
}

fn is_foreign(path: &str) -> bool {
    path.split('/').any(|part| FOREIGN.contains(&part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_as_its_words() {
        let of = |name: &str| parts(name).into_iter().collect::<Vec<_>>().join(" ");
        assert_eq!(of("src/parseHTMLText.py"), "html parse src text");
        assert_eq!(of("invoice_totals/class_pass.rs"), "class invoice pass total");
        assert_eq!(of("a/b"), "");
    }

    #[test]
    fn a_task_names_a_file_by_its_path_or_its_name() {
        let names = |words| names_path(words, "src/app/invoice.py");
        assert!(names("Mend invoice.py.") && names("see `src/app/invoice.py`") && names("in app/invoice.py, please"));
        assert!(!names("Mend the invoice") && !names("myinvoice.py") && !names("other/invoice.py"));
    }
}
