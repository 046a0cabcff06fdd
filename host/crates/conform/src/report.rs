//! Findings, and the two ways in which they are written: lines, and JUnit's XML.

use longhaul_core::text::{is_hidden, printable};
use std::fmt::{self, Write as _};

/// Longest reason that is shown on a line, in bytes.
const WHY_BYTES_MAX: usize = 2_000;

/// The verdict of one rule, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleVerdict {
    /// The rule holds; the text says what was seen.
    Pass(String),
    /// The rule fails.
    Fail(String),
    /// The rule does not apply to this component.
    Skip(String),
}

impl RuleVerdict {
    /// `PASS`, `FAIL` or `SKIP`.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Pass(_) => "PASS",
            Self::Fail(_) => "FAIL",
            Self::Skip(_) => "SKIP",
        }
    }

    /// The reason.
    #[must_use]
    pub fn why(&self) -> &str {
        match self {
            Self::Pass(why) | Self::Fail(why) | Self::Skip(why) => why,
        }
    }
}

/// A rule and its verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleFinding {
    /// The rule.
    pub rule: &'static str,
    /// The verdict.
    pub judged: RuleVerdict,
}

impl fmt::Display for RuleFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:<22} {}", self.judged.word(), self.rule, printable(self.judged.why(), WHY_BYTES_MAX))
    }
}

/// All findings on one component.
#[derive(Clone, Debug, Default)]
pub struct ConformReport {
    /// Name of the component.
    pub name: String,
    /// Role of the component, if it has one.
    pub role: Option<&'static str>,
    /// Findings, in the order of the rules.
    pub findings: Vec<RuleFinding>,
}

impl ConformReport {
    /// True when no rule failed.
    #[must_use]
    pub fn passes(&self) -> bool {
        self.count("FAIL") == 0
    }

    /// Counts the findings with this word.
    #[must_use]
    pub fn count(&self, word: &str) -> usize {
        self.findings.iter().filter(|finding| finding.judged.word() == word).count()
    }

    /// The finding of a rule.
    #[must_use]
    pub fn of(&self, rule: &str) -> Option<&RuleVerdict> {
        self.findings.iter().find(|finding| finding.rule == rule).map(|finding| &finding.judged)
    }

    /// The report as JUnit XML, which test servers read: a suite with a case for each rule.
    #[must_use]
    pub fn to_junit(&self) -> String {
        let mut cases = String::new();
        for RuleFinding { rule, judged } in &self.findings {
            let why = escaped(judged.why());
            let inner = match judged {
                RuleVerdict::Pass(_) => String::new(),
                RuleVerdict::Fail(_) => format!("<failure message=\"{why}\"/>"),
                RuleVerdict::Skip(_) => format!("<skipped message=\"{why}\"/>"),
            };
            // A string takes every write.
            let _ =
                writeln!(cases, "  <testcase classname=\"{}\" name=\"{rule}\">{inner}</testcase>", escaped(&self.name));
        }
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"longhaul conform {}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\">\n{cases}</testsuite>\n",
            escaped(&self.name),
            self.findings.len(),
            self.count("FAIL"),
            self.count("SKIP"),
        )
    }
}

/// A text inside of an attribute. Hidden characters, of which XML cannot hold many, become spaces.
fn escaped(text: &str) -> String {
    let mut all = String::new();
    for char in text.chars() {
        match char {
            '&' => all.push_str("&amp;"),
            '<' => all.push_str("&lt;"),
            '>' => all.push_str("&gt;"),
            '"' => all.push_str("&quot;"),
            char if is_hidden(char) || matches!(char, '\u{fffe}' | '\u{ffff}') => all.push(' '),
            char => all.push(char),
        }
    }
    all
}

impl fmt::Display for ConformReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.findings {
            writeln!(f, "{finding}")?;
        }
        let (passed, failed, skipped) = (self.count("PASS"), self.count("FAIL"), self.count("SKIP"));
        let name = printable(&self.name, WHY_BYTES_MAX);
        write!(f, "{name}: {passed} pass, {failed} fail, {skipped} skip")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_written_for_test_servers() {
        let findings = vec![
            RuleFinding { rule: "a", judged: RuleVerdict::Pass("fine".into()) },
            RuleFinding { rule: "b", judged: RuleVerdict::Fail("\"x\" < \u{1}".into()) },
        ];
        let report = ConformReport { name: "p&q".into(), role: Some("tool"), findings };
        assert!(!report.passes());
        let xml = report.to_junit();
        assert!(xml.contains("name=\"longhaul conform p&amp;q\" tests=\"2\" failures=\"1\" skipped=\"0\""), "{xml}");
        assert!(xml.contains("<failure message=\"&quot;x&quot; &lt;  \"/>"), "{xml}");
    }
}
