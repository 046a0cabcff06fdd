//! Guesses the kind of work that a prompt asks for, and whether it is worth a project: by its words alone.
//!
//! The guess is made before anything is spent, and states its confidence and its reasons. It counts whole words, so
//! `report` is not `port`, and no number in a prompt makes more than [`ITEMS_MAX`] items.

use regex::Regex;
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

/// Most items that are taken out of a prompt.
pub const ITEMS_MAX: usize = 10;

/// From this confidence on, work is worth a project.
pub const CONFIDENCE_MIN: f64 = 0.6;

/// Bytes of a prompt that are read.
const PROMPT_BYTES_MAX: usize = 20_000;

/// Kinds of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptKind {
    /// One answer is enough.
    Simple,
    /// Several topics of research.
    MultiResearch,
    /// Code to write.
    CodingProject,
    /// Several steps, one after the other.
    MultiStep,
    /// A subject to analyse from several sides.
    ComplexAnalysis,
}

/// The guess about a prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Detected {
    /// The kind of work.
    #[serde(rename = "type")]
    pub kind: PromptKind,
    /// True when it is worth a project.
    pub use_harness: bool,
    /// The parts of the work: those that the prompt lists, or as many names as it requests.
    pub items: Vec<String>,
    /// The confidence of the guess, from 0 to 1.
    pub confidence: f64,
    /// The reasons for it, one line each.
    pub reasons: Vec<String>,
}

/// Words about code. One alone is weak evidence.
const CODING: [&str; 18] = [
    "implement",
    "refactor",
    "build",
    "create",
    "develop",
    "deploy",
    "add feature",
    "add test",
    "write test",
    "unit test",
    "fix bug",
    "debug",
    "optimize",
    "migrate",
    "upgrade",
    "port",
    "convert",
    "integrate",
];

/// Words about analysis. Two of them count as one.
const ANALYSIS: [&str; 12] = [
    "analyze",
    "investigate",
    "compare",
    "evaluate",
    "assess",
    "review",
    "audit",
    "examine",
    "comprehensive",
    "thorough",
    "in-depth",
    "detailed analysis",
];

/// Nouns that are counted after a number in a prompt.
const COUNTED: &str =
    "papers?|topics?|items?|features?|functions?|tests?|files?|endpoints?|components?|modules?|reports?|articles?";

struct Patterns {
    count: Regex,
    research_list: Regex,
    numbered: Regex,
    bullets: Regex,
    research_count: Regex,
    write_count: Regex,
    several: Regex,
    compound: [Regex; 3],
    steps: Regex,
    listed: Regex,
    comma: Regex,
    coding: Vec<Regex>,
    analysis: Vec<Regex>,
}

static PATTERNS: LazyLock<Patterns> = LazyLock::new(|| {
    let regex = |text: &str| Regex::new(text).expect("written here");
    Patterns {
        count: regex(&format!(r"\b(\d+)\s+(?:{COUNTED})\b")),
        research_list: regex(r"\bresearch\s+.+,.+\band\s+\S"),
        numbered: regex(r"(?:^|\s)\d{1,2}[.)]\s+"),
        bullets: regex(r"(?m)^\s*[-*•]\s+(.+)$"),
        research_count: regex(r"\bresearch\s+(\d+)\b"),
        write_count: regex(r"\bwrite\s+(\d+)\s+(?:research\s+)?(?:papers?|reports?|articles?)\b"),
        several: regex(r"\b(?:investigate|compare)\s+(?:multiple|several|(\d+))\b"),
        compound: [
            regex(r"\brefactor\b.*\band\b.*\b(?:add|write|create)\b"),
            regex(r"\b(?:add|write|create)\b.*\b(?:tests?|features?)\b.*\band\b"),
            // A request that includes tests is about code, whatever its verb.
            regex(r"\b(?:implement|build|create|develop|write|make|deploy)\b.*\b(?:with|including)\b.*\btests?\b"),
        ],
        steps: regex(
            r"\b(?:steps?\s+by\s+steps?|steps|first\b.*\bthen|after\s+that|process(?:es)?|workflows?|pipelines?)\b",
        ),
        listed: regex(r"(?i-u:\b(?:research|implement|analyze|compare|write\s+about|investigate)\s+)(.+)"),
        comma: regex(r",\s*and\s+|\s+and\s+|,\s*"),
        coding: CODING.iter().map(|word| word_forms(word)).collect(),
        analysis: ANALYSIS.iter().map(|word| word_forms(word)).collect(),
    }
});

