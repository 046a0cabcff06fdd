//! The pages of the book as they stand: their links, their place in the table of contents, and their shell blocks.
//!
//! Addresses of the web are not looked at: a check must not depend on what others serve.

use super::page::joined;
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The folder of the texts for users; its decisions are for those who change the program.
const FOLDER: &str = "docs";

/// Folders below it that are no part of the book.
const OTHERS: [&str; 2] = ["docs/decisions", "docs/book/theme"];

/// The pages of the book.
const BOOK: &str = "docs/book/src";

/// The table of contents.
const SUMMARY: &str = "docs/book/src/SUMMARY.md";

/// The language of a block that a test can run, and the mark of one that it cannot, with the reason behind it.
const SHELL: &str = "sh";
const NO_TEST: &str = "no-test=";

/// Texts by their paths from the top of the repository.
pub(crate) struct Book(BTreeMap<PathBuf, Page>);

#[derive(Default)]
struct Page {
    /// Targets with the numbers of their lines.
    links: Vec<(usize, String)>,
    anchors: BTreeSet<String>,
    blocks: Vec<Block>,
}

/// A block of the shell.
struct Block {
    line: usize,
    /// The reason why no test runs it.
    reason: Option<String>,
}

impl Book {
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let mut pages = BTreeMap::new();
        let mut folders = vec![root.join(FOLDER)];
        while let Some(folder) = folders.pop() {
            let entries = fs::read_dir(&folder).with_context(|| format!("read `{}`", folder.display()))?;
            for entry in entries {
                let path = entry?.path();
                let name = path.strip_prefix(root).unwrap_or(&path).to_owned();
                if OTHERS.iter().any(|other| name.starts_with(other)) {
                    continue;
                }
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "md" || extension == "txt") {
                    let text = fs::read_to_string(&path).with_context(|| format!("read `{}`", name.display()))?;
                    pages.insert(name, Page::read(&text));
                }
            }
        }
        Ok(Self(pages))
    }

    /// Links that lead nowhere, pages outside of the table of contents, and blocks without a known mark.
    pub(crate) fn faults(&self, root: &Path) -> Vec<String> {
        let mut faults = Vec::new();
        for (name, page) in &self.0 {
            for (line, link) in &page.links {
                if let Some(fault) = self.fault_of(root, name, link) {
                    faults.push(format!("{}:{line}: `{link}` {fault}", name.display()));
                }
            }
            let unexplained = page.blocks.iter().filter(|block| block.reason.as_deref() == Some(""));
            faults.extend(unexplained.map(|block| {
                format!(
                    "{}:{}: write the reason why no test runs it: ```sh,{NO_TEST}REASON",
                    name.display(),
                    block.line
                )
            }));
        }
        let summary = self.0.get(Path::new(SUMMARY));
        let links = summary.into_iter().flat_map(|page| &page.links).map(|(_, link)| Path::new(BOOK).join(link));
        let listed: BTreeSet<PathBuf> = links.collect();
        let pages = self.0.keys().filter(|page| page.starts_with(BOOK) && *page != Path::new(SUMMARY));
        let missing = pages.filter(|page| !listed.contains(*page));
        faults.extend(missing.map(|page| format!("{}: {SUMMARY} does not list it", page.display())));
        faults
    }

    /// The number of shell blocks.
    pub(crate) fn blocks(&self) -> usize {
        self.0.values().map(|page| page.blocks.len()).sum()
    }

    /// The number of those that a test can run.
    pub(crate) fn tested(&self) -> usize {
        self.blocks() - self.untested().count()
    }

    /// The other ones, each with its place and reason.
    pub(crate) fn untested(&self) -> impl Iterator<Item = String> {
        self.0.iter().flat_map(|(name, page)| {
            let blocks = page.blocks.iter().filter_map(|block| Some((block.line, block.reason.as_ref()?)));
            blocks.map(move |(line, reason)| format!("{}:{line}: {reason}", name.display()))
        })
    }

    fn fault_of(&self, root: &Path, page: &Path, link: &str) -> Option<&'static str> {
        if link.contains("://") || link.starts_with("mailto:") {
            return None;
        }
        let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
        let target = if path.is_empty() {
            page.to_owned()
        } else {
            let Some(target) = resolved(&page.parent()?.join(path)) else { return Some("leads out of the repository") };
            target
        };
        if !root.join(&target).exists() {
            return Some("leads to nothing");
        }
        let lacks = !anchor.is_empty() && self.0.get(&target).is_some_and(|page| !page.anchors.contains(anchor));
        lacks.then_some("names no heading of that page")
    }
}

