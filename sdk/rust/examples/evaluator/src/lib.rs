//! The evaluator `mentions`: what a criterion quotes must be in the work.
//!
//! Every text in double quotes must be in the output or in an evidence file. A criterion without quotes is
//! decided by the pinned check of its id. No model is asked, and there is no mark between pass and fail: what
//! cannot be decided fails and says so.

use longhaul_sdk::checks;
use longhaul_sdk::evaluator::{Evaluator, JudgeError, Judgement, Mark, Rubric, Subject, Verdict};
use longhaul_sdk::json;
use longhaul_sdk::types::{Criterion, Issue};
use serde_json::Value;

struct Mentions;

impl Evaluator for Mentions {
    fn judge(subject: Subject, rubric: Rubric) -> Result<Verdict, JudgeError> {
        if rubric.criteria.is_empty() {
            return Err(JudgeError::Failed("a rubric without criteria cannot be judged".to_owned()));
        }
        let texts = texts(&subject);
        let mut verdict = Verdict { judgements: Vec::new(), issues: Vec::new() };
        for criterion in &rubric.criteria {
            let (is_pass, reason) = match quoted(&criterion.text).as_slice() {
                [] => checked(criterion)?,
                quotes => mentioned(quotes, &texts),
            };
            if !is_pass {
                verdict.issues.push(Issue { criterion: Some(criterion.id.clone()), text: reason.clone() });
            }
            let mark = if is_pass { Mark::Pass } else { Mark::Fail };
            verdict.judgements.push(Judgement { criterion: criterion.id.clone(), mark, reason });
        }
        Ok(verdict)
    }
}

longhaul_sdk::export_evaluator!(Mentions);

/// The texts that a quote may be in. The output is JSON, in which one text can be written in several ways, so it is
/// there twice: as it came, and with its escapes read.
fn texts(subject: &Subject) -> Vec<String> {
    let mut texts = vec![subject.output.clone()];
    texts.extend(serde_json::from_str::<Value>(&subject.output).map(|output| output.to_string()));
    texts.extend(subject.evidence.iter().map(|evidence| evidence.content.clone()));
    texts
}

/// The texts between pairs of `"`, but empty ones.
fn quoted(text: &str) -> Vec<&str> {
    let parts: Vec<&str> = text.split('"').collect();
    // The parts at odd places are inside, if a quote follows them.
    let last = parts.len() - 1;
    let inside = parts.iter().enumerate().filter(|(at, part)| at % 2 == 1 && *at < last && !part.is_empty());
    inside.map(|(_, part)| *part).collect()
}

fn mentioned(quotes: &[&str], texts: &[String]) -> (bool, String) {
    let is_there = |quote: &&&str| texts.iter().any(|text| text.contains(**quote));
    let missing: Vec<String> =
        quotes.iter().filter(|quote| !is_there(quote)).map(|quote| format!("\"{}\"", json::cut(quote, 80))).collect();
    if missing.is_empty() {
        return (true, "everything that it quotes is in the work".to_owned());
    }
    (false, json::cut(&format!("not in the work: {}", missing.join(", ")), 400))
}

/// The verdict of the check that has the criterion's id.
fn checked(criterion: &Criterion) -> Result<(bool, String), JudgeError> {
    let name = &criterion.id;
    if !checks::list().iter().any(|check| check.name == *name) {
        return Ok((false, format!("it quotes nothing, and there is no check `{name}`")));
    }
    let report = checks::run(name)?;
    let state = if report.passed { "passes" } else { "fails" };
    let end = report.exit_code.map_or_else(|| "at a limit".to_owned(), |code| format!("with exit code {code}"));
    Ok((report.passed, format!("the check `{name}` {state} {end}")))
}

#[cfg(test)]
mod tests {
    use longhaul_sdk::evaluator::Evidence;

    use super::*;

    #[track_caller]
    fn check(criterion: &str, expected: &str) {
        let evidence = Evidence { name: "a.txt".to_owned(), content: "two\n".to_owned() };
        let output = r#""gr\u00fcn one""#.to_owned();
        let subject =
            Subject { instruction: String::new(), output, evidence: vec![evidence], context: "{}".to_owned() };
        let criterion = Criterion { id: "c".to_owned(), text: criterion.to_owned(), check: None };
        let verdict = Mentions::judge(subject, Rubric { criteria: vec![criterion], settings: "{}".to_owned() });
        let verdict = verdict.expect("a verdict");
        let judgement = &verdict.judgements[0];
        assert_eq!(format!("{:?}: {}", judgement.mark, judgement.reason), expected);
        assert_eq!(verdict.issues.len(), usize::from(judgement.mark == Mark::Fail));
    }

    #[test]
    fn what_is_quoted_must_be_in_the_work() {
        check(r#"says "one" and "two""#, "Mark::Pass: everything that it quotes is in the work");
        check(r#"says "grün""#, "Mark::Pass: everything that it quotes is in the work");
        check(r#"says "one", "six" and "ten"; "odd"#, "Mark::Fail: not in the work: \"six\", \"ten\"");
    }

    #[test]
    fn a_text_between_quotes_is_a_quote_and_an_open_one_is_not() {
        assert_eq!(quoted(r#"a "b" c "" "d" "e"#), ["b", "d"]);
        assert!(quoted("").is_empty());
        assert!(quoted("\"").is_empty());
    }

    #[test]
    fn an_empty_rubric_is_an_error() {
        let subject = Subject {
            instruction: String::new(),
            output: String::new(),
            evidence: Vec::new(),
            context: "{}".to_owned(),
        };
        let rubric = Rubric { criteria: Vec::new(), settings: String::new() };
        let error = JudgeError::Failed("a rubric without criteria cannot be judged".to_owned());
        assert_eq!(Mentions::judge(subject, rubric), Err(error));
    }
}
