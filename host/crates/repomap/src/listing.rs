//! The list of files, by directory. A directory that does not fit becomes one line with the number of its files.

use crate::input::SourceFile;
use crate::text::{plain, tokens};
use std::collections::BTreeMap;

/// A directory: its own files, and those below.
#[derive(Default)]
struct Directory<'a> {
    files: Vec<&'a str>,
    below: BTreeMap<&'a str, Directory<'a>>,
    count: usize,
}

/// Deepest directory that has a line of its own.
const DEPTH_MAX: usize = 24;

/// The list, within a number of tokens as far as the first lines allow.
pub(crate) fn text(files: &[&SourceFile], left_out: usize, tokens_max: usize) -> String {
    let mut top = Directory::default();
    for file in files {
        top.put(&file.path, 0);
    }
    let more = if left_out > 0 { format!(", and {left_out} that are left out here") } else { String::new() };
    let mut text = format!("{} files{more}:\n", files.len());
    let mut room = tokens_max.saturating_sub(tokens(&text));
    // Open directories list their files and directories; the others have one line each. Breadth first, since the top is
    // the most informative.
    let mut lines: Vec<Line<'_, '_>> = vec![Line { path: String::new(), directory: &top, open: false }];
    let mut next = 0;
    while next < lines.len() {
        let (path, directory) = (lines[next].path.clone(), lines[next].directory);
        let within: Vec<Line<'_, '_>> = directory
            .below
            .iter()
            .map(|(name, below)| Line { path: format!("{path}{}/", plain(name)), directory: below, open: false })
            .collect();
        let opened = Line { path: path.clone(), directory, open: true };
        let cost: usize = within.iter().map(|line| tokens(&line.text())).sum::<usize>() + tokens(&opened.text());
        let cost = cost.saturating_sub(tokens(&lines[next].text()));
        if cost <= room {
            room -= cost;
            lines[next] = opened;
            lines.extend(within);
        }
        next += 1;
    }
    lines.sort_by(|a, b| a.path.cmp(&b.path));
    text.extend(lines.iter().map(Line::text));
    text
}

struct Line<'a, 'd> {
    path: String,
    directory: &'d Directory<'a>,
    open: bool,
}

impl Line<'_, '_> {
    fn text(&self) -> String {
        let path = if self.path.is_empty() { "./" } else { &self.path };
        if !self.open {
            return format!("{path} ({} files{})\n", self.directory.count, self.directory.endings());
        }
        if self.directory.files.is_empty() {
            return String::new();
        }
        let names: Vec<String> = self.directory.files.iter().map(|name| plain(name)).collect();
        format!("{path} {}\n", names.join(" "))
    }
}

impl<'a> Directory<'a> {
    fn put(&mut self, path: &'a str, depth: usize) {
        self.count += 1;
        match path.split_once('/') {
            Some((name, rest)) if depth < DEPTH_MAX => self.below.entry(name).or_default().put(rest, depth + 1),
            _ => self.files.push(path),
        }
    }

    /// The most frequent extensions among its own files.
    fn endings(&self) -> String {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for name in &self.files {
            if let Some((_, extension)) = name.rsplit_once('.').filter(|(stem, it)| !stem.is_empty() && it.len() <= 8) {
                *counts.entry(extension).or_default() += 1;
            }
        }
        let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
        counts.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        let shown: Vec<String> = counts.iter().take(2).map(|(extension, _)| format!(".{}", plain(extension))).collect();
        if shown.is_empty() { String::new() } else { format!(", {}", shown.join(" ")) }
    }
}
