//! Parses the output of `go test -json` and of `go list -json`.

use serde::Deserialize;
use std::collections::BTreeMap;

/// A package of the command, with the test files that are built.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Package {
    pub(super) dir: String,
    pub(super) import_path: String,
    pub(super) test_go_files: Vec<String>,
    #[serde(rename = "XTestGoFiles")]
    pub(super) x_test_go_files: Vec<String>,
}

impl Package {
    pub(super) fn files(&self) -> impl Iterator<Item = &String> {
        self.test_go_files.iter().chain(&self.x_test_go_files)
    }
}

/// The packages that have tests.
pub(super) fn packages(stdout: &str) -> Result<Vec<Package>, String> {
    let read: Result<Vec<Package>, _> = serde_json::Deserializer::from_str(stdout).into_iter().collect();
    let packages = read.map_err(|error| format!("the list of its packages cannot be read: {error}"))?;
    Ok(packages.into_iter().filter(|package| package.files().next().is_some()).collect())
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Event {
    action: String,
    package: String,
    test: String,
    output: String,
}

/// The end of a test or a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Passed,
    Failed,
    Skipped,
}

/// The ends of tests by package and name, each as often as it was reported; packages have no name.
#[derive(Debug, Default)]
pub(super) struct Stream {
    ends: BTreeMap<(String, String), Vec<Outcome>>,
    /// The output of a test program that ended in a panic.
    pub(super) panicked: Option<String>,
}

impl Stream {
    /// Lines that are no events are the compiler's.
    pub(super) fn of(stdout: &str) -> Self {
        let mut stream = Self::default();
        for event in stdout.lines().filter_map(|line| serde_json::from_str::<Event>(line).ok()) {
            if let Some(outcome) = outcome(&event.action) {
                stream.ends.entry((event.package, event.test)).or_default().push(outcome);
            } else if let Some((name, outcome)) = behind_output(&event.output) {
                stream.ends.entry((event.package, name.to_owned())).or_default().push(outcome);
            } else if event.output.starts_with("panic: ") {
                stream.panicked.get_or_insert_with(|| event.output.trim().to_owned());
            }
        }
        stream
    }

    pub(super) fn ends(&self, package: &str, test: &str) -> &[Outcome] {
        self.ends.get(&(package.to_owned(), test.to_owned())).map_or(&[], Vec::as_slice)
    }
}

fn outcome(action: &str) -> Option<Outcome> {
    match action.to_ascii_lowercase().as_str() {
        "pass" => Some(Outcome::Passed),
        "fail" => Some(Outcome::Failed),
        "skip" => Some(Outcome::Skipped),
        _ => None,
    }
}

/// The end of a test after its last output without a line end: before Go 1.20 that is no event.
fn behind_output(output: &str) -> Option<(&str, Outcome)> {
    let at = output.rfind("--- ").filter(|at| !output[..*at].trim().is_empty())?;
    let (action, rest) = output[at + 4..].split_once(": ")?;
    let (name, time) = rest.split_once(" (")?;
    let is_time = time.trim_end().strip_suffix("s)").is_some_and(|time| time.parse::<f64>().is_ok());
    Some((name, outcome(action)?)).filter(|_| is_time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_end_is_told_by_package_and_name() {
        let stream = Stream::of(
            "# a compiler's line\n{\"Action\":\"run\",\"Package\":\"p\",\"Test\":\"TestA\"}\n\
             {\"Action\":\"output\",\"Package\":\"p\",\"Test\":\"TestA\",\"Output\":\"--- PASS: TestA (0.00s)\\n\"}\n\
             {\"Action\":\"pass\",\"Package\":\"p\",\"Test\":\"TestA\",\"Elapsed\":0}\n\
             {\"Action\":\"output\",\"Package\":\"p\",\"Test\":\"TestB\",\
             \"Output\":\"said--- FAIL: TestB (0.10s)\\n\"}\n\
             {\"Action\":\"output\",\"Package\":\"p\",\"Test\":\"TestC\",\"Output\":\"x --- PASS: TestC\\n\"}\n\
             {\"Action\":\"fail\",\"Package\":\"p\",\"Elapsed\":0.1}\n",
        );
        assert_eq!(stream.ends("p", "TestA"), [Outcome::Passed]);
        assert_eq!(stream.ends("p", "TestB"), [Outcome::Failed]);
        assert_eq!(stream.ends("p", ""), [Outcome::Failed]);
        assert!(stream.ends("p", "TestC").is_empty() && stream.ends("q", "TestA").is_empty());
    }

    #[test]
    fn packages_without_tests_are_left_out() {
        let list =
            "{\"Dir\": \"/w/a\", \"ImportPath\": \"m/a\", \"XTestGoFiles\": [\"a_test.go\"]}\n{\"Dir\": \"/w\"}\n";
        let found = packages(list).expect("a list");
        assert!(found.len() == 1 && found[0].import_path == "m/a" && found[0].files().eq(["a_test.go"]));
        assert!(packages("{").is_err());
    }
}
