//! Trees and commits, as the user's own `git` sees them.

mod checkout;
mod commits;
mod ignored;
mod merges;
mod patches;
mod projects;

use crate::repo::Repo;
use expect_test::Expect;
use longhaul_worktree::{ChangeKind, Tree, TreeError, UserRepository};

/// The text of an error, with the parts that differ between runs replaced.
#[track_caller]
fn check_error<T>(repo: &Repo, result: Result<T, TreeError>, expected: Expect) {
    let Err(error) = result else { panic!("it was not refused") };
    let text = error.to_string().replace(&repo.dir.path().canonicalize().unwrap().display().to_string(), "DIR");
    let mut words: Vec<String> = Vec::new();
    for word in text.replace(&repo.dir.path().display().to_string(), "DIR").split(' ') {
        let hex: String = word.chars().filter(char::is_ascii_hexdigit).collect();
        words.push(if hex.len() == 40 { word.replace(&hex, "ID") } else { word.to_owned() });
    }
    expected.assert_eq(&words.join(" "));
}

/// `A path`, `M path` and `D path`.
fn listed(tree: &Tree, project: &UserRepository, parent: &str) -> Vec<String> {
    let letter = |kind| match kind {
        ChangeKind::Added => "A",
        ChangeKind::Modified => "M",
        ChangeKind::Deleted => "D",
    };
    let changes = tree.changes(project, parent).unwrap();
    changes.iter().map(|change| format!("{} {}", letter(change.kind), change.path)).collect()
}
