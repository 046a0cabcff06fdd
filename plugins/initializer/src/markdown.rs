//! Features that the goal writes itself, as sections of its Markdown.
//!
//! ````text
//! ## Feature: Sum of squares
//! - id: sum-of-squares
//! - file: squares.py
//! - depends on: setup, numbers
//! Write `sum_of_squares(n)`.
//! ```python check squares
//! from squares import sum_of_squares
//! assert sum_of_squares(3) == 14
//! ```
//! ````
//!
//! A section ends at the next heading of level one or two. Known lines (`- id:`, `- priority:`,
//! `- category:`, `- depends on:`, `- file:`, `- agent:`, `- on failure:`, `- check:`,
//! `- criterion:`) count at the start of a line and outside of fences; everything else is the
//! instruction. A line that looks like a known one and is none (`- prio: 9`) is refused: directly below
//! the heading every `- word:`, further down one that is close to a known line. What is written wrong is
//! a question with its line, never a guess.

use longhaul_sdk::planner::{CheckBody, CheckSpec, OnFailure, PlanError, PlanStep};

use crate::graph;

/// The lines that mean something to us.
const KEYS: [&str; 9] =
    ["id", "priority", "category", "depends on", "file", "agent", "on failure", "check", "criterion"];

/// Words of a line directly below a heading that is taken for a known one written wrong.
const KEY_WORDS_MAX: usize = 2;

/// True when the goal writes its features.
pub(crate) fn has_features(text: &str) -> bool {
    let mut fence = Fence::default();
    text.lines().any(|line| !fence.holds(line) && feature_title(line).is_some())
}

/// The features that `text` writes, in its order; none when it writes none.
pub(crate) fn features(text: &str) -> Result<Vec<PlanStep>, PlanError> {
    let mut steps: Vec<PlanStep> = Vec::new();
    let mut places: Vec<usize> = Vec::new();
    for section in sections(text) {
        let mut step = section.read().map_err(PlanError::Unclear)?;
        if step.id.is_empty() {
            step.id = graph::free_id(&graph::slug(&step.title), |id| steps.iter().any(|other| other.id == id));
        }
        steps.push(step);
        places.push(section.number);
    }
    let at = |fault: graph::Fault| {
        let place = fault.step.and_then(|step| places.get(step)).map(|line| format!("line {line} of the goal: "));
        PlanError::Unclear(format!("{}{fault}", place.unwrap_or_default()))
    };
    graph::check("feature", &steps, &[]).map_err(at)?;
    Ok(steps)
}

/// The lines below one `## Feature:` heading, with their numbers in the goal.
struct Section<'a> {
    title: &'a str,
    /// The line of the heading.
    number: usize,
    lines: Vec<(usize, &'a str)>,
}

fn sections(text: &str) -> Vec<Section<'_>> {
    let mut sections: Vec<Section<'_>> = Vec::new();
    let mut fence = Fence::default();
    let mut is_in_feature = false;
    for (number, line) in (1..).zip(text.lines()) {
        let is_fenced = fence.holds(line);
        if let Some(title) = feature_title(line).filter(|_| !is_fenced) {
            sections.push(Section { title, number, lines: Vec::new() });
            is_in_feature = true;
        } else if !is_fenced && (line.starts_with("# ") || line.starts_with("## ")) {
            is_in_feature = false;
        } else if let (true, Some(section)) = (is_in_feature, sections.last_mut()) {
            section.lines.push((number, line));
        }
    }
    sections
}

fn feature_title(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("## ")?.trim();
    let (word, title) = rest.split_once(':')?;
    word.trim().eq_ignore_ascii_case("feature").then(|| title.trim())
}

/// The fenced block at the present line, its fences included.
#[derive(Default)]
struct Fence {
    /// The backticks or tildes that opened the block we are in.
    open: Option<String>,
}

impl Fence {
    fn holds(&mut self, line: &str) -> bool {
        let mark = fence_mark(line);
        match (&self.open, mark) {
            (None, None) => false,
            (None, Some(mark)) => {
                self.open = Some(mark.to_owned());
                true
            }
            (Some(open), mark) => {
                let closes = mark.is_some_and(|mark| mark.starts_with(open.as_str()) && line.trim() == mark);
                if closes {
                    self.open = None;
                }
                true
            }
        }
    }
}

/// The run of at least three backticks or tildes that a line starts with.
fn fence_mark(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let first = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = line.chars().take_while(|c| *c == first).count();
    (length >= 3).then(|| &line[..length])
}

/// A section while it is read.
struct Draft {
    step: PlanStep,
    instruction: Vec<String>,
    file: Option<String>,
    criteria: Vec<String>,
    seen: Vec<&'static str>,
    /// True as long as only known lines came.
    is_head: bool,
}