/// A word, or some words, with their inflected endings.
fn word_forms(words: &str) -> Regex {
    let forms: Vec<String> = words
        .split(' ')
        .map(|word| {
            let stem = word.strip_suffix('e').unwrap_or(word);
            let last = word.chars().next_back().unwrap_or_default();
            format!("(?:{word}(?:s|es|d|ed|ly|ing|{last}ing|{last}ed)?|{stem}ing)")
        })
        .collect();
    Regex::new(&format!(r"\b{}\b", forms.join(r"\s+(?:an?\s+|the\s+)?"))).expect("plain words")
}

/// Guesses the work of a prompt.
#[must_use]
pub fn detect(prompt: &str) -> Detected {
    let prompt = &prompt[..prompt.floor_char_boundary(PROMPT_BYTES_MAX)];
    let mut seen = Seen { lower: prompt.to_lowercase(), ..Seen::default() };
    seen.counts();
    seen.lists(prompt);
    seen.research();
    seen.words();
    seen.commas(prompt);
    let kind = seen.kind();
    Detected {
        kind,
        use_harness: kind != PromptKind::Simple && seen.confidence >= CONFIDENCE_MIN,
        items: seen.items,
        confidence: seen.confidence,
        reasons: seen.reasons,
    }
}

/// The findings so far.
#[derive(Default)]
struct Seen {
    lower: String,
    items: Vec<String>,
    confidence: f64,
    reasons: Vec<String>,
    is_research: bool,
    is_coding: bool,
    is_steps: bool,
    is_analysis: bool,
}

impl Seen {
    fn because(&mut self, confidence: f64, reason: String) {
        self.confidence = self.confidence.max(confidence);
        self.reasons.push(reason);
    }

    /// "5 papers", "3 tests".
    fn counts(&mut self) {
        let Some(found) = PATTERNS.count.captures(&self.lower) else { return };
        let (text, count) = (found[0].to_owned(), number(&found[1]));
        self.items = names("item", count);
        self.because(0.9, format!("says how many: {text}"));
    }

    /// Numbers or bullets before each part, or parts of a research with commas.
    fn lists(&mut self, prompt: &str) {
        let numbered: Vec<String> = match PATTERNS.numbered.find(prompt) {
            None => Vec::new(),
            Some(first) => PATTERNS.numbered.split(&prompt[first.start()..]).filter_map(tidy).collect(),
        };
        let bullets: Vec<String> =
            PATTERNS.bullets.captures_iter(prompt).filter_map(|found| tidy(found.get(1)?.as_str())).collect();
        let listed = if numbered.len() >= bullets.len() { numbered } else { bullets };
        if listed.len() >= 2 {
            self.items = listed.into_iter().take(ITEMS_MAX).collect();
            self.because(0.9, format!("lists {} parts", self.items.len()));
        }
        if PATTERNS.research_list.is_match(&self.lower) {
            self.is_research = true;
            self.because(0.9, "lists what is to be researched".to_owned());
        }
    }

    fn research(&mut self) {
        for pattern in [&PATTERNS.research_count, &PATTERNS.write_count, &PATTERNS.several] {
            let Some(found) = pattern.captures(&self.lower) else { continue };
            let (text, count) = (found[0].to_owned(), found.get(1).map(|count| number(count.as_str())));
            if let Some(count) = count {
                self.items = names("research_topic", count);
            }
            self.is_research = true;
            self.because(0.85, format!("asks for research: {text}"));
        }
    }

