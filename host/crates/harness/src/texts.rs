//! The texts and contents that go out: tasks, commit messages, summaries.
//!
//! What others wrote is made one line and cut before it gets into a message of ours.

use crate::state::{Feature, Note, Session, State};
use longhaul_core::text::truncate;
use longhaul_core::work::FeatureStatus::{self, Blocked, Dropped, Failing, InProgress, NotStarted, Passing};
use longhaul_core::work::{Criterion, FeatureSpec, Goal, Issue, Judgement, Mark, Task, Verdict};
use serde_json::{Value, json};

/// Features that pass of which a task speaks. More would fill the window of a small model.
const DONE_SHOWN_MAX: usize = 50;
/// Features that a summary names for each reason.
const NAMED_MAX: usize = 10;
/// Bytes of a reason within a summary.
const REASON_BYTES_MAX: usize = 160;

/// `text` as one line of at most `bytes_max` bytes, and a word on what was cut.
pub(crate) fn line(text: &str, bytes_max: usize) -> String {
    let spaced: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    truncate(&spaced.split_whitespace().collect::<Vec<_>>().join(" "), bytes_max)
}

/// What the planner gets.
pub(crate) fn goal(state: &State) -> Goal {
    let mut context = match &state.context {
        Value::Object(fields) => fields.clone(),
        _ => serde_json::Map::new(),
    };
    context.insert("agents".into(), json!(state.setup.agents));
    context.insert("native_checks".into(), json!(state.setup.checks));
    context.insert("features_max".into(), json!(state.limits.features_max));
    if !state.plan_notes.is_empty() {
        context.insert("notes".into(), notes(&state.plan_notes));
    }
    Goal { text: state.goal.clone(), context: Value::Object(context), settings: json!({}), criteria: Vec::new() }
}

/// What the agent gets.
pub(crate) fn task(state: &State, feature: &Feature, session: &Session) -> Task {
    let checks: Vec<_> = feature.spec.checks.iter().map(|check| &check.name).collect();
    let mut context = json!({
        "goal": state.goal,
        "title": feature.spec.title,
        "category": feature.spec.category,
        "features_done": done(state),
        "checks": checks,
        "checks_vacuous": feature.vacuous,
        "earlier_rounds": session.earlier,
        "earlier_sessions": feature.history,
        "earlier_failure": feature.last_error,
        "answers": notes(&feature.answers),
        "depends_on": upstream(state, feature),
    });
    if let (Some(fields), Value::Object(orientation)) = (context.as_object_mut(), &session.orientation) {
        // What the harness says goes before what the driver found under the same name.
        orientation.iter().for_each(|(name, value)| {
            fields.entry(name).or_insert_with(|| value.clone());
        });
    }
    if let Some(decisions) = state.context.get("decisions") {
        context["decisions"] = decisions.clone();
    }
    if session.handoffs > 0 {
        context["handoffs"] = json!(session.handoffs);
    }
    Task {
        id: feature.spec.id.clone(),
        instruction: feature.spec.instruction.clone(),
        context,
        settings: json!({}),
        criteria: feature.spec.criteria.clone(),
        feedback: session.feedback.clone(),
        attempt: session.round,
    }
}

/// What the agent gets that looks for criteria and checks which a feature lacks.
pub(crate) fn proposal_task(state: &State, feature: &Feature) -> Task {
    let FeatureSpec { id, title, instruction, criteria, checks, .. } = &feature.spec;
    let context = json!({
        "goal": state.goal,
        "title": title,
        "feature_instruction": instruction,
        "features_done": done(state),
        "criteria": criteria,
        "checks": checks,
    });
    Task {
        id: id.clone(),
        instruction: PROPOSE.to_owned(),
        context,
        settings: json!({}),
        criteria: Vec::new(),
        feedback: Vec::new(),
        attempt: 1,
    }
}

/// What is asked of the agent that looks for criteria and checks.
const PROPOSE: &str = "\
Another agent is about to build the feature that the context describes (`title`, `feature_instruction`). Say what its \
result must be judged by that `criteria` and `checks` do not say yet. Change nothing in the tree. Answer with one \
JSON object: {\"checks\": [{\"name\": \"short-name\", \"python\": \"source that exits with 0 only if it holds, run in \
the directory of the work\"}], \"criteria\": [{\"id\": \"short-id\", \"text\": \"what must hold\", \"check\": \"the name of \
the check that decides it, if one does\"}]}. Both lists may be empty. A check must fail before the feature is built.";

/// What the evaluator reads in the place of an output when it is asked which criteria it can judge.
pub const NOTHING_YET: &str = "\
Nothing is built yet. These criteria are offered for the rubric that the work will be judged by. Judge the files as \
they are now: FAIL what does not hold yet, and UNKNOWN what you could not decide by the files and the checks.";

fn done(state: &State) -> Vec<Value> {
    let passing = state.features.iter().rev().filter(|other| other.status == Passing).take(DONE_SHOWN_MAX);
    let mut done: Vec<_> = passing.map(|other| json!({"id": other.spec.id, "title": other.spec.title})).collect();
    done.reverse();
    done
}

