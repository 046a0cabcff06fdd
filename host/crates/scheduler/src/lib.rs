//! The agents of a data directory: records, what each passes from run to run, schedules, and tasks with all their
//! attempts.
//!
//! A task that ends, what its agent hands on, and what the scheduler knows are one transaction, so that a kill neither
//! loses a run nor counts it twice. Whatever changes anything here goes through one lock, and is in memory only once it is
//! stored.
//!
//! | module | holds |
//! |---|---|
//! | `desk` | the desk: the lock, and the state behind it |
//! | `rows` | what is stored, and what of it changes |
//! | `records` | agents: made, changed, removed |
//! | `artifacts` | what runs hand on, in the hands of people |
//! | `schedules` | schedules, as they are asked about |
//! | `tasks` | tasks, as they are asked about |
//! | `work` | what an attempt executes, and who executes it |
//! | `attempt` | one attempt: load, execute, sum up, save |
//! | `code` | an agent's code in the sandbox |
//! | `summary` | what a model makes of an output |
//! | `scheduler` | the wait for what is due |
//!
//! Nothing fires without a [`Scheduler`]: whoever changes a schedule where none works starts nothing by it. This crate
//! refuses to decide what may be done next, which `longhaul-schedule` does, and what is handed on, which
//! `longhaul-agents` does. It runs code alone: an ask or a run of a project is executed by the [`AgentExecutor`] that
//! it is given.

mod artifacts;
mod attempt;
mod code;
mod desk;
mod records;
mod rows;
mod scheduler;
mod schedules;
mod summary;
mod tasks;
#[cfg(test)]
mod tests;
mod work;

pub use desk::SchedulerService;
pub use scheduler::Scheduler;
pub use work::{AgentExecutor, AgentWork};
