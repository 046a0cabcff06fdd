//! `builtin:search`: text and names in the files of a run's tree.
//!
//! The matching is ripgrep's, with linear time. The walk is the tree's own, which opens every file without following a
//! link, so that neither a link nor a `.gitignore` that is one leads out. Files that `.gitignore` covers are skipped.
//! Refuses patterns that compile to too much, and stops at a number of matches, of bytes and of seconds; then its
//! answer says so, and names the omitted part.

use crate::arguments::{at_most, blocking, invalid, of_tree, path};
use crate::environment::ToolRoot;
use globset::{GlobBuilder, GlobMatcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish, SinkMatch};
use longhaul_core::InvocationId;
use longhaul_core::journal::EffectClass;
use longhaul_core::text::truncate;
use longhaul_core::tool::{FunctionInfo, HostTool, ToolCall, ToolError, ToolInfo, ToolOutput};
use longhaul_worktree::Browsed;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Bytes of a pattern. Usual ones have a tenth.
const PATTERN_BYTES_MAX: usize = 1_000;

/// Bytes that a pattern may compile to: `\w{1,100}` has a fifth.
const COMPILED_BYTES_MAX: usize = 2 << 20;

/// Default and largest number of matches in one answer.
const MATCHES_DEFAULT: usize = 200;
const MATCHES_MAX: usize = 1_000;

/// Bytes of all lines of one answer.
const LINES_BYTES_MAX: usize = 256 << 10;

/// Bytes of one line; a longer one is cut.
const LINE_BYTES_MAX: usize = 400;

/// Lines around a match.
const CONTEXT_LINES_MAX: usize = 5;

/// Bytes of the longest searched file; a larger one is left out and counted.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// The timeout of one search.
const SEARCH_MAX: Duration = Duration::from_secs(10);

/// The tool.
pub struct Search {
    place: ToolRoot,
}

impl Search {
    /// The tool, in a place.
    #[must_use]
    pub fn new(place: ToolRoot) -> Self {
        Self { place }
    }
}

#[async_trait::async_trait]
impl HostTool for Search {
    async fn info(&self, name: &str) -> Result<ToolInfo, ToolError> {
        Ok(ToolInfo {
            id: name.to_owned(),
            description: "Searches the files of the project; what .gitignore covers is passed over.".to_owned(),
            functions: functions(),
        })
    }

    async fn call(&self, call: &ToolCall, _: &InvocationId, _: &str, _: u32) -> Result<ToolOutput, ToolError> {
        let place = self.place.clone();
        let found = match call.function.as_str() {
            "text" => {
                let asked = Text::check(call.read()?)?;
                blocking(move || asked.run(&place)).await?
            }
            "names" => {
                let asked = Names::check(call.read()?)?;
                blocking(move || asked.run(&place)).await?
            }
            other => return Err(ToolError::UnknownFunction(truncate(other, 120))),
        };
        Ok(found)
    }
}

