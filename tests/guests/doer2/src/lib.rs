//! The agent `doer` after a change: it writes another word, so its journals do not fit any more.

#[path = "../../doer/src/work.rs"]
mod work;

use longhaul_sdk::agent::{Agent, AgentError};
use longhaul_sdk::types::{Outcome, Task};

struct Doer;

impl Agent for Doer {
    fn run(task: Task) -> Result<Outcome, AgentError> {
        Ok(work::run(&task, "altered")?)
    }
}

longhaul_sdk::export_agent!(Doer);