/// What became of the features that it depends on, in their agents' words.
fn upstream(state: &State, feature: &Feature) -> Vec<Value> {
    let of = |id: &String| state.feature(id).map(|other| json!({"id": id, "summary": other.summary}));
    feature.spec.depends_on.iter().filter_map(of).collect()
}

/// Files by name, as many as a line takes.
pub(crate) fn named_files(files: &[String]) -> String {
    let mut names: Vec<_> = files.iter().take(NAMED_MAX).map(|file| format!("`{}`", line(file, 120))).collect();
    if files.len() > NAMED_MAX {
        names.push(format!("{} more", files.len() - NAMED_MAX));
    }
    names.join(", ")
}

fn notes(notes: &[Note]) -> Value {
    notes.iter().map(|note| json!({"about": note.about, "text": note.text})).collect()
}

/// The message of a feature's commit. The trailers are ours and stand last, where git looks for them;
/// what the agent wrote is one line above them and cannot pass for one. Only what passed is committed.
pub(crate) fn commit_message(state: &State, feature: &Feature) -> String {
    let body = if feature.summary.is_empty() { String::new() } else { format!("{}\n\n", feature.summary) };
    let run = state.run.as_ref().map_or("", |run| run.as_str());
    let Feature { spec, .. } = feature;
    format!("{}\n\n{body}Longhaul-Feature: {}\nLonghaul-Outcome: passing\nLonghaul-Run: {run}\n", spec.title, spec.id)
}

/// One judgement for each criterion: one that is not a pass if there is any, since that one decides.
pub(crate) fn judgements(criteria: &[Criterion], verdict: &Verdict, bytes_max: usize) -> Vec<Judgement> {
    let deciding = |criterion: &Criterion| {
        let marks = || verdict.judgements.iter().filter(|judgement| judgement.criterion == criterion.id);
        let found = marks().find(|judgement| judgement.mark != Mark::Pass).or_else(|| marks().next());
        Judgement {
            criterion: criterion.id.clone(),
            mark: found.map_or(Mark::Unknown, |judgement| judgement.mark),
            why: found
                .map_or_else(|| "the evaluator gave no mark".to_owned(), |judgement| line(&judgement.why, bytes_max)),
        }
    };
    criteria.iter().map(deciding).collect()
}

/// What the next round is to mend: the evaluator's issues, and each criterion that did not pass and
/// that none of them names.
pub(crate) fn issues(judgements: &[Judgement], verdict: &Verdict, issues_max: usize, bytes_max: usize) -> Vec<Issue> {
    let of_criterion = |id: &String| judgements.iter().any(|judgement| judgement.criterion == *id);
    let said = verdict.issues.iter().map(|issue| Issue {
        criterion: issue.criterion.clone().filter(of_criterion),
        text: truncate(&issue.text, bytes_max),
    });
    let named = |id: &String| verdict.issues.iter().any(|issue| issue.criterion.as_ref() == Some(id));
    let open = judgements.iter().filter(|judgement| judgement.mark != Mark::Pass && !named(&judgement.criterion));
    let unsaid = open.map(|judgement| Issue {
        criterion: Some(judgement.criterion.clone()),
        text: format!("{}: {}", mark_word(judgement.mark), judgement.why),
    });
    // Those first: they are one for each criterion, while a list of issues may have no end.
    unsaid.chain(said).take(issues_max).collect()
}

fn mark_word(mark: Mark) -> &'static str {
    match mark {
        Mark::Pass => "passes",
        Mark::Fail => "fails",
        Mark::Unknown => "cannot be told",
    }
}

/// How the run stands, in one line.
pub(crate) fn summary(state: &State) -> String {
    let passing = state.count(Passing);
    let total = state.features.len() - state.count(Dropped);
    let mut parts = vec![format!("{passing} of {total} features pass")];
    let dropped = state.count(Dropped);
    if dropped > 0 {
        parts.push(format!("{dropped} dropped"));
    }
    parts.extend(
        [(Failing, "failing"), (Blocked, "blocked"), (InProgress, "in progress"), (NotStarted, "not started")]
            .into_iter()
            .filter_map(|(status, word)| named(state, status, word)),
    );
    parts.join("; ")
}

fn named(state: &State, status: FeatureStatus, word: &str) -> Option<String> {
    let all: Vec<_> = state.features.iter().filter(|feature| feature.status == status).collect();
    let one = |feature: &&Feature| match feature.why.as_str() {
        "" => format!("`{}`", feature.spec.id),
        why => format!("`{}` ({})", feature.spec.id, line(why, REASON_BYTES_MAX)),
    };
    let mut names: Vec<_> = all.iter().take(NAMED_MAX).map(one).collect();
    if all.len() > NAMED_MAX {
        names.push(format!("and {} more", all.len() - NAMED_MAX));
    }
    (!all.is_empty()).then(|| format!("{word}: {}", names.join(", ")))
}
