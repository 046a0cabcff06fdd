//! The outgoing texts: tasks, commit messages, summaries.
//!
//! Foreign text becomes one line and is cut before it goes into a message.

use crate::action::Choice;
use crate::state::{Feature, RunState, Session, SessionNote};
use longhaul_core::text::truncate;
use longhaul_core::work::FeatureStatus::{self, Blocked, Dropped, Failing, InProgress, NotStarted, Passing};
use longhaul_core::work::{Criterion, FeatureSpec, Goal, Issue, Judgement, Mark, Task, Verdict};
use serde_json::{Value, json};

/// Passing features that a task mentions. More would fill the window of a small model.
const DONE_SHOWN_MAX: usize = 50;
/// Features that a summary names for each reason.
const NAMED_MAX: usize = 10;
/// Bytes of a reason within a summary.
const REASON_BYTES_MAX: usize = 160;

/// `text` as one line of at most `bytes_max` bytes, with a note about the cut.
pub(crate) fn line(text: &str, bytes_max: usize) -> String {
    let spaced: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    truncate(&spaced.split_whitespace().collect::<Vec<_>>().join(" "), bytes_max)
}

/// The input of the planner.
pub(crate) fn goal(state: &RunState) -> Goal {
    let mut context = match &state.context {
        Value::Object(fields) => fields.clone(),
        _ => serde_json::Map::new(),
    };
    context.insert("agents".into(), json!(state.setup.agents));
    context.insert("native_checks".into(), json!(state.setup.checks));
    context.insert("features_max".into(), json!(state.limits.features_max));
    if state.setup.checks_only.is_some() {
        context.insert("judged_by".into(), json!("checks"));
    }
    if state.is_ask() {
        context.insert("kind".into(), json!("ask"));
        context.insert("agents_described".into(), json!(state.setup.described));
    }
    if !state.plan_notes.is_empty() {
        context.insert("notes".into(), notes(&state.plan_notes));
    }
    Goal { text: state.goal.clone(), context: Value::Object(context), settings: json!({}), criteria: Vec::new() }
}

