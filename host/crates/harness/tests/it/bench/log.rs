//! The log of a run for tests: a line for each requested action, without those that come with others.

use longhaul_core::event::Event;
use longhaul_harness::{Action, Work, WorkKind};

/// The lines of a round that passes, from its judgement to the status of its feature.
const PASSING_LINES: usize = 5;

/// True of actions that always come with a feature's status, or that the bench itself caused.
pub(super) fn is_of_course(action: &Action) -> bool {
    match action {
        Action::Emit(Event::SessionStarting { .. } | Event::SessionComplete { .. }) => true,
        Action::Work(Work { job: WorkKind::Prepare { checks, .. }, .. }) => checks.is_empty(),
        Action::Work(Work { job: WorkKind::TryChecks { .. }, .. }) => true,
        _ => false,
    }
}

/// One line an action.
pub(super) fn show(action: &Action) -> String {
    match action {
        Action::Work(work) => format!("do {}", work.key()),
        Action::Cancel { key } => format!("cancel {key}"),
        Action::Park(park) => match park.until_ms {
            Some(until) => format!("park until {until}"),
            None => "park".into(),
        },
        Action::Finish { status, summary } => format!("finish {}: {summary}", status.as_str()),
        Action::Emit(event) => format!("- {}", show_event(event)),
    }
}

fn show_event(event: &Event) -> String {
    match event {
        Event::Planned { features, .. } => format!("planned {}", features.len()),
        Event::Feature { feature, status, why } => {
            let status = serde_json::to_value(status).expect("a word");
            format!("{feature} {}: {why}", status.as_str().unwrap_or_default())
        }
        Event::Judged { feature, round, passed, .. } => format!("judged {feature} round {round}: {passed}"),
        Event::Committed { feature, commit, files, .. } => format!("committed {feature} {commit} {}", files.join(",")),
        Event::Parked { question, answer_with } => format!("asks: {question} [{answer_with}]"),
        Event::Paused => "paused".into(),
        Event::RunResumed => "resumed".into(),
        Event::Limit { name, text } => format!("limit {name}: {text}"),
        Event::VacuousCheck { feature, check } => format!("vacuous {feature} {check}"),
        Event::Warning { text } => format!("warning: {text}"),
        Event::Replanned { replan, features, kept, .. } => {
            let ids: Vec<_> = features.iter().map(|(id, _)| id.as_str()).collect();
            format!("replanned {replan}: {}, kept {}", ids.join(" "), kept.join(" "))
        }
        Event::Answered { answer, .. } => format!("answered {answer}"),
        Event::RunEnded { status, .. } => format!("ended {status}"),
        other => format!("{other:?}"),
    }
}

/// The log with one line for each round that passes.
pub(super) fn shortened(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    let mut short = Vec::new();
    let mut rest = lines.as_slice();
    while let Some((first, after)) = rest.split_first() {
        if let Some(round) = passing_round(rest) {
            short.push(format!("{round} passes"));
            rest = &rest[PASSING_LINES..];
        } else {
            short.push((*first).to_owned());
            rest = after;
        }
    }
    short.join("\n")
}

/// The session and number of the round, such as `f-a/e1/2`, where these lines begin with one that passes.
fn passing_round<'a>(lines: &[&'a str]) -> Option<&'a str> {
    let round = lines.first()?.strip_prefix("do ")?.strip_suffix("/judge")?;
    let (session, number) = round.rsplit_once('/')?;
    let feature = session.strip_prefix("f-")?.split('/').next()?;
    let expected = [
        format!("- judged {feature} round {number}: true"),
        format!("do {session}/commit"),
        format!("- committed {feature} c-{session}/commit a.txt"),
        format!("- {feature} passing: all checks passed"),
    ];
    let found = lines.get(1..PASSING_LINES)?;
    found.iter().zip(&expected).all(|(line, expected)| line == expected).then_some(round)
}
