//! The words of `go test`, and the commands that are derived from them.
//!
//! It knows the flags with a value; unknown ones go to the test programs, as in the tool.

use regex::Regex;

/// Flags of the build without a value.
const BUILD_BOOLS: &[&str] =
    &["a", "asan", "buildvcs", "linkshared", "modcacherw", "msan", "race", "trimpath", "work", "x"];

/// Flags of the build with a value.
const BUILD_VALUES: &[&str] = &[
    "C",
    "asmflags",
    "buildmode",
    "compiler",
    "gccgoflags",
    "gcflags",
    "installsuffix",
    "ldflags",
    "mod",
    "modfile",
    "overlay",
    "p",
    "pgo",
    "pkgdir",
    "tags",
    "toolexec",
];

/// Flags of the tests alone.
const TEST_BOOLS: &[&str] = &["benchmem", "cover", "failfast", "fullpath", "i", "json", "paniconexit0", "short", "v"];
const TEST_VALUES: &[&str] = &[
    "bench",
    "benchtime",
    "blockprofile",
    "blockprofilerate",
    "count",
    "covermode",
    "coverpkg",
    "coverprofile",
    "cpu",
    "cpuprofile",
    "exec",
    "fuzz",
    "fuzzminimizetime",
    "fuzztime",
    "list",
    "memprofile",
    "memprofilerate",
    "mutexprofile",
    "mutexprofilefraction",
    "o",
    "outputdir",
    "parallel",
    "run",
    "shuffle",
    "skip",
    "timeout",
    "trace",
    "vet",
];

/// Flags of the tests that the audit keeps; every other one has its own value, or none.
const AUDITED: &[&str] = &["short", "fullpath", "exec", "parallel", "shuffle"];

/// `go test`, parsed.
#[derive(Debug, Default)]
pub(super) struct Command {
    /// The words before `test`.
    before: Vec<String>,
    flags: Vec<Flag>,
    patterns: Vec<String>,
    /// The words for the test programs.
    rest: Vec<String>,
}

#[derive(Debug)]
struct Flag {
    name: String,
    value: Option<String>,
    words: Vec<String>,
}

impl Command {
    /// `at` is the position of `test`.
    pub(super) fn parse(argv: &[String], at: usize) -> Self {
        let mut command = Self { before: argv[..at].to_vec(), ..Self::default() };
        let mut words = argv[at + 1..].iter();
        while let Some(word) = words.next() {
            let Some(option) = word.strip_prefix('-').filter(|rest| !rest.is_empty()) else {
                command.patterns.push(word.clone());
                continue;
            };
            let option = option.strip_prefix('-').unwrap_or(option);
            let option = option.strip_prefix("test.").unwrap_or(option);
            let (name, value) = option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
            let mut flag = Flag { name: name.to_owned(), value: value.map(str::to_owned), words: vec![word.clone()] };
            if value.is_none() && (BUILD_VALUES.contains(&name) || TEST_VALUES.contains(&name)) {
                flag.value = words.next().cloned();
                flag.words.extend(flag.value.clone());
            } else if !flag.is_of_build() && !TEST_BOOLS.contains(&name) && !TEST_VALUES.contains(&name) {
                command.rest = std::iter::once(word).chain(words).cloned().collect();
                return command;
            }
            command.flags.push(flag);
        }
        command
    }

    /// Lists the packages and their files; no code of the work runs.
    pub(super) fn listing(&self) -> Vec<String> {
        let flags = self.flags.iter().filter(|flag| flag.is_of_build()).flat_map(|flag| &flag.words);
        let own = ["-e", "-json"].map(str::to_owned);
        let words = self.before.iter().cloned().chain(["list".to_owned()]).chain(flags.cloned());
        words.chain(own).chain(self.patterns.iter().cloned()).collect()
    }

    /// Runs every test once and reports each; one that the operator did not choose is no test there.
    pub(super) fn auditing(&self) -> Vec<String> {
        let is_kept = |flag: &&Flag| flag.is_of_build() || AUDITED.contains(&flag.name.as_str());
        let flags = self.flags.iter().filter(is_kept).flat_map(|flag| &flag.words);
        let mut own = ["-json", "-count=1", "-vet=off", "-timeout=0"].map(str::to_owned).to_vec();
        for name in ["run", "skip"] {
            own.extend(self.subtests(name).map(|of_them| format!("-{name}=/{of_them}")));
        }
        let words = self.before.iter().cloned().chain(["test".to_owned()]).chain(flags.cloned()).chain(own);
        words.chain(self.patterns.iter().cloned()).chain(self.rest.iter().cloned()).collect()
    }

