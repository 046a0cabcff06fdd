//! Schedules and tasks, moved through hours and years by hand.

mod budgets;
mod cases;
mod scheduler;
mod soak;
