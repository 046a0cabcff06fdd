//! Parses the words of `cargo test` and `cargo nextest run`: chosen packages, test programs, tests.
//!
//! Refuses to guess the meaning of filter expressions: they may choose anything.

/// Options whose value is the next word, unless it follows a `=`.
const TAKES_A_WORD: [&str; 29] = [
    "-E",
    "-F",
    "-P",
    "-Z",
    "-j",
    "--build-jobs",
    "--cargo-profile",
    "--color",
    "--config",
    "--config-file",
    "--failure-output",
    "--features",
    "--filter-expr",
    "--filterset",
    "--final-status-level",
    "--jobs",
    "--max-fail",
    "--message-format",
    "--partition",
    "--profile",
    "--retries",
    "--run-ignored",
    "--status-level",
    "--success-output",
    "--target",
    "--target-dir",
    "--test-threads",
    "--tool-config-file",
    "--archive-file",
];

/// The choice of a command.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Words {
    pub(super) packages: Vec<String>,
    pub(super) excluded: Vec<String>,
    pub(super) is_workspace: bool,
    pub(super) manifest: Option<String>,
    pub(super) all_features: bool,
    /// None: every kind.
    pub(super) targets: Option<Targets>,
    filters: Vec<String>,
    skips: Vec<String>,
    is_exact: bool,
    /// True when another expression chooses tests, too.
    is_open: bool,
}

/// Test programs by their kinds, and by patterns of their names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Targets {
    pub(super) lib: bool,
    pub(super) bins: Vec<String>,
    pub(super) tests: Vec<String>,
}

impl Words {
    pub(super) fn of(argv: &[String]) -> Self {
        let start = argv.iter().position(|word| matches!(word.as_str(), "test" | "t" | "run")).map_or(1, |at| at + 1);
        let mut words = Self::default();
        let mut rest = argv[start.min(argv.len())..].iter();
        let mut is_behind = false;
        while let Some(word) = rest.next() {
            let (option, value) =
                word.split_once('=').map_or((word.as_str(), None), |(option, value)| (option, Some(value.to_owned())));
            let mut value = || value.clone().or_else(|| rest.next().cloned()).unwrap_or_default();
            match option {
                "--" => is_behind = true,
                "--skip" if is_behind => words.skips.push(value()),
                "--exact" if is_behind => words.is_exact = true,
                "--ignored" if is_behind => words.is_open = true,
                "-p" | "--package" => words.packages.push(value()),
                "--exclude" => words.excluded.push(value()),
                "--workspace" | "--all" => words.is_workspace = true,
                "--manifest-path" => words.manifest = Some(value()),
                "--all-features" => words.all_features = true,
                "-E" | "--filterset" | "--filter-expr" | "--partition" | "--run-ignored" => {
                    words.is_open = true;
                    value();
                }
                "--lib" => words.target().lib = true,
                "--bins" => words.target().bins.push("*".to_owned()),
                "--bin" => {
                    let name = value();
                    words.target().bins.push(name);
                }
                "--test" => {
                    let name = value();
                    words.target().tests.push(name);
                }
                "--tests" | "--all-targets" => {
                    let all = || vec!["*".to_owned()];
                    words.targets = Some(Targets { lib: true, bins: all(), tests: all() });
                }
                "--examples" | "--benches" | "--doc" => drop(words.target()),
                "--example" | "--bench" => {
                    words.target();
                    value();
                }
                _ if TAKES_A_WORD.contains(&option) => drop(value()),
                _ if !word.starts_with('-') => words.filters.push(word.clone()),
                _ => {}
            }
        }
        words
    }

    /// The same words, for every package of the workspace.
    pub(super) fn of_all(&self) -> Self {
        Self { is_workspace: true, manifest: self.manifest.clone(), ..Self::default() }
    }

    fn target(&mut self) -> &mut Targets {
        self.targets.get_or_insert_default()
    }

    /// True when a test is chosen by its name with its modules; `is_whole`: all modules are known. The audit skips by
    /// parts of names, even if the command requests whole ones.
    pub(super) fn choose(&self, name: &str, is_whole: bool) -> bool {
        let fits = |filter: &String| if self.is_exact { is_whole && name == filter } else { name.contains(filter) };
        let is_skipped = self.skips.iter().any(|skip| name.contains(skip));
        !self.is_open && (self.filters.is_empty() || self.filters.iter().any(fits)) && !is_skipped
    }

    /// True when a test may be chosen by its name without its modules.
    pub(super) fn may_choose(&self, name: &str) -> bool {
        let is_it = |filter: &String| filter.rsplit("::").next() == Some(name);
        !self.is_exact || self.filters.is_empty() || self.filters.iter().any(is_it)
    }