    /// True when it tests all packages below its directory, with no flag that leaves some out.
    pub(super) fn is_of_everything(&self) -> bool {
        self.value("C").is_none() && self.patterns.iter().any(|pattern| pattern == "./...")
    }

    /// True when closures of `t.Run` certainly run.
    pub(super) fn has_subtests(&self) -> bool {
        [self.value("run"), self.value("skip")].into_iter().flatten().all(|value| !value.contains('/'))
    }

    /// True when `-run` and `-skip` choose a test.
    pub(super) fn chooses(&self, name: &str) -> Result<bool, String> {
        let is_run = self.value("run").map_or(Ok(true), |pattern| matches(pattern, name, false))?;
        let is_skipped = self.value("skip").map_or(Ok(false), |pattern| matches(pattern, name, true))?;
        Ok(is_run && !is_skipped)
    }

    fn subtests(&self, flag: &str) -> Option<&str> {
        self.value(flag).filter(|value| !value.contains('|'))?.split_once('/').map(|(_, rest)| rest)
    }

    /// The last one counts.
    fn value(&self, name: &str) -> Option<&str> {
        self.flags.iter().rev().find(|flag| flag.name == name)?.value.as_deref()
    }
}

impl Flag {
    fn is_of_build(&self) -> bool {
        let name = self.name.as_str();
        BUILD_BOOLS.contains(&name) || BUILD_VALUES.contains(&name)
    }
}

/// True when the part of a pattern for top-level tests matches; `is_whole`: only if it has no other part.
fn matches(pattern: &str, name: &str, is_whole: bool) -> Result<bool, String> {
    for part in parts(pattern, '|') {
        let levels = parts(part, '/');
        if is_whole && levels.len() > 1 {
            continue;
        }
        let level = levels.first().copied().unwrap_or_default();
        let regex = Regex::new(level).map_err(|_| format!("`{level}` of its words is no pattern that can be read"))?;
        if regex.is_match(name) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Parts between `by`, outside of brackets.
fn parts(pattern: &str, by: char) -> Vec<&str> {
    let (mut parts, mut depth, mut start, mut is_escaped) = (Vec::new(), 0_usize, 0, false);
    for (at, char) in pattern.char_indices() {
        match char {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            _ if char == by && depth == 0 => {
                parts.push(&pattern[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&pattern[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &str) -> Command {
        let argv: Vec<String> = words.split(' ').map(str::to_owned).collect();
        let at = argv.iter().position(|word| word == "test").expect("go test");
        Command::parse(&argv, at)
    }

    #[track_caller]
    fn check(words: &str, listing: &str, auditing: &str) {
        let command = of(words);
        assert_eq!(command.listing().join(" "), listing);
        assert_eq!(command.auditing().join(" "), auditing);
    }

    #[test]
    fn go_test_becomes_a_listing_and_an_audit() {
        let own = "-json -count=1 -vet=off -timeout=0";
        check("go test ./...", "go list -e -json ./...", &format!("go test {own} ./..."));
        check(
            "env A=b go test -C sub -race -tags x,y -v -run ^TestA$ --count=3 -short ./a ./b -update -count=2",
            "env A=b go list -C sub -race -tags x,y -e -json ./a ./b",
            &format!("env A=b go test -C sub -race -tags x,y -short {own} ./a ./b -update -count=2"),
        );
        check(
            "go test -run=TestA/sub . -args -v",
            "go list -e -json .",
            &format!("go test {own} -run=/sub . -args -v"),
        );
        assert!(of("go test -v ./...").is_of_everything() && !of("go test -C a ./...").is_of_everything());
    }

    #[track_caller]
    fn chosen(words: &str, expected: &[&str]) {
        let command = of(words);
        let names = ["TestA", "TestAB", "TestC"];
        let found: Vec<_> = names.into_iter().filter(|name| command.chooses(name) == Ok(true)).collect();
        assert_eq!(found, expected, "{words}");
    }

    #[test]
    fn tests_are_chosen_as_the_tool_does() {
        chosen("go test", &["TestA", "TestAB", "TestC"]);
        chosen("go test -run ^TestA$", &["TestA"]);
        chosen("go test -run TestA", &["TestA", "TestAB"]);
        chosen("go test -run=^TestA$/x|C", &["TestA", "TestC"]);
        chosen("go test -run Test(A|C)$", &["TestA", "TestC"]);
        chosen("go test -skip TestA", &["TestC"]);
        chosen("go test -test.run B -skip TestA/sub", &["TestAB"]);
        chosen("go test -run ^$", &[]);
        assert!(of("go test -run (").chooses("TestA").is_err());
    }
}