fn functions() -> Vec<FunctionInfo> {
    let path = json!({ "type": "string", "description": "A directory or file from the top; default everywhere" });
    let max = json!({ "type": "integer", "minimum": 1, "maximum": MATCHES_MAX, "default": MATCHES_DEFAULT });
    let glob = |what: &str| json!({ "type": "string", "maxLength": PATTERN_BYTES_MAX, "description": what });
    vec![
        FunctionInfo::of(
            "text",
            "Lines that match a regular expression (Rust's syntax: no look-around, no back-references)",
            EffectClass::ReadOnly,
            json!({
                "pattern": { "type": "string", "minLength": 1, "maxLength": PATTERN_BYTES_MAX },
                "literal": { "type": "boolean", "description": "The pattern is plain text" },
                "ignore_case": { "type": "boolean" },
                "whole_words": { "type": "boolean" },
                "path": path.clone(),
                "files": glob("Only files whose path matches, such as `**/*.rs`"),
                "context_lines": { "type": "integer", "minimum": 0, "maximum": CONTEXT_LINES_MAX },
                "matches_max": max.clone(),
            }),
            &["pattern"],
        ),
        FunctionInfo::of(
            "names",
            "Paths of files that match a pattern such as `src/**/*.rs`",
            EffectClass::ReadOnly,
            json!({ "files": glob("Such as `**/*.rs`; default all"), "path": path, "matches_max": max }),
            &[],
        ),
    ]
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AskText {
    pattern: String,
    #[serde(default)]
    literal: bool,
    #[serde(default)]
    ignore_case: bool,
    #[serde(default)]
    whole_words: bool,
    #[serde(default)]
    path: String,
    #[serde(default)]
    files: String,
    #[serde(default)]
    context_lines: usize,
    matches_max: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AskNames {
    #[serde(default)]
    files: String,
    #[serde(default)]
    path: String,
    matches_max: Option<usize>,
}

/// A valid search for text.
struct Text {
    matcher: RegexMatcher,
    files: Option<GlobMatcher>,
    under: String,
    context_lines: usize,
    matches_max: usize,
}

/// A valid search for names.
struct Names {
    files: Option<GlobMatcher>,
    under: String,
    matches_max: usize,
}

/// The results.
#[derive(Default, Serialize)]
struct Found {
    matches: Vec<Match>,
    files_searched: u64,
    left_out: LeftOut,
    /// The reason why there may be more; none: these are all.
    stopped_at: Option<&'static str>,
    #[serde(skip)]
    bytes: usize,
}

#[derive(Default, Serialize)]
struct LeftOut {
    binary: u64,
    large: u64,
    unreadable: u64,
    links_and_others: u64,
}

#[derive(Serialize)]
struct Match {
    path: String,
    line: u64,
    text: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_context: bool,
}

impl Text {
    fn check(asked: AskText) -> Result<Self, ToolError> {
        at_most("pattern_bytes_max", asked.pattern.len(), PATTERN_BYTES_MAX)?;
        if asked.pattern.is_empty() {
            return Err(invalid("the pattern is empty"));
        }
        let matcher = RegexMatcherBuilder::new()
            .fixed_strings(asked.literal)
            .case_insensitive(asked.ignore_case)
            .word(asked.whole_words)
            .line_terminator(Some(b'\n'))
            .size_limit(COMPILED_BYTES_MAX)
            .dfa_size_limit(COMPILED_BYTES_MAX)
            .nest_limit(50)
            .build(&asked.pattern)
            .map_err(|error| {
                invalid(format!("the pattern cannot be searched for: {}", truncate(&error.to_string(), 300)))
            })?;
        Ok(Self {
            matcher,
            files: glob(&asked.files)?,
            under: path(&asked.path)?,
            context_lines: asked.context_lines.min(CONTEXT_LINES_MAX),
            matches_max: asked.matches_max.unwrap_or(MATCHES_DEFAULT).clamp(1, MATCHES_MAX),
        })
    }

    fn run(&self, place: &ToolRoot) -> Result<ToolOutput, ToolError> {
        let started = Instant::now();
        let mut found = Found::default();
        let mut searcher = SearcherBuilder::new()
            .line_number(true)
            .heap_limit(Some(usize::try_from(FILE_BYTES_MAX).unwrap_or(usize::MAX)))
            .binary_detection(BinaryDetection::quit(0))
            .before_context(self.context_lines)
            .after_context(self.context_lines)
            .build();
        let mut look = |file: &Browsed<'_>| {
            if started.elapsed() > SEARCH_MAX {
                found.stopped_at = Some("seconds_max");
            } else if self.files.as_ref().is_none_or(|files| files.is_match(file.path)) {
                self.file(&mut searcher, file, &mut found);
            }
            if found.stopped_at.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let project = place.project().map_err(of_tree)?;
        let others = place.tree().browse(&project, &self.under, &mut look).map_err(of_tree)?;
        found.left_out.links_and_others = others;
        Ok(found.told())
    }

    fn file(&self, searcher: &mut Searcher, file: &Browsed<'_>, found: &mut Found) {
        if file.bytes > FILE_BYTES_MAX {
            found.left_out.large += 1;
            return;
        }
        let Ok(open) = file.open() else {
            found.left_out.unreadable += 1;
            return;
        };
        found.files_searched += 1;
        // The file may have grown since it was listed.
        let bounded = std::io::Read::take(open, FILE_BYTES_MAX);
        let sink = Lines { path: file.path, matches_max: self.matches_max, found };
        if searcher.search_reader(&self.matcher, bounded, sink).is_err() {
            found.left_out.unreadable += 1;
        }
    }
}

impl Names {
    fn check(asked: AskNames) -> Result<Self, ToolError> {
        let matches_max = asked.matches_max.unwrap_or(MATCHES_DEFAULT).clamp(1, MATCHES_MAX);
        Ok(Self { files: glob(&asked.files)?, under: path(&asked.path)?, matches_max })
    }

    fn run(&self, place: &ToolRoot) -> Result<ToolOutput, ToolError> {
        let (mut names, mut bytes, mut stopped_at) = (Vec::new(), 0, None);
        let mut look = |file: &Browsed<'_>| {
            if self.files.as_ref().is_some_and(|files| !files.is_match(file.path)) {
                return ControlFlow::Continue(());
            }
            bytes += file.path.len();
            stopped_at = match () {
                () if names.len() == self.matches_max => Some("matches_max"),
                () if bytes > LINES_BYTES_MAX => Some("bytes_max"),
                () => None,
            };
            if stopped_at.is_some() {
                return ControlFlow::Break(());
            }
            names.push(json!({ "path": file.path, "bytes": file.bytes }));
            ControlFlow::Continue(())
        };
        let project = place.project().map_err(of_tree)?;
        place.tree().browse(&project, &self.under, &mut look).map_err(of_tree)?;
        let output = json!({ "files": names, "stopped_at": stopped_at });
        Ok(ToolOutput { output: output.to_string(), truncated: stopped_at.is_some() })
    }
}

impl Found {
    fn told(self) -> ToolOutput {
        let truncated = self.stopped_at.is_some();
        // Texts, numbers and lists always have a JSON form.
        ToolOutput { output: serde_json::to_string(&self).unwrap_or_default(), truncated }
    }
}

/// Collects lines up to the cap.
struct Lines<'a> {
    path: &'a str,
    matches_max: usize,
    found: &'a mut Found,
}

