//! The agent `doer`: for the same task it always makes the same calls, of every kind that there is.

mod work;

use longhaul_sdk::agent::{Agent, AgentError};
use longhaul_sdk::types::{Outcome, Task};

struct Doer;

impl Agent for Doer {
    fn run(task: Task) -> Result<Outcome, AgentError> {
        Ok(work::run(&task, "written")?)
    }
}

longhaul_sdk::export_agent!(Doer);
