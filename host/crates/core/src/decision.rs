//! Decisions of a project, what came of them, and which of them bear on a question.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A decision that somebody took.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Decision {
    /// Its name; the same however often it is recorded.
    pub id: String,
    /// When, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// The run in which it was taken.
    pub run: String,
    /// The feature that it was taken for.
    pub feature: Option<String>,
    /// Who took it: the table of an agent or a planner, or `longhaul`.
    pub by: String,
    /// What it was about.
    pub context: String,
    /// What was decided.
    pub decision: String,
    /// Why.
    pub reasoning: String,
    /// To find it by.
    pub tags: Vec<String>,
    /// What came of it.
    #[serde(alias = "came_out")]
    pub outcome: Outcome,
    /// How good it was, from -1 to 1; none where nobody said.
    pub score: Option<f64>,
    /// What is to be learnt from it.
    pub lesson: Option<String>,
}

/// What came of a decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Nobody knows yet.
    #[default]
    #[serde(alias = "Open")]
    Open,
    /// It was right.
    #[serde(alias = "Success")]
    Success,
    /// In part.
    #[serde(alias = "Partial")]
    Partial,
    /// It was wrong.
    #[serde(alias = "Failure")]
    Failure,
    /// It was taken back.
    #[serde(alias = "Reverted")]
    Reverted,
}

/// A decision that bears on a question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hit {
    /// The decision.
    pub decision: Decision,
    /// How well it fits, above 0; comparable within one answer alone.
    pub relevance: f64,
    /// Why it was chosen, in one line.
    pub why: String,
}

/// How much each of them counts beside the share of the question's words, which is at most 1.
const OF_TAGS: f64 = 0.3;
const OF_OUTCOME: f64 = 0.2;
const OF_RECENCY: f64 = 0.1;

/// What recency is measured by: after so long, half of it is left.
const HALF_LIFE_MS: f64 = 30.0 * 86_400_000.0;

impl Decision {
    /// All its words.
    fn text(&self) -> String {
        let Self { context, decision, reasoning, tags, lesson, .. } = self;
        format!("{context} {decision} {reasoning} {} {}", tags.join(" "), lesson.as_deref().unwrap_or_default())
    }

    /// How well it answers the question, and why. None: not at all.
    fn hit(&self, question: &BTreeSet<String>, now_ms: u64) -> Option<(f64, String)> {
        let own = words(&self.text());
        let shared: Vec<&str> = question.intersection(&own).map(String::as_str).collect();
        let tags: Vec<&str> =
            self.tags.iter().map(String::as_str).filter(|tag| question.contains(&tag.to_lowercase())).collect();
        if shared.is_empty() {
            return None;
        }
        // What went wrong is as good to know as what went right; what is open says least.
        let outcome = match self.outcome {
            Outcome::Open => 0.0,
            Outcome::Partial => 0.5,
            Outcome::Success | Outcome::Failure | Outcome::Reverted => 1.0,
        };
        let weight = outcome * self.score.map_or(1.0, |score| score.abs().clamp(0.0, 1.0));
        let recency = HALF_LIFE_MS / (HALF_LIFE_MS + as_f64(now_ms.saturating_sub(self.at_ms)));
        let share = as_f64(shared.len() as u64) / as_f64(question.len() as u64);
        let tagged = if tags.is_empty() { 0.0 } else { 1.0 };
        let relevance = share + OF_TAGS * tagged + OF_OUTCOME * weight + OF_RECENCY * recency;
        let mut why = format!("has {} of {} words: {}", shared.len(), question.len(), shared.join(", "));
        if !tags.is_empty() {
            why.push_str(&format!("; tagged {}", tags.join(", ")));
        }
        if self.outcome != Outcome::Open {
            why.push_str(&format!("; came out as {}", self.outcome.as_str()));
        }
        Some((relevance, why))
    }
}

impl Outcome {
    /// Its word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Success => "success",
            Self::Partial => "partial",
            Self::Failure => "failure",
            Self::Reverted => "reverted",
        }
    }
}

/// The decisions that bear on `question`, at most `limit`, the best first, and of equal ones the newest. Words are
/// compared whole, and in any case of letters; a question without a word is answered by nothing.
#[must_use]
pub fn relevant(decisions: Vec<Decision>, question: &str, now_ms: u64, limit: usize) -> Vec<Hit> {
    let question = words(question);
    let hit = |decision: Decision| {
        let (relevance, why) = decision.hit(&question, now_ms)?;
        Some(Hit { decision, relevance, why })
    };
    let mut hits: Vec<Hit> = decisions.into_iter().filter_map(hit).collect();
    hits.sort_by(|a, b| b.relevance.total_cmp(&a.relevance).then(b.decision.at_ms.cmp(&a.decision.at_ms)));
    hits.truncate(limit);
    hits
}

/// Words that stand in any text and say nothing.
const STOP_WORDS: [&str; 24] = [
    "a", "an", "and", "are", "as", "at", "be", "by", "for", "from", "in", "is", "it", "of", "on", "or", "so", "that",
    "the", "this", "to", "was", "we", "with",
];

fn words(text: &str) -> BTreeSet<String> {
    let words = text.split(|char: char| !char.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).filter(|word| !STOP_WORDS.contains(&word.as_str())).collect()
}

#[expect(clippy::cast_precision_loss, reason = "counts of words, and times that differ by days")]
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

    fn ids(decisions: Vec<Decision>, question: &str) -> Vec<String> {
        relevant(decisions, question, 100 * DAY_MS, 10).into_iter().map(|hit| hit.decision.id).collect()
    }

    #[test]
    fn what_shares_no_word_is_not_found() {
        let all = vec![decision("a", "parse dates with jiff"), decision("b", "write files whole")];
        assert_eq!(ids(all.clone(), "How are dates parsed?"), ["a"]);
        assert!(ids(all.clone(), "the of and").is_empty());
        assert!(ids(all, "  ").is_empty());
    }

    #[test]
    fn words_count_most_then_tags_then_what_came_of_it_then_recency() {
        let tagged = Decision { tags: vec!["Dates".into()], ..decision("tagged", "dates") };
        let known = Decision { outcome: Outcome::Failure, ..decision("known", "dates") };
        let old = Decision { at_ms: 0, ..decision("old", "dates") };
        let both = decision("both", "dates and zones");
        let all = vec![old, decision("plain", "dates"), known, tagged, both];
        assert_eq!(ids(all, "dates zones"), ["both", "tagged", "known", "plain", "old"]);
    }

    #[test]
    fn each_hit_says_why() {
        let one = Decision { tags: vec!["dates".into()], outcome: Outcome::Success, ..decision("a", "parse") };
        let hits = relevant(vec![one], "parse dates now", 0, 1);
        assert_eq!(hits[0].why, "has 2 of 3 words: dates, parse; tagged dates; came out as success");
    }

    #[test]
    fn a_record_of_before_is_still_read() {
        let old = r#"{"context":"c","decision":"d","reasoning":"r","tags":[],"came_out":"Success","lesson":null}"#;
        let read: Decision = serde_json::from_str(old).unwrap();
        assert_eq!((read.outcome, read.decision.as_str()), (Outcome::Success, "d"));
    }
}
