//! The summary of a test runner's output, in a few words: `2 failed, 5 passed`.
//!
//! Knows the summary lines of pytest, unittest, cargo test, nextest, go test, Jest, Vitest, Mocha and Node's own
//! runner. The code under test printed the output, so the summary decides nothing and is shown to people alone. Refuses
//! to guess: without such a line there is no summary.

/// The results of one test run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TestSummary {
    /// The number of failed tests.
    pub failed: u64,
    /// Tests, or test files, that could not be run.
    pub errors: u64,
    /// The number of passed tests.
    pub passed: u64,
    /// Tests that were skipped.
    pub skipped: u64,
}

impl std::fmt::Display for TestSummary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { failed, errors, passed, skipped } = *self;
        let errors_word = if errors == 1 { "error" } else { "errors" };
        let parts = [(failed, "failed"), (errors, errors_word), (passed, "passed"), (skipped, "skipped")];
        let said: Vec<String> =
            parts.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")).collect();
        if said.is_empty() { f.write_str("no tests ran") } else { f.write_str(&said.join(", ")) }
    }
}

/// The summary at the end of a test runner's output, if there is one.
#[must_use]
pub fn test_summary(text: &str) -> Option<TestSummary> {
    let text = without_escapes(text);
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    // One runner may start another, so the last one counts; runners with several lines come after.
    let of_one_line = lines.iter().rev().find_map(|line| pytest(line).or_else(|| nextest(line)).or_else(|| jest(line)));
    of_one_line
        .or_else(|| cargo_test(&lines))
        .or_else(|| unittest(&lines))
        .or_else(|| node(&lines))
        .or_else(|| go(&lines))
}

/// Removes escape sequences, which colour summaries.
fn without_escapes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        if char != '\u{1b}' {
            plain.push(char);
        } else if chars.next() == Some('[') {
            // Up to the letter that ends the sequence.
            chars.by_ref().find(char::is_ascii_alphabetic);
        }
    }
    plain
}

/// `=== 1 failed, 2 passed, 1 warning in 0.12s ===`, with `-q` without the marks.
fn pytest(line: &str) -> Option<TestSummary> {
    let line = line.trim_matches(['=', ' ']);
    let (counts, time) = line.rsplit_once(" in ")?;
    let seconds = time.split_once(' ').map_or(time, |(seconds, _)| seconds).strip_suffix('s')?;
    seconds.parse::<f64>().ok()?;
    if counts == "no tests ran" {
        return Some(TestSummary::default());
    }
    let mut summary = TestSummary::default();
    for part in counts.split(", ") {
        let (count, word) = counted(part)?;
        match word {
            "passed" | "xpassed" => summary.passed += count,
            "failed" => summary.failed += count,
            "error" | "errors" => summary.errors += count,
            "skipped" | "xfailed" => summary.skipped += count,
            "warning" | "warnings" | "deselected" | "rerun" | "subtests passed" => {}
            _ => return None,
        }
    }
    Some(summary)
}

/// `Summary [   0.012s] 5 tests run: 4 passed (1 slow), 1 failed, 0 skipped`
fn nextest(line: &str) -> Option<TestSummary> {
    let rest = line.strip_prefix("Summary [")?;
    let (_, counts) = rest.split_once("run: ")?;
    let mut summary = TestSummary::default();
    for part in counts.split(", ") {
        let part = part.split_once(" (").map_or(part, |(part, _)| part);
        // A remark in brackets has commas of its own.
        let Some((count, word)) = counted(part) else { continue };
        match word {
            "passed" => summary.passed += count,
            "failed" | "timed out" => summary.failed += count,
            "exec failed" => summary.errors += count,
            "skipped" => summary.skipped += count,
            _ => {}
        }
    }
    Some(summary)
}