    /// True when no test program is requested, as with `--doc`.
    pub(super) fn is_of_comments(&self) -> bool {
        self.targets.as_ref().is_some_and(|one| !one.lib && one.bins.is_empty() && one.tests.is_empty())
    }

    /// The prefix of a name that the words choose.
    pub(super) fn chosen_name(&self) -> &str {
        let last = self.filters.first().and_then(|filter| filter.rsplit("::").next()).unwrap_or_default();
        let is_name = last.starts_with(|char: char| char.is_ascii_alphabetic() || char == '_')
            && last.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if is_name { last } else { "test" }
    }
}

/// Options that an audit sets itself, or omits.
const OF_AUDIT: [&str; 16] = [
    "-q",
    "-qq",
    "--color",
    "--exact",
    "--fail-fast",
    "--ff",
    "--format",
    "--max-fail",
    "--nff",
    "--no-capture",
    "--no-fail-fast",
    "--nocapture",
    "--quiet",
    "--retries",
    "--show-output",
    "--status-level",
];

/// The same command, which continues after a failure and names each test. Names are not whole ones any more, and a
/// configuration of nextest does not affect its output.
pub(super) fn auditing(argv: &[String], is_nextest: bool) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut rest = argv.iter();
    while let Some(word) = rest.next() {
        let option = word.split_once('=').map_or(word.as_str(), |(option, _)| option);
        if !OF_AUDIT.contains(&option) {
            words.push(word.clone());
        } else if option == word && (TAKES_A_WORD.contains(&option) || option == "--format") {
            rest.next();
        }
    }
    let own = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let mut new = words[..own].to_vec();
    new.push("--no-fail-fast".to_owned());
    if is_nextest {
        new.extend(["--color=never", "--retries=0", "--status-level=pass"].map(str::to_owned));
    }
    if words.len() > own + 1 {
        new.extend_from_slice(&words[own..]);
    }
    new
}

/// True when a name matches a pattern with `*` and `?`, neither of which stands for a `/`.
pub(super) fn fits(pattern: &str, name: &str) -> bool {
    longhaul_core::wildcard::covers(pattern, name, Some('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Words {
        Words::of(&text.split(' ').map(str::to_owned).collect::<Vec<String>>())
    }

    #[test]
    fn words_choose_packages_programs_and_tests() {
        assert_eq!(of("cargo test --offline -q --release -j 2 --features x"), Words::default());
        let words = of("cargo +nightly nextest run -p one --package=two --test it --lib adds -- --skip slow");
        assert_eq!(words.packages, ["one", "two"]);
        assert_eq!(words.targets, Some(Targets { lib: true, bins: vec![], tests: vec!["it".to_owned()] }));
        assert!(words.choose("more::adds_all", true) && !words.choose("adds_slow", true) && !words.choose("is", true));
        let exact = of("cargo test a::b -- --exact --test-threads 1");
        assert!(exact.choose("a::b", true) && !exact.choose("a::bc", true) && !exact.choose("b", false));
        assert!(!of("cargo nextest run -E test(a)").choose("a", true));
        assert_eq!(of("cargo test --doc").targets, Some(Targets::default()));
    }

    #[test]
    fn the_audit_names_each_test() {
        let audit = |text: &str| {
            let argv: Vec<String> = text.split(' ').map(str::to_owned).collect();
            auditing(&argv, argv.iter().any(|word| word == "nextest")).join(" ")
        };
        assert_eq!(
            audit("cargo test -q a -- --exact --test-threads=1"),
            "cargo test a --no-fail-fast -- --test-threads=1"
        );
        assert_eq!(audit("cargo test --color always -- -q --format terse"), "cargo test --no-fail-fast");
        assert_eq!(
            audit("cargo nextest run --status-level fail --retries=2 --nff -p a -- --exact b"),
            "cargo nextest run -p a --no-fail-fast --color=never --retries=0 --status-level=pass -- b"
        );
    }

    #[test]
    fn whole_names_are_those_of_the_command_alone() {
        let exact = of("cargo test a::b -- --exact --skip c");
        assert!(exact.may_choose("b") && !exact.may_choose("bc") && of("cargo test a::b").may_choose("bc"));
        assert!(!of("cargo test -- --exact --skip c").choose("cc", true), "the audit skips it");
        assert_eq!((exact.chosen_name(), of("cargo test a::").chosen_name()), ("b", "test"));
    }

    #[test]
    fn patterns_stay_within_a_name() {
        assert!(fits("crates/*", "crates/one") && !fits("crates/*", "crates/one/two") && !fits("crates/*", "crates"));
        assert!(fits("it*", "it") && fits("?t", "it") && !fits("it", "its"));
    }
}
