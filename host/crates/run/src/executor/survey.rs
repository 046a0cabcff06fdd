//! The overview of the repository for planners and agents: a map of its files and their definitions, and the guides
//! that its authors wrote for agents.
//!
//! It becomes part of the input of an invocation, which the journal keeps, and so it is small: within a tenth of the
//! model's window, and within a cap. All of it is data of the repository, with the trust of a tool's text. Refuses to
//! follow links, and to read files that `.gitignore` covers.

use longhaul_core::memory::Trust;
use longhaul_core::text::truncate;
use longhaul_repomap::{BYTES_MAX, FILE_BYTES_MAX, FILES_MAX, SourceFile};
use longhaul_worktree::{Browsed, Tree, TreeError, UserRepository};
use serde_json::{Value, json};
use std::io::Read as _;
use std::ops::ControlFlow;

/// The field of a context that holds the survey.
pub(super) const FIELD: &str = "repository";

/// Recently changed paths that count for the map.
pub(super) const RECENT_MAX: usize = 30;

/// Guide files for agents at the top of a repository.
const GUIDES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];

/// Tokens of the map. 2 000 tokens describe some 60 files with their definitions; a call of `files.list` returns the
/// rest.
const MAP_TOKENS_MAX: u32 = 2_000;

/// Bytes of the guides together: about 1 000 tokens.
const GUIDE_BYTES_MAX: u32 = 4_000;

/// Divisor of a model's window: the map and the guides may fill this fraction of it.
const MAP_SHARE: u32 = 10;
const GUIDE_SHARE: u32 = 20;

/// Bytes of a token of prose.
const TOKEN_BYTES: u32 = 4;

/// The purpose of a survey.
pub(super) struct SurveyPurpose<'a> {
    /// The goal, or the feature, in its author's words.
    pub(super) words: &'a str,
    /// Recently changed paths, the newest first.
    pub(super) recent: &'a [String],
    /// The smallest window of the models that read it; none: unknown.
    pub(super) window_tokens: Option<u32>,
}

/// Surveys the tree.
pub(super) fn survey(project: &UserRepository, tree: &Tree, purpose: &SurveyPurpose<'_>) -> Result<Value, TreeError> {
    let mut found = SurveyFacts { files: Vec::new(), guides: Vec::new(), bytes_left: BYTES_MAX };
    tree.browse(project, "", &mut |file| found.take(file))?;
    let part = |share: u32, max: u32| purpose.window_tokens.map_or(max, |window| max.min(window / share));
    let map_tokens = part(MAP_SHARE, MAP_TOKENS_MAX);
    let guide_bytes = purpose.window_tokens.map_or(GUIDE_BYTES_MAX, |window| window / GUIDE_SHARE * TOKEN_BYTES);
    let guide_bytes = guide_bytes.min(GUIDE_BYTES_MAX);
    let purpose = longhaul_repomap::Purpose {
        words: purpose.words,
        recent: purpose.recent,
        tokens_max: usize::try_from(map_tokens).unwrap_or(usize::MAX),
    };
    let map = longhaul_repomap::map(&found.files, &purpose);
    Ok(json!({
        "words_of": Trust::ToolOutput.as_str(),
        "files": map.files,
        "map": map.text,
        "guides": shown_guides(found.guides, usize::try_from(guide_bytes).unwrap_or(usize::MAX)),
    }))
}

/// The survey in a recorded input: that of its one goal or task, or that of the first of several values.
pub(super) fn shown_in(input: &[u8]) -> Option<Value> {
    let input: Value = serde_json::from_slice(input).ok()?;
    input.get(0).unwrap_or(&input)["context"].get(FIELD).cloned()
}

struct SurveyFacts {
    files: Vec<SourceFile>,
    /// The guides: name and text.
    guides: Vec<(String, String)>,
    bytes_left: u64,
}

impl SurveyFacts {
    fn take(&mut self, file: &Browsed<'_>) -> ControlFlow<()> {
        let is_guide = GUIDES.contains(&file.path);
        let is_read = is_guide || (longhaul_repomap::wants(file.path, file.bytes) && file.bytes <= self.bytes_left);
        let text = is_read.then(|| text(file)).flatten();
        match text {
            Some(text) if is_guide => {
                self.guides.push((file.path.to_owned(), text));
                self.files.push(SourceFile { path: file.path.to_owned(), text: None });
            }
            text => {
                self.bytes_left = self.bytes_left.saturating_sub(text.as_ref().map_or(0, |text| text.len() as u64));
                self.files.push(SourceFile { path: file.path.to_owned(), text });
            }
        }
        if self.files.len() > FILES_MAX { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// The beginning of a file, if it is text.
fn text(file: &Browsed<'_>) -> Option<String> {
    let mut bytes = Vec::new();
    file.open().ok()?.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    match String::from_utf8(bytes) {
        Ok(text) => Some(text),
        // The text was cut within its last character, or the file is no text.
        Err(error) if error.utf8_error().error_len().is_none() => {
            let end = error.utf8_error().valid_up_to();
            String::from_utf8(error.into_bytes()[..end].to_vec()).ok()
        }
        Err(_) => None,
    }
}

/// Each guide may use an equal share; two with the same text count as one.
fn shown_guides(mut guides: Vec<(String, String)>, bytes_max: usize) -> Vec<Value> {
    guides.dedup_by(|a, b| a.1 == b.1);
    let share = bytes_max / guides.len().max(1);
    let shown = |(file, text): (String, String)| {
        let whole = text.len() <= share;
        json!({ "file": file, "text": if whole { text } else { truncate(&text, share) }, "whole": whole })
    };
    guides.into_iter().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guides_share_their_room_and_one_that_is_there_twice_is_told_once() {
        let guide = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        let same = shown_guides(vec![guide("AGENTS.md", "Run make."), guide("CLAUDE.md", "Run make.")], 100);
        assert_eq!(same, [json!({ "file": "AGENTS.md", "text": "Run make.", "whole": true })]);
        let long = "x".repeat(500);
        let both = shown_guides(vec![guide("AGENTS.md", &long), guide("CLAUDE.md", "b")], 200);
        assert_eq!((&both[0]["whole"], &both[1]["whole"]), (&json!(false), &json!(true)));
        assert!(both[0]["text"].as_str().is_some_and(|text| text.ends_with("[truncated 400 bytes]")), "{both:?}");
    }

    #[test]
    fn what_a_repository_says_to_agents_is_not_their_own_words() {
        let input = |guides: Value| {
            let told = Trust::ToolOutput.as_str();
            json!({ "context": { FIELD: { "words_of": told, "map": "1 files", "guides": guides } } })
        };
        assert_eq!(longhaul_memory::told_words(&input(json!([{ "file": "AGENTS.md" }]))), Some(Trust::ToolOutput));
        assert_eq!(longhaul_memory::told_words(&input(json!([]))), None, "names are no words");
    }

    #[test]
    fn what_was_shown_is_found_in_a_task_and_in_a_goal_among_others() {
        let task = json!({ "id": "a", "context": { "repository": { "files": 3 } } });
        let shown = Some(json!({ "files": 3 }));
        assert_eq!(shown_in(task.to_string().as_bytes()), shown);
        assert_eq!(shown_in(json!([task, {}, []]).to_string().as_bytes()), shown);
        assert_eq!(shown_in(b"{\"context\": {}}"), None);
    }
}
