//! The report of a run, for people who were not there: as Markdown, as one HTML file, or as JSON; and the comparison of
//! runs, as text or as one HTML file.
//!
//! It is made of what the store holds of the run, so the same run gives the same report, whenever it is asked for. It
//! judges nothing and changes nothing, and prints nothing: the caller gets the text.

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod basis;
pub mod comparison;
pub mod comparison_html;
mod crashes;
mod escape;
mod formats;
mod gather;
mod html;
mod markdown;
pub mod messages;
mod plot;
mod published;
mod shares;

pub use crashes::crash_page;
pub use formats::{ReportFormat, of};

use basis::{Basis, RestsOn};
use longhaul_api::runs::{CarriedInvocation, Status};
use longhaul_api::wire::usage::{LedgerDetails, WorkUsageView};
use longhaul_core::RunId;
use longhaul_core::decision::Decision;
use longhaul_core::event::{Event, RunEvent, WorkUsage};
use longhaul_core::work::{FeatureStatus, Synthesis};
use longhaul_harness::{Feature, RunStatus};
use longhaul_records::ledger::LedgerView;
use longhaul_worktree::near_the_judge;
use published::published;
use serde::Serialize;
use shares::Share;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// A run as it is reported.
#[derive(Debug, Serialize)]
struct RunReport {
    run: RunId,
    project: String,
    directory: PathBuf,
    branch: String,
    status: RunStatus,
    /// The reason of its wait or of its end.
    reason: String,
    /// The times of its creation and of its last event, in milliseconds since 1970-01-01 UTC.
    created_ms: u64,
    last_ms: u64,
    /// Features that pass, of those that were not dropped.
    passing: (usize, usize),
    /// The number of its resumes, and of its pauses and waits for a person.
    resumes: usize,
    stops: usize,
    features: Vec<FeatureRow>,
    /// Oldest first.
    commits: Vec<CommitRow>,
    #[serde(serialize_with = "published::<WorkUsage, WorkUsageView, _>")]
    resource_usage: WorkUsage,
    /// The synthesis of the results, once there is an answer.
    answer: Option<Synthesis>,
    /// The usage of each invocation, and the limits.
    #[serde(serialize_with = "published::<LedgerView, LedgerDetails, _>")]
    ledger: LedgerView,
    /// The time from its creation to its last event, in milliseconds.
    duration_ms: u64,
    /// The one that used the most tokens comes first.
    agents: Vec<Share>,
    /// Oldest first.
    decisions: Vec<Decision>,
    /// Contexts that were begun anew or made shorter.
    resets: Vec<TimelineRow>,
    /// Caps that were reached.
    caps: Vec<TimelineRow>,
    warnings: Vec<TimelineRow>,
    /// The events, in the words of a terminal.
    timeline: Vec<TimelineRow>,
    /// The number of features that pass, from each time on.
    passing_over_time: Vec<(u64, usize)>,
    /// The number of tokens that were used, until each time.
    tokens_over_time: Vec<(u64, u64)>,
}

/// A feature.
#[derive(Debug, Serialize)]
struct FeatureRow {
    id: String,
    title: String,
    category: String,
    priority: u8,
    status: FeatureStatus,
    reason: String,
    attempts: u32,
    sessions: u32,
    depends_on: Vec<String>,
    vacuous: Vec<String>,
    /// The basis of its pass for each criterion, from the last verdict by which it passed.
    evidence: Vec<Basis>,
    /// Criteria that passed by an exit code alone, which the code under test can choose.
    by_exit_code: Vec<String>,
    /// Files that it changed and that may change a verdict on it: tests, and those of a test runner.
    near_judge: Vec<String>,
    commit: Option<String>,
    #[serde(serialize_with = "published::<WorkUsage, WorkUsageView, _>")]
    resource_usage: WorkUsage,
}

/// A commit.
#[derive(Debug, Serialize)]
struct CommitRow {
    at_ms: u64,
    commit: String,
    feature: String,
    files: Vec<String>,
    /// Those of them that are protected, which a person approved of.
    protected: Vec<String>,
    /// True when a revert took it back.
    reverted: bool,
}

/// Something that happened.
#[derive(Debug, Serialize)]
struct TimelineRow {
    at_ms: u64,
    text: String,
}