    fn words(&mut self) {
        let count = |patterns: &[Regex]| patterns.iter().filter(|pattern| pattern.is_match(&self.lower)).count();
        let (mut coding, analysis) = (count(&PATTERNS.coding), count(&PATTERNS.analysis));
        if PATTERNS.compound.iter().any(|pattern| pattern.is_match(&self.lower)) {
            coding += 2;
            self.because(0.75, "asks for two kinds of work on code".to_owned());
        }
        self.is_coding = coding > 0;
        match coding {
            0 => {}
            1 => self.because(0.4, "has one word of code".to_owned()),
            _ => self.because(0.7, "has several words of code".to_owned()),
        }
        if PATTERNS.steps.is_match(&self.lower) {
            self.is_steps = true;
            self.because(0.6, "speaks of steps".to_owned());
        }
        if analysis >= 2 {
            self.is_analysis = true;
            self.because(0.65, "has several words of analysis".to_owned());
        }
    }

    /// "compare a, b and c".
    fn commas(&mut self, prompt: &str) {
        let Some(found) = PATTERNS.listed.captures(prompt) else { return };
        let parts = PATTERNS.comma.split(found.get(1).map_or("", |list| list.as_str())).filter_map(tidy);
        let parts: Vec<String> = parts.filter(|part| part.chars().count() > 2).take(ITEMS_MAX).collect();
        if parts.len() >= 3 {
            self.because(0.75, format!("lists {} parts with commas", parts.len()));
            self.items = parts;
        }
    }

    fn kind(&self) -> PromptKind {
        match self {
            _ if self.confidence < 0.5 => PromptKind::Simple,
            _ if self.is_research => PromptKind::MultiResearch,
            _ if self.is_coding => PromptKind::CodingProject,
            _ if self.is_steps => PromptKind::MultiStep,
            _ if self.is_analysis => PromptKind::ComplexAnalysis,
            _ if self.lower.contains("research") || self.lower.contains("paper") => PromptKind::MultiResearch,
            _ => PromptKind::MultiStep,
        }
    }
}

/// A number in a prompt, capped to a useful size.
fn number(digits: &str) -> usize {
    digits.parse().unwrap_or(ITEMS_MAX).min(ITEMS_MAX)
}

fn names(stem: &str, count: usize) -> Vec<String> {
    (1..=count).map(|number| format!("{stem}_{number}")).collect()
}

/// A part without surrounding punctuation; none if nothing is left.
fn tidy(part: &str) -> Option<String> {
    let part = part.trim().trim_end_matches([',', ';']).trim();
    (!part.is_empty()).then(|| part.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(prompt: &str, kind: PromptKind, items: usize) {
        let detected = detect(prompt);
        assert_eq!((detected.kind, detected.items.len()), (kind, items), "{prompt}: {detected:?}");
    }

    #[test]
    fn words_are_whole_and_may_be_inflected() {
        check("Summarise this report", PromptKind::Simple, 0);
        check("Porting the module, and debugging it", PromptKind::CodingProject, 0);
        check("Build an image of the airport", PromptKind::Simple, 0);
        check("Create a page and write the tests", PromptKind::CodingProject, 0);
        check("Build and deploy a REST API with tests", PromptKind::CodingProject, 0);
        check("Make a small parser, including unit tests", PromptKind::CodingProject, 0);
        check("Build a sandcastle with friends", PromptKind::Simple, 0);
    }

    #[test]
    fn no_number_makes_more_items_than_are_of_use() {
        check("research 1000000 papers", PromptKind::MultiResearch, ITEMS_MAX);
        check("write 99999999999999999999999999 tests", PromptKind::MultiStep, ITEMS_MAX);
    }

    #[test]
    fn lists_are_taken_as_they_are_written() {
        check("1) look\n2) leap", PromptKind::MultiStep, 2);
        check("* one\n* two\n* three", PromptKind::MultiStep, 3);
        check("version 1. x", PromptKind::Simple, 0);
        check(&"- x\n".repeat(50), PromptKind::MultiStep, ITEMS_MAX);
    }

    #[test]
    fn huge_and_strange_prompts_are_looked_at_in_part() {
        check("", PromptKind::Simple, 0);
        check(&"日".repeat(100_000), PromptKind::Simple, 0);
        check(&"research a, ".repeat(100_000), PromptKind::MultiResearch, 10);
    }
}
