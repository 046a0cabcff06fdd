//! The export macros: one for each role, and one for a tool that is a list of functions.
//!
//! A panic ends the instance, and the host sees only a trap. So each macro first sets a hook that writes the text of a
//! panic to the plugin's log. A panic never becomes a result, because the state of the plugin is unknown then.

use std::sync::Once;

use crate::log::{self, Level};

/// Called by the export macros at the start of each call.
#[doc(hidden)]
pub fn entered() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        std::panic::set_hook(Box::new(|panic| log::write(Level::Error, &panic.to_string().replace('\n', " "))));
    });
}

/// Exports a type that implements [`Agent`](crate::agent::Agent).
#[macro_export]
macro_rules! export_agent {
    ($plugin:ty) => {
        const _: () = {
            struct Exported;
            impl $crate::agent::Agent for Exported {
                fn run(task: $crate::types::Task) -> Result<$crate::types::Outcome, $crate::agent::AgentError> {
                    $crate::export::entered();
                    <$plugin as $crate::agent::Agent>::run(task)
                }
            }
    $crate::agent::export_agent!(Exported with_types_in $crate::agent);
        };
    };
}

/// Exports a type that implements [`Planner`](crate::planner::Planner).
#[macro_export]
macro_rules! export_planner {
    ($plugin:ty) => {
        const _: () = {
            use $crate::planner::{Goal, PlanError, PlanStepResult, Planner, Synthesis, WorkPlan};
            struct Exported;
            impl Planner for Exported {
                fn plan(goal: Goal) -> Result<WorkPlan, PlanError> {
                    $crate::export::entered();
                    <$plugin as Planner>::plan(goal)
                }
                fn replan(goal: Goal, plan: WorkPlan, results: Vec<PlanStepResult>) -> Result<WorkPlan, PlanError> {
                    $crate::export::entered();
                    <$plugin as Planner>::replan(goal, plan, results)
                }
                fn synthesize(goal: Goal, results: Vec<PlanStepResult>) -> Result<Synthesis, PlanError> {
                    $crate::export::entered();
                    <$plugin as Planner>::synthesize(goal, results)
                }
            }
    $crate::planner::export_planner!(Exported with_types_in $crate::planner);
        };
    };
}

/// Exports a type that implements [`Evaluator`](crate::evaluator::Evaluator).
#[macro_export]
macro_rules! export_evaluator {
    ($plugin:ty) => {
        const _: () = {
            use $crate::evaluator::{Evaluator, JudgeError, Rubric, Subject, Verdict};
            struct Exported;
            impl Evaluator for Exported {
                fn judge(subject: Subject, rubric: Rubric) -> Result<Verdict, JudgeError> {
                    $crate::export::entered();
                    <$plugin as Evaluator>::judge(subject, rubric)
                }
            }
    $crate::evaluator::export_evaluator!(Exported with_types_in $crate::evaluator);
        };
    };
}

/// Exports a type that implements [`Tool`](crate::tool::Tool).
#[macro_export]
macro_rules! export_tool {
    ($plugin:ty) => {
        const _: () = {
            use $crate::tool::{CallContext, Tool, Verification};
            use $crate::tools::{ToolError, ToolInfo, ToolResult};
            struct Exported;
            impl Tool for Exported {
                fn describe(settings: String) -> Result<ToolInfo, ToolError> {
                    $crate::export::entered();
                    <$plugin as Tool>::describe(settings)
                }
                fn prepare(function: String, arguments: String, context: CallContext) -> Result<String, ToolError> {
                    $crate::export::entered();
                    <$plugin as Tool>::prepare(function, arguments, context)
                }
                fn verify(
                    function: String,
                    arguments: String,
                    prepared: String,
                    context: CallContext,
                ) -> Result<Verification, ToolError> {
                    $crate::export::entered();
                    <$plugin as Tool>::verify(function, arguments, prepared, context)
                }
                fn call(function: String, arguments: String, context: CallContext) -> Result<ToolResult, ToolError> {
                    $crate::export::entered();
                    <$plugin as Tool>::call(function, arguments, context)
                }
            }
    $crate::tool::export_tool!(Exported with_types_in $crate::tool);
        };
    };
}

/// Exports a tool by a function that returns its [`Functions`](crate::Functions).
#[macro_export]
macro_rules! export_functions {
    ($functions:path) => {
        const _: () = {
            use $crate::tool::{CallContext, Tool, Verification};
            use $crate::tools::{ToolError, ToolInfo, ToolResult};
            struct Listed;
            impl Tool for Listed {
                fn describe(_: String) -> Result<ToolInfo, ToolError> {
                    Ok($functions().describe())
                }
                fn prepare(function: String, arguments: String, context: CallContext) -> Result<String, ToolError> {
                    $functions().prepare(&function, &arguments, &context)
                }
                fn verify(
                    function: String,
                    arguments: String,
                    prepared: String,
                    context: CallContext,
                ) -> Result<Verification, ToolError> {
                    $functions().verify(&function, &arguments, &prepared, &context)
                }
                fn call(function: String, arguments: String, context: CallContext) -> Result<ToolResult, ToolError> {
                    $functions().call(&function, &arguments, &context)
                }
            }
            $crate::export_tool!(Listed);
        };
    };
}

/// Exports a type that implements [`Memory`](crate::memory::Memory).
#[macro_export]
macro_rules! export_memory {
    ($plugin:ty) => {
        const _: () = {
            use $crate::memory::{Entry, Hit, Memory, MemoryContext, MemoryError, Page};
            struct Exported;
            impl Memory for Exported {
                fn put(namespace: String, entry: Entry, context: MemoryContext) -> Result<(), MemoryError> {
                    $crate::export::entered();
                    <$plugin as Memory>::put(namespace, entry, context)
                }
                fn get(namespace: String, key: String, context: MemoryContext) -> Result<Option<Entry>, MemoryError> {
                    $crate::export::entered();
                    <$plugin as Memory>::get(namespace, key, context)
                }
                fn search(
                    namespace: String,
                    query: String,
                    limit: u32,
                    context: MemoryContext,
                ) -> Result<Vec<Hit>, MemoryError> {
                    $crate::export::entered();
                    <$plugin as Memory>::search(namespace, query, limit, context)
                }
                fn delete(namespace: String, key: String, context: MemoryContext) -> Result<bool, MemoryError> {
                    $crate::export::entered();
                    <$plugin as Memory>::delete(namespace, key, context)
                }
                fn list(
                    namespace: String,
                    prefix: String,
                    cursor: Option<String>,
                    limit: u32,
                    context: MemoryContext,
                ) -> Result<Page, MemoryError> {
                    $crate::export::entered();
                    <$plugin as Memory>::list(namespace, prefix, cursor, limit, context)
                }
            }
    $crate::memory::export_memory!(Exported with_types_in $crate::memory);
        };
    };
}
