//! The SDK of a Longhaul plugin in Rust: one trait and one export macro for each role.
//!
//! ```ignore
//! use longhaul_sdk::{Conversation, agent::{Agent, AgentError}, types::{Outcome, Task}};
//!
//! struct Writer;
//!
//! impl Agent for Writer {
//!     fn run(task: Task) -> Result<Outcome, AgentError> {
//!         let text = Conversation::new("You write letters.").text(&task.instruction)?;
//!         Ok(longhaul_sdk::outcome(&serde_json::json!({ "text": text }), "wrote a letter"))
//!     }
//! }
//!
//! longhaul_sdk::export_agent!(Writer);
//! ```
//!
//! All roles share one set of types, so one function can serve an agent and an evaluator. A plugin needs no path to the
//! WIT files. It imports only the interfaces that it calls, and `log`, which receives the text of a panic. Outside of
//! [`react`], which documents its limits, this crate never retries, never limits and never hides an error of the host:
//! that is the policy of the plugin or of the operator.

mod bindings;
pub mod conversation;
mod error;
#[doc(hidden)]
pub mod export;
mod functions;
pub mod graph;
pub mod image;
pub mod json;
pub mod keyvalue;
pub mod react;
pub mod repository;
pub mod schema;
pub mod tools;

/// `wasi:filesystem`, for tools and memory backends that were granted a directory.
pub use bindings::filesystem;
pub use bindings::types;
pub use bindings::{agent, evaluator, memory, planner, tool};
pub use bindings::{
    artifact, checks, clock, decisions, delegate, log, message_types, progress, recall, timer, tool_types,
};
#[cfg(feature = "http")]
pub use bindings::{http, streams};
pub use conversation::Conversation;
pub use error::Error;
pub use functions::Functions;

/// An allocator that uses the memory which a module starts with before it grows the memory. Growing costs the host more
/// than a small call, and the allocator of `std` always grows.
#[cfg(all(target_family = "wasm", feature = "heap"))]
#[global_allocator]
static HEAP: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

impl planner::CheckBody {
    /// A check that runs Python source.
    #[must_use]
    pub fn python(source: impl Into<String>) -> Self {
        Self::Source(planner::CheckSource { language: "python".to_owned(), text: source.into() })
    }
}

/// Returns an outcome without confidence and without unknowns. `output` is the result, of any shape.
#[must_use]
pub fn outcome(output: &serde_json::Value, summary: impl Into<String>) -> types::Outcome {
    types::Outcome { output: output.to_string(), summary: summary.into(), confidence: None, unknowns: Vec::new() }
}
