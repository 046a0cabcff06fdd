//! The outcomes of tests in the output of libtest and of nextest.
//!
//! Refuses an output that ends early: each program has to report as many tests as it announced.

use regex::Regex;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The outcomes of tests, by their names with their modules: true is a pass. A test in several programs passes when it
/// passes in each.
pub(super) type Outcomes = BTreeMap<String, bool>;

/// By each part of the names: cases of a test have names below it.
pub(super) fn by_part(outcomes: &Outcomes) -> BTreeMap<&str, bool> {
    let mut parts = BTreeMap::new();
    for (name, passed) in outcomes {
        name.split("::").for_each(|part| *parts.entry(part).or_insert(true) &= passed);
    }
    parts
}

/// `test a::b - should panic ... ok` or `test src/lib.rs - a (line 3) ... ok`, with the output before it.
static TEST: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"test (\S+?(?: - \S+ \(line \d+\))?)(?: - .*?)? \.\.\. ?(.*)$").expect("a pattern of ours")
});

/// The lines of libtest: `running 2 tests`, `test a::b ... ok`, `test result: ...`. In one thread the end of a test's
/// line follows the test's output.
pub(super) fn libtest(stdout: &str) -> Result<Outcomes, String> {
    let (mut outcomes, mut running_one) = (Outcomes::new(), None::<Program>);
    for line in stdout.lines() {
        if let Some(number) = running(line) {
            if running_one.is_some() {
                return Err("a program of tests did not come to its end".to_owned());
            }
            running_one = Some(Program { number, ..Program::default() });
        } else if line.starts_with("test result: ") {
            if !running_one.take().is_some_and(|mut program| program.is_whole(&mut outcomes)) {
                return Err("a program of tests did not report each test".to_owned());
            }
        } else if let Some(program) = &mut running_one {
            program.read(line, &mut outcomes);
        }
    }
    match running_one {
        None => Ok(outcomes),
        Some(_) => Err("a program of tests did not come to its end".to_owned()),
    }
}

/// The output of a test program.
#[derive(Default)]
struct Program {
    /// The number of tests that it announced.
    number: usize,
    seen: usize,
    /// A test whose line has not ended, and the end of the output since.
    open: Option<(String, Option<Outcome>)>,
    /// True when only the output of failed tests follows.
    is_over: bool,
}

#[derive(Clone, Copy)]
enum Outcome {
    Passed,
    Failed,
    Ignored,
}

impl Program {
    fn read(&mut self, line: &str, outcomes: &mut Outcomes) {
        if self.is_over {
            return;
        }
        if line == "failures:" {
            self.settle(outcomes);
            self.is_over = true;
        } else if let Some(test) = TEST.captures(line) {
            self.settle(outcomes);
            let (name, rest) = (test[1].to_owned(), &test[2]);
            match outcome(rest) {
                Some(outcome) => self.tell(name, outcome, outcomes),
                None => self.open = Some((name, late_outcome(rest))),
            }
        } else if let Some((_, found)) = &mut self.open {
            *found = late_outcome(line).or(*found);
        }
    }

    fn settle(&mut self, outcomes: &mut Outcomes) {
        if let Some((name, Some(outcome))) = self.open.take() {
            self.tell(name, outcome, outcomes);
        }
    }

    fn tell(&mut self, name: String, outcome: Outcome, outcomes: &mut Outcomes) {
        self.seen += 1;
        match outcome {
            Outcome::Passed => record(outcomes, name, true),
            Outcome::Failed => record(outcomes, name, false),
            Outcome::Ignored => {}
        }
    }

    /// True when each test was reported, at the end.
    fn is_whole(&mut self, outcomes: &mut Outcomes) -> bool {
        self.settle(outcomes);
        self.seen == self.number
    }
}

fn record(outcomes: &mut Outcomes, name: String, passed: bool) {
    *outcomes.entry(name).or_insert(true) &= passed;
}

fn running(line: &str) -> Option<usize> {
    let number = line.strip_prefix("running ")?;
    number.strip_suffix(" tests").or_else(|| number.strip_suffix(" test"))?.parse().ok()
}

fn outcome(text: &str) -> Option<Outcome> {
    match text.split([',', ' ']).next()? {
        "ok" => Some(Outcome::Passed),
        "FAILED" => Some(Outcome::Failed),
        "ignored" => Some(Outcome::Ignored),
        _ => None,
    }
}

