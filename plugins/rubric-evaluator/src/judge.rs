//! The two judges, checks and the model, and how their findings become one verdict.

use longhaul_sdk::checks::{self, CheckError, CheckReport};
use longhaul_sdk::conversation::{Options, ReplyFormat};
use longhaul_sdk::evaluator::{Judgement, Mark, Subject, Verdict};
use longhaul_sdk::types::{Criterion, Issue};
use longhaul_sdk::{Conversation, Error, json};

use crate::prompt::{self, Given};
use crate::settings::Settings;

/// The finding about one criterion.
pub(crate) struct Found {
    mark: Mark,
    why: String,
    /// More than the line why, for the agent; only of failures.
    detail: Option<String>,
}

/// Asks the model about `criteria`; no criteria, no question.
///
/// A reply that lacks some is asked again; what is missing in the end has no mark.
pub(crate) fn by_model(subject: &Subject, criteria: &[&Criterion], settings: &Settings) -> Result<Vec<Given>, Error> {
    if criteria.is_empty() {
        return Ok(Vec::new());
    }
    let conversation = Conversation::new(&prompt::system(settings));
    conversation.pinned(prompt::message(subject, criteria, settings))?;
    let schema = prompt::schema(criteria).to_string();
    let mut best = Vec::new();
    for tried in 0..settings.tries_max {
        let reply = conversation.complete(&options(settings, &schema, tried))?;
        let wrong = match prompt::read(&reply.text, criteria) {
            Ok(mut given) => {
                cut_reasons(&mut given, settings);
                let is_whole = given.len() == criteria.len();
                if given.len() > best.len() {
                    best = given;
                }
                if is_whole {
                    break;
                }
                "it does not judge every criterion".to_owned()
            }
            Err(wrong) => wrong,
        };
        if tried + 1 < settings.tries_max {
            conversation.user(format!("This reply cannot be used: {wrong}. Judge all again."))?;
        }
    }
    Ok(best)
}

/// The mark that the model gave, or unknown.
pub(crate) fn of_model(given: &[Given], id: &str) -> Found {
    match given.iter().find(|given| given.criterion == id) {
        Some(given) => Found { mark: given.mark, why: given.why.clone(), detail: None },
        None => Found {
            mark: Mark::Unknown,
            why: "the model did not judge it; a stronger model or a check would".to_owned(),
            detail: None,
        },
    }
}

/// Runs a pinned check.
pub(crate) fn by_check(name: &str, settings: &Settings) -> Result<Found, Error> {
    match checks::run(name) {
        Ok(report) => Ok(reported(&report, settings)),
        // The work may be fine; that this check cannot tell is for the operator to mend.
        Err(error @ (CheckError::UnknownCheck(_) | CheckError::Failed(_))) => Ok(Found {
            mark: Mark::Unknown,
            why: format!("the check `{name}` cannot be run: {}", Error::from(error)),
            detail: None,
        }),
        Err(error) => Err(error.into()),
    }
}

pub(crate) fn add(verdict: &mut Verdict, criterion: &Criterion, found: Found) {
    if found.mark != Mark::Pass {
        let text = found.detail.unwrap_or_else(|| format!("{}: {}", criterion.text, found.why));
        verdict.issues.push(Issue { criterion: Some(criterion.id.clone()), text });
    }
    let (criterion, mark, reason) = (criterion.id.clone(), found.mark, found.why);
    verdict.judgements.push(Judgement { criterion, mark, reason });
}

fn reported(report: &CheckReport, settings: &Settings) -> Found {
    let name = &report.name;
    if report.passed {
        let why = format!("the check `{name}` passes");
        return Found { mark: Mark::Pass, why, detail: None };
    }
    let stderr = report.stderr.trim();
    let said = if stderr.is_empty() { report.stdout.trim() } else { stderr };
    let end = report.exit_code.map_or_else(|| "ended at a limit".to_owned(), |code| format!("exit code {code}"));
    let last = said.lines().last().map(str::trim).filter(|line| !line.is_empty());
    let why = last.map_or_else(|| format!("{end}, without a word"), str::to_owned);
    let output = json::tail(said, settings.issue_chars_max);
    Found {
        mark: Mark::Fail,
        why: json::cut(&why, settings.why_chars_max),
        detail: Some(format!("the check `{name}` fails ({end}):\n{output}")),
    }
}

fn options(settings: &Settings, schema: &str, tried: u32) -> Options {
    Options {
        temperature: settings.temperature,
        seed: Some(settings.seed.wrapping_add(tried)),
        output_tokens_max: settings.output_tokens_max,
        format: ReplyFormat::Schema(schema.to_owned()),
        ..Options::default()
    }
}

fn cut_reasons(given: &mut [Given], settings: &Settings) {
    for given in given {
        given.why = json::cut(&given.why, settings.why_chars_max);
    }
}
