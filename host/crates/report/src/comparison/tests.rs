//! Comparisons as text and as a page, made by hand.

use super::*;
use crate::comparison_html::html;
use longhaul_api::comparison::LastVerdict;
use longhaul_api::runs::RunSummary;
use longhaul_core::RunId;
use longhaul_core::event::WorkUsage;
use longhaul_core::model::Usage;
use longhaul_core::project::ProjectStatus;
use longhaul_core::supervisor::InvocationUsage;
use longhaul_core::work::{Judgement, Synthesis};
use longhaul_worktree::CommitCounts;

fn run(id: &str, tokens: u32) -> ComparedRun {
    let usage = Usage { output_tokens: tokens, ..Usage::default() };
    let summary = RunSummary {
        run: RunId::from_text(id),
        project: "p <b>".into(),
        directory: "/p".into(),
        status: RunStatus::Incomplete,
        project_status: ProjectStatus::Active,
        passing: (1, 2),
        created_ms: 1_700_000_000_000,
        last_ms: 1_700_000_000_000,
        is_ask: false,
        active: false,
        wakes_at_ms: None,
        queue_place: None,
        queued_ms: None,
        archived_ms: None,
        title: "the goal".into(),
        agents: Vec::new(),
        spent: InvocationUsage { usage, ..InvocationUsage::default() },
        wall_ms: 3_000,
        budget_microdollars: None,
        forked_from: None,
    };
    ComparedRun { summary, resource_usage: WorkUsage::default(), steps: 3, steps_left_out: 0, answer: None }
}

fn side(run: usize, call: &str, answer: &str) -> StepSide {
    StepSide {
        run,
        entry: 3,
        at_ms: 1_700_000_000_000,
        duration_ms: Some(5),
        call: call.into(),
        answer: answer.into(),
        skipped_bytes: 7,
        is_cut: true,
    }
}

fn step(number: usize, change: StepChange, sides: Vec<StepSide>) -> AlignedStep {
    let work = "f-sum/1/generate".to_owned();
    AlignedStep { number, feature: Some("sum".into()), work, kind: "tools.call".into(), change, sides }
}

fn feature(run: usize, mark: Mark) -> FeatureSide {
    let judgements = vec![Judgement { criterion: "works".into(), mark, why: "so".into() }];
    let passed = mark == Mark::Pass;
    FeatureSide {
        run,
        status: if passed { FeatureStatus::Passing } else { FeatureStatus::Failing },
        reason: String::new(),
        sessions: 1,
        verdict: Some(LastVerdict { round: 2, verdicts: 2, passed, judgements }),
        commit: None,
        answer: String::new(),
        resource_usage: WorkUsage::default(),
    }
}

fn diff() -> TreeDiff {
    let file = CommitFile {
        path: "sum<1>.py".into(),
        old_path: None,
        change: CommitChange::Modified,
        patch: "-a < b\n+b < a\n".into(),
        added_lines: 1,
        removed_lines: 1,
        is_binary: false,
        is_cut: false,
    };
    let counts = CommitCounts { files: 3, modified: 3, added_lines: 1, removed_lines: 1, ..CommitCounts::default() };
    TreeDiff { from: "0".repeat(40), to: "1".repeat(40), files: vec![file], files_left_out: 2, counts }
}

fn comparison() -> RunComparison {
    let other =
        step(2, StepChange::Answer, vec![side(0, "files.read <a>", "one\ntwo"), side(1, "files.read <a>", "1")]);
    RunComparison {
        runs: vec![run("r-1", 12), run("r-2", 0)],
        counts: StepCounts { same: 1, answer: 1, missing: 60, ..StepCounts::default() },
        first_difference: Some(other.clone()),
        steps: vec![
            step(1, StepChange::Same, vec![side(0, "files.list", "-"), side(1, "files.list", "-")]),
            other,
            step(3, StepChange::Missing, vec![side(1, "files.write b", "ok")]),
        ],
        steps_left_out: 59,
        features: vec![ComparedFeature {
            feature: "sum".into(),
            title: "Sum <numbers>".into(),
            is_same: false,
            sides: vec![feature(0, Mark::Pass), feature(1, Mark::Fail)],
        }],
        features_left_out: 0,
        files: vec![FileComparison { run: 1, diff: Some(diff()), reason: None }],
    }
}