impl RunReport {
    fn of(status: Status, events: &[RunEvent], parts: &[CarriedInvocation], decisions: Vec<Decision>) -> Self {
        let Status { summary, branch, reason, features, resource_usage, synthesis: answer, ledger, .. } = status;
        let last_ms = events.last().map_or(summary.created_ms, |event| event.at_ms);
        let count = |is: fn(&Event) -> bool| events.iter().filter(|event| is(&event.event)).count();
        Self {
            run: summary.run,
            project: summary.project,
            directory: summary.directory,
            branch,
            status: summary.status,
            reason,
            created_ms: summary.created_ms,
            last_ms,
            duration_ms: last_ms.saturating_sub(summary.created_ms),
            passing: summary.passing,
            resumes: count(|event| matches!(event, Event::RunResumed)),
            stops: count(|event| matches!(event, Event::Paused | Event::Parked { .. })),
            features: features.into_iter().map(|feature| FeatureRow::of(feature, events)).collect(),
            commits: commits(events),
            resource_usage,
            answer,
            agents: shares::of(events, parts, &ledger),
            ledger,
            decisions,
            resets: lines(events, reset),
            caps: lines(events, |event| match event {
                Event::Limit { name, text } => Some(format!("{name}: {text}")),
                _ => None,
            }),
            warnings: lines(events, |event| match event {
                Event::Warning { text } => Some(text.clone()),
                _ => None,
            }),
            timeline: events.iter().filter_map(timeline).collect(),
            passing_over_time: passing_over_time(events),
            tokens_over_time: tokens_over_time(events),
        }
    }
}

impl FeatureRow {
    fn of(feature: Feature, events: &[RunEvent]) -> Self {
        let evidence = basis::of(&feature, events);
        let by_exit_code = by_exit_code(&evidence);
        let near_judge = near_judge(&feature.spec.id, events);
        let Feature { spec, status, why, attempts, sessions, vacuous, commit, used, .. } = feature;
        Self {
            id: spec.id,
            title: spec.title,
            category: spec.category,
            priority: spec.priority,
            status,
            reason: why,
            // The number of its attempts, the last one included: the harness counts those that failed.
            attempts: attempts.max(sessions),
            sessions,
            depends_on: spec.depends_on,
            vacuous,
            evidence,
            by_exit_code,
            near_judge,
            commit,
            resource_usage: used,
        }
    }
}

fn by_exit_code(evidence: &[Basis]) -> Vec<String> {
    let of_exit = evidence.iter().filter(|basis| basis.rests_on == RestsOn::ExitCode);
    of_exit.map(|basis| basis.criterion.clone()).collect()
}

fn near_judge(feature: &str, events: &[RunEvent]) -> Vec<String> {
    let files = events.iter().filter_map(|event| match &event.event {
        Event::Committed { feature: other, files, .. } if other == feature => Some(files),
        _ => None,
    });
    let near: BTreeSet<&String> = files.flatten().filter(|path| near_the_judge(path).is_some()).collect();
    near.into_iter().cloned().collect()
}

fn commits(events: &[RunEvent]) -> Vec<CommitRow> {
    let left = events.iter().flat_map(|event| match &event.event {
        Event::Reverted { left, .. } => left.as_slice(),
        _ => &[],
    });
    let left: BTreeSet<&String> = left.collect();
    let of = |event: &RunEvent| {
        let Event::Committed { feature, commit, files, protected } = &event.event else { return None };
        let (feature, reverted) = (feature.clone(), left.contains(commit));
        let (commit, files, protected) = (commit.clone(), files.clone(), protected.clone());
        Some(CommitRow { at_ms: event.at_ms, commit, feature, files, protected, reverted })
    };
    events.iter().filter_map(of).collect()
}

impl CommitRow {
    /// Its files, for people.
    fn shown_files(&self) -> impl Iterator<Item = String> {
        let mark = |file: &String| if self.protected.contains(file) { " (protected)" } else { "" };
        self.files.iter().map(move |file| format!("{file}{}", mark(file)))
    }
}

fn timeline(event: &RunEvent) -> Option<TimelineRow> {
    Some(TimelineRow { at_ms: event.at_ms, text: messages::line(event)? })
}

fn lines(events: &[RunEvent], text: impl Fn(&Event) -> Option<String>) -> Vec<TimelineRow> {
    events.iter().filter_map(|event| Some(TimelineRow { at_ms: event.at_ms, text: text(&event.event)? })).collect()
}

