//! The status of a project, and the changes of it that a run causes.
//!
//! Pure: a project has the status of its newest run, and each change of that is an event of the run, in the transaction
//! of the step that makes it. So nothing has to be stored beside it, and nothing can disagree.

use crate::record::RunRecord;
use longhaul_core::event::Event;
use longhaul_core::project::ProjectStatus;
use longhaul_harness::state::Phase;
use longhaul_harness::{RunState, RunStatus};

/// The status of a project whose newest run is in this state.
#[must_use]
pub fn status_of(state: &RunState) -> ProjectStatus {
    match state.status() {
        RunStatus::Paused => ProjectStatus::Paused,
        RunStatus::Completed => ProjectStatus::Completed,
        RunStatus::Abandoned => ProjectStatus::Abandoned,
        RunStatus::New | RunStatus::Planning | RunStatus::Failed => ProjectStatus::Initializing,
        // The run may ask about its goal before there is a plan.
        RunStatus::Parked if state.features.is_empty() => ProjectStatus::Initializing,
        RunStatus::Working | RunStatus::Parked | RunStatus::Incomplete => ProjectStatus::Active,
    }
}

/// As [`changes`] for a run; an ask changes nothing about its project.
#[must_use]
pub fn changes_by(record: &RunRecord, before: &RunState, after: &RunState) -> Vec<Event> {
    if record.ask.is_some() { Vec::new() } else { changes(&record.project, before, after) }
}

/// The events of a step that took the run of `project` from one state to another.
#[must_use]
pub fn changes(project: &str, before: &RunState, after: &RunState) -> Vec<Event> {
    let mut from = status_of(before);
    let mut events = Vec::new();
    for to in from.way_to(status_of(after)) {
        events.push(Event::ProjectStatus { project: project.to_owned(), from, to, why: why(from, to, after) });
        from = to;
    }
    events
}

fn why(from: ProjectStatus, to: ProjectStatus, after: &RunState) -> String {
    match (from, to) {
        (_, ProjectStatus::Initializing) => "a plan is made".to_owned(),
        (ProjectStatus::Initializing, ProjectStatus::Active) => "there is a plan".to_owned(),
        (ProjectStatus::Completed, ProjectStatus::Active) => "not every feature passes any more".to_owned(),
        (_, ProjectStatus::Active) => "it goes on".to_owned(),
        (_, ProjectStatus::Paused) => "no work is to be done until a resume".to_owned(),
        (_, ProjectStatus::Completed | ProjectStatus::Abandoned) => match &after.phase {
            Phase::Ended { summary, .. } => summary.clone(),
            Phase::New | Phase::Running => String::new(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_core::RunId;
    use longhaul_core::event::WorkUsage;
    use longhaul_core::work::{Criterion, FeatureSpec, OnFailure, Plan, PlanStep};
    use longhaul_harness::{HarnessLimits, HarnessSetup, Input, Reaction, WorkReport, step};

    /// The statuses of the project while these inputs are taken.
    fn life(inputs: Vec<Input>) -> Vec<String> {
        let mut state = RunState::new();
        let mut changed = Vec::new();
        for input in inputs {
            let before = state.clone();
            let taken = step(&mut state, 1, input).expect("taken");
            assert!(matches!(taken, Reaction::Acted(_)), "{taken:?}");
            for event in changes("p", &before, &state) {
                let Event::ProjectStatus { from, to, .. } = event else { panic!("{event:?}") };
                assert!(from.may_become(to), "{from:?} {to:?}");
                changed.push(format!("{} to {}", from.as_str(), to.as_str()));
            }
        }
        changed
    }

    fn begin() -> Input {
        Input::Begin {
            run: RunId::from_text("r-1"),
            goal: "build it".into(),
            context: serde_json::Value::Null,
            setup: HarnessSetup { agents: vec!["code".into()], ..HarnessSetup::default() },
            limits: HarnessLimits::default(),
        }
    }

    fn planned() -> Input {
        let spec = FeatureSpec {
            id: "a".into(),
            title: "A".into(),
            instruction: "write it".into(),
            category: "functional".into(),
            priority: 5,
            agent: None,
            criteria: vec![Criterion { id: "works".into(), text: "it works".into(), check: None }],
            checks: vec![],
            depends_on: vec![],
        };
        let plan = Plan { steps: vec![PlanStep { spec, on_failure: OnFailure::default() }], notes: String::new() };
        Input::Done { key: "plan".into(), used: WorkUsage::default(), report: WorkReport::Planned(plan) }
    }

    fn resume() -> Input {
        Input::Resume { retry_failing: false, limits: None }
    }

    fn dropped() -> Input {
        Input::FeatureDropped { feature: "a".into() }
    }

    fn discarded() -> Input {
        Input::Done { key: "f-a/discard".into(), used: WorkUsage::default(), report: WorkReport::Discarded }
    }

    #[test]
    fn each_change_of_a_project_is_told_once_and_is_allowed() {
        assert_eq!(life(vec![begin(), planned()]), ["initializing to active"]);
        let paused = life(vec![begin(), Input::PauseRequested, resume(), planned(), Input::PauseRequested, resume()]);
        assert_eq!(
            paused,
            [
                "initializing to paused",
                "paused to initializing",
                "initializing to active",
                "active to paused",
                "paused to active"
            ]
        );
        let given_up = life(vec![begin(), planned(), Input::Abandon { reason: "enough".into() }]);
        assert_eq!(given_up, ["initializing to active", "active to abandoned"]);
        let ended = life(vec![begin(), planned(), dropped(), discarded()]);
        assert_eq!(ended, ["initializing to active", "active to completed"]);
    }
}
