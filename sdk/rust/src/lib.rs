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
//! All roles share one set of types, so a helper can serve an agent and an evaluator alike. A plugin
//! needs no path to the WIT files. What it does not call, it does not import, but for `log`, where the
//! words of a panic go. Outside of [`react`], which says its caps, this crate never retries, never
//! caps and never hides an error of the host: that is policy, and policy is the plugin's or the
//! operator's.

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

/// Has a plugin use the heap that its memory begins with before the memory grows, which costs the host more than a small
/// call. `std`'s own version does not yet.
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

/// An outcome without confidence or unknowns.
#[must_use]
pub fn outcome(output: &serde_json::Value, summary: impl Into<String>) -> types::Outcome {
    types::Outcome { output: output.to_string(), summary: summary.into(), confidence: None, unknowns: Vec::new() }
}