/// A context that was begun anew or made shorter, by the tag of its event, with what else the event says.
fn reset(event: &Event) -> Option<String> {
    let told = serde_json::to_value(event).ok()?;
    let what = match told["type"].as_str()? {
        "context_reset" => "reset",
        "context_compacted" => "compacted",
        _ => return None,
    };
    let fields = told.as_object()?.iter().filter(|(name, _)| *name != "type");
    let said: Vec<String> = fields.map(|(name, value)| format!("{name} {value}")).collect();
    Some(format!("{what}: {}", said.join(", ")))
}

fn passing_over_time(events: &[RunEvent]) -> Vec<(u64, usize)> {
    let (mut passing, mut points) = (BTreeSet::new(), Vec::new());
    for event in events {
        let Event::Feature { feature, status, .. } = &event.event else { continue };
        let changed = match status {
            FeatureStatus::Passing => passing.insert(feature.clone()),
            _ => passing.remove(feature),
        };
        if changed {
            points.push((event.at_ms, passing.len()));
        }
    }
    points
}

fn tokens_over_time(events: &[RunEvent]) -> Vec<(u64, u64)> {
    let mut sum = 0;
    let ended = events.iter().filter_map(|event| match &event.event {
        Event::InvocationEnded { used, .. } if used.usage.tokens() > 0 => Some((event.at_ms, used.usage.tokens())),
        _ => None,
    });
    ended
        .map(|(at_ms, tokens)| {
            sum += tokens;
            (at_ms, sum)
        })
        .collect()
}

