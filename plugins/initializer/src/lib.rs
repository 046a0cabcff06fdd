//! The planner `initializer`: from a goal to features, each small enough for one session.
//!
//! A goal with `## Feature: TITLE` sections is taken exactly as written, in its order, without a
//! model. Any other goal is put to the model, at most `tries_max` times, each time with what was
//! wrong. A plan never loses a criterion or a check that an earlier plan had, and this planner never
//! executes anything: it calls no tool and runs no check. A goal that is an ask becomes tasks instead, see [`tasks`].

mod ask;
mod bounds;
mod draft;
mod graph;
mod markdown;
mod settings;
mod summary;
mod tasks;

use longhaul_sdk::planner::{Goal, PlanError, PlanStepResult, Planner, Synthesis, WorkPlan};

use settings::Settings;

struct Initializer;

impl Planner for Initializer {
    fn plan(goal: Goal) -> Result<WorkPlan, PlanError> {
        let settings = Settings::of(&goal)?;
        if tasks::is_ask(&goal) {
            return tasks::plan(&goal, &settings);
        }
        let written = markdown::features(&goal.text)?;
        if !written.is_empty() {
            let notes = match written.len() {
                1 => "1 feature, as the goal writes it".to_owned(),
                count => format!("{count} features, as the goal writes them"),
            };
            return Ok(WorkPlan { steps: written, notes });
        }
        if goal.text.trim().is_empty() {
            return Err(PlanError::Unclear("the goal is empty; what is to be built?".to_owned()));
        }
        ask::plan(&goal, &settings)
    }

    fn replan(goal: Goal, plan: WorkPlan, results: Vec<PlanStepResult>) -> Result<WorkPlan, PlanError> {
        let settings = Settings::of(&goal)?;
        if tasks::is_ask(&goal) {
            return tasks::replan(&goal, &settings, &plan, &results);
        }
        if settings.uses_model(&goal) {
            return ask::replan(&goal, &settings, plan, &results);
        }
        // The operator wrote these features; another round is the only honest change.
        let notes = "kept as the goal writes it, for another round".to_owned();
        Ok(WorkPlan { notes, ..plan })
    }

    fn synthesize(goal: Goal, results: Vec<PlanStepResult>) -> Result<Synthesis, PlanError> {
        let settings = Settings::of(&goal)?;
        if tasks::is_ask(&goal) {
            return tasks::synthesize(&goal, &settings, &results);
        }
        let mut answer = summary::answer(&results);
        if settings.uses_model(&goal) {
            // The summary stands without it: a run that is done must not fail for want of prose.
            if let Ok(text) = ask::summary(&goal, &settings, &answer) {
                answer["text"] = text.into();
            }
        }
        Ok(summary::synthesis(&answer, &results))
    }
}

longhaul_sdk::export_planner!(Initializer);
