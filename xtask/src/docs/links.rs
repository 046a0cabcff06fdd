//! The texts for users as they stand: their links, and the place of each page in the table of contents.
//!
//! Addresses of the web are not looked at: a check must not depend on what others serve. The shell blocks of pages are
//! run by the test program `scenarios` of the host.

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

/// Texts by their paths from the top of the repository.
pub(crate) struct Book(BTreeMap<PathBuf, Page>);

#[derive(Default)]
struct Page {
    /// Targets with the numbers of their lines.
    links: Vec<(usize, String)>,
    anchors: BTreeSet<String>,
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

    /// Links that lead nowhere, and pages outside of the table of contents.
    pub(crate) fn faults(&self, root: &Path) -> Vec<String> {
        let mut faults = Vec::new();
        for (name, page) in &self.0 {
            for (line, link) in &page.links {
                if let Some(fault) = self.fault_of(root, name, link) {
                    faults.push(format!("{}:{line}: `{link}` {fault}", name.display()));
                }
            }
        }
        let summary = self.0.get(Path::new(SUMMARY));
        let links = summary.into_iter().flat_map(|page| &page.links).map(|(_, link)| Path::new(BOOK).join(link));
        let listed: BTreeSet<PathBuf> = links.collect();
        let pages = self.0.keys().filter(|page| page.starts_with(BOOK) && *page != Path::new(SUMMARY));
        let missing = pages.filter(|page| !listed.contains(*page));
        faults.extend(missing.map(|page| format!("{}: {SUMMARY} does not list it", page.display())));
        faults
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
fn links_are_found_outside_of_code() {
    let text = "# A `name` of [it](a.md#b)\n`[no](link.md)` [`code`](b.md)\n```sh\n[x](y)\n```\n````text\n```sh\n[x](y)\n````\n[c](c.md)\n";
    let links = [(1, "a.md#b"), (2, "b.md"), (10, "c.md")].map(|(line, link)| (line, link.to_owned()));
    assert_eq!(Page::read(text).links, links);
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