/// A span as people say it.
fn span(ms: u64) -> String {
    match ms / 1_000 {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min", seconds / 60),
        seconds => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_api::runs::RunSummary;
    use longhaul_core::InvocationId;
    use longhaul_core::model::Usage;
    use longhaul_core::work::{Evidence, FeatureSpec, Judgement};

    fn used(tokens: u32) -> WorkUsage {
        WorkUsage { fuel: 5, usage: Usage { output_tokens: tokens, ..Usage::default() }, ..WorkUsage::default() }
    }

    fn events() -> Vec<RunEvent> {
        let run = RunId::from_text("r-1");
        let invocation = InvocationId::from_text("r-1/f-sum/1/generate");
        let feature = |status| Event::Feature { feature: "sum".into(), status, why: String::new() };
        let happened = [
            Event::RunStarted { project: "p".into(), branch: "longhaul/p".into() },
            feature(FeatureStatus::InProgress),
            Event::InvocationStarted {
                invocation: invocation.clone(),
                plugin: "react".into(),
                export: "agent.run".into(),
                feature: Some("sum".into()),
                round: 1,
                agent: "agents.code".into(),
            },
            Event::InvocationEnded {
                invocation,
                outcome: "wrote <sum>".into(),
                ok: true,
                used: used(120),
                agent: "agents.code".into(),
            },
            Event::Judged {
                feature: "sum".into(),
                round: 1,
                passed: true,
                judgements: Vec::<Judgement>::new(),
                evidence: [("c1".to_owned(), Evidence::ExitCode), ("c2".to_owned(), Evidence::Junit)].into(),
            },
            Event::Committed {
                feature: "sum".into(),
                commit: "0123456789abcdef".into(),
                files: vec!["a|b.py".into(), "conftest.py".into()],
                protected: vec![],
            },
            feature(FeatureStatus::Passing),
            Event::Limit { name: "sessions_max".into(), text: "no more".into() },
            Event::Reverted {
                to: "fedcba9876".into(),
                kept_as: None,
                left: vec!["0123456789abcdef".into()],
                features: vec!["sum".into()],
            },
            feature(FeatureStatus::NotStarted),
            Event::RunResumed,
        ];
        let numbered = happened.into_iter().zip(1..);
        numbered
            .map(|(event, number)| RunEvent {
                run: run.clone(),
                number,
                at_ms: 1_700_000_000_000 + number * 1_000,
                event,
            })
            .collect()
    }

    fn report() -> RunReport {
        let spec = FeatureSpec {
            id: "sum".into(),
            title: "Sum of <numbers> | *all*".into(),
            instruction: String::new(),
            category: "functional".into(),
            priority: 5,
            agent: None,
            criteria: Vec::new(),
            checks: Vec::new(),
            depends_on: Vec::new(),
        };
        let summary = RunSummary {
            run: RunId::from_text("r-1"),
            project: "p".into(),
            directory: "/p".into(),
            status: RunStatus::Incomplete,
            project_status: longhaul_core::project::ProjectStatus::Active,
            passing: (0, 1),
            created_ms: 1_700_000_000_000,
            last_ms: 1_700_000_000_000,
            is_ask: false,
            active: false,
            wakes_at_ms: None,
            queue_place: None,
            queued_ms: None,
            archived_ms: None,
            title: "the end".into(),
            agents: Vec::new(),
            spent: longhaul_core::supervisor::InvocationUsage::default(),
            wall_ms: 0,
            budget_microdollars: None,
            forked_from: None,
        };
        let status = Status {
            summary,
            branch: "longhaul/p".into(),
            fork: None,
            asked: None,
            reason: "the end".into(),
            question: None,
            synthesis: None,
            ledger: LedgerView::default(),
            features: vec![Feature::new(spec)],
            resource_usage: used(120),
            questions: Vec::new(),
            answer_with: Vec::new(),
            cost_microdollars_max: None,
            tokens_max: 1,
        };
        let part = CarriedInvocation {
            invocation: InvocationId::from_text("r-1/f-sum/1/generate"),
            table: "agents.code".into(),
            plugin: "react".into(),
            from_ms: 1_700_000_003_000,
            until_ms: Some(1_700_000_003_900),
        };
        let decision = Decision { decision: "use <jiff>".into(), context: "x".repeat(120), ..Decision::default() };
        RunReport::of(status, &events(), &[part], vec![decision])
    }

    #[test]
    fn a_run_is_counted_as_it_happened() {
        let report = report();
        assert_eq!(report.passing_over_time, [(1_700_000_007_000, 1), (1_700_000_010_000, 0)]);
        assert_eq!(report.tokens_over_time, [(1_700_000_004_000, 120)]);
        let Share { agent, plugin, calls, worked_ms, .. } = &report.agents[0];
        assert_eq!((agent.as_str(), plugin.as_str(), *calls, *worked_ms), ("agents.code", "react", 1, 900));
        assert_eq!(report.duration_ms, 11_000);
        assert_eq!((report.commits.len(), report.caps.len(), report.resumes), (1, 1, 1));
    }

    #[test]
    fn what_others_wrote_is_text_and_no_markup() {
        let report = report();
        let markdown = markdown::write(&report);
        assert!(markdown.contains(r"Sum of \<numbers\> \| \*all\*"), "{markdown}");
        assert!(markdown.contains("(by an exit code alone: c1) (near the judge: conftest.py)"), "{markdown}");
        let rests_on = "| sum | c2 | a report in the form of JUnit, which the code under test could write |";
        assert!(markdown.contains(rests_on), "{markdown}");
        assert!(markdown.contains(r"use \<jiff\>") && !markdown.contains(&"x".repeat(101)), "{markdown}");
        assert!(
            markdown.contains(r"a\|b.py, conftest.py (reverted)") && markdown.contains("reverted to fedcba9876"),
            "{markdown}"
        );
        assert!(markdown.contains(r"a\|b.py") && markdown.contains("2023-11-14 22:13:26"), "{markdown}");
        let html = html::write(&report);
        assert!(html.contains("Sum of &lt;numbers&gt; | *all*") && !html.contains("<numbers>"), "{html}");
        assert!(html.contains("<tr><td>sum<td>c2<td class=\"why\">a report in the form of JUnit, which"), "{html}");
        let json = serde_json::to_value(&report).expect("JSON");
        assert_eq!(json["features"][0]["evidence"][1]["rests_on"], "junit", "{json}");
        assert_eq!(json["resource_usage"]["usage"]["output_tokens"], 120, "{json}");
        assert!(json["ledger"]["in_flight_usage_max"].is_object(), "{json}");
        assert!(
            html.contains("<svg") && !html.contains("http://") && !html.contains("https://"),
            "it needs nothing else"
        );
    }

    #[test]
    fn times_are_shown_as_people_say_them() {
        assert_eq!(
            [span(1_999), span(119_000), span(7_199_000), span(7_260_000)],
            ["1 s", "119 s", "119 min", "2 h 1 min"]
        );
        assert_eq!(messages::moment(u64::MAX), format!("{} ms", u64::MAX));
    }
}