#[track_caller]
fn check(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no `{part}` in:\n{text}");
    }
}

#[test]
fn the_text_has_both_runs_the_first_difference_features_and_files() {
    let text = text(&comparison());
    check(
        &text,
        &[
            "A  r-1 of p <b>, incomplete, 1 of 2 features pass, 3 steps, 12 tokens, 3 s worked\n",
            "B  r-2 of p <b>, incomplete, 1 of 2 features pass, 3 steps, 3 s worked\n",
            "Steps: 1 the same, 1 with another answer, 60 that not all runs have.\n",
            "The first difference: step 2, f-sum/1/generate, tools.call: the answer differs.\nA  files.read <a>\n   | (7 bytes before are the same)\n   | one\n   | two\n   | ...\nB  files.read <a>\n",
            "     3  f-sum/1/generate, tools.call: A does not have it\n        B  files.write b -> ok\n",
            "        and 59 more; `--html FILE` and `--json` have more of them\n",
            "* sum: Sum <numbers>\n    A  passing, 2 rounds judged, the last in round 2\n    B  failing, 2 rounds judged, the last in round 2, not passed: works\n",
            "Files from A to B: 3 files, +1 -1.\n  M sum<1>.py +1 -1\n  and 2 files more\n  `git diff 0000000000 1111111111` has every line\n",
        ],
    );
    assert!(!text.contains("files.list"), "the same steps are counted: {text}");
}

#[test]
fn runs_without_a_difference_say_so() {
    let sides = vec![side(0, "files.list", "-"), side(1, "files.list", "-")];
    let comparison = RunComparison {
        counts: StepCounts { same: 1, ..StepCounts::default() },
        first_difference: None,
        steps: vec![step(1, StepChange::Same, sides)],
        features: Vec::new(),
        files: vec![FileComparison { run: 1, diff: None, reason: Some("run r-2 is an ask".into()) }],
        ..comparison()
    };
    let text = text(&comparison);
    check(&text, &["Steps: 1 the same.\nNo step differs.\n", "Files of B are not compared: run r-2 is an ask.\n"]);
    assert!(!text.contains("Steps that differ") && !text.contains("Features:"), "{text}");
    check(&html(&comparison), &["<p>No step differs.</p>", "They are not compared: run r-2 is an ask."]);
}

#[test]
fn what_others_wrote_is_text_and_no_markup_on_the_page() {
    let page = html(&comparison());
    check(
        &page,
        &[
            "<th>A: r-1<th>B: r-2",
            "files.read &lt;a&gt;<pre>(7 bytes before are the same)\none\ntwo\n...</pre>",
            "sum: Sum &lt;numbers&gt;",
            "<td class=\"none\">does not have it",
            "-a &lt; b\n+b &lt; a",
            "sum&lt;1&gt;.py",
            "<p class=\"about\">2 more files are left out.</p>",
            "<p class=\"about\">59 steps are left out.</p>",
        ],
    );
    for never in ["<numbers>", "p <b>", "<script", "http:", "https:", "url("] {
        assert!(!page.contains(never), "`{never}` in:\n{page}");
    }
    assert!(page.starts_with("<!doctype html>") && page.trim_end().ends_with("</html>"));
}

#[test]
fn answers_stand_beside_each_other() {
    let mut comparison = comparison();
    let answer = |text: &str, confidence| Synthesis {
        answer: format!("\"{text}\""),
        confidence,
        conflicts: Vec::new(),
        unknowns: Vec::new(),
    };
    comparison.runs[0].answer = Some(answer("42 <b>", Some(0.5)));
    check(&text(&comparison), &["Answers:\nA (confidence 0.50)\n   | 42 <b>\n"]);
    check(&html(&comparison), &["<td><pre>42 &lt;b&gt;</pre><td class=\"none\">has none"]);
}

#[test]
fn a_step_says_which_runs_do_not_have_it() {
    let only = |runs: &[usize]| step(1, StepChange::Missing, runs.iter().map(|run| side(*run, "a", "")).collect());
    assert!(step_words(2, &only(&[1])).ends_with(": A does not have it"));
    assert!(step_words(4, &only(&[1, 2])).ends_with(": A and D do not have it"));
}
