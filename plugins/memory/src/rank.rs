//! The ranking of texts for a query: texts that share its words, rare words first.
//!
//! A word counts once a text, weighed by how few texts have it. Texts that share none are left out; of equals the
//! earlier one comes first. Refuses stems, synonyms and typing errors: two words are the same when their letters are.

use std::collections::{HashMap, HashSet};

/// The numbers of the texts that bear on `query`, the best first.
pub(crate) fn best(query: &str, texts: &[String]) -> Vec<usize> {
    let texts: Vec<HashSet<String>> = texts.iter().map(|text| words(text)).collect();
    let mut having: HashMap<&str, usize> = HashMap::new();
    for word in texts.iter().flatten() {
        *having.entry(word).or_default() += 1;
    }
    let asked = words(query);
    let weight =
        |word: &String| having.get(word.as_str()).map_or(0.0, |count| 1.0 + (texts.len() as f64 / *count as f64).ln());
    let score = |text: &HashSet<String>| asked.iter().filter(|word| text.contains(*word)).map(weight).sum::<f64>();
    let mut scored: Vec<(usize, f64)> = texts.iter().map(score).enumerate().filter(|(_, score)| *score > 0.0).collect();
    scored.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    scored.into_iter().map(|(at, _)| at).collect()
}

fn words(text: &str) -> HashSet<String> {
    text.split(|one: char| !one.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_words_come_first_and_strangers_not_at_all() {
        let texts = ["the port is 8080", "the port of the test server is 9090", "the colour is green", "la Größe"];
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        assert_eq!(best("which PORT has the server?", &texts), [1, 0, 2]);
        assert_eq!(best("größe", &texts), [3]);
        assert!(best("", &texts).is_empty() && best("unknown", &texts).is_empty());
    }
}
