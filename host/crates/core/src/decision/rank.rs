//! The ranking of decisions for a question: full text first, then tags, outcomes, and age.
//!
//! [`crate::full_text`] scores the texts.

use super::{Decision, DecisionHit, DecisionOutcome};
use crate::full_text::{Words, scores};
use bm25::Tokenizer as _;
use std::collections::BTreeMap;

/// The weights beside the words, of which the best text has 1.
const OF_TAGS: f64 = 0.3;
const OF_OUTCOME: f64 = 0.2;
const OF_RECENCY: f64 = 0.1;

/// The half-life of recency.
const HALF_LIFE_MS: f64 = 30.0 * 86_400_000.0;

/// The decisions relevant to `question`, at most `limit`, the best first, and of equal ones the newest. A question of
/// stop words alone finds nothing.
#[must_use]
pub fn relevant(decisions: Vec<Decision>, question: &str, now_ms: u64, limit: usize) -> Vec<DecisionHit> {
    let texts: Vec<String> = decisions.iter().map(text).collect();
    let scores = scores(&texts, question);
    let best = scores.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let words = Words::new();
    let question = words.of_question(question);
    let scored = decisions.into_iter().zip(scores).filter(|(_, score)| *score > 0.0);
    let mut hits: Vec<DecisionHit> =
        scored.map(|(decision, score)| hit(decision, score / best, &question, &words, now_ms)).collect();
    hits.sort_by(|a, b| b.relevance.total_cmp(&a.relevance).then(b.decision.at_ms.cmp(&a.decision.at_ms)));
    hits.truncate(limit);
    hits
}

/// All its words.
fn text(decision: &Decision) -> String {
    let Decision { context, decision, reasoning, tags, lesson, .. } = decision;
    format!("{context} {decision} {reasoning} {} {}", tags.join(" "), lesson.as_deref().unwrap_or_default())
}

/// A decision that shares a word with the question, with its other evidence, and why it was found.
fn hit(decision: Decision, score: f64, question: &BTreeMap<String, String>, words: &Words, now_ms: u64) -> DecisionHit {
    let own = words.tokenize(&text(&decision));
    let shared = question.iter().filter(|(stem, _)| own.contains(stem));
    let shared: Vec<&str> = shared.map(|(_, word)| word.as_str()).collect();
    let is_asked = |tag: &&str| words.tokenize(tag).iter().any(|stem| question.contains_key(stem));
    let tags: Vec<&str> = decision.tags.iter().map(String::as_str).filter(is_asked).collect();
    let mut why = format!("has {} of {} words: {}", shared.len(), question.len(), shared.join(", "));
    if !tags.is_empty() {
        why.push_str(&format!("; tagged {}", tags.join(", ")));
    }
    if decision.outcome != DecisionOutcome::Open {
        why.push_str(&format!("; came out as {}", decision.outcome.as_str()));
    }
    let tagged = if tags.is_empty() { 0.0 } else { 1.0 };
    let recency = HALF_LIFE_MS / (HALF_LIFE_MS + as_f64(now_ms.saturating_sub(decision.at_ms)));
    let relevance = score + OF_TAGS * tagged + OF_OUTCOME * weight(&decision) + OF_RECENCY * recency;
    DecisionHit { decision, relevance, why }
}

/// The weight of an outcome. A failure teaches as much as a success; an open decision teaches least.
fn weight(decision: &Decision) -> f64 {
    let outcome = match decision.outcome {
        DecisionOutcome::Open => 0.0,
        DecisionOutcome::Partial => 0.5,
        DecisionOutcome::Success | DecisionOutcome::Failure | DecisionOutcome::Reverted => 1.0,
    };
    outcome * decision.score.map_or(1.0, |score| score.abs().clamp(0.0, 1.0))
}

#[expect(clippy::cast_precision_loss, reason = "times that differ by days")]
fn as_f64(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_MS: u64 = 86_400_000;

    fn decision(id: &str, text: &str) -> Decision {
        Decision { id: id.into(), decision: text.into(), at_ms: 100 * DAY_MS, ..Decision::default() }
    }

    #[track_caller]
    fn check(decisions: &[Decision], question: &str, expected: &[&str]) {
        let found = relevant(decisions.to_vec(), question, 100 * DAY_MS, 10);
        let ids: Vec<&str> = found.iter().map(|hit| hit.decision.id.as_str()).collect();
        assert_eq!(ids, expected, "{question}");
    }

    #[test]
    fn what_shares_no_word_is_not_found() {
        let all = [decision("a", "parse dates with jiff"), decision("b", "write files whole")];
        check(&all, "How are dates read?", &["a"]);
        check(&all, "the of and", &[]);
        check(&all, "  ", &[]);
        check(&[], "dates", &[]);
    }

    #[test]
    fn a_word_is_found_in_its_other_forms_and_not_within_another() {
        let all = [decision("a", "parsing a date"), decision("b", "updated reports"), decision("c", "Größe prüfen")];
        check(&all, "parsed dates", &["a"]);
        check(&all, "port", &[]);
        check(&all, "GRÖSSE GRÖßE", &["c"]);
    }

    #[test]
    fn a_rare_word_counts_more_than_one_that_many_have() {
        let all = [decision("zone", "tests of zones"), decision("x", "tests of x"), decision("y", "tests of y")];
        check(&all, "tests zones", &["zone", "x", "y"]);
        let found = relevant(all.to_vec(), "tests zones", 100 * DAY_MS, 10);
        assert!(found[0].relevance > 3.0 * found[1].relevance, "{found:?}");
    }

    #[test]
    fn words_count_most_then_tags_then_what_came_of_it_then_recency() {
        let tagged = Decision { tags: vec!["Dates".into()], ..decision("tagged", "about") };
        let known = Decision { outcome: DecisionOutcome::Failure, ..decision("known", "dates") };
        let old = Decision { at_ms: 0, ..decision("old", "dates") };
        let both = decision("both", "dates, zones");
        check(
            &[old, decision("plain", "dates"), known, tagged, both],
            "dates zones",
            &["both", "tagged", "known", "plain", "old"],
        );
    }

    #[test]
    fn each_hit_says_why() {
        let one =
            Decision { tags: vec!["dates".into()], outcome: DecisionOutcome::Success, ..decision("a", "parsing") };
        let hits = relevant(vec![one], "parse dates now", 0, 1);
        assert_eq!(hits[0].why, "has 2 of 3 words: dates, parse; tagged dates; came out as success");
    }
}