impl Section<'_> {
    fn read(&self) -> Result<PlanStep, String> {
        if self.title.is_empty() {
            return Err(format!("line {} of the goal: a `## Feature:` heading has no title; give it one", self.number));
        }
        let mut draft = Draft::new(self.title);
        let mut lines = self.lines.iter();
        while let Some(&(number, line)) = lines.next() {
            let Some(mark) = fence_mark(line) else {
                draft.line(number, line)?;
                continue;
            };
            let mut block = Vec::new();
            let is_end = |next: &str| next.trim() == fence_mark(next).unwrap_or("-") && next.trim().starts_with(mark);
            let mut end = None;
            for &(_, next) in lines.by_ref() {
                if is_end(next) {
                    end = Some(next);
                    break;
                }
                block.push(next);
            }
            draft.block(number, line, &block, end)?;
        }
        let place = format!("line {} of the goal, in the feature `{}`", self.number, self.title);
        draft.finish().map_err(|wrong| format!("{place}: {wrong}"))
    }
}

impl Draft {
    fn new(title: &str) -> Self {
        Self {
            step: PlanStep {
                id: String::new(),
                title: title.to_owned(),
                instruction: String::new(),
                category: "functional".to_owned(),
                priority: 5,
                agent: None,
                criteria: Vec::new(),
                checks: Vec::new(),
                depends_on: Vec::new(),
                on_failure: OnFailure::Replan,
            },
            instruction: Vec::new(),
            file: None,
            criteria: Vec::new(),
            seen: Vec::new(),
            is_head: true,
        }
    }

    fn line(&mut self, number: usize, line: &str) -> Result<(), String> {
        let place = format!("line {number} of the goal, in the feature `{}`", self.step.title);
        if let Some((key, value)) = known_line(line) {
            return self.known(key, value).map_err(|wrong| format!("{place}: {wrong}"));
        }
        if let Some(wrong) = unknown_line(line, self.is_head) {
            return Err(format!("{place}: {wrong}"));
        }
        // Empty lines may stand between the heading and its first known line.
        let is_begun = !(self.seen.is_empty() && self.criteria.is_empty() && self.step.checks.is_empty());
        self.is_head &= line.trim().is_empty() && !is_begun;
        self.instruction.push(line.to_owned());
        Ok(())
    }

    fn known(&mut self, key: &'static str, value: &str) -> Result<(), String> {
        if value.is_empty() {
            return Err(format!("`- {key}:` has no value; write one or remove the line"));
        }
        match key {
            "check" => {
                self.check(value, CheckBody::Native(value.to_owned()))?;
            }
            "criterion" => self.criteria.push(value.to_owned()),
            _ if self.seen.contains(&key) => {
                return Err(format!("there are two `- {key}:` lines; keep one"));
            }
            _ => {
                self.seen.push(key);
                self.single(key, value)?;
            }
        }
        Ok(())
    }

    /// A line that a feature has at most once.
    fn single(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "id" => self.step.id = graph::valid_id(value)?,
            "priority" => self.step.priority = graph::valid_priority(value)?,
            "category" => self.step.category = graph::valid_category(value)?,
            "depends on" => self.step.depends_on = id_list(value)?,
            "file" => self.file = Some(value.trim_matches('`').to_owned()),
            "agent" => self.step.agent = Some(value.to_owned()),
            _ => self.step.on_failure = on_failure(value)?,
        }
        Ok(())
    }

    fn block(&mut self, number: usize, opening: &str, block: &[&str], end: Option<&str>) -> Result<(), String> {
        self.is_head = false;
        let Some(name) = check_name(opening) else {
            self.instruction.push(opening.to_owned());
            self.instruction.extend(block.iter().map(|line| (*line).to_owned()));
            self.instruction.extend(end.map(str::to_owned));
            return Ok(());
        };
        let place = format!("line {number} of the goal, in the feature `{}`", self.step.title);
        if end.is_none() {
            return Err(format!("{place}: the check is not closed; end it with a line of ```"));
        }
        let name = name.map_err(|wrong| format!("{place}: {wrong}"))?;
        let source = format!("{}\n", block.join("\n"));
        self.check(name, CheckBody::python(source)).map_err(|wrong| format!("{place}: {wrong}"))
    }

    fn check(&mut self, name: &str, body: CheckBody) -> Result<(), String> {
        if self.step.checks.iter().any(|check| check.name == name) {
            return Err(format!("there are two checks `{name}`; give each its own name"));
        }
        self.step.checks.push(CheckSpec { name: name.to_owned(), body });
        Ok(())
    }

    fn finish(self) -> Result<PlanStep, String> {
        let mut step = self.step;
        step.instruction = self.instruction.join("\n").trim().to_owned();
        if step.instruction.is_empty() {
            step.instruction = step.title.clone();
        }
        if let Some(file) = self.file {
            // A step has no field for it; agents read this line.
            step.instruction.push_str(&format!("\n\nFile: {file}"));
        }
        step.criteria = graph::criteria(&self.criteria, &step.checks)?;
        Ok(step)
    }
}

