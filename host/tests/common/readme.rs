//! READMEs of the repository, and the blocks of commands, source and output that they show.

use super::repository;

/// The README of a folder, such as `sdk/rust`.
#[track_caller]
pub fn of(folder: &str) -> String {
    let path = repository().join(folder).join("README.md");
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The fenced blocks of a kind, in their order.
pub fn blocks(readme: &str, kind: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut lines = readme.lines();
    while let Some(line) = lines.next() {
        let Some(opened) = line.strip_prefix("```") else { continue };
        let block = lines.by_ref().take_while(|line| *line != "```").map(|line| format!("{line}\n")).collect();
        if opened == kind {
            found.push(block);
        }
    }
    found
}

/// The first fenced block of a kind that contains this text.
#[track_caller]
pub fn block_with(readme: &str, kind: &str, part: &str) -> String {
    let found = blocks(readme, kind).into_iter().find(|block| block.contains(part));
    found.unwrap_or_else(|| panic!("no fenced block `{kind}` has `{part}` in it"))
}