impl Page {
    fn read(text: &str) -> Self {
        let mut page = Self::default();
        let mut fence = "";
        for (at, line) in text.lines().enumerate() {
            let code = line.trim_start();
            if let Some(info) = code.strip_prefix("```") {
                let ticks = &code[..code.len() - info.trim_start_matches('`').len()];
                if fence.is_empty() {
                    fence = ticks;
                    page.block(at + 1, info.trim_start_matches('`'));
                } else if ticks.len() >= fence.len() {
                    fence = "";
                }
                continue;
            }
            if !fence.is_empty() {
                continue;
            }
            if line.starts_with('#') {
                page.anchors.insert(anchor(line.trim_start_matches('#')));
            }
            page.links.extend(links(line).map(|link| (at + 1, link.to_owned())));
        }
        page
    }

    fn block(&mut self, line: usize, info: &str) {
        let (language, mark) = info.split_once(',').map_or((info, None), |(language, mark)| (language, Some(mark)));
        if language == SHELL {
            let reason = mark.map(|mark| mark.strip_prefix(NO_TEST).unwrap_or_default().to_owned());
            self.blocks.push(Block { line, reason });
        }
    }
}

/// The targets of the links of a line; those in code are none.
fn links(line: &str) -> impl Iterator<Item = &str> {
    let prose = line.split('`').step_by(2);
    // The text of a link may be code, so its target is looked for where `](` stands.
    prose.flat_map(|part| part.split("](").skip(1)).filter_map(|rest| rest.split(')').next())
}

/// The anchor that mdBook gives a heading.
fn anchor(heading: &str) -> String {
    let kept = |letter: &char| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_');
    let name: String = joined(heading).chars().filter(kept).collect();
    name.to_lowercase().replace(' ', "-")
}

/// A path without `..`; none where it leads out.
fn resolved(path: &Path) -> Option<PathBuf> {
    let mut found = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => found.push(name),
            Component::CurDir => {}
            Component::ParentDir if found.pop() => {}
            _ => return None,
        }
    }
    Some(found)
}

#[test]
fn links_and_blocks_are_found_outside_of_code() {
    let page = Page::read(
        "# A `name` of [it](a.md#b)\n`[no](link.md)` [`code`](b.md)\n```sh\n[x](y)\n```\n```sh,no-test=asks a model\n```\n\
         ````text\n```sh\n````\n```sh,other\n```\n",
    );
    assert_eq!(page.links, [(1, "a.md#b".to_owned()), (2, "b.md".to_owned())]);
    let reasons: Vec<_> = page.blocks.iter().map(|block| (block.line, block.reason.as_deref())).collect();
    assert_eq!(reasons, [(3, None), (6, Some("asks a model")), (11, Some(""))]);
}

#[test]
fn an_anchor_is_that_of_mdbook() {
    assert_eq!(anchor(" longhaul plugin new"), "longhaul-plugin-new");
    assert_eq!(anchor(" `[run.limits]`"), "runlimits");
}

#[test]
fn a_path_is_resolved_within_the_repository() {
    assert_eq!(resolved(Path::new("docs/book/../x.md")), Some(PathBuf::from("docs/x.md")));
    assert_eq!(resolved(Path::new("docs/../../x.md")), None);
}
