//! The chapters of the book, which the program carries, by the names under which a person asks for them.
//!
//! The build script lists the pages of `docs/book`; their order and titles are those of `SUMMARY.md`.

use super::layout::wrapped;
use longhaul_config::toml_text;

/// Each page of the book: its path, and its text.
const PAGES: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/chapters.rs"));

const SUMMARY: &str = "SUMMARY.md";

/// A chapter of the book.
#[derive(Clone, Copy, Debug)]
pub(super) struct Topic {
    /// The heading above it in the summary. Empty before the first one.
    part: &'static str,
    /// Its path without `.md`, such as `guides/ask`.
    path: &'static str,
    text: &'static str,
}

impl Topic {
    /// The last part of its path, such as `ask`.
    fn short(&self) -> &'static str {
        self.path.rsplit('/').next().unwrap_or(self.path)
    }

    pub(super) fn text(&self) -> &'static str {
        self.text
    }
}

/// All chapters, in the order of the book.
pub(super) fn all() -> Vec<Topic> {
    let text_of = |path: &str| PAGES.iter().find(|(page, _)| *page == path).map(|(_, text)| *text);
    let (mut topics, mut part) = (Vec::new(), "");
    for line in text_of(SUMMARY).unwrap_or_default().lines() {
        if let Some(heading) = line.strip_prefix("# ") {
            part = if heading == "Summary" { "" } else { heading };
        } else if let Some((_, link)) = line.split_once("](")
            && let Some((page, _)) = link.split_once(')')
            && let (Some(path), Some(text)) = (page.strip_suffix(".md"), text_of(page))
        {
            topics.push(Topic { part, path, text });
        }
    }
    topics
}

/// The chapter of this name: the whole path, or its last part.
pub(super) fn find(name: &str) -> Option<Topic> {
    let name = name.strip_suffix(".md").unwrap_or(name);
    let topics = all();
    let whole = topics.iter().find(|topic| topic.path == name);
    whole.or_else(|| topics.iter().find(|topic| topic.short() == name)).copied()
}

/// The name for a chapter that finds it: the last part of its path, unless a command or an earlier chapter has it.
fn name_of(topic: &Topic, commands: &[String]) -> &'static str {
    let short = topic.short();
    let is_command = commands.iter().any(|command| command == short);
    let is_found = find(short).is_some_and(|found| found.path == topic.path);
    if is_found && !is_command { short } else { topic.path }
}

/// The names of all chapters, by their parts of the book.
pub(super) fn listed(commands: &[String], columns: usize) -> String {
    let mut text = "Chapters of the book, for `longhaul help TOPIC`:\n".to_owned();
    let topics = all();
    for part in topics.chunk_by(|one, next| one.part == next.part) {
        let names: Vec<&str> = part.iter().map(|topic| name_of(topic, commands)).collect();
        let title = part.first().map_or("", |topic| topic.part);
        let title = if title.is_empty() { "Overview" } else { title };
        text += &wrapped(&names.join(" "), &format!("  {title:<16}"), "                  ", columns);
    }
    text
}

/// The name of a command or chapter that is most like this one.
pub(super) fn nearest(name: &str, commands: &[String]) -> Option<String> {
    let topics = all();
    let chapters = topics.iter().map(|topic| name_of(topic, commands));
    toml_text::nearest(name, commands.iter().map(String::as_str).chain(chapters)).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_of_the_summary_is_carried_and_found_by_its_name() {
        let topics = all();
        assert!(topics.len() > 20, "{}", topics.len());
        let linked = PAGES.iter().find(|(path, _)| *path == SUMMARY).map_or(0, |(_, text)| text.matches("](").count());
        assert_eq!(topics.len(), linked);
        for topic in &topics {
            assert_eq!(find(topic.path).map(|found| found.path), Some(topic.path));
            assert_eq!(find(name_of(topic, &[])).map(|found| found.path), Some(topic.path));
        }
        assert_eq!(find("journal-and-replay").map(|found| found.path), Some("concepts/journal-and-replay"));
    }

    #[test]
    fn a_misspelt_name_gets_the_nearest_one() {
        let commands = ["status".to_owned(), "memory".to_owned()];
        assert_eq!(nearest("statsu", &commands).as_deref(), Some("status"));
        assert_eq!(nearest("efect-classes", &commands).as_deref(), Some("effect-classes"));
        assert_eq!(nearest("zzzzzzzz", &commands), None);
    }

    #[test]
    fn a_chapter_that_a_command_hides_is_listed_with_its_path() {
        let text = listed(&["memory".to_owned()], 80);
        assert!(text.contains("guides/memory"), "{text}");
        assert!(text.contains(" schedules") && !text.contains("guides/schedules"), "{text}");
    }
}