impl Lines<'_> {
    fn take(&mut self, line: Option<u64>, bytes: &[u8], is_context: bool) -> bool {
        let matches = self.found.matches.iter().filter(|one| !one.is_context).count();
        if !is_context && matches == self.matches_max {
            self.found.stopped_at = Some("matches_max");
            return false;
        }
        let text = String::from_utf8_lossy(bytes);
        let text = truncate(text.trim_end_matches(['\n', '\r']), LINE_BYTES_MAX);
        self.found.bytes += text.len() + self.path.len();
        if self.found.bytes > LINES_BYTES_MAX {
            self.found.stopped_at = Some("bytes_max");
            return false;
        }
        self.found.matches.push(Match { path: self.path.to_owned(), line: line.unwrap_or(0), text, is_context });
        true
    }
}

impl Sink for Lines<'_> {
    type Error = std::io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, Self::Error> {
        Ok(self.take(found.line_number(), found.bytes(), false))
    }

    fn context(&mut self, _: &Searcher, found: &SinkContext<'_>) -> Result<bool, Self::Error> {
        Ok(self.take(found.line_number(), found.bytes(), true))
    }

    fn finish(&mut self, _: &Searcher, end: &SinkFinish) -> Result<(), Self::Error> {
        if end.binary_byte_offset().is_some() {
            self.found.left_out.binary += 1;
        }
        Ok(())
    }
}

fn glob(text: &str) -> Result<Option<GlobMatcher>, ToolError> {
    if text.is_empty() {
        return Ok(None);
    }
    at_most("pattern_bytes_max", text.len(), PATTERN_BYTES_MAX)?;
    let glob = GlobBuilder::new(text).literal_separator(true).build();
    let glob =
        glob.map_err(|error| invalid(format!("`files` is no pattern: {}", truncate(&error.to_string(), 300))))?;
    Ok(Some(glob.compile_matcher()))
}
