//! Episodes: the outcome of a run, in a few sentences; and the search for similar ones.

use super::Trust;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// The outcome of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Episode {
    /// The beginning of the goal.
    pub goal: String,
    /// The status with which the run ended, for example `completed`.
    pub status: String,
    /// The work, and its lessons.
    pub summary: String,
    /// The lowest trust of its sources.
    pub trust: Trust,
    /// `model NAME`, or `rules` and why no model was asked or trusted.
    pub made_by: String,
}

impl Episode {
    /// The text for searches.
    #[must_use]
    pub fn words(&self) -> String {
        format!("{} {}", self.goal, self.summary)
    }
}

/// The documents most similar to a query: their numbers and their similarity, the best first, of equal ones the earlier
/// first. Documents without a shared word are left out.
#[must_use]
pub fn closest(documents: &[String], query: &str, limit: usize) -> Vec<(usize, f64)> {
    let scores = documents.iter().map(|document| jaccard(document, query));
    let mut found: Vec<(usize, f64)> = scores.enumerate().filter(|(_, score)| *score > 0.0).collect();
    found.sort_by(|a, b| b.1.total_cmp(&a.1));
    found.truncate(limit);
    found
}

/// The shared words of two texts, as a part of all their words: small letters, separated by white space.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "counts of words")]
pub fn jaccard(a: &str, b: &str) -> f64 {
    let words = |text: &str| text.split_whitespace().map(str::to_lowercase).collect::<HashSet<_>>();
    let (a, b) = (words(a), words(b));
    let all = a.union(&b).count();
    if all == 0 { 0.0 } else { a.intersection(&b).count() as f64 / all as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use std::path::{Path, PathBuf};

    /// Every case of the suite `episodic` in `$LONGHAUL_CASES`.
    #[test]
    fn the_cases_of_episodic_memory() {
        let own = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/cases");
        let folder = std::env::var_os("LONGHAUL_CASES").map_or_else(own, PathBuf::from);
        let paths = folder.read_dir().expect("a folder of cases").map(|entry| entry.expect("readable").path());
        let files = paths.filter(|path| path.extension().is_some_and(|end| end == "json"));
        let read = |path: PathBuf| -> Value {
            serde_json::from_str(&std::fs::read_to_string(path).expect("readable")).expect("JSON")
        };
        let mut driven = 0;
        for file in files.map(read).filter(|file| file["suite"] == "episodic") {
            for case in file["cases"].as_array().expect("a list of cases") {
                check(case);
                driven += 1;
            }
        }
        assert!(driven > 0, "no case of the suite `episodic` in {}", folder.display());
    }

    #[track_caller]
    fn check(case: &Value) {
        let texts = |value: &Value| -> Vec<String> { serde_json::from_value(value.clone()).expect("texts") };
        let documents = texts(&case["documents"]);
        let limit = usize::try_from(case["top_k"].as_u64().expect("a number")).expect("fits");
        let found = closest(&documents, case["query"].as_str().expect("a text"), limit);
        let found: Vec<String> = found.into_iter().map(|(at, _)| documents[at].clone()).collect();
        assert_eq!(found, texts(&case["expected_top"]), "{}", case["id"]);
    }

    #[test]
    fn what_shares_no_word_is_no_episode_for_it() {
        let documents = ["disk full".to_owned(), String::new()];
        assert_eq!(closest(&documents, "worker", 3), []);
        assert_eq!(closest(&documents, "", 3), []);
    }
}