/// The key and the value of a line that means something to us.
fn known_line(line: &str) -> Option<(&'static str, &str)> {
    let (key, value) = keyed(line)?;
    let known = KEYS.into_iter().find(|known| *known == key)?;
    Some((known, value))
}

/// The fault of a line that resembles a known one. `is_head`: it stands directly below the heading.
fn unknown_line(line: &str, is_head: bool) -> Option<String> {
    let (key, _) = keyed(line)?;
    let is_short = key.split(' ').count() <= KEY_WORDS_MAX && key.chars().all(|c| c.is_ascii_alphabetic() || c == ' ');
    if key.is_empty() || !is_short {
        return None;
    }
    let written = line.split(':').next().unwrap_or_default();
    match KEYS.into_iter().find(|known| is_close(&key, known)) {
        Some(known) => {
            Some(format!("`{written}:` means nothing; did you mean `- {known}:`? Indent it to make it text"))
        }
        None if is_head => {
            let known: Vec<_> = KEYS.into_iter().map(|known| format!("`- {known}:`")).collect();
            Some(format!("`{written}:` means nothing; there are {}. Indent it to make it text", known.join(", ")))
        }
        None => None,
    }
}

/// A line `- KEY: VALUE`, the key as it is compared.
fn keyed(line: &str) -> Option<(String, &str)> {
    let (key, value) = line.strip_prefix("- ")?.split_once(':')?;
    // `- https://...` has no key.
    let is_address = value.starts_with("//");
    (!is_address).then(|| (key.trim().to_ascii_lowercase().replace(['_', '-'], " "), value.trim()))
}

/// True when a word was probably meant for a key: its beginning, the key with another ending, or one slip away.
fn is_close(word: &str, key: &str) -> bool {
    const SAME_CHARS_MIN: usize = 4;
    let same = word.bytes().zip(key.bytes()).take_while(|(one, other)| one == other).count();
    let is_beginning = same == word.len();
    let has_another_ending = same * 4 >= key.len() * 3 && word.len() <= key.len() + 1;
    (same >= SAME_CHARS_MIN && (is_beginning || has_another_ending)) || is_one_slip(word, key)
}

/// One letter more, less or other, or two that changed places, in words of at least four letters.
fn is_one_slip(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let (short, long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    if short.len() < 4 || long.len() - short.len() > 1 {
        return false;
    }
    let same = short.iter().zip(long).take_while(|(one, other)| one == other).count();
    let rest = |bytes: &[u8], from: usize| bytes.get(from..).unwrap_or_default().to_vec();
    if short.len() < long.len() {
        return rest(short, same) == rest(long, same + 1);
    }
    let swapped = same + 1 < short.len() && short[same] == long[same + 1] && short[same + 1] == long[same];
    rest(short, same + 1) == rest(long, same + 1) || (swapped && rest(short, same + 2) == rest(long, same + 2))
}

/// The name in a line such as "```python check NAME"; none when the block is no check.
fn check_name(opening: &str) -> Option<Result<&str, String>> {
    let info = opening.trim_start().trim_start_matches(['`', '~']);
    let mut words = info.split_whitespace();
    if (words.next(), words.next()) != (Some("python"), Some("check")) {
        return None;
    }
    let only = words.next().filter(|_| words.next().is_none());
    Some(only.ok_or_else(|| "a check has one name: ```python check NAME".to_owned()))
}

fn id_list(value: &str) -> Result<Vec<String>, String> {
    let ids = value.split(',').map(str::trim).filter(|id| !id.is_empty() && *id != "none");
    ids.map(graph::valid_id).collect()
}

fn on_failure(value: &str) -> Result<OnFailure, String> {
    let mut words = value.split_whitespace();
    let count = |word: Option<&str>| word.map_or(Some(1), |word| word.parse().ok());
    match (words.next(), words.next()) {
        (Some("skip"), None) => Ok(OnFailure::Skip),
        (Some("replan"), None) => Ok(OnFailure::Replan),
        (Some("abort"), None) => Ok(OnFailure::Abort),
        (Some("retry"), times) if count(times).is_some() => Ok(OnFailure::Retry(count(times).unwrap_or(1))),
        _ => Err(format!("`{value}` is not one of `retry N`, `skip`, `replan`, `abort`")),
    }
}

/// One more word for a criterion: `text (check: NAME)` names the check that decides it.
pub(crate) fn criterion_check(text: &str) -> (&str, Option<&str>) {
    let named = text.strip_suffix(')').and_then(|text| text.rsplit_once("(check:"));
    named.map_or((text, None), |(text, name)| (text.trim_end(), Some(name.trim())))
}

#[cfg(test)]
mod tests;
