//! A note: a remembered value, with its author, its time, and its trust.
//!
//! A value that is no note, from an older version or from another program, is read as one of unknown origin. Notes of
//! one key replace each other: the newest wins, and the replaced values are kept beside it.

use super::MemoryEntry;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Replaced values that a note keeps, the newest ones.
const REPLACED_MAX: usize = 10;

/// Bytes of their JSON, together: with the longest value that an agent may remember, every backend can store a note.
const REPLACED_BYTES_MAX: usize = 128 << 10;

/// The origin of a text, from the most to the least trusted. All of them are data for every later reader: none is ever
/// an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trust {
    /// The goal's author, or an agent that had seen no tool's output.
    OwnWords,
    /// A tool, or an agent after a tool's output.
    ToolOutput,
    /// The network, or an agent that had read text from it.
    Web,
    /// The sources of the text are unknown.
    #[default]
    Unknown,
}

impl Trust {
    /// The trust of this name; [`Trust::Unknown`] for an unknown name.
    #[must_use]
    pub fn named(words: &str) -> Self {
        let all = [Self::OwnWords, Self::ToolOutput, Self::Web];
        all.into_iter().find(|one| one.as_str() == words).unwrap_or_default()
    }

    /// The name in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OwnWords => "own words",
            Self::ToolOutput => "tool output",
            Self::Web => "web",
            Self::Unknown => "unknown",
        }
    }
}

/// A value that was replaced.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplacedValue {
    /// The former value.
    pub value: Value,
    /// The run that remembered it.
    pub run: String,
    /// The time at which it was noted, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// The trust of the former value.
    pub trust: Trust,
}

/// A remembered value with its origin.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MemoryNote {
    /// The version of this record, which also distinguishes a note from another value.
    longhaul_note: u32,
    /// The value, of any shape.
    pub value: Value,
    /// The author: a table of `longhaul.toml`, or `longhaul`.
    pub by: String,
    /// The id of the run that noted it.
    pub run: String,
    /// The invocation within it, empty if the run itself remembered it.
    pub step: String,
    /// The lowest trust of any text that its author had read.
    pub trust: Trust,
    /// The time at which it was noted, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// Earlier values, newest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub replaced: Vec<ReplacedValue>,
}

/// The version of the record.
const VERSION: u32 = 1;

impl MemoryNote {
    /// A note of a run.
    #[must_use]
    pub fn new(value: Value, by: &str, run: &str, step: &str, trust: Trust, at_ms: u64) -> Self {
        let (by, run, step) = (by.to_owned(), run.to_owned(), step.to_owned());
        Self { longhaul_note: VERSION, value, by, run, step, trust, at_ms, replaced: Vec::new() }
    }

    /// The note in an entry.
    #[must_use]
    pub fn read(entry: &MemoryEntry) -> Self {
        let value: Value = serde_json::from_str(&entry.value).unwrap_or_else(|_| Value::String(entry.value.clone()));
        match value.get("longhaul_note").is_some().then(|| serde_json::from_value(value.clone())) {
            Some(Ok(note)) => note,
            _ => Self { value, ..Self::default() },
        }
    }

    /// The stored note after this one arrives at a key that has another: the newer value, with the older ones beside
    /// it. The same value again is no conflict, and gets the lower trust of the two: repeating the text of a page does
    /// not make it one's own.
    #[must_use]
    pub fn over(self, before: Option<Self>) -> Self {
        let Some(before) = before else { return self };
        let (mut winner, mut loser) = if before.at_ms > self.at_ms { (before, self) } else { (self, before) };
        let mut replaced = std::mem::take(&mut winner.replaced);
        if loser.value != winner.value {
            let Self { value, run, at_ms, trust, .. } = &loser;
            replaced.push(ReplacedValue { value: value.clone(), run: run.clone(), at_ms: *at_ms, trust: *trust });
        }
        let same = replaced.iter().chain(&loser.replaced).filter(|one| one.value == winner.value);
        let trusts = same.map(|one| one.trust).chain((loser.value == winner.value).then_some(loser.trust));
        winner.trust = trusts.fold(winner.trust, Trust::max);
        replaced.append(&mut loser.replaced);
        replaced.retain(|one| one.value != winner.value);
        replaced.sort_by_key(|one| std::cmp::Reverse(one.at_ms));
        replaced.dedup_by(|a, b| a.value == b.value);
        replaced.truncate(REPLACED_MAX);
        let mut bytes = 0_usize;
        replaced.retain(|one| {
            bytes = bytes.saturating_add(one.value.to_string().len());
            bytes <= REPLACED_BYTES_MAX
        });
        Self { replaced, ..winner }
    }

