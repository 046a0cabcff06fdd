//! Full-text search: ranks texts for a question, by BM25.
//!
//! A word counts the more the fewer texts have it, and the less the longer the text is. Words are those of Unicode, in
//! small letters and by their English stem, so that "parsed dates" finds "parse a date"; words of other languages are
//! compared with their endings. Nothing is kept between two questions.

use bm25::{Document, SearchEngine, SearchEngineBuilder, Tokenizer};
use rust_stemmers::{Algorithm, Stemmer};
use std::collections::BTreeMap;
use unicode_segmentation::UnicodeSegmentation as _;

/// Words of a question that are searched. A goal may have 1 MiB, and its beginning names its subject.
const QUESTION_WORDS_MAX: usize = 200;

/// Frequent words without meaning for a search.
const STOP_WORDS: [&str; 40] = [
    "a", "all", "an", "and", "any", "are", "as", "at", "be", "been", "by", "can", "do", "does", "for", "from", "had",
    "has", "have", "how", "in", "is", "it", "its", "not", "of", "on", "or", "so", "that", "the", "their", "then",
    "they", "this", "to", "was", "we", "which", "with",
];

/// The score of each text for a question, 0 for one that shares no word with it. A question of stop words alone scores
/// no text.
#[must_use]
pub fn scores(texts: &[String], question: &str) -> Vec<f64> {
    let words = Words::new();
    let asked: String = words.of_question(question).values().flat_map(|word| [word.as_str(), " "]).collect();
    let documents = texts.iter().enumerate().map(|(at, text)| Document::new(at, text.clone()));
    let library: SearchEngine<usize, u32, Words> =
        SearchEngineBuilder::with_tokenizer_and_documents(words, documents).build();
    let found = library.search(&asked, None);
    let mut scores = vec![0.0; texts.len()];
    for found in &found {
        scores[found.document.id] = f64::from(found.score).max(0.0);
    }
    scores
}

/// The stemmer of words.
pub(crate) struct Words(Stemmer);

impl Words {
    pub(crate) fn new() -> Self {
        Self(Stemmer::create(Algorithm::English))
    }

    /// The words of a question as they were written, each once, by their stems.
    pub(crate) fn of_question(&self, question: &str) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        for word in plain(question) {
            if found.len() < QUESTION_WORDS_MAX {
                found.entry(self.0.stem(&word).into_owned()).or_insert(word);
            }
        }
        found
    }
}

impl Tokenizer for Words {
    fn tokenize(&self, text: &str) -> Vec<String> {
        plain(text).map(|word| self.0.stem(&word).into_owned()).collect()
    }
}

/// The words of a text in small letters, without stop words.
fn plain(text: &str) -> impl Iterator<Item = String> {
    text.unicode_words().map(str::to_lowercase).filter(|word| !STOP_WORDS.contains(&word.as_str()))
}