/// The end of a line, after a test's output.
fn late_outcome(line: &str) -> Option<Outcome> {
    match (line.ends_with("ok"), line.ends_with("FAILED")) {
        (true, _) => Some(Outcome::Passed),
        (_, true) => Some(Outcome::Failed),
        _ => None,
    }
}

/// The lines of nextest: `PASS [   0.004s] package::program a::b`, and `Summary [...] 2 tests run: ...`.
pub(super) fn nextest(stderr: &str) -> Result<Outcomes, String> {
    let mut outcomes = Outcomes::new();
    let mut is_ended = false;
    for line in stderr.lines().map(str::trim) {
        let (word, rest) = line.split_once(" [").unwrap_or_default();
        let name = rest.rsplit(' ').next().unwrap_or_default();
        match word {
            "PASS" | "LEAK" => record(&mut outcomes, name.to_owned(), true),
            "FAIL" | "SIGABRT" | "SIGSEGV" | "TIMEOUT" | "ABORT" => record(&mut outcomes, name.to_owned(), false),
            "Summary" => is_ended = true,
            _ => {}
        }
    }
    if is_ended { Ok(outcomes) } else { Err("nextest did not come to its end".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(stdout: &str, expected: Result<&[(&str, bool)], &str>) {
        let expected: Result<Outcomes, String> = expected
            .map(|tests| tests.iter().map(|(name, passed)| ((*name).to_owned(), *passed)).collect())
            .map_err(str::to_owned);
        assert_eq!(libtest(stdout), expected, "{stdout}");
    }

    #[test]
    fn each_program_reports_as_many_tests_as_it_has() {
        let end = "test result: FAILED. 1 passed\n";
        let two = "running 2 tests\ntest a::b ... ok\nnoisetest c - should panic ... FAILED\n";
        check(&format!("{two}{end}"), Ok(&[("a::b", true), ("c", false)]));
        check(two, Err("a program of tests did not come to its end"));
        check(&format!("{two}running 0 tests\n{end}"), Err("a program of tests did not come to its end"));
        check(&format!("running 3 tests\ntest a ... ok\n{end}"), Err("a program of tests did not report each test"));
        check(&format!("running 1 test\ntest a ... ignored, later\n{end}"), Ok(&[]));
        check("", Ok(&[]));
        let of_comments = [("src/lib.rs - a (line 7)", true), ("src/lib.rs - a::b (line 3)", true)];
        let lines = "test src/lib.rs - a::b (line 3) ... ok\ntest src/lib.rs - a (line 7) - compile fail ... ok\n";
        check(&format!("running 2 tests\n{lines}{end}"), Ok(&of_comments));
    }

    #[test]
    fn what_a_test_prints_may_stand_within_its_line() {
        let end = "test result: FAILED. 1 passed\n";
        let one =
            |printed: &str| format!("running 2 tests\ntest a ... {printed}\ntest b ... ok\n\nfailures:\n\nok\n{end}");
        check(&one("said\nok"), Ok(&[("a", true), ("b", true)]));
        check(&one("said ... all is ok\nmoreFAILED"), Ok(&[("a", false), ("b", true)]));
        check(&one("\nit is ok\nFAILED"), Ok(&[("a", false), ("b", true)]));
        check(&one("said"), Err("a program of tests did not report each test"));
    }

    #[test]
    fn cases_of_a_test_pass_where_all_of_them_do() {
        let text = "running 3 tests\ntest it::a_1::case_1 ... ok\ntest it::a_1::case_2 ... FAILED\n\
                    test it::b_2 ... ok\ntest result: FAILED. 2 passed\n";
        let outcomes = libtest(text).unwrap();
        let parts = by_part(&outcomes);
        assert_eq!((parts["a_1"], parts["b_2"], parts["it"]), (false, true, false));
    }

    #[test]
    fn outcomes_of_nextest_count_once_its_summary_is_there() {
        let text = "        PASS [   0.004s] demo tests::a\n        FAIL [   0.005s] (2/2) demo::it b\n     \
                    Summary [   0.0s] 2";
        let expected = [("tests::a".to_owned(), true), ("b".to_owned(), false)];
        assert_eq!(nextest(text), Ok(expected.into()));
        assert!(nextest("PASS [ 0.1s] demo a").is_err());
    }
}