/// Jest's `Tests:  1 failed, 2 passed, 3 total`, and Vitest's `Tests  1 failed | 2 passed (3)`.
fn jest(line: &str) -> Option<TestSummary> {
    let rest = line.strip_prefix("Tests")?;
    let (counts, separator) = match rest.strip_prefix(':') {
        Some(counts) => (counts, ", "),
        None => (rest.strip_prefix(' ')?.rsplit_once('(')?.0, " | "),
    };
    let mut summary = TestSummary::default();
    for part in counts.trim().split(separator) {
        let (count, word) = counted(part.trim())?;
        match word {
            "passed" => summary.passed += count,
            "failed" => summary.failed += count,
            "skipped" | "todo" | "pending" => summary.skipped += count,
            "total" => {}
            _ => return None,
        }
    }
    Some(summary)
}

/// `test result: FAILED. 5 passed; 1 failed; 0 ignored; ...`, once for each program of tests.
fn cargo_test(lines: &[&str]) -> Option<TestSummary> {
    let mut found = None;
    for counts in lines.iter().filter_map(|line| line.strip_prefix("test result: ")) {
        let summary: &mut TestSummary = found.get_or_insert_default();
        let (_, counts) = counts.split_once(". ").unwrap_or_default();
        for (count, word) in counts.split("; ").filter_map(counted) {
            match word {
                "passed" => summary.passed += count,
                "failed" => summary.failed += count,
                "ignored" => summary.skipped += count,
                _ => {}
            }
        }
    }
    found
}

/// `Ran 3 tests in 0.001s`, and below it `OK (skipped=1)` or `FAILED (failures=1, errors=1)`.
fn unittest(lines: &[&str]) -> Option<TestSummary> {
    let ran_at = lines.iter().rposition(|line| line.starts_with("Ran ") && line.contains(" test"))?;
    let all: u64 = lines[ran_at].split(' ').nth(1)?.parse().ok()?;
    let verdict = lines[ran_at + 1..].iter().find(|line| !line.is_empty())?;
    if !verdict.starts_with("OK") && !verdict.starts_with("FAILED") && !verdict.starts_with("NO TESTS RAN") {
        return None;
    }
    let mut summary = TestSummary::default();
    let details = verdict.split_once('(').map_or("", |(_, details)| details.trim_end_matches(')'));
    for (name, count) in details.split(", ").filter_map(|part| part.split_once('=')) {
        let count: u64 = count.parse().ok()?;
        match name {
            "failures" | "unexpected successes" => summary.failed += count,
            "errors" => summary.errors += count,
            "skipped" | "expected failures" => summary.skipped += count,
            _ => {}
        }
    }
    summary.passed = all.saturating_sub(summary.failed + summary.errors + summary.skipped);
    Some(summary)
}

/// Node's `# pass 3` or `ℹ pass 3`, and Mocha's `3 passing (12ms)`.
fn node(lines: &[&str]) -> Option<TestSummary> {
    let mut found: Option<TestSummary> = None;
    for line in lines {
        let of_node = line.strip_prefix("# ").or_else(|| line.strip_prefix("ℹ ")).and_then(|rest| rest.split_once(' '));
        let (word, count) = match of_node {
            Some((word, count)) => (word, count.parse::<u64>().ok()),
            None => {
                let line = line.split_once(" (").map_or(*line, |(line, _)| line);
                counted(line).map_or(("", None), |(count, word)| (word, Some(count)))
            }
        };
        let Some(count) = count else { continue };
        let of = found.unwrap_or_default();
        found = match word {
            "pass" | "passing" => Some(TestSummary { passed: count, ..of }),
            "fail" | "failing" => Some(TestSummary { failed: count, ..of }),
            "skipped" | "pending" => Some(TestSummary { skipped: count, ..of }),
            _ => found,
        };
    }
    found
}

/// `--- PASS: TestSum (0.00s)` with `-v`; else a line for each package: `ok  example.com/sum  0.2s`, which counts as
/// one.
fn go(lines: &[&str]) -> Option<TestSummary> {
    let count = |prefix: &str| lines.iter().filter(|line| line.starts_with(prefix)).count() as u64;
    let tests = TestSummary {
        failed: count("--- FAIL: "),
        errors: lines.iter().filter(|line| line.ends_with("[build failed]") || line.ends_with("[setup failed]")).count()
            as u64,
        passed: count("--- PASS: "),
        skipped: count("--- SKIP: "),
    };
    let packages = count("ok  \t");
    let is_of_go = packages > 0 || count("FAIL\t") > 0 || lines.iter().any(|line| line.ends_with("[no test files]"));
    match tests {
        TestSummary { passed: 0, .. } if is_of_go => Some(TestSummary { passed: packages, ..tests }),
        _ if is_of_go
            || (tests != TestSummary::default() && lines.iter().any(|line| matches!(*line, "PASS" | "FAIL"))) =>
        {
            Some(tests)
        }
        _ => None,
    }
}

