//! What the words of `cargo test` and `cargo nextest run` choose: packages, programs of tests, tests.
//!
//! Refuses to guess what filter expressions choose: then it may be anything.

/// Options whose value is the next word, where it is not behind a `=`.
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

/// What a command asks for.
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
    /// Whether something else chooses, too.
    is_open: bool,
}

/// Programs of tests by their kinds, and by patterns of their names.
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

    fn target(&mut self) -> &mut Targets {
        self.targets.get_or_insert_default()
    }

    /// Whether a test is chosen by its name with its modules; `is_whole`: all of them are known.
    pub(super) fn choose(&self, name: &str, is_whole: bool) -> bool {
        let fits = |filter: &String| if self.is_exact { is_whole && name == filter } else { name.contains(filter) };
        !self.is_open && (self.filters.is_empty() || self.filters.iter().any(fits)) && !self.skips.iter().any(fits)
    }
}

/// Whether a name fits a pattern with `*` and `?`, neither of which stands for a `/`.
pub(super) fn fits(pattern: &str, name: &str) -> bool {
    let mut rest = pattern.chars();
    match (rest.next(), name.chars().next()) {
        (None, None) => true,
        (Some('*'), next) => {
            fits(rest.as_str(), name) || next.is_some_and(|char| char != '/' && fits(pattern, &name[char.len_utf8()..]))
        }
        (Some('?'), Some(char)) if char != '/' => fits(rest.as_str(), &name[char.len_utf8()..]),
        (Some(wanted), Some(char)) if wanted == char => fits(rest.as_str(), &name[char.len_utf8()..]),
        _ => false,
    }
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
    fn patterns_stay_within_a_name() {
        assert!(fits("crates/*", "crates/one") && !fits("crates/*", "crates/one/two") && !fits("crates/*", "crates"));
        assert!(fits("it*", "it") && fits("?t", "it") && !fits("it", "its"));
    }
}
