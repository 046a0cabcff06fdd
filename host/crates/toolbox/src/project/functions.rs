//! The description of `builtin:project`: its functions, their arguments, their effects.

use longhaul_core::journal::EffectClass::{Idempotent, ReadOnly};
use longhaul_core::tool::{FunctionInfo, ToolInfo};
use serde_json::json;

/// The description under the name of the grant.
pub fn info(name: &str) -> ToolInfo {
    ToolInfo {
        id: name.to_owned(),
        description: "The project that you work in: its features, its progress, and what should change. Changes are \
                      proposals, which a person accepts or rejects."
            .to_owned(),
        functions: reads().into_iter().chain(proposals()).collect(),
    }
}

fn reads() -> Vec<FunctionInfo> {
    let status = json!({ "type": "string", "enum": STATUSES, "description": "Only features of this status." });
    let limit = |default: u32, max: u32| json!({ "type": "integer", "minimum": 0, "maximum": max, "description": format!("At most so many. Default {default}.") });
    vec![
        FunctionInfo::of(
            "get_project_status",
            "Where the project is: features by status, how many percent pass, and the last 5 entries of its log.",
            ReadOnly,
            json!({}),
            &[],
        ),
        FunctionInfo::of(
            "list_project_features",
            "The features in the order of the plan, each with its status and why.",
            ReadOnly,
            json!({ "status": status, "limit": limit(200, 1_000) }),
            &[],
        ),
        FunctionInfo::of(
            "get_project_progress_log",
            "What was done in the project, the newest first.",
            ReadOnly,
            json!({ "limit": limit(20, 200) }),
            &[],
        ),
        FunctionInfo::of(
            "list_long_running_projects",
            "The projects of this data directory, each by its newest run, the newest first.",
            ReadOnly,
            json!({}),
            &[],
        ),
        FunctionInfo::of(
            "get_next_feature_to_work_on",
            "The feature that is worked on next, with its instruction and its criteria; null when nothing is left.",
            ReadOnly,
            json!({}),
            &[],
        ),
    ]
}

fn proposals() -> Vec<FunctionInfo> {
    let text = |what: &str| json!({ "type": "string", "description": what });
    let texts = |what: &str| json!({ "type": "array", "items": { "type": "string" }, "description": what });
    let reason = text("Why, for the person who decides.");
    vec![
        FunctionInfo::of(
            "log_project_progress",
            "Add an entry to the project's log.",
            Idempotent,
            json!({
                "action": text("What was done."),
                "outcome": text("What came of it."),
                "files": texts("The files that it touched."),
            }),
            &["action"],
        ),
        FunctionInfo::of(
            "add_project_feature",
            "Propose a feature.",
            Idempotent,
            json!({
                "id": text("New in the project: up to 64 letters, digits, - and _."),
                "title": text("One line. Default: the id."),
                "instruction": text("What is to be built."),
                "category": { "type": "string", "enum": CATEGORIES },
                "priority": { "type": "integer", "minimum": 1, "maximum": 10, "description": "Higher goes first. Default 5." },
                "criteria": texts("What must hold, one statement each. An evaluator judges by them."),
                "depends_on": texts("Ids of features that must pass before."),
                "reason": reason,
            }),
            &["id", "instruction", "criteria"],
        ),
        FunctionInfo::of(
            "update_feature_status",
            "Propose that a feature is dropped, or that a dropped one is built after all. Whether a feature passes is \
             decided by the evaluator alone.",
            Idempotent,
            json!({
                "feature": text("Its id."),
                "status": { "type": "string", "enum": STATUSES },
                "reason": reason,
            }),
            &["feature", "status"],
        ),
        FunctionInfo::of(
            "create_long_running_project",
            "Propose a project of its own, with its own repository and features.",
            Idempotent,
            json!({
                "name": text("1 to 64 letters, digits, - and _."),
                "goal": text("What is to be built, in Markdown."),
                "reason": reason,
            }),
            &["name", "goal"],
        ),
    ]
}

const STATUSES: [&str; 6] = ["not_started", "in_progress", "passing", "failing", "blocked", "dropped"];

const CATEGORIES: [&str; 7] =
    ["functional", "ui", "performance", "security", "integration", "testing", "documentation"];