    /// The entry that holds it.
    ///
    /// # Panics
    /// Never: a note is made of what JSON always holds.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "milliseconds since 1970 are below 2^53")]
    pub fn entry(&self, key: &str, tags: Vec<String>, expires_at_ms: Option<u64>) -> MemoryEntry {
        let value = serde_json::to_string(self).expect("text, numbers and a JSON value");
        MemoryEntry { key: key.to_owned(), value, tags, expires_at_ms: expires_at_ms.map(|at_ms| at_ms as f64) }
    }
}

impl MemoryEntry {
    /// Its text for searches: the key, the texts of the value, the tags. Of a note, the value alone: a search for `web`
    /// must not find every note of that origin.
    #[must_use]
    pub fn words(&self) -> String {
        let mut words = self.key.clone();
        add_words(&MemoryNote::read(self).value, &mut words);
        self.tags.iter().for_each(|tag| words.extend([" ", tag]));
        words
    }
}

/// The texts and numbers of a value, and the names of its fields. The parser bounds the depth.
fn add_words(value: &Value, words: &mut String) {
    match value {
        Value::Null | Value::Bool(_) => {}
        Value::Number(number) => words.extend([" ", &number.to_string()]),
        Value::String(text) => words.extend([" ", text]),
        Value::Array(items) => items.iter().for_each(|item| add_words(item, words)),
        Value::Object(fields) => {
            for (name, value) in fields {
                words.extend([" ", name]);
                add_words(value, words);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn note(value: &str, run: &str, at_ms: u64) -> MemoryNote {
        MemoryNote::new(json!(value), "agents.code", run, "f-a/1/generate", Trust::OwnWords, at_ms)
    }

    #[test]
    fn the_newest_wins_whatever_comes_first_and_the_other_is_kept_beside_it() {
        let (old, new) = (note("8080", "r-1", 1), note("9090", "r-2", 2));
        for kept in [new.clone().over(Some(old.clone())), old.clone().over(Some(new.clone()))] {
            assert_eq!(kept.value, "9090");
            let beside: Vec<_> = kept.replaced.iter().map(|one| (&one.value, one.run.as_str())).collect();
            assert_eq!(beside, [(&json!("8080"), "r-1")]);
        }
        let again = note("9090", "r-3", 3).over(Some(new.over(Some(old))));
        assert_eq!((again.run.as_str(), again.replaced.len()), ("r-3", 1), "the same again is no conflict");
    }

    /// It used to get the trust of the last author.
    #[test]
    fn a_value_that_is_noted_again_is_trusted_no_more_than_before() {
        let web = MemoryNote { trust: Trust::Web, ..note("9090", "r-1", 1) };
        let again = note("9090", "r-2", 2).over(Some(web.clone()));
        assert_eq!((again.trust, again.run.as_str()), (Trust::Web, "r-2"));
        // Also when another value was there in between.
        let between = note("8080", "r-2", 2).over(Some(web));
        assert_eq!(between.trust, Trust::OwnWords);
        assert_eq!(note("9090", "r-3", 3).over(Some(between)).trust, Trust::Web);
    }

    /// It used to grow until no backend could store it, and the key could not be changed any more.
    #[test]
    fn a_note_of_long_values_can_always_be_kept() {
        let long = |at_ms| note(&format!("{at_ms}{}", "x".repeat(60 << 10)), "r-1", at_ms);
        let kept = (2..10).fold(long(1), |before, at_ms| long(at_ms).over(Some(before)));
        assert_eq!(kept.replaced.iter().map(|one| one.at_ms).collect::<Vec<_>>(), [8, 7], "the newest ones");
        assert_eq!(kept.entry("k", Vec::new(), None).check("episodic/p"), Ok(()));
    }

    #[test]
    fn a_value_that_is_no_note_is_of_unknown_origin() {
        let entry =
            |value: &str| MemoryEntry { key: "k".into(), value: value.into(), tags: Vec::new(), expires_at_ms: None };
        let read = MemoryNote::read(&entry("{\"a\":1}"));
        assert_eq!((read.value, read.trust), (json!({ "a": 1 }), Trust::Unknown));
        assert_eq!(MemoryNote::read(&entry("no JSON")).value, "no JSON");
        let kept = note("x", "r-1", 1);
        assert_eq!(MemoryNote::read(&kept.entry("k", Vec::new(), None)), kept);
    }
}