/// The input of the agent.
pub(crate) fn task(state: &RunState, feature: &Feature, session: &Session) -> Task {
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
        // The harness's own fields win over the driver's fields of the same name.
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

/// The input of an agent for a task of an ask. The answers of earlier tasks are in the instruction, where every kind of
/// agent reads them.
pub(crate) fn ask_task(state: &RunState, feature: &Feature) -> Task {
    let mut context = json!({ "kind": "ask", "title": feature.spec.title });
    if !state.direct {
        context["goal"] = json!(state.goal);
    }
    if let Some(error) = &feature.last_error {
        context["earlier_failure"] = json!(error);
    }
    if !feature.answers.is_empty() {
        context["answers"] = notes(&feature.answers);
    }
    if let Some(decisions) = state.context.get("decisions") {
        context["decisions"] = decisions.clone();
    }
    Task {
        id: feature.spec.id.clone(),
        instruction: format!("{}{}", feature.spec.instruction, upstream_answers(state, feature)),
        context,
        settings: json!({}),
        criteria: feature.spec.criteria.clone(),
        feedback: Vec::new(),
        attempt: feature.sessions,
    }
}

/// Size of all earlier answers in a task, as a multiple of the longest answer.
const UPSTREAM_ANSWERS_MAX: usize = 4;

fn upstream_answers(state: &RunState, feature: &Feature) -> String {
    let found: Vec<_> = feature.spec.depends_on.iter().filter_map(|id| state.feature(id)).collect();
    if found.is_empty() {
        return String::new();
    }
    let bytes_max = state.limits.answer_bytes_max;
    let share = (bytes_max.saturating_mul(UPSTREAM_ANSWERS_MAX) / found.len()).min(bytes_max);
    let one = |other: &&Feature| match other.status {
        Passing => format!("\n[{}] {}", other.spec.id, truncate(&plain(&other.answer), share)),
        _ => format!("\n[{}] (failed, and the plan goes on without it)", other.spec.id),
    };
    let told: String = found.iter().map(one).collect();
    format!("\n\n--- Context from completed upstream tasks ---{told}")
}

/// The answer in an output, without the artifact that an agent passes along. JSON of at most about `bytes_max` bytes.
pub(crate) fn answer_of(output: &str, bytes_max: usize) -> String {
    let value = serde_json::from_str(output).unwrap_or_else(|_| Value::from(output));
    let answer = match value {
        Value::Object(mut fields) => fields.remove("answer").unwrap_or(Value::Object(fields)),
        other => other,
    };
    json_within(&answer.to_string(), bytes_max)
}

/// The JSON itself, or its beginning as a string.
pub(crate) fn json_within(text: &str, bytes_max: usize) -> String {
    let is_json = serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    if is_json && text.len() <= bytes_max {
        text.to_owned()
    } else {
        json!(truncate(&plain(text), bytes_max)).to_string()
    }
}

/// JSON for a person: a string without its quotes.
pub(crate) fn plain(json: &str) -> String {
    match serde_json::from_str(json) {
        Ok(Value::String(text)) => text,
        _ => json.to_owned(),
    }
}

/// The system prompt and the prompt for a model that chooses.
pub(crate) fn choice(state: &RunState, choice: Choice) -> (String, String) {
    let described = |agent: &String| match state.setup.described.get(agent) {
        Some(text) => format!("- {agent}: {}", line(text, 400)),
        None => format!("- {agent}"),
    };
    let agents: Vec<_> = state.setup.agents.iter().map(described).collect();
    let system = match choice {
        Choice::Path => CHOOSE_PATH,
        Choice::Agent => CHOOSE_AGENT,
    };
    (system.to_owned(), format!("The agents:\n{}\n\nThe request:\n{}", agents.join("\n"), state.goal))
}

const CHOOSE_PATH: &str = "\
You decide how a request is worked on. Answer with one word: `simple` if one of the agents can answer it alone, or \
`complex` if it needs several steps or several agents.";

const CHOOSE_AGENT: &str = "\
You decide which agent answers a request. Answer with the name of one agent of the list, and nothing else.";

/// Names in backticks; `none` for an empty list.
pub(crate) fn names<'a>(names: impl IntoIterator<Item = &'a String>) -> String {
    let names: Vec<_> = names.into_iter().take(50).map(|name| format!("`{}`", line(name, 80))).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// The input of the agent that looks for missing criteria and checks of a feature.
pub(crate) fn proposal_task(state: &RunState, feature: &Feature) -> Task {
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

/// The instruction of the agent that looks for criteria and checks.
const PROPOSE: &str = "\
Another agent is about to build the feature that the context describes (`title`, `feature_instruction`). Say what its \
result must be judged by that `criteria` and `checks` do not say yet. Change nothing in the tree. Answer with one \
JSON object: {\"checks\": [{\"name\": \"short-name\", \"python\": \"source that exits with 0 only if it holds, run in \
the directory of the work\"}], \"criteria\": [{\"id\": \"short-id\", \"text\": \"what must hold\", \"check\": \"the name of \
the check that decides it, if one does\"}]}. Both lists may be empty. A check must fail before the feature is built.";

/// The text in the place of an output when the evaluator is asked which criteria it can judge.
pub const NOTHING_YET: &str = "\
Nothing is built yet. These criteria are offered for the rubric that the work will be judged by. Judge the files as \
they are now: FAIL what does not hold yet, and UNKNOWN what you could not decide by the files and the checks.";

fn done(state: &RunState) -> Vec<Value> {
    let passing = state.features.iter().rev().filter(|other| other.status == Passing).take(DONE_SHOWN_MAX);
    let mut done: Vec<_> = passing.map(|other| json!({"id": other.spec.id, "title": other.spec.title})).collect();
    done.reverse();
    done
}

/// The outcomes of a feature's dependencies, in their agents' words.
fn upstream(state: &RunState, feature: &Feature) -> Vec<Value> {
    let of = |id: &String| state.feature(id).map(|other| json!({"id": id, "summary": other.summary}));
    feature.spec.depends_on.iter().filter_map(of).collect()
}

/// Files by name, as many as fit in a line.
pub(crate) fn named_files(files: &[String]) -> String {
    let mut names: Vec<_> = files.iter().take(NAMED_MAX).map(|file| format!("`{}`", line(file, 120))).collect();
    if files.len() > NAMED_MAX {
        names.push(format!("{} more", files.len() - NAMED_MAX));
    }
    names.join(", ")
}

fn notes(notes: &[SessionNote]) -> Value {
    notes.iter().map(|note| json!({"about": note.about, "text": note.text})).collect()
}

/// The message of a feature's commit. The harness's trailers stand last, where git looks for them; the agent's text is
/// one line above them and cannot pass for one. Only a passing feature is committed.
pub(crate) fn commit_message(state: &RunState, feature: &Feature) -> String {
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

/// The issues for the next round: the evaluator's, and one for each criterion that did not pass and that none of them
/// names.
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
    // Those first: they are one for each criterion, while a list of issues may be endless.
    unsaid.chain(said).take(issues_max).collect()
}

fn mark_word(mark: Mark) -> &'static str {
    match mark {
        Mark::Pass => "passes",
        Mark::Fail => "fails",
        Mark::Unknown => "cannot be told",
    }
}

/// The status of the run, in one line.
pub(crate) fn summary(state: &RunState) -> String {
    let passing = state.count(Passing);
    let total = state.features.len() - state.count(Dropped);
    let what = if state.is_ask() { "tasks are answered" } else { "features pass" };
    let mut parts = vec![format!("{passing} of {total} {what}")];
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

fn named(state: &RunState, status: FeatureStatus, word: &str) -> Option<String> {
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
