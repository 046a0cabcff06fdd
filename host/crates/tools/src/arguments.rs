//! Shared parsing of the tools' arguments: paths in the tree, and the texts of errors.

use longhaul_core::LimitHit;
use longhaul_core::text::truncate;
use longhaul_core::tool::ToolError;
use longhaul_worktree::TreeError;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// Longest path, in bytes; that of Linux.
const PATH_BYTES_MAX: usize = 4_096;

/// A path from the top of the tree that stays inside: relative, no `..`, nothing of git. Empty is the top.
///
/// It does not follow links; the code that opens the path has to check them.
pub(crate) fn path(text: &str) -> Result<String, ToolError> {
    let refused = |why: &str| Err(invalid(format!("the path `{}` {why}", shown(text))));
    if text.len() > PATH_BYTES_MAX {
        return refused("is too long");
    }
    if text.starts_with('/') {
        return refused("is absolute; write it from the top of the tree");
    }
    if text.chars().any(char::is_control) || text.contains('\\') {
        return refused("has a control character or a backslash");
    }
    let mut names = Vec::new();
    for name in text.split('/') {
        match name {
            "" | "." => {}
            ".." => return refused("has `..`; write it from the top of the tree"),
            name if name.eq_ignore_ascii_case(".git") => return refused("leads into a repository"),
            name => names.push(name),
        }
    }
    Ok(names.join("/"))
}

/// A model's word in a message, on one line and short.
pub(crate) fn shown(text: &str) -> String {
    let plain: String = text
        .chars()
        .take(200)
        .flat_map(|one| if one.is_control() { one.escape_debug().collect() } else { vec![one] })
        .collect();
    truncate(&plain, 200)
}

pub(crate) fn invalid(why: impl std::fmt::Display) -> ToolError {
    ToolError::InvalidArguments(why.to_string())
}

pub(crate) fn failed(why: impl std::fmt::Display) -> ToolError {
    ToolError::Failed(why.to_string())
}

/// An error of the tree as a tool's error; one that the caller's own argument caused is an invalid argument.
pub(crate) fn of_tree(error: TreeError) -> ToolError {
    match error {
        TreeError::Limit { hit, .. } => ToolError::Limit(hit),
        TreeError::NotAHash { .. } | TreeError::NotOfBranch { .. } | TreeError::Ambiguous { .. } => invalid(error),
        other => failed(other),
    }
}

/// Runs blocking work on a thread for it.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| failed(format!("the tool broke: {error}")))?
}

/// The same for at most `ms`. Blocking work cannot be interrupted, so it continues without a reader: `seats` bounds the
/// number of such threads.
pub(crate) async fn blocking_within<T: Send + 'static>(
    ms: u32,
    seats: &Arc<Semaphore>,
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let seated = async {
        let seat = Arc::clone(seats).acquire_owned().await.map_err(failed)?;
        blocking(move || {
            let done = work();
            drop(seat);
            done
        })
        .await
    };
    let done = tokio::time::timeout(Duration::from_millis(ms.into()), seated).await;
    done.map_err(|_| ToolError::TimedOut(ms))?
}

/// Refuses a number above the cap.
pub(crate) fn at_most(name: &str, used: usize, max: usize) -> Result<(), ToolError> {
    if used > max { Err(ToolError::Limit(LimitHit::new(name, used as u64, max as u64))) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_takes_too_long_is_given_up_and_holds_its_seat_as_long_as_it_goes_on() {
        let seats = Arc::new(Semaphore::new(1));
        let (go_on, wait) = std::sync::mpsc::channel::<()>();
        let stuck = blocking_within(20, &seats, move || wait.recv().map_err(failed)).await;
        assert_eq!(stuck, Err(ToolError::TimedOut(20)));
        assert_eq!(blocking_within(20, &seats, || Ok(())).await, Err(ToolError::TimedOut(20)));
        go_on.send(()).unwrap();
        assert_eq!(blocking_within(10_000, &seats, || Ok(7)).await, Ok(7));
    }

    #[test]
    fn a_path_stays_in_the_tree_or_is_refused_with_the_reason() {
        let check = |text: &str, expected: &str| {
            let told = path(text).unwrap_or_else(|error| error.to_string());
            assert!(told.contains(expected), "{text}: {told}");
        };
        check("a//b/./c/", "a/b/c");
        for (text, why) in [
            ("/etc/passwd", "is absolute"),
            ("../x", "has `..`"),
            ("a/../../x", "has `..`"),
            ("a/.GIT/config", "leads into a repository"),
            ("a\0b", "control character"),
            ("a\nb", "control character"),
            ("..\\x", "backslash"),
        ] {
            check(text, why);
        }
    }
}
