//! The agents of a data directory: records, artifacts, schedules, and tasks with all their attempts.
//!
//! The end of a task, the agent's new artifact, and the scheduler's new state are one transaction, so that a kill
//! neither loses a run nor counts it twice. Every change goes through one lock, and is in memory only once it is
//! stored.
//!
//! | module | holds |
//! |---|---|
//! | `service` | the scheduler service: the lock, and the state behind it |
//! | `rows` | the stored rows, and their changes |
//! | `records` | agents: created, changed, removed |
//! | `artifacts` | artifacts, inspected and changed by people |
//! | `schedules` | operations on schedules |
//! | `tasks` | operations on tasks |
//! | `work` | the work of an attempt, and the trait of its executor |
//! | `attempt` | one attempt: load, execute, sum up, save |
//! | `interruptions` | attempts that an end of the host interrupted |
//! | `code` | an agent's code in the sandbox |
//! | `summary` | summaries of outputs, by a model |
//! | `scheduler` | the loop that waits for due tasks |
//!
//! Nothing fires without a [`Scheduler`]: a change of a schedule starts nothing while none works. `longhaul-schedule`
//! decides what happens next, and `longhaul-agents` decides what an artifact is; this crate refuses to decide either.
//! It runs code alone: the given [`AgentExecutor`] executes an ask or a run of a project.

mod artifacts;
mod attempt;
mod code;
mod interruptions;
mod records;
mod rows;
mod scheduler;
mod schedules;
mod service;
mod summary;
mod tasks;
#[cfg(test)]
mod tests;
mod work;

pub use scheduler::Scheduler;
pub use service::SchedulerService;
pub use work::{AgentExecutor, AgentWork};
