//! Paths as callers write them: relative, inside, and away from what is not theirs.

use std::fmt;

/// Longest path, in bytes: what common file systems take.
const PATH_BYTES_MAX: usize = 1_024;

/// Starts the name of a file that is being written.
pub(crate) const TEMPORARY: &str = ".longhaul-tmp-";

/// A path that was looked at: no component is empty, `.`, `..` or reserved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RelativePath {
    parts: Vec<String>,
}

impl RelativePath {
    /// A path of a file.
    pub(crate) fn file(text: &str) -> Result<Self, String> {
        let path = Self::directory(text)?;
        if path.parts.is_empty() || text.ends_with('/') {
            return Err(format!("the path `{text}` names no file"));
        }
        Ok(path)
    }

    /// A path of a directory; empty or `.` is the granted directory itself.
    pub(crate) fn directory(text: &str) -> Result<Self, String> {
        if text.len() > PATH_BYTES_MAX {
            return Err(format!("the path is longer than {PATH_BYTES_MAX} bytes"));
        }
        if text.starts_with('/') || text.contains('\\') || is_drive(text) {
            return Err(format!("the path `{text}` is not relative with `/`; leave out the start"));
        }
        if text.chars().any(char::is_control) {
            return Err("the path has a control character".to_owned());
        }
        let mut parts = Vec::new();
        for part in text.split('/').filter(|part| !matches!(*part, "" | ".")) {
            check_part(part)?;
            parts.push(part.to_owned());
        }
        Ok(Self { parts })
    }

    pub(crate) fn join(&self, name: &str) -> Self {
        let mut parts = self.parts.clone();
        parts.push(name.to_owned());
        Self { parts }
    }

    pub(crate) fn parts(&self) -> &[String] {
        &self.parts
    }

    /// The directory and the name in it; the name of the granted directory itself is empty.
    pub(crate) fn split(&self) -> (&[String], &str) {
        self.parts.split_last().map_or((&[], ""), |(name, dir)| (dir, name))
    }

    pub(crate) fn name(&self) -> &str {
        self.split().1
    }
}

impl fmt::Display for RelativePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.parts.is_empty() { f.write_str(".") } else { f.write_str(&self.parts.join("/")) }
    }
}

/// True for names that are left out of lists and refused in paths: git's own, whose hooks and
/// settings would run outside of the sandbox, and files that are being written.
pub(crate) fn is_reserved(name: &str) -> bool {
    name.eq_ignore_ascii_case(".git") || name.starts_with(TEMPORARY)
}

fn check_part(part: &str) -> Result<(), String> {
    if part == ".." {
        return Err("the path has `..`; paths stay inside the granted directory".to_owned());
    }
    if is_reserved(part) {
        return Err(format!("`{part}` is reserved; no tool reads or writes it"));
    }
    Ok(())
}

fn is_drive(text: &str) -> bool {
    matches!(text.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_paths_are_taken() {
        for (text, expected) in [
            ("a.py", "a.py"),
            ("./a//b/c.txt", "a/b/c.txt"),
            ("..a/b..", "..a/b.."),
            (".gitignore", ".gitignore"),
            ("ä/ö", "ä/ö"),
        ] {
            let path = RelativePath::file(text).map(|path| path.to_string());
            assert_eq!(path, Ok(expected.to_owned()));
        }
        assert_eq!(RelativePath::directory("").map(|path| path.to_string()), Ok(".".to_owned()));
    }

    #[test]
    fn everything_else_is_refused_with_its_reason() {
        let long = "x".repeat(1_025);
        for (text, expected) in [
            ("/etc/passwd", "not relative"),
            ("C:/x", "not relative"),
            ("a\\b", "not relative"),
            ("../x", "`..`"),
            ("a/../../x", "`..`"),
            ("a/..", "`..`"),
            ("a\0b", "control character"),
            ("a\nb", "control character"),
            (".git/config", "reserved"),
            ("sub/.GIT/hooks/pre-commit", "reserved"),
            (".longhaul-tmp-1", "reserved"),
            ("", "names no file"),
            (".", "names no file"),
            ("a/", "names no file"),
            (long.as_str(), "longer than 1024"),
        ] {
            let wrong = RelativePath::file(text).expect_err(text);
            assert!(wrong.contains(expected), "{text}: {wrong}");
        }
    }
}