/// `3 passed`
fn counted(part: &str) -> Option<(u64, &str)> {
    let (count, word) = part.trim().split_once(' ')?;
    Some((count.parse().ok()?, word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(printed: &str, expected: &str) {
        assert_eq!(test_summary(printed).map(|found| found.to_string()).as_deref(), Some(expected), "{printed}");
    }

    #[test]
    fn each_runner_is_known_by_its_last_words() {
        check("....\n4 passed in 0.02s\n", "4 passed");
        check("===== \u{1b}[31m1 failed\u{1b}[0m, 2 passed, 1 warning in 0.10s =====", "1 failed, 2 passed");
        check("= 2 errors in 65.10s (0:01:05) =", "2 errors");
        check("no tests ran in 0.01s", "no tests ran");
        check("1 passed, 2 skipped, 1 xfailed, 3 deselected in 1.20s", "1 passed, 3 skipped");
        check("...\n----\nRan 3 tests in 0.001s\n\nOK\n", "3 passed");
        check(
            "Ran 4 tests in 0.1s\n\nFAILED (failures=1, errors=1, skipped=1)",
            "1 failed, 1 error, 1 passed, 1 skipped",
        );
        check("Ran 1 test in 0.1s\n\nOK (skipped=1)", "1 skipped");
        check("Ran 0 tests in 0.000s\n\nNO TESTS RAN", "no tests ran");
        check(
            "running 2 tests\ntest result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n\
             test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            "1 failed, 5 passed, 1 skipped",
        );
        check(
            "     Summary [   0.012s] 5 tests run: 4 passed (1 slow, 1 leaky), 1 failed, 2 skipped",
            "1 failed, 4 passed, 2 skipped",
        );
        check("     Summary [   0.012s] 3/9 tests run: 2 passed, 1 timed out, 0 skipped", "1 failed, 2 passed");
        check("ok  \texample.com/sum\t0.2s\nok  \texample.com/mul\t(cached)", "2 passed");
        check(
            "=== RUN   TestA\n--- PASS: TestA (0.00s)\n--- FAIL: TestB (0.00s)\nFAIL\nFAIL\texample.com/sum\t0.2s",
            "1 failed, 1 passed",
        );
        check("# example.com/sum\nsum.go:3: oops\nFAIL\texample.com/sum [build failed]\nFAIL", "1 error");
        check("?   \texample.com/sum\t[no test files]", "no tests ran");
        check(
            "Test Suites: 1 failed, 1 total\nTests:       1 failed, 2 passed, 3 total\nTime: 1 s",
            "1 failed, 2 passed",
        );
        check(" Test Files  1 passed (1)\n      Tests  3 passed | 1 skipped (4)\n", "3 passed, 1 skipped");
        check("# tests 4\n# pass 3\n# fail 1\n# skipped 0\n", "1 failed, 3 passed");
        check("ℹ tests 2\nℹ pass 2\nℹ fail 0\n", "2 passed");
        check("  3 passing (12ms)\n  1 failing\n", "1 failed, 3 passed");
    }

    #[test]
    fn what_is_no_summary_is_none() {
        for text in [
            "",
            "hello",
            "it was done in 3s",
            "2 files changed in 0.1s",
            "PASS",
            "ok",
            "Tests: none",
            "Tests are fun (3)",
            "Ran away",
            "Ran 3 tests in 1s",
            "3 apples",
            "test",
            "\u{1b}[",
            "# heading\n# pass it on",
        ] {
            assert_eq!(test_summary(text), None, "{text}");
        }
    }
}
