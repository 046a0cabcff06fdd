//! A fault of a project, with its file and line.

use longhaul_api::checks::Finding;
use longhaul_config::{Config, Diagnostic, FILE, toml_text};
use longhaul_core::fault::{self, bail};

pub(crate) fn of_diagnostic(found: &Diagnostic) -> Finding {
    Finding::new(Some(FILE), found.line, &found.text)
}

/// A planner's fault about the goal's text.
pub fn of_goal(config: &Config, text: &str) -> Finding {
    let (line, text) = line_of_goal(text);
    Finding::new(Some(&config.project.goal.display().to_string()), line, text)
}

/// Refuses to begin or to resume when there are findings: it names the first one, and how many more there are.
pub fn refuse(findings: &[Finding]) -> fault::Result<()> {
    match findings {
        [] => Ok(()),
        [only] => bail!("{only}"),
        [first, rest @ ..] => bail!("{first} (and {} more; `longhaul check` lists them)", rest.len()),
    }
}

/// The findings so far.
pub(crate) struct Findings {
    /// The text of `longhaul.toml`.
    text: String,
    findings: Vec<Finding>,
}

impl Findings {
    /// No findings yet, for a `longhaul.toml` with this text.
    pub(crate) fn new(text: String) -> Self {
        Self { text, findings: Vec::new() }
    }

    /// Adds a finding about a key of `longhaul.toml`, by its path.
    pub(crate) fn at(&mut self, path: &str, text: &str) {
        self.findings.push(Finding::new(Some(FILE), toml_text::line_of(&self.text, path), text));
    }

    /// Adds a finding about another file of the project.
    pub(crate) fn in_file(&mut self, file: &str, line: Option<usize>, text: &str) {
        self.findings.push(Finding::new(Some(file), line, text));
    }

    /// Adds a planner's finding about the goal.
    pub(crate) fn of_goal(&mut self, config: &Config, text: &str) {
        self.findings.push(of_goal(config, text));
    }

    pub(crate) fn of_machine(&mut self, text: &str) {
        self.findings.push(Finding::new(None, None, text));
    }

    pub(crate) fn into_findings(self) -> Vec<Finding> {
        self.findings
    }
}

/// Splits a planner's text about a goal into the line that it begins with, `line 3 of the goal`, and the rest.
fn line_of_goal(text: &str) -> (Option<usize>, &str) {
    let read = || {
        let (number, rest) = text.strip_prefix("line ")?.split_once(' ')?;
        Some((Some(number.parse().ok()?), rest.strip_prefix("of the goal")?.trim_start_matches([',', ':', ' '])))
    };
    read().unwrap_or((None, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_one_line_and_says_how_many_more_there_are() {
        let finding = |line, text: &str| Finding::new(Some("longhaul.toml"), line, text);
        let (first, second) = (finding(Some(3), "one\n  thing \u{1b}[2J"), finding(None, "another"));
        assert!(refuse(&[]).is_ok());
        let said = |findings: &[Finding]| refuse(findings).unwrap_err().to_string();
        assert_eq!(said(std::slice::from_ref(&second)), "longhaul.toml: another");
        let both = said(&[first, second]);
        assert!(both.starts_with("longhaul.toml:3: one thing "), "{both}");
        assert!(both.ends_with("(and 1 more; `longhaul check` lists them)"), "{both}");
        assert!(!both.contains(['\n', '\u{1b}']), "{both:?}");
    }

    #[test]
    fn the_line_of_a_goal_is_read_where_a_planner_names_it() {
        assert_eq!(line_of_goal("line 12 of the goal, in the feature `a`: x"), (Some(12), "in the feature `a`: x"));
        for text in ["line many of the goal", "line 3 of a song", "what is to be built?"] {
            assert_eq!(line_of_goal(text), (None, text));
        }
    }
}
