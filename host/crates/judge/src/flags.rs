//! Files that configure a test runner, by their names.
//!
//! Each has a rule with its reason. Some are taken from the base commit if it has such a file, like the operator's own
//! `files`; some can never be part of a feature; a feature may have to change the rest, so that they are shown to the
//! evaluator and the person. Refuses to read them: a name is enough for a second look.

/// The rule for a change of a runner's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunnerFileRule {
    /// Taken from the base commit if that has one of the name; a new one beside it is left out of the copy.
    Pinned,
    /// Left out of the copy if the base commit does not have it: the runner loads it automatically before anything
    /// else.
    LeftOut,
    /// Used unchanged, and shown.
    Shown,
}

/// Files of one name, or with an ending if the name begins with `*`.
#[derive(Clone, Copy, Debug)]
pub struct RunnerFile {
    /// The name, or an ending.
    pub name: &'static str,
    /// The rule.
    pub rule: RunnerFileRule,
    /// Its possible effect on a verdict.
    pub why: &'static str,
}

const fn file(name: &'static str, rule: RunnerFileRule, why: &'static str) -> RunnerFile {
    RunnerFile { name, rule, why }
}

/// Reviewed: the first match counts.
const TABLE: &[RunnerFile] = &[
    file("sitecustomize.py", RunnerFileRule::LeftOut, "Python loads it before any program"),
    file("usercustomize.py", RunnerFileRule::LeftOut, "Python loads it before any program"),
    file("*.pth", RunnerFileRule::LeftOut, "Python runs its lines before any program"),
    file("conftest.py", RunnerFileRule::Pinned, "pytest runs it, and it can change the outcome of each test"),
    file("pytest.ini", RunnerFileRule::Pinned, "it chooses which tests pytest runs, and with which plugins"),
    file(".pytest.ini", RunnerFileRule::Pinned, "it chooses which tests pytest runs, and with which plugins"),
    file("tox.ini", RunnerFileRule::Pinned, "it may hold the settings of pytest, and little that a feature changes"),
    file("noxfile.py", RunnerFileRule::Pinned, "it starts the tests"),
    file("nextest.toml", RunnerFileRule::Pinned, "it chooses which tests run, and how often until they pass"),
    file(".mocharc.json", RunnerFileRule::Pinned, "it chooses which tests run"),
    file(".mocharc.yml", RunnerFileRule::Pinned, "it chooses which tests run"),
    // These also contain dependencies, entry points or new targets.
    file("pyproject.toml", RunnerFileRule::Shown, "it may hold the settings of pytest"),
    file("setup.cfg", RunnerFileRule::Shown, "it may hold the settings of pytest"),
    file("setup.py", RunnerFileRule::Shown, "it runs when the project is installed"),
    file("Cargo.toml", RunnerFileRule::Shown, "it can turn test targets off, or give them a harness of their own"),
    file("build.rs", RunnerFileRule::Shown, "it runs before the tests are built, and may change their files"),
    file(".cargo/config.toml", RunnerFileRule::Pinned, "it can put another program in the place of each test"),
    file(".cargo/config", RunnerFileRule::Pinned, "it can put another program in the place of each test"),
    file("rust-toolchain.toml", RunnerFileRule::Pinned, "it chooses the compiler"),
    file("rust-toolchain", RunnerFileRule::Pinned, "it chooses the compiler"),
    file("package.json", RunnerFileRule::Shown, "its scripts start the tests, and it may hold the runner's settings"),
    file(".npmrc", RunnerFileRule::Pinned, "it chooses where packages come from, and options of node"),
    file("jest.config.js", RunnerFileRule::Pinned, "it chooses which tests run, and with which environment"),
    file("jest.config.ts", RunnerFileRule::Pinned, "it chooses which tests run, and with which environment"),
    file("jest.config.mjs", RunnerFileRule::Pinned, "it chooses which tests run, and with which environment"),
    file("jest.config.cjs", RunnerFileRule::Pinned, "it chooses which tests run, and with which environment"),
    file("vitest.config.js", RunnerFileRule::Pinned, "it chooses which tests run, and with which environment"),
    file("vitest.config.ts", RunnerFileRule::Pinned, "it chooses which tests run, and with which environment"),
    file("vitest.config.mjs", RunnerFileRule::Pinned, "it chooses which tests run, and with which environment"),
    file("vite.config.js", RunnerFileRule::Shown, "it may hold the settings of vitest"),
    file("vite.config.ts", RunnerFileRule::Shown, "it may hold the settings of vitest"),
    file("babel.config.js", RunnerFileRule::Shown, "it rewrites what jest runs"),
    file("go.work", RunnerFileRule::LeftOut, "go looks for it unasked, and it puts other code in the place of modules"),
    file("go.work.sum", RunnerFileRule::LeftOut, "it belongs to go.work"),
    file(
        "go.env",
        RunnerFileRule::Pinned,
        "where GOENV names it, its GOFLAGS choose tests, and programs that start them",
    ),
    // This also contains dependencies. Its `toolchain` line has no effect: the sandbox sets GOTOOLCHAIN=local.
    file(
        "go.mod",
        RunnerFileRule::Shown,
        "its `replace` and `ignore` lines put other code, or none, in the place of packages",
    ),
    file("vendor/modules.txt", RunnerFileRule::Shown, "it says which copies of modules the tests are built of"),
    file("*.syso", RunnerFileRule::Shown, "go links it into each program of its package, unasked"),
    file("magefile.go", RunnerFileRule::Shown, "it may start the tests"),
    file("Taskfile.yml", RunnerFileRule::Shown, "it may start the tests"),
    file("Makefile", RunnerFileRule::Shown, "it may start the tests"),
    file("justfile", RunnerFileRule::Shown, "it may start the tests"),
    file(".envrc", RunnerFileRule::Shown, "shells load it"),
];

