//! A report in the form of JUnit, which most runners can write.
//!
//! This very run must have written the file. The file must name each test once, have none that failed or was skipped,
//! and have at least the operator's minimum. A known gap: the code under test can write the file too, and nothing is
//! audited.

use super::runner::{CheckVerdict, JudgeStep, JudgedCheck, Launch, ProgramEnd, Runner};
use longhaul_core::text::count;
use std::collections::BTreeSet;

pub(crate) struct Junit {
    argv: Vec<String>,
    report: String,
    tests_min: usize,
    is_there: bool,
    is_running: bool,
}

impl Junit {
    pub(crate) fn of(check: &JudgedCheck<'_>) -> Self {
        let report = check.report.unwrap_or_default().to_owned();
        let is_there = check.files.paths().contains(&report);
        let tests_min = usize::try_from(check.tests_min).unwrap_or(usize::MAX).max(1);
        Self { argv: check.argv.to_vec(), report, tests_min, is_there, is_running: false }
    }

    fn judged(&self, ended: &ProgramEnd) -> JudgeStep {
        let report = &self.report;
        let Some(bytes) = ended.files.get(&self.reads()) else {
            return CheckVerdict::refused(format!("it wrote no report `{report}`"));
        };
        match passed(&String::from_utf8_lossy(bytes)) {
            Err(why) => CheckVerdict::refused(format!("in `{report}` {why}")),
            Ok(number) if number < self.tests_min => {
                let (has, min) = (count(number, "test"), self.tests_min);
                CheckVerdict::refused(format!("`{report}` has {has}, and `tests_min` is {min}"))
            }
            Ok(number) => {
                CheckVerdict::pass(format!("{} passed by name in `{report}`, without an audit", count(number, "test")))
            }
        }
    }

    fn reads(&self) -> String {
        format!("work/{}", self.report)
    }
}

impl Runner for Junit {
    fn next(&mut self, ended: Option<ProgramEnd>) -> JudgeStep {
        match ended {
            _ if self.is_there => CheckVerdict::refused(format!(
                "`{}` is a file of the work, and must be written by the tests alone; remove it, and have git ignore it",
                self.report
            )),
            Some(ended) if self.is_running && ended.exit_code == 0 => self.judged(&ended),
            Some(_) => CheckVerdict::failed(),
            None => {
                self.is_running = true;
                JudgeStep::Launch(Launch { argv: self.argv.clone(), reads: vec![self.reads()], ..Launch::default() })
            }
        }
    }
}

/// The number of passed tests, or why it cannot be found.
fn passed(xml: &str) -> Result<usize, String> {
    let mut names = BTreeSet::new();
    for case in xml.split("<testcase").skip(1) {
        let (attributes, rest) = case.split_once('>').ok_or("a test case does not end")?;
        let body = if attributes.ends_with('/') { "" } else { rest.split("</testcase>").next().unwrap_or_default() };
        let name = format!("{} {}", attribute(attributes, "classname"), attribute(attributes, "name"));
        if let Some(bad) = ["<failure", "<error", "<skipped"].into_iter().find(|bad| body.contains(bad)) {
            return Err(format!("`{}` is {}", name.trim(), bad.trim_start_matches('<')));
        }
        if !names.insert(name.clone()) {
            return Err(format!("`{}` stands twice", name.trim()));
        }
    }
    Ok(names.len())
}

fn attribute<'a>(attributes: &'a str, name: &str) -> &'a str {
    let value = attributes.split_once(&format!(" {name}=\"")).map(|(_, rest)| rest);
    value.and_then(|rest| rest.split('"').next()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(cases: &str, expected: Result<usize, &str>) {
        let xml = format!("<testsuites><testsuite tests=\"9\">{cases}</testsuite></testsuites>");
        assert_eq!(passed(&xml), expected.map_err(str::to_owned), "{cases}");
    }

    #[test]
    fn each_test_case_must_pass_once() {
        let one = r#"<testcase classname="a" name="b" time="0.1"/>"#;
        check(&format!(r#"{one}<testcase classname="a" name="c"><system-out>x</system-out></testcase>"#), Ok(2));
        check("", Ok(0));
        check(&one.repeat(2), Err("`a b` stands twice"));
        check(r#"<testcase name="b"><skipped/></testcase>"#, Err("`b` is skipped"));
        check(r#"<testcase name="b"><failure message="no">x</failure></testcase>"#, Err("`b` is failure"));
    }
}
