//! Runs a plugin in-process, with everything around it scripted, and shows what it did.
//!
//! A [`Kit`] compiles and loads components. A [`Scene`] is one plugin with its surroundings: a
//! [`Script`] of models, tools, checks, sub-agents and HTTP, a clock that is moved by hand, a store in
//! memory, limits and grants. [`Scene::call`] calls one export in a fresh instance and gives a
//! [`Done`]: result, fuel, memory, calls of imports and log, with assertions on them.
//!
//! The kit is as strict as the host, since it is the host's own engine: the same worlds, the same
//! limits, the same journal. What it does not do is reach anything outside: what is not scripted is
//! refused with a typed error that says what the script lacks.
//!
//! ```no_run
//! # async fn test() -> Result<(), longhaul_testkit::KitError> {
//! use longhaul_testkit::{Kit, Script};
//! use serde_json::json;
//!
//! let kit = Kit::new()?;
//! let scene = kit
//!     .load("reporter.wasm")
//!     .await?
//!     .script(Script::new().model(json!({"action": "finish", "output": 42, "summary": "done"})));
//! let done = scene.call_json("run", json!({"instruction": "What is 6 times 7?"})).await?;
//! assert_eq!(done.value()["output"], 42);
//! done.assert_calls(&["tools.list", "conversation.complete"]);
//! # Ok(())
//! # }
//! ```

mod arguments;
mod call;
mod clock;
mod cut;
mod difference;
mod done;
mod error;
mod graphs;
mod journal;
mod kit;
mod recorded;
mod recording;
mod scenario;
mod scene;
mod script;
mod scripted;
mod shown;
mod store;

pub use call::{Call, EXPORTS, exports_of};
pub use clock::HandClock;
pub use cut::JournalCut;
pub use done::{Done, Ending, Made, Refusal};
pub use error::KitError;
pub use kit::Kit;
pub use recorded::RecordedTable;
pub use recording::{RecordedEnd, ScenarioRecordedCall, ScenarioRecording};
pub use scenario::{
    Scenario, ScenarioFolder, ScenarioOutcome, ScenarioPlugin, run_scenario_folders, run_scenarios, scenario_folders,
};
pub use scene::{ResumedCall, Scene};
pub use script::Script;
pub use store::{MemoryStore, ProcessStore};
