//! The evidence for a pass of a check, as configured or derived from its words.
//!
//! Refuses to guess the programs that a script or a target of `make` starts: a command without a known runner has an
//! exit code as its evidence.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The evidence for a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EvidenceKind {
    /// Tests of pytest by name, and an audit.
    Pytest,
    /// Tests of unittest by name, and an audit.
    Unittest,
    /// Tests of `cargo test` or `cargo nextest run` by name, and an audit.
    Cargo,
    /// Tests of `node --test` by name, and an audit.
    Node,
    /// Tests of `go test` by package and name, and an audit.
    Go,
    /// Test cases of a report in the form of JUnit, none of them skipped; only by name.
    Junit,
    /// An exit code of 0, which the code under test can choose.
    Exit,
}

impl EvidenceKind {
    /// The kind whose runner `argv` starts, also through a wrapper such as `uv run`.
    #[must_use]
    pub fn of_argv(argv: &[String]) -> Self {
        let first = argv.first().map_or("", |word| base_name(word));
        let has = |word: &str| argv.iter().any(|one| one == word);
        if python_module(argv).is_some_and(|at| argv[at] == "unittest") {
            Self::Unittest
        } else if pytest_word(argv).is_some() {
            Self::Pytest
        } else if first == "cargo" && (has("test") || has("t") || has("nextest") && has("run")) {
            Self::Cargo
        } else if first == "node" && has("--test") {
            Self::Node
        } else if go_test(argv).is_some() {
            Self::Go
        } else {
            Self::Exit
        }
    }

    /// True when the kind works with this command: some need their runner named in it.
    #[must_use]
    pub fn fits(self, argv: &[String]) -> bool {
        match self {
            Self::Exit | Self::Junit => true,
            Self::Pytest | Self::Unittest | Self::Cargo | Self::Node | Self::Go => Self::of_argv(argv) == self,
        }
    }
}

/// Programs that start the program in their arguments.
const WRAPPERS: [&str; 12] =
    ["coverage", "env", "hatch", "nice", "pdm", "pipenv", "poetry", "rye", "timeout", "uv", "uvx", "xvfb-run"];

/// The position in `argv` of the module that Python runs.
pub(crate) fn python_module(argv: &[String]) -> Option<usize> {
    let first = base_name(argv.first()?);
    if !first.starts_with("python") && !WRAPPERS.contains(&first) {
        return None;
    }
    let at = argv.iter().position(|word| word == "-m")?;
    let is_runner = matches!(argv.get(at + 1)?.as_str(), "pytest" | "unittest");
    is_runner.then_some(at + 1)
}

/// The position in `argv` of pytest.
pub(crate) fn pytest_word(argv: &[String]) -> Option<usize> {
    let of_module = python_module(argv).filter(|at| argv[*at] == "pytest");
    let is_wrapped = argv.first().is_some_and(|first| WRAPPERS.contains(&base_name(first)));
    let words = argv.iter().take(if is_wrapped { argv.len() } else { 1 });
    of_module.or_else(|| words.clone().position(|word| matches!(base_name(word), "pytest" | "py.test")))
}

/// The position in `argv` of `test` of `go test`, if it runs the built tests.
pub(crate) fn go_test(argv: &[String]) -> Option<usize> {
    let is_wrapped = WRAPPERS.contains(&base_name(argv.first()?));
    let words = argv.len().min(if is_wrapped { argv.len() } else { 2 });
    let at = argv[..words].windows(2).position(|pair| base_name(&pair[0]) == "go" && pair[1] == "test")? + 1;
    let own = argv[at..].iter().take_while(|word| !matches!(word.trim_start_matches('-'), "args"));
    let builds_alone = own.clone().any(|word| matches!(word.as_str(), "-c" | "--c" | "-n" | "--n"));
    (!builds_alone).then_some(at)
}

pub(crate) fn base_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(argv: &str, expected: EvidenceKind) {
        let argv: Vec<String> = argv.split(' ').map(str::to_owned).collect();
        assert_eq!(EvidenceKind::of_argv(&argv), expected, "{argv:?}");
    }

    #[test]
    fn a_runner_is_known_by_its_words() {
        check("python3 -m pytest -q", EvidenceKind::Pytest);
        check("pytest", EvidenceKind::Pytest);
        check("uv run pytest -x tests", EvidenceKind::Pytest);
        check("/venv/bin/python -X dev -m unittest discover", EvidenceKind::Unittest);
        check("cargo test --workspace", EvidenceKind::Cargo);
        check("cargo +nightly nextest run", EvidenceKind::Cargo);
        check("node --test", EvidenceKind::Node);
        check("node run.js", EvidenceKind::Exit);
        check("ruff check src/pytest", EvidenceKind::Exit);
        check("coverage run -m pytest", EvidenceKind::Pytest);
        check("cargo build", EvidenceKind::Exit);
        check("node run.js", EvidenceKind::Exit);
        check("sh -c true", EvidenceKind::Exit);
        check("make test", EvidenceKind::Exit);
        check("go test ./...", EvidenceKind::Go);
        check("/usr/lib/go-1.19/bin/go test -race ./...", EvidenceKind::Go);
        check("env CGO_ENABLED=0 go test ./... -args -c", EvidenceKind::Go);
        check("timeout 60 go test", EvidenceKind::Go);
        check("go test -c -o a.test ./a", EvidenceKind::Exit);
        check("go vet ./...", EvidenceKind::Exit);
        check("echo go test", EvidenceKind::Exit);
    }
}