/// The rule for a path of the work, if its name is a runner's.
#[must_use]
pub fn runner_file(path: &str) -> Option<&'static RunnerFile> {
    let is_named = |file: &&RunnerFile| match file.name.strip_prefix('*') {
        Some(ending) => path.ends_with(ending),
        None => path.strip_suffix(file.name).is_some_and(|rest| rest.is_empty() || rest.ends_with('/')),
    };
    TABLE.iter().find(is_named)
}

/// The reason why a change of `path` may change the verdict on itself; none for an ordinary file.
#[must_use]
pub fn near_the_judge(path: &str) -> Option<&'static str> {
    if let Some(file) = runner_file(path) {
        return Some(file.why);
    }
    let name = path.rsplit('/').next().unwrap_or(path);
    if name.ends_with(".go") && path.split('/').rev().skip(1).any(|dir| dir == "vendor") {
        return Some("it stands for a module that tests may compare with");
    }
    let stem = name.split('.').next().unwrap_or(name);
    let is_test = stem.starts_with("test_")
        || stem.ends_with("_test")
        || stem.ends_with("_tests")
        || stem == "tests"
        || name.contains(".test.")
        || name.contains(".spec.")
        || path.split('/').rev().skip(1).any(|dir| matches!(dir, "test" | "tests" | "__tests__" | "spec" | "testdata"));
    is_test.then_some("it is a test, or a file of tests")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[track_caller]
    fn check(path: &str, expected: Option<RunnerFileRule>) {
        assert_eq!(runner_file(path).map(|file| file.rule), expected, "{path}");
    }

    #[test]
    fn a_runner_file_is_known_wherever_it_lies() {
        check("conftest.py", Some(RunnerFileRule::Pinned));
        check("tests/unit/conftest.py", Some(RunnerFileRule::Pinned));
        check("my_conftest.py", None);
        check("a/.cargo/config.toml", Some(RunnerFileRule::Pinned));
        check("config.toml", None);
        check("lib/evil.pth", Some(RunnerFileRule::LeftOut));
        check("src/main.rs", None);
        // A feature that adds a dependency is not held up.
        check("go.work", Some(RunnerFileRule::LeftOut));
        check("sub/go.env", Some(RunnerFileRule::Pinned));
        check("vendor/modules.txt", Some(RunnerFileRule::Shown));
        check("modules.txt", None);
        for path in ["pyproject.toml", "Cargo.toml", "package.json", "go.mod"] {
            check(path, Some(RunnerFileRule::Shown));
        }
    }

    #[test]
    fn tests_and_runner_files_are_near_the_judge() {
        for path in
            ["tests/data.json", "src/a_test.go", "test_a.py", "web/a.spec.ts", "crate/build.rs", "vendor/a.b/c/d.go"]
        {
            assert!(near_the_judge(path).is_some(), "{path}");
        }
        for path in ["src/latest.py", "src/contest.py", "testing.md", "attest/a.py", "a/vendor.go"] {
            assert!(near_the_judge(path).is_none(), "{path}");
        }
    }

    #[test]
    fn no_runner_file_is_listed_twice() {
        let names: BTreeSet<_> = TABLE.iter().map(|file| file.name).collect();
        assert_eq!(names.len(), TABLE.len());
    }
}
